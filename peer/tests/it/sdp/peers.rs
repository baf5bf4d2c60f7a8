//! [`Peers`] is two hosts and the link between them. An item (a message or an RDMA operation) moves
//! over the link only when a test moves it.

use std::collections::VecDeque;

use weft_core::wire::sdp::{Body, FieldOrder, Message};
use weft_peer::Instant;
use weft_peer::sdp::{Connection, Event, Settings};

use crate::sdp::host::{Host, Item};

/// Two connected sides; side 0 is the Connecting Peer.
pub(crate) struct Peers {
    pub(crate) now: Instant,
    pub(crate) hosts: [Host; 2],
    /// Items in flight from each side.
    pub(crate) wires: [VecDeque<Item>; 2],
    /// All complete messages that each side sent, beginning with the Hello.
    pub(crate) sent: [Vec<Vec<u8>>; 2],
    /// All items that went over the link, each with the side that sent it. `None` if the test does
    /// not record them.
    pub(crate) log: Option<Vec<(usize, Item)>>,
    /// Number of TCP connections after the first.
    pub(crate) reconnected: u64,
    /// If this is true, each sent item is printed.
    pub(crate) verbose: bool,
    pub(crate) order: FieldOrder,
}

impl Peers {
    pub(crate) fn new(connecting: Settings, accepting: Settings) -> Self {
        let (now, order) = (Instant::ORIGIN, connecting.order);
        let hosts = [Connection::connect(now, connecting), Connection::accept(now, accepting)].map(Host::new);
        let mut peers = Peers {
            now,
            hosts,
            wires: Default::default(),
            sent: Default::default(),
            log: None,
            reconnected: 0,
            verbose: false,
            order,
        };
        for side in 0..2 {
            peers.hosts[side].run(now);
            peers.load(side);
        }
        peers
    }

    /// Puts the items that a side sends on its wire.
    pub(crate) fn load(&mut self, side: usize) {
        while let Some(item) = self.hosts[side].outgoing.pop_front() {
            if self.verbose {
                println!("    {side}> {}", words(&item, self.order));
            }
            if let Item::Message { octets, .. } | Item::Streaming(octets) = &item {
                self.sent[side].push(octets.clone());
            }
            if let Some(log) = &mut self.log {
                log.push((side, item.clone()));
            }
            self.wires[side].push_back(item);
        }
    }

    /// Delivers the next item that `from` sent. Returns `false` if there is no item.
    pub(crate) fn deliver(&mut self, from: usize) -> bool {
        let Some(item) = self.wires[from].pop_front() else { return false };
        // TCP has ended, so all operations that were sent before have completed.
        while item == Item::Fin && self.complete(1 - from) {}
        self.hosts[1 - from].arrive(self.now, item);
        self.load(1 - from);
        true
    }

    /// Opens a new TCP connection if both sides are suspended and nothing is in flight. Otherwise
    /// returns `false`. If one side is suspended and the other side is over, the suspended side
    /// aborts.
    pub(crate) fn reconnect(&mut self) -> bool {
        if self.wires.iter().any(|wire| !wire.is_empty()) {
            return false;
        }
        let rest = self.hosts.each_ref().map(|host| host.machine.is_suspended());
        if let Some(alone) = (0..2).find(|side| rest[*side] && self.hosts[1 - side].machine.is_over()) {
            // The other side is over, so it cannot connect or accept.
            self.hosts[alone].machine.abort(self.now);
            self.run(alone);
            return true;
        }
        if rest != [true; 2] {
            return false;
        }
        for side in 0..2 {
            self.hosts[side].reconnect(self.now);
            self.load(side);
        }
        self.reconnected += 1;
        true
    }

    /// Reports the oldest completion of a side's RNIC. Returns `false` if there is no completion.
    pub(crate) fn complete(&mut self, side: usize) -> bool {
        if self.hosts[side].completions.is_empty() {
            return false;
        }
        self.hosts[side].complete(self.now);
        self.load(side);
        true
    }

    /// Performs all outputs that a side's machine has now.
    pub(crate) fn run(&mut self, side: usize) {
        let now = self.now;
        self.hosts[side].run(now);
        self.load(side);
    }

    /// Moves everything that can move without time passing.
    pub(crate) fn settle(&mut self) {
        self.run(0);
        self.run(1);
        while self.deliver(0) | self.deliver(1) | self.complete(0) | self.complete(1) | self.reconnect() {}
    }

    /// Lets time pass until the next deadline. Returns `false` if there is no deadline.
    pub(crate) fn wait(&mut self) -> bool {
        let Some(next) = self.hosts.iter().filter_map(|host| host.machine.poll_timeout()).min() else { return false };
        self.now = self.now.max(next);
        for side in 0..2 {
            self.hosts[side].machine.handle_timeout(self.now);
            self.run(side);
        }
        true
    }

    /// The events of a side since the last call.
    pub(crate) fn events(&mut self, side: usize) -> Vec<Event> {
        std::mem::take(&mut self.hosts[side].events)
    }
}

/// Returns a line of text about a sent item, for a person who reads the log of a failed test.
fn words(item: &Item, order: FieldOrder) -> String {
    match item {
        Item::Message { octets, .. } => match Message::parse(octets, order) {
            Ok(Message { bufs, mseq, mseq_ack, body, .. }) => {
                let what = match body {
                    Body::Data(payload) => format!("Data of {}", payload.len()),
                    Body::SrcAvail(header, payload) => format!("{header:?} with {}", payload.len()),
                    Body::SinkAvail(header, payload) => format!("{header:?} with {}", payload.len()),
                    other => format!("{other:?}"),
                };
                format!("{mseq} (ack {mseq_ack}, bufs {bufs}): {what}")
            }
            Err(_) => format!("{octets:02x?}"),
        },
        Item::ReadResponse { octets, .. } => format!("Read Response of {}", octets.len()),
        Item::Write { octets, .. } => format!("Write of {}", octets.len()),
        other => format!("{other:?}"),
    }
}
