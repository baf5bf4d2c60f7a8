"""The application `drive`: a program that uses its socket as its peer requests.

../../docs/sdp-driver.md defines the commands.  They arrive as the data of the connection.
Drive is the program, and DrivenConnection is its socket.  This socket has posted receives
and requests of its user, which the other applications do not need.  A name such as D3 marks
a reading of the page, where the page leaves the behaviour open:

  D1  A receive is not MSG_WAITALL. It takes bytes of one transfer, and ends when it is full
      or has all of them. One Data message, one RdmaWrCompl, or all bytes of one SrcAvail
      are one transfer. So the result does not depend on when a message arrives.
  D2  A SrcAvail is read completely as soon as any receive is posted. Bytes beyond the
      receive wait for the next receive.
  D3  While the program waits (`wait`), it has no receive for commands.
  D4  A request that the draft delays (ModeChange, SuspComm, cancels) waits in the socket.
      A request that the draft forbids is ignored.
  D5  For `urgent`, the threshold at the time of the command decides whether the send is divided.
  D6  A command with a missing, wrong or superfluous argument is ignored.
  D7  `answer both` without `max-read` reads the first half.
  D8  A receive for commands is never advertised, even if it is longer than a Private Buffer.
  D9  `cancel-sends` keeps the data that a SendSm has requested (9.2-33), and an Out-Of-Band
      byte whose OOB_PEND has been sent (9.5.3-4).
"""
import copy
import socket
import time
from collections import deque

import sdp_wire as w
from sdp_conn import Connection, Out
from sdp_wire import BUFFERED, COMBINED, PIPELINED, after

DEFAULTS = {"recv_size": 1000, "max_recv": 3000, "threshold": 500, "sink_policy": "read",
            "read_chunk": 1 << 31, "depth": 1 << 16, "sink_adverts": 1 << 16}
PAYLOAD = 40                                                # bytes in a SrcAvail in Combined Mode
COMMAND_RECEIVE, TEXT_LIMIT, MOST = 64, 4096, 1 << 20
ANSWERS = {"read": "read", "send-sm": "sendsm", "both": "split"}


class Receive:
    """A receive that the program has posted."""

    def __init__(self, size, command=False):
        self.size, self.command, self.data = size, command, bytearray()
        self.offer = None                                   # its SinkAvail, as long as it is open
        self.canceled = self.ended = False

    @property
    def left(self):
        return self.size - len(self.data)


class DrivenConnection(Connection):
    def __init__(self, cfg, *rest):
        self.posted = []                                    # receives that have not ended, in order
        # Received bytes, one part for each transfer (D1).
        self.parts, self.part_open = deque(), False
        super().__init__(copy.copy(cfg), *rest)             # commands change the settings
        self.payload, self.follow = PAYLOAD, False
        self.modes = []                                     # Modes that the program requested
        self.no_more = set()                                # refused directions (10.6-17, -18)
        self.want_suspend = None                            # the listener of the new connection
        self.aborted = False
        self.wake = None                                    # when the program must run again

    def _reset(self):
        super()._reset()
        self._forget_offers()
        # Requests that wait until they are possible. sizes has at most one size for a ChRcvBuf.
        self.sizes = []
        self.want_src_cancel = self.want_sink_cancel = self.want_rx_mode = False

    def poll(self, timeout=0.05):
        if self.wake is not None:
            timeout = min(timeout, max(0, self.wake - time.monotonic()))
        super().poll(timeout)
        if self.aborted:
            self.link.finish()                              # after the AbortConn

    def _work(self):
        sent = super()._work()
        if not self.want_suspend or not self.ready or self.link.dead or self.susp_in is not None:
            return sent
        if not self.await_data and not self.want_src_cancel and self.suspend(self.want_suspend):
            self.want_suspend = None                        # the last message on this connection
            return True
        return sent

    def _can(self, payload=False):
        return not self.aborted and super()._can(payload)   # 8.2.2-13

    # ------------------------------------------------------------ requests of the program
    def send(self, count, urgent=False):
        """Posts one send. Returns False if the sending half is shut down."""
        if self.want_close:
            return False
        data = (b"abcdefghijklmnopqrstuvwxyz" * (count // 26 + 1))[:count]
        if not urgent:
            self.txq.append(Out(data))
        elif count > max(1, self.cfg.threshold):            # a Data message carries the last byte
            self.txq += (Out(data[:-1]), Out(data[-1:], oob=True))
        else:
            self.txq.append(Out(data, oob=True))
        self.accepted += count
        return True

    def post(self, size, command=False):
        receive = Receive(size, command)
        self.posted.append(receive)
        self._fill()
        return receive

    def request_mode(self, mode):
        """Requests a Mode of our sending half. Returns False if the Mode is not possible."""
        now = self.modes[-1] if self.modes else self.tx_mode
        if mode == now or now == BUFFERED or self.disconn_out:
            return False                                    # 12-12; the Sink is Master of Buffered Mode
        far = now == PIPELINED and mode == BUFFERED         # 12-7
        self.modes += [COMBINED, BUFFERED] if far else [mode]
        return True

    def request_rx_mode(self, mode):
        if self.rx_mode != BUFFERED or mode != COMBINED:
            return False                                    # 12-5, 12-6, 12-7
        self.want_rx_mode = True
        return True

    def request_size(self, size):
        if self.resize_wait or self.sizes or not w.MIN_BUF <= size <= w.U32:
            return False                                    # 10.6-19, 10-7
        if size != self.send_size and (size > self.send_size) in self.no_more:
            return False
        self.sizes.append(size)
        return True

    def request_suspend(self, port):
        if self.want_suspend or self.susp_out or not 1 <= port <= 65535:
            return False
        try:
            self.want_suspend = socket.create_server((self.link.local[0], port))
        except OSError:
            return False
        return True

    def cancel_sends(self):
        kept = [b for b in self.txq if b.oob and b.pended]  # D9
        for buf in kept:
            buf.at = len(buf.data) - 1
        self.txq.clear()
        self.txq += kept
        for offer in self.src_adv:
            offer.buf.canceled = True
        self.want_src_cancel = bool(self.src_adv)
        return True

    def cancel_receives(self):
        for receive in list(self.posted):
            receive.canceled = True
            if not receive.offer:
                self._end(receive)
        self.want_sink_cancel = bool(self.sink_out)
        return True

    def abort(self):
        super().abort()
        self.aborted = True
        return True

    @property
    def unsent(self):
        return super().unsent + len(self.src_adv)           # a SrcAvail may carry all its bytes

    # ------------------------------------------------------------ Data Source
    def _pump_tx(self):
        self._requests()
        super()._pump_tx()

    def _requests(self):
        cancels = self.src_cancel is not None
        if self.want_src_cancel and (not self.src_adv or cancels or self.cancel_src()):
            self.want_src_cancel = False
        if self.want_sink_cancel and (not self.sink_out or self.cancel_sink() or self.sink_cancel):
            self.want_sink_cancel = False
        if self.want_rx_mode and self.change_rx_mode(COMBINED):
            self.want_rx_mode = False
        while self.modes and (self.disconn_out or self.change_mode(self.modes[0])):
            self.modes.pop(0)
        if self.sizes and not self.answer and self.resize(self.sizes[0]):       # 10.6.1-3
            self.sizes.pop()

    def _sends_wait(self):
        # The acknowledgement of a ModeChange may need more data (12.4): sends continue.
        to_buffered = self.modes[:1] == [BUFFERED] and self.pc_wait is None
        return super()._sends_wait() or self.want_suspend or self.want_src_cancel or to_buffered

    def _src_payload(self, length, room):
        return min(self.payload, length, room)

    def _void_src(self, before=None):
        super()._void_src(before)                           # puts the buffers into the queue again
        # In a SrcAvail, the payload may have been the complete buffer.
        for buf in [b for b in self.txq if b.canceled or not b.left]:
            self.txq.remove(buf)

    def _got_sendsm(self, m):
        if self.src_adv and self.src_cancel is not None and not after(self.src_cancel, m.mseqack):
            for offer in self.src_adv:                      # 9.5.4: the cancel is Processed
                self.link.release(offer.region.stag)
            self.src_adv.clear()
            self.src_cancel = None
            return None
        return super()._got_sendsm(m)

    # ------------------------------------------------------------ Data Sink
    def _reading(self):
        if self.posted:                                     # 9.2-7: waits for a receive
            super()._reading()

    def _read_part(self, left):
        return self.cfg.read_chunk if self.cfg.read_chunk < left else max(1, left // 2)     # D7

    def _sink_length(self):
        """Only receives without an unadvertised receive before them may be advertised: an RDMA
        Write fills the oldest advertised receive."""
        waiting = next((r for r in self.posted if not r.offer), None)
        if not waiting or waiting.command or waiting.data or self.parts or self.want_sink_cancel:
            return 0                                        # D8
        return waiting.size if waiting.size > self.recv_size else 0

    def _answer_resize(self):
        if self.freeze is None:                             # MSeqAck covers the request (10.6-13)
            super()._answer_resize()

    def _advertise(self):
        count = -1
        while count != len(self.sink_out):
            count = len(self.sink_out)
            super()._advertise()
            if len(self.sink_out) > count:
                receive = next(r for r in self.posted if not r.offer)
                receive.offer = self.sink_out[-1]
                receive.offer.receive = receive

    def _end(self, receive):
        receive.ended, receive.offer = True, None
        if receive in self.posted:
            self.posted.remove(receive)

    def _transfer_open(self):
        """Returns whether a SrcAvail is only partly received (D1)."""
        return self.await_data > 0 or any(s.used for s in self.src_in[:1])

    def _deliver(self, data):
        if not self.part_open:
            self.parts.append(bytearray())
            self.part_open = True                           # until _after_transfer
        self.parts[-1] += data
        self.received += len(data)

    def _fill(self):
        """Moves received bytes into the posted receives. Ends the receives that have what they
        can have (D1)."""
        over = self.disconn_in and not self.src_in
        while self.posted and not self.posted[0].offer:
            first = self.posted[0]
            if self.parts:
                part = self.parts[0]
                still_open = self.part_open and len(self.parts) == 1 and not over
                take = part[:first.left]
                first.data += take
                del part[:len(take)]
                if not part and not still_open:
                    self.parts.popleft()
                if first.left and still_open:
                    return
                if first.data:
                    self._end(first)
            elif over:
                self._end(first)
            else:
                return

    def _after_transfer(self):
        """A message or an RDMA Read has been processed."""
        self.part_open = self.part_open and self._transfer_open()
        self._fill()

    def _got_payload(self, m):
        if not self.sink_out:
            return super()._got_payload(m)
        offer = self.sink_out[0]                            # 9.5.1-4: exactly one payload
        super()._got_payload(m)
        return self._complete(offer)

    def _complete(self, offer):
        """The last part has the bytes of one transfer. They end an advertised receive."""
        receive, part = offer.receive, self.parts[-1]
        receive.data += part[:receive.size]
        del part[:receive.size]
        if not part:
            self.parts.pop()
        self._end(receive)

    def _got_wrcompl(self, m, inval):
        offer = self.sink_out[0] if self.sink_out else None
        result = super()._got_wrcompl(m, inval)
        if offer:
            self._complete(offer)
        return result

    def _forget_offers(self):
        for receive in list(self.posted):
            receive.offer = None
            if receive.canceled:
                self._end(receive)

    def _release_sinks(self):
        super()._release_sinks()
        self._forget_offers()

    def _read_done(self, s, data):
        super()._read_done(s, data)
        self._after_transfer()

    # ------------------------------------------------------------ received messages
    def _message(self, opcode, inval, data):
        wanted = self.resize_wait
        super()._message(opcode, inval, data)
        if not self.ready or self.link.dead:
            return
        m = w.decode(data, self.order)
        if m.mid == w.CHRCVBUF_ACK and wanted and wanted[0] != wanted[1] == m.ext["length"]:
            self.no_more.add(wanted[0] > wanted[1])
        elif m.mid in (w.RDCOMPL, w.WRCOMPL) and m.flags & w.REQ_PIPE and self.follow:
            if (self.modes[-1] if self.modes else self.tx_mode) == COMBINED:
                self.request_mode(PIPELINED)
        elif m.mid == w.SUSPCOMM and self.susp_out == "sent" and self.connector:
            # 13.1.2: the Connecting Peer answers first, and sends its SuspComm again later.
            self.want_suspend, self.listener, self.susp_out = self.listener, None, None
            self.ctl.clear()
            self._suspension()
        self._after_transfer()

    def _llp_end(self, why):
        super()._llp_end(why)
        if self.link.dead and self.want_suspend:
            self.want_suspend.close()


class Drive:
    """The program. step() is called around every poll."""

    def __init__(self, cfg):
        self.cfg = cfg
        self.text, self.skip = bytearray(), False
        self.receive, self.reads, self.until, self.at_end = None, [], None, False
        self.done = self.ignored = self.discarded = 0

    # The interface of the applications of sdp_peer.py.
    def take(self, conn, n=None):
        return b""

    def summary(self):
        return (f"executed {self.done} ignored {self.ignored}", f"discarded {self.discarded}")

    def failed(self):
        return None

    def step(self, conn):
        while not conn.link.dead and not conn.aborted:
            if self.until is not None:
                if time.monotonic() < self.until:
                    return                                  # D3
                self.until = conn.wake = None
            command = self._next()
            if command is not None:
                if command:
                    self._execute(conn, command)
                continue
            self._settle_reads()
            if self.reads:
                return
            if self.at_end:
                return conn.close()
            if self.receive is None:
                self.receive = conn.post(COMMAND_RECEIVE, command=True)
            if not self.receive.ended:
                return
            self._read_text(self.receive.data)
            self.at_end = not self.receive.data and conn.disconn_in
            self.receive = None

    def _settle_reads(self):
        self.discarded += sum(len(r.data) for r in self.reads if r.ended)
        self.reads = [r for r in self.reads if not r.ended]

    def _read_text(self, data):
        self.text += data.replace(b";", b"\n")
        if self.skip and b"\n" in self.text:
            del self.text[:self.text.index(b"\n") + 1]
            self.skip = False
        if self.skip or len(self.text) > TEXT_LIMIT and b"\n" not in self.text:
            self.ignored += not self.skip                   # the command is too long
            self.skip = True
            self.text.clear()

    def _next(self):
        """Returns the words of the next complete command, or None."""
        end = self.text.find(b"\n")
        if end < 0:
            return None
        line = bytes(self.text[:end]).decode("ascii", "replace")
        del self.text[:end + 1]
        return line.split()

    def _execute(self, conn, words):
        try:
            good = self._command(conn, words[0], words[1:])
        except ValueError:                                  # D6
            good = False
        self.done += bool(good)
        self.ignored += not good
        if conn.cfg.verbose:
            conn.rep.out(f"{'command' if good else 'ignored'}: {' '.join(words)}")
        while not conn.link.dead and conn._work():          # the socket acts at once
            pass

    @staticmethod
    def _number(word, low=0, high=1 << 32):
        if not (word.isascii() and word.isdigit()) or len(word) > 20:
            raise ValueError(word)
        if not low <= int(word) <= high:
            raise ValueError(word)
        return int(word)

    def _command(self, conn, word, args):
        """Executes a command. Returns False if it is unknown or not possible now."""
        number, cfg = self._number, conn.cfg
        if word in ("send", "urgent"):
            (count,) = args
            return conn.send(number(count, 1, MOST), word == "urgent")
        if word == "read":
            sizes = [number(a, 1, MOST) for a in args]
            self.reads += [conn.post(size) for size in sizes]
            return bool(sizes)
        if word == "mode":
            half, name = args
            if half not in ("in", "out") or name not in w.MODE_NAMES:
                return False
            request = conn.request_mode if half == "out" else conn.request_rx_mode
            return request(w.MODE_NAMES[name])
        if word == "answer":
            (name,) = args
            if name in ANSWERS:
                cfg.sink_policy = ANSWERS[name]
            return name in ANSWERS
        if word in ("resize", "suspend", "wait", "threshold", "payload", "max-read"):
            (arg,) = args
            n = number(arg)
            if word == "resize":
                return conn.request_size(n)
            if word == "suspend":
                return conn.request_suspend(n)
            if word == "wait":
                self.until = conn.wake = time.monotonic() + n / 1000
            elif word == "threshold":
                cfg.threshold = n
            elif word == "payload":
                if n < 1:
                    return False                            # 9.2-2
                conn.payload = n
            elif n < 1:
                return False
            else:
                cfg.read_chunk = n
            return True
        if args:
            return False
        if word == "cancel-sends":
            return conn.cancel_sends()
        if word == "cancel-receives":
            return conn.cancel_receives()
        if word == "shut":
            conn.close()
        elif word == "abort":
            conn.abort()
        elif word == "hints":
            cfg.want_pipelined = True
        elif word == "follow":
            conn.follow = True
        else:
            return False
        return True
