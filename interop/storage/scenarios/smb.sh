#!/bin/sh
# Reads and writes with SMB 3.1.1 over SMB Direct. If a client opens a folder below the root
# of the share, this kernel's ksmbd stops with a corrupted list in smb2_open(). So the scenario opens
# no such folder.
# shellcheck source=lib.sh
. /host/s/lib.sh
run ulptool mount //10.1.0.1/disk /mnt cifs "ip=10.1.0.1,unc=\\\\10.1.0.1\\disk,username=lab,password=labpass,vers=3.1.1,rdma,cache=none,actimeo=0,rsize=65536,wsize=65536,echo_interval=5"
grep " /mnt " /proc/mounts || exit 1
run ls /mnt
run ulptool pread /mnt/small 0 700
run ulptool pread /mnt/large 0 4000
run ulptool pread /mnt/large 0 65536
run ulptool pread /mnt/large 65536 34464
run ulptool pwrite /mnt/new1 0 300 91
run ulptool pwrite /mnt/new2 0 65536 92
run ulptool pwrite /mnt/new2 65536 5000 93
run ulptool umount /mnt
