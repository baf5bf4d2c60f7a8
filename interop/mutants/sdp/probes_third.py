"""One probe for each bug of the third set that no check of general.py and no other probe shows."""

import struct

from probes import PIPED, sink_offer
from probes_second import to_combined, to_piped
from testpeer import (DATA, DISCONN, MODE, RESIZE, RESIZE_ACK, SEND_SM, SINK, SINK_CANCEL, SRC, SRC_CANCEL,
                      WRC, Peer, octets, pattern)


def write(p, stag, va, content):
    """RDMA Write of content."""
    p.out(*[struct.pack(">BBIQ", 0x81 | (i + 1000 >= len(content)) << 6, 0x40, stag, va + i)
            + content[i:i + 1000] for i in range(0, len(content), 1000)])


# ---------------------------------------------------------------- credits

def bufs_of_waiting(s):
    """Over 1 MiB waits for the echo, so it leaves eight messages in their Private Buffers."""
    p = Peer(s, bufs=64, timeout=8)
    p.mode(PIPED)
    for _ in range(4):
        p.src(bytes(400000))
    p.collect(2.5)
    for _ in range(8):
        p.data(b"x")
    p.word(RESIZE, 8192)        # the same size, so the ack comes at once
    m = p.next(RESIZE_ACK)
    assert m.bufs == 8, m.bufs


def one_of_five(s):
    p = Peer(s)
    p.bufs = 0
    p.mode(PIPED)
    for i in range(5):
        p.src(octets(3000, i))
    p.quiet(0.5)
    p.data(bufs=2)
    got = p.collect(0.5)
    assert len(got) == 1, len(got)


# ---------------------------------------------------------------- sizes

def plus_one(s):
    p = Peer(s, size=1016)
    p.data(octets(1001))
    assert p.stream(1001) == octets(1001)


def no_small_sinks(s):
    p = Peer(s)
    p.word(RESIZE, 30000)
    assert p.value(RESIZE_ACK) == 30000
    p.mode(PIPED)
    p.quiet()


# ---------------------------------------------------------------- mix

def sendsm_crosses_cancel(s):
    p = Peer(s, bufs=64)
    assert p.value(MODE) == PIPED << 1
    assert len([m for m in p.collect(0.3) if m.mid == SRC]) > 2
    before = p.ack
    p.next(SRC_CANCEL)
    p.send(SEND_SM, ack=before)
    have = 0
    while have < 10000:
        have += len(p.next(DATA).payload)
    assert have == 10000
    p.quiet()


def small_after_src(s):
    p = Peer(s)
    p.mode(PIPED)
    p.next(SINK)
    p.data(octets(5000))
    src = p.next()
    while src.mid != SRC:
        src = p.next()
    p.data(b"abc")
    assert not any(m.payload for m in p.collect(0.4))
    assert p.take(src) == octets(5000)
    m = p.next()
    while not m.payload:
        m = p.next()
    assert m.payload == b"abc"


def sink_after_transaction(s):
    p = Peer(s)
    assert p.value(MODE) == PIPED << 1
    p.mode(PIPED)
    p.next(SINK)
    p.data(b"abc")
    m = p.next()
    while not m.payload:
        m = p.next()
    assert (m.mid, m.payload) == (SINK, b"abc")
    stag = p.sink(20000, 1)     # one message with payload came
    p.data(octets(5000))
    m = p.next()
    while m.mid == SINK:
        m = p.next()
    assert (m.mid, m.inv) == (WRC, stag), m.mid


def src_crosses_sink(s):
    p = Peer(s)
    p.mode(PIPED)
    p.next(SINK)
    p.hold_reads = True
    p.src(octets(5000))
    p.quiet()
    assert not p.reads


# ---------------------------------------------------------------- RDMA

def write_crosses_cancel(s):
    p = Peer(s)
    p.mode(PIPED)
    _, stag, va, _ = sink_offer(p.next(SINK))
    p.next(SINK_CANCEL)
    write(p, stag, va, b"late")
    p.word(WRC, 4, inv=stag)
    p.data(b"x")
    p.next(SINK)


def two_written(s):
    p = Peer(s)
    p.mode(PIPED)
    offers = [sink_offer(p.next(SINK)) for _ in range(2)]
    for i, (_, stag, va, _) in enumerate(offers):
        write(p, stag, va, octets(5000, i))
    for _, stag, _, _ in offers:
        p.word(WRC, 5000, inv=stag)
    got = b""
    while len(got) < 10000:
        m = p.next()
        got += b"" if m.mid == SINK else p.take(m)
    assert got == octets(5000, 0) + octets(5000, 1)


# ---------------------------------------------------------------- modes

def none_until_done(s):
    p = Peer(s, bufs=64)
    to_piped(p)
    assert len([m for m in p.collect(0.4) if m.mid == SRC]) > 2
    to_combined(p)
    p.quiet()


# ---------------------------------------------------------------- time, concurrency, load, set-up

def sends_on(s):
    p = Peer(s)
    assert p.next(DATA).payload == pattern(0, 10)
    p.next(DISCONN)
    for _ in range(10):
        p.data(b"x")
        p.quiet(0.3)
    p.send(DISCONN)
    p.end(late=True)


def after_decrease(s):
    p = Peer(s)
    p.word(RESIZE, 1000)
    assert p.value(RESIZE_ACK) == 1000
    Peer(s).echo(octets(5000))


def nine_reads(s):
    p = Peer(s)
    _, stag, va = struct.unpack(">IIQ", p.next(SRC).ext)
    p.together()
    for i in range(9):
        p.read_start(stag, va + 1000 * i, 1000)
    p.flush()
    for i in range(9):
        p.outstanding[3] = False
        while not p.outstanding[3]:
            p.event()
        assert bytes(p.outstanding[2]) == pattern(1000 * i, 1000)


def three_adverts(s):
    p = Peer(s, bufs=64, adverts=3)
    assert p.value(MODE) == PIPED << 1
    got = [m for m in p.collect(0.5) if m.mid == SRC]
    assert len(got) == 3, len(got)
