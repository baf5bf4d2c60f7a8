//! Tests SDP connections whose start is not in the capture. An option names the port of these
//! connections, so that the dissector reads their messages as SDP.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::path::Path;

use weft_dissector::output::text::summary;
use weft_dissector::source::Capture;
use weft_dissector::unit::{Carrier, Kind, Unit};
use weft_dissector::{Dissector, Finding, FrameNumber, Packet, Sink, TransportKind};

/// The SDP messages in Sends, each with its frame. Also the findings about SDP, and the destination
/// port of the first SYN.
#[derive(Default)]
struct Read {
    messages: Vec<(FrameNumber, String)>,
    findings: Vec<String>,
    port: Option<u16>,
}

impl Sink for Read {
    fn unit(&mut self, unit: &Unit<'_>) {
        if matches!(unit.kind, Kind::Sdp(Carrier::Send, ..)) {
            self.messages.push((unit.frame, summary(unit)));
        }
    }

    fn finding(&mut self, finding: &Finding) {
        if finding.requirement.as_str().starts_with("SDP-") {
            self.findings.push(finding.requirement.as_str().to_owned());
        }
    }

    fn packet(&mut self, packet: &Packet) {
        if matches!(packet.transport, TransportKind::Tcp { syn: true, ack: false, .. }) {
            self.port.get_or_insert(packet.dst.port());
        }
    }
}

/// Reads a capture from frame `first` on.
fn read(name: &str, first: FrameNumber, port: Option<u16>) -> Read {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/sdp").join(name);
    let mut capture = Capture::open(&path).unwrap();
    let mut dissector = Dissector::default();
    if let Some(port) = port {
        dissector.decode_as_sdp(port);
    }
    let mut read = Read::default();
    while let Some(frame) = capture.next_frame() {
        if frame.number >= first {
            dissector.frame(&frame, &mut read);
        }
    }
    dissector.finish(&mut read);
    read
}

#[test]
fn messages_after_a_missing_beginning_are_read() {
    for name in ["writes.pcap", "modes.pcap", "mirrored.pcap"] {
        let all = read(name, FrameNumber::FIRST, None);
        let first = all.messages[all.messages.len() / 3].0;
        let expected: Vec<_> = all.messages.iter().filter(|(frame, _)| *frame > first).cloned().collect();
        assert!(read(name, first, None).messages.is_empty(), "{name}");
        let rest = read(name, first, all.port);
        // The dissector finds the first message after two consecutive FPDUs with correct CRCs, so
        // it can miss some messages before.
        let missing: Vec<_> = expected.iter().filter(|message| !rest.messages.contains(message)).collect();
        assert!(missing.len() <= 4 && rest.messages.len() > 4, "{name}: {missing:?} of {}", expected.len());
        assert!(rest.messages.iter().all(|message| all.messages.contains(message)), "{name}: {:?}", rest.messages);
        assert_eq!(rest.findings, [""; 0], "{name}");
    }
}

#[test]
fn a_connection_with_its_beginning_is_read_as_ever() {
    for name in ["writes.pcap", "cancel.pcap", "suspend.pcap"] {
        let all = read(name, FrameNumber::FIRST, None);
        let with_port = read(name, FrameNumber::FIRST, all.port);
        assert_eq!((with_port.messages, with_port.findings), (all.messages, all.findings), "{name}");
    }
}
