#!/usr/bin/env python3
"""A software iWARP endpoint (MPA, DDP, RDMAP over TCP), with planted bugs.

Purpose: a peer to judge test suites with, as Responder (--listen) or as
Initiator (--connect).  Without --bug it follows RFC 5044, RFC 5041, RFC 5040
and the set-up of RFC 6581; with --bug NAME it has exactly one known, small
defect (see --list-bugs and README.md).

Limits: standard library only, so it is slow (about 10 MB/s with CRC).  One
RDMA Read of its own is outstanding at a time.  It asks for markers only with
--markers.  No RFC 7306 operations (their opcodes are answered with Terminate).
Tagged buffers exist in the rping service only.  The Initiator's services issue
no Reads, so its ORD shows only in the choice of the RTR.
"""

import argparse
import array
import bisect
import itertools
import random
import select
import socket
import struct
import sys
import threading
import time

IRD = 16                        # inbound RDMA Reads we hold at once
ORD = 16                        # outbound RDMA Reads we would issue at most
SEGMENT = 1400                  # octets of payload in one DDP segment we send
ECHO_BUFFER = 1 << 20           # size of a receive buffer of the echo service
RPING_BUFFER = 16               # size of a receive buffer of the rping service
OUT_LIMIT = 64 << 20            # stop reading when so much waits to be sent
SETUP_TIMEOUT = 10.0            # for the MPA Request or Reply
LINGER = 5.0                    # for the peer's FIN after our last octet
LAST_SEND = 30.0                # for the peer to take what is left to send
AGAIN = 0.2                     # the Initiator's pause before it connects again
AUTO = 0x3FFF                   # IRD or ORD: no negotiation (RFC 6581, 9.1)

WRITE, READ_REQ, READ_RESP, SEND, SEND_INV, SEND_SE, SEND_SE_INV, TERM = range(8)
SENDS = (SEND, SEND_INV, SEND_SE, SEND_SE_INV)
RDMAP, DDP, MPA = 0, 1, 2       # layer numbers of the Terminate message

# ---------------------------------------------------------------- bugs

# name -> (class, how it shows).  Each is a few lines that depend on bug("name").
# These are the bugs of --listen.  Most of them are in code that both roles
# use, so --connect takes their names too.
BUGS = {
    "marker-ptr-second": ("marker", "the second and later markers inside one FPDU point 4, 8, ... octets too short; needs M=1 and FPDUs over 512 octets"),
    "marker-pad-crc": ("marker", "a marker that falls between PAD and CRC is left out of the CRC; needs M=1 and an FPDU that ends exactly there"),
    "marker-64k": ("marker", "the counter of sent octets wraps at 65,535: markers are one octet off after that; needs M=1 and over 64 KiB sent"),
    "len-16bit": ("size", "a received Send of 65,536 octets or more is delivered with its length modulo 65,536"),
    "msn-8bit": ("size", "the expected MSN of received Sends has 8 bits: the 256th Send of a connection is refused"),
    "read-msn-8bit": ("size", "the MSN of our own Read Requests has 8 bits: the 256th rping round sends MSN 0"),
    "lost-300th": ("size", "the 300th Send of a connection is dropped without an answer"),
    "sink-to-carry": ("size", "in a Write or Read Response of several segments the TO does not carry from bit 31 into bit 32"),
    "write-to-high": ("size", "the bounds check of tagged segments looks at the low 32 bits of the TO only"),
    "fpdu-32k": ("size", "ULPDU Length is read as 15 bits: FPDUs of 32,768 octets and more lose framing"),
    "crc-read-request": ("crc", "a bad CRC in the FPDU of a Read Request is not noticed"),
    "crc-write": ("crc", "a bad CRC in the FPDU of an RDMA Write is not noticed"),
    "crc-empty": ("crc", "a bad CRC in an FPDU that carries no payload is not noticed"),
    "crc-long": ("crc", "a bad CRC in an FPDU with a ULPDU over 16,384 octets is not noticed"),
    "crc-second": ("crc", "if several FPDUs arrive together, only the CRC of the first is checked"),
    "check-before-crc": ("crc", "DDP header checks come before the CRC check: a damaged header gives a DDP Terminate, not MPA code 2"),
    "write-between-send": ("mix", "an RDMA Write between two segments of a Send turns the part already received into zeros"),
    "last-empty": ("mix", "a Send whose last segment carries no payload is never delivered"),
    "mo-append": ("mix", "segments of a Send are put one after the other, whatever their MO"),
    "gap-stale": ("mix", "a Send with a missing segment is delivered, with octets of an earlier Send in the hole"),
    "inv-early": ("mix", "Send with Invalidate invalidates at its first segment instead of at delivery: a Write or Read between its segments fails"),
    "read-order": ("mix", "Read Requests that arrive together are answered in reverse order"),
    "read-dup-16": ("mix", "the response to every 16th Read Request of a connection is sent twice"),
    "read-tail-short": ("mix", "a Read Response of several segments lacks its last octet if the size is no multiple of four"),
    "read-before-write": ("mix", "a Read Request that arrives together with an earlier Write reads the old octets"),
    "stag-after-close": ("life", "the STags of an ended connection are valid in every later one"),
    "refused-leak": ("life", "after eight failed MPA set-ups no new connection is accepted"),
    "half-send-leak": ("life", "a connection that ends inside a Send leaves its reassembly state to the next one, whose first shorter Send is refused"),
    "fin-drops": ("life", "answers that still wait for the socket when the peer's FIN arrives are dropped; needs a peer that sends FIN first and reads later"),
    "after-terminate": ("life", "FPDUs that arrived together with a faulty one are still answered after the Terminate"),
    "error-neighbour": ("life", "a Terminate we send also closes one other open connection, at its next FPDU"),
    "shared-crc": ("concurrency", "all connections share the running CRC of a partly received FPDU: false CRC errors if two connections receive in pieces"),
    "shared-reassembly": ("concurrency", "all connections share one reassembly buffer: simultaneous Sends of several segments mix"),
    "shared-msn": ("concurrency", "the sent MSN has only two slots: a third open connection resets the counter of the first"),
    "split-length": ("timing", "if a TCP read ends after the first octet of an FPDU, that octet is lost"),
    "header-alone": ("timing", "if the headers of an FPDU arrive without any payload, the payload is taken as zeros"),
    "split-crc": ("timing", "if all or part of the CRC arrives later than the rest of the FPDU, it is not checked"),
    "stall-half-second": ("timing", "an FPDU whose parts arrive more than half a second apart is dropped and framing is lost"),
    "ird-off-by-one": ("load", "only 15 Read Requests may be outstanding although 16 are promised: the 16th is refused"),
    "sndbuf-drop": ("load", "when over 4 MiB wait to be sent, further FPDUs are thrown away"),
    # A second set, which was written later.
    "page-cross": ("size", "a Write segment that begins at a TO not divisible by 8 and crosses a multiple of 4,096 is placed only up to there"),
    "pow2-tail": ("size", "a received Send whose length is a power of two from 4,096 on is delivered with its last 4 octets as zeros"),
    "ring-4m": ("size", "the received FPDU that crosses a multiple of 4 MiB of the stream has zeros as payload from there on"),
    "exact-multiple": ("size", "a sent Send of two or more full segments has no L bit"),
    "crc-256": ("crc", "after the 256th received FPDU of a connection CRCs are not checked any more"),
    "crc-sticky": ("crc", "CRCs are not checked on the connection that is set up after one whose Request had C=0"),
    "marker-word": ("marker", "a marker after the first four octets of an FPDU points to itself (0); needs M=1"),
    "marker-term": ("marker", "the FPDU of a Terminate has no markers; needs M=1 and a marker that falls into it"),
    "later-bounds": ("mix", "the bounds are checked in the first segment of a Write only; what is outside later is dropped without a Terminate"),
    "term-later-seg": ("mix", "a Terminate about a later segment of a message has the length and header of the first one"),
    "inv-segmented": ("mix", "a Send with Invalidate of several segments does not invalidate"),
    "sink-hi-cache": ("mix", "the upper 32 bits of a Read's sink TO are those of the first Read with this sink STag"),
    "rq-overwrite": ("mix", "of the Sends that arrive while our own Read is outstanding, only the last is delivered; needs rping"),
    "budget-256": ("load", "256 FPDUs at most are worked off after one TCP read; the rest waits for the next one"),
    "stuck-window": ("load", "once over 2 MiB wait to be sent, nothing is received any more"),
    "read-slot-leak": ("life", "each refused Read Request takes one of the 16 Reads at once from all connections after it"),
    "rst-flush": ("life", "a connection that ends with RST makes all others lose the part of a Send that they have received"),
    "fin-no-crc": ("life", "a Send whose FPDU ends with FIN before its CRC is delivered"),
    "rev-sticky": ("start-up", "the Reply to an unenhanced Request that follows an enhanced one is enhanced"),
    "auto-mixed": ("start-up", "IRD 0x3FFF together with another ORD is answered with ORD 16"),
}

# The bugs of --connect, in the same form.
CONNECT_BUGS = {
    "reject-data": (
        "start-up", "the R bit of a Reply is ignored if the Reply carries private data of the ULP"),
    "rtr-both": (
        "start-up", "if the Reply offers both Write and Send, the Initiator sends both RTRs; "
        "needs --enhanced"),
    "rtr-msn": (
        "start-up", "an RTR by Send does not count: the next Send has MSN 1 again; "
        "needs --enhanced and a Reply that does not offer Write"),
    "rtr-swallows": (
        "start-up", "after an RTR by Send, the Responder's first Send is lost if it is empty; "
        "needs --enhanced and a Reply that does not offer Write"),
    "ord-8bit": (
        "start-up", "the Responder's ORD is compared with 8 bits: 0x0104 and the like bring no "
        "Terminate (code 6); needs --enhanced or --rev 2"),
    "ird-swapped": (
        "start-up", "the Reply's IRD, not the own IRD, limits the inbound Reads: more Reads at "
        "once are refused; needs --enhanced or --rev 2 and a Reply with IRD below ORD"),
    "marker-one-way": (
        "marker", "if only the Responder asks for markers, all that follow the first FPDU come "
        "4 octets late; needs over 512 octets sent"),
    "marker-rx-origin": (
        "marker", "after the first received FPDU, markers are expected as if they counted from "
        "the start of the Reply's private data; needs --markers and over 512 octets received"),
    "private-odd": (
        "size", "the Request's PD_Length is rounded down to a multiple of 4, though all octets "
        "are sent; needs --private with another size"),
    "read-part": (
        "size", "the answer to a Read of several segments that starts inside the buffer is wrong "
        "from the second segment on; needs rping with --size over 1,400"),
    "crc-neither": (
        "crc", "received CRCs are checked although neither side wants CRCs; needs --no-crc, "
        "a Reply with C=0 and FPDUs with another value as CRC"),
    "crc-first": (
        "crc", "a bad CRC in the Responder's first FPDU is not noticed"),
    "goahead-early": (
        "mix", "a Send that arrives together with a Write of several segments is delivered "
        "before the Write's last segment is placed; needs rping"),
    "msn-reuse": (
        "life", "a connection's MSN of Sends goes on where the connection before it ended"),
    "stale-reply": (
        "life", "if a connection ends inside the Reply, the octets of that Reply stay in front "
        "of the next connection's Reply, which is then refused"),
    "shared-sink": (
        "concurrency", "all open connections share one sink buffer: their data mix; "
        "needs rping and --connections 2"),
    "setup-lock": (
        "concurrency", "while one connection waits for its Reply, no other connection works off "
        "what it receives; needs --connections 2"),
    "reply-split": (
        "timing", "private data of the Reply that arrives later than the Reply's first 20 octets "
        "counts as zeros, and the late octets count as FPDUs"),
    "early-fpdu": (
        "timing", "the first FPDU goes out before the last private data of the Reply is there"),
    "request-again": (
        "timing", "if no Reply comes within half a second, the Request is sent again"),
}

# A third set of bugs of --listen, in the same form (--list-bugs --role new).
NEW_BUGS = {
    "crc-tx-c0": (
        "crc", "if the Request has C=0 (and we C=1), our FPDUs carry 0 instead of a CRC"),
    "bounds-round": (
        "size", "the end of a tagged buffer is rounded up to a multiple of 4,096: Writes and Reads "
        "beyond the end are accepted up to there; needs rping"),
    "pd-512": (
        "start-up", "a Request with exactly 512 octets of private data is refused"),
    "ord-sticky": (
        "start-up", "the ORD in an enhanced Reply is limited by the IRD of the enhanced Request "
        "before this one, on another connection"),
    "marker-lead-crc": (
        "marker", "a marker right in front of an FPDU, other than the first one of the connection, "
        "is left out of the CRC; needs M=1 and an FPDU that begins exactly there"),
    "pad-stale": (
        "life", "the PAD of a sent FPDU has octets that an earlier, longer FPDU of the connection "
        "left in the buffer; the CRC fits them"),
    "crc-not-last": (
        "crc", "a bad CRC in the FPDU of a segment without L bit is not noticed"),
    "write-tail-late": (
        "mix", "the last segment of a sent Write of several segments follows the Send that comes "
        "after it; needs rping with --size over 1,400"),
    "stag-cache": (
        "mix", "an STag that the last Write used is good for further Writes after a Send with "
        "Invalidate; needs rping"),
    "term-send-msn": (
        "mix", "the MSN of a Terminate counts on from our Sends: it is not 1 after a Send of ours"),
    "term-overtakes": (
        "load", "a Terminate goes out ahead of all answers that wait for the socket, even in the "
        "middle of an FPDU"),
    "fin-half-fpdu": (
        "life", "if the peer's FIN comes inside an FPDU, the connection is not closed for a minute"),
    "ctx-cache-8": (
        "concurrency", "when a ninth connection becomes active, the one that was silent longest "
        "forgets the last step of its expected MSN: its next Send is refused"),
    "age-reassembly": (
        "timing", "what is received of a Send is forgotten if its next segment comes over a second "
        "later"),
    "tx-recycle": (
        "load", "while over 64 KiB of answers wait, the octets of an answer are overwritten with "
        "those of the next Send that arrives with it; the CRC fits them"),
    "read-sink-stale": (
        "mix", "a Read Request that arrives while an earlier answer still waits for the socket "
        "is answered to the sink STag of the earlier one"),
    "read-crossed": (
        "mix", "a Read Request that arrives while our own Read is outstanding is never answered; "
        "needs rping"),
    "se-leak-32": (
        "load", "after 32 Sends with Solicited Event, over all connections, further ones are lost"),
    "hol-block": (
        "concurrency", "while over 256 KiB wait for the socket of one connection, nothing is "
        "received on all others"),
    "lost-wakeup": (
        "load", "when TCP does not take all and less than 1 MiB is left, the rest is not sent "
        "before something more is received"),
}

# More bugs of --connect, written later (--role new-initiator), in the same form.
NEW_CONNECT_BUGS = {
    "pd-8bit": (
        "size", "the Reply's PD_Length is read as 8 bits: of 256 or more octets of private data "
        "the rest counts as FPDUs"),
    "write-odd-seg": (
        "size", "of a Write segment that is not the last, the 1 to 3 octets beyond a multiple "
        "of four are not placed; needs rping and segments of other sizes"),
    "rtr-read-hold": (
        "start-up", "Sends that arrive before the response to the RTR by Read are lost; "
        "needs --enhanced and a Reply that offers Read only"),
    "rtr-crc": (
        "crc", "the RTR has no CRC if the Reply has C=0, though the Request has C=1; "
        "needs --enhanced"),
    "crc-own-only": (
        "crc", "received CRCs are not checked if only the Responder asks for CRCs; "
        "needs --no-crc and a Reply with C=1"),
    "marker-rx-start": (
        "marker", "a marker right before a received FPDU is taken for its ULPDU Length, except "
        "before the first FPDU; needs --markers and an FPDU that begins at a multiple of 512"),
    "marker-pos-rst": (
        "life", "on the connection after one that ended with RST, the positions of the sent "
        "markers count from where the old one ended; needs M=1 in the second Reply"),
    "request-dirty": (
        "life", "the Request after a Reply with R=1 has R=1 too"),
    "fin-in-send": (
        "life", "if the peer's FIN comes inside a Send of several segments, the connection is "
        "closed 30 s later only"),
    "read-stale-tail": (
        "mix", "the answer to a Read of several segments has in its last segment the octets of "
        "the answer before to the same Read; needs rping and a second round"),
    "msn-later-seg": (
        "mix", "a wrong MSN in the second or a later segment of a Send is not noticed"),
    "term-last-error": (
        "mix", "of several faulty FPDUs that arrive together, the Terminate names the last one "
        "with an MPA or DDP error"),
    "rtr-late": (
        "timing", "if the Reply comes in pieces, the RTR goes out after the first Send; "
        "needs --enhanced and --greeting"),
    "setup-timer": (
        "timing", "the timer for the Reply is not stopped: after 4 s the connection is closed"),
    "read-ring-8": (
        "load", "from the ninth on, of Reads outstanding at once, the answer has the sink STag "
        "and TO of the Read eight before"),
    "term-cuts": (
        "load", "a Terminate that is sent while over 64 KiB wait to be sent cuts them off inside "
        "an FPDU"),
}
ACTIVE = None                   # name of the one active bug

# State that only bugs touch.  The correct endpoint never reads it.
SHARED = {"regions": {}, "refused": 0, "half": None, "crc_owner": None,
          "buffer": bytearray(ECHO_BUFFER), "msn": [1, 1], "opened": 0,
          "live": [], "next_msn": 1, "stale": b"", "sink": None,
          "waiting": set(), "c": 0x40, "refused_reads": 0, "enhanced": False,
          "peer_ird": None, "contexts": [], "lock": threading.Lock(), "events": 0,
          "full": set(),
          "old_pos": 0, "dirty": 0}


def bug(name):
    """True if the bug of this name is switched on."""
    return ACTIVE == name


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


# ---------------------------------------------------------------- errors

class Fault(Exception):
    """An error that ends the stream with a Terminate message.

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


class Refused(Exception):
    """MPA set-up failed; the connection is closed without any FPDU."""


class Abort(Exception):
    """The connection is closed at once, without a Terminate."""


# ---------------------------------------------------------------- MPA framing

class FpduWriter:
    """Turns ULPDUs into the octets of the TCP stream (RFC 5044, 4)."""

    def __init__(self, use_crc, markers):
        self.use_crc, self.markers = use_crc, markers
        self.pos = 0            # octets sent since Full Operation began
        self.late = 0           # for one bug: octets that markers come late
        self.buffer = bytearray()       # for one bug: where FPDUs are made

    def frame(self, ulpdu):
        """One FPDU, with the markers that fall into it."""
        body = struct.pack(">H", len(ulpdu)) + ulpdu
        if bug("pad-stale"):
            body += bytes(self.buffer[len(body):len(body) + -len(body) % 4])
        body += bytes(-len(body) % 4)
        if bug("pad-stale"):
            self.buffer[:len(body)] = body
        covered = body
        if self.markers and not (bug("marker-term") and ulpdu[1] & 15 == TERM):
            body, covered = self._insert_markers(body)
        crc = crc32c(covered) if self.use_crc else bytes(4)
        self.pos += len(body) + 4 - self.late
        self.late = 0
        return body + crc

    def _insert_markers(self, body):
        """Body with markers, and the part of it that the CRC covers."""
        if bug("marker-64k"):
            self.pos %= 65535
        raw = bytearray()
        start = None            # where ULPDU Length is within raw
        done = count = 0
        end_marker = False
        while True:
            if (self.pos + len(raw)) % 512 == 0:
                pointer = 0 if start is None else len(raw) - start
                if bug("marker-ptr-second") and start is not None:
                    pointer -= 4 * count
                    count += 1
                if bug("marker-word") and pointer == 4:
                    pointer = 0
                raw += struct.pack(">HH", 0, pointer)
                end_marker = done == len(body)
            if start is None:
                start = len(raw)
            if done == len(body):
                break
            room = 512 - (self.pos + len(raw)) % 512
            raw += body[done:done + room]
            done = min(done + room, len(body))
        covered = raw
        if bug("marker-pad-crc") and end_marker:
            covered = raw[:-4]
        if bug("marker-lead-crc") and self.pos and self.pos % 512 == 0:
            covered = raw[4:]
        return bytes(raw), bytes(covered)


class FpduReader:
    """Finds the ULPDUs in the received octets, however TCP cut them."""

    def __init__(self, use_crc, markers, precheck):
        self.use_crc, self.markers = use_crc, markers
        self.precheck = precheck        # DDP header checks, for one bug only
        self.buf = bytearray()
        self.pos = 0                    # octets of the stream before buf
        self.first = True               # no FPDU taken since the last feed
        self.pieces = False             # the FPDU at hand came in pieces
        self.headless = self.late_crc = False
        self.since = 0.0
        self.origin = 0                 # for one bug: wrong start of markers
        self.taken = 0                  # for one bug: FPDUs so far

    def feed(self, data):
        """Adds what one TCP read returned."""
        if bug("stall-half-second") and self.pieces and time.monotonic() - self.since > 0.5:
            self.buf.clear()
        self.buf += data
        self.first = True

    def next(self):
        """The next complete ULPDU, or None.  Raises Fault on a bad FPDU."""
        found = self._complete()
        if found is None:
            if bug("split-length") and len(self.buf) == 1:
                self.buf.clear()
            return None
        covered, logical, crc = found
        length = self._length(logical)
        ulpdu = logical[2:2 + length]
        if bug("check-before-crc"):
            self.precheck(ulpdu)
        if self.use_crc and self._wants_check(ulpdu) and crc32c(covered) != crc:
            raise Fault(MPA, 0, 2)
        if bug("shared-crc") and self.use_crc and self.pieces and SHARED["crc_owner"] != id(self):
            raise Fault(MPA, 0, 2)
        if bug("header-alone") and self.headless:
            head = 14 if ulpdu[0] & 0x80 else 18
            ulpdu = ulpdu[:head] + bytes(len(ulpdu) - head)
        if bug("ring-4m"):
            edge = (1 << 22) - self.pos % (1 << 22)
            if edge < len(covered):
                keep = max(edge - 2, 18)
                ulpdu = ulpdu[:keep] + bytes(max(len(ulpdu) - keep, 0))
        self.taken += 1
        self._check_markers(covered)
        self.pos += len(covered) + 4 + self.origin
        self.origin = 0
        self.first = self.pieces = self.headless = self.late_crc = False
        return ulpdu

    def _length(self, octets):
        length = octets[0] << 8 | octets[1]
        if bug("fpdu-32k"):
            length &= 0x7FFF
        return length

    def _complete(self):
        """Takes one FPDU from buf: (CRC-covered octets, body, CRC)."""
        lead = 4 if self.markers and self.pos % 512 == 0 else 0
        if bug("marker-rx-start") and self.pos:
            lead = 0
        if len(self.buf) < lead + 2:
            self._incomplete(None)
            return None
        length = self._length(self.buf[lead:lead + 2])
        body = 2 + length + -(2 + length) % 4
        size = self._raw_size(body) if self.markers else body
        if len(self.buf) < size + 4:
            self._incomplete(size + 4)
            return None
        covered = bytes(self.buf[:size])
        crc = bytes(self.buf[size:size + 4])
        del self.buf[:size + 4]
        return covered, self._strip(covered), crc

    def _incomplete(self, size):
        """Notes (for bugs) that the FPDU at the front came in pieces."""
        have = len(self.buf)
        if have == 0:
            return
        if not self.pieces:
            self.since = time.monotonic()
        self.pieces = True
        if bug("shared-crc"):
            SHARED["crc_owner"] = id(self)
        if 16 <= have <= 20:
            self.headless = True
        if size is not None and size - 4 <= have:
            self.late_crc = True

    def lacks_crc(self):
        """For one bug: only the CRC of the FPDU at the front is missing."""
        lead = 4 if self.markers and self.pos % 512 == 0 else 0
        if len(self.buf) < lead + 2:
            return False
        body = 2 + self._length(self.buf[lead:lead + 2])
        body += -body % 4
        return len(self.buf) == (self._raw_size(body) if self.markers else body)

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
        if not self.markers:
            return raw
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
        if not self.markers:
            return
        start = 4 if self.pos % 512 == 0 else 0
        at = -self.pos % 512
        while at < len(raw):
            pointer = struct.unpack_from(">H", raw, at + 2)[0] & ~3
            if pointer != max(0, at - start):
                raise Fault(MPA, 0, 3)
            at += 512

    def _wants_check(self, ulpdu):
        """Always True in the correct version."""
        tagged = len(ulpdu) > 1 and ulpdu[0] & 0x80
        opcode = ulpdu[1] & 15 if len(ulpdu) > 1 else None
        if bug("crc-read-request") and not tagged and opcode == READ_REQ:
            return False
        if bug("crc-write") and tagged and opcode == WRITE:
            return False
        if bug("crc-empty") and len(ulpdu) <= (14 if tagged else 18):
            return False
        if bug("crc-long") and len(ulpdu) > 16384:
            return False
        if bug("crc-first") and self.pos == 0:
            return False
        if bug("crc-second") and not self.first:
            return False
        if bug("crc-256") and self.taken >= 256:
            return False
        if bug("split-crc") and self.late_crc:
            return False
        if bug("crc-not-last") and ulpdu and not ulpdu[0] & 0x40:
            return False
        return True


# ---------------------------------------------------------------- DDP

class UntaggedQueue:
    """One untagged queue: a receive buffer that is used again and again.

    Segments are placed by MO in any order.  A message is delivered when its
    last segment came and no octet is missing (a missing one is a Fault, since
    TCP loses nothing: the sender left it out).
    """

    def __init__(self, number, size):
        self.number, self.size = number, size
        self.buf = bytearray(size)
        self.msn = 1
        self.spans = []         # placed parts, as sorted [start, end) pairs
        self.extent = 0         # end of the farthest part
        self.placed = 0.0       # for one bug: when the last segment came

    def check(self, msn, mo, count):
        """The DDP checks of RFC 5041, 7.1, for this segment."""
        want = self.msn
        if bug("msn-8bit") and self.number == 0:
            want &= 0xFF
        if bug("msn-later-seg") and self.number == 0 and self.spans:
            want = msn
        if msn != want:
            raise Fault(DDP, 2, 3)
        if count and mo > self.size:
            raise Fault(DDP, 2, 4)
        if count and mo + count > self.size:
            raise Fault(DDP, 2, 5)

    def place(self, mo, data, last):
        """Places one checked segment; returns the message if complete."""
        if bug("age-reassembly"):
            if self.spans and time.monotonic() - self.placed > 1:
                self.spans, self.extent = [], 0
            self.placed = time.monotonic()
        if bug("mo-append"):
            mo = self.extent
        if bug("last-empty") and last and not data and self.spans:
            return None
        if data:
            self.buf[mo:mo + len(data)] = data
            self._note(mo, mo + len(data))
        if not last:
            return None
        total = mo + len(data)
        complete = self.spans == ([(0, total)] if total else [])
        if bug("gap-stale"):
            complete = total == self.extent
        if not complete:
            raise Fault(DDP, 2, 4)
        if bug("len-16bit"):
            total &= 0xFFFF
        message = bytes(self.buf[:total])
        if bug("pow2-tail") and total >= 4096 and not total & (total - 1):
            message = message[:-4] + bytes(4)
        self.msn = (self.msn + 1) & 0xFFFFFFFF
        self.spans, self.extent = [], 0
        return message

    def _note(self, start, end):
        """Remembers that [start, end) is placed."""
        self.extent = max(self.extent, end)
        spans = self.spans
        i = bisect.bisect_left(spans, (start, start))
        if i and spans[i - 1][1] >= start:
            i -= 1
        j = i
        while j < len(spans) and spans[j][0] <= end:
            start, end = min(start, spans[j][0]), max(end, spans[j][1])
            j += 1
        spans[i:j] = [(start, end)]


class Region:
    """A tagged buffer: an STag, the TO of its first octet, the octets."""

    def __init__(self, size, content=b""):
        self.stag = random.SystemRandom().randrange(1, 1 << 32)
        # The buffer lies across a multiple of 2^32, as a heap address may.
        self.base = (random.randrange(0x100, 0x7F00) << 32) - (size // 2 & ~7)
        self.data = bytearray(size)
        self.data[:len(content)] = content

    def holds(self, to, count):
        """True if the octets to ... to+count-1 lie inside."""
        if bug("write-to-high"):
            to = self.base + ((to - self.base) & 0xFFFFFFFF)
        if bug("bounds-round"):
            end = self.base + len(self.data)
            return self.base <= to and to + count <= end + -end % 4096
        return self.base <= to and to + count <= self.base + len(self.data)


# ---------------------------------------------------------------- connection

class Connection:
    """One iWARP stream, run by one thread.

    Everything received in one TCP read is worked off before the socket is
    written, and what the socket does not take stays in self.out, so that a
    peer that sends without reading cannot block us.
    """

    def __init__(self, sock, opts, initiator, number=0):
        self.sock, self.opts, self.initiator = sock, opts, initiator
        self.number = number            # of the Initiator's connections
        self.notes = []                 # for the Initiator's line at the end
        self.writer = self.reader = None
        self.started = self.failed = False
        self.out = bytearray()
        self.queued = self.sent = 0     # octets given to out / to TCP
        self.inbound_reads = []         # for each Read: where its answer ends
        self.ird, self.ord = IRD, ORD
        if initiator:
            self.ird, self.ord = min(opts.ird, IRD), min(opts.ord, ORD)
        self.tx_msn = [1, 1, 1]
        self.regions = {}
        self.read = None                # our own Read: [region, offset, size, spans]
        self.closing = False            # nothing more is received or queued
        self.fpdus = 0
        self.rtr_send = False           # an empty Send may come as RTR
        self.poisoned = False
        self.late_reads, self.late_writes = [], []
        self.write_open = False         # inside a Write of several segments
        self.answered = self.delivered = 0
        self.stuck = False              # this and the next two: for bugs only
        self.open_seg = None            # first segment of an unfinished message
        self.sink_high = {}
        self.write_cache = (None, None) # this and the next three: for bugs only
        self.write_tail = None
        self.held = None
        self.sink = 0
        self.begun = self.cut = False   # the Reply has begun / came in pieces
        self.late_rtr = None            # this and the next two: for bugs only
        self.tails, self.sinks = {}, []
        self.service = SERVICES[opts.service, initiator](self)
        size = RPING_BUFFER if opts.service == "rping" else ECHO_BUFFER
        self.queues = [UntaggedQueue(0, size), UntaggedQueue(1, 28), UntaggedQueue(2, 52)]
        self._bug_setup()

    def _bug_setup(self):
        if bug("shared-reassembly"):
            self.queues[0].buf = SHARED["buffer"]
        if bug("half-send-leak") and SHARED["half"]:
            self.queues[0].spans, self.queues[0].extent = SHARED["half"]
            SHARED["half"] = None
        if bug("shared-msn"):
            self.slot = SHARED["opened"] % 2
            SHARED["opened"] += 1
            SHARED["msn"][self.slot] = 1
        if bug("msn-reuse"):
            self.tx_msn[0] = SHARED["next_msn"]

    def _bug_end(self):
        if self in SHARED["live"]:
            SHARED["live"].remove(self)
        if bug("half-send-leak") and self.queues[0].spans:
            SHARED["half"] = (self.queues[0].spans, self.queues[0].extent)
        if bug("stag-after-close"):
            SHARED["regions"].update(self.regions)
        if bug("msn-reuse"):
            SHARED["next_msn"] = self.tx_msn[0]
        SHARED["full"].discard(self)
        if bug("ctx-cache-8"):
            with SHARED["lock"]:
                if self in SHARED["contexts"]:
                    SHARED["contexts"].remove(self)

    def _load_context(self):
        """For one bug: a cache of eight contexts, without a complete write-back."""
        with SHARED["lock"]:
            contexts = SHARED["contexts"]
            if self in contexts:
                contexts.remove(self)
            contexts.append(self)
            if len(contexts) > 8:
                queue = contexts.pop(0).queues[0]
                queue.msn = max(queue.msn - 1, 1)

    def _blocked(self):
        """For one bug: another connection has too much waiting for its socket."""
        if len(self.out) > 1 << 18:
            SHARED["full"].add(self)
        else:
            SHARED["full"].discard(self)
        return bool(SHARED["full"] - {self})

    def _release(self):
        """For one bug: sends the answer that was held back."""
        held, self.held = self.held, None
        if held is not None:
            self.send_untagged(0, SEND, held)

    # ---- life cycle

    def run(self):
        """Set-up, work, end.  Never raises."""
        try:
            self.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._setup()
            if bug("error-neighbour") or bug("rst-flush"):
                SHARED["live"].append(self)
            self._start()
            if self.late_rtr is not None:
                self._rtr(*self.late_rtr)
            self._loop()
        except Refused as why:
            self.failed = True
            if bug("refused-leak"):
                SHARED["refused"] += 1
            self._log("refused: %s" % why)
        except (OSError, Abort) as why:
            self.failed = True
            self._log("ended: %r" % why)
            if bug("marker-pos-rst") and self.writer and isinstance(why, ConnectionError):
                SHARED["old_pos"] = self.writer.pos
            if bug("rst-flush") and isinstance(why, ConnectionResetError):
                for other in SHARED["live"]:
                    other.queues[0].spans, other.queues[0].extent = [], 0
        finally:
            self._bug_end()
            self.sock.close()

    def _start(self):
        if not self.started:
            self.started = True
            self.service.start()

    def _log(self, text):
        if self.initiator:
            self.notes.append(text)
        elif self.opts.verbose:
            print("%s %s" % (threading.current_thread().name, text), file=sys.stderr)

    def _loop(self):
        """Full Operation until either side ends it."""
        self.sock.setblocking(False)
        poll = select.poll()
        poll.register(self.sock)
        finished = False                # the peer's FIN came
        shut = False                    # our FIN is sent
        deadline = None
        if bug("setup-timer"):
            deadline = self.setup_end - SETUP_TIMEOUT + 4.0
        while True:
            if finished and not self.out:
                if bug("fin-half-fpdu") and self.reader.buf and not self.closing:
                    time.sleep(60)
                if bug("fin-in-send") and self.queues[0].spans and not self.closing:
                    time.sleep(LAST_SEND)
                return
            if self.closing and not self.out and not shut:
                self.sock.shutdown(socket.SHUT_WR)
                shut = True
                deadline = time.monotonic() + LINGER
            if deadline is None and (self.closing or finished):
                deadline = time.monotonic() + LAST_SEND
            want = select.POLLOUT if self.out else 0
            if bug("lost-wakeup") and len(self.out) < 1 << 20:
                want = 0
            if bug("stuck-window") and len(self.out) > 2 << 20:
                self.stuck = True
            if not finished and len(self.out) < OUT_LIMIT and not self.stuck:
                want |= select.POLLIN
            poll.modify(self.sock, want)
            wait = None if deadline is None else 1000 * (deadline - time.monotonic())
            if wait is not None and wait <= 0:
                return
            for _, event in poll.poll(wait):
                if event & (select.POLLIN | select.POLLHUP | select.POLLERR) and not finished:
                    finished = self._receive()
                    if finished and bug("fin-drops"):
                        self.out.clear()
            self._flush()
            if bug("hol-block"):
                self._blocked()

    def _receive(self):
        """One TCP read and all its FPDUs.  True at the peer's FIN."""
        while bug("hol-block") and self._blocked():
            self._flush()
            time.sleep(0.01)
        try:
            data = self.sock.recv(1 << 18)
        except BlockingIOError:
            return False
        if not data:
            if bug("fin-no-crc") and not self.closing and self.reader.lacks_crc():
                self.reader.feed(crc32c(self.reader.buf))
                self._work()
            return True
        while bug("setup-lock") and SHARED["waiting"]:
            time.sleep(0.01)
        if self.closing:
            return False
        self.reader.feed(data)
        self._work()
        return False

    def _flush(self):
        while self.out:
            try:
                count = self.sock.send(memoryview(self.out)[:1 << 18].tobytes())
            except BlockingIOError:
                return
            del self.out[:count]
            self.sent += count

    def _work(self):
        """Works off all complete FPDUs at hand."""
        budget = self.fpdus + 256
        while not self.closing or bug("after-terminate"):
            if bug("budget-256") and self.fpdus == budget:
                break
            try:
                ulpdu = self.reader.next()
                if ulpdu is None:
                    break
                self.fpdus += 1
                if self.poisoned:
                    raise Abort("poisoned")
                self._on_ulpdu(ulpdu)
            except Fault as fault:
                self.terminate(self._last_fault(fault) if bug("term-last-error") else fault)
        if bug("tx-recycle"):
            self._release()
        self._late_writes()
        for args in reversed(self.late_reads):
            self._answer_read(*args)
        self.late_reads = []

    def _last_fault(self, fault):
        """For one bug: the last MPA or DDP error of the FPDUs at hand."""
        while True:
            try:
                ulpdu = self.reader.next()
                if ulpdu is None:
                    return fault
                self.check_ddp(ulpdu)
            except Fault as later:
                if later.etype != 0 and later.layer != MPA:
                    later.seg = ulpdu
                fault = later

    def terminate(self, fault):
        """Sends the Terminate and ends the stream."""
        if self.closing:
            return
        self.failed = True
        self._log("sends %s" % fault)
        if bug("term-cuts") and len(self.out) > 1 << 16:
            del self.out[(1 << 15) + 2:]
        # A Responder sends no FPDU before it has validated one (RFC 5044, 7.1.2, rule 4).
        if self.initiator or self.fpdus:
            if bug("tx-recycle"):
                self._release()
            rest = b""
            if bug("term-overtakes"):
                rest, self.out = self.out, bytearray()
            self.send_untagged(2, TERM, fault.message())
            self.out += rest
        self.closing = True
        if bug("error-neighbour"):
            for other in SHARED["live"]:
                if other is not self:
                    other.poisoned = True
                    break

    def close(self):
        """Graceful end: what is queued still goes out, then FIN."""
        if bug("tx-recycle"):
            self._release()
        self.closing = True

    # ---- sending

    def segment_size(self, header):
        """Payload octets of one segment: 1,400, or less if TCP has less."""
        emss = self.sock.getsockopt(socket.IPPROTO_TCP, socket.TCP_MAXSEG)
        over = 6 + emss % 4
        if self.writer.markers:
            over += 4 * -(-emss // 512)
        return min(SEGMENT, max(emss - over, 128) - header)

    def _queue(self, ulpdu):
        fpdu = self.writer.frame(ulpdu)
        if bug("sndbuf-drop") and len(self.out) > 4 << 20:
            return
        self.out += fpdu
        self.queued += len(fpdu)

    def send_untagged(self, qn, opcode, payload):
        """One message on an untagged queue."""
        if self.closing and not bug("after-terminate"):
            return
        msn = self._next_msn(qn)
        step = self.segment_size(18)
        for mo in range(0, max(len(payload), 1), step):
            part = payload[mo:mo + step]
            last = mo + step >= len(payload)
            if bug("exact-multiple") and mo and len(part) == step:
                last = False
            self._queue(struct.pack(">BBIIII", 0x41 if last else 0x01, 0x40 | opcode,
                                    0, qn, msn, mo) + part)
        if bug("write-tail-late") and self.write_tail:
            self._queue(self.write_tail)
            self.write_tail = None

    def _next_msn(self, qn):
        if bug("term-send-msn") and qn == 2:
            qn = 0
        if bug("shared-msn") and qn == 0:
            msn = SHARED["msn"][self.slot]
            SHARED["msn"][self.slot] += 1
            return msn
        msn = self.tx_msn[qn]
        self.tx_msn[qn] = (msn + 1) & 0xFFFFFFFF
        if bug("read-msn-8bit") and qn == 1:
            msn &= 0xFF
        return msn

    def send_tagged(self, opcode, stag, to, payload):
        """One message into a tagged buffer of the peer."""
        if self.closing and not bug("after-terminate"):
            return
        step = self.segment_size(14)
        for offset in range(0, max(len(payload), 1), step):
            part = payload[offset:offset + step]
            last = offset + step >= len(payload)
            at = (to + offset) & 0xFFFFFFFFFFFFFFFF
            if bug("sink-to-carry"):
                at = (to >> 32 << 32) | ((to + offset) & 0xFFFFFFFF)
            segment = struct.pack(">BBIQ", 0xC1 if last else 0x81, 0x40 | opcode,
                                  stag, at) + part
            if bug("write-tail-late") and opcode == WRITE and last and offset:
                self.write_tail = segment
                continue
            self._queue(segment)

    def send(self, payload):
        if bug("tx-recycle"):
            held, self.held = self.held, None
            if held is not None:
                self.send_untagged(0, SEND, payload[:len(held)] + held[len(payload):])
            if len(self.out) > 1 << 16:
                self.held = payload
                return
        self.send_untagged(0, SEND, payload)

    def write(self, stag, to, payload):
        self.send_tagged(WRITE, stag, to, payload)

    def start_read(self, region, size, stag, to):
        """Reads size octets of the peer's buffer to the start of region."""
        self.read = [region, size, []]
        self.send_untagged(1, READ_REQ, struct.pack(
            ">IQIIQ", region.stag, region.base, size, stag, to))

    # ---- tagged buffers

    def register(self, region):
        while region.stag in self.regions:
            region.stag = random.SystemRandom().randrange(1, 1 << 32)
        self.regions[region.stag] = region
        return region

    def region(self, stag, write=False):
        found = self.regions.get(stag)
        if found is None and bug("stag-after-close"):
            found = SHARED["regions"].get(stag)
        if bug("stag-cache") and write:
            if found is not None:
                self.write_cache = stag, found
            elif self.write_cache[0] == stag:
                found = self.write_cache[1]
        return found

    # ---- receiving

    def check_ddp(self, ulpdu):
        """The DDP header checks; they come before any RDMAP check."""
        if not ulpdu or len(ulpdu) < (14 if ulpdu[0] & 0x80 else 18):
            raise Fault(DDP, 0, 0)
        tagged = ulpdu[0] & 0x80
        if ulpdu[0] & 3 != 1:
            raise Fault(DDP, 1, 4) if tagged else Fault(DDP, 2, 6)
        if tagged:
            self._check_tagged(ulpdu)
        else:
            self._check_untagged(ulpdu)

    def _check_tagged(self, ulpdu):
        stag, to = struct.unpack_from(">IQ", ulpdu, 2)
        count = len(ulpdu) - 14
        if not count:
            return
        region = self.region(stag, ulpdu[1] & 15 == WRITE)
        if region is None:
            raise Fault(DDP, 1, 0)
        if to + count > 1 << 64:
            raise Fault(DDP, 1, 3)
        if not region.holds(to, count) and not (
                bug("later-bounds") and self.write_open and ulpdu[1] & 15 == WRITE):
            raise Fault(DDP, 1, 1)

    def _check_untagged(self, ulpdu):
        qn, msn, mo = struct.unpack_from(">III", ulpdu, 6)
        if qn > 2:
            raise Fault(DDP, 2, 1)
        queue = self.queues[qn]
        queue.check(msn, mo, len(ulpdu) - 18)
        if qn == 1 and not queue.spans and not self._read_slot():
            raise Fault(DDP, 2, 2)
        if qn == 0 and not self.service.ready():
            raise Fault(DDP, 2, 2)

    def _read_slot(self):
        """True if one more inbound Read may be outstanding."""
        self.inbound_reads = [end for end in self.inbound_reads if end > self.sent]
        limit = self.ird - 1 if bug("ird-off-by-one") else self.ird
        if bug("read-slot-leak"):
            limit = max(limit - SHARED["refused_reads"], 1)
        return len(self.inbound_reads) < limit

    def _on_ulpdu(self, ulpdu):
        if bug("ctx-cache-8"):
            self._load_context()
        try:
            self.check_ddp(ulpdu)
            if ulpdu[1] >> 6 > 1:       # RV: 00b and 01b are valid
                raise Fault(RDMAP, 2, 5)
            if ulpdu[0] & 0x80:
                self._on_tagged(ulpdu)
            else:
                self._on_untagged(ulpdu)
        except Fault as fault:
            if fault.etype != 0 and fault.layer != MPA:
                fault.seg = ulpdu
                if bug("term-later-seg") and self.open_seg and self.open_seg[1] == ulpdu[1]:
                    fault.seg = self.open_seg
            if fault.rdma:
                SHARED["refused_reads"] += 1
            raise
        self.open_seg = None if ulpdu[0] & 0x40 else self.open_seg or ulpdu

    def _on_tagged(self, ulpdu):
        opcode = ulpdu[1] & 15
        stag, to = struct.unpack_from(">IQ", ulpdu, 2)
        data = ulpdu[14:]
        if opcode == READ_RESP:
            self._check_response(stag, to, len(data))
        elif opcode != WRITE:
            raise Fault(RDMAP, 2, 6)
        if bug("write-between-send") and self.queues[0].spans:
            queue = self.queues[0]
            queue.buf[:queue.extent] = bytes(queue.extent)
        if bug("page-cross") and opcode == WRITE and to & 7:
            data = data[:4096 - to % 4096]
        if bug("write-odd-seg") and opcode == WRITE and not ulpdu[0] & 0x40:
            data = data[:len(data) & ~3]
        if data:
            late = bug("goahead-early") and opcode == WRITE and ulpdu[0] & 0x40 and self.write_open
            self._place_tagged(self.region(stag, opcode == WRITE), to, data, late)
        if opcode == WRITE:
            self.write_open = not ulpdu[0] & 0x40
        if opcode == READ_RESP and ulpdu[0] & 0x40:
            self._response_done()

    def _place_tagged(self, region, to, data, late=False):
        offset = to - region.base
        if bug("write-to-high"):
            offset &= 0xFFFFFFFF
        if bug("read-before-write") or late:
            self.late_writes.append((region, offset, data))
            return
        if bug("later-bounds") and not region.holds(to, len(data)):
            return
        if bug("bounds-round"):
            data = data[:max(len(region.data) - offset, 0)]
        region.data[offset:offset + len(data)] = data

    def _late_writes(self):
        for region, offset, data in self.late_writes:
            region.data[offset:offset + len(data)] = data
        self.late_writes = []

    def _check_response(self, stag, to, count):
        """A Read Response must belong to the Read we issued."""
        if self.read is None:
            raise Fault(RDMAP, 2, 6)
        region, size, spans = self.read
        if not count:
            return
        offset = to - region.base
        if stag != region.stag or offset < 0 or offset + count > size:
            raise Fault(RDMAP, 2, 0xFF)
        spans.append((offset, offset + count))

    def _response_done(self):
        """The last segment came: no octet may be missing."""
        _, size, spans = self.read
        reach = 0
        for start, end in sorted(spans):
            if start <= reach:
                reach = max(reach, end)
        if reach != size:
            raise Fault(RDMAP, 2, 0xFF)
        self._late_writes()
        self.read = None
        self.service.on_read_done()

    def _on_untagged(self, ulpdu):
        opcode, last = ulpdu[1] & 15, bool(ulpdu[0] & 0x40)
        inv_stag, qn, _, mo = struct.unpack_from(">IIII", ulpdu, 2)
        if opcode not in (SENDS, (READ_REQ,), (TERM,))[qn]:
            raise Fault(RDMAP, 2, 6)
        if bug("inv-early") and opcode in (SEND_INV, SEND_SE_INV):
            self.regions.pop(inv_stag, None)
        message = self.queues[qn].place(mo, ulpdu[18:], last)
        if message is None:
            return
        if bug("inv-segmented") and qn == 0 and mo:
            opcode = SEND
        if qn == 0:
            self._on_send(opcode, inv_stag, message)
        elif qn == 1:
            self._on_read_request(message)
        else:
            self.failed = True
            self._log("got terminate %s" % message[:4].hex())
            self.close()

    def _on_send(self, opcode, inv_stag, message):
        if not bug("goahead-early"):
            self._late_writes()
        if opcode in (SEND_INV, SEND_SE_INV) and not bug("inv-early"):
            if inv_stag not in self.regions:
                raise Fault(RDMAP, 1, 9)
            del self.regions[inv_stag]
        if self.rtr_send and not message and (self.fpdus == 1 or bug("rtr-swallows")):
            self.rtr_send = False
            return                      # the RTR, not for the ULP
        self.rtr_send = False
        if bug("se-leak-32") and opcode in (SEND_SE, SEND_SE_INV):
            SHARED["events"] += 1
            if SHARED["events"] > 32:
                return
        self.delivered += 1
        if bug("lost-300th") and self.delivered == 300:
            return
        if bug("rtr-read-hold") and self.service.rtr:
            return
        self.service.on_send(message)

    def _on_read_request(self, header):
        if len(header) != 28:
            raise Fault(RDMAP, 2, 0xFF)
        sink, sink_to, size, stag, to = struct.unpack(">IQIIQ", header)
        content = self._source(header, size, stag, to)
        if bug("read-crossed") and self.read is not None:
            return
        if bug("read-sink-stale"):
            if not any(end > self.sent for end in self.inbound_reads):
                self.sink = sink
            sink = self.sink
        if bug("sink-hi-cache"):
            high = self.sink_high.setdefault(sink, sink_to >> 32)
            sink_to = high << 32 | sink_to & 0xFFFFFFFF
        if bug("read-order"):
            self.late_reads.append((sink, sink_to, content))
            return
        self._answer_read(sink, sink_to, content)

    def _source(self, header, size, stag, to):
        """The octets to read, after the checks of RFC 5040, 7.2."""
        if size == 0:
            return b""                  # STag and TO must not be looked at
        region = self.region(stag)
        if region is None:
            raise Fault(RDMAP, 1, 0, header)
        if to + size > 1 << 64:
            raise Fault(RDMAP, 1, 4, header)
        if not region.holds(to, size):
            raise Fault(RDMAP, 1, 1, header)
        offset = (to - region.base) & 0xFFFFFFFF
        step = self.segment_size(14)
        if bug("read-part") and size > step:
            return bytes(region.data[offset:offset + step] + region.data[step:size])
        if bug("bounds-round"):
            return bytes(region.data[offset:offset + size]).ljust(size, b"\0")
        if bug("read-stale-tail") and size > step:
            at = offset + (size - 1) // step * step
            tail = bytes(region.data[at:offset + size])
            old = self.tails.get((stag, to, size), tail)
            self.tails[stag, to, size] = tail
            return bytes(region.data[offset:at]) + old
        return bytes(region.data[offset:offset + size])

    def _answer_read(self, sink, sink_to, content):
        if bug("read-tail-short") and len(content) > SEGMENT and len(content) % 4:
            content = content[:-1]
        if bug("read-ring-8"):
            self.sinks.append((sink, sink_to))
            if len(self.inbound_reads) >= 8:
                sink, sink_to = self.sinks[-9]
        self.send_tagged(READ_RESP, sink, sink_to, content)
        self.answered += 1
        if bug("read-dup-16") and self.answered % 16 == 0:
            self.send_tagged(READ_RESP, sink, sink_to, content)
        self.inbound_reads.append(self.queued)

    # ---- MPA set-up

    def _setup(self):
        self.setup_end = time.monotonic() + SETUP_TIMEOUT
        try:
            if self.initiator:
                self._setup_initiator()
            else:
                self._setup_responder()
        except OSError as why:
            raise Refused(str(why))

    def _exactly(self, count):
        data = b""
        while len(data) < count:
            self.sock.settimeout(max(self.setup_end - time.monotonic(), 0.001))
            if bug("rtr-late") and self.begun and not select.select([self.sock], [], [], 0)[0]:
                self.cut = True
            part = self.setup_recv(count - len(data))
            if not part:
                raise Refused("closed during set-up")
            data += part
            self.begun = True
        return data

    def setup_recv(self, count):
        """Up to count octets of the set-up; nothing if the peer closed."""
        if not bug("stale-reply"):
            return self.sock.recv(count)
        stale, SHARED["stale"] = SHARED["stale"], b""
        part = stale[:count] or self.sock.recv(count)
        SHARED["stale"] = stale[count:]
        self.frame_octets += part
        if not part:
            SHARED["stale"] = self.frame_octets
        return part

    def _frame(self, key):
        """One set-up frame: (flags, revision, private data)."""
        self.frame_octets = b""
        if self._exactly(16) != key:
            raise Refused("wrong key")
        flags, rev, length = struct.unpack(">BBH", self._exactly(4))
        if length > (511 if bug("pd-512") else 512):
            raise Refused("too much private data")
        if bug("pd-8bit"):
            length &= 0xFF
        if bug("reply-split") and self.initiator and length:
            return flags, rev, self._at_hand(length)
        if bug("early-fpdu") and self.initiator and not flags & 0x20:
            first = self._exactly(4 if self.opts.rev == 2 and length >= 4 else 0)
            self._begin(flags, rev, first)
            self._start()
            self._flush()
            return flags, rev, first + self._exactly(length - len(first))
        return flags, rev, self._exactly(length)

    def _at_hand(self, length):
        """For one bug: what is there now, and zeros for the rest."""
        self.sock.setblocking(False)
        try:
            found = self.sock.recv(length)
        except BlockingIOError:
            found = b""
        self.sock.settimeout(SETUP_TIMEOUT)
        return found + bytes(length - len(found))

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
        send_crc = use_crc and not (bug("crc-tx-c0") and not flags & 0x40)
        self.writer = FpduWriter(send_crc, bool(flags & 0x80))
        self.reader = FpduReader(use_crc or bug("crc-neither"), self.opts.markers, self.check_ddp)
        if bug("crc-sticky") and not SHARED["c"]:
            self.reader.use_crc = False
        SHARED["c"] = flags & 0x40
        if bug("crc-own-only"):
            self.reader.use_crc = bool(self._own_flags() & 0x40)
        if bug("marker-pos-rst"):
            self.writer.pos, SHARED["old_pos"] = SHARED["old_pos"], 0
        if bug("marker-one-way") and flags & 0x80 and not self.opts.markers:
            self.writer.late = 4

    def _setup_responder(self):
        flags, rev, private = self._frame(b"MPA ID Req Frame")
        if rev not in (1, 2):
            raise Refused("revision %d" % rev)
        enhanced = rev == 2 and bool(flags & 0x10)
        if enhanced and len(private) < 4:
            raise Refused("no enhanced data")
        self._nothing_more()
        reply, reject = b"", False
        if enhanced:
            reply, reject = self._negotiate(*struct.unpack_from(">HH", private))
        if bug("rev-sticky"):
            enhanced, SHARED["enhanced"] = enhanced or SHARED["enhanced"], enhanced
            reply = reply or (struct.pack(">HH", IRD, ORD) if enhanced else b"")
        bits = self._own_flags() | (0x10 if enhanced else 0) | (0x20 if reject else 0)
        self.sock.sendall(b"MPA ID Rep Frame" + struct.pack(">BBH", bits, rev, len(reply)) + reply)
        if reject:
            raise Refused("initiator IRD too small")
        self._full_operation(flags)

    def _negotiate(self, word_ird, word_ord):
        """The enhanced data of the Reply (RFC 6581, 9) and whether to reject."""
        ird, ord_ = word_ird & 0x3FFF, word_ord & 0x3FFF
        own_ird = AUTO if ord_ == AUTO else IRD
        if ird == AUTO and not (bug("auto-mixed") and ord_ != AUTO):
            own_ord = AUTO
        else:
            own_ord = self.ord = min(ORD, ird)
        if bug("ord-sticky") and ird != AUTO:
            if SHARED["peer_ird"] is not None:
                own_ord = min(ORD, SHARED["peer_ird"])
            SHARED["peer_ird"] = ird
        reject = self.opts.service == "rping" and own_ord == 0
        if reject:
            own_ord = 1                 # what the service needs
        if word_ird & 0x8000:
            send, others = word_ird & 0x4000, word_ord & 0xC000
            if not send and not others:
                send, others = 0x4000, 0xC000
            self.rtr_send = bool(send)
            own_ird |= 0x8000 | send
            own_ord |= others
        return struct.pack(">HH", own_ird, own_ord), reject

    def _setup_initiator(self):
        SHARED["waiting"].add(self)
        try:
            self._ask()
            frame = self._frame(b"MPA ID Rep Frame")
        finally:
            SHARED["waiting"].discard(self)
        if self.writer is None:         # always, in the correct version
            self._begin(*frame)

    def _ask(self):
        """Sends the MPA Request."""
        opts, private = self.opts, b""
        if opts.rev == 2:
            rtr = 0xC000 if opts.p2p else 0
            private = struct.pack(">HH", opts.ird | rtr, opts.ord | rtr)
        bits = self._own_flags() | (0x10 if private else 0)
        if bug("request-dirty"):
            bits, SHARED["dirty"] = bits | SHARED["dirty"], 0
        low, high = opts.private
        room = 512 - len(private)
        private += pattern(min(low + (self.number - 1) % (high - low + 1), room), self.number)
        length = len(private) & ~3 if bug("private-odd") else len(private)
        request = b"MPA ID Req Frame" + struct.pack(">BBH", bits, opts.rev, length) + private
        self.sock.sendall(request)
        if bug("request-again") and not select.select([self.sock], [], [], 0.5)[0]:
            self.sock.sendall(request)

    def _begin(self, flags, rev, reply):
        """Checks the Reply, then begins Full Operation with the first FPDU."""
        enhanced = self.opts.rev == 2
        if rev not in (1, 2) or rev > self.opts.rev:
            raise Refused("revision %d" % rev)
        if enhanced and (rev != 2 or not flags & 0x10 or len(reply) < 4):
            raise Refused("reply is not enhanced")
        if flags & 0x20 and not (bug("reject-data") and len(reply) > 4 * enhanced):
            SHARED["dirty"] = flags & 0x20
            raise Refused("rejected by the responder")
        self._full_operation(flags)
        if bug("marker-rx-origin"):
            self.reader.origin = len(reply)
        if bug("rtr-crc"):
            self.writer.use_crc = bool(flags & 0x40)
        if enhanced:
            self._accept(*struct.unpack_from(">HH", reply))
        if bug("rtr-crc"):
            self.writer.use_crc = self.reader.use_crc

    def _accept(self, word_ird, word_ord):
        """Takes the Responder's values over and sends the RTR."""
        ird, ord_ = word_ird & AUTO, word_ord & AUTO
        if ird != AUTO:
            self.ord = min(self.ord, ird)
            if bug("ird-swapped"):
                self.ird = min(self.ird, ird)
        most = min(self.opts.ird, IRD)
        if ord_ != AUTO and (ord_ & 0xFF if bug("ord-8bit") else ord_) > most:
            self.terminate(Fault(MPA, 0, 6))
        elif self.opts.p2p:
            offered = word_ird & 0x8000     # A=0: the other flags mean nothing
            self._rtr(offered and word_ird & 0x4000, offered and word_ord & 0x8000,
                      offered and word_ord & 0x4000 and ird)

    def _rtr(self, send, write, read):
        """Sends one RTR of those that the Responder offers."""
        if bug("rtr-late") and self.cut:
            self.cut, self.late_rtr = False, (send, write, read)
            return
        if write:
            self.write(0, 0, b"")
            if bug("rtr-both") and send:
                self.send(b"")
        elif send:
            self.send(b"")
            if bug("rtr-msn"):
                self.tx_msn[0] = 1
            if bug("rtr-swallows"):
                self.rtr_send = True
        elif read:
            self.service.rtr_read()
        else:
            self.terminate(Fault(MPA, 0, 7))


# ---------------------------------------------------------------- services

def pattern(size, start):
    """Octets without 0 for the Initiator to send; start shifts them."""
    return bytes(65 + (start + i) % 58 for i in range(size))


class Service:
    """What all services have in common."""

    def __init__(self, conn):
        self.conn = conn
        self.rtr = False
        self.rounds = 0
        self.good = True                # for the exit status of --once

    def start(self):
        """Called when Full Operation begins."""

    def ready(self):
        """True if a receive buffer is posted."""
        return True

    def rtr_read(self):
        """An empty Read as RTR; its answer is for nobody."""
        self.rtr = True
        self.conn.start_read(Region(0), 0, 0, 0)

    def on_read_done(self):
        if self.rtr:
            self.rtr = False
        else:
            self.read_done()

    def read_done(self):
        pass


class Echo(Service):
    """Every Send is answered by a Send of the same octets."""

    def on_send(self, message):
        self.conn.send(message)


class EchoInitiator(Echo):
    """The same, after the first FPDU that RFC 5044 requires of an Initiator.

    After an RTR nothing more is required, so a greeting follows only if
    --greeting is given.
    """

    def start(self):
        opts = self.conn.opts
        if opts.greeting is not None or not opts.p2p:
            self.conn.send(pattern(4 if opts.greeting is None else opts.greeting, 0))

    def on_send(self, message):
        super().on_send(message)
        self.rounds += 1
        if self.rounds == self.conn.opts.count:
            self.conn.close()


class RpingServer(Service):
    """The server of librdmacm's rping."""

    def __init__(self, conn):
        super().__init__(conn)
        self.buffer = Region(conn.opts.size)
        self.have = 0                   # octets read from the client
        self.reading = False
        self.turn = 0                   # 0: a source is announced, 1: a sink
        self.waiting = []               # Sends that came during our Read

    def start(self):
        self.conn.register(self.buffer)

    def ready(self):
        return len(self.waiting) < 16

    def on_send(self, message):
        if self.reading:
            if bug("rq-overwrite"):
                self.waiting.clear()
            self.waiting.append(message)
            return
        if len(message) != 16:
            self.conn.close()
            return
        to, stag, size = struct.unpack(">QII", message)
        if self.turn == 0:
            self._read_from(to, stag, size)
        else:
            self._write_to(to, stag, size)
        self.turn = 1 - self.turn

    def _read_from(self, to, stag, size):
        if size > len(self.buffer.data):
            self.conn.close()
            return
        if self.buffer.stag not in self.conn.regions:
            # The client invalidated it: the same buffer gets a new STag.
            self.buffer.stag = random.SystemRandom().randrange(1, 1 << 32)
            self.conn.register(self.buffer)
        self.have = size
        self.reading = True
        self.conn.start_read(self.buffer, size, stag, to)

    def read_done(self):
        self.reading = False
        self.conn.send(bytes(16))
        while self.waiting and not self.reading:
            self.on_send(self.waiting.pop(0))

    def _write_to(self, to, stag, size):
        content = bytes(self.buffer.data[:min(size, self.have)])
        self.conn.write(stag, to, content)
        self.conn.send(bytes(16))


class RpingClient(Service):
    """Like rping -c: announce source, announce sink, compare, repeat."""

    def __init__(self, conn):
        super().__init__(conn)
        self.turn = 0
        self.good = False

    def start(self):
        size = self.conn.opts.size
        self.source = self.conn.register(Region(size))
        self.sink = self.conn.register(Region(size))
        if bug("shared-sink"):
            SHARED["sink"] = SHARED["sink"] or bytearray(size)
            self.sink.data = SHARED["sink"]
        self._announce_source()

    def _announce(self, region):
        self.conn.send(struct.pack(">QII", region.base, region.stag, len(region.data)))

    def _announce_source(self):
        """Octets that change with each round and connection.

        The last of several is 0, since rping's server writes up to the first 0.
        """
        size = len(self.source.data)
        text = b"rdma-ping-%d: " % self.rounds + pattern(size, 7 * self.conn.number + self.rounds)
        self.source.data[:] = text[:size - 1] + b"\0" if size > 1 else text[:size]
        self.sink.data[:] = bytes(255 - octet for octet in self.source.data)
        self._announce(self.source)

    def on_send(self, message):
        if self.turn == 0:
            self._announce(self.sink)
        elif self.sink.data != self.source.data:
            self.conn._log("data differ")
            self.conn.failed = True
            self.conn.close()
        else:
            self.rounds += 1
            if self.rounds == self.conn.opts.count:
                self.good = True
                self.conn.close()
            else:
                self._announce_source()
        self.turn = 1 - self.turn


SERVICES = {("echo", False): Echo, ("echo", True): EchoInitiator,
            ("rping", False): RpingServer, ("rping", True): RpingClient}


# ---------------------------------------------------------------- program

def address(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def listen(opts):
    """Serves any number of connections, one thread for each."""
    host, port = address(opts.listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = socket.create_server((host, port), family=family, backlog=128)
    bound = server.getsockname()
    print(("[%s]:%d" if family == socket.AF_INET6 else "%s:%d") % bound[:2], flush=True)
    while True:
        try:
            sock, _ = server.accept()
        except OSError:                 # for example no file descriptors left
            time.sleep(0.1)
            continue
        if bug("refused-leak") and SHARED["refused"] >= 8:
            sock.close()
            continue
        threading.Thread(target=serve_one, args=(sock, opts), daemon=True).start()


def serve_one(sock, opts):
    Connection(sock, opts, False).run()


def connect(opts):
    """The Initiator role: connects again and again, or once for an exit status."""
    numbers = itertools.count(1)
    if opts.once:
        conn = connect_one(opts, numbers)
        good = conn is not None and not conn.failed and conn.service.good
        rounds = conn.service.rounds if conn else 0
        print("%s: %d rounds, %s" % (opts.service, rounds, "ok" if good else "FAILED"), flush=True)
        return 0 if good else 1
    for _ in range(opts.connections - 1):
        threading.Thread(target=connect_again, args=(opts, numbers), daemon=True).start()
    return connect_again(opts, numbers)


def connect_again(opts, numbers):
    """One connection after the other, until the process ends."""
    while True:
        connect_one(opts, numbers)
        time.sleep(AGAIN)


def connect_one(opts, numbers):
    """One connection from start to end; None if TCP does not connect."""
    try:
        sock = socket.create_connection(address(opts.connect), SETUP_TIMEOUT)
    except OSError:
        return None
    if sock.getsockname() == sock.getpeername():
        sock.close()                    # TCP connected the port to itself: nobody listens
        return None
    conn = Connection(sock, opts, True, next(numbers))
    conn.run()
    if opts.verbose:
        why = "; ".join(conn.notes) or "closed by " + ("us" if conn.closing else "the peer")
        print("connection %d ended after %d rounds: %s" % (conn.number, conn.service.rounds, why),
              file=sys.stderr, flush=True)
    return conn


def sizes(text):
    """N or LOW-HIGH as a pair."""
    low, _, high = text.partition("-")
    pair = int(low), int(high or low)
    if not 0 <= pair[0] <= pair[1] <= 512:
        raise ValueError
    return pair


def depth(text):
    """An IRD or ORD: 0 to 16, or 0x3FFF for no negotiation."""
    value = int(text, 0)
    if not 0 <= value <= IRD and value != AUTO:
        raise ValueError
    return value


def arguments():
    parser = argparse.ArgumentParser(description="iWARP endpoint with planted bugs")
    parser.add_argument("--listen", metavar="HOST:PORT", help="Responder role")
    parser.add_argument("--connect", metavar="HOST:PORT",
                        help="Initiator role; connects again 0.2 s after each end, until killed")
    parser.add_argument("--service", choices=["echo", "rping"], default="echo")
    parser.add_argument("--bug", metavar="NAME",
                        choices=sorted({**BUGS, **CONNECT_BUGS, **NEW_BUGS, **NEW_CONNECT_BUGS}))
    parser.add_argument("--list-bugs", action="store_true")
    parser.add_argument("--role", choices=["responder", "initiator", "new", "new-initiator"], default="responder",
                        help="whose bugs --list-bugs lists (default responder)")
    parser.add_argument("--size", type=int, default=64, help="rping buffer, 1 to 65535")
    parser.add_argument("--no-crc", action="store_true", help="do not ask for CRC (C=0)")
    parser.add_argument("--markers", action="store_true", help="ask for markers (M=1)")
    parser.add_argument("-v", "--verbose", action="store_true",
                        help="to stderr: errors (Responder), one line per connection (Initiator)")
    group = parser.add_argument_group("options of the Initiator")
    group.add_argument("--enhanced", action="store_true", help="the same as --rev 2 --p2p")
    group.add_argument("--rev", type=int, choices=[1, 2], default=1,
                       help="MPA revision (default 1); 2 sends IRD and ORD")
    group.add_argument("--p2p", action="store_true", help="peer-to-peer: offer all RTRs (A=1)")
    group.add_argument("--ird", type=depth, default=IRD, help="0 to 16, or 0x3FFF (default 16)")
    group.add_argument("--ord", type=depth, default=ORD, help="the same")
    group.add_argument("--private", type=sizes, default=(0, 0), metavar="N|LOW-HIGH",
                       help="octets of private data, at most 512; LOW-HIGH: one more each time")
    group.add_argument("--greeting", type=int, metavar="BYTES",
                       help="size of the echo Initiator's first Send (4; none after an RTR)")
    group.add_argument("--count", type=int,
                       help="rounds before the Initiator closes, 0: no end (rping 3, echo 0)")
    group.add_argument("--connections", type=int, default=1, help="open at the same time")
    group.add_argument("--once", action="store_true", help="one connection, then an exit status")
    return parser, parser.parse_args()


def main():
    global ACTIVE
    parser, opts = arguments()
    if opts.list_bugs:
        table = {"responder": BUGS, "initiator": CONNECT_BUGS, "new": NEW_BUGS,
                 "new-initiator": NEW_CONNECT_BUGS}[opts.role]
        for name, (kind, text) in table.items():
            print("%-20s %-12s %s" % (name, kind, text))
        return 0
    if not 1 <= opts.size <= 65535:
        parser.error("--size must be 1 to 65535")
    if bool(opts.listen) == bool(opts.connect):
        parser.error("give one of --listen and --connect")
    if opts.listen and opts.bug in {**CONNECT_BUGS, **NEW_CONNECT_BUGS}:
        parser.error("%s is a bug of --connect" % opts.bug)
    if opts.greeting is not None and not 0 <= opts.greeting <= ECHO_BUFFER:
        parser.error("--greeting must be 0 to %d" % ECHO_BUFFER)
    opts.p2p = opts.p2p or opts.enhanced
    opts.rev = 2 if opts.p2p else opts.rev
    if opts.count is None:
        opts.count = 3 if opts.service == "rping" else 0
    ACTIVE = opts.bug
    try:
        return listen(opts) if opts.listen else connect(opts)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
