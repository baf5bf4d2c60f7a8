//! Mangling makes random changes to the bytes that an endpoint sends. A seed determines the
//! changes. In contrast, a deviation has a name and changes one defined thing.
//!
//! A [`Mangler`] is between an endpoint and its TCP connection. It receives the bytes that the
//! endpoint would send, finds the PDUs in these bytes, and returns the bytes to send instead. Each
//! returned piece has a time at which it has to be sent. The mangler can change, truncate or
//! duplicate a PDU, or insert random bytes. It can split, delay or reorder writes, and it can
//! insert a half-close or a reset.
//!
//! A [`Plan`] sets how often each of these changes happens. The seed alone decides which PDUs are
//! affected and how. Therefore the same seed has the same effect on the same PDUs, over TCP and
//! over a virtual link. One thing depends on timing instead of the seed: whether the next write
//! overtakes a write that is held back.
//!
//! Half of the changed ULPDUs are sent with a matching length and CRC. Therefore DDP and RDMAP
//! process these ULPDUs. For the other changes, the mangler changes the bytes of the finished FPDU.
//! MPA then has to detect the error. The mangler inserts new markers into all FPDUs, because a
//! change of one length moves all following markers.
//!
//! This module knows neither correct values nor the peer's expected reaction.

mod mutate;
mod pdus;
mod plan;

use core::time::Duration;
use std::collections::VecDeque;

use bytes::Bytes;
use fastrand::Rng;
use weft_core::wire::mpa::fpdu;

use self::pdus::{Pdu, Pdus};
pub use self::plan::{BadPlan, Frequency, Kind, Plan};
use crate::connection::Transmit;
use crate::time::Instant;

/// If the queue has at least this number of bytes, [`Mangler::has_room`] returns false.
const ROOM: usize = 1 << 20;
/// How long a write that is held back waits for the next write, which overtakes it.
const KEPT_FOR: Duration = Duration::from_millis(20);
/// Maximum number of pieces into which a write is split.
const PIECES: usize = 4;

/// How the connections of an endpoint are mangled.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mangling {
    /// Which changes happen, and how often.
    pub plan: Plan,
    /// Seed of the first connection. Each further connection uses the previous seed plus one.
    pub seed: u64,
    /// Maximum delay of a write.
    pub longest_delay: Duration,
}

impl Mangling {
    /// Creates settings with delays of up to 200 ms.
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        Mangling { plan, seed, longest_delay: Duration::from_millis(200) }
    }

    /// Returns the seed of a connection. Connections are counted from 0.
    #[must_use]
    pub fn seed_of(&self, connection: u64) -> u64 {
        self.seed.wrapping_add(connection)
    }

    /// Returns the mangler of a connection. Connections are counted from 0.
    #[must_use]
    pub fn mangler(&self, connection: u64) -> Mangler {
        Mangler {
            plan: self.plan.clone(),
            met: [0; Kind::ALL.len()],
            rng: Rng::with_seed(self.seed_of(connection)),
            longest_delay: self.longest_delay,
            pdus: Pdus::default(),
            position: 0,
            kept: None,
            queue: VecDeque::new(),
            queued: 0,
            last: Instant::ORIGIN,
            ended: false,
        }
    }
}

/// Mangles the bytes that one endpoint sends on one connection. Pass the output of the endpoint to
/// [`push`](Self::push), in order. Call [`poll`](Self::poll) until it returns `None`, and carry out
/// each returned action. Call `poll` again at [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct Mangler {
    plan: Plan,
    /// Number of PDUs or writes so far, for each kind of change with [`Frequency::At`].
    met: [u32; Kind::ALL.len()],
    rng: Rng,
    longest_delay: Duration,
    pdus: Pdus,
    /// Number of bytes of FPDUs so far, as if no finished FPDU had been changed.
    position: u64,
    /// A write to send after the next write, or at this time at the latest.
    kept: Option<(Instant, Vec<u8>)>,
    queue: VecDeque<(Instant, Transmit)>,
    /// Number of bytes in the queue.
    queued: usize,
    /// Send time of the last write in the queue.
    last: Instant,
    /// True after the sending direction was closed or the connection was reset. The mangler then
    /// ignores further input.
    ended: bool,
}

impl Mangler {
    /// Accepts the next output of the endpoint: bytes, split in any way, or an end of the
    /// connection.
    pub fn push(&mut self, now: Instant, transmit: Transmit) {
        if matches!(transmit, Transmit::Reset) {
            // A reset does not wait for queued writes.
            self.discard();
            self.queue.push_back((now, Transmit::Reset));
        }
        if self.ended {
            return;
        }
        match transmit {
            Transmit::Octets(octets) => {
                self.pdus.push(&octets);
                while let Some(pdu) = self.pdus.next() {
                    self.pdu(now, &pdu);
                }
            }
            Transmit::Fin => {
                let rest = self.pdus.rest();
                self.cut(now, rest);
                self.release(now);
                self.end(now, Transmit::Fin);
            }
            Transmit::Reset => {}
        }
    }

    /// Returns the next action that is due at `now`, or `None`.
    pub fn poll(&mut self, now: Instant) -> Option<Transmit> {
        if self.kept.as_ref().is_some_and(|(until, _)| *until <= now) {
            self.release(now);
        }
        let (_, transmit) = self.queue.pop_front_if(|(at, _)| *at <= now)?;
        if let Transmit::Octets(octets) = &transmit {
            self.queued = self.queued.saturating_sub(octets.len());
        }
        Some(transmit)
    }

    /// Returns the time of the next action.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let kept = self.kept.as_ref().map(|(until, _)| *until);
        [self.queue.front().map(|(at, _)| *at), kept].into_iter().flatten().min()
    }

    /// Returns whether the caller should push more bytes. If the result is false, `push` still
    /// works.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.queued < ROOM
    }

    /// Returns whether `poll` has returned everything that was pushed, except the start of an
    /// incomplete PDU.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.kept.is_none()
    }

    /// Drops everything that is queued, because the connection has ended.
    pub fn discard(&mut self) {
        (self.kept, self.queued, self.ended) = (None, 0, true);
        self.queue.clear();
    }

    /// Decides whether a kind of change happens now.
    fn draws(&mut self, kind: Kind) -> bool {
        match self.plan.frequency(kind) {
            Frequency::Never => false,
            Frequency::OneIn(number) => self.rng.u32(0..number) == 0,
            Frequency::At(number) => {
                let met = &mut self.met[kind as usize];
                *met = met.saturating_add(1);
                *met == number
            }
        }
    }

    /// Changes one PDU and writes the result.
    fn pdu(&mut self, now: Instant, pdu: &Pdu) {
        if self.draws(Kind::Insert) {
            let random_octets = self.random_octets();
            self.write(now, random_octets);
        }
        let copies = if self.draws(Kind::Duplicate) { 2 } else { 1 };
        for _ in 0..copies {
            let octets = match pdu {
                Pdu::Ulpdu { ulpdu, framing } => {
                    let fits = self.rng.bool();
                    let ulpdu = if fits { self.changed(ulpdu.clone(), mutate::ULPDU) } else { ulpdu.clone() };
                    let mut octets = Vec::new();
                    let ulpdu = &ulpdu[..ulpdu.len().min(usize::from(fpdu::MAX_ULPDU))];
                    match fpdu::emit(self.position, &[ulpdu], *framing, &mut octets) {
                        Ok(layout) => self.position = layout.end,
                        Err(error) => tracing::debug!(%error, "cannot make an FPDU for a ULPDU of permitted length"),
                    }
                    if fits { octets } else { self.changed(octets, mutate::FPDU) }
                }
                Pdu::Startup(octets) => self.changed(octets.clone(), mutate::STARTUP),
                Pdu::Unknown(octets) => self.changed(octets.clone(), mutate::UNKNOWN),
            };
            self.write(now, octets);
        }
    }

    fn changed(&mut self, mut octets: Vec<u8>, fields: mutate::Fields) -> Vec<u8> {
        if self.draws(Kind::Flip) {
            mutate::flip(&mut self.rng, &mut octets);
        }
        if self.draws(Kind::Edge) {
            mutate::edge(&mut self.rng, &mut octets, fields);
        }
        if self.draws(Kind::Insert) {
            mutate::insert(&mut self.rng, &mut octets);
        }
        if self.draws(Kind::Truncate) {
            mutate::truncate(&mut self.rng, &mut octets);
        }
        octets
    }

    /// Returns random bytes, or a valid FPDU with random bytes.
    fn random_octets(&mut self) -> Vec<u8> {
        let mut octets = vec![0; self.rng.usize(1..=64)];
        self.rng.fill(&mut octets);
        match self.pdus.framing() {
            Some(framing) if self.rng.bool() => {
                let mut random_octets = Vec::new();
                if let Ok(layout) = fpdu::emit(self.position, &[&octets], framing, &mut random_octets) {
                    self.position = layout.end;
                }
                random_octets
            }
            _ => octets,
        }
    }

    /// Writes bytes now, or holds them back until after the next write.
    fn write(&mut self, now: Instant, octets: Vec<u8>) {
        if self.kept.is_none() && self.draws(Kind::Reorder) {
            self.kept = Some((now + KEPT_FOR, octets));
            return;
        }
        self.cut(now, octets);
        self.release(now);
    }

    /// Writes the bytes that were held back.
    fn release(&mut self, now: Instant) {
        if let Some((_, octets)) = self.kept.take() {
            self.cut(now, octets);
        }
    }

    /// Queues a write, perhaps in pieces.
    fn cut(&mut self, now: Instant, octets: Vec<u8>) {
        let mut rest = Bytes::from(octets);
        if self.draws(Kind::Cut) {
            for _ in 1..PIECES {
                let piece = rest.split_to(self.rng.usize(0..=rest.len()));
                self.put(now, piece);
            }
        }
        self.put(now, rest);
    }

    /// Queues one write. If the mangler inserts a half-close or reset, queues only the start of the
    /// write, and then the half-close or reset.
    fn put(&mut self, now: Instant, mut octets: Bytes) {
        if self.ended || octets.is_empty() {
            return;
        }
        let end = if self.draws(Kind::HalfClose) {
            Some(Transmit::Fin)
        } else if self.draws(Kind::Reset) {
            Some(Transmit::Reset)
        } else {
            None
        };
        if end.is_some() {
            octets.truncate(self.rng.usize(0..=octets.len()));
        }
        self.last = self.last.max(now);
        if self.draws(Kind::Delay) {
            let most = u64::try_from(self.longest_delay.as_nanos()).unwrap_or(u64::MAX);
            self.last = self.last + Duration::from_nanos(self.rng.u64(0..=most));
        }
        if !octets.is_empty() {
            self.queued += octets.len();
            self.queue.push_back((self.last, Transmit::Octets(octets)));
        }
        if let Some(end) = end {
            self.kept = None;
            self.end(now, end);
        }
    }

    fn end(&mut self, now: Instant, end: Transmit) {
        if !self.ended {
            self.last = self.last.max(now);
            self.queue.push_back((self.last, end));
            self.ended = true;
        }
    }
}

/// Returns the next action for a connection's driver. Without a mangler, the action is the output
/// of `next`. With a mangler, the action is the changed output.
pub(crate) fn next_transmit(
    now: Instant,
    mut next: impl FnMut() -> Option<Transmit>,
    mangler: Option<&mut Mangler>,
) -> Option<Transmit> {
    let Some(mangler) = mangler else { return next() };
    while mangler.has_room()
        && let Some(transmit) = next()
    {
        mangler.push(now, transmit);
    }
    mangler.poll(now)
}

#[cfg(test)]
mod tests;
