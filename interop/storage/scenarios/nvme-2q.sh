#!/bin/sh
# Two I/O queues: both CPUs write and read at the same time.
# shellcheck source=nvme-connect.sh
. /host/s/nvme-connect.sh
connect 2
# both CPU BASE SEED
both() {
    for bytes in 4096 16384 512 4096 32768; do
        taskset "$1" ulptool pwrite $disk $(($2 + bytes)) $bytes $(($3 + bytes)) direct
        taskset "$1" ulptool pread $disk $(($2 + bytes)) $bytes direct
    done
}
both 1 1048576 100 >/tmp/cpu0 2>&1 &
both 2 2097152 200 >/tmp/cpu1 2>&1 &
wait
cat /tmp/cpu0 /tmp/cpu1
run nvme disconnect -n $nqn
