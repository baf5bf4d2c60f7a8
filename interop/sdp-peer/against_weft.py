#!/usr/bin/env python3
"""Random runs of sdp_peer.py against weft's SDP sockets, in both roles.

  against_weft.py WEFT [--runs N] [--seed S] [--only I] [--verbose]

The number of a run and the seed determine the start-up profile, the field order, CRC, markers, the sizes and counts of
buffers, the Modes and mechanisms of both sides, and the script of the peer: bytes, Out-Of-Band bytes, Modes, changes of
size, revocations, moves to another connection, closes and aborts.

The script compares the received data with the sent data on both sides. The checker of the peer must find no violation.
For each failed run, the script prints the command that replays it. The exit status is 0 if no run fails.
"""
import argparse
import collections
import hashlib
import os
import random
import re
import subprocess
import sys
import tempfile

PEER = os.path.join(os.path.dirname(os.path.abspath(__file__)), "sdp_peer.py")
LIMIT = 40


class Run:
    """The choices of one run."""

    def __init__(self, seed, number):
        r = self.random = random.Random(f"{seed} {number}")
        self.serves = number % 2 == 0                       # weft accepts
        self.ending = r.choices(("close", "abort", "close and abort"), (8, 1, 1))[0]
        profile, order = r.choice(("swapped", "bare", "natural", "private-data")), r.choice(("figure", "mirrored"))
        crc = r.random() < 0.7
        bufs, size = [(r.choice((3, 4, 5, 8, 16, 32)), r.choice((37, 64, 100, 512, 2048, 4096, 8192))) for _ in "12"], None
        self.mode = r.choice(("combined", "pipelined", "buffered"))
        receive = r.choice((4096, 16384, 65536))
        self.ours = ["--profile", profile, "--order", order, "--mode", self.mode, "--bufs", str(bufs[0][0]),
                     "--buf-size", str(bufs[0][1]), "--threshold", str(r.choice((0, 100, 2000, 20000))),
                     "--sink-threshold", str(r.choice((0, 3000, 20000))), "--receive", str(receive),
                     "--receives", str(r.choice((1, 2, 4))), "--answer", r.choice(("read", "sendsm", "mixed")),
                     "--advertise", str(r.choice((3000, 1 << 30)))] + ([] if crc else ["--no-crc"])
        self.sinks = r.choice((0, 1, 2, 3))
        self.theirs = ["--profile", profile, "--field-order", order, "--bufs", str(bufs[1][0]), "--recv-size", str(bufs[1][1]),
                       "--threshold", str(max(bufs[1][1], r.choice((500, 4096, 8192)))), "--sink-adverts", str(self.sinks),
                       "--depth", str(r.choice((1, 2, 3))), "--max-adverts", str(r.choice((1, 2, 8))),
                       "--sink-policy", r.choice(("read", "sendsm", "split", "mixed")), "--read-chunk", str(r.choice((700, 16384))),
                       "--mulpdu", str(r.choice((128, 1442, 8000))), "--seed", str(number), "--limit", str(LIMIT - 10)]
        self.theirs += ["--crc" if crc else "--no-crc"]
        # In the bare profile, both sides must know before the connection whether it has markers.
        # weft's commands have no option for this.
        self.theirs += ["--markers-rx"] if profile != "bare" and r.random() < 0.3 else []
        self.theirs += ["--want-pipelined"] if r.random() < 0.3 else []
        self.theirs += ["--strict-port"] if r.random() < 0.5 else []
        self.given = r.randbytes(r.choice((0, 1, 1000, 30000, 150000)))[:150000 if bufs[1][1] > 100 else 20000]
        self.echoes = r.random() < 0.7
        # After its SuspComm, the peer gives no more credits, but weft's answer needs credits (C31).
        # So all data that weft may still send must fit into half of the peer's buffers.
        to_send = 0 if self.serves else len(self.given)
        self.ample = bufs[1][0] >= 8 and 2 * to_send <= bufs[1][0] * (bufs[1][1] - 16)
        self.ample &= not (self.serves and (self.echoes or self.ending == "close and abort"))
        self.write_script(number)

    def write_script(self, number):
        """Chooses the commands of the peer's script, and the data that these commands send."""
        r, sent, mode, self.octets, self.script = self.random, random.Random(number), "combined", b"", []
        size = ours = int(self.ours[self.ours.index("--buf-size") + 1])
        # The application `source` of weft does not read.
        for _ in range(0 if self.serves and self.ending == "close and abort" else r.randint(1, 14)):
            word = r.choice(("send",) * 6 + ("oob", "mode", "resize", "cancel", "sinkcancel", "suspend", "drain", "wait"))
            if word == "send":
                # A message of 37 octets carries only 21 octets of data, so much data would take too
                # long.
                count = min(r.choice((1, 30, 999, 5000, 20000, 90000)), 90000 if ours > 100 else 5000)
                self.script.append(f"send {count}")
                self.octets += sent.randbytes(count)
            elif word == "oob":
                # weft skips this octet when it reads, because the octet does not belong to the
                # stream.
                self.script.append(f"oob {r.randint(1, 255)}")
            elif word == "mode" and mode != "settled":
                mode = r.choice({"combined": ("pipelined", "pipelined", "buffered"), "pipelined": ("combined",)}[mode])
                self.script.append(f"mode {mode}")
                # Only the sink can leave Buffered Mode, and weft's commands do not do this. After
                # Pipelined Mode, the next change must wait for weft's next message (SDP-12.4-3),
                # and weft may have nothing more to send.
                mode = mode if mode == "pipelined" else "settled"
            elif word == "resize" and size:
                # weft acknowledges a larger size only when messages have used all old buffers.
                # While the script waits, it sends no messages.
                wanted = r.choice((37, 100, 1000, 5000, 20000, 100000))
                self.script += [f"resize {wanted}", *(["resized"] if wanted <= size else [])]
                size = wanted if wanted <= size else 0
            elif word == "cancel":
                self.script.append("cancel")
            elif word == "sinkcancel" and self.sinks and self.mode == "pipelined" and self.serves:
                self.script.append("sinkcancel")
            elif word == "drain" or word == "suspend" and self.ample:
                self.script.append(word)
            elif word == "wait":
                self.script.append("wait 0.02")
        if self.ending == "close and abort":
            self.script += ["close", "wait 0.1", "abort"]
        else:
            self.script.append(self.ending)

    def weft(self):
        if not self.serves:
            return ["sdp", "connect"]
        if self.ending == "close and abort":
            return ["sdp", "serve", "source", "--once", "--listen", "127.0.0.1:0"]
        return ["sdp", "serve", "echo" if self.echoes else "sink", "--once", "--listen", "127.0.0.1:0"]


def digest(octets):
    return f"{len(octets)} sha256 {hashlib.sha256(octets).hexdigest()}"


def port(process):
    line = process.stdout.readline()
    found = re.search(rb"listening on (?:.*:)?(\d+)", line)
    if not found:
        raise RuntimeError(f"no listener: {line}{process.communicate()[0]}")
    return found[1].decode()


def play(weft, run, folder):
    """Runs both programs. Returns the status and the output of each program."""
    path, base = os.path.join(folder, "script"), [sys.executable, PEER]
    with open(path, "w", encoding="utf-8") as script:
        script.write("\n".join(run.script) + "\n")
    pipe, app, got = subprocess.PIPE, ["script", path], os.path.join(folder, "got")
    started = []
    try:
        if run.serves:
            ours = subprocess.Popen([weft, *run.weft(), *run.ours], stdout=pipe, stderr=pipe)
            started.append(ours)
            theirs = subprocess.Popen([*base, "connect", "--port", port(ours), *run.theirs, *app], stdout=pipe, stderr=subprocess.STDOUT)
        else:
            theirs = subprocess.Popen([*base, "serve", "--port", "0", *run.theirs, *app], stdout=pipe, stderr=subprocess.STDOUT)
            started.append(theirs)
            ours = subprocess.Popen([weft, *run.weft(), f"127.0.0.1:{port(theirs)}", *run.ours], stdin=pipe, stdout=open(got, "wb"), stderr=pipe)
        started += [ours, theirs]
        if run.serves or run.ending == "close":
            our_input = None if run.serves else run.given
        else:
            # Keep weft's standard input open: the abort must come before the end of weft's data.
            try:
                ours.stdin.write(run.given)
                ours.stdin.flush()
            except BrokenPipeError:
                pass
            our_input = None
        if run.serves:
            their_out = theirs.communicate(timeout=LIMIT)[0].decode()
            our_out, our_err = ours.communicate(timeout=LIMIT)
        elif our_input is not None:
            our_out, our_err = ours.communicate(our_input, timeout=LIMIT)
            their_out = theirs.communicate(timeout=LIMIT)[0].decode()
        else:
            their_out = theirs.communicate(timeout=LIMIT)[0].decode()
            our_out, our_err = ours.communicate(timeout=LIMIT)
        if not run.serves:
            # The output of weft is in a file, because a pipe without a reader would fill up.
            with open(got, "rb") as file:
                our_out = file.read()
        return ours.returncode, our_out, our_err.decode(), theirs.returncode, their_out
    finally:
        for process in started:
            if process.poll() is None:
                process.kill()
                process.wait()


def wrong(run, got):
    """Returns what is wrong with the run, or None."""
    our_status, our_out, our_err, their_status, their_out = got
    if their_status == 1 or "VIOLATION" in their_out:
        return "the peer found a violation"
    if run.ending == "abort" or run.ending == "close and abort":
        # The side that aborts exits with 0. The other side reports the abort, except if the
        # connection had already ended.
        if their_status != 0:
            return f"the peer's status is {their_status}"
        # weft's user ends its own half afterwards, and may receive nothing more.
        if our_status != 1 and (run.serves or run.ending == "abort") and "result graceful" not in their_out:
            return f"weft's status after an abort is {our_status}"
        return None
    if (our_status, their_status) != (0, 0):
        return f"weft's status is {our_status}, the peer's {their_status}"
    received = re.search(r"^received (.*)$", their_out, re.M)[1]
    if not run.serves:
        if our_out != run.octets:
            return f"weft received {digest(our_out)}, expected {digest(run.octets)}"
        return None if received == digest(run.given) else "the peer received different data"
    if run.echoes:
        return None if received == digest(run.octets) else "the returned data differs from the sent data"
    return None if our_out.decode().split() == ["received", str(len(run.octets))] else "the sink received a different number of bytes"


def main():
    p = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    p.add_argument("weft")
    p.add_argument("--runs", type=int, default=100)
    p.add_argument("--seed", default="1")
    p.add_argument("--only", type=int)
    p.add_argument("--verbose", action="store_true")
    args = p.parse_args()
    messages, failed = collections.Counter(), 0
    numbers = range(args.runs) if args.only is None else [args.only]
    for number in numbers:
        run = Run(args.seed, number)
        with tempfile.TemporaryDirectory() as folder:
            try:
                got = play(args.weft, run, folder)
                what = wrong(run, got)
            except (RuntimeError, subprocess.TimeoutExpired, OSError) as error:
                got, what = None, repr(error)
        if got:
            messages.update({name: int(count) for name, count in re.findall(r"(\w+):(\d+)", (re.search(r"^messages (.*)$", got[4], re.M) or ["", ""])[1])})
        if what or args.verbose:
            print(f"run {number}: {what or 'nothing is wrong'}\n  weft {' '.join(run.weft() + run.ours)}\n  peer {' '.join(run.theirs)}\n"
                  f"  script: {'; '.join(run.script)}; given {len(run.given)}")
            if got:
                print(f"  weft: {got[2].strip() or (got[1][:80] if run.serves else '')}\n  peer: " + "\n    ".join(got[4].strip().splitlines()[-12:]))
        if what:
            failed += 1
            print(f"  again: {sys.argv[0]} {args.weft} --seed {args.seed} --only {number} --verbose", flush=True)
    print(f"{len(numbers)} runs, seed {args.seed}: {failed} failed; messages of the peer: " + " ".join(f"{k}:{v}" for k, v in sorted(messages.items())))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
