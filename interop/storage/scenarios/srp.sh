#!/bin/sh
# SCSI commands over SRP, some of which the target rejects.
# shellcheck source=lib.sh
. /host/s/lib.sh
id=505400fffe000001
log_in() { echo "id_ext=$id,ioc_guid=$id,dest=$target_in_url:5555,allow_ext_sg=1,queue_size=32,tl_retry_count=2" >/sys/class/infiniband_srp/srp-siw0-1/add_target; }
# The first login sometimes fails, probably because siw misses the target's first message.
for _ in 1 2 3; do
    run log_in
    [ "$status" != 0 ] || break
done
has_disk() { ls -d /sys/block/sd* >/dev/null 2>&1; }
wait_for has_disk
sleep 1   # the kernel reads the partition table
for generic in /dev/sg*; do :; done   # the last one
run sg_inq "$generic"
run sg_readcap --16 "$generic"
for bytes in 512 4096 65536; do ulptool fill $bytes $bytes /tmp/w$bytes; done
run sg_raw -s 512   -i /tmp/w512   "$generic" 2a 00 00 00 00 08 00 00 01 00
run sg_raw -s 4096  -i /tmp/w4096  "$generic" 2a 00 00 00 00 10 00 00 08 00
run sg_raw -s 65536 -i /tmp/w65536 "$generic" 2a 00 00 00 00 80 00 00 80 00
run sg_raw -r 512   -o /tmp/r512   "$generic" 28 00 00 00 00 08 00 00 01 00
run sg_raw -r 65536 -o /tmp/r65536 "$generic" 28 00 00 00 00 80 00 00 80 00
cmp /tmp/w512 /tmp/r512 && cmp /tmp/w65536 /tmp/r65536 && echo same
run sg_raw -r 4096 -o /tmp/re "$generic" 28 00 00 10 00 00 00 00 08 00
run sg_reset -d "$generic"
for port in /sys/class/srp_remote_ports/port*; do run sh -c "echo 1 >$port/delete"; done
sleep 1
