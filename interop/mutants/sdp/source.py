"""The half-connection in which we are the Data Source (draft, 9, 11 and 12)."""

import struct
import time
from collections import deque

from bugs import bug
from wire import (BSDH, BUFFERED, COMBINED, DATA, DISCONN, LARGEST_LEN, MASK, MODE_CHANGE, OOB_PRES,
                  PIPELINED, REQ_PIPE, SINK_CANCEL_ACK, SRC_AVAIL, SRC_CANCEL, WR_COMPL, WRITE, Region,
                  Violation)

INLINE = 256                    # octets of payload in a SrcAvail, at most
OOB_REACH = 65535               # octets between OOB_PEND and the OOB octet


def reached(mseqack, mseq):
    """True if MSeqAck >= MSeq, with wrap."""
    return (mseqack - mseq) & MASK < 1 << 31


class Buffer:
    """A ULP send buffer; octets from pos on are neither sent nor advertised."""

    def __init__(self, data, oob, waits_for_zcopy):
        self.data, self.pos, self.oob = data, 0, oob
        self.bcopy = False              # the rest must go by Data messages
        self.announced = False          # OOB_PEND is sent
        self.waits_for_zcopy = waits_for_zcopy

    def rest(self):
        return len(self.data) - self.pos


class Advert:
    """A SrcAvail we sent."""

    def __init__(self, buffer, region, inline, mseq):
        self.buffer, self.region, self.inline, self.mseq = buffer, region, inline, mseq
        self.start = buffer.pos
        self.done = 0                   # octets reported by RdmaRdCompl
        self.since = time.monotonic()

    def left(self):
        return len(self.region.data) - self.inline - self.done


class Source:
    def __init__(self, conn):
        self.conn = conn
        self.queue = deque()            # buffers that still have octets to send
        self.srcs = deque()             # outstanding SrcAvails
        self.backlog = 0                # octets of the ULP not yet sent or read
        self.closing = self.disconn_sent = False
        self.lost_slots = 0

    def restart(self):
        """State of a new iWARP stream; advertisements are cancelled."""
        self.mode = COMBINED
        self.want = {"pipelined": PIPELINED, "buffered": BUFFERED}.get(self.conn.opts.mode)
        self.sinks = deque()            # SinkAvails received: (size, stag, va, NonDiscards)
        self.potential = 0              # PotentialNonDiscards
        self.cancel = None              # MSeq of our SrcAvailCancel
        self.change = None              # MSeq of a ModeChange not yet acknowledged
        self.since_change = 0           # messages with payload since then
        self.small_in_row = 0
        self.blocked = False
        if bug("susp-drops"):
            self.srcs.clear()
        self._take_back()

    # ---- the ULP

    def write(self, data, oob=False):
        """Data to send; with oob the last octet is Out-of-Band."""
        if self.closing or not data:
            return
        self.backlog += len(data)
        waits = self.mode != BUFFERED
        if oob and len(data) > 1 and len(data) >= (self.conn.opts.zcopy or 4096):
            self.queue.append(Buffer(data[:-1], False, waits))
            data = data[-1:]
        self.queue.append(Buffer(data, oob, waits))

    def close(self):
        self.closing = True

    # ---- sending

    def pump(self):
        self._cancel_late()
        self.blocked = False            # payload waits for credits
        while self.conn.susp is None and self._step():
            self._purge()

    def _step(self):
        """Sends one thing; False if nothing can be sent now."""
        if self._switch():
            return True
        if not self.queue:
            return self._end()
        b = self.queue[0]
        limit = self.conn.opts.zcopy
        small = b.bcopy or b.oob or not limit or b.rest() < limit or self.mode == BUFFERED
        if bug("mode-waiting") and self.mode == BUFFERED and b.waits_for_zcopy:
            small = b.bcopy or b.oob or not limit or b.rest() < limit
        if self.srcs:
            if b.bcopy or bug("oob-overtakes") and b.oob:
                return self._data(b)
            more = self.mode == PIPELINED and not small and self.cancel is None
            if bug("mode-src-over") and self.mode == COMBINED and not small and self.cancel is None:
                more = all(a.piped for a in self.srcs)
            return more and self._src_avail(b)
        if small:
            return self._data(b)
        if self.mode == PIPELINED and self.sinks:
            return self._write(b)
        return self._src_avail(b)

    def _data(self, b):
        if not self.conn.can_send(True):
            self.blocked = True
            return False
        room = self.conn.peer_size - BSDH
        if bug("tail-octet") and b.rest() == room + 1:
            room += 1
        part = b.data[b.pos:b.pos + room]
        last = len(part) == b.rest()
        self.conn.transmit(DATA, b"", part, OOB_PRES if b.oob and last else 0)
        self._sent(b, len(part))
        return True

    def _sent(self, b, count):
        b.pos += count
        self.backlog -= count
        if not b.rest():
            self.queue.popleft()

    def _src_avail(self, b):
        conn = self.conn
        inline = 0
        if self.mode != PIPELINED:
            inline = min(INLINE, conn.peer_size - BSDH - 16, b.rest() - 1)
        if not self.advert_free():
            return False
        if not conn.can_send(inline > 0):
            self.blocked = True
            return False
        region = conn.llp.register(Region(b.data[b.pos:], "r"))
        advert = Advert(b, region, inline, conn.mseq)
        advert.piped = self.mode == PIPELINED
        conn.transmit(SRC_AVAIL, struct.pack(">IIQ", len(region.data), region.stag, region.base),
                      bytes(region.data[:inline]))
        self.queue.popleft()
        self.backlog -= inline
        self.srcs.append(advert)
        return True

    def advert_free(self):
        """True if one more advertisement may be outstanding at the peer."""
        limit = self.conn.opts.adverts if bug("adverts-own") else self.conn.peer.adverts
        return len(self.srcs) + len(self.conn.rx.adverts) + self.lost_slots < limit

    def _write(self, b):
        """Write Zcopy into the oldest SinkAvail."""
        conn = self.conn
        if not conn.can_send(False):
            return False
        size, stag, va, _ = self.sinks.popleft()
        part = b.data[b.pos:b.pos + size]
        flags = REQ_PIPE if conn.rx.prefers_pipelined() else 0
        late = bug("write-after-compl") and len(part) > 1386
        if not late:
            conn.llp.tagged(WRITE, stag, va, part)
        size_sent = size if bug("wrcompl-len") and self.sinks else len(part)
        conn.transmit(WR_COMPL, struct.pack(">I", size_sent), b"", flags, stag)
        if late:
            conn.llp.tagged(WRITE, stag, va, part)
        self._sent(b, len(part))
        return True

    def take_small(self, limit):
        """A waiting small buffer as payload of our SinkAvail, or nothing."""
        zcopy = self.conn.opts.zcopy
        waits = self.srcs and not bug("trans-overtakes")
        if not self.queue or waits or self.closing or not self.conn.can_send(True):
            return b""
        b = self.queue[0]
        # What a SendSm requested goes as Data (section 9.2). `bcopy` marks these buffers.
        if b.oob or b.bcopy or b.rest() > limit or (zcopy and b.rest() >= zcopy):
            return b""
        return b.data[b.pos:]

    def took_small(self, count):
        self._sent(self.queue[0], count)
        self._purge()

    def counted(self):
        """A message with payload was sent."""
        self.potential = (self.potential + 1) & MASK
        self.since_change += 1

    def _end(self):
        """DisConn after everything is sent and read."""
        ready = self.closing and not self.disconn_sent
        if bug("close-before-read"):
            ready = ready and self.conn.can_send(False)
        else:
            ready = ready and not self.srcs and self.conn.can_send(False)
        if ready:
            self.conn.transmit(DISCONN)
            self.disconn_sent = True
            self.disconn_at = time.monotonic()
        return ready

    # ---- OOB notices

    def oob_due(self, present):
        """True if the message that goes out now must carry OOB_PEND."""
        ahead = sum(a.left() for a in self.srcs)
        for b in self.queue:
            ahead += b.rest()
            if not b.oob:
                continue
            if bug("oob-pend-twice") and present and b is self.queue[0]:
                return True
            if b.announced:
                continue
            if ahead - 1 > OOB_REACH and not bug("oob-far"):
                return False
            b.announced = True
            if bug("oob-coalesce"):
                for other in self.queue:
                    other.announced |= other.oob
            return True
        return False

    def announce(self):
        """An empty message with OOB_PEND, if the data have to wait."""
        waiting = [b for b in self.queue if b.oob and not b.announced]
        if not waiting or self.conn.susp is not None or not self.conn.can_send(False):
            return
        ahead = sum(a.left() for a in self.srcs)
        for b in self.queue:
            ahead += b.rest()
            if b is waiting[0]:
                break
        if ahead - 1 <= OOB_REACH or bug("oob-far"):
            self.conn.transmit(DATA)

    # ---- modes

    def hint(self, mode):
        """The peer recommends a mode for this half-connection."""
        if self.conn.opts.mode == "auto" and mode != self.mode:
            self.want = mode

    def _switch(self):
        """Changes the mode if that is wanted and possible."""
        if self.want == self.mode:
            self.want = None
        if self.want is None or self.disconn_sent or not self.conn.can_send(False):
            return False
        if self.mode == BUFFERED:       # the Data Sink is the master
            return False
        if self.change is not None and not bug("mode-no-ack"):
            return False
        if self.mode == COMBINED and self.want == BUFFERED and self.srcs and not bug("buffered-early"):
            return False
        new = self.want if self.mode == COMBINED else COMBINED
        mseq = self.conn.mseq
        self.conn.transmit(MODE_CHANGE, struct.pack(">I", new << 1))
        if self.mode == PIPELINED:
            self.change, self.since_change = mseq, 0
            self.sinks.clear()
        self.mode = new
        if bug("potential-reset") and new == PIPELINED:
            self.potential = 0
        return True

    def on_mode(self, new):
        """ModeChange with S=1."""
        if self.mode != BUFFERED or new != COMBINED:
            raise Violation("ModeChange of our send half from %d to %d" % (self.mode, new))
        self.mode = COMBINED

    def on_ack(self, mseqack):
        if self.change is not None and reached(mseqack, self.change):
            self.change = None

    # ---- answers to our SrcAvails

    def on_compl(self, count, invalidated, flags):
        """RdmaRdCompl."""
        if not self.srcs:
            raise Violation("RdmaRdCompl without SrcAvail")
        a = self.srcs[0]
        if invalidated is not None and invalidated is not a.region:
            raise Violation("RdmaRdCompl invalidates another STag")
        if count > a.left():
            raise Violation("RdmaRdCompl of %d octets, %d left" % (count, a.left()))
        a.done += count
        a.since = time.monotonic()
        self.backlog -= count
        if not a.left():
            self.conn.llp.forget(a.region)
            self.srcs.popleft()
            self.small_in_row = 0
            if not self.srcs:
                self.cancel = None
        if flags & REQ_PIPE and self.mode == COMBINED:
            self.hint(PIPELINED)

    def on_send_sm(self, mseqack, invalidated):
        if not self.srcs:
            raise Violation("SendSm without SrcAvail")
        if invalidated is not None and invalidated is not self.srcs[0].region:
            raise Violation("SendSm invalidates another STag")
        crossed = bug("cancel-cross-sendsm")
        if self.cancel is not None and (reached(mseqack, self.cancel) or crossed):
            for a in self.srcs:
                a.buffer.bcopy = True
            self._take_back()
            return
        a = self.srcs.popleft()
        self.lost_slots += bug("sendsm-slot")
        if bug("sendsm-restart"):
            a.done = 0
        a.buffer.bcopy = True
        self._put_back(a)
        if not self.srcs:
            self.cancel = None
        self.small_in_row += 1
        if self.mode == PIPELINED:
            self.hint(COMBINED)
        elif self.small_in_row >= 2:
            self.hint(BUFFERED)

    def _put_back(self, a):
        """The part of an advertised buffer that is not transferred."""
        self.conn.llp.forget(a.region)
        a.buffer.pos = a.start + a.inline + a.done
        self.queue.appendleft(a.buffer)

    def _take_back(self):
        """All outstanding SrcAvails are void; their data wait again."""
        if bug("cross-drops-second") and self.sinks:
            while len(self.srcs) > 1:
                self.backlog -= self.srcs.pop().left()
        while self.srcs:
            self._put_back(self.srcs.pop())
        self.cancel = None

    def _cancel_late(self):
        """SrcAvailCancel for a SrcAvail that is not read in time."""
        if not self.srcs or self.cancel is not None or self.conn.susp is not None:
            return
        if self.timer() <= 0 and self.conn.can_send(False):
            self.cancel = self.conn.mseq
            self.conn.transmit(SRC_CANCEL)

    def timer(self):
        if not self.srcs or self.cancel is not None:
            return None
        return self.srcs[0].since + self.conn.opts.cancel_after - time.monotonic()

    # ---- SinkAvails of the peer

    def on_sink_avail(self, m):
        size, stag, va, nondiscards = struct.unpack(">IIQI", m.ext)
        if not 0 < size <= LARGEST_LEN:
            raise Violation("SinkAvail of %d octets" % size)
        if self.disconn_sent:
            return
        if self.mode == COMBINED and self.change is not None:
            self._on_stale_mode(nondiscards)
            return
        if self.mode != PIPELINED:
            raise Violation("SinkAvail in mode %d" % self.mode)
        if len(self.sinks) + len(self.conn.rx.srcs) >= self.conn.opts.adverts:
            raise Violation("over MaxAdverts")
        self.sinks.append((size, stag, va, nondiscards))
        self._purge()

    def _purge(self):
        """Discards stale SinkAvails; a good one makes our SrcAvails void."""
        while self.sinks and self.sinks[0][3] != self.potential:
            self.sinks.popleft()
            if not bug("stale-count"):
                self.potential = (self.potential - 1) & MASK
        if self.sinks and self.srcs:
            self._take_back()

    def _on_stale_mode(self, nondiscards):
        """A SinkAvail that crossed our ModeChange to Combined Mode."""
        if nondiscards != (self.potential - self.since_change) & MASK:
            self.potential = (self.potential - 1) & MASK
            return
        kept = [a for a in self.srcs if a.mseq == self.change or reached(a.mseq, self.change)]
        old = [a for a in self.srcs if a not in kept]
        self.srcs = deque(old)
        self._take_back()
        self.srcs = deque(kept)

    def on_sink_cancel(self):
        if self.sinks:
            if bug("sink-cancel-first"):
                self.sinks.popleft()
            else:
                self.sinks.clear()
            self.conn.later(SINK_CANCEL_ACK)
