#!/bin/sh
# A second export below the first one: ext2 on a disk in memory. Unlike tmpfs, it has extended
# attributes of users. Does nothing if the export already exists.
[ ! -e /export/ext/file ] || exit 0
modprobe brd rd_nr=2 rd_size=16384; modprobe ext4
mkdir -p /export/ext
# nfs-long.sh has an attribute that needs blocks of 4096 bytes.
mke2fs -b 4096 /dev/ram0 && mount -t ext4 /dev/ram0 /export/ext || exit 1
ulptool fill 61 3000 /export/ext/file && ulptool setxattr /export/ext/file user.local 100 62 || exit 1
echo '/export/ext 10.1.0.0/24(rw,no_root_squash,sync,insecure,no_subtree_check,fsid=2)' >>/etc/exports
exportfs -ra
