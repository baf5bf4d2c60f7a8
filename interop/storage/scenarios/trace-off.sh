#!/bin/sh
# Stop the records of trace-on.sh, and write them to the folder that the host can read.
tracing=/sys/kernel/tracing
echo 0 >$tracing/tracing_on; echo >$tracing/set_event
cat $tracing/trace >/host/trace.txt
dmesg >/host/dmesg.txt
{ echo "before:"; cat /tmp/counters; echo "after:"; grep -hE '^(Tcp|TcpExt):' /proc/net/snmp /proc/net/netstat; } >/host/counters.txt
