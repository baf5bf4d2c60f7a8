"""Probes of the bugs that need several connections, timing or load."""

import struct
import time

from probes import PIPED, sink_offer
from testpeer import RDC, SINK, SRC, Peer, octets

# ---------------------------------------------------------------- several connections

def foreign_stag(s):
    p, q = Peer(s), Peer(s)
    size, stag, va = struct.unpack(">IIQ", p.next(SRC).ext)
    try:
        q.read(stag, va, 100)
    except AssertionError as why:
        assert "terminate" in str(why), why
        return
    raise AssertionError("read from another connection")


def own_counts(s):
    p, q = Peer(s), Peer(s)
    p.data(b"x")
    time.sleep(0.2)
    q.mode(PIPED)
    assert sink_offer(q.next(SINK))[3] == 0


# ---------------------------------------------------------------- timing

def slow_segments(s):
    p = Peer(s)
    p.together()
    p.data(octets(3000))
    p.flush(0.05)
    assert p.stream(3000) == octets(3000)


def slow_answer(s):
    p = Peer(s)
    p.hold_reads = True
    p.src(octets(4010), 10)
    while not p.reads:
        p.event()
    p.together()
    p.answer()
    p.flush(0.05)
    p.hold_reads = False
    assert p.stream(10) == octets(4010)[:10]
    assert p.value(RDC) == 4000
    p.data(b"a")
    assert p.stream(4001) == octets(4010)[10:] + b"a"


def credits_in_batch(s):
    p = Peer(s, bufs=8)
    assert len(p.collect(0.4)) == 6
    p.together()
    p.data(bufs=2)
    p.data()
    p.flush()
    assert len(p.collect(0.5)) == 6


# ---------------------------------------------------------------- load

def many_srcs(s):
    p = Peer(s, bufs=64)
    p.hold_reads = True
    p.mode(PIPED)
    p.together()
    stags = [p.src(octets(1000, i)) for i in range(32)]
    p.flush()
    for i in range(32):
        while not p.reads:
            p.event()
        p.answer()
    for stag in stags:
        assert p.next(RDC).inv == stag


def depth(s):
    p = Peer(s, ird=2)
    p.hold_reads = True
    p.mode(PIPED)
    for i in range(4):
        p.src(octets(3000, i))
    p.quiet()
    for i in range(4):
        assert 1 <= len(p.reads) <= 2, len(p.reads)
        p.answer()
        assert p.value(RDC) == 3000
        time.sleep(0.05)
        p.quiet(0.05)
