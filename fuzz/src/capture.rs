//! Any octets as a capture file.

use std::io::Cursor;

use weft_dissector::output::{json::JsonWriter, senders::Senders, text};
use weft_dissector::source::Capture;
use weft_dissector::tree::tree;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Packet, Sink};

/// Shows everything in every way.
#[derive(Default)]
struct Shown {
    json: JsonWriter,
    senders: Senders,
    octets: usize,
}

impl Sink for Shown {
    fn unit(&mut self, unit: &Unit<'_>) {
        let tree = tree(unit);
        for node in &tree {
            let _ = unit.locate(node.range.clone());
        }
        let mut out = Vec::new();
        self.json.write(unit, &mut out).expect("a vector takes everything");
        self.octets += out.len() + text::unit_line(unit, 0).len() + text::tree_lines(&tree).len();
    }

    fn finding(&mut self, finding: &Finding) {
        self.json.finding(finding, &mut Vec::new()).expect("a vector takes everything");
        self.octets += text::finding_lines(finding, &self.senders).len();
    }

    fn packet(&mut self, packet: &Packet) {
        self.senders.packet(packet);
    }
}

/// Reads `data` as a capture file, to its end.
pub fn read(data: &[u8]) {
    let Ok(mut capture) = Capture::from_reader(Box::new(Cursor::new(data.to_vec()))) else { return };
    let (mut dissector, mut shown) = (Dissector::default(), Shown::default());
    while let Some(frame) = capture.next_frame() {
        assert!(frame.wire_len as usize >= frame.octets.len());
        dissector.frame(&frame, &mut shown);
    }
    dissector.finish(&mut shown);
}
