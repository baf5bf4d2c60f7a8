#!/bin/sh
# Three processes use NFS version 4.1 at the same time.
# shellcheck source=nfs-mount.sh
. /host/s/nfs-mount.sh
mount_nfs4 4.1 "" 32768
# process NUMBER
process() {
    ulptool pwrite $mnt/parallel"$1" 0 20000 $((500 + $1)) direct
    ulptool pread $mnt/large $(($1 * 20000)) 20000 direct
    ulptool pread $mnt/parallel"$1" 0 20000 direct
    rm $mnt/parallel"$1"
}
for number in 1 2 3; do process $number >/tmp/parallel$number 2>&1 & done
wait
cat /tmp/parallel1 /tmp/parallel2 /tmp/parallel3
run ulptool umount $mnt
