"""MPA (RFC 5044, RFC 6581), DDP (RFC 5041) and RDMAP (RFC 5040) over `tcp.Connection`.

Each FPDU goes into a segment of its own, so FPDUs are aligned unless a scene sends them otherwise.
"""
import struct

from .tcp import Connection

WRITE, READ_REQUEST, READ_RESPONSE, SEND, SEND_INV, SEND_SE, SEND_SE_INV, TERMINATE = range(8)

TABLE = []
for _index in range(256):
    _value = _index
    for _ in range(8):
        _value = _value >> 1 ^ (0x82F63B78 if _value & 1 else 0)
    TABLE.append(_value)


def crc32c(data):
    value = 0xFFFFFFFF
    for octet in data:
        value = value >> 8 ^ TABLE[(value ^ octet) & 0xFF]
    return value ^ 0xFFFFFFFF


class Stream:
    """The FPDUs of one direction."""

    def __init__(self, markers=False, crc=True):
        self.markers, self.crc = markers, crc
        self.position = 0           # octets since the start-up frame
        self.compute = None         # replaces the computation of the CRC: (body, pad) -> value
        self.pointer_error = 0      # added to FPDUPTR of markers

    def fpdu(self, ulpdu):
        pad = bytes(-(2 + len(ulpdu)) % 4)
        body = struct.pack(">H", len(ulpdu)) + ulpdu + pad
        out = bytearray()

        def due():
            return self.markers and (self.position + len(out)) % 512 == 0

        if due():
            out += bytes(4)
        head = len(out)
        for offset in range(0, len(body), 4):
            if due() and len(out) > head:
                out += self.marker(len(out) - head)
            out += body[offset:offset + 4]
        if due():
            out += self.marker(len(out) - head)
        value = 0
        if self.compute:
            value = self.compute(bytes(out), len(pad))
        elif self.crc:
            value = crc32c(out)
        out += struct.pack("<I", value)
        self.position += len(out)
        return bytes(out)

    def marker(self, distance):
        return struct.pack(">HH", 0, distance + self.pointer_error)


class DdpSegment:
    """A DDP segment that was sent: its frame, its header, its length, its Read Request header."""

    def __init__(self, tcp, ulpdu):
        self.tcp, self.frame = tcp, tcp.frame
        self.header = ulpdu[:14 if ulpdu[0] & 0x80 else 18]
        self.length = len(ulpdu)
        self.request = ulpdu[18:46] if ulpdu[1] & 15 == READ_REQUEST else b""


def untagged(opcode, queue, msn, offset, last=True, invalidate=0):
    return struct.pack(">BBIIII", 0x41 if last else 0x01, 0x40 | opcode, invalidate, queue, msn,
                       offset)


def tagged(opcode, stag, to, last=True):
    return struct.pack(">BBIQ", 0xC1 if last else 0x81, 0x40 | opcode, stag, to)


class Rdma(Connection):
    """A connection with iWARP. After `mpa` the sides can send RDMAP messages."""

    def __init__(self, *arguments, **how):
        super().__init__(*arguments, **how)
        self.mpa_initiator = self.i
        for side in (self.i, self.r):
            side.stream = Stream()
            side.msn = {0: 0, 1: 0, 2: 0}

    # The start-up.

    def startup(self, side, reply, *, rev=2, c=1, m=0, s=True, ird=8, ord=8, control=0, rejected=0,
                private=b"", **how):
        """One start-up frame. `control` has the flags A (8), B (4), C (2), D (1) of RFC 6581."""
        flags = m << 7 | c << 6 | rejected << 5 | (0x10 if s else 0)
        if s:
            private = struct.pack(">HH", (control >> 2) << 14 | ird,
                                  (control & 3) << 14 | ord) + private
        key = b"MPA ID Rep Frame" if reply else b"MPA ID Req Frame"
        frame = key + struct.pack(">BBH", flags, rev, len(private)) + private
        return self.tcp(side, frame, "PA", **how)

    def mpa(self, request=None, reply=None, initiator=None):
        """Both start-up frames. `request` and `reply` are dictionaries of their fields."""
        request, reply = dict(request or {}), dict(reply or {})
        side = initiator or self.i
        self.mpa_initiator = side
        first = self.startup(side, False, **request)
        self.ack(side.peer)
        reply.setdefault("gap", self.random.between(300, 900))
        second = self.startup(side.peer, True, **reply)
        self.ack(side)
        crc = bool(request.get("c", 1) or reply.get("c", 1))
        side.stream = Stream(bool(reply.get("m", 0)), crc)
        side.peer.stream = Stream(bool(request.get("m", 0)), crc)
        return first, second

    def mulpdu(self, side):
        emss = self.emss
        markers = 4 * -(-emss // 512) if side.stream.markers else 0
        return emss - (6 + markers + emss % 4)

    # Messages.

    def ulpdu(self, side, ulpdu, **how):
        return DdpSegment(self.tcp(side, side.stream.fpdu(ulpdu), "PA", **how), ulpdu)

    def segments(self, side, ulpdus, how, per, acks):
        sent = []
        for index, ulpdu in enumerate(ulpdus):
            sent.append(self.ulpdu(side, ulpdu, **{**how, **(per or {}).get(index, {})}))
            if acks and index % 2 and index + 1 < len(ulpdus):
                self.ack(side.peer)
        return sent

    def pieces(self, side, data, header):
        room = self.mulpdu(side) - header
        return [(o, data[o:o + room]) for o in range(0, len(data), room)] or [(0, b"")]

    def message(self, side, opcode, queue, data, invalidate=0, msn=None, per=None, acks=True,
                **how):
        if msn is None:
            msn = side.msn[queue] + 1
        side.msn[queue] = msn
        pieces = self.pieces(side, data, 18)
        ulpdus = [untagged(opcode, queue, msn, o, o == pieces[-1][0], invalidate) + part
                  for o, part in pieces]
        return self.segments(side, ulpdus, how, per, acks)

    def send(self, side, data, opcode=SEND, **how):
        """A Send. Returns its DDP segments."""
        return self.message(side, opcode, 0, data, **how)

    def placed(self, side, opcode, stag, to, data, how, per, acks):
        pieces = self.pieces(side, data, 14)
        ulpdus = [tagged(opcode, stag, to + o, o == pieces[-1][0]) + part for o, part in pieces]
        return self.segments(side, ulpdus, how, per, acks)

    def write(self, side, stag, to, data, per=None, acks=True, **how):
        return self.placed(side, WRITE, stag, to, data, how, per, acks)

    def read(self, side, sink, size, source, **how):
        """A Read Request. `sink` and `source` are pairs of STag and TO."""
        body = struct.pack(">IQIIQ", sink[0], sink[1], size, source[0], source[1])
        return self.message(side, READ_REQUEST, 1, body, **how)[0]

    def respond(self, side, sink, data, per=None, acks=True, **how):
        """A Read Response."""
        return self.placed(side, READ_RESPONSE, sink[0], sink[1], data, how, per, acks)

    def terminate(self, side, code, about=None, control=None, body=None, **how):
        """A Terminate. `code` has Layer, EType and Error Code: 0x1101.

        `about` is the DDP segment with the error. HdrCt follows RFC 5040, Figure 10.
        """
        layer, kind = code >> 12, code >> 8 & 15
        included = b""
        flags = 0
        if about is not None and layer != 2 and code >> 8 != 0:
            flags = 0xC0
            included = struct.pack(">H", about.length) + about.header
            if layer == 0 and kind == 1 and about.request:
                flags |= 0x20
                included += about.request
        if control is not None:
            flags = control
        body = struct.pack(">HBB", code, flags, 0) + included if body is None else body
        return self.message(side, TERMINATE, 2, body, **how)[0]
