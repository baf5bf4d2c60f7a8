//! The Ethernet interface with its shaper, as smoltcp uses it.

use std::io;

use smoltcp::phy::{self, Checksum, Device, DeviceCapabilities, Medium};
use smoltcp::time::Instant;
use smoltcp::wire::ETHERNET_HEADER_LEN;

use super::ethernet::EthernetInterface;
use super::shaper::Shaper;

/// Maximum number of frames that one poll receives. Then other work has its turn.
const BURST: usize = 256;
/// The smallest MTU of a host with IPv6 (RFC 8200 section 5). smoltcp needs some bytes for headers,
/// so a smaller MTU of an interface is not used.
const MIN_MTU: usize = 1280;

/// The Ethernet interface with its shaper.
#[derive(Debug)]
pub(super) struct ShapedDevice {
    interface: Box<dyn EthernetInterface>,
    pub(super) shaper: Shaper,
    /// Number of frames that the current poll may still receive.
    burst: usize,
    /// Why the interface has ended.
    failure: Option<String>,
}

impl ShapedDevice {
    pub(super) fn new(interface: Box<dyn EthernetInterface>) -> Self {
        ShapedDevice { interface, shaper: Shaper::default(), burst: 0, failure: None }
    }

    /// Begins a poll.
    pub(super) fn begin(&mut self) {
        self.burst = BURST;
    }

    /// Returns whether the last poll stopped before all received frames were processed.
    pub(super) fn has_more(&self) -> bool {
        self.burst == 0
    }

    /// Returns an error if the interface has ended.
    pub(super) fn check(&self) -> io::Result<()> {
        self.failure.as_ref().map_or(Ok(()), |failure| Err(io::Error::other(failure.clone())))
    }

    /// Maximum length of an IP packet in bytes.
    pub(super) fn mtu(&self) -> usize {
        self.interface.mtu().max(MIN_MTU)
    }

    /// Sends a frame that is already shaped.
    pub(super) fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.interface.send(frame)
    }

    fn next_frame(&mut self) -> Option<Vec<u8>> {
        if self.burst == 0 || self.failure.is_some() {
            return None;
        }
        self.burst -= 1;
        match self.interface.receive() {
            Ok(Some(mut frame)) => {
                self.shaper.incoming(&mut frame);
                Some(frame)
            }
            Ok(None) => {
                // All frames are processed, even if this was the last frame of the burst.
                self.burst = self.burst.max(1);
                None
            }
            Err(error) => {
                tracing::warn!(%error, "the interface of the tester's TCP has ended");
                self.failure = Some(error.to_string());
                None
            }
        }
    }
}

impl Device for ShapedDevice {
    type RxToken<'a> = ReceivedFrame;
    type TxToken<'a> = FrameSender<'a>;

    fn receive(&mut self, _: Instant) -> Option<(ReceivedFrame, FrameSender<'_>)> {
        let frame = self.next_frame()?;
        Some((ReceivedFrame(frame), FrameSender(self)))
    }

    fn transmit(&mut self, _: Instant) -> Option<FrameSender<'_>> {
        Some(FrameSender(self))
    }

    fn capabilities(&self) -> DeviceCapabilities {
        let mut capabilities = DeviceCapabilities::default();
        capabilities.medium = Medium::Ethernet;
        capabilities.max_transmission_unit = ETHERNET_HEADER_LEN + self.mtu();
        // The operating system passes segments of this machine before the hardware fills in their
        // checksums. The shaper also changes received segments without their checksums.
        capabilities.checksum.tcp = Checksum::Tx;
        capabilities
    }
}

/// A received frame.
#[derive(Debug)]
pub(super) struct ReceivedFrame(Vec<u8>);

impl phy::RxToken for ReceivedFrame {
    fn consume<R, F>(self, f: F) -> R
    where
        F: FnOnce(&[u8]) -> R,
    {
        f(&self.0)
    }
}

/// Sends one frame.
#[derive(Debug)]
pub(super) struct FrameSender<'a>(&'a mut ShapedDevice);

impl phy::TxToken for FrameSender<'_> {
    fn consume<R, F>(self, len: usize, f: F) -> R
    where
        F: FnOnce(&mut [u8]) -> R,
    {
        let mut frame = vec![0_u8; len];
        let result = f(&mut frame);
        if let Some(frame) = self.0.shaper.outgoing(frame)
            && let Err(error) = self.0.interface.send(&frame)
        {
            // The frame counts as lost. TCP sends it again.
            tracing::debug!(%error, len = frame.len(), "a frame was not sent");
        }
        result
    }
}
