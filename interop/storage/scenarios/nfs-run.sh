#!/bin/sh
# nfs-run.sh VERSION: files and folders of the export, with NFS version 3, 4.1 or 4.2.
# shellcheck source=nfs-mount.sh
. /host/s/nfs-mount.sh
case $1 in
3) mount_nfs3 ;;
*) mount_nfs4 "$1" ;;
esac
run ls $mnt
run ulptool pread $mnt/small 0 700
run ulptool pread $mnt/page 0 4096 direct
run ulptool pread $mnt/large 0 65536 direct
run ulptool pread $mnt/large 65536 34464 direct
run ulptool pwrite $mnt/new1 0 300 31
run ulptool pwrite $mnt/new2 0 65536 32 direct
run ulptool pwrite $mnt/new2 65536 5000 33 direct
run sh -c "ls $mnt/dir | wc -l"
run readlink $mnt/link
run mkdir $mnt/newdir
run mv $mnt/new1 $mnt/newdir/renamed
run ln -s a-symbolic-link-target $mnt/newdir/sl
run rm $mnt/newdir/renamed
run cat $mnt/nonexistent
run rm $mnt/newdir/sl
run rmdir $mnt/newdir
run rm $mnt/new2
run ulptool umount $mnt
