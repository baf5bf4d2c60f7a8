#!/usr/bin/env python3
"""More streams like those of illegal.py. Their faults are visible only in comparison with
earlier messages. The options are the same."""
import struct
import sys
import sdp
from sdp import Sdp
from stack import *
from illegal import book, mapper_message, swap, write

STREAMS = []
stream = book(STREAMS, 'H', 100)


def enhanced(s, request, reply, poke=None, s_reply=1, request_s=1):
    """Does a start-up with the two words of RFC 6581 in each frame. `poke` changes the Reply."""
    s.connect()
    s.request(rev=2, s=request_s, private=s.enhanced(*request))
    s.reply(rev=2, s=s_reply, private=s.enhanced(*reply), poke=poke)


# ---- MPA start-up and FPDU ----
@stream('P2P-9.1-13', 'Request has ORD 3FFF, the Reply answers with an IRD of 4')
def ird_not_open(s):
    enhanced(s, (0x0004, 0x3FFF), (0x3FFF, 0x0004), poke=(20, b'\x00\x04'))
    s.greet()
    s.close()


@stream('P2P-10-3 P2P-10-11', 'Reply has S=1 to a Rev 2 Request with S=0')
def reply_enhanced_unrequested(s):
    s.connect()
    s.request(rev=2)
    s.reply(rev=2, private=bytes(4), poke=(16, bytes([s.use_markers << 7 | s.crc << 6 | 0x10])))
    s.greet()
    s.close()


@stream('P2P-9.2-2', 'Request with A=1 offers no RTR type, yet its sender then makes a Write RTR')
def no_rtr_type(s):
    s.connect()
    s.request(rev=2, s=1, private=s.enhanced(0x8002, 0x8002), poke=(22, b'\x00'))
    s.reply(rev=2, s=1, private=s.enhanced(0x8002, 0x8002))
    s.fpdu('a', tagged(WRITE, 0, 0))
    s.rdma_send('b')
    s.close()


@stream('P2P-9.2-9 P2P-5-4', 'The Reply takes a Read RTR only, the Initiator sends a zero-length Write')
def rtr_not_agreed(s):
    enhanced(s, (0x8002, 0xC002), (0x8002, 0x4002))
    if s.bad:
        s.fpdu('a', tagged(WRITE, 0, 0), mark=1)
    else:
        s.read('a', 0, 0, 0, 0, 0)
        s.fpdu('b', tagged(READ_RESP, 0, 0))
    s.rdma_send('a')
    s.rdma_send('b')
    s.close()


@stream('MPA-4.3-15 MPA-4.3-7 MPA-4.2-4 MPA-4.3-5 MPA-4.3-14', 'A Marker between two FPDUs is not zero', 'markers')
def marker_between(s):
    s.start()
    s.rdma_send('a', 512 - 4 - 2 - 18 - 4)                     # this FPDU ends at octet 512
    s.rdma_send('b')
    s.rdma_send('a', marker=lambda n, value: b'\0\0\0\x10', mark='marker')
    frame, at = s.wrong or (0, 0)
    s.wrong = frame, at + 3
    s.close()


@stream('MPA-4.3-8 MPA-4.4-17 MPA-4.4-14 MPA-4.4-15 MPA-4.3-1 MPA-4.1-6 MPA-4.4-9 MPA-7.1.1-12',
        'The CRC leaves out the Marker directly before the FPDU', 'markers')
def crc_without_marker(s):
    s.start()
    s.rdma_send('a', 512 - 4 - 2 - 18 - 4)
    s.rdma_send('b')
    segment = untagged(SEND, s.next('a', SEND), text(16))
    s.fpdu('a', segment, crc=lambda value: crc32c(struct.pack('>H', len(segment)) + segment), mark='crc')
    if s.bad:
        s.message('b', TERM, term_header(0x20, 2))
    s.close('b')


# ---- DDP ----
@stream('DDP-4.3-5 DDP-4.3-15 DDP-4.3-14 RDMAP-5.3-15 RDMAP-4.1-21', 'The second segment of a Send has QN 2')
def qn_changes(s):
    s.start()
    s.greet()
    msn = s.next('a', SEND)
    s.fpdu('a', untagged(SEND, msn, text(32), last=0))
    s.fpdu('a', untagged(SEND, msn, text(16, 32), mo=32), poke=(9, b'\x02'))
    s.stop()


@stream('DDP-4.1-6 DDP-4.1-7', 'The segment with L=1 is sent before the other one of its message')
def last_segment_first(s):
    s.start()
    s.greet()
    msn = s.next('a', SEND)
    swap(s, lambda: s.fpdu('a', untagged(SEND, msn, text(32), last=0)),
         lambda: s.fpdu('a', untagged(SEND, msn, text(16, 32), mo=32), mark=0))
    s.rdma_send('b')
    s.close()


@stream('DDP-4.3-7 RDMAP-5.4-2', 'The Terminate has MSN 2 on queue 2')
def terminate_msn(s):
    s.start()
    s.greet()
    s.message('b', TERM, term_header(0x00, 1), poke=(13, b'\x02'))
    s.close('b')


@stream('DDP-4.1-4 RDMAP-5.4-2', 'The Terminate has L=0')
def terminate_not_last(s):
    s.start()
    s.greet()
    s.message('b', TERM, term_header(0x00, 1), poke=(0, b'\x01'))
    s.close('b')


@stream('DDP-4.3-6', 'Immediate Data counts MSNs of its own, apart from the Sends of queue 0')
def immediate_msn(s):
    s.start()
    s.greet()
    s.rdma_send('a')
    s.message('a', IMM, text(8), poke=(13, b'\x01'))
    s.stop()


@stream('DDP-4.3-6 RDMAP-7306.5.2-1', 'An Atomic Request counts MSNs of its own, apart from the Read Requests of queue 1')
def atomic_msn(s):
    s.start()
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000)
    s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16)))
    s.message('a', ATOMIC_REQ, fetch_add(1, 0x5100, 0x2000, 5), poke=(13, b'\x01'))
    s.stop()


@stream('DDP-4.3-6', 'The second Read Request repeats MSN 1')
def read_request_msn_twice(s):
    s.start()
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000)
    s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16)))
    s.read('a', 0x900, 0x5000, 16, 0x5100, 0x2010, poke=(13, b'\x01'))
    s.stop()


# ---- RDMAP ----
@stream('RDMAP-4.4-8 DDP-5.2-6 RDMAP-3.1-4 RDMAP-5.2.1-18', 'The Read Response begins 8 octets after the SinkTO')
def read_response_to(s):
    s.start()
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000)
    s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16)), poke=(13, b'\x08'))
    s.stop()


@stream('RDMAP-5.2.1-21 RDMAP-4.4-9 RDMAP-5.2.1-18 DDP-5.2-8', 'A Read of no octets is answered by 4')
def zero_read_data(s):
    s.start()
    s.read('a', 0x900, 0x4000, 0, 0x5100, 0x2000)
    s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(4 if s.bad else 0)), mark='len')
    s.stop()


@stream('RDMAP-5.2-1 RDMAP-1.2-1 RDMAP-5.2.1-18', 'A second Read Response to the one Read Request')
def read_response_twice(s):
    s.start()
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000)
    s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16)))
    if s.bad:
        s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16)), mark=1)
    s.stop()


@stream('RDMAP-5.2.1-14 RDMAP-7306.7-14 RDMAP-5.2.2-8 RDMAP-7306.5.2.2-11 RDMAP-7306.5.4-11', 'Atomic Response before the Read Response that was requested first')
def atomic_before_read(s):
    s.start()
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000)
    s.message('a', ATOMIC_REQ, fetch_add(1, 0x5100, 0x2020, 5))
    swap(s, lambda: s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16))),
         lambda: s.message('b', ATOMIC_RESP, struct.pack('>IQ', 1, 7), mark=1))
    s.stop()


@stream('RDMAP-7306.5.2.2-3 RDMAP-7306.5.2.2-1 RDMAP-7306.5.2.1-21', 'Atomic Response has another Request Identifier')
def atomic_ident(s):
    s.start()
    s.message('a', ATOMIC_REQ, fetch_add(0x71, 0x5100, 0x2000, 5))
    s.message('b', ATOMIC_RESP, struct.pack('>IQ', 0x71, 7), poke=(21, b'\x17'))
    s.stop()


@stream('RDMAP-7306.5.2.2-11 RDMAP-7306.5.4-11', 'Two Atomic Responses in the other order (identifiers and values exchanged)')
def atomic_order(s):
    s.start()
    s.message('a', ATOMIC_REQ, fetch_add(0x71, 0x5100, 0x2000, 5))
    s.message('a', ATOMIC_REQ, fetch_add(0x72, 0x5100, 0x2008, 5))
    swap(s, lambda: s.message('b', ATOMIC_RESP, struct.pack('>IQ', 0x71, 7)),
         lambda: s.message('b', ATOMIC_RESP, struct.pack('>IQ', 0x72, 9), mark=21))
    s.stop()


@stream('RDMAP-7306.5.2-3 RDMAP-6.1-7 P2P-9.1-9 P2P-9.1-4 P2P-4.1-2', 'A Read and an Atomic outstanding, the Responder sent IRD 1')
def atomic_above_ird(s):
    enhanced(s, (1, 1), (1, 1))
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000)
    swap(s, lambda: s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16))),
         lambda: s.message('a', ATOMIC_REQ, fetch_add(1, 0x5100, 0x2020, 5), mark=1))
    s.message('b', ATOMIC_RESP, struct.pack('>IQ', 1, 7))
    s.close()


def read_refused(s, change=lambda header: header, **more):
    """'b' cannot answer a Read. Its Terminate 01 FF (unspecified) has the headers of the Read
    Request."""
    s.start()
    segment = s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000)
    header = term_header(0x01, 0xFF, segment, rdma=True)
    s.message('b', TERM, change(header) if s.bad else header, **more)
    s.close('b')


@stream('RDMAP-4.8-12 RDMAP-4.8-1 RDMAP-4.8-5', 'Terminate has R=1 but no RDMA header')
def terminate_no_rdma_header(s):
    read_refused(s, change=lambda header: header[:-28], mark=18 + 2)


@stream('RDMAP-4.8-42 RDMAP-4.8-12', 'The RDMA header in the Terminate has another SrcTO than the Read Request')
def terminate_other_rdma_header(s):
    read_refused(s, poke=(18 + 6 + 18 + 27, b'\x40'))


@stream('RDMAP-4.8-10', 'The DDP header in the Terminate has another MSN than the Read Request')
def terminate_other_ddp_header(s):
    read_refused(s, poke=(18 + 6 + 13, b'\x07'))


@stream('RDMAP-5.4-12', 'A second Terminate of the same peer')
def terminate_twice(s):
    s.start()
    s.greet()
    s.message('b', TERM, term_header(0x00, 1))
    if s.bad:
        s.message('b', TERM, term_header(0x00, 1), mark=1)
    s.close('b')


# ---- SDP ----
@stream('SDP-9.5.1-1 SDP-9.3-2 SDP-9.4-3', 'SinkAvail for a buffer of 1024, the size of the own Private Buffers')
def sink_avail_small(s):
    d = Sdp(s)
    d.mode('a', 4)
    d.sink_avail('b', 1025, 0x7100, 0x8000, 0, poke=(19, b'\x00'))
    s.fpdu('a', tagged(WRITE, 0x7100, 0x8000, text(40)))
    d.message('a', sdp.WR_COMPL, struct.pack('>I', 40), inval=0x7100)
    d.close()


@stream('SDP-10-6 SDP-9.1-1 SDP-10-2', 'A Data message of 1028 octets to buffers of 1024')
def above_buffer(s):
    d = Sdp(s)
    d.data('a', 1012 if s.bad else 1008, mark=7)
    d.close()


@stream('SDP-12-17 SDP-12-20 SDP-11-8 SDP-11-20 SDP-8.1.1-29 SDP-8.1.1-39 SDP-12-23', 'SinkAvail in Combined Mode')
def sink_avail_combined(s):
    d = Sdp(s)
    swap(s, lambda: d.mode('a', 4), lambda: d.sink_avail('b', 4096, 0x7100, 0x8000, 0, mark=3))
    d.close()


@stream('SDP-12-5 SDP-12-8 SDP-12-10 SDP-12-1', 'The Data Sink changes Combined to Pipelined (S=1), which only the Source may')
def mode_by_slave(s):
    d = Sdp(s)
    d.data('a')
    d.mode('b', 4, poke=(19, b'\x05'))
    s.stop()


@stream('SDP-12-7 SDP-12-1', 'ModeChange from Pipelined to Buffered')
def pipelined_to_buffered(s):
    d = Sdp(s)
    d.mode('a', 4)
    d.data('b', 0)
    d.mode('a', 2, poke=(19, b'\x00'))
    s.stop()


@stream('SDP-12.4-3', 'ModeChange to Pipelined again before the one to Combined is acknowledged')
def mode_too_early(s):
    d = Sdp(s)
    d.mode('a', 4)
    d.data('b', 0)
    d.mode('a', 2)
    swap(s, lambda: d.data('b', 0), lambda: d.mode('a', 4, mark=3))
    d.close()


@stream('SDP-6.3.7.1-2 SDP-6.3.7.1-3 SDP-6.3.7.1-1 SDP-9.2-13', 'RdmaRdCompl counts the 8 octets that came as payload of the SrcAvail')
def rd_compl_len(s):
    d = Sdp(s)
    d.src_avail('a', 64, 0x5100, 0x2000, 8)
    s.read('b', 0x900, 0x4000, 56, 0x5100, 0x2008)
    s.fpdu('a', tagged(READ_RESP, 0x900, 0x4000, text(56)))
    d.message('b', sdp.RD_COMPL, struct.pack('>I', 56), inval=0x5100, poke=(19, b'\x40'))
    s.stop()


@stream('SDP-9.2-12 SDP-9.2-1 SDP-6.3.7.1-1', 'RdmaRdCompl before the Read Response')
def rd_compl_early(s):
    d = Sdp(s)
    d.src_avail('a', 64, 0x5100, 0x2000, 8)
    s.read('b', 0x900, 0x4000, 56, 0x5100, 0x2008)
    swap(s, lambda: s.fpdu('a', tagged(READ_RESP, 0x900, 0x4000, text(56))),
         lambda: d.message('b', sdp.RD_COMPL, struct.pack('>I', 56), inval=0x5100, mark=3))
    s.stop()


@stream('SDP-6.3.6.1-1 SDP-9.3-14', 'RdmaWrCompl reports 48 octets, 40 were written')
def wr_compl_len(s):
    d = Sdp(s)
    d.mode('a', 4)
    d.sink_avail('b', 4096, 0x7100, 0x8000, 0)
    s.fpdu('a', tagged(WRITE, 0x7100, 0x8000, text(40)))
    d.message('a', sdp.WR_COMPL, struct.pack('>I', 40), inval=0x7100, poke=(19, b'\x30'))
    s.stop()


@stream('SDP-6.3.3.3-2 DDP-4.2-5 DDP-4.2-11', 'The Write names another STag than the SinkAvail')
def write_other_stag(s):
    d = Sdp(s)
    d.mode('a', 4)
    d.sink_avail('b', 4096, 0x7100, 0x8000, 0)
    s.fpdu('a', tagged(WRITE, 0x7100, 0x8000, text(40)), poke=(4, b'\x72'))
    d.message('a', sdp.WR_COMPL, struct.pack('>I', 40), inval=0x7100)
    s.stop()


@stream('SDP-11.2-6 SDP-11.2-8 SDP-11-10', 'Combined Mode: Data with payload while the own SrcAvail is open')
def data_beside_src_avail(s):
    d = Sdp(s)
    d.src_avail('a', 64, 0x5100, 0x2000, 8)
    swap(s, lambda: d.fetch('b', 56, 0x5100, 0x2008), lambda: d.data('a', mark=3))
    s.stop()


@stream('SDP-9.5.4-10', 'A new SrcAvail before the SrcAvailCancel is answered')
def src_avail_after_cancel(s):
    d = Sdp(s)
    d.mode('a', 4)
    d.data('b', 0)
    d.src_avail('a', 64, 0x5100, 0x2000)
    d.message('a', 8, op=SEND_SE)
    swap(s, lambda: d.message('b', sdp.SENDSM), lambda: d.src_avail('a', 64, 0x5200, 0x3000, mark=3))
    s.stop()


@stream('SDP-11.3-23', 'Two SrcAvails open, the peer sent MaxAdverts 1')
def above_max_adverts(s):
    d = Sdp(s, adverts=1)
    d.mode('b', 4)
    d.data('a', 0)
    d.src_avail('b', 64, 0x5100, 0x2000)
    swap(s, lambda: d.fetch('a', 64, 0x5100, 0x2000), lambda: d.src_avail('b', 64, 0x5200, 0x3000, mark=3))
    s.stop()


@stream('SDP-8.1.1-27 RDMAP-6.1-7', 'Two Reads outstanding, the Hello had LocIRD 1')
def reads_above_locird(s):
    d = Sdp(s, ird=1)
    d.src_avail('a', 64, 0x5100, 0x2000, 8)
    s.read('b', 0x900, 0x4000, 20, 0x5100, 0x2008)
    swap(s, lambda: s.fpdu('a', tagged(READ_RESP, 0x900, 0x4000, text(20))),
         lambda: s.read('b', 0x900, 0x4014, 36, 0x5100, 0x201C, mark=1))
    s.fpdu('a', tagged(READ_RESP, 0x900, 0x4014, text(36)))
    d.message('b', sdp.RD_COMPL, struct.pack('>I', 56), inval=0x5100)
    d.close()


@stream('SDP-9.5.3-5 SDP-9.5.3-2 SDP-9.5.3-4', 'A Data message with OOB_PRES, never an OOB_PEND')
def oob_unannounced(s):
    d = Sdp(s)
    d.data('a', 9, flags=3, op=SEND_SE, poke=(2, b'\x01'))
    d.close()


@stream('SDP-10.5-6', 'A message on no credit')
def message_on_no_credit(s):
    d = Sdp(s, bufs=3)
    d.data('a')
    d.data('b')                                          # 3 credits: payload allowed; 2 are left
    d.data('b', 0)                                       # 1 is left
    if s.bad:
        d.bufs['b'] += 4                                 # widens the window: allowed on the last credit
        d.data('b', 0)
        d.bufs['b'] += 4
        d.data('b', 0, mark=11)
    else:
        d.bufs['b'] += 4
        d.data('b', 0)
        d.data('a', 0)
        d.bufs['b'] += 4
        d.data('b', 0)
    s.stop()


@stream('SDP-13.1.1-12', 'A Data message follows the own SuspCommAck')
def data_after_susp_ack(s):
    d = Sdp(s)
    d.data('b')
    d.data('a')
    d.message('a', sdp.SUSP, struct.pack('>IHH', 0, 7001, 1))
    swap(s, lambda: d.data('b', mark=3), lambda: d.message('b', sdp.SUSP_ACK))
    s.close('b')


@stream('SDP-6.2.4-2 SDP-8.2.2-3', 'AbortConn without a DisConn before')
def abort_first(s):
    d = Sdp(s)
    d.data('a')
    d.data('b')
    if not s.bad:
        d.message('a', sdp.DISCONN)
    d.message('a', sdp.ABORT, mark=3)
    s.close('a')


@stream('SDP-10.6-9', 'ChRcvBufAck shrinks the buffers to 256, below the requested 512')
def resize_below(s):
    d = Sdp(s)
    d.message('a', sdp.CH_BUF, struct.pack('>I', 512))
    d.message('b', sdp.CH_BUF_ACK, struct.pack('>I', 512), poke=(18, b'\x01'))
    d.close()


@stream('SDP-10.6-18', 'A second decrease is requested after the first was answered with the old size')
def resize_again(s):
    d = Sdp(s)
    d.message('a', sdp.CH_BUF, struct.pack('>I', 512))
    d.message('b', sdp.CH_BUF_ACK, struct.pack('>I', sdp.BUFFER))
    if s.bad:
        d.message('a', sdp.CH_BUF, struct.pack('>I', 600), mark=3)
        d.message('b', sdp.CH_BUF_ACK, struct.pack('>I', sdp.BUFFER))
    d.close()


@stream('SDP-9.2-18 SDP-9.5.2.1-6', 'Two SendSm for the one SrcAvail')
def send_sm_twice(s):
    d = Sdp(s)
    d.src_avail('a', 64, 0x5100, 0x2000, 8)
    d.message('b', sdp.SENDSM)
    if s.bad:
        d.message('b', sdp.SENDSM, mark=3)
    d.data('a', 56)
    d.close()


# ---- Port mapper ----
@stream('PM-7.4-24 PM-7.3.1.7-2 PM-7.4-18', 'CpPort of the PMAccept differs from the PMReq', 'crc')
def mapper_cp_port(s):
    mapper_message(s, 'a', 0, 80)
    mapper_message(s, 'b', 1, 7000, 6, struct.pack('>H', 41001))
    if not s.bad:
        mapper_message(s, 'a', 2, 7000)


@stream('PM-7.4-55 PM-7.4-51', 'PmTime of a PMDeny is not zero', 'crc')
def mapper_deny_time(s):
    mapper_message(s, 'a', 0, 80)
    mapper_message(s, 'b', 3, 80, 1, b'\x10')


@stream('PM-7.4-41 PM-7.3.1.9-2 PM-7.4-32', 'CpIPAddr of the PMAck differs from the PMAccept', 'crc')
def mapper_ack_address(s):
    mapper_message(s, 'a', 0, 80)
    mapper_message(s, 'b', 1, 7000)
    mapper_message(s, 'a', 2, 7000, 19, b'\x09')


@stream('PM-7.4-17 PM-7.4-29', 'The PMAccept goes to another UDP port than the PMReq came from', 'crc')
def mapper_accept_port(s):
    mapper_message(s, 'a', 0, 80)
    port = s.a.port
    data = sdp.mapper(s, 1, 7000)
    if s.bad:
        s.a.port += 1000
    s.datagram('b', data, -6 + 1)                         # the UDP destination port
    s.a.port = port


if __name__ == '__main__':
    write(sys.argv[1:], 'harder', STREAMS)
