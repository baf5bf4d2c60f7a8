//! Makes a capture from the traffic of a test. The capture has the handshake, the segments, and the
//! FIN or RST of each connection. The monitor (weft's dissector with its rules) reads the capture.

use std::net::Ipv4Addr;

use etherparse::{PacketBuilder, TcpHeader, TcpOptionElement};
use weft_dissector::link_type::ETHERNET;
use weft_dissector::output::pcapng::{Interface, PacketBlock, Writer};
use weft_dissector::source::Frame;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Sink};

use crate::hostile::side::Put;

/// Time between two frames, in nanoseconds.
const GAP: u64 = 20_000;
const WINDOW: u16 = 0xffff;
const PORTS: [u16; 2] = [50_000, 7174];
const ADDRESSES: [[u8; 4]; 2] = [Ipv4Addr::new(192, 0, 2, 1).octets(), Ipv4Addr::new(192, 0, 2, 2).octets()];

/// The frames of a connection, and of the connections that replace it. End 0 opened the first
/// connection.
pub(crate) struct Capture {
    frames: Vec<Vec<u8>>,
    /// The end that opened each connection.
    openers: Vec<usize>,
    /// The ports of the last connection.
    ports: [u16; 2],
    next: [u32; 2],
    /// For each end, the length of the data that is in flight to this end. A FIN counts as one
    /// byte. The end does not acknowledge this data yet.
    on_their_way: [u32; 2],
    /// How each end closed: F for FIN, R for RST.
    pub(crate) ends: [String; 2],
    /// Maximum payload of a TCP segment in bytes.
    mss: u16,
}

#[derive(Clone, Copy, Default)]
struct Flags {
    syn: bool,
    ack: bool,
    fin: bool,
    rst: bool,
}

const ACK: Flags = Flags { syn: false, ack: true, fin: false, rst: false };

impl Capture {
    /// Makes a capture that has the handshake of the first connection.
    pub(crate) fn connected(mss: u16) -> Self {
        let mut capture = Capture {
            frames: Vec::new(),
            openers: Vec::new(),
            ports: PORTS,
            next: [0x1000_0000, 0x5000_0000],
            on_their_way: [0; 2],
            ends: Default::default(),
            mss,
        };
        capture.open(0);
        capture
    }

    /// Replaces the connection. `opener` opens a new connection to `port` of the other end.
    pub(crate) fn reconnected(&mut self, opener: usize, port: u16) {
        // If the last port of `opener` was `PORTS[0]`, `opener` uses `PORTS[0]` again.
        let from = if self.ports[opener] == PORTS[0] { PORTS[0] } else { PORTS[0] + 1 };
        self.ports[opener] = from;
        self.ports[1 - opener] = port;
        self.next = self.next.map(|next| next.wrapping_add(0x0100_0000));
        self.on_their_way = [0; 2];
        self.open(opener);
    }

    fn open(&mut self, opener: usize) {
        self.openers.push(opener);
        self.frame(opener, Flags { syn: true, ..Flags::default() }, &[]);
        self.frame(1 - opener, Flags { syn: true, ..ACK }, &[]);
        self.frame(opener, ACK, &[]);
    }

    /// Adds bytes that `from` (0 or 1) sends. The bytes arrive at once.
    pub(crate) fn octets(&mut self, from: usize, octets: &[u8]) {
        for segment in octets.chunks(usize::from(self.mss)) {
            self.frame(from, ACK, segment);
        }
    }

    pub(crate) fn fin(&mut self, from: usize) {
        self.ends[from].push('F');
        self.frame(from, Flags { fin: true, ..ACK }, &[]);
        self.frame(1 - from, ACK, &[]);
    }

    /// Adds output of `from` that does not arrive yet. [`arrived`](Self::arrived) lets it arrive.
    pub(crate) fn departs(&mut self, from: usize, put: &Put) {
        match put {
            Put::Octets(octets) => {
                for segment in octets.chunks(usize::from(self.mss)) {
                    self.on_their_way[1 - from] += u32::try_from(segment.len()).unwrap();
                    self.frame(from, ACK, segment);
                }
            }
            Put::Fin => {
                self.ends[from].push('F');
                self.on_their_way[1 - from] += 1;
                self.frame(from, Flags { fin: true, ..ACK }, &[]);
            }
            Put::Reset => self.reset(from),
        }
    }

    /// Lets output of `from` arrive. `put` must be the oldest output that is in flight.
    pub(crate) fn arrived(&mut self, from: usize, put: &Put) {
        match put {
            Put::Octets(octets) => self.on_their_way[1 - from] -= u32::try_from(octets.len()).unwrap(),
            Put::Fin => {
                self.on_their_way[1 - from] -= 1;
                self.frame(1 - from, ACK, &[]);
            }
            Put::Reset => {}
        }
    }

    pub(crate) fn reset(&mut self, from: usize) {
        self.ends[from].push('R');
        self.frame(from, Flags { rst: true, ..ACK }, &[]);
    }

    fn frame(&mut self, from: usize, flags: Flags, payload: &[u8]) {
        let to = 1 - from;
        let mut tcp = TcpHeader::new(self.ports[from], self.ports[to], self.next[from], WINDOW);
        (tcp.syn, tcp.ack, tcp.fin, tcp.rst) = (flags.syn, flags.ack, flags.fin, flags.rst);
        tcp.psh = !payload.is_empty();
        tcp.acknowledgment_number = if flags.ack { self.next[to].wrapping_sub(self.on_their_way[from]) } else { 0 };
        if flags.syn {
            let options =
                [TcpOptionElement::MaximumSegmentSize(self.mss), TcpOptionElement::SelectiveAcknowledgementPermitted];
            tcp.set_options(&options).unwrap();
        }
        let counted = u32::from(flags.syn) + u32::from(flags.fin) + u32::try_from(payload.len()).unwrap();
        self.next[from] = self.next[from].wrapping_add(counted);
        let mac = |end: usize| [2, 0, 0, 0, 0, u8::try_from(end).unwrap()];
        let step =
            PacketBuilder::ethernet2(mac(from), mac(to)).ipv4(ADDRESSES[from], ADDRESSES[to], 64).tcp_header(tcp);
        let mut octets = Vec::with_capacity(step.size(payload.len()));
        step.write(&mut octets, payload).unwrap();
        self.frames.push(octets);
    }

    /// Returns the number of frames.
    pub(crate) fn len(&self) -> usize {
        self.frames.len()
    }

    /// Returns the capture as a pcapng file.
    pub(crate) fn pcapng(&self) -> Vec<u8> {
        pcapng((1..).map(|number| number * GAP).zip(self.frames.iter().map(Vec::as_slice)))
    }

    /// Returns the monitor's findings. The direction of a finding is the number of the end that the
    /// finding is about.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        let (mut dissector, mut found) = (Dissector::default(), Findings(Vec::new()));
        for (number, octets) in (1..).zip(&self.frames) {
            let wire_len = u32::try_from(octets.len()).unwrap();
            let time = number * GAP;
            let frame = Frame { number: number.into(), time, interface: 0, link_type: ETHERNET, octets, wire_len };
            dissector.frame(&frame, &mut found);
        }
        dissector.finish(&mut found);
        for finding in &mut found.0 {
            let opener = finding.stream.and_then(|stream| self.openers.get(stream.index()));
            finding.direction ^= u8::from(opener == Some(&1));
        }
        found.0
    }
}

/// Makes a pcapng file of Ethernet frames. Each frame has its time in nanoseconds.
pub(crate) fn pcapng<'a>(frames: impl Iterator<Item = (u64, &'a [u8])>) -> Vec<u8> {
    let mut writer = Writer::new(Vec::new(), None).unwrap();
    let interface = writer.interface(&Interface { link_type: ETHERNET, ..Interface::default() }).unwrap();
    for (time, octets) in frames {
        let wire_len = u32::try_from(octets.len()).unwrap();
        writer.packet(&PacketBlock { interface, time, octets, wire_len, direction: None, comments: &[] }).unwrap();
    }
    writer.finish().unwrap()
}

struct Findings(Vec<Finding>);

impl Sink for Findings {
    fn unit(&mut self, _: &Unit<'_>) {}

    fn finding(&mut self, finding: &Finding) {
        self.0.push(finding.clone());
    }
}
