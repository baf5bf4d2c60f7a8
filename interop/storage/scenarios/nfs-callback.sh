#!/bin/sh
# nfs-callback.sh VERSION: the server recalls a delegation of the client.
# shellcheck source=nfs-mount.sh
. /host/s/nfs-mount.sh
mount_nfs4 "$1"
run ls $mnt
recall small
run ulptool pread $mnt/small 0 700
run ulptool umount $mnt
