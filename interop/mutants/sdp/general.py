"""General checks of the correct endpoint."""

import random
import socket
import struct
import threading
import time

from probes import BUFF, COMB, PIPED, echoed_src, sink_offer
from testpeer import (ABORT, DATA, DISCONN, HELLO, MODE, PEND, PIPE, PRES, RDC, RESIZE, RESIZE_ACK, SEND_SM,
                      SINK, SINK_CANCEL, SINK_CANCEL_ACK, SRC, SRC_CANCEL, SUSP, SUSP_ACK, WRC, Peer, bsdh,
                      octets, pattern)


def terminated(p, layer, etype, code):
    """The endpoint ends with this Terminate."""
    try:
        while True:
            p.event()
    except AssertionError as why:
        assert str(why).startswith("terminate %x%x%02x" % (layer, etype, code)), why


def setups(s):
    p = Peer(s, adverts=1)
    assert (p.their_bufs, p.their_size, p.their_adverts, p.their_ird, p.their_ord) == (16, 8192, 32, 16, 16)
    p.echo(b"hello")
    p.bye()
    assert Peer(s, desired=20000, ird=3).their_size == 20000
    p = Peer(s, ird=3, version=0x21, crc_on=False)
    assert p.their_ord <= 3
    p.echo(octets(3000))
    p = Peer(s, rev=2, enhanced=(5, 7))
    assert p.flags & 0x10 and struct.unpack(">HH", p.private)[1] <= 5
    p.echo(b"hello")

    def send_rtr(p):
        p.send_raw(b"")

    def write_rtr(p):
        p.out(struct.pack(">BBIQ", 0xC1, 0x40, 0, 0))

    def read_rtr(p):
        p.read(0, 0, 0)
    for word_ird, word_ord, rtr in ((0xC004, 4, send_rtr), (0x8004, 0x8004, write_rtr), (0x8004, 0x4004, read_rtr)):
        p = Peer(s, rev=2, enhanced=(word_ird, word_ord), rtr=rtr)
        assert struct.unpack(">H", p.private[:2])[0] & 0x8000
        p.echo(b"after the RTR")
        p.bye()


def refusals(s):
    for how in (dict(version=0x12), dict(adverts=0), dict(ird=0), dict(ord=0), dict(bufs=2), dict(size=36)):
        p = Peer(s, setup=False, **how)
        p.request()
        p.reply()
        assert p.flags & 0x20 and p.s.recv(1) == b"", how
    p = Peer(s, setup=False)
    good = p.hello()
    for private in (b"", good[:-1], good + b"x", good[:3] + b"\1" + good[4:]):
        p = Peer(s, setup=False)
        p.request(private)
        p.reply()
        assert p.flags & 0x20 and p.s.recv(1) == b"", private
    p = Peer(s, setup=False)
    p.request(key=b"MPA ID Rep Frame")
    p.end()


def hello_in_reply(s):
    p = Peer(s, setup=False)
    p.request()
    p.reply()
    assert len(p.private) == 28 and p.private[3] == 1
    p.their_size = struct.unpack_from(">I", p.private, 20)[0]
    p.echo(b"hello")


def sizes(s):
    p = Peer(s)
    for n in (1, 2, 3, 1000, 1365, 1366, 1367, 1368, 2750, 4095, 4096, 4097, 8176):
        p.echo(octets(n))
    for n, inline in ((2, 1), (100, 99), (100, 100), (5000, 1), (65535, 7), (65536, 8000), (65537, 8), (300001, 9)):
        echoed_src(p, octets(n), inline)
    for base in (1, 0xFFFFFFFE, (1 << 64) - 5000):
        echoed_src(p, octets(5000), 30, base)
    p.bye()


def piped(s):
    p = Peer(s, bufs=64)
    assert p.value(MODE) == PIPED << 1
    p.mode(PIPED)
    contents = [octets(n) for n in (5000, 1, 70001, 4096, 30000)]
    for c in contents:
        p.src(c)
    assert p.stream(sum(map(len, contents))) == b"".join(contents)
    p.data(b"small")
    assert p.stream(5) == b"small"
    p.bye()


def violations(s):
    def send(mid, ext=b"", payload=b"", **how):
        return lambda p: p.send(mid, ext, payload, **how)
    src = struct.pack(">IIQ", 100, 5, 5)
    sink = struct.pack(">IIQI", 10000, 5, 5, 0)
    cases = [send(15), send(HELLO, bytes(16)), send(1, bytes(12)), send(64), send(0x80), send(DISCONN, b"x"),
             send(RDC, bytes(3)), send(RDC, bytes(5)), send(RDC, bytes(4)), send(WRC, bytes(4)), send(SEND_SM),
             send(SINK_CANCEL_ACK), send(RESIZE_ACK, bytes(4)), send(SUSP_ACK), send(ABORT), send(SINK, sink),
             send(SUSP, struct.pack(">IHH", 0, 9, 2)), send(SRC, src), send(SRC, bytes(16), b"x"),
             send(SRC, struct.pack(">IIQ", (1 << 31) + 1, 5, 5), b"x"), send(SRC, src, bytes(101)),
             send(DATA, b"", b"x", mseq=1), send(DATA, b"", b"x", ack=1), send(DATA, flags=PRES | PEND),
             send(DATA, b"", b"x", flags=PRES), send(SEND_SM, flags=PRES | PEND),
             lambda p: p.send_raw(bsdh(16, 0, DATA, 0, 0, b"abc")[:-1]), lambda p: p.send_raw(bytes(15)),
             lambda p: p.mode(COMB), lambda p: p.mode(3), lambda p: p.mode(COMB, 1), lambda p: p.mode(PIPED, 1),
             lambda p: (p.mode(BUFF), p.mode(COMB)), lambda p: (p.mode(BUFF), p.mode(PIPED)),
             lambda p: (p.mode(BUFF), p.src(octets(100), 10)), lambda p: (p.mode(PIPED), p.src(octets(100), 10)),
             lambda p: (p.send(DISCONN), p.data(b"x"))]
    for i, case in enumerate(cases):
        p = Peer(s)
        p.s.settimeout(1)
        p.together()
        case(p)
        p.flush()
        try:
            p.end(reset=True)
        except (AssertionError, OSError, EOFError) as why:
            raise AssertionError("case %d: %s" % (i, why))
    p = Peer(s)                 # two SrcAvails at once in Combined Mode
    p.hold_reads = True
    p.src(octets(100), 10)
    p.src(octets(100), 10)
    p.end(reset=True, late=True)
    p = Peer(s)                 # data during Read Zcopy
    p.hold_reads = True
    p.src(octets(100), 10)
    p.data(b"x")
    p.end(reset=True, late=True)


def over_adverts(s):
    p = Peer(s)
    p.hold_reads = True
    p.mode(PIPED)
    for _ in range(3):
        p.src(octets(100))
    p.end(reset=True)


def lower_faults(s):
    p = Peer(s)
    p.data(bytes(8177))
    terminated(p, 1, 2, 5)
    p = Peer(s)
    p.together()
    for _ in range(17):
        p.send_raw(b"")
    p.flush()
    p.end(reset=True)
    p = Peer(s)
    p.data(octets(5000))
    _, stag, va = struct.unpack(">IIQ", p.next(SRC).ext)
    p.out(struct.pack(">BBIQ", 0xC1, 0x40, stag, va) + b"x")
    terminated(p, 0, 1, 2)
    p = Peer(s)
    p.data(octets(5000))
    _, stag, va = struct.unpack(">IIQ", p.next(SRC).ext)
    p.read_start(stag, va + 1, 5000)
    terminated(p, 0, 1, 1)
    p = Peer(s)
    p.word(RDC, 5, inv=77)
    terminated(p, 0, 1, 9)


def use_old(p):
    """Uses the 15 old buffers that are left; ActSz comes with the last one."""
    for i in range(14):
        p.data(b"x")
        assert p.next(DATA).payload == b"x"
    p.data(b"x")
    size = p.value(RESIZE_ACK)
    assert p.next(DATA).payload == b"x"
    return size


def resize_up(s):
    p = Peer(s)
    p.data(b"a")
    p.stream(1)
    p.word(RESIZE, 20000)
    p.quiet(0.2)
    assert use_old(p) == 20000
    p.their_size = 20000
    p.data(octets(19984))
    assert p.stream(19984) == octets(19984)
    for wanted, got in ((20000, 20000), (10, 37)):
        p.word(RESIZE, wanted)
        assert p.value(RESIZE_ACK) == got
    p = Peer(s)
    p.word(RESIZE, 1 << 31)
    assert use_old(p) == 262144
    p.their_size = 262144
    p.data(octets(100000))
    assert p.stream(100000) == octets(100000)


def resize_conflict(s):
    p = Peer(s)
    assert p.value(RESIZE) == 20000
    p.word(RESIZE, 5000)        # crossed: the Accepting Peer disregards it
    p.quiet(0.3)
    p.word(RESIZE_ACK, 20000)
    p.echo(b"x")
    p.word(RESIZE, 5000)
    assert p.value(RESIZE_ACK) == 5000


def few_credits(s):
    """Control messages at two credits, nothing at none."""
    p = Peer(s, bufs=3)
    assert len(p.collect(0.3, True)) == 2       # Data, then one message to solicit credits
    p.bufs = 2
    p.src(octets(5000), 10)
    assert p.value(RDC) == 4990
    p.bufs = 0
    p.src(octets(5000), 10)
    p.quiet(0.3)
    p.bufs = 2
    p.data()
    assert p.value(RDC) == 4990


def backpressure(s):
    """The endpoint keeps Private Buffers when its echo cannot go out."""
    p = Peer(s, bufs=4, timeout=8)
    p.mode(PIPED)
    for _ in range(4):
        p.src(bytes(400000))
    first = [m for m in p.collect(2.5) if m.mid == SRC][0]
    credit, sent = 3, 0
    while credit > 2 and sent < 60:
        p.data(b"x")
        sent += 1
        for m in p.collect(0.05, True):
            credit = m.bufs - (p.mseq - 1 - m.ack)
        credit -= 1
    assert sent < 60
    assert len(p.take(first)) == 400000
    assert p.stream(1200000 + sent) == bytes(1200000) + b"x" * sent


def oob(s):
    p = Peer(s)
    p.data(b"abc!", PRES | PEND)
    m = p.next(DATA)
    assert (m.payload, m.flags) == (b"abc!", PRES | PEND)
    p.data(flags=PEND)
    p.data(octets(5000) + b"?", PRES)
    m = p.next(SRC)
    assert m.flags == PEND and p.take(m) == octets(5000)
    m = p.next(DATA)
    assert (m.payload, m.flags) == (b"?", PRES)


def cancel_by_source(s):
    p = Peer(s)
    m = p.next(SRC)
    p.next(SRC_CANCEL)
    p.quiet(0.2)
    p.send(SEND_SM)
    have = len(m.payload)
    while have < 10000:
        m = p.next(DATA)
        assert m.payload == pattern(have, len(m.payload))
        have += len(m.payload)
    m = p.next(SRC)
    size, stag, va = struct.unpack(">IIQ", m.ext)
    rest = p.read(stag, va, size)
    assert rest == pattern(10000, 10000)
    time.sleep(0.5)
    p.word(RDC, size - len(m.payload), inv=stag)        # crosses the next cancel
    p.next(SRC_CANCEL)
    p.next(SRC)


def cancel_unread(s):
    """SrcAvailCancel with some SrcAvails read and others untouched."""
    p = Peer(s, ird=1)
    p.hold_reads = True
    p.mode(PIPED)
    stags = [p.src(octets(3000, i)) for i in range(3)]
    while not p.reads:
        p.event()
    p.send(SRC_CANCEL)
    p.quiet(0.2)
    p.answer()
    m = p.next(RDC)
    assert m.inv == stags[0] and m.ack < p.mseq - 1
    assert p.next(SEND_SM).ack == p.mseq - 1
    assert p.stream(3000) == octets(3000, 0)
    p.quiet(0.2)
    p.data(b"x")
    assert p.stream(1) == b"x"


def small_by_sink(s):
    p = Peer(s)
    p.src(octets(4000), 10)
    mids = sorted(p.next().mid for _ in range(2))
    assert mids == [SEND_SM, DATA]
    p.data(octets(4000)[10:])
    assert p.stream(3990) == octets(4000)[10:]
    echoed_src(p, octets(9000), 10)
    p.mode(PIPED)
    a, b = p.src(octets(4000)), p.src(octets(9000))
    p.next(SEND_SM)
    p.quiet(0.2)
    p.data(octets(4000)[:1000])
    assert p.stream(1000) == octets(4000)[:1000]
    p.quiet(0.2)
    p.data(octets(4000)[1000:])
    assert p.stream(3000) == octets(4000)[1000:]
    assert p.next(RDC).inv == b


def sinks_of_peer(s):
    p = Peer(s)
    assert p.value(MODE) == PIPED << 1
    stag = p.sink(20000, 0, octets(5000))               # a transaction
    m = p.next(WRC)
    assert m.inv == stag and struct.unpack(">I", m.ext) == (5000,) and p.memory[stag][1][:5000] == octets(5000)
    p.sink(20000)
    p.sink(20000)
    p.send(SINK_CANCEL)
    p.next(SINK_CANCEL_ACK)
    p.send(SINK_CANCEL)
    p.quiet(0.3)
    a, b = p.sink(3000), p.sink(20000)
    p.data(octets(7000))
    assert p.next(WRC).inv == a and p.memory[a][1] == octets(7000)[:3000]
    # The rest is under the threshold or goes into the second buffer.
    m = p.next(WRC)
    assert m.inv in (b,) and p.memory[b][1][:4000] == octets(7000)[3000:]


def sinks_of_endpoint(s):
    p = Peer(s)
    p.mode(PIPED)
    offers = [sink_offer(p.next(SINK)) for _ in range(2)]
    assert [(o[0], o[3]) for o in offers] == [(20000, 0)] * 2
    for size, stag, va, _ in offers:
        content = octets(size - 1)
        p.out(*[struct.pack(">BBIQ", 0x81 | (i + 1000 >= len(content)) << 6, 0x40, stag, va + i)
                + content[i:i + 1000] for i in range(0, len(content), 1000)])
        p.word(WRC, len(content), inv=stag)
    got = b""
    while len(got) < 2 * 19999:
        m = p.next()
        got += b"" if m.mid == SINK else p.take(m)
    assert got == octets(19999) * 2


def cancel_by_sink(s):
    p = Peer(s)
    p.mode(PIPED)
    p.next(SINK)
    p.next(SINK)
    p.next(SINK_CANCEL)
    p.send(SINK_CANCEL_ACK)
    p.quiet(0.5)
    p.data(b"x")
    assert sink_offer(p.next(SINK))[3] == 1


def crossing_mode(s):
    """SinkAvail that crosses Pipelined to Combined: SrcAvails come again."""
    p = Peer(s, bufs=64)
    m = p.next(SRC)
    size, stag, va = struct.unpack(">IIQ", m.ext)
    p.word(RDC, size - len(m.payload), flags=PIPE, inv=stag)
    assert p.value(MODE) == PIPED << 1
    first = [m for m in p.collect(0.4) if m.mid == SRC]
    assert len(first) > 2
    before = p.ack
    p.send(SEND_SM)
    have = 0
    while have < 10000:
        m = p.next()
        have += len(m.payload)
    p.send(SINK, struct.pack(">IIQI", 20000, 5, 5, 1), ack=before)
    m = p.next(SRC)
    assert len(m.payload) > 0 and p.take(m) == pattern(20000, 10000)
    assert p.stream(10000) == pattern(30000, 10000)


def buffered_by_peer(s):
    p = Peer(s)
    p.mode(BUFF)
    for _ in range(9):
        p.data(bytes(7000))
        assert p.collect(0.02) == []
    p.data(bytes(7000))
    assert p.value(MODE) == COMB << 1 | 1
    p.src(octets(5000), 10)
    assert p.value(RDC) == 4990


def hints(s):
    p = Peer(s)
    m = p.next(SRC)
    size, stag, va = struct.unpack(">IIQ", m.ext)
    p.read(stag, va, size)
    p.word(RDC, 100)
    p.word(RDC, size - len(m.payload) - 100, flags=PIPE, inv=stag)
    assert p.value(MODE) == PIPED << 1
    assert p.next(SRC).payload == b""


def aborts(s):
    p = Peer(s, bufs=4)
    p.collect(0.2)
    p.send(DISCONN)
    p.send(ABORT)
    p.end(reset=True, late=True)
    p = Peer(s, bufs=4)
    p.s.shutdown(socket.SHUT_WR)
    p.end(late=True)


def suspend_idle(s):
    p = Peer(s)
    p.echo(b"before")
    with socket.create_server(("127.0.0.1", 0)) as server:
        p.send(SUSP, struct.pack(">IHH", 0, server.getsockname()[1], 1))
        p.next(SUSP_ACK)
        p.end()
        server.settimeout(4)
        q = Peer.accepted(server.accept()[0], p)
    q.their_size = 8192
    q.echo(b"after")
    q.bye()


def pieces(s):
    """Messages in random TCP pieces."""
    rng = random.Random(5)
    for limit in (7, 60, 900):
        p = Peer(s, bufs=64)
        contents = [octets(rng.randrange(1, 2000), i) for i in range(10)]
        p.together()
        for content in contents:
            p.data(content)
        stream, p.tx = b"".join(p.tx), None
        while stream:
            n = rng.randrange(1, limit)
            p.s.sendall(stream[:n])
            stream = stream[n:]
            time.sleep(0.0003)
        for content in contents:
            assert p.next(DATA).payload == content


def parallel(s):
    errors = []

    def one(i):
        try:
            p = Peer(s, timeout=20)
            for n in (5, 8176, 3000):
                p.echo(octets(n, i))
            echoed_src(p, octets(100000, i), 50)
            p.bye()
        except BaseException as why:
            errors.append(why)
    threads = [threading.Thread(target=one, args=(i,)) for i in range(4)]
    [t.start() for t in threads]
    [t.join() for t in threads]
    assert not errors, errors


def roles(*clients):
    def two_roles(s):
        for words in clients:
            line = s.client("source --count 200000 " + words)
            assert line.startswith("source: graceful") and line.endswith("pattern ok"), (words, line)
    return two_roles
