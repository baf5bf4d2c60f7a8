"""A small iWARP stack that only writes: CRC32c, Ethernet/IPv4/TCP/UDP, MPA, DDP, RDMAP, pcap and
pcapng.

Sources: RFC 5044, 5041, 5040, 6581, 7306. A Stream is one TCP connection (or one UDP exchange)
between host 'a' (TCP client) and host 'b'. If `bad` is set, the stream has its faults. Otherwise
it is the same stream without faults (the clean twin).
"""
import struct

# ---- CRC32c as RFC 5044 4.4 has it (reflected polynomial 0x82F63B78, least significant octet first) ----
TABLE = []
for n in range(256):
    for _ in range(8):
        n = n >> 1 ^ 0x82F63B78 if n & 1 else n >> 1
    TABLE.append(n)


def crc32c(data):
    value = 0xFFFFFFFF
    for octet in data:
        value = TABLE[(value ^ octet) & 0xFF] ^ value >> 8
    return struct.pack('<I', value ^ 0xFFFFFFFF)


assert crc32c(b'123456789').hex() == '839206e3'


def checksum(data):
    data += bytes(len(data) % 2)
    total = sum(struct.unpack('>%dH' % (len(data) // 2), data))
    while total >> 16:
        total = (total & 0xFFFF) + (total >> 16)
    return total ^ 0xFFFF


# ---- DDP segments: complete ULPDUs ----
WRITE, READ_REQ, READ_RESP, SEND, SEND_INV, SEND_SE, SEND_SE_INV, TERM, IMM, IMM_SE, ATOMIC_REQ, ATOMIC_RESP = range(12)
QUEUE = {READ_REQ: 1, ATOMIC_REQ: 1, TERM: 2, ATOMIC_RESP: 3}


def tagged(op, stag, to, payload=b'', last=1):
    return struct.pack('>BBIQ', 0x81 | last << 6, 0x40 | op, stag, to) + payload


def untagged(op, msn, payload=b'', mo=0, last=1, inval=0):
    return struct.pack('>BBIIII', 0x01 | last << 6, 0x40 | op, inval, QUEUE.get(op, 0), msn, mo) + payload


def read_header(sink, sink_to, size, source, source_to):
    return struct.pack('>IQIIQ', sink, sink_to, size, source, source_to)


def fetch_add(ident, stag, to, add):
    return struct.pack('>IIIQQQQQ', 0, ident, stag, to, add, 0, 0, 2**64 - 1)


def term_header(layer_type, code, segment=None, rdma=False):
    """Returns a Terminate header of RFC 5040 4.8. With a segment, M and D are set. With `rdma`,
    R is also set."""
    if segment is None:
        return struct.pack('>BBBB', layer_type, code, 0, 0)
    size = 14 if segment[0] & 0x80 else 18
    head = struct.pack('>BBBBH', layer_type, code, 0xE0 if rdma else 0xC0, 0, len(segment)) + segment[:size]
    return head + (segment[18:46] if rdma else b'')


def put(data, offset, new):
    return data[:offset] + new + data[offset + len(new):]


def text(size, start=0):
    return bytes(97 + (start + i) % 26 for i in range(size))


class Host:
    def __init__(self, ip, port, mac, iss):
        self.ip, self.port, self.mac = ip, port, mac
        self.seq, self.got, self.unacked, self.ident = iss, 0, 0, 0x1000
        self.markers, self.pos = False, 0        # MPA: sent markers, stream position
        self.msn = {}


class Stream:
    """Frames of one stream. `wrong` becomes (frame number, octet offset) of the first wrong octet."""

    def __init__(self, number, mode, bad, mss=1460):
        self.mode, self.bad, self.mss = mode, bad, mss
        self.crc, self.use_markers = mode != 'plain', mode == 'markers'
        self.frames, self.wrong = [], None
        self.time = 1_700_000_000_000_000 + number * 1_000_000          # microseconds
        net = bytes([10, 1, number])
        self.hosts = {'a': Host(net + b'\x01', 40000 + number, b'\x02\0\0\0' + bytes([number, 1]), 0x11000000 + number * 7919),
                      'b': Host(net + b'\x02', 5000 + number, b'\x02\0\0\0' + bytes([number, 2]), 0x7A000000 + number * 104729)}
        self.a, self.b = self.hosts['a'], self.hosts['b']

    def other(self, who):
        return 'b' if who == 'a' else 'a'

    # ---- frames ----
    def frame(self, who, protocol, packet, mark=None):
        me, peer = self.hosts[who], self.hosts[self.other(who)]
        at = 16 if protocol == 6 else 6
        packet = put(packet, at, struct.pack('>H', checksum(me.ip + peer.ip + struct.pack('>HH', protocol, len(packet)) + packet)))
        ip = struct.pack('>BBHHHBBH', 0x45, 0, 20 + len(packet), me.ident, 0x4000, 64, protocol, 0) + me.ip + peer.ip
        me.ident += 1
        ip = put(ip, 10, struct.pack('>H', checksum(ip)))
        self.frames.append((self.time, peer.mac + me.mac + b'\x08\0' + ip + packet))
        self.time += 40 if who == 'a' else 60
        if mark is not None and self.bad and self.wrong is None:
            self.wrong = (len(self.frames), mark)

    def datagram(self, who, data, mark=None):
        me, peer = self.hosts[who], self.hosts[self.other(who)]
        udp = struct.pack('>HHHH', me.port, peer.port, 8 + len(data), 0) + data
        self.frame(who, 17, udp, None if mark is None else 42 + mark)

    # ---- TCP ----
    def segment(self, who, flags, data=b'', options=b'', mark=None, ack=None):
        me, peer = self.hosts[who], self.hosts[self.other(who)]
        size = 20 + len(options)
        ack = (peer.seq if ack is None else ack) if flags & 0x10 else 0
        tcp = struct.pack('>HHIIBBHHH', me.port, peer.port, me.seq, ack, size << 2, flags, 0xFAF0, 0, 0)
        self.frame(who, 6, tcp + options + data, None if mark is None else 34 + size + mark)
        me.seq = (me.seq + len(data) + (1 if flags & 3 else 0)) & 0xFFFFFFFF
        if flags & 0x10 and ack == peer.seq:
            peer.unacked = 0

    def connect(self):
        mss = struct.pack('>BBH', 2, 4, self.mss)
        self.segment('a', 0x02, options=mss)
        self.segment('b', 0x12, options=mss)
        self.segment('a', 0x10)

    def send(self, who, data, mark=None, ack=None):
        """Sends data in segments of at most MSS octets. The peer acknowledges every second
        segment."""
        me = self.hosts[who]
        for at in range(0, len(data), self.mss):
            if me.unacked >= 2:
                self.segment(self.other(who), 0x10)
            part = data[at:at + self.mss]
            here = None if mark is None or not at <= mark < at + len(part) else mark - at
            self.segment(who, 0x18, part, mark=here, ack=ack)
            me.unacked += 1

    def ack(self, who):
        self.segment(who, 0x10)

    def close(self, who='a'):
        """Closes both halves, first the half of `who`."""
        peer = self.other(who)
        self.segment(who, 0x11)
        self.segment(peer, 0x10)
        self.segment(peer, 0x11)
        self.segment(who, 0x10)

    def stop(self):
        """Ends the capture. All data is acknowledged."""
        for who in 'ab':
            if self.hosts[who].unacked:
                self.ack(self.other(who))

    # ---- MPA ----
    def startup(self, who, key, private=b'', rev=1, s=0, reject=0, size=None, poke=None, mark=None, ack=None):
        flags = self.use_markers << 7 | self.crc << 6 | reject << 5 | s << 4
        size = len(private) if size is None else size
        data = b'MPA ID %s Frame' % key + struct.pack('>BBH', flags, rev, size) + private
        if poke and self.bad:
            right, data = data, put(data, poke[0], poke[1])
            mark = next(n for n, octet in enumerate(data) if octet != right[n])
        self.send(who, data, mark, ack)
        self.hosts[self.other(who)].markers = self.use_markers      # the peer must send what we requested

    def request(self, who='a', **more):
        self.startup(who, b'Req', **more)

    def reply(self, who='b', **more):
        self.startup(who, b'Rep', **more)

    def enhanced(self, flags_ird, flags_ord):
        return struct.pack('>HH', flags_ird, flags_ord)

    def start(self):
        self.connect()
        self.request()
        self.reply()

    def fpdu(self, who, ulpdu, poke=None, mark=None, length=None, pad=None, crc=None, marker=None, ack=None):
        """Sends one FPDU in one call. `mark` is the place of the fault: an octet of the ULPDU,
        or 'len', 'pad', 'crc' or 'marker' (the last marker).

        poke=(offset, octets) changes the ULPDU. The functions length, pad, crc and marker change
        the framing. Their argument is the correct octets. `marker` also gets the number of the
        marker in this FPDU, and may return b'' to omit the marker. All of these have an effect
        only if the stream is bad.
        """
        me = self.hosts[who]
        if self.bad and poke:
            right, ulpdu = ulpdu, put(ulpdu, poke[0], poke[1])
            mark = next(n for n, octet in enumerate(ulpdu) if octet != right[n])
        head = struct.pack('>H', len(ulpdu) if not (self.bad and length) else length(len(ulpdu)))
        fill = bytes(-(2 + len(ulpdu)) % 4)
        if self.bad and pad:
            fill = pad(fill)
        body, out, place, markers = head + ulpdu + fill, bytearray(), [], []
        header = None

        def due():
            if me.markers and (me.pos + len(out)) % 512 == 0:
                value = struct.pack('>HH', 0, 0 if header is None else len(out) - header)
                if self.bad and marker:
                    value = marker(len(markers), value)
                markers.append(len(out))
                out.extend(value)
        due()
        header = len(out)
        for n, octet in enumerate(body):
            if n:
                due()
            place.append(len(out))
            out.append(octet)
        due()
        value = crc32c(out) if self.crc else bytes(4)
        if self.bad and crc:
            value = crc(value)
        where = {'len': 0, 'pad': 2 + len(ulpdu)}.get(mark)
        if mark == 'crc':
            at = len(out)
        elif mark == 'marker':
            at = markers[-1]
        elif mark is None:
            at = None
        else:
            at = place[where if where is not None else 2 + mark]
        out.extend(value)
        me.pos += len(out)
        self.send(who, bytes(out), at, ack)

    # ---- RDMAP messages with running MSNs ----
    def next(self, who, op):
        counts, qn = self.hosts[who].msn, QUEUE.get(op, 0)
        counts[qn] = counts.get(qn, 0) + 1
        return counts[qn]

    def message(self, who, op, payload=b'', inval=0, **more):
        segment = untagged(op, self.next(who, op), payload, inval=inval)
        self.fpdu(who, segment, **more)
        return put(segment, *more['poke']) if self.bad and more.get('poke') else segment

    def rdma_send(self, who, size=16, **more):
        return self.message(who, SEND, text(size), **more)

    def greet(self):
        """Sends the first Send in each direction, so that both sides may send."""
        self.rdma_send('a')
        self.rdma_send('b', 12)

    def read(self, who, sink, sink_to, size, source, source_to, **more):
        return self.message(who, READ_REQ, read_header(sink, sink_to, size, source, source_to), **more)

    def react(self, who, layer_type, code, segment):
        """The peer answers the fault by a Terminate, or in the clean twin by a Send. Then both
        sides close."""
        if self.bad:
            self.message(who, TERM, term_header(layer_type, code, segment))
        else:
            self.rdma_send(who, 8)
        self.close(who)


# ---- files ----
def pcap(frames):
    out = struct.pack('<IHHIIII', 0xA1B2C3D4, 2, 4, 0, 0, 65535, 1)
    for time, data in frames:
        out += struct.pack('<IIII', time // 10**6, time % 10**6, len(data), len(data)) + data
    return out


def block(kind, body):
    size = 12 + len(body)
    return struct.pack('<II', kind, size) + body + struct.pack('<I', size)


def pcapng(streams):
    """Returns a pcapng. `streams` has pairs (name, frames). Each stream has an interface with
    its name as if_name."""
    out = block(0x0A0D0D0A, struct.pack('<IHHq', 0x1A2B3C4D, 1, 0, -1))
    for name, _ in streams:
        name = name.encode()
        out += block(1, struct.pack('<HHI', 1, 0, 65535) + struct.pack('<HH', 2, len(name)) + name + bytes(-len(name) % 4) + bytes(4))
    for number, (_, frames) in enumerate(streams):
        for time, data in frames:
            out += block(6, struct.pack('<IIIII', number, time >> 32, time & 0xFFFFFFFF, len(data), len(data)) + data + bytes(-len(data) % 4))
    return out
