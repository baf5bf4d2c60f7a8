//! Reads arbitrary bytes as a capture file.

use std::io::Cursor;

use weft_dissector::io::{IoTracker, command_line};
use weft_dissector::output::upper_pdu::{UpperPdu, UpperPdus};
use weft_dissector::output::{json::JsonWriter, senders::Senders, text};
use weft_dissector::scrub::{Planner, Survey};
use weft_dissector::source::{Capture, Frame};
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

/// Checks the length of a message that `weft export` writes.
fn check_pdu(pdu: &UpperPdu) {
    let packet = pdu.packet();
    assert!(pdu.octets.len() as u64 <= pdu.len, "{} of {} bytes", pdu.octets.len(), pdu.len);
    assert!(packet.len() <= pdu.wire_len(&packet) as usize);
}

/// Writes the lines of the commands that have finished.
fn write_commands(tracker: &mut IoTracker) {
    for command in tracker.take_finished() {
        assert!(!command_line(&command, 0).is_empty());
    }
}

/// Dissects frames, and writes all outputs: those of `weft dissect`, `weft io`, `weft export` and
/// `weft scrub`. `each` calls its argument with each frame. It is called several times, and must
/// have the same frames each time.
pub(crate) fn consume(each: impl Fn(&mut dyn FnMut(&Frame<'_>))) {
    let mut dissector = Dissector::default();
    let outputs = (AllOutputs::default(), IoTracker::default());
    let mut sinks = (outputs, (UpperPdus::new(check_pdu), Survey::default()));
    each(&mut |frame: &Frame<'_>| {
        dissector.frame(frame, &mut sinks);
        write_commands(&mut sinks.0.1);
    });
    dissector.finish(&mut sinks);
    let ((_, mut tracker), (mut pdus, survey)) = sinks;
    write_commands(&mut tracker);
    assert!(tracker.kinds().count() as u64 <= tracker.totals().commands);
    pdus.finish();

    let (mut dissector, mut planner) = (Dissector::default(), Planner::new(survey));
    each(&mut |frame: &Frame<'_>| planner.frame(frame, &mut dissector));
    dissector.finish(&mut planner);
    let mut scrubber = planner.finish(Dissector::default());
    each(&mut |frame: &Frame<'_>| assert_eq!(scrubber.frame(frame).len(), frame.octets.len()));
}

/// Reads `data` as a capture file up to its end, and passes all frames to [`consume`].
pub fn read(data: &[u8]) {
    consume(|each| {
        let Ok(mut capture) = Capture::from_reader(Box::new(Cursor::new(data.to_vec()))) else { return };
        while let Some(frame) = capture.next_frame() {
            assert!(frame.wire_len as usize >= frame.octets.len());
            each(&frame);
        }
    });
}
