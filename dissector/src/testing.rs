//! Synthetic captures for tests. A capture has one TCP connection over Ethernet and IPv4. The
//! capture has the segments in the order in which they are sent, unless a test changes the order.

mod sack;
pub(crate) mod sdp;

use etherparse::PacketBuilder;
use weft_core::RequirementId;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::crc;
use weft_core::requirement::Severity;

use crate::finding::Finding;
use crate::frame_number::FrameNumber;
use crate::link_type::ETHERNET;
use crate::source::Frame;
use crate::unit::Unit;
use crate::{Dissector, Sink};

const PORTS: [u16; 2] = [49152, 4210];

/// Converts hexadecimal text to octets. White space is ignored.
pub(crate) fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text.bytes().filter(|b| !b.is_ascii_whitespace()).collect();
    digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).unwrap(), 16).unwrap()).collect()
}

/// A Request of revision 1 with CRC and without markers.
pub(crate) fn request() -> Vec<u8> {
    hex("4d504120 49442052 65712046 72616d65 40010000")
}

/// A Reply of revision 1 with CRC and without markers.
pub(crate) fn reply() -> Vec<u8> {
    hex("4d504120 49442052 65702046 72616d65 40010000")
}

/// An SDP Hello with its fields in the order of the SDP draft's figures (figure order).
pub(crate) fn hello() -> Vec<u8> {
    hex("0010 00 00 00000020 00000000 00000000 0004 00 11 00001000 00001000 0004 0004")
}

/// Appends the CRC field to `octets`. `octets` consists of the length field, the ULPDU and PAD.
pub(crate) fn with_crc(mut octets: Vec<u8>) -> Vec<u8> {
    let crc = crc::to_octets(crc::crc32c(&octets));
    octets.extend_from_slice(&crc);
    octets
}

/// An FPDU with the ULPDU `ulpdu`, correct PAD and CRC, and no markers.
pub(crate) fn fpdu(ulpdu: &[u8]) -> Vec<u8> {
    let mut octets = u16::try_from(ulpdu.len()).unwrap().to_be_bytes().to_vec();
    octets.extend_from_slice(ulpdu);
    octets.resize(octets.len().next_multiple_of(4), 0);
    with_crc(octets)
}

/// A Request with the given flags (octet 16), revision and private data.
pub(crate) fn startup_frame(flags: u8, revision: u8, private: &[u8]) -> Vec<u8> {
    let mut octets = request();
    (octets[16], octets[17]) = (flags, revision);
    octets[18..20].copy_from_slice(&u16::try_from(private.len()).unwrap().to_be_bytes());
    octets.extend_from_slice(private);
    octets
}

/// A Reply with the given flags (octet 16), revision and private data.
pub(crate) fn reply_frame(flags: u8, revision: u8, private: &[u8]) -> Vec<u8> {
    let mut octets = startup_frame(flags, revision, private);
    octets[..16].copy_from_slice(&reply()[..16]);
    octets
}

/// The ULPDU of a Send of one segment. The ULPDU has `len` octets, including the DDP header.
pub(crate) fn send_of(msn: u32, len: usize) -> Vec<u8> {
    let mut ulpdu = hex(&format!("4143 00000000 00000000 {msn:08x} 00000000"));
    ulpdu.resize(len, 0);
    ulpdu
}

/// A sender of FPDUs with correct or wrong markers. To find the positions of the markers, the
/// sender counts each octet, as RFC 5044 section 4.3 describes.
#[derive(Debug, Clone)]
pub(crate) struct Marked {
    /// Number of octets after the start-up frame so far, in the sender's count.
    pub(crate) at: u64,
    /// Each marker is this number of octets after its correct position.
    pub(crate) shift: u64,
    /// Whether the sender counts its CRC fields when it places markers.
    pub(crate) crc_counts: bool,
    /// Whether the sender omits markers.
    pub(crate) none: bool,
    /// Number of markers that were sent so far.
    pub(crate) markers: usize,
}

impl Default for Marked {
    fn default() -> Self {
        Marked { at: 0, shift: 0, crc_counts: true, none: false, markers: 0 }
    }
}

impl Marked {
    /// The next FPDU.
    pub(crate) fn fpdu(&mut self, ulpdu: &[u8]) -> Vec<u8> {
        self.fpdu_with(ulpdu, |_, marker| marker)
    }

    /// The next FPDU. For each marker, `change` gets the number of the marker and its correct
    /// octets, and returns the octets to send. The first marker of the direction has number 0.
    pub(crate) fn fpdu_with(&mut self, ulpdu: &[u8], change: impl Fn(usize, [u8; 4]) -> [u8; 4]) -> Vec<u8> {
        let mut body = u16::try_from(ulpdu.len()).unwrap().to_be_bytes().to_vec();
        body.extend_from_slice(ulpdu);
        body.resize(body.len().next_multiple_of(4), 0);
        let mut out = Vec::new();
        let mut header = None;
        for octet in body.iter().map(Some).chain([None]) {
            if !self.none && self.at % 512 == self.shift {
                let pointer = u16::try_from(header.map_or(0, |header| self.at - header)).unwrap();
                let [high, low] = pointer.to_be_bytes();
                out.extend_from_slice(&change(self.markers, [0, 0, high, low]));
                self.markers += 1;
                self.at += 4;
            }
            header.get_or_insert(self.at);
            if let Some(octet) = octet {
                out.push(*octet);
                self.at += 1;
            }
        }
        if self.crc_counts {
            self.at += 4;
        }
        with_crc(out)
    }
}

/// One connection and its frames. Direction 0 is the direction of the endpoint that opened the
/// connection.
pub(crate) struct Wire {
    /// The destination port of the connection.
    port: u16,
    frames: Vec<(u64, Vec<u8>)>,
    next: [u32; 2],
    now: u64,
    /// Whether Don't Fragment is clear in the sent IPv4 packets.
    pub(crate) may_fragment: bool,
    /// The window field of sent segments.
    pub(crate) window: u16,
    /// Maximum number of octets of each frame in the capture.
    snap_length: usize,
}

impl Wire {
    /// A connection after SYN and SYN-ACK.
    pub(crate) fn connected() -> Self {
        Self::connected_with_options(&[])
    }

    /// Like [`Wire::connected`], but the capture has `datagrams` before the connection. The number
    /// with each datagram is its sender: 0 is the endpoint that opens the connection, and 1 is the
    /// port mapper of the peer.
    pub(crate) fn connected_after(datagrams: &[(usize, Vec<u8>)]) -> Self {
        let (addresses, ports) = ([[10, 0, 0, 2], [10, 0, 0, 1]], [40000, 3935]);
        let frame = |(direction, payload): &(usize, Vec<u8>)| {
            let other = 1 - direction;
            let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
                .ipv4(addresses[*direction], addresses[other], 64)
                .udp(ports[*direction], ports[other]);
            let mut frame = Vec::new();
            builder.write(&mut frame, payload).unwrap();
            frame
        };
        let mut wire = Self::connected();
        let before = datagrams.len() as u64 * 1_000_000;
        wire.now += before;
        wire.frames.iter_mut().for_each(|(time, _)| *time += before);
        wire.frames.splice(0..0, (1..).map(|number| number * 1_000_000).zip(datagrams.iter().map(frame)));
        wire
    }

    /// Like [`Wire::connected`], but the connection has the destination port `port`.
    pub(crate) fn connected_to(port: u16) -> Self {
        Self::connecting(port, &[])
    }

    /// Like [`Wire::connected`], with TCP options in both SYNs.
    pub(crate) fn connected_with_options(options: &[u8]) -> Self {
        Self::connecting(PORTS[1], options)
    }

    fn connecting(port: u16, options: &[u8]) -> Self {
        let mut wire = Wire {
            port,
            frames: Vec::new(),
            next: [1000, 5000],
            now: 0,
            may_fragment: false,
            window: 65535,
            snap_length: usize::MAX,
        };
        wire.segment(0, |tcp| tcp.syn().options_raw(options).unwrap(), &[], true);
        wire.segment(1, |tcp| tcp.syn().ack(1001).options_raw(options).unwrap(), &[], true);
        wire.next = [1001, 5001];
        wire
    }

    /// Like [`Wire::connected`], with a maximum segment size and SACK in both SYNs.
    pub(crate) fn connected_with_mss(mss: u16) -> Self {
        Self::connected_with_options(&hex(&format!("0204 {mss:04x} 0402 0101")))
    }

    /// A connection after the given start-up frames. Direction 0 sends `request`.
    pub(crate) fn started_as(request: &[u8], reply: &[u8]) -> Self {
        let mut wire = Self::connected();
        wire.send(0, request);
        wire.send(1, reply);
        wire
    }

    /// A connection after start-up frames of revision 1, with CRC, and with markers in both
    /// directions.
    pub(crate) fn started_with_markers() -> Self {
        Self::started_as(&startup_frame(0xc0, 1, &[]), &reply_frame(0xc0, 1, &[]))
    }

    /// A connection after start-up frames of revision 1, with CRC and without markers.
    pub(crate) fn started() -> Self {
        let mut wire = Self::connected();
        wire.send(0, &request());
        wire.send(1, &reply());
        wire
    }

    /// Direction 0 opens another connection, to destination port `port`.
    pub(crate) fn connect_to(&mut self, port: u16) {
        self.port = port;
        self.connect_from(1000, 5000);
    }

    /// Direction 0 opens another connection with the same ports. `own` and `peer` are the initial
    /// sequence numbers.
    pub(crate) fn connect_from(&mut self, own: u32, peer: u32) {
        self.next = [own, peer];
        self.segment(0, etherparse::PacketBuilderStep::syn, &[], true);
        self.segment(1, |tcp| tcp.syn().ack(own.wrapping_add(1)), &[], true);
        self.next = [own.wrapping_add(1), peer.wrapping_add(1)];
    }

    fn segment(
        &mut self,
        direction: usize,
        flags: impl FnOnce(
            etherparse::PacketBuilderStep<etherparse::TcpHeader>,
        ) -> etherparse::PacketBuilderStep<etherparse::TcpHeader>,
        payload: &[u8],
        captured: bool,
    ) {
        let other = 1 - direction;
        let addresses = [[10, 0, 0, 2], [10, 0, 0, 1]];
        let mut ip =
            etherparse::Ipv4Header::new(0, 64, etherparse::IpNumber::TCP, addresses[direction], addresses[other])
                .unwrap();
        ip.dont_fragment = !self.may_fragment;
        let builder = PacketBuilder::ethernet2([2; 6], [4; 6])
            .ip(etherparse::IpHeaders::Ipv4(ip, etherparse::Ipv4Extensions::default()));
        let ports = [PORTS[0], self.port];
        let builder = flags(builder.tcp(ports[direction], ports[other], self.next[direction], self.window));
        let mut frame = Vec::new();
        builder.write(&mut frame, payload).unwrap();
        self.next[direction] = self.next[direction].wrapping_add(u32::try_from(payload.len()).unwrap());
        self.now += 1_000_000;
        if captured {
            self.frames.push((self.now, frame));
        }
    }

    /// Sends the segments of `first`, and then the segments of `second`. In the capture, the
    /// segments of `second` come first.
    pub(crate) fn swapped(&mut self, first: impl FnOnce(&mut Self), second: impl FnOnce(&mut Self)) {
        let before = self.frames.len();
        first(self);
        let between = self.frames.len();
        second(self);
        self.frames[before..].rotate_left(between - before);
    }

    /// Sends the segments of `first` and the segments of `second` at the same time. `first` and
    /// `second` use different directions. When an endpoint sends its segments, it has not received
    /// the segments of its peer.
    pub(crate) fn at_once(&mut self, first: impl FnOnce(&mut Self), second: impl FnOnce(&mut Self)) {
        let before = self.next;
        first(self);
        let sent = self.next;
        let direction = usize::from(sent[1] != before[1]);
        self.next[direction] = before[direction];
        second(self);
        self.next[direction] = sent[direction];
    }

    /// Number of frames.
    pub(crate) fn count(&self) -> usize {
        self.frames.len()
    }

    /// A copy with the frames that `change` returns. If a frame is older than the previous frame,
    /// it gets the time of the previous frame.
    pub(crate) fn changed(&self, change: impl FnOnce(Vec<(u64, Vec<u8>)>) -> Vec<(u64, Vec<u8>)>) -> Self {
        let mut frames = change(self.frames.clone());
        for at in 1..frames.len() {
            frames[at].0 = frames[at].0.max(frames[at - 1].0);
        }
        Wire { frames, ..*self }
    }

    /// A copy with the frames of `direction` only.
    pub(crate) fn alone(&self, direction: usize) -> Self {
        let last = [2, 1][direction];
        self.changed(|frames| frames.into_iter().filter(|(_, frame)| frame[29] == last).collect())
    }

    /// A copy with the VLAN tags `tags` in each frame.
    pub(crate) fn over(&self, tags: &[u8]) -> Self {
        let tagged = |(time, mut frame): (u64, Vec<u8>)| {
            frame.splice(12..12, tags.iter().copied());
            (time, frame)
        };
        self.changed(|frames| frames.into_iter().map(tagged).collect())
    }

    /// A copy with IPv6 instead of IPv4.
    pub(crate) fn over_ipv6(&self) -> Self {
        let carried = |(time, frame): (u64, Vec<u8>)| {
            let tcp = &frame[14 + 20..];
            let mut octets = frame[..12].to_vec();
            octets.extend(hex("86dd 60000000"));
            octets.extend(u16::try_from(tcp.len()).unwrap().to_be_bytes());
            octets.extend([6, 64]);
            for address in [&frame[26..30], &frame[30..34]] {
                octets.extend(hex("fd00 0000 0000 0000 0000 0000"));
                octets.extend(address);
            }
            octets.extend(tcp);
            (time, octets)
        };
        self.changed(|frames| frames.into_iter().map(carried).collect())
    }

    /// A copy with at most `snap_length` octets of each frame.
    pub(crate) fn cut_to(&self, snap_length: usize) -> Self {
        Wire { frames: self.frames.clone(), snap_length, ..*self }
    }

    /// Advances the time without a frame.
    pub(crate) fn wait(&mut self, nanoseconds: u64) {
        self.now += nanoseconds;
    }

    /// `direction` retransmits `octets`. The first of these octets is `back` octets before the next
    /// octet of `direction`.
    pub(crate) fn send_again(&mut self, direction: usize, back: u32, octets: &[u8]) {
        let next = self.next[direction];
        self.next[direction] = next.wrapping_sub(back);
        self.send(direction, octets);
        self.next[direction] = next;
    }

    /// `direction` sends `octets` in one segment.
    pub(crate) fn send(&mut self, direction: usize, octets: &[u8]) {
        let ack = self.next[1 - direction];
        self.segment(direction, |tcp| tcp.ack(ack), octets, true);
    }

    /// `direction` sends `octets` in one segment. The octet at offset `at` is damaged in transit.
    /// The sequence number does not advance, because the sender must retransmit the octets.
    pub(crate) fn send_damaged(&mut self, direction: usize, octets: &[u8], at: usize) {
        let next = self.next[direction];
        self.send(direction, octets);
        self.next[direction] = next;
        if let Some((_, frame)) = self.frames.last_mut() {
            // The headers of Ethernet, IPv4 and TCP have 54 octets.
            frame[54 + at] ^= 0x55;
        }
    }

    /// `direction` sends an FPDU in one segment. `ulpdu` is its ULPDU in hexadecimal.
    pub(crate) fn send_ulpdu(&mut self, direction: usize, ulpdu: &str) {
        self.send(direction, &fpdu(&hex(ulpdu)));
    }

    /// Like [`Wire::send`], but the segment is not captured.
    pub(crate) fn lose(&mut self, direction: usize, octets: &[u8]) {
        let ack = self.next[1 - direction];
        self.segment(direction, |tcp| tcp.ack(ack), octets, false);
    }

    /// `direction` sends a FIN.
    pub(crate) fn fin(&mut self, direction: usize) {
        let ack = self.next[1 - direction];
        self.segment(direction, |tcp| tcp.fin().ack(ack), &[], true);
        self.next[direction] = self.next[direction].wrapping_add(1);
    }

    /// `direction` sends `octets` and a FIN in one segment.
    pub(crate) fn fin_with(&mut self, direction: usize, octets: &[u8]) {
        let ack = self.next[1 - direction];
        self.segment(direction, |tcp| tcp.fin().ack(ack), octets, true);
        self.next[direction] = self.next[direction].wrapping_add(1);
    }

    /// `direction` sends a SYN without ACK, with sequence number `seq`. Later segments continue
    /// with the previous sequence number.
    pub(crate) fn syn_at(&mut self, direction: usize, seq: u32) {
        self.at(direction, seq, |wire| wire.segment(direction, etherparse::PacketBuilderStep::syn, &[], true));
    }

    /// Direction 0 sends a SYN to destination port `port`, and gets no answer. Later segments belong
    /// to the previous connection.
    pub(crate) fn unanswered_syn(&mut self, port: u16) {
        let own = std::mem::replace(&mut self.port, port);
        self.syn_at(0, 1000);
        self.port = own;
    }

    /// Like [`Wire::syn_at`], but sends a RST.
    pub(crate) fn rst_at(&mut self, direction: usize, seq: u32) {
        self.at(direction, seq, |wire| wire.rst(direction));
    }

    /// Like [`Wire::syn_at`], but sends a FIN with ACK.
    pub(crate) fn fin_at(&mut self, direction: usize, seq: u32) {
        self.at(direction, seq, |wire| wire.fin(direction));
    }

    /// Like [`Wire::syn_at`], but sends `octets` in one segment.
    pub(crate) fn send_at(&mut self, direction: usize, seq: u32, octets: &[u8]) {
        self.at(direction, seq, |wire| wire.send(direction, octets));
    }

    fn at(&mut self, direction: usize, seq: u32, happens: impl FnOnce(&mut Self)) {
        let next = std::mem::replace(&mut self.next[direction], seq);
        happens(self);
        self.next[direction] = next;
    }

    /// `direction` sends a RST.
    pub(crate) fn rst(&mut self, direction: usize) {
        self.segment(direction, etherparse::PacketBuilderStep::rst, &[], true);
    }

    /// The findings of the dissector that are warnings or errors.
    pub(crate) fn errors(&self) -> Vec<Finding> {
        let mut found = self.findings();
        found.retain(|finding| finding.severity > weft_core::requirement::Severity::Note);
        found
    }

    /// The findings of the dissector.
    pub(crate) fn findings(&self) -> Vec<Finding> {
        struct Collect(Vec<Finding>);
        impl Sink for Collect {
            fn unit(&mut self, _: &Unit<'_>) {}
            fn finding(&mut self, finding: &Finding) {
                self.0.push(finding.clone());
            }
        }
        let mut found = Collect(Vec::new());
        self.feed(&mut found);
        found.0
    }

    /// Passes the frames to a new dissector.
    pub(crate) fn feed(&self, sink: &mut dyn Sink) {
        self.feed_to(Dissector::default(), sink, |_| {});
    }

    /// Passes the frames to `dissector`, and calls `look` after each frame.
    pub(crate) fn feed_to(&self, mut dissector: Dissector, sink: &mut dyn Sink, mut look: impl FnMut(&Dissector)) {
        self.each(|frame| {
            dissector.frame(frame, sink);
            look(&dissector);
        });
        dissector.finish(sink);
    }

    /// Calls `read` for each frame.
    pub(crate) fn each(&self, mut read: impl FnMut(&Frame<'_>)) {
        for ((time, octets), number) in self.frames.iter().zip((1..).map(FrameNumber::from)) {
            let wire_len = u32::try_from(octets.len()).unwrap();
            let octets = &octets[..octets.len().min(self.snap_length)];
            read(&Frame { number, time: *time, interface: 0, link_type: ETHERNET, octets, wire_len });
        }
    }
}

/// A connection after start-up frames of revision 1, with CRC and without markers. After the
/// start-up, each of `ulpdus` is sent in its direction.
pub(crate) fn exchange(ulpdus: &[(usize, &str)]) -> Wire {
    let mut wire = Wire::started();
    ulpdus.iter().for_each(|(direction, ulpdu)| wire.send_ulpdu(*direction, ulpdu));
    wire
}

/// Proves that a rule checks the requirement `id`. The dissector must report a violation of `id` in
/// the capture `bad`, and no violation of `id` in the capture `good`. The two captures should
/// differ as little as possible.
pub(crate) fn proves(id: RequirementId, bad: &Wire, good: &Wire) {
    let names = |wire: &Wire| wire.findings().iter().any(|finding| finding.requirement == id);
    let mut proof = Coverage::new(CoverageKind::Rule);
    proof.verify(id, || {
        assert!(names(bad), "the capture with a violation has no finding {id}: {:#?}", bad.findings());
        // Some requirements are from an e-mail proposal. A violation of such a requirement is only
        // a note, because the proposal is not binding.
        let is_note = |finding: &Finding| finding.requirement != id || finding.severity == Severity::Note;
        assert!(!id.as_str().starts_with("P2P-mail.") || bad.findings().iter().all(is_note), "{:#?}", bad.findings());
        assert!(!names(good), "the capture without a violation has a finding {id}: {:#?}", good.findings());
    });
}
