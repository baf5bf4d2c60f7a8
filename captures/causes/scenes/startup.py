"""Faults of the start-up: MPA frames, CRC and marker negotiation, the port mapper."""
from gen.scene import scene
from gen.ulp import port_mapper

from .common import begin


@scene("mpa-reject", "The server's application rejects the connection with private data.")
def mpa_reject(s):
    c = s.connect(7174)
    c.open()
    c.after(140)
    request, reply = c.mpa({"private": b"session=7731"},
                           {"rejected": 1, "private": b"rejected: session 7731 is in use"})
    fin = c.close(c.i, gap=90)
    s.truth(c, cause="The server's application rejects the MPA Request", culprit=c.r, first=reply,
            how="fin", by=c.i,
            chain=[(request, "MPA Request with private data \"session=7731\"."),
                   (reply, "MPA Reply with the Rejected Connection bit and the reason \"rejected: "
                    "session 7731 is in use\"."),
                   (fin[0], "The client closes the TCP connection.")],
            must_not=["The MPA Request was malformed.", "The server's TCP refused the connection.",
                      "The MPA Reply is malformed.", "The client aborted.",
                      "The FIN of the client is the first cause."])


@scene("reply-other-revision",
       "The MPA Request has revision 1. The server replies with an enhanced Reply of revision 2.",
       at="server")
def reply_other_revision(s):
    c = s.connect(7174)
    c.open()
    c.after(140)
    request, reply = c.mpa({"rev": 1, "s": False}, {"rev": 2, "ird": 8, "ord": 8})
    fin = c.close(c.i, gap=70)
    s.truth(c, cause="The MPA Reply has revision 2 with S, but the Request has revision 1",
            culprit=c.r, first=reply, how="fin", by=c.i,
            chain=[(request, "MPA Request of revision 1."),
                   (reply, "MPA Reply of revision 2 with S and 4 bytes of IRD and ORD. A "
                    "responder must send an unenhanced Reply here (RFC 6581, section 10)."),
                   (fin[0], "The client cannot use this revision and closes.")],
            must_not=["The server rejected the connection.", "The client is the culprit.",
                      "The MPA Request was malformed.", "The client closed without a reason."])


@scene("crc-not-adopted",
       "The Request has C=0, the Reply C=1. The client sends FPDUs without CRC nevertheless.",
       at="server")
def crc_not_adopted(s):
    c = begin(s, request={"c": 0}, reply={"c": 1})
    c.i.stream.crc = False
    bad = c.send(c.i, b"HELO" + bytes(4) + b"buffer-service 1".ljust(24, b"."))
    c.ack(c.r)
    fin = c.close(c.r, gap=120)
    s.truth(c, cause="The client sends no CRC, although the Reply has C=1", culprit=c.i, first=bad,
            how="fin", by=c.r,
            chain=[(s.startup[0], "The MPA Request has C=0."),
                   (s.startup[1], "The MPA Reply has C=1: both sides must generate CRCs."),
                   (bad, "The CRC field of the client's first FPDU is zero, which is wrong."),
                   (fin[0], "The server closes. It may not send a Terminate, because no valid "
                    "FPDU arrived before.")],
            must_not=["The server may not answer C=0 with C=1.", "The server is the culprit.",
                      "The network changed the FPDU.", "The server should have sent a Terminate."])


@scene("markers-missing",
       "The MPA Reply requires markers. The client sends FPDUs without markers.", at="server")
def markers_missing(s):
    c = begin(s, request={"rev": 1, "s": False}, reply={"rev": 1, "s": False, "m": 1})
    c.i.stream.markers = False
    bad = c.send(c.i, b"HELO" + bytes(4) + b"buffer-service 1".ljust(24, b"."))
    c.send(c.i, b"more" * 20)
    c.ack(c.r)
    fin = c.close(c.r, gap=100)
    s.truth(c, cause="The client sends no markers, although the Reply has M=1", culprit=c.i,
            first=bad, how="fin", by=c.r,
            chain=[(s.startup[1], "The MPA Reply has M=1: the initiator must send markers."),
                   (bad, "The first FPDU starts with ULPDU Length. The marker before it is "
                    "missing."),
                   (fin[0], "The server closes without a Terminate, because no valid FPDU "
                    "arrived.")],
            must_not=["The server must send markers.", "The client computes the CRC wrongly.",
                      "The server is the culprit.", "The network changed the FPDU."])


@scene("reply-never-sent",
       "TCP acknowledges the MPA Request, but the server sends no Reply for 60 s.")
def reply_never_sent(s):
    c = s.connect(7174)
    c.open()
    c.after(140)
    request = c.startup(c.i, False, private=b"session=12")
    acknowledged = c.ack(c.r)
    c.after(60_000_000)
    fin = c.tcp(c.i, flags="FA")
    c.ack(c.r)
    s.truth(c, cause="The server does not answer the MPA Request", culprit=c.r, first=request,
            how="fin", by=c.i,
            chain=[(request, "MPA Request."),
                   (acknowledged, "The server's TCP acknowledges it."),
                   (fin, "After 60 s without Reply the client closes.")],
            other=[(None, "The server does not send FIN until the capture ends.")],
            must_not=["The server rejected the connection.", "The MPA Request was lost.",
                      "The server's host or the path was dead.", "The MPA Request is malformed."])


def deny(s, port):
    """A port mapper exchange that ends with PMDeny. Returns the connection and the frames."""
    c = s.connect(port)
    source = s.random.between(32768, 60999)
    handle = int.from_bytes(s.random.octets(8), "big")

    def message(kind, sender, receiver, ports):
        body = port_mapper(kind, port, c.i.port, handle, s.client, s.server)
        return s.capture.ip(sender, receiver, sender.udp(receiver, *ports, body))

    request = message(0, s.client, s.server, (source, 3935))
    c.after(390)
    refusal = message(3, s.server, s.client, (3935, source))
    c.after(450)
    return c, request, refusal


@scene("portmap-denied-plain",
       "The port mapper denies an SDP address. The client uses the port with plain TCP instead.")
def portmap_denied_plain(s):
    c, request, refusal = deny(s, 5001)
    first = c.open()
    c.after(100)
    c.tcp(c.r, b"220 files.example ready\r\n", "PA")
    c.tcp(c.i, b"LIST /pub\r\n", "PA")
    c.after(900)
    c.tcp(c.r, b"150 3 entries\r\nREADME\r\ndata.bin\r\nnotes.txt\r\n226 done\r\n", "PA")
    c.tcp(c.i, b"QUIT\r\n", "PA")
    c.after(50)
    c.tcp(c.r, b"221 goodbye\r\n", "PA")
    fin = c.close(c.r)
    s.truth(c, cause="The port mapper denies SDP for port 5001, so the client uses plain TCP",
            culprit="nobody", first=refusal, how="fin", by=c.r,
            chain=[(request, "PMReq: SDP address for port 5001?"),
                   (refusal, "PMDeny."),
                   (first, "The client connects to port 5001 itself, as the draft provides."),
                   (fin[0], "The server closes after QUIT.")],
            must_not=["An RDMA connection failed.", "MPA start-up is missing by a fault.",
                      "The port mapper did not answer.", "The client ignored the PMDeny.",
                      "The TCP connection ended by a fault."])


@scene("portmap-denied-mpa",
       "The port mapper denies an SDP address. The client starts MPA on the plain port anyway.")
def portmap_denied_mpa(s):
    c, request, refusal = deny(s, 5001)
    c.open()
    c.after(100)
    bad = c.startup(c.i, False, rev=1, s=False, private=b"")
    c.after(300)
    answer = c.tcp(c.r, b"500 unknown command\r\n", "PA")
    fin = c.close(c.r, gap=30)
    s.truth(c, cause="The client starts MPA on a port for which the port mapper denied SDP",
            culprit=c.i, first=bad, how="fin", by=c.r,
            chain=[(request, "PMReq for port 5001."),
                   (refusal, "PMDeny: the port has no SDP service."),
                   (bad, "The client sends an MPA Request to port 5001 nevertheless."),
                   (answer, "The server answers with a line of text: it does not speak MPA."),
                   (fin[0], "The server closes.")],
            must_not=["The server sent a malformed MPA Reply on purpose.",
                      "The server is the culprit.", "The port mapper did not answer.",
                      "The port mapper accepted the request."])
