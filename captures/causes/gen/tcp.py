"""One TCP connection, as an observer sees it.

A scene calls `Connection.tcp` once for each segment. The connection computes sequence numbers,
acknowledgements, SACK blocks, timestamps and checksums from the segments that arrive. A segment
can be lost (`arrives=False`), can be missing in the capture (`seen=False`), or both.
"""
import struct

from .net import PROTO_TCP, checksum

FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
LETTERS = {"F": FIN, "S": SYN, "R": RST, "P": PSH, "A": ACK}
WINDOW_SCALE = 7


class Segment:
    """A segment that was sent. `frame` is None if the capture does not have it."""

    def __init__(self, side, frame, seq, data):
        self.side, self.frame, self.seq, self.data = side, frame, seq, data


class Side:
    """The state of one endpoint of a TCP connection."""

    def __init__(self, host, port, iss, window, clock):
        self.host, self.port, self.iss = host, port, iss
        self.next = iss           # the next sequence number to send
        self.received = 0         # the next sequence number that this side expects
        self.early = {}           # segments after a gap: sequence number -> length
        self.window = window      # the window, in units of 2^WINDOW_SCALE
        self.clock = clock        # offset of the timestamp clock, in ms
        self.recent = 0           # the timestamp to echo
        self.peer = None

    @property
    def name(self):
        address = self.host.address
        return ("[%s]:%d" if ":" in address else "%s:%d") % (address, self.port)

    def accept(self, seq, length):
        """Count a segment that arrives at this side."""
        if length == 0:
            return
        distance = (seq - self.received) & 0xFFFFFFFF
        if distance >= 1 << 31:
            return
        self.early[seq] = max(length, self.early.get(seq, 0))
        while self.received in self.early:
            self.received = (self.received + self.early.pop(self.received)) & 0xFFFFFFFF

    def blocks(self):
        """The SACK blocks: at most three ranges after the gap."""
        ranges = []
        for seq in sorted(self.early, key=lambda s: (s - self.received) & 0xFFFFFFFF):
            end = (seq + self.early[seq]) & 0xFFFFFFFF
            if ranges and ranges[-1][1] == seq:
                ranges[-1][1] = end
            else:
                ranges.append([seq, end])
        return ranges[:3]


class Connection:
    """A TCP connection between two hosts: `i` is the TCP client, `r` the TCP server."""

    def __init__(self, capture, random, client, server, ports, mss=1460, timestamps=False,
                 rtt=80, client_window=501, server_window=501):
        self.capture, self.random = capture, random
        self.mss, self.timestamps, self.rtt = mss, timestamps, rtt
        self.i = Side(client, ports[0], random.below(1 << 32), client_window, random.below(1 << 31))
        self.r = Side(server, ports[1], random.below(1 << 32), server_window, random.below(1 << 31))
        self.i.peer, self.r.peer = self.r, self.i
        self.last = None
        self.blind = ()           # sides whose segments the capture does not have

    @property
    def emss(self):
        return self.mss - (12 if self.timestamps else 0)

    def after(self, microseconds):
        """Advance the clock."""
        self.capture.time += int(microseconds * 1000)

    def tick(self, side, gap):
        if gap is not None:
            self.after(gap)
        elif self.last is not None and self.last is not side:
            self.after(self.rtt / 2 + self.random.between(4, 30))
        else:
            self.after(self.random.between(2, 7))
        self.last = side

    def options(self, side, syn, extra):
        out = b""
        if syn:
            out += struct.pack(">BBH", 2, 4, self.mss) + b"\x04\x02"
        if self.timestamps:
            value = (self.capture.time // 10**6 + side.clock) & 0xFFFFFFFF
            out += (b"" if syn else b"\1\1") + struct.pack(">BBII", 8, 10, value, side.recent)
        elif syn:
            out += b"\1\1"
        if syn:
            out += struct.pack(">BBBB", 1, 3, 3, WINDOW_SCALE)
        out += extra
        return out + b"\1" * (-len(out) % 4)

    def tcp(self, side, data=b"", flags="A", *, seq=None, ack=None, window=None, seen=True,
            arrives=True, gap=None, wire=None, ttl=None, identification=None, plain=False):
        """Send one segment. Without `seq` the segment is new data, and advances `side.next`.

        `wire` replaces the data after the sender computed the checksum. `plain` omits options.
        """
        self.tick(side, gap)
        bits = sum(LETTERS[letter] for letter in flags)
        length = len(data) + (1 if bits & (SYN | FIN) else 0)
        new = seq is None
        seq = side.next if new else seq & 0xFFFFFFFF
        if new:
            side.next = (side.next + length) & 0xFFFFFFFF
        if ack is None:
            ack = side.received if bits & ACK else 0
        if window is None:
            window = min(side.window << WINDOW_SCALE, 64240) if bits & SYN else side.window
        sack = b""
        if bits & ACK and side.early and not data and not plain:
            blocks = side.blocks()
            sack = b"\1\1" + bytes([5, 2 + 8 * len(blocks)])
            sack += b"".join(struct.pack(">II", *pair) for pair in blocks)
        options = b"" if plain or bits & RST else self.options(side, bits & SYN, sack)
        head = struct.pack(">HHIIBBHHH", side.port, side.peer.port, seq, ack,
                           (20 + len(options)) // 4 << 4, bits, window & 0xFFFF, 0, 0) + options
        pseudo = side.host.pseudo_header(side.peer.host, PROTO_TCP, len(head) + len(data))
        total = checksum(pseudo + head + data)
        segment = head[:16] + struct.pack(">H", total) + head[18:] + (wire or data)
        packet = side.host.packet(side.peer.host, PROTO_TCP, segment, ttl, identification)
        frame = None
        if seen and side not in self.blind:
            frame = self.capture.ip(side.host, side.peer.host, packet)
        if arrives:
            if bits & SYN:
                side.peer.received = (seq + 1) & 0xFFFFFFFF
            else:
                side.peer.accept(seq, length)
            if self.timestamps and not bits & RST:
                side.peer.recent = (self.capture.time // 10**6 + side.clock) & 0xFFFFFFFF
        return Segment(side, frame, seq, data)

    def again(self, segment, flags="PA", **how):
        """Retransmit a segment."""
        return self.tcp(segment.side, segment.data, flags, seq=segment.seq, **how)

    def ack(self, side, **how):
        return self.tcp(side, **how)

    def open(self, **how):
        """The three-way handshake."""
        first = self.tcp(self.i, flags="S", **how)
        self.tcp(self.r, flags="SA", **how)
        self.tcp(self.i, **how)
        return first

    def close(self, first, gap=None):
        """An orderly close that `first` starts. Returns both FIN segments."""
        one = self.tcp(first, flags="FA", gap=gap)
        two = self.tcp(first.peer, flags="FA")
        self.tcp(first)
        return one, two

    def reset(self, side, with_ack=True, **how):
        """A RST at the next sequence number. It does not use a sequence number."""
        return self.tcp(side, flags="RA" if with_ack else "R", seq=side.next, window=0, **how)
