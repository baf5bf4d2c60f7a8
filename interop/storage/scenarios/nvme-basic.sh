#!/bin/sh
# Many kinds of commands, some of which the target rejects.
# shellcheck source=nvme-connect.sh
. /host/s/nvme-connect.sh
connect 1
run nvme id-ctrl /dev/nvme0
run nvme id-ns $disk
sizes="512:11:0:8 4096:12:7:16 8192:13:15:32 65536:14:127:128"   # bytes, seed, blocks - 1, LBA
split() { IFS=: read -r bytes seed count lba <<END
$1
END
}
for size in $sizes; do
    split "$size"
    ulptool fill "$seed" "$bytes" "/tmp/w$bytes"
    run nvme write $disk --start-block="$lba" --block-count="$count" --data-size="$bytes" --data="/tmp/w$bytes"
done
run nvme flush $disk
for size in $sizes; do
    split "$size"
    run nvme read $disk --start-block="$lba" --block-count="$count" --data-size="$bytes" --data="/tmp/r$bytes"
    cmp "/tmp/w$bytes" "/tmp/r$bytes" && echo "same $bytes"
done
run nvme write-zeroes $disk --start-block=16 --block-count=7
run nvme dsm $disk --ad --slbs=128,192 --blocks=32,16
run nvme read $disk --start-block=128 --block-count=7 --data-size=4096 --data=/tmp/zeroes
run nvme read $disk --start-block=200000 --block-count=7 --data-size=4096 --data=/tmp/beyond
run nvme io-passthru $disk --opcode=0x05 --namespace-id=1 --cdw10=8 --cdw12=0 --data-len=512 --write --input-file=/tmp/w512
run nvme get-feature /dev/nvme0 -f 7
run nvme smart-log /dev/nvme0
run nvme disconnect -n $nqn
