//! An [`End`] is one SDP endpoint, with the bytes and the events of its user. It uses no sockets
//! and no clock.

use std::ops::{Deref, DerefMut};

use weft_peer::sdp::{Connection, Event, Role, Settings};
use weft_peer::sdp_rnic::{Endpoint, Progress, Queues};
use weft_peer::verbs::LateSegment;
use weft_peer::{Deviations, Instant, Transmit};

use crate::hostile::side::Put;

/// Maximum payload of a TCP segment in bytes.
pub(crate) const EMSS: u16 = 1460;

const QUEUES: Queues = Queues { sends: 4096, receives: 4096, late: LateSegment::Reset };

pub(crate) struct End {
    pub(crate) machine: Machine,
    pub(crate) events: Vec<Event>,
    /// `Some` if the connection is suspended. The inner value is the port to which this end
    /// connects next, or `None` if this end listens.
    pub(crate) rests: Option<Option<u16>>,
    /// The bytes that the user has received.
    pub(crate) got: Vec<u8>,
    sent: u64,
    /// MID and MSeqAck of each sent message. For a received message, there is an entry with two
    /// zeros.
    pub(crate) messages: Vec<(u8, u32)>,
}

/// The endpoint. It can be used like the SDP machine that it contains.
pub(crate) struct Machine(Endpoint);

impl Deref for Machine {
    type Target = Connection;

    fn deref(&self) -> &Connection {
        self.0.machine()
    }
}

impl DerefMut for Machine {
    fn deref_mut(&mut self) -> &mut Connection {
        self.0.machine_mut()
    }
}

impl End {
    pub(crate) fn new(now: Instant, role: Role, settings: Settings, deviations: &Deviations) -> Self {
        let machine = Machine(Endpoint::new(now, role, settings, QUEUES, deviations).unwrap());
        let (events, got, messages) = (Vec::new(), Vec::new(), Vec::new());
        let mut end = End { machine, events, rests: None, got, sent: 0, messages };
        end.run(now);
        end
    }

    /// Returns whether TCP has ended after a suspension.
    pub(crate) fn has_come_to_rest(&self) -> bool {
        self.rests.is_some() && self.machine.0.awaits_reconnect()
    }

    /// Starts to use a new TCP connection, with a new Queue Pair.
    pub(crate) fn reconnect(&mut self, now: Instant) {
        self.rests = None;
        self.machine.0.reconnect(now);
        self.run(now);
    }

    /// Sends bytes of the user. Drops them if the connection is over.
    pub(crate) fn send(&mut self, octets: Vec<u8>, urgent: bool) {
        let len = octets.len() as u64;
        if self.machine.0.send(octets, urgent) {
            self.sent += len;
        }
    }

    /// Returns the number of bytes that the user has sent.
    pub(crate) fn sent(&self) -> u64 {
        self.sent
    }

    /// Returns the number of bytes that the user has received.
    pub(crate) fn waited(&self) -> u64 {
        self.got.len() as u64
    }

    /// Returns the number of receives that have not completed.
    pub(crate) fn waiting(&self) -> usize {
        self.machine.0.receives()
    }

    /// Posts a receive of the user.
    pub(crate) fn receive(&mut self, len: u64, wait_for_all: bool) {
        assert!(self.machine.0.receive(len, wait_for_all), "a receive of {len} bytes is refused");
    }

    /// Performs all actions that the endpoint and the RNIC require.
    pub(crate) fn run(&mut self, now: Instant) {
        loop {
            match self.machine.0.advance(now) {
                Some(Progress::Sent { mid, mseq_ack }) => self.messages.push((mid, mseq_ack)),
                Some(Progress::MessageReceived) => self.messages.push((0, 0)),
                Some(Progress::Event(event, octets)) => {
                    self.got.extend(octets);
                    if let Event::Suspended { reconnect } = event {
                        self.rests = Some(reconnect);
                    }
                    self.events.push(event);
                }
                Some(Progress::Other) => {}
                None if self.machine.0.settle(now) => {}
                None => return,
            }
        }
    }

    /// Handles output that arrives from the other end.
    pub(crate) fn take(&mut self, now: Instant, put: &Put) {
        match put {
            Put::Octets(octets) => self.machine.0.handle_octets(now, octets),
            Put::Fin => self.machine.0.handle_fin(now),
            Put::Reset => self.machine.0.handle_reset(now),
        }
        self.run(now);
    }

    /// Returns the time at which the next timer expires.
    pub(crate) fn deadline(&self) -> Option<Instant> {
        self.machine.0.poll_timeout()
    }

    pub(crate) fn pass(&mut self, now: Instant) {
        self.machine.0.handle_timeout(now);
        self.run(now);
    }

    /// Returns the next output of this end.
    pub(crate) fn put(&mut self, now: Instant) -> Option<Put> {
        let put = self.machine.0.poll_transmit(now).map(|transmit| match transmit {
            Transmit::Octets(octets) => Put::Octets(octets.into()),
            Transmit::Fin => Put::Fin,
            Transmit::Reset => Put::Reset,
        });
        self.run(now);
        put
    }
}
