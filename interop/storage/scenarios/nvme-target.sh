#!/bin/sh
# nvmet on port 4420 with one namespace: 64 MB in memory (null_blk), blocks of 512 bytes.
# shellcheck source=lib.sh
. /host/s/lib.sh
modprobe null_blk nr_devices=0; modprobe nvmet-rdma
disk=/sys/kernel/config/nullb/nullb0
mkdir $disk && cd $disk || exit 1
echo 1 >memory_backed; echo 64 >size; echo 512 >blocksize; echo 1 >discard; echo 1 >power
nvmet=/sys/kernel/config/nvmet
subsystem=$nvmet/subsystems/nqn.2026-11.lab.siw:disk0
mkdir $subsystem && cd $subsystem || exit 1
echo 1 >attr_allow_any_host; printf SIWLAB0001 >attr_serial; printf "siw lab disk" >attr_model 2>/dev/null
mkdir namespaces/1; printf /dev/nullb0 >namespaces/1/device_path
echo 11111111-2222-3333-4444-555555555555 >namespaces/1/device_uuid
echo 1 >namespaces/1/enable
mkdir $nvmet/ports/1 && cd $nvmet/ports/1 || exit 1
echo rdma >addr_trtype; echo "ipv$ip_version" >addr_adrfam; echo "$target" >addr_traddr; echo 4420 >addr_trsvcid
echo 4096 >param_inline_data_size
ln -s $subsystem subsystems/
cat param_inline_data_size
