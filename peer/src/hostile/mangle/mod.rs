//! Seeded chaos beside the named deviations: what an endpoint writes, mangled.
//!
//! A [`Mangler`] is between an endpoint and its wire. It takes what the endpoint would do to TCP,
//! finds the PDUs in it, and gives what is done instead, each piece with its instant: PDUs changed,
//! lost in part, twice or among random octets, writes cut, late or in another order, a half-close
//! or a reset at some point. How often each of these happens is a [`Plan`]; which PDU it hits, and
//! how, comes from a seed alone. So the same seed has the same effect on the same PDUs, over TCP
//! and over a virtual link. Only time decides whether a held write meets a later one.
//!
//! Half of the ULPDUs that are changed get a length and a CRC that fit, so that DDP and RDMAP see
//! them; of the others MPA gets FPDUs that are wrong. Markers are put anew into all, since what
//! moves one moves the next.
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
pub use self::plan::{BadPlan, Kind, Often, Plan};
use crate::connection::Transmit;
use crate::time::Instant;

/// Octets that a mangler holds before it wants no more.
const ROOM: usize = 1 << 20;
/// How long a write is kept back for a later one.
const KEPT_FOR: Duration = Duration::from_millis(20);
/// Most pieces that a write is cut to.
const PIECES: usize = 4;

/// The mangling of an endpoint's connections.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mangling {
    /// What happens, and how often.
    pub plan: Plan,
    /// The first connection's seed; each further one's is one more.
    pub seed: u64,
    /// The longest delay.
    pub longest_delay: Duration,
}

impl Mangling {
    /// By this plan, with delays up to 200 ms.
    #[must_use]
    pub fn new(plan: Plan, seed: u64) -> Self {
        Mangling { plan, seed, longest_delay: Duration::from_millis(200) }
    }

    /// The seed of a connection, which are counted from 0.
    #[must_use]
    pub fn seed_of(&self, connection: u64) -> u64 {
        self.seed.wrapping_add(connection)
    }

    /// What mangles that connection.
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

/// Mangles what one endpoint sends on one connection. Hand in what it would do, in its order, with
/// [`push`](Self::push); do what [`poll`](Self::poll) returns until it returns `None`, and call
/// again at [`poll_timeout`](Self::poll_timeout).
#[derive(Debug)]
pub struct Mangler {
    plan: Plan,
    /// PDUs and writes to which a kind could have happened, where it happens to one.
    met: [u32; Kind::ALL.len()],
    rng: Rng,
    longest_delay: Duration,
    pdus: Pdus,
    /// Octets of FPDUs as they would be if nothing were wrong in them.
    position: u64,
    /// A write to send after the next one, or at that time.
    kept: Option<(Instant, Vec<u8>)>,
    queue: VecDeque<(Instant, Transmit)>,
    /// Octets in the queue.
    queued: usize,
    /// When the youngest write of the queue goes out.
    last: Instant,
    /// Nothing more is taken: the half is closed, or the connection reset.
    ended: bool,
}

impl Mangler {
    /// What the endpoint does now: octets, cut in any way, or an end.
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

    /// What is to be done at `now`; `None` when that is nothing.
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

    /// When something is to be done next.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        let kept = self.kept.as_ref().map(|(until, _)| *until);
        [self.queue.front().map(|(at, _)| *at), kept].into_iter().flatten().min()
    }

    /// There is room for more. What is pushed all the same is taken.
    #[must_use]
    pub fn has_room(&self) -> bool {
        self.queued < ROOM
    }

    /// Everything that was pushed is done, but for the beginning of a PDU whose rest never came.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.queue.is_empty() && self.kept.is_none()
    }

    /// The wire is gone: forgets all.
    pub fn discard(&mut self) {
        (self.kept, self.queued, self.ended) = (None, 0, true);
        self.queue.clear();
    }

    fn draws(&mut self, kind: Kind) -> bool {
        match self.plan.often(kind) {
            Often::Never => false,
            Often::OneIn(number) => self.rng.u32(0..number) == 0,
            Often::At(number) => {
                let met = &mut self.met[kind as usize];
                *met = met.saturating_add(1);
                *met == number
            }
        }
    }

    /// Writes what becomes of a PDU.
    fn pdu(&mut self, now: Instant, pdu: &Pdu) {
        if self.draws(Kind::Insert) {
            let made_up = self.made_up();
            self.write(now, made_up);
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
                        Err(error) => tracing::debug!(%error, "no FPDU for a ULPDU that is short enough"),
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

    /// Unsolicited octets: random ones, or a good FPDU of them.
    fn made_up(&mut self) -> Vec<u8> {
        let mut octets = vec![0; self.rng.usize(1..=64)];
        self.rng.fill(&mut octets);
        match self.pdus.framing() {
            Some(framing) if self.rng.bool() => {
                let mut made_up = Vec::new();
                if let Ok(layout) = fpdu::emit(self.position, &[&octets], framing, &mut made_up) {
                    self.position = layout.end;
                }
                made_up
            }
            _ => octets,
        }
    }

    /// Writes octets now, or after the next write.
    fn write(&mut self, now: Instant, octets: Vec<u8>) {
        if self.kept.is_none() && self.draws(Kind::Reorder) {
            self.kept = Some((now + KEPT_FOR, octets));
            return;
        }
        self.cut(now, octets);
        self.release(now);
    }

    /// Writes what was kept back.
    fn release(&mut self, now: Instant) {
        if let Some((_, octets)) = self.kept.take() {
            self.cut(now, octets);
        }
    }

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

    /// Queues one write, or the rest of it if an end is inserted.
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

/// What a connection's driver does next: the output of `next`, or what the connection's mangler
/// makes of it.
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
