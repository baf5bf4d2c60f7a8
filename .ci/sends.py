"""sends.py - an iWARP endpoint of plain sockets, for captures that must miss nothing: it knows how many PDUs it sent, and how fast.

  sends.py sink ADDRESS PORT                      accept one connection, answer its MPA Request, read to its end
  sends.py send ADDRESS PORT COUNT RATE [echo]    COUNT Sends of 16 octets, RATE a second (0: as they go), each written by itself;
                                                  with echo, read as many octets back

Wire formats are those of interop/sdp-peer, which share no line with weft. MPA revision 1, with CRC and without markers.
"""

import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "interop" / "sdp-peer"))
from sdp_wire import REP_KEY, REQ_KEY, fpdu, mpa_frame, untagged

SEND, STARTUP = 3, 20


def read(sock, octets):
    """Reads exactly `octets` octets."""
    got = bytearray()
    while len(got) < octets:
        piece = sock.recv(octets - len(got))
        if not piece:
            sys.exit(f"the peer ended after {len(got)} of {octets} octets")
        got += piece
    return bytes(got)


def start_up(sock, key):
    """The peer's start-up frame, which must have that key."""
    frame = read(sock, STARTUP)
    if frame[:16] != key:
        sys.exit(f"no start-up frame: {frame!r}")
    read(sock, struct.unpack(">H", frame[18:])[0])


def sink(address, port):
    with socket.create_server((address, port)) as listener:
        print("listening", flush=True)
        sock, _ = listener.accept()
    start_up(sock, REQ_KEY)
    sock.sendall(mpa_frame(REP_KEY, False, True))
    room, octets = bytearray(1 << 20), 0
    while got := sock.recv_into(room):
        octets += got
    print(f"got {octets} octets")


def send(address, port, count, rate, echo):
    made = [fpdu(untagged(SEND, True, 0, msn, 0, struct.pack(">QQ", msn, 0)), 0, False, True) for msn in range(1, count + 1)]
    sock = socket.create_connection((address, port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(mpa_frame(REQ_KEY, False, True))
    start_up(sock, REP_KEY)
    begun = time.monotonic()
    if rate == 0:
        for octets in made:
            sock.sendall(octets)
            if echo:
                read(sock, len(octets))
    else:
        sent = 0
        while sent < count:
            due = min(count, int((time.monotonic() - begun) * rate) + 1)
            for octets in made[sent:due]:
                sock.sendall(octets)
            sent = due
            # Less than a batch of the sender's queue: the rate is kept over every few milliseconds.
            time.sleep(0.001)
    took = time.monotonic() - begun
    sock.shutdown(socket.SHUT_WR)
    while sock.recv(1 << 16):
        pass
    print(f"sent {count} in {took:.2f} s, {count / took:.0f} a second")


if __name__ == "__main__":
    role, address, port, *more = sys.argv[1:]
    if role == "sink":
        sink(address, int(port))
    else:
        send(address, int(port), int(more[0]), int(more[1]), "echo" in more)
