"""Faults of SDP. The server is the Accepting Peer. It is the MPA Initiator, too."""
from gen.scene import scene
from gen.ulp import Sdp

from .common import end


@scene("sdp-helloack-refused",
       "The HelloAck has MaxAdverts 0, so the Connecting Peer must end the connection.")
def sdp_helloack_refused(s):
    c = s.connect(5010)
    d = Sdp(c)
    bad = d.setup(max_adverts=(4, 0))
    fin = c.close(c.i, gap=80)
    s.truth(c, cause="The HelloAck of the server has MaxAdverts 0", culprit=c.r, first=bad,
            how="fin", by=c.i,
            chain=[(bad, "HelloAck with MaxAdverts 0. The draft allows 1 to 65535."),
                   (fin[0], "The client ends the connection, as section 8.1.1 requires.")],
            must_not=["The server rejected the connection.", "The client is the culprit.",
                      "The Hello is malformed.", "The MPA start-up failed."])


@scene("sdp-abortive-close",
       "The client sends DisConn, and then AbortConn while the server still sends data.",
       at="server")
def sdp_abortive_close(s):
    c = s.connect(5010)
    d = Sdp(c)
    d.setup()
    c.after(500)
    d.data(c.i, b"GET /report\r\n")
    c.after(300)
    for _ in range(2):
        d.data(c.r, s.random.octets(1000))
    c.ack(c.i)
    c.after(2000)
    half = d.put(c.i, Sdp.DISCONN)
    c.after(400)
    for _ in range(2):
        data = d.data(c.r, s.random.octets(1000))
    c.ack(c.i)
    c.after(700)
    stop = d.control(c.i, Sdp.ABORT)
    c.ack(c.r)
    fin = c.close(c.i, gap=90)
    s.truth(c, cause="The client's application aborts the connection", culprit=c.i, first=stop,
            how="fin", by=c.i,
            chain=[(half, "The client sends DisConn: it sends no more data."),
                   (data, "The server still sends data, as it may."),
                   (stop, "The client sends AbortConn."),
                   (fin[0], "The client closes the TCP connection. The server never sent "
                    "DisConn.")],
            must_not=["The close is orderly.", "AbortConn after DisConn is a violation.",
                      "The server may not send data after the DisConn of the client.",
                      "The server is the culprit."])


@scene("sdp-sinkavail-overrun",
       "Pipelined Mode. The server writes 96 bytes more than the client's SinkAvail has.",
       pcapng=True)
def sdp_sinkavail_overrun(s):
    c = s.connect(5010)
    d = Sdp(c)
    d.setup()
    c.after(400)
    d.data(c.i, b"GET /image\r\n")
    c.after(200)
    d.data(c.r, b"200 16480 bytes\r\n")
    c.after(60)
    mode = d.mode(c.r, 4)
    buffers = [(s.stag(), s.address()) for _ in range(2)]
    c.after(30)
    d.sink(c.i, 8192, *buffers[0], 1)
    c.after(50)
    c.write(c.r, *buffers[0], s.random.octets(8192))
    d.written(c.r, 8192, buffers[0][0])
    c.after(150)
    avail = d.sink(c.i, 8192, *buffers[1], 1)
    c.after(50)
    bad = c.write(c.r, *buffers[1], s.random.octets(8288))
    stop = c.terminate(c.i, 0x1101, bad[-1])
    end(c, c.i)
    s.truth(c, cause="RDMA Write 96 bytes beyond the buffer of the SinkAvail", culprit=c.r,
            first=bad[-1], also=bad[:1], how="terminate", by=c.i,
            chain=[(mode, "ModeChange: the half-connection from the server is in Pipelined Mode."),
                   (avail, "SinkAvail: 8192 bytes with STag 0x%08x." % buffers[1][0]),
                   (bad[0], "The server writes 8288 bytes."),
                   (bad[-1], "The last segment crosses the end of the buffer by 96 bytes."),
                   (stop, "The client sends a Terminate: base or bounds violation.")],
            must_not=["The client is the culprit.", "The SinkAvail was stale.",
                      "The STag had been invalidated.",
                      "The first RDMA Write of 8192 bytes is too long."])


@scene("sdp-message-too-long",
       "The HelloAck announces receive buffers of 1024 bytes. The client sends 1120 bytes.",
       at="between")
def sdp_message_too_long(s):
    c = s.connect(5010)
    d = Sdp(c, sizes=(2048, 1024))
    hello = d.setup()
    c.after(300)
    for _ in range(3):
        good = d.data(c.i, s.random.octets(1008))
        c.after(50)
    d.data(c.r, b"received 3024\r\n")
    c.ack(c.i)
    c.after(900)
    bad = d.data(c.i, s.random.octets(1104))
    stop = c.terminate(c.r, 0x1205, bad[0])
    end(c, c.r)
    s.truth(c, cause="SDP message of 1120 bytes, but the receive buffers have 1024 bytes",
            culprit=c.i, first=bad, how="terminate", by=c.r,
            chain=[(hello, "HelloAck with ActRcvSz 1024."),
                   (good, "A message of exactly 1024 bytes succeeds."),
                   (bad, "The client sends a message of 1120 bytes."),
                   (stop, "The server sends a Terminate: DDP message too long for the available "
                    "buffer.")],
            must_not=["The server posted buffers that are smaller than it announced.",
                      "The server had no credits left.", "The server is the culprit."])
