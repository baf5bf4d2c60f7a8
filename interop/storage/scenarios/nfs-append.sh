#!/bin/sh
# nfs-append.sh FILE: write to a file of the server.
echo more >>"$1"
