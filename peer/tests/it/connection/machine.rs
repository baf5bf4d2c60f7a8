//! Defines machines for tests. A [`Machine`] is a connection with everything that it sent. A
//! [`Pair`] is two machines that are joined by queues.

use std::time::Duration;

use weft_peer::connection::{Closed, Event, Transmit};
use weft_peer::mpa::MpaSettings;
use weft_peer::{Connection, Instant, Settings};

/// An MPA Request of revision 1 with CRC and without private data, and the Reply to this Request.
pub(crate) const REQUEST: &[u8; 20] = b"MPA ID Req Frame\x40\x01\x00\x00";
pub(crate) const REPLY: &[u8; 20] = b"MPA ID Rep Frame\x40\x01\x00\x00";
/// FPDUs of a Send and a Write without payload. An independent, table-driven implementation
/// computed their CRCs.
pub(crate) const SEND: &[u8] = b"\x00\x12\x41\x43\0\0\0\0\0\0\0\0\0\0\0\x01\0\0\0\0\x58\x7b\xe8\xc4";
pub(crate) const WRITE: &[u8] = b"\x00\x0e\xc1\x40\0\0\0\0\0\0\0\0\0\0\0\0\xa3\x05\x72\xab";

/// Default settings, in which `change` changes the MPA settings.
pub(crate) fn mpa(change: impl FnOnce(&mut MpaSettings)) -> Settings {
    let mut settings = Settings::default();
    change(&mut settings.mpa);
    settings
}

/// A connection, and everything that it has sent.
pub(crate) struct Machine {
    pub(crate) connection: Connection,
    pub(crate) now: Instant,
    pub(crate) events: Vec<Event>,
    pub(crate) sent: Vec<Transmit>,
}

impl Machine {
    pub(crate) fn initiator(settings: Settings) -> Self {
        Machine::new(Connection::initiate(Instant::ORIGIN, settings).unwrap())
    }

    pub(crate) fn responder(settings: Settings) -> Self {
        Machine::new(Connection::respond(Instant::ORIGIN, settings))
    }

    /// Returns a Responder after start-up. It has posted `receives` receives of 64 octets each. Its
    /// earlier output is discarded.
    pub(crate) fn established(receives: usize) -> Self {
        let mut machine = Machine::responder(Settings::default());
        machine.octets(REQUEST);
        for _ in 0..receives {
            machine.connection.post_receive(64).unwrap();
        }
        machine.forget();
        machine
    }

    pub(crate) fn new(connection: Connection) -> Self {
        let mut machine = Machine { connection, now: Instant::ORIGIN, events: Vec::new(), sent: Vec::new() };
        machine.settle();
        machine
    }

    /// Polls until there is no more output.
    pub(crate) fn settle(&mut self) {
        loop {
            let (events, sent) = (self.events.len(), self.sent.len());
            self.events.extend(std::iter::from_fn(|| self.connection.poll_event()));
            self.sent.extend(std::iter::from_fn(|| self.connection.poll_transmit(self.now)));
            if (events, sent) == (self.events.len(), self.sent.len()) {
                return;
            }
        }
    }

    pub(crate) fn forget(&mut self) {
        self.events.clear();
        self.sent.clear();
    }

    pub(crate) fn octets(&mut self, octets: &[u8]) {
        self.connection.handle_octets(self.now, octets);
        self.settle();
    }

    pub(crate) fn fin(&mut self) {
        self.connection.handle_fin(self.now);
        self.settle();
    }

    pub(crate) fn reset(&mut self) {
        self.connection.handle_reset(self.now);
        self.settle();
    }

    pub(crate) fn close(&mut self) {
        self.connection.close(self.now);
        self.settle();
    }

    /// Lets `duration` pass, and handles each deadline in this time.
    pub(crate) fn pass(&mut self, duration: Duration) {
        let end = self.now + duration;
        while let Some(deadline) = self.connection.poll_timeout().filter(|deadline| *deadline <= end) {
            self.now = self.now.max(deadline);
            self.connection.handle_timeout(self.now);
            self.settle();
        }
        self.now = end;
    }

    /// Lets `duration` pass while TCP accepts nothing.
    pub(crate) fn pass_without_sending(&mut self, duration: Duration) {
        self.now = self.now + duration;
        self.connection.handle_timeout(self.now);
    }

    /// All octets sent, joined.
    pub(crate) fn octets_sent(&self) -> Vec<u8> {
        let octets = self.sent.iter().filter_map(|sent| match sent {
            Transmit::Octets(octets) => Some(&octets[..]),
            Transmit::Fin | Transmit::Reset => None,
        });
        octets.collect::<Vec<_>>().concat()
    }

    /// The octets of the messages received.
    pub(crate) fn received(&self) -> Vec<Vec<u8>> {
        let octets = self.events.iter().filter_map(|event| match event {
            Event::Received { octets, .. } => Some(octets.to_vec()),
            _ => None,
        });
        octets.collect()
    }

    /// How the connection ended.
    pub(crate) fn closed(&self) -> Option<Closed> {
        match self.events.last() {
            Some(Event::Closed(closed)) => Some(*closed),
            _ => None,
        }
    }
}

/// Two machines joined by queues.
pub(crate) struct Pair {
    pub(crate) initiator: Machine,
    pub(crate) responder: Machine,
    /// Number of transmits of each machine that the other machine has received.
    passed: [usize; 2],
    /// Number of octets of a TCP segment. Transmits are split into segments.
    pub(crate) segment: usize,
}

impl Pair {
    pub(crate) fn new(initiator: Settings, responder: Settings) -> Self {
        Pair {
            initiator: Machine::initiator(initiator),
            responder: Machine::responder(responder),
            passed: [0, 0],
            segment: usize::MAX,
        }
    }

    /// A pair with default settings after start-up.
    pub(crate) fn established() -> Self {
        let mut pair = Pair::new(Settings::default(), Settings::default());
        pair.run();
        assert!(pair.initiator.connection.is_operating() && pair.responder.connection.is_operating());
        pair
    }

    /// Delivers everything that the machines send, until both machines send nothing more.
    pub(crate) fn run(&mut self) {
        loop {
            self.initiator.settle();
            self.responder.settle();
            let there = pass(&self.initiator, &mut self.responder, &mut self.passed[0], self.segment);
            let back = pass(&self.responder, &mut self.initiator, &mut self.passed[1], self.segment);
            if !there && !back {
                return;
            }
        }
    }
}

fn pass(from: &Machine, to: &mut Machine, passed: &mut usize, segment: usize) -> bool {
    let new = &from.sent[*passed..];
    *passed = from.sent.len();
    for transmit in new {
        match transmit {
            Transmit::Octets(octets) => octets.chunks(segment).for_each(|octets| to.octets(octets)),
            Transmit::Fin => to.fin(),
            Transmit::Reset => to.reset(),
        }
    }
    !new.is_empty()
}
