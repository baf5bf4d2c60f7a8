//! A run: the bridge and the taps of both sides together. A run is sans-IO. The drivers pass frames
//! and times to it, and send the frames that it returns.

use std::borrow::Cow;
use std::io::{self, Write};

use crate::attribution::Attribution;
use crate::bridge::{Bridge, FrameCounts};
use crate::fault::Fault;
use crate::frame::{ChecksumState, TcpFrame};
use crate::impairments::Impairments;
use crate::side::{PerSide, Side};
use crate::tap::{Observed, Tap};

/// A frame to send.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Outgoing {
    /// The side that receives the frame.
    pub to: Side,
    /// The frame.
    pub octets: Vec<u8>,
}

/// The results of a run.
#[derive(Debug)]
pub struct Results {
    /// Which side violated which requirement, and the outcome of each fault.
    pub attribution: Attribution,
    /// The results of each tap.
    pub observed: PerSide<Observed>,
    /// Counts of the frames from each side.
    pub counts: PerSide<FrameCounts>,
}

/// The bridge and the taps of both sides.
pub struct Run<W> {
    bridge: Bridge,
    taps: PerSide<Tap<W>>,
}

impl<W: Write> Run<W> {
    /// Begins a run. `names` are the names of the sides' interfaces or addresses, and `outputs` get
    /// the captures.
    ///
    /// # Errors
    /// An output reports an error.
    pub fn new(
        impairments: Impairments,
        seed: u64,
        names: &PerSide<String>,
        outputs: PerSide<Option<W>>,
    ) -> io::Result<Self> {
        let mut taps =
            PerSide { a: Tap::new(Side::A, &names.a, outputs.a)?, b: Tap::new(Side::B, &names.b, outputs.b)? };
        if impairments.is_aimed() {
            Side::BOTH.into_iter().for_each(|side| taps[side].find_parts());
        }
        Ok(Run { bridge: Bridge::new(impairments, seed), taps })
    }

    /// Sets the maximum length of an IP packet on the link of `side` in bytes.
    pub fn set_link_mtu(&mut self, side: Side, mtu: u16) {
        self.bridge.set_link_mtu(side, mtu);
    }

    /// Takes a frame that `from` sent. `now` is in nanoseconds since 1970.
    ///
    /// # Errors
    /// The capture cannot be written.
    pub fn frame(&mut self, now: u64, from: Side, octets: &[u8]) -> io::Result<()> {
        let octets = with_complete_checksum(octets);
        let sent = self.taps[from].record(now, from, &octets, &[], &[])?;
        let parts = self.taps[from].take_parts();
        self.bridge.frame_with_parts(now, from, &octets, sent, &parts);
        Ok(())
    }

    /// Records a frame of side `from` at both taps, but does not pass the frame to the bridge. Use
    /// this function for frames that the caller itself has replaced at the opposite side. An
    /// example is the handshake of a connection: the proxy opens its own connection to the opposite
    /// side.
    ///
    /// # Errors
    /// The capture cannot be written.
    pub fn pass(&mut self, now: u64, from: Side, octets: &[u8]) -> io::Result<()> {
        for tap in [from, from.peer()] {
            self.taps[tap].record(now, from, octets, &[], &[])?;
        }
        Ok(())
    }

    /// The time of the next frame to send, in nanoseconds since 1970; `None` if no frame waits.
    #[must_use]
    pub fn next_due(&self) -> Option<u64> {
        self.bridge.next_due()
    }

    /// Number of bytes from side `from` that wait in the bridge.
    #[must_use]
    pub fn waiting(&self, from: Side) -> usize {
        self.bridge.waiting(from)
    }

    /// Returns the next frame that is due at `until`. The caller sends the frame immediately. `now`
    /// is the time for the capture. At the end of a run, `until` can be later than `now`.
    ///
    /// # Errors
    /// The capture cannot be written.
    pub fn deliver(&mut self, now: u64, until: u64) -> io::Result<Option<Outgoing>> {
        let Some(delivery) = self.bridge.deliver(until) else { return Ok(None) };
        let comment = |number: u32| {
            let fault = self.bridge.faults().get((number as usize).wrapping_sub(1));
            format!("weft between: fault {number} ({})", fault.map_or("unknown", |fault| fault.kind.name()))
        };
        let comments: Vec<String> = delivery.faults.iter().map(|fault| comment(fault.number)).collect();
        let from = delivery.to.peer();
        let received = self.taps[delivery.to].record(now, from, &delivery.octets, &delivery.faults, &comments)?;
        for fault in &delivery.faults {
            self.bridge.set_received(fault.number, received);
        }
        Ok(Some(Outgoing { to: delivery.to, octets: delivery.octets }))
    }

    /// The faults so far.
    #[must_use]
    pub fn faults(&self) -> &[Fault] {
        self.bridge.faults()
    }

    /// Ends the run: completes the captures, and attributes the violations.
    ///
    /// # Errors
    /// The capture cannot be written.
    pub fn finish(self) -> io::Result<Results> {
        let Run { bridge, taps } = self;
        let observed = PerSide { a: taps.a.finish()?, b: taps.b.finish()? };
        let attribution = Attribution::new(&observed, bridge.faults());
        Ok(Results { attribution, observed, counts: PerSide::new(|side| bridge.counts(side)) })
    }
}

/// If the sender's host left the TCP checksum to its NIC, writes the checksum. Between the virtual
/// interfaces of one host, no NIC does this.
fn with_complete_checksum(octets: &[u8]) -> Cow<'_, [u8]> {
    match TcpFrame::find(octets) {
        Some(tcp) if tcp.checksum_state(octets) == ChecksumState::Partial => {
            let mut octets = octets.to_vec();
            tcp.write_checksum(&mut octets);
            Cow::Owned(octets)
        }
        _ => Cow::Borrowed(octets),
    }
}
