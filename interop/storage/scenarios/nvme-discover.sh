#!/bin/sh
# shellcheck source=nvme-connect.sh
. /host/s/nvme-connect.sh
modprobe nvme-rdma
run nvme discover -t rdma -a 10.1.0.1 -s 4420 -q $host_nqn -I $host_id
