"""A small scripted SDP peer for selftest.py; it shares no code with the endpoint.

It checks the framing, MSN, MO, MSeq, Len and opcode of everything it gets.
Bufs is always the value of the Hello: it posts each buffer again at once.
"""

import random
import select
import socket
import struct
import time
from types import SimpleNamespace

T = []
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = _c >> 1 ^ (0x82F63B78 & -(_c & 1))
    T.append(_c)

(HELLO, HELLO_ACK, DISCONN, ABORT, SEND_SM, WRC, RDC, MODE, SRC_CANCEL, SINK_CANCEL, SINK_CANCEL_ACK,
 RESIZE, RESIZE_ACK, SUSP, SUSP_ACK) = range(15)
SINK, SRC, DATA = 253, 254, 255
EXT = {WRC: 4, RDC: 4, MODE: 4, RESIZE: 4, RESIZE_ACK: 4, SUSP: 8, SRC: 16, SINK: 20}
SE = (ABORT, SUSP, SUSP_ACK, SEND_SM, SRC_CANCEL, SINK_CANCEL, HELLO_ACK, WRC, RDC, SINK_CANCEL_ACK)
PRES, PEND, PIPE = 1, 2, 4


def crc(data):
    c = 0xFFFFFFFF
    for b in data:
        c = T[(c ^ b) & 255] ^ c >> 8
    return (c ^ 0xFFFFFFFF).to_bytes(4, "little")


assert crc(b"123456789") == 0xE3069283.to_bytes(4, "little")


def octets(n, seed=1):
    return random.Random(seed * 1000003 + n).randbytes(n)


def pattern(start, n):
    return bytes(i % 251 for i in range(start, start + n))


def bsdh(bufs, flags, mid, mseq, ack, rest=b""):
    return struct.pack(">HBBIII", bufs, flags, mid, 16 + len(rest), mseq, ack) + rest


class Peer:
    """One connection; the Connecting Peer unless made by accepted()."""

    def __init__(self, server, timeout=4.0, setup=True, sock=None, **how):
        self.s = sock or socket.socket()
        self.s.settimeout(timeout)
        if not sock:
            self.s.connect(server.address)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.bufs, self.size = how.get("bufs", 16), how.get("size", 8192)
        self.adverts, self.ird, self.ord = how.get("adverts", 32), how.get("ird", 16), how.get("ord", 16)
        self.version, self.desired = how.get("version", 0x11), how.get("desired", 0)
        self.crc_on = how.get("crc_on", True)
        self.rev, self.enhanced, self.rtr = how.get("rev", 1), how.get("enhanced"), how.get("rtr")
        self.msn, self.rx_msn = [1, 1, 1], [1, 1, 1]
        self.mseq = self.rx_mseq = self.ack = 0
        self.memory = {}                # stag: (base, bytearray)
        self.tx = None                  # collects frames until flush()
        self.inbox, self.reads = [], []
        self.hold_reads = False
        self.unanswered = 0             # messages since our last one
        self.reports = []               # Len of each RdmaRdCompl that stream() saw
        self.outstanding = None         # our Read: [stag, base, buffer, done]
        self.part = b""
        if setup:
            self.request()
            self.reply()
            if self.rtr:
                self.rtr(self)
            self.greet(self.send_message())

    # -- set-up
    def hello(self):
        return bsdh(self.bufs, 0, HELLO, 0, 0, struct.pack(
            ">HBBIIHH", self.adverts, 0, self.version, self.desired, self.size, self.ird, self.ord))

    def request(self, private=None, key=b"MPA ID Req Frame"):
        private = self.hello() if private is None else private
        if self.enhanced:
            private = struct.pack(">HH", *self.enhanced) + private
        flags = self.crc_on << 6 | (self.enhanced is not None) << 4
        self.s.sendall(key + struct.pack(">BBH", flags, self.rev, len(private)) + private)

    def reply(self):
        head = self.exactly(20)
        assert head[:16] == b"MPA ID Rep Frame", head
        self.flags, rev, size = struct.unpack(">BBH", head[16:])
        self.private = self.exactly(size)
        assert rev == self.rev
        self.crc_on = self.crc_on or bool(self.flags & 0x40)

    def greet(self, octets_):
        assert octets_.op == 5 and len(octets_.raw) == 28, octets_
        self.their_bufs, flags, mid, size, mseq, ack = struct.unpack_from(">HBBIII", octets_.raw)
        assert (flags, mid, size, mseq, ack) == (0, HELLO_ACK, 28, 0, 0)
        self.their_adverts, rsvd, ver, self.their_size, self.their_ird, self.their_ord = struct.unpack_from(
            ">HBBIHH", octets_.raw, 16)
        assert rsvd == 0 and ver == 0x11

    @classmethod
    def accepted(cls, sock, old):
        """The Accepting Peer of a connection made by the endpoint."""
        p = cls(None, setup=False, sock=sock)
        head = p.exactly(20)
        assert head[:18] == b"MPA ID Req Frame\x40\x01", head
        hello = p.exactly(struct.unpack(">H", head[18:])[0])
        assert len(hello) == 32 and hello[2:4] == b"\0\0", hello.hex()
        p.memory, p.bufs, p.size = old.memory, old.bufs, old.size
        sock.sendall(b"MPA ID Rep Frame\x40\x01\0\0")
        p.send_raw(bsdh(p.bufs, 0, HELLO_ACK, 0, 0, struct.pack(">HBBIHH", 32, 0, 0x11, p.size, 16, 16)), 5)
        return p

    def exactly(self, n):
        out = bytearray()
        while len(out) < n:
            part = self.s.recv(n - len(out))
            if not part:
                raise EOFError
            out += part
        return bytes(out)

    # -- sending
    def fpdu(self, ulpdu):
        body = struct.pack(">H", len(ulpdu)) + ulpdu
        body += bytes(-len(body) % 4)
        return body + (crc(body) if self.crc_on else bytes(4))

    def out(self, *ulpdus):
        for u in ulpdus:
            if self.tx is None:
                self.s.sendall(self.fpdu(u))
            else:
                self.tx.append(self.fpdu(u))

    def together(self):
        self.tx = []

    def flush(self, pause=None):
        """Sends what was collected: at once, or frame by frame with pauses."""
        frames, self.tx = self.tx, None
        for f in [b"".join(frames)] if pause is None else frames:
            self.s.sendall(f)
            time.sleep(pause or 0)

    def send_raw(self, data, op=3, stag=0, seg=1400):
        msn = self.msn[0]
        self.msn[0] += 1
        self.out(*[struct.pack(">BBIIII", (mo + seg >= len(data)) << 6 | 1, 0x40 | op, stag, 0, msn, mo)
                   + data[mo:mo + seg] for mo in range(0, max(1, len(data)), seg)])

    def send(self, mid, ext=b"", payload=b"", flags=0, inv=None, bufs=None, ack=None, mseq=None, seg=1400):
        op = (3 if inv is None else 4) + (2 if mid in SE or flags & 3 else 0)
        self.send_raw(bsdh(self.bufs if bufs is None else bufs, flags, mid,
                           self.mseq if mseq is None else mseq, self.ack if ack is None else ack,
                           ext + payload), op, inv or 0, seg)
        self.mseq += 1
        self.unanswered = 0

    def data(self, payload=b"", flags=0, **how):
        self.send(DATA, b"", payload, flags, **how)

    def word(self, mid, value, **how):
        self.send(mid, struct.pack(">I", value), **how)

    def mode(self, new, s=0):
        self.word(MODE, new << 1 | s)

    def expose(self, content, base=None):
        stag = random.randrange(1, 1 << 32)
        self.memory[stag] = (base if base is not None else (7 << 32) - len(content) // 2, bytearray(content))
        return stag

    def src(self, content, inline=0, base=None):
        """Advertises content by SrcAvail."""
        stag = self.expose(content, base)
        self.send(SRC, struct.pack(">IIQ", len(content), stag, self.memory[stag][0]), content[:inline])
        return stag

    def sink(self, size, nondiscards=0, payload=b""):
        stag = self.expose(bytes(size))
        self.send(SINK, struct.pack(">IIQI", size, stag, self.memory[stag][0], nondiscards), payload)
        return stag

    def read_start(self, stag, to, size):
        self.outstanding = [99, 1000, bytearray(size), False]
        self.out(struct.pack(">BBIIII", 0x41, 0x41, 0, 1, self.msn[1], 0) + struct.pack(
            ">IQIIQ", 99, 1000, size, stag, to))
        self.msn[1] += 1

    def read(self, stag, to, size):
        """RDMA Read of the endpoint's buffer."""
        self.read_start(stag, to, size)
        while not self.outstanding[3]:
            self.event()
        return bytes(self.outstanding[2])

    def answer(self, seg=1000):
        """Answers the oldest Read Request that we held."""
        sink, to, size, stag, src = self.reads.pop(0)
        base, memory = self.memory[stag]
        assert 0 <= src - base and src - base + size <= len(memory), "read outside"
        content = bytes(memory[src - base:src - base + size])
        self.out(*[struct.pack(">BBIQ", 0x81 | (i + seg >= size) << 6, 0x42, sink, to + i)
                   + content[i:i + seg] for i in range(0, max(1, size), seg)])

    # -- receiving
    def event(self):
        """One FPDU.  Finished Sends go to inbox."""
        size = struct.unpack(">H", self.exactly(2))[0]
        pad = -(size + 2) % 4
        u = self.exactly(size + pad)
        c = self.exactly(4)
        if self.crc_on:
            assert c == crc(struct.pack(">H", size) + u), "crc"
        u = u[:size]
        assert len(u) <= 1400 and u[1] >> 6 == 1
        op, last = u[1] & 15, bool(u[0] & 0x40)
        if u[0] & 0x80:
            self.on_tagged(op, last, u)
            return
        stag, qn, msn, mo = struct.unpack(">IIII", u[2:18])
        assert (msn, mo) == (self.rx_msn[qn], len(self.part)), (op, msn, mo)
        self.part += u[18:]
        if not last:
            return
        raw, self.part = self.part, b""
        self.rx_msn[qn] += 1
        if qn == 0:
            self.inbox.append(SimpleNamespace(op=op, inv=stag if op in (4, 6) else None, raw=raw))
        elif qn == 1:
            self.reads.append(struct.unpack(">IQIIQ", raw))
            if not self.hold_reads:
                self.answer()
        else:
            raise AssertionError("terminate " + raw[:4].hex())

    def on_tagged(self, op, last, u):
        stag, to = struct.unpack(">IQ", u[2:14])
        if op == 0:
            if len(u) > 14:
                base, memory = self.memory[stag]
                assert base <= to and to + len(u) - 14 <= base + len(memory), "write outside"
                memory[to - base:to - base + len(u) - 14] = u[14:]
        else:
            assert op == 2 and self.outstanding
            want, base, buf, _ = self.outstanding
            assert stag == want
            buf[to - base:to - base + len(u) - 14] = u[14:]
            self.outstanding[3] = last

    def send_message(self):
        while not self.inbox:
            self.event()
        return self.inbox.pop(0)

    def next(self, mid=None, skip=True):
        """The next SDP message, without plain credit updates."""
        while True:
            m = self.send_message()
            m.bufs, m.flags, m.mid, size, m.mseq, m.ack = struct.unpack_from(">HBBIII", m.raw)
            m.ext, m.payload = m.raw[16:16 + EXT.get(m.mid, 0)], m.raw[16 + EXT.get(m.mid, 0):]
            assert size == len(m.raw) <= self.size, (size, len(m.raw))
            assert m.mseq == self.rx_mseq, ("MSeq", m.mseq, self.rx_mseq)
            solicited = m.mid in SE or (m.mid == DATA and m.flags & 3)
            assert (m.op in (5, 6)) == bool(solicited), ("opcode", m.op, m.mid)
            self.rx_mseq += 1
            self.unanswered += 1
            self.ack = m.mseq
            if skip and m.mid == DATA and not m.payload and not m.flags:
                continue
            assert mid is None or m.mid == mid, ("MID", m.mid, "instead of", mid, m.payload[:9])
            return m

    def value(self, mid):
        """The 32-bit word of the next message, which has this MID."""
        return struct.unpack(">I", self.next(mid).ext[:4])[0]

    def quiet(self, seconds=0.4):
        """Nothing but credit updates may come now."""
        got = self.collect(seconds, False)
        assert not got, ("unexpected MID", got[0].mid, got[0].payload[:9])

    def collect(self, seconds=0.4, skip=False):
        """All messages of the next time (Reads are noted or answered)."""
        end, got = time.monotonic() + seconds, []
        while True:
            while self.inbox:
                m = self.next(skip=False)
                if skip is True or m.payload or m.flags or m.mid != DATA:
                    got.append(m)
            left = end - time.monotonic()
            if left <= 0 or not select.select([self.s], [], [], left)[0]:
                return got
            self.event()

    def take(self, m):
        """Data of a Data or SrcAvail message; reads the latter."""
        if m.mid == DATA:
            return m.payload
        assert m.mid == SRC, ("MID", m.mid)
        size, stag, va = struct.unpack(">IIQ", m.ext)
        rest = size - len(m.payload)
        got = b""
        while len(got) < rest:
            n = min(60000, rest - len(got))
            got += self.read(stag, va + len(m.payload) + len(got), n)
        self.word(RDC, rest, inv=stag)
        return m.payload + got

    def stream(self, n):
        """n octets of the byte stream, whatever the mechanism."""
        out = b""
        while len(out) < n:
            m = self.next()
            if m.mid in (RDC, MODE):
                self.reports += struct.unpack(">I", m.ext) if m.mid == RDC else ()
                continue
            out += self.take(m)
            if self.unanswered >= max(1, self.bufs - 3):
                self.data()
        assert len(out) == n, (len(out), n)
        return out

    def echo(self, content):
        """Sends content by Data messages and gets it back."""
        step = self.their_size - 16
        out = b""
        for i in range(0, len(content), step):
            part = content[i:i + step]
            self.data(part)
            out += self.stream(len(part))
        assert out == content

    def end(self, reset=False, late=False):
        """The endpoint ends the connection; late messages may still come first."""
        try:
            while True:
                self.event()
        except EOFError:
            assert not reset, "FIN instead of RST"
        except ConnectionResetError:
            pass
        assert late or not self.inbox, ("message before the end", self.inbox[0].raw.hex())
        self.s.close()

    def bye(self):
        """Both halves close gracefully, our side first."""
        self.send(DISCONN)
        self.next(DISCONN)
        self.end()
