#!/bin/sh
# knfsd on port 20049. It exports a tmpfs.
mkdir -p /export /var/lib/nfs/v4recovery /var/lib/nfs/sm /run/rpcbind /var/lib/nfs/rpc_pipefs
mount -t tmpfs -o size=64m export /export
ulptool fill 21 700 /export/small; ulptool fill 22 4096 /export/page; ulptool fill 23 100000 /export/large
mkdir /export/dir; i=0; while [ $i -lt 120 ]; do : >/export/dir/a-rather-long-file-name-number-$i; i=$((i+1)); done
ln -s ../a/path/somewhere /export/link
echo '/export 10.1.0.0/24(rw,no_root_squash,sync,insecure,no_subtree_check,fsid=0)' >/etc/exports
modprobe rpcrdma; modprobe nfsd
mount -t nfsd nfsd /proc/fs/nfsd
mount -t rpc_pipefs sunrpc /var/lib/nfs/rpc_pipefs 2>/dev/null
rpcbind -w 2>/dev/null || rpcbind; sleep 0.5
echo 10 >/proc/fs/nfsd/nfsv4leasetime; echo 10 >/proc/fs/nfsd/nfsv4gracetime
rpc.mountd -p 20048 || echo mountd $?
exportfs -ra || echo exportfs $?
rpc.nfsd -V 3 -V 4 -V 4.1 -V 4.2 2 || exit 1
echo 'rdma 20049' >/proc/fs/nfsd/portlist || exit 1
cat /proc/fs/nfsd/portlist /proc/fs/nfsd/versions /proc/fs/nfsd/threads; exportfs -v
# The grace period. Kernels differ: some reject the write if the period has ended by itself.
sleep 12
[ "$(cat /proc/fs/nfsd/v4_end_grace)" = Y ] || echo Y >/proc/fs/nfsd/v4_end_grace
