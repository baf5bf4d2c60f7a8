"""One probe for each bug: passes without the bug, fails with it."""

import socket
import struct
import time

from testpeer import (ABORT, DATA, DISCONN, MODE, PEND, PIPE, PRES, RDC, RESIZE, RESIZE_ACK, SEND_SM, SINK,
                      SRC, SRC_CANCEL, SUSP, SUSP_ACK, WRC, Peer, octets, pattern)

BUFF, COMB, PIPED = 0, 1, 2


def sink_offer(m):
    """(size, STag, VA, NonDiscards) of a SinkAvail."""
    return struct.unpack(">IIQI", m.ext)


def echoed_src(p, content, inline, base=None):
    """SrcAvail in Combined Mode; the echo of the inline part may come first."""
    p.src(content, inline, base)
    before = len(p.reports)
    assert p.stream(len(content)) == content
    assert p.reports[before:] == [len(content) - inline]


# ---------------------------------------------------------------- credits

def resizes(s):
    p = Peer(s)
    for size in (7000, 6000, 5000):
        p.word(RESIZE, size)
        assert p.value(RESIZE_ACK) == size
    p.data(b"x")
    m = p.next(DATA)
    assert m.payload == b"x" and m.bufs == 16, m.bufs


def reserve(s):
    p = Peer(s, bufs=8)
    got = p.collect(0.5)
    assert [m.payload for m in got] == [pattern(i * 100, 100) for i in range(6)], len(got)


def crossing(s):
    p = Peer(s, bufs=8)
    assert len(p.collect(0.4)) == 6
    p.data(ack=1)               # four messages were under way, so credit is 4
    got = p.collect(0.5)
    assert len(got) == 2, len(got)


def late_update(s):
    p = Peer(s)
    for _ in range(14):
        p.data(b"x")
    m = p.next(DATA, skip=False)
    assert m.bufs - (13 - m.ack) > 3, (m.bufs, m.ack)


# ---------------------------------------------------------------- size

def long_src(s):
    p = Peer(s)
    p.src(octets(65536 + 100), 20)
    assert p.value(RDC) == 65536 + 80


def odd_src(s):
    p = Peer(s)
    echoed_src(p, octets(70001), 20)


def full_buffer(s):
    p = Peer(s)
    for n in (p.their_size - 17, p.their_size - 16):
        p.data(octets(n))
        assert p.stream(n) == octets(n)


def early_size(s):
    p = Peer(s, size=4000)
    assert p.value(RESIZE) == 16000
    for i in range(4):
        assert len(p.next(DATA).payload) in (3984, 20000 % 3984)
    p.size = 16000
    p.word(RESIZE_ACK, 16000)
    p.data()
    sizes = [len(m.payload) for m in p.collect(0.5)]
    assert 15984 in sizes, sizes


def carry(s):
    p = Peer(s)
    echoed_src(p, octets(200000), 10, (5 << 32) - 70000)


# ---------------------------------------------------------------- sequence numbers

def long_run(s):
    p = Peer(s, bufs=30000, crc_on=False, timeout=30)
    for i in range(65600):
        m = p.next(DATA)
        assert m.payload[0] == i % 251
        if i % 8000 == 7999:
            p.data()


def many(s):
    p = Peer(s)
    for i in range(300):
        p.data(b"%d" % i)
        m = p.next(DATA)
        assert (m.payload, m.ack) == (b"%d" % i, i), (m.payload, m.ack)


def cancel_ack(s):
    p = Peer(s)
    p.hold_reads = True
    p.src(octets(10000), 10)
    assert p.next(DATA).payload == octets(10000)[:10]
    while not p.reads:
        p.event()
    cancel = p.mseq
    p.send(SRC_CANCEL)
    p.word(RESIZE, 8000)
    m = p.next(RESIZE_ACK)
    assert m.ack < cancel, (m.ack, cancel)
    p.answer()
    m = p.next(RDC)
    assert struct.unpack(">I", m.ext) == (9990,) and m.ack < cancel
    p.hold_reads = False
    p.data(b"a")                # the rest of the echo comes by SrcAvail
    assert p.stream(9991) == octets(10000)[10:] + b"a"
    p.data(b"b")
    assert p.next(DATA).ack == p.mseq - 1


# ---------------------------------------------------------------- mix

def small_after_part(s):
    p = Peer(s)
    m = p.next(SRC)
    size, stag, va = struct.unpack(">IIQ", m.ext)
    have = len(m.payload)
    assert size == 20000 and m.payload == pattern(0, have)
    assert p.read(stag, va + have, 5000) == pattern(have, 5000)
    p.word(RDC, 5000)
    p.send(SEND_SM)
    have += 5000
    while have < 20000:
        part = p.next(DATA).payload
        assert part == pattern(have, len(part)), have
        have += len(part)
    assert have == 20000


def cross_several(s):
    """SinkAvail crosses SrcAvails; also the order of RDMA Write and RdmaWrCompl."""
    p = Peer(s)
    assert p.value(MODE) == PIPED << 1
    assert len([m for m in p.collect(0.4) if m.mid == SRC]) >= 3
    stag = p.sink(10000)
    m = p.next(WRC)
    assert struct.unpack(">I", m.ext) == (10000,) and m.inv == stag
    assert p.memory[stag][1] == pattern(0, 10000), "data are not here"
    assert p.stream(30000) == pattern(10000, 30000)


def stale_then_good(s):
    p = Peer(s)
    assert p.value(MODE) == PIPED << 1
    p.data(b"abc")
    assert p.next(DATA).payload == b"abc"
    p.sink(20000)               # as if it crossed the Data message
    stag = p.sink(20000)
    p.data(octets(5000))
    m = p.next(WRC)
    assert m.inv == stag and p.memory[stag][1][:5000] == octets(5000)


def oob_counts(s):
    p = Peer(s)
    p.data(b"x!", PRES | PEND)
    p.mode(PIPED)
    assert sink_offer(p.next(SINK))[3] == 1


def oob_once(s):
    p = Peer(s)
    p.together()
    p.data(b"abc")
    p.data(b"!", PRES | PEND)
    p.flush()
    a, b = p.next(DATA), p.next(DATA)
    assert (a.payload, b.payload) == (b"abc", b"!")
    assert (a.flags, b.flags) == (PEND, PRES), (a.flags, b.flags)


def oob_far(s):
    p = Peer(s, bufs=4)
    p.together()
    for _ in range(12):
        p.data(octets(7000))
    p.data(b"!", PRES | PEND)
    p.flush()
    since = None
    while True:
        m = p.next(DATA)
        if m.flags & PEND:
            assert since is None
            since = 0
        if since is not None:
            since += len(m.payload)
        if m.flags & PRES:
            break
        p.data()
    assert m.payload == b"!" and since - 1 <= 65535, since


def cancel_late(s):
    p = Peer(s)
    p.src(octets(9000), 10)
    assert p.value(RDC) == 8990
    p.send(SRC_CANCEL)
    p.quiet()


def cancel_reading(s):
    p = Peer(s)
    p.hold_reads = True
    p.src(octets(10000), 10)
    while not p.reads:
        p.event()
    p.send(SRC_CANCEL)
    p.quiet(0.3)
    p.answer()
    assert p.value(RDC) == 9990
    p.quiet()


# ---------------------------------------------------------------- modes

def to_buffered(s):
    """Two SendSm in Combined Mode, then only Data messages."""
    p = Peer(s, bufs=64)
    have, changes = 0, []
    for _ in range(2):
        m = p.next(SRC)
        have += len(m.payload)
        p.send(SEND_SM)
        while have % 10000:
            m = p.next()
            if m.mid == MODE:
                changes.append(struct.unpack(">I", m.ext)[0])
                continue
            assert m.mid == DATA
            have += len(m.payload)
            p.data()
    assert changes == [BUFF << 1]
    for _ in range(20):
        m = p.next(DATA)
        assert m.payload == pattern(have, len(m.payload))
        have += len(m.payload)
        p.data()


def unacknowledged(s):
    p = Peer(s, bufs=64)
    m = p.next(SRC)
    size, stag, va = struct.unpack(">IIQ", m.ext)
    p.read(stag, va, size)
    p.word(RDC, size - len(m.payload), flags=PIPE)
    assert p.value(MODE) == PIPED << 1
    outstanding = [m for m in p.collect(0.4) if m.mid == SRC]
    assert len(outstanding) > 2
    p.send(SEND_SM)
    have = 0
    while have < 10000:
        m = p.next()
        if m.mid == SRC:
            outstanding.append(m)
            continue
        if m.mid == MODE:
            assert struct.unpack(">I", m.ext)[0] == COMB << 1
            change = m.mseq
            continue
        have += len(m.payload)
    for m in outstanding[1:3]:
        p.word(RDC, 10000, flags=PIPE, inv=struct.unpack(">IIQ", m.ext)[1], ack=change - 1)
    p.quiet()
    p.data()
    assert p.value(MODE) == PIPED << 1


def dropped_sinks(s):
    p = Peer(s)
    p.mode(PIPED)
    assert sink_offer(p.next(SINK))[3] == 0
    p.mode(COMB)
    p.data(b"x")
    p.mode(PIPED)
    assert sink_offer(p.next(SINK))[3] == 1


def one_way(s):
    p = Peer(s)
    p.mode(PIPED)
    p.data(octets(5000))
    m = p.next(SRC)
    assert len(m.payload) > 0
    assert p.take(m) == octets(5000)


# ---------------------------------------------------------------- RDMA

def held_answer(s):
    p = Peer(s)
    p.hold_reads = True
    p.src(octets(10000), 10)
    while not p.reads:
        p.event()
    p.quiet()
    p.answer()
    assert p.value(RDC) == 9990


def two_parts(s):
    p = Peer(s)
    m = p.next(SRC)
    size, stag, va = struct.unpack(">IIQ", m.ext)
    assert p.read(stag, va + 256, 4744) == pattern(256, 4744)
    assert p.read(stag, va + 5000, 5000) == pattern(5000, 5000)
    p.word(RDC, size - len(m.payload), inv=stag)
    p.next(SRC)


# ---------------------------------------------------------------- life cycle

def half_close(s):
    p = Peer(s, bufs=4)
    for i in range(5):
        p.data(b"data %d" % i)
    p.send(DISCONN)
    time.sleep(0.2)
    for i in range(5):
        assert p.next(DATA).payload == b"data %d" % i
        p.data()
    p.next(DISCONN)
    p.end()


def close_waits(s):
    p = Peer(s)
    m = p.next(SRC)
    p.quiet()
    assert p.take(m) == pattern(0, 10000)
    p.next(DISCONN)
    p.send(DISCONN)
    p.end()


def abort_message(s):
    p = Peer(s)
    assert p.next(DATA).payload == pattern(0, 10)
    p.next(DISCONN)
    p.word(RDC, 5)
    p.next(ABORT)
    p.end()


def bad_setups(s):
    for i in range(6):
        p = Peer(s, setup=False, version=0x11 if i % 2 else 0x12)
        if i % 2:
            p.s.sendall(b"MPA ID Req")
            p.s.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
        else:
            p.request()
            p.reply()
            assert p.flags & 0x20 and p.s.recv(1) == b""
        p.s.close()
        time.sleep(0.05)
    Peer(s).echo(b"still there")


def fresh_mode(s):
    p = Peer(s)
    p.mode(PIPED)
    p.data(b"x")
    p.next(DATA)
    p.bye()
    time.sleep(0.2)
    echoed_src(Peer(s), octets(5000), 10)


def suspended(s):
    p = Peer(s)
    m = p.next(SRC)
    got = m.payload
    with socket.create_server(("127.0.0.1", 0)) as server:
        p.send(SUSP, struct.pack(">IHH", 0, server.getsockname()[1], 1))
        p.next(SUSP_ACK)
        p.end()
        server.settimeout(4)
        q = Peer.accepted(server.accept()[0], p)
    got += q.stream(30000 - len(got))
    assert got == pattern(0, 30000)
    q.next(DISCONN)
    q.send(DISCONN)
    q.end()
