//! Two ends, what is on its way between them, and its record.

use std::collections::VecDeque;
use std::time::Duration;

use weft_peer::sdp::{Role, Settings};
use weft_peer::{Deviations, Instant};

use super::end::{EMSS, End};
use crate::capture::Capture;
use crate::side::Put;

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

    /// Puts what both ends send on their wires.
    pub(crate) fn load(&mut self) {
        for from in 0..2 {
            self.ends[from].run(self.now);
            while let Some(put) = self.ends[from].put(self.now) {
                match &put {
                    Put::Octets(octets) => self.capture.octets(from, octets),
                    Put::Fin => self.capture.fin(from),
                    Put::Reset => self.capture.reset(from),
                }
                self.wires[from].push_back(put);
            }
        }
    }

    /// Delivers the next thing that `from` did; `false` when there is none.
    pub(crate) fn deliver(&mut self, from: usize) -> bool {
        let Some(put) = self.wires[from].pop_front() else { return false };
        self.ends[1 - from].take(self.now, &put);
        self.load();
        true
    }

    /// Moves everything that can move without time passing.
    pub(crate) fn settle(&mut self) {
        self.load();
        for _ in 0..200_000 {
            if !(self.deliver(0) | self.deliver(1)) {
                return;
            }
        }
        panic!("the two ends never fall silent");
    }

    /// Time passes up to the next deadline, but not beyond `end`; `false` when there is none before it.
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
        for _ in 0..20_000 {
            let ticked = self.tick(end);
            self.settle();
            if !ticked {
                return;
            }
        }
        panic!("time does not pass");
    }

    /// The connection is over for both.
    pub(crate) fn is_over(&self) -> bool {
        self.ends.iter().all(|end| end.machine.is_over())
    }
}
