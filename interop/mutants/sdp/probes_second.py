"""One probe for each bug of the second set: passes without the bug, fails with it."""

import struct
import time

from probes import COMB, PIPED
from testpeer import (ABORT, DATA, DISCONN, MODE, PEND, PIPE, PRES, RDC, RESIZE, RESIZE_ACK, SEND_SM, SINK,
                      SINK_CANCEL, SINK_CANCEL_ACK, SRC, SRC_CANCEL, WRC, Peer, octets, pattern)


def to_piped(p):
    """Reads the source's first buffer with REQ_PIPE, so that it changes to Pipelined Mode."""
    m = p.next(SRC)
    size, stag, va = struct.unpack(">IIQ", m.ext)
    p.read(stag, va, size)
    p.word(RDC, size - len(m.payload), flags=PIPE, inv=stag)
    assert p.value(MODE) == PIPED << 1


def to_combined(p):
    """SendSm for the oldest SrcAvail of Pipelined Mode: ModeChange to Combined, and 10,000 octets of Data."""
    p.send(SEND_SM)
    have, changes = 0, []
    while have < 10000 or not changes:
        m = p.next()
        if m.mid == MODE:
            changes += struct.unpack(">I", m.ext)
            continue
        assert m.mid == DATA, ("MID", m.mid)
        have += len(m.payload)
    assert (have, changes) == (10000, [COMB << 1]), (have, changes)


# ---------------------------------------------------------------- credits

def one_credit(s):
    p = Peer(s)
    p.word(MODE, PIPED << 1, bufs=2)
    assert [m.mid for m in p.collect(0.5)] == [SINK]


def empty_data(s):
    p = Peer(s)
    for _ in range(15):
        p.data()
    assert p.next(DATA, skip=False).bufs == 16


def ten_waiting(s):
    p = Peer(s)
    p.bufs = 0
    p.mode(PIPED)
    for i in range(10):
        p.src(octets(3000, i))
    p.quiet(0.7)
    p.bufs = 16
    p.data()
    for _ in range(10):
        assert p.value(RDC) == 3000


# ---------------------------------------------------------------- sizes

def desired(s):
    p = Peer(s, desired=20000)
    assert p.their_size == 20000
    p.echo(octets(19984))


def long_message(s):
    p = Peer(s)
    assert p.their_size == 80000
    p.echo(octets(65636))


def two_slices(s):
    """A SrcAvail of more octets than the endpoint reads before one RdmaRdCompl."""
    p = Peer(s, crc_on=False, timeout=15)
    p.src(bytes((4 << 20) + 1010), 10)
    assert p.value(RDC) == 4 << 20
    assert p.value(RDC) == 1000


def bufs_at_resize(s):
    p = Peer(s)
    p.word(RESIZE, 20000)
    p.data(b"x")
    m = p.next(DATA)
    assert (m.payload, m.bufs) == (b"x", 16), m.bufs


def down_and_up(s):
    p = Peer(s)
    p.word(RESIZE, 4000)
    assert p.value(RESIZE_ACK) == 4000
    p.word(RESIZE, 6000)        # an increase: its ack waits for the buffers of 4,000 octets
    p.quiet()


# ---------------------------------------------------------------- mix

def three_small(s):
    p = Peer(s, bufs=64, adverts=2)
    have = 0
    for _ in range(3):
        m = p.next(SRC)
        have += len(m.payload)
        p.send(SEND_SM)
        while have % 10000:
            m = p.next(DATA)
            assert m.payload == pattern(have, len(m.payload))
            have += len(m.payload)
            p.data()


def part_of_sink(s):
    p = Peer(s)
    assert p.value(MODE) == PIPED << 1
    stag = p.sink(20000)
    p.sink(20000)
    p.data(octets(5000))
    m = p.next(WRC)
    assert m.inv == stag and struct.unpack(">I", m.ext) == (5000,)


def stale_with_payload(s):
    p = Peer(s)
    assert p.value(MODE) == PIPED << 1
    p.data(b"abc")
    assert p.next(DATA).payload == b"abc"
    p.sink(20000, 0, b"def")    # as if it crossed the Data message
    assert p.next(DATA).payload == b"def"


def oob_after_src(s):
    p = Peer(s)
    p.data(flags=PEND)
    p.data(octets(5000) + b"?", PRES)
    m = p.next(SRC)
    p.quiet()
    assert p.take(m) == octets(5000)
    m = p.next(DATA)
    assert (m.payload, m.flags) == (b"?", PRES)


def two_oob(s):
    p = Peer(s)
    p.together()
    p.data(b"a!", PRES | PEND)
    p.data(b"b?", PRES | PEND)
    p.flush()
    got = [p.next(DATA) for _ in range(2)]
    assert [(m.payload, m.flags) for m in got] == [(b"a!", PRES | PEND), (b"b?", PRES | PEND)]


# ---------------------------------------------------------------- RDMA

def no_more_reads(s):
    p = Peer(s, ird=1)
    p.hold_reads = True
    p.src(octets(200000), 10)
    while not p.reads:
        p.event()
    p.send(SRC_CANCEL)
    p.quiet(0.3)
    p.answer()
    assert p.value(RDC) == 65536
    p.next(SEND_SM)
    assert not p.reads


def both_cancelled(s):
    p = Peer(s)
    assert p.value(MODE) == PIPED << 1
    p.sink(20000)
    p.sink(20000)
    p.send(SINK_CANCEL)
    p.next(SINK_CANCEL_ACK)
    p.data(octets(5000))
    p.next(SRC)


# ---------------------------------------------------------------- modes

def buffered_waits(s):
    p = Peer(s, bufs=64)
    to_piped(p)
    assert len([m for m in p.collect(0.4) if m.mid == SRC]) > 3
    to_combined(p)
    p.send(SEND_SM)             # the second one in a row recommends Buffered Mode
    have = 0
    while have < 10000:
        have += len(p.next(DATA).payload)
    p.quiet()


def count_goes_on(s):
    p = Peer(s)
    p.data(b"abc")
    assert p.next(DATA).payload == b"abc"
    p.data(octets(5000))
    m = p.next(SRC)
    size, stag, va = struct.unpack(">IIQ", m.ext)
    have = len(m.payload)
    assert m.payload + p.read(stag, va + have, size - have) == octets(5000)
    p.word(RDC, size - have, flags=PIPE, inv=stag)
    assert p.value(MODE) == PIPED << 1
    stag = p.sink(20000, 2)     # two messages with payload came
    p.data(octets(6000))
    m = p.next(WRC)
    assert m.inv == stag and p.memory[stag][1][:6000] == octets(6000)


# ---------------------------------------------------------------- life cycle

def abort_after_close(s):
    p = Peer(s, bufs=4)
    p.collect(0.2)
    p.send(DISCONN)
    p.send(ABORT)
    p.end(reset=True, late=True)


def update_after_close(s):
    p = Peer(s)
    assert p.next(DATA).payload == pattern(0, 10)
    p.next(DISCONN)
    for _ in range(14):
        p.data(b"x")
    assert p.next(DATA, skip=False).payload == b""


# ---------------------------------------------------------------- concurrency

def reads_cross(s):
    """One answer to a Read comes between two parts of the answer on another connection."""
    p, q = Peer(s), Peer(s)
    for i, r in enumerate((p, q)):
        r.hold_reads = True
        r.src(octets(5000, i), 10)
        while not r.reads:
            r.event()
    p.together()
    p.answer()
    frames, p.tx = p.tx, None
    p.s.sendall(b"".join(frames[:3]))
    time.sleep(0.2)
    q.answer()
    assert q.stream(5000) == octets(5000, 1)
    p.s.sendall(b"".join(frames[3:]))
    assert p.stream(5000) == octets(5000, 0)
