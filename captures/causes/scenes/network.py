"""Faults of the path or of TCP: loss, MTU, corruption, resets, silence, windows."""
import struct

from gen.scene import scene, schedule
from gen.ulp import Plain, rping, word

from .common import begin, end


def retries(first, count):
    """Times of retransmissions with doubled intervals, in microseconds."""
    times, interval, now = [], first, 0
    for _ in range(count):
        now += interval
        times.append(now)
        interval *= 2
    return times


@scene("loss-gives-up",
       "From one frame on, no segment of the client reaches the server. The client retransmits "
       "seven times, then resets. The server's own segments still arrive.")
def loss_gives_up(s):
    c = begin(s)
    p = Plain(s, c, 16384)
    p.start()
    for _ in range(2):
        c.after(1_000_000)
        c.send(c.r, b"beat".ljust(24, b"."))
        c.ack(c.i)
    c.after(400_000)
    lost = c.write(c.i, p.stag, p.to, s.random.octets(4000), arrives=False, acks=False)
    c.send(c.i, word("DONE", 4000), arrives=False)
    beat = []

    def heart():
        beat.append(c.send(c.r, b"beat".ljust(24, b"."))[0])
        c.ack(c.i, arrives=False)

    def heart_again():
        c.again(beat[0].tcp)
        c.ack(c.i, arrives=False)

    times = retries(204_000, 7)
    events = [(600_000, heart)]
    events += [(600_000 + t, heart_again) for t in retries(210_000, 6)]
    again = []
    events += [(t, lambda: again.append(c.again(lost[0].tcp, arrives=False))) for t in times]
    schedule(c, events)
    c.after(13_000_000)
    stop = c.reset(c.i, arrives=False)
    s.truth(c, cause="All segments from the client to the server are lost after frame %d"
            % (lost[0].frame - 1), culprit="network", first=lost, how="reset", by=c.i,
            chain=[(lost, "First segment that the server never acknowledges."),
                   (again[0], "First retransmission, after 0.2 s."),
                   (beat[0], "The server still sends. Its acknowledgement number does not move."),
                   (again[-1], "Seventh and last retransmission."),
                   (stop, "The client gives up and sends RST.")],
            other=[(beat[0], "The server retransmits this segment too: the client's "
                    "acknowledgements are lost as all of its segments.")],
            must_not=["The server stopped or crashed.", "The server rejected the RDMA Write.",
                      "The RST of the client is the first cause.",
                      "The segments from the server to the client are lost."])


@scene("mtu-black-hole",
       "Segments with 1460 bytes never arrive, smaller ones do. No ICMP message comes.",
       pcapng=True)
def mtu_black_hole(s):
    c = begin(s)
    p = Plain(s, c, 16384)
    p.start()
    for _ in range(2):
        p.ping(gap=30_000)
    c.after(5000)
    lost = c.write(c.i, p.stag, p.to, s.random.octets(4096), acks=False,
                   per={0: {"arrives": False}, 1: {"arrives": False}})
    sack = c.ack(c.r)
    c.send(c.i, word("DONE", 4096))
    sack_small = c.ack(c.r)
    again = []

    def beat():
        c.send(c.r, b"beat".ljust(24, b"."))
        c.ack(c.i)

    events = [(t, lambda: again.append(c.again(lost[0].tcp, arrives=False)))
              for t in retries(203_000, 7)]
    events += [(t, beat) for t in (3_000_000, 9_000_000, 21_000_000)]
    schedule(c, events)
    c.after(26_000_000)
    stop = c.reset(c.i)
    s.truth(c, cause="The path drops packets of 1500 bytes, and no ICMP message reports its "
            "smaller MTU", culprit="network", first=lost,
            how="reset", by=c.i,
            chain=[(lost, "First segment with 1460 bytes of payload. It never arrives."),
                   (sack, "The server acknowledges the third segment, which is smaller, by SACK."),
                   (sack_small, "The server acknowledges the small Send by SACK."),
                   (again[-1], "The last of seven retransmissions, all with 1460 bytes."),
                   (stop, "The client gives up and sends RST.")],
            must_not=["The server stopped or crashed.", "All segments of the client are lost.",
                      "The loss is random.", "The FPDUs are longer than the MSS allows.",
                      "The server rejected the RDMA Write."])


def swapped(data, offset):
    """Exchange two 16-bit words: the TCP checksum stays right."""
    assert data[offset:offset + 2] != data[offset + 2:offset + 4]
    return data[:offset] + data[offset + 2:offset + 4] + data[offset:offset + 2] + data[offset + 4:]


@scene("crc-path-terminate",
       "The path exchanges two words of a segment. The TCP checksum does not notice. The server "
       "sends a Terminate, and the client's retransmission has the right bytes.", at="server")
def crc_path_terminate(s):
    c = begin(s)
    p = Plain(s, c)
    p.start()
    for _ in range(3):
        p.ping()
    c.after(900)
    data = s.random.octets(1000)
    before = c.i.stream.position
    wire = swapped(c.i.stream.fpdu(bytes([0xC1, 0x40]) + struct.pack(">IQ", p.stag, p.to) + data),
                   400)
    c.i.stream.position = before
    bad = c.write(c.i, p.stag, p.to, data, wire=wire)
    stop = c.terminate(c.r, 0x2002, arrives=False)
    c.after(199_000)
    right = c.again(bad[0].tcp)
    c.ack(c.r)
    c.after(900)
    again = c.again(stop.tcp)
    end(c, c.i)
    s.truth(c, cause="The path changed the bytes of a segment, so the CRC is wrong",
            culprit="network", first=bad, how="terminate", by=c.r,
            chain=[(bad, "The FPDU arrives with a wrong CRC and a right TCP checksum."),
                   (stop, "The server sends a Terminate: MPA, CRC error."),
                   (right, "The client retransmits the same segment. Here two words are "
                    "exchanged against the first copy, and the CRC is right."),
                   (again, "The server retransmits its Terminate.")],
            other=[(stop, "The first copy of the Terminate is lost, so the client retransmits.")],
            must_not=["The client computed a wrong CRC.", "The client is the culprit.",
                      "The server is the culprit.", "The retransmission has a wrong CRC."])


@scene("corruption-repaired",
       "A bit of a segment changes. The TCP checksum detects it, TCP retransmits. Orderly FIN.",
       at="server")
def corruption_repaired(s):
    c = begin(s)
    rping(s, c, 900, 2)
    c.after(300)
    stag, to = s.stag(), s.address()
    p = Plain(s, c)
    p.stag, p.to = stag, to
    p.start()
    data = s.random.octets(1000)
    before = c.i.stream.position
    wire = bytearray(c.i.stream.fpdu(bytes([0xC1, 0x40]) + struct.pack(">IQ", stag, to) + data))
    c.i.stream.position = before
    wire[333] ^= 0x10
    bad = c.write(c.i, stag, to, data, wire=bytes(wire), arrives=False)
    c.after(204_000)
    right = c.again(bad[0].tcp)
    c.send(c.i, word("DONE", 1000))
    c.after(30)
    c.send(c.r, word("OK", 1000))
    c.ack(c.i)
    p.ping()
    c.after(1500)
    fin = c.close(c.i)
    s.truth(c, cause="No fault: the client closes the connection in order", culprit="nobody",
            first=None, how="fin", by=c.i,
            chain=[(fin[0], "The client sends FIN."), (fin[1], "The server sends FIN.")],
            other=[(bad, "This segment has a wrong TCP checksum: one bit changed on the path. The "
                    "server's TCP drops it."),
                   (right, "The retransmission has the right bytes.")],
            must_not=["The client computed a wrong CRC.", "The server reported a CRC error.",
                      "The connection failed.", "Data were lost."])


@scene("keepalive-death",
       "An idle connection. The server's TCP answers two keep-alive probes, then no more.")
def keepalive_death(s):
    c = begin(s)
    rping(s, c, 64, 2)

    def probe():
        return c.tcp(c.i, seq=c.i.next - 1)

    for _ in range(2):
        c.after(30_000_000)
        answered = probe()
        c.ack(c.r)
    c.after(30_000_000)
    first = probe()
    for _ in range(5):
        c.after(10_000_000)
        last = probe()
    c.after(10_000_000)
    stop = c.reset(c.i, arrives=False)
    s.truth(c, cause="The server no longer answers: its host or the path failed", culprit="unknown",
            first=first, how="reset", by=c.i,
            chain=[(answered, "The last keep-alive probe that the server answers."),
                   (first, "First probe without an answer, 30 s later."),
                   (last, "Sixth probe without an answer."),
                   (stop, "The client gives up and sends RST.")],
            must_not=["The client aborted without a reason.", "The server reset the connection.",
                      "The server sent a Terminate.", "The application of the server is the cause.",
                      "The keep-alive probes carry lost data."])


@scene("firewall-reset",
       "A device between the hosts sends RST in the name of both sides at the same time.",
       at="between")
def firewall_reset(s):
    c = begin(s)
    p = Plain(s, c)
    p.start()
    for _ in range(4):
        p.ping(gap=3000)
    c.after(2000)
    c.send(c.i, b"ping".ljust(32, b"."))
    c.after(30)
    c.send(c.r, b"PING".ljust(32, b"."))
    to_client = c.reset(c.r, with_ack=False, gap=11, ttl=255, identification=0)
    to_server = c.reset(c.i, with_ack=False, gap=2, ttl=255, identification=0)
    s.truth(c, cause="A device in the network reset the connection in the name of both sides",
            culprit="network", first=to_client, how="reset",
            chain=[(to_client, "RST to the client: TTL 255 and IP-ID 0. All other packets of the "
                    "server have TTL 64 and a counting IP-ID."),
                   (to_server, "RST to the server 2 us later, with the same TTL and IP-ID.")],
            must_not=["The server reset the connection.", "The client reset the connection.",
                      "The application crashed.", "An RDMA operation failed."])


@scene("zero-window",
       "The server's TCP window closes and stays at zero for 170 s. Then the client resets.",
       at="client")
def zero_window(s):
    c = begin(s, server_window=92)
    p = Plain(s, c, 65536)
    p.start()
    p.ping()
    c.after(3000)
    room = 92 * 128
    closed = None
    for number in range(8):
        c.write(c.i, p.stag, p.to + 1440 * number, s.random.octets(1440))
        room -= 1460
        c.r.window = max(0, room // 128)
        if number % 2:
            closed = c.ack(c.r)
    probes = []

    def probe():
        probes.append(c.tcp(c.i, seq=c.i.next - 1))
        c.ack(c.r)

    events = [(t, probe) for t in retries(205_000, 8)]
    events += [(52_000_000 + 30_000_000 * n, probe) for n in (1, 2, 3)]
    schedule(c, events)
    c.after(28_000_000)
    stop = c.reset(c.i)
    s.truth(c, cause="The server does not take data from TCP: its window is zero for 170 s",
            culprit=c.r, first=closed, how="reset", by=c.i,
            chain=[(closed, "The server acknowledges all data with window 0."),
                   (probes[0], "First window probe of the client."),
                   (probes[-1], "Last window probe. The server answers each probe with window 0."),
                   (stop, "The client gives up and sends RST.")],
            must_not=["Segments were lost.", "The server's host or the path was dead.",
                      "The server reset the connection.",
                      "The client reset the connection without a reason."])


@scene("app-reset-reads-outstanding",
       "The client's process ends while RDMA Reads are outstanding. Its TCP sends RST.")
def app_reset(s):
    c = begin(s, timestamps=True)
    p = Plain(s, c, 65536)
    p.start()
    p.fetch(3000, s.random.octets(3000))
    c.ack(c.i)
    c.after(1_300_000)
    reads = [c.read(c.i, p.sink, 4000, (p.stag, p.to + 4000 * n)) for n in range(3)]
    c.after(20)
    c.respond(c.r, p.sink, s.random.octets(4000))
    c.ack(c.i)
    stop = c.reset(c.i, gap=5)
    late = c.respond(c.r, p.sink, s.random.octets(4000), acks=False)
    answer = c.tcp(c.i, flags="R", seq=c.i.next, window=0)
    for _ in late[1:]:
        c.tcp(c.i, flags="R", seq=c.i.next, window=0)
    s.truth(c, cause="The client aborts the connection while two RDMA Reads are outstanding",
            culprit=c.i, first=stop, how="reset", by=c.i,
            chain=[(reads[1], "The second of three Read Requests. Only the first has its response "
                    "before the RST."),
                   (stop, "The client sends RST with its usual TTL and the next IP-ID.")],
            other=[(late[0], "The server's next Read Response crosses the RST."),
                   (answer, "The client's host answers the late segments with RST.")],
            must_not=["The server reset the connection.", "A firewall sent the RST.",
                      "A Read Request was invalid.",
                      "The server did not answer the Reads in time."])


@scene("server-lost-state",
       "The server's host starts again while the connection is idle. It answers the next Send with "
       "RST.", at="between")
def server_lost_state(s):
    s.capture.arp(s.client, s.server)
    c = begin(s)
    p = Plain(s, c)
    p.start()
    p.ping()
    c.after(312_000_000)
    started = s.capture.announce(s.server)
    c.after(2_000_000)
    again = s.capture.announce(s.server)
    c.after(95_000_000)
    late = c.send(c.i, b"ping".ljust(32, b"."), arrives=False)
    stop = c.tcp(c.r, flags="R", seq=c.i.received, window=0)
    s.truth(c, cause="The server's host has lost the connection, because it started again",
            culprit=c.r, first=started, also=[again, late, stop], how="reset", by=c.r,
            chain=[(started, "After 312 s without traffic the server's host announces its address "
                    "by ARP, as a host does when it starts."),
                   (again, "Second announcement."),
                   (late, "95 s later the client sends on the old connection."),
                   (stop, "The server's host answers with RST: it does not know the connection.")],
            must_not=["The Send of the client violates a rule.", "A firewall sent the RST.",
                      "The server's application rejected the Send.",
                      "The client is the culprit.", "Segments were lost."])


@scene("syn-unanswered", "The client's SYN is sent seven times. No answer comes.")
def syn_unanswered(s):
    c = s.connect(4420)
    s.capture.arp(s.client, s.server)
    first = c.tcp(c.i, flags="S", arrives=False)
    last = []
    for seconds in (1, 2, 4, 8, 16, 32):
        c.after(seconds * 1_000_000)
        last.append(c.again(first, "S", arrives=False))
    s.truth(c, cause="No answer to SYN: packets are dropped on the path or by the server's host",
            culprit="unknown", first=first, how="silence",
            chain=[(first, "First SYN."), (last[-1], "Last of six retransmissions.")],
            other=[(2, "The server's host answers ARP, so a host with this address exists.")],
            must_not=["The server refused the connection.", "No process listens on the port.",
                      "MPA start-up failed.", "The client aborted the connection."])


@scene("peer-vanishes",
       "In the middle of the traffic nothing more comes from the server. The client retransmits "
       "until the capture ends.")
def peer_vanishes(s):
    c = begin(s)
    p = Plain(s, c)
    p.start()
    for _ in range(5):
        p.ping(gap=100_000)
    c.after(100_000)
    first = c.send(c.i, b"ping".ljust(32, b"."), arrives=False)
    again = []
    schedule(c, [(t, lambda: again.append(c.again(first[0].tcp, arrives=False)))
                 for t in retries(206_000, 9)])
    s.truth(c, cause="The server's host or the path failed", culprit="unknown", first=first,
            how="silence",
            chain=[(first, "First segment that the server does not acknowledge."),
                   (again[0], "First retransmission."),
                   (again[-1], "Last retransmission in the capture, 105 s later.")],
            must_not=["The server closed or reset the connection.", "The client aborted.",
                      "The server rejected the Send.",
                      "The server's application is the cause.",
                      "It is certain that the server's host crashed."])
