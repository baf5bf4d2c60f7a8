//! The simulation of a virtual link. It consists of the target's side of all connections, the
//! traffic in flight, and the clock. The clock jumps from one event to the next.

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Mutex, MutexGuard, PoisonError};

use bytes::Bytes;

use super::network::{LATENCY, WINDOW};
use super::pm_client::PmClient;
use super::pm_server::PmServer;
use super::reassembly::Reassembly;
use crate::connection::Transmit;
use crate::driver::received::Received;
use crate::hostile::mangle::{Mangler, next_transmit};
use crate::service::DrivenConnection;
use crate::time::Instant;

/// The clock, all connections, and the port mapper's client or server.
#[derive(Default)]
pub(super) struct Simulation {
    pub(super) now: Instant,
    pub(super) machines: BTreeMap<u32, Machine>,
    pub(super) pm_server: Option<PmServer>,
    pub(super) pm_client: Option<PmClient>,
}

/// One connection: the target's state machine, and the traffic in flight in both directions.
pub(super) struct Machine {
    connection: Box<dyn DrivenConnection>,
    mangler: Option<Mangler>,
    /// The target's TCP. It adds the tester's bytes to `to_target` when they leave the tester. The
    /// latency is constant, so the result is the same as on their arrival.
    pub(super) reassembly: Reassembly,
    pub(super) to_target: VecDeque<(Instant, Item)>,
    pub(super) to_tester: VecDeque<(Instant, Item)>,
    /// Number of bytes in `to_target`.
    pub(super) unread: usize,
    /// Number of bytes in `to_tester`.
    in_flight: usize,
    /// Limit of `in_flight`.
    window: usize,
    /// The tester has dropped its side, so nothing reads `to_tester`.
    pub(super) abandoned: bool,
    /// The tester does not use its side any more, and may still hold it.
    pub(super) released: bool,
}

pub(super) enum Item {
    Octets(Bytes),
    Fin,
    Reset,
}

impl Machine {
    fn new(
        connection: Box<dyn DrivenConnection>,
        mangler: Option<Mangler>,
        window: usize,
        reassembly: Reassembly,
    ) -> Self {
        Machine {
            connection,
            mangler,
            reassembly,
            to_target: VecDeque::new(),
            to_tester: VecDeque::new(),
            unread: 0,
            in_flight: 0,
            window,
            abandoned: false,
            released: false,
        }
    }

    /// Returns when the next event at the target's side is due.
    pub(super) fn next(&self) -> Option<Instant> {
        let arrival = self.to_target.front().map(|(at, _)| *at).filter(|_| self.connection.is_ready());
        let mangled = self.mangler.as_ref().filter(|_| !self.is_held_back()).and_then(Mangler::poll_timeout);
        [arrival, self.connection.poll_timeout(), mangled].into_iter().flatten().min()
    }

    /// Handles all events that are due at `now`.
    fn handle(&mut self, now: Instant) {
        while self.connection.is_ready()
            && let Some((_, item)) = self.to_target.pop_front_if(|(at, _)| *at <= now)
        {
            match item {
                Item::Octets(octets) => {
                    self.unread = self.unread.saturating_sub(octets.len());
                    self.connection.handle_octets(now, &octets);
                }
                Item::Fin => self.connection.handle_fin(now),
                Item::Reset => self.connection.handle_reset(now),
            }
            self.serve(now);
        }
        if self.connection.poll_timeout().is_some_and(|deadline| deadline <= now) {
            self.connection.handle_timeout(now);
        }
        self.serve(now);
    }

    /// Returns whether the target must wait before it sends, because the tester does not read.
    fn is_held_back(&self) -> bool {
        self.in_flight >= self.window
    }

    fn is_over(&self) -> bool {
        self.connection.is_over() && self.mangler.as_ref().is_none_or(Mangler::is_idle)
    }

    fn serve(&mut self, now: Instant) {
        loop {
            self.connection.serve(now);
            if self.is_held_back() {
                return;
            }
            let item = match next_transmit(now, || self.connection.poll_transmit(now), self.mangler.as_mut()) {
                None => return,
                Some(Transmit::Octets(octets)) => {
                    self.in_flight += octets.len();
                    Item::Octets(octets)
                }
                Some(Transmit::Fin) => Item::Fin,
                Some(Transmit::Reset) => {
                    if self.mangler.is_some() {
                        // If the mangler has added this reset, the state machine does not know
                        // about it. Therefore this call informs the state machine.
                        self.connection.handle_reset(now);
                    }
                    Item::Reset
                }
            };
            if self.abandoned {
                self.in_flight = 0;
            } else {
                self.to_tester.push_back((now + LATENCY, item));
            }
        }
    }
}

/// A placeholder for a state machine that has moved to another connection.
struct MovedConnection;

impl DrivenConnection for MovedConnection {
    fn handle_octets(&mut self, _: Instant, _: &[u8]) {}

    fn handle_fin(&mut self, _: Instant) {}

    fn handle_reset(&mut self, _: Instant) {}

    fn poll_transmit(&mut self, _: Instant) -> Option<Transmit> {
        None
    }

    fn is_over(&self) -> bool {
        true
    }
}

impl Simulation {
    /// Runs until `deadline`.
    pub(super) fn run_until(&mut self, deadline: Instant) {
        while self.step(deadline) {}
    }

    /// Runs until `deadline`, or until an event for the tester arrives. Only an event that arrives
    /// at or before `latest` counts. `next` returns the arrival time of the event. Returns true if
    /// the event has arrived before or during the call.
    pub(super) fn run_until_arrival(
        &mut self,
        deadline: Instant,
        latest: Instant,
        next: impl Fn(&Simulation) -> Option<Instant>,
    ) -> bool {
        loop {
            // If an event at the target is due at the same time, the simulation handles it first.
            // Because of the latency, this event cannot change what reaches the tester now.
            if let Some(arrival) = next(self).filter(|at| *at <= latest)
                && self.next().is_none_or(|at| arrival < at)
            {
                self.now = self.now.max(arrival);
                return true;
            }
            if !self.step(deadline) {
                return false;
            }
        }
    }

    /// Advances the time to the next event at the target, and handles it. If no event is due by
    /// `deadline`, advances the time to `deadline` and returns false.
    pub(super) fn step(&mut self, deadline: Instant) -> bool {
        let next = self.next().filter(|at| *at <= deadline);
        self.now = self.now.max(next.unwrap_or(deadline));
        if next.is_some() {
            self.run_due_events();
        }
        next.is_some()
    }

    /// Returns when the next event at the target is due.
    pub(super) fn next(&self) -> Option<Instant> {
        let mapper = self.pm_server.as_ref().and_then(PmServer::next);
        let client = self.pm_client.as_ref().and_then(PmClient::next);
        let is_blocked = self.is_blocked();
        let machines = self.machines.values().filter(|machine| !is_blocked || machine.is_held_back());
        machines.filter_map(Machine::next).chain(mapper).chain(client).min()
    }

    /// Returns whether a deviation uses only the connections that the tester does not read.
    fn is_blocked(&self) -> bool {
        self.machines.values().any(|machine| machine.reassembly.blocks_others() && machine.is_held_back())
    }

    /// Runs until a suspended connection opens a new TCP connection to `port`, but at most until
    /// `deadline`. Returns the state machine of the suspended connection. A [`MovedConnection`]
    /// replaces it in the simulation.
    pub(super) fn reconnecting(&mut self, port: u16, deadline: Instant) -> Option<Box<dyn DrivenConnection>> {
        loop {
            for machine in self.machines.values_mut() {
                // A connection attempt to another port finds no listener and is ignored.
                if machine.connection.poll_reconnect() == Some(port) {
                    return Some(std::mem::replace(&mut machine.connection, Box::new(MovedConnection)));
                }
            }
            if !self.step(deadline) {
                return None;
            }
        }
    }

    fn run_due_events(&mut self) {
        let now = self.now;
        if let Some(mapper) = &mut self.pm_server {
            mapper.handle(now);
        }
        for (number, connection) in self.pm_client.as_mut().map(|client| client.handle(now)).unwrap_or_default() {
            self.open(number, connection, None, WINDOW, Reassembly::default());
        }
        let is_blocked = self.is_blocked();
        for machine in self.machines.values_mut().filter(|machine| !is_blocked || machine.is_held_back()) {
            if machine.next().is_some_and(|at| at <= now) {
                machine.handle(now);
            }
        }
        self.machines.retain(|_, machine| !((machine.abandoned || machine.released) && machine.is_over()));
    }

    /// Opens connection `number`. `window` is the limit of the tester's unread bytes. `reassembly`
    /// is the target's TCP.
    pub(super) fn open(
        &mut self,
        number: u32,
        connection: Box<dyn DrivenConnection>,
        mangler: Option<Mangler>,
        window: usize,
        reassembly: Reassembly,
    ) {
        let mut machine = Machine::new(connection, mangler, window, reassembly);
        machine.serve(self.now);
        self.machines.insert(number, machine);
    }

    /// Returns the bytes or the event that have reached the tester on this connection by now, at
    /// most `most` bytes.
    pub(super) fn take(&mut self, number: u32, most: usize) -> Received {
        let now = self.now;
        let Some(machine) = self.machines.get_mut(&number) else { return Received::Reset };
        let Some((at, item)) = machine.to_tester.pop_front_if(|(at, _)| *at <= now) else { return Received::TimedOut };
        match item {
            Item::Octets(mut octets) => {
                if octets.len() > most {
                    let rest = machine.reassembly.rest(octets.split_off(most));
                    machine.to_tester.push_front((at, Item::Octets(rest)));
                }
                machine.in_flight = machine.in_flight.saturating_sub(octets.len());
                machine.serve(now);
                Received::Octets(octets)
            }
            Item::Fin => Received::Fin,
            Item::Reset => Received::Reset,
        }
    }
}

/// Locks the simulation.
pub(super) fn lock(simulation: &Mutex<Simulation>) -> MutexGuard<'_, Simulation> {
    // If a service panicked, it did so between two events, so the simulation is consistent.
    simulation.lock().unwrap_or_else(PoisonError::into_inner)
}
