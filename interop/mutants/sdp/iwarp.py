"""One iWARP stream (MPA, DDP, RDMAP over TCP) under an SDP connection.

The ulp object gets: hello(octets) and hello_ack() at set-up, on_message,
on_read_done and violation while data flow, pump() after each turn, and
timer() gives the seconds until it wants the next turn.
"""

import select
import socket
import struct
import time
from collections import deque

from bugs import SHARED, bug
from mpa import DEPTH, Setup
from wire import (DDP, MASK, MPA, RDMAP, READ_REQ, READ_RESP, SEND, SEND_INV, SEND_SE, SEND_SE_INV,
                  SENDS, TERM, WRITE, Fault, UntaggedQueue, Violation)

SEGMENT = 1400                  # octets of one ULPDU we send, at most
OUT_LIMIT = 64 << 20            # stop reading when so much waits to be sent
LINGER = 5.0                    # for the peer's FIN after our last octet
LAST_SEND = 30.0                # for the peer to take what is left to send


class Outstanding:
    """An RDMA Read we issued: tag goes back to the ulp when it is done."""

    def __init__(self, region, offset, size, tag):
        self.region, self.offset, self.size, self.tag = region, offset, size, tag
        self.got = 0
        self.cut = False


class Stream(Setup):
    """Everything received in one TCP read is worked off before the socket is
    written, and what the socket does not take stays in self.out."""

    def __init__(self, sock, opts, initiator, ulp):
        self.sock, self.opts, self.initiator, self.ulp = sock, opts, initiator, ulp
        self.out = bytearray()
        self.queued = self.sent = 0     # octets given to out / to TCP
        self.inbound_reads = []         # for each Read: where its answer ends
        self.tx_msn = [1, 1, 1]
        self.regions = {}
        self.reads = deque()
        self.ord = DEPTH
        self.closing = False            # nothing more is received or queued
        self.reset = False
        self.rtr = ""                   # kind of the RTR we still wait for
        self.linger = LINGER
        self.queues = [UntaggedQueue(private=True), UntaggedQueue([28] * DEPTH), UntaggedQueue([52])]

    # ---- life cycle

    def run(self):
        """Full Operation until either side ends it."""
        self.sock.setblocking(False)
        poll = select.poll()
        poll.register(self.sock)
        finished = shut = False         # the peer's FIN came / ours is sent
        deadline = None
        self._turn()
        self._flush()
        while not self.reset:
            if finished and not self.out:
                return
            if self.closing and not self.out and not shut:
                self.sock.shutdown(socket.SHUT_WR)
                shut = True
                deadline = time.monotonic() + self.linger
            if deadline is None and (self.closing or finished):
                deadline = time.monotonic() + LAST_SEND
            want = select.POLLOUT if self.out else 0
            if not finished and len(self.out) < OUT_LIMIT:
                want |= select.POLLIN
            poll.modify(self.sock, want)
            wait = self._wait(deadline)
            if wait is not None and wait <= 0 and deadline is not None:
                return
            for _, event in poll.poll(wait):
                if event & (select.POLLIN | select.POLLHUP | select.POLLERR) and not finished:
                    finished = self._receive()
            self._turn()
            self._flush()

    def _wait(self, deadline):
        """Milliseconds to wait for the socket, None without a limit."""
        if deadline is not None:
            return 1000 * (deadline - time.monotonic())
        pause = self.ulp.timer()
        return None if pause is None else max(1, 1000 * pause)

    def time_left(self):
        """Seconds that remain for the set-up."""
        return self.setup_end - time.monotonic()

    def _turn(self):
        if self.closing or self.rtr:
            return
        try:
            self.ulp.pump()
        except Violation as why:
            self.ulp.violation(why)

    def _receive(self):
        """One TCP read and all its FPDUs.  True at the peer's FIN."""
        try:
            data = self.sock.recv(1 << 18)
        except BlockingIOError:
            return False
        if not data:
            return True
        if self.closing:
            return False
        self.reader.feed(data)
        self.ulp.batch = 0
        while not self.closing:
            try:
                ulpdu = self.reader.next()
                if ulpdu is None:
                    break
                self._on_ulpdu(ulpdu)
            except Fault as fault:
                self.terminate(fault)
            except Violation as why:
                self.ulp.violation(why)
        between = not self.reader.buf
        self.queues[0].cut = between and bool(self.queues[0].parts)
        if self.reads:
            self.reads[0].cut = between and self.reads[0].got > 0
        return False

    def _flush(self):
        while self.out:
            try:
                count = self.sock.send(memoryview(self.out)[:1 << 18].tobytes())
            except BlockingIOError:
                return
            del self.out[:count]
            self.sent += count

    def terminate(self, fault):
        """Sends the Terminate and ends the stream."""
        self.ulp.log("sends %s" % fault)
        self._untagged(2, TERM, fault.message(), 0)
        self.closing = True

    def close(self):
        """Graceful end: what is queued still goes out, then FIN."""
        self.closing = True

    def abort(self):
        """Ends at once, with RST."""
        self.closing = self.reset = True
        self.out.clear()
        self.sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    # ---- sending

    def _segment_size(self, header):
        """Payload octets of one segment: up to 1,400, or less if TCP has less."""
        emss = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        over = 6 + emss % 4
        if self.writer.markers:
            over += 4 * -(-emss // 512)
        return min(SEGMENT, max(emss - over, 128)) - header

    def _queue(self, ulpdu):
        fpdu = self.writer.frame(ulpdu)
        self.out += fpdu
        self.queued += len(fpdu)

    def _untagged(self, qn, opcode, payload, stag):
        msn = self.tx_msn[qn]
        self.tx_msn[qn] = (msn + 1) & MASK
        step = self._segment_size(18)
        for mo in range(0, max(len(payload), 1), step):
            last = mo + step >= len(payload)
            self._queue(struct.pack(">BBIIII", 0x41 if last else 0x01, 0x40 | opcode, stag, qn,
                                    msn, mo) + payload[mo:mo + step])

    def send(self, payload, solicited=False, inv_stag=None):
        """One Send; invalidates a tagged buffer of the peer if inv_stag is given."""
        if inv_stag is None:
            self._untagged(0, SEND_SE if solicited else SEND, payload, 0)
        else:
            self._untagged(0, SEND_SE_INV if solicited else SEND_INV, payload, inv_stag)

    def tagged(self, opcode, stag, to, payload):
        """One RDMA Write or Read Response into a tagged buffer of the peer."""
        step = self._segment_size(14)
        for offset in range(0, max(len(payload), 1), step):
            last = offset + step >= len(payload)
            at = (to + offset) & 0xFFFFFFFFFFFFFFFF
            self._queue(struct.pack(">BBIQ", 0xC1 if last else 0x81, 0x40 | opcode, stag, at)
                        + payload[offset:offset + step])

    def read(self, region, offset, size, stag, to, tag):
        """Reads size octets of the peer's buffer to region's offset."""
        self.reads.append(Outstanding(region, offset, size, tag))
        self._untagged(1, READ_REQ, struct.pack(">IQIIQ", region.stag, region.base + offset, size,
                                                stag, to & 0xFFFFFFFFFFFFFFFF), 0)

    # ---- tagged buffers

    def register(self, region):
        while region.stag in self.regions or not region.stag:
            region.stag += 1
        self.regions[region.stag] = region
        if bug("shared-stags"):
            SHARED["regions"][region.stag] = region
        return region

    def forget(self, region):
        self.regions.pop(region.stag, None)
        SHARED["regions"].pop(region.stag, None)

    def _region(self, stag):
        if bug("shared-stags"):
            return SHARED["regions"].get(stag)
        return self.regions.get(stag)

    # ---- receiving

    def _on_ulpdu(self, ulpdu):
        try:
            self._check_ddp(ulpdu)
            if ulpdu[1] >> 6 > 1:       # RV: 00b and 01b are valid
                raise Fault(RDMAP, 2, 5)
            if ulpdu[0] & 0x80:
                self._on_tagged(ulpdu)
            else:
                self._on_untagged(ulpdu)
        except Fault as fault:
            if fault.etype != 0 and fault.layer != MPA:
                fault.seg = ulpdu
            raise

    def _check_ddp(self, ulpdu):
        """The DDP header checks; they come before any RDMAP check."""
        if not ulpdu or len(ulpdu) < (14 if ulpdu[0] & 0x80 else 18):
            raise Fault(DDP, 0, 0)
        tagged = ulpdu[0] & 0x80
        if ulpdu[0] & 3 != 1:
            raise Fault(DDP, 1, 4) if tagged else Fault(DDP, 2, 6)
        if not tagged:
            qn, msn, mo = struct.unpack_from(">III", ulpdu, 6)
            if qn > 2:
                raise Fault(DDP, 2, 1)
            self.queues[qn].check(msn, mo, len(ulpdu) - 18)
            return
        stag, to = struct.unpack_from(">IQ", ulpdu, 2)
        count = len(ulpdu) - 14
        if count:
            region = self._region(stag)
            if region is None:
                raise Fault(DDP, 1, 0)
            if to + count > 1 << 64:
                raise Fault(DDP, 1, 3)
            if not region.holds(to, count):
                raise Fault(DDP, 1, 1)

    def _on_tagged(self, ulpdu):
        opcode = ulpdu[1] & 15
        stag, to = struct.unpack_from(">IQ", ulpdu, 2)
        data = ulpdu[14:]
        if opcode == WRITE:
            if data:
                region = self._region(stag)
                if region.rights != "w":
                    raise Fault(RDMAP, 1, 2)
                offset = to - region.base
                region.data[offset:offset + len(data)] = data
            self._rtr_came("write")
        elif opcode == READ_RESP and self.reads:
            self._on_response(stag, to, data, bool(ulpdu[0] & 0x40))
        else:
            raise Fault(RDMAP, 2, 6)

    def _on_response(self, stag, to, data, last):
        """A segment of the answer to our oldest Read."""
        read = self.reads[0]
        offset = read.offset + read.got
        if data and (stag != read.region.stag or to != read.region.base + offset
                     or read.got + len(data) > read.size):
            raise Fault(RDMAP, 2, 0xFF)
        if bug("split-response") and read.cut:
            offset = read.offset
        read.cut = False
        read.region.data[offset:offset + len(data)] = data
        read.got += len(data)
        if last:
            if read.got != read.size:
                raise Fault(RDMAP, 2, 0xFF)
            self.reads.popleft()
            if read.tag is not None:
                self.ulp.on_read_done(read.tag, read.size)

    def _on_untagged(self, ulpdu):
        opcode, last = ulpdu[1] & 15, bool(ulpdu[0] & 0x40)
        inv_stag, qn = struct.unpack_from(">II", ulpdu, 2)
        if opcode not in (SENDS, (READ_REQ,), (TERM,))[qn]:
            raise Fault(RDMAP, 2, 6)
        if qn == 1 and not self.queues[1].parts:
            self._check_depth()
        message = self.queues[qn].place(ulpdu[18:], last)
        if message is None:
            return
        if qn == 2:
            self.ulp.log("got terminate %s" % message[:4].hex())
            self.close()
        elif qn == 1:
            self.queues[1].posted.append(28)
            self._on_read_request(message)
        elif self.rtr == "send" and not message and self.queues[0].msn == 2:
            self._rtr_came("send")
        else:
            self._on_send(opcode, inv_stag, message)

    def _on_send(self, opcode, inv_stag, message):
        invalidated = None
        if opcode in (SEND_INV, SEND_SE_INV):
            invalidated = self.regions.get(inv_stag)
            if invalidated is None:
                raise Fault(RDMAP, 1, 9)
            self.forget(invalidated)
        self.ulp.on_message(message, invalidated)

    def _check_depth(self):
        """No more inbound Reads than the depth promised."""
        self.inbound_reads = [end for end in self.inbound_reads if end > self.sent]
        if len(self.inbound_reads) >= (DEPTH // 2 if bug("ird-half") else DEPTH):
            raise Fault(DDP, 2, 2)

    def _on_read_request(self, header):
        if len(header) != 28:
            raise Fault(RDMAP, 2, 0xFF)
        sink, sink_to, size, stag, to = struct.unpack(">IQIIQ", header)
        content = b""
        if size:
            region = self._region(stag)
            if region is None:
                raise Fault(RDMAP, 1, 0, header)
            if to + size > 1 << 64:
                raise Fault(RDMAP, 1, 4, header)
            if not region.holds(to, size):
                raise Fault(RDMAP, 1, 1, header)
            if region.rights != "r":
                raise Fault(RDMAP, 1, 2, header)
            content = bytes(region.data[to - region.base:to - region.base + size])
        self.tagged(READ_RESP, sink, sink_to, content)
        self.inbound_reads.append(self.queued)
        self._rtr_came("read")

    def _rtr_came(self, kind):
        """The RTR of RFC 6581: from now on we may send, first the HelloAck."""
        if self.rtr == kind:
            self.rtr = ""
            self.ulp.ready()
