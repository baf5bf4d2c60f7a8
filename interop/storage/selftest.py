#!/usr/bin/env python3
"""selftest.py - tests of the scripts of this folder, without guests and without weft.

The tests check the table of the captures, the end of the network conditions, the scripts that a
scenario runs on the target, make-truth, the counts of wire.py, and the rules of compare. They use
synthetic records and captures. They do not check that a scenario works: only a capture shows it.
"""
import contextlib
import importlib.machinery
import importlib.util
import json
import os
import struct
import subprocess
import sys
import tempfile
import unittest
from unittest import mock

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, HERE)
sys.dont_write_bytecode = True
import scenarios_table as table  # noqa: E402
import wire  # noqa: E402


def script(name):
    """Imports a script whose name has no ending."""
    loader = importlib.machinery.SourceFileLoader(name.replace("-", "_"), os.path.join(HERE, name))
    module = importlib.util.module_from_spec(importlib.util.spec_from_loader(loader.name, loader))
    loader.exec_module(module)
    return module


compare, make_captures, make_truth = script("compare"), script("make-captures"), script("make-truth")


class Table(unittest.TestCase):
    def test_conditions_change_a_scenario(self):
        capture = table.parse("nvme-basic+loss+crc+ip6")
        self.assertEqual((capture.scenario.name, capture.loss, capture.variant, capture.ip, capture.mtu),
                         ("nvme-basic", 3, "crc", 6, 1500))
        self.assertTrue(capture.conditions()["crc"])

    def test_the_variant_is_for_names_that_select_none(self):
        self.assertEqual(table.parse("nfs3", "crc").variant, "crc")
        self.assertEqual(table.parse("nfs3+p2p", "crc").variant, "p2p")

    def test_srp_uses_ipv6_without_a_condition(self):
        self.assertEqual(table.parse("srp").ip, 6)

    def test_wrong_names_are_rejected(self):
        for name in ("nvme", "nvme-basic+fast", "iser+ip6", "nfs3+mtu576+mtu9000", "nfs3+crc+p2p", "nvme-basic+ip6+mtu576"):
            with self.assertRaises(table.BadName, msg=name):
                table.parse(name)

    def test_captures_are_grouped_by_image_variant_and_ip_version(self):
        names = ["nvme-basic", "nvme-basic+crc", "smb-rw", "nvme-basic+ip6", "nfs3+loss", "nfs3+mtu576", "srp", "nfs3+crc"]
        groups = [[capture.name for capture in group] for group in table.groups([table.parse(name) for name in names])]
        self.assertEqual(groups, [["nvme-basic", "nfs3+loss", "nfs3+mtu576"], ["nvme-basic+crc", "nfs3+crc"], ["smb-rw"],
                                  ["nvme-basic+ip6", "srp"]])

    def test_each_script_exists(self):
        for scenario in table.SCENARIOS:
            lines = [scenario.run, scenario.before, scenario.after]
            lines += [table.PROTOCOLS[key].target for key in scenario.protocols]
            for line in filter(None, lines):
                self.assertTrue(os.path.exists(os.path.join(HERE, "scenarios", line.split()[0])), line)

    def test_names_are_unique(self):
        self.assertEqual(len({scenario.name for scenario in table.SCENARIOS}), len(table.SCENARIOS))


class FakeGuest:
    """A guest that records the scripts that it gets. The scripts in `failing` fail."""

    def __init__(self, folder=None, failing=(), output=""):
        self.lines, self.folder, self.failing, self.output = [], folder, failing, output

    def script(self, line):
        self.lines.append(line)
        if any(line.startswith(text) for text in self.failing):
            raise make_captures.Failed(line)
        return self.output

    def attempt(self, command, timeout):
        self.lines.append((command, timeout))
        return 3, "output\n"

    def path(self, name):
        return os.path.join(self.folder, name)


STATISTICS = """qdisc netem 8001: dev eth0 root refcnt 2 limit 1000 loss 3%
 Sent 4000 bytes 70 pkt (dropped 2, overlimits 0 requeues 0)
 backlog 0b 0p requeues 0
qdisc ingress ffff: dev eth0 parent ffff:fff1 ----------------
 Sent 0 bytes 0 pkt (dropped 9, overlimits 0 requeues 0)
qdisc netem 8002: dev ifb0 root refcnt 2 limit 1000 loss 3%
 Sent 4000 bytes 70 pkt (dropped 5, overlimits 0 requeues 0)
"""


class Network(unittest.TestCase):
    def guests(self, **target):
        return {"target": FakeGuest(**target), "initiator": FakeGuest(output=STATISTICS)}

    def test_loss_is_at_three_places_and_ends(self):
        guests = self.guests()
        with make_captures.Network(guests, table.parse("smb-rw+loss")) as network:
            pass
        self.assertEqual(guests["target"].lines, ["network.sh set 1500 0 3 0", "network.sh reset"])
        self.assertEqual(guests["initiator"].lines, ["network.sh set 1500 20 3 3", "network.sh reset"])
        self.assertEqual(network.dropped, {"target": 0, "initiator": 7})

    def test_it_ends_after_a_failure_of_the_scenario(self):
        guests = self.guests()
        with self.assertRaises(ZeroDivisionError), make_captures.Network(guests, table.parse("nfs3+mtu576")):
            raise ZeroDivisionError
        self.assertEqual([guest.lines[-1] for guest in guests.values()], ["network.sh reset"] * 2)

    def test_it_ends_if_only_one_guest_has_it(self):
        guests = self.guests(failing=["network.sh set"])
        with self.assertRaises(make_captures.Failed), make_captures.Network(guests, table.parse("nfs3+loss")):
            self.fail("the block must not run")
        self.assertEqual([guest.lines[-1] for guest in guests.values()], ["network.sh reset"] * 2)

    def test_a_reset_that_fails_is_an_error_and_the_other_guest_is_reset(self):
        guests = self.guests(failing=["network.sh reset"])
        with self.assertRaises(make_captures.Failed), make_captures.Network(guests, table.parse("nfs3+loss")):
            pass
        self.assertEqual(guests["initiator"].lines[-1], "network.sh reset")


class Pairs(unittest.TestCase):
    """The pairs of guests that take_group uses, with a fake `take`."""

    def used(self, results, start=lambda: None):
        """The number of pairs, how many were stopped, and the failures, if the captures end so."""
        pairs, results = [], list(results)

        class Pair:
            def __init__(self, _):
                start()
                self.is_stopped = False
                pairs.append(self)

            def stop(self):
                self.is_stopped = True

        def take(*_):
            result = results.pop(0)
            if isinstance(result, Exception):
                raise result
            return result

        with open(os.devnull, "w", encoding="utf-8") as null, contextlib.redirect_stderr(null), \
                mock.patch.object(make_captures, "Pair", Pair), mock.patch.object(make_captures, "take", take):
            failed = make_captures.take_group([table.parse("nfs3")] * 3, "", "")
        return len(pairs), sum(pair.is_stopped for pair in pairs), failed

    def test_captures_share_a_pair(self):
        self.assertEqual(self.used([0, 0, 0]), (1, 1, 0))

    def test_a_pair_is_not_used_again_after_a_failure_or_an_early_end(self):
        self.assertEqual(self.used([make_captures.Failed("no"), 0, 0]), (2, 2, 1))
        self.assertEqual(self.used([1, 124, 0]), (3, 3, 0))

    def test_guests_that_do_not_start_fail_the_group(self):
        def start():
            raise make_captures.Failed("no guest")
        self.assertEqual(self.used([], start), (0, 0, 3))


# A run-siw-guest without guests. It logs its arguments. The scenario requests a script on the target.
FAKE = """#!/bin/sh
folder=$(dirname "$0")
command=$1; shift
case $command in
start)
    guest=$(mktemp -d "$folder/guest.XXXXXX"); mkdir "$guest/share"; echo "$guest"
    echo "start $*" >>"$folder/log"
    ;;
exec)
    shift 2; guest=$1; shift 2
    echo "$*" >>"$folder/log"
    case $* in
    *trace-off.sh) for file in trace.txt dmesg.txt counters.txt; do : >"$guest/share/$file"; done ;;
    *nfs-callback.sh*)
        echo '+ ls'; echo '= 0'
        echo 'nfs-append.sh /export/small' >"$guest/share/request"
        until [ -e "$guest/share/answer" ]; do sleep 0.05; done
        ;;
    *nfs-parallel.sh*) exit 1 ;;
    *'network.sh reset') echo 'qdisc netem 1: dev eth0'; echo ' Sent 1 bytes 1 pkt (dropped 4, overlimits 0)' ;;
    esac
    ;;
stop) echo stop >>"$folder/log"; rm -r "$1" ;;
esac
"""


class Program(unittest.TestCase):
    """make-captures with a fake run-siw-guest."""

    def run_program(self, *names, recording=None):
        """Returns the exit status, the log of the guests, and the truth files."""
        @contextlib.contextmanager
        def create(_, path):
            with open(path, "wb"):
                yield

        with tempfile.TemporaryDirectory() as folder, open(os.devnull, "w", encoding="utf-8") as null:
            guest, out = os.path.join(folder, "guest"), os.path.join(folder, "out")
            with open(guest, "w", encoding="utf-8") as file:
                file.write(FAKE)
            os.chmod(guest, 0o700)
            with mock.patch.object(make_captures, "GUEST", guest), \
                    mock.patch.object(sys, "argv", ["make-captures", out, *names]), \
                    mock.patch.object(make_captures, "recording", recording or create), \
                    contextlib.redirect_stdout(null), contextlib.redirect_stderr(null):
                status = make_captures.main()
            truths = {}
            for name in names:
                path = os.path.join(out, "truth-%s.json" % name)
                if os.path.exists(path):
                    with open(path, encoding="utf-8") as file:
                        truths[name] = json.load(file)
            with open(os.path.join(folder, "log"), encoding="utf-8") as file:
                return status, file.read().splitlines(), truths

    def test_a_capture_has_its_conditions_and_its_script_on_the_target(self):
        status, log, truths = self.run_program("nfs41-callback+loss", "nfs41+crc")
        self.assertEqual(status, 0)
        self.assertEqual(truths["nfs41-callback+loss"]["conditions"]["dropped"], {"target": 4, "initiator": 4})
        self.assertEqual(truths["nfs41-callback+loss"]["steps"], [{"command": "ls", "output": [], "status": 0}])
        self.assertTrue(truths["nfs41+crc"]["conditions"]["crc"])
        self.assertIn("sh /host/s/nfs-append.sh /export/small", log)
        self.assertEqual(log.count("stop"), 4)
        self.assertEqual([line.split("--variant ")[1].split()[0] for line in log if "--variant" in line], ["stock", "crc"])
        self.assertEqual(log.count("sh /host/s/network.sh reset"), 4)

    def test_the_target_is_prepared_once_for_each_pair(self):
        _, log, truths = self.run_program("nfs3", "nfs41")
        self.assertEqual((len(truths), log.count("sh /host/s/nfs-server.sh"), log.count("stop")), (2, 1, 2))

    def test_a_capture_that_fails_is_undone(self):
        @contextlib.contextmanager
        def broken(*_):
            raise make_captures.Failed("no capture")
            yield

        status, log, truths = self.run_program("iser-unsolicited+mtu576", recording=broken)
        self.assertEqual((status, truths), (1, {}))
        self.assertIn("sh /host/s/iser-parameter.sh InitialR2T Yes", log)
        self.assertEqual(log.count("sh /host/s/network.sh reset"), 2)
        self.assertEqual(log.count("stop"), 2)

    def test_a_scenario_may_fail_but_gets_no_successor(self):
        status, log, truths = self.run_program("nfs41-par", "nfs3")
        self.assertEqual((status, len(truths), log.count("stop")), (0, 2, 4))


class OnTarget(unittest.TestCase):
    def answer(self, request):
        with tempfile.TemporaryDirectory() as folder:
            initiator, target = FakeGuest(folder), FakeGuest()
            if request is not None:
                with open(os.path.join(folder, "request"), "w", encoding="utf-8") as file:
                    file.write(request)
            make_captures.answer(initiator, target)
            self.assertFalse(os.path.exists(os.path.join(folder, "request")))
            path = os.path.join(folder, "answer")
            if not os.path.exists(path):
                return None, target.lines
            with open(path, encoding="utf-8") as file:
                return file.read(), target.lines

    def test_a_request_runs_on_the_target(self):
        self.assertEqual(self.answer("nfs-append.sh /export/small\n"),
                         ("3\noutput\n", [("sh /host/s/nfs-append.sh /export/small", 60)]))

    def test_nothing_happens_without_a_request(self):
        self.assertEqual(self.answer(None), (None, []))

    def test_only_scripts_run(self):
        for request in ("reboot", "a.sh; reboot", "../a.sh", "a.sh $(reboot)"):
            text, lines = self.answer(request)
            self.assertTrue(text.startswith("127\n"), request)
            self.assertEqual(lines, [])


class Truth(unittest.TestCase):
    FILES = {
        "conditions": json.dumps({"endpoints": {"target": "fd00::1", "initiator": "fd00::2"}, "conditions": {"loss": 3}}),
        "out": "mounted\n+ ls /mnt\nfile\n= 0\n+ rm /mnt/none\n= 1\n",
        "target.trace": "            nfsd-12  [000] .....    3.500000: svc_process: addr=[fd00::2] xid=0x0a service=nfsd "
                        "vers=4 proc=NULL\n",
        "initiator.trace": "  kworker/0:1-9  [001] .....    3.100000: nvme_setup_cmd: nvme0: qid=1, cmdid=7, nsid=1, "
                           "flags=0x0, meta=0x0, cmd=(nvme_cmd_write slba=8, len=7, ctrl=0x0, dsmgmt=0, reftag=0)\n",
        "target.dmesg": "",
        "initiator.dmesg": "[ 1.0] infiniband siw0: PD[3] siw_fastreg_mr: STag 0x0000ab01\n"
                           "[ 1.1] infiniband siw0: PD[3] siw_invalidate_stag: STag 0x0000ab01 now invalid\n"
                           "[ 1.2] infiniband siw0: MEM[0x0000cd00] siw_dereg_mr: deregister MR\n[ 1.3] iser: message\n",
        "target.counters": "before:\nTcp: InSegs OutSegs\nTcp: 5 6\nafter:\nTcp: InSegs OutSegs\nTcp: 5 9\n",
        "initiator.counters": "",
    }

    def truth(self, without=None):
        with tempfile.TemporaryDirectory() as folder:
            for ending, text in self.FILES.items():
                if ending != without:
                    with open(os.path.join(folder, "x." + ending), "w", encoding="utf-8") as file:
                        file.write(text)
            subprocess.run([os.path.join(HERE, "make-truth"), "x", folder], check=True, stderr=subprocess.DEVNULL)
            with open(os.path.join(folder, "truth-x.json"), encoding="utf-8") as file:
                return json.load(file)

    def test_everything_is_in_the_truth(self):
        truth = self.truth()
        self.assertEqual(truth["endpoints"], {"target": "fd00::1", "initiator": "fd00::2"})
        self.assertEqual(truth["conditions"], {"loss": 3})
        self.assertEqual(truth["steps"], [{"text": "mounted"}, {"command": "ls /mnt", "output": ["file"], "status": 0},
                                          {"command": "rm /mnt/none", "output": [], "status": 1}])
        self.assertEqual(truth["trace"]["target"]["events"][0]["ev"], "svc_process")
        event = truth["trace"]["initiator"]["events"][0]
        self.assertEqual((event["op"], event["cmdid"], event["args"][:6]), ("nvme_cmd_write", "7", "slba=8"))
        self.assertEqual(truth["stags"]["initiator"], {"fast_registered": {"0000ab01": 1}, "invalidated": {"0000ab01": 1},
                                                       "deregistered": {"0000cd00": 1}, "registration_order": ["0000ab01"]})
        self.assertEqual(truth["kernel_log"]["initiator"], ["[ 1.3] iser: message"])
        self.assertEqual(truth["tcp_counters_during"]["target"], {"OutSegs": 3})

    def test_the_conditions_are_necessary(self):
        with self.assertRaises(subprocess.CalledProcessError):
            self.truth(without="conditions")


# The addresses of the synthetic captures.
ADDRESSES = {4: (bytes([10, 1, 0, 2]), bytes([10, 1, 0, 1])), 6: (bytes(15) + b"\2", bytes(15) + b"\1")}


class Segments:
    """A synthetic capture of one connection. The sides are 0 (initiator) and 1 (target)."""

    def __init__(self, version=4):
        self.version, self.frames = version, []
        self.next = [0xFFFFFFF0, 1000]  # the first sequence number is close to the wrap
        for side in (0, 1):
            self.send(side, b"", flags=wire.SYN)
            self.next[side] += 1

    def send(self, side, payload, flags=wire.ACK, again=0):
        """Sends a payload, or sends the last `again` bytes before it once more."""
        sequence = (self.next[side] - again) % wire.SEQUENCE
        ports = (4000, 4420) if side == 0 else (4420, 4000)
        tcp = struct.pack(">HHIIBBHHH", *ports, sequence, 0, 0x50, flags, 0, 0, 0) + payload
        source, destination = ADDRESSES[self.version][side], ADDRESSES[self.version][1 - side]
        if self.version == 4:
            packet = struct.pack(">BBHHHBBH", 0x45, 0, 20 + len(tcp), 0, 0, 64, 6, 0) + source + destination
        else:
            packet = struct.pack(">IHBB", 0x60000000, len(tcp), 6, 64) + source + destination
        kind = b"\x08\x00" if self.version == 4 else b"\x86\xdd"
        # Ethernet pads short frames.
        self.frames.append((bytes(12) + kind + packet + tcp).ljust(60, b"\0"))
        if not again:
            self.next[side] += len(payload)

    def start(self, crc):
        flags = wire.CRC if crc else 0
        self.send(0, wire.REQUEST + bytes([flags, 1, 0, 0]))
        self.send(1, wire.REPLY + bytes([flags, 1, 0, 0]))

    def read(self):
        with tempfile.NamedTemporaryFile() as file:
            file.write(struct.pack("<IHHIIII", 0xA1B2C3D4, 2, 4, 0, 0, 65536, 1))
            for frame in self.frames:
                file.write(struct.pack("<IIII", 0, 0, len(frame), len(frame)) + frame)
            file.flush()
            return wire.read(file.name)


def fpdu(ulpdu, crc):
    body = struct.pack(">H", len(ulpdu)) + ulpdu
    body += bytes(-len(body) % 4)
    return body + struct.pack("<I", wire.crc32c(body) if crc else 0)


class OnTheWire(unittest.TestCase):
    def test_crc32c_has_the_check_value_of_its_definition(self):
        self.assertEqual(wire.crc32c(b"123456789"), 0xE3069283)

    def test_each_fpdu_counts_by_its_crc(self):
        capture = Segments()
        capture.start(crc=True)
        damaged = bytearray(fpdu(b"damaged", True))
        damaged[4] ^= 1
        capture.send(0, fpdu(b"good", True) + bytes(damaged))
        capture.send(1, fpdu(b"none", False) + fpdu(b"incomplete", True)[:-1])
        counts = capture.read()
        self.assertEqual(counts.fpdus, {"good": 1, "bad": 1, "zero": 1})
        self.assertEqual((counts.connections, counts.crc_flags, counts.retransmissions, counts.missing), (1, {True}, 0, 0))
        self.assertEqual(counts.ip_versions, {4})

    def test_a_retransmission_counts_and_its_bytes_do_not(self):
        capture = Segments(6)
        capture.start(crc=False)
        data = fpdu(bytes(60), False)
        capture.send(0, data)
        capture.send(0, data[-8:], again=8)
        counts = capture.read()
        self.assertEqual((counts.retransmissions, counts.fpdus["zero"], counts.ip_versions), (1, 1, {6}))
        self.assertEqual(counts.largest_packet, 40 + 20 + len(data))

    def test_segments_in_another_order_are_no_retransmission(self):
        capture = Segments()
        capture.start(crc=False)
        capture.send(0, fpdu(bytes(60), False))
        capture.send(0, fpdu(bytes(90), False))
        capture.frames[-2:] = capture.frames[:-3:-1]
        counts = capture.read()
        self.assertEqual((counts.retransmissions, counts.missing, counts.fpdus["zero"]), (0, 0, 2))

    def test_missing_bytes_count(self):
        capture = Segments()
        capture.start(crc=False)
        capture.send(0, fpdu(bytes(60), False))
        capture.send(0, fpdu(bytes(90), False))
        del capture.frames[-2]
        self.assertEqual(capture.read().missing, 1)

    def test_markers_and_other_files_are_rejected(self):
        capture = Segments()
        capture.send(0, wire.REQUEST + bytes([wire.MARKERS, 1, 0, 0]))
        with self.assertRaises(ValueError):
            capture.read()
        with self.assertRaises(ValueError):
            list(wire.packets(b"no capture"))


def records(name, conditions=None, target=(), initiator=(), log=()):
    """The truth of a capture with these trace events (name, text) and messages of the initiator."""
    def events(pairs):
        return {"events": [{"ev": event, "text": text} for event, text in pairs]}
    truth = {
        "capture": name + ".pcap",
        "endpoints": {"target": "10.1.0.1", "initiator": "10.1.0.2"},
        "trace": {"target": events(target), "initiator": events(initiator)},
        "stags": {guest: {"fast_registered": {}, "invalidated": {}} for guest in ("target", "initiator")},
        "kernel_log": {"target": [], "initiator": list(log)},
    }
    if conditions is not None:
        truth["conditions"] = conditions
    return truth


def listed(name, parameters="", id=0, protocol="rpcrdma", sender="10.1.0.2:700", **changes):
    """A command of `weft io`."""
    command = {
        "kind": "command", "protocol": protocol, "initiator": sender, "command": name, "parameters": parameters, "id": id,
        "queue": None, "frame": 9, "state": "answered", "status": "NFS4_OK", "error": False, "expected_bytes": 0, "bytes": 0,
        "reads": 0, "writes": 0, "operations": [], "stags": [], "notes": [], "gap": False, "retransmissions": 0,
    }
    return {**command, **changes}


XID = 0x0000ABCD
SERVER = "10.1.0.1:20049"
CALL = [("svcrdma_decode_rqst", "cq.id=5 cid=64 xid=0x0000abcd vers=1 credits=128 proc=RDMA_MSG hdrlen=28"),
        ("svc_process", "addr=10.1.0.2 xid=0x0000abcd service=nfsd vers=4 proc=COMPOUND")]
CALLED = [("xprtrdma_reply", "task:00000001@00000000 xid=0x0000abcd credits=64"),
          ("rpc_stats_latency", "task:00000001@00000000 xid=0x0000abcd nfsv4 READ backlog=1 rtt=2 execute=3")]
CALLBACK = [("rpc_stats_latency", "task:00000009@00000003 xid=0x0000abcd nfs4_cbv1 CB_RECALL backlog=1 rtt=2 execute=3")]
CALLED_BACK = [("xprtrdma_cb_call", "peer=[10.1.0.1]:20049 xid=0x0000abcd"),
               ("xprtrdma_cb_reply", "peer=[10.1.0.1]:20049 xid=0x0000abcd")]


class Callbacks(unittest.TestCase):
    """A call of the client and a callback of the server, with the same XID."""
    READ = listed("READ", "SEQUENCE; PUTFH; READ", XID)
    RECALL = listed("CB_RECALL", "CB_SEQUENCE; CB_RECALL", XID, sender=SERVER)

    def compare(self, commands, target=(), initiator=()):
        return compare.compare(records("x", target=[*CALL, *target], initiator=[*CALLED, *initiator]), commands)

    def test_both_are_found(self):
        self.assertEqual(self.compare([self.RECALL, self.READ], CALLBACK, CALLED_BACK), (2, []))

    def test_a_callback_without_a_record_is_a_difference(self):
        _, found = self.compare([self.READ, self.RECALL])
        self.assertEqual(len(found), 1)
        self.assertIn("the guests have no record of it", found[0])

    def test_a_callback_that_weft_omits_is_a_difference(self):
        count, found = self.compare([self.READ], CALLBACK, CALLED_BACK)
        self.assertEqual((count, len(found)), (2, 1))
        self.assertIn("weft io does not list it", found[0])

    def test_a_call_is_not_a_callback(self):
        _, found = self.compare([self.READ, {**self.RECALL, "initiator": "10.1.0.2:700"}], CALLBACK, CALLED_BACK)
        self.assertEqual(len(found), 2)

    def test_its_name_and_its_reply_are_compared(self):
        wrong = listed("CB_GETATTR", "CB_SEQUENCE; CB_GETATTR", XID, sender=SERVER)
        self.assertEqual(len(self.compare([self.READ, wrong], CALLBACK, CALLED_BACK)[1]), 1)
        _, found = self.compare([self.READ, self.RECALL], CALLBACK, CALLED_BACK[:1])
        self.assertEqual(len(found), 1)
        self.assertIn("state is answered", found[0])

    def test_ipv6_addresses_have_brackets(self):
        rpc = compare.Rpc()
        rpc.target = "fd00::1"
        self.assertEqual(rpc.key(listed("CB_RECALL", "", 5, sender="[fd00::1]:20049")), rpc.callback_key(5))
        self.assertEqual(rpc.key(listed("READ", "", 5, sender="[fd00::2]:700")), 5)


INQUIRY = [("target_sequencer_start", "iqn.x -> LUN 000 tag 0x1 INQUIRY data_length     36 "
                                      "CDB 12 00 00 00 24 00 (TA:SIMPLE C:00)"),
           ("target_cmd_complete", "iqn.x <- LUN 000 tag 0x1 status GOOD (sense len 0)  INQUIRY data_length     36 "
                                   "CDB 12 00 00 00 24 00 (TA:SIMPLE C:00)")]
# The drivers print the tag 0x1 of a little-endian machine; on the wire it is 0x01000000.
ISER_INQUIRY = listed("INQUIRY", "lun 0", 0x01000000, "iser", status="GOOD", expected_bytes=36, bytes=36)


class Scsi(unittest.TestCase):
    def test_the_events_are_those_of_iser(self):
        for conditions in (None, {"protocols": ["iser"]}):
            self.assertEqual(compare.compare(records("x", conditions, INQUIRY), [ISER_INQUIRY]), (1, []))
            self.assertEqual(len(compare.compare(records("x", conditions, INQUIRY), [])[1]), 1)

    def test_the_events_are_those_of_srp(self):
        truth = records("x", {"protocols": ["srp"]}, INQUIRY)
        self.assertEqual(compare.compare(truth, []), (1, []))
        self.assertEqual(len(compare.compare(truth, [ISER_INQUIRY])[1]), 1)
        self.assertEqual(len(compare.compare(truth, [listed("INQUIRY", protocol="srp")])[1]), 1)

    def test_a_program_has_no_records_of_its_own(self):
        truth = records("x", {"protocols": ["iser"], "is_user_space": True}, INQUIRY)
        login = listed("Login Request", id=5, protocol="iser")
        self.assertEqual(compare.compare(truth, [login, ISER_INQUIRY]), (1, []))
        self.assertEqual(len(compare.compare(truth, [ISER_INQUIRY])[1]), 1)

    def test_its_stags_are_in_the_list_of_deregistered_ones(self):
        truth = records("x", {"protocols": ["iser"], "is_user_space": True}, INQUIRY)
        commands = [listed("Login Request", id=5, protocol="iser"), {**ISER_INQUIRY, "stags": [0xCD00]}]
        self.assertEqual(len(compare.compare(truth, commands)[1]), 1)
        truth["stags"]["initiator"]["deregistered"] = {"0000cd00": 1}
        self.assertEqual(compare.compare(truth, commands), (1, []))

    def test_a_kernel_records_its_logins(self):
        truth = records("x", {"protocols": ["iser"]}, INQUIRY)
        _, found = compare.compare(truth, [listed("Login Request", id=5, protocol="iser"), ISER_INQUIRY])
        self.assertEqual(len(found), 1)


class Nvme(unittest.TestCase):
    """A registered STag that no command has is a difference, unless other protocols register memory."""
    COMMAND = {"ev": "nvme_setup_cmd", "qid": "0", "cmdid": "3", "op": "nvme_admin_keep_alive", "args": ""}

    def differences(self, protocols):
        truth = records("x", {"protocols": protocols})
        truth["trace"]["initiator"]["events"].append(self.COMMAND)
        truth["stags"]["initiator"]["fast_registered"] = {"0000ab01": 1}
        command = listed("Keep Alive", id=3, protocol="nvme_rdma", queue=0, state="not_answered", status=None)
        return compare.compare(truth, [command])[1]

    def test_a_stag_without_a_command(self):
        self.assertEqual(self.differences(["nvme"]), ["STag 0x0000ab01 is registered, but no command has it"])
        self.assertEqual(self.differences(["nvme", "nfs"]), [])


class Records(unittest.TestCase):
    def missing(self, pattern, **changes):
        return compare.missing_records(records("x", {"records": [["initiator", pattern]]}, **changes))

    def test_a_required_line_can_be_an_event_or_a_message(self):
        pattern = dict(table.parse("iser-unsolicited").scenario.records)["initiator"]
        message = "[  479.0] iser: iscsi_iser_task_xmit: cmd [itt f total 65536 imm 8192 unsol_data %s"
        self.assertEqual(self.missing(pattern, log=[message % "57344"]), [])
        self.assertEqual(len(self.missing(pattern, log=[message % "0"])), 1)
        self.assertEqual(self.missing("^xprtrdma_cb_reply ", initiator=CALLED_BACK), [])
        self.assertEqual(len(self.missing("^xprtrdma_cb_reply ", target=CALLED_BACK)), 1)

    def test_the_pattern_of_a_recall_fits_the_event(self):
        recall = dict(table.parse("nfs41-callback").scenario.records)
        truth = records("x", {"records": list(recall.items())}, CALLBACK, CALLED_BACK)
        self.assertEqual(compare.missing_records(truth), [])

    def test_older_records_require_nothing(self):
        self.assertEqual(compare.missing_records(records("x")), [])


class Conditions(unittest.TestCase):
    """Each condition must be able to fail."""

    def differences(self, name, counts, commands=(), statuses=None, dropped=1):
        conditions = dict(table.parse(name).conditions(), dropped={"target": 0, "initiator": dropped})
        return compare.condition_differences(conditions, counts, list(commands), statuses)

    def counts(self, version=4, crc=False, **changes):
        fpdus = {"zero": 0, "good": 0, "bad": 0, "good" if crc else "zero": 5}
        counts = {"connections": 1, "ip_versions": {version}, "largest_packet": 1500, "crc_flags": {crc}, "fpdus": fpdus}
        return wire.Wire(**{**counts, **changes})

    def assert_one(self, text, found):
        self.assertEqual(len(found), 1, found)
        self.assertIn(text, found[0])

    def test_a_correct_capture_has_no_difference(self):
        self.assertEqual(self.differences("nvme-basic", self.counts(), statuses={"unchecked": 5}), [])
        self.assertEqual(self.differences("nvme-basic+crc", self.counts(crc=True), statuses={"good": 5}), [])

    def test_a_capture_must_be_complete(self):
        self.assert_one("no iWARP connection", self.differences("nvme-basic", wire.Wire()))
        self.assert_one("lacks bytes", self.differences("nvme-basic", self.counts(missing=1)))

    def test_loss_needs_dropped_packets_and_retransmissions(self):
        command = listed("READ", retransmissions=1)
        self.assertEqual(self.differences("nfs3+loss", self.counts(retransmissions=2), [command]), [])
        self.assert_one("no retransmission", self.differences("nfs3+loss", self.counts(), [command]))
        self.assert_one("dropped no packet",
                        self.differences("nfs3+loss", self.counts(retransmissions=2), [command], dropped=0))
        self.assert_one("weft io shows no retransmission",
                        self.differences("nfs3+loss", self.counts(retransmissions=2), [listed("READ")]))

    def test_without_loss_retransmissions_are_allowed(self):
        self.assertEqual(self.differences("nfs3", self.counts(retransmissions=2), dropped=0), [])

    def test_the_mtu_limits_packets(self):
        self.assert_one("more than the MTU 576", self.differences("nfs3+mtu576", self.counts()))
        self.assertEqual(self.differences("nfs3+mtu576", self.counts(largest_packet=572)), [])
        self.assert_one("no packet has more than", self.differences("nfs3+mtu9000", self.counts()))
        self.assertEqual(self.differences("nfs3+mtu9000", self.counts(largest_packet=8996)), [])

    def test_the_ip_version_is_that_of_the_name(self):
        self.assert_one("IP versions", self.differences("nvme-basic+ip6", self.counts()))
        self.assertEqual(self.differences("nvme-basic+ip6", self.counts(6)), [])

    def test_crc_must_be_in_use_and_right(self):
        self.assertEqual(len(self.differences("nfs3+crc", self.counts())), 2)
        self.assertEqual(len(self.differences("nfs3", self.counts(crc=True))), 2)
        bad = {"zero": 0, "good": 5, "bad": 1}
        self.assert_one("the CRC fields", self.differences("nfs3+crc", self.counts(crc=True, fpdus=bad)))
        self.assert_one("the flags C", self.differences("nfs3+crc", self.counts(crc=True, crc_flags={True, False})))

    def test_weft_must_check_each_crc(self):
        for statuses in ({"good": 4}, {"good": 5, "bad": 1}, {"unchecked": 5}, {}):
            self.assert_one("weft dissect", self.differences("nfs3+crc", self.counts(crc=True), statuses=statuses))


if __name__ == "__main__":
    unittest.main()
