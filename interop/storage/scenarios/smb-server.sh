#!/bin/sh
# ksmbd with SMB Direct on 10.1.0.1:5445. The share "disk" is a tmpfs.
chmod 755 /
mkdir -p /share /etc/ksmbd
mount -t tmpfs -o size=64m share /share
ulptool fill 81 700 /share/small; ulptool fill 82 100000 /share/large; mkdir /share/dir; i=0; while [ $i -lt 40 ]; do : >/share/dir/file-number-$i; i=$((i+1)); done
for m in nls_utf8 cifs_arc4 cifs_md4 hmac md5 sha256_generic sha512_generic aes_generic cmac ccm gcm ctr ecb des_generic libdes libarc4 nls_ucs2_utils crc32_generic; do modprobe $m 2>/dev/null; done
insmod /lib/extra/ksmbd.ko || exit 1
cat >/etc/ksmbd/smb.conf <<S
[global]
	netbios name = SIWLAB
	server string = siw lab
	workgroup = LAB
	server signing = disabled
	smb3 encryption = no
	interfaces = eth0
	bind interfaces only = yes
	server multi channel support = yes
	map to guest = never
[disk]
	path = /share
	read only = no
	guest ok = no
	valid users = lab
S
cp /etc/ksmbd/smb.conf /etc/ksmbd/ksmbd.conf   # the name in other versions of ksmbd-tools
ksmbd.adduser -a lab -p labpass -c /etc/ksmbd/smb.conf -i /etc/ksmbd/ksmbdpwd.db || ksmbd.adduser -a lab -p labpass
ksmbd.mountd -c /etc/ksmbd/smb.conf -u /etc/ksmbd/ksmbdpwd.db || ksmbd.mountd
listens() { ss -ltn | grep -q ':5445 '; }
# shellcheck source=lib.sh
. /host/s/lib.sh
wait_for listens
