#!/bin/sh
# Functions to use the disk of nvme-target.sh.
# shellcheck source=lib.sh
. /host/s/lib.sh
nqn=nqn.2026-11.lab.siw:disk0
host_id=00000000-0000-4000-8000-0000000000b2
host_nqn=nqn.2014-08.org.nvmexpress:uuid:$host_id
disk=/dev/nvme0n1

# connect QUEUES [KEEP-ALIVE]: connect, with this number of I/O queues, and a keep-alive timeout in s.
connect() {
    modprobe nvme-rdma
    run nvme connect -t rdma -a "$target" -s 4420 -n $nqn -q $host_nqn -I $host_id -i "$1" -Q 32 -k "${2:-30}"
    wait_for test -b $disk
    sleep 1   # the kernel reads the partition table
}
