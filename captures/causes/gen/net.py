"""Ethernet, IPv4, IPv6, UDP, and capture files.

The module computes all lengths and checksums. It knows nothing about TCP state: `tcp.py` does.
"""
import ipaddress
import struct

ETH_IPV4, ETH_IPV6, ETH_VLAN, ETH_ARP = 0x0800, 0x86DD, 0x8100, 0x0806
PROTO_ICMP, PROTO_TCP, PROTO_UDP = 1, 6, 17


class Random:
    """A linear congruential generator: the same numbers in each version of Python."""

    def __init__(self, seed):
        self.state = (seed ^ 0x5DEECE66D) & ((1 << 48) - 1)

    def below(self, bound):
        self.state = (self.state * 0x5DEECE66D + 11) & ((1 << 48) - 1)
        return (self.state >> 17) % bound

    def between(self, low, high):
        return low + self.below(high - low + 1)

    def octets(self, count):
        return bytes(self.below(256) for _ in range(count))


def checksum(data):
    """The Internet checksum (RFC 1071) of `data`."""
    if len(data) % 2:
        data += b"\0"
    total = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


def mac(text):
    return bytes(int(part, 16) for part in text.split(":"))


class Host:
    """One endpoint with an address, a MAC address, a TTL, and a counter for the IP-ID."""

    def __init__(self, address, ethernet, random, ttl=64):
        self.address = address
        self.ip = ipaddress.ip_address(address)
        self.mac = mac(ethernet)
        self.ttl = ttl
        self.identification = random.below(0x10000)
        self.flow = random.below(0x100000)

    @property
    def is_v6(self):
        return self.ip.version == 6

    def pseudo_header(self, peer, protocol, length):
        addresses = self.ip.packed + peer.ip.packed
        if self.is_v6:
            return addresses + struct.pack(">IHBB", length, 0, 0, protocol)
        return addresses + struct.pack(">BBH", 0, protocol, length)

    def next_identification(self):
        self.identification = (self.identification + 1) & 0xFFFF
        return self.identification

    def packet(self, peer, protocol, payload, ttl=None, identification=None, tos=0):
        """An IP packet to `peer`. IPv4 packets have DF."""
        ttl = self.ttl if ttl is None else ttl
        if self.is_v6:
            head = struct.pack(">IHBB", 6 << 28 | self.flow, len(payload), protocol, ttl)
            return head + self.ip.packed + peer.ip.packed + payload
        if identification is None:
            identification = self.next_identification()
        head = struct.pack(">BBHHHBBH", 0x45, tos, 20 + len(payload), identification, 0x4000,
                           ttl, protocol, 0) + self.ip.packed + peer.ip.packed
        return head[:10] + struct.pack(">H", checksum(head)) + head[12:] + payload

    def udp(self, peer, source, destination, payload):
        head = struct.pack(">HHHH", source, destination, 8 + len(payload), 0)
        total = checksum(self.pseudo_header(peer, PROTO_UDP, 8 + len(payload)) + head + payload)
        return self.packet(peer, PROTO_UDP, head[:6] + struct.pack(">H", total or 0xFFFF) + payload)


class Capture:
    """The captured frames, in order. Times are in nanoseconds since 1970."""

    def __init__(self, start, vlan=None, pad=False, snap=262144):
        self.time = start
        self.frames = []
        self.snap = snap
        self.vlan = vlan
        self.pad = pad

    def ethernet(self, source, destination, kind, payload):
        tag = b"" if self.vlan is None else struct.pack(">HH", ETH_VLAN, self.vlan)
        frame = destination + source + tag + struct.pack(">H", kind) + payload
        if self.pad:
            frame += bytes(max(0, 60 - len(frame)))
        self.frames.append((self.time, frame))
        return len(self.frames)

    def ip(self, source, destination, packet, ethernet=None):
        """Add one IP packet. Returns its frame number."""
        kind = ETH_IPV6 if packet[0] >> 4 == 6 else ETH_IPV4
        return self.ethernet(ethernet or source.mac, destination.mac, kind, packet)

    def arp(self, client, owner):
        """An ARP exchange, before the first packet between two hosts."""
        head = struct.pack(">HHBB", 1, ETH_IPV4, 6, 4)
        request = head + struct.pack(">H", 1) + client.mac + client.ip.packed
        self.ethernet(client.mac, b"\xff" * 6, ETH_ARP, request + bytes(6) + owner.ip.packed)
        self.time += 61_000
        reply = head + struct.pack(">H", 2) + owner.mac + owner.ip.packed
        self.ethernet(owner.mac, client.mac, ETH_ARP, reply + client.mac + client.ip.packed)
        self.time += 14_000

    def announce(self, host):
        """The ARP announcement of a host that starts."""
        body = struct.pack(">HHBBH", 1, ETH_IPV4, 6, 4, 1) + host.mac + host.ip.packed
        return self.ethernet(host.mac, b"\xff" * 6, ETH_ARP, body + bytes(6) + host.ip.packed)

    def pcap(self):
        """The capture as a classic pcap file with microseconds."""
        out = [struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, self.snap, 1)]
        for time, frame in self.frames:
            kept = frame[:self.snap]
            out.append(struct.pack("<IIII", time // 10**9, time % 10**9 // 1000,
                                   len(kept), len(frame)) + kept)
        return b"".join(out)

    def pcapng(self):
        """The capture as a pcapng file with nanoseconds."""
        out = [block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1)),
               block(1, struct.pack("<HHI", 1, 0, self.snap) + struct.pack("<HHB3x", 9, 1, 9)
                     + struct.pack("<HH", 0, 0))]
        for time, frame in self.frames:
            kept = frame[:self.snap]
            head = struct.pack("<IIIII", 0, time >> 32, time & 0xFFFFFFFF, len(kept), len(frame))
            out.append(block(6, head + kept + bytes(-len(kept) % 4)))
        return b"".join(out)


def block(kind, body):
    length = 12 + len(body)
    return struct.pack("<II", kind, length) + body + struct.pack("<I", length)
