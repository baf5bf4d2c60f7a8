"""The parts that legal.py needs: Ethernet/IP/TCP/UDP frames, senders for MPA, DDP/RDMAP and SDP,
and pcap writers."""
import struct

A, B = 0, 1                                    # A opened the TCP connection, B accepted it
FIN, SYN, RST, PSH, ACK = 1, 2, 4, 8, 16
START = 1_700_000_000_000_000                  # first frame, microseconds


def _table():
    for n in range(256):
        for _ in range(8):
            n = n >> 1 ^ (0x82F63B78 if n & 1 else 0)
        yield n


TABLE = list(_table())


def crc32c(data):
    r = 0xFFFFFFFF
    for b in data:
        r = r >> 8 ^ TABLE[(r ^ b) & 255]
    return struct.pack("<I", r ^ 0xFFFFFFFF)


def checksum(data):
    data += b"\0" * (len(data) % 2)
    s = sum(struct.unpack(">%dH" % (len(data) // 2), data))
    while s >> 16:
        s = (s & 0xFFFF) + (s >> 16)
    return ~s & 0xFFFF


def pattern(n, k=1):
    """Returns n octets of a series in which adjacent octets differ. k selects the series."""
    return bytes((i * 7 + k * 31) & 255 for i in range(n))


class Wire:
    """The frames of one stream, in time order."""

    def __init__(self):
        self.t, self.frames, self.link, self.snap, self.copies = 0, [], 1, 262144, 1

    def put(self, frame, dt):
        for _ in range(self.copies):
            self.t += dt
            self.frames.append((self.t, frame[:self.snap], len(frame)))
            dt = 2

    def swap(self, i, j):
        """Exchanges two frames in the capture. Each frame gets the time of the other frame."""
        a, b = self.frames[i], self.frames[j]
        self.frames[i], self.frames[j] = (a[0], *b[1:]), (b[0], *a[1:])


class Host:
    """The code for a pair of hosts that both TCP and UDP need."""

    def __init__(self, wire, mode, n):
        self.wire, self.mode, self.n = wire, mode, n
        self.v6, self.vlan, self.ipopt, self.ext, self.pad = False, (), b"", b"", 0
        self.ident, self.tos, self.tunnel = 0, 0, None

    def addr(self, s):
        if self.v6:
            return bytes.fromhex("fd20") + bytes([0, self.mode.net]) + bytes(8) + struct.pack(">HH", self.n, s + 1)
        return bytes([10, self.mode.net, self.n, s + 1])

    def ip(self, s, proto, payload, dt, frag=0, src=None):
        """Sends one datagram. With `frag`, sends it as IPv4 fragments, and the first one has
        `frag` octets."""
        src, dst = src or self.addr(s), self.addr(1 - s)
        mac = [bytes([2, 0, self.mode.net, 0, self.n, x + 1]) for x in (A, B)]
        head = mac[1 - s] + mac[s] + b"".join(struct.pack(">HH", tpid, vid) for tpid, vid in self.vlan)
        self.ident += 1
        pieces = [(0, payload)] if not frag else [(0, payload[:frag]), (frag, payload[frag:])]
        for off, part in pieces:
            if self.v6:
                nxt, ext = (proto, b"") if not self.ext else (self.ext[0], bytes([proto]) + self.ext[1:])
                pkt = struct.pack(">IHBB", 6 << 28 | self.tos << 20, len(ext) + len(part), nxt, 64) + src + dst + ext + part
                etype = 0x86DD
            else:
                flags = 0x4000 if not frag else (0x2000 if off + len(part) < len(payload) else 0) | off // 8
                hl = 20 + len(self.ipopt)
                h = struct.pack(">BBHHHBBH4s4s", 0x40 | hl // 4, self.tos, hl + len(part), self.ident, flags, 64, proto,
                                0, src, dst) + self.ipopt
                pkt = h[:10] + struct.pack(">H", checksum(h)) + h[12:] + part
                etype = 0x0800
            frame = head + struct.pack(">H", etype) + pkt
            if self.tunnel:                    # GRE over IPv4, or VXLAN
                if self.tunnel == "gre":
                    p, outer = 47, struct.pack(">HH", 0, etype) + pkt
                else:
                    p, outer = 17, struct.pack(">HHHHII", 50000, 4789, 16 + len(frame), 0, 8 << 24, 77 << 8) + frame
                h = struct.pack(">BBHHHBBH4s4s", 0x45, 0, 20 + len(outer), self.ident, 0x4000, 64, p, 0,
                                bytes([192, 0, 2, s + 1]), bytes([192, 0, 2, 2 - s]))
                frame = head + b"\x08\0" + h[:10] + struct.pack(">H", checksum(h)) + h[12:] + outer
            if self.wire.link == 101:          # raw IP
                frame = pkt
            elif self.wire.link == 113:        # Linux cooked
                frame = struct.pack(">HHH8sH", 4 * (s == A), 1, 6, mac[s] + b"\0\0", etype) + pkt
            self.wire.put(frame + b"\0" * max(0, self.pad - len(frame)), dt)
            dt = 5

    def pseudo(self, s, proto, length):
        src, dst = self.addr(s), self.addr(1 - s)
        return src + dst + (struct.pack(">II", length, proto) if self.v6 else struct.pack(">HH", proto, length))

    def udp(self, s, sport, dport, data, dt=40):
        u = struct.pack(">HHHH", sport, dport, 8 + len(data), 0) + data
        u = u[:6] + struct.pack(">H", checksum(self.pseudo(s, 17, len(u)) + u) or 0xFFFF) + u[8:]
        self.ip(s, 17, u, dt)


class Tcp(Host):
    """One TCP connection. Octets are first appended to the stream of a side. Then any range of
    this stream can be sent, also several times."""

    def __init__(self, wire, mode, n, sport=None, dport=None):
        super().__init__(wire, mode, n)
        self.port = [sport or 40000 + n, dport or 20000 + n]
        self.isn = [1000 * n + 17, 0x50000000 + 4000 * n]
        self.mss, self.ts, self.synopt, self.segopt, self.offload = 1460, False, b"", b"", None
        self.win = [65535, 65535]
        self.data = [bytearray(), bytearray()]
        self.sent = [0, 0]                     # next octet that seg() sends by itself
        self.got = [set(), set()]              # ranges that the other side of the index received
        self.rcv = [0, 0]                      # contiguous octets received *by* the index
        self.fin = [False, False]              # FIN sent by the index
        self.fingot = [False, False]           # FIN of the index arrived at its peer
        self.held = None                       # arrivals kept back while messages cross
        self.syn = [False, False]

    def emit(self, s, flags, start, payload=b"", opts=b"", dt=40, win=None, frag=0, seq=None, ack=None,
             badsum=False):
        if self.ts:
            opts += struct.pack(">BBBBII", 1, 1, 8, 10, self.wire.t // 1000 + 1, 1 if flags & ACK else 0)
        opts += self.segopt
        opts += b"\1" * (-len(opts) % 4)
        seq = (self.isn[s] + 1 + start if seq is None else seq) & 0xFFFFFFFF
        if ack is None:
            ack = (self.isn[1 - s] + 1 + self.rcv[s] + self.fingot[1 - s]) & 0xFFFFFFFF if flags & ACK else 0
        h = struct.pack(">HHIIHHHH", self.port[s], self.port[1 - s], seq, ack, (20 + len(opts)) // 4 << 12 | flags,
                        self.win[s] if win is None else win, 0, 0) + opts + payload
        ck = checksum(self.pseudo(s, 6, len(h)) + h) ^ (0x5A5A if badsum else 0)
        if self.offload == s:                  # the interface would fill in the checksum later
            ck = checksum(self.pseudo(s, 6, len(h))) ^ 0xFFFF
        self.ip(s, 6, h[:16] + struct.pack(">H", ck) + h[18:], dt, frag)

    def open(self, ack=True, syndata=b"", both=False):
        o = struct.pack(">BBH", 2, 4, self.mss) + self.synopt
        if both:                               # simultaneous open
            self.emit(A, SYN, 0, b"", o, seq=self.isn[A])
            self.emit(B, SYN, 0, b"", o, seq=self.isn[B])
            self.emit(A, SYN | ACK, 0, b"", o, seq=self.isn[A])
            self.emit(B, SYN | ACK, 0, b"", o, seq=self.isn[B])
            return self
        self.emit(A, SYN, 0, syndata, o, seq=self.isn[A])
        if syndata:
            self.data[A] += syndata
            self.sent[A] = self.rcv[B] = len(syndata)
        self.emit(B, SYN | ACK, 0, b"", o, seq=self.isn[B])
        if ack:
            self.emit(A, ACK, self.sent[A])
        return self

    def put(self, s, data):
        self.data[s] += data
        return len(self.data[s])

    def arrive(self, s, start, end, fin):
        if self.held is not None:
            self.held.append((s, start, end, fin))
            return
        self.got[s].add((start, end))
        p = 1 - s
        while True:
            m = max([e for b, e in self.got[s] if b <= self.rcv[p]], default=0)
            if m <= self.rcv[p]:
                break
            self.rcv[p] = m
        if fin:
            self.fingot[s] = True

    def seg(self, s, start=None, end=None, fin=False, lost=False, psh=True, data=None, **kw):
        """Sends the stream octets start..end of side s (default: all unsent octets) in one
        segment. `data` replaces them by corrupt octets."""
        start = self.sent[s] if start is None else start
        end = len(self.data[s]) if end is None else end
        self.emit(s, ACK | (PSH if psh and end > start else 0) | (FIN if fin else 0), start,
                  data or bytes(self.data[s][start:end]), **kw)
        self.sent[s] = max(self.sent[s], end)
        self.fin[s] |= fin
        if not lost:
            self.arrive(s, start, end, fin)

    def flush(self, s, cuts=(), **kw):
        """Sends the unsent octets, cut at the given distances, or otherwise at the MSS."""
        base, end = self.sent[s], len(self.data[s])
        marks = [base + c for c in cuts] or list(range(base + self.mss, end, self.mss))
        for e in marks + [end]:
            self.seg(s, None, e, psh=e == end, **kw)

    def ack(self, s, **kw):
        self.emit(s, ACK, self.sent[s] + self.fin[s], **kw)

    def cross(self):
        """with c.cross(): data that is sent in the block reaches the peer only after the end of
        the block."""
        return _Cross(self)

    def close(self, first=A, last_ack=True):
        o = 1 - first
        if not self.fin[first]:
            self.seg(first, fin=True)
        if not self.fin[o]:
            self.seg(o, fin=True)
        if last_ack:
            self.ack(first)

    def rst(self, s, **kw):
        self.emit(s, RST | ACK, self.sent[s], **kw)


class _Cross:
    def __init__(self, c):
        self.c = c

    def __enter__(self):
        self.c.held = []

    def __exit__(self, *_):
        held, self.c.held = self.c.held, None
        for h in held:
            if callable(h):
                h()
            else:
                self.c.arrive(*h)


WRITE, RREQ, RRESP, SEND, SENDINV, SENDSE, SENDSEINV, TERM, IMM, IMMSE, AREQ, ARESP = range(12)


class Conn(Tcp):
    """MPA and RDMAP over the connection. The builders of messages return lists of ULPDUs, and
    go() sends these lists."""

    def __init__(self, *a, **kw):
        super().__init__(*a, **kw)
        self.crc = self.mode.crc
        self.marks = [self.mode.markers] * 2   # side inserts Markers
        self.base = [0, 0]
        self.msn = [{}, {}]
        self.rv = self.dv = 1
        self.badcrc = None                     # octets to put where CRCs are off
        self.ini = A

    def startup(self, s, key, flags, rev, pd, length=None):
        return b"MPA ID " + key + b" Frame" + struct.pack(">BBH", flags, rev, len(pd) if length is None else length) + pd

    def req(self, s=A, pd=b"", rev=1, M=None, C=None, S=0, cuts=(), send=True, **kw):
        self.ini = s
        self.want = {s: (self.mode.markers if M is None else M, self.mode.crc if C is None else C)}
        f = self.startup(s, b"Req", self.want[s][0] << 7 | self.want[s][1] << 6 | S << 4, rev, pd)
        if send:
            self.put(s, f)
            self.flush(s, cuts, **kw)
        return f

    def rep(self, pd=b"", rev=1, M=None, C=None, S=0, R=0, cuts=(), **kw):
        s = 1 - self.ini
        self.want[s] = (self.mode.markers if M is None else M, self.mode.crc if C is None else C)
        self.put(s, self.startup(s, b"Rep", self.want[s][0] << 7 | self.want[s][1] << 6 | R << 5 | S << 4, rev, pd))
        self.flush(s, cuts, **kw)
        self.ready()

    def ready(self):
        """Begins Full Operation at this position of both streams."""
        if hasattr(self, "want"):
            self.marks = [self.want[1 - s][0] for s in (A, B)]
            self.crc = self.want[A][1] | self.want[B][1]
        self.base = [len(self.data[A]), len(self.data[B])]

    def start(self, pd=b"", rpd=b"", **kw):
        self.open()
        self.req(A, pd, **kw)
        self.rep(rpd, **kw)
        return self

    def start2(self, q, p, pd=b"", rpd=b"", R=0):
        """Does an enhanced start-up. q and p are (flags A B C D, IRD, ORD) of Request and Reply."""
        self.open()
        self.req(A, enhanced(*q) + pd, rev=2, S=1)
        self.rep(enhanced(*p) + rpd, rev=2, S=1, R=R)
        return self

    def fpdu(self, s, u):
        """Appends one FPDU to the stream, and returns its range."""
        body = struct.pack(">H", len(u)) + u
        body += b"\0" * (-len(body) % 4)
        d, first = self.data[s], len(self.data[s])
        hdr = None
        for i in range(0, len(body) + 1, 4):
            if self.marks[s] and (len(d) - self.base[s]) % 512 == 0:
                d += struct.pack(">I", 0 if hdr is None else len(d) - hdr)
            if hdr is None:
                hdr = len(d)
            d += body[i:i + 4]
        d += crc32c(d[first:]) if self.crc else (self.badcrc or bytes(4))
        return first, len(d)

    def go(self, s, *msgs, cuts=(), **kw):
        """Sends the FPDUs of the messages without gaps, cut at the MSS or at `cuts`."""
        r = [self.fpdu(s, u) for m in msgs for u in m]
        self.flush(s, cuts, **kw)
        return r

    def each(self, s, *msgs, **kw):
        """Sends each FPDU in its own segment."""
        return [self.go(s, [u], **kw)[0] for m in msgs for u in m]

    def mulpdu(self):
        e = self.mss
        return min(64768, e - 6 - e % 4 - (4 * -(-e // 512) if self.mode.markers else 0))

    def cut(self, data, room, sizes):
        sizes = list(sizes) or [room] * (len(data) // room) + [len(data) % room]
        if len(sizes) > 1 and not sizes[-1]:
            sizes.pop()
        off = 0
        for i, n in enumerate(sizes):
            yield off, data[off:off + n], i == len(sizes) - 1
            off += n

    def untagged(self, s, op, qn, data=b"", inv=0, sizes=()):
        msn = self.msn[s][qn] = self.msn[s].get(qn, 0) + 1
        return [struct.pack(">BBIIII", last << 6 | self.dv, self.rv << 6 | op, inv, qn, msn, off) + d
                for off, d, last in self.cut(data, self.mulpdu() - 18, sizes)]

    def tagged(self, s, op, stag, to, data=b"", sizes=()):
        return [struct.pack(">BBIQ", 0x80 | last << 6 | self.dv, self.rv << 6 | op, stag, to + off) + d
                for off, d, last in self.cut(data, self.mulpdu() - 14, sizes)]

    def send(self, s, data=b"", se=False, inv=None, sizes=()):
        return self.untagged(s, SEND + 2 * se + (inv is not None), 0, data, inv or 0, sizes)

    def write(self, s, stag, to, data=b"", sizes=()):
        return self.tagged(s, WRITE, stag, to, data, sizes)

    def rreq(self, s, sink, sinkto, size, src, srcto):
        return self.untagged(s, RREQ, 1, struct.pack(">IQIIQ", sink, sinkto, size, src, srcto))

    def rresp(self, s, sink, sinkto, data=b"", sizes=()):
        return self.tagged(s, RRESP, sink, sinkto, data, sizes)

    def areq(self, s, ident, stag, to, op, data, mask=0, cmp=0, cmask=2**64 - 1):
        return self.untagged(s, AREQ, 1, struct.pack(">IIIQQQQQ", op, ident, stag, to, data, mask, cmp, cmask))

    def aresp(self, s, ident, value):
        return self.untagged(s, ARESP, 3, struct.pack(">IQ", ident, value))

    def imm(self, s, data, se=False):
        return self.untagged(s, IMMSE if se else IMM, 0, data)

    def term(self, s, layer, etype, code, bad=None, rdma=b""):
        """Returns a Terminate. `bad` is the offending ULPDU, and `rdma` is the Read Request
        header to return."""
        hct = (0xC0 if bad else 0) | (0x20 if rdma else 0)
        body = struct.pack(">BBBB", layer << 4 | etype, code, hct, 0)
        if bad:
            body += struct.pack(">H", len(bad)) + bad[:14 if bad[0] & 0x80 else 18] + rdma
        return self.untagged(s, TERM, 2, body)


def enhanced(flags, ird, ordd):
    f = [int(x in flags) for x in "ABCD"]
    return struct.pack(">HH", f[0] << 15 | f[1] << 14 | ird, f[2] << 15 | f[3] << 14 | ordd)


HELLO, HELLOACK, DISCONN, ABORT, SENDSM, WRCOMPL, RDCOMPL, MODE, SRCCANCEL, SINKCANCEL, SINKCANCELACK, CHBUF, \
    CHBUFACK, SUSP, SUSPACK = range(15)
SINKAVAIL, SRCAVAIL, DATA = 0xFD, 0xFE, 0xFF
SOLICITED = {HELLOACK, ABORT, SUSP, SUSPACK, SENDSM, SRCCANCEL, SINKCANCEL, WRCOMPL, RDCOMPL, SINKCANCELACK}
OOB_PRES, OOB_PEND, REQ_PIPE = 1, 2, 4


class Sdp:
    """SDP on a Conn. The Hello is the last message in streaming mode. Then the Accepting Peer is
    the MPA Initiator."""

    def __init__(self, c, bufs=(16, 16), size=(64, 64), adverts=(8, 8), depth=(4, 4), bare=False, opened=False):
        self.c, self.bufs, self.seq, self.ackd = c, list(bufs), [0, 0], [0, 0]
        if not opened:
            c.open()
        c.put(A, struct.pack(">HBBIII", bufs[A], 0, HELLO, 32, 0, 0)
              + struct.pack(">HBBIIHH", adverts[A], 0, 0x11, size[B], size[A], depth[A], depth[A]))
        c.flush(A)
        if bare:
            c.ready()
        else:
            c.req(B)
            c.rep()
        ack = struct.pack(">HBBIII", bufs[B], 0, HELLOACK, 28, 0, 0) + struct.pack(">HBBIHH", adverts[B], 0, 0x11, size[B],
                                                                                  depth[B], depth[B])
        c.go(B, c.send(B, ack, se=True))

    def make(self, s, mid, ext=b"", data=b"", flags=0, inv=None, bufs=None, ack=None):
        self.seq[s] += 1
        h = struct.pack(">HBBIII", self.bufs[s] if bufs is None else bufs, flags, mid, 16 + len(ext) + len(data),
                        self.seq[s], self.ackd[s] if ack is None else ack)
        q = self.seq[s]
        if self.c.held is None:
            self.ackd[1 - s] = q
        else:
            self.c.held.append(lambda: self.ackd.__setitem__(1 - s, max(q, self.ackd[1 - s])))
        se = mid in SOLICITED or (mid == DATA and flags & 3 != 0)
        return self.c.send(s, h + ext + data, se=se, inv=inv)

    def msg(self, s, mid, ext=b"", data=b"", **kw):
        self.c.go(s, self.make(s, mid, ext, data, **kw))

    def data(self, s, data=b"", **kw):
        self.msg(s, DATA, b"", data, **kw)

    def src(self, s, length, stag, va, data=b"", **kw):
        self.msg(s, SRCAVAIL, struct.pack(">IIQ", length, stag, va), data, **kw)

    def sink(self, s, length, stag, va, nd, data=b"", **kw):
        self.msg(s, SINKAVAIL, struct.pack(">IIQI", length, stag, va, nd), data, **kw)

    def word(self, s, mid, v, **kw):
        self.msg(s, mid, struct.pack(">I", v), **kw)

    def read(self, s, stag, va, n, sink=0x77000001):
        """Side s reads n octets from its peer."""
        c = self.c
        c.go(s, c.rreq(s, sink, 0x100, n, stag, va))
        c.go(1 - s, c.rresp(1 - s, sink, 0x100, pattern(n, 5)))

    def bye(self, first=A):
        self.msg(first, DISCONN)
        self.msg(1 - first, DISCONN)
        self.c.close(1 - first)


def block(kind, body):
    body += b"\0" * (-len(body) % 4)
    return struct.pack("<II", kind, 12 + len(body)) + body + struct.pack("<I", 12 + len(body))


def pcapng(path, streams):
    """Writes a pcapng. `streams` is a list of (name, wire). Each stream has an interface, and
    the streams follow one another in time."""
    out = block(0x0A0D0D0A, struct.pack("<IHHq", 0x1A2B3C4D, 1, 0, -1))
    for name, wire in streams:
        nm = name.encode()
        out += block(1, struct.pack("<HHIHH", wire.link, 0, wire.snap, 2, len(nm)) + nm + b"\0" * (-len(nm) % 4) + bytes(4))
    at = START
    for i, (_, wire) in enumerate(streams):
        for t, f, n in wire.frames:
            out += block(6, struct.pack("<IIIII", i, at + t >> 32, at + t & 0xFFFFFFFF, len(f), n) + f)
        at += wire.frames[-1][0] + 1_000_000
    with open(path, "wb") as o:
        o.write(out)


def pcap(path, wire):
    with open(path, "wb") as o:
        o.write(struct.pack("<IHHiIII", 0xA1B2C3D4, 2, 4, 0, 0, wire.snap, wire.link))
        for t, f, n in wire.frames:
            o.write(struct.pack("<IIII", (START + t) // 10**6, (START + t) % 10**6, len(f), n) + f)
