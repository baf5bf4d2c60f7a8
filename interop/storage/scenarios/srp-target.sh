#!/bin/sh
# LIO with SRP on port 5555. The logical unit is a RAM disk of 16 MB.
modprobe target_core_mod; modprobe ib_srpt
lio=/sys/kernel/config/target
mkdir -p $lio/core/rd_mcp_1/disk1; cd $lio/core/rd_mcp_1/disk1 || exit 1
echo 'rd_pages=4096' >control; echo 1 >enable
gid=0x$(sed 's/://g' /sys/class/infiniband/siw0/ports/1/gids/0)
mkdir -p $lio/srpt/"$gid"/"$gid"/lun/lun_0; cd $lio/srpt/"$gid"/"$gid" || exit 1
[ -e lun/lun_0/disk1 ] || ln -s $lio/core/rd_mcp_1/disk1 lun/lun_0/
echo 1 >enable
# The names by which a target can know an initiator that uses rdma_cm.
for name in 10.1.0.1 fd00:0000:0000:0000:0000:0000:0000:0001 0x00000000000000000000000000000000; do
    mkdir -p acls/$name/lun_0 && ln -s lun/lun_0 acls/$name/lun_0/
done
echo 5555 >$lio/srpt/discovery_auth/rdma_cm_port
