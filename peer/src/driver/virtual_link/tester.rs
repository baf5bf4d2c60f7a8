//! The tester's side of a virtual connection. Bytes from the tester reach the target after the
//! link's latency. The simulation advances while the tester waits.

use std::fmt;
use std::sync::{Arc, Mutex};

use bytes::Bytes;

use super::network::{LATENCY, SEND_TIMEOUT, WINDOW};
use super::simulation::{Item, Machine, Simulation, lock};
use crate::driver::link_error::LinkError;
use crate::driver::received::Received;
use crate::driver::withheld_bytes::WithheldBytes;
use crate::time::Instant;

/// The tester's side of a virtual connection.
pub(in crate::driver) struct VirtualTester {
    number: u32,
    simulation: Arc<Mutex<Simulation>>,
    /// Number of bytes that the tester has given to its TCP: the offset of the next byte in the
    /// tester's stream.
    position: u64,
    /// A send whose segments the tester chooses, with the offset of its first byte in the stream.
    withheld: Option<(u64, WithheldBytes)>,
}

impl VirtualTester {
    pub(super) fn new(number: u32, simulation: Arc<Mutex<Simulation>>) -> Self {
        VirtualTester { number, simulation, position: 0, withheld: None }
    }

    /// Sends bytes. If the target has too many unread bytes, the call first waits in virtual time.
    /// If the target still has too many unread bytes after the wait, the call fails with the same
    /// time-out as over real TCP.
    pub(in crate::driver) fn send(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        self.await_window()?;
        self.put_segment(self.position, octets)?;
        self.position += octets.len() as u64;
        Ok(())
    }

    /// Gives bytes to the tester's TCP, which does not send them yet. Waits like
    /// [`send`](Self::send).
    pub(in crate::driver) fn withhold(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        self.await_window()?;
        self.withheld = Some((self.position, WithheldBytes::new(octets)));
        self.position += octets.len() as u64;
        Ok(())
    }

    /// Sends one TCP segment. `begin` is the offset of its first byte, counted from the first
    /// withheld byte. Without withheld bytes, it is counted from the next byte of the stream. If
    /// `in_fragments` is true, IP fragments would carry the segment.
    pub(in crate::driver) fn send_segment(
        &mut self,
        begin: i64,
        octets: &[u8],
        in_fragments: bool,
    ) -> Result<(), LinkError> {
        let first = self.withheld.as_ref().map_or(self.position, |(first, _)| *first);
        // A segment from before the stream is not in TCP's window, so the target ignores it.
        let Some(offset) = first.checked_add_signed(begin) else { return Ok(()) };
        if !in_fragments || self.accepts_fragments() {
            self.put_segment(offset, octets)?;
        }
        if let Some((_, withheld)) = &mut self.withheld {
            withheld.note_segment(begin, octets.len());
        }
        Ok(())
    }

    /// Returns whether the target accepts a TCP segment that IP fragments carry.
    fn accepts_fragments(&self) -> bool {
        let simulation = lock(&self.simulation);
        simulation.machines.get(&self.number).is_none_or(|machine| machine.reassembly.accepts_fragments())
    }

    /// Sends the withheld bytes that no segment had.
    pub(in crate::driver) fn send_withheld(&mut self) -> Result<(), LinkError> {
        let Some((first, withheld)) = self.withheld.take() else { return Ok(()) };
        for range in withheld.missing() {
            self.put_segment(first + range.start as u64, &withheld.octets[range])?;
        }
        Ok(())
    }

    /// Waits in virtual time until the target can accept bytes, at most for the send time-out.
    fn await_window(&self) -> Result<(), LinkError> {
        let mut simulation = lock(&self.simulation);
        for wait in [LATENCY, SEND_TIMEOUT] {
            let unread = simulation.machines.get(&self.number).map_or(0, |machine| machine.unread);
            if unread <= WINDOW {
                break;
            }
            let until = simulation.now + wait;
            simulation.run_until(until);
        }
        if simulation.machines.get(&self.number).is_some_and(|machine| machine.unread > WINDOW) {
            return Err(LinkError::SendTimeout { after: SEND_TIMEOUT });
        }
        Ok(())
    }

    /// Sends one TCP segment, whose first byte has this offset in the tester's stream.
    fn put_segment(&self, begin: u64, octets: &[u8]) -> Result<(), LinkError> {
        let mut simulation = lock(&self.simulation);
        let arrival = simulation.now + LATENCY;
        let machine = simulation.machines.get_mut(&self.number).ok_or(LinkError::Reset)?;
        let Machine { reassembly, to_target, unread, .. } = machine;
        reassembly.handle_segment(begin, Bytes::copy_from_slice(octets), |octets| {
            *unread += octets.len();
            to_target.push_back((arrival, Item::Octets(octets)));
        });
        Ok(())
    }

    /// Sends all bytes, or none if the target has too many unread bytes. Returns the number of bytes
    /// that were sent.
    pub(in crate::driver) fn send_now(&mut self, octets: &[u8]) -> Result<usize, LinkError> {
        let unread = lock(&self.simulation).machines.get(&self.number).map_or(0, |machine| machine.unread);
        if unread > WINDOW {
            return Ok(0);
        }
        // One message of a case can have more bytes than the window.
        let octets = &octets[..octets.len().min(WINDOW)];
        self.put_segment(self.position, octets)?;
        self.position += octets.len() as u64;
        Ok(octets.len())
    }

    pub(in crate::driver) fn finish(&mut self) -> Result<(), LinkError> {
        self.put(Item::Fin)
    }

    pub(in crate::driver) fn reset(&mut self) -> Result<(), LinkError> {
        match self.put(Item::Reset) {
            // The tester has released the connection, and the simulation has removed it.
            Err(LinkError::Reset) => Ok(()),
            result => result,
        }
    }

    /// Lets the simulation remove the connection when the target's side is over.
    pub(in crate::driver) fn release(&mut self) {
        if let Some(machine) = lock(&self.simulation).machines.get_mut(&self.number) {
            machine.released = true;
        }
    }

    fn put(&mut self, item: Item) -> Result<(), LinkError> {
        let mut simulation = lock(&self.simulation);
        let arrival = simulation.now + LATENCY;
        let machine = simulation.machines.get_mut(&self.number).ok_or(LinkError::Reset)?;
        machine.to_target.push_back((arrival, item));
        Ok(())
    }

    /// Receives at most `most` bytes.
    pub(in crate::driver) async fn receive(&mut self, deadline: Instant, most: usize) -> Received {
        tokio::task::yield_now().await;
        let mut simulation = lock(&self.simulation);
        let latest = deadline.max(simulation.now);
        let next = |simulation: &Simulation| Some(simulation.machines.get(&self.number)?.to_tester.front()?.0);
        simulation.run_until_arrival(deadline, latest, next);
        simulation.take(self.number, most)
    }

    pub(in crate::driver) fn now(&self) -> Instant {
        lock(&self.simulation).now
    }
}

impl Drop for VirtualTester {
    fn drop(&mut self) {
        let mut simulation = lock(&self.simulation);
        let arrival = simulation.now + LATENCY;
        if let Some(machine) = simulation.machines.get_mut(&self.number) {
            machine.abandoned = true;
            let item = if machine.to_tester.is_empty() { Item::Fin } else { Item::Reset };
            machine.to_target.push_back((arrival, item));
        }
    }
}

impl fmt::Debug for VirtualTester {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("VirtualTester").field("number", &self.number).finish_non_exhaustive()
    }
}
