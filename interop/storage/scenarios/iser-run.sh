#!/bin/sh
# iser-run.sh IMMEDIATE R2T: many kinds of SCSI commands, some of which the target rejects. IMMEDIATE
# is the ImmediateData of the session, and R2T is its InitialR2T, Yes or No.
# shellcheck source=lib.sh
. /host/s/lib.sh
portal=$target:3260
mkdir -p /etc/iscsi /run/lock/iscsi /var/lib/iscsi /var/lock
rm -rf /var/lib/iscsi/* /etc/iscsi/nodes /etc/iscsi/send_targets   # of an earlier scenario
echo 'InitiatorName=iqn.2026-11.lab.siw:initiator' >/etc/iscsi/initiatorname.iscsi
cat >/etc/iscsi/iscsid.conf <<EOF
node.startup = manual
node.session.timeo.replacement_timeout = 20
node.conn[0].timeo.login_timeout = 30
node.conn[0].timeo.logout_timeout = 15
node.conn[0].timeo.noop_out_interval = 5
node.conn[0].timeo.noop_out_timeout = 30
node.session.err_timeo.abort_timeout = 15
node.session.err_timeo.lu_reset_timeout = 30
node.session.initial_login_retry_max = 2
node.session.cmds_max = 32
node.session.queue_depth = 16
node.session.iscsi.InitialR2T = $2
node.session.iscsi.ImmediateData = $1
node.session.iscsi.FirstBurstLength = 65536
node.session.iscsi.MaxBurstLength = 262144
node.conn[0].iscsi.MaxRecvDataSegmentLength = 65536
discovery.sendtargets.auth.authmethod = None
node.session.scan = auto
EOF
modprobe ib_iser; modprobe sd_mod; modprobe sg
pidof iscsid >/dev/null || { iscsid -f >/tmp/iscsid.log 2>&1 & sleep 1; }
run iscsiadm -m discovery -t sendtargets -p "$portal" -I iser
run iscsiadm -m node -T iqn.2026-11.lab.siw:target0 -p "$portal" -I iser --login
has_disk() { ls -d /sys/block/sd* >/dev/null 2>&1; }
wait_for has_disk
sleep 1   # the kernel reads the partition table
for generic in /dev/sg*; do :; done   # the last one
iscsiadm -m session -P 2 | grep -E 'Burst|Segment|ImmediateData|InitialR2T|Transport'
run sg_inq "$generic"
run sg_readcap "$generic"
run sg_readcap --16 "$generic"
run sg_luns "$generic"
run sg_turs "$generic"
for bytes in 512 4096 65536 131072; do ulptool fill $bytes $bytes /tmp/w$bytes; done
run sg_raw -s 512   -i /tmp/w512   "$generic" 2a 00 00 00 00 08 00 00 01 00
run sg_raw -s 4096  -i /tmp/w4096  "$generic" 2a 00 00 00 00 10 00 00 08 00
run sg_raw -s 65536 -i /tmp/w65536 "$generic" 2a 00 00 00 00 80 00 00 80 00
[ "$1$2" != YesYes ] || run sg_raw -s 131072 -i /tmp/w131072 "$generic" 8a 00 00 00 00 00 00 00 02 00 00 00 01 00 00 00
run sg_raw -r 512   -o /tmp/r512   "$generic" 28 00 00 00 00 08 00 00 01 00
run sg_raw -r 4096  -o /tmp/r4096  "$generic" 28 00 00 00 00 10 00 00 08 00
run sg_raw -r 65536 -o /tmp/r65536 "$generic" 88 00 00 00 00 00 00 00 00 80 00 00 00 80 00 00
cmp /tmp/w512 /tmp/r512 && cmp /tmp/w4096 /tmp/r4096 && cmp /tmp/w65536 /tmp/r65536 && echo same
run sg_sync "$generic"
run sg_unmap --force --lba=128 --num=32 "$generic"
run sg_write_same --10 --lba=16 --num=8 --in=/tmp/w512 --xferlen=512 "$generic"
run sg_raw -r 4096 -o /tmp/re "$generic" 28 00 00 10 00 00 00 00 08 00
run sg_raw "$generic" e0 00 00 00 00 00
run sg_reset -d "$generic"
run iscsiadm -m node -T iqn.2026-11.lab.siw:target0 -p "$portal" -I iser --logout
tail -n 3 /tmp/iscsid.log
