#!/bin/sh
# nfs-run.sh VERSION: files and folders of the export, with NFS version 3 or 4.1.
# shellcheck source=lib.sh
. /host/s/lib.sh
version=$1 mnt=/mnt
modprobe rpcrdma; modprobe nfsv3; modprobe nfsv4
case $version in
3) run ulptool mount 10.1.0.1:/export $mnt nfs "vers=3,proto=rdma,port=20049,nolock,addr=10.1.0.1,mountaddr=10.1.0.1,mountport=20048,mountproto=tcp,mountvers=3,rsize=65536,wsize=65536,sec=sys" ;;
*) run ulptool mount 10.1.0.1:/ $mnt nfs4 "vers=$version,proto=rdma,port=20049,addr=10.1.0.1,clientaddr=10.1.0.2,rsize=65536,wsize=65536,sec=sys" ;;
esac
grep " $mnt " /proc/mounts
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
