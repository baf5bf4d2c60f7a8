#!/usr/bin/env python3
"""encapsulate - write the packets of a capture in other encapsulations, with Scapy.

  encapsulate CAPTURE FOLDER

The script writes a pcap file for each encapsulation to FOLDER. It puts each tunnel and link layer
around the IPv4 packets of CAPTURE, and around the same segments in IPv6. It also puts each tunnel
into each tunnel, and writes files with truncated frames.
"""
import sys
from pathlib import Path

from scapy.all import (
    GRE, LLC, PPP, SNAP, UDP, VXLAN, CookedLinux, Dot1AD, Dot1Q, Dot11, Ether, IP, IPv6, PPPoE, RadioTap, Raw, TCP, conf,
    rdpcap, wrpcap)
from scapy.contrib.erspan import ERSPAN_II, ERSPAN_III
from scapy.contrib.geneve import GENEVE
from scapy.contrib.gtp import GTP_U_Header
from scapy.contrib.mpls import MPLS

conf.verb = 0
FROM, TO = "192.0.2.1", "192.0.2.2"
SNAP_LENGTHS = (40, 300)


def mac(**fields):
    # Set both addresses: otherwise Scapy looks them up on the network.
    return Ether(src="02:00:00:00:00:01", dst="02:00:00:00:00:02", **fields)


def ether(packet):
    return mac() / packet


def outer():
    return IP(src=FROM, dst=TO)


def ip_in(packet):
    """The GRE protocol type of a packet."""
    return 0x86DD if IPv6 in packet and IP not in packet else 0x0800


TUNNELS = {
    "vxlan": lambda p: outer() / UDP(sport=50000, dport=4789) / VXLAN(vni=7, flags=8) / ether(p),
    "geneve": lambda p: outer() / UDP(sport=50000, dport=6081) / GENEVE(vni=7, proto=0x6558) / ether(p),
    "gre": lambda p: outer() / GRE(proto=ip_in(p)) / p,
    "gre-key-sequence": lambda p: outer() / GRE(proto=ip_in(p), key_present=1, key=5, seqnum_present=1) / p,
    "nvgre": lambda p: outer() / GRE(proto=0x6558, key_present=1, key=0x000700) / ether(p),
    "erspan-2": lambda p: outer() / GRE(proto=0x88BE, seqnum_present=1) / ERSPAN_II(vlan=3) / ether(p),
    "erspan-3": lambda p: outer() / GRE(proto=0x22EB, seqnum_present=1) / ERSPAN_III(vlan=3, ft=0) / ether(p),
    "ip-in-ip": lambda p: outer() / p,
    "in-ipv6": lambda p: IPv6(src="2001:db8::1", dst="2001:db8::2") / p,
    "gtp-u": lambda p: outer() / UDP(sport=2152, dport=2152) / GTP_U_Header(teid=9) / p,
}
LINKS = {
    "ethernet": (1, ether),
    "802.1q": (1, lambda p: mac() / Dot1Q(vlan=5) / p),
    "802.1ad": (1, lambda p: mac() / Dot1AD(vlan=5) / Dot1Q(vlan=6) / p),
    "mpls": (1, lambda p: mac() / MPLS(label=16, s=0) / MPLS(label=17, s=1) / p),
    "pppoe": (1, lambda p: mac() / PPPoE(sessionid=1) / PPP(proto=0x57 if IPv6 in p and IP not in p else 0x21) / p),
    "snap": (1, lambda p: mac(type=0) / LLC() / SNAP(code=ip_in(p)) / p),
    "sll": (113, lambda p: CookedLinux(proto=ip_in(p)) / p),
    "802.11": (105, lambda p: Dot11(type=2, addr1="02:00:00:00:00:01") / LLC() / SNAP(code=ip_in(p)) / p),
    "radiotap": (127, lambda p: RadioTap() / Dot11(type=2, addr1="02:00:00:00:00:01") / LLC() / SNAP(code=ip_in(p)) / p),
    "raw": (101, lambda p: p),
}


def in_ipv6(packet):
    segment = packet[TCP]
    return IPv6(src="fd00::1:" + packet.src.split(".")[3], dst="fd00::1:" + packet.dst.split(".")[3], hlim=64) / segment


def write(path, link, wrap, inner, cut=None):
    """Write the packets `inner` in frames. Truncate frames of long packets by `cut` bytes."""
    frames = []
    for packet, time in inner:
        data = bytes(wrap(packet))
        frame = Raw(data[:len(data) - cut] if cut and len(packet) > 400 else data)
        frame.time, frame.wirelen = time, len(data)
        frames.append(frame)
    wrpcap(str(path), frames, linktype=link)


def main(capture, folder):
    packets = [frame for frame in rdpcap(capture) if TCP in frame]
    # Remove the padding of short Ethernet frames.
    v4 = [(IP(bytes(packet[IP])[:packet[IP].len]), packet.time) for packet in packets]
    for version, inner in (("4", v4), ("6", [(in_ipv6(packet), time) for packet, time in v4])):
        for cut in (None, *SNAP_LENGTHS):
            base = folder / (version + (f"-cut-{cut}" if cut else ""))
            base.mkdir(parents=True)
            for name, (link, wrap) in LINKS.items():
                write(base / f"{name}.pcap", link, wrap, inner, cut)
            for name, wrap in TUNNELS.items():
                write(base / f"{name}.pcap", 1, lambda packet, wrap=wrap: ether(wrap(packet)), inner, cut)
        nested = folder / f"{version}-nested"
        nested.mkdir()
        for first, around in TUNNELS.items():
            for second, within in TUNNELS.items():
                def both(packet, around=around, within=within):
                    return ether(around(within(packet)))
                write(nested / f"{second}-in-{first}.pcap", 1, both, inner)


if __name__ == "__main__":
    if len(sys.argv) != 3:
        sys.exit(__doc__)
    main(sys.argv[1], Path(sys.argv[2]))
