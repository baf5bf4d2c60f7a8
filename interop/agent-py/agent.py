#!/usr/bin/env python3
"""An agent for one tester on standard input and output, written from docs/agent.md alone.

The program tests whether that page is complete, and whether the tester follows the page. It
contains a minimal iWARP responder: MPA revision 1, CRC32c, no markers, Sends in both directions.
The agent listens, but does not connect. It has neither windows nor shared queues. It uses no
code of weft.
"""

import json
import os
import re
import select
import socket
import struct
import sys
import time

LONGEST_LINE, LONGEST_HELLO, MEMORY, OBJECTS = 1 << 20, 4096, 64 << 20, 1024
BEGIN = time.monotonic_ns()
MASK = (1 << 64) - 1

TABLE = []
for byte in range(256):
    for _ in range(8):
        byte = byte >> 1 ^ (0x82F63B78 if byte & 1 else 0)
    TABLE.append(byte)


def crc32c(octets):
    crc = 0xFFFFFFFF
    for octet in octets:
        crc = crc >> 8 ^ TABLE[(crc ^ octet) & 0xFF]
    return crc ^ 0xFFFFFFFF


def pattern(index, seed):
    return ((index ^ seed) * 0x9E3779B97F4A7C15 & MASK) >> 40 & 0xFF


class Refused(Exception):
    """The agent cannot execute a valid request. The text is the reason."""


class NoRequest(Exception):
    """The line is not a valid request."""


def number(bits):
    def check(value):
        if type(value) is not int or not 0 <= value < 1 << bits:
            raise NoRequest(f"{value!r} is not an integer from 0 to 2^{bits} - 1")
        return value
    return check


def octets(value):
    if type(value) is not str or not re.fullmatch("([0-9a-fA-F]{2})*", value):
        raise NoRequest("expected two hexadecimal digits for each byte")
    return bytes.fromhex(value)


def kind(wanted):
    def check(value):
        if type(value) is not wanted:
            raise NoRequest(f"expected {wanted.__name__}, found {value!r}")
        return value
    return check


def optional(check):
    return lambda value: None if value is None else check(value)


def parts(value):
    fields = {"region": (number(32),), "offset": (number(64), 0), "length": (number(32),), "key": (optional(number(32)), None)}
    return [read(part, fields) for part in kind(list)(value)]


def read(value, fields):
    """Returns the fields of an object. `fields` has a check for each field, and the default of an
    optional field."""
    given = dict(kind(dict)(value))
    out = {}
    for name, (check, *default) in fields.items():
        if name in given:
            out[name] = check(given.pop(name))
        elif default:
            out[name] = default[0]
        else:
            raise NoRequest(f"{name} is missing")
    if given:
        raise NoRequest(f"unknown field {next(iter(given))!r}")
    return out


OBJECT, DEPTHS = (number(32),), {"ird": (number(8), 1), "ord": (number(8), 1)}
FIELDS = {
    "hello": {"version": (number(32),), "token": (optional(kind(str)), None)},
    "register": {"domain": OBJECT, "octets": (number(64),), "access": (kind(list), [])},
    "listen": {"address": (kind(str),), "port": (number(16),), "backlog": (number(32), 16)},
    "pair": {"connection": OBJECT, "domain": OBJECT, "shared": (optional(number(32)), None), "depth": (number(32), 16),
             "parts": (number(32), 1), "inline": (number(32), 0)},
    "accept": {"connection": OBJECT, "private_data": (octets, b""), **DEPTHS},
    "reject": {"connection": OBJECT, "private_data": (octets, b"")},
    "disconnect": {"connection": OBJECT},
    "destroy": {"object": OBJECT},
    "post_receive": {"on": OBJECT, "work": (number(64),), "parts": (parts, [])},
    "post_send": {"connection": OBJECT, "work": (number(64),), "operation": (kind(dict),), "parts": (parts, []),
                  "signaled": (kind(bool), True), "fence": (kind(bool), False), "inline": (kind(bool), False)},
    "put": {"region": OBJECT, "offset": (number(64), 0), "octets": (octets,)},
    "get": {"region": OBJECT, "offset": (number(64), 0), "length": (number(64),)},
    "fill": {"region": OBJECT, "offset": (number(64), 0), "length": (number(64),), "seed": (number(64),)},
    "hash": {"region": OBJECT, "offset": (number(64), 0), "length": (number(64),)},
}


class Connection:
    def __init__(self, sock, listener):
        self.sock, self.listener, self.state, self.paired = sock, listener, "request", False
        self.got, self.receives, self.msn, self.crc = b"", [], 1, True

    def send_fpdu(self, ulpdu):
        head = struct.pack(">H", len(ulpdu)) + ulpdu
        head += bytes(-len(head) % 4)
        # MPA uses the CRC of iSCSI, with the octet order of iSCSI.
        self.sock.sendall(head + (struct.pack("<I", crc32c(head)) if self.crc else bytes(4)))


class Agent:
    def __init__(self):
        self.objects, self.last, self.pending = {}, 0, []

    def write_line(self, what):
        line = json.dumps({"at": time.monotonic_ns() - BEGIN, **what}).encode() + b"\n"
        while line:
            line = line[os.write(1, line):]

    def event(self, name, **fields):
        self.write_line({"event": {name: fields}})

    def keep(self, thing):
        if len(self.objects) >= OBJECTS:
            raise Refused(f"the agent can have at most {OBJECTS} objects")
        self.last += 1
        self.objects[self.last] = thing
        return self.last

    def of(self, wanted, name):
        thing = self.objects.get(name)
        if not isinstance(thing, wanted):
            raise Refused(f"object {name} is not a {wanted.__name__}")
        return thing

    def part(self, region, offset, length):
        memory = self.of(bytearray, region)
        if offset + length > len(memory):
            raise Refused(f"the range of {length} bytes from offset {offset} is not inside the region, which has {len(memory)} bytes")
        return memory, slice(offset, offset + length)

    def do(self, name, it):
        return getattr(self, "do_" + name)(**it)

    def do_device(self):
        limits = {name: 0 for name in ("vendor", "part", "max_shared", "max_windows")}
        limits |= {name: 16 for name in ("max_queue_pairs", "max_work_requests", "max_parts", "max_read_parts")}
        host = os.uname()
        return {"device": {"name": "py0", "driver": None, "firmware": "1", "kernel": f"{host.sysname} {host.release}",
                           "ports": ["active"], "max_region": MEMORY,
                           "max_ird": 0, "max_ord": 0, "capabilities": [], **limits}}

    def do_domain(self):
        return {"domain": {"domain": self.keep("domain")}}

    def do_register(self, domain, octets, access):
        self.of(str, domain)
        used = sum(len(thing) for thing in self.objects.values() if isinstance(thing, bytearray))
        if not 0 < octets <= MEMORY - used:
            raise Refused(f"cannot create a region of {octets} bytes: the agent has only {MEMORY - used} more bytes")
        region = self.keep(bytearray(octets))
        return {"region": {"region": region, "address": region << 32, "local_key": region << 8, "remote_key": region << 8}}

    def do_listen(self, address, port, backlog):
        try:
            listener = socket.create_server((address, port), backlog=backlog)
        except OSError as why:
            raise Refused(str(why)) from why
        return {"listener": {"listener": self.keep(listener), "port": listener.getsockname()[1]}}

    def do_pair(self, connection, domain, shared, depth, parts, inline):
        self.of(str, domain)
        if shared is not None or self.of(Connection, connection).paired:
            raise Refused("this agent has no shared queues, and a connection can have only one Queue Pair")
        self.of(Connection, connection).paired = True
        return "nothing"

    def answer(self, connection, private_data, reject):
        end = self.of(Connection, connection)
        if end.state != "requested":
            raise Refused(f"connection {connection} has no connection request")
        if not reject and not end.paired:
            raise Refused(f"connection {connection} has no Queue Pair")
        if len(private_data) > 255:
            raise Refused(f"the private data has {len(private_data)} bytes; the limit is 255")
        flags = (0x40 if end.crc else 0) | (0x20 if reject else 0)
        end.sock.sendall(b"MPA ID Rep Frame" + struct.pack(">BBH", flags, 1, len(private_data)) + private_data)
        return end

    def do_accept(self, connection, private_data, ird, ord):
        self.answer(connection, private_data, False).state = "there"
        self.event_later("established", connection=connection, private_data="", ird=ird, ord=ord)
        return "nothing"

    def do_reject(self, connection, private_data):
        end = self.answer(connection, private_data, True)
        end.state = "over"
        end.sock.shutdown(socket.SHUT_WR)
        return "nothing"

    def event_later(self, name, **fields):
        self.pending.append((name, fields))

    def ended(self, connection, end):
        if end.state == "there":
            self.event_later("disconnected", connection=connection)
        for work, _ in end.receives:
            self.completed(connection, work, "receive", 0, "wr_flush_err")
        end.state, end.receives = "over", []

    def do_disconnect(self, connection):
        end = self.of(Connection, connection)
        if end.state == "there":
            end.sock.shutdown(socket.SHUT_WR)
        self.ended(connection, end)
        return "nothing"

    def do_destroy(self, object):
        thing = self.objects.pop(object, None)
        if thing is None:
            raise Refused(f"there is no object {object}")
        if isinstance(thing, Connection):
            thing.sock.close()
        elif isinstance(thing, socket.socket):
            thing.close()
        return "nothing"

    def completed(self, connection, work, operation, length, status="success"):
        self.event_later("completion", connection=connection, work=work, status=status, operation=operation, octets=length)

    def do_post_receive(self, on, work, parts):
        for part in parts:
            self.of(bytearray, part["region"])
        end = self.of(Connection, on)
        if not end.paired:
            raise Refused(f"connection {on} has no Queue Pair")
        end.receives.append((work, parts))
        return "nothing"

    def do_post_send(self, connection, work, operation, parts, signaled, fence, inline):
        end = self.of(Connection, connection)
        if list(operation) != ["send"] or end.state != "there":
            raise Refused("this agent can only post a Send, and only on an established connection")
        send = read(operation["send"], {"solicited": (kind(bool), False), "invalidate": (optional(number(32)), None)})
        payload = b"".join(bytes(memory[at]) for memory, at in
                           (self.part(part["region"], part["offset"], part["length"]) for part in parts))
        # RDMAP's opcodes are: Send 3, Send with Invalidate 4, Send with Solicited Event 5, Send
        # with both 6. The message fits in one segment.
        opcode = 3 + (send["invalidate"] is not None) + 2 * send["solicited"]
        if len(payload) > 1024:
            raise Refused(f"the Send has {len(payload)} bytes; this agent sends one segment of at most 1024 bytes")
        end.send_fpdu(struct.pack(">BBIIII", 0x41, 0x40 | opcode, send["invalidate"] or 0, 0, end.msn, 0) + payload)
        end.msn += 1
        if signaled:
            self.completed(connection, work, "send", 0)
        return "nothing"

    def do_put(self, region, offset, octets):
        memory, at = self.part(region, offset, len(octets))
        memory[at] = octets
        return "nothing"

    def do_get(self, region, offset, length):
        if length > 262144:
            raise Refused("one request can read at most 262144 bytes")
        memory, at = self.part(region, offset, length)
        return {"octets": {"octets": memory[at].hex()}}

    def do_fill(self, region, offset, length, seed):
        memory, at = self.part(region, offset, length)
        memory[at] = bytes(pattern(index, seed) for index in range(length))
        return "nothing"

    def do_hash(self, region, offset, length):
        memory, at = self.part(region, offset, length)
        return {"hash": {"crc32c": crc32c(memory[at])}}

    def line(self, line):
        """Answers one line. Returns False if the control connection must end."""
        ident = None
        try:
            try:
                request = read(json.loads(line), {"id": (number(64),), "do": (lambda it: it,)})
                ident, what = request["id"], request["do"]
                name, fields = (what, None) if type(what) is str else next(iter(kind(dict)(what).items()), ("", {}))
                if name in FIELDS and fields is not None and len(what) == 1:
                    it = read(fields, FIELDS[name])
                elif name in ("device", "domain", "exit") and fields is None:
                    it = {}
                else:
                    raise NoRequest(f"unknown request {name!r}")
            except (ValueError, RecursionError, NoRequest) as why:
                self.write_line({"answer": {"id": None, "failed": {"what": f"the line is not a valid request: {why}"[:512]}}})
                return self.greeted
            if not self.greeted:
                token = os.environ.get("WEFT_AGENT_TOKEN")
                if name != "hello" or it["version"] != 1 or token and it["token"] != token:
                    raise Refused("the first request must be hello, with version 1 and the token")
                self.greeted = True
                done = {"hello": {"version": 1, "agent": "py"}}
            elif name == "hello":
                raise Refused("hello must be sent only once")
            elif name == "exit":
                return False
            else:
                done = self.do(name, it)
            self.write_line({"answer": {"id": ident, "done": done}})
        except (Refused, OSError) as why:
            self.write_line({"answer": {"id": ident, "failed": {"what": str(why)}}})
        return self.greeted

    def readable(self, connection, end):
        try:
            more = end.sock.recv(65536)
        except OSError:
            more = b""
        end.got += more
        if not more:
            self.ended(connection, end)
        if end.state == "request" and len(end.got) >= 20 + int.from_bytes(end.got[18:20], "big"):
            length = int.from_bytes(end.got[18:20], "big")
            private_data, end.got = end.got[20:20 + length], end.got[20 + length:]
            end.state = "requested"
            self.event_later("request", listener=end.listener, connection=connection, private_data=private_data.hex(), ird=0, ord=0)
        while end.state == "there" and len(end.got) >= 2:
            length = int.from_bytes(end.got[:2], "big")
            size = (2 + length + 3) // 4 * 4 + 4
            if len(end.got) < size:
                break
            fpdu, end.got = end.got[:size], end.got[size:]
            if end.crc and struct.unpack("<I", fpdu[-4:])[0] != crc32c(fpdu[:-4]) or not end.receives or length < 18:
                end.sock.close()
                self.ended(connection, end)
                break
            payload, (work, parts) = fpdu[20:2 + length], end.receives.pop(0)
            rest = payload
            for part in parts:
                memory, at = self.part(part["region"], part["offset"], min(part["length"], len(rest)))
                memory[at], rest = rest[:part["length"]], rest[part["length"]:]
            if rest:
                self.completed(connection, work, "receive", 0, "loc_len_err")
            else:
                self.completed(connection, work, "receive", len(payload))

    def serve(self):
        self.greeted, got, until = False, b"", time.monotonic() + 10
        while True:
            ends = {name: thing for name, thing in self.objects.items()
                    if isinstance(thing, socket.socket) or isinstance(thing, Connection) and thing.state != "over"}
            sockets = {(thing.sock if isinstance(thing, Connection) else thing): name for name, thing in ends.items()}
            ready, _, _ = select.select([0, *sockets], [], [], None if self.greeted else max(0, until - time.monotonic()))
            if not ready:
                return self.write_line({"answer": {"id": None, "failed": {"what": "no hello arrived before the timeout"}}})
            for sock in ready:
                if sock == 0:
                    more = os.read(0, 65536)
                    if not more:
                        return None
                    got += more
                elif isinstance(ends[sockets[sock]], Connection):
                    self.readable(sockets[sock], ends[sockets[sock]])
                else:
                    self.keep(Connection(sock.accept()[0], sockets[sock]))
            while b"\n" in got or len(got) > LONGEST_HELLO:
                line, feed, rest = got.partition(b"\n")
                if len(line) >= LONGEST_LINE or not self.greeted and len(line) > LONGEST_HELLO:
                    return self.write_line({"answer": {"id": None, "failed": {"what": "the line is too long"}}})
                if not feed:
                    break
                got = rest
                if not self.line(line):
                    return None
                self.flush()
            self.flush()

    def flush(self):
        for name, fields in self.pending:
            self.event(name, **fields)
        self.pending = []


if __name__ == "__main__":
    sys.setrecursionlimit(1000)
    Agent().serve()
