#!/usr/bin/env python3
"""Speak raw MPA to (or listen for) the siw guest, over a plain TCP socket.

  mpa-probe.py connect PORT [--rev N] [--flags HEX] [--ird N --ord N] [--pd TEXT]
                            [--send HEX]...         one handshake, printed in hex
  mpa-probe.py matrix PORT                          many handshakes, one line each
  mpa-probe.py keys PORT                            the right key, each octet of the key changed, the right key
  mpa-probe.py listen PORT [--reply FLAGS:REV:PDHEX] [--count N]
                                                    print the MPA Requests received

--host A: another address than 127.0.0.1 (a namespace's tap).  --flags is the flags octet (M 80, C 40, R 20, S 10).
"""
import argparse
import socket
import struct
import sys
import time

REQ = b"MPA ID Req Frame"
REP = b"MPA ID Rep Frame"
_T = []
for _i in range(256):
    _c = _i
    for _ in range(8):
        _c = (_c >> 1) ^ (0x82F63B78 if _c & 1 else 0)
    _T.append(_c)


def crc32c(b):
    c = 0xFFFFFFFF
    for x in b:
        c = (c >> 8) ^ _T[(c ^ x) & 255]
    return c ^ 0xFFFFFFFF


def fpdu(ulpdu, crc="good"):
    b = struct.pack(">H", len(ulpdu)) + ulpdu
    b += bytes(-len(b) % 4)
    v = {"good": crc32c(b), "zero": 0, "bad": crc32c(b) ^ 0x01010101}[crc]
    # RFC 5044: the CRC32c is sent with the least significant byte first.
    return b + struct.pack("<I", v)


def send_msg(payload, msn=1, qn=0, mo=0, op=3, last=True):
    return struct.pack(">BBIIII", 0x01 | (0x40 if last else 0), 0x40 | op, 0, qn, msn, mo) + payload


def write_msg(stag, to, payload, op=0, last=True):
    return struct.pack(">BBIQ", 0x81 | (0x40 if last else 0), 0x40 | op, stag, to) + payload


def rreq_msg(sink, sinkto, n, src, srcto, msn=1):
    return struct.pack(">BBIIIIIQIIQ", 0x41, 0x41, 0, 1, msn, 0, sink, sinkto, n, src, srcto)


def frame(key, flags, rev, pd):
    return key + struct.pack(">BBH", flags, rev, len(pd)) + pd


def recv_for(s, secs):
    """Returns everything that arrives before `secs` seconds of silence, and how the connection
    ended."""
    s.settimeout(secs)
    b = b""
    while True:
        try:
            x = s.recv(65536)
        except (TimeoutError, socket.timeout):
            return b, "open"
        except ConnectionResetError:
            return b, "reset"
        if not x:
            return b, "closed"
        b += x


def parse(b):
    if len(b) < 20 or b[:16] not in (REQ, REP):
        return None
    fl, rev, n = struct.unpack(">BBH", b[16:20])
    pd = b[20:20 + n]
    d = "%s flags %02x (M%d C%d R%d S%d) rev %d pd_len %d" % (
        "Req" if b[:16] == REQ else "Rep", fl, fl >> 7, fl >> 6 & 1, fl >> 5 & 1, fl >> 4 & 1, rev, n)
    if fl & 0x10 and n >= 4:
        i, o = struct.unpack(">HH", pd[:4])
        d += " ird %04x (A%d B%d %d) ord %04x (C%d D%d %d)" % (
            i, i >> 15, i >> 14 & 1, i & 0x3FFF, o, o >> 15, o >> 14 & 1, o & 0x3FFF)
        pd = pd[4:]
    return d, pd, b[20 + n:]


def enh(ird, ord_):
    return struct.pack(">HH", ird, ord_)


HOST = "127.0.0.1"


def connect(port):
    s = socket.create_connection((HOST, port), 5)
    s.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    return s


def show(label, req, port, then=(), quiet=1.2, verbose=False):
    s = connect(port)
    s.sendall(req)
    b, end = recv_for(s, quiet)
    p = parse(b)
    if p is None:
        out = "no reply" if not b else "odd bytes " + b.hex()
    else:
        out = p[0]
        if p[1]:
            out += " pd " + p[1].hex()
        if p[2]:
            out += " then " + p[2].hex()
    print("%-58s -> %s; %s" % (label, out, end))
    if verbose:
        print("   sent", req.hex())
        print("   got ", b.hex())
    if p and end == "open":
        stag, to = 0, 0
        if p[1][:4] == b"SIWP":
            stag, to = struct.unpack(">IQ", p[1][4:16])
        for what, f in then:
            x = f(stag, to)
            try:
                s.sendall(x)
            except OSError as e:
                print("%-58s    send failed: %s" % ("  + " + what, e))
                break
            b, end = recv_for(s, quiet)
            print("%-58s    %s; %s" % ("  + " + what, b.hex() or "nothing back", end))
            if verbose:
                print("   sent", x.hex())
            if end != "open":
                break
    s.close()
    sys.stdout.flush()


def matrix(port):
    E = enh(8, 8)
    good = lambda crc: ("Send 5 bytes, CRC " + crc, lambda st, to: fpdu(send_msg(b"hello"), crc))
    show("rev 1, no flags", frame(REQ, 0, 1, b""), port, [good("zero")])
    show("rev 1, no flags; FPDU CRC field correct anyway", frame(REQ, 0, 1, b""), port, [good("good")])
    show("rev 1, no flags; FPDU CRC field garbage", frame(REQ, 0, 1, b""), port, [good("bad")])
    show("rev 1, C", frame(REQ, 0x40, 1, b""), port, [good("good")])
    show("rev 1, C; then an FPDU with a bad CRC", frame(REQ, 0x40, 1, b""), port, [good("bad")])
    show("rev 1, C; then an FPDU with a zero CRC", frame(REQ, 0x40, 1, b""), port, [good("zero")])
    show("rev 1, M", frame(REQ, 0x80, 1, b""), port)
    show("rev 1, M C", frame(REQ, 0xC0, 1, b""), port)
    show("rev 1, C, 12 bytes private data", frame(REQ, 0x40, 1, b"private data"), port)
    show("rev 1, R set in a request", frame(REQ, 0x20, 1, b""), port)
    show("rev 1, reserved bits 0f", frame(REQ, 0x0F, 1, b""), port)
    show("rev 0, no flags", frame(REQ, 0, 0, b""), port)
    show("rev 3, no flags", frame(REQ, 0, 3, b""), port)
    show("rev 2, no S", frame(REQ, 0, 2, b""), port)
    show("rev 2, C, no S", frame(REQ, 0x40, 2, b""), port)
    show("rev 2, S, ird 8 ord 8", frame(REQ, 0x10, 2, E), port)
    show("rev 2, S C, ird 8 ord 8", frame(REQ, 0x50, 2, E), port, [good("good")])
    show("rev 2, S C, ird 8 ord 8, private data", frame(REQ, 0x50, 2, E + b"private data"), port)
    show("rev 2, S, no IRD/ORD word", frame(REQ, 0x10, 2, b""), port)
    show("rev 1, S (not allowed before rev 2)", frame(REQ, 0x10, 1, E), port)
    show("rev 2, S, ird 0 ord 0", frame(REQ, 0x10, 2, enh(0, 0)), port)
    show("rev 2, S, ird 1 ord 3", frame(REQ, 0x10, 2, enh(1, 3)), port)
    show("rev 2, S, ird 200 ord 200 (siw's limit is 128)", frame(REQ, 0x10, 2, enh(200, 200)), port)
    show("rev 2, S, ird 3fff ord 3fff", frame(REQ, 0x10, 2, enh(0x3FFF, 0x3FFF)), port)
    zw = ("RTR: zero-length Write, CRC good", lambda st, to: fpdu(write_msg(1, 0, b""), "good"))
    zr = ("RTR: zero-length Read Request, CRC good", lambda st, to: fpdu(rreq_msg(1, 0, 0, 1, 0), "good"))
    zs = ("RTR: zero-length Send, CRC good", lambda st, to: fpdu(send_msg(b""), "good"))
    show("rev 2, S C, A (p2p) + C bit (Write RTR)", frame(REQ, 0x50, 2, enh(0x8008, 0x8008)), port, [zw])
    show("rev 2, S C, A (p2p) + D bit (Read RTR)", frame(REQ, 0x50, 2, enh(0x8008, 0x4008)), port, [zr])
    show("rev 2, S C, A (p2p) + C and D bits", frame(REQ, 0x50, 2, enh(0x8008, 0xC008)), port, [zw])
    show("rev 2, S C, A (p2p) + B bit (Send RTR) only", frame(REQ, 0x50, 2, enh(0xC008, 0x0008)), port, [zs])
    show("rev 2, S C, A (p2p), no RTR bits", frame(REQ, 0x50, 2, enh(0x8008, 0x0008)), port, [zw])
    show("private data 256 bytes (rev 1)", frame(REQ, 0x40, 1, bytes(256)), port)
    show("private data 512 bytes (rev 1)", frame(REQ, 0x40, 1, bytes(512)), port)
    show("private data 513 bytes (rev 1)", frame(REQ, 0x40, 1, bytes(513)), port)
    show("wrong key", frame(b"MPA ID Req FramE", 0x40, 1, b""), port)
    show("Reply frame instead of a Request", frame(REP, 0x40, 1, b""), port)
    show("FPDU bytes right after the Request", frame(REQ, 0x40, 1, b"") + fpdu(send_msg(b"early")), port)
    show("half a Request, then silence", frame(REQ, 0x40, 1, b"")[:10], port, quiet=6.5)
    # segments that violate rules, with CRC
    C = frame(REQ, 0x50, 2, E)
    bad = [
        ("Send MSN 2 first", lambda st, to: fpdu(send_msg(b"x", msn=2))),
        ("Send on queue 1", lambda st, to: fpdu(send_msg(b"x", qn=1))),
        ("Send at offset 4 first", lambda st, to: fpdu(send_msg(b"x", mo=4))),
        ("opcode 8 (Immediate Data, RFC 7306)", lambda st, to: fpdu(send_msg(bytes(8), op=8))),
        ("opcode 15", lambda st, to: fpdu(send_msg(b"x", op=15))),
        ("DDP version 2", lambda st, to: fpdu(b"\x42" + send_msg(b"x")[1:])),
        ("RDMAP version 0", lambda st, to: fpdu(b"\x41\x03" + send_msg(b"x")[2:])),
        ("Write to STag 0xdead00", lambda st, to: fpdu(write_msg(0xDEAD00, 0, b"x"))),
        ("Write before the region", lambda st, to: fpdu(write_msg(st, to - 1, b"x"))),
        ("Write that fits", lambda st, to: fpdu(write_msg(st, to, b"x" * 100))),
        ("zero-length Write to STag 0xdead00", lambda st, to: fpdu(write_msg(0xDEAD00, 0, b""))),
        ("Read Request that fits, 10 bytes", lambda st, to: fpdu(rreq_msg(0x1234, 0x5678, 10, st, to))),
        ("Read Request MSN 2 first", lambda st, to: fpdu(rreq_msg(0x1234, 0x5678, 10, st, to, msn=2))),
        ("Read Request STag 0xdead00", lambda st, to: fpdu(rreq_msg(0x1234, 0x5678, 10, 0xDEAD00, to))),
        ("unrequested Read Response", lambda st, to: fpdu(write_msg(st, to, b"x", op=2))),
        ("Send in two segments", lambda st, to: fpdu(send_msg(b"abcd", last=False)) + fpdu(send_msg(b"efg", mo=4))),
        ("Terminate (RDMAP, remote operation, opcode)", lambda st, to: fpdu(struct.pack(">BBIIIII", 0x41, 0x47, 0, 2, 1, 0, 0x02060000))),
        ("ULPDU length 0", lambda st, to: fpdu(b"")),
        ("ULPDU length 65535, nothing more", lambda st, to: b"\xff\xff" + send_msg(b"x")),
    ]
    for what, f in bad:
        show("rev 2, S C; " + what, C, port, [(what, f)])


def keys(port):
    echo = ("Send 5 bytes", lambda st, to: time.sleep(0.2) or fpdu(send_msg(b"hello")))
    show("right key", frame(REQ, 0x40, 1, b""), port, [echo], quiet=0.3)
    for i in range(16):
        key = bytearray(REQ)
        key[i] ^= 0x20
        show("octet %d of the key changed" % i, frame(bytes(key), 0x40, 1, b""), port)
    show("right key", frame(REQ, 0x40, 1, b""), port, [echo], quiet=0.3)


def listen(port, count, reply):
    ls = socket.socket()
    ls.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    ls.bind((HOST, port))
    ls.listen(8)
    ls.settimeout(90)
    for _ in range(count):
        s, _a = ls.accept()
        b, end = recv_for(s, 1.0)
        p = parse(b)
        print("request", b.hex(), end)
        if p:
            print("       ", p[0], "pd", p[1].hex() or "-", ("then " + p[2].hex()) if p[2] else "")
        if reply and p:
            fl, rev, pd = reply.split(":")
            r = frame(REP, int(fl, 16), int(rev), bytes.fromhex(pd))
            s.sendall(r)
            print("replied", r.hex())
            b, end = recv_for(s, 3.0)
            print("then   ", b.hex() or "nothing", end)
        s.close()
        sys.stdout.flush()


def main():
    a = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    a.add_argument("mode", choices=["connect", "matrix", "keys", "listen"])
    a.add_argument("port", type=int)
    a.add_argument("--rev", type=int, default=1)
    a.add_argument("--flags", default="40")
    a.add_argument("--ird", type=lambda x: int(x, 0))
    a.add_argument("--ord", type=lambda x: int(x, 0), default=0)
    a.add_argument("--pd", default="")
    a.add_argument("--send", action="append", default=[])
    a.add_argument("--count", type=int, default=1)
    a.add_argument("--reply")
    a.add_argument("--host", default="127.0.0.1")
    o = a.parse_args()
    global HOST
    HOST = o.host
    if o.mode == "matrix":
        matrix(o.port)
    elif o.mode == "keys":
        keys(o.port)
    elif o.mode == "listen":
        listen(o.port, o.count, o.reply)
    else:
        pd = (enh(o.ird, o.ord) if o.ird is not None else b"") + o.pd.encode()
        show("rev %d flags %s" % (o.rev, o.flags), frame(REQ, int(o.flags, 16), o.rev, pd), o.port,
             [("sent " + h, lambda st, to, h=h: bytes.fromhex(h)) for h in o.send], verbose=True)


main()
