"""Faults of messages: lengths, numbers, CRC, markers, the number of Reads."""
import struct

from gen.iwarp import SEND_INV, WRITE, crc32c, tagged
from gen.scene import scene
from gen.ulp import Plain, Smb, rping, word

from .common import begin, end


@scene("reads-beyond-ird",
       "The responder allows two outstanding RDMA Reads. The initiator sends three.", at="server")
def reads_beyond_ird(s):
    c = begin(s, request={"ird": 4, "ord": 8}, reply={"ird": 2, "ord": 4})
    p = Plain(s, c, 65536)
    p.start()
    p.ping()
    c.after(300)
    c.read(c.i, p.sink, 500, (p.stag, p.to))
    c.read(c.i, p.sink, 500, (p.stag, p.to + 500))
    c.after(20)
    c.respond(c.r, p.sink, s.random.octets(500))
    c.respond(c.r, p.sink, s.random.octets(500))
    c.ack(c.i)
    c.after(2000)
    reads = [c.read(c.i, (p.sink[0], p.sink[1] + 4096 * n), 4096, (p.stag, p.to + 4096 * n))
             for n in range(3)]
    stop = c.terminate(c.r, 0x1203, reads[2], gap=4)
    end(c, c.r)
    s.truth(c, cause="More outstanding RDMA Reads than the IRD of the MPA Reply", culprit=c.i,
            first=reads[2], how="terminate", by=c.r,
            chain=[(s.startup[1], "The MPA Reply has IRD 2, so the initiator's ORD is at most 2."),
                   (reads[0], "First outstanding Read Request."),
                   (reads[1], "Second outstanding Read Request."),
                   (reads[2], "Third Read Request, before a response to the others."),
                   (stop, "The server sends a Terminate: DDP, untagged buffer, invalid MSN, with "
                    "the header of the third Read Request.")],
            other=[(s.startup[0], "The Request has ORD 8. This is a wish, and no fault.")],
            must_not=["The server answers Reads too slowly.", "The server is the culprit.",
                      "The Read Requests go beyond the bounds of the buffer.",
                      "The two Reads before exceed the limit."])


@scene("send-too-long-agreed",
       "An SMB Direct client sends more bytes than the server's MaxReceiveSize.", at="server")
def send_too_long_agreed(s):
    private = {"ird": 32, "ord": 32, "private": struct.pack(">II", 32, 32)}
    c = begin(s, 5445, private, private)
    m = Smb(s, c)
    agreed = m.negotiate(1364, 1364)
    c.after(3000)
    for _ in range(3):
        m.echo()
    bad = c.send(c.i, m.write(1288))
    stop = c.terminate(c.r, 0x1205, bad[0])
    end(c, c.r)
    s.truth(c, cause="Send of 1424 bytes to a peer with MaxReceiveSize 1364", culprit=c.i,
            first=bad, how="terminate", by=c.r,
            chain=[(agreed, "The Negotiate Response of SMB Direct has MaxReceiveSize 1364."),
                   (bad, "The client sends a message of 1424 bytes."),
                   (stop, "The server sends a Terminate: DDP message too long for the available "
                    "buffer.")],
            must_not=["The server posted a receive buffer that is too small.",
                      "No receive buffer was posted.", "The server is the culprit."])


@scene("send-too-long-unknown",
       "A Send of 1200 bytes is too long for the receive buffer, whose size is not on the wire.",
       at="between")
def send_too_long_unknown(s):
    c = begin(s, request={"rev": 1, "s": False}, reply={"rev": 1, "s": False})
    for number in range(4):
        c.after(800)
        c.send(c.i, b"record %04d " % number + s.random.octets(200 + 100 * number))
        c.after(40)
        c.send(c.r, (b"stored %04d" % number).ljust(32, b"."))
        c.ack(c.i)
    c.after(9000)
    bad = c.send(c.i, b"record 0004 " + s.random.octets(1188))
    stop = c.terminate(c.r, 0x1205, bad[0])
    end(c, c.r)
    s.truth(c, cause="The Send is longer than the receive buffer that the server posted",
            culprit="unknown", first=bad, how="terminate", by=c.r,
            chain=[(bad, "The client sends 1200 bytes, more than in each Send before."),
                   (stop, "The server sends a Terminate: DDP message too long for the available "
                    "buffer.")],
            other=[(bad, "The capture has no agreement about sizes. Either the client sends too "
                    "much, or the server posts too small buffers.")],
            must_not=["The server had no receive buffer posted.",
                      "The client violates a size that the server announced.",
                      "The network lost or changed data."])


@scene("crc-sender-pad",
       "The client computes the CRC without PAD, so its first FPDU with PAD has a wrong CRC.",
       at="server")
def crc_sender_pad(s):
    c = begin(s)
    c.i.stream.compute = lambda body, pad: crc32c(body[:len(body) - pad])
    p = Plain(s, c)
    p.start()
    for _ in range(3):
        p.ping()
    c.after(600)
    bad = c.write(c.i, p.stag, p.to, s.random.octets(1021))
    stop = c.terminate(c.r, 0x2002)
    end(c, c.r)
    s.truth(c, cause="The client sends an FPDU with a wrong CRC: the CRC does not cover PAD",
            culprit=c.i, first=bad, how="terminate", by=c.r,
            chain=[(bad, "This FPDU has 3 bytes of PAD. Its CRC is the CRC32c of the bytes before "
                    "PAD. The TCP checksum is right."),
                   (stop, "The server sends a Terminate: MPA, CRC error.")],
            other=[(p.first_write, "The FPDUs before have no PAD, so their CRCs are right.")],
            must_not=["The network changed the segment.", "The server is the culprit.",
                      "CRC was not negotiated."])


@scene("msn-gap-sender", "The client skips one MSN of its Sends. No segment is missing.",
       at="server", pcapng=True)
def msn_gap_sender(s):
    c = begin(s)
    p = Plain(s, c)
    p.start()
    for _ in range(3):
        p.ping()
    c.after(500)
    good = c.send(c.i, b"next".ljust(48, b"."))
    before = c.i.msn[0]
    bad = c.send(c.i, b"next".ljust(48, b"."), msn=before + 2)
    stop = c.terminate(c.r, 0x1203, bad[0])
    end(c, c.r)
    s.truth(c, cause="The client skips MSN %d of queue 0" % (before + 1), culprit=c.i, first=bad,
            how="terminate", by=c.r,
            chain=[(good, "Send with MSN %d." % before),
                   (bad, "Send with MSN %d. Its TCP sequence number follows directly." %
                    (before + 2)),
                   (stop, "The server sends a Terminate: DDP, untagged buffer, invalid MSN.")],
            must_not=["A segment was lost in the network.", "The capture misses a frame.",
                      "The server had too few receive buffers.", "The server is the culprit."])


@scene("marker-pointer-wrong",
       "The client sends markers. In one FPDU, FPDUPTR is 4 too large, and the CRC is right.",
       at="server")
def marker_pointer_wrong(s):
    c = begin(s, reply={"m": 1})
    p = Plain(s, c)
    p.start()
    for _ in range(2):
        p.ping()
    good = c.write(c.i, p.stag, p.to, s.random.octets(2000))
    c.ack(c.r)
    c.after(400)
    c.i.stream.pointer_error = 4
    bad = c.write(c.i, p.stag, p.to, s.random.octets(900))
    stop = c.terminate(c.r, 0x2003)
    end(c, c.r)
    s.truth(c, cause="A marker of the client has a wrong FPDUPTR", culprit=c.i, first=bad,
            how="terminate", by=c.r,
            chain=[(s.startup[1], "The MPA Reply requires markers from the initiator."),
                   (good, "The markers of this Write are right."),
                   (bad, "The markers of this FPDU point 4 bytes too far. The CRC is right."),
                   (stop, "The server sends a Terminate: MPA, marker and ULPDU Length disagree.")],
            other=[(s.startup[0], "The MPA Request does not require markers, so the server sends "
                    "none.")],
            must_not=["The CRC is wrong.", "The server should have sent markers.",
                      "The server is the culprit.", "The network changed the segment."])


@scene("two-connections-one-fails",
       "Two connections between the same hosts. One fails, the other runs on to its orderly end.",
       at="between")
def two_connections(s):
    good, bad = s.connect(7174), s.connect(7174)
    for c in (good, bad):
        c.open()
        c.after(90)
        c.mpa()
        c.after(200)
    rping(s, good, 300, 1)
    p = Plain(s, bad)
    p.start()
    rping(s, good, 300, 1)
    p.ping()
    wrong = (p.stag + 0x100) & 0xFFFFFFFF
    fault = bad.send(bad.i, word("FREE"), opcode=SEND_INV, invalidate=wrong)
    stop = bad.terminate(bad.r, 0x0100, fault[0])
    end(bad, bad.r)
    rping(s, good, 300, 2)
    good.after(4000)
    good.close(good.i)
    s.truth(bad, cause="Send with Invalidate of an STag that the server did not advertise",
            culprit=bad.i, first=fault, how="terminate", by=bad.r,
            chain=[(p.advertised, "The server advertises STag 0x%08x." % p.stag),
                   (fault, "The client sends a Send with Invalidate for STag 0x%08x." % wrong),
                   (stop, "The server sends a Terminate: remote protection error, invalid STag.")],
            must_not=["Both connections fail.", "The server or its host stopped.",
                      "The FIN of the other connection is a part of this failure.",
                      "The server is the culprit."],
            others=[{"client": good.i.name, "server": good.r.name,
                     "outcome": "healthy, orderly FIN by the client"}])


@scene("read-never-answered",
       "TCP acknowledges a Read Request, and the server answers Sends, but no Read Response comes.")
def read_never_answered(s):
    c = begin(s)
    p = Plain(s, c)
    p.start()
    p.ping()
    c.after(1000)
    request = c.read(c.i, p.sink, 2048, (p.stag, p.to))
    acknowledged = c.ack(c.r, gap=40_000)
    alive = p.ping(b"are you there", gap=10_000_000)
    p.ping(b"are you there", gap=10_000_000)
    c.after(10_000_000)
    stop = c.reset(c.i)
    s.truth(c, cause="The server never answers an RDMA Read Request", culprit=c.r, first=request,
            how="reset", by=c.i,
            chain=[(request, "The client reads 2048 bytes of the advertised 4096."),
                   (acknowledged, "The server's TCP acknowledges the Read Request."),
                   (alive[1], "10 s later the server still answers a Send."),
                   (stop, "After 30 s without Read Response the client resets the connection.")],
            must_not=["The Read Request was lost.", "The server's host or the path was dead.",
                      "The Read Request goes beyond the buffer.",
                      "The client's reset came without a reason."])


@scene("fpdus-unaligned-healthy",
       "FPDUs are longer than a segment and not aligned. All operations succeed, then FIN.")
def fpdus_unaligned(s):
    c = begin(s)
    p = Plain(s, c, 65536)
    p.start()
    frames = []
    for number in range(3):
        data = s.random.octets(6000)
        stream = b"".join(c.i.stream.fpdu(tagged(WRITE, p.stag, p.to + o, o == 3000) +
                                          data[o:o + 3000]) for o in (0, 3000))
        for start in range(0, len(stream), 1460):
            frames.append(c.tcp(c.i, stream[start:start + 1460],
                                "PA" if start + 1460 >= len(stream) else "A"))
            if start // 1460 % 2:
                c.ack(c.r)
        c.send(c.i, word("DONE", 6000 * (number + 1)))
        c.after(30)
        c.send(c.r, word("OK", 6000 * (number + 1)))
        c.ack(c.i)
        c.after(700)
    fin = c.close(c.i)
    s.truth(c, cause="No fault: the client closes the connection in order", culprit="nobody",
            first=None, how="fin", by=c.i,
            chain=[(fin[0], "The client sends FIN after the last answer."),
                   (fin[1], "The server sends FIN.")],
            other=[(frames[0], "FPDUs of 3020 bytes are longer than the EMSS of 1460 bytes, and "
                    "most segments start inside an FPDU. RFC 5044 wants a MULPDU of 1454 bytes "
                    "(SHOULD). A receiver must accept such FPDUs.")],
            must_not=["The unaligned FPDUs ended the connection.", "Data were lost.",
                      "The server rejected an FPDU.", "The connection failed."])
