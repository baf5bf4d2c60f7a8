#!/bin/sh
# nvme-namespace.sh add | remove: a second namespace of the disk of nvme-target.sh, 16 MB in memory.
# The target reports both changes to its hosts by an asynchronous event.
namespace=/sys/kernel/config/nvmet/subsystems/nqn.2026-11.lab.siw:disk0/namespaces/2
case $1 in
add)
    modprobe brd rd_nr=2 rd_size=16384   # /dev/ram0 is the disk of nfs-ext.sh
    mkdir $namespace && printf /dev/ram1 >$namespace/device_path && echo 1 >$namespace/enable
    ;;
remove) [ ! -d $namespace ] || { echo 0 >$namespace/enable; rmdir $namespace; } ;;
*) exit 2 ;;
esac
