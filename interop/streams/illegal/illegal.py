#!/usr/bin/env python3
"""Writes iWARP captures that each break exactly one MUST, and their clean twins.

illegal.py [OUTDIR]            illegal-crc.pcapng, illegal-plain.pcapng, illegal-markers.pcapng and illegal.csv
illegal.py --each DIR [OUTDIR] also DIR/MODE/ID.bad.pcap and DIR/MODE/ID.clean.pcap
"""
import csv
import pathlib
import struct
import sys
import sdp
from sdp import Sdp
from stack import *

MODES = ('crc', 'plain', 'markers')
STREAMS = []


def book(streams, letter, base=0):
    """Returns a decorator that adds a stream to `streams`. Its arguments are the violated ids, a
    description, the modes, and the MSS of both ends."""
    def stream(ids, what, modes='crc plain markers', mss=1460):
        def add(function):
            number = len(streams) + 1
            name = '%s%02d-%s' % (letter, number, function.__name__.replace('_', '-'))
            streams.append((base + number, name, ids, what, modes.split(), mss, function))
        return add
    return stream


stream = book(STREAMS, 'I')


def swap(s, first, second):
    """Executes `first` and then `second`. In the bad stream, the order is reversed."""
    for step in (second, first) if s.bad else (first, second):
        step()


def refused(s):
    """The Responder closes after a malformed Request. After a good Request, it continues as
    usual."""
    if not s.bad:
        s.reply()
        s.greet()
    s.close('b')


# ---- MPA start-up ----
@stream('MPA-7.1.1-1 MPA-7.1.2-1', 'Request key has f for F in Frame')
def request_key(s):
    s.connect()
    s.request(poke=(11, b'f'))
    refused(s)


@stream('MPA-7.1.1-3', 'Reply carries the Request key (q for p)')
def reply_key(s):
    s.connect()
    s.request()
    s.reply(poke=(9, b'q'))
    s.close('a')


@stream('MPA-7.1.1-18', 'Request has a reserved bit (0x01) set')
def request_reserved(s):
    s.connect()
    s.request(poke=(16, bytes([s.use_markers << 7 | s.crc << 6 | 1])))
    s.reply()
    s.greet()
    s.close()


@stream('MPA-7.1.1-20 MPA-7.1.2-1', 'Request has Rev 3')
def request_revision(s):
    s.connect()
    s.request(poke=(17, b'\x03'))
    refused(s)


@stream('MPA-7.1.1-28 MPA-7.1.1-26 MPA-7.1.2-1', 'Request has 513 octets of Private Data')
def private_data_513(s):
    s.connect()
    s.request(private=text(513 if s.bad else 512), mark=18)
    refused(s)


@stream('MPA-7.1.1-24 MPA-7.1.1-26 MPA-7.1.2-1 MPA-7.1.2-26', 'Request has 8 octets of Private Data, PD_Length is 4')
def private_data_length(s):
    s.connect()
    s.request(private=text(8), size=4 if s.bad else 8, mark=18)
    refused(s)


@stream('MPA-7.1.2-13 MPA-7.1.2-11 MPA-7.1.1-24 MPA-7.1.1-26', 'Initiator sends its first FPDU before it has the Reply')
def fpdu_before_reply(s):
    s.connect()
    s.request()
    known = s.a.seq
    s.a.markers = s.use_markers
    if s.bad:  # the Reply crosses the FPDU, and acknowledges only the Request
        s.rdma_send('a', mark='len')
        s.reply(ack=known)
        s.ack('b')
    else:
        s.reply()
        s.rdma_send('a')
    s.rdma_send('b')
    s.close()


@stream('MPA-7.1.2-17 P2P-3-4', 'Responder sends an FPDU before it has one from the Initiator')
def responder_first(s):
    s.start()
    swap(s, lambda: s.rdma_send('a'), lambda: s.rdma_send('b', 12, mark='len'))
    s.rdma_send('a')
    s.close()


@stream('P2P-6-6 MPA-7.1.1-18', 'Enhanced Request (S=1) has Rev 1')
def enhanced_revision_1(s):
    s.connect()
    s.request(rev=2, s=1, private=s.enhanced(0x8002, 0x8002), poke=(17, b'\x01'))
    if s.bad:
        s.reply()
    else:
        s.reply(rev=2, s=1, private=s.enhanced(0x8002, 0x8002))
    s.fpdu('a', tagged(WRITE, 0, 0))
    s.rdma_send('b')
    s.close()


@stream('P2P-9.2-3', 'Request with A=0 has B=1')
def flag_b_without_a(s):
    s.connect()
    s.request(rev=2, s=1, private=s.enhanced(0x0002, 0x0002), poke=(20, b'\x40'))
    s.reply(rev=2, s=1, private=s.enhanced(0x0002, 0x0002))
    s.greet()
    s.close()


@stream('P2P-9.2-4', 'Reply has A=0 (and B=0, one octet) to a Request with A=1')
def reply_without_a(s):
    s.connect()
    s.request(rev=2, s=1, private=s.enhanced(0xC002, 0x0002))
    s.reply(rev=2, s=1, private=s.enhanced(0xC002, 0x0002), poke=(20, b'\x00'))
    s.message('a', SEND)
    s.rdma_send('b')
    s.close()


@stream('P2P-9.1-20 P2P-9.1-5', 'Reply ORD 9 above the IRD 2 of the Request')
def reply_ord(s):
    s.connect()
    s.request(rev=2, s=1, private=s.enhanced(0x0002, 0x0002))
    s.reply(rev=2, s=1, private=s.enhanced(0x0002, 0x0002), poke=(22, b'\x00\x09'))
    s.greet()
    s.close()


@stream('P2P-10-2 P2P-10-9 P2P-6-9', 'Reply has S=0 to an enhanced Request')
def reply_not_enhanced(s):
    s.connect()
    s.request(rev=2, s=1, private=s.enhanced(0x8002, 0x8002))
    s.reply(rev=2, s=1, private=s.enhanced(0x8002, 0x8002), poke=(16, bytes([s.use_markers << 7 | s.crc << 6])))
    s.fpdu('a', tagged(WRITE, 0, 0))
    s.rdma_send('b')
    s.close()


@stream('P2P-9.2-9 P2P-5-4', 'Peer-to-peer set-up (Write RTR agreed), but the Initiator sends a Send first and no RTR')
def no_rtr(s):
    s.connect()
    s.request(rev=2, s=1, private=s.enhanced(0x8002, 0x8002))
    s.reply(rev=2, s=1, private=s.enhanced(0x8002, 0x8002))
    if not s.bad:
        s.fpdu('a', tagged(WRITE, 0, 0))
    s.rdma_send('a', mark=1)
    s.rdma_send('b')
    s.close()


# ---- FPDU ----
@stream('MPA-4.1-3', 'A PAD octet is not zero')
def pad_not_zero(s):
    s.start()
    s.greet()
    s.rdma_send('a', 13, pad=lambda fill: b'\x20' + fill[1:], mark='pad')
    s.rdma_send('b')
    s.close()


CRC_IDS = 'MPA-4.4-14 MPA-4.4-15 MPA-4.4-9 MPA-7.1.1-12 MPA-4.1-6 MPA-4.4-18 MPA-4.4-1 DDP-3-7'


@stream(CRC_IDS, 'One bit of a CRC is wrong', 'crc markers')
def crc_wrong(s):
    s.start()
    s.greet()
    s.rdma_send('a', 20, crc=lambda value: bytes([value[0] ^ 4]) + value[1:], mark='crc')
    if s.bad:
        s.message('b', TERM, term_header(0x20, 2))
    s.close('b')


@stream(CRC_IDS, 'CRC stored most significant octet first', 'crc markers')
def crc_byte_order(s):
    s.start()
    s.greet()
    s.rdma_send('a', 20, crc=lambda value: value[::-1], mark='crc')
    if s.bad:
        s.message('b', TERM, term_header(0x20, 2))
    s.close('b')


@stream('MPA-4.2-2', 'The reserved half of a Marker is not zero', 'markers')
def marker_reserved(s):
    s.start()
    s.greet()
    s.rdma_send('a', 500, marker=lambda n, value: b'\x80' + value[1:], mark='marker')
    s.rdma_send('b')
    s.close()


def last_octet(s, change):
    """Sends 500 octets with one Marker, in which the low octet of FPDUPTR is changed."""
    s.start()
    s.greet()
    s.rdma_send('a', 500, marker=lambda n, value: value[:3] + bytes([value[3] + change]), mark='marker')
    frame, at = s.wrong or (0, 0)
    s.wrong = (frame, at + 3)
    s.rdma_send('b')
    s.close()


@stream('MPA-4.2-5', 'FPDUPTR has a low-order bit set', 'markers')
def fpduptr_low_bits(s):
    last_octet(s, 1)


@stream('MPA-4.3-5 MPA-4.2-4 MPA-4.3-13 MPA-4.3-14', 'FPDUPTR is 4 too large', 'markers')
def fpduptr_off(s):
    last_octet(s, 4)


@stream('MPA-4.3-4 MPA-4.3-10 MPA-7.1.1-9 MPA-4.3-12', 'The Marker due at octet 512 is left out', 'markers')
def marker_missing(s):
    s.start()
    s.greet()
    s.rdma_send('a', 500, marker=lambda n, value: b'', mark='marker')
    s.stop()


@stream('MPA-7.1.1-8 MPA-1.2-5 MPA-7.1.2-21', 'A Marker before the first FPDU although the peer sent M=0', 'crc plain')
def marker_unrequested(s):
    s.start()
    segment = untagged(SEND, s.next('a', SEND), text(16))
    if s.bad:
        s.a.markers = True
    s.fpdu('a', segment, mark='marker' if s.bad else None)
    s.stop()


@stream('MPA-4.1-2 MPA-4.1-1', 'ULPDU_Length counts the CRC too')
def length_counts_crc(s):
    s.start()
    s.greet()
    s.rdma_send('a', 8, length=lambda size: size + 4, mark='len')
    s.rdma_send('a', 8)
    s.stop()


@stream('MPA-4.5-3 MPA-4.5-2 DDP-5.2-12 MPA-3-8 MPA-4.5-1 MPA-3-2', 'ULPDU 40 octets above MULPDU (MSS 536)', mss=536)
def above_mulpdu(s):
    s.start()
    s.greet()
    fit = (522 if s.use_markers else 530) - 18
    s.rdma_send('a', fit + (40 if s.bad else 0), mark='len')
    s.rdma_send('b')
    s.close()


@stream('MPA-4.4-13 MPA-4.1-8 MPA-4.1-1 MPA-7.1.1-13', 'The last FPDU has no CRC field')
def crc_field_missing(s):
    s.start()
    s.greet()
    s.rdma_send('a', 16, crc=lambda value: b'', mark='len')
    s.close()


# ---- DDP ----
@stream('DDP-4.1-10', 'A reserved bit of the DDP control field is set')
def ddp_reserved(s):
    s.start()
    s.greet()
    s.rdma_send('a', poke=(0, b'\x51'))
    s.rdma_send('b')
    s.close()


@stream('DDP-4.1-12 DDP-4.1-13 MPA-3-14 MPA-3-15 MPA-C.1-7', 'DDP version 2')
def ddp_version(s):
    s.start()
    s.greet()
    segment = s.rdma_send('a', poke=(0, b'\x42'))
    s.react('b', 0x12, 6, segment)


@stream('RDMAP-4.1-19 RDMAP-4.1-18 RDMAP-4.1-20 RDMAP-4.1-21 RDMAP-5.3-1 RDMAP-5.3-12 DDP-4.1-2 DDP-4.1-3 DDP-4.1-1',
        'A tagged segment has the opcode of Send')
def tagged_send(s):
    s.start()
    s.greet()
    s.fpdu('a', tagged(WRITE, 0x5100, 0x2000, text(16)), poke=(1, b'\x43'))
    s.stop()


@stream('DDP-4.1-4', 'A one-segment Send has L=0; the next message follows')
def last_flag_missing(s):
    s.start()
    s.greet()
    s.rdma_send('a', poke=(0, b'\x01'))
    s.rdma_send('a')
    s.stop()


@stream('DDP-4.1-5 DDP-4.1-6 DDP-4.1-7', 'The first of two segments has L=1')
def last_flag_early(s):
    s.start()
    s.greet()
    msn = s.next('a', SEND)
    s.fpdu('a', untagged(SEND, msn, text(32), last=0), poke=(0, b'\x41'))
    s.fpdu('a', untagged(SEND, msn, text(16, 32), mo=32))
    s.stop()


@stream('DDP-4.3-7', 'The first Send of the Responder has MSN 0')
def first_msn_0(s):
    s.start()
    s.rdma_send('a')
    segment = s.rdma_send('b', poke=(6 + 4, bytes(4)))
    s.react('a', 0x12, 3, segment)


@stream('DDP-4.3-6', 'MSN jumps from 1 to 3')
def msn_skips(s):
    s.start()
    s.greet()
    s.rdma_send('a', poke=(10, struct.pack('>I', 3)))
    s.stop()


@stream('DDP-4.3-9 DDP-4.3-16', 'The second segment of a Send has another MSN')
def msn_changes(s):
    s.start()
    s.greet()
    msn = s.next('a', SEND)
    s.fpdu('a', untagged(SEND, msn, text(32), last=0))
    s.fpdu('a', untagged(SEND, msn, text(16, 32), mo=32), poke=(10, struct.pack('>I', msn + 1)))
    s.stop()


@stream('DDP-4.3-10 DDP-5.2-5 DDP-1.2-5 DDP-4.3-11', 'The only segment of a Send has MO 4')
def first_mo_4(s):
    s.start()
    s.greet()
    s.rdma_send('a', poke=(14, struct.pack('>I', 4)))
    s.stop()


@stream('DDP-5.2-5 DDP-4.3-11', 'MO of the second segment leaves a gap of 4')
def mo_gap(s):
    s.start()
    s.greet()
    msn = s.next('a', SEND)
    s.fpdu('a', untagged(SEND, msn, text(32), last=0))
    s.fpdu('a', untagged(SEND, msn, text(16, 32), mo=32), poke=(14, struct.pack('>I', 36)))
    s.stop()


@stream('DDP-4.2-6 DDP-4.2-12 DDP-4.2-13 DDP-4.2-11 RDMAP-5.1-11', 'The second segment of a Write has another STag')
def stag_changes(s):
    s.start()
    s.greet()
    s.fpdu('a', tagged(WRITE, 0x5100, 0x2000, text(32), last=0))
    s.fpdu('a', tagged(WRITE, 0x5100, 0x2020, text(16, 32)), poke=(2, struct.pack('>I', 0x5200)))
    s.stop()


@stream('DDP-5.2-6 DDP-4.2-9', 'TO of the second segment of a Write is 8 too large')
def to_gap(s):
    s.start()
    s.greet()
    s.fpdu('a', tagged(WRITE, 0x5100, 0x2000, text(32), last=0))
    s.fpdu('a', tagged(WRITE, 0x5100, 0x2020, text(16, 32)), poke=(6, struct.pack('>Q', 0x2028)))
    s.rdma_send('a')
    s.rdma_send('b')
    s.close()


@stream('DDP-4.3-3 DDP-4.3-2 RDMAP-3.1-3', 'The second segment of a Send has the opcode of Send with Solicited Event')
def rsvdulp_changes(s):
    s.start()
    s.greet()
    msn = s.next('a', SEND)
    s.fpdu('a', untagged(SEND, msn, text(32), last=0))
    s.fpdu('a', untagged(SEND, msn, text(16, 32), mo=32), poke=(1, b'\x45'))
    s.stop()


@stream('DDP-5.2-8', 'A zero-length Send takes two segments')
def zero_length_twice(s):
    s.start()
    s.greet()
    msn = s.next('a', SEND)
    if s.bad:
        s.fpdu('a', untagged(SEND, msn, last=0))
    s.fpdu('a', untagged(SEND, msn), mark=0)
    s.rdma_send('b')
    s.close()


# ---- RDMAP ----
@stream('RDMAP-4.1-3 RDMAP-4.1-22 MPA-C.1-5 MPA-3-14', 'RDMAP version 0')
def rdmap_version(s):
    s.start()
    s.greet()
    segment = s.rdma_send('a', poke=(1, b'\x03'))
    s.react('b', 0x02, 5, segment)


@stream('RDMAP-4.1-4', 'A reserved bit of the RDMAP control field is set')
def rdmap_reserved(s):
    s.start()
    s.greet()
    s.rdma_send('a', poke=(1, b'\x53'))
    s.rdma_send('b')
    s.close()


@stream('RDMAP-4.1-20 RDMAP-4.1-14 RDMAP-7306.4.1-7 RDMAP-7.2-2 RDMAP-7306.8.2-5', 'Opcode 0xD')
def opcode_reserved(s):
    s.start()
    s.greet()
    segment = s.rdma_send('a', poke=(1, b'\x4d'))
    s.react('b', 0x02, 6, segment)


@stream('RDMAP-4.1-16', 'A plain Send has the Invalidate STag field set')
def send_reserved_field(s):
    s.start()
    s.greet()
    s.rdma_send('a', poke=(2, struct.pack('>I', 0x5100)))
    s.rdma_send('b')
    s.close()


@stream('RDMAP-5.2.1-11 RDMAP-5.2.1-12 RDMAP-4.1-21 DDP-4.3-14', 'A Read Request uses queue 0')
def read_request_queue(s):
    s.start()
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000, poke=(6, bytes(4)))
    if not s.bad:
        s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16)))
    s.stop()


@stream('RDMAP-4.4-5 RDMAP-3.1-4 DDP-4.2-11 DDP-4.2-5 RDMAP-5.2.1-18', 'The Read Response goes to another STag than the Read Request named')
def read_response_wrong_stag(s):
    s.start()
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000)
    segment = tagged(READ_RESP, 0x900, 0x4000, text(16))
    s.fpdu('b', segment, poke=(2, struct.pack('>I', 0x901)))
    s.react('a', 0x11, 0, put(segment, 2, struct.pack('>I', 0x901)))


@stream('RDMAP-4.4-9 RDMAP-5.2.1-18 DDP-5.2-3', 'The Read Response ends (L=1) after 32 of the 48 requested octets')
def read_response_short(s):
    s.start()
    s.read('a', 0x900, 0x4000, 48, 0x5100, 0x2000)
    s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(32), last=0), poke=(0, b'\xc1'))
    if not s.bad:
        s.fpdu('b', tagged(READ_RESP, 0x900, 0x4020, text(16, 32)))
    s.stop()


@stream('RDMAP-5.2.2-8 RDMAP-5.5-10', 'Two Read Responses come in the other order than their Requests')
def read_response_order(s):
    s.start()
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000)
    s.read('a', 0xA00, 0x6000, 24, 0x5100, 0x3000)
    swap(s, lambda: s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16))),
         lambda: s.fpdu('b', tagged(READ_RESP, 0xA00, 0x6000, text(24)), mark=2))
    s.stop()


@stream('RDMAP-6.1-7 P2P-9.1-9 P2P-9.1-4 P2P-4.1-2 P2P-3-2', 'Two Reads outstanding, the Responder sent IRD 1')
def reads_above_ird(s):
    s.connect()
    s.request(rev=2, s=1, private=s.enhanced(1, 1))
    s.reply(rev=2, s=1, private=s.enhanced(1, 1))
    s.read('a', 0x900, 0x4000, 16, 0x5100, 0x2000)
    swap(s, lambda: s.fpdu('b', tagged(READ_RESP, 0x900, 0x4000, text(16))),
         lambda: s.read('a', 0xA00, 0x6000, 24, 0x5100, 0x3000, mark=1))
    s.fpdu('b', tagged(READ_RESP, 0xA00, 0x6000, text(24)))
    s.close()


def given_up(s, change=lambda header: header, before=lambda: None, **more):
    """'b' fails during a Send for an internal reason. Its Terminate 02 07 has the DDP header of
    the Send."""
    s.start()
    s.greet()
    segment = s.rdma_send('a')
    before()
    header = term_header(0x02, 7, segment)
    s.message('b', TERM, change(header) if s.bad else header, **more)


@stream('RDMAP-4.8-6', 'A reserved bit of the Terminate header is set')
def terminate_reserved(s):
    given_up(s, poke=(18 + 3, b'\x01'))
    s.close('b')


@stream('RDMAP-4.8-38 RDMAP-4.8-4', 'Terminate has Remote Operation error 0x55, which is none')
def terminate_code(s):
    given_up(s, poke=(18 + 1, b'\x55'))
    s.close('b')


@stream('RDMAP-4.8-8', 'DDP Segment Length of the Terminate is 16 (payload only) for a segment of 34')
def terminate_length(s):
    given_up(s, poke=(18 + 4, struct.pack('>H', 16)))
    s.close('b')


@stream('RDMAP-4.8-10 RDMAP-4.8-1 RDMAP-4.8-5', 'Terminate has D=1 but no DDP header')
def terminate_header_missing(s):
    given_up(s, change=lambda header: header[:6], mark=18 + 2)
    s.close('b')


@stream('RDMAP-5.4-12', 'A Send follows the own Terminate')
def send_after_terminate(s):
    given_up(s, before=lambda: s.bad or s.rdma_send('b'))
    if s.bad:
        s.rdma_send('b', mark=1)
    s.close('b')


@stream('DDP-4.2-5 RDMAP-1.2-2 DDP-7.1-10 DDP-7.1-11', 'A Write uses an STag that the same sender has invalidated just before')
def write_after_invalidate(s):
    s.start()
    s.greet()
    s.fpdu('a', tagged(WRITE, 0x5100, 0x2000, text(16)))
    s.message('a', SEND_INV, text(8), inval=0x5100)
    segment = tagged(WRITE, 0x5200, 0x2000, text(16))
    s.fpdu('a', segment, poke=(2, struct.pack('>I', 0x5100)))
    s.react('b', 0x11, 0, put(segment, 2, struct.pack('>I', 0x5100)))


@stream('RDMAP-7306.5.1.1-3 RDMAP-7306.5.2.1-13', 'FetchAdd 4 octets after an aligned place of the same STag')
def fetch_add_unaligned(s):
    s.start()
    s.message('a', ATOMIC_REQ, fetch_add(1, 0x5100, 0x2000, 5))
    s.message('b', ATOMIC_RESP, struct.pack('>IQ', 1, 7))
    segment = s.message('a', ATOMIC_REQ, fetch_add(2, 0x5100, 0x2008, 5), poke=(30, struct.pack('>Q', 0x2004)))
    if s.bad:
        s.message('b', TERM, term_header(0x02, 7, segment))
    else:
        s.message('b', ATOMIC_RESP, struct.pack('>IQ', 2, 12))
    s.close('b')


@stream('RDMAP-7306.5.2.2-7 RDMAP-7306.5.2.2-8 RDMAP-7306.5-5 RDMAP-7306.5.2-2 DDP-4.3-14', 'Atomic Response on queue 0')
def atomic_response_queue(s):
    s.start()
    s.message('a', ATOMIC_REQ, fetch_add(1, 0x5100, 0x2000, 5))
    s.message('b', ATOMIC_RESP, struct.pack('>IQ', 1, 7), poke=(6, bytes(4)))
    s.stop()


@stream('RDMAP-7306.6.3-9 RDMAP-7306.6.3-4 RDMAP-7306.6.2-1 RDMAP-7306.4-1', 'Immediate Data of 7 octets')
def immediate_7(s):
    s.start()
    s.greet()
    s.message('a', IMM, text(7 if s.bad else 8), mark='len')
    s.stop()


# ---- SDP ----
@stream('SDP-6.2.1.8-1', 'Rsvd of the Hello is not zero')
def hello_reserved(s):
    d = Sdp(s, hello_poke=(18, b'\x01'))
    d.data('a')
    d.close()


@stream('SDP-6.2.1-6 SDP-10.3-1 SDP-10-4 SDP-10-2', 'Hello offers 2 buffers')
def hello_2_buffers(s):
    d = Sdp(s, hello_poke=(0, b'\x00\x02'))
    d.data('a')
    d.close()


@stream('SDP-6.1.2-8 SDP-6.1.2-1', 'OOB_PRES in a ModeChange')
def oob_in_mode_change(s):
    d = Sdp(s)
    d.mode('a', 4, poke=(2, b'\x01'))
    d.data('a')
    d.close()


@stream('SDP-6.1.4-1 SDP-6.1-1', 'Len of a Data message is one too large')
def sdp_length(s):
    d = Sdp(s)
    d.data('a', 8, poke=(4, struct.pack('>I', 25)))
    s.stop()


@stream('SDP-6.1.5-2 SDP-10.1-1', 'MSeq jumps from 1 to 3')
def mseq_skips(s):
    d = Sdp(s)
    d.data('a')
    d.data('a', poke=(8, struct.pack('>I', 3)))
    s.stop()


@stream('SDP-6.1.6-1', 'MSeqAck names a message that was never sent')
def mseqack_ahead(s):
    d = Sdp(s)
    d.data('a')
    d.data('b', poke=(12, struct.pack('>I', 9)))
    s.stop()


@stream('SDP-10.5-8 SDP-10.5-3 SDP-10.5-1 SDP-10.5-5', 'A Data message with payload is sent on two credits')
def payload_on_2_credits(s):
    d = Sdp(s, bufs=4)
    d.data('a')
    d.data('b')
    d.data('b')
    d.data('b', 1 if s.bad else 0, mark=16 if s.bad else None)
    d.data('a', 0)
    d.close()


@stream('SDP-9.2-2 SDP-11.2-9 SDP-11-9', 'SrcAvail without payload in Combined Mode')
def src_avail_empty(s):
    d = Sdp(s)
    copied = 0 if s.bad else 8
    d.src_avail('a', 64, 0x5100, 0x2000, copied, mark=3)
    d.fetch('b', 64 - copied, 0x5100, 0x2000 + copied)
    d.close()


@stream('SDP-9.2-3 SDP-11.3-7 SDP-11-13', 'SrcAvail with payload in Pipelined Mode')
def src_avail_payload(s):
    d = Sdp(s)
    d.mode('a', 4)
    d.data('b', 0)
    copied = 8 if s.bad else 0
    d.src_avail('a', 64, 0x5100, 0x2000, copied, mark=32 if s.bad else None)
    d.fetch('b', 64 - copied, 0x5100, 0x2000 + copied)
    d.close()


@stream('SDP-6.3.2.3-2', 'The Read Request names another STag than the SrcAvail')
def read_other_stag(s):
    d = Sdp(s)
    d.src_avail('a', 64, 0x5100, 0x2000, 8)
    if s.bad:
        segment = s.read('b', 0x900, 0x4000, 56, 0x5100, 0x2008, poke=(34, struct.pack('>I', 0x5200)))
        s.message('a', TERM, term_header(0x01, 0, segment, rdma=True))
        s.close('a')
    else:
        d.fetch('b', 56, 0x5100, 0x2008)
        d.close()


@stream('SDP-9.3-5 SDP-6.3.3.4-2 SDP-9.5.1-3', 'NonDiscards is 0 although one message with payload had come')
def non_discards(s):
    d = Sdp(s)
    d.data('a')
    d.mode('a', 4)
    d.sink_avail('b', 4096, 0x7100, 0x8000, 1, poke=(32, bytes(4)))
    if s.bad:  # the source detects that it is stale, and uses Bcopy
        d.data('a', 40)
    else:
        s.fpdu('a', tagged(WRITE, 0x7100, 0x8000, text(40)))
        d.message('a', sdp.WR_COMPL, struct.pack('>I', 40), inval=0x7100)
    d.close()


@stream('SDP-12-12 SDP-12-1', 'ModeChange to the Mode in force (Combined)')
def mode_in_force(s):
    d = Sdp(s)
    d.data('a')
    d.mode('a', 4, poke=(16, struct.pack('>I', 2)))
    s.stop()


@stream('SDP-10.6-19', 'A second ChRcvBuf before the first is acknowledged')
def resize_twice(s):
    d = Sdp(s)
    d.message('a', sdp.CH_BUF, struct.pack('>I', 512))
    swap(s, lambda: d.message('b', sdp.CH_BUF_ACK, struct.pack('>I', 512)),
         lambda: d.message('a', sdp.CH_BUF, struct.pack('>I', 256), mark=3))
    d.message('b', sdp.CH_BUF_ACK, struct.pack('>I', 256))
    d.close()


@stream('SDP-13.1.1-8', 'A Data message follows the own SuspComm')
def data_after_suspend(s):
    d = Sdp(s)
    d.data('b')
    swap(s, lambda: d.data('a', mark=3), lambda: d.message('a', sdp.SUSP, struct.pack('>IHH', 0, 7001, 1)))
    d.message('b', sdp.SUSP_ACK)
    s.close('b')


@stream('SDP-6.2.3-2 SDP-8.2.1-9 SDP-8.2.1-5 SDP-8.2.1-4 SDP-8.2.1-2', 'A Data message with payload follows the own DisConn')
def data_after_disconn(s):
    d = Sdp(s)
    d.data('b')
    swap(s, lambda: d.data('a', mark=3), lambda: d.message('a', sdp.DISCONN))
    d.message('b', sdp.DISCONN)
    s.close('b')


@stream('SDP-14.2-1', 'AbortConn goes as a plain Send')
def abort_unsolicited(s):
    d = Sdp(s)
    d.data('a')
    d.message('a', sdp.DISCONN)
    d.message('a', sdp.ABORT, poke=(1 - 18, b'\x43'))
    s.close('a')


# ---- Port mapper: UDP, so one mode is enough ----
def mapping(s, accept=(None, None), ack=(None, None)):
    """Sends PMReq, PMAccept and PMAck. The pairs (offset, octets) are the faults."""
    s.b.port = 3935
    for who, mt, port, (at, new) in (('a', 0, 80, (None, None)), ('b', 1, 7000, accept), ('a', 2, 7000, ack)):
        mapper_message(s, who, mt, port, at, new)


def mapper_message(s, who, mt, port, at=None, new=b''):
    s.b.port = 3935
    data = right = sdp.mapper(s, mt, port)
    mark = None
    if s.bad and at is not None:
        data = put(data, at, new)
        mark = next(n for n, octet in enumerate(data) if octet != right[n])
    s.datagram(who, data, mark)


@stream('PM-7.3.1.5-1', 'Reserved of a PMReq is not zero', 'crc')
def mapper_reserved(s):
    mapper_message(s, 'a', 0, 80, 2, b'\x00\x01')
    mapper_message(s, 'b', 1, 7000)
    mapper_message(s, 'a', 2, 7000)


@stream('PM-7.4-8', 'PmTime of a PMReq is not zero', 'crc')
def mapper_request_time(s):
    mapper_message(s, 'a', 0, 80, 1, b'\x08')
    mapper_message(s, 'b', 1, 7000)
    mapper_message(s, 'a', 2, 7000)


@stream('PM-7.3.1.1-1 PM-7.4-33 PM-7.4-32', 'Ver of a PMAck is 1', 'crc')
def mapper_version(s):
    mapping(s, ack=(0, b'\x64'))


@stream('PM-7.4-25 PM-7.3.1.8-2 PM-7.4-18', 'AssocHandle of a PMAccept differs in its last octet from the PMReq', 'crc')
def mapper_handle(s):
    s.b.port = 3935
    mapper_message(s, 'a', 0, 80)
    mapper_message(s, 'b', 1, 7000, 15, b'\xee')
    if not s.bad:
        mapper_message(s, 'a', 2, 7000)


@stream('PM-7.4-38 PM-7.3.1.6-3 PM-7.4-32', 'ApPort of the PMAck is the requested one, not the one of the PMAccept', 'crc')
def mapper_ack_port(s):
    mapping(s, ack=(4, struct.pack('>H', 80)))


@stream('PM-7.4-65', 'A PMAck answers a PMDeny', 'crc')
def mapper_ack_to_deny(s):
    mapper_message(s, 'a', 0, 80)
    mapper_message(s, 'b', 3, 80)
    if s.bad:
        s.datagram('a', sdp.mapper(s, 2, 80), 0)


@stream('PM-7.5.1-5', 'The repeated PMReq asks for another ApPort', 'crc')
def mapper_repeat(s):
    mapper_message(s, 'a', 0, 80)
    s.time += 500_000
    mapper_message(s, 'a', 0, 80, 4, struct.pack('>H', 81))
    mapper_message(s, 'b', 1, 7000)
    mapper_message(s, 'a', 2, 7000)


def make(entry, mode, bad):
    number, _, _, _, _, mss, function = entry
    s = Stream(number, mode, bad, mss)
    function(s)
    return s


def write(args, title, all_streams):
    each = None
    if args[:1] == ['--each']:
        each, args = pathlib.Path(args[1]), args[2:]
    out = pathlib.Path(args[0] if args else '.')
    out.mkdir(parents=True, exist_ok=True)
    rows = []
    for mode in MODES:
        streams = []
        for entry in all_streams:
            _, name, ids, what, modes, _, _ = entry
            if mode not in modes:
                continue
            bad, clean = make(entry, mode, True), make(entry, mode, False)
            assert bad.wrong, name
            streams.append((name, bad.frames))
            rows.append([name, mode, ids, bad.wrong[0], bad.wrong[1], what])
            if each:
                folder = each / mode
                folder.mkdir(parents=True, exist_ok=True)
                (folder / (name + '.bad.pcap')).write_bytes(pcap(bad.frames))
                (folder / (name + '.clean.pcap')).write_bytes(pcap(clean.frames))
        (out / ('%s-%s.pcapng' % (title, mode))).write_bytes(pcapng(streams))
    with open(out / (title + '.csv'), 'w', newline='') as table:
        writer = csv.writer(table, lineterminator='\n')
        writer.writerow(['id', 'mode', 'requirements', 'frame', 'octet', 'description'])
        writer.writerows(rows)


if __name__ == '__main__':
    write(sys.argv[1:], 'illegal', STREAMS)
