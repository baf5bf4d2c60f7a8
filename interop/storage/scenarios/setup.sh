#!/bin/sh
# Prepare a guest.
mount -t tracefs tracefs /sys/kernel/tracing 2>/dev/null
modprobe configfs
mount -t configfs configfs /sys/kernel/config 2>/dev/null
# The listeners and the connections use the network card only.
rdma link delete siwlo 2>/dev/null
mkdir -p /etc /run /mnt /var/lib
[ -e /var/run ] || ln -s /run /var/run
[ -e /etc/passwd ] || printf '%s\n' 'root:x:0:0::/root:/bin/sh' '_rpc:x:100:65534::/:/bin/false' \
    'nobody:x:65534:65534::/:/bin/false' 'lab:x:1000:1000::/:/bin/sh' >/etc/passwd
[ -e /etc/group ] || printf '%s\n' root:x:0: nogroup:x:65534: >/etc/group
printf '%s\n' 'udp tpi_clts v inet udp - -' 'tcp tpi_cots_ord v inet tcp - -' 'local tpi_cots_ord - loopback - - -' >/etc/netconfig
printf '%s\n' 'tcp 6 TCP' 'udp 17 UDP' 'icmp 1 ICMP' >/etc/protocols
printf '%s\n' 'sunrpc 111/tcp portmapper' 'sunrpc 111/udp portmapper' 'nfs 2049/tcp' 'nfs 2049/udp' 'nfsrdma 20049/tcp' >/etc/services
printf '%s\n' 'portmapper 100000' 'nfs 100003' 'mountd 100005' >/etc/rpc
printf '%s\n' 'passwd: files' 'group: files' 'hosts: files' 'services: files' 'protocols: files' 'rpc: files' >/etc/nsswitch.conf
echo '127.0.0.1 localhost' >/etc/hosts
# The guests boot without IPv6.
# shellcheck disable=SC1091
. /host/s/addresses.sh
[ "$ip_version" = 4 ] || {
    for interface in all default eth0; do echo 0 >/proc/sys/net/ipv6/conf/$interface/disable_ipv6; done
    /usr/bin/ip -6 addr add "$own_address/64" dev eth0 nodad || exit 1
}
[ -e /sys/kernel/tracing/set_event ] && [ -d /sys/kernel/config ]
