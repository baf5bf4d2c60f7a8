"""The table of the captures: the scenarios, and the conditions that a capture can have.

The name of a capture is that of a scenario, and then any number of conditions, for example
`nvme-basic` or `nvme-basic+loss+crc`. To add a scenario, add a row to `SCENARIOS`, and its scripts
to the folder `scenarios`. All scripts are written with their arguments. This module only describes
captures: `make-captures` takes them.
"""
import ipaddress
from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Protocol:
    """A storage protocol: how to prepare both guests, and the trace events with its commands."""
    target: str                 # the script that prepares the target, once for each pair of guests
    initiator: str              # the command that loads the initiator's modules; also once
    target_events: str
    initiator_events: str


RPC_TARGET = (
    "sunrpc:svc_process sunrpc:rpc_stats_latency rpcrdma:svcrdma_decode_rqst rpcrdma:svcrdma_decode_rseg"
    " rpcrdma:svcrdma_decode_wseg rpcrdma:svcrdma_encode_wseg rpcrdma:svcrdma_post_read_chunk"
    " rpcrdma:svcrdma_post_write_chunk rpcrdma:svcrdma_post_reply_chunk rpcrdma:svcrdma_err_vers"
    " rpcrdma:svcrdma_err_chunk"
)
RPC_INITIATOR = (
    "sunrpc:rpc_request sunrpc:rpc_stats_latency rpcrdma:xprtrdma_inline_thresh rpcrdma:xprtrdma_connect"
    " rpcrdma:xprtrdma_disconnect rpcrdma:xprtrdma_chunk_read rpcrdma:xprtrdma_chunk_reply"
    " rpcrdma:xprtrdma_chunk_write rpcrdma:xprtrdma_marshal rpcrdma:xprtrdma_reply"
    " rpcrdma:xprtrdma_decode_seg rpcrdma:xprtrdma_cb_call rpcrdma:xprtrdma_cb_reply"
)
SCSI_INITIATOR = (
    "scsi:scsi_dispatch_cmd_start scsi:scsi_dispatch_cmd_done scsi:scsi_dispatch_cmd_error"
    " scsi:scsi_dispatch_cmd_timeout"
)
PROTOCOLS = {
    "nvme": Protocol("nvme-target.sh", "modprobe nvme-rdma", "nvmet:*",
                     "nvme:nvme_setup_cmd nvme:nvme_complete_rq nvme:nvme_async_event"),
    "nfs": Protocol("nfs-server.sh", "modprobe rpcrdma && modprobe nfsv3 && modprobe nfsv4", RPC_TARGET, RPC_INITIATOR),
    "iser": Protocol("iser-target.sh", "modprobe ib_iser && modprobe sd_mod && modprobe sg", "target:*",
                     SCSI_INITIATOR + " iscsi:iscsi_dbg_session iscsi:iscsi_dbg_eh"),
    "srp": Protocol("srp-target.sh", "modprobe ib_srp && modprobe sd_mod && modprobe sg", "target:*", SCSI_INITIATOR),
    "smb": Protocol("smb-server.sh", "sh /host/s/smb-load.sh", "",
                    "cifs:smb3_cmd_enter cifs:smb3_cmd_done cifs:smb3_cmd_err cifs:smb3_read_enter"
                    " cifs:smb3_read_done cifs:smb3_write_enter cifs:smb3_write_done cifs:smb3_reconnect"),
}


@dataclass(frozen=True)
class Scenario:
    name: str
    protocols: tuple            # keys of PROTOCOLS
    run: str                    # the script that the initiator runs during the capture
    before: str = ""            # a script for the target before each capture
    after: str = ""             # a script for the target after each capture; it undoes `before`
    image: str = "image"        # the file with the contents of the guests' image
    ip: tuple = (4,)            # the IP versions that the scenario supports; the first is the default
    limit: int = 120            # the initiator's time limit in seconds
    delay: int = 0              # delay in ms of all packets that the initiator sends
    # (guest, regular expression): a line that the records must have. Without it, the scenario did
    # not do what its name promises.
    records: tuple = ()
    is_user_space: bool = False  # whether the initiator is a program: then the kernel records less
    is_default: bool = False    # whether `make-captures` takes it if no name is given


NVME, NFS, ISER, SRP, SMB = [(name,) for name in ("nvme", "nfs", "iser", "srp", "smb")]
BOTH = (4, 6)
# iSER: a WRITE with data that the target did not request, besides the data in the command.
UNSOLICITED = (("initiator", r"unsol_data [1-9]"),)
# NFS: a call of the server arrives at the client, and the client replies.
RECALL = (("target", r"^rpc_stats_latency .*\bCB_RECALL\b"), ("initiator", r"^xprtrdma_cb_reply "))
# siw can miss the first message of a connection if it arrives too early. The delay avoids it.
SMB_DELAY = 20

SCENARIOS = [
    Scenario("nvme-discover", NVME, "nvme-discover.sh", ip=BOTH, is_default=True),
    Scenario("nvme-basic", NVME, "nvme-basic.sh", ip=BOTH, is_default=True),
    Scenario("nvme-2q", NVME, "nvme-2q.sh", ip=BOTH, is_default=True),
    Scenario("nvme-inline16k", NVME, "nvme-small.sh 512 8192 16384 20480", ip=BOTH, is_default=True,
             before="nvme-inline.sh 16384", after="nvme-inline.sh 4096"),
    Scenario("nvme-small", NVME, "nvme-small.sh 512 4096 16384 32768 65536", ip=BOTH),
    Scenario("nvme-event", NVME, "nvme-event.sh", ip=BOTH, after="nvme-namespace.sh remove",
             records=(("initiator", r"^nvme_async_event "),)),
    Scenario("nfs3", NFS, "nfs-run.sh 3", is_default=True),
    Scenario("nfs41", NFS, "nfs-run.sh 4.1", is_default=True),
    Scenario("nfs41-callback", NFS, "nfs-callback.sh 4.1", records=RECALL),
    Scenario("nfs41-par", NFS, "nfs-parallel.sh"),
    Scenario("nfs42", NFS, "nfs-run.sh 4.2"),
    # A call in a Position-Zero Read chunk: the message has no RPC call of its own (RDMA_NOMSG).
    Scenario("nfs42-long", NFS, "nfs-long.sh", before="nfs-ext.sh",
             records=RECALL + (("target", r"^svcrdma_decode_rqst .*\bRDMA_NOMSG\b"),)),
    Scenario("iser", ISER, "iser-run.sh Yes Yes", is_default=True),
    Scenario("iser-r2t", ISER, "iser-run.sh No Yes", is_default=True),
    Scenario("iser-unsolicited", ISER, "iser-run.sh Yes No", records=UNSOLICITED,
             before="iser-parameter.sh InitialR2T No", after="iser-parameter.sh InitialR2T Yes"),
    Scenario("iser-libiscsi", ISER, "iser-libiscsi.sh", is_user_space=True),
    Scenario("mix", NVME + NFS + ISER, "mix.sh", limit=240),
    Scenario("srp", SRP, "srp.sh", ip=(6,)),
    Scenario("smb-rw", SMB, "smb.sh", image="image-smb", delay=SMB_DELAY),
    # ksmbd does not answer the last request, so the scenario never ends.
    Scenario("smb-ops", SMB, "smb-ops.sh", image="image-smb", delay=SMB_DELAY, limit=40),
]

# The fields of `Capture` that each condition sets.
CONDITIONS = {
    "crc": {"variant": "crc"},
    "p2p": {"variant": "p2p"},
    "ip6": {"ip": 6},
    "loss": {"loss": 3},
    "mtu576": {"mtu": 576},
    "mtu1280": {"mtu": 1280},
    "mtu9000": {"mtu": 9000},
}
DEFAULT_MTU = 1500
IPV6_MINIMUM_MTU = 1280
# The builds of siw that request CRC. The target accepts what the initiator requests.
VARIANTS = {"stock": False, "crc": True, "p2p": False}
ADDRESSES = {
    4: {"target": ipaddress.ip_address("10.1.0.1"), "initiator": ipaddress.ip_address("10.1.0.2")},
    6: {"target": ipaddress.ip_address("fd00::1"), "initiator": ipaddress.ip_address("fd00::2")},
}


class BadName(Exception):
    """The name of a capture is not in the table, or its conditions exclude each other."""


@dataclass(frozen=True)
class Capture:
    """A scenario with its conditions."""
    name: str
    scenario: Scenario
    variant: str = "stock"      # the initiator's build of siw
    ip: int = 4
    loss: int = 0               # percent of the packets, at each of three places; see network.sh
    mtu: int = DEFAULT_MTU

    @property
    def guests(self):
        """Captures with the same value can use the same pair of guests."""
        return self.scenario.image, self.variant, self.ip

    def conditions(self):
        """What `compare` has to know about the capture: a part of truth-NAME.json."""
        return {
            "protocols": list(self.scenario.protocols),
            "variant": self.variant,
            "crc": VARIANTS[self.variant],
            "ip": self.ip,
            "loss": self.loss,
            "mtu": self.mtu,
            "is_user_space": self.scenario.is_user_space,
            "records": [list(record) for record in self.scenario.records],
        }

    def endpoints(self):
        return {guest: str(address) for guest, address in ADDRESSES[self.ip].items()}


def parse(name, variant=None):
    """Returns the capture with this name. `variant` is the build of siw if the name selects none.
    Raises BadName."""
    base, *conditions = name.split("+")
    scenario = next((scenario for scenario in SCENARIOS if scenario.name == base), None)
    if scenario is None:
        raise BadName("unknown scenario %s" % base)
    found = {}
    for condition in conditions:
        if condition not in CONDITIONS:
            raise BadName("%s: unknown condition %s; use one of: %s" % (name, condition, " ".join(CONDITIONS)))
        for field, value in CONDITIONS[condition].items():
            if field in found:
                raise BadName("%s: %s and an earlier condition exclude each other" % (name, condition))
            found[field] = value
    capture = replace(Capture(name, scenario, variant or "stock", scenario.ip[0]), **found)
    if capture.ip not in scenario.ip:
        raise BadName("%s: the scenario %s does not support IPv%d" % (name, base, capture.ip))
    if capture.ip == 6 and capture.mtu < IPV6_MINIMUM_MTU:
        raise BadName("%s: IPv6 needs an MTU of at least %d" % (name, IPV6_MINIMUM_MTU))
    return capture


def groups(captures):
    """Returns the captures as one list for each pair of guests, in the order of the first one."""
    found = {}
    for capture in captures:
        found.setdefault(capture.guests, []).append(capture)
    return list(found.values())


def default_names():
    return [scenario.name for scenario in SCENARIOS if scenario.is_default]
