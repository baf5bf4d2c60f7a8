#!/bin/sh
# Wait until the target answers.
# shellcheck source=lib.sh
. /host/s/lib.sh
ping -c 2 -w 10 "$target"
