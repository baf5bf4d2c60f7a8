"""MPA set-up of an iWARP stream (RFC 5044, 7.1 and RFC 6581) with the SDP Hello.

The Hello Message is the Private Data of the MPA Request Frame; the HelloAck is
the first Send, or the Private Data of the Reply Frame (--hello-ack reply).
"""

import socket
import struct
import time

from wire import MPA, WRITE, Fault, FpduReader, FpduWriter, Refused, Violation

DEPTH = 16                      # RDMA Reads: inbound and outbound
SETUP_TIMEOUT = 10.0            # for the MPA Request or Reply, the RTR and the HelloAck


class Setup:
    """The part of Stream that runs before Full Operation."""

    def setup(self):
        self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.setup_end = time.monotonic() + SETUP_TIMEOUT
        try:
            if self.opts.hello == "stream":
                self._setup_bare()
            elif self.initiator:
                self._setup_initiator()
            else:
                self._setup_responder()
        except OSError as why:
            raise Refused(str(why))

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            self.sock.settimeout(max(self.setup_end - time.monotonic(), 0.001))
            part = self.sock.recv(count - len(data))
            if not part:
                raise Refused("closed during set-up")
            data += part
        return data

    def _frame(self, key):
        """One set-up frame: (flags, revision, private data)."""
        if self._exactly(16) != key:
            raise Refused("wrong key")
        flags, rev, length = struct.unpack(">BBH", self._exactly(4))
        if length > 512:
            raise Refused("too much private data")
        return flags, rev, self._exactly(length)

    def _nothing_more(self):
        """The Initiator must wait for our Reply; more data is malformed."""
        self.sock.setblocking(False)
        try:
            if self.sock.recv(1, socket.MSG_PEEK):
                raise Refused("data after the private data")
        except BlockingIOError:
            pass
        self.sock.settimeout(SETUP_TIMEOUT)

    def _own_flags(self):
        return (0x80 if self.opts.markers else 0) | (0 if self.opts.no_crc else 0x40)

    def _full_operation(self, flags):
        """Makes the framing; flags are those of the peer's frame."""
        use_crc = bool((flags | self._own_flags()) & 0x40)
        self.writer = FpduWriter(use_crc, bool(flags & 0x80))
        self.reader = FpduReader(use_crc, self.opts.markers)

    def _reply(self, flags, rev, private):
        self.sock.sendall(b"MPA ID Rep Frame" + struct.pack(
            ">BBH", self._own_flags() | flags, rev, len(private)) + private)

    def _setup_responder(self):
        flags, rev, private = self._frame(b"MPA ID Req Frame")
        if rev not in (1, 2):
            raise Refused("revision %d" % rev)
        enhanced = rev == 2 and bool(flags & 0x10)
        if enhanced and len(private) < 4:
            raise Refused("no enhanced data")
        self._nothing_more()
        reply = b""
        if enhanced:
            reply = self._negotiate(*struct.unpack_from(">HH", private))
            private = private[4:]
        bits = 0x10 if enhanced else 0
        try:
            self.ulp.hello(private)
        except Violation as why:
            self._reply(bits | 0x20, rev, reply)
            raise Refused(str(why))
        if self.opts.hello_ack == "reply":
            reply += self.ulp.hello_ack()
        self._reply(bits, rev, reply)
        self._full_operation(flags)
        if not self.rtr:
            self.ulp.ready()

    def _negotiate(self, word_ird, word_ord):
        """The enhanced data of the Reply (RFC 6581, 9)."""
        ird, ord_ = word_ird & 0x3FFF, word_ord & 0x3FFF
        own_ird = 0x3FFF if ord_ == 0x3FFF else DEPTH
        own_ord = 0x3FFF
        if ird != 0x3FFF:
            own_ord = self.ord = min(DEPTH, ird)
        if word_ird & 0x8000:
            if word_ird & 0x4000:
                self.rtr, own_ird = "send", own_ird | 0x4000
                self.queues[0].posted.append(0)
            elif word_ord & 0x4000 and not word_ord & 0x8000:
                self.rtr, own_ord = "read", own_ord | 0x4000
            else:
                self.rtr, own_ord = "write", own_ord | 0x8000
            own_ird |= 0x8000
        return struct.pack(">HH", own_ird, own_ord)

    def _setup_initiator(self):
        p2p = self.opts.p2p
        private = b""
        if self.opts.rev == 2:
            private = struct.pack(">HH", DEPTH | (0xC000 if p2p else 0), DEPTH | (0xC000 if p2p else 0))
        bits = self._own_flags() | (0x10 if private else 0)
        private += self.ulp.own_hello()
        self.sock.sendall(b"MPA ID Req Frame" + struct.pack(">BBH", bits, self.opts.rev, len(private))
                          + private)
        flags, rev, reply = self._frame(b"MPA ID Rep Frame")
        enhanced = self.opts.rev == 2
        if rev not in (1, 2) or rev > self.opts.rev:
            raise Refused("revision %d" % rev)
        if enhanced and (rev != 2 or not flags & 0x10 or len(reply) < 4):
            raise Refused("reply is not enhanced")
        if flags & 0x20:
            raise Refused("rejected by the responder")
        self._full_operation(flags)
        if enhanced:
            self._accept(*struct.unpack_from(">HH", reply))
            reply = reply[4:]
        if reply:
            self._hello_ack(reply)

    def _hello_ack(self, octets):
        try:
            self.ulp.got_hello_ack(octets, False)
        except Violation as why:
            raise Refused(str(why))

    def _accept(self, word_ird, word_ord):
        """Takes the Responder's values over and sends the RTR."""
        ird, ord_ = word_ird & 0x3FFF, word_ord & 0x3FFF
        if ird != 0x3FFF:
            self.ord = min(DEPTH, ird)
        if ord_ != 0x3FFF and ord_ > DEPTH:
            self.terminate(Fault(MPA, 0, 6))
        elif not self.opts.p2p:
            return
        elif word_ord & 0x8000 and word_ird & 0x8000:
            self.tagged(WRITE, 0, 0, b"")
        elif word_ird & 0x8000 and word_ird & 0x4000:
            self.send(b"")
        elif word_ird & 0x8000 and word_ord & 0x4000:
            self.read(self.ulp.no_region, 0, 0, 0, 0, None)
        else:
            self.terminate(Fault(MPA, 0, 7))

    def _setup_bare(self):
        """The draft without RFC 5044's frames: the Hello alone comes first."""
        if self.initiator:
            self.sock.sendall(self.ulp.own_hello())
        else:
            try:
                self.ulp.hello(self._exactly(32))
            except Violation as why:
                raise Refused(str(why))
        self._full_operation(0)
        if not self.initiator:
            self.ulp.ready()
