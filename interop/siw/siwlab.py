"""Common code of the Python scripts of this folder: a guest with siw, and findings of the
monitor."""
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

# Deviations of siw from the RFCs: requirement -> behaviour of siw. Each one was compared manually
# with the text of the RFC. See README.md.
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


# siw connects to itself within the guest, with a listener, both roles, data in both directions, and
# any revision of MPA. weft takes no part.
ANSWERS = """siwprobe server -p 7999 -e -t 20 & s=$!
until grep -q ':1F3F .* 0A ' /proc/net/tcp; do kill -0 $s || exit 1; usleep 50000; done
siwprobe client -a 10.0.2.15 -p 7999 send:16 recv && wait $s"""
# Time limit for this test, in seconds. The test takes less than one second, or a few seconds on a
# busy machine.
ANSWERS_WITHIN = 60
# Messages that a kernel prints if it crashes, or if one of its threads crashes.
LAST_WORDS = re.compile(r"kernel BUG at|BUG:|Oops|general protection|Kernel panic|stack guard|refcount_t:|blocked for more than")


class Failed(Exception):
    """An expected event did not happen. The message names the event."""


def terminated(*_):
    """Exits, which stops the guest first. timeout(1) sends two signals, and the second signal
    must not interrupt the stop."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    sys.exit(143)


signal.signal(signal.SIGTERM, terminated)


def add_kernel(parser):
    """Adds the option that selects the kernel of the guests."""
    parser.add_argument("--kernel", default="6.1", metavar="K", help="the kernel of each guest, with its siw: 5.10, 6.1 (default) or 6.12")


def free_port():
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        return s.getsockname()[1]


def call(*arguments, timeout=150):
    """Runs a command of run-siw-guest. Returns its status and output."""
    done = subprocess.run([GUEST, *arguments], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, timeout=timeout)
    return done.returncode, done.stdout


def until(holds, seconds, otherwise):
    """Waits until the condition `holds` is true."""
    end = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > end:
            raise Failed(otherwise)
        time.sleep(0.1)


class Guest:
    """A running guest. `port` of the host's loopback interface leads to port 7174 of the guest."""

    def __init__(self, kernel, variant, *options):
        self.port, self.folder = free_port(), None
        done = subprocess.run(
            [GUEST, "start", "--kernel", kernel, "--variant", variant, "--hostfwd", "%d:7174" % self.port, *options],
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        if done.returncode:
            print("no guest with siw %s: %s" % (variant, done.stderr[-500:]), file=sys.stderr)
            sys.exit(4)
        self.folder = done.stdout.strip()

    def run(self, command, timeout=60):
        """Runs a shell line. Returns its status and output."""
        return call("exec", "--timeout", str(timeout), self.folder, "--", command, timeout=timeout + 30)

    def start(self, command):
        """Starts a shell line. Returns its job."""
        status, job = call("exec", "-d", self.folder, "--", command)
        if status:
            raise Failed("the guest starts nothing: " + job)
        return job.strip()

    def serve(self, command):
        """Starts a shell line that listens on port 7174, and waits until it listens. Returns its
        job."""
        status, job = call("exec", "-d", "--ready-port", "7174", self.folder, "--", command)
        if status:
            raise Failed("nothing listens in the guest: " + job)
        return job.strip()

    def wait(self, job, timeout=60):
        return call("wait", "--timeout", str(timeout), self.folder, job, timeout=timeout + 30)

    def output(self, job):
        """Returns the output of a job so far."""
        return call("output", self.folder, job)[1]

    def answers(self):
        """Returns whether siw in the guest can still connect to itself."""
        return self.run(ANSWERS, timeout=ANSWERS_WITHIN)[0] == 0

    def last_words(self, keep):
        """Returns the first line on the console that shows a crash of the kernel, or None. Saves
        the console to the file `keep`."""
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
    """Copies weft and the libraries that it is linked with into the guest's memory. Returns the
    command that runs weft in the guest."""
    share = os.path.join(guest.folder, "share", "weft")
    os.makedirs(share)
    binary = os.path.join(share, "weft")
    # The guest does not need the symbols, and has little memory.
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
    """A weft process that listens on its own port. The first line of its output has the port."""

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
        """Waits until the process ends. Returns its status and output."""
        try:
            stdout, stderr = self.process.communicate(timeout=timeout)
        except subprocess.TimeoutExpired:
            self.process.kill()
            stdout, _ = self.process.communicate()
            raise Failed("weft hangs; it printed %s" % stdout) from None
        return self.process.returncode, stdout + stderr

    @classmethod
    def end_all(cls):
        """Ends all servers that still run. Returns their number."""
        left = [process for process in cls.running if process.poll() is None]
        for process in left:
            process.kill()
            process.communicate()
        cls.running.clear()
        return len(left)


def records(output, kind):
    """Returns the JSON lines of one kind in the output of weft."""
    lines = [json.loads(line) for line in output.splitlines() if line.startswith("{")]
    return [line for line in lines if line["kind"] == kind]


def monitor(weft, command, capture):
    """Returns the JSON lines of `weft dissect` or `weft lint`."""
    options = ["--all"] if command == "lint" else []
    done = subprocess.run([weft, command, "--json", *options, capture], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode > 1:
        raise Failed("%s cannot be read: %s" % (capture, done.stderr))
    return [json.loads(line) for line in done.stdout.splitlines()]


def findings(weft, capture):
    """Returns the monitor's findings in a capture at warning level and above."""
    return [line for line in monitor(weft, "lint", capture) if line["kind"] == "finding" and line["severity"] != "note"]
