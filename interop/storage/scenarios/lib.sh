#!/bin/sh
# Functions and variables that the scenarios share. The scenarios run in the guests, in the shell of
# busybox. make-captures writes addresses.sh: target, initiator, ip_version, own_address, and
# target_in_url (with brackets for IPv6).
# shellcheck disable=SC1091
. /host/s/addresses.sh
# run COMMAND...: run a command, and print it with the first lines of its output and its status.
run() {
    echo "+ $*"
    "$@" >/tmp/run.$$ 2>&1
    status=$?
    head -n 16 /tmp/run.$$
    echo "= $status"
}

# wait_for COMMAND...: wait up to 10 s until the command succeeds.
wait_for() {
    tries=0
    until "$@"; do
        tries=$((tries + 1))
        [ $tries -lt 100 ] || { echo "never: $*"; exit 1; }
        usleep 100000
    done
}

# on_target SCRIPT...: run a script of this folder on the target during the capture, with its
# arguments, and wait until it ends. Only the initiator can use this.
on_target() {
    echo "+ on the target: $*"
    echo "$*" >/host/request.new && mv /host/request.new /host/request
    tries=0
    until [ -e /host/answer ]; do
        tries=$((tries + 1))
        [ $tries -lt 700 ] || { echo "no answer of the target"; echo "= 1"; exit 1; }
        usleep 100000
    done
    { read -r status; head -n 16; } </host/answer
    rm /host/answer
    echo "= $status"
}
