"""SDP messages (draft-pinkerton-iwarp-sdp-01, fields in the order of its figures) over a stack.Stream, and port mapper datagrams.

Set-up: the Hello is sent as TCP octets. Then the Accepting Peer ('b') has the role of the MPA
Initiator, and its HelloAck is the first FPDU. So the set-up violates no rule of RFC 5044 or of the
draft.
"""
import struct
import stack

HELLO, HELLO_ACK, DISCONN, ABORT, SENDSM, WR_COMPL, RD_COMPL, MODE = range(8)
CH_BUF, CH_BUF_ACK, SUSP, SUSP_ACK = range(0x0B, 0x0F)
SINK_AVAIL, SRC_AVAIL, DATA = 0xFD, 0xFE, 0xFF
SOLICITED = {HELLO_ACK, ABORT, SENDSM, WR_COMPL, RD_COMPL, SUSP, SUSP_ACK}      # 14.2, and Data with an OOB flag
BUFFER = 1024


class Sdp:
    def __init__(self, stream, bufs=16, hello_poke=None, adverts=8, ird=4):
        """bufs, adverts (MaxAdverts) and ird (LocIRD) are values in the Hello of 'a'."""
        self.s, self.bufs = stream, {'a': bufs, 'b': 16}
        self.mseq, self.last = {'a': 0, 'b': 0}, {'a': 0, 'b': 0}
        stream.connect()
        hello = self.header('a', HELLO, 16) + struct.pack('>HBBIIHH', adverts, 0, 0x11, BUFFER, BUFFER, ird, 4)
        mark = None
        if stream.bad and hello_poke:
            hello, mark = stack.put(hello, *hello_poke), hello_poke[0] + len(hello_poke[1]) - 1
        stream.send('a', hello, mark)
        stream.request('b')
        stream.reply('a')
        self.message('b', HELLO_ACK, struct.pack('>HBBIHH', 8, 0, 0x11, BUFFER, 4, 4))

    def header(self, who, mid, more, flags=0):
        return struct.pack('>HBBIII', self.bufs[who], flags, mid, 16 + more, self.mseq[who], self.last[who])

    def message(self, who, mid, extra=b'', payload=b'', op=None, inval=0, flags=0, poke=None, mark=None):
        """Sends one message. The offsets of poke and mark count from its first octet."""
        if mid > HELLO_ACK:
            self.mseq[who] += 1
        body = self.header(who, mid, len(extra) + len(payload), flags) + extra + payload
        if op is None:
            op = stack.SEND_SE if mid in SOLICITED else stack.SEND
            op = stack.SEND_SE_INV if inval else op
        poke = poke and (poke[0] + 18, poke[1])
        mark = None if mark is None else mark + 18
        self.last[self.s.other(who)] = self.mseq[who]
        return self.s.message(who, op, body, inval=inval, poke=poke, mark=mark)

    def data(self, who, size=8, **more):
        return self.message(who, DATA, payload=stack.text(size), **more)

    def mode(self, who, word, **more):
        return self.message(who, MODE, struct.pack('>I', word), **more)

    def src_avail(self, who, size, stag, va, payload=0, **more):
        return self.message(who, SRC_AVAIL, struct.pack('>IIQ', size, stag, va), stack.text(payload), **more)

    def sink_avail(self, who, size, stag, va, discards, **more):
        return self.message(who, SINK_AVAIL, struct.pack('>IIQI', size, stag, va, discards), **more)

    def fetch(self, who, size, stag, va, **more):
        """Sends an RDMA Read of `size` octets by `who`, its Response, and an RdmaRdCompl."""
        self.s.read(who, 0x900, 0x4000, size, stag, va, **more)
        self.s.fpdu(self.s.other(who), stack.tagged(stack.READ_RESP, 0x900, 0x4000, stack.text(size)))
        self.message(who, RD_COMPL, struct.pack('>I', size), inval=stag)

    def close(self):
        """Closes gracefully: DisConn in both directions, and then the end of the LLP."""
        self.message('a', DISCONN)
        self.message('b', DISCONN)
        self.s.close('b')


def mapper(stream, mt, ap_port, accept_ip=None):
    """Returns a message of 48 octets with the IPv4 addresses of the two hosts."""
    a, b = stream.a, stream.b
    return struct.pack('>BBHHHQ', mt << 4 | 4, 0, 0, ap_port, 41000, 0x5157C0DE00000000 + a.port) \
        + a.ip + bytes(12) + (accept_ip or b.ip) + bytes(12)
