"""Captures that are incomplete, and captures without a fault."""
from gen.scene import scene
from gen.ulp import Nvme, Plain, advert, rping, word

from .common import begin, end


@scene("half-terminate",
       "Only the packets of the server are in the capture, among them its Terminate.", at="server")
def half_terminate(s):
    c = s.connect()
    c.blind = (c.i,)
    c.open()
    c.after(150)
    c.mpa()
    p = Plain(s, c)
    p.start()
    p.ping()
    c.after(1500)
    bad = c.write(c.i, p.stag ^ 0x300, p.to, s.random.octets(600))
    stop = c.terminate(c.r, 0x1100, bad[0])
    end(c, c.r)
    s.truth(c, cause="RDMA Write with an STag that the server did not advertise", culprit=c.i,
            first=None, also=[stop], how="terminate", by=c.r,
            chain=[(p.advertised, "The server advertises STag 0x%08x." % p.stag),
                   (stop, "The server sends a Terminate: DDP, tagged buffer, invalid STag. The "
                    "included header is that of an RDMA Write with STag 0x%08x."
                    % (p.stag ^ 0x300))],
            other=[(None, "The packets of the client are not in the capture, so the RDMA Write is "
                    "not either.")],
            must_not=["The client sent nothing.", "The client's segments were lost.",
                      "The server is the culprit.", "The server never received an MPA Request.",
                      "The MPA Reply came without a Request."])


@scene("half-healthy", "Only the packets of the client are in the capture. Orderly end.")
def half_healthy(s):
    c = s.connect()
    c.blind = (c.r,)
    c.open()
    c.after(150)
    c.mpa()
    rping(s, c, 512, 3)
    c.after(800)
    fin = c.close(c.i)
    s.truth(c, cause="No fault: the client closes the connection in order", culprit="nobody",
            first=None, how="fin", by=c.i,
            chain=[(fin[0], "The client sends FIN after the last round.")],
            other=[(None, "The packets of the server are not in the capture. The acknowledgement "
                    "numbers of the client show that they arrived.")],
            must_not=["The server did not answer.", "Segments of the server were lost.",
                      "The SYN was not answered.", "The client sent Read Responses without Read "
                      "Requests.", "The connection failed."])


@scene("starts-in-middle",
       "The capture starts inside a connection. Then the client writes beyond the buffer.",
       at="server")
def starts_in_middle(s):
    c = s.connect()
    c.blind = (c.i, c.r)
    c.open()
    c.mpa()
    p = Plain(s, c, 2048)
    p.start()
    p.ping()
    c.blind = ()
    first = p.ping()
    c.after(20_000)
    p.fetch(1000, s.random.octets(1000))
    c.ack(c.i)
    c.after(300)
    c.send(c.i, word("MORE"))
    c.after(20)
    p.stag, p.to = s.stag(), s.address()
    advertised = c.send(c.r, advert(p.stag, p.to, 1024))
    c.after(30)
    c.write(c.i, p.stag, p.to, s.random.octets(512))
    c.send(c.i, word("DONE"))
    c.after(30)
    c.send(c.r, word("OK"))
    c.ack(c.i)
    c.after(5000)
    bad = c.write(c.i, p.stag, p.to + 512, s.random.octets(608))
    stop = c.terminate(c.r, 0x1101, bad[0])
    end(c, c.r)
    s.truth(c, cause="RDMA Write 96 bytes beyond the end of the advertised buffer", culprit=c.i,
            first=bad, how="terminate", by=c.r,
            chain=[(advertised, "The server advertises 1024 bytes at TO 0x%x." % p.to),
                   (bad, "The client writes 608 bytes at offset 512: 96 bytes too many."),
                   (stop, "The server sends a Terminate: base or bounds violation.")],
            other=[(first[0], "The capture has no SYN and no MPA start-up frames. The roles in "
                    "\"connection\" are not visible in it.")],
            must_not=["MPA start-up is missing by a fault.", "The first MSN must be 1.",
                      "The server is the culprit.", "The STag is wrong.",
                      "Segments before the first frame were lost."])


@scene("snaplen-128",
       "The capture has only the first 128 bytes of each packet. The client writes beyond the "
       "buffer.", at="server", snap=128)
def snaplen_128(s):
    c = begin(s)
    p = Plain(s, c, 4096)
    p.start()
    for _ in range(2):
        p.ping()
    c.after(500)
    bad = c.write(c.i, p.stag, p.to + 3500, s.random.octets(692))
    stop = c.terminate(c.r, 0x1101, bad[0])
    end(c, c.r)
    s.truth(c, cause="RDMA Write 96 bytes beyond the end of the advertised buffer", culprit=c.i,
            first=bad, how="terminate", by=c.r,
            chain=[(p.advertised, "The server advertises 4096 bytes at TO 0x%x." % p.to),
                   (bad, "The client writes 692 bytes at offset 3500: 96 bytes too many."),
                   (stop, "The server sends a Terminate: base or bounds violation.")],
            other=[(p.first_write, "The capture lacks the end of each long packet, so some CRCs "
                    "cannot be checked.")],
            must_not=["A CRC is wrong.", "Data were lost in the network.",
                      "The server is the culprit.", "The STag is wrong."])


@scene("open-healthy", "NVMe traffic. The capture ends while all is well.", pcapng=True)
def open_healthy(s):
    c = begin(s, 4420, {"ird": 16, "ord": 16, "private": Nvme.request()},
              {"ird": 16, "ord": 16, "private": Nvme.reply()}, timestamps=True)
    n = Nvme(s, c)
    n.connect()
    for number in range(4):
        c.after(1000)
        n.read(4, 8 * number)
        n.write(4, 8 * number)
    s.truth(c, cause="No fault: the connection is open when the capture ends", culprit="nobody",
            first=None, how="open", chain=[(len(s.capture.frames), "The last frame acknowledges "
                                            "the completion of the last command.")],
            must_not=["The connection failed.", "The server or the client stopped answering.",
                      "A FIN is missing by a fault.", "An NVMe command is without an answer."])


@scene("healthy-fin", "rping with markers in both directions and an orderly end.", at="between")
def healthy_fin(s):
    c = begin(s, request={"m": 1}, reply={"m": 1})
    rping(s, c, 1500, 3)
    c.after(2000)
    fin = c.close(c.i)
    s.truth(c, cause="No fault: the client closes the connection in order", culprit="nobody",
            first=None, how="fin", by=c.i,
            chain=[(fin[0], "The client sends FIN."), (fin[1], "The server sends FIN.")],
            must_not=["The connection failed.", "A marker is wrong.", "A CRC is wrong.",
                      "The server closed first."])


@scene("msn-gap-in-capture",
       "The capture tool dropped three frames. Their receivers acknowledged them. Orderly FIN.",
       at="client")
def msn_gap_in_capture(s):
    c = begin(s)
    p = Plain(s, c, 16384)
    p.start()
    p.ping()
    c.after(600)
    before = c.send(c.i, b"note".ljust(64, b"."))
    c.send(c.i, b"note".ljust(64, b"."), seen=False)
    after = c.send(c.i, b"note".ljust(64, b"."))
    acknowledged = c.ack(c.r)
    c.after(30)
    c.send(c.r, b"NOTE".ljust(64, b"."))
    c.ack(c.i)
    c.after(2000)
    hole = c.write(c.i, p.stag, p.to, s.random.octets(5000), per={1: {"seen": False}})
    c.send(c.i, word("DONE"))
    c.after(30)
    c.send(c.r, word("OK"), seen=False)
    acknowledged_too = c.ack(c.i)
    p.ping()
    p.ping()
    c.after(1000)
    fin = c.close(c.i)
    s.truth(c, cause="No fault: the client closes the connection in order", culprit="nobody",
            first=None, how="fin", by=c.i,
            chain=[(fin[0], "The client sends FIN."), (fin[1], "The server sends FIN.")],
            other=[(after, "Between this frame and frame %d one Send is missing in the capture. "
                    "Frame %d acknowledges it." % (before[0].frame, acknowledged.frame)),
                   (hole[2], "The segment before this one is missing in the capture. The server "
                    "acknowledges it."),
                   (acknowledged_too, "This frame acknowledges a Send of the server that is "
                    "missing in the capture.")],
            must_not=["The client skipped an MSN.", "Segments were lost in the network.",
                      "The connection failed.", "The RDMA Write is incomplete."])
