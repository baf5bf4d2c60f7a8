#!/bin/sh
# nvme-inline.sh BYTES: change the largest data in a capsule that the target accepts.
nvmet=/sys/kernel/config/nvmet
cd $nvmet/ports/1 || exit 1
rm subsystems/*
echo "$1" >param_inline_data_size
ln -s $nvmet/subsystems/nqn.2026-11.lab.siw:disk0 subsystems/
cat param_inline_data_size
