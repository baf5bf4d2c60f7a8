"""Legal but odd iWARP captures, written from the RFCs alone.

usage: legal.py [--each FOLDER] [--only TEXT] [OUTDIR]
Writes OUTDIR/legal-crc.pcapng, legal-plain.pcapng, legal-markers.pcapng and legal.csv; with --each also every
stream as FOLDER/MODE-ID.pcap. --only keeps the streams whose id contains TEXT.
"""
import argparse
import csv
import os
import struct
from collections import namedtuple

from stack import *

Mode = namedtuple("Mode", "name letter net crc markers")
MODES = [Mode("crc", "c", 20, 1, 0), Mode("plain", "p", 21, 0, 0), Mode("markers", "m", 22, 1, 1)]
STREAMS = []
Y = 1_000_000                                  # a second
TOP = 2**64


def stream(name, text, rfc, modes="cpm"):
    def add(f):
        STREAMS.append((f"L{len(STREAMS) + 1:02d}-{name}", text, rfc, modes, f))
        return f
    return add


def hello(c, n=8):
    """Sends one Send in each direction, first that of the Initiator."""
    c.go(c.ini, c.send(c.ini, pattern(n)))
    c.go(1 - c.ini, c.send(1 - c.ini, pattern(n, 2)))


# MPA start-up

@stream("request-on-handshake-ack", "no ACK of its own ends the TCP handshake: the MPA Request does", "5044 7.1.4.2 note")
def _(c):
    c.open(ack=False)
    c.req()
    c.rep()
    hello(c)
    c.close()


@stream("request-in-syn", "the MPA Request travels in the SYN", "5044 7.1.5 note (TCP's rules), RFC 793 3.4")
def _(c):
    c.open(syndata=c.req(send=False))
    c.rep()
    hello(c)
    c.close()


@stream("private-data-1-and-512", "1 octet of Private Data in the Request, 512 in the Reply", "5044 7.1.1")
def _(c):
    c.start(b"x", pattern(512))
    hello(c)
    c.close()


@stream("private-data-512-odd-cuts", "512 octets of Private Data; Request and Reply cut inside key, flags and PD_Length",
        "5044 7.1.1, 7.1.2")
def _(c):
    c.open()
    c.req(pd=pattern(512), cuts=(1, 15, 17, 19, 21, 300))
    c.rep(pattern(3), cuts=(16, 18, 20, 22))
    hello(c)
    c.close()


@stream("private-data-looks-like-reply", "Private Data that holds a complete MPA Reply Frame and an FPDU", "5044 7.1.1")
def _(c):
    c.start(b"MPA ID Rep Frame\0\1\0\0\0\x12\x41\x43", b"MPA ID Req Frame\x40\1\0\0")
    hello(c)
    c.close()


@stream("startup-frames-reordered", "the second half of the Request overtakes the first; the Reply is sent twice",
        "5044 7.1.5 note")
def _(c):
    c.open()
    c.put(A, c.req(pd=pattern(40), send=False))
    c.seg(A, 30, 60)
    c.ack(B)
    c.seg(A, 0, 30)
    c.rep(pattern(6))
    c.seg(B, 0, 26, dt=250_000)
    hello(c)
    c.close()


@stream("reply-after-40-seconds", "the ULP takes 40 s to accept; meanwhile TCP keepalives", "5044 7.1.2 rule 10 (timeouts open)")
def _(c):
    c.open()
    c.req(pd=b"wait")
    c.ack(B)
    for _ in range(2):
        c.emit(A, ACK, c.sent[A] - 1, b"", dt=15 * Y)
        c.ack(B)
    c.rep(b"ok", dt=10 * Y)
    hello(c)
    c.close()


@stream("reject-then-fin", "rejection with Private Data, then the Responder's ULP closes TCP", "5044 7.1.2 rule 2")
def _(c):
    c.open()
    c.req(pd=b"please")
    c.rep(pattern(33), R=1)
    c.close(B)


@stream("reject-then-streaming", "after a rejection TCP stays open and the ULP speaks its own protocol on it",
        "5044 7.1.2 rules 2, 3: 'use the connection for other purposes'")
def _(c):
    c.open()
    c.req()
    c.rep(R=1)
    c.put(A, b"GET / plain then\r\n")
    c.flush(A)
    c.put(B, b"200 fine, no RDMA\r\n")
    c.flush(B)
    c.close()


@stream("initiator-dislikes-private-data", "the Reply accepts, but the Initiator's ULP closes without any FPDU",
        "5044 7.1.2 rules 3, 6")
def _(c):
    c.start(b"v1", b"v9")
    c.close(A)


@stream("responder-closes-request", "the Responder's ULP closes TCP instead of replying", "5044 7.1.3, 7.1.4.2")
def _(c):
    c.open()
    c.req(pd=b"no?")
    c.close(B)


@stream("delayed-startup", "streaming mode Hello and Hello Ack before MPA", "5044 7.1, 7.1.3")
def _(c):
    c.open()
    for s, d in ((A, b"HELLO rdma?"), (B, b"HELLO-ACK mpa")):
        c.put(s, d)
        c.flush(s)
    c.req()
    c.rep()
    hello(c)
    c.close()


@stream("tcp-server-is-initiator", "the side that accepted TCP sends the MPA Request at once", "5044 7.1 note (roles), glossary")
def _(c):
    c.open()
    c.req(B, b"from the listener")
    c.rep()
    hello(c)
    c.close(B)


@stream("delayed-startup-swapped-roles", "streaming exchange, then the TCP server becomes MPA Initiator", "5044 7.1 note, 7.1.3")
def _(c):
    c.open()
    c.put(A, b"START-RDMA\n")
    c.flush(A)
    c.req(B)
    c.rep(b"go")
    hello(c)
    c.close()


@stream("simultaneous-tcp-open", "both TCP ends sent SYN; one of them is MPA Initiator", "5044 7.1 (peer-peer ULPs)")
def _(c):
    c.open(both=True)
    c.req()
    c.rep()
    hello(c)
    c.close()


@stream("crc-requested-by-initiator-only", "C=1 in the Request alone turns CRCs on", "5044 7.1.1 C", "cm")
def _(c):
    c.open()
    c.req(C=1)
    c.rep(C=0)
    hello(c)
    c.close()


@stream("crc-requested-by-responder-only", "C=1 in the Reply alone turns CRCs on", "5044 7.1.1 C", "cm")
def _(c):
    c.open()
    c.req(C=0)
    c.rep(C=1)
    hello(c)
    c.close()


@stream("crc-off-any-value", "CRCs off; the CRC fields hold arbitrary octets", "5044 4.1, 7.1.1 C", "p")
def _(c):
    c.badcrc = b"\xde\xad\xbe\xef"
    c.start()
    hello(c)
    c.go(A, c.send(A, b"abc"), c.write(A, 7, 0, b"z"))
    c.close()


@stream("crc-off-still-generated", "CRCs off; one side goes on generating them, the other sends zero", "5044 4.4", "p")
def _(c):
    c.start()
    c.crc = 1
    c.go(A, c.send(A, b"one"))
    c.crc = 0
    c.go(B, c.send(B, b"two"))
    c.crc = 1
    c.go(A, c.write(A, 7, 0, b"three"))
    c.close()


@stream("markers-requested-by-initiator-only", "Markers only from Responder to Initiator", "5044 7.1.1 M, 4.3", "m")
def _(c):
    c.open()
    c.req(M=1)
    c.rep(M=0)
    for k in range(2):
        c.go(A, c.send(A, pattern(600, k)))
        c.go(B, c.send(B, pattern(600, k)))
    c.close()


@stream("markers-requested-by-responder-only", "Markers only from Initiator to Responder", "5044 7.1.1 M, 4.3", "m")
def _(c):
    c.open()
    c.req(M=0)
    c.rep(M=1)
    for k in range(2):
        c.go(A, c.send(A, pattern(600, k)))
        c.go(B, c.send(B, pattern(600, k)))
    c.close()


@stream("markers-without-crc", "Markers both ways, CRCs off", "5044 7.1.1, 4.3 ('when both CRCs and Markers are in use')", "p")
def _(c):
    c.open()
    c.req(M=1)
    c.rep(M=1)
    for k in range(2):
        c.go(A, c.send(A, pattern(500, k)))
        c.go(B, c.send(B, pattern(500, k)))
    c.close()


@stream("rdmac-revision-0", "two upgraded RDMAC RNICs: MPA Rev 0, Markers, CRC, DDP and RDMAP version 0",
        "5044 C.1, C.2.3 (informative); 5040 4.1: 'Both version numbers are valid'", "m")
def _(c):
    c.rv = c.dv = 0
    c.start(rev=0)
    hello(c)
    c.go(A, c.rreq(A, 1, 0, 4, 2, 0))
    c.go(B, c.rresp(B, 1, 0, b"data"))
    c.close()


# Enhanced MPA (RFC 6581)

@stream("enhanced-client-server", "S=1, A=0: only IRD/ORD are negotiated; ULP Private Data follows", "6581 9, 9.2")
def _(c):
    c.start2(("", 4, 2), ("", 2, 4), b"ulp", b"ulp too")
    hello(c)
    c.close()


@stream("enhanced-rtr-send", "peer-to-peer with a zero-length Send as RTR; then the Responder speaks first", "6581 1.1, 9.2")
def _(c):
    c.start2(("ABCD", 1, 1), ("AB", 1, 1))
    c.go(A, c.send(A))
    c.go(B, c.send(B, b"first word"))
    c.go(A, c.send(A, b"MSN is 2"))
    c.close()


@stream("enhanced-rtr-write", "zero-length RDMA Write as RTR, arbitrary STag and TO", "6581 9.2, 5041 5.2")
def _(c):
    c.start2(("AC", 1, 1), ("AC", 1, 1))
    c.go(A, c.write(A, 0xFFFFFFFF, TOP - 1))
    c.go(B, c.send(B, b"x"))
    c.close()


@stream("enhanced-rtr-read-from-ord-0", "zero-length Read RTR; Request ORD 0, the Responder raises its IRD to 1", "6581 9.1, 9.2")
def _(c):
    c.start2(("AD", 0, 0), ("AD", 1, 0))
    c.go(A, c.rreq(A, 0, 0, 0, 1, 0))
    c.go(B, c.rresp(B, 0, 0))
    c.go(B, c.send(B, b"ready"))
    c.close()


@stream("enhanced-rtr-extra-flags", "the Reply adds RTR types that were not requested; the Initiator picks its own",
        "6581 9.2: 'MAY include additional RTR indication options'")
def _(c):
    c.start2(("AC", 3, 3), ("ABCD", 3, 3))
    c.go(A, c.write(A, 1, 0))
    c.go(B, c.send(B, b"hi"))
    c.close()


@stream("enhanced-no-matching-rtr", "offered Send, Reply only knows Read: Terminate 2/0/7 is the first FPDU",
        "6581 9.2: 'MUST contain Layer 2, Error Type 0, Error Code 7'")
def _(c):
    c.start2(("AB", 1, 1), ("AD", 1, 1))
    c.go(A, c.term(A, 2, 0, 7))
    c.close(A)


@stream("enhanced-insufficient-ird", "the Initiator lacks resources for its IRD after the Reply: Terminate 2/0/6", "6581 9.1")
def _(c):
    c.start2(("", 8, 1), ("", 1, 8))
    c.go(A, c.term(A, 2, 0, 6))
    c.close(A)


@stream("enhanced-local-catastrophic", "the Initiator fails locally: Terminate 2/0/5, then RST", "6581 9.3, 8")
def _(c):
    c.start2(("AC", 1, 1), ("AC", 1, 1))
    c.go(A, c.term(A, 2, 0, 5))
    c.ack(B)
    c.rst(A)


@stream("enhanced-3fff", "automatic negotiation declined with 0x3FFF both ways", "6581 9.1: 'An all ones value (0x3FFF)'")
def _(c):
    c.start2(("", 0x3FFF, 0x3FFF), ("", 0x3FFF, 0x3FFF))
    hello(c)
    c.go(A, c.rreq(A, 1, 0, 3, 2, 0), c.rreq(A, 1, 8, 3, 2, 8))
    c.go(B, c.rresp(B, 1, 0, b"abc"), c.rresp(B, 1, 8, b"def"))
    c.close()


@stream("enhanced-reject-states-ord", "Reject: the Initiator's IRD is too small, the Reply names the ORD needed",
        "6581 9.1: 'specify the required ORD in the MPA Reject Frame responder ORD'")
def _(c):
    c.start2(("", 2, 2), ("", 4, 8), b"", b"need 8", R=1)
    c.close(B)


@stream("enhanced-full-private-data", "PD_Length 512 with S=1: 4 octets of control data and 508 of the ULP", "6581 6, 9")
def _(c):
    c.start2(("", 1, 1), ("", 1, 1), pattern(508), pattern(508, 3))
    hello(c)
    c.close()


@stream("enhanced-zero-depths", "IRD and ORD 0 on both sides: no Reads, Writes and Sends only", "6581 9.1")
def _(c):
    c.start2(("", 0, 0), ("", 0, 0))
    c.go(A, c.write(A, 5, 3, b"w"), c.send(A, b"s"))
    c.go(B, c.send(B, b"s"))
    c.close()


@stream("enhanced-reads-fill-ird", "Reply IRD 2: two Reads in flight all the time, a third only after a Response", "6581 9.1")
def _(c):
    c.start2(("AD", 2, 2), ("AD", 2, 2))
    c.go(A, c.rreq(A, 0, 0, 0, 0, 0))
    c.go(A, c.rreq(A, 1, 0, 2, 2, 0))
    c.go(B, c.rresp(B, 0, 0))
    c.go(A, c.rreq(A, 1, 2, 2, 2, 2))
    c.go(B, c.rresp(B, 1, 0, b"ab"), c.rresp(B, 1, 2, b"cd"))
    c.close()


@stream("rev-2-without-s", "Rev 2 with S=0 in both frames: no enhanced data", "6581 6 (S, Rev: 'MAY be set to one')")
def _(c):
    c.start(b"pd", rev=2)
    hello(c)
    c.close()


@stream("enhanced-refused-then-rev-1", "an unenhanced Responder closes on S=1; the Initiator comes again with Rev 1", "6581 10")
def _(c):
    c.open()
    c.req(pd=enhanced("", 1, 1), rev=2, S=1)
    c.close(B)
    d = Conn(c.wire, c.mode, c.n, sport=42000 + c.n)
    d.isn = [7, 9]
    d.start()
    hello(d)
    d.close()


# FPDUs and TCP segments

@stream("packed-fpdus", "nine FPDUs of all kinds and pads in one segment", "5044 5.1: 'Multiple FPDUs MAY be packed'")
def _(c):
    c.start()
    c.go(A, *[c.send(A, pattern(k)) for k in range(5)], *[c.write(A, 9, k, pattern(k)) for k in range(4)])
    c.go(B, c.send(B, b"got"))
    c.close()


@stream("one-octet-segments", "an FPDU sent octet by octet, even inside ULPDU_Length and CRC", "5044 5.1, 6 (alignment may be lost)")
def _(c):
    c.start()
    c.go(A, c.send(A, b"ab"), cuts=range(1, 26))
    c.ack(B)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("fpdus-astride-segments", "every segment holds the tail of one FPDU and the head of the next", "5044 5.1, 5.2")
def _(c):
    c.start()
    c.go(A, *[c.send(A, pattern(50 + k, k)) for k in range(5)], cuts=(1, 77, 78, 160, 233, 300))
    c.ack(B)
    c.go(B, c.send(B, b"ok"), c.send(B, b"ok2"), cuts=(25, 29))
    c.close()


@stream("tiny-mss", "MSS 60: MULPDU stays 128, so FPDUs are longer than segments", "5044 4.5: 'MUST NOT shrink the MULPDU below 128'")
def _(c):
    c.mss = 60
    c.mulpdu = lambda: 128
    c.start()
    c.go(A, c.send(A, pattern(200)))
    c.ack(B)
    c.go(B, c.send(B, pattern(110, 2)))
    c.ack(A)
    c.close()


@stream("jumbo-64768", "loopback MTU: one FPDU with the largest ULPDU of all in one segment", "5044 3, 4.5", "c")
def _(c):
    c.mss = 65495
    c.start()
    c.go(A, c.write(A, 3, 0, bytes(64768 - 14)))
    c.ack(B)
    c.go(A, c.send(A, b"done"))
    c.go(B, c.send(B, b"seen"))
    c.close()


@stream("mulpdu-exact", "FPDUs that fill the EMSS to the last octet, tagged and untagged", "5044 4.5")
def _(c):
    c.mss = 536
    c.start()
    c.go(A, c.send(A, pattern(c.mulpdu() - 18)))
    c.ack(B)
    c.go(A, c.write(A, 3, 1, pattern(c.mulpdu() - 14, 2)))
    c.ack(B)
    c.go(B, c.send(B, pattern(c.mulpdu() - 18, 3)))
    c.close()


@stream("marker-corner-places", "Marker places: between FPDUs, after 4 octets, between PAD and CRC, at the end, twice in one",
        "5044 4.3, 4.4, 7.1.2 rule 7")
def _(c):
    c.start()
    c.go(A, c.send(A, pattern(508 - 24 - 4)))            # 512 used: the next Marker lies between FPDUs
    c.ack(B)
    c.go(A, c.send(A, pattern(480)))                         # leaves 4 octets before the next Marker
    c.go(A, c.send(A, b"after 4 octets"))
    c.ack(B)
    at = (len(c.data[A]) - c.base[A]) % 512
    c.go(A, c.write(A, 1, 0, pattern(512 - at - 16 - 4 - (0 if at else 4))))
    c.go(A, c.send(A, pattern(1100)))                        # at least two Markers
    c.ack(B)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("same-segment-again", "a segment with two FPDUs is retransmitted as it was", "5044 7.1.5 note; TCP")
def _(c):
    c.start()
    r = c.go(A, c.send(A, b"first"), c.write(A, 4, 4, b"four"))
    c.seg(A, r[0][0], r[1][1], dt=300_000)
    c.ack(B)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("retransmit-other-cuts", "three FPDUs sent in three segments, two lost; resent with other boundaries and new data",
        "5044 5.1, 7.1.5 note ('re-segmented')")
def _(c):
    c.start()
    r = [c.fpdu(A, u) for k in range(3) for u in c.send(A, pattern(40 + k, k))]
    c.seg(A, *r[0], lost=True)
    c.seg(A, *r[1], lost=True)
    c.seg(A, *r[2])
    c.ack(B)
    c.fpdu(A, c.send(A, b"new data")[0])
    c.seg(A, r[0][0], r[1][0] + 11, dt=300_000)
    c.seg(A, r[0][0] + 30, r[2][0] + 3)
    c.seg(A, r[2][0] - 5, len(c.data[A]))
    c.ack(B)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("lost-before-capture", "a segment missing in the capture comes later; SACKs in between", "5044 8 code 3 (gap closed)")
def _(c):
    c.synopt = bytes([4, 2])
    c.start()
    r = [c.fpdu(A, u) for k in range(3) for u in c.send(A, pattern(30, k))]
    base = c.isn[A] + 1
    c.seg(A, *r[1])
    c.ack(B, opts=struct.pack(">BBBBII", 1, 1, 5, 10, base + r[1][0], base + r[1][1]))
    c.seg(A, *r[2])
    c.ack(B, opts=struct.pack(">BBBBII", 1, 1, 5, 10, base + r[1][0], base + r[2][1]))
    c.seg(A, *r[0], dt=200_000)
    c.ack(B)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("reordered-segments", "segments arrive 3, 1, 2, and an FPDU is split over two of them", "5044 1.2, 6, 7.1.5 note")
def _(c):
    c.start()
    r = [c.fpdu(A, u) for k in range(3) for u in c.send(A, pattern(60, k))]
    mid = r[1][0] + 10
    c.seg(A, r[2][0] - 6, r[2][1])
    c.ack(B)
    c.seg(A, r[0][0], mid)
    c.ack(B)
    c.seg(A, mid, r[2][0] - 6)
    c.ack(B)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("window-probe-refused", "zero window; a probe with the first octet of an FPDU is not taken", "TCP (RFC 793 3.7); 5044 5.1")
def _(c):
    c.start()
    c.go(A, c.send(A, b"fills the window"))
    c.ack(B, win=0)
    r = c.fpdu(A, c.send(A, b"waits")[0])
    for k in range(2):
        c.seg(A, r[0], r[0] + 1, lost=True, dt=300_000 << k)
        c.ack(B, win=0)
    c.ack(B, dt=50_000)
    c.seg(A, *r)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("window-probe-taken", "the probe octet is taken: the FPDU goes on from its second octet", "TCP (RFC 793 3.7); 5044 5.1")
def _(c):
    c.start()
    c.go(A, c.send(A, b"fills the window"))
    c.ack(B, win=0)
    r = c.fpdu(A, c.send(A, b"waits")[0])
    c.seg(A, r[0], r[0] + 1, dt=300_000)
    c.ack(B, win=7)
    c.seg(A, r[0] + 1, r[0] + 8)
    c.ack(B, win=0)
    c.ack(B, dt=50_000)
    c.seg(A, r[0] + 8, r[1])
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("keepalive-with-octet", "TCP keepalives with one garbage octet and with none", "RFC 1122 4.2.3.6; SDP 14.3")
def _(c):
    c.start()
    hello(c)
    c.ack(A)
    for s, d in ((A, b"\xff"), (B, b"")):
        c.emit(s, ACK, c.sent[s] - 1, d, dt=75 * Y)
        c.ack(1 - s)
    c.go(B, c.send(B, b"alive"))
    c.close()


@stream("sequence-wrap-in-fpdu", "the TCP sequence numbers wrap inside an FPDU, both ways", "5044 4.3: 'SeqNum can wrap'")
def _(c):
    c.isn = [2**32 - 50, 2**32 - 23]
    c.start()
    c.go(A, c.send(A, pattern(700)))
    c.go(B, c.send(B, pattern(700, 2)))
    c.ack(A)
    c.close()


@stream("sequence-wrap-in-startup", "the sequence numbers wrap inside the MPA Request and right after the Reply", "5044 4.3")
def _(c):
    c.isn = [2**32 - 8, 2**32 - 21]
    c.start()
    hello(c)
    c.close()


@stream("both-close-at-once", "FINs cross; each side has sent a Send just before", "5044 7.2, 5041 6.2.1")
def _(c):
    c.start()
    hello(c)
    with c.cross():
        c.go(A, c.send(A, b"bye"))
        c.go(B, c.send(B, b"bye"))
        c.seg(A, fin=True)
        c.seg(B, fin=True)
    c.ack(A)
    c.ack(B)


@stream("fin-with-fpdu", "the FIN is on the segment that carries the last FPDU, and again on a retransmission", "5044 7.2")
def _(c):
    c.start()
    hello(c)
    r = c.fpdu(A, c.send(A, b"last")[0])
    c.seg(A, *r, fin=True, lost=True)
    c.seg(A, *r, fin=True, dt=250_000)
    c.ack(B)
    c.seg(B, fin=True)
    c.ack(A)


@stream("half-close-read", "a Read is requested, then FIN; the Response and a Send come on the other half",
        "5041 6.2.1: 'SHOULD keep data reception enabled on the other half'")
def _(c):
    c.start()
    c.go(A, c.rreq(A, 1, 0, 5, 2, 0))
    c.seg(A, fin=True)
    c.ack(B)
    c.go(B, c.rresp(B, 1, 0, b"later"), dt=2 * Y)
    c.go(B, c.send(B, b"and this"))
    c.ack(A)
    c.seg(B, fin=True)
    c.ack(A)


@stream("rst-inside-fpdu", "LLP abortive termination: RST after half an FPDU and half a message",
        "5040 6.2: 'torn down midstream, without an RDMAP Terminate Message'")
def _(c):
    c.start()
    hello(c)
    r = [c.fpdu(A, u) for u in c.send(A, pattern(60), sizes=(30, 30))]
    c.seg(A, r[0][0], r[1][0])
    c.seg(A, r[1][0], r[1][0] + 9)
    c.rst(B)


@stream("tcp-options", "timestamps, NOPs, window scale and an experimental option on every segment", "TCP; 5044 5.1 ('varying TCP options')")
def _(c):
    c.ts, c.synopt, c.segopt = True, bytes([3, 3, 7, 1]), bytes([253, 4, 0x12, 0x34])
    c.start()
    hello(c)
    c.close()


@stream("ip-options-and-padding", "IPv4 Router Alert option; frames padded to 60 octets and more", "IP; 5044 3 ('IPv4 options')")
def _(c):
    c.ipopt, c.pad = bytes([0x94, 4, 0, 0]), 140
    c.start()
    hello(c)
    c.close()


@stream("ip-fragments", "a segment with two FPDUs comes as two IPv4 fragments", "IP (RFC 791)")
def _(c):
    c.start()
    c.go(A, c.send(A, pattern(60)), c.send(A, pattern(60, 2)), frag=88)
    c.ack(B)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("ipv6", "IPv6 with a destination options header", "5044 4.1 ('IPv4 or IPv6')")
def _(c):
    c.v6, c.ext = True, bytes([60, 0, 1, 4, 0, 0, 0, 0])
    c.start()
    hello(c)
    c.close()


@stream("vlan-and-qinq", "priority tag, then the same connection on a double tagged path", "5044 (any LLP path); IEEE 802.1Q")
def _(c):
    c.vlan = ((0x8100, 0xE000),)
    c.start()
    c.vlan = ((0x88A8, 100), (0x8100, 200))
    hello(c)
    c.close()


# DDP and RDMAP

@stream("zero-length-sends", "zero-length Send, Send SE, Send Inv and Send SE Inv between others", "5040 5.3, 5041 5.2")
def _(c):
    c.start()
    c.go(A, c.send(A), c.send(A, b"a"), c.send(A, se=True), c.send(A, inv=0x10), c.send(A, se=True, inv=0xFFFFFFFF))
    c.go(B, c.send(B), c.send(B, b"end"))
    c.close()


@stream("zero-length-writes", "zero-length Writes with any STag and TO, before and after real ones",
        "5040 5.1; 5041 5.2: 'STag and TO fields MUST NOT be checked'")
def _(c):
    c.start()
    c.go(A, c.write(A, 0, 0), c.write(A, 6, 10, b"data"), c.write(A, 0xDEADBEEF, TOP - 1), c.send(A, b"end"))
    c.go(B, c.write(B, 0, TOP - 1), c.send(B))
    c.close()


@stream("zero-length-read-between-sends", "a zero-length Read with invalid STags between Sends", "5040 5.2.1, 5.2.2")
def _(c):
    c.start()
    c.go(A, c.send(A, b"1"), c.rreq(A, 0xAAAAAAAA, TOP - 1, 0, 0, TOP - 1), c.send(A, b"2"))
    c.go(B, c.send(B, b"3"), c.rresp(B, 0xAAAAAAAA, TOP - 1), c.send(B, b"4"))
    c.close()


@stream("one-octet-ddp-segments", "a Send and a Write cut into DDP Segments of 1, 2 and 3 octets", "5041 5.2")
def _(c):
    c.start()
    c.go(A, c.send(A, b"abcdef", sizes=(1, 2, 3)), c.write(A, 8, 5, b"abcdef", sizes=(3, 2, 1)))
    c.go(B, c.send(B, b"xyz", se=True, sizes=(1, 1, 1)))
    c.close()


@stream("write-to-top-of-space", "a Write whose TO + length is 2^64 - 1, and one that starts at an odd TO", "5041 4.2, 7.1 rule 5")
def _(c):
    c.start()
    c.go(A, c.write(A, 8, TOP - 9, b"12345678"), c.write(A, 8, 1, b"odd"), c.send(A, b"."))
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("overlapping-writes", "the same place written twice and in part, also by a Read Response", "5040 5.5 rule 3, 5041 5.1.1")
def _(c):
    c.start()
    c.go(A, c.write(A, 8, 0, b"12345678"), c.write(A, 8, 4, b"abcdefgh"), c.write(A, 8, 0, b"12345678"))
    c.go(A, c.rreq(A, 3, 0, 4, 8, 2), c.rreq(A, 3, 2, 4, 8, 2))
    c.go(B, c.rresp(B, 3, 0, b"34ab"), c.rresp(B, 3, 2, b"34ab"))
    c.close()


@stream("untagged-segments-out-of-mo-order", "DDP Segments of a Send in the order 2, 0, 1, 3; the Last one has the highest MO",
        "5041 5.3 (increasing order is a SHOULD), 4.1 L")
def _(c):
    c.start()
    u = c.send(A, pattern(40), sizes=(10, 10, 10, 10))
    c.go(A, [u[2], u[0], u[1], u[3]])
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("tagged-segments-out-of-to-order", "DDP Segments of a Write by falling TO; the Last one has the lowest TO",
        "5041 5.3 (SHOULD), 4.1 L (highest MO: untagged only)")
def _(c):
    c.start()
    u = [bytearray(x) for x in c.write(A, 8, 100, pattern(30), sizes=(10, 10, 10))]
    u[0][0] |= 0x40
    u[2][0] &= ~0x40 & 0xFF
    c.go(A, [bytes(u[2]), bytes(u[1]), bytes(u[0])], c.send(A, b"end"))
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("reads-in-flight-both-ways", "four Reads in flight each way, crossing; Responses in order with Sends between",
        "5040 5.2.2, 5.5 rules 2, 18, 20")
def _(c):
    c.start()
    hello(c)
    with c.cross():
        c.go(A, *[c.rreq(A, 0x100 + k, k, 3 + k, 0x200 + k, 7 * k) for k in range(4)])
        c.go(B, *[c.rreq(B, 0x300 + k, k, 3 + k, 0x400 + k, 7 * k) for k in range(4)])
    c.go(B, c.rresp(B, 0x100, 0, pattern(3)), c.send(B, b"between"), c.rresp(B, 0x101, 1, pattern(4)))
    c.go(A, c.rresp(A, 0x300, 0, pattern(3)), c.write(A, 1, 1, b"w"), c.rresp(A, 0x301, 1, pattern(4)))
    c.go(B, c.rresp(B, 0x102, 2, pattern(5)), c.rresp(B, 0x103, 3, pattern(6)))
    c.go(A, c.rresp(A, 0x302, 2, pattern(5)), c.rresp(A, 0x303, 3, pattern(6)))
    c.close()


@stream("read-response-in-many-segments", "one Read answered by five unequal DDP Segments over two TCP segments", "5041 5.2, 5040 5.2")
def _(c):
    c.start()
    c.go(A, c.rreq(A, 0x100, 0x1001, 60, 0x200, 3))
    c.go(B, c.rresp(B, 0x100, 0x1001, pattern(60), sizes=(1, 30, 2, 20, 7)), cuts=(100,))
    c.go(A, c.send(A, b"got", se=True))
    c.ack(B)
    c.close()


@stream("same-stag-both-ends", "sink and source of a Read name the same STag value and offset; STag 0 too", "5040 4.4 (STags are each peer's own)")
def _(c):
    c.start()
    c.go(A, c.rreq(A, 5, 0, 2, 5, 0), c.rreq(A, 0, 0, 2, 0, 0))
    c.go(B, c.rresp(B, 5, 0, b"ab"), c.rresp(B, 0, 0, b"cd"))
    c.close()


@stream("stag-reuse-after-invalidate", "an STag is written, invalidated by the peer, advertised again and written again",
        "5040 5.3; 5041 4.2 (association out of scope)")
def _(c):
    c.start()
    for k in range(2):
        c.go(A, c.send(A, b"want"))
        c.go(B, c.send(B, b"stag 00000900"))
        c.go(A, c.write(A, 0x900, 0, pattern(9, k)), c.send(A, b"done", inv=0x900))
    c.ack(B)
    c.close()


@stream("invalidate-in-many-segments", "Send SE with Invalidate of three DDP Segments", "5040 4.1, 5041 4.3 (RsvdULP equal in all)")
def _(c):
    c.start()
    c.go(A, c.send(A, pattern(90), se=True, inv=0x1234, sizes=(30, 30, 30)), cuts=(60, 61))
    c.go(B, c.send(B, pattern(20), inv=0x4321, sizes=(19, 1)))
    c.close()


@stream("read-into-invalidated-send", "Read, Write and Send SE Inv packed: the Response comes after the Send was delivered",
        "5040 5.5 rules 12, 18")
def _(c):
    c.start()
    c.go(A, c.rreq(A, 1, 0, 3, 2, 0), c.write(A, 3, 0, b"w"), c.send(A, b"s", se=True, inv=3))
    c.go(B, c.send(B, b"r"))
    c.go(B, c.rresp(B, 1, 0, b"abc"), dt=Y)
    c.close()


# Terminate

@stream("terminate-local-catastrophic", "layer 0 type 0 with an error code of no meaning, no headers", "5040 Fig. 9: 'Any value in this field is acceptable'")
def _(c):
    c.start()
    hello(c)
    c.go(B, c.term(B, 0, 0, 0xAB))
    c.close(B)


@stream("terminate-bad-read", "a Read of 2^32-1 octets is refused with base and bounds: DDP and RDMA headers returned",
        "5040 4.4, 4.8, Fig. 10")
def _(c):
    c.start()
    q = c.rreq(A, 1, 0, 2**32 - 1, 2, 0)
    c.go(A, q)
    c.go(B, c.term(B, 0, 1, 1, q[0], q[0][18:]))
    c.close(B)


@stream("terminate-halfway-in-read", "the Read Response breaks off; the returned Read header is advanced", "5040 4.8 ('updated to reflect the current location')")
def _(c):
    c.start()
    q = c.rreq(A, 1, 0x40, 48, 2, 0x80)
    c.go(A, q)
    c.go(B, c.rresp(B, 1, 0x40, pattern(48), sizes=(16, 32))[:1])
    c.go(B, c.term(B, 0, 1, 0, q[0], struct.pack(">IQIIQ", 1, 0x50, 32, 2, 0x90)))
    c.close(B)


@stream("terminate-ddp-tagged", "a Write is refused with DDP 'Base or bounds', tagged header returned", "5041 7.2; 5040 Fig. 10")
def _(c):
    c.start()
    w = c.write(A, 0x77, 0x1000, pattern(21))
    c.go(A, c.send(A, b"ok"), w)
    c.go(B, c.term(B, 1, 1, 1, w[0]))
    c.close(B)


@stream("terminate-no-buffer", "a Send finds no buffer: DDP 2/02; the peer's Sends in flight are ignored", "5041 7.1, 7.2")
def _(c):
    c.start()
    u = [c.send(A, pattern(5, k)) for k in range(3)]
    with c.cross():
        c.go(A, u[0])
        c.go(A, u[1])
    with c.cross():
        c.go(A, u[2])
        c.go(B, c.term(B, 1, 2, 2, u[1][0]))
    c.close(A)


@stream("terminate-cannot-invalidate", "Send with Invalidate of an unknown STag: 0/1/09, DDP header but no RDMA header",
        "5040 5.3, 4.8 ('only sent back if ... RDMA Read Request')")
def _(c):
    c.start()
    u = c.send(A, b"inv", inv=0xBAD)
    c.go(A, u)
    c.go(B, c.term(B, 0, 1, 9, u[0]))
    c.close(B)


@stream("terminate-zero-filled", "error not tied to a message: header fields present but zero, HdrCt 000", "5040 7.1 rule 1: 'are set to zero'")
def _(c):
    c.start()
    hello(c)
    c.go(A, c.untagged(A, TERM, 2, bytes([0x02, 7, 0, 0]) + bytes(2 + 18 + 28)))
    c.close(A)


@stream("terminates-cross", "both sides send a Terminate at the same time", "5040 5.4, 7.1")
def _(c):
    c.start()
    hello(c)
    with c.cross():
        c.go(A, c.term(A, 0, 2, 7))
        c.go(B, c.term(B, 0, 2, 8))
        c.seg(A, fin=True)
        c.seg(B, fin=True)
    c.ack(A)
    c.ack(B)


@stream("sends-after-peer-terminate", "the peer of a Terminate goes on sending before it closes", "5040 5.4: 'MAY stop sending'")
def _(c):
    c.start()
    hello(c)
    c.go(B, c.term(B, 0, 0, 0))
    c.go(A, c.send(A, b"still here"), c.write(A, 1, 0, b"w"))
    c.ack(B)
    c.go(A, c.send(A, b"bye"))
    c.close(A)


@stream("terminate-after-peer-fin", "one side has closed gracefully; the other still ends with a Terminate", "5040 6.2.1, 5041 6.2.1")
def _(c):
    c.start()
    c.go(A, c.write(A, 1, 0, b"late"))
    c.seg(A, fin=True)
    c.go(B, c.term(B, 0, 0, 1))
    c.ack(A)
    c.seg(B, fin=True)
    c.ack(A)


# RFC 7306

@stream("atomics-in-flight", "FetchAdds, masked CmpSwaps and a Read in flight together; any Request Identifiers", "7306 5.2, 5.4; queue 1 shared, queue 3 its own MSN")
def _(c):
    c.start()
    c.go(A, c.areq(A, 0xFFFFFFFF, 2, 8, 0, 1), c.rreq(A, 1, 0, 2, 2, 0), c.areq(A, 0, 2, 16, 2, 9, TOP - 1, 0, 0),
         c.areq(A, 0, 2, 8, 0, TOP - 1, 0x8080808080808080), c.send(A, b"s"))
    c.go(B, c.aresp(B, 0xFFFFFFFF, 5), c.rresp(B, 1, 0, b"ab"), c.aresp(B, 0, 0), c.send(B, b"t"), c.aresp(B, 0, 6))
    c.close()


@stream("atomics-both-ways", "Atomics cross in both directions, responses split over TCP segments", "7306 5.4; 5040 5.5 rule 2")
def _(c):
    c.start()
    hello(c)
    with c.cross():
        c.go(A, c.areq(A, 1, 2, TOP - 8, 2, 1, 0xFF, 0, 0xFF), cuts=(40,))
        c.go(B, c.areq(B, 1, 2, 0, 0, 1))
    c.go(B, c.aresp(B, 1, TOP - 1), cuts=(3, 30))
    c.go(A, c.aresp(A, 1, 0))
    c.close()


@stream("atomic-misaligned", "an Atomic to an unaligned address ends in Terminate 0/2/07 with the DDP header", "7306 5.1.1, 8.1, 8.2")
def _(c):
    c.start()
    hello(c)
    q = c.areq(A, 1, 2, 3, 0, 1)
    c.go(A, q)
    c.go(B, c.term(B, 0, 2, 7, q[0]))
    c.close(B)


@stream("immediate-data", "Immediate Data alone, with SE, after a Write, between Sends: one MSN series on queue 0", "7306 6")
def _(c):
    c.start()
    c.go(A, c.imm(A, bytes(8)), c.send(A, b"s"), c.write(A, 1, 0, b"w"), c.imm(A, b"\xff" * 8, se=True), c.send(A))
    c.go(B, c.imm(B, b"8 octets"))
    c.close()


# SDP: the Hello is the last streaming message, then the Accepting Peer is MPA Initiator

@stream("sdp-data-both-ways-crossing", "SDP Data crossing, DisConns crossing", "SDP 8.1.1, 9.1, 8.2.1")
def _(c):
    s = Sdp(c)
    s.data(A, b"first")
    with c.cross():
        s.data(A, pattern(48))
        s.data(B, b"x")
    with c.cross():
        s.msg(A, DISCONN)
        s.msg(B, DISCONN)
    c.close(B)


@stream("sdp-bare-hello", "the draft read by the letter: no MPA frames at all after the Hello", "SDP 8.1.1, 7.1 ('All communication after the initial SDP Hello Message is in iWARP mode')", "c")
def _(c):
    s = Sdp(c, bare=True)
    s.data(A, b"bare")
    s.data(B, b"too")
    s.bye()


@stream("sdp-smallest-buffers", "3 buffers of 37 octets each way: credits run down to 1 and are renewed by empty Data", "SDP 10, 10.3, 10.4, 10.5")
def _(c):
    s = Sdp(c, bufs=(3, 3), size=(37, 37), adverts=(1, 1), depth=(1, 1))
    s.data(A, pattern(21))                     # credits 3 -> 2
    s.data(A, bufs=3)                          # an empty one: 2 -> 1
    s.data(B, bufs=3)                          # renewed
    s.data(A, b"z")
    s.data(B, b"y")
    s.bye()


@stream("sdp-half-close", "data goes on one way after DisConn the other way", "SDP 8.2.1")
def _(c):
    s = Sdp(c)
    s.data(A, b"request")
    s.msg(A, DISCONN)
    s.data(B, b"answer 1")
    s.data(A)                                  # credit update
    s.data(B, b"answer 2")
    s.msg(B, DISCONN)
    c.close(B)


@stream("sdp-abort-after-disconn", "AbortConn after DisConn", "SDP 8.2.2")
def _(c):
    s = Sdp(c)
    s.data(A, b"x")
    s.msg(A, DISCONN)
    s.msg(A, ABORT)
    c.close(A)


@stream("sdp-abort-without-message", "abortive close without DisConn: TCP goes at once", "SDP 8.2.2: 'MUST NOT attempt to send additional SDP Messages'")
def _(c):
    s = Sdp(c)
    s.data(A, b"x")
    c.ack(B)
    c.rst(B)


@stream("sdp-hello-refused", "the Accepting Peer closes on the Hello", "SDP 8.1.1 step 3, 8.1.2")
def _(c):
    c.open()
    c.put(A, struct.pack(">HBBIII", 8, 0, HELLO, 32, 0, 0) + struct.pack(">HBBIIHH", 1, 0, 0x11, 64, 64, 1, 1))
    c.flush(A)
    c.close(B)


@stream("sdp-oob", "OOB_PEND on an empty Data, then the byte; both flags on one Data", "SDP 6.1.2, 9.5.3, 14.2")
def _(c):
    s = Sdp(c)
    s.data(A, flags=OOB_PEND)
    s.data(A, b"normal")
    s.data(A, b"more!", flags=OOB_PRES)
    s.data(B, b"!", flags=OOB_PRES | OOB_PEND)
    s.bye()


@stream("sdp-read-zcopy", "Combined Mode: SrcAvail with 1 octet, the rest by two Reads, RdmaRdCompl by Send SE Inv", "SDP 9.2, 11.2")
def _(c):
    s = Sdp(c)
    s.src(A, 101, 0x500, 0x1003, b"a")
    s.read(B, 0x500, 0x1004, 60)
    s.read(B, 0x500, 0x1004 + 60, 40)
    s.word(B, RDCOMPL, 100, inv=0x500)
    s.bye()


@stream("sdp-read-zcopy-complete", "the Sink reads again what the SrcAvail carried; RdmaRdCompl counts the rest only", "SDP 9.2 ('start the initial RDMA Read at the start'), 6.3.7.1")
def _(c):
    s = Sdp(c)
    s.src(A, 80, 0x500, 1, pattern(20))
    s.read(B, 0x500, 1, 80)
    s.word(B, RDCOMPL, 60, flags=REQ_PIPE)
    s.bye()


@stream("sdp-sendsm", "SendSm at once: the rest comes as Data", "SDP 9.2, 9.5.2.1")
def _(c):
    s = Sdp(c)
    s.src(A, 70, 0x500, 0, pattern(10))
    s.msg(B, SENDSM)
    s.data(A, pattern(48))
    s.data(A, pattern(12))
    s.bye()


@stream("sdp-partial-reads-then-sendsm", "two RdmaRdCompl for parts, then SendSm for the remainder", "SDP 9.2 ('loop', 'followed by a SendSm')")
def _(c):
    s = Sdp(c)
    s.src(A, 100, 0x500, 0, b"12345")
    for at, n in ((5, 30), (35, 25)):
        s.read(B, 0x500, at, n)
        s.word(B, RDCOMPL, n)
    s.msg(B, SENDSM)
    s.data(A, pattern(40))
    s.bye()


@stream("sdp-buffered-and-back", "Combined to Buffered by the Source, back by the Sink, both halves differently", "SDP 12.1, 12.2, Fig. 26")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 0)                         # A's sending half: Buffered
    s.data(A, b"b")
    s.src(B, 50, 0x600, 0, b"z")               # B's half is still Combined
    s.read(A, 0x600, 1, 49)
    s.word(A, RDCOMPL, 49, inv=0x600)
    s.word(B, MODE, 3)                         # the Sink moves A's half to Combined
    s.src(A, 50, 0x500, 0, b"z")
    s.read(B, 0x500, 1, 49)
    s.word(B, RDCOMPL, 49, inv=0x500)
    s.bye()


@stream("sdp-mode-change-with-srcavail-open", "Combined to Pipelined while a SrcAvail is outstanding", "SDP 12.3 ('need not wait')")
def _(c):
    s = Sdp(c)
    s.src(A, 90, 0x500, 0, b"z")
    s.word(A, MODE, 4)
    s.read(B, 0x500, 1, 89)
    s.word(B, RDCOMPL, 89, inv=0x500)
    s.bye()


@stream("sdp-pipelined-srcavails", "three SrcAvails without payload; the second is forced to Data by SendSm", "SDP 11.3 ('single exception'), 9.5.2.1")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    for k in range(3):
        s.src(A, 40 + k, 0x500 + k, k)
    s.read(B, 0x500, 0, 40)
    s.word(B, RDCOMPL, 40, inv=0x500)
    s.msg(B, SENDSM)
    s.data(A, pattern(41))
    s.read(B, 0x502, 2, 42)
    s.word(B, RDCOMPL, 42, inv=0x502)
    s.bye()


@stream("sdp-write-zcopy", "two SinkAvails outstanding; one filled by two Writes, one in part; RdmaWrCompl with SE Inv and with SE", "SDP 9.3, 6.3.6.1")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.sink(B, 100, 0x700, 5, 0)
    s.sink(B, 65, 0x701, 0, 0)
    c.go(A, c.write(A, 0x700, 5, pattern(60)), c.write(A, 0x700, 65, pattern(40)), s.make(A, WRCOMPL, struct.pack(">I", 100), inv=0x700))
    c.go(A, c.write(A, 0x701, 0, b"part"))
    s.word(A, WRCOMPL, 4)
    s.bye()


@stream("sdp-transaction", "SinkAvail with a command as payload, answered by Write and RdmaWrCompl, twice", "SDP 9.4")
def _(c):
    s = Sdp(c)
    s.data(A, b"hi")
    s.word(B, MODE, 4)                         # B to A: Pipelined
    for k in range(2):
        s.sink(A, 100, 0x700 + k, 0, 0, b"cmd")
        c.go(B, c.write(B, 0x700 + k, 0, pattern(70, k)))
        s.word(B, WRCOMPL, 70, inv=0x700 + k)
    s.bye()


@stream("sdp-stale-sinkavail", "Data crosses a SinkAvail: it is discarded, a fresh one is used", "SDP 9.5.1")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.data(B)
    with c.cross():
        s.data(A, b"takes the buffer")
        s.sink(B, 100, 0x700, 0, 0)
    s.sink(B, 100, 0x701, 0, 0)
    c.go(A, c.write(A, 0x701, 0, pattern(100)))
    s.word(A, WRCOMPL, 100, inv=0x701)
    s.bye()


@stream("sdp-crossing-srcavail-sinkavail", "SrcAvail and SinkAvail cross: Write Zcopy wins, the SrcAvail lapses", "SDP 11.3 rules 1, 2")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.data(B)
    with c.cross():
        s.src(A, 90, 0x500, 0)
        s.sink(B, 100, 0x700, 0, 0)
    c.go(A, c.write(A, 0x700, 0, pattern(90)))
    s.word(A, WRCOMPL, 90, inv=0x700)
    s.bye()


@stream("sdp-srcavail-cancel", "two SrcAvails cancelled, one SendSm ends both, no Data is owed", "SDP 9.5.4")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.src(A, 90, 0x500, 0)
    s.src(A, 91, 0x501, 0)
    s.msg(A, SRCCANCEL)
    s.msg(B, SENDSM)
    s.src(A, 92, 0x502, 0)
    s.read(B, 0x502, 0, 92)
    s.word(B, RDCOMPL, 92, inv=0x502)
    s.bye()


@stream("sdp-srcavail-cancel-in-process", "the cancel meets a running Read: RdmaRdCompl with MSeqAck held back, then SendSm", "SDP 9.5.4 steps 1-3")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.src(A, 90, 0x500, 0)
    c.go(B, c.rreq(B, 0x77, 0, 50, 0x500, 0))
    s.msg(A, SRCCANCEL)
    c.go(A, c.rresp(A, 0x77, 0, pattern(50)))
    s.word(B, RDCOMPL, 50, ack=2, bufs=17)
    s.msg(B, SENDSM)
    s.data(A, b"again")
    s.bye()


@stream("sdp-srcavail-cancel-too-late", "the cancel crosses the RdmaRdCompl: the Sink ignores it", "SDP 9.5.4 ('MUST ignore the SrcAvailCancel')")
def _(c):
    s = Sdp(c)
    s.src(A, 60, 0x500, 0, b"q")
    s.read(B, 0x500, 1, 59)
    with c.cross():
        s.word(B, RDCOMPL, 59, inv=0x500)
        s.msg(A, SRCCANCEL)
    s.data(A, b"next")
    s.bye()


@stream("sdp-sinkavail-cancel", "SinkAvailCancel, SinkCancelAck, then a new SinkAvail", "SDP 9.5.5")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.sink(B, 100, 0x700, 0, 0)
    s.msg(B, SINKCANCEL)
    s.msg(A, SINKCANCELACK)
    s.sink(B, 100, 0x700, 0, 0)
    c.go(A, c.write(A, 0x700, 0, pattern(100)))
    s.word(A, WRCOMPL, 100, inv=0x700)
    s.bye()


@stream("sdp-sinkavail-cancel-too-late", "SinkAvailCancel crosses RdmaWrCompl and is ignored", "SDP 9.5.5 ('MUST ignore the SinkAvailCancel')")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.sink(B, 100, 0x700, 0, 0)
    with c.cross():
        c.go(A, c.write(A, 0x700, 0, pattern(100)), s.make(A, WRCOMPL, struct.pack(">I", 100), inv=0x700))
        s.msg(B, SINKCANCEL)
    s.data(A, b"next")
    s.bye()


@stream("sdp-late-sinkavail-in-combined", "Pipelined to Combined: a SinkAvail that crosses the ModeChange is ignored", "SDP 12.4, Fig. 30")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.data(B)
    with c.cross():
        s.word(A, MODE, 2)
        s.sink(B, 100, 0x700, 0, 0)
    s.data(B)
    s.src(A, 50, 0x500, 0, b"c")
    s.read(B, 0x500, 1, 49)
    s.word(B, RDCOMPL, 49, inv=0x500)
    s.word(A, MODE, 4)
    s.bye()


@stream("sdp-resize", "buffers made smaller in part, larger refused, then sizes used to the last octet", "SDP 10.6, 6.4.2.1")
def _(c):
    s = Sdp(c, size=(200, 200))
    s.word(A, CHBUF, 50)
    s.word(B, CHBUFACK, 100)                   # smaller, but larger than requested
    s.data(A, pattern(84))
    s.word(B, CHBUF, 400)
    s.word(A, CHBUFACK, 200)                   # unchanged
    s.data(B, pattern(184))
    s.bye()


@stream("sdp-resize-larger", "a larger size is acknowledged when all old buffers are used up", "SDP 10.6, 10.6.2")
def _(c):
    s = Sdp(c, bufs=(8, 4))
    s.word(A, CHBUF, 128)                      # uses old buffer 1 of 4
    s.bufs[B] = 8
    s.data(B, bufs=3 + 8)                      # 8 new ones posted beside the 3 old
    for n in (1, 2, 3):
        s.data(A, pattern(40, n))
    s.word(B, CHBUFACK, 128)
    s.data(A, pattern(112))
    s.bye()


@stream("sdp-resize-crossing", "both request at once: the Connecting Peer answers, the Accepting Peer disregards; a later request repeats it", "SDP 10.6.1")
def _(c):
    s = Sdp(c, size=(100, 100))
    s.data(A)
    s.data(B)
    with c.cross():
        s.word(A, CHBUF, 60)
        s.word(B, CHBUF, 70)
    s.word(A, CHBUFACK, 70)
    s.word(A, CHBUF, 60)
    s.word(B, CHBUFACK, 60)
    s.data(A, pattern(44))
    s.bye()


@stream("sdp-suspend", "SuspComm, SuspCommAck, new connection to the other port, data goes on", "SDP 13.1.1, 6.5.1")
def _(c):
    s = Sdp(c)
    s.data(A, b"before")
    port = 30000 + c.n
    s.msg(B, SUSP, struct.pack(">IHH", 0, port, 1))
    s.msg(A, SUSPACK)
    c.close(A)
    d = Conn(c.wire, c.mode, c.n, dport=port)
    d.isn = [0x1000, 0x2000]
    t = Sdp(d)
    t.data(A, b"after")
    t.data(B, b"too")
    t.bye()


@stream("sdp-experimental-mid", "a message with an experimental MID and payload", "SDP Fig. 3 (40-7F experimental, optional payload)")
def _(c):
    s = Sdp(c)
    s.data(A, b"x")
    s.msg(A, 0x40, b"", b"private")
    s.data(B, b"y")
    s.bye()


@stream("sdp-ipv6-inverted-roles-data-first", "IPv6; the Accepting Peer sends Data in the same segment as the HelloAck", "SDP 8.1.1 step 6: 'MAY immediately commence data transfer'")
def _(c):
    c.v6 = True
    flush = c.flush
    c.flush = lambda side, *a, **k: None if side == B and len(c.data[B]) > 30 else flush(side, *a, **k)
    s = Sdp(c)
    s.data(B, b"right after")
    c.flush = flush
    c.flush(B)
    s.data(A, b"ok")
    s.bye()


# Port mapper (UDP): no modes

def pm(mt, ap, cp, handle, cpip, apip, time=0, v=4):
    return struct.pack(">BBHHHQ16s16s", mt << 4 | v, time, 0, ap, cp, handle, cpip, apip)


class Pm:
    def __init__(self, c, handle=0xC0FFEE0123456789, ap=None):
        self.c, self.h, self.ap, self.cp = c, handle, ap or 20000 + c.n, 40000 + c.n
        self.sp, self.ip = 50000 + c.n, c.addr(B)

    def send(self, mt, time=0, ap=None, ip=None, dt=40):
        c = self.c
        s = A if mt in (0, 2) else B
        m = pm(mt, self.ap if ap is None else ap, self.cp, self.h, c.addr(A), ip or self.ip, time, 6 if c.v6 else 4)
        c.udp(s, *((self.sp, 3935) if s == A else (3935, self.sp)), m, dt=dt)


@stream("pm-accept-then-sdp", "port mapper exchange, then the SDP connection to the mapped port", "SDP 7.4, 8", "cpm")
def _(c):
    p = Pm(c)
    p.send(0)
    p.send(1, 8, ap=31000)
    p.send(2, ap=31000)
    d = Conn(c.wire, c.mode, c.n, dport=31000)
    s = Sdp(d)
    s.data(A, b"mapped")
    s.data(B, b"yes")
    s.bye()


@stream("pm-deny", "PMDeny with ApPort as in the PMReq, no PMAck", "SDP 7.4", "c")
def _(c):
    p = Pm(c)
    p.send(0)
    p.send(3)


@stream("pm-deny-zero-port", "PMDeny with ApPort zero", "SDP 7.3.1.6: 'MUST be transmitted as zeroes'", "c")
def _(c):
    p = Pm(c)
    p.send(0)
    p.send(3, ap=0)


@stream("pm-retransmitted", "the PMReq is repeated twice; two PMAccepts, one PMAck only", "SDP 7.5.1, 7.5.2", "c")
def _(c):
    p = Pm(c)
    p.send(0)
    p.send(0, dt=Y)
    p.send(0, dt=Y)
    p.send(1, 255, ap=31000)
    p.send(2, ap=31000)
    p.send(1, 255, ap=31000)


@stream("pm-reply-changes", "the PMReq is repeated; PMAccept, then PMDeny: the first reply counts", "SDP 7.5.2 ('changes its reply')", "c")
def _(c):
    p = Pm(c)
    p.send(0)
    p.send(0, dt=Y)
    p.send(1, 1, ap=31000)
    p.send(3)
    p.send(2, ap=31000)


@stream("pm-new-handle", "the same four-tuple with a new AssocHandle replaces the first transaction", "SDP 7.5.2", "c")
def _(c):
    p = Pm(c)
    p.send(0)
    p.send(1, 0, ap=31000)
    p.h += 1
    p.send(0, dt=5 * Y)
    p.send(1, 127, ap=31001)
    p.send(2, ap=31001)


@stream("pm-other-address-ipv6", "IPv6; the PMAccept names another address of the Accepting Peer and PmTime 254", "SDP 7.4: 'MAY return a different ApIPAddr'", "c")
def _(c):
    c.v6 = True
    p = Pm(c)
    p.ip = c.addr(B)
    p.send(0)
    other = c.addr(B)[:-1] + b"\x63"
    p.send(1, 254, ap=31000, ip=other)
    p.send(2, ap=31000, ip=other)


@stream("pm-lost-ack", "the PMAck never comes; the SYN to the mapped port takes its place", "SDP 7.5.2 ('PMAck or LLP connection setup request')", "c")
def _(c):
    p = Pm(c)
    p.send(0)
    p.send(1, 20, ap=31000)
    d = Conn(c.wire, c.mode, c.n, dport=31000)
    s = Sdp(d)
    s.data(A, b"mapped")
    s.bye()


# More of all kinds

@stream("capture-shows-fpdu-before-reply", "a tap shows the Initiator's first FPDU before the Reply that it acknowledges; likewise later",
        "5044 7.1.2 (order of sending, not of capture)")
def _(c):
    c.start()
    c.go(A, c.send(A, b"first"))
    c.wire.swap(-1, -2)
    c.go(B, c.send(B, b"second"))
    c.go(A, c.send(A, b"third"))
    c.wire.swap(-1, -2)
    c.close()


@stream("capture-shows-responder-first", "the Responder's FPDU is captured before the Initiator's first, which it acknowledges", "5044 7.1.2 rule 4")
def _(c):
    c.start()
    c.go(A, c.send(A, b"first"))
    c.go(B, c.send(B, b"second"))
    c.wire.swap(-1, -2)
    c.close()


@stream("every-frame-twice", "a mirror port shows every frame twice", "TCP (duplicates)")
def _(c):
    c.wire.copies = 2
    c.start()
    hello(c)
    c.go(A, c.rreq(A, 1, 0, 2, 2, 0))
    c.go(B, c.rresp(B, 1, 0, b"ab"))
    c.close()


@stream("capture-from-the-middle", "the capture begins after the start-up frames, with FPDUs of MSN 3 and up", "nothing forbids it")
def _(c):
    c.start()
    for k in range(2):
        hello(c)
    del c.wire.frames[:]
    for k in range(4):
        hello(c, 20 + k)
    c.go(A, c.rreq(A, 1, 0, 2, 2, 0))
    c.go(B, c.rresp(B, 1, 0, b"ab"))
    c.close()


@stream("capture-without-handshake", "the capture begins with the MPA Request", "nothing forbids it")
def _(c):
    c.open()
    del c.wire.frames[:]
    c.req()
    c.rep()
    hello(c)
    c.close()


@stream("short-snap-length", "frames are cut at 100 octets by the capture", "nothing forbids it")
def _(c):
    c.wire.snap = 100
    c.start()
    c.go(A, c.send(A, pattern(100)), c.send(A, pattern(10)))
    c.ack(B)
    c.go(B, c.send(B, pattern(90)))
    c.go(A, c.send(A, pattern(5)))
    c.close()


@stream("raw-ip-link", "a capture without link layer headers", "nothing forbids it")
def _(c):
    c.wire.link = 101
    c.start()
    hello(c)
    c.close()


@stream("cooked-link-offloaded-checksums", "Linux cooked capture at the sender, whose interface fills in TCP checksums", "nothing forbids it")
def _(c):
    c.wire.link, c.offload = 113, A
    c.start()
    hello(c)
    c.close()


@stream("segmentation-offload", "one captured segment is larger than the MSS: the interface cuts it", "5044 5.1; nothing forbids it")
def _(c):
    c.start()
    f = [c.fpdu(A, u) for u in c.send(A, pattern(3000))]
    c.seg(A, f[0][0], f[-1][1])
    c.ack(B)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("gre-tunnel", "the connection inside GRE", "any LLP path")
def _(c):
    c.tunnel = "gre"
    c.start()
    hello(c)
    c.close()


@stream("vxlan-tunnel", "the connection inside VXLAN", "any LLP path")
def _(c):
    c.tunnel = "vxlan"
    c.start()
    hello(c)
    c.close()


@stream("same-ports-again", "the four-tuple is used for a second connection after FIN and a third after RST", "TCP (RFC 793 3.3)")
def _(c):
    c.start()
    hello(c)
    c.close()
    for k in (1, 2):
        d = Conn(c.wire, c.mode, c.n)
        d.isn = [c.isn[A] + 100_000 * k, c.isn[B] + 100_000 * k]
        d.start(bytes([k]))
        hello(d, k)
        d.rst(A) if k == 1 else d.close(B)


@stream("handshake-repeats", "SYN lost, SYN-ACK repeated, the Request is the retransmitted handshake's ACK", "TCP; 5044 7.1.4.2 note")
def _(c):
    o = struct.pack(">BBH", 2, 4, 1460)
    c.emit(A, SYN, 0, b"", o, seq=c.isn[A])
    c.emit(A, SYN, 0, b"", o, seq=c.isn[A], dt=Y)
    c.emit(B, SYN | ACK, 0, b"", o, seq=c.isn[B])
    c.emit(B, SYN | ACK, 0, b"", o, seq=c.isn[B], dt=Y)
    c.req()
    c.rep()
    hello(c)
    c.close()


@stream("refused-then-accepted", "RST answers the first SYN; the second attempt from the same port succeeds", "TCP")
def _(c):
    c.emit(A, SYN, 0, b"", b"\2\4\5\xb4", seq=c.isn[A])
    c.emit(B, RST | ACK, 0, b"", seq=0, ack=c.isn[A] + 1)
    c.wire.t += Y
    c.isn[A] += 64000
    c.start()
    hello(c)
    c.close()


@stream("ecn", "ECN negotiated; ECT, CE, ECE and CWR on FPDU segments", "TCP (RFC 3168)")
def _(c):
    o = struct.pack(">BBH", 2, 4, 1460)
    c.emit(A, SYN | 0xC0, 0, b"", o, seq=c.isn[A])
    c.emit(B, SYN | ACK | 0x40, 0, b"", o, seq=c.isn[B])
    c.tos = 2
    c.req()
    c.rep()
    c.tos = 3
    c.go(A, c.send(A, b"congested"))
    c.tos = 0
    c.emit(B, ACK | 0x40, c.sent[B])
    r = c.fpdu(A, c.send(A, b"reduced")[0])
    c.tos = 2
    c.emit(A, ACK | PSH | 0x80, r[0], bytes(c.data[A][r[0]:r[1]]))
    c.sent[A] = r[1]
    c.arrive(A, *r, False)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("path-mtu-shrinks", "ICMP 'fragmentation needed' makes TCP resend one FPDU in three segments", "5044 4.5, 5.1 ('changes in MTU')")
def _(c):
    c.start()
    hello(c)
    r = c.fpdu(A, c.send(A, pattern(900))[0])
    c.seg(A, *r, lost=True)
    ip = c.wire.frames[-1][1][14:14 + 28]
    m = struct.pack(">BBHHH", 3, 4, 0, 0, 400) + ip
    c.ip(B, 1, m[:2] + struct.pack(">H", checksum(m)) + m[4:], 40, src=bytes([10, 99, 0, 1]))
    for at in range(r[0], r[1], 360):
        c.seg(A, at, min(at + 360, r[1]))
    c.ack(B)
    c.mulpdu = lambda: 340
    c.go(A, c.send(A, pattern(700)), cuts=(346,))
    c.ack(B)
    c.close()


@stream("corrupt-segment-dropped-by-tcp", "a segment with a wrong TCP checksum and damaged octets, then the right one", "TCP; 5041 3 rule 3")
def _(c):
    c.start()
    r = c.fpdu(A, c.send(A, b"undamaged")[0])
    bad = bytearray(c.data[A][r[0]:r[1]])
    bad[9] ^= 0x40
    bad[22] ^= 1
    c.seg(A, *r, data=bytes(bad), lost=True)
    b = bytes(c.wire.frames[-1][1])
    c.wire.frames[-1] = (c.wire.frames[-1][0], b[:50] + bytes([b[50] ^ 0x5A]) + b[51:], len(b))
    c.seg(A, *r, dt=250_000)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("corrupt-segment-dropped-by-mpa", "damaged in the network in spite of a good TCP checksum: the receiver drops it, the retransmission is right",
        "5044 8: 'MAY choose to silently drop the TCP segment rather than reporting the error'", "cm")
def _(c):
    c.start()
    hello(c)
    r = c.fpdu(A, c.send(A, b"undamaged")[0])
    bad = bytearray(c.data[A][r[0]:r[1]])
    bad[24] ^= 1
    c.seg(A, *r, data=bytes(bad), lost=True)
    c.ack(B)
    c.seg(A, *r, dt=250_000)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("request-again-after-reply", "the Request is retransmitted after the Reply was sent, then the first FPDU comes", "TCP")
def _(c):
    c.open()
    c.req(pd=b"again")
    c.rep(pattern(9))
    c.seg(A, 0, 25, dt=200_000, ack=(c.isn[B] + 1) & 0xFFFFFFFF)
    c.ack(B)
    hello(c)
    c.close()


@stream("initiator-half-closes-before-reply", "FIN after the Request; the Reply still comes, then the other FIN", "5044 7.1.2 rule 3, 7.2 (each half closes alone)")
def _(c):
    c.open()
    c.req()
    c.seg(A, fin=True)
    c.rep(R=1)
    c.ack(A)
    c.seg(B, fin=True)
    c.ack(A)


@stream("reject-then-second-request", "after a rejection the ULP starts MPA anew on the same TCP connection, other Private Data; accepted",
        "5044 7.1.2 rules 1-3: 'exit MPA, leaving the TCP connection open ... use the connection for other purposes'")
def _(c):
    c.open()
    c.req(pd=b"v9")
    c.rep(b"only v1", R=1)
    c.req(pd=b"v1")
    c.rep(b"fine")
    hello(c)
    c.close()


@stream("streaming-text-names-the-key", "the streaming exchange before MPA speaks of 'MPA ID Req Frame' itself", "5044 7.1, 7.1.3")
def _(c):
    c.open()
    for s, d in ((A, b"EXPECT MPA ID Req Frame\r\n"), (B, b"OK, I send MPA ID Rep Frame\r\n")):
        c.put(s, d)
        c.flush(s)
    c.req()
    c.rep()
    hello(c)
    c.close()


@stream("long-streaming-before-mpa", "a text session with many turns and half open data before MPA", "5044 7.1: 'using TCP streaming data exchanges'")
def _(c):
    c.open()
    for k in range(4):
        for s in (B, A):
            c.put(s, b"%d line of %s\r\n" % (k, b"AB"[s:s + 1]))
            c.flush(s)
    c.put(A, b"upgrade")
    c.flush(A)
    c.put(B, b"last streaming message")
    c.flush(B)
    c.req(pd=b"up")
    c.rep()
    hello(c)
    c.close()


@stream("enhanced-one-side-3fff", "0x3FFF for the Request's ORD only; the other direction is negotiated", "6581 9.1")
def _(c):
    c.start2(("", 5, 0x3FFF), ("", 0x3FFF, 3))
    hello(c)
    c.go(B, *[c.rreq(B, 1, k, 1, 2, k) for k in range(3)])
    c.go(A, *[c.rresp(A, 1, k, b"z") for k in range(3)])
    c.close()


@stream("enhanced-largest-depths", "IRD and ORD 0x3FFE; the Responder lowers one and raises the other", "6581 9.1")
def _(c):
    c.start2(("AD", 0x3FFE, 1), ("AD", 0x3FFE, 0x10))
    c.go(A, c.rreq(A, 7, 7, 0, 7, 7), c.send(A, b"after the RTR in one segment"), c.write(A, 1, 0, b"w"))
    c.go(B, c.send(B, b"before the Response"), c.rresp(B, 7, 7))
    c.close()


@stream("enhanced-peer-to-peer-reject", "A=1 Request rejected, control data and Private Data in the Reply", "6581 9.1, 10")
def _(c):
    c.start2(("ABCD", 1, 1), ("AC", 1, 1), b"p2p", b"busy", R=1)
    c.close(A)


@stream("rev-2-without-s-reply-rev-1", "Rev 2 S=0 Request answered with Rev 1", "6581 6 ('MAY be set to one'), 10 ('unenhanced MPA message')")
def _(c):
    c.open()
    c.req(rev=2)
    c.rep(rev=1)
    hello(c)
    c.close()


@stream("terminate-answers-terminate", "a Terminate is answered with a Terminate", "5040 5.4: 'MAY stop sending'")
def _(c):
    c.start()
    hello(c)
    c.go(B, c.term(B, 0, 0, 0))
    c.go(A, c.term(A, 0, 0, 0))
    c.close(A)


@stream("terminate-then-rst", "a Terminate, acknowledged, then RST at once", "5040 6.2.1: 'it MAY immediately tear down the LLP Stream'")
def _(c):
    c.start()
    hello(c)
    c.go(B, c.term(B, 0, 0, 0))
    c.ack(A)
    c.rst(B)


@stream("terminate-header-but-no-length", "HdrCt 010: DDP header returned, length field there but not valid", "5040 4.8 ('MUST be valid if the M bit is set'), 7306 8.1 rule 2")
def _(c):
    c.start()
    hello(c)
    q = c.areq(A, 1, 2, 3, 0, 1)
    c.go(A, q)
    c.go(B, c.untagged(B, TERM, 2, bytes([0x02, 7, 0x40, 0, 0, 0]) + q[0][:18]))
    c.close(B)


@stream("read-sink-at-top-of-space", "Reads whose sink and source end at 2^64 - 1; Response in two segments", "5040 4.4, 5041 7.1 rule 5")
def _(c):
    c.start()
    c.go(A, c.rreq(A, 1, TOP - 9, 8, 2, TOP - 9), c.rreq(A, 0xFFFFFFFF, 0, 1, 0xFFFFFFFF, TOP - 2))
    c.go(B, c.rresp(B, 1, TOP - 9, b"12345678", sizes=(5, 3)), c.rresp(B, 0xFFFFFFFF, 0, b"."))
    c.close()


@stream("only-zero-length-traffic", "both sides send nothing but zero-length messages, and the Responder Reads too", "5040 5.1, 5.2.1, 5.3")
def _(c):
    c.start()
    c.go(A, c.write(A, 0, 0))
    c.go(B, c.rreq(B, 0, 0, 0, 0, 0), c.write(B, 0, 0), c.send(B), c.rreq(B, 1, 1, 0, 1, 1))
    c.go(A, c.rresp(A, 0, 0), c.rresp(A, 1, 1), c.send(A))
    c.close()


@stream("initiator-only-reads", "the Responder sends Responses only; never a Send", "5040 5.2")
def _(c):
    c.start()
    for k in range(3):
        c.go(A, c.rreq(A, 1, k, 1 + k, 2, k))
        c.go(B, c.rresp(B, 1, k, pattern(1 + k)))
    c.close()


@stream("fpdu-after-long-silence", "a day between two FPDUs", "no timers in 5040, 5041, 5044 Full Operation")
def _(c):
    c.start()
    hello(c)
    c.go(A, c.send(A, b"next day"), dt=86400 * Y)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("old-data-and-window-updates", "old segments come late, after newer ones were acknowledged; pure window updates", "TCP")
def _(c):
    c.start()
    r = [c.go(A, c.send(A, pattern(9, k)))[0] for k in range(3)]
    c.ack(B)
    c.seg(A, *r[0])
    c.ack(B, win=70)
    c.ack(B)
    c.seg(A, r[1][0] + 3, r[2][1] - 2)
    c.ack(B)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("acks-never-seen", "the capture has one direction only", "nothing forbids it")
def _(c):
    c.start()
    hello(c)
    c.go(A, c.send(A, b"more"), c.write(A, 1, 1, b"w"))
    c.close()
    src = c.addr(A)
    c.wire.frames = [f for f in c.wire.frames if f[1][26:30] == src]


@stream("sdp-hello-octet-by-octet", "the Hello in odd pieces, the HelloAck split and retransmitted", "SDP 8.1.1; TCP")
def _(c):
    flush = c.flush
    c.flush = lambda s, *a, **k: flush(s, (1, 2, 3, 7, 16, 31) if s == A and not c.sent[A] else (2, 20) if s == B and c.sent[B] > 10 else ())
    s = Sdp(c)
    c.flush = flush
    end = len(c.data[B])
    c.seg(B, end - 30, end, dt=200_000)
    s.data(A, b"ok")
    s.bye()


@stream("sdp-largest-numbers", "Bufs, MaxAdverts, IRD, ORD 65535, sizes 2^31, SrcAvail of 2^31 octets, cancelled", "SDP 6.1.3, 6.2.1, 6.3.2.1")
def _(c):
    s = Sdp(c, bufs=(65535, 65535), size=(2**31, 2**31), adverts=(65535, 65535), depth=(65535, 65535))
    s.src(A, 2**31, 0xFFFFFFFF, TOP - 2**31 - 1, b"x")
    s.msg(A, SRCCANCEL)
    s.msg(B, SENDSM)
    s.data(A, b"y")
    s.bye()


@stream("sdp-data-in-many-segments", "an SDP Data message of several DDP Segments, unaligned in TCP", "SDP 9.1, 5041 5.2")
def _(c):
    c.mss = 300
    s = Sdp(c, size=(1000, 1000))
    s.data(A, pattern(700))
    c.ack(B)
    s.data(B, pattern(984))
    c.ack(A)
    s.bye()


@stream("sdp-disconn-voids-sinkavail", "the Source sends DisConn while a SinkAvail is open", "SDP 8.2.1: 'consider all its outstanding SinkAvail advertisements as canceled'")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.sink(B, 100, 0x700, 0, 0)
    s.msg(A, DISCONN)
    s.data(B, b"still allowed")
    s.msg(B, DISCONN)
    c.close(B)


@stream("sdp-oob-twice-pending", "two OOB indications before the first byte; OOB_PEND on a SrcAvail and on a ModeChange", "SDP 6.1.2: 'any SDP Message', 9.5.3")
def _(c):
    s = Sdp(c)
    s.src(A, 60, 0x500, 0, b"q", flags=OOB_PEND)
    s.word(A, MODE, 4, flags=OOB_PEND)
    s.read(B, 0x500, 1, 59)
    s.word(B, RDCOMPL, 59, inv=0x500)
    s.data(A, b"!", flags=OOB_PRES)
    s.data(A, b"and ?", flags=OOB_PRES)
    s.bye()


@stream("sdp-sendsm-crosses-cancel", "SendSm and SrcAvailCancel cross: the SrcAvail is Processed, Data is owed, the cancel is ignored", "SDP 9.2, 9.5.4")
def _(c):
    s = Sdp(c)
    s.src(A, 60, 0x500, 0, b"q")
    with c.cross():
        s.msg(B, SENDSM)
        s.msg(A, SRCCANCEL)
    s.data(A, pattern(40))
    s.data(A, pattern(19))
    s.data(B)
    s.bye()


@stream("sdp-sendsm-crosses-cancel-of-two", "SendSm for the first SrcAvail crosses the cancel; a second SendSm ends the other", "SDP 9.5.4 ('exactly one SendSm')")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.src(A, 40, 0x500, 0)
    s.src(A, 41, 0x501, 0)
    with c.cross():
        s.msg(B, SENDSM)
        s.msg(A, SRCCANCEL)
    s.msg(B, SENDSM)
    s.data(A, pattern(40))
    s.bye()


@stream("sdp-sinkavail-cancel-in-process", "the cancel meets a running Write: RdmaWrCompl for the first, SinkCancelAck for the second", "SDP 9.5.5")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.sink(B, 100, 0x700, 0, 0)
    s.sink(B, 100, 0x701, 0, 0)
    c.go(A, c.write(A, 0x700, 0, pattern(30)))
    s.msg(B, SINKCANCEL)
    s.word(A, WRCOMPL, 30, inv=0x700)
    s.msg(A, SINKCANCELACK)
    s.sink(B, 100, 0x701, 0, 0)
    s.data(A, b"bcopy instead")
    s.bye()


@stream("sdp-transaction-from-buffered", "a Transaction while the sending half is Buffered and the other Pipelined", "SDP 11.1, Fig. 25")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 0)
    s.word(B, MODE, 4)
    s.sink(A, 100, 0x700, 0, 0, b"cmd")
    c.go(B, c.write(B, 0x700, 0, pattern(80)))
    s.word(B, WRCOMPL, 80, inv=0x700)
    s.bye()


@stream("sdp-both-halves-read-zcopy", "SrcAvails of both halves cross in Combined Mode", "SDP 11 ('independent in each direction'), Fig. 25")
def _(c):
    s = Sdp(c)
    s.data(A)
    with c.cross():
        s.src(A, 60, 0x500, 0, b"q")
        s.src(B, 61, 0x600, 0, b"q")
    s.read(B, 0x500, 1, 59)
    s.read(A, 0x600, 1, 60)
    with c.cross():
        s.word(B, RDCOMPL, 59, inv=0x500)
        s.word(A, RDCOMPL, 60, inv=0x600)
    s.bye()


@stream("sdp-nondiscards-counts-srcavail", "payload of a Combined SrcAvail and of Data counted in NonDiscards", "SDP 6.3.3.4, 9.5.1")
def _(c):
    s = Sdp(c)
    s.src(A, 60, 0x500, 0, b"q")
    s.msg(B, SENDSM)
    s.data(A, pattern(48))
    s.data(A, pattern(11))
    s.word(A, MODE, 4)
    s.sink(B, 100, 0x700, 0, 3)
    c.go(A, c.write(A, 0x700, 0, pattern(80)))
    s.word(A, WRCOMPL, 80, inv=0x700)
    s.bye()


@stream("sdp-forced-bcopy-by-source", "the Source answers two SinkAvails with Data; both end partly filled", "SDP 9.5.2.2, 9.5.1")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.sink(B, 100, 0x700, 0, 0)
    s.sink(B, 100, 0x701, 0, 0)
    s.data(A, b"one")
    s.data(A, b"two")
    s.sink(B, 100, 0x702, 0, 0)
    c.go(A, c.write(A, 0x702, 0, pattern(100)))
    s.word(A, WRCOMPL, 100, inv=0x702)
    s.bye()


@stream("sdp-suspend-crossing", "SuspComms cross: the Connecting Peer answers, then repeats its own on the new connection", "SDP 13.1.2")
def _(c):
    s = Sdp(c)
    s.data(A, b"x")
    s.data(B, b"y")
    port = 30000 + c.n
    with c.cross():
        s.msg(A, SUSP, struct.pack(">IHH", 0, c.port[A], 1))
        s.msg(B, SUSP, struct.pack(">IHH", 0, port, 1))
    s.msg(A, SUSPACK)
    c.close(A)
    d = Conn(c.wire, c.mode, c.n, dport=port)
    d.isn = [0x1000, 0x2000]
    t = Sdp(d)
    t.msg(A, SUSP, struct.pack(">IHH", 0, d.port[A], 1))
    t.msg(B, SUSPACK)
    d.close(B)


@stream("sdp-abort-after-both-disconn", "both have sent DisConn; then AbortConn", "SDP 8.2.2")
def _(c):
    s = Sdp(c)
    s.data(A, b"x")
    s.msg(A, DISCONN)
    s.msg(B, DISCONN)
    s.msg(A, ABORT)
    c.ack(B)
    c.close(A)


@stream("sdp-pipelined-combined-pipelined", "Modes change five times, each after the acknowledgement the draft asks for", "SDP 12.1-12.4")
def _(c):
    s = Sdp(c)
    for w, by in ((4, A), (2, A), (4, A), (2, A), (0, A), (3, B)):
        s.word(by, MODE, w)
        if by == A:
            s.data(B)
    s.data(A, b"done")
    s.bye()


@stream("sdp-fewer-buffers-posted", "the Sink lets its posted buffers run down from 16 to 5 before it posts again", "SDP 6.1.3, 10.2, 10.3 ('MAY post additional')")
def _(c):
    s = Sdp(c)
    s.data(A, b"0")
    for k in range(10):
        s.data(A, b"%d" % k)
    s.data(B, bufs=5)
    s.data(A, b"more")
    s.bufs[B] = 40
    s.data(B)
    s.bye()


@stream("sdp-unaligned-va", "SrcAvail and SinkAvail at odd addresses near 2^64; one-octet-short Writes in pieces", "SDP 6.3.2.2, 6.3.3.2")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.sink(B, 101, 0x700, TOP - 103, 0)
    c.go(A, c.write(A, 0x700, TOP - 103, pattern(50)), c.write(A, 0x700, TOP - 53, pattern(50)), s.make(A, WRCOMPL, struct.pack(">I", 100), inv=0x700))
    s.data(B)
    s.src(A, 33, 0, TOP - 35)
    s.read(B, 0, TOP - 35, 33)
    s.word(B, RDCOMPL, 33, inv=0)
    s.bye()


@stream("pm-two-in-flight", "two transactions of one client in flight; the replies come in the other order", "SDP 7.3.1.8: 'delineate multiple in-flight'", "c")
def _(c):
    p, q = Pm(c), Pm(c, handle=5)
    q.cp += 1
    p.send(0)
    q.send(0)
    q.send(1, 3, ap=31001)
    p.send(1, 3, ap=31000)
    p.send(2, ap=31000)
    q.send(2, ap=31001)


@stream("pm-no-answer", "no reply at all: the client gives up and connects to the Conventional Address in streaming mode", "SDP 7.5.1", "c")
def _(c):
    p = Pm(c)
    for k in range(3):
        p.send(0, dt=Y)
    c.wire.t += Y
    c.open()
    c.put(A, b"plain request")
    c.flush(A)
    c.put(B, b"plain answer")
    c.flush(B)
    c.close()


@stream("pm-duplicate-acks", "PMAccept repeated because of a repeated PMReq; the client's race gives two PMAcks", "SDP 7.5.2 ('race in the client')", "c")
def _(c):
    p = Pm(c)
    p.send(0)
    p.send(0, dt=Y)
    p.send(1, 9, ap=31000)
    p.send(1, 9, ap=31000)
    p.send(2, ap=31000)
    p.send(2, ap=31000)


# Changes of legal traffic by a capture: lost frames, and directions that are shifted in time

@stream("capture-lost-request", "the capture missed the MPA Request, TCP did not", "nothing forbids it")
def _(c):
    c.start()
    del c.wire.frames[3]
    hello(c)
    c.close()


@stream("capture-lost-reply", "the capture missed the MPA Reply", "nothing forbids it")
def _(c):
    c.start()
    del c.wire.frames[4]
    hello(c)
    c.close()


@stream("capture-lost-sends", "the capture missed a segment of two FPDUs, which was acknowledged; MSNs jump", "nothing forbids it")
def _(c):
    c.start()
    hello(c)
    c.go(A, c.send(A, b"seen"))
    c.go(A, c.send(A, b"missed"), c.send(A, b"missed too"))
    c.wire.frames.pop()
    c.ack(B)
    for k in range(3):
        c.go(A, c.send(A, pattern(10, k)))
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("capture-lost-half-message", "the capture missed the middle of a Send in three segments, unaligned to FPDUs", "nothing forbids it")
def _(c):
    c.start()
    hello(c)
    f = [c.fpdu(A, u) for u in c.send(A, pattern(90), sizes=(30, 30, 30))]
    c.seg(A, f[0][0], f[0][0] + 20)
    c.seg(A, f[0][0] + 20, f[2][0] + 7)
    c.wire.frames.pop()
    c.seg(A, f[2][0] + 7, f[2][1])
    c.ack(B)
    for k in range(2):
        c.go(A, c.send(A, pattern(10, k)))
        c.ack(B)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("capture-lost-read-request", "the capture missed a Read Request and an Atomic Request; the answers are there", "nothing forbids it")
def _(c):
    c.start()
    hello(c)
    c.go(A, c.rreq(A, 1, 0, 3, 2, 0))
    c.wire.frames.pop()
    c.go(B, c.rresp(B, 1, 0, b"abc"))
    c.go(A, c.areq(A, 1, 2, 0, 0, 1))
    c.wire.frames.pop()
    c.go(B, c.aresp(B, 1, 0))
    c.go(A, c.rreq(A, 1, 0, 3, 2, 0), c.areq(A, 2, 2, 0, 0, 1))
    c.go(B, c.rresp(B, 1, 0, b"abc"), c.aresp(B, 2, 1))
    c.close()


@stream("capture-lost-answers", "the capture missed a Read Response and an Atomic Response", "nothing forbids it")
def _(c):
    c.start()
    hello(c)
    c.go(A, c.rreq(A, 1, 0, 3, 2, 0), c.areq(A, 2, 2, 0, 0, 1))
    c.go(B, c.rresp(B, 1, 0, b"abc"), c.aresp(B, 2, 1))
    c.wire.frames.pop()
    c.go(A, c.rreq(A, 5, 0, 2, 2, 0), c.areq(A, 3, 2, 0, 0, 1))
    c.go(B, c.rresp(B, 5, 0, b"de"), c.aresp(B, 3, 2))
    c.close()


@stream("capture-lost-terminate", "the capture missed the Terminate; both sides close", "nothing forbids it")
def _(c):
    c.start()
    q = c.rreq(A, 1, 0, 3, 2, 0)
    c.go(A, q)
    c.go(B, c.term(B, 0, 1, 0, q[0], q[0][18:]))
    c.wire.frames.pop()
    c.close(B)


@stream("capture-from-the-middle-reads-open", "the capture begins between Requests and Responses, inside a Send of two segments", "nothing forbids it")
def _(c):
    c.start()
    hello(c)
    c.go(A, c.rreq(A, 1, 0, 30, 2, 0), c.areq(A, 7, 2, 0, 0, 1))
    u = c.send(B, pattern(60), sizes=(30, 30))
    c.go(B, u[:1])
    del c.wire.frames[:]
    c.go(B, u[1:])
    c.go(B, c.rresp(B, 1, 0, pattern(30), sizes=(10, 20)), c.aresp(B, 7, 5))
    for k in range(3):
        hello(c, 30 + k)
    c.close()


@stream("skew-read-and-atomic", "responses are captured before the requests that they acknowledge", "5040 5.2.1 (order of sending, not of capture)")
def _(c):
    c.start()
    hello(c)
    c.go(A, c.rreq(A, 1, 0, 3, 2, 0))
    c.go(B, c.rresp(B, 1, 0, b"abc"))
    c.wire.swap(-1, -2)
    c.go(A, c.areq(A, 1, 2, 0, 0, 1))
    c.go(B, c.aresp(B, 1, 0))
    c.wire.swap(-1, -2)
    c.close()


@stream("skew-ird-1", "Reply IRD 1; the next Read is captured before the Response that it acknowledges", "6581 9.1")
def _(c):
    c.start2(("", 1, 1), ("", 1, 1))
    for k in range(3):
        c.go(A, c.rreq(A, 1, k, 3, 2, k))
        if k:
            c.wire.swap(-1, -2)
        c.go(B, c.rresp(B, 1, k, b"abc"))
    c.close()


@stream("skew-terminate", "a Terminate is captured before the FPDU it answers; FIN before the data it acknowledges", "5040 5.4")
def _(c):
    c.start()
    hello(c)
    w = c.write(A, 9, 0, b"bad")
    c.go(A, w)
    c.go(B, c.term(B, 1, 1, 1, w[0]))
    c.wire.swap(-1, -2)
    c.close(B)


@stream("time-stamps-go-back", "frames in right order with time stamps that step back by 20 us", "nothing forbids it")
def _(c):
    c.start()
    hello(c)
    c.go(A, c.rreq(A, 1, 0, 3, 2, 0))
    c.go(B, c.rresp(B, 1, 0, b"abc"))
    c.close()
    for i in range(4, len(c.wire.frames), 3):
        f = c.wire.frames[i]
        c.wire.frames[i] = (c.wire.frames[i - 1][0] - 20, *f[1:])


@stream("snap-length-64", "frames cut at 64 octets: inside the MPA frames and DDP headers", "nothing forbids it")
def _(c):
    c.wire.snap = 64
    c.start(b"private", b"data")
    hello(c, 30)
    c.go(A, c.rreq(A, 1, 0, 3, 2, 0))
    c.go(B, c.rresp(B, 1, 0, b"abc"))
    c.close()


@stream("other-traffic-between", "ARP, LLDP, a DNS query and a port 3935 datagram of another protocol between the frames", "nothing forbids it")
def _(c):
    c.start()
    m = c.wire.frames[0][1]
    c.wire.put(b"\xff" * 6 + m[6:12] + bytes.fromhex("08060001080006040001") + m[6:12] + c.addr(A) + bytes(6) + c.addr(B), 5)
    c.wire.put(bytes.fromhex("0180c200000e") + m[6:12] + bytes.fromhex("88cc0207040200000000010403050102060200780000"), 5)
    c.udp(A, 50001, 53, bytes.fromhex("123401000001000000000000") + b"\3rfc\6editor\3org\0\0\1\0\1")
    hello(c)
    c.udp(B, 3935, 50002, b"\1\0\0\0 not a port mapper message")
    c.close()


@stream("page-about-mpa", "an HTTP download whose body begins with the MPA key: no iWARP at all", "nothing forbids it")
def _(c):
    c.open()
    c.put(A, b"GET /key HTTP/1.0\r\n\r\n")
    c.flush(A)
    c.put(B, b"HTTP/1.0 200 OK\r\n\r\n")
    c.flush(B)
    c.put(B, b"MPA ID Req Frame is the key of the Request,\nMPA ID Rep Frame of the Reply.\n")
    c.flush(B)
    c.close(B)


@stream("stray-rst-and-syn", "an RST and a SYN out of the window are ignored by TCP; the connection goes on", "RFC 793 3.4, 3.9, RFC 5961")
def _(c):
    c.start()
    hello(c)
    c.emit(B, RST, 0, seq=c.isn[B] - 5_000_000)
    c.emit(A, SYN, 0, b"", b"\2\4\5\xb4", seq=c.isn[A] - 9_000_000)
    c.ack(B)
    c.go(A, c.send(A, b"still here"))
    c.go(B, c.send(B, b"me too"))
    c.close()


@stream("fin-overtakes-data", "the FIN's segment arrives before the last data", "TCP; 5044 7.2")
def _(c):
    c.start()
    hello(c)
    r = [c.fpdu(A, u) for k in range(2) for u in c.send(A, pattern(20, k))]
    c.seg(A, *r[1], fin=True)
    c.fingot[A] = False
    c.ack(B)
    c.seg(A, *r[0])
    c.fingot[A] = True
    c.ack(B)
    c.go(B, c.send(B, b"got all"))
    c.ack(A)
    c.seg(B, fin=True)
    c.ack(A)


@stream("cuts-inside-markers", "segment borders inside Markers, and a retransmission that begins inside one", "5044 4.3, 5.1")
def _(c):
    c.start()
    r = c.fpdu(A, c.send(A, pattern(1200))[0])
    at = [0, 2, 511, 513, 1026]
    for a, b in zip(at, at[1:] + [r[1] - r[0]]):
        c.seg(A, r[0] + a, r[0] + b, lost=a == 513)
    c.ack(B)
    c.seg(A, r[0] + 513, r[0] + 1024, dt=200_000)
    c.seg(A, r[0] + 1023, r[0] + 1027)
    c.ack(B)
    c.go(B, c.send(B, pattern(520)), cuts=(1, 3, 514))
    c.ack(A)
    c.close()


@stream("markers-reordered-and-wrapped", "long FPDUs out of order while the sequence numbers wrap", "5044 4.3, 8 code 3")
def _(c):
    c.isn = [2**32 - 700, 5]
    c.start()
    r = [c.fpdu(A, u) for k in range(3) for u in c.send(A, pattern(500 + 4 * k, k))]
    for i in (2, 0, 1):
        c.seg(A, *r[i])
        c.ack(B)
    c.go(B, c.send(B, b"ok"))
    c.close()


@stream("two-initiators-two-connections", "each host opens a connection to the other at the same time and is Initiator there", "5044 7.1 (active/active is solved above MPA)")
def _(c):
    d = Conn(c.wire, c.mode, c.n, sport=c.port[1] + 1, dport=c.port[0] + 1)
    a0 = d.addr
    d.addr = lambda s: a0(1 - s)
    c.open()
    d.open()
    c.req(pd=b"c")
    d.req(pd=b"d")
    c.rep()
    d.rep()
    hello(c)
    hello(d)
    c.close()
    d.close()


# Terminates and depths

@stream("terminate-ddp-local-catastrophic", "DDP Local Catastrophic 1/0/00 without headers", "5040 4.8: 'not present if the Terminate Error Type is a Local Catastrophic Error'")
def _(c):
    c.start()
    hello(c)
    c.go(A, c.term(A, 1, 0, 0))
    c.close(A)


@stream("terminate-unspecified", "0/1/FF for a Read, with the second Read's headers; the first is answered", "5040 Fig. 9 FFX")
def _(c):
    c.start()
    c.go(A, c.rreq(A, 1, 0, 3, 2, 0))
    q = c.rreq(A, 1, 8, 3, 2, 8)
    c.go(A, q)
    c.go(B, c.rresp(B, 1, 0, b"abc"))
    c.go(B, c.term(B, 0, 1, 0xFF, q[0], q[0][18:]))
    c.close(B)


@stream("terminate-second-segment", "0/2/FF with the DDP header of the second segment of a Send", "5040 4.8, 5041 7.1")
def _(c):
    c.start()
    u = c.send(A, pattern(50), sizes=(30, 20))
    c.go(A, u)
    c.go(B, c.term(B, 0, 2, 0xFF, u[1]))
    c.close(B)


@stream("terminate-without-header", "0/2/07 for a Send, no headers ('Yes, if possible')", "5040 Fig. 10")
def _(c):
    c.start()
    c.go(A, c.send(A, b"x"))
    c.go(B, c.term(B, 0, 2, 7))
    c.close(B)


@stream("terminate-while-read-open", "the requester itself terminates while its Reads are open; a Response still comes", "5040 5.4, 7.1 rule 1")
def _(c):
    c.start()
    c.go(A, c.rreq(A, 1, 0, 3, 2, 0), c.rreq(A, 1, 3, 3, 2, 3))
    with c.cross():
        c.go(A, c.term(A, 0, 0, 3))
        c.go(B, c.rresp(B, 1, 0, b"abc"))
    c.ack(A)
    c.close(A)


@stream("depth-shared-by-reads-and-atomics", "Reply IRD 2: one Read and one Atomic in flight", "7306 5.2 (ORD/IRD for both), 6581 9.1")
def _(c):
    c.start2(("", 2, 2), ("", 2, 2))
    c.go(A, c.rreq(A, 1, 0, 3, 2, 0), c.areq(A, 5, 2, 0, 0, 1))
    c.go(B, c.rresp(B, 1, 0, b"abc"))
    c.go(A, c.areq(A, 5, 2, 0, 0, 1))
    c.go(B, c.aresp(B, 5, 0), c.aresp(B, 5, 1))
    c.close()


@stream("depth-lowered-by-reply", "Request ORD 8, Reply IRD 16, ORD 0: the Initiator has eight Reads in flight, the Responder none", "6581 9.1")
def _(c):
    c.start2(("", 8, 8), ("", 16, 0))
    c.go(A, *[c.rreq(A, 1, k, 1, 2, k) for k in range(8)])
    c.go(B, *[c.rresp(B, 1, k, b"r") for k in range(8)])
    c.close()


@stream("stag-of-open-read-reused", "the sink STag of an open Read is the source of the peer's Read and the target of its Write", "5040 5.5 rules 2, 3, 7, 8")
def _(c):
    c.start()
    hello(c)
    with c.cross():
        c.go(A, c.rreq(A, 1, 0, 4, 2, 0))
        c.go(B, c.rreq(B, 2, 0, 4, 1, 0), c.write(B, 1, 0, b"over"))
    c.go(B, c.rresp(B, 1, 0, b"rrrr"))
    c.go(A, c.rresp(A, 2, 0, b"ssss"))
    c.close()


@stream("invalidate-sink-after-response", "the Responder answers a Read, then invalidates its sink STag by Send SE Inv in the same segment", "5040 5.3, 5.5")
def _(c):
    c.start()
    c.go(A, c.rreq(A, 0x31, 0, 4, 2, 0))
    c.go(B, c.rresp(B, 0x31, 0, b"rrrr"), c.send(B, b"done", se=True, inv=0x31))
    c.go(A, c.send(A, inv=0))
    c.close()


# More SDP

@stream("sdp-zcopy-after-own-disconn", "after DisConn the side still Reads, advertises a SinkAvail and acknowledges a resize", "SDP 8.2.1: 'SHOULD continue to receive ULP data through any of the SDP Data Transfer Mechanisms'")
def _(c):
    s = Sdp(c, size=(64, 64))
    s.data(A, b"request")
    s.msg(A, DISCONN)
    s.src(B, 61, 0x600, 0, b"q")
    s.read(A, 0x600, 1, 60)
    s.word(A, RDCOMPL, 60, inv=0x600)
    s.word(B, MODE, 4)
    s.sink(A, 100, 0x700, 0, 1)
    c.go(B, c.write(B, 0x700, 0, pattern(100)))
    s.word(B, WRCOMPL, 100, inv=0x700)
    s.word(B, CHBUF, 50)
    s.word(A, CHBUFACK, 50)
    s.msg(B, DISCONN)
    c.close(B)


@stream("sdp-srcavail-carries-all", "a Combined SrcAvail carries the complete buffer: zero-length Read, RdmaRdCompl of 0", "SDP 6.3.7.1, 9.2 ('some or all of the ULP payload')")
def _(c):
    s = Sdp(c)
    s.src(A, 20, 0x500, 0, pattern(20))
    s.read(B, 0x500, 20, 0)
    s.word(B, RDCOMPL, 0, inv=0x500)
    s.data(A, b"next")
    s.bye()


@stream("sdp-empty-write", "a SinkAvail answered by a zero-length Write and RdmaWrCompl of 0", "SDP 6.3.6.1: 'Len MAY be less', 5040 5.1")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.sink(B, 100, 0x700, 0, 0)
    c.go(A, c.write(A, 0x700, 0))
    s.word(A, WRCOMPL, 0, inv=0x700, flags=REQ_PIPE)
    s.bye()


@stream("sdp-sinkavail-after-shrink", "after a resize to 100 a SinkAvail of 150, below the old size 200", "SDP 10.6: 'MUST use the new receive Private Buffer size'")
def _(c):
    s = Sdp(c, size=(200, 200))
    s.word(A, MODE, 4)
    s.word(A, CHBUF, 100)
    s.word(B, CHBUFACK, 100)
    s.sink(B, 150, 0x700, 0, 0)
    c.go(A, c.write(A, 0x700, 0, pattern(150)))
    s.word(A, WRCOMPL, 150, inv=0x700)
    s.bye()


@stream("sdp-one-advert-one-read", "MaxAdverts, IRD and ORD 1: one SrcAvail at a time, one Read at a time", "SDP 6.2.1.3, 6.2.1.6")
def _(c):
    s = Sdp(c, adverts=(1, 1), depth=(1, 1))
    s.word(A, MODE, 4)
    for k in range(2):
        s.src(A, 60, 0x500 + k, 0)
        s.read(B, 0x500 + k, 0, 30)
        s.read(B, 0x500 + k, 30, 30)
        s.word(B, RDCOMPL, 60, inv=0x500 + k)
    s.bye()


@stream("sdp-skewed-capture", "HelloAck before the MPA Reply, SendSm before its SrcAvail, RdmaRdCompl before the Read Response", "SDP 8.1.1, 9.2 (order of sending, not of capture)")
def _(c):
    s = Sdp(c)
    c.wire.swap(-1, -2)
    s.src(A, 40, 0x500, 0, b"q")
    s.msg(B, SENDSM)
    c.wire.swap(-1, -2)
    s.data(A, pattern(39))
    s.src(A, 41, 0x501, 0, b"q")
    s.read(B, 0x501, 1, 40)
    s.word(B, RDCOMPL, 40, inv=0x501)
    c.wire.swap(-1, -2)
    s.bye()


@stream("sdp-skewed-modes", "ModeChange captured after the SinkAvail that acknowledges it; credit update before the message it frees", "SDP 12.3, 10.5 (order of sending)")
def _(c):
    s = Sdp(c, bufs=(3, 3))
    s.word(A, MODE, 4)
    s.sink(B, 100, 0x700, 0, 0)
    c.wire.swap(-1, -2)
    c.go(A, c.write(A, 0x700, 0, pattern(100)), s.make(A, WRCOMPL, struct.pack(">I", 100), inv=0x700))
    s.data(B)
    s.data(A, b"after the update")
    c.wire.swap(-1, -2)
    s.data(B)
    s.bye()


@stream("sdp-frames-twice-and-reordered", "every frame twice; two Data segments arrive in the other order", "TCP")
def _(c):
    c.wire.copies = 2
    s = Sdp(c)
    r = [c.fpdu(A, u) for k in range(2) for u in s.make(A, DATA, b"", pattern(9, k))]
    c.seg(A, *r[1])
    c.ack(B)
    c.seg(A, *r[0])
    s.data(B, b"ok")
    s.bye()


@stream("sdp-capture-lost-messages", "the capture missed a Data, a SrcAvail and a ModeChange", "nothing forbids it")
def _(c):
    s = Sdp(c)
    s.data(A, b"seen")
    s.data(A, b"missed")
    c.wire.frames.pop()
    s.data(B, b"seen")
    s.src(A, 40, 0x500, 0, b"q")
    c.wire.frames.pop()
    s.read(B, 0x500, 1, 39)
    s.word(B, RDCOMPL, 39, inv=0x500)
    s.word(A, MODE, 4)
    c.wire.frames.pop()
    s.data(B)
    s.src(A, 40, 0x501, 0)
    s.read(B, 0x501, 0, 40)
    s.word(B, RDCOMPL, 40, inv=0x501)
    s.sink(B, 100, 0x700, 0, 3)
    c.go(A, c.write(A, 0x700, 0, pattern(100)))
    s.word(A, WRCOMPL, 100, inv=0x700)
    s.bye()


@stream("sdp-capture-lost-hello", "the capture missed the Hello segment", "nothing forbids it")
def _(c):
    s = Sdp(c)
    del c.wire.frames[3]
    s.data(A, b"x")
    s.data(B, b"y")
    s.bye()


@stream("sdp-srcavail-then-rst", "the Source's ULP aborts with a SrcAvail open", "SDP 8.2.2")
def _(c):
    s = Sdp(c)
    s.src(A, 40, 0x500, 0, b"q")
    c.go(B, c.rreq(B, 1, 0, 39, 0x500, 1))
    c.rst(A)


@stream("sdp-same-ports-again", "a second SDP connection on the same four-tuple", "SDP 8; TCP")
def _(c):
    s = Sdp(c)
    s.data(A, b"one")
    s.bye()
    d = Conn(c.wire, c.mode, c.n)
    d.isn = [c.isn[A] + 100_000, c.isn[B] + 100_000]
    t = Sdp(d, bufs=(5, 5))
    t.data(A, b"two")
    t.data(B, b"two")
    t.bye(B)


@stream("sdp-mode-change-both-halves", "ModeChanges for both halves cross; S=0 both", "SDP 11 ('independent in each direction'), 12")
def _(c):
    s = Sdp(c)
    s.data(A)
    with c.cross():
        s.word(A, MODE, 4)
        s.word(B, MODE, 0)
    s.sink(B, 100, 0x700, 0, 0, b"reply ride")
    c.go(A, c.write(A, 0x700, 0, pattern(65)))
    s.word(A, WRCOMPL, 65, inv=0x700)
    s.word(A, MODE, 3)
    s.src(B, 61, 0x600, 0, b"q")
    s.read(A, 0x600, 1, 60)
    s.word(A, RDCOMPL, 60, inv=0x600)
    s.bye()


@stream("sdp-keepalive-and-silence", "TCP keepalives with an octet during two hours of SDP silence", "SDP 14.3")
def _(c):
    s = Sdp(c)
    s.data(A, b"x")
    c.ack(B)
    for k in (A, B):
        c.emit(k, ACK, c.sent[k] - 1, b"\0", dt=7200 * Y)
        c.ack(1 - k)
    s.data(B, b"y")
    s.bye()


@stream("pm-skew-and-twice", "PMAccept captured before the PMReq; every frame twice", "SDP 7.4 (order of sending)", "c")
def _(c):
    c.wire.copies = 2
    p = Pm(c)
    p.send(0)
    p.send(1, 3, ap=31000)
    c.wire.swap(0, 2)
    c.wire.swap(1, 3)
    p.send(2, ap=31000)


@stream("pm-capture-lost-request", "the capture missed the PMReq", "nothing forbids it", "c")
def _(c):
    p = Pm(c)
    p.send(0)
    p.send(1, 3, ap=31000)
    p.send(2, ap=31000)
    del c.wire.frames[0]


@stream("pm-cached-mapping", "PmTime 40 (10 s): two connections to the mapped port without another PMReq", "SDP 7.3.1.4", "c")
def _(c):
    p = Pm(c)
    p.send(0)
    p.send(1, 40, ap=31000)
    p.send(2, ap=31000)
    for k in range(2):
        d = Conn(c.wire, c.mode, c.n, sport=40000 + c.n + 300 * k, dport=31000)
        s = Sdp(d)
        s.data(A, b"hello %d" % k)
        s.bye()
        c.wire.t += 3 * Y


# Random changes of the streams above (shake.py, recut.py) led to these streams. Each one is legal
# traffic in an incomplete capture.

@stream("late-fin-of-old-connection", "a delayed FIN of the old connection arrives after the SYN of the next on the same ports; TCP drops it",
        "RFC 793 3.3, 3.9 (segments outside the window), 5044 7.1.5 note")
def _(c):
    c.start()
    hello(c)
    c.close()
    fin = c.wire.frames[-3][1]
    d = Conn(c.wire, c.mode, c.n)
    d.isn = [c.isn[A] + 100_000, c.isn[B] + 100_000]
    put = d.ip
    d.ip = lambda *a, **k: (put(*a, **k), setattr(d, "ip", put), c.wire.put(fin, 3))
    d.start()
    hello(d)
    d.close()


@stream("capture-begins-at-old-fin", "the capture begins with the FINs of a connection whose ports are used again at once", "RFC 793 3.3")
def _(c):
    c.start()
    hello(c)
    del c.wire.frames[:]
    c.close()
    d = Conn(c.wire, c.mode, c.n)
    d.isn = [c.isn[A] + 100_000, c.isn[B] + 100_000]
    d.start()
    hello(d)
    d.close()


@stream("capture-lost-part-of-read-response", "the capture missed the part of a Read Response that a Terminate's advanced header counts", "5040 4.8")
def _(c):
    c.start()
    q = c.rreq(A, 1, 0x40, 48, 2, 0x80)
    c.go(A, q)
    c.go(B, c.rresp(B, 1, 0x40, pattern(48), sizes=(16, 32))[:1])
    c.wire.frames.pop()
    c.go(B, c.term(B, 0, 1, 0, q[0], struct.pack(">IQIIQ", 1, 0x50, 32, 2, 0x90)))
    c.close(B)


@stream("capture-lost-end-of-atomic-response", "the capture saw a Read Response and the first 26 octets of the Atomic Response's FPDU after it, not the rest",
        "7306 5.4; nothing forbids it")
def _(c):
    c.start()
    hello(c)
    c.go(A, c.rreq(A, 1, 0, 3, 2, 0), c.areq(A, 2, 2, 0, 0, 1))
    c.go(B, c.rresp(B, 1, 0, b"abc"), c.aresp(B, 2, 1), cuts=(50,))
    c.wire.frames.pop()
    c.go(A, c.rreq(A, 5, 0, 2, 2, 0), c.areq(A, 3, 2, 0, 0, 1))
    c.go(B, c.rresp(B, 5, 0, b"de"), c.aresp(B, 3, 2))
    c.close()


def one_read(c, k):
    """MaxAdverts, IRD and ORD are 1. The capture missed the frame k."""
    s = Sdp(c, adverts=(1, 1), depth=(1, 1))
    s.word(A, MODE, 4)
    s.src(A, 60, 0x500, 0)
    s.read(B, 0x500, 0, 30)
    s.read(B, 0x500, 30, 30)
    s.word(B, RDCOMPL, 60, inv=0x500)
    s.bye()
    del c.wire.frames[k]


@stream("sdp-one-read-capture-lost-syn-ack", "IRD 1, one Read after the other; the capture missed the SYN-ACK", "SDP 6.2.1.6, 8.1.1")
def _(c):
    one_read(c, 1)


@stream("sdp-one-read-capture-lost-message", "IRD 1, one Read after the other; the capture missed an earlier ModeChange", "SDP 6.2.1.6, 8.1.1")
def _(c):
    one_read(c, 7)


@stream("sdp-bare-hello-in-pieces", "as sdp-bare-hello, the Hello in two TCP segments", "SDP 8.1.1, 7.1; TCP", "c")
def _(c):
    flush = c.flush
    c.flush = lambda s, *a, **k: flush(s, (24,) if s == A and not c.sent[A] else ())
    s = Sdp(c, bare=True)
    c.flush = flush
    s.data(A, b"bare")
    s.data(B, b"too")
    s.bye()


def twice(c, k):
    """A rejected Request, then a second Request on the same TCP connection. The capture missed
    the frame k."""
    c.open()
    c.req(pd=b"v9")
    c.rep(b"only v1", R=1)
    c.req(pd=b"v1")
    c.rep(b"fine")
    hello(c)
    c.close()
    del c.wire.frames[k]


@stream("second-request-capture-lost-first", "rejection and second Request; the capture missed the first Request", "5044 7.1.2 rules 2, 3")
def _(c):
    twice(c, 3)


@stream("second-request-capture-lost-rejection", "rejection and second Request; the capture missed the rejecting Reply", "5044 7.1.2 rules 2, 3")
def _(c):
    twice(c, 4)


@stream("corrupt-segment-repair-not-captured", "a segment with a wrong TCP checksum; the capture missed its retransmission", "TCP (RFC 793 3.1: checksum)", "cm")
def _(c):
    c.start()
    hello(c)
    r = c.fpdu(A, c.send(A, b"undamaged")[0])
    bad = bytearray(c.data[A][r[0]:r[1]])
    bad[9] ^= 0x40
    bad[22] ^= 1
    c.seg(A, *r, data=bytes(bad), lost=True)
    b = c.wire.frames[-1][1]
    c.wire.frames[-1] = (c.wire.frames[-1][0], b[:50] + bytes([b[50] ^ 0x5A]) + b[51:], len(b))
    c.seg(A, *r, dt=250_000)
    c.wire.frames.pop()
    c.go(B, c.send(B, b"ok"))
    c.close()


# Further odd orders

@stream("sdp-mixed-all-mechanisms", "one half Pipelined: Bcopy, Read Zcopy, Write Zcopy and Transaction of the other half in turn", "SDP 11.3, Fig. 25")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.word(B, MODE, 4)
    s.data(A, b"1")                            # ND at B: 1
    s.src(A, 50, 0x500, 0)
    s.read(B, 0x500, 0, 50)
    s.word(B, RDCOMPL, 50, inv=0x500)
    s.sink(B, 100, 0x700, 0, 1, b"cmd")        # a command of B to A
    c.go(A, c.write(A, 0x700, 0, pattern(90)))
    s.word(A, WRCOMPL, 90, inv=0x700)
    s.sink(A, 100, 0x701, 0, 1)                # ND at A: 1, the command
    c.go(B, c.write(B, 0x701, 0, pattern(66)))
    s.word(B, WRCOMPL, 66, inv=0x701)
    s.data(B, b"2")
    s.bye()


@stream("sdp-sinkavail-answers-srcavail-crossing-twice", "SrcAvail, SinkAvail cross; what is left after the Write is advertised again", "SDP 11.3 rule 1b")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.data(B)
    with c.cross():
        s.src(A, 170, 0x500, 0)
        s.sink(B, 100, 0x700, 0, 0)
    c.go(A, c.write(A, 0x700, 0, pattern(100)))
    s.word(A, WRCOMPL, 100, inv=0x700)
    s.src(A, 70, 0x500, 100)
    s.read(B, 0x500, 100, 70)
    s.word(B, RDCOMPL, 70, inv=0x500)
    s.bye()


@stream("sdp-re-issued-after-mode-change", "Pipelined to Combined with SrcAvail and SinkAvail open: both lapse, the SrcAvail is re-issued with payload", "SDP 12.4, Fig. 28")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    s.data(B)
    with c.cross():
        s.src(A, 80, 0x500, 0)
        s.sink(B, 100, 0x700, 0, 0)
    s.word(A, MODE, 2)
    s.src(A, 80, 0x500, 0, b"c")
    s.read(B, 0x500, 1, 79)
    s.word(B, RDCOMPL, 79, inv=0x500)
    s.data(A, b"end")
    s.bye()


@stream("sdp-reads-of-several-srcavails-open", "three SrcAvails; the Reads of all are in flight before the first RdmaRdCompl", "SDP 9.2, 11.3; LocORD 4")
def _(c):
    s = Sdp(c)
    s.word(A, MODE, 4)
    for k in range(3):
        s.src(A, 40, 0x500 + k, 0)
    c.go(B, *[c.rreq(B, 0x70 + k, 0, 40, 0x500 + k, 0) for k in range(3)])
    c.go(A, *[c.rresp(A, 0x70 + k, 0, pattern(40, k)) for k in range(3)])
    for k in range(3):
        s.word(B, RDCOMPL, 40, inv=0x500 + k)
    s.bye()


@stream("read-crosses-fin", "a Read Request crosses the peer's FIN; the peer resets", "5040 6.2 (LLP Abortive Termination), 5041 6.2.1")
def _(c):
    c.start()
    hello(c)
    with c.cross():
        c.seg(B, fin=True)
        c.go(A, c.rreq(A, 1, 0, 4, 2, 0))
    c.rst(B)


@stream("atomic-then-terminate-crossing", "Atomics in flight both ways; one side terminates while its own Atomic Response arrives", "7306 5.4, 5040 5.4")
def _(c):
    c.start()
    hello(c)
    with c.cross():
        c.go(A, c.areq(A, 1, 2, 0, 0, 1))
        c.go(B, c.areq(B, 1, 2, 0, 0, 1))
    with c.cross():
        c.go(A, c.term(A, 0, 0, 9))
        c.go(B, c.aresp(B, 1, 3))
    c.close(A)


@stream("streaming-then-request-not-captured", "streaming exchange before MPA; the capture missed the Request and the first FPDU", "5044 7.1, 7.1.3; nothing forbids it")
def _(c):
    c.open()
    for s, d in ((A, b"EXPECT rdma, please\r\n"), (B, b"OK, send your frame\r\n")):
        c.put(s, d)
        c.flush(s)
    c.req()
    c.rep()
    hello(c)
    del c.wire.frames[7], c.wire.frames[5]
    c.close()


@stream("atomics-partly-captured", "as capture-lost-end-of-atomic-response, and the next Requests not captured either", "7306 5.2.2; nothing forbids it")
def _(c):
    c.start()
    hello(c)
    c.go(A, c.rreq(A, 1, 0, 3, 2, 0), c.areq(A, 2, 2, 0, 0, 1))
    c.go(B, c.rresp(B, 1, 0, b"abc"), c.aresp(B, 2, 1), cuts=(50,))
    c.wire.frames.pop()
    c.go(A, c.rreq(A, 5, 0, 2, 2, 0), c.areq(A, 3, 2, 0, 0, 1))
    c.wire.frames.pop()
    c.go(B, c.rresp(B, 5, 0, b"de"), c.aresp(B, 3, 2))
    c.close()


@stream("markers-capture-from-the-middle", "the capture begins after the start-up frames; the first Marker comes after eleven FPDUs, inside the twelfth",
        "5044 4.3; nothing forbids it", "m")
def _(c):
    c.start()
    hello(c)
    del c.wire.frames[:]
    for k in range(14):
        c.go(A, c.send(A, pattern(17, k)))
    c.go(B, c.send(B, b"ok"))
    c.close()


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("outdir", nargs="?", default=".")
    p.add_argument("--each")
    p.add_argument("--only", default="")
    o = p.parse_args()
    rows = []
    for mode in MODES:
        done = []
        for n, (name, text, rfc, modes, f) in enumerate(STREAMS, 1):
            if mode.letter not in modes or o.only not in name:
                continue
            wire = Wire()
            f(Conn(wire, mode, n))
            done.append((name, wire))
            rows.append((name, mode.name, text, rfc))
            if o.each:
                os.makedirs(o.each, exist_ok=True)
                pcap(os.path.join(o.each, f"{mode.name}-{name}.pcap"), wire)
        if done:
            pcapng(os.path.join(o.outdir, f"legal-{mode.name}.pcapng"), done)
    with open(os.path.join(o.outdir, "legal.csv"), "w", newline="") as out:
        w = csv.writer(out, lineterminator="\n")
        w.writerow(("id", "mode", "what", "allowed by"))
        w.writerows(rows)


if __name__ == "__main__":
    main()
