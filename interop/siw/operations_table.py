"""The scenarios of `operations`: the requests of a side, and the results that the RFCs require.

Sizes are in bytes. Operations have the names of siwprobe and `weft probe`. A Terminate is (layer,
type, code): RFC 5040 Figure 9 for layer 0, RFC 5041 section 7.2 for layer 1. `provoked` names the
requirements that the requesting side violates on purpose.
"""
from dataclasses import dataclass, field

from siwlab import EXCHANGED

MIB = 1 << 20


@dataclass
class Scenario:
    name: str
    asks: str  # "siw" or "weft": the side that connects and requests the operations
    ops: list
    siw: str = ""  # options of siwprobe
    weft: list = field(default_factory=list)  # options of weft probe
    theirs: list = field(default_factory=list)  # operations of the other side
    variant: str = "stock"
    echo: bool = False
    refused: int = 0  # number of operations at the end that have no effect
    terminate: tuple = None  # (side, code): the Terminate that the RFCs require
    on_the_wire: tuple = None  # the sent Terminate: the same, except if siw departs from the RFCs
    departs: str = ""  # how siw departs from the RFCs
    provoked: tuple = ()
    region: int = MIB
    weft_status: int = 0
    siw_statuses: tuple = (0,)

    def description(self):
        who = "%s asks %s" % (self.asks, "siw" if self.asks == "weft" else "weft")
        sent = lambda terminate: "Terminate %d/%d/%02x of %s" % (*terminate[1], terminate[0]) if terminate else "no Terminate"
        end = "  -> " + sent(self.terminate) if self.terminate else ""
        if self.departs:
            end += ", known: " + sent(self.on_the_wire)
        return "%s: %s%s" % (who, " ".join(self.ops), end)


VARIANTS = ("stock", "mpa1")
SCENARIOS = []


def both(name, ops, *, large=False, theirs=(), echo=False):
    """Adds scenarios in both directions, in which nothing is refused."""
    size, siw, weft = (16 * MIB, "-m 16777216 -R 16777216 -r 2", ["--region", "16777216", "--room", "16777216", "--receives", "2"]) \
        if large else (MIB, "", [])
    for who in ("siw", "weft"):
        if echo:
            siw, weft = ("-e", []) if who == "weft" else ("", ["--echo"])
        SCENARIOS.append(Scenario("%s-by-%s" % (name, who), who, ops, siw=siw, weft=weft, theirs=list(theirs), echo=echo, region=size))


def by_siw(name, ops, code, *, weft=(), siw="", provoked=(), variant="stock", region=MIB):
    """Adds a scenario: siw sends the requests, and weft refuses the last operation before `end`."""
    terminate = ("weft", code)
    SCENARIOS.append(Scenario(
        name + "-by-siw", "siw", ops, siw=siw, weft=list(weft), refused=2, terminate=terminate, on_the_wire=terminate, provoked=provoked,
        weft_status=1, siw_statuses=(0, 4), variant=variant, region=region))


def by_weft(name, ops, code, *, siw="", weft=(), provoked=(), variant="stock", sends=None, departs=""):
    """Adds a scenario: weft sends the requests, and siw refuses the last operation before `end`.
    If siw departs from the RFCs, it `sends` another Terminate, and `departs` describes this."""
    terminate = ("siw", code)
    SCENARIOS.append(Scenario(
        name + "-by-weft", "weft", ops, siw=siw, weft=list(weft), refused=2, terminate=terminate,
        on_the_wire=("siw", sends) if sends else terminate, departs=departs, provoked=provoked, weft_status=1, siw_statuses=(0, 4),
        variant=variant))


# --- every operation, with 0, 1 and 65,536 octets and with 16 MiB
both("sends", ["send:0", "recv", "send:1", "recv", "send:65536", "recv", "sendse:0", "recv", "sendse:65536", "recv"], echo=True)
both("writes", ["write:0", "write:1", "write:65536", "write:65536:65539", "write:1:1048575"])
both("reads", ["read:0", "read:1", "read:65536", "read:65536:65539", "read:1:1048575"])
both("send-invalidates", ["sendinv:0"])
both("send-invalidates-65536", ["sendinv:65536"])
both("send-solicited-invalidates", ["sendseinv:1"])
both("large-send", ["send:16777216"], large=True)
both("large-write", ["write:16777216"], large=True)
both("large-read", ["read:16777216"], large=True)
both("bursts", ["burst:write:5000:50", "burst:send:3000:12", "burst:read:9000:40"])
# The listening side sends requests, too, but nothing before the first message of the other side.
both("both-ways", ["send:1", "recv", "recv"],
     theirs=["recv", "write:10:5", "read:300:7", "write:70000:1000", "send:7", "sendse:9"])
# An operation of 0 octets does not refer to memory, so STag and TO are not checked (RFC 5041
# section 5.1, RFC 5040 section 5.2.1).
both("nothing-with-a-bad-stag", ["write:0:0:11259648", "read:0:0:11259648", "write:5"])

# --- refusals by weft: RFC 5041 sections 7.1 and 7.2 apply to data that DDP places, RFC 5040
# section 7.2 and Figure 9 to everything else
by_siw("write-bad-stag", ["writebadkey:100", "end"], (1, 1, 0x00), provoked=("DDP-4.2-5",))
by_siw("write-bad-key", ["write:100:0:1", "end"], (1, 1, 0x00), provoked=("DDP-4.2-5",))
by_siw("write-out-of-bounds", ["writeoob:100", "end"], (1, 1, 0x01))
by_siw("write-wraps", ["writewrap:100", "end"], (1, 1, 0x03))
# "The STag has an associated buffer that allows Placement of the payload" is the second check, and
# 02 is the second number.
by_siw("write-no-right", ["write:100", "end"], (1, 1, 0x02), weft=["--rights", "r"], provoked=("DDP-4.2-5",))
by_siw("write-after-invalidation", ["sendinv:9", "write:10", "end"], (1, 1, 0x00), provoked=("DDP-4.2-5",))
by_siw("read-bad-stag", ["readbadkey:64", "end"], (0, 1, 0x00))
by_siw("read-out-of-bounds", ["readoob:64", "end"], (0, 1, 0x01))
by_siw("read-wraps", ["readwrap:64", "end"], (0, 1, 0x04), provoked=("RDMAP-5.2.1-16",))
by_siw("read-no-right", ["read:64", "end"], (0, 1, 0x02), weft=["--rights", "w"])
by_siw("send-too-long", ["send:70000", "end"], (1, 2, 0x05))
by_siw("send-no-receive", ["send:100", "end"], (1, 2, 0x02), weft=["--receives", "0"])
# An STag that does not exist is not valid (RFC 5040 section 7.2, check 4 of Sends with Invalidate).
by_siw("invalidates-stag-0", ["sendinvz:9", "end"], (0, 1, 0x00), provoked=("RDMAP-4.1-15", "RDMAP-5.3-18"))
by_siw("invalidates-bad-stag", ["sendinv:9:0:11259648", "end"], (0, 1, 0x00), provoked=("RDMAP-4.1-15", "RDMAP-5.3-18"))
# Revision 1 does not negotiate a number of Reads. Read Requests beyond the IRD have an MSN after
# the last available buffer (RFC 5041 7.1, check 5). A Read of 16 MiB is longer than the buffers of
# TCP. So weft still answers the first Read when the second arrives, also if the guest is slow.
by_siw("reads-beyond-ird", ["burst:read:16777216:16", "end"], (1, 2, 0x03), siw="-m 16777216",
       weft=["--ird", "1", "--region", "16777216"], variant="mpa1", region=16 * MIB)

# --- refusals by siw
by_weft("write-bad-stag", ["writebadkey:100", "end"], (1, 1, 0x00))
by_weft("write-bad-key", ["write:100:0:1", "end"], (1, 1, 0x00))
by_weft("write-out-of-bounds", ["writeoob:100", "end"], (1, 1, 0x01))
by_weft("write-before-the-region", ["write:16:18446744073709551608", "end"], (1, 1, 0x01))
by_weft("write-wraps", ["writewrap:100", "end"], (1, 1, 0x03), sends=(0, 1, 0x00),
        departs="siw answers a Write that wraps with DDP's Local Catastrophic Error, with Layer and EType exchanged (RFC 5041 7.2: TO wrap)")
# RFC 5041 7.2 has no separate number for a missing right, so Invalid STag is as correct as weft's
# 02.
by_weft("write-no-right", ["write:100", "end"], (1, 1, 0x00), siw="-A lr")
by_weft("write-after-invalidation", ["sendinv:9", "write:10", "end"], (1, 1, 0x00))
by_weft("read-bad-stag", ["readbadkey:64", "end"], (0, 1, 0x00), sends=(1, 0, 0x00), departs=EXCHANGED)
by_weft("read-out-of-bounds", ["readoob:64", "end"], (0, 1, 0x01), sends=(1, 0, 0x01), departs=EXCHANGED)
by_weft("send-too-long", ["send:70000", "end"], (1, 2, 0x05), sends=(2, 1, 0x02),
        departs="siw answers a Send that is too long with No Buffer Available, with Layer and EType exchanged (RFC 5041 7.2: 05)")
by_weft("send-no-receive", ["send:100", "end"], (1, 2, 0x02), siw="-r 0", sends=(2, 1, 0x02), departs=EXCHANGED)
# "STag cannot be Invalidated" is the wording of RFC 5040 section 5.3.
by_weft("invalidates-stag-0", ["sendinvz:9", "end"], (0, 2, 0x09), sends=(2, 0, 0x09), departs=EXCHANGED)
by_weft("invalidates-bad-stag", ["sendinv:9:0:11259648", "end"], (0, 2, 0x09), sends=(2, 0, 0x09), departs=EXCHANGED)
# siw does not support RFC 7306, so the opcode is unexpected.
by_weft("fetchadd", ["fetchadd", "end"], (0, 2, 0x06), sends=(2, 0, 0x06), departs=EXCHANGED)
by_weft("immediate", ["immediate", "end"], (0, 2, 0x06), sends=(2, 0, 0x06), departs=EXCHANGED)

# As in `reads-beyond-ird` by siw above, revision 1 does not negotiate a number of Reads. siwprobe
# accepts one Read, and weft sends 16. The RFCs leave the code open: DDP's 02 or 03 (RFC 5041 7.2),
# or RDMAP's Catastrophic Error for the stream (the verbs draft), which siw sends.
by_weft("reads-beyond-ird", ["burst:read:60000:16", "end"], (0, 2, 0x07), siw="-i 1", weft=["--mpa-revision", "1", "--ord", "16"],
        sends=(2, 0, 0x07), departs=EXCHANGED)

# siw closes without a message. weft reports this, because its Read will never be answered.
SCENARIOS.append(Scenario(
    "read-wraps-by-weft", "weft", ["readwrap:64", "end"], refused=2, terminate=("siw", (0, 1, 0x04)), on_the_wire=("weft", (0, 2, 0x07)),
    departs="siw closes on a Read that wraps, and sends no Terminate (RFC 5040 7.2: TO wrap)", provoked=("RDMAP-5.2.1-16",),
    weft_status=1, siw_statuses=(0, 4)))
SCENARIOS.append(Scenario(
    "read-no-right-by-weft", "weft", ["read:64"], siw="-A lw", terminate=("siw", (0, 1, 0x02)),
    departs="siw answers a Read of a region that permits no Reads, and returns its bytes (RFC 5040 8.1.1, Figure 9: access rights violation)"))
