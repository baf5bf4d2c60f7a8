"""exported.py CAPTURE EXPORT COMMANDS [TRUTH] - check what tshark reads in an export of weft.

EXPORT is the output of `weft export --upper-pdu CAPTURE`, and COMMANDS is the output of `weft io
--json CAPTURE`. The program checks:

- tshark finds the protocol in each packet, and no packet is malformed. The security blob of
  SMB2 is an exception: that of ksmbd is not what SPNEGO requires, and tshark reports a BER error
- each answered command has its messages in the export: with the XID (RPC), the message ID (SMB2),
  or as many responses as commands (NVMe, iSCSI)
- the replies to READ of NFS have the number of bytes that `weft io` lists, also where tshark calls
  the reply in CAPTURE malformed, because the data is in RDMA Writes
- if TRUTH is named: the data of the replies has the checksums that the client of NFS computed

The program prints a line with counts. Exit status: 0 if everything agrees, 1 otherwise.
"""
import collections
import json
import re
import subprocess
import sys

# Name of the dissector in the export -> the protocol in the column frame.protocols.
PROTOCOLS = {"rpc": "rpc", "smb2_smb_direct": "smb2", "nvme-tcp": "nvme-tcp", "iscsi": "iscsi"}
FIELDS = [
    "frame.number", "frame.protocols", "_ws.malformed", "exported_pdu.prot_name", "exported_pdu.heur_prot_name",
    "rpc.xid", "rpc.msgtyp", "nfs.data", "nvme-tcp.type", "nvme.cqe.cid", "iscsi.opcode", "smb2.msg_id", "smb2.cmd",
    "_ws.expert.message",
]
CALL, REPLY = "0", "1"
CAPSULE_RESPONSE = "5"
SCSI_COMMAND, SCSI_RESPONSE = 0x01, 0x21
# The FNV-1a hash of 64 bits, as in interop/storage/src/ulptool.c.
FNV_START, FNV_PRIME = 0xCBF29CE484222325, 0x100000001B3

problems = []


def tshark(path, fields, *options):
    """The fields of each packet. An empty field is an empty text."""
    command = ["tshark", "-r", path, *options, "-T", "fields"]
    for field in fields:
        command += ["-e", field]
    run = subprocess.run(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, check=False)
    errors = [line for line in run.stderr.splitlines() if "Running as user" not in line]
    if run.returncode or errors:
        sys.exit(f"{path}: tshark: status {run.returncode}, {errors[:3]}")
    rows = [line.split("\t") for line in run.stdout.splitlines()]
    return [dict(zip(fields, row)) for row in rows]


def fnv(data):
    value = FNV_START
    for byte in data:
        value = ((value ^ byte) * FNV_PRIME) & 0xFFFFFFFFFFFFFFFF
    return f"{value:016x}"


def numbers(text):
    """The values of a field that can occur more than once in a packet."""
    return [int(value, 0) for value in text.split(",") if value]


def check_packets(packets):
    for packet in packets:
        number = packet["frame.number"]
        name = packet["exported_pdu.prot_name"] or packet["exported_pdu.heur_prot_name"]
        protocol = PROTOCOLS.get(name)
        if protocol is None:
            problems.append(f"packet {number}: unexpected dissector {name!r}")
        elif protocol not in packet["frame.protocols"].split(":"):
            problems.append(f"packet {number}: tshark finds no {protocol}, only {packet['frame.protocols']}")
        is_blob = packet["smb2.msg_id"] and packet["_ws.expert.message"].startswith("BER Error")
        if packet["_ws.malformed"] and not is_blob:
            problems.append(f"packet {number}: {packet['_ws.malformed']}")


def check_rpc(capture, packets, commands, truth):
    """Returns the number of replies to READ."""
    calls, replies = set(), {}
    for packet in packets:
        if packet["rpc.msgtyp"]:
            xid = numbers(packet["rpc.xid"])[0]
            if packet["rpc.msgtyp"].split(",")[0] == CALL:
                calls.add(xid)
            else:
                replies[xid] = bytes.fromhex(packet["nfs.data"].split(",")[0].replace(":", ""))
    reads = {}
    for command in commands:
        xid = command["id"]
        if xid not in calls or xid not in replies:
            problems.append(f"XID {xid:#x} ({command['command']}): the call or the reply is not in the export")
        elif command["command"] == "READ" and not command["error"]:
            reads[xid] = replies[xid]
            if len(replies[xid]) != command["bytes"]:
                problems.append(f"XID {xid:#x}: the reply has {len(replies[xid])} bytes, not {command['bytes']}")
    malformed = tshark(capture, ["rpc.xid"], "-Y", "nfs && _ws.malformed")
    for xid in {number for row in malformed for number in numbers(row["rpc.xid"])}:
        if xid not in reads:
            problems.append(f"XID {xid:#x}: malformed in the capture, and no reply to READ in the export")
    if reads and not malformed:
        problems.append("tshark calls no reply in the capture malformed, so the export shows nothing new")
    if truth:
        with open(truth, encoding="utf-8") as file:
            wanted = set(re.findall(r"pread \S+ off \d+ len \d+ -> \d+ fnv ([0-9a-f]{16})", file.read()))
        missing = wanted - {fnv(data) for data in reads.values()}
        if missing or not wanted:
            problems.append(f"no reply to READ has the checksums {sorted(missing)} of {len(wanted)}")
    return len(reads)


def check_smb(packets, commands):
    sent = collections.Counter(number for packet in packets for number in numbers(packet["smb2.msg_id"]))
    for command in commands:
        # A request and a response.
        if sent[command["id"]] < 2:
            problems.append(f"message ID {command['id']} ({command['command']}): {sent[command['id']]} of 2 messages")


def check_nvme(packets, commands):
    responses = sum(packet["nvme-tcp.type"] == CAPSULE_RESPONSE for packet in packets)
    if responses < len(commands):
        problems.append(f"{responses} responses of NVMe for {len(commands)} answered commands")
    if any(packet["nvme-tcp.type"] == CAPSULE_RESPONSE and not packet["nvme.cqe.cid"] for packet in packets):
        problems.append("a response of NVMe without the identifier of its command")


def check_iscsi(packets, commands):
    opcodes = collections.Counter(number for packet in packets for number in numbers(packet["iscsi.opcode"]))
    if not opcodes[SCSI_COMMAND] or not opcodes[SCSI_RESPONSE]:
        problems.append(f"no command or no response of SCSI in {dict(opcodes)}")
    if sum(opcodes.values()) < len(commands):
        problems.append(f"{sum(opcodes.values())} PDUs of iSCSI for {len(commands)} answered commands")


def main():
    if len(sys.argv) not in (4, 5):
        sys.exit(__doc__)
    capture, export, listed = sys.argv[1:4]
    packets = tshark(export, FIELDS)
    if not packets:
        sys.exit(f"{export}: no packets")
    answered = collections.defaultdict(list)
    with open(listed, encoding="utf-8") as file:
        for line in file:
            command = json.loads(line)
            if command["kind"] == "command" and command["state"] == "answered":
                answered[command["protocol"]].append(command)
    check_packets(packets)
    reads = 0
    checks = {"smb_direct": check_smb, "nvme_rdma": check_nvme, "iser": check_iscsi}
    for protocol, commands in answered.items():
        if protocol == "rpcrdma":
            reads = check_rpc(capture, packets, commands, sys.argv[4] if len(sys.argv) == 5 else None)
        else:
            checks[protocol](packets, commands)
    if not answered:
        problems.append("weft io lists no answered command")
    for problem in problems[:20]:
        print(f"{export}: {problem}", file=sys.stderr)
    commands = sum(map(len, answered.values()))
    print(f"{len(packets)} packets, {commands} answered commands, {reads} replies to READ")
    sys.exit(1 if problems else 0)


main()
