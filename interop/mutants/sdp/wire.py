"""Octets on the wire: CRC32c, MPA framing, DDP queues and buffers, SDP headers.

Only what SDP needs: one untagged queue with Private Buffers of several sizes,
tagged buffers with access rights, all SDP messages of draft-pinkerton-iwarp-sdp-01.
"""

import array
import random
import struct
import sys
from collections import deque, namedtuple

from bugs import bug

WRITE, READ_REQ, READ_RESP, SEND, SEND_INV, SEND_SE, SEND_SE_INV, TERM = range(8)
SENDS = (SEND, SEND_INV, SEND_SE, SEND_SE_INV)
RDMAP, DDP, MPA = 0, 1, 2       # layer numbers of the Terminate message

(HELLO, HELLO_ACK, DISCONN, ABORT_CONN, SEND_SM, WR_COMPL, RD_COMPL, MODE_CHANGE, SRC_CANCEL,
 SINK_CANCEL, SINK_CANCEL_ACK, CH_RCV_BUF, CH_RCV_BUF_ACK, SUSP_COMM, SUSP_COMM_ACK) = range(15)
SINK_AVAIL, SRC_AVAIL, DATA = 0xFD, 0xFE, 0xFF
EXTENSION = {WR_COMPL: 4, RD_COMPL: 4, MODE_CHANGE: 4, CH_RCV_BUF: 4, CH_RCV_BUF_ACK: 4,
             SUSP_COMM: 8, SRC_AVAIL: 16, SINK_AVAIL: 20}
PLAIN = (DISCONN, ABORT_CONN, SEND_SM, SRC_CANCEL, SINK_CANCEL, SINK_CANCEL_ACK, SUSP_COMM_ACK)
SOLICITED = (ABORT_CONN, SUSP_COMM, SUSP_COMM_ACK, SEND_SM, SRC_CANCEL, SINK_CANCEL, HELLO_ACK,
             WR_COMPL, RD_COMPL, SINK_CANCEL_ACK)
OOB_PRES, OOB_PEND, REQ_PIPE = 1, 2, 4
BUFFERED, COMBINED, PIPELINED = 0, 1, 2
BSDH = 16
MASK = 0xFFFFFFFF
LARGEST_LEN = 1 << 31

Message = namedtuple("Message", "bufs flags mid mseq mseqack ext payload")
Hello = namedtuple("Hello", "bufs adverts version desired size ird ord")


# ---------------------------------------------------------------- errors

class Fault(Exception):
    """An error of MPA, DDP or RDMAP that ends the stream with a Terminate.

    seg is the faulty DDP segment (None: no header in the Terminate), rdma the
    Read Request header where the error concerns one.
    """

    def __init__(self, layer, etype, code, rdma=b""):
        super().__init__("terminate %d/%d/0x%02x" % (layer, etype, code))
        self.layer, self.etype, self.code = layer, etype, code
        self.rdma = rdma
        self.seg = None

    def message(self):
        """Payload of the Terminate message (RFC 5040, 4.8)."""
        head = self.seg is not None
        read = head and len(self.rdma) == 28
        bits = (0xC0 if head else 0) | (0x20 if read else 0)
        out = struct.pack(">BBBB", self.layer << 4 | self.etype, self.code, bits, 0)
        if head:
            size = 14 if self.seg[0] & 0x80 else 18
            out += struct.pack(">H", len(self.seg)) + bytes(self.seg[:size])
        if read:
            out += self.rdma
        return out


class Violation(Exception):
    """The peer violates the SDP protocol: abortive close."""


class Refused(Exception):
    """Set-up failed; the connection is closed without any FPDU."""


# ---------------------------------------------------------------- SDP messages

def pack_message(bufs, flags, mid, mseq, mseqack, rest=b""):
    return struct.pack(">HBBIII", bufs, flags, mid, BSDH + len(rest), mseq, mseqack) + rest


def parse_message(octets):
    """A Message, or Violation if it is incorrectly formatted."""
    if len(octets) < BSDH:
        raise Violation("message of %d octets" % len(octets))
    bufs, flags, mid, size, mseq, mseqack = struct.unpack_from(">HBBIII", octets)
    if size != len(octets):
        raise Violation("Len %d in a message of %d octets" % (size, len(octets)))
    if mid not in EXTENSION and mid not in PLAIN and mid != DATA:
        raise Violation("MID %d" % mid)
    end = BSDH + EXTENSION.get(mid, 0)
    if len(octets) < end or (len(octets) > end and mid not in (DATA, SRC_AVAIL, SINK_AVAIL)):
        raise Violation("MID %d with %d octets" % (mid, len(octets)))
    return Message(bufs, flags, mid, mseq, mseqack, octets[BSDH:end], octets[end:])


def pack_hello(hello):
    rest = struct.pack(">HBBIIHH", hello.adverts, 0, hello.version, hello.desired, hello.size,
                       hello.ird, hello.ord)
    return pack_message(hello.bufs, 0, HELLO, 0, 0, rest)


def pack_hello_ack(hello):
    rest = struct.pack(">HBBIHH", hello.adverts, 0, hello.version, hello.size, hello.ird, hello.ord)
    return pack_message(hello.bufs, 0, HELLO_ACK, 0, 0, rest)


def parse_hello(octets, mid):
    """A Hello from a Hello or HelloAck Message.  MSeq and MSeqAck are not checked."""
    want = 32 if mid == HELLO else 28
    if len(octets) != want:
        raise Violation("set-up message of %d octets" % len(octets))
    bufs, flags, got, size = struct.unpack_from(">HBBI", octets)
    if got != mid or size != want or flags:
        raise Violation("set-up message with MID %d, Len %d, Flags %d" % (got, size, flags))
    if mid == HELLO:
        adverts, _, version, desired, local, ird, ord_ = struct.unpack_from(">HBBIIHH", octets, 16)
    else:
        adverts, _, version, local, ird, ord_ = struct.unpack_from(">HBBIHH", octets, 16)
        desired = 0
    hello = Hello(bufs, adverts, version, desired, local, ird, ord_)
    if version & 15 != 1:
        raise Violation("MajV %d" % (version & 15))
    if not adverts or not ird or not ord_:
        raise Violation("MaxAdverts, LocIRD or LocORD is 0")
    if bufs < 3:
        raise Violation("only %d Private Buffers" % bufs)
    if not 37 <= local <= LARGEST_LEN:
        raise Violation("Private Buffers of %d octets" % local)
    return hello


# ---------------------------------------------------------------- CRC32c

def _tables():
    """Tables of CRC32c for one octet and for two octets at a time."""
    one = []
    for i in range(256):
        c = i
        for _ in range(8):
            c = (c >> 1) ^ (0x82F63B78 if c & 1 else 0)
        one.append(c)
    two = []
    for i in range(65536):
        c = (i >> 8) ^ one[i & 255]
        two.append((c >> 8) ^ one[c & 255])
    return one, two


CRC_ONE, CRC_TWO = _tables()


def crc32c(data):
    """CRC32c as in iSCSI.  Returned as the four octets to send."""
    c = 0xFFFFFFFF
    table = CRC_TWO
    even = len(data) & ~1
    words = array.array("H", bytes(data[:even]))
    if sys.byteorder == "big":
        words.byteswap()
    for w in words:
        c = table[(c ^ w) & 0xFFFF] ^ (c >> 16)
    if even != len(data):
        c = CRC_ONE[(c ^ data[-1]) & 255] ^ (c >> 8)
    return struct.pack("<I", c ^ 0xFFFFFFFF)


# ---------------------------------------------------------------- MPA framing

class FpduWriter:
    """Turns ULPDUs into the octets of the TCP stream (RFC 5044, 4)."""

    def __init__(self, use_crc, markers):
        self.use_crc, self.markers = use_crc, markers
        self.pos = 0            # octets sent since Full Operation began

    def frame(self, ulpdu):
        """One FPDU, with the markers that fall into it."""
        body = struct.pack(">H", len(ulpdu)) + ulpdu
        body += bytes(-len(body) % 4)
        if self.markers:
            body = self._insert_markers(body)
        crc = crc32c(body) if self.use_crc else bytes(4)
        self.pos += len(body) + 4
        return body + crc

    def _insert_markers(self, body):
        raw = bytearray()
        start = None            # where ULPDU Length is within raw
        done = 0
        while True:
            if (self.pos + len(raw)) % 512 == 0:
                raw += struct.pack(">HH", 0, 0 if start is None else len(raw) - start)
            if start is None:
                start = len(raw)
            if done == len(body):
                return bytes(raw)
            room = 512 - (self.pos + len(raw)) % 512
            raw += body[done:done + room]
            done = min(done + room, len(body))


class FpduReader:
    """Finds the ULPDUs in the received octets, however TCP cut them."""

    def __init__(self, use_crc, markers):
        self.use_crc, self.markers = use_crc, markers
        self.buf = bytearray()
        self.pos = 0                    # octets of the stream before buf

    def feed(self, data):
        self.buf += data

    def next(self):
        """The next complete ULPDU, or None.  Raises Fault on a bad FPDU."""
        lead = 4 if self.markers and self.pos % 512 == 0 else 0
        if len(self.buf) < lead + 2:
            return None
        length = self.buf[lead] << 8 | self.buf[lead + 1]
        body = 2 + length + -(2 + length) % 4
        size = self._raw_size(body) if self.markers else body
        if len(self.buf) < size + 4:
            return None
        covered = bytes(self.buf[:size])
        crc = bytes(self.buf[size:size + 4])
        del self.buf[:size + 4]
        if self.use_crc and crc32c(covered) != crc:
            raise Fault(MPA, 0, 2)
        plain = covered
        if self.markers:
            self._check_markers(covered)
            plain = self._strip(covered)
        self.pos += size + 4
        return plain[2:2 + length]

    def _raw_size(self, body):
        """Octets that a body of this size takes with its markers."""
        at, left = self.pos, body
        while True:
            if at % 512 == 0:
                at += 4
            if left == 0:
                return at - self.pos
            step = min(left, 512 - at % 512)
            at += step
            left -= step

    def _strip(self, raw):
        """The body without the markers."""
        out = bytearray()
        at = 0
        while at < len(raw):
            offset = (self.pos + at) % 512
            if offset == 0:
                at += 4
                offset = 4
            out += raw[at:at + 512 - offset]
            at += 512 - offset
        return bytes(out)

    def _check_markers(self, raw):
        """Markers must point to the start of their FPDU (code 3)."""
        start = 4 if self.pos % 512 == 0 else 0
        at = -self.pos % 512
        while at < len(raw):
            pointer = struct.unpack_from(">H", raw, at + 2)[0] & ~3
            if pointer != max(0, at - start):
                raise Fault(MPA, 0, 3)
            at += 512


# ---------------------------------------------------------------- DDP

class UntaggedQueue:
    """One untagged queue with posted buffers, used in the order of posting.

    TCP loses nothing, so the segments of one message must follow one another
    without a hole.  private: these are the Private Buffers of SDP.
    """

    def __init__(self, sizes=(), private=False):
        self.posted, self.private = deque(sizes), private
        self.msn = 1
        self.parts = bytearray()
        self.cut = False                # a TCP read ended inside this message

    def check(self, msn, mo, count):
        """The DDP checks of RFC 5041, 7.1, for this segment."""
        if not self.posted:
            raise Fault(DDP, 2, 2)
        if msn != self.msn:
            raise Fault(DDP, 2, 3)
        room = self.posted[0] - (1 if bug("exact-fit") and self.private else 0)
        if count and mo + count > room:
            raise Fault(DDP, 2, 5)
        if mo != len(self.parts):
            raise Fault(DDP, 2, 4)

    def place(self, data, last):
        """Places one checked segment; returns the message if complete."""
        if bug("split-segment") and self.cut:
            data = (bytes(self.parts) * (len(data) // len(self.parts) + 1))[:len(data)]
        self.cut = False
        self.parts += data
        if not last:
            return None
        message = bytes(self.parts)
        self.parts = bytearray()
        self.posted.popleft()
        self.msn = (self.msn + 1) & MASK
        return message


class Region:
    """A tagged buffer: an STag, the TO of its first octet, octets, rights."""

    def __init__(self, content, rights):
        self.stag = random.SystemRandom().randrange(1, 1 << 32)
        size = len(content)
        # The buffer lies across a multiple of 2^32, as a heap address may.
        self.base = (random.randrange(0x100, 0x7F00) << 32) - (size // 2 + random.randrange(4))
        self.data = bytearray(content)
        self.rights = rights            # "r": remote read, "w": remote write, "": local

    def holds(self, to, count):
        """True if the octets to ... to+count-1 lie inside."""
        end = self.base + len(self.data)
        if bug("read-last-octet") and self.rights == "r" and to > self.base and to + count == end:
            return False
        return self.base <= to and to + count <= end
