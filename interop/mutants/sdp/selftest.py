#!/usr/bin/env python3
"""Self-test of endpoint.py over loopback.

Purpose: testpeer.py plays each probe against the correct endpoint, where it must
pass, and against each bug's endpoint, where that bug's probe must fail.

Limits: it shows that the bugs exist and the correct version holds; it is no
conformance suite.  Usage: selftest.py [--correct | --general | --bug NAME]
"""

import os
import socket
import struct
import subprocess
import sys
import time
from concurrent.futures import ThreadPoolExecutor

from plan import GENERAL, PROBES

HERE = os.path.dirname(os.path.abspath(__file__))
ENDPOINT = os.path.join(HERE, "endpoint.py")
WORKERS = 3


class Server:
    """An endpoint.py process."""

    def __init__(self, words, bug=None):
        command = [sys.executable, "-B", ENDPOINT, "--listen", "127.0.0.1:0", "--service"] + words.split()
        if bug:
            command += ["--bug", bug]
        self.process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        host, port = self.process.stdout.readline().strip().rsplit(":", 1)
        self.address = (host, int(port))

    def client(self, words):
        """An endpoint.py process that connects; returns its last line."""
        command = [sys.executable, "-B", ENDPOINT, "--connect", "%s:%d" % self.address, "--service"]
        done = subprocess.run(command + words.split(), capture_output=True, text=True, timeout=30)
        return done.stdout.strip() + done.stderr

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.errors = self.process.communicate()[1]


def run(probe, words, bug=None):
    """None if the probe passes, otherwise what went wrong."""
    found = None
    with Server(words, bug) as server:
        try:
            probe(server)
        except (AssertionError, OSError, EOFError, struct.error, KeyError, socket.timeout,
                subprocess.TimeoutExpired) as why:
            found = "%s %s" % (type(why).__name__, str(why)[:90])
    if server.errors and not found and not bug:
        return server.errors.strip()[-200:]
    return found


def general(probe, words):
    began = time.time()
    bad = run(probe, words)
    name = probe.__name__ + " " + words
    return bool(bad), "%-4s general %-46s %4.1fs %s" % (
        "FAIL" if bad else "ok", name, time.time() - began, bad or "")


def both(name, probe, words, correct_only):
    bad = run(probe, words)
    shown = "" if correct_only else run(probe, words, name)
    failed = bool(bad) or shown is None
    return failed, "%-4s %-20s correct: %s | bug: %s" % (
        "FAIL" if failed else "ok", name, bad or "passes", "NOT SHOWN" if shown is None else shown)


def main():
    mode = sys.argv[1] if len(sys.argv) > 1 else ""
    only = sys.argv[2] if len(sys.argv) > 2 else None
    listed = subprocess.run([sys.executable, "-B", ENDPOINT, "--list-bugs"], capture_output=True,
                            text=True).stdout.split("\n")
    names = {line.split()[0] for line in listed if line}
    assert names == set(PROBES), names ^ set(PROBES)
    failed = 0
    with ThreadPoolExecutor(WORKERS) as pool:
        jobs = [] if only else [pool.submit(general, *g) for g in GENERAL]
        for name, (probe, words) in PROBES.items():
            if mode != "--general" and only in (None, name):
                jobs.append(pool.submit(both, name, probe, words, mode == "--correct"))
        for job in jobs:
            bad, line = job.result()
            failed += bad
            print(line, flush=True)
    print("failed: %d of %d" % (failed, len(jobs)))
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
