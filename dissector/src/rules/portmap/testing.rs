//! Synthetic datagrams between port 40000 of 10.0.0.2 (endpoint 0) and the port mapper of 10.0.0.1
//! (endpoint 1), in the layout of Figure 17 of the SDP draft.

use std::net::{IpAddr, SocketAddr};

use etherparse::PacketBuilder;
use weft_core::RequirementId;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::requirement::Severity;

use crate::finding::Finding;
use crate::frame_number::FrameNumber;
use crate::link_type::ETHERNET;
use crate::source::Frame;
use crate::testing::hex;
use crate::unit::Unit;
use crate::{Dissector, Sink};

pub(crate) const REQ: u8 = 0x04;
pub(crate) const ACCEPT: u8 = 0x14;
pub(crate) const ACK: u8 = 0x24;
pub(crate) const DENY: u8 = 0x34;

/// A message for IPv4. CpPort is 40001, the client requests ApPort 5001, and the server answers
/// with port 7001.
#[derive(Clone)]
pub(crate) struct Datagram(Vec<u8>);

impl Datagram {
    pub(crate) fn new(first: u8) -> Self {
        let ap_port: u16 = match first {
            REQ => 5001,
            DENY => 0,
            _ => 7001,
        };
        let zeros = "00".repeat(12);
        let names = "1122334455667788";
        Datagram(hex(&format!("{first:02x} 00 0000 {ap_port:04x} 9c41 {names} 0a000002 {zeros} 0a000001 {zeros}")))
    }

    pub(crate) fn put(&mut self, at: usize, octets: &[u8]) -> &mut Self {
        self.0[at..at + octets.len()].copy_from_slice(octets);
        self
    }

    pub(crate) fn octets(&self) -> Vec<u8> {
        self.0.clone()
    }
}

/// A message that `change` has modified.
pub(crate) fn datagram(first: u8, change: impl Fn(&mut Vec<u8>)) -> Datagram {
    let mut datagram = Datagram::new(first);
    change(&mut datagram.0);
    datagram
}

/// A capture of datagrams.
#[derive(Default)]
pub(crate) struct Datagrams {
    frames: Vec<(u64, Vec<u8>)>,
    now: u64,
}

/// The address of another host, with the port of endpoint `end`.
pub(crate) fn other_host(end: usize) -> SocketAddr {
    let mut end: SocketAddr = Datagrams::ENDPOINTS[end].parse().unwrap();
    end.set_ip("10.0.0.77".parse().unwrap());
    end
}

impl Datagrams {
    pub(crate) const ENDPOINTS: [&str; 2] = ["10.0.0.2:40000", "10.0.0.1:3935"];

    /// Adds a datagram from endpoint `from` to its peer.
    pub(crate) fn put(&mut self, from: usize, octets: &[u8]) {
        let ends = Self::ENDPOINTS.map(|end| end.parse().unwrap());
        self.put_between(ends[from], ends[1 - from], octets);
    }

    /// Adds a datagram from another address to endpoint `to`.
    pub(crate) fn put_from(&mut self, from: SocketAddr, to: usize, octets: &[u8]) {
        self.put_between(from, Self::ENDPOINTS[to].parse().unwrap(), octets);
    }

    pub(crate) fn put_between(&mut self, from: SocketAddr, to: SocketAddr, octets: &[u8]) {
        let (IpAddr::V4(source), IpAddr::V4(destination)) = (from.ip(), to.ip()) else { panic!("IPv4 here") };
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ipv4(source.octets(), destination.octets(), 64)
            .udp(from.port(), to.port());
        let mut frame = Vec::new();
        builder.write(&mut frame, octets).unwrap();
        self.now += 1_000_000;
        self.frames.push((self.now, frame));
    }

    pub(crate) fn wait(&mut self, seconds: u64) {
        self.now += seconds * 1_000_000_000;
    }

    pub(crate) fn findings(&self) -> Vec<Finding> {
        struct Collect(Vec<Finding>);
        impl Sink for Collect {
            fn unit(&mut self, _: &Unit<'_>) {}
            fn finding(&mut self, finding: &Finding) {
                self.0.push(finding.clone());
            }
        }
        let (mut found, mut dissector) = (Collect(Vec::new()), Dissector::default());
        for ((time, octets), number) in self.frames.iter().zip((1..).map(FrameNumber::from)) {
            let wire_len = u32::try_from(octets.len()).unwrap();
            dissector
                .frame(&Frame { number, time: *time, interface: 0, link_type: ETHERNET, octets, wire_len }, &mut found);
        }
        dissector.finish(&mut found);
        found.0
    }

    pub(crate) fn errors(&self) -> Vec<Finding> {
        let mut found = self.findings();
        found.retain(|finding| finding.severity > Severity::Note);
        found
    }
}

/// A PMReq that `change` has modified, without an answer.
pub(crate) fn request_only(change: impl Fn(&mut Vec<u8>)) -> Datagrams {
    let mut wire = Datagrams::default();
    wire.put(0, &datagram(REQ, change).octets());
    wire
}

/// A PMReq, then a PMAccept that `accept` has modified, and a PMAck that `ack` has modified.
pub(crate) fn accepted(accept: impl Fn(&mut Vec<u8>), ack: impl Fn(&mut Vec<u8>)) -> Datagrams {
    let mut wire = request_only(|_| {});
    wire.put(1, &datagram(ACCEPT, accept).octets());
    wire.put(0, &datagram(ACK, ack).octets());
    wire
}

/// A PMReq, then a PMDeny that `deny` has modified.
pub(crate) fn denied(deny: impl Fn(&mut Vec<u8>)) -> Datagrams {
    let mut wire = request_only(|_| {});
    wire.put(1, &datagram(DENY, deny).octets());
    wire
}

/// Proves that a rule covers `id`. The rule reports a finding for `bad`, and no finding for `good`.
/// `good` differs from `bad` as little as possible.
pub(crate) fn proves(id: RequirementId, bad: &Datagrams, good: &Datagrams) {
    let names = |wire: &Datagrams| wire.findings().iter().any(|finding| finding.requirement == id);
    let mut proof = Coverage::new(CoverageKind::Rule);
    proof.verify(id, || {
        assert!(names(bad), "{id} is not found: {:#?}", bad.findings());
        assert!(!names(good), "{id} is found although nothing violates it: {:#?}", good.findings());
    });
}
