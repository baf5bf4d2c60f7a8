#!/usr/bin/env python3
"""Self-test of endpoint.py over loopback.

Purpose: a second, small iWARP peer written from the RFCs (it shares no code
with endpoint.py) plays each probe against the correct endpoint, where it must
pass, and against each bug's endpoint, where that bug's probe must fail.  It
plays the Initiator against --listen and the Responder against --connect.

Limits: it shows that the bugs exist and the correct version holds; it is no
conformance suite.

Usage: selftest.py [--correct] [--role responder|initiator|new|new-initiator] [--bug NAME]
"""

import argparse
import os
import random
import struct
import subprocess
import sys
import threading
import time
import socket

HERE = os.path.dirname(os.path.abspath(__file__))
ENDPOINT = os.path.join(HERE, "endpoint.py")
T = []
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = _c >> 1 ^ (0x82F63B78 & -(_c & 1))
    T.append(_c)


def crc(data):
    c = 0xFFFFFFFF
    for b in data:
        c = T[(c ^ b) & 255] ^ c >> 8
    return (c ^ 0xFFFFFFFF).to_bytes(4, "little")


assert crc(b"123456789") == 0xE3069283.to_bytes(4, "little")


class Server:
    """An endpoint.py process."""

    def __init__(self, service="echo", bug=None, *more):
        self.service = service
        command = [sys.executable, "-B", ENDPOINT, "--listen", "127.0.0.1:0", "--service", service]
        if bug:
            command += ["--bug", bug]
        self.process = subprocess.Popen(command + list(more), stdout=subprocess.PIPE, text=True)
        host, port = self.process.stdout.readline().strip().rsplit(":", 1)
        self.address = (host, int(port))

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        self.process.stdout.close()


class Client:
    """An endpoint.py --connect process, and the socket it connects to."""

    def __init__(self, service="echo", bug=None, *more):
        self.listener = socket.create_server(("127.0.0.1", 0))
        self.listener.settimeout(5)
        command = [sys.executable, "-B", ENDPOINT, "--service", service, "--connect",
                   "127.0.0.1:%d" % self.listener.getsockname()[1]]
        if bug:
            command += ["--bug", bug]
        self.process = subprocess.Popen(command + list(more), stderr=subprocess.PIPE, text=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()
        text = self.process.stderr.read()
        self.process.stderr.close()
        self.listener.close()
        if text:
            print(text, file=sys.stderr)
            raise AssertionError("endpoint.py has written an error")

    def accept(self):
        """The next connection, up to its Request."""
        return Responder(self.listener.accept()[0])

    def start(self, **reply):
        """The next connection, up to the Reply."""
        p = self.accept()
        p.answer(**reply)
        return p


def request(rev=1, crc_on=True, markers=False, enhanced=None, private=b"", key=b"MPA ID Req Frame",
            reject=False):
    if enhanced:
        private = struct.pack(">HH", *enhanced) + private
    flags = markers << 7 | crc_on << 6 | reject << 5 | (enhanced is not None) << 4
    return key + struct.pack(">BBH", flags, rev, len(private)) + private


class Peer:
    """The Initiator side of one stream."""

    def __init__(self, server, timeout=3.0, setup=True, rcvbuf=None, **how):
        self.s = socket.socket()
        if rcvbuf:
            self.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, rcvbuf)
        self.s.settimeout(timeout)
        self.s.connect(server.address)
        self.s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.msn = [1, 1, 1]
        self.rx_msn = [1, 1, 1]
        self.pos = 0
        self.markers = how.get("markers", False)
        self.want_crc = how.get("crc_on", True)
        if setup:
            self.s.sendall(request(**how))
            self.setup_reply()

    def setup_reply(self):
        head = self.exactly(20)
        assert head[:16] == b"MPA ID Rep Frame"
        self.flags, self.rev, size = struct.unpack(">BBH", head[16:])
        self.private = self.exactly(size)
        self.crc_on = bool(self.flags & 0x40) or self.want_crc

    def exactly(self, n):
        out = bytearray()
        while len(out) < n:
            part = self.s.recv(n - len(out))
            if not part:
                raise EOFError
            out += part
        return bytes(out)

    # -- sending
    @staticmethod
    def fpdu(ulpdu, bad=False):
        body = struct.pack(">H", len(ulpdu)) + ulpdu
        body += bytes(-len(body) % 4)
        c = crc(body)
        return body + (bytes([c[0] ^ 1]) + c[1:] if bad else c)

    def untagged(self, qn, op, data=b"", mo=0, last=True, msn=None, stag=0, rv=1):
        m = self.msn[qn] if msn is None else msn
        if last and msn is None:
            self.msn[qn] += 1
        return struct.pack(">BBIIII", last << 6 | 1, rv << 6 | op, stag, qn, m, mo) + data

    @staticmethod
    def tagged(op, stag, to, data=b"", last=True):
        return struct.pack(">BBIQ", 0x81 | last << 6, 0x40 | op, stag, to & (1 << 64) - 1) + data

    def send(self, data, seg=1400, op=3, stag=0):
        out = bytearray()
        for mo in range(0, max(1, len(data)), seg):
            out += self.fpdu(self.untagged(0, op, data[mo:mo + seg], mo, mo + seg >= len(data), stag=stag))
        self.s.sendall(out)

    def raw(self, *ulpdus):
        self.s.sendall(b"".join(self.fpdu(u) for u in ulpdus))

    def read_req(self, size, stag, to, sink=7, sink_to=0):
        return self.untagged(1, 1, struct.pack(">IQIIQ", sink, sink_to, size, stag, to))

    # -- receiving
    def piece(self, n, start, covered):
        """n octets of the stream, with markers checked and taken out."""
        out = bytearray()
        while True:
            if self.markers and self.pos % 512 == 0:
                m = self.exactly(4)
                want = 0 if start is None else self.pos - start
                assert m == struct.pack(">HH", 0, want), ("marker", m, want)
                covered += m
                self.pos += 4
            if len(out) == n:
                return bytes(out)
            step = n - len(out)
            if self.markers:
                step = min(step, 512 - self.pos % 512)
            part = self.exactly(step)
            covered += part
            out += part
            self.pos += step

    def recv(self):
        covered = bytearray()
        if self.markers and self.pos % 512 == 0:
            m = self.exactly(4)
            assert m == bytes(4), m
            covered += m
            self.pos += 4
        start = self.pos
        size = struct.unpack(">H", self.piece(2, start, covered)[:2])[0]
        body = self.piece(size + -(size + 2) % 4, start, covered)
        assert not any(body[size:])
        c = self.exactly(4)
        self.pos += 4
        if self.crc_on:
            assert c == crc(covered), "crc"
        return body[:size]

    def message(self, qn=0, op=3):
        """One untagged message."""
        out = b""
        while True:
            u = self.recv()
            assert u[0] & 0x83 == 1 and u[1] == 0x40 | op, u[:18].hex()
            stag, q, msn, mo = struct.unpack(">IIII", u[2:18])
            assert (stag, q, msn, mo) == (0, qn, self.rx_msn[qn], len(out)), u[:18].hex()
            assert len(u) - 18 <= 1400
            out += u[18:]
            if u[0] & 0x40:
                self.rx_msn[qn] += 1
                return out

    def to_buffer(self, op, stag, to, size):
        """One tagged message into (stag, to) of this size."""
        out = b""
        while True:
            u = self.recv()
            assert u[0] & 0x83 == 0x81 and u[1] == 0x40 | op, u[:18].hex()
            assert struct.unpack(">IQ", u[2:14]) == (stag, (to + len(out)) & (1 << 64) - 1)
            assert len(u) - 14 <= 1400
            out += u[14:]
            if u[0] & 0x40:
                assert len(out) == size, (len(out), size)
                return out

    def terminate(self, layer, etype, code, seg=None, rdma=b""):
        """The next message must be this Terminate, then FIN."""
        t = self.message(2, 7)
        flags = (0xC0 if seg is not None else 0) | (0x20 if rdma else 0)
        want = bytes([layer << 4 | etype, code, flags, 0])
        if seg is not None:
            want += struct.pack(">H", len(seg)) + seg[:14 if seg[0] & 0x80 else 18] + rdma
        assert t == want, (t.hex(), want.hex())
        self.end()

    def end(self):
        assert self.s.recv(1) == b""
        self.s.close()

    def echo(self, data, seg=1400):
        self.send(data, seg)
        got = self.message()
        assert got == data, (len(got), len(data))


def octets(n, seed=1):
    return random.Random(seed * 1000003 + n).randbytes(n)


class Rping(Peer):
    """A client of the rping service."""

    def announce(self, stag, to, size):
        self.send(struct.pack(">QII", to, stag, size))

    def give(self, data, stag=77, to=0x1000):
        """Lets the server read data; notes the server's buffer."""
        self.announce(stag, to, len(data))
        r = self.message(1, 1)
        self.sink, self.to, size, src, src_to = struct.unpack(">IQIIQ", r)
        assert (size, src, src_to) == (len(data), stag, to)
        for off in range(0, max(1, len(data)), 1400):
            self.raw(self.tagged(2, self.sink, self.to + off, data[off:off + 1400], off + 1400 >= len(data)))
        assert self.message() == bytes(16)

    def take(self, size, want, stag=78, to=0x2000):
        """Lets the server write its data."""
        self.announce(stag, to, size)
        got = self.to_buffer(0, stag, to, len(want))
        assert got == want
        assert self.message() == bytes(16)

    def read(self, off, size, sink_to=0x500):
        self.raw(self.read_req(size, self.sink, self.to + off, 9, sink_to))
        return self.to_buffer(2, 9, sink_to, size)


# ---------------------------------------------------------------- probes
# Each probe has the arguments of its server in SERVERS (default: echo).

def sizes(s):
    for how in (dict(), dict(crc_on=False), dict(rev=2), dict(rev=2, enhanced=(16, 16)), dict(markers=True)):
        p = Peer(s, **how)
        for n in (0, 1, 2, 3, 4, 17, 1399, 1400, 1401, 2800, 65535, 65536, 70001):
            p.echo(octets(n))
        p.s.shutdown(socket.SHUT_WR)
        p.end()


def big(s):
    p = Peer(s, timeout=20)
    for seg in (1400, 65000, 65517):
        p.echo(octets(1 << 20), seg)
    p.send(octets((1 << 20) + 1), 65000)
    p.message(2, 7)


def parallel(s):
    errors = []

    def one(i):
        try:
            p = Peer(s, timeout=30)
            for n in (5, 300000, 1 << 18, 1401, 77):
                p.echo(octets(n, i))
        except BaseException as e:
            errors.append(e)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors, errors


def tcp_cuts(s):
    for size in (1, 2, 3, 7, 19, 20, 21):
        p = Peer(s)
        data = b"".join(p.fpdu(p.untagged(0, 3, octets(n))) for n in (0, 1, 30))
        for i in range(0, len(data), size):
            p.s.sendall(data[i:i + size])
            time.sleep(0.002)
        for n in (0, 1, 30):
            assert p.message() == octets(n)


def setups(s):
    p = Peer(s, rev=2, enhanced=(5, 7))
    assert p.rev == 2 and p.flags & 0x90 == 0x10
    ird, ord_ = struct.unpack(">HH", p.private)
    assert ird >= 7 and ird < 0x4000 and ord_ <= 5, (ird, ord_)
    p.echo(b"x")
    p = Peer(s, rev=2, enhanced=(0x3FFF, 0x3FFF))
    assert p.private == b"\x3f\xff\x3f\xff"
    for n, first in enumerate(("send", "write", "read")):
        p = Peer(s, rev=2, enhanced=((0x8000 | (0x4000 if n == 0 else 0)) + 4, (0, 0x8000, 0x4000)[n] + 4))
        ird, ord_ = struct.unpack(">HH", p.private)
        assert ird & 0x8000 and (ird & 0x4000, ord_ & 0xC000) == (0x4000 * (n == 0), (0, 0x8000, 0x4000)[n])
        if first == "send":
            p.send(b"")
        elif first == "write":
            p.raw(p.tagged(0, 0, 0))
        else:
            p.raw(p.read_req(0, 0, 0))
            p.to_buffer(2, 7, 0, 0)
        p.echo(b"hello")
    p = Peer(s, private=bytes(512))
    assert p.rev == 1 and p.flags & 0x3F == 0 and p.private == b""
    p.echo(b"hi")
    bad = (request(rev=0), request(rev=3), request(private=bytes(513)), request() + b"x",
           request(key=b"MPA ID Rep Frame"), request(rev=2, enhanced=(1, 1))[:18] + bytes(2))
    for frame in bad:
        p = Peer(s, setup=False)
        p.s.sendall(frame)
        try:
            assert p.s.recv(1) == b"", frame
        except ConnectionResetError:
            pass


def faults(s):
    """Terminates of the DDP and RDMAP layers."""
    head = lambda p, **k: p.untagged(0, 3, b"abc", **k)
    cases = [
        ((1, 2, 1), lambda p: struct.pack(">BBIIII", 0x41, 0x43, 0, 3, 1, 0) + b"a"),
        ((1, 2, 3), lambda p: head(p, msn=0)),
        ((1, 2, 3), lambda p: head(p, msn=2)),
        ((1, 2, 4), lambda p: head(p, mo=(1 << 20) + 4)),
        ((1, 2, 5), lambda p: head(p, mo=(1 << 20) - 1)),
        ((1, 2, 6), lambda p: b"\x42" + head(p)[1:]),
        ((1, 1, 4), lambda p: b"\xc2" + p.tagged(0, 1, 2, b"x")[1:]),
        ((1, 1, 0), lambda p: p.tagged(0, 1, 2, b"x")),
        ((0, 2, 5), lambda p: head(p, rv=2)),
        ((0, 2, 6), lambda p: p.untagged(0, 8, b"a")),
        ((0, 2, 6), lambda p: p.untagged(0, 1, b"a")),
        ((0, 2, 6), lambda p: p.untagged(1, 3, bytes(28))),
        ((0, 2, 6), lambda p: p.tagged(2, 1, 2)),
        ((0, 2, 6), lambda p: p.tagged(3, 1, 2)),
        ((0, 1, 9), lambda p: p.untagged(0, 4, b"a", stag=5)),
        ((1, 2, 4), lambda p: head(p, mo=4)),
    ]
    for want, make in cases:
        p = Peer(s)
        u = make(p)
        p.raw(u)
        p.terminate(*want, u)
    p = Peer(s)
    u = p.read_req(5, 1, 2)
    p.raw(u)
    p.terminate(0, 1, 0, u, u[18:])
    p = Peer(s)
    p.s.sendall(p.fpdu(b"\x41\x43"))
    p.terminate(1, 0, 0)
    p = Peer(s)
    p.raw(p.untagged(2, 7, bytes(4)))
    p.end()


def send_kinds(s):
    p = Peer(s)
    p.send(b"solicited", op=5)
    assert p.message() == b"solicited"
    p.raw(p.read_req(0, 1, 2, 3, 1 << 63), p.tagged(0, 99, 5))
    p.to_buffer(2, 3, 1 << 63, 0)


def rping_rounds(s):
    for how in (dict(), dict(crc_on=False), dict(markers=True)):
        p = Rping(s, **how)
        for n in (0, 1, 64, 4000):
            p.give(octets(n))
            p.take(4000, octets(n))
        p.give(octets(4000))
        assert p.read(0, 4000) == octets(4000)
        p.raw(p.tagged(0, p.sink, p.to + 10, b"inserted"))
        assert p.read(9, 10) == octets(4000)[9:10] + b"inserted" + octets(4000)[18:19]


def rping_faults(s):
    def wrong(want, make, read=False):
        p = Rping(s)
        p.give(b"data")
        u = make(p)
        p.raw(u)
        p.terminate(*want, u, u[18:] if read else b"")
    wrong((1, 1, 1), lambda p: p.tagged(0, p.sink, p.to + 3999, b"ab"))
    wrong((1, 1, 1), lambda p: p.tagged(0, p.sink, p.to - 1, b"ab"))
    wrong((1, 1, 3), lambda p: p.tagged(0, p.sink, -1, b"ab"))
    wrong((0, 1, 1), lambda p: p.read_req(4001, p.sink, p.to), True)
    wrong((0, 1, 4), lambda p: p.read_req(2, p.sink, (1 << 64) - 1), True)
    p = Rping(s)
    p.give(b"data")
    p.send(struct.pack(">QII", 5, 6, 4), op=6, stag=p.sink)     # invalidates
    p.to_buffer(0, 6, 5, 4)
    p.message()
    u = p.tagged(0, p.sink, p.to, b"a")
    p.raw(u)
    p.terminate(1, 1, 0, u)


def marker_sizes(s):
    for n in range(476, 500):           # at 488 a marker comes just before the CRC
        Peer(s, markers=True).echo(octets(n))
    p = Peer(s, markers=True)
    for n in range(400, 560):
        p.echo(octets(n), 60000)
    for n in (1000, 1400, 5000):
        p.echo(octets(n))


def marker_long(s):
    p = Peer(s, markers=True)
    for _ in range(5):
        p.echo(octets(30000))


def one_big(s):
    Peer(s, timeout=10).echo(octets(65537))


def big_fpdu(s):
    Peer(s).echo(octets(40000), 60000)


def count_301(s):
    p = Peer(s)
    for i in range(301):
        p.echo(b"%d" % i)


def rping_257(s):
    p = Rping(s)
    for i in range(258):
        p.give(b"%d" % i)
        p.take(9, b"%d" % i)


def sink_carry(s):
    p = Rping(s)
    p.give(octets(4000))
    p.read(0, 4000, 0x1FFFFFF00)


def high_to(s):
    p = Rping(s)
    p.give(b"data")
    u = p.tagged(0, p.sink, p.to + (1 << 40), b"x")
    p.raw(u)
    p.terminate(1, 1, 1, u)


def bad_crc(make, before=False):
    def probe(s):
        p = Rping(s) if before else Peer(s)
        # Without a correct first FPDU, the Responder sends no Terminate.
        if before:
            p.give(b"data")
        else:
            p.echo(b"first")
        p.s.sendall(p.fpdu(make(p), True))
        p.terminate(2, 0, 2)
    return probe


def crc_second(s):
    p = Peer(s)
    good, bad = p.fpdu(p.untagged(0, 3, b"one")), p.fpdu(p.untagged(0, 3, b"two"), True)
    p.s.sendall(good + bad)
    assert p.message() == b"one"
    p.terminate(2, 0, 2)


def crc_split(s):
    p = Peer(s)
    p.echo(b"first")
    bad = p.fpdu(p.untagged(0, 3, b"two"), True)
    p.s.sendall(bad[:-2])
    time.sleep(0.1)
    p.s.sendall(bad[-2:])
    p.terminate(2, 0, 2)


def damaged_header(s):
    p = Peer(s)
    p.echo(b"first")
    f = bytearray(p.fpdu(p.untagged(0, 3, b"two")))
    f[8] ^= 4                   # queue number
    p.s.sendall(f)
    p.terminate(2, 0, 2)


def write_in_send(s):
    p = Rping(s)
    p.give(b"data")
    a = struct.pack(">QII", 0x2000, 78, 4)
    p.raw(p.untagged(0, 3, a[:8], 0, False), p.tagged(0, p.sink, p.to, b"DA"),
          p.read_req(4, p.sink, p.to), p.untagged(0, 3, a[8:], 8))
    assert p.to_buffer(2, 7, 0, 4) == b"DAta"
    assert p.to_buffer(0, 78, 0x2000, 4) == b"DAta"


def empty_last(s):
    p = Peer(s)
    p.raw(p.untagged(0, 3, b"abc", 0, False), p.untagged(0, 3, b"", 3))
    assert p.message() == b"abc"


def descending(s):
    p = Peer(s)
    p.raw(p.untagged(0, 3, b"def", 3, False), p.untagged(0, 3, b"abc", 0, False), p.untagged(0, 3, b"ghi", 6))
    assert p.message() == b"abcdefghi"


def gap(s):
    p = Peer(s)
    p.echo(b"secret-secret")
    u = p.untagged(0, 3, b"xx", 8)
    p.raw(p.untagged(0, 3, b"ab", 0, False, msn=2), u[:10] + b"\0\0\0\2" + u[14:])
    p.message(2, 7)


def late_invalidate(s):
    p = Rping(s)
    p.give(b"data")
    a = struct.pack(">QII", 0x2000, 78, 4)
    p.raw(p.untagged(0, 4, a[:8], 0, False, stag=p.sink), p.read_req(4, p.sink, p.to),
          p.untagged(0, 4, a[8:], 8, stag=p.sink))
    assert p.to_buffer(2, 7, 0, 4) == b"data"


def read_order(s):
    p = Peer(s)
    p.raw(*[p.read_req(0, 0, 0, i) for i in range(4)])
    for i in range(4):
        p.to_buffer(2, i, 0, 0)


def reads_16(s):
    p = Peer(s, rev=2, enhanced=(16, 16))
    for _ in range(2):
        p.raw(*[p.read_req(0, 0, 0, i) for i in range(16)])
        for i in range(16):
            p.to_buffer(2, i, 0, 0)
    p.raw(*[p.read_req(0, 0, 0, i) for i in range(17)])
    for i in range(16):
        p.to_buffer(2, i, 0, 0)
    assert p.message(2, 7)[:2] == b"\x12\x02"


def odd_read(s):
    p = Rping(s)
    p.give(octets(4000))
    assert p.read(0, 3001) == octets(4000)[:3001]


def write_then_read(s):
    p = Rping(s)
    p.give(b"data")
    p.raw(p.tagged(0, p.sink, p.to, b"new!"), p.read_req(4, p.sink, p.to))
    assert p.to_buffer(2, 7, 0, 4) == b"new!"


def old_stag(s):
    p = Rping(s)
    p.give(b"data")
    p.s.shutdown(socket.SHUT_WR)
    p.end()
    time.sleep(0.1)
    q = Rping(s)
    u = q.tagged(0, p.sink, p.to, b"x")
    q.raw(u)
    q.terminate(1, 1, 0, u)


def refusals(s):
    for _ in range(10):
        p = Peer(s, setup=False)
        p.s.sendall(request(rev=9))
        assert p.s.recv(1) == b""
    Peer(s).echo(b"still there")


def half_send(s):
    p = Peer(s)
    p.raw(p.untagged(0, 3, octets(500), 0, False))
    p.s.close()
    time.sleep(0.2)
    Peer(s).echo(b"short")


def fin_early(s):
    p = Peer(s, timeout=30, rcvbuf=4096)
    for _ in range(10):
        p.send(octets(1 << 20), 60000)
    p.s.shutdown(socket.SHUT_WR)
    time.sleep(3)
    for _ in range(10):
        assert p.message() == octets(1 << 20)
    p.end()


def after_fault(s):
    p = Peer(s)
    u = p.tagged(3, 1, 2)
    p.raw(u, p.untagged(0, 3, b"late"))
    p.terminate(0, 2, 6, u)


def neighbour(s):
    p, q = Peer(s), Peer(s)
    p.echo(b"1")
    q.echo(b"first")
    q.s.sendall(q.fpdu(q.untagged(0, 3, b"a"), True))
    q.terminate(2, 0, 2)
    p.echo(b"2")


def two_in_pieces(s):
    """Two Sends at once, each in pieces, in two segments each."""
    p, q = Peer(s), Peer(s)
    data = []
    for i, c in enumerate((p, q)):
        d = octets(200, i)
        data.append(c.fpdu(c.untagged(0, 3, d[:100], 0, False)) + c.fpdu(c.untagged(0, 3, d[100:], 100)))
    for start, end in ((0, 50), (50, 130), (130, 400)):
        for c, d in zip((p, q), data):
            c.s.sendall(d[start:end])
            time.sleep(0.05)
    for i, c in enumerate((p, q)):
        assert c.message() == octets(200, i)


def three_open(s):
    peers = [Peer(s) for _ in range(4)]
    for p in peers:
        p.echo(b"a")
    for p in peers:
        p.echo(b"b")


def cut(at, wait=0.1):
    def probe(s):
        p = Peer(s)
        f = p.fpdu(p.untagged(0, 3, b"payload"))
        p.s.sendall(f[:at])
        time.sleep(wait)
        p.s.sendall(f[at:])
        assert p.message() == b"payload"
    return probe


def slow_reader(s):
    p = Peer(s, timeout=60, rcvbuf=4096)
    for _ in range(12):
        p.send(octets(1 << 20), 60000)
    time.sleep(3)
    for _ in range(12):
        assert p.message() == octets(1 << 20)


def two_roles(s):
    """endpoint.py --connect against endpoint.py --listen."""
    service = s.service
    for more in ((), ("--rev", "2"), ("--enhanced",), ("--no-crc",), ("--markers",),
                 ("--markers", "--enhanced"), ("--private", "7"), ("--ird", "3", "--enhanced")):
        command = [sys.executable, "-B", ENDPOINT, "--connect", "%s:%d" % s.address, "--once",
                   "--service", service, "--size", "3000", "--count", "20", "--greeting", "3000"]
        r = subprocess.run(command + list(more), capture_output=True, text=True, timeout=30)
        assert r.returncode == 0 and "20 rounds, ok" in r.stdout, (more, r)


class Responder(Peer):
    """The other side of endpoint.py --connect."""

    def __init__(self, sock):
        self.s = sock
        sock.settimeout(5)
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.msn, self.rx_msn, self.pos, self.sent = [1, 1, 1], [1, 1, 1], 0, 0
        head = self.exactly(20)
        assert head[:16] == b"MPA ID Req Frame"
        self.flags, self.rev, size = struct.unpack(">BBH", head[16:])
        self.private = self.exactly(size)

    def answer(self, pieces=None, pause=0.0, **reply):
        """Sends the Reply, cut at the offsets in pieces."""
        frame = request(key=b"MPA ID Rep Frame", **reply)
        self.markers = reply.get("markers", False)
        self.crc_on = reply.get("crc_on", True) or bool(self.flags & 0x40)
        edges = [0, *(pieces or ()), len(frame)]
        for a, b in zip(edges, edges[1:]):
            self.s.sendall(frame[a:b])
            time.sleep(pause)

    def fpdu(self, ulpdu, bad=False):
        """The same as in Peer, with markers if the Request wants them."""
        if not self.flags & 0x80:
            return Peer.fpdu(ulpdu, bad)
        body = struct.pack(">H", len(ulpdu)) + ulpdu
        body += bytes(-len(body) % 4)
        out, start = bytearray(), None
        for i in range(0, len(body) + 4, 4):
            if (self.sent + len(out)) % 512 == 0:
                out += struct.pack(">HH", 0, 0 if start is None else len(out) - start)
            start = len(out) if start is None else start
            out += body[i:i + 4]
        c = crc(out)
        out += bytes([c[0] ^ 1]) + c[1:] if bad else c
        self.sent += len(out)
        return bytes(out)

    def greeted(self, size=4):
        assert len(self.message()) == size
        return self

    def announced(self):
        """(TO, STag, size) of an rping announcement."""
        data = self.message()
        assert len(data) == 16
        return struct.unpack(">QII", data)

    def fetch(self, size, stag, to):
        self.raw(self.read_req(size, stag, to, 9, 0x500))
        return self.to_buffer(2, 9, 0x500, size)

    def puts(self, stag, to, data, seg=1400):
        """The ULPDUs of a Write."""
        return [self.tagged(0, stag, to + off, data[off:off + seg], off + seg >= len(data))
                for off in range(0, max(1, len(data)), seg)]

    def go_ahead(self, data=bytes(16)):
        return self.untagged(0, 3, data)

    def half(self, empty=False):
        """The first half of an rping round: (data, STag of the sink, its TO)."""
        to, stag, size = self.announced()
        data = self.fetch(size, stag, to)
        self.raw(self.go_ahead(b"" if empty else bytes(16)))
        to, stag, sink = self.announced()
        assert sink == size
        return data, stag, to

    def round(self, seg=1400, empty=False):
        """One rping round as its server; returns the data."""
        data, stag, to = self.half(empty)
        self.raw(*self.puts(stag, to, data, seg), self.go_ahead(b"" if empty else bytes(16)))
        return data

    def closed(self):
        """The Initiator must close without another octet."""
        try:
            assert self.s.recv(1) == b""
        except ConnectionResetError:
            pass
        self.s.close()

    def finish(self):
        self.s.shutdown(socket.SHUT_WR)
        self.end()


def rtrs(c):
    """The Initiator's RTRs, and its refusal of a Responder's values."""
    for enhanced, markers in (((0x8004, 0x8004), False), ((0xC004, 0xC004), True), ((0xC004, 4), False),
                              ((0x8004, 0x4004), True), ((0xBFFF, 0xBFFF), False),
                              ((0x8000, 0x4010), False)):
        p = c.start(rev=2, enhanced=enhanced, markers=markers)
        assert struct.unpack(">HH", p.private) == (0xC010, 0xC010) and p.flags == 0x50
        if enhanced[1] & 0x8000:
            u = p.recv()
            assert u == p.tagged(0, 0, 0), u
        elif enhanced[0] & 0x4000:
            assert p.message() == b""
        elif enhanced[0] & 0x3FFF:
            sink, to, size, _, _ = struct.unpack(">IQIIQ", p.message(1, 1))
            assert size == 0
            p.send(b"earlier than the answer")
            assert p.message() == b"earlier than the answer"
            p.raw(p.tagged(2, sink, to))
        else:                           # a Read, but the Responder holds none
            p.terminate(2, 0, 7)
            continue
        p.echo(b"")
        p.echo(octets(5000))
        p.finish()
    for enhanced, code in (((4, 17), 6), ((0x8004, 4), 7), ((0xC004, 0xC011), 6), ((0x4004, 0xC004), 7)):
        c.start(rev=2, enhanced=enhanced).terminate(2, 0, code)


def echoes(c):
    """Sizes, with all combinations of M and C; Reply with private data."""
    for n in (0, 1, 7, 512):
        for markers in (False, True):
            for crc_on in (False, True):
                p = c.start(markers=markers, crc_on=crc_on, private=octets(n))
                p.greeted()
                for size in (0, 1, 3, 1400, 1401, 70001):
                    p.echo(octets(size))
                p.finish()


def enhanced_echoes(c):
    for markers in (False, True):
        p = c.start(rev=2, enhanced=(16, 16), markers=markers, private=octets(5))
        p.greeted()
        for size in (0, 1, 3, 1400, 1401, 70001):
            p.echo(octets(size))
        p.finish()


def replies(c):
    """Bad Replies, Replies in pieces, late ones; after each the Initiator comes again."""
    good = request(key=b"MPA ID Rep Frame")
    for frame in (request(), good[:16] + b"\x40\0\0\0", good[:16] + b"\x40\2\0\0", good[:18] + b"\x02\x01" + bytes(513),
                  request(key=b"MPA ID Rep Frame", reject=True), request(key=b"MPA ID Rep Frame", reject=True, private=b"no")):
        p = c.accept()
        assert (p.flags, p.rev, p.private) == (0x40, 1, b"")
        p.s.sendall(frame)
        p.closed()
    p = c.accept()
    p.s.sendall(good[:7])
    p.s.close()
    p = c.accept()
    p.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    p.s.close()
    p = c.start(pieces=range(1, 28), pause=0.005, private=b"12345678")
    p.greeted().echo(b"x")
    p.finish()
    p = c.accept()
    time.sleep(1)
    began = time.monotonic()
    p.s.sendall(good[:16] + b"\x5f\1\0\0")       # Res is not checked
    p.markers, p.crc_on = False, True
    p.greeted().echo(b"x")
    p.finish()
    c.accept()
    assert 0.15 < time.monotonic() - began < 1


def rping_client(c):
    """Three rounds for each connection, whose data change."""
    seen = set()
    for how in (dict(), dict(markers=True), dict(crc_on=False), dict(private=octets(9))):
        p = c.start(**how)
        for seg in (1400, 40, 1):
            seen.add(p.round(seg, empty=seg == 40))
        p.end()
    assert len(seen) == 12
    data, stag, to = (p := c.start()).half()
    p.raw(*p.puts(stag, to, data[:-1]), p.go_ahead())
    p.end()                             # the last octet is missing


def rping_enhanced(c):
    for enhanced in ((0xC002, 0xC002), (0xC002, 2), (0x8002, 0x4002)):
        p = c.start(rev=2, enhanced=enhanced)
        if enhanced[1] & 0x8000:
            p.recv()
        elif enhanced[0] & 0x4000:
            assert p.message() == b""
        else:
            sink, to, *_ = struct.unpack(">IQIIQ", p.message(1, 1))
            p.raw(p.tagged(2, sink, to))
        for _ in range(3):
            p.round(empty=True)
        p.end()


def rping_client_faults(c):
    """Terminates of the rping Initiator."""
    def wrong(want, make, read=False):
        p = c.start()
        to, stag, size = p.announced()
        u = make(p, stag, to, size)
        p.raw(u)
        p.terminate(*want, u, u[18:] if read else b"")
    wrong((1, 1, 1), lambda p, stag, to, size: p.tagged(0, stag, to + size - 1, b"ab"))
    wrong((1, 1, 0), lambda p, stag, to, size: p.tagged(0, stag ^ 1 << 31, to, b"ab"))
    wrong((0, 1, 1), lambda p, stag, to, size: p.read_req(size, stag, to + 1), True)
    wrong((0, 1, 0), lambda p, stag, to, size: p.read_req(1, stag ^ 1 << 31, to), True)
    wrong((1, 2, 3), lambda p, stag, to, size: p.untagged(0, 3, msn=2))
    p = c.start()
    p.announced()
    p.raw(p.untagged(2, 7, bytes(4)))
    p.end()


def private_sizes(c):
    for n in range(10):
        p = c.start()
        assert len(p.private) == n, (len(p.private), n)
        p.greeted().echo(b"x")
        p.finish()


# ---- one probe for each bug of the Initiator

def reject(c):
    c.start(reject=True).closed()
    c.start(reject=True, private=b"sorry").closed()


def rtr_write(c):
    p = c.start(rev=2, enhanced=(0xC004, 0x8004))
    assert p.recv() == p.tagged(0, 0, 0)
    p.echo(b"next")


def rtr_send(c):
    p = c.start(rev=2, enhanced=(0xC004, 4))
    assert p.message() == b""
    p.echo(b"")
    p.echo(b"next")


def high_ord(c):
    c.start(rev=2, enhanced=(16, 0x104)).terminate(2, 0, 6)


def eight_reads(c):
    p = c.start(rev=2, enhanced=(2, 8)).greeted()
    p.raw(*[p.read_req(0, 0, 0, i) for i in range(8)])
    for i in range(8):
        p.to_buffer(2, i, 0, 0)


def marked_echo(c):
    p = c.start(markers=True).greeted()
    for n in (400, 400, 3000):
        p.echo(octets(n))


def marked_sends(c):
    p = c.start(private=octets(20), markers=True).greeted()
    for n in (400, 400, 3000):
        p.echo(octets(n))


def read_inside(c):
    p = c.start()
    to, stag, size = p.announced()
    data = p.fetch(size, stag, to)
    assert p.fetch(3000, stag, to + 100) == data[100:3100]


def any_crc(c):
    p = c.start(crc_on=False).greeted()
    p.s.sendall(p.fpdu(p.untagged(0, 3, b"abc"), True))
    assert p.message() == b"abc"


def first_crc(c):
    p = c.start().greeted()
    p.s.sendall(p.fpdu(p.untagged(0, 3, b"abc"), True))
    p.terminate(2, 0, 2)


def write_and_go(c):
    p = c.start()
    p.round()
    p.half()


def two_in_turn(c):
    for _ in range(2):
        c.start().greeted().finish()


def cut_reply(c):
    p = c.accept()
    p.s.sendall(request(key=b"MPA ID Rep Frame")[:13])
    p.s.close()
    c.start().greeted()


def two_sinks(c):
    p, q = c.start(), c.start()
    halves = [(r, *r.half()) for r in (p, q)]
    for r, data, stag, to in halves:
        r.raw(*r.puts(stag, to, data))
    time.sleep(0.2)
    for r, *_ in halves:
        r.raw(r.go_ahead())
    for r, *_ in halves:
        r.half()


def one_waits(c):
    p, q = c.accept(), c.accept()
    p.answer()
    p.greeted().echo(b"meanwhile")
    q.answer()
    q.greeted().echo(b"later")


def cut_private(c):
    p = c.start(private=octets(8), pieces=(20,), pause=0.1)
    p.greeted().echo(b"abc")


def slow_private(c):
    p = c.accept()
    frame = request(key=b"MPA ID Rep Frame", private=octets(8))
    p.s.sendall(frame[:-1])
    p.s.settimeout(0.3)
    try:
        p.s.recv(1)
        assert False, "FPDU before the end of the Reply"
    except TimeoutError:
        pass
    p.s.settimeout(5)
    p.s.sendall(frame[-1:])
    p.markers, p.crc_on = False, True
    p.greeted()


def slow_reply(c):
    p = c.accept()
    time.sleep(0.8)
    p.answer()
    p.greeted().echo(b"abc")


def resets(s):
    """Connections that end with RST at bad moments harm no other."""
    for n in range(20):
        p = Rping(s)
        p.give(octets(4000))
        p.s.sendall(b"".join(p.fpdu(p.read_req(4000, p.sink, p.to)) for _ in range(16))[:-n - 1])
        p.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        p.s.close()
    p = Rping(s)
    p.give(octets(99))
    p.take(99, octets(99))


def tcp_cuts_random(s):
    """A mix of messages in random TCP pieces."""
    rng = random.Random(5)
    for turn in range(10):
        p = Rping(s)
        p.give(octets(3000))
        out, want = [], []
        for i in range(16):
            size = rng.randrange(3000)
            out += [p.fpdu(p.tagged(0, p.sink, p.to + 3000, bytes([i]))), p.fpdu(p.read_req(size, p.sink, p.to, i, i))]
            want.append((i, size))
        stream = b"".join(out)
        while stream:
            n = rng.randrange(1, 300)
            p.s.sendall(stream[:n])
            stream = stream[n:]
            time.sleep(0.0005)
        for i, size in want:
            assert p.to_buffer(2, i, i, size) == octets(3000)[:size]


# ---- probes of the second set of bugs

def page_cross(s):
    p = Rping(s)
    p.give(bytes(64))
    p.raw(p.tagged(0, p.sink, p.to + 27, b"0123456789"))
    assert p.read(0, 64) == bytes(27) + b"0123456789" + bytes(27)


def powers(s):
    p = Peer(s, timeout=10)
    for n in (1024, 4095, 4096, 8192):
        p.echo(octets(n))


def four_mib(s):
    p = Peer(s, timeout=15)
    for _ in range(66):
        p.echo(octets(65000), 65000)


def multiples(s):
    p = Peer(s)
    for n in (1400, 1401, 2799, 2800, 4200):
        p.echo(octets(n))


def late_crc(s):
    p = Peer(s)
    for _ in range(260):
        p.echo(b"x")
    p.s.sendall(p.fpdu(p.untagged(0, 3, b"bad"), True))
    p.terminate(2, 0, 2)


def crc_after_none(s):
    Peer(s, crc_on=False).echo(b"1")
    p = Peer(s)
    p.echo(b"2")
    p.s.sendall(p.fpdu(p.untagged(0, 3, b"bad"), True))
    p.terminate(2, 0, 2)


def marker_at_four(s):
    p = Peer(s, markers=True)
    p.echo(octets(480))
    p.echo(octets(40))


def marked_terminate(s):
    for first in (None, 440, 460, 480):
        p = Peer(s, markers=True)
        if first is None:
            p.raw(p.tagged(0, 0, 0))
        else:
            p.echo(octets(first))
        u = p.untagged(0, 3, b"abc", msn=9)
        p.raw(u)
        p.terminate(1, 2, 3, u)


def later_bounds(s):
    p = Rping(s)
    p.give(bytes(64))
    u = p.tagged(0, p.sink, p.to + 60, b"12345678")
    p.raw(p.tagged(0, p.sink, p.to + 56, b"1234", False), u)
    p.terminate(1, 1, 1, u)


def later_fault(s):
    p = Peer(s)
    first = p.untagged(0, 3, b"abc", 0, False)
    u = p.untagged(0, 3, b"defg", (1 << 20) + 5)
    p.raw(first, u)
    p.terminate(1, 2, 4, u)


def inv_segmented(s):
    p = Rping(s)
    p.give(b"data")
    a = struct.pack(">QII", 5, 6, 4)
    p.raw(p.untagged(0, 6, a[:8], 0, False, stag=p.sink), p.untagged(0, 6, a[8:], 8, stag=p.sink))
    p.to_buffer(0, 6, 5, 4)
    p.message()
    u = p.tagged(0, p.sink, p.to, b"a")
    p.raw(u)
    p.terminate(1, 1, 0, u)


def sink_high(s):
    p = Rping(s)
    p.give(b"data")
    for to in (0x500, 0x1_0000_0500, 0xFFFF_FFFF_0000_0000):
        assert p.read(0, 4, to) == b"data"


def two_during_read(s):
    p = Rping(s)
    p.announce(1, 0x1000, 4)
    sink, to, *_ = struct.unpack(">IQIIQ", p.message(1, 1))
    p.announce(2, 0x2000, 4)
    p.announce(3, 0x3000, 5)
    p.raw(p.tagged(2, sink, to, b"data"))
    assert p.message() == bytes(16)
    assert p.to_buffer(0, 2, 0x2000, 4) == b"data"
    assert p.message() == bytes(16)
    assert struct.unpack(">IQIIQ", p.message(1, 1))[2:] == (5, 3, 0x3000)


def burst(s):
    for n in (200, 600):
        p = Peer(s)
        p.s.sendall(b"".join(p.fpdu(p.untagged(0, 3, b"%d" % i)) for i in range(n)))
        for i in range(n):
            assert p.message() == b"%d" % i


def slow_then_more(s):
    p = Peer(s, timeout=5, rcvbuf=4096)
    p.crc_on = False            # spares our own checks
    for _ in range(8):
        p.send(bytes(1 << 20), 60000)
    time.sleep(1)
    for _ in range(8):
        assert len(p.message()) == 1 << 20
    p.echo(b"more")


def refused_then_16(s):
    p = Peer(s)
    p.echo(b"1")
    u = p.read_req(5, 1, 2)
    p.raw(u)
    p.terminate(0, 1, 0, u, u[18:])
    p = Peer(s)
    p.raw(*[p.read_req(0, 0, 0, i) for i in range(16)])
    for i in range(16):
        p.to_buffer(2, i, 0, 0)


def rst_while_sending(s):
    p, q = Peer(s), Peer(s)
    q.echo(b"1")
    p.raw(p.untagged(0, 3, b"abc", 0, False))
    time.sleep(0.1)
    q.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    q.s.close()
    time.sleep(0.1)
    p.raw(p.untagged(0, 3, b"def", 3))
    assert p.message() == b"abcdef"


def fin_before_crc(s):
    for markers in (False, True):
        for cut in (1, 2, 4, 5):
            p = Peer(s, markers=markers)
            p.echo(b"1")
            p.s.sendall(p.fpdu(p.untagged(0, 3, b"abcd"))[:-cut])
            p.s.shutdown(socket.SHUT_WR)
            p.end()


def plain_after_enhanced(s):
    Peer(s, rev=2, enhanced=(16, 16)).echo(b"1")
    p = Peer(s)
    assert (p.flags, p.rev, p.private) == (0x40, 1, b""), (p.flags, p.private)
    p.echo(b"2")


def auto_mixed(s):
    p = Peer(s, rev=2, enhanced=(0x3FFF, 4))
    assert struct.unpack(">HH", p.private)[1] == 0x3FFF, p.private
    p.echo(b"x")


# ---- probes of the third set of bugs (--role new)

def crc_for_none(s):
    p = Peer(s, crc_on=False)
    assert p.crc_on
    p.echo(b"abc")


def past_end(s):
    p = Rping(s)
    p.give(bytes(64))
    u = p.tagged(0, p.sink, p.to + 60, b"12345")
    p.raw(u)
    p.terminate(1, 1, 1, u)


def private_512(s):
    Peer(s, private=bytes(512)).echo(b"x")


def ord_after_small(s):
    Peer(s, rev=2, enhanced=(2, 2)).echo(b"1")
    p = Peer(s, rev=2, enhanced=(16, 16))
    assert struct.unpack(">HH", p.private)[1] == 16, p.private


def marker_in_front(s):
    p = Peer(s, markers=True)
    p.echo(octets(484))         # a marker, 508 octets with the CRC: the next FPDU begins at 512
    p.echo(b"x")


def pad_after_long(s):
    p = Peer(s)
    p.echo(b"\xff" * 100)
    p.echo(b"x")


def invalidated_write(s):
    p = Rping(s)
    p.give(b"data")
    p.raw(p.tagged(0, p.sink, p.to, b"DA"))
    p.send(struct.pack(">QII", 5, 6, 4), op=6, stag=p.sink)
    assert p.to_buffer(0, 6, 5, 4) == b"DAta"
    p.message()
    u = p.tagged(0, p.sink, p.to, b"a")
    p.raw(u)
    p.terminate(1, 1, 0, u)


def long_write(s):
    p = Rping(s)
    p.give(octets(4000))
    p.take(4000, octets(4000))


def terminate_msn(s):
    p = Peer(s)
    p.echo(b"1")
    u = p.tagged(0, 1, 2, b"x")
    p.raw(u)
    p.terminate(1, 1, 0, u)


def answer_then_terminate(s):
    p = Peer(s)
    p.echo(b"first")
    u = p.tagged(0, 1, 2, b"x")
    p.raw(p.untagged(0, 3, b"one"), u)
    assert p.message() == b"one"
    p.terminate(1, 1, 0, u)


def fin_inside(s):
    p = Peer(s)
    p.echo(b"1")
    p.s.sendall(p.fpdu(p.untagged(0, 3, b"abcd"))[:10])
    p.s.shutdown(socket.SHUT_WR)
    p.end()


def nine_open(s):
    peers = [Peer(s) for _ in range(9)]
    for p in peers:
        p.echo(b"a")
    for p in peers:
        p.echo(b"b")


def old_segment(s):
    p = Peer(s)
    p.raw(p.untagged(0, 3, b"abc", 0, False))
    time.sleep(1.3)
    p.raw(p.untagged(0, 3, b"def", 3))
    assert p.message() == b"abcdef"


def small_after_big(s):
    """Ten large answers wait; 40 different small Sends arrive together after them."""
    p = Peer(s, timeout=60, rcvbuf=4096)
    data = octets(1 << 20)
    for _ in range(10):
        p.send(data, 60000)
    texts = [b"%03d" % i * 30 for i in range(40)]
    p.raw(*[p.untagged(0, 3, text) for text in texts])
    for _ in range(10):
        assert p.message() == data
    for text in texts:
        assert p.message() == text


def two_sinks_at_once(s):
    p = Peer(s)
    p.raw(p.read_req(0, 0, 0, 3), p.read_req(0, 0, 0, 4))
    for stag in (3, 4):
        p.to_buffer(2, stag, 0, 0)


def read_during_read(s):
    p = Rping(s)
    p.announce(77, 0x1000, 4)
    sink, to, *_ = struct.unpack(">IQIIQ", p.message(1, 1))
    p.raw(p.read_req(0, 0, 0, 9))
    p.to_buffer(2, 9, 0, 0)
    p.raw(p.tagged(2, sink, to, b"data"))
    assert p.message() == bytes(16)


def solicited_33(s):
    p = Peer(s)
    for i in range(33):
        p.send(b"%d" % i, op=5)
        assert p.message() == b"%d" % i


def one_does_not_read(s):
    p, q = Peer(s, timeout=60, rcvbuf=4096), Peer(s)
    q.echo(b"1")
    data = octets(1 << 20)
    for _ in range(12):
        p.send(data, 60000)
    time.sleep(1)
    q.echo(b"2")


def slow_then_all(s):
    p = Peer(s, timeout=20, rcvbuf=4096)
    data = octets(1 << 20)
    for _ in range(12):
        p.send(data, 60000)
    time.sleep(3)
    for _ in range(12):
        assert p.message() == data


# ---- one probe for each bug of the second set of the Initiator (--role new-initiator)

def private_300(c):
    c.start(private=octets(300)).greeted().echo(b"x")


def odd_segments(c):
    p = c.start()
    p.round(41)
    p.round()                           # comes only if the data of the first round were equal


def send_before_answer(c):
    p = c.start(rev=2, enhanced=(0x8004, 0x4004))
    sink, to, *_ = struct.unpack(">IQIIQ", p.message(1, 1))
    p.send(b"early")
    assert p.message() == b"early"
    p.raw(p.tagged(2, sink, to))
    p.echo(b"later")


def rtr_with_crc(c):
    p = c.start(rev=2, enhanced=(0xC004, 0x8004), crc_on=False)
    assert p.crc_on and p.recv() == p.tagged(0, 0, 0)


def marked_start(c):
    p = c.start().greeted()
    p.echo(octets(484))                 # the next FPDU begins at 512
    p.echo(b"x")


def marked_after_rst(c):
    p = c.start(markers=True).greeted()
    p.echo(octets(100))
    p.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    p.s.close()
    c.start(markers=True).greeted().echo(octets(1000))


def request_after_reject(c):
    c.start(reject=True).closed()
    p = c.accept()
    assert p.flags == 0x40, p.flags


def fin_in_send(c):
    p = c.start().greeted()
    p.raw(p.untagged(0, 3, b"abc", 0, False))
    p.finish()


def three_rounds(c):
    p = c.start()
    for _ in range(3):
        p.round()
    p.end()


def later_msn(c):
    p = c.start().greeted()
    u = p.untagged(0, 3, b"def", 3, msn=7)
    p.raw(p.untagged(0, 3, b"abc", 0, False), u)
    p.terminate(1, 2, 3, u)


def two_faults(c):
    p = c.start().greeted()
    u = p.untagged(0, 3, b"a", msn=9)
    p.raw(u, p.tagged(0, 1, 2, b"x"))
    p.terminate(1, 2, 3, u)


def rtr_after_pieces(c):
    p = c.start(rev=2, enhanced=(0xC004, 0x8004), pieces=(20,), pause=0.1)
    assert p.recv() == p.tagged(0, 0, 0)
    p.greeted()


def after_five_seconds(c):
    p = c.start().greeted()
    time.sleep(5)
    p.echo(b"later")


def twelve_reads(c):
    p = c.start().greeted()
    p.raw(*[p.read_req(0, 0, 0, i) for i in range(12)])
    for i in range(12):
        p.to_buffer(2, i, 0, 0)


def fault_after_much(c):
    p = c.start().greeted()
    p.s.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    p.s.settimeout(60)
    data = octets(1 << 20)
    for _ in range(12):
        p.send(data, 60000)
    u = p.tagged(0, 1, 2, b"x")
    p.raw(u)
    for _ in range(12):
        assert p.message() == data
    p.terminate(1, 1, 0, u)


RPING = ("rping", "--size", "4000")
GENERAL = [(sizes, ("echo",)), (sizes, ("echo", "--no-crc")), (big, ("echo",)),
           (parallel, ("echo",)), (tcp_cuts, ("echo",)), (setups, ("echo",)), (faults, ("echo",)),
           (send_kinds, ("echo",)), (rping_rounds, RPING), (rping_faults, RPING), (resets, RPING),
           (tcp_cuts_random, RPING)]

PROBES = {
    "marker-ptr-second": (marker_sizes,), "marker-pad-crc": (marker_sizes,), "marker-64k": (marker_long,),
    "len-16bit": (one_big,), "msn-8bit": (count_301,), "read-msn-8bit": (rping_257, RPING),
    "lost-300th": (count_301,), "sink-to-carry": (sink_carry, RPING), "write-to-high": (high_to, RPING),
    "fpdu-32k": (big_fpdu,),
    "crc-read-request": (bad_crc(lambda p: p.read_req(0, 1, 2)),),
    "crc-write": (bad_crc(lambda p: p.tagged(0, p.sink, p.to, b"XX"), True), RPING),
    "crc-empty": (bad_crc(lambda p: p.untagged(0, 3)),),
    "crc-long": (bad_crc(lambda p: p.untagged(0, 3, octets(20000))),),
    "crc-second": (crc_second,), "check-before-crc": (damaged_header,),
    "write-between-send": (write_in_send, RPING), "last-empty": (empty_last,), "mo-append": (descending,),
    "gap-stale": (gap,), "inv-early": (late_invalidate, RPING), "read-order": (read_order,),
    "read-dup-16": (reads_16,), "read-tail-short": (odd_read, RPING), "read-before-write": (write_then_read, RPING),
    "stag-after-close": (old_stag, RPING), "refused-leak": (refusals,), "half-send-leak": (half_send,),
    "fin-drops": (fin_early,), "after-terminate": (after_fault,), "error-neighbour": (neighbour,),
    "shared-crc": (two_in_pieces,), "shared-reassembly": (two_in_pieces,), "shared-msn": (three_open,),
    "split-length": (cut(1),), "header-alone": (cut(20),), "split-crc": (crc_split,),
    "stall-half-second": (cut(10, 0.8),), "ird-off-by-one": (reads_16,), "sndbuf-drop": (slow_reader,),
}
PROBES.update({
    "page-cross": (page_cross, ("rping",)), "pow2-tail": (powers,), "ring-4m": (four_mib,),
    "exact-multiple": (multiples,), "crc-256": (late_crc,), "crc-sticky": (crc_after_none, ("echo",)),
    "marker-word": (marker_at_four,), "marker-term": (marked_terminate,),
    "later-bounds": (later_bounds, ("rping",)), "term-later-seg": (later_fault,),
    "inv-segmented": (inv_segmented, ("rping",)), "sink-hi-cache": (sink_high, ("rping",)),
    "rq-overwrite": (two_during_read, ("rping",)), "budget-256": (burst,),
    "stuck-window": (slow_then_more,), "read-slot-leak": (refused_then_16,),
    "rst-flush": (rst_while_sending,), "fin-no-crc": (fin_before_crc,),
    "rev-sticky": (plain_after_enhanced,), "auto-mixed": (auto_mixed,),
})
NEW_PROBES = {
    "crc-tx-c0": (crc_for_none,), "bounds-round": (past_end, ("rping",)), "pd-512": (private_512,),
    "ord-sticky": (ord_after_small,), "marker-lead-crc": (marker_in_front,), "pad-stale": (pad_after_long,),
    "crc-not-last": (bad_crc(lambda p: p.untagged(0, 3, b"ab", 0, False)),),
    "write-tail-late": (long_write, RPING), "stag-cache": (invalidated_write, ("rping",)),
    "term-send-msn": (terminate_msn,), "term-overtakes": (answer_then_terminate,),
    "fin-half-fpdu": (fin_inside,), "ctx-cache-8": (nine_open,), "age-reassembly": (old_segment,),
    "tx-recycle": (small_after_big,), "read-sink-stale": (two_sinks_at_once,),
    "read-crossed": (read_during_read, ("rping",)), "se-leak-32": (solicited_33,),
    "hol-block": (one_does_not_read,), "lost-wakeup": (slow_then_all,),
}


RPING_CLIENT = ("rping", "--size", "4000")
ENHANCED = ("echo", "--enhanced")
# The first four have both roles of endpoint.py.
CONNECT_GENERAL = [
    (two_roles, ("echo",)), (two_roles, ("echo", "--markers")), (two_roles, RPING),
    (two_roles, (*RPING, "--markers")),
    (rtrs, ENHANCED), (echoes, ("echo",)), (echoes, ("echo", "--markers")),
    (echoes, ("echo", "--no-crc")), (enhanced_echoes, ("echo", "--rev", "2")),
    (enhanced_echoes, ("echo", "--rev", "2", "--markers")), (replies, ("echo",)),
    (rping_client, ("rping", "--size", "200")), (rping_client, ("rping", "--size", "200", "--markers")),
    (rping_enhanced, ("rping", "--enhanced")), (rping_client_faults, RPING_CLIENT),
    (private_sizes, ("echo", "--private", "0-9")),
]
CONNECT_PROBES = {
    "reject-data": (reject,), "rtr-both": (rtr_write, ENHANCED), "rtr-msn": (rtr_send, ENHANCED),
    "rtr-swallows": (rtr_send, ENHANCED), "ord-8bit": (high_ord, ("echo", "--rev", "2")),
    "ird-swapped": (eight_reads, ("echo", "--rev", "2")), "marker-one-way": (marked_echo,),
    "marker-rx-origin": (marked_sends, ("echo", "--markers")),
    "private-odd": (private_sizes, ("echo", "--private", "0-9")),
    "read-part": (read_inside, RPING_CLIENT), "crc-neither": (any_crc, ("echo", "--no-crc")),
    "crc-first": (first_crc,), "goahead-early": (write_and_go, RPING_CLIENT),
    "msn-reuse": (two_in_turn,), "stale-reply": (cut_reply,),
    "shared-sink": (two_sinks, (*RPING_CLIENT, "--connections", "2")),
    "setup-lock": (one_waits, ("echo", "--connections", "2")), "reply-split": (cut_private,),
    "early-fpdu": (slow_private,), "request-again": (slow_reply,),
}
NEW_CONNECT_PROBES = {
    "pd-8bit": (private_300,), "write-odd-seg": (odd_segments, RPING_CLIENT),
    "rtr-read-hold": (send_before_answer, ENHANCED), "rtr-crc": (rtr_with_crc, ENHANCED),
    "crc-own-only": (first_crc, ("echo", "--no-crc")),
    "marker-rx-start": (marked_start, ("echo", "--markers")), "marker-pos-rst": (marked_after_rst,),
    "request-dirty": (request_after_reject,), "fin-in-send": (fin_in_send,),
    "read-stale-tail": (three_rounds, RPING_CLIENT), "msn-later-seg": (later_msn,),
    "term-last-error": (two_faults,), "rtr-late": (rtr_after_pieces, (*ENHANCED, "--greeting", "4")),
    "setup-timer": (after_five_seconds,), "read-ring-8": (twelve_reads,), "term-cuts": (fault_after_much,),
}


def run(probe, how, bug=None, kind=Server):
    """None if the probe passes, otherwise what went wrong."""
    try:
        with kind(how[0], bug, *how[1:]) as server:
            probe(server)
    except (AssertionError, OSError, EOFError, struct.error, subprocess.TimeoutExpired) as e:
        return "%s %s" % (type(e).__name__, str(e)[:110])


def listed(role):
    """The bug names of a role, from --list-bugs."""
    command = [sys.executable, "-B", ENDPOINT, "--list-bugs", "--role", role]
    text = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    return {line.split()[0] for line in text.splitlines()}


def main():
    parser = argparse.ArgumentParser(description="Self-test of endpoint.py")
    parser.add_argument("--correct", action="store_true", help="no bugs, only the correct endpoint")
    parser.add_argument("--role", choices=["responder", "initiator", "new", "new-initiator"],
                        help="only the bugs of one role; new and new-initiator have no general checks")
    parser.add_argument("--bug", help="one probe only")
    opts = parser.parse_args()
    failed = 0
    for role, general, probes, kind in (("responder", GENERAL, PROBES, Server),
                                        ("initiator", CONNECT_GENERAL, CONNECT_PROBES, Client),
                                        ("new", [], NEW_PROBES, Server),
                                        ("new-initiator", [], NEW_CONNECT_PROBES, Client)):
        if opts.role in (None, role):
            assert set(probes) == listed(role)
            failed += play(opts, [] if opts.bug else general, probes, kind)
    print("failed: %d" % failed)
    return 1 if failed else 0


def play(opts, general, probes, kind):
    """One role; returns the number of failures."""
    failed = 0
    for probe, how in general:
        began = time.time()
        bad = run(probe, how, None, Server if probe is two_roles else kind)
        failed += bool(bad)
        print("%-4s correct %-34s %.1fs %s" % ("FAIL" if bad else "ok", probe.__name__ + " " + " ".join(how), time.time() - began, bad or ""), flush=True)
    for name, (probe, *how) in probes.items():
        if opts.bug and name != opts.bug:
            continue
        how = how[0] if how else ("echo",)
        bad = run(probe, how, None, kind)
        shown = "" if opts.correct else run(probe, how, name, kind)
        failed += bool(bad) or shown is None
        print("%-4s %-20s correct: %s | bug: %s" % ("FAIL" if bad or shown is None else "ok", name, bad or "passes", shown or "NOT SHOWN"), flush=True)
    return failed


if __name__ == "__main__":
    sys.exit(main())
