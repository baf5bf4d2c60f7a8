#!/usr/bin/env python3
"""A software SDP endpoint (Sockets Direct Protocol over iWARP), with planted bugs.

Purpose: a peer to judge test suites with.  Without --bug it follows
draft-pinkerton-iwarp-sdp-01 over RFC 5044, 5041, 5040 and 6581; with --bug NAME
it has exactly one known, small defect (see --list-bugs and README.md).

Limits: standard library only, so it is slow (about 10 MB/s with CRC).  It does
not start a socket duplication (SuspComm), only answers one.  No Port Mapper.
"""

import argparse
import socket
import sys
import threading
import time

import bugs
from sdp import SMALLEST, Socket


def address(text):
    host, _, port = text.rpartition(":")
    return host.strip("[]"), int(port)


def listen(opts):
    """Serves any number of connections, one thread for each."""
    host, port = address(opts.listen)
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    server = socket.create_server((host, port), family=family, backlog=128)
    bound = server.getsockname()
    print(("[%s]:%d" if family == socket.AF_INET6 else "%s:%d") % bound[:2], flush=True)
    while True:
        try:
            sock, _ = server.accept()
        except OSError:                 # for example no file descriptors left
            time.sleep(0.1)
            continue
        if bugs.bug("setup-leak") and bugs.SHARED["refused"] >= 5:
            sock.close()
            continue
        threading.Thread(target=serve_one, args=(sock, opts), daemon=True).start()


def serve_one(sock, opts):
    try:
        conn = Socket(sock, opts, False)
    except OSError:                     # reset before the set-up began
        bugs.SHARED["refused"] += 1
        sock.close()
        return
    outcome = conn.run()
    conn.log("%s: %s" % (outcome, conn.service.summary()))


def connect(opts):
    """The Connecting Peer.  Returns the exit status."""
    conn = Socket(socket.create_connection(address(opts.connect)), opts, True)
    outcome = conn.run()
    print("%s: %s, %s" % (opts.service, outcome, conn.service.summary()), flush=True)
    return 0 if outcome == "graceful" and conn.service.good else 1


def sizes(text):
    return [int(part) for part in text.split(",") if part]


def arguments():
    parser = argparse.ArgumentParser(description="SDP endpoint with planted bugs")
    add = parser.add_argument
    add("--listen", metavar="HOST:PORT", help="Accepting Peer")
    add("--connect", metavar="HOST:PORT", help="Connecting Peer")
    add("--service", choices=["echo", "sink", "source"], default="echo")
    add("--bug", metavar="NAME", choices=sorted(bugs.BUGS))
    add("--list-bugs", action="store_true")
    add("--role", choices=["new"], help="with --list-bugs: only the new bugs")
    add("--count", type=int, help="octets that source sends (default: endless)")
    add("--chunk", type=int, default=8192, help="octets in one ULP buffer of source")
    add("--zcopy", type=int, default=4096, help="smallest ULP buffer for Zcopy, 0 = never")
    add("--mode", choices=["auto", "combined", "pipelined", "buffered"], default="auto",
        help="mode of our send half; auto follows the peer's hints")
    add("--bufs", type=int, default=16, help="receive Private Buffers, from 3")
    add("--rcvsz", type=int, default=8192, help="their size, from %d" % SMALLEST)
    add("--max-rcvsz", type=int, default=262144, help="largest size after ChRcvBuf")
    add("--ack-now", action="store_true", help="replace old buffers at once at ChRcvBuf")
    add("--chrcvbuf", type=sizes, default=[], metavar="N,...", help="sizes to request in turn")
    add("--adverts", type=int, default=32, help="our MaxAdverts")
    add("--sinkavail", type=int, default=0, help="size of our SinkAvails, 0 = none")
    add("--sink-count", type=int, default=2, help="SinkAvails outstanding")
    add("--sink-cancel-after", type=float, default=0, help="seconds until SinkAvailCancel, 0 = never")
    add("--cancel-after", type=float, default=5, help="seconds until SrcAvailCancel")
    add("--sendsm-below", type=int, default=0, help="answer shorter SrcAvails by SendSm")
    add("--read-chunk", type=int, default=65536, help="octets of one RDMA Read, at most")
    add("--req-pipe", action="store_true", help="recommend Pipelined Mode to the peer")
    add("--hello", choices=["private", "stream"], default="private",
        help="Hello in the MPA Private Data, or alone on TCP without MPA frames")
    add("--hello-ack", choices=["send", "reply"], default="send",
        help="HelloAck as the first Send or in the MPA Reply")
    add("--no-crc", action="store_true", help="do not ask for CRC (C=0)")
    add("--markers", action="store_true", help="ask for markers (M=1)")
    add("--rev", type=int, choices=[1, 2], default=1, help="Connecting Peer's MPA revision")
    add("--p2p", action="store_true", help="Connecting Peer asks for an RTR (with --rev 2)")
    add("--verbose", action="store_true", help="errors and outcomes to stderr")
    return parser, parser.parse_args()


def main():
    parser, opts = arguments()
    if opts.list_bugs:
        for name, (kind, text) in (bugs.NEW if opts.role else bugs.BUGS).items():
            print("%-20s %-12s %s" % (name, kind, text))
        return 0
    if bool(opts.listen) == bool(opts.connect):
        parser.error("give one of --listen and --connect")
    if opts.bufs < 3 or opts.rcvsz < SMALLEST or opts.chunk < 1 or not 0 < opts.adverts < 65536:
        parser.error("--bufs, --rcvsz, --chunk or --adverts out of range")
    bugs.activate(opts.bug)
    try:
        return listen(opts) if opts.listen else connect(opts)
    except KeyboardInterrupt:
        return 130


if __name__ == "__main__":
    sys.exit(main())
