"""The strict checker: judges every SDP message of the other side.

The checker has a model of the other side.  The MSeqAck of a received message X shows
which of our messages the sender of X had received.  So the checker first applies our
messages up to this number to the model, and then judges X in exactly the state that its
sender had.  It judges RDMA Writes and Reads when the completion message that reports
them arrives.  Names such as C6 in comments mark interpretations: at these points, the
draft leaves a rule open.
"""
import sdp_wire as w
from sdp_wire import BUFFERED, COMBINED, PIPELINED, U32, after

FIGURE_3 = {w.DISCONN: 4, w.ABORTCONN: 5, w.SENDSM: 6, w.WRCOMPL: 7, w.RDCOMPL: 8, w.MODECHANGE: 9, w.SRC_CANCEL: 10,
            w.SINK_CANCEL: 11, w.SINK_CANCEL_ACK: 12, w.CHRCVBUF: 13, w.CHRCVBUF_ACK: 14, w.SUSPCOMM: 15,
            w.SUSPCOMM_ACK: 16}
SOLICITED = {w.ABORTCONN: 1, w.SUSPCOMM: 2, w.SUSPCOMM_ACK: 3, w.SENDSM: 4, w.SRC_CANCEL: 5, w.SINK_CANCEL: 6,
             w.HELLO_ACK: 7, w.WRCOMPL: 8, w.RDCOMPL: 9, w.SINK_CANCEL_ACK: 10}
UNSOLICITED = {w.DISCONN: 12, w.SRCAVAIL: 13, w.SINKAVAIL: 14, w.DATA: 15, w.MODECHANGE: 16, w.CHRCVBUF: 17,
               w.CHRCVBUF_ACK: 18}


class Report:
    """Collects and prints violations, and warnings for violated SHOULD requirements."""

    def __init__(self, out=print):
        self.out, self.violations, self.warnings = out, [], []

    def report(self, rule, text):
        self.violations.append(rule)
        self.out(f"VIOLATION {rule}: {text}")

    def warn(self, rule, text):
        if (rule, text) not in self.warnings:
            self.warnings.append((rule, text))
            self.out(f"warning {rule}: {text}")


class Advert:
    def __init__(self, m, rem):
        self.mseq, self.stag, self.length, self.rem = m.mseq, m.ext["stag"], m.ext["length"], rem
        self.nd = m.ext.get("nondiscards")
        self.taken = 0                                      # RDMA bytes already reported


class Checker:
    """A model of the other side of one SDP connection."""

    def __init__(self, report, remote_is_connector, my_bufs, my_recv, my_adverts):
        self.rep, self.connector = report, remote_is_connector
        self.my_adverts = my_adverts
        self.my_recv = my_recv                              # our receive size, as the other side knows it
        self.recv = 0                                       # its receive size
        self.headers = {0: (my_bufs, 0)}                    # our MSeq -> (Bufs, MSeqAck)
        self.my_seq, self.pending = 0, []  # our messages that it has not acknowledged
        self.seq = self.ack = 0
        self.edge, self.first_edge = None, 0
        self.out_mode = self.in_mode = COMBINED             # data from it / to it
        # the other side as Data Source
        self.src, self.owed, self.pnd, self.sinks = [], 0, 0, []
        self.pc_wait, self.pc_pnd, self.pc_mseq, self.cancel = None, 0, 0, None
        self.cancel_due = 0                                 # SinkCancelAcks it owes
        # the other side as Data Sink
        self.open_sinks, self.nd, self.src_in, self.await_data = [], 0, [], 0
        self.sink_cancel = self.my_cancel = None
        self.cancel_settled = False
        self.nd_unsure = False
        # RDMA Writes and Reads since the last completion
        self.writes, self.read_bytes = [], {}
        # resizing, suspension, closing, OOB
        self.resize = self.my_resize = None
        self.no_more = set()
        self.disconn = self.aborted = self.susp = self.susp_ack = False
        self.my_susp = False
        self.pos, self.pends = 0, []
        self.low_since = None

    def bad(self, rule, text):
        self.rep.report("SDP-" + rule, text)

    # ------------------------------------------------------------ set-up
    def hello(self, m):
        who = "6.2.1" if m.mid == w.HELLO else "6.2.2"
        hello, e = m.mid == w.HELLO, m.ext
        if m.len != w.BSDH + w.EXT_SIZE[m.mid]:
            self.bad(who + "-4", f"{m.name} Len {m.len}")
        if m.payload:
            self.bad(who + "-1", f"{m.name} has {len(m.payload)} octets after its header")
        if m.flags:
            self.bad(who + "-5", f"{m.name} Flags {m.flags:#x}")
        if m.mseq:
            self.bad(who + "-7", f"{m.name} MSeq {m.mseq}")
        if m.mseqack:
            self.bad(who + "-9", f"{m.name} MSeqAck {m.mseqack}")
        if m.bufs < 3:
            self.bad("10.3-1" if hello else "10.3-2", f"{m.name} Bufs {m.bufs}")
        if e["majv"] != 1:
            self.bad(who + ".1-1", f"{m.name} MajV {e['majv']}")
        if e["minv"] != 1:
            self.bad(who + ".2-1", f"{m.name} MinV {e['minv']}")
        if not e["maxadverts"]:
            self.bad(who + ".3-1", f"{m.name} MaxAdverts 0")
        if not e["locird"]:
            self.bad("6.2.1.6-2" if hello else "6.2.2.5-2", f"{m.name} LocIRD 0")
        if not e["locord"]:
            self.bad("6.2.1.7-2" if hello else "6.2.2.6-2", f"{m.name} LocORD 0")
        self.recv = e["localrcvsz"] if hello else e["actrcvsz"]
        self.first_edge = m.bufs
        if self.recv < w.MIN_BUF:
            self.bad("10-7", f"{m.name} receive size {self.recv}")
        elif self.recv > w.MAX_LEN:
            self.bad("6.2.1.5-1" if hello else "6.2.2.4-1", f"{m.name} receive size {self.recv}")

    def carrier(self, m, opcode):
        """Checks the type of the Send that carried the message (SDP-14.2; for OOB flags, C23)."""
        if opcode in (w.SEND_SE, w.SEND_SE_INV):
            if m.mid == w.DATA and m.flags & (w.OOB_PRES | w.OOB_PEND):
                return
            if m.mid in UNSOLICITED:
                self.bad(f"14.2-{UNSOLICITED[m.mid]}", f"{m} with a solicited event")
        elif m.mid in SOLICITED:
            self.bad(f"14.2-{SOLICITED[m.mid]}", f"{m} without a solicited event")
        elif m.mid == w.DATA and m.flags & (w.OOB_PRES | w.OOB_PEND):
            self.bad("14.2-11", f"{m} without a solicited event")

    # ------------------------------------------------------------ our side
    def sent(self, m):
        self.my_seq = m.mseq
        self.headers[m.mseq] = (m.bufs, m.mseqack)
        self.pending.append(m)
        if m.mid == w.CHRCVBUF:
            self.my_resize = [m.mseq, m.ext["length"], self.recv,
                              self.first_edge - self.connector if self.edge is None else self.edge]
        elif m.mid == w.SUSPCOMM:
            self.my_susp = True
        elif m.mid == w.SRC_CANCEL:
            self.my_cancel = m.mseq

    def _apply(self, m):
        """The other side has received our message m."""
        if self.pc_wait is not None and not after(self.pc_wait, m.mseqack):
            self.pc_wait = None                             # the wait of 12.4-3 ends
        if m.payload:
            self.await_data = max(0, self.await_data - len(m.payload))
            if self.open_sinks:
                self.open_sinks.pop(0)  # 9.5.1-4: one message makes one SinkAvail stale
            else:
                self.nd = self.nd + 1 & U32                 # 6.3.3.4-2
        if m.mid == w.SRCAVAIL:
            if self.open_sinks:
                self.src_in.clear()                         # 11.3-20, -21
            else:
                self.src_in.append(Advert(m, m.ext["length"] - len(m.payload)))
        elif m.mid == w.SINKAVAIL:
            self._sink_arrives(Advert(m, 0))
        elif m.mid == w.WRCOMPL and self.open_sinks:
            self.open_sinks.pop(0)
        elif m.mid == w.MODECHANGE and m.ext["s"] == 0:
            if self.in_mode == PIPELINED:
                self.open_sinks.clear()                     # 12.4-14
            self.in_mode = m.ext["mode"]
        elif m.mid == w.MODECHANGE:
            self.out_mode = m.ext["mode"]
        elif m.mid == w.RDCOMPL and self.src:
            self.src[0].rem -= m.ext["length"]
            if self.src[0].rem <= 0:
                self.src.pop(0)
        elif m.mid == w.SENDSM:
            if self.cancel is not None and not after(self.cancel, m.mseqack):
                self._void()                                # C18: it owes no Data
                self.cancel = None
            elif self.src:
                self.owed += self.src[0].rem
                self.pos -= self.src[0].rem
                self.src.pop(0)
        elif m.mid == w.SINK_CANCEL:
            self._purge()
            self.cancel_due += bool(self.sinks)
        elif m.mid == w.SINK_CANCEL_ACK:
            self.open_sinks.clear()
        elif m.mid == w.DISCONN:
            self.open_sinks.clear()                         # 8.2.1-22
        elif m.mid == w.CHRCVBUF_ACK:
            self.my_recv = m.ext["length"]
            # A refusal is an answer with the old size, if another size was requested.
            if self.resize and self.resize[0] == self.my_recv != self.resize[1]:
                self.no_more.add(self.resize[0] > self.resize[1])
            self.resize = None
        if not self.src:
            self.cancel = None
        if not self.open_sinks:
            self.sink_cancel = None

    def _sink_arrives(self, advert):
        if self.out_mode == PIPELINED:
            self.sinks.append(advert)
            self._purge()  # first the stale SinkAvails, oldest first (11.3-14)
            if self.sinks:
                self._void()                                # 11.3-16
        elif advert.nd != self.pc_pnd:                      # C12
            self.pnd, self.pc_pnd = self.pnd - 1 & U32, self.pc_pnd - 1 & U32
        else:
            self._void(self.pc_mseq)                        # 12.4-11

    def _void(self, before=None):
        """Makes its SrcAvails void (in 12.4, only those that are older than the ModeChange)."""
        gone = [s for s in self.src if before is None or after(before, s.mseq)]
        self.pos -= sum(s.rem for s in gone)
        self.src = [s for s in self.src if s not in gone]

    def _purge(self):
        while self.sinks and self.sinks[0].nd != self.pnd:
            self.sinks.pop(0)
            self.pnd = self.pnd - 1 & U32

    # ------------------------------------------------------------ RDMA from the other side
    def peer_write(self, stag, length):
        self.writes.append((stag, length))
        if self.susp:
            self.bad("13.1.1-9", "RDMA Write after SuspComm")

    def peer_read(self, stag, length):
        self.read_bytes[stag] = self.read_bytes.get(stag, 0) + length
        if self.susp or self.susp_ack:
            self.bad("13.1.1-9" if self.susp else "13.1.1-13", "RDMA Read while suspended")

    # ------------------------------------------------------------ its messages
    def goes_on(self, before):
        """Keeps the open OOB_PENDs after a suspension. The OOB byte of an OOB_PEND from before
        the suspension may still arrive, because an OOB_PEND is sent only once (9.5.3-4)."""
        self.pends = [pend - before.pos for pend in before.pends] if before else []

    def received(self, m, opcode, inval, size):
        self._numbers(m)  # first: it may acknowledge the larger size that it uses (10.6-4)
        self._frame(m, opcode, size)
        self._closing(m)
        self.inval = inval if opcode in (w.SEND_INV, w.SEND_SE_INV) else None
        if m.flags & w.OOB_PEND:
            self.pends.append(self.pos)
        if m.mid in (w.DATA, w.SRCAVAIL, w.SINKAVAIL):
            if m.payload:
                self._payload(m)
        handler = self._handlers.get(m.mid)
        if handler:
            handler(self, m)
        elif m.mid in (w.HELLO, w.HELLO_ACK):
            self.bad("6.2-1", f"{m} on an open connection")
        elif m.mid not in w.NAMES and not 0x40 <= m.mid <= 0x7F:
            self.bad("6.1.1-17" if m.mid == 15 else "6.1.1-18" if m.mid < 0x40 else "6.1.1-20", f"{m}: reserved MID")
        if m.flags & w.OOB_PRES and m.mid == w.DATA:
            if not self.pends:
                self.bad("9.5.3-5", f"{m}: OOB byte without an earlier OOB_PEND")
            elif self.pos - self.pends.pop(0) > 65536:      # C24
                self.bad("9.5.3-6", f"{m}: more than 65535 bytes since OOB_PEND")

    def _frame(self, m, opcode, size):
        if m.len != size:
            self.bad("6.1.4-1", f"{m} in a Send of {size} octets")
        if m.mid in FIGURE_3 and m.payload:
            self.bad(f"6.1.1-{FIGURE_3[m.mid]}", f"{m}: octets after the header")
        limit = self.my_recv
        if self.resize and self.resize[1] < limit:
            limit = self.resize[1]                          # 10.6-2
        if size > limit:
            self.bad("10-6", f"{m}: {size} octets for receive buffers of {limit}")
        if m.flags & w.OOB_PRES and m.mid != w.DATA:
            self.bad("6.1.2-8", f"{m}: OOB_PRES")
        if m.flags & w.OOB_PRES and m.mid == w.DATA and not m.payload:
            self.bad("6.1.2-7", f"{m}: OOB_PRES without payload")
        if m.flags & w.REQ_PIPE and m.mid not in (w.WRCOMPL, w.RDCOMPL):
            self.bad("6.1.2-17", f"{m}: REQ_PIPE")
        self.carrier(m, opcode)

    def _numbers(self, m):
        if m.mseq != (self.seq + 1 & U32):
            if self.seq == 0 and m.mseq == 0:
                self.rep.out("note: first message has MSeq 0 (the other reading of 6.1.5, C4)")
            else:
                self.bad("6.1.5-2", f"{m}: MSeq after {self.seq}")
        if after(m.mseqack, self.my_seq) or after(self.ack, m.mseqack):
            self.bad("6.1.6-1", f"{m}: MSeqAck; last sent here {self.my_seq}, last acknowledged {self.ack}")
        else:
            self.ack = m.mseqack
        frozen = self.my_cancel is not None
        edges = []
        for seq, (bufs, acked) in self.headers.items():
            if seq == self.ack or (frozen and not after(self.ack, seq)):       # C19
                edges.append(bufs - ((m.mseq - 1 - acked) & U32))
        credit = max(edges) if edges else 3
        edge = m.mseqack + m.bufs & U32
        widens = self.edge is None or after(edge, self.edge)
        if credit <= 0:
            self.bad("10.5-6", f"{m}: sent with {credit} credits")
        elif credit == 1 and (m.payload or not widens):
            self.bad("10.5-7", f"{m}: sent with one credit")
        elif credit == 2 and m.payload:
            self.bad("10.5-8", f"{m}: payload with two credits")
        if self.edge is not None and after(self.edge, edge) and not frozen:
            self.bad("6.1.3-1", f"{m}: Bufs steps back, window edge {self.edge} -> {edge}")
        if widens:
            self.edge = edge
        self.seq = m.mseq
        cancel, self.acking = self.my_cancel, m
        while self.pending and not after(self.pending[0].mseq, self.ack):
            mine = self.pending.pop(0)
            self._apply(mine)
        for seq in [s for s in self.headers if after(self.ack, s)]:
            del self.headers[seq]
        if cancel is not None and not after(cancel, self.ack):
            self._cancel_acknowledged(m, [a for a in self.src_in if not after(a.mseq, cancel)])

    def _cancel_acknowledged(self, m, canceled):
        """The message m acknowledges our SrcAvailCancel. In-Process SrcAvails before the cancel
        must have ended (9.5.4-5)."""
        self.nd_unsure = bool(canceled)
        for a in canceled:
            if m.mid != w.SENDSM and a.taken < self.read_bytes.get(a.stag, 0) and m.mid != w.RDCOMPL:
                self.bad("9.5.4-5", f"{m} acknowledges the SrcAvailCancel while a SrcAvail is In-Process")
        self.cancel_settled = bool(canceled)
        if not canceled:
            self.my_cancel = None

    def _closing(self, m):
        if self.aborted:
            self.bad("8.2.2-13", f"{m} after AbortConn")
        if self.susp and m.mid != w.SUSPCOMM_ACK:
            self.bad("13.1.1-8", f"{m} after SuspComm")
        if self.susp_ack:
            self.bad("13.1.1-12", f"{m} after SuspCommAck")
        if self.disconn and (m.payload or m.mid in (w.SRCAVAIL, w.DISCONN, w.WRCOMPL)):
            self.bad("8.2.1-9", f"{m} after DisConn")

    def _payload(self, m):
        """Checks a message with ULP payload against its sender's SrcAvails, and counts it in
        PotentialNonDiscards."""
        n = len(m.payload)
        if self.owed and m.mid == w.DATA:
            n_owed = min(n, self.owed)
            self.owed -= n_owed
            if self.src and n > n_owed:
                self.bad("11.3-8", f"{m}: more than a SendSm requested while SrcAvails are open")
        elif self.src:
            rule = "11.3-8" if self.out_mode == PIPELINED else "11.2-7" if m.mid == w.SRCAVAIL else "11.2-6"
            self.bad(rule, f"{m}: payload while a SrcAvail is open")
        elif self.owed:
            self.bad("9.2-33", f"{m}: Data for a SendSm is still owed")
        self.pnd = self.pnd + 1 & U32                       # 9.5.1-11
        if m.mid != w.SRCAVAIL:
            self.pos += n

    def _pair(self):
        """Returns the row of Figure 25 for the Modes of both directions."""
        return f"11-{16 + 3 * self.out_mode + self.in_mode}"

    def _adverts(self, m):
        n = len(self.src) + len(self.open_sinks)
        if n > self.my_adverts:
            self.bad("11.3-23", f"{m}: {n} advertisements open, MaxAdverts {self.my_adverts}")

    def _srcavail(self, m):
        length, n = m.ext["length"], len(m.payload)
        if not 0 < length <= w.MAX_LEN:
            self.bad("6.3.2.1-1" if not length else "6.3.2.1-2", f"{m}: Len")
        if n > length:
            self.bad("9.2-4", f"{m}: payload longer than the buffer")
        if self.out_mode == BUFFERED:
            self.bad("11.1-2", f"{m} in Buffered Mode")
        elif self.out_mode == COMBINED:
            if not n:
                self.bad("9.2-2", f"{m} without payload in Combined Mode")
            if self.src and not n:
                self.bad("11.2-7", f"{m}: second SrcAvail in Combined Mode")
        elif n:
            self.bad("9.2-3", f"{m} with payload in Pipelined Mode")
        if self.cancel is not None:
            self.bad("9.5.4-10", f"{m} before the SrcAvailCancel is Processed")
        self._purge()
        if self.sinks:
            self.bad("11.3-15", f"{m} although a usable SinkAvail is known to the sender")
        self.src.append(Advert(m, length - n))
        self.pos += length
        self._adverts(m)

    def _sinkavail(self, m):
        length = m.ext["length"]
        if not 0 < length <= w.MAX_LEN:
            self.bad("6.3.3.1-2" if not length else "6.3.3.1-3", f"{m}: Len")
        elif length <= self.recv:
            self.bad("9.5.1-1", f"{m}: not larger than the sender's receive size {self.recv}")
        if self.in_mode != PIPELINED:
            self.bad(self._pair(), f"{m}: SinkAvail not allowed in this pair of Modes")
        if self.sink_cancel is not None:
            self.bad("9.5.5-11", f"{m} before the SinkAvailCancel is Processed")
        if self.src_in:
            self.bad("11.3-18", f"{m} while a SrcAvail is to be read")
        if self.nd_unsure:
            self.nd, self.nd_unsure = m.ext["nondiscards"], False
        elif m.ext["nondiscards"] != self.nd:
            self.bad("6.3.3.4-2", f"{m}: NonDiscards, {self.nd} expected")
            self.nd = m.ext["nondiscards"]
        self.open_sinks.append(Advert(m, 0))
        self._adverts(m)

    def _wrcompl(self, m):
        if self.out_mode != PIPELINED:
            self.bad(self._pair(), f"{m}: Write Zcopy not allowed in this pair of Modes")
        self._purge()
        writes, self.writes = self.writes, []
        if not self.sinks:
            return self.bad("9.3-15", f"{m} matches no SinkAvail")
        advert = self.sinks.pop(0)
        if any(stag != advert.stag for stag, n in writes if n):
            self.bad("6.3.3.3-2", f"{m}: RDMA Writes to another STag")
        total = sum(n for _, n in writes)
        if total != m.ext["length"]:
            self.bad("6.3.6.1-1", f"{m}: {total} bytes were written")
        self._invalidated(m, advert.stag, "9.3-12", "9.3-9", True)
        self.pos += m.ext["length"]

    def _rdcompl(self, m):
        length = m.ext["length"]
        if self.await_data:
            self.bad("9.2-36", f"{m}: {self.await_data} bytes are due after SendSm")
        if not self.src_in:
            return self.bad("9.2-15", f"{m} matches no SrcAvail")
        advert = self.src_in[0]
        if length > advert.rem:
            self.bad("6.3.7.1-2", f"{m}: {advert.rem} bytes were open without the payload")
        if advert.taken + length > self.read_bytes.get(advert.stag, 0):
            self.bad("6.3.7.1-1", f"{m}: {self.read_bytes.get(advert.stag, 0) - advert.taken} bytes were read")
        advert.taken += length
        advert.rem -= length
        self._invalidated(m, advert.stag, "9.2-29", "9.2-26", advert.rem <= 0)
        if advert.rem <= 0:
            self.src_in.pop(0)
        if not self.src_in:
            self.my_cancel = None

    def _invalidated(self, m, stag, wrong, should, final):
        if self.inval is None:
            if final:
                self.rep.warn("SDP-" + should, f"{m.name} without Invalidate")
        elif self.inval != stag:
            self.bad(wrong, f"{m} invalidates STag {self.inval:#x}, advertised {stag:#x}")
        elif not final:
            self.bad(should, f"{m} invalidates the STag before its last byte")

    def _sendsm(self, m):
        if not self.src_in:
            rule = "9.5.4-9" if self.cancel_settled else "9.2-18"
            return self.bad(rule, f"{m} matches no SrcAvail")
        if self.my_cancel is not None and not after(self.my_cancel, m.mseqack):
            self.src_in.clear()                             # C18
        else:
            self.await_data += self.src_in.pop(0).rem
            self.cancel_settled = False
        if not self.src_in:
            self.my_cancel = None

    def _modechange(self, m):
        mode, s = m.ext["mode"], m.ext["s"]
        now = self.in_mode if s else self.out_mode
        if mode > 2:
            return self.bad("6.3.8.2-5", f"{m}: reserved Mode")
        if mode == now:
            return self.bad("12-12", f"{m} names the Mode in force")
        if {mode, now} == {BUFFERED, PIPELINED}:
            self.bad("12-7", f"{m}: Buffered and Pipelined Mode have no direct transition")
        elif s == 0 and now == BUFFERED:
            self.bad("12-4", f"{m}: only the Data Sink leaves Buffered Mode")
        elif s == 1 and now != BUFFERED:
            self.bad({BUFFERED: "12-3", PIPELINED: "12-5", COMBINED: "12-6"}[mode], f"{m}: the Data Source is Master")
        if s:
            self.in_mode = mode
            return None
        if self.pc_wait is not None:
            self.bad("12.4-3", f"{m} before the last ModeChange was acknowledged")
        if mode == BUFFERED and self.src:
            self.bad("12.1-2", f"{m} with a SrcAvail open")
        if now == PIPELINED:
            if any(n for _, n in self.writes):
                self.bad("12.4-7", f"{m}: RDMA Writes without RdmaWrCompl")
            self._purge()
            self.pc_wait = self.pc_mseq = m.mseq
            self.pc_pnd = self.pnd
            self.sinks.clear()
        self.out_mode = mode
        return None

    def _src_cancel(self, m):
        if self.src:
            self.cancel = m.mseq

    def _sink_cancel(self, m):
        if self.sink_cancel is not None:
            self.bad("9.5.5-11", f"{m}: SinkAvailCancel unanswered")
        if self.open_sinks:
            self.sink_cancel = m.mseq

    def _sink_cancel_ack(self, m):
        if not self.cancel_due:
            self.bad("9.5.5-10", f"{m} answers no SinkAvailCancel")
        else:
            self.cancel_due -= 1
            self.sinks.clear()

    def _chrcvbuf(self, m):
        size = m.ext["length"]
        if self.resize:
            self.bad("10.6-19", f"{m}: earlier ChRcvBuf unanswered")
        if (self.my_recv > size) in self.no_more and size != self.my_recv:
            self.bad("10.6-18" if size < self.my_recv else "10.6-17", f"{m} after a refusal")
        if size < w.MIN_BUF:
            self.bad("10-7", f"{m}: DesSz")
        self.resize = (self.my_recv, size)

    def crossed(self):
        """Handles a ChRcvBuf of the other side that we dropped (10.6.1-1, C28)."""
        self.resize = None

    def _chrcvbuf_ack(self, m):
        if not self.my_resize or after(self.my_resize[0], m.mseqack):
            return self.bad("6.4.2-3", f"{m} answers no ChRcvBuf")
        _, wanted, old, edge = self.my_resize
        size, self.my_resize = m.ext["length"], None
        if wanted < old and not wanted <= size <= old:
            self.bad("10.6-9" if size < wanted else "10.6-8", f"{m}: {wanted} requested, {old} before")
        if wanted >= old and size < old:
            self.bad("10.6-10", f"{m}: {wanted} requested, {old} before")
        if size > old and after(edge, m.mseqack):
            self.bad("10.6-13", f"{m}: old buffers up to message {edge} are unused")
        if size < w.MIN_BUF:
            self.bad("10-7", f"{m}: ActSz")
        self.recv = size
        return None

    def _suspcomm(self, m):
        if m.ext["constant1"]:
            self.bad("6.5.1.2-1", f"{m}: Constant1")
        if m.ext["constant2"] != 1:
            self.bad("6.5.1.3-1", f"{m}: Constant2")
        self.susp = True

    def _suspcomm_ack(self, m):
        if not self.my_susp:
            self.bad("6.5.2-2", f"{m} answers no SuspComm")
        self.susp_ack = True

    def _disconn(self, m):
        if self.src:
            self.bad("8.2.1-5", f"{m} with SrcAvails open")
        if self.owed:
            self.bad("9.2-33", f"{m}: {self.owed} bytes requested by SendSm were not sent")
        self.disconn = True

    def _abortconn(self, m):
        if not self.disconn:
            self.bad("6.2.4-2", f"{m} without DisConn")
        self.aborted = True

    def _data(self, m):
        pass

    _handlers = {w.DATA: _data, w.SRCAVAIL: _srcavail, w.SINKAVAIL: _sinkavail, w.WRCOMPL: _wrcompl,
                 w.RDCOMPL: _rdcompl, w.SENDSM: _sendsm, w.MODECHANGE: _modechange, w.SRC_CANCEL: _src_cancel,
                 w.SINK_CANCEL: _sink_cancel, w.SINK_CANCEL_ACK: _sink_cancel_ack, w.CHRCVBUF: _chrcvbuf,
                 w.CHRCVBUF_ACK: _chrcvbuf_ack, w.SUSPCOMM: _suspcomm, w.SUSPCOMM_ACK: _suspcomm_ack,
                 w.DISCONN: _disconn, w.ABORTCONN: _abortconn}

    # ------------------------------------------------------------ time and end
    def tick(self, credit, now, patience):
        """Checks 10.5-9: if we have at most one credit, the other side must send an update."""
        if credit > 1:
            self.low_since = None
        elif self.low_since is None:
            self.low_since = now
        elif now - self.low_since > patience:
            self.bad("10.5-9", f"no credit update for {patience} s with {credit} credits left here")
            self.low_since = now + 1e9

    def finish(self, graceful):
        if graceful and self.pends:
            self.bad("9.5.3-4", f"{len(self.pends)} OOB_PEND without an OOB byte")
