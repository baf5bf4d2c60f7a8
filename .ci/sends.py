"""sends.py - an iWARP endpoint on plain sockets, which counts the PDUs that it sends.

  sends.py sink ADDRESS PORT
      accept one connection, reply to its MPA Request, read until its end
  sends.py send ADDRESS PORT COUNT RATE [echo]
      send COUNT Sends of 16 bytes, RATE per second (0: no limit), each with a write of its own;
      with echo, read the same number of bytes back

.ci/checks/live uses it to check that a capture misses no PDU. The wire formats are those of
interop/sdp-peer, which shares no code with weft. MPA revision 1, with CRC and without markers.
"""

import socket
import struct
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "interop" / "sdp-peer"))
from sdp_wire import REP_KEY, REQ_KEY, fpdu, mpa_frame, untagged

SEND, STARTUP = 3, 20


def read(sock, count):
    """Read exactly `count` bytes."""
    data = bytearray()
    while len(data) < count:
        part = sock.recv(count - len(data))
        if not part:
            sys.exit(f"the peer closed after {len(data)} of {count} bytes")
        data += part
    return bytes(data)


def start_up(sock, key):
    """Read the peer's start-up frame, which must have this key."""
    frame = read(sock, STARTUP)
    if frame[:16] != key:
        sys.exit(f"expected a start-up frame, received {frame!r}")
    read(sock, struct.unpack(">H", frame[18:])[0])


def sink(address, port):
    with socket.create_server((address, port)) as listener:
        print("listening", flush=True)
        sock, _ = listener.accept()
    start_up(sock, REQ_KEY)
    sock.sendall(mpa_frame(REP_KEY, False, True))
    buffer, total = bytearray(1 << 20), 0
    while count := sock.recv_into(buffer):
        total += count
    print(f"received {total} bytes")


def send(address, port, count, rate, echo):
    fpdus = [fpdu(untagged(SEND, True, 0, msn, 0, struct.pack(">QQ", msn, 0)), 0, False, True) for msn in range(1, count + 1)]
    sock = socket.create_connection((address, port))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.sendall(mpa_frame(REQ_KEY, False, True))
    start_up(sock, REP_KEY)
    begun = time.monotonic()
    if rate == 0:
        for data in fpdus:
            sock.sendall(data)
            if echo:
                read(sock, len(data))
    else:
        sent = 0
        while sent < count:
            due = min(count, int((time.monotonic() - begun) * rate) + 1)
            for data in fpdus[sent:due]:
                sock.sendall(data)
            sent = due
            # A short pause keeps the rate even over a few milliseconds.
            time.sleep(0.001)
    took = time.monotonic() - begun
    sock.shutdown(socket.SHUT_WR)
    while sock.recv(1 << 16):
        pass
    print(f"sent {count} in {took:.2f} s, {count / took:.0f} per second")


if __name__ == "__main__":
    role, address, port, *more = sys.argv[1:]
    if role == "sink":
        sink(address, int(port))
    else:
        send(address, int(port), int(more[0]), int(more[1]), "echo" in more)
