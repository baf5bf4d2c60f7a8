#!/bin/sh
# iser-parameter.sh NAME VALUE: change a parameter that the target of iser-target.sh negotiates.
cd /sys/kernel/config/target/iscsi/iqn.2026-11.lab.siw:target0/tpgt_1/param || exit 1
echo "$2" >"$1" && [ "$(cat "$1")" = "$2" ]
