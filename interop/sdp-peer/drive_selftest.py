#!/usr/bin/env python3
"""Tries every command of ../../docs/sdp-driver.md once, over loopback.

  drive_selftest.py [--verbose] [NAME...]

Each case starts sdp_peer.py with `drive` in a thread, connects to it (or accepts its connection),
sends commands as Data, and checks the messages of the driven socket. The checkers of both sides
must find no violation. A case waits for messages. SAFETY only ends a case that hangs.
"""
import queue
import select
import socket
import sys
import threading
import time
import traceback

import sdp_peer as peer
import sdp_wire as w
from sdp_check import Report
from sdp_conn import Connection

SAFETY = 20
VERBOSE = "--verbose" in sys.argv


class Failed(Exception):
    pass


class Tester(Connection):
    """The peer of the driven socket. It records the messages, and answers a SrcAvail only if
    `hold` is not set."""

    def __init__(self, cfg, report, connector):
        self.got, self.put, self.reads, self.hold = [], [], [], False
        super().__init__(cfg, report, connector)

    def _message(self, opcode, inval, data):
        before = len(self.rx)
        super()._message(opcode, inval, data)
        m = w.decode(data, self.order)
        m.inval, m.fresh = inval, len(self.rx) - before
        self.got.append(m)

    def _event(self, event):
        if event[0] == "read":
            self.reads.append(event[3])
        super()._event(event)

    def _reading(self):
        if not self.hold:
            super()._reading()

    # ------------------------------------------------------------ for the cases
    def wait_for(self, what, condition):
        until = time.monotonic() + SAFETY
        while True:
            value = condition()
            if value:
                return value
            if time.monotonic() > until or self.link.dead:
                raise Failed(f"no {what}; received {self.got}; result {self.result}")
            self.poll()

    def next(self, mid, **fields):
        """Takes the next message of the driven socket. Ignores updates of the credit."""
        name = w.NAMES[mid]

        def find():
            while self.got and (self.got[0].mid == w.HELLO_ACK or self.got[0].mid == w.DATA
                                and not self.got[0].payload and not self.got[0].flags):
                self.got.pop(0)
            return self.got.pop(0) if self.got else None
        m = self.wait_for(name, find)
        if m.mid != mid:
            raise Failed(f"{name} expected, received {m}")
        for key, value in fields.items():
            real = {"payload": len(m.payload), "flags": m.flags, **m.ext}[key]
            if real != value:
                raise Failed(f"{key} {value} expected in {m}")
        return m

    def command(self, text):
        self.write(text.encode("ascii"))

    def large(self, text):
        """Sends the text in one SrcAvail."""
        data = text.encode("ascii")
        self.cfg.threshold = len(data) - 1
        self.write(data)

    def mode(self, mode):
        self.wait_for("own ModeChange", lambda: self.change_mode(mode))

    def resumed(self):
        self.wait_for("new connection", lambda: "resumed" in self.events)

    def over(self, result="graceful"):
        """Closes, and waits for the end of the connection."""
        self.close()
        until = time.monotonic() + SAFETY
        while not (self.result and self.link.dead):
            if time.monotonic() > until:
                raise Failed("the connection does not end")
            self.poll()
        if self.result != result:
            raise Failed(f"result {self.result}, {result} expected")


class Pair:
    """A driven socket in a thread, and its Tester."""

    def __init__(self, connects=False):
        self.lines, first = [], queue.Queue()

        def out(text):
            self.lines.append(text)
            first.put(text)
            if VERBOSE:
                print("    driven:", text, flush=True)
        verbose = ["--verbose"] if VERBOSE else []
        cfg = peer.arguments(["connect", "--port", "1", "--recv-size", "1000", "--max-recv", "3000",
                              "--sink-adverts", "0", "--threshold", "4000", "--sink-policy", "read",
                              "script"])
        self.report = Report(lambda text: self.lines.append("tester: " + text))
        self.tester = Tester(cfg, self.report, not connects)
        if connects:
            server = socket.create_server(("127.0.0.1", 0))
            argv = ["connect", "--port", str(server.getsockname()[1])]
        else:
            argv = ["serve", "--port", "0"]
        self.status = None
        run = (argv + verbose + ["drive"], out)
        self.thread = threading.Thread(target=self._run, args=run, daemon=True)
        self.thread.start()
        if connects:
            self.tester.accept(server.accept()[0])
            server.close()
        else:
            self.tester.connect("127.0.0.1", int(first.get(timeout=SAFETY).split()[-1]))

    def _run(self, argv, out):
        try:
            self.status = peer.main(argv, out)
        except Exception:                                   # shown as a failure of the case
            out(traceback.format_exc())

    def finish(self, status=0):
        self.thread.join(SAFETY)
        bad = [line for line in self.lines if "VIOLATION" in line or "Traceback" in line]
        if bad or self.status != status:
            raise Failed(f"status {self.status}; {bad or self.lines}")


def free_port():
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


# ---------------------------------------------------------------- the cases
def send(t):
    t.command("send 100\n")
    t.next(w.DATA, payload=100)
    t.command("send 2000\n")
    t.next(w.SRCAVAIL, length=2000, payload=40)
    t.command("bogus; send; send 0; send x; send 1048577; send 5 5;\n;send\t5 ;")
    t.next(w.DATA, payload=5)


def urgent(t):
    t.command("urgent 10\n")
    t.next(w.DATA, payload=10, flags=w.OOB_PRES | w.OOB_PEND)
    t.command("urgent 2000;")
    t.next(w.DATA, payload=0, flags=w.OOB_PEND)
    t.next(w.SRCAVAIL, length=1999)
    t.next(w.DATA, payload=1, flags=w.OOB_PRES)
    t.command("threshold 100000;urgent 70000;")
    flags = 0
    while not flags & w.OOB_PRES:
        flags = t.next(w.DATA).flags


def read(t):
    t.mode(w.PIPELINED)
    t.command("read 2000 1500 500 1001\nsend 1\n")
    t.next(w.SINKAVAIL, length=2000)
    t.next(w.SINKAVAIL, length=1500)
    t.next(w.DATA, payload=1)
    t.cfg.threshold = 50
    t.write(b"send 2;" * 100)                               # an RDMA Write of 700 bytes
    t.cfg.threshold = 4000
    t.wait_for("RdmaWrCompl", lambda: not t.unsent)
    t.command("send 3\n" * 20)                              # a Data message ends the second receive
    t.wait_for("Data", lambda: not t.unsent)
    t.command("send 4\n" * 20)                              # and another one ends the third receive
    t.next(w.SINKAVAIL, length=1001)
    t.command("send 5\n" * 140)
    t.wait_for("Data", lambda: not t.unsent)
    t.command("send 6\n")
    t.next(w.DATA, payload=6)


def mode_out(t):
    t.command("mode out pipelined;threshold 100;send 200;send 300\n")
    t.hold = True
    t.next(w.MODECHANGE, mode=w.PIPELINED, s=0)
    t.next(w.SRCAVAIL, length=200, payload=0)
    t.next(w.SRCAVAIL, length=300, payload=0)
    t.command("mode out combined;mode out buffered;send 200\n")
    t.next(w.MODECHANGE, mode=w.COMBINED, s=0)
    t.hold = False
    t.next(w.MODECHANGE, mode=w.BUFFERED, s=0)
    t.next(w.DATA, payload=200)


def mode_in(t):
    t.command("mode in pipelined;mode in combined\n")       # both are impossible here
    t.mode(w.BUFFERED)
    t.command("mode in pipelined;mode in combined;send 1\n")
    t.next(w.MODECHANGE, mode=w.COMBINED, s=1)
    t.next(w.DATA, payload=1)


def resize(t):
    t.command("resize 2000\n")
    t.next(w.CHRCVBUF, length=2000)
    t.wait_for("ChRcvBufAck", lambda: t.counts.get("ChRcvBufAck"))
    t.command("threshold 3000;send 1984\n")
    t.next(w.DATA, payload=1984)
    t.resize(9999)
    t.next(w.CHRCVBUF_ACK, length=3000)


def suspend(t):
    number = free_port()
    t.command(f"threshold 100;suspend {number};send 50;send 200\n")
    t.next(w.SUSPCOMM, port=number)
    t.resumed()
    t.next(w.DATA, payload=50)
    t.next(w.SRCAVAIL, length=200)                          # the threshold is still 100


def suspended(t):
    """The peer suspends, while the program has a receive and a send."""
    t.hold = True
    t.command("send 2000\n")
    t.next(w.SRCAVAIL, length=2000, payload=40)
    t.wait_for("own SuspComm", t.suspend)
    t.resumed()
    t.hold = False
    t.wait_for("SrcAvail again", lambda: any(m.mid == w.SRCAVAIL and m.ext["length"] == 1960
                                             for m in t.got))
    t.got.clear()
    t.command("send 1\n")
    t.next(w.DATA, payload=1)


def suspend_crossing(t):
    """Both sides suspend. The driven socket answers first if it has connected (13.1.2)."""
    if t.connector:
        return                                              # the Tester cannot do this
    number = free_port()
    t.command(f"suspend {number};send 50\n")
    t._work()
    select.select([t.link.sock], [], [], SAFETY)            # its SuspComm is here, but not received
    if not t.suspend():
        raise Failed("no own SuspComm")
    t.next(w.SUSPCOMM, port=number)
    t.next(w.SUSPCOMM_ACK)
    t.next(w.SUSPCOMM, port=number)
    t.next(w.DATA, payload=50)


def nothing_to_cancel(t):
    """Commands that are not possible: they are ignored."""
    used = socket.create_server(("127.0.0.1", 0))
    t.command(f"cancel-sends;cancel-receives;suspend {used.getsockname()[1]};send 5\n")
    t.next(w.DATA, payload=5)
    used.close()


def cancel_sends(t):
    t.hold = True
    t.command("send 2000;send 10;cancel-sends;send 5\n")
    t.next(w.SRCAVAIL, length=2000)
    t.next(w.SRC_CANCEL)
    t.next(w.DATA, payload=5)


def cancel_receives(t):
    t.mode(w.PIPELINED)
    t.command("read 2000 500 1500;cancel-receives;read 2001\n")
    t.next(w.SINKAVAIL, length=2000)
    t.next(w.SINK_CANCEL)
    t.next(w.SINKAVAIL, length=2001)
    t.command("x")
    t.wait_for("Data", lambda: not t.unsent)
    t.command("send 5\n")
    t.next(w.DATA, payload=5)


def shut(t):
    t.hold = True
    t.command("send 2000;shut;send 10;urgent 1\n")
    t.next(w.SRCAVAIL, length=2000)
    t.hold = False
    t.next(w.DISCONN)


def abort(t):
    t.command("abort\n")
    t.close = lambda: None
    t.over("abortive (receive: [Errno 104] Connection reset by peer)")


def abort_after_shut(t):
    t.command("shut;abort\n")
    t.next(w.DISCONN)
    t.next(w.ABORTCONN)
    t.over("abortive")


def wait(t):
    start = time.monotonic()
    t.command("wait 60;send 5\n")
    t.next(w.DATA, payload=5)
    if time.monotonic() - start < 0.06:
        raise Failed("the program did not wait")


def settings(t):
    t.command("threshold 99;payload 7;send 100\n")
    t.next(w.SRCAVAIL, length=100, payload=7)
    t.command("payload 99999;send 3000;\n")
    t.next(w.SRCAVAIL, length=3000, payload=968)
    t.command("threshold 100;send 100\n")
    t.next(w.DATA, payload=100)


def answer(t):
    t.large(";" * 1000 + "send 1;")
    t.next(w.RDCOMPL, flags=0)
    t.next(w.DATA, payload=1)
    t.command("answer send-sm\n")
    t.large(";" * 1000 + "send 2;")
    t.next(w.SENDSM)
    t.next(w.DATA, payload=2)
    t.command("answer both;max-read 300\n")
    t.reads.clear()
    t.large(";" * 1000 + "send 3;")
    t.next(w.RDCOMPL, length=300)
    t.next(w.SENDSM)
    t.next(w.DATA, payload=3)
    t.command("answer read\n")
    t.large(";" * 1000 + "send 4;")
    m = t.next(w.RDCOMPL)
    t.next(w.DATA, payload=4)
    if t.reads[0] != 300 or max(t.reads) != 300 or sum(t.reads) != 300 + m.ext["length"]:
        raise Failed(f"RDMA Reads {t.reads}")


def hints(t):
    t.command("hints\n")
    t.large(";" * 1000 + "send 1;")
    t.next(w.RDCOMPL, flags=w.REQ_PIPE)
    t.next(w.DATA, payload=1)


def follow(t):
    t.cfg.want_pipelined = True
    t.command("send 1000\n")
    t.next(w.SRCAVAIL, payload=40)
    t.wait_for("own RdmaRdCompl", lambda: t.counts.get("RdmaRdCompl"))
    t.command("follow;send 1001\n")
    t.next(w.SRCAVAIL, payload=40)
    t.next(w.MODECHANGE, mode=w.PIPELINED, s=0)
    t.command("send 1002\n")
    t.next(w.SRCAVAIL, payload=0)


def long_text(t):
    t.cfg.threshold = 6000
    t.command("x" * 5000 + ";send 5\n")
    t.next(w.DATA, payload=5)


def end_of_stream(t):
    t.command("send 3;send 2000;send 4")                    # the last command does not end
    t.close()
    t.next(w.DATA, payload=3)
    t.next(w.SRCAVAIL, length=2000)
    t.next(w.DISCONN)


def reading_at_the_end(t):
    t.mode(w.PIPELINED)
    t.command("read 2000 10;send 1\n")
    t.next(w.SINKAVAIL, length=2000)
    t.next(w.DATA, payload=1)


CASES = {f.__name__: f for f in (
    send, urgent, read, mode_out, mode_in, resize, suspend, suspended, suspend_crossing,
    nothing_to_cancel, cancel_sends, cancel_receives, shut, abort, abort_after_shut, wait, settings,
    answer, hints, follow, long_text, end_of_stream, reading_at_the_end)}


def main():
    names = [a for a in sys.argv[1:] if a != "--verbose"] or list(CASES)
    failed = 0
    for name in names:
        for connects in (False, True):
            label = f"{name} ({'initiator' if connects else 'responder'})"
            try:
                pair = Pair(connects)
                CASES[name](pair.tester)
                if not pair.tester.link.dead:
                    pair.tester.over()
                pair.finish()
                print(f"ok {label}", flush=True)
            except (Failed, OSError, queue.Empty) as e:
                failed += 1
                print(f"FAILED {label}: {type(e).__name__} {e}", flush=True)
                for line in pair.lines if VERBOSE else []:
                    print("   ", line)
    print(f"{failed} failed")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
