#!/bin/sh
# NFS version 4.2 with extended attributes: calls that are too long for a Send (Position-Zero Read
# chunk), long replies (Reply chunk), Write chunks of several segments, and a callback.
# shellcheck source=nfs-mount.sh
. /host/s/nfs-mount.sh
exported=ext/
mount_nfs4 4.2 ext 131072
run ls -l $mnt
run ulptool setxattr $mnt/file user.small 40 71
run ulptool getxattr $mnt/file user.local
run ulptool pwrite $mnt/big 0 100000 73 direct
run ulptool setxattr $mnt/big user.large 3900 72
run ulptool getxattr $mnt/big user.large
run ulptool pread $mnt/big 4096 60000 direct
recall ext/file
run rm $mnt/big
run ulptool umount $mnt
