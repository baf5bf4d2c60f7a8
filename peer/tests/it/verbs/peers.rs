//! A [`Side`] is an RNIC with one Queue Pair, one CQ and one region. [`Peers`] has two connected
//! sides. A [`Bench`] has one side. The peer of this side is the test, which sends and receives raw
//! octets.

use std::time::Duration;

use weft_core::wire::ddp;
use weft_core::wire::mpa::Framing;
use weft_core::wire::rdmap::{Control, Opcode, Terminate, TerminateError};
use weft_peer::Instant;
use weft_peer::memory::{Access, Buffer, PdId, PhysicalBufferList, QpId, Registration, Stag, StagKey, ToBase};
use weft_peer::verbs::{
    AsyncEvent, CqHandle, EventId, HandlerAddress, LlpHandle, LlpSettings, Node, Notification, Operation, Payload,
    QpHandle, QpInit, QpModify, QpState, ReceiveWr, RemoteAddress, Rnic, RnicSettings, SendWr, Sge, TransmitResult,
    WorkCompletion,
};

/// Checks each expression. If the expression is true, records in `proof` that the test has verified
/// the requirement whose ID precedes the expression.
macro_rules! shows {
    ($proof:ident: $($id:literal => $check:expr;)+) => {
        $($proof.verify(weft_core::requirement!($id), || assert!($check, "{}", $id));)+
    };
}
pub(crate) use shows;

/// Opens an RNIC without any other object.
pub(crate) fn open(settings: RnicSettings) -> Rnic {
    Node::new(["weft0"]).open("weft0", settings).unwrap().0
}

/// The address at which each side's region begins.
pub(crate) const VA: u64 = 0x10_0000;
/// Number of octets of each side's region.
pub(crate) const LENGTH: u64 = 1 << 16;
pub(crate) const PLAIN: Framing = Framing { markers: false, crc: false };

pub(crate) struct Side {
    pub(crate) rnic: Rnic,
    pub(crate) pd: PdId,
    pub(crate) cq: CqHandle,
    pub(crate) qp: QpHandle,
    pub(crate) id: QpId,
    pub(crate) llp: LlpHandle,
    pub(crate) buffer: Buffer,
    pub(crate) stag: Stag,
    pub(crate) events: Vec<AsyncEvent>,
    /// Calls of completion handlers.
    pub(crate) calls: Vec<CqHandle>,
}

pub(crate) fn llp_settings(framing: Framing, emss: u32, speaks_first: bool) -> LlpSettings {
    let rtr = weft_peer::mpa::RtrKinds::NONE;
    LlpSettings {
        version: 1,
        framing_sent: framing,
        framing_received: framing,
        emss,
        speaks_first,
        rtr,
        max_early: 1 << 16,
    }
}

impl Side {
    pub(crate) fn new(change: impl FnOnce(&mut QpInit)) -> Self {
        Side::with(RnicSettings::default(), llp_settings(PLAIN, 1460, true), change)
    }

    pub(crate) fn with(settings: RnicSettings, llp: LlpSettings, change: impl FnOnce(&mut QpInit)) -> Self {
        let (mut rnic, privileged) = Node::new(["weft0"]).open("weft0", settings).unwrap();
        rnic.set_async_event_handler(Some(HandlerAddress(1))).unwrap();
        let pd = rnic.memory_mut().allocate_pd().unwrap();
        let cq = rnic.create_cq(1024, None).unwrap().0;
        let mut init = QpInit::new(pd, cq, cq);
        change(&mut init);
        let (qp, id, _) = rnic.create_qp(init, Some(&privileged)).unwrap();
        let llp = rnic.attach_stream(llp).unwrap();
        let buffer = rnic.memory_mut().allocate_buffer(LENGTH as usize).unwrap();
        let stag = register(&mut rnic, pd, buffer, Access::ALL);
        Side { rnic, pd, cq, qp, id, llp, buffer, stag, events: Vec::new(), calls: Vec::new() }
    }

    /// Moves the side to RTS on its stream.
    pub(crate) fn start(mut self) -> Self {
        self.modify(&QpModify::to_rts(self.llp)).unwrap();
        self
    }

    pub(crate) fn modify(&mut self, modify: &QpModify) -> Result<(), weft_peer::verbs::QpError> {
        self.rnic.modify_qp(Instant::ORIGIN, self.qp, modify).map(|_| ())
    }

    pub(crate) fn to(&mut self, state: QpState) -> Result<(), weft_peer::verbs::QpError> {
        self.modify(&QpModify::to(state))
    }

    pub(crate) fn state(&self) -> QpState {
        self.rnic.query_qp(self.qp).unwrap().state
    }

    /// A scatter/gather element with `length` octets of the region, from `offset` on.
    pub(crate) fn sge(&self, offset: u64, length: u32) -> Sge {
        Sge { stag: self.stag.to_bits(), tagged_offset: VA + offset, length }
    }

    /// The remote address of the region's octet `offset`.
    pub(crate) fn remote(&self, offset: u64) -> RemoteAddress {
        RemoteAddress { stag: self.stag.to_bits(), tagged_offset: VA + offset }
    }

    pub(crate) fn octets(&mut self) -> &mut [u8] {
        self.rnic.memory_mut().buffer_mut(self.buffer).unwrap()
    }

    pub(crate) fn post(&mut self, wr: SendWr) {
        assert_eq!(self.rnic.post_send(self.qp, vec![wr]), Ok(1));
    }

    pub(crate) fn post_receive(&mut self, wr_id: u64, offset: u64, length: u32) {
        let wr = ReceiveWr { wr_id, scatter: vec![self.sge(offset, length)] };
        assert_eq!(self.rnic.post_receive(self.qp, vec![wr]), Ok(1));
    }

    /// Polls all completions.
    pub(crate) fn poll(&mut self) -> Vec<WorkCompletion> {
        std::iter::from_fn(|| self.rnic.poll_cq(self.cq).ok()).collect()
    }

    pub(crate) fn statuses(&mut self) -> Vec<(u64, weft_peer::verbs::CompletionStatus)> {
        self.poll().into_iter().map(|completion| (completion.wr_id, completion.status)).collect()
    }

    /// Records the handler calls that are due.
    pub(crate) fn settle(&mut self) {
        while let Some(notification) = self.rnic.poll_notification() {
            match notification {
                Notification::Asynchronous { event, .. } => self.events.push(event),
                Notification::Completion { cq, .. } => self.calls.push(cq),
            }
        }
    }

    pub(crate) fn event_ids(&mut self) -> Vec<EventId> {
        self.settle();
        self.events.drain(..).map(|event| event.event).collect()
    }

    /// Returns everything that the side sends until it has no more output. TCP accepts `take`
    /// octets at a time.
    pub(crate) fn transmit(&mut self, now: Instant, take: usize) -> (Vec<u8>, Option<TransmitResult>) {
        let mut out = Vec::new();
        loop {
            let sent = self.rnic.poll_transmit(now, self.llp, |slices| {
                let all: Vec<u8> = slices.iter().flat_map(|slice| slice.iter().copied()).collect();
                let taken = all.len().min(take);
                out.extend_from_slice(&all[..taken]);
                taken
            });
            match sent {
                TransmitResult::Octets(_) => {}
                TransmitResult::Nothing => return (out, None),
                TransmitResult::Fin | TransmitResult::Reset => return (out, Some(sent)),
            }
        }
    }

    pub(crate) fn send_of(&self, wr_id: u64, offset: u64, length: u32) -> SendWr {
        let payload = Payload::Gather(vec![self.sge(offset, length)]);
        SendWr::new(wr_id, Operation::Send { payload, solicited: false, invalidate: None })
    }
}

pub(crate) fn register(rnic: &mut Rnic, pd: PdId, buffer: Buffer, access: Access) -> Stag {
    let list = PhysicalBufferList::of(buffer, 0, buffer.len() as u64, 4096);
    let registration = Registration { pd, key: StagKey(0x11), list, base: ToBase::VaBased(VA), remote: true, access };
    rnic.memory_mut().register(&registration).unwrap().stag
}

/// Two RNICs joined by queues.
pub(crate) struct Peers {
    pub(crate) now: Instant,
    pub(crate) a: Side,
    pub(crate) b: Side,
    /// Number of octets of a TCP segment.
    pub(crate) segment: usize,
    /// Number of octets that TCP accepts at a time.
    pub(crate) take: usize,
    /// All octets that `a` sent.
    pub(crate) from_a: Vec<u8>,
}

impl Peers {
    pub(crate) fn new() -> Self {
        Peers::with(Framing { markers: false, crc: true }, 1460, |_| ())
    }

    pub(crate) fn with(framing: Framing, emss: u32, change: impl Fn(&mut QpInit)) -> Self {
        let settings = RnicSettings::default();
        let a = Side::with(settings, llp_settings(framing, emss, true), &change).start();
        let b = Side::with(settings, llp_settings(framing, emss, true), &change).start();
        let unlimited = usize::MAX;
        Peers { now: Instant::ORIGIN, a, b, segment: unlimited, take: unlimited, from_a: Vec::new() }
    }

    /// Delivers everything that the sides send, until both sides send nothing more.
    pub(crate) fn run(&mut self) {
        loop {
            let there = self.a.transmit(self.now, self.take);
            self.from_a.extend_from_slice(&there.0);
            let moved = deliver(self.now, &mut self.b, &there, self.segment);
            let back = self.b.transmit(self.now, self.take);
            if !moved & !deliver(self.now, &mut self.a, &back, self.segment) {
                break;
            }
        }
        self.a.settle();
        self.b.settle();
    }

    pub(crate) fn pass(&mut self, duration: Duration) {
        self.now = self.now + duration;
        for side in [&mut self.a, &mut self.b] {
            side.rnic.handle_timeout(self.now, side.llp);
        }
    }
}

fn deliver(now: Instant, to: &mut Side, (octets, end): &(Vec<u8>, Option<TransmitResult>), segment: usize) -> bool {
    for piece in octets.chunks(segment) {
        to.rnic.handle_octets(now, to.llp, piece);
    }
    match end {
        Some(TransmitResult::Fin) => to.rnic.handle_fin(now, to.llp),
        Some(TransmitResult::Reset) => to.rnic.handle_reset(now, to.llp),
        _ => {}
    }
    !octets.is_empty() || end.is_some()
}

/// An FPDU without CRC.
pub(crate) fn fpdu(ulpdu: &[u8]) -> Vec<u8> {
    let mut out = u16::try_from(ulpdu.len()).unwrap().to_be_bytes().to_vec();
    out.extend_from_slice(ulpdu);
    out.resize(out.len().next_multiple_of(4) + 4, 0);
    out
}

pub(crate) fn untagged(opcode: Opcode, qn: u32, msn: u32, mo: u32, last: bool, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    let ulp = ddp::UntaggedUlp { control: Control::new(opcode, 1), word: 0 };
    ddp::Untagged { last, qn, msn: ddp::Msn::new(msn), mo }.emit(1, ulp, &mut out);
    out.extend_from_slice(payload);
    out
}

pub(crate) fn tagged(opcode: Opcode, stag: u32, to: u64, payload: &[u8]) -> Vec<u8> {
    let mut out = Vec::new();
    ddp::Tagged { last: true, stag, tagged_offset: to }.emit(1, Control::new(opcode, 1), &mut out);
    out.extend_from_slice(payload);
    out
}

/// The ULPDUs in FPDUs without CRC and markers.
pub(crate) fn ulpdus(mut octets: &[u8]) -> Vec<Vec<u8>> {
    let mut found = Vec::new();
    while let Some(length) = octets.first_chunk().map(|length| usize::from(u16::from_be_bytes(*length))) {
        found.push(octets[2..2 + length].to_vec());
        octets = &octets[(2 + length).next_multiple_of(4) + 4..];
    }
    found
}

/// One side that receives synthetic octets.
pub(crate) struct Bench {
    pub(crate) side: Side,
}

impl Bench {
    pub(crate) fn new() -> Self {
        Bench::with(|_| ())
    }

    pub(crate) fn with(change: impl FnOnce(&mut QpInit)) -> Self {
        Bench { side: Side::new(change).start() }
    }

    pub(crate) fn hand_in(&mut self, ulpdu: &[u8]) {
        self.hand_in_quietly(ulpdu);
        self.side.settle();
    }

    /// Delivers a ULPDU, but leaves the calls of the handlers to the caller.
    pub(crate) fn hand_in_quietly(&mut self, ulpdu: &[u8]) {
        self.side.rnic.handle_octets(Instant::ORIGIN, self.side.llp, &fpdu(ulpdu));
    }

    /// The ULPDUs that the side sends now, and how the stream ends.
    pub(crate) fn sent(&mut self) -> (Vec<Vec<u8>>, Option<TransmitResult>) {
        let (octets, end) = self.side.transmit(Instant::ORIGIN, usize::MAX);
        (ulpdus(&octets), end)
    }

    /// The Terminate that the side sends now.
    pub(crate) fn terminate(&mut self) -> Option<Terminate> {
        let (sent, _) = self.sent();
        let last = sent.last().filter(|ulpdu| ulpdu[1] & 0xf == 7)?;
        Terminate::parse(&last[18..]).ok()
    }

    /// The code of the Terminate that the side sends now, as 0xLTCC (layer, type, code).
    pub(crate) fn code(&mut self) -> Option<u16> {
        self.terminate().map(|terminate| number(terminate.error))
    }
}

pub(crate) fn number(error: TerminateError) -> u16 {
    u16::from(error.layer.0) << 12 | u16::from(error.error_type) << 8 | u16::from(error.code)
}

pub(crate) fn write(side: &Side, wr_id: u64, offset: u64, length: u32, remote: RemoteAddress) -> SendWr {
    SendWr::new(wr_id, Operation::Write { payload: Payload::Gather(vec![side.sge(offset, length)]), remote })
}

pub(crate) fn read(side: &Side, wr_id: u64, offset: u64, length: u32, remote: RemoteAddress) -> SendWr {
    SendWr::new(wr_id, Operation::Read { local: side.sge(offset, length), remote, invalidate_local: false })
}
