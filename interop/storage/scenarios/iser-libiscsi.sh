#!/bin/sh
# libiscsi, an initiator in user space.
# shellcheck source=lib.sh
. /host/s/lib.sh
url=iser://$target:3260/iqn.2026-11.lab.siw:target0/0
for command in iscsi-inq iscsi-readcapacity16; do
    run timeout 15 $command -i iqn.2026-11.lab.siw:libiscsi "$url"
done
