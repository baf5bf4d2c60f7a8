"""Protocols above RDMAP and SDP: what a connection does before and around its fault."""
import struct

from .iwarp import SEND_INV, SEND_SE, SEND_SE_INV


def advert(stag, to, length):
    """A buffer as the rping example of librdmacm advertises it: address, STag, length."""
    return struct.pack(">QII", to, stag, length)


def word(verb, value=0):
    """A message of the small protocol: a verb, a number, and filling up to 32 bytes."""
    return (verb.ljust(4).encode() + struct.pack(">I", value)).ljust(32, b".")


class Plain:
    """A small protocol: the server advertises a buffer, the client writes to it and reads it."""

    def __init__(self, scene, connection, length=4096):
        self.c, self.random = connection, scene.random
        self.stag, self.to, self.length = scene.stag(), scene.address(), length
        self.sink = scene.stag(), scene.address()

    def start(self, used=1000):
        """Hello, advertisement, one Write, one Read. All of it succeeds."""
        c = self.c
        c.send(c.i, b"HELO" + bytes(4) + b"buffer-service 1".ljust(24, b"."))
        c.after(40)
        self.advertised = c.send(c.r, advert(self.stag, self.to, self.length))
        c.after(25)
        data = self.random.octets(used)
        self.first_write = c.write(c.i, self.stag, self.to, data)
        c.send(c.i, word("DONE", used))
        c.after(30)
        c.send(c.r, word("OK", used))
        self.fetch(used, data)
        c.ack(c.i)

    def fetch(self, size, data):
        """A Read that succeeds."""
        c = self.c
        request = c.read(c.i, self.sink, size, (self.stag, self.to))
        c.after(20)
        return request, c.respond(c.r, self.sink, data)

    def ping(self, text=b"ping", gap=1000):
        """A small Send each way."""
        c = self.c
        c.after(gap)
        one = c.send(c.i, text.ljust(32, b"."))
        c.after(30)
        two = c.send(c.r, text.upper().ljust(32, b"."))
        c.ack(c.i)
        return one, two


def rping(scene, c, size, rounds):
    """Rounds of the rping example: the server reads and writes the buffers of the client.

    Returns the client's buffers (the source and the sink) and the server's buffer.
    """
    source, sink = (scene.stag(), scene.address()), (scene.stag(), scene.address())
    buffer = scene.stag(), scene.address()
    for number in range(rounds):
        data = b"rdma-ping-%d: " % number + bytes(65 + (number + i) % 58 for i in range(size))
        data = data[:size]
        c.after(400)
        c.send(c.i, advert(source[0], source[1], size))
        c.after(30)
        c.read(c.r, buffer, size, source)
        c.after(15)
        c.respond(c.i, buffer, data)
        c.after(30)
        c.send(c.r, advert(0, 0, 0))
        c.after(20)
        c.send(c.i, advert(sink[0], sink[1], size))
        c.after(25)
        c.write(c.r, sink[0], sink[1], data)
        c.send(c.r, advert(0, 0, 0))
        c.ack(c.i)
    return source, sink, buffer


class Nvme:
    """An I/O queue of NVMe over RDMA: the client is the host, the server the controller."""

    HOST = b"nqn.2014-08.org.nvmexpress:uuid:5f0c2a4e-0000-4000-8000-00000000b011"
    SUBSYSTEM = b"nqn.2024-03.example:disk0"

    def __init__(self, scene, connection):
        self.c, self.scene, self.random = connection, scene, scene.random
        self.command_id = 0
        self.head = 0

    @staticmethod
    def request():
        return struct.pack("<HHHH24x", 0, 1, 128, 127)

    @staticmethod
    def reply():
        return struct.pack("<HH28x", 0, 128)

    def capsule(self, opcode, namespace, descriptor, dwords):
        self.command_id += 1
        return struct.pack("<BBHI8x8x", opcode, 0x40, self.command_id, namespace) + descriptor \
            + struct.pack("<6I", *dwords)

    def completion(self, value=0, status=0):
        self.head += 1
        return struct.pack("<QHHHH", value, self.head & 127, 0, self.command_id, status << 1)

    def keyed(self, stag, to, length, invalidate=True):
        return struct.pack("<Q", to) + struct.pack("<I", length)[:3] + struct.pack("<I", stag) \
            + bytes([0x4F if invalidate else 0x40])

    def connect(self):
        c = self.c
        data = bytearray(1024)
        data[0:16] = bytes.fromhex("5f0c2a4e00004000800000000000b011")
        data[16:18] = b"\1\0"
        data[256:256 + len(self.SUBSYSTEM)] = self.SUBSYSTEM
        data[512:512 + len(self.HOST)] = self.HOST
        self.command_id += 1
        capsule = struct.pack("<BBHB35x", 0x7F, 0x40, self.command_id, 1)[:24]
        capsule += struct.pack("<QI3xB", 0, 1024, 0x01)
        capsule += struct.pack("<HHHBxI12x", 0, 1, 127, 0, 0)
        c.send(c.i, capsule + bytes(data))
        c.after(150)
        c.send(c.r, self.completion(1))
        c.ack(c.i)

    def read_command(self, blocks, lba):
        """The capsule of a Read, and the buffer that it advertises."""
        stag, to = self.scene.stag(), self.scene.address()
        capsule = self.capsule(0x02, 1, self.keyed(stag, to, blocks * 512),
                               (lba, 0, blocks - 1, 0, 0, 0))
        return self.c.send(self.c.i, capsule), stag, to

    def read(self, blocks, lba):
        """A Read that succeeds."""
        c = self.c
        _, stag, to = self.read_command(blocks, lba)
        c.after(110)
        c.write(c.r, stag, to, self.random.octets(blocks * 512))
        c.send(c.r, self.completion(), opcode=SEND_INV, invalidate=stag)
        c.ack(c.i)
        c.after(200)

    def write(self, blocks, lba):
        """A Write that succeeds: the controller reads the data from the host."""
        c = self.c
        stag, to = self.scene.stag(), self.scene.address()
        sink = self.scene.stag(), self.scene.address()
        capsule = self.capsule(0x01, 1, self.keyed(stag, to, blocks * 512),
                               (lba, 0, blocks - 1, 0, 0, 0))
        c.send(c.i, capsule)
        c.after(60)
        c.read(c.r, sink, blocks * 512, (stag, to))
        c.after(20)
        c.respond(c.i, sink, self.random.octets(blocks * 512))
        c.after(90)
        c.send(c.r, self.completion(), opcode=SEND_INV, invalidate=stag)
        c.ack(c.i)
        c.after(200)


class Iser:
    """iSCSI Extensions for RDMA (RFC 7145): the client is the iSCSI initiator."""

    def __init__(self, scene, connection):
        self.c, self.scene, self.random = connection, scene, scene.random
        self.command = self.status = self.tag = 1

    def header(self, read=None, write=None):
        flags = 0x10 | (0x08 if write else 0) | (0x04 if read else 0)
        write, read = write or (0, 0), read or (0, 0)
        return struct.pack(">B3xIQIQ", flags, write[0], write[1], read[0], read[1])

    def login(self):
        c = self.c
        keys = [b"InitiatorName=iqn.2024-03.example:client", b"SessionType=Normal",
                b"TargetName=iqn.2024-03.example:disk1", b"HeaderDigest=None",
                b"DataDigest=None", b"RDMAExtensions=Yes", b"InitialR2T=Yes",
                b"ImmediateData=Yes", b"MaxBurstLength=262144"]
        text = b"\0".join(keys) + b"\0"
        isid = bytes.fromhex("400001370000")
        pdu = struct.pack(">BBBBB", 0x43, 0x87, 0, 0, 0) + len(text).to_bytes(3, "big") + isid \
            + struct.pack(">HIHHII16x", 0, self.tag, 0, 0, self.command, 0)
        c.send(c.i, self.header() + pdu + text + bytes(-len(text) % 4))
        c.after(700)
        text = b"TargetPortalGroupTag=1\0RDMAExtensions=Yes\0InitialR2T=Yes\0"
        pdu = struct.pack(">BBBBB", 0x23, 0x87, 0, 0, 0) + len(text).to_bytes(3, "big") + isid \
            + struct.pack(">HI4xIIIBB10x", 1, self.tag, self.status, self.command, 64, 0, 0)
        c.send(c.r, self.header() + pdu + text + bytes(-len(text) % 4))
        c.ack(c.i)

    def read_command(self, blocks, lba):
        """A SCSI READ(10), and the buffer that it advertises."""
        self.tag += 1
        buffer = self.scene.stag(), self.scene.address()
        cdb = struct.pack(">BBIBHB6x", 0x28, 0, lba, 0, blocks, 0)
        pdu = struct.pack(">BBHI8sIIII", 0x01, 0xC1, 0, 0, bytes(8), self.tag, blocks * 512,
                          self.command, self.status + 1) + cdb
        self.command += 1
        return self.c.send(self.c.i, self.header(read=buffer) + pdu), buffer

    def response(self):
        self.status += 1
        return self.header() + struct.pack(">BBBBI8xIIIIIIII", 0x21, 0x80, 0, 0, 0, self.tag, 0,
                                           self.status, self.command, self.command + 63, 0, 0, 0)

    def read(self, blocks, lba):
        c = self.c
        _, buffer = self.read_command(blocks, lba)
        c.after(180)
        c.write(c.r, buffer[0], buffer[1], self.random.octets(blocks * 512))
        c.send(c.r, self.response(), opcode=SEND_INV, invalidate=buffer[0])
        c.ack(c.i)
        c.after(300)


class Smb:
    """SMB Direct (MS-SMBD) with SMB2 Echo and Write messages. The client is the SMB client."""

    def __init__(self, scene, connection):
        self.c, self.random = connection, scene.random
        self.identifier = 0

    def negotiate(self, receive_client, receive_server):
        c = self.c
        c.send(c.i, struct.pack("<HHHHIII", 0x100, 0x100, 0, 32, 4096, receive_client, 1 << 20))
        c.after(90)
        answer = c.send(c.r, struct.pack("<HHHHHHIIIII", 0x100, 0x100, 0x100, 0, 32, 32, 0, 1 << 20,
                                         receive_client, receive_server, 1 << 20))
        c.ack(c.i)
        return answer

    def transfer(self, payload):
        return struct.pack("<HHHHIIIxxxx", 32, 1, 0, 0, 0, 24, len(payload)) + payload

    def header(self, command, response):
        return b"\xfeSMB" + struct.pack("<HHIHHIIQIIQ16x", 64, 1, 0, command, 1, int(response), 0,
                                        self.identifier, 0xFEFF, 5, 0x100000000045)

    def echo(self):
        c = self.c
        self.identifier += 1
        c.send(c.i, self.transfer(self.header(13, False) + struct.pack("<HH", 4, 0)))
        c.after(120)
        c.send(c.r, self.transfer(self.header(13, True) + struct.pack("<HH", 4, 0)))
        c.ack(c.i)
        c.after(2000)

    def write(self, length):
        self.identifier += 1
        body = struct.pack("<HHIQ16sIIHHI", 49, 112, length, 0, self.random.octets(16), 0, 0, 0, 0,
                           0)
        return self.transfer(self.header(9, False) + body + self.random.octets(length))


class Sdp:
    """SDP (draft-pinkerton-iwarp-sdp-01). The server is the Accepting Peer and MPA Initiator."""

    HELLO_ACK, DISCONN, ABORT, MODE_CHANGE = 1, 2, 3, 7
    WR_COMPL, SINK_AVAIL, DATA = 5, 0xFD, 0xFF

    def __init__(self, connection, buffers=(16, 16), sizes=(2048, 2048)):
        self.c = connection
        self.sent = {connection.i: 0, connection.r: 0}
        self.buffers = {connection.i: buffers[0], connection.r: buffers[1]}
        self.sizes = {connection.i: sizes[0], connection.r: sizes[1]}

    def header(self, side, kind, length, first=False):
        if not first:
            self.sent[side] += 1
        sequence = 0 if first else self.sent[side]
        acknowledged = 0 if first else self.sent[side.peer]
        return struct.pack(">HBBIII", self.buffers[side], 0, kind, length, sequence, acknowledged)

    def setup(self, max_adverts=(4, 4)):
        """Hello, the MPA start-up frames, HelloAck. Returns the HelloAck."""
        c = self.c
        c.open()
        hello = struct.pack(">HBBIIHH", max_adverts[0], 0, 0x11, self.sizes[c.i], self.sizes[c.i],
                            8, 8)
        c.tcp(c.i, self.header(c.i, 0, 32, True) + hello, "PA")
        c.ack(c.r)
        c.after(220)
        c.mpa({"rev": 1, "s": False}, {"rev": 1, "s": False}, initiator=c.r)
        c.after(60)
        ack = struct.pack(">HBBIHH", max_adverts[1], 0, 0x11, self.sizes[c.r], 8, 8)
        sent = c.send(c.r, self.header(c.r, self.HELLO_ACK, 28, True) + ack, opcode=SEND_SE)
        c.ack(c.i)
        return sent

    def put(self, side, kind, extra=b"", payload=b"", opcode=3, **how):
        length = 16 + len(extra) + len(payload)
        message = self.header(side, kind, length) + extra + payload
        return self.c.send(side, message, opcode=opcode, **how)

    def data(self, side, payload, **how):
        return self.put(side, self.DATA, payload=payload, **how)

    def control(self, side, kind, extra=b"", **how):
        return self.put(side, kind, extra, opcode=SEND_SE, **how)

    def mode(self, side, word):
        return self.put(side, self.MODE_CHANGE, struct.pack(">I", word))

    def sink(self, side, length, stag, to, kept):
        return self.put(side, self.SINK_AVAIL, struct.pack(">IIQI", length, stag, to, kept))

    def written(self, side, length, stag):
        return self.put(side, self.WR_COMPL, struct.pack(">I", length), opcode=SEND_SE_INV,
                        invalidate=stag)


def port_mapper(kind, ap_port, cp_port, handle, client, server):
    """A port mapper message for IPv4: 0 PMReq, 1 PMAccept, 2 PMAck or 3 PMDeny."""
    return struct.pack(">BBHHHQ", kind << 4 | 4, 0, 0, ap_port, cp_port, handle) \
        + client.ip.packed + bytes(12) + server.ip.packed + bytes(12)
