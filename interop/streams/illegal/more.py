#!/usr/bin/env python3
"""A third set of streams: asymmetric start-up, messages that are too short or too long, and SDP
messages at wrong times. The options are those of illegal.py."""
import struct
import sys
import sdp
from sdp import Sdp
from stack import *
from illegal import CRC_IDS, book, mapper_message, swap, write

STREAMS = []
stream = book(STREAMS, 'M', 160)
ALL = 'crc plain markers'


# ---- start-up and FPDU ----
@stream('MPA-7.1.1-24 MPA-7.1.1-26 MPA-7.1.2-26 MPA-7.1.1-25 MPA-7.1.1-29', 'Reply has PD_Length 0, 8 octets of Private Data follow')
def reply_surplus(s):
    s.connect()
    s.request()
    s.reply(private=text(8), size=0 if s.bad else 8, mark=19)
    if s.bad:
        s.close('a')
    else:
        s.greet()
        s.close('a')


@stream('MPA-7.1.1-12 MPA-4.4-9 MPA-4.4-14 MPA-4.4-15 MPA-4.1-6 MPA-4.4-1 DDP-3-7', 'Request C=0, Reply C=1: the Initiator leaves its CRC zero', 'crc')
def crc_by_reply_only(s):
    s.connect()
    s.crc = False
    s.request()
    s.crc = True
    s.reply()
    s.greet()
    s.rdma_send('a', crc=lambda value: bytes(4), mark='crc')
    if s.bad:
        s.message('b', TERM, term_header(0x20, 2))
    s.close('b')


def one_way_markers(s, who):
    """Only `who` requests markers."""
    s.connect()
    for key, side in ((b'Req', 'a'), (b'Rep', 'b')):
        s.use_markers = side == who
        s.startup(side, key)
    s.use_markers = False


@stream('MPA-7.1.1-6 MPA-7.1.1-9 MPA-4.3-10 MPA-4.3-3 MPA-7.1.2-21 MPA-4.3-4 MPA-4.3-11', 'Request M=1, Reply M=0: the Responder sends no Markers', 'crc')
def responder_no_markers(s):
    one_way_markers(s, 'a')
    s.rdma_send('a')
    if s.bad:
        s.b.markers = False
    s.rdma_send('b', 12, mark='len')
    s.stop()


@stream('MPA-7.1.1-8 MPA-1.2-5 MPA-7.1.2-21', 'Request M=1, Reply M=0: the Initiator sends Markers', 'crc')
def initiator_markers(s):
    one_way_markers(s, 'a')
    if s.bad:
        s.a.markers = True
    s.rdma_send('a', mark='marker' if s.bad else None)
    s.stop()


@stream('MPA-4.5-2 DDP-5.2-12 MPA-4.5-1 MPA-3-8 MPA-3-2', 'ULPDU of 526: above MULPDU with Markers (522), not without (530)', 'markers', mss=536)
def above_mulpdu_markers(s):
    s.start()
    s.greet()
    s.rdma_send('a', 526 - 18 if s.bad else 522 - 18, mark='len')
    s.rdma_send('b')
    s.close()


@stream('MPA-4.3-13 MPA-4.3-5 MPA-4.2-4 MPA-4.3-14', 'The second Marker inside an FPDU counts from the first Marker', 'markers')
def fpduptr_second(s):
    s.start()
    s.greet()
    s.rdma_send('a', 1000, marker=lambda n, value: b'\0\0\x02\0' if n == 1 else value, mark='marker')
    if s.wrong:
        s.wrong = s.wrong[0], s.wrong[1] + 3
    s.rdma_send('b')
    s.close()


@stream(CRC_IDS, 'One payload octet was changed after the CRC was made', 'crc markers')
def payload_flipped(s):
    s.start()
    s.greet()
    segment = untagged(SEND, s.next('a', SEND), text(16))
    if s.bad:
        body = struct.pack('>H', len(segment)) + segment
        s.fpdu('a', put(segment, 25, b'#'), crc=lambda value: crc32c(body), mark='crc')
        s.message('b', TERM, term_header(0x20, 2))
    else:
        s.fpdu('a', segment)
    s.close('b')


@stream('P2P-9.1-20 P2P-9.1-5 P2P-4.1-2 P2P-3-2 RDMAP-6.1-7', 'The Responder has two Reads outstanding, the Request had IRD 1')
def responder_reads(s):
    s.connect()
    s.request(rev=2, s=1, private=s.enhanced(1, 4))
    s.reply(rev=2, s=1, private=s.enhanced(4, 1))
    s.rdma_send('a')
    s.read('b', 0x900, 0x4000, 16, 0x5100, 0x2000)
    swap(s, lambda: s.fpdu('a', tagged(READ_RESP, 0x900, 0x4000, text(16))),
         lambda: s.read('b', 0xA00, 0x6000, 24, 0x5100, 0x3000, mark=1))
    s.fpdu('a', tagged(READ_RESP, 0xA00, 0x6000, text(24)))
    s.close()


# ---- DDP and RDMAP ----
@stream('DDP-5.2-5 DDP-4.3-11', 'MO of the second segment overlaps the first')
def mo_overlap(s):
    s.start()
    s.greet()
    msn = s.next('a', SEND)
    s.fpdu('a', untagged(SEND, msn, text(32), last=0))
    s.fpdu('a', untagged(SEND, msn, text(16, 32), mo=32), poke=(17, b'\x10'))
    s.stop()


@stream('DDP-4.2-4 DDP-4.2-10 DDP-4.2-2 RDMAP-3.1-3', 'The second segment of a Write has the opcode of Read Response')
def write_opcode_changes(s):
    s.start()
    s.greet()
    s.fpdu('a', tagged(WRITE, 0x5100, 0x2000, text(32), last=0))
    s.fpdu('a', tagged(WRITE, 0x5100, 0x2020, text(16, 32)), poke=(1, b'\x42'))
    s.stop()


@stream('DDP-4.3-3 DDP-4.3-2 RDMAP-3.1-3 RDMAP-4.1-15', 'The second segment of a Send with Invalidate names another STag')
def invalidate_changes(s):
    s.start()
    s.greet()
    msn = s.next('a', SEND)
    s.fpdu('a', untagged(SEND_INV, msn, text(32), last=0, inval=0x5100))
    s.fpdu('a', untagged(SEND_INV, msn, text(16, 32), mo=32, inval=0x5100), poke=(4, b'\x52'))
    s.stop()


@stream('DDP-4.1-4', 'A Write ends without L=1; a Send follows')
def write_not_ended(s):
    s.start()
    s.greet()
    s.fpdu('a', tagged(WRITE, 0x5100, 0x2000, text(16)), poke=(0, b'\x81'))
    s.rdma_send('a')
    s.rdma_send('b')
    s.close()


@stream('DDP-4.1-4 RDMAP-5.2.1-18', 'A Read Response with all octets has L=0; the next Response follows')
def response_not_ended(s):
    s.start()
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000)
    s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16)), poke=(0, b'\x81'))
    s.read('a', 0xA00, 0x6000, 16, 0x5100, 0x2000)
    s.fpdu('b', tagged(READ_RESP, 0xA00, 0x6000, text(16)))
    s.stop()


@stream('RDMAP-4.4-9 RDMAP-5.2.1-18', 'The Read Response has 20 octets, 16 were requested')
def response_long(s):
    s.start()
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000)
    s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(20 if s.bad else 16)), mark=14 + 16 if s.bad else None)
    s.stop()


@stream('DDP-4.1-4 RDMAP-4.4-3', 'A Read Request has L=0; the next one follows')
def read_request_not_last(s):
    s.start()
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000, poke=(0, b'\x01'))
    if not s.bad:
        s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16)))
    s.read('a', 0xA00, 0x6000, 16, 0x5100, 0x2000)
    s.stop()


@stream('RDMAP-4.4-1 RDMAP-4.2-3 RDMAP-4.4-3', 'A Read Request header of 24 octets (SrcTO of 32 bits)')
def read_request_short(s):
    s.start()
    header = read_header(0x900, 0x4000, 16, 0x5100, 0x2000)
    s.message('a', READ_REQ, header[:20] + header[24:] if s.bad else header, mark='len')
    s.stop()


@stream('RDMAP-5.2-1 RDMAP-1.2-1', 'A Read Response without any Read Request')
def response_unrequested(s):
    s.start()
    s.greet()
    if s.bad:
        s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16)), mark=1)
    s.rdma_send('b')
    s.stop()


@stream('RDMAP-7306.5.2.1-21 RDMAP-7306.5.2.2-2 RDMAP-7306.5.2.2-3', 'An Atomic Response without any Atomic Request')
def atomic_response_unrequested(s):
    s.start()
    s.greet()
    if s.bad:
        s.message('b', ATOMIC_RESP, struct.pack('>IQ', 1, 7), mark=1)
    s.rdma_send('b')
    s.stop()


@stream('RDMAP-7306.5.2.1-4 RDMAP-7306.5.2.1-3 RDMAP-7306.5.2.1-5', 'Atomic Request with AOpCode 1')
def atomic_opcode(s):
    s.start()
    segment = s.message('a', ATOMIC_REQ, fetch_add(1, 0x5100, 0x2000, 5), poke=(21, b'\x01'))
    if not s.bad:
        s.message('b', ATOMIC_RESP, struct.pack('>IQ', 1, 7))
    s.stop()


@stream('RDMAP-4.8-38 MPA-8-1', 'Terminate has LLP error 0x99, which is none')
def terminate_llp_code(s):
    s.start()
    s.greet()
    s.message('b', TERM, term_header(0x20, 5), poke=(19, b'\x99'))
    s.close('b')


@stream('RDMAP-4.8-8 RDMAP-4.8-9', 'Terminate has D=1, M=0 and no DDP Segment Length, only the DDP header')
def terminate_no_length(s):
    s.start()
    s.greet()
    segment = s.rdma_send('a')
    header = term_header(0x02, 7, segment)
    s.message('b', TERM, header[:2] + b'\x40\0' + header[6:] if s.bad else header, mark=18 + 2)
    s.close('b')


@stream('RDMAP-5.4-12', 'A Read Response follows the own Terminate')
def response_after_terminate(s):
    s.start()
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000)
    swap(s, lambda: s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16)), mark=1),
         lambda: s.message('b', TERM, term_header(0x00, 1)))
    s.close('b')


@stream('DDP-4.1-6 DDP-4.1-4', 'The segment with L=1 of a Read Response is sent before the other one')
def response_last_first(s):
    s.start()
    s.read('a', 0x900, 0x4000, 48, 0x5100, 0x2000)
    swap(s, lambda: s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(32), last=0)),
         lambda: s.fpdu('b', tagged(READ_RESP, 0x900, 0x4020, text(16, 32)), mark=0))
    s.rdma_send('a')
    s.close()


@stream('DDP-4.1-6 DDP-4.1-4', 'The segment with L=1 of a Write is sent before the other one; a Send follows')
def write_last_first(s):
    s.start()
    s.greet()
    swap(s, lambda: s.fpdu('a', tagged(WRITE, 0x5100, 0x2000, text(32), last=0)),
         lambda: s.fpdu('a', tagged(WRITE, 0x5100, 0x2020, text(16, 32)), mark=0))
    s.rdma_send('a')
    s.rdma_send('b')
    s.close()


@stream('MPA-4.1-2 MPA-4.1-1', 'ULPDU_Length of one FPDU counts the CRC too; four right FPDUs follow')
def length_counts_crc_once(s):
    s.start()
    s.greet()
    s.rdma_send('a', 8, length=lambda size: size + 4, mark='len')
    for _ in range(4):
        s.rdma_send('a', 8)
    s.rdma_send('b')
    s.close()


# ---- SDP ----
@stream('SDP-6.2.1.3-1', 'Hello has MaxAdverts 0')
def hello_adverts(s):
    hello_fault(s, (16, b'\0\0'))


def hello_fault(s, poke):
    """Sends a Hello that the peer must refuse. Only a close follows it."""
    if not s.bad:
        d = Sdp(s)
        d.data('a')
        d.close()
        return
    def refuse(who, **more):
        s.close('b')
        raise EOFError
    s.request = refuse
    try:
        Sdp(s, hello_poke=poke)
    except EOFError:
        pass


@stream('SDP-6.2.1.7-2 SDP-8.1.1-9', 'Hello has LocORD 0')
def hello_ord(s):
    hello_fault(s, (30, b'\0\0'))


@stream('SDP-6.2.1-9 SDP-6.1.6-2', 'Hello has MSeqAck 1')
def hello_mseqack(s):
    d = Sdp(s, hello_poke=(12, b'\0\0\0\x01'))
    d.data('a')
    d.close()


@stream('SDP-8.1.1-13 SDP-8.1.1-4 MPA-7.1.2-17', 'The Connecting Peer sends Data before it has the HelloAck')
def before_hello_ack(s):
    """The Connecting Peer is MPA's Responder here (see sdp.py). So this stream also violates
    rule 4 of RFC 5044 7.1.2."""
    d = Sdp.__new__(Sdp)
    d.s, d.bufs, d.mseq, d.last = s, {'a': 16, 'b': 16}, {'a': 0, 'b': 0}, {'a': 0, 'b': 0}
    s.connect()
    s.send('a', d.header('a', sdp.HELLO, 16) + struct.pack('>HBBIIHH', 8, 0, 0x11, 1024, 1024, 4, 4))
    s.request('b')
    s.reply('a')
    ack = struct.pack('>HBBIHH', 8, 0, 0x11, 1024, 4, 4)
    if s.bad:
        d.data('a', mark=3)
        d.last['b'] = 0                                  # MSeqAck of a HelloAck is zero
        d.message('b', sdp.HELLO_ACK, ack)
    else:
        d.message('b', sdp.HELLO_ACK, ack)
        d.data('a')
    s.stop()


@stream('SDP-14.2-15', 'Data without OOB flags goes with Solicited Event')
def data_solicited(s):
    d = Sdp(s)
    d.data('a', 8, poke=(1 - 18, b'\x45'))
    d.close()


@stream('SDP-6.3.8.3-1 SDP-6.3.8-1', 'Rsvd of a ModeChange is not zero')
def mode_reserved(s):
    d = Sdp(s)
    d.mode('a', 4, poke=(16, b'\x80'))
    d.data('a')
    d.close()


@stream('SDP-6.1.1-18 SDP-6.1.1-1', 'MID 0x21')
def mid_reserved(s):
    d = Sdp(s)
    d.data('a')
    d.data('a', 0, poke=(3, b'\x21'))
    s.stop()


@stream('SDP-6.2.3-1 SDP-6.1.1-4', 'DisConn has 4 octets after the BSDH')
def disconn_payload(s):
    d = Sdp(s)
    d.message('a', sdp.DISCONN, payload=text(4) if s.bad else b'', mark=7)
    s.stop()


@stream('SDP-6.5.1.2-1 SDP-6.5.1-2', 'SuspComm has Constant1 1')
def susp_constant(s):
    d = Sdp(s)
    d.data('b')
    d.message('a', sdp.SUSP, struct.pack('>IHH', 0, 7001, 1), poke=(19, b'\x01'))
    d.message('b', sdp.SUSP_ACK)
    s.close('b')


@stream('SDP-6.3.2.1-1', 'SrcAvail of Len 0, in Pipelined Mode')
def src_avail_len(s):
    d = Sdp(s)
    d.mode('a', 4)
    d.src_avail('a', 64, 0x5100, 0x2000, poke=(19, b'\0'))
    s.stop()


@stream('SDP-9.3-8 SDP-9.3-16 SDP-6.3.6.1-1', 'Two RdmaWrCompl for the one SinkAvail')
def wr_compl_twice(s):
    d = Sdp(s)
    d.mode('a', 4)
    d.sink_avail('b', 4096, 0x7100, 0x8000, 0)
    s.fpdu('a', tagged(WRITE, 0x7100, 0x8000, text(40)))
    if s.bad:
        d.message('a', sdp.WR_COMPL, struct.pack('>I', 20))
        d.message('a', sdp.WR_COMPL, struct.pack('>I', 20), inval=0x7100, mark=3)
    else:
        d.message('a', sdp.WR_COMPL, struct.pack('>I', 40), inval=0x7100)
    s.stop()


@stream('SDP-9.5.5-7 SDP-9.5.5-2', 'A Write starts after the SinkAvailCancel was acknowledged')
def write_after_cancel(s):
    d = Sdp(s)
    d.mode('a', 4)
    d.sink_avail('b', 4096, 0x7100, 0x8000, 0)
    if s.bad:
        d.message('b', 9, op=SEND_SE)
        d.message('a', 0xA, op=SEND_SE)
        s.fpdu('a', tagged(WRITE, 0x7100, 0x8000, text(40)), mark=1)
    else:
        s.fpdu('a', tagged(WRITE, 0x7100, 0x8000, text(40)))
        d.message('a', sdp.WR_COMPL, struct.pack('>I', 40), inval=0x7100)
    s.stop()


@stream('SDP-12.1-2', 'ModeChange to Buffered while the SrcAvail is open')
def buffered_too_early(s):
    d = Sdp(s)
    d.src_avail('a', 64, 0x5100, 0x2000, 8)
    swap(s, lambda: d.fetch('b', 56, 0x5100, 0x2008), lambda: d.mode('a', 0, mark=3))
    s.stop()


@stream('SDP-12-18 SDP-12-17 SDP-11-16 SDP-11-6 SDP-11.1-2', 'SrcAvail in Buffered Mode')
def src_avail_buffered(s):
    d = Sdp(s)
    if s.bad:
        d.mode('a', 0)
    d.src_avail('a', 64, 0x5100, 0x2000, 8, mark=3)
    s.stop()


@stream('SDP-6.1.3-1', 'The window edge MSeqAck + Bufs steps back')
def edge_back(s):
    d = Sdp(s)
    d.data('a')
    d.data('b')
    d.data('a', poke=(1, b'\x08'))
    d.data('b')
    s.stop()


@stream('SDP-6.1.6-1', 'MSeqAck goes back from 2 to 1')
def mseqack_back(s):
    d = Sdp(s)
    d.data('a')
    d.data('a')
    d.data('b')
    d.data('b', poke=(15, b'\x01'))
    s.stop()


@stream('SDP-9.5.3-4', 'OOB_PEND is announced twice for the one OOB octet')
def oob_pend_twice(s):
    d = Sdp(s)
    d.data('a', flags=2, op=SEND_SE)
    d.data('a', flags=2 if s.bad else 0, op=SEND_SE if s.bad else SEND, mark=2)
    d.data('a', 3, flags=1, op=SEND_SE)
    d.close()


@stream('SDP-9.5.5-11', 'A new SinkAvail before the SinkAvailCancel is acknowledged')
def sink_avail_after_cancel(s):
    d = Sdp(s)
    d.mode('a', 4)
    d.sink_avail('b', 4096, 0x7100, 0x8000, 0)
    d.message('b', 9, op=SEND_SE)
    swap(s, lambda: d.message('a', 0xA, op=SEND_SE), lambda: d.sink_avail('b', 4096, 0x7200, 0x9000, 0, mark=3))
    s.stop()


@stream('SDP-9.2-36 SDP-9.2-34', 'RdmaRdCompl after SendSm, before the Data that SendSm requested')
def rd_compl_after_send_sm(s):
    d = Sdp(s)
    d.mode('a', 4)
    d.data('b', 0)
    d.src_avail('a', 64, 0x5100, 0x2000)
    d.src_avail('a', 32, 0x5200, 0x3000)
    s.read('b', 0x900, 0x4000, 32, 0x5200, 0x3000)
    s.fpdu('a', tagged(READ_RESP, 0x900, 0x4000, text(32)))
    d.message('b', sdp.SENDSM)
    swap(s, lambda: d.data('a', 64), lambda: d.message('b', sdp.RD_COMPL, struct.pack('>I', 32), inval=0x5200, mark=3))
    s.stop()


@stream('SDP-9.5.4-5', 'MSeqAck passes the SrcAvailCancel while the Read is still in process')
def ack_of_cancel(s):
    d = Sdp(s)
    d.src_avail('a', 64, 0x5100, 0x2000, 8)
    s.read('b', 0x900, 0x4000, 56, 0x5100, 0x2008)
    d.message('a', 8, op=SEND_SE)
    if not s.bad:
        d.last['b'] = 1
    d.data('b', 0, mark=15)
    s.fpdu('a', tagged(READ_RESP, 0x900, 0x4000, text(56)))
    d.last['b'] = 2
    d.message('b', sdp.RD_COMPL, struct.pack('>I', 56), inval=0x5100)
    s.stop()


# ---- Port mapper ----
@stream('PM-7.4-20 PM-7.4-18 PM-7.3.1.3-2', 'IPV of the PMAccept is 6 (PMReq: 4)', 'crc')
def mapper_ipv(s):
    mapper_message(s, 'a', 0, 80)
    mapper_message(s, 'b', 1, 7000, 0, b'\x16')


@stream('PM-7.4-59 PM-7.3.1.8-2 PM-7.4-51', 'AssocHandle of the PMDeny differs from the PMReq', 'crc')
def mapper_deny_handle(s):
    mapper_message(s, 'a', 0, 80)
    mapper_message(s, 'b', 3, 80, 8, b'\x99')


@stream('PM-7.3-1', 'A PMReq of 50 octets', 'crc')
def mapper_50(s):
    s.b.port = 3935
    s.datagram('a', sdp.mapper(s, 0, 80) + (b'\0\0' if s.bad else b''), 48 if s.bad else None)
    mapper_message(s, 'b', 1, 7000)
    mapper_message(s, 'a', 2, 7000)


@stream('PM-7.4-12 PM-7.5.1-7 PM-7.5.1-1', 'Two open PMReqs have the same AssocHandle, with other ApPorts', 'crc')
def mapper_same_handle(s):
    mapper_message(s, 'a', 0, 80)
    other = sdp.mapper(s, 0, 90)
    other = put(other, 6, struct.pack('>H', 41002))
    if not s.bad:
        other = put(other, 8, b'\x33')
    s.datagram('a', other, 8)
    s.stop()


@stream('PM-7.4-31 PM-7.4-44 PM-7.4-45', 'The PMAck goes from another UDP port than the PMReq', 'crc')
def mapper_ack_source(s):
    mapper_message(s, 'a', 0, 80)
    mapper_message(s, 'b', 1, 7000)
    data = sdp.mapper(s, 2, 7000)
    port = s.a.port
    if s.bad:
        s.a.port += 1
    s.datagram('a', data, -8 + 1)
    s.a.port = port


@stream('SDP-6.1.5-2 SDP-6.2-1 SDP-8.1.1-4 SDP-10.1-1', 'A second HelloAck (MSeq 0 again) in the middle of the connection')
def hello_ack_again(s):
    d = Sdp(s)
    d.data('a')
    if s.bad:
        d.last['b'] = 0
        d.message('b', sdp.HELLO_ACK, struct.pack('>HBBIHH', 8, 0, 0x11, sdp.BUFFER, 4, 4), mark=3)
        d.last['b'] = 1
        d.last['a'] = 0
    d.data('b')
    d.close()


if __name__ == '__main__':
    write(sys.argv[1:], 'more', STREAMS)
