//! [`Scrubber`]: replaces addresses and payload in the frames of a capture.

use crate::dissector::Dissector;
use crate::packet::Packet;
use crate::parse::Kind;
use crate::sink::Sink;
use crate::source::Frame;
use crate::unit::Unit;

use super::addresses::AddressMap;
use super::counts::Counts;
use super::fragments::Fragments;
use super::frame::FrameReplacer;
use super::plan::Plan;

/// What the dissector finds in one frame.
#[derive(Debug, Default)]
struct Found {
    packet: Option<Packet>,
    is_port_mapper: bool,
}

impl Sink for Found {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.is_port_mapper |= matches!(unit.kind, Kind::PortMapper(_));
    }

    fn packet(&mut self, packet: &Packet) {
        self.packet = Some(*packet);
    }
}

/// The third pass: replaces addresses and payload in each frame.
pub struct Scrubber {
    plan: Plan,
    addresses: AddressMap,
    fragments: Fragments,
    dissector: Dissector,
    counts: Counts,
    /// The latest frame after the replacement.
    octets: Vec<u8>,
}

impl Scrubber {
    pub(super) fn new(mut plan: Plan, addresses: AddressMap, fragments: Fragments, dissector: Dissector) -> Self {
        plan.sort();
        Scrubber { plan, addresses, fragments, dissector, counts: Counts::default(), octets: Vec::new() }
    }

    /// Replaces addresses and payload in the next frame of the capture. Returns the new octets.
    /// Their number is the number of octets of the frame.
    pub fn frame(&mut self, frame: &Frame<'_>) -> &[u8] {
        let mut found = Found::default();
        self.dissector.frame(frame, &mut found);
        let wire_len = frame.wire_len as usize;
        self.counts.frames += 1;
        self.counts.cut_frames += u64::from(frame.octets.len() < wire_len);
        self.octets.clear();
        self.octets.extend_from_slice(frame.octets);
        let mut replacer = FrameReplacer {
            original: frame.octets,
            out: &mut self.octets,
            addresses: &mut self.addresses,
            plan: &mut self.plan,
            counts: &mut self.counts,
            packet: found.packet,
            is_port_mapper: found.is_port_mapper,
            part: self.fragments.part(frame.number),
            checksums: Vec::new(),
        };
        replacer.replace(frame.link_type, wire_len);
        &self.octets
    }

    /// What was replaced so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        let [ipv4, ipv6, mac] = self.addresses.counts();
        Counts { ipv4, ipv6, mac, ..self.counts }
    }
}
