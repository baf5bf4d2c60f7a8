"""One SDP connection: set-up, credits, resizing, suspension, close.

The two half-connections are in source.py (we send) and sink.py (we receive).
A connection outlives its iWARP stream if the peer suspends it (SuspComm).
"""

import socket
import struct
import sys
import threading
import time
from collections import deque

import services
from bugs import SHARED, bug
from iwarp import Stream
from mpa import DEPTH, SETUP_TIMEOUT
from sink import Sink
from source import Source
from wire import (ABORT_CONN, BSDH, CH_RCV_BUF, CH_RCV_BUF_ACK, DATA, DISCONN, HELLO, HELLO_ACK, MASK,
                  MODE_CHANGE, OOB_PEND, OOB_PRES, RD_COMPL, SEND_SM, SINK_AVAIL, SINK_CANCEL,
                  SINK_CANCEL_ACK, SOLICITED, SRC_AVAIL, SRC_CANCEL, SUSP_COMM, SUSP_COMM_ACK, WR_COMPL,
                  Hello, Region, Refused, Violation, pack_hello, pack_hello_ack, pack_message,
                  parse_hello, parse_message)

SMALLEST = 37                   # BSDH, SinkAH and one octet
PATIENCE = 1.0                  # seconds with two credits before we solicit an update
VERSION = 0x11                  # MinV 1, MajV 1


class Socket:
    """Run by one thread; all its state belongs to this connection alone."""

    def __init__(self, sock, opts, initiator):
        self.opts = opts
        self.peer_host = sock.getpeername()[0]
        self.no_region = Region(b"", "")
        self.service = services.make(opts, self)
        self.tx, self.rx = Source(self), Sink(self)
        self.outcome = "refused"
        self.wanted_sizes = list(opts.chrcvbuf)     # still to request by ChRcvBuf
        self.started = False
        self._begin(sock, initiator)

    def _begin(self, sock, initiator):
        """State of a new iWARP stream."""
        self.initiator = initiator
        self.llp = Stream(sock, self.opts, initiator, self)
        self.established = False
        self.peer = None
        if not (bug("susp-mseq") and self.started):
            self.mseq = self.last_sent = 0
        self.rx_next = self.rx_ack = 0
        self.rx_held = False            # MSeqAck must not advance
        self.credit = 0
        self.batch = 0                  # messages of this TCP read
        self.ctl = deque(maxlen=8 if bug("ctl-overflow") else None)   # messages without payload that wait for credit
        self.adv_bufs = 0               # what the peer knows of our buffers ...
        self.rx_since = 0               # ... and what it used since then
        self.work_since = False         # more than empty Data messages came
        self.solicited, self.arrival = False, time.monotonic()
        self.leaked = 0
        self.rcv_size = self.sink_min = self.opts.rcvsz
        self.held = 0
        self.old_left = 0               # buffers of the size before an increase
        self.resizing = False
        self.requested = None           # DesSz of our ChRcvBuf without an ack
        self.overridden = self.no_grow = self.no_shrink = False
        self.susp = None                # port to connect to again
        self.resume = False
        self.tx.restart()
        self.rx.restart()

    # ---- life cycle

    def run(self):
        """Set-up, work, end.  Never raises.  Returns the outcome."""
        try:
            self._stream()
            while self.resume:
                port = self.susp
                self.llp.sock.close()
                self._begin(socket.create_connection((self.peer_host, port), SETUP_TIMEOUT), True)
                self._stream()
        except Refused as why:
            SHARED["refused"] += 1
            self.outcome = "refused" if self.outcome == "refused" else "aborted"
            self.log("refused: %s" % why)
        except OSError as why:
            self.outcome = "aborted"
            self.log("ended: %r" % why)
        finally:
            if self.established:
                SHARED["rx_mode"] = self.rx.mode
            for region in list(self.llp.regions.values()):
                self.llp.forget(region)
            self.llp.sock.close()
        return self.outcome

    def _stream(self):
        self.llp.setup()
        self.outcome = "aborted"
        self.llp.run()

    def log(self, text):
        if self.opts.verbose:
            print("%s %s" % (threading.current_thread().name, text), file=sys.stderr, flush=True)

    def violation(self, why):
        """Abortive close (draft, 8.2.2)."""
        self.log("violation: %s" % why)
        self.outcome = "aborted"
        if self.tx.disconn_sent and not bug("abort-silent") and self.can_send(False):
            self.transmit(ABORT_CONN)
            self.llp.close()
        else:
            self.llp.abort()

    def timer(self):
        pauses = [p for p in (self.tx.timer(), self.rx.timer(), self._patience(), self._fin_wait())
                  if p is not None]
        if not self.established:
            pauses.append(self.llp.time_left())
            if pauses[-1] <= 0:
                self.llp.abort()
        return min(pauses) if pauses else None

    # ---- set-up

    def _own(self):
        ord_ = min(DEPTH, self.llp.ord, self.peer.ird if self.peer else DEPTH)
        return Hello(self.opts.bufs, self.opts.adverts, VERSION, self.opts.rcvsz, self.rcv_size,
                     DEPTH, ord_)

    def _post(self, count):
        self.adv_bufs = self.opts.bufs
        size = self.opts.rcvsz if bug("desired-late") else self.rcv_size
        if bug("resize-shared") and SHARED["rcvsz"]:
            size = min(size, SHARED["rcvsz"])
        self.llp.queues[0].posted.extend([size] * count)

    def own_hello(self):
        """Our Hello Message.  One more buffer is posted, for the HelloAck."""
        self._post(self.opts.bufs + 1)
        return pack_hello(self._own())

    def hello(self, octets):
        """The peer's Hello Message."""
        self._take(parse_hello(octets, HELLO))
        self.rcv_size = self.sink_min = max(self.opts.rcvsz, min(self.peer.desired, 65536))
        self._post(self.opts.bufs)

    def hello_ack(self):
        return pack_hello_ack(self._own())

    def got_hello_ack(self, octets, by_send):
        self._take(parse_hello(octets, HELLO_ACK))
        if not by_send:
            self.llp.queues[0].posted.pop()
        self._start()

    def _take(self, hello):
        self.peer = hello
        self.peer_size = hello.size
        self.credit = hello.bufs
        self.llp.ord = min(self.llp.ord, hello.ird)

    def ready(self):
        """The Accepting Peer may send: first the HelloAck."""
        if self.opts.hello_ack == "send":
            self.llp.send(self.hello_ack(), solicited=True)
        self._start()

    def _start(self):
        self.established = True
        if not self.started:
            self.started = True
            self.service.start()

    # ---- sending

    def peer_view(self):
        """The receive buffers that the peer believes we have."""
        return self.adv_bufs - self.rx_since

    def posted(self):
        return len(self.llp.queues[0].posted)

    def can_send(self, payload):
        """The rules of the draft, 10.5."""
        if self.credit >= (2 if bug("credit-reserve") else 3):
            return True
        if payload or self.credit <= 0:
            return False
        return self.credit == 2 or self.posted() > self.peer_view() or bug("last-credit")

    def transmit(self, mid, ext=b"", payload=b"", flags=0, inv_stag=None):
        """Sends one message; the caller made sure that credits allow it."""
        if self.tx.oob_due(bool(flags & OOB_PRES)):
            flags |= 0 if bug("oob-ctl-lost") and mid != DATA else OOB_PEND
        bufs = min(self.posted(), 0xFFFF)
        if bug("bufs-held"):
            bufs += sum(used for _, _, used in self.rx.inq)
        self.last_sent = self.mseq
        self.mseq = (self.mseq + 1) & MASK
        mseq, ack = self.last_sent, self.rx_ack
        if bug("mseq-16bit"):
            mseq &= 0xFFFF
        if bug("mseqack-8bit"):
            ack &= 0xFF
        solicited = mid in SOLICITED or (mid == DATA and flags & (OOB_PRES | OOB_PEND))
        self.llp.send(pack_message(bufs, flags, mid, mseq, ack, ext + payload), bool(solicited), inv_stag)
        self.credit -= 1
        self.adv_bufs, self.rx_since, self.work_since = bufs, 0, False
        if payload and not (bug("potential-trans") and mid == SINK_AVAIL):
            self.tx.counted()

    def later(self, mid, ext=b"", flags=0, inv_stag=None, first=None):
        """Sends a message without payload as soon as credits allow it.

        With mid None only the function first is called in its turn.
        """
        self.ctl.append((mid, ext, flags, inv_stag, first))

    def _send_ctl(self):
        checked = False
        while self.ctl and (self.ctl[0][0] is None or checked or self.can_send(False)):
            mid, ext, flags, inv_stag, first = self.ctl.popleft()
            if first:
                first()
            if mid is not None:
                self.transmit(mid, ext, b"", flags, inv_stag)
                checked = bug("ctl-burst")

    def pump(self):
        """Does all that is possible now."""
        if not self.established:
            return
        while True:
            before = self.mseq
            self.service.fill()
            self.rx.pump()
            self._send_ctl()
            self._request_size()
            self.tx.pump()
            if self.mseq == before or self.llp.closing:
                break
        if self.llp.closing:
            return
        self.tx.announce()
        if self._update_due() and self.can_send(False):
            self.transmit(DATA)
        patience = self._patience()
        if patience is not None and patience <= 0:
            self.solicited = True
            self.transmit(DATA)
        fin_wait = self._fin_wait()
        if fin_wait is not None and fin_wait <= 0:
            raise Violation("no DisConn in time")
        self._suspend()
        if self.tx.disconn_sent and self.rx.disconn_rcvd and not self.ctl:
            self.outcome = "graceful"
            self.llp.close()

    def _update_due(self):
        """True if the peer needs a message only for its credits."""
        view = self.peer_view()
        if self.posted() <= view:
            return False
        if bug("update-empty") and not self.work_since:
            return False
        if bug("halfclose-update") and self.tx.disconn_sent:
            return False
        limit = max(2, self.opts.bufs // 2) if self.work_since else 1
        if bug("credit-late-update"):
            limit = 1
        return view <= limit

    def _patience(self):
        """Seconds until we use the second to last credit to get an update.

        A peer need not send one before only one credit is left.
        """
        if self.credit != 2 or not self.tx.blocked or self.solicited or self.susp is not None:
            return None
        pause = PATIENCE if self.peer.bufs > 3 else 0.01
        return self.arrival + pause - time.monotonic()

    def _fin_wait(self):
        """Seconds until a bug aborts the connection after our DisConn."""
        if not bug("halfclose-timer") or not self.tx.disconn_sent or self.rx.disconn_rcvd:
            return None
        return self.tx.disconn_at + 2 - time.monotonic()

    # ---- receiving

    def repost(self):
        """Posts one receive Private Buffer."""
        if self.leaked:
            self.leaked -= 1
            return
        if bug("resize-waits") and self.old_left:
            self.held += 1
            return
        size = self.rcv_size
        if bug("resize-recycle") and self.resizing and self.old_left:
            size = self.size_old
        self.llp.queues[0].posted.append(size)

    def on_message(self, octets, invalidated):
        if not self.established:
            if not self.initiator:
                raise Violation("message before our HelloAck")
            self.got_hello_ack(octets, True)
            return
        m = parse_message(octets)
        if m.mseq != self.rx_next:
            raise Violation("MSeq %d, not %d" % (m.mseq, self.rx_next))
        self.rx_next = (m.mseq + 1) & MASK
        self.rx_since += 1
        self._take_credit(m)
        if not self.rx_held:
            self.rx_ack = m.mseq
        self._count_old()
        if m.flags & OOB_PRES and (m.mid != DATA or not m.payload):
            raise Violation("OOB_PRES without data")
        if m.flags & OOB_PEND:
            self.rx.oob_announced += 1
        self.work_since |= bool(m.payload) or m.mid != DATA
        self.solicited, self.arrival = False, time.monotonic()
        self.tx.on_ack(m.mseqack)
        if invalidated is not None and m.mid not in (RD_COMPL, WR_COMPL, SEND_SM):
            raise Violation("STag invalidated by MID %d" % m.mid)
        if not self._dispatch(m, invalidated):
            self.repost()

    def on_read_done(self, src, count):
        self.rx.on_read_done(src, count)

    def hold_ack(self):
        """MSeqAck stays below the message that is being handled."""
        self.rx_held = True
        self.rx_ack = (self.rx_next - 2) & MASK if self.rx_next > 1 else 0

    def release_ack(self):
        self.rx_held = False
        self.rx_ack = (self.rx_next - 1) & MASK

    def _take_credit(self, m):
        ahead = (m.mseqack - self.last_sent) & MASK
        if 0 < ahead < 1 << 31:
            raise Violation("MSeqAck %d, last sent %d" % (m.mseqack, self.last_sent))
        self.batch += 1
        if bug("batch-credit") and self.batch > 1:
            return
        under_way = (self.last_sent - m.mseqack) & MASK
        if bug("credit-in-flight"):
            under_way = 0
        self.credit = max(0, m.bufs - under_way)

    def _count_old(self):
        """Acknowledges an increase when the last old buffer is used."""
        if self.resizing and self.old_left:
            self.old_left -= 1
            if not self.old_left:
                self.llp.queues[0].posted.extend([self.rcv_size] * self.held)
                self.held = 0
                self._ack_size()

    def _dispatch(self, m, invalidated):
        """Handles one message.  True if its buffer is still in use."""
        tx, rx = self.tx, self.rx
        if m.mid == DATA:
            return rx.on_payload(m.payload, bool(m.flags & OOB_PRES))
        if m.mid == SRC_AVAIL:
            return rx.on_src_avail(m)
        if m.mid == SINK_AVAIL:
            stale = m.ext[16:] != struct.pack(">I", tx.potential)
            tx.on_sink_avail(m)
            return rx.on_payload(b"" if bug("stale-payload") and stale else m.payload, False)
        if m.mid in (RD_COMPL, WR_COMPL):
            half = tx if m.mid == RD_COMPL else rx
            half.on_compl(struct.unpack(">I", m.ext)[0], invalidated, m.flags)
        elif m.mid == SEND_SM:
            tx.on_send_sm(m.mseqack, invalidated)
        elif m.mid == MODE_CHANGE:
            word = struct.unpack(">I", m.ext)[0]
            (tx if word & 1 else rx).on_mode(word >> 1 & 7)
        elif m.mid == SRC_CANCEL:
            rx.on_src_cancel()
        elif m.mid == SINK_CANCEL:
            tx.on_sink_cancel()
        elif m.mid == SINK_CANCEL_ACK:
            rx.on_sink_cancel_ack()
        elif m.mid == CH_RCV_BUF:
            self._on_resize(struct.unpack(">I", m.ext)[0])
        elif m.mid == CH_RCV_BUF_ACK:
            self._on_resize_ack(struct.unpack(">I", m.ext)[0])
        elif m.mid == DISCONN:
            rx.on_disconn()
        elif m.mid == SUSP_COMM:
            self._on_susp(*struct.unpack(">IHH", m.ext))
        elif m.mid == ABORT_CONN:
            if bug("abort-late") and rx.disconn_rcvd:
                return False
            self.log("got AbortConn")
            self.outcome = "aborted"
            self.llp.abort()
        else:
            raise Violation("SuspCommAck without SuspComm")
        return False

    # ---- sizes of receive Private Buffers

    def _on_resize(self, wanted):
        """ChRcvBuf: our buffers (draft, 10.6)."""
        if self.requested is not None:
            if not self.initiator:
                return                  # both requested: the Accepting Peer disregards
            self.requested, self.overridden = None, True
        if self.resizing:
            raise Violation("ChRcvBuf before the ack")
        self.size_old = self.rcv_size
        old = self.opts.rcvsz if bug("resize-base") else self.rcv_size
        if wanted > old:
            self.rcv_size = max(old, min(wanted, self.opts.max_rcvsz))
        else:
            self.rcv_size = min(old, max(wanted, SMALLEST))
        if bug("credit-leak-resize"):
            self.leaked += 1
        if bug("resize-shared") and self.rcv_size < self.size_old:
            SHARED["rcvsz"] = self.rcv_size
        self.resizing = True
        self.old_left = 0
        if self.rcv_size > old:
            posted = self.llp.queues[0].posted
            self.old_left = len(posted)
            if self.opts.ack_now:
                self.llp.queues[0].posted = deque([self.rcv_size] * len(posted))
                self.old_left = 0
        if not self.old_left:
            self._ack_size()

    def _ack_size(self):
        def sent():
            self.resizing = False
            if not bug("resize-sinkavail"):
                self.sink_min = self.rcv_size
        self.later(CH_RCV_BUF_ACK, struct.pack(">I", self.rcv_size), first=sent)

    def _request_size(self):
        """Sends the next ChRcvBuf of --chrcvbuf."""
        if not self.wanted_sizes or self.requested is not None or self.overridden or self.susp is not None:
            return
        if not self.can_send(False):
            return
        size = self.wanted_sizes.pop(0)
        if size == self.peer_size or (self.no_grow if size > self.peer_size else self.no_shrink):
            return
        self.requested, self.size_before = size, self.peer_size
        self.transmit(CH_RCV_BUF, struct.pack(">I", size))
        if size < self.peer_size or bug("resize-early"):
            self.peer_size = size

    def _on_resize_ack(self, actual):
        """ChRcvBufAck: the peer's buffers."""
        if self.requested is None:
            if self.overridden:
                return
            raise Violation("ChRcvBufAck without ChRcvBuf")
        wanted, old = self.requested, self.size_before
        if wanted > old and actual < old or wanted < old and not wanted <= actual <= old:
            raise Violation("ActSz %d after DesSz %d" % (actual, wanted))
        self.no_grow |= wanted > old and actual == old
        self.no_shrink |= wanted < old and actual == old
        self.requested = None
        self.peer_size = actual

    # ---- suspension

    def _on_susp(self, constant1, port, constant2):
        if constant1 or constant2 != 1 or not port:
            raise Violation("SuspComm constants")
        self.susp = port

    def _suspend(self):
        """Sends SuspCommAck when nothing is In-Process, then ends the stream."""
        if self.susp is None or self.resume or self.llp.reads or self.ctl or not self.can_send(False):
            return
        self.transmit(SUSP_COMM_ACK)
        self.resume = True
        self.llp.linger = 0.3
        self.llp.close()


assert BSDH + 21 == SMALLEST
