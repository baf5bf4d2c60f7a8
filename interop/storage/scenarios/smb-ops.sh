#!/bin/sh
# Small operations with SMB 3.1.1 over SMB Direct. If a client opens a folder below the root
# of the share, this kernel's ksmbd stops with a corrupted list in smb2_open(). So the scenario opens
# no such folder.
# shellcheck source=lib.sh
. /host/s/lib.sh
run ulptool mount //10.1.0.1/disk /mnt cifs "ip=10.1.0.1,unc=\\\\10.1.0.1\\disk,username=lab,password=labpass,vers=3.1.1,rdma,cache=none,actimeo=0,rsize=65536,wsize=65536,echo_interval=5"
grep " /mnt " /proc/mounts || exit 1
run ls /mnt
run cat /mnt/nonexistent
run ulptool pwrite /mnt/new3 0 300 94
run rm /mnt/new3
run mkdir /mnt/newdir
run rmdir /mnt/newdir
run ulptool umount /mnt
