#!/bin/sh
# LIO with iSER on port 3260. The logical unit is a RAM disk of 32 MB.
modprobe target_core_mod; modprobe iscsi_target_mod; modprobe ib_isert; modprobe target_core_file
# shellcheck source=lib.sh
. /host/s/lib.sh
lio=/sys/kernel/config/target portal=$target:3260
mkdir -p $lio/core/rd_mcp_0/disk0; cd $lio/core/rd_mcp_0/disk0 || exit 1
echo 'rd_pages=8192' >control; echo 1 >enable
echo siwlab-lun0 >wwn/vpd_unit_serial 2>/dev/null
group=$lio/iscsi/iqn.2026-11.lab.siw:target0/tpgt_1
mkdir -p $lio/iscsi $group; cd $group || exit 1
# siw and LIO's portal for plain TCP need the same port. So the portal is created in another network
# namespace, and then becomes a portal for iSER in this one.
unshare -n sh -c "ip link set lo up; ip addr add $target/32 dev lo; mkdir np/$portal"
echo 1 >"np/$portal/iser" || exit 1
mkdir -p lun/lun_0; [ -e lun/lun_0/disk0 ] || ln -s $lio/core/rd_mcp_0/disk0 lun/lun_0/disk0
echo 0 >attrib/authentication; echo 1 >attrib/generate_node_acls; echo 0 >attrib/demo_mode_write_protect; echo 1 >attrib/cache_dynamic_acls
echo 1 >enable
cat np/*/iser
