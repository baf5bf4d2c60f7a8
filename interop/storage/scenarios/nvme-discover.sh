#!/bin/sh
# shellcheck source=nvme-connect.sh
. /host/s/nvme-connect.sh
modprobe nvme-rdma
run nvme discover -t rdma -a "$target" -s 4420 -q $host_nqn -I $host_id
