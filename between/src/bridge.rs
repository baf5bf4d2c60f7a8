//! The bridge: takes frames of both sides, impairs them, and releases them to the opposite side.
//!
//! The bridge is sans-IO: the caller passes frames and the current time, and sends the frames that
//! [`Bridge::deliver`] returns. The same seed and the same frames give the same faults. Frames that
//! are not TCP, and TCP segments with a wrong checksum, are only delayed.

mod lane;
mod window;

pub use lane::{FaultInFrame, FrameCounts};

use std::collections::{HashMap, HashSet};
use std::net::SocketAddr;
use std::ops::Range;

use weft_dissector::FrameNumber;

use crate::aim::{self, PartInFrame};
use crate::fault::{Fault, FaultKind};
use crate::frame::{ChecksumState, TcpFrame};
use crate::impairments::Impairments;
use crate::side::{PerSide, Side};
use lane::{HeldBack, Lane, Waiting};

/// If a reordered frame still waits for later frames after this time, it is forwarded. The value is
/// in nanoseconds.
const MAX_REORDER_TIME: u64 = 20_000_000;
/// Maximum number of later frames that a reordered frame waits for.
const MAX_PASSES: u32 = 3;
/// Maximum number of faults of a run, because each fault needs memory. After that, only delays and
/// reduced windows remain.
const MAX_FAULTS: usize = 1_000_000;
/// Maximum number of connections whose window scale or MTU is stored.
const MAX_CONNECTIONS: usize = 65_536;

/// Maximum length of the headers of IPv4 and TCP with all options, in bytes.
const MAX_HEADERS: usize = 120;

/// A frame that the bridge releases.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Delivery {
    /// The side that receives the frame.
    pub to: Side,
    /// The frame.
    pub octets: Vec<u8>,
    /// The faults in this frame.
    pub faults: Vec<FaultInFrame>,
}

/// A part of a segment. The part is forwarded in a separate frame.
struct Piece {
    octets: Vec<u8>,
    tcp: TcpFrame,
    /// Offset of the first byte in the payload of the original segment.
    start: usize,
    faults: Vec<FaultInFrame>,
}

/// The bridge between two sides.
#[derive(Debug)]
pub struct Bridge {
    impairments: Impairments,
    random: fastrand::Rng,
    lanes: PerSide<Lane>,
    faults: Vec<Fault>,
    /// Maximum length of an IP packet on the link of each side.
    link_mtu: PerSide<Option<u16>>,
    /// The shift counts of the windows, by sender and receiver.
    window_scales: HashMap<(SocketAddr, SocketAddr), u8>,
    /// The senders and receivers whose sender received an ICMP error with the MTU of the path.
    knows_mtu: HashSet<(SocketAddr, SocketAddr)>,
    began: Option<u64>,
}

impl Bridge {
    /// Makes a bridge. `seed` selects the random numbers.
    #[must_use]
    pub fn new(impairments: Impairments, seed: u64) -> Self {
        Bridge {
            impairments,
            random: fastrand::Rng::with_seed(seed),
            lanes: PerSide::default(),
            faults: Vec::new(),
            link_mtu: PerSide::default(),
            window_scales: HashMap::new(),
            knows_mtu: HashSet::new(),
            began: None,
        }
    }

    /// Sets the maximum length of an IP packet on the link of `side`. A longer segment for this
    /// side is divided. This division is no fault, because a NIC does the same (segmentation
    /// offload).
    pub fn set_link_mtu(&mut self, side: Side, mtu: u16) {
        self.link_mtu[side] = Some(mtu);
    }

    /// The faults so far, in the order of their numbers.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        &self.faults
    }

    /// The counts of the frames from `side`.
    #[must_use]
    pub fn counts(&self, side: Side) -> FrameCounts {
        self.lanes[side].counts
    }

    /// Takes a frame from side `from`. `now` is in nanoseconds since 1970. `sent` is the number of
    /// the frame in the capture of this side. The TCP checksum must be complete
    /// ([`TcpFrame::checksum_state`]).
    pub fn frame(&mut self, now: u64, from: Side, octets: &[u8], sent: FrameNumber) {
        self.frame_with_parts(now, from, octets, sent, &[]);
    }

    /// Like [`frame`](Self::frame). `parts` has the parts of FPDUs in the frame. Faults that aim at
    /// a part happen only in these parts.
    pub fn frame_with_parts(&mut self, now: u64, from: Side, octets: &[u8], sent: FrameNumber, parts: &[PartInFrame]) {
        let began = *self.began.get_or_insert(now);
        let lane = &mut self.lanes[from];
        lane.counts.frames += 1;
        let Some(tcp) = TcpFrame::find(octets) else { return self.forward(now, from, octets.to_vec(), None) };
        lane.counts.tcp += 1;
        if tcp.checksum_state(octets) != ChecksumState::Good {
            lane.counts.bad_checksums += 1;
            return self.forward(now, from, octets.to_vec(), None);
        }
        self.record_window_scale(&tcp, octets);
        let is_impaired = self.impairs(from, &tcp) && now >= began.saturating_add(nanoseconds(self.impairments.after));
        if !is_impaired {
            for piece in self.fit(from, Piece { octets: octets.to_vec(), tcp, start: 0, faults: Vec::new() }) {
                self.forward(now, from, piece.octets, Some(&piece.tcp));
            }
            return;
        }
        let mut octets = octets.to_vec();
        self.limit_window(now, &tcp, &mut octets);
        self.impair(now, from, tcp, octets, sent, parts);
    }

    /// Number of bytes from side `from` that wait.
    #[must_use]
    pub fn waiting(&self, from: Side) -> usize {
        self.lanes[from].waiting
    }

    /// Whether a frame is delayed. Frames without a TCP segment are delayed if no port is selected.
    fn delays(&self, from: Side, tcp: Option<&TcpFrame>) -> bool {
        let Impairments { from: only, ports, .. } = &self.impairments;
        match tcp {
            Some(tcp) => self.impairs(from, tcp),
            None => ports.is_empty() && only.is_none_or(|only| only == from),
        }
    }

    fn impairs(&self, from: Side, tcp: &TcpFrame) -> bool {
        let Impairments { from: only, ports, .. } = &self.impairments;
        only.is_none_or(|only| only == from)
            && (ports.is_empty() || ports.iter().any(|port| [tcp.src.port(), tcp.dst.port()].contains(port)))
    }

    /// Applies the impairments to a segment, and forwards the result.
    fn impair(
        &mut self,
        now: u64,
        from: Side,
        tcp: TcpFrame,
        mut octets: Vec<u8>,
        sent: FrameNumber,
        parts: &[PartInFrame],
    ) {
        let segment = tcp.clone();
        let fault = |kind| Fault {
            number: 0,
            time: now,
            kind,
            from,
            src: segment.src,
            dst: segment.dst,
            seq: segment.seq,
            len: u32::try_from(segment.len()).unwrap_or(u32::MAX),
            sent,
            received: None,
        };
        if let Some(mtu) = self.impairments.mtu
            && tcp.packet_len() > usize::from(mtu)
            && tcp.must_not_be_fragmented()
            && !(self.is_merged(from, &tcp) && self.knows_mtu.contains(&(tcp.src, tcp.dst)))
            && self.may_inject()
        {
            if self.knows_mtu.len() >= MAX_CONNECTIONS {
                self.knows_mtu.clear();
            }
            self.knows_mtu.insert((tcp.src, tcp.dst));
            self.record(fault(FaultKind::TooLong { mtu }));
            if let Some(error) = tcp.too_long(&octets, mtu) {
                self.forward(now, from.peer(), error, None);
            }
            return;
        }
        if self.draws(self.impairments.loss) {
            self.record(fault(FaultKind::Loss));
            return;
        }
        let mut corrupted = None;
        if let Some(at) = self.byte_to_corrupt(&tcp, parts) {
            let bits = self.random.u8(1..);
            tcp.corrupt(&mut octets, tcp.payload.start + at, bits);
            let kind = FaultKind::Corrupt { at: u32::try_from(at).unwrap_or(u32::MAX), bits };
            corrupted = Some((at, self.record(fault(kind))));
        }
        let is_divisible = tcp.is_divisible();
        let mut pieces = self.fit(from, Piece { octets, tcp, start: 0, faults: Vec::new() });
        if is_divisible {
            if let Some(most) = self.impairments.segment {
                pieces = pieces.into_iter().flat_map(|piece| self.cut(piece, most.into(), &fault)).collect();
            }
            pieces = self.split(pieces, segment.payload.clone(), parts, &fault);
        }
        if let Some((at, number)) = corrupted {
            let touched = pieces.iter_mut().find(|piece| (piece.start..piece.start + piece.tcp.len()).contains(&at));
            if let Some(piece) = touched {
                let offset = Some(piece.tcp.payload.start + (at - piece.start));
                piece.faults.push(FaultInFrame { number, offset });
            }
        }
        for piece in pieces {
            self.forward_piece(now, from, piece, &fault);
        }
    }

    /// Forwards a piece of a segment, perhaps twice or after later frames.
    fn forward_piece(&mut self, now: u64, from: Side, piece: Piece, fault: &impl Fn(FaultKind) -> Fault) {
        let Piece { octets, tcp, faults, .. } = piece;
        if self.draws(self.impairments.duplicate) {
            self.enqueue(now, from, octets.clone(), faults.clone(), Some(&tcp));
            let number = self.record(fault(FaultKind::Duplicate));
            self.enqueue(now, from, octets, vec![FaultInFrame { number, offset: None }], Some(&tcp));
        } else if self.lanes[from].held_back.is_none() && self.draws(self.impairments.reorder) {
            let passes = self.random.u32(1..=MAX_PASSES);
            let frame = Waiting { due: now.saturating_add(MAX_REORDER_TIME), octets, faults };
            let fault = fault(FaultKind::Reorder);
            self.lanes[from].held_back = Some(HeldBack { frame, fault, passes, has_been_passed: false });
        } else {
            self.enqueue(now, from, octets, faults, Some(&tcp));
        }
    }

    /// Whether the number of faults permits another fault.
    fn may_inject(&self) -> bool {
        // The fault of a held-back frame is recorded later.
        let held_back = Side::BOTH.iter().filter(|side| self.lanes[**side].held_back.is_some()).count();
        let most = self.impairments.max_faults.map_or(MAX_FAULTS, |most| MAX_FAULTS.min(most as usize));
        self.faults.len() + held_back < most
    }

    fn draws(&mut self, probability: crate::Probability) -> bool {
        self.may_inject() && probability.draw(&mut self.random)
    }

    /// Records a fault, and returns its number.
    fn record(&mut self, mut fault: Fault) -> u32 {
        let number = u32::try_from(self.faults.len() + 1).unwrap_or(u32::MAX);
        fault.number = number;
        self.faults.push(fault);
        number
    }

    /// Records that the capture of the receiver's side has a fault in frame `received`.
    pub fn set_received(&mut self, number: u32, received: FrameNumber) {
        let index = (number as usize).wrapping_sub(1);
        if let Some(fault) = self.faults.get_mut(index) {
            fault.received.get_or_insert(received);
        }
    }

    /// Whether the sender's host merged several segments (offload). The bridge cannot know their
    /// lengths.
    fn is_merged(&self, from: Side, tcp: &TcpFrame) -> bool {
        self.link_mtu[from.peer()].is_some_and(|mtu| tcp.packet_len() > usize::from(mtu))
    }

    /// Divides merged segments. If the sender knows a smaller MTU, its segments fit into it.
    fn fit(&mut self, from: Side, piece: Piece) -> Vec<Piece> {
        let Some(link_mtu) = self.link_mtu[from.peer()].filter(|_| self.is_merged(from, &piece.tcp)) else {
            return vec![piece];
        };
        let known = self.impairments.mtu.filter(|_| self.knows_mtu.contains(&(piece.tcp.src, piece.tcp.dst)));
        let headers = piece.tcp.packet_len() - piece.tcp.len();
        let most = usize::from(known.unwrap_or(link_mtu).min(link_mtu)).saturating_sub(headers).max(1);
        // Extension headers of IPv6 can fill a frame. Each of thousands of small pieces would copy
        // them.
        if headers > MAX_HEADERS && most < headers {
            return vec![piece];
        }
        self.lanes[from].counts.oversized += 1;
        let mut pieces = Vec::new();
        let mut rest = piece;
        while rest.tcp.len() > most {
            let [first, second] = divided(&rest, most);
            pieces.push(first);
            rest = second;
        }
        pieces.push(rest);
        pieces
    }

    /// Divides `piece` until no part has more than `most` payload bytes.
    fn cut(&mut self, piece: Piece, most: usize, fault: &impl Fn(FaultKind) -> Fault) -> Vec<Piece> {
        let mut pieces = Vec::new();
        let mut rest = piece;
        while rest.tcp.len() > most && self.may_inject() {
            let [first, second] = self.halves(rest, most, fault);
            pieces.push(first);
            rest = second;
        }
        pieces.push(rest);
        pieces
    }

    /// Draws whether a byte of the segment is corrupted. Returns the offset of this byte in the
    /// payload.
    fn byte_to_corrupt(&mut self, tcp: &TcpFrame, parts: &[PartInFrame]) -> Option<usize> {
        let corrupt = self.impairments.corrupt;
        if self.impairments.corrupt_in.is_empty() {
            return (!tcp.is_empty() && self.draws(corrupt)).then(|| self.random.usize(..tcp.len()));
        }
        let mut bytes = aim::bytes_of(&self.impairments.corrupt_in, parts);
        bytes.retain(|at| tcp.payload.contains(at));
        let is_corrupted = !bytes.is_empty() && self.draws(corrupt);
        is_corrupted.then(|| bytes[self.random.usize(..bytes.len())] - tcp.payload.start)
    }

    /// Draws whether one of the pieces of a segment is divided, and where. `payload` has the
    /// offsets of the segment's payload in its frame.
    fn split(
        &mut self,
        mut pieces: Vec<Piece>,
        payload: Range<usize>,
        parts: &[PartInFrame],
        fault: &impl Fn(FaultKind) -> Fault,
    ) -> Vec<Piece> {
        let split = self.impairments.split;
        let (chosen, at) = if let Some(place) = self.impairments.split_at {
            let mut cuts = Vec::new();
            for cut in place.cuts(parts, &payload) {
                let contains = |piece: &Piece| piece.start < cut && cut < piece.start + piece.tcp.len();
                cuts.extend(pieces.iter().position(contains).map(|chosen| (chosen, cut - pieces[chosen].start)));
            }
            if cuts.is_empty() || !self.draws(split) {
                return pieces;
            }
            cuts[self.random.usize(..cuts.len())]
        } else {
            if !self.draws(split) {
                return pieces;
            }
            let chosen = self.random.usize(..pieces.len());
            let len = pieces[chosen].tcp.len();
            if len < 2 {
                return pieces;
            }
            (chosen, self.random.usize(1..len))
        };
        let piece = pieces.remove(chosen);
        let halves = self.halves(piece, at, fault);
        pieces.splice(chosen..chosen, halves);
        pieces
    }

    fn halves(&mut self, piece: Piece, at: usize, fault: &impl Fn(FaultKind) -> Fault) -> [Piece; 2] {
        let offset = u32::try_from(piece.start + at).unwrap_or(u32::MAX);
        let number = self.record(fault(FaultKind::Split { at: offset }));
        let [mut first, mut second] = divided(&piece, at);
        first.faults = piece.faults;
        second.faults.push(FaultInFrame { number, offset: None });
        [first, second]
    }

    /// Forwards a frame without a fault.
    fn forward(&mut self, now: u64, from: Side, octets: Vec<u8>, tcp: Option<&TcpFrame>) {
        self.enqueue(now, from, octets, Vec::new(), tcp);
    }

    fn enqueue(&mut self, now: u64, from: Side, octets: Vec<u8>, faults: Vec<FaultInFrame>, tcp: Option<&TcpFrame>) {
        let is_delayed = self.delays(from, tcp);
        let Impairments { delay, jitter, .. } = &self.impairments;
        let mut due = now;
        if is_delayed {
            let jitter = nanoseconds(*jitter);
            let random = if jitter == 0 { 0 } else { self.random.u64(..=jitter) };
            due = now.saturating_add(nanoseconds(*delay)).saturating_add(random);
        }
        self.lanes[from].push(Waiting { due, octets, faults }, is_delayed);
        self.pass_held_back(from, due, tcp);
    }

    /// If a held-back frame waits for later frames of the same connection, counts the frame `tcp`
    /// as one of these later frames.
    fn pass_held_back(&mut self, from: Side, due: u64, tcp: Option<&TcpFrame>) {
        let lane = &mut self.lanes[from];
        let Some(held) = &mut lane.held_back else { return };
        if tcp.is_none_or(|tcp| (tcp.src, tcp.dst) != (held.fault.src, held.fault.dst)) {
            return;
        }
        held.passes -= 1;
        held.has_been_passed = true;
        if held.passes == 0 {
            self.release_held_back(from, due);
        }
    }

    /// Forwards the held-back frame of a side. If a later frame has passed it, this is a fault.
    fn release_held_back(&mut self, from: Side, due: u64) {
        let Some(HeldBack { mut frame, fault, has_been_passed, .. }) = self.lanes[from].held_back.take() else {
            return;
        };
        if has_been_passed {
            let number = self.record(fault);
            frame.faults.push(FaultInFrame { number, offset: None });
        }
        self.lanes[from].push(Waiting { due, ..frame }, false);
    }

    /// The time of the next delivery, in nanoseconds since 1970; `None` if no frame waits.
    #[must_use]
    pub fn next_due(&self) -> Option<u64> {
        let lanes = Side::BOTH.map(|side| &self.lanes[side]);
        let queued = lanes.iter().filter_map(|lane| lane.queue.front()).map(|frame| frame.due);
        let held = lanes.iter().filter_map(|lane| lane.held_back.as_ref()).map(|held| held.frame.due);
        queued.chain(held).min()
    }

    /// Releases the next frame that is due at `now`.
    pub fn deliver(&mut self, now: u64) -> Option<Delivery> {
        for side in Side::BOTH {
            if self.lanes[side].held_back.as_ref().is_some_and(|held| held.frame.due <= now) {
                self.release_held_back(side, now);
            }
        }
        let due = |side: &Side| self.lanes[*side].queue.front().map(|frame| frame.due).filter(|due| *due <= now);
        let from = Side::BOTH.into_iter().filter(|side| due(side).is_some()).min_by_key(|side| due(side))?;
        let lane = &mut self.lanes[from];
        let frame = lane.queue.pop_front()?;
        lane.waiting -= frame.octets.len();
        Some(Delivery { to: from.peer(), octets: frame.octets, faults: frame.faults })
    }
}

/// Divides a piece after `at` payload bytes. The pieces have no faults.
fn divided(piece: &Piece, at: usize) -> [Piece; 2] {
    let [first, second] = piece.tcp.divide(&piece.octets, at);
    let make = |(octets, tcp), start| Piece { octets, tcp, start, faults: Vec::new() };
    [make(first, piece.start), make(second, piece.start + at)]
}

fn nanoseconds(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests;
