//! Reads arbitrary bytes as a capture file.

use std::io::Cursor;

use weft_dissector::output::{json::JsonWriter, senders::Senders, text};
use weft_dissector::source::Capture;
use weft_dissector::tree::tree;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Packet, Sink};

/// Writes all units, findings and packets in all output formats.
#[derive(Default)]
struct AllOutputs {
    json: JsonWriter,
    senders: Senders,
    octets: usize,
}

impl Sink for AllOutputs {
    fn unit(&mut self, unit: &Unit<'_>) {
        let tree = tree(unit);
        for node in &tree {
            let _ = unit.locate(node.range.clone());
        }
        let mut out = Vec::new();
        self.json.write(unit, &mut out).expect("writing to a vector cannot fail");
        self.octets += out.len() + text::unit_line(unit, 0).len() + text::tree_lines(&tree).len();
    }

    fn finding(&mut self, finding: &Finding) {
        self.json.finding(finding, &mut Vec::new()).expect("writing to a vector cannot fail");
        self.octets += text::finding_lines(finding, &self.senders).len();
    }

    fn packet(&mut self, packet: &Packet) {
        self.senders.packet(packet);
    }
}

/// Reads `data` as a capture file up to its end, and dissects all frames.
pub fn read(data: &[u8]) {
    let Ok(mut capture) = Capture::from_reader(Box::new(Cursor::new(data.to_vec()))) else { return };
    let (mut dissector, mut shown) = (Dissector::default(), AllOutputs::default());
    while let Some(frame) = capture.next_frame() {
        assert!(frame.wire_len as usize >= frame.octets.len());
        dissector.frame(&frame, &mut shown);
    }
    dissector.finish(&mut shown);
}
