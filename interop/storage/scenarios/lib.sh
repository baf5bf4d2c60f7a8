#!/bin/sh
# Functions that the scenarios share. The scenarios run in the guests, in the shell of busybox.
# run COMMAND...: run a command, and print it with the first lines of its output and its status.
run() {
    echo "+ $*"
    "$@" >/tmp/run.out 2>&1
    status=$?
    head -n 16 /tmp/run.out
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
