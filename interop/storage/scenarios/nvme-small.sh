#!/bin/sh
# nvme-small.sh BYTES...: a Write and a Read of each size.
# shellcheck source=nvme-connect.sh
. /host/s/nvme-connect.sh
connect 1
for bytes in "$@"; do
    run ulptool pwrite $disk $((4194304 + bytes)) "$bytes" $((300 + bytes)) direct
    run ulptool pread $disk $((4194304 + bytes)) "$bytes" direct
done
run nvme flush $disk
run nvme disconnect -n $nqn
