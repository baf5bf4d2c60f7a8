#!/usr/bin/env python3
"""A small iWARP endpoint with an echo service, and with one basic fault on request.

The endpoint was written from RFC 5040, 5041 and 5044 alone, without code of weft. It shows which
cases fail, and which requirements they name, if an implementation has one basic fault. The endpoint
returns each Send in a Send. It has no memory that a peer may write or read. With --connect, the
endpoint is the Initiator of one connection: it sends a first Send, and then returns received Sends.
"""

import argparse
import socket
import struct
import sys
import threading

FAULTS = {
    "none": "no fault",
    "pad": "PAD of 1 and of 3 octets are exchanged, in both directions",
    "length": "ULPDU_Length is little endian, in both directions",
    "msn": "its messages are numbered from 0",
    "crc": "the CRC does not cover ULPDU_Length, in both directions",
    "mo": "MO of received segments is ignored: their payload goes to the end of what has arrived",
    "private-data": "PD_Length of a received start-up frame is taken to be little endian",
    "mute": "it sends no FPDU",
    "crc-reported-by-ddp": "a wrong CRC is answered by a Terminate with an error of DDP",
    "crc-reported-by-ddp-exchanged": "a wrong CRC is answered by a Terminate with an error of DDP, whose Layer and EType are exchanged",
    "crc-reported-by-rdmap": "a wrong CRC is answered by a Terminate with an error of RDMAP",
    "crc-reported-exchanged": "Layer and EType of the Terminate for a wrong CRC are exchanged",
}

# For each fault, the octet with Layer and EType, and the Error Code (RFC 5040, section 4.8). They
# replace MPA's error for a wrong CRC.
CRC_ERRORS = {
    "crc-reported-by-ddp": (0x12, 0x01),
    "crc-reported-by-ddp-exchanged": (0x21, 0x03),
    "crc-reported-by-rdmap": (0x02, 0x06),
    "crc-reported-exchanged": (0x02, 0x02),
}

REQUEST_KEY, REPLY_KEY = b"MPA ID Req Frame", b"MPA ID Rep Frame"
MARKERS, CRC, REJECT = 0x80, 0x40, 0x20  # RFC 5044, section 7.1.1
LAST, TAGGED, DDP_VERSION = 0x40, 0x80, 1  # RFC 5041, section 4.1
RDMAP_VERSION = 1 << 6  # RFC 5040, section 4.1
WRITE, READ_REQUEST, READ_RESPONSE, SEND, TERMINATE = 0, 1, 2, 3, 7
SENDS = (3, 4, 5, 6)
BUFFER = 1 << 20  # octets of a receive
SEGMENT = 1408  # octets of payload in a segment: the FPDU fits into a frame of any Ethernet
PATIENCE = 10.0  # seconds for a start-up frame
FIRST = b"first of all"  # the first Send of an Initiator; its FPDU has no PAD

TABLE = []
for octet in range(256):
    for _ in range(8):
        octet = octet >> 1 ^ (0x82F63B78 if octet & 1 else 0)
    TABLE.append(octet)


def crc32c(octets):
    """Returns the CRC of iSCSI, as RFC 5044, section 4.4 requires."""
    crc = 0xFFFFFFFF
    for octet in octets:
        crc = TABLE[(crc ^ octet) & 0xFF] ^ crc >> 8
    return struct.pack("<I", crc ^ 0xFFFFFFFF)


class Over(Exception):
    """The connection has ended."""


class Refused(Exception):
    """The segment has an error, which a Terminate reports (RFC 5040, section 4.8)."""

    def __init__(self, error, segment=b"", request=False):
        self.error, self.segment, self.request = error, segment, request


class Connection:
    def __init__(self, sock, fault):
        sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.sock, self.fault = sock, fault
        self.markers, self.position = False, 0
        self.sent = self.received = self.reads = 0
        self.spoken_to = False
        self.message, self.taken, self.placed = bytearray(), 0, 0

    def exactly(self, count):
        octets = b""
        while len(octets) < count:
            more = self.sock.recv(count - len(octets))
            if not more:
                raise Over
            octets += more
        return octets

    # MPA

    def frame(self, key):
        """Reads the peer's start-up frame, and returns its flags."""
        self.sock.settimeout(PATIENCE)
        header = self.exactly(20)
        form = "<BBH" if self.fault == "private-data" else ">BBH"
        flags, revision, length = struct.unpack(form, header[16:])
        if header[:16] != key or revision != 1 or length > 512:
            raise Over
        self.exactly(length)
        self.markers = bool(flags & MARKERS)
        return flags

    def connect(self):
        """Does the start-up as Initiator."""
        self.sock.sendall(REQUEST_KEY + struct.pack(">BBH", CRC, 1, 0))
        if self.frame(REPLY_KEY) & REJECT:
            raise Over
        self.sock.settimeout(None)
        self.spoken_to = True
        self.send(FIRST)

    def accept(self):
        """Does the start-up as Responder."""
        self.frame(REQUEST_KEY)
        self.sock.settimeout(0.02)
        try:
            # Nothing may follow the Request before the Reply (section 7.1.2).
            self.sock.recv(1)
            raise Over
        except socket.timeout:
            pass
        self.sock.settimeout(None)
        self.sock.sendall(REPLY_KEY + struct.pack(">BBH", CRC, 1, 0))

    def pad(self, length):
        pad = -(2 + length) % 4
        return {1: 3, 3: 1}.get(pad, pad) if self.fault == "pad" else pad

    def length_format(self):
        return "<H" if self.fault == "length" else ">H"

    def crc(self, octets):
        return crc32c(octets[2:] if self.fault == "crc" else octets)

    def read(self):
        """Returns the ULPDU of the next FPDU."""
        header = self.exactly(2)
        (length,) = struct.unpack(self.length_format(), header)
        rest = self.exactly(length + self.pad(length))
        if self.exactly(4) != self.crc(header + rest):
            raise Refused(CRC_ERRORS.get(self.fault, (0x20, 0x02)))
        self.spoken_to = True
        return rest[:length]

    def write(self, ulpdu):
        if self.fault == "mute":
            return
        body = struct.pack(self.length_format(), len(ulpdu)) + ulpdu + bytes(self.pad(len(ulpdu)))
        fpdu = bytearray()
        start = 0
        if self.markers:
            # There is a marker every 512 octets of the stream. It contains the distance back to the
            # beginning of the FPDU (section 4.3).
            if self.position % 512 == 0:
                fpdu += bytes(4)
                start = 4
            for octet in body:
                fpdu.append(octet)
                if (self.position + len(fpdu)) % 512 == 0:
                    fpdu += struct.pack(">HH", 0, len(fpdu) - start)
        else:
            fpdu += body
        fpdu += self.crc(bytes(fpdu))
        self.position += len(fpdu)
        self.sock.sendall(bytes(fpdu))

    # DDP and RDMAP

    def send(self, payload):
        if self.fault != "msn":
            self.sent += 1
        for at in range(0, max(len(payload), 1), SEGMENT):
            piece = payload[at : at + SEGMENT]
            last = LAST if at + len(piece) == len(payload) else 0
            head = struct.pack(">BBIIII", last | DDP_VERSION, RDMAP_VERSION | SEND, 0, 0, self.sent, at)
            self.write(head + piece)
        if self.fault == "msn":
            self.sent += 1

    def terminate(self, refused):
        layer, code = refused.error
        bits, rest = 0, b""
        if refused.segment:
            bits, length = 0xC0, 14 if refused.segment[0] & TAGGED else 18
            rest = struct.pack(">H", len(refused.segment)) + refused.segment[:length]
            if refused.request:
                bits, rest = 0xE0, rest + refused.segment[18:46]
        head = struct.pack(">BBIIII", LAST | DDP_VERSION, RDMAP_VERSION | TERMINATE, 0, 2, 1, 0)
        self.write(head + struct.pack(">BBH", layer, code, bits << 8) + rest)

    def take(self, ulpdu):
        if len(ulpdu) < 14 or not ulpdu[0] & TAGGED and len(ulpdu) < 18:
            raise Refused((0x02, 0xFF))
        self.tagged(ulpdu) if ulpdu[0] & TAGGED else self.untagged(ulpdu)

    def check_rdmap(self, ulpdu, opcodes):
        if ulpdu[1] & 0xC0 != RDMAP_VERSION:
            raise Refused((0x02, 0x05), ulpdu)
        if ulpdu[1] & 0x0F not in opcodes:
            raise Refused((0x02, 0x06), ulpdu)

    def tagged(self, ulpdu):
        if ulpdu[0] & 3 != DDP_VERSION:
            raise Refused((0x11, 0x04), ulpdu)
        self.check_rdmap(ulpdu, (WRITE, READ_RESPONSE))
        if len(ulpdu) > 14 or ulpdu[1] & 0x0F == READ_RESPONSE:
            raise Refused((0x11, 0x00), ulpdu)

    def untagged(self, ulpdu):
        stag, qn, msn, offset = struct.unpack(">IIII", ulpdu[2:18])
        payload, last = ulpdu[18:], ulpdu[0] & LAST
        if ulpdu[0] & 3 != DDP_VERSION:
            raise Refused((0x12, 0x06), ulpdu)
        if qn > 2:
            raise Refused((0x12, 0x01), ulpdu)
        self.check_rdmap(ulpdu, (SENDS, (READ_REQUEST,), (TERMINATE,))[qn])
        if qn == 2:
            raise Over
        if msn != (self.received, self.reads)[qn] + 1:
            raise Refused((0x12, 0x03), ulpdu)
        if self.fault == "mo":
            offset = self.taken
        if offset > (BUFFER, 28)[qn]:
            raise Refused((0x12, 0x04), ulpdu)
        if offset + len(payload) > (BUFFER, 28)[qn]:
            raise Refused((0x12, 0x05), ulpdu)
        if qn == 1:
            self.read_request(ulpdu, payload)
            return
        self.message.extend(bytes(max(0, offset + len(payload) - len(self.message))))
        self.message[offset : offset + len(payload)] = payload
        self.taken = offset + len(payload)
        self.placed += len(payload)
        if last:
            # A message whose segments leave a gap is incomplete (RFC 5041, section 5.4).
            if self.placed != self.taken:
                raise Refused((0x12, 0x04), ulpdu)
            if ulpdu[1] & 0x0F in (4, 6):
                raise Refused((0x01, 0x00), ulpdu)
            message, self.message, self.taken = bytes(self.message[: self.taken]), bytearray(), 0
            self.placed = 0
            self.received += 1
            self.send(message)

    def read_request(self, ulpdu, payload):
        if len(payload) != 28 or not ulpdu[0] & LAST:
            raise Refused((0x02, 0xFF), ulpdu)
        sink, to, size, _, _ = struct.unpack(">IQIIQ", payload)
        if size:
            raise Refused((0x01, 0x00), ulpdu, request=True)
        self.reads += 1
        self.write(struct.pack(">BBIQ", TAGGED | LAST | DDP_VERSION, RDMAP_VERSION | READ_RESPONSE, sink, to))

    def serve(self, start_up):
        try:
            start_up()
            while True:
                self.take(self.read())
        except Refused as refused:
            # A responder must not send an FPDU before it has received one (RFC 5044, section
            # 7.1.2).
            if self.spoken_to:
                self.terminate(refused)
        except (Over, OSError):
            pass
        self.leave()

    def leave(self):
        """Sends FIN, and then waits for the peer's FIN. A close with unread octets would reset the
        connection, and the Terminate would be lost."""
        try:
            self.sock.shutdown(socket.SHUT_WR)
            self.sock.settimeout(2.0)
            while self.sock.recv(65536):
                pass
        except OSError:
            pass
        self.sock.close()


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--fault", choices=FAULTS, default="none", help="; ".join(f"{k}: {v}" for k, v in FAULTS.items()))
    parser.add_argument("--listen", default="127.0.0.1:0", metavar="ADDRESS:PORT")
    parser.add_argument("--connect", metavar="ADDRESS:PORT", help="connect once, as Initiator, instead of listening")
    options = parser.parse_args()
    if options.connect:
        host, port = options.connect.rsplit(":", 1)
        connection = Connection(socket.create_connection((host, int(port))), options.fault)
        connection.serve(connection.connect)
        return
    host, port = options.listen.rsplit(":", 1)
    with socket.create_server((host, int(port)), backlog=128) as server:
        print("%s:%d" % server.getsockname()[:2], flush=True)
        while True:
            sock, _ = server.accept()
            connection = Connection(sock, options.fault)
            threading.Thread(target=connection.serve, args=(connection.accept,), daemon=True).start()


if __name__ == "__main__":
    try:
        main()
    except KeyboardInterrupt:
        sys.exit(130)
