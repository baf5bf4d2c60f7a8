"""What a capture has on the wire: retransmissions, packet sizes, and the CRC of each FPDU.

`compare` uses these numbers to check that a capture has the conditions that its name promises. This
module reads classic pcap files of Ethernet and connections that are complete from their SYN on. It
supports no markers, because siw sends none. It shares no code with weft.
"""
import struct
from dataclasses import dataclass, field

REQUEST, REPLY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
MPA_HEADER = 20
# The flags M, C and R in byte 16 of a start-up frame (RFC 5044 section 7.1.1).
MARKERS, CRC, REJECTED = 0x80, 0x40, 0x20
FIN, SYN, RST, ACK = 0x01, 0x02, 0x04, 0x10
SEQUENCE = 1 << 32
TABLE = []
for _value in range(256):
    for _ in range(8):
        _value = _value >> 1 ^ (0x82F63B78 if _value & 1 else 0)
    TABLE.append(_value)


def crc32c(data):
    value = 0xFFFFFFFF
    for byte in data:
        value = value >> 8 ^ TABLE[(value ^ byte) & 0xFF]
    return value ^ 0xFFFFFFFF


@dataclass
class Wire:
    """Counts of all iWARP connections of a capture."""
    connections: int = 0
    ip_versions: set = field(default_factory=set)
    largest_packet: int = 0     # bytes from the IP header on
    retransmissions: int = 0    # TCP segments with bytes that an earlier segment has
    missing: int = 0            # directions with bytes that the capture lacks
    crc_flags: set = field(default_factory=set)  # the flag C of all Requests and Replies
    fpdus: dict = field(default_factory=lambda: {"zero": 0, "good": 0, "bad": 0})


class Direction:
    """The bytes of one direction of a TCP connection."""

    def __init__(self, first):
        self.first = first          # the sequence number of the first byte
        self.data = bytearray()
        self.seen = bytearray()     # for each byte, 1 if the capture has it
        self.retransmissions = 0

    def add(self, sequence, payload):
        start = (sequence - self.first) % SEQUENCE
        if start >= SEQUENCE // 2:
            # Before the first byte: a keep-alive probe.
            return
        end = start + len(payload)
        if end > len(self.data):
            self.data.extend(bytes(end - len(self.data)))
            self.seen.extend(bytes(end - len(self.seen)))
        self.retransmissions += 1 in self.seen[start:end]
        self.data[start:end] = payload
        self.seen[start:end] = b"\1" * len(payload)


def packets(content):
    """The Ethernet frames of a pcap file."""
    magic = content[:4]
    if magic in (b"\xd4\xc3\xb2\xa1", b"\x4d\x3c\xb2\xa1"):
        order = "<"
    elif magic in (b"\xa1\xb2\xc3\xd4", b"\xa1\xb2\x3c\x4d"):
        order = ">"
    else:
        raise ValueError("not a pcap file")
    offset = 24
    while offset + 16 <= len(content):
        length = struct.unpack_from(order + "I", content, offset + 8)[0]
        yield content[offset + 16:offset + 16 + length]
        offset += 16 + length


def segments(content):
    """The TCP segments: IP version, size of the packet, both ends, sequence number, flags, payload."""
    for frame in packets(content):
        if frame[12:14] == b"\x08\x00" and len(frame) >= 34 and frame[23] == 6:
            version, header = 4, 14 + (frame[14] & 15) * 4
            size = struct.unpack_from(">H", frame, 16)[0]
            source, destination = frame[26:30], frame[30:34]
        elif frame[12:14] == b"\x86\xdd" and len(frame) >= 54 and frame[20] == 6:
            version, header = 6, 54
            size = 40 + struct.unpack_from(">H", frame, 18)[0]
            source, destination = frame[22:38], frame[38:54]
        else:
            continue
        if len(frame) < header + 20:
            continue
        from_port, to_port, sequence = struct.unpack_from(">HHI", frame, header)
        payload = frame[header + (frame[header + 12] >> 4) * 4:14 + size]
        yield version, size, (source, from_port), (destination, to_port), sequence, frame[header + 13], payload


def read(path):
    """Returns the counts of a capture. Raises ValueError if the file is not a pcap file, or if a
    connection uses markers."""
    with open(path, "rb") as file:
        content = file.read()
    connections, found, packets_of = {}, Wire(), {}
    for version, size, source, destination, sequence, flags, payload in segments(content):
        key = source, destination
        if flags & SYN:
            connections.setdefault(key, Direction((sequence + 1) % SEQUENCE))
        elif payload and key in connections:
            connections[key].add(sequence, payload)
        packets_of.setdefault(frozenset(key), []).append((version, size))
    for (source, destination), request in connections.items():
        reply = connections.get((destination, source))
        if reply is None or not request.data.startswith(REQUEST):
            continue
        found.connections += 1
        sizes = packets_of[frozenset((source, destination))]
        found.ip_versions.update(version for version, _ in sizes)
        found.largest_packet = max(found.largest_packet, max(size for _, size in sizes))
        for direction in (request, reply):
            found.retransmissions += direction.retransmissions
            found.missing += 0 in direction.seen
            read_stream(bytes(direction.data), found)
    return found


def read_stream(data, found):
    """Adds the start-up frame and the FPDUs of a direction."""
    if len(data) < MPA_HEADER or data[:16] not in (REQUEST, REPLY):
        return
    flags = data[16]
    if flags & MARKERS:
        raise ValueError("a connection uses markers")
    found.crc_flags.add(bool(flags & CRC))
    if flags & REJECTED:
        return
    offset = MPA_HEADER + struct.unpack_from(">H", data, 18)[0]
    while offset + 2 <= len(data):
        # The length, the ULPDU and the pad bytes are a multiple of 4 bytes. The CRC field follows.
        length = (2 + struct.unpack_from(">H", data, offset)[0] + 3) // 4 * 4
        if offset + length + 4 > len(data):
            break
        crc = struct.unpack_from("<I", data, offset + length)[0]
        if crc == 0:
            found.fpdus["zero"] += 1
        else:
            found.fpdus["good" if crc == crc32c(data[offset:offset + length]) else "bad"] += 1
        offset += length + 4
