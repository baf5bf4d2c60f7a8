"""Shared by `operations`, `endings` and `beside`: a guest with siw, and findings of the monitor."""
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import time

HERE = os.path.dirname(os.path.abspath(__file__))
GUEST = os.path.join(HERE, "run-siw-guest")
WEFT = os.path.join(HERE, "../../target/release/weft")

# Deviations of siw from the RFCs, compared with their text manually: requirement -> what siw does.
# See README.md.
PAD = "pad octets are not zero"
HDRCT = "M, D and R are the low bits of their octet, where reserved bits belong"
EXCHANGED = "siw's Terminate has Layer where EType belongs, and EType where Layer belongs"
KNOWN = {
    "MPA-2-5": PAD,
    "MPA-4.1-3": PAD,
    "DDP-7.1-17": HDRCT,
    "RDMAP-3.1-7": HDRCT,
    "RDMAP-4.2-3": HDRCT,
    "RDMAP-4.2-5": HDRCT,
    "RDMAP-4.8-6": HDRCT,
    "RDMAP-4.8-11": HDRCT,
    "RDMAP-4.8-16": HDRCT,
    "RDMAP-4.8-37": HDRCT,
    "RDMAP-4.8-39": HDRCT,
    "RDMAP-4.8-40": HDRCT,
    "DDP-7.2-1": EXCHANGED,
    "RDMAP-4.8-3": EXCHANGED,
    "RDMAP-4.8-4": EXCHANGED,
    "RDMAP-4.8-31": EXCHANGED,
    "RDMAP-4.8-38": EXCHANGED,
    # 2/0/07, which is 0/2/07 exchanged, is an error of RFC 6581.
    "P2P-8-4": EXCHANGED,
    "DDP-6.2.1-6": "siw ends at the other side's FIN, in the middle of a Read Response",
    "RDMAP-6.2.1-8": "siw resets after its Terminate when its process is killed",
}


# siw with itself, within the guest: a listener, both roles, data both ways, at any revision of MPA. Nothing of weft has a part in it.
ANSWERS = """siwprobe server -p 7999 -e -t 20 & s=$!
until grep -q ':1F3F .* 0A ' /proc/net/tcp; do kill -0 $s || exit 1; usleep 50000; done
siwprobe client -a 10.0.2.15 -p 7999 send:16 recv && wait $s"""
# Seconds that it has. It takes less than one, on a busy machine a few.
ANSWERS_WITHIN = 60
# What a kernel prints when it goes down, or one of its threads does.
LAST_WORDS = re.compile(r"kernel BUG at|BUG:|Oops|general protection|Kernel panic|stack guard|refcount_t:|blocked for more than")


class Failed(Exception):
    """Something did not happen; the message names it."""


def terminated(*_):
    """Stops the guest first. timeout(1) sends two signals, and the second one must not interrupt that."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


signal.signal(signal.SIGTERM, terminated)


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def call(*arguments, timeout=150):
    """A run-siw-guest command: its status and output."""
    done = subprocess.run([GUEST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    return done.returncode, done.stdout


def until(holds, seconds, otherwise):
    """Looks again and again until something holds."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise Failed(otherwise)
        time.sleep(0.1)


class Guest:
    """A running guest; its port 7174 is `port` of the host's loopback interface."""

    def __init__(self, variant, *options):
        self.port, self.folder = free_port(), None
        done = subprocess.run(
            [GUEST, "start", "--variant", variant, "--hostfwd", "%d:7174" % self.port, *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            print("no guest with siw %s: %s" % (variant, done.stderr[-500:]), file=sys.stderr)
            sys.exit(4)
        self.folder = done.stdout.strip()

    def run(self, command, timeout=60):
        """Runs a shell line: its status and output."""
        return call("exec", "--timeout", str(timeout), self.folder, "--", command, timeout=timeout + 30)

    def start(self, command):
        """Starts a shell line: its job."""
        status, job = call("exec", "-d", self.folder, "--", command)
        if status:
            raise Failed("the guest starts nothing: " + job)
        return job.strip()

    def serve(self, command):
        """Starts a shell line that listens on port 7174, and waits until it does: its job."""
        status, job = call("exec", "-d", "--ready-port", "7174", self.folder, "--", command)
        if status:
            raise Failed("nothing listens in the guest: " + job)
        return job.strip()

    def wait(self, job, timeout=60):
        return call("wait", "--timeout", str(timeout), self.folder, job, timeout=timeout + 30)

    def output(self, job):
        """What a job has printed so far."""
        return call("output", self.folder, job)[1]

    def answers(self):
        """Does siw in there still connect with itself?"""
        return self.run(ANSWERS, timeout=ANSWERS_WITHIN)[0] == 0

    def last_words(self, keep):
        """The first line on the console that shows a death of the kernel, if there is one; the console is kept in the file `keep`."""
        with open(os.path.join(self.folder, "console.log"), errors="replace") as log:
            console = log.read()
        with open(keep, "w") as log:
            log.write(console)
        return next((line.strip() for line in console.splitlines() if LAST_WORDS.search(line)), None)

    def stop(self):
        if self.folder:
            call("stop", self.folder)
            self.folder = None


def put_in(guest, weft):
    """Copies weft and the libraries it is linked with into the guest's memory; gives the command that runs it there."""
    share = os.path.join(guest.folder, "share", "weft")
    os.makedirs(share)
    binary = os.path.join(share, "weft")
    # Symbols are of no use in there, and there is little memory.
    if subprocess.run(["strip", "-o", binary, weft]).returncode:
        shutil.copy(weft, binary)
    for path in re.findall(r"(/\S+) \(0x", subprocess.run(["ldd", weft], stdout=subprocess.PIPE, text=True).stdout):
        shutil.copy(path, share)
    status, output = guest.run("cp -r /host/weft /tmp/weft && ls /tmp/weft/ld-linux*")
    if status:
        raise Failed("weft cannot be copied into the guest: " + output)
    shutil.rmtree(share)
    loader = output.split()[-1]
    return "%s --library-path /tmp/weft /tmp/weft/weft" % loader


class Server:
    """A weft that listens on a port of its own; its first line has the port."""

    running = []

    def __init__(self, command):
        self.process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        Server.running.append(self.process)
        line = self.process.stderr.readline()
        listening = re.search(r"listening on .*:(\d+)", line)
        if not listening:
            raise Failed("weft does not listen: " + line)
        self.port = listening[1]

    def end(self, timeout=30):
        """Its status and output, once it is done."""
        try:
            stdout, stderr = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            stdout, _ = self.process.communicate()
            raise Failed("weft hangs; it printed %s" % stdout) from None
        return self.process.returncode, stdout + stderr

    @classmethod
    def end_all(cls):
        """Ends those that nobody has ended: how many."""
        left = [process for process in cls.running if process.poll() is None]
        for process in left:
            process.kill()
            process.communicate()
        cls.running.clear()
        return len(left)


def records(output, kind):
    """The JSON lines of one kind in what weft printed."""
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [line for line in lines if line["kind"] == kind]


def monitor(weft, command, capture):
    """The lines of `weft dissect` or `weft lint`."""
    options = ["--all"] if command == "lint" else []
    done = subprocess.run([weft, command, "--json", *options, capture], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode > 1:
        raise Failed("%s cannot be read: %s" % (capture, done.stderr))
    return [json.loads(line) for line in done.stdout.splitlines()]


def findings(weft, capture):
    """What the monitor finds in a capture at warning level and above."""
    return [line for line in monitor(weft, "lint", capture) if line["kind"] == "finding" and line["severity"] != "note"]
