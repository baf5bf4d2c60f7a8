#!/bin/sh
# Functions to use the export of nfs-server.sh.
# shellcheck source=lib.sh
. /host/s/lib.sh
mnt=/mnt

# mount_nfs3: mount the export. The MOUNT protocol uses plain TCP.
mount_nfs3() {
    modprobe rpcrdma; modprobe nfsv3
    run ulptool mount "$target:/export" $mnt nfs "vers=3,proto=rdma,port=20049,nolock,addr=$target,mountaddr=$target,mountport=20048,mountproto=tcp,mountvers=3,rsize=65536,wsize=65536,sec=sys"
    grep " $mnt " /proc/mounts || exit 1
}

# mount_nfs4 VERSION [FOLDER [BYTES]]: mount a folder of the export. BYTES is the largest READ and
# WRITE.
mount_nfs4() {
    modprobe rpcrdma; modprobe nfsv4
    run ulptool mount "$target:/${2:-}" $mnt nfs4 "vers=$1,proto=rdma,port=20049,addr=$target,clientaddr=$initiator,rsize=${3:-65536},wsize=${3:-65536},sec=sys"
    grep " $mnt " /proc/mounts || exit 1
}

# recall FILE: open a file of the server, so that the client gets a delegation of it. Then the server
# writes to the file, so it must recall the delegation: it calls the client (RFC 8167). The write
# ends after the client has returned the delegation. FILE is a path below the server's /export.
recall() {
    exec 3<"$mnt/${1#"$exported"}" || exit 1
    run dd bs=1 count=1 of=/dev/null <&3
    on_target nfs-append.sh "/export/$1"
    exec 3<&-
}
exported=''   # the mounted folder below /export, with a slash at its end
