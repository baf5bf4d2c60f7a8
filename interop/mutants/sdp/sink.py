"""The half-connection in which we are the Data Sink (draft, 9, 11 and 12)."""

import struct
import time
from collections import deque

from bugs import SHARED, bug
from wire import (BUFFERED, COMBINED, LARGEST_LEN, MASK, MODE_CHANGE, PIPELINED, RD_COMPL, REQ_PIPE,
                  SEND_SM, SINK_AVAIL, SINK_CANCEL, Region, Violation)

SLICE = 4 << 20                 # octets read before one RdmaRdCompl, at most
BUFFERED_LIMIT = 65536          # octets in Buffered Mode before we ask for Combined
MODES = {(COMBINED, BUFFERED), (COMBINED, PIPELINED), (PIPELINED, COMBINED)}


class Src:
    """A SrcAvail we received."""

    def __init__(self, size, stag, va, inline):
        self.size, self.stag, self.va, self.inline = size, stag, va, inline
        self.done = 0                   # octets reported by RdmaRdCompl
        self.next_slice()

    def next_slice(self):
        self.region = None
        self.slice = min(self.left(), SLICE)
        self.issued = self.got = 0      # octets of the slice
        self.under_way = 0              # Reads without an answer
        self.early = False

    def left(self):
        return self.size - self.inline - self.done

    def last_slice(self):
        return self.slice == self.left()


class Sink:
    def __init__(self, conn):
        self.conn = conn
        self.inq = deque()              # for the ULP: [octets, oob, buffer in use]
        self.disconn_rcvd = self.eof_given = False

    def restart(self):
        """State of a new iWARP stream."""
        self.mode = COMBINED
        if bug("mode-inherited") and SHARED["rx_mode"] is not None:
            self.mode = SHARED["rx_mode"]
        self.srcs = deque()             # outstanding SrcAvails of the peer
        self.adverts = deque()          # our outstanding SinkAvails: [region, since]
        self.nondiscards = 0
        self.expect = 0                 # octets to come by Data messages after our SendSm
        self.oob_announced = 0
        self.cancelling = False         # a SrcAvailCancel waits for our Reads
        self.cancelled = 0
        self.sink_cancel = False        # our SinkAvailCancel waits for its answer
        self.resting = False            # no SinkAvail until data come
        self.buffered_octets = 0
        for item in self.inq:
            item[2] = False

    def prefers_pipelined(self):
        return self.conn.opts.req_pipe or self.conn.opts.sinkavail > 0

    # ---- data for the ULP

    def pump(self):
        conn = self.conn
        while self.inq and conn.service.ready():
            data, oob, used = self.inq.popleft()
            conn.service.on_data(data, oob)
            if used:
                conn.repost()
        if self.disconn_rcvd and not self.inq and not self.eof_given:
            self.eof_given = True
            if bug("close-unsent"):
                conn.tx.queue.clear()
            conn.service.on_eof()
        if self.cancelling:
            if bug("cancel-reads-on") and self.srcs:
                self._read(self.srcs[0])
            self._cancel_step()
        elif not self.inq and conn.service.ready():
            self._start_reads()
        self._leave_buffered()
        self._advertise()
        self._cancel_sinks()

    def on_payload(self, payload, oob):
        """Payload of a Data or SinkAvail message.  True: its buffer is in use."""
        if bug("bcopy-64k"):
            payload = payload[:len(payload) & 0xFFFF]
        if not payload:
            return False
        if self.disconn_rcvd:
            raise Violation("data after DisConn")
        if self.srcs and (self.cancelling or len(payload) > self.expect):
            raise Violation("data during Read Zcopy")
        self.expect = max(0, self.expect - len(payload))
        if oob:
            if not self.oob_announced:
                raise Violation("OOB_PRES without OOB_PEND")
            self.oob_announced -= 1
        self._count(oob)
        if self.mode == BUFFERED:
            self.buffered_octets += len(payload)
        self.inq.append([payload, oob, True])
        return True

    def _count(self, oob):
        """NonDiscards: did this payload make a SinkAvail stale?"""
        self.resting = False
        if self.adverts:
            self.conn.llp.forget(self.adverts.popleft()[0])
            if not self.adverts:
                self.sink_cancel = False
        elif bug("nondiscards-oob") and oob:
            pass
        elif bug("shared-nondiscards"):
            SHARED["nondiscards"] += 1
        else:
            self.nondiscards = (self.nondiscards + 1) & MASK

    def on_disconn(self):
        if self.disconn_rcvd:
            raise Violation("second DisConn")
        if self.srcs or self.expect:
            raise Violation("DisConn during Read Zcopy")
        self.disconn_rcvd = True
        self._drop_adverts()

    def _drop_adverts(self):
        while self.adverts:
            self.conn.llp.forget(self.adverts.popleft()[0])
        self.sink_cancel = False

    # ---- Read Zcopy

    def on_src_avail(self, m):
        """True if the message's buffer is still in use."""
        size, stag, va = struct.unpack(">IIQ", m.ext)
        if bug("src-len-16bit"):
            size = size & 0xFFFF or size
        inline = len(m.payload)
        if self.disconn_rcvd or self.mode == BUFFERED:
            raise Violation("SrcAvail after DisConn or in Buffered Mode")
        if not 0 < size <= LARGEST_LEN or inline > size:
            raise Violation("SrcAvail of %d octets" % size)
        if (self.mode == COMBINED) != (inline > 0):
            raise Violation("SrcAvail with %d octets of payload in mode %d" % (inline, self.mode))
        if self.mode == COMBINED and (self.srcs or self.expect):
            raise Violation("second SrcAvail in Combined Mode")
        if len(self.srcs) + len(self.conn.tx.sinks) >= self.conn.opts.adverts:
            raise Violation("over MaxAdverts")
        if self.adverts and not bug("cross-reads"):
            return False                # crossed our SinkAvail, which has priority
        if bug("srcavail-16") and len(self.srcs) >= 16:
            return False
        if inline:
            self._count(False)
            self.inq.append([m.payload, False, True])
        self.srcs.append(Src(size, stag, va, inline))
        return inline > 0

    def _start_reads(self):
        for src in list(self.srcs):
            waits = self.expect and not bug("sendsm-overlap")
            if waits or (self.conn.susp is not None and not src.issued and not src.done):
                return
            if not src.left():
                if src is not self.srcs[0]:
                    return
                self._report(src, 0)
                self.srcs.popleft()
                continue
            if src.left() < self.conn.opts.sendsm_below and not src.done and not src.issued:
                if src is self.srcs[0]:
                    self.conn.later(SEND_SM)
                    self.expect = src.left()
                    self.srcs.popleft()
                return
            self._read(src)
            if src.issued < src.slice or not src.last_slice():
                return

    def _read(self, src):
        """Issues the Reads of one slice, as far as the depth allows."""
        llp = self.conn.llp
        if src.region is None:
            src.region = llp.register(Region(bytes(src.slice), ""))
            if bug("shared-bounce"):
                SHARED["bounce"].extend(bytes(max(0, src.slice - len(SHARED["bounce"]))))
                src.region.data = SHARED["bounce"]
        while src.issued < src.slice:
            used = src.under_way if bug("ord-each") else len(llp.reads)
            if used >= llp.ord:
                return
            count = min(self.conn.opts.read_chunk, src.slice - src.issued)
            start = src.va + src.inline + src.done
            to = start + src.issued
            if bug("read-carry"):
                to = start >> 32 << 32 | to & MASK
            llp.read(src.region, src.issued, count, src.stag, to, src)
            src.issued += count
            src.under_way += 1
        if bug("read-early-compl") and not src.early:
            src.early = True
            self._report(src, src.slice)

    def on_read_done(self, src, count):
        src.under_way -= 1
        src.got += count
        if src.got == src.slice and not self.cancelling:
            self._slice_done(src)

    def _slice_done(self, src):
        """Everything read so far goes to the ULP, then RdmaRdCompl."""
        count = src.got
        self._deliver(src)
        early, last = src.early, count == src.left()
        if not early:
            self._report(src, count + (src.done if bug("compl-sum") else 0))
        src.done += count
        if last:
            self.srcs.remove(src)
        else:
            src.next_slice()

    def _deliver(self, src):
        self.conn.llp.forget(src.region)
        data = bytes(src.region.data[:src.got])
        if bug("read-tail-odd") and src.size > 65536 and src.size % 2 and src.got == src.left():
            data = data[:-1] + b"\0"
        self.inq.append([data, False, False])

    def _report(self, src, count):
        """RdmaRdCompl; the last one invalidates the STag."""
        flags = REQ_PIPE if self.prefers_pipelined() else 0
        stag = src.stag if count == src.left() else None
        self.conn.later(RD_COMPL, struct.pack(">I", count), flags, stag)

    # ---- SrcAvailCancel

    def on_src_cancel(self):
        if not self.srcs:
            if bug("cancel-sendsm-always"):
                self.conn.later(SEND_SM)
            return
        if self.cancelling:
            raise Violation("second SrcAvailCancel")
        # The message that carries it has just moved rx_ack.
        if not bug("cancel-ack-early"):
            self.conn.hold_ack()
        before = len(self.srcs)
        self.srcs = deque(s for s in self.srcs if s.issued or s.done)
        self.cancelled = before - len(self.srcs)
        self.cancelling = True

    def _cancel_step(self):
        """Completes a SrcAvailCancel when no Read is under way any more."""
        if any(src.under_way for src in self.srcs):
            return
        while self.srcs:
            src = self.srcs.popleft()
            count = src.got
            complete = count == src.left()
            if count:
                self._deliver(src)
                if not bug("cancel-forgets-read"):
                    self._report(src, count)
            elif src.region is not None:
                self.conn.llp.forget(src.region)
            self.cancelled += not complete or bug("cancel-forgets-read")
        if self.cancelled or not bug("cancel-ack-stuck"):
            self.conn.later(None, first=self.conn.release_ack)
        if self.cancelled:
            self.conn.later(SEND_SM)
        self.cancelling = False

    # ---- Write Zcopy

    def _advertise(self):
        """Sends SinkAvails, if --sinkavail and the mode allow it."""
        conn = self.conn
        size = conn.opts.sinkavail
        while (self.mode == PIPELINED and size > conn.sink_min and not self.srcs and not self.expect
               and not self.disconn_rcvd and not self.sink_cancel and not self.resting
               and not self.inq and not conn.ctl and conn.susp is None and conn.service.ready()
               and len(self.adverts) < conn.opts.sink_count and conn.tx.advert_free()
               and not conn.tx.disconn_sent and conn.can_send(False)):
            region = conn.llp.register(Region(bytes(size), "w"))
            if bug("sink-one-buffer") and self.adverts:
                region.data = self.adverts[0][0].data
            payload = conn.tx.take_small(conn.peer_size - 36)
            count = self.nondiscards
            if bug("shared-nondiscards"):
                count = SHARED["nondiscards"]
            ext = struct.pack(">IIQI", size, region.stag, region.base, count & MASK)
            conn.transmit(SINK_AVAIL, ext, payload)
            if payload:
                conn.tx.took_small(len(payload))
            self.adverts.append([region, time.monotonic()])

    def on_compl(self, count, invalidated, flags):
        """RdmaWrCompl."""
        if not self.adverts:
            raise Violation("RdmaWrCompl without SinkAvail")
        region = self.adverts.popleft()[0]
        if invalidated is not None and invalidated is not region:
            raise Violation("RdmaWrCompl invalidates another STag")
        if count > len(region.data):
            raise Violation("RdmaWrCompl of %d octets" % count)
        self.conn.llp.forget(region)
        self.inq.append([bytes(region.data[:count]), False, False])
        if not self.adverts:
            self.sink_cancel = False
        if flags & REQ_PIPE and self.conn.tx.mode == COMBINED:
            self.conn.tx.hint(PIPELINED)

    def _cancel_sinks(self):
        """SinkAvailCancel for SinkAvails that nobody uses."""
        if not self.adverts or self.sink_cancel or self.timer() is None or self.timer() > 0:
            return
        if self.conn.can_send(False) and self.conn.susp is None:
            self.sink_cancel = self.resting = True
            self.conn.transmit(SINK_CANCEL)
            if bug("sink-cancel-invalid"):
                for region, _ in self.adverts:
                    self.conn.llp.forget(region)

    def timer(self):
        after = self.conn.opts.sink_cancel_after
        if not after or not self.adverts or self.sink_cancel:
            return None
        return self.adverts[0][1] + after - time.monotonic()

    def on_sink_cancel_ack(self):
        if not self.sink_cancel:
            raise Violation("SinkCancelAck without SinkAvailCancel")
        self._drop_adverts()

    # ---- modes

    def on_mode(self, new):
        """ModeChange with S=0: the peer is the master."""
        if (self.mode, new) not in MODES:
            raise Violation("ModeChange of our receive half from %d to %d" % (self.mode, new))
        if new == BUFFERED and self.srcs:
            raise Violation("Buffered Mode during Read Zcopy")
        if self.mode == PIPELINED and not bug("mode-keeps-sinks"):
            self._drop_adverts()
        self.mode = new
        self.buffered_octets = 0
        if bug("mode-both-ways"):
            self.conn.tx.mode = new

    def _leave_buffered(self):
        """We are the master in Buffered Mode: back to Combined for much data."""
        conn = self.conn
        if self.mode == BUFFERED and self.buffered_octets >= BUFFERED_LIMIT and not self.disconn_rcvd:
            if conn.can_send(False) and not conn.ctl and conn.susp is None:
                conn.transmit(MODE_CHANGE, struct.pack(">I", COMBINED << 1 | 1))
                self.mode = COMBINED
