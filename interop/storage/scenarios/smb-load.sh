#!/bin/sh
# Load cifs.ko with SMB Direct.
for m in nls_utf8 cifs_arc4 cifs_md4 hmac md5 sha256_generic sha512_generic aes_generic cmac ccm gcm ctr ecb des_generic libdes libarc4 dns_resolver fscache nls_ucs2_utils asn1_decoder oid_registry crc32_generic; do modprobe $m 2>/dev/null; done
insmod /lib/extra/cifs.ko
