#!/bin/sh
# An asynchronous event: the target adds a namespace during the capture. Keep-alives, too.
# shellcheck source=nvme-connect.sh
. /host/s/nvme-connect.sh
connect 1 5
run ulptool pwrite $disk 1048576 4096 901 direct
on_target nvme-namespace.sh add
wait_for test -b /dev/nvme0n2
sleep 6   # at least one Keep Alive
run ulptool pwrite /dev/nvme0n2 8192 4096 902 direct
run ulptool pread /dev/nvme0n2 8192 4096 direct
run ulptool pread $disk 1048576 4096 direct
run nvme disconnect -n $nqn
