#!/bin/sh
# network.sh set MTU DELAY SENT RECEIVED: the MTU of this guest, the delay in ms of the packets that it
# sends, and the loss in percent of the packets that it sends and receives. The value 0 means none.
# network.sh reset: undo this, and print the statistics of the queues. It fails if something is left.
# At the initiator, sent packets are dropped before QEMU captures them, and received packets after.
# shellcheck disable=SC2086
ip=/usr/bin/ip tc=/usr/bin/tc   # busybox has its own ip and tc
case $1 in
set)
    mtu=$2 delay=$3 sent=$4 received=$5 netem=''
    $ip link set eth0 mtu "$mtu" || exit 1
    [ "$delay" = 0 ] || netem="delay ${delay}ms"
    [ "$sent" = 0 ] || netem="$netem loss $sent%"
    [ -z "$netem" ] || $tc qdisc add dev eth0 root netem $netem || exit 1
    [ "$received" = 0 ] || {
        # netem works only on sent packets. So all received packets take a detour through ifb0.
        { [ -e /sys/class/net/ifb0 ] || modprobe ifb numifbs=1; } &&
            $ip link set ifb0 mtu 9000 up &&
            $tc qdisc add dev ifb0 root netem loss "$received%" &&
            $tc qdisc add dev eth0 handle ffff: ingress &&
            $tc filter add dev eth0 parent ffff: matchall action mirred egress redirect dev ifb0
    } || exit 1
    ;;
reset)
    $tc -s qdisc show
    $tc qdisc del dev eth0 root 2>/dev/null
    $tc qdisc del dev eth0 ingress 2>/dev/null
    [ ! -e /sys/class/net/ifb0 ] || $tc qdisc del dev ifb0 root 2>/dev/null
    $ip link set eth0 mtu 1500
    ! $tc qdisc show | grep -qE 'netem|ingress' && [ "$(cat /sys/class/net/eth0/mtu)" = 1500 ]
    ;;
*) exit 2 ;;
esac
