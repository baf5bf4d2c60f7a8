#!/bin/sh
# NVMe, NFS and iSER at the same time, between the same guests.
sh /host/s/nvme-small.sh 512 4096 12288 >/tmp/mix-nvme 2>&1 &
sh /host/s/nfs-run.sh 4.1 >/tmp/mix-nfs 2>&1 &
sh /host/s/iser-run.sh Yes Yes >/tmp/mix-iser 2>&1 &
wait
cat /tmp/mix-nvme /tmp/mix-nfs /tmp/mix-iser
