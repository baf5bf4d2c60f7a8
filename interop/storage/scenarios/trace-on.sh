#!/bin/sh
# trace-on.sh EVENT...: start to record these trace events, and the STags that siw registers.
tracing=/sys/kernel/tracing
echo 0 >$tracing/tracing_on; echo >$tracing/set_event; echo >$tracing/trace
echo 16384 >$tracing/buffer_size_kb
for event in "$@"; do echo "$event" >>$tracing/set_event || echo "no event $event"; done
# siw prints a line for each memory region that is registered by a command, invalidated or deregistered.
for function in siw_fastreg_mr siw_invalidate_stag siw_dereg_mr; do echo "func $function +p" >/sys/kernel/debug/dynamic_debug/control; done
for module in ib_iser ib_isert; do
    [ ! -e /sys/module/$module/parameters/debug_level ] || echo 3 >/sys/module/$module/parameters/debug_level
done
grep -hE '^(Tcp|TcpExt):' /proc/net/snmp /proc/net/netstat >/tmp/counters
dmesg -c >/dev/null
echo 1 >$tracing/tracing_on
