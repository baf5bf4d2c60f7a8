"""Faults with buffers: STags, bounds, access rights, sizes."""
import struct

from gen.iwarp import SEND_INV
from gen.scene import scene
from gen.ulp import Iser, Nvme, Plain, advert, rping, word

from .common import begin, end


@scene("write-wrong-stag", "The client writes with an STag whose key is wrong by one.")
@scene("write-wrong-stag-vlan", "As write-wrong-stag, in VLAN 230, at a mirror port.", at="between",
       vlan=230)
def write_wrong_stag(s):
    s.capture.arp(s.client, s.server)
    c = begin(s)
    p = Plain(s, c)
    p.start()
    p.ping()
    c.after(5000)
    bad = c.write(c.i, p.stag ^ 1, p.to + 1024, s.random.octets(700))
    stop = c.terminate(c.r, 0x1100, bad[0])
    end(c, c.r)
    s.truth(c, cause="RDMA Write with an STag that the server did not advertise", culprit=c.i,
            first=bad, how="terminate", by=c.r,
            chain=[(p.advertised, "The server advertises a buffer of 4096 bytes with STag 0x%08x."
                    % p.stag),
                   (p.first_write, "An RDMA Write with this STag succeeds."),
                   (bad, "The client writes with STag 0x%08x." % (p.stag ^ 1)),
                   (stop, "The server sends a Terminate: DDP, tagged buffer, invalid STag.")],
            must_not=["The RDMA Write goes beyond the bounds of the buffer.",
                      "The server invalidated the STag before the RDMA Write.",
                      "The server is the culprit.", "The network lost or changed data.",
                      "The Terminate has a wrong code."])


@scene("write-after-invalidate",
       "The client invalidates the server's STag itself, and writes with this STag again later.",
       at="server")
def write_after_invalidate(s):
    c = begin(s, timestamps=True)
    p = Plain(s, c, 8192)
    p.start(3000)
    p.ping()
    c.after(900)
    last = c.send(c.i, word("FREE"), opcode=SEND_INV, invalidate=p.stag)
    c.after(40)
    answer = c.send(c.r, word("OK"))
    c.ack(c.i)
    c.after(2_400_000)
    p.ping(b"still-here")
    c.after(700)
    bad = c.write(c.i, p.stag, p.to, s.random.octets(512))
    stop = c.terminate(c.r, 0x1100, bad[0])
    end(c, c.r)
    s.truth(c, cause="RDMA Write with an STag that the same side had invalidated", culprit=c.i,
            first=bad, how="terminate", by=c.r,
            chain=[(p.advertised, "The server advertises STag 0x%08x." % p.stag),
                   (last, "The client invalidates this STag with a Send with Invalidate."),
                   (answer, "The server goes on normally."),
                   (bad, "2.4 s later the client writes with the invalidated STag."),
                   (stop, "The server sends a Terminate: DDP, tagged buffer, invalid STag.")],
            must_not=["The STag was never advertised.",
                      "The server invalidated the STag without a request of the client.",
                      "The Send with Invalidate was refused.", "The server is the culprit."])


@scene("write-beyond-plain", "The client writes 96 bytes more than the server advertised.",
       at="server")
@scene("write-beyond-ipv6", "As write-beyond-plain, over IPv6.", v6=True, pcapng=True)
def write_beyond(s):
    how = {"mss": 1440} if s.client.is_v6 else {}
    c = begin(s, **how)
    p = Plain(s, c, 4096)
    p.start()
    for _ in range(2):
        p.ping(gap=40_000)
    c.after(300)
    good = c.write(c.i, p.stag, p.to, s.random.octets(4096))
    c.send(c.i, word("DONE", 4096))
    c.after(30)
    c.send(c.r, word("OK", 4096))
    c.ack(c.i)
    c.after(800)
    bad = c.write(c.i, p.stag, p.to, s.random.octets(4192))
    stop = c.terminate(c.r, 0x1101, bad[-1])
    end(c, c.r)
    s.truth(c, cause="RDMA Write 96 bytes beyond the end of the advertised buffer", culprit=c.i,
            first=bad[-1], also=bad[:1], how="terminate", by=c.r,
            chain=[(p.advertised, "The server advertises 4096 bytes at TO 0x%x." % p.to),
                   (good[-1], "A Write of exactly 4096 bytes ends here and succeeds."),
                   (bad[0], "A Write of 4192 bytes starts."),
                   (bad[-1], "Its last segment crosses the end of the buffer by 96 bytes."),
                   (stop, "The server sends a Terminate: DDP, tagged buffer, base or bounds "
                    "violation, with the header of that segment.")],
            must_not=["The STag is wrong.", "The first Write of 4096 bytes is too long.",
                      "The server registered a buffer that is smaller than it advertised.",
                      "The server is the culprit."])


@scene("nvme-write-beyond",
       "An NVMe controller writes 96 bytes more into the host's buffer than the command allows.")
def nvme_write_beyond(s):
    c = begin(s, 4420, {"ird": 16, "ord": 16, "private": Nvme.request()},
              {"ird": 16, "ord": 16, "private": Nvme.reply()}, timestamps=True)
    n = Nvme(s, c)
    n.connect()
    c.after(3000)
    n.read(1, 0)
    n.write(16, 2048)
    n.read(8, 64)
    command, stag, to = n.read_command(8, 4096)
    c.after(120)
    bad = c.write(c.r, stag, to, s.random.octets(4192))
    stop = c.terminate(c.i, 0x1101, bad[-1])
    end(c, c.i)
    s.truth(c, cause="RDMA Write 96 bytes beyond the buffer of the NVMe command", culprit=c.r,
            first=bad[-1], also=bad[:1], how="terminate", by=c.i,
            chain=[(command, "An NVMe Read of 8 blocks advertises a keyed SGL of 4096 bytes, key "
                    "0x%08x." % stag),
                   (bad[0], "The controller writes 4192 bytes."),
                   (bad[-1], "The last segment crosses the end of the SGL by 96 bytes."),
                   (stop, "The host sends a Terminate: base or bounds violation.")],
            must_not=["The host is the culprit.", "The key is unknown or already invalidated.",
                      "The NVMe command failed with a status.",
                      "The RDMA Read of the NVMe Write command is part of the cause."])


@scene("iser-write-beyond",
       "An iSER target writes 96 bytes more than the initiator's SCSI READ expects.", at="between")
def iser_write_beyond(s):
    c = begin(s, 3260, {"ird": 4, "ord": 0}, {"ird": 0, "ord": 4})
    i = Iser(s, c)
    i.login()
    c.after(20_000)
    i.read(1, 0)
    i.read(4, 63)
    command, buffer = i.read_command(8, 8)
    c.after(150)
    bad = c.write(c.r, buffer[0], buffer[1], s.random.octets(4096 + 96))
    stop = c.terminate(c.i, 0x1101, bad[-1])
    end(c, c.i)
    s.truth(c, cause="RDMA Write 96 bytes beyond the read buffer of the SCSI command",
            culprit=c.r, first=bad[-1], also=bad[:1], how="terminate", by=c.i,
            chain=[(command, "SCSI READ(10) of 8 blocks: Read STag 0x%08x, expected data transfer "
                    "length 4096." % buffer[0]),
                   (bad[0], "The target writes 4192 bytes."),
                   (bad[-1], "The last segment crosses the end of the buffer by 96 bytes."),
                   (stop, "The iSCSI initiator sends a Terminate: base or bounds violation.")],
            must_not=["The iSCSI initiator is the culprit.", "The login failed.",
                      "The STag is wrong.", "ORD 0 of the MPA Request is the cause."])


@scene("write-beyond-read-shows-size",
       "No Send has the buffer in a known form. The server reads 4096 bytes from the client's "
       "buffer, and later writes 4192 bytes back.", at="between")
def write_beyond_read_shows_size(s):
    c = begin(s, 18515)
    stag, to = s.stag(), s.address()
    sink = s.stag(), s.address()
    c.send(c.i, b"\x07\x01" + struct.pack("<HIIQ", 2, stag, 8, to) + b"in-place job 0001")
    c.after(60)
    request = c.read(c.r, sink, 4096, (stag, to))
    c.after(25)
    c.respond(c.i, sink, s.random.octets(4096))
    c.after(3000)
    c.write(c.r, stag, to, s.random.octets(2048))
    c.send(c.r, b"\x07\x02half done")
    c.after(20)
    c.send(c.i, b"\x07\x03go on")
    c.ack(c.r)
    c.after(4000)
    bad = c.write(c.r, stag, to, s.random.octets(4192))
    stop = c.terminate(c.i, 0x1101, bad[-1])
    end(c, c.i)
    s.truth(c, cause="RDMA Write 96 bytes beyond a buffer of 4096 bytes", culprit=c.r,
            first=bad[-1], also=bad[:1], how="terminate", by=c.i,
            chain=[(request, "The server reads 4096 bytes from STag 0x%08x. This is the size of "
                    "the buffer (8 units of 512 bytes in the Send before it)." % stag),
                   (bad[-1], "A Write to the same STag and TO crosses 4096 bytes by 96 bytes."),
                   (stop, "The client sends a Terminate: base or bounds violation.")],
            must_not=["The client is the culprit.", "The STag is wrong.",
                      "The Read Request goes beyond the bounds."])


@scene("advertised-more-than-registered",
       "The server advertises 8192 bytes, but refuses a Write of the client inside this range.",
       at="between")
def advertised_more(s):
    c = begin(s)
    p = Plain(s, c, 8192)
    p.start(2000)
    p.ping()
    c.after(1500)
    bad = c.write(c.i, p.stag, p.to + 4096, s.random.octets(1024))
    stop = c.terminate(c.r, 0x1101, bad[0])
    end(c, c.r)
    s.truth(c, cause="The server's buffer is smaller than the server advertised", culprit=c.r,
            first=stop, also=[p.advertised, bad], how="terminate", by=c.r,
            chain=[(p.advertised, "The server advertises 8192 bytes at TO 0x%x." % p.to),
                   (bad, "The client writes 1024 bytes at offset 4096: inside the buffer."),
                   (stop, "The server sends a Terminate: base or bounds violation.")],
            must_not=["The client wrote beyond the advertised buffer.",
                      "The client is the culprit.", "The STag is wrong."])


@scene("read-beyond-after-repaired-loss",
       "A lost segment is retransmitted. A second later the client reads beyond the buffer.")
def read_beyond_after_loss(s):
    c = begin(s)
    p = Plain(s, c, 4096)
    p.start()
    c.after(20_000)
    data = s.random.octets(4096)
    lost = c.write(c.i, p.stag, p.to, data, acks=False, per={0: {"arrives": False}})
    c.ack(c.r)
    c.ack(c.r, gap=2)
    c.after(10)
    repair = c.again(lost[0].tcp)
    c.ack(c.r)
    c.send(c.i, word("DONE", 4096))
    c.after(30)
    c.send(c.r, word("OK", 4096))
    p.fetch(4096, data)
    c.ack(c.i)
    c.after(1_000_000)
    bad = c.read(c.i, p.sink, 4192, (p.stag, p.to))
    stop = c.terminate(c.r, 0x0101, bad)
    end(c, c.r)
    s.truth(c, cause="RDMA Read of 96 bytes beyond the advertised buffer", culprit=c.i, first=bad,
            how="terminate", by=c.r,
            chain=[(p.advertised, "The server advertises 4096 bytes."),
                   (bad, "The client reads 4192 bytes from the start of the buffer."),
                   (stop, "The server sends a Terminate: remote protection error, base or bounds "
                    "violation, with the Read Request.")],
            other=[(lost[0], "This segment is lost after the capture point."),
                   (repair, "The client retransmits the segment. The data arrive 0.2 ms late, "
                    "and all operations after it succeed.")],
            must_not=["The lost segment ended the connection.",
                      "The network is the culprit.", "The server is the culprit.",
                      "The Read Response was lost."])


@scene("terminate-then-reset",
       "The client reads with an unknown STag. The server sends a Terminate, and RST at once.",
       at="between")
def terminate_then_reset(s):
    c = begin(s, timestamps=True)
    p = Plain(s, c, 4096)
    p.start()
    for _ in range(2):
        p.ping()
    c.after(300)
    wrong = s.stag()
    bad = c.read(c.i, p.sink, 512, (wrong, p.to))
    stop = c.terminate(c.r, 0x0100, bad)
    reset = c.reset(c.r)
    s.truth(c, cause="RDMA Read with an STag that the server did not advertise", culprit=c.i,
            first=bad, how="terminate", by=c.r,
            chain=[(p.advertised, "The server advertises STag 0x%08x." % p.stag),
                   (bad, "The client reads from STag 0x%08x." % wrong),
                   (stop, "The server sends a Terminate: remote protection error, invalid STag, "
                    "with the Read Request."),
                   (reset, "The server resets the TCP connection at once.")],
            other=[(reset, "RFC 5040 wants an orderly close after a Terminate (SHOULD). The RST is "
                    "a consequence, not the cause.")],
            must_not=["A firewall sent the RST.", "The server's application crashed.",
                      "The RST is the first cause.", "The server is the culprit."])


@scene("read-response-too-long",
       "The server returns 1096 bytes for an RDMA Read of 1000 bytes.", pcapng=True)
def read_response_too_long(s):
    c = begin(s)
    p = Plain(s, c)
    p.start()
    p.ping()
    c.after(200)
    request = c.read(c.i, p.sink, 1000, (p.stag, p.to))
    c.after(20)
    bad = c.respond(c.r, p.sink, s.random.octets(1096))
    stop = c.terminate(c.i, 0x1101, bad[-1])
    end(c, c.i)
    s.truth(c, cause="The RDMA Read Response is longer than the Read Request", culprit=c.r,
            first=bad, how="terminate", by=c.i,
            chain=[(request, "The client reads 1000 bytes."),
                   (bad, "The server returns 1096 bytes."),
                   (stop, "The client sends a Terminate: base or bounds violation of its sink "
                    "buffer.")],
            must_not=["The client is the culprit.", "The Read Request goes beyond the buffer of "
                      "the server.", "The CRC is wrong."])


@scene("read-sink-too-small",
       "rping with two sizes: the server reads 200 bytes into a sink buffer of 64 bytes.",
       at="between")
def read_sink_too_small(s):
    c = begin(s, request={"c": 0}, reply={"c": 0}, timestamps=True)
    _, _, buffer = rping(s, c, 64, 2)
    source = s.stag(), s.address()
    c.after(500)
    offer = c.send(c.i, advert(source[0], source[1], 200))
    c.after(30)
    request = c.read(c.r, buffer, 200, source)
    c.after(15)
    answer = c.respond(c.i, buffer, s.random.octets(200))
    stop = c.terminate(c.r, 0x1101, answer[0])
    end(c, c.r)
    s.truth(c, cause="The server reads more bytes than its own sink buffer has", culprit=c.r,
            first=request, also=[answer, stop], how="terminate", by=c.r,
            chain=[(offer, "The client advertises a source of 200 bytes."),
                   (request, "The server reads 200 bytes. Its sink buffer has 64 bytes."),
                   (answer, "The client returns exactly the 200 bytes."),
                   (stop, "The server refuses the Read Response with a base or bounds violation "
                    "of its own sink buffer.")],
            other=[(s.startup[0], "Neither side requests CRC, so the CRC fields are zero.")],
            must_not=["The Read Response is longer than the Read Request.",
                      "The client is the culprit.", "The CRC fields are wrong."])


@scene("read-without-right",
       "The NVMe controller reads from a buffer that the host registered for Writes only.",
       at="server")
def read_without_right(s):
    c = begin(s, 4420, {"ird": 16, "ord": 16, "private": Nvme.request()},
              {"ird": 16, "ord": 16, "private": Nvme.reply()})
    n = Nvme(s, c)
    n.connect()
    c.after(2500)
    n.write(4, 128)
    n.read(8, 128)
    command, stag, to = n.read_command(8, 256)
    sink = s.stag(), s.address()
    c.after(70)
    bad = c.read(c.r, sink, 4096, (stag, to))
    stop = c.terminate(c.i, 0x0102, bad)
    end(c, c.i)
    s.truth(c, cause="RDMA Read from a buffer without the right to read", culprit=c.r, first=bad,
            how="terminate", by=c.i,
            chain=[(command, "An NVMe Read: the host expects an RDMA Write to this buffer."),
                   (bad, "The controller sends a Read Request for the buffer instead."),
                   (stop, "The host sends a Terminate: remote protection error, access rights "
                    "violation, with the Read Request.")],
            must_not=["The host is the culprit.", "The key is unknown.",
                      "The Read Request is too long for the buffer."])


@scene("terminate-nibbles-swapped",
       "The client reads beyond the buffer. The server's Terminate has Layer and EType exchanged.",
       at="server")
def terminate_nibbles_swapped(s):
    c = begin(s)
    p = Plain(s, c, 2048)
    p.start()
    p.fetch(2048, s.random.octets(2048))
    c.ack(c.i)
    p.ping()
    c.after(400)
    bad = c.read(c.i, p.sink, 2144, (p.stag, p.to))
    stop = c.terminate(c.r, 0x1001, bad, body=struct.pack(">HBBH", 0x1001, 0xE0, 0, bad.length)
                       + bad.header + bad.request)
    end(c, c.r)
    s.truth(c, cause="RDMA Read of 96 bytes beyond the advertised buffer", culprit=c.i, first=bad,
            how="terminate", by=c.r,
            chain=[(p.advertised, "The server advertises 2048 bytes."),
                   (bad, "The client reads 2144 bytes from the start of the buffer."),
                   (stop, "The server sends a Terminate with the header of this Read Request.")],
            other=[(stop, "The Terminate has 0x10 01 instead of 0x01 01: Layer 1 (DDP) and EType 0 "
                    "(local catastrophic error, which has no RDMA header) instead of Layer 0 "
                    "(RDMAP) and EType 1 (remote protection error).")],
            must_not=["The server had a catastrophic error of its own.",
                      "The malformed Terminate is the cause.", "The server is the culprit."])
