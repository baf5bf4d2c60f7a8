//! A [`Net`] has two SDP endpoints, the messages in flight between them, and a capture of the
//! traffic.

use std::collections::VecDeque;
use std::time::Duration;

use weft_peer::sdp::{Role, Settings};
use weft_peer::{Deviations, Instant};

use super::end::{EMSS, End};
use crate::hostile::capture::Capture;
use crate::hostile::side::Put;

pub(crate) struct Net {
    pub(crate) now: Instant,
    /// The Connecting Peer and the Accepting Peer.
    pub(crate) ends: [End; 2],
    wires: [VecDeque<Put>; 2],
    pub(crate) capture: Capture,
}

impl Net {
    pub(crate) fn new(settings: [Settings; 2], deviations: [&Deviations; 2]) -> Self {
        let now = Instant::ORIGIN;
        let [connecting, accepting] = settings;
        let ends = [
            End::new(now, Role::Connecting, connecting, deviations[0]),
            End::new(now, Role::Accepting, accepting, deviations[1]),
        ];
        let mut net = Net { now, ends, wires: Default::default(), capture: Capture::connected(EMSS) };
        net.load();
        net
    }

    /// Moves the output of both ends to the wire.
    pub(crate) fn load(&mut self) {
        for from in 0..2 {
            self.ends[from].run(self.now);
            while let Some(put) = self.ends[from].put(self.now) {
                self.capture.departs(from, &put);
                self.wires[from].push_back(put);
            }
        }
    }

    /// Delivers the next output of `from`. Returns `false` if there is none.
    pub(crate) fn deliver(&mut self, from: usize) -> bool {
        let Some(put) = self.wires[from].pop_front() else { return false };
        self.capture.arrived(from, &put);
        self.ends[1 - from].take(self.now, &put);
        self.load();
        true
    }

    /// Delivers all output for which no time has to pass, up to a limit. Without the limit, this
    /// could go on forever for two reasons. If no user reads, two ends with two free Private
    /// Buffers send each other updates forever. A deviating end can repeat a message forever.
    pub(crate) fn settle(&mut self) {
        self.load();
        for _ in 0..5000 {
            if !(self.deliver(0) | self.deliver(1) || self.reconnect()) {
                return;
            }
        }
    }

    /// Returns the port on which an end listens while it suspends the connection.
    pub(crate) fn port(end: usize) -> u16 {
        7000 + end as u16
    }

    /// If both ends have suspended the connection, opens the next TCP connection. Does so only if
    /// one end connects to the port on which the other end listens.
    pub(crate) fn reconnect(&mut self) -> bool {
        let opener = self.ends.iter().position(|end| matches!(end.rests, Some(Some(_))));
        let Some(opener) = opener.filter(|_| self.ends.iter().all(End::has_come_to_rest)) else { return false };
        let port = Net::port(1 - opener);
        if self.ends[opener].rests != Some(Some(port)) {
            return false;
        }
        self.wires = Default::default();
        self.capture.reconnected(opener, port);
        for end in &mut self.ends {
            end.reconnect(self.now);
        }
        self.load();
        true
    }

    /// Sends `len` bytes of a user.
    pub(crate) fn send(&mut self, from: usize, len: usize) {
        let octets = (0..len).map(|n| (n ^ n >> 8) as u8).collect();
        self.ends[from].send(octets, false);
        self.settle();
    }

    /// Lets a user read the data of the other user.
    pub(crate) fn read(&mut self, to: usize) {
        for _ in 0..100 {
            if self.ends[to].waited() >= self.ends[1 - to].sent() {
                return;
            }
            if self.ends[to].waiting() == 0 {
                self.ends[to].receive(4000, false);
            }
            let before = self.ends[to].waited();
            self.settle();
            if self.ends[to].waited() == before {
                self.wait(20);
            }
            if self.ends[to].waited() == before {
                return;
            }
        }
    }

    /// Lets time pass up to the next deadline. If there is no deadline up to `end`, lets time pass
    /// up to `end` and returns `false`.
    pub(crate) fn tick(&mut self, end: Instant) -> bool {
        let next = self.ends.iter().filter_map(End::deadline).min().filter(|next| *next <= end);
        self.now = self.now.max(next.unwrap_or(end));
        for end in &mut self.ends {
            end.pass(self.now);
        }
        self.load();
        next.is_some()
    }

    pub(crate) fn wait(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        for _ in 0..2000 {
            let ticked = self.tick(end);
            self.settle();
            if !ticked {
                return;
            }
        }
    }

    /// Returns whether the connection is over for both ends.
    pub(crate) fn is_over(&self) -> bool {
        self.ends.iter().all(|end| end.machine.is_over())
    }
}
