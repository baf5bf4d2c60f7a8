//! Lets the monitor read the frames of a case, and keeps its findings.
//!
//! If the traffic log is full, it drops events. [`OverflowMonitor`] then reads each event before
//! the traffic log drops it. So the monitor judges all traffic, although the evidence lacks a part.

use std::collections::HashMap;
use std::ops::Range;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_core::RequirementId;
use weft_core::wire::portmap::UDP_PORT;
use weft_dissector::link_type::ETHERNET;
use weft_dissector::source::Frame as Captured;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Sink};
use weft_peer::driver::{Direction, EventContent, RecordedTraffic, TrafficEvent, TrafficLog};

use super::{Frame, Framer, Frames};
use crate::model::{EvidenceSource, MonitorFinding};

/// Maximum number of findings that are kept for one case.
const MAX_FINDINGS: usize = 1000;
/// Maximum number of findings that are kept for one requirement and one direction. Further findings
/// of this kind cannot change a verdict.
const MAX_REPEATS: u32 = 20;

#[derive(Default)]
struct Findings {
    kept: Vec<Finding>,
    /// The number of findings of each requirement and direction.
    counts: HashMap<(RequirementId, u8), u32>,
    lost: u64,
}

impl Sink for Findings {
    fn unit(&mut self, _: &Unit<'_>) {}

    fn finding(&mut self, finding: &Finding) {
        let count = self.counts.entry((finding.requirement, finding.direction)).or_default();
        *count += 1;
        if *count > MAX_REPEATS {
            return;
        }
        if self.kept.len() < MAX_FINDINGS {
            self.kept.push(finding.clone());
        } else {
            self.lost += 1;
        }
    }
}

/// What decides which side sends in which direction of the monitor.
#[derive(Debug, Default)]
struct Sides {
    /// For each connection, the direction of the end that connected. The monitor numbers
    /// connections by their first frames, as the traffic log does.
    openers: Vec<Direction>,
    /// Whether the tester is a port mapper, and the target its client.
    is_queried: bool,
}

impl Sides {
    fn note(&mut self, event: &TrafficEvent) {
        match &event.content {
            EventContent::Connected { .. } => self.openers.push(event.direction),
            EventContent::Datagram { tester, .. } => self.is_queried |= tester.port() == UDP_PORT,
            _ => {}
        }
    }

    /// Returns whether a finding is about the target.
    fn is_by_target(&self, finding: &Finding) -> bool {
        // Direction 0 is the direction from the end that connected.
        let opener = finding.stream.and_then(|stream| self.openers.get(stream.index()));
        // For datagrams, which have no connection, direction 0 is the direction from the client. If
        // the tester is the port mapper, the target is the client.
        let is_from_client = finding.stream.is_none() && self.is_queried;
        let by_opener = finding.direction == 0;
        by_opener == (is_from_client || opener == Some(&Direction::FromTarget))
    }
}

/// The monitor, while it reads the frames of a case.
struct Reading {
    dissector: Dissector,
    findings: Findings,
    sides: Sides,
    framer: Framer,
    /// Number of frames so far.
    frames: u64,
    /// Numbers of the frames that the evidence lacks.
    dropped: Vec<Range<u64>>,
}

impl Reading {
    /// Begins to read frames from this source.
    fn of(source: EvidenceSource) -> Self {
        let dissector = match source {
            EvidenceSource::Endpoint => Dissector::default().recorded_by_an_end(),
            EvidenceSource::Wire => Dissector::default(),
        };
        Reading {
            dissector,
            findings: Findings::default(),
            sides: Sides::default(),
            framer: Framer::default(),
            frames: 0,
            dropped: Vec::new(),
        }
    }

    fn frame(&mut self, frame: &Frame) {
        self.frames += 1;
        let captured = Captured {
            number: self.frames.into(),
            time: frame.at_ns,
            interface: 0,
            link_type: ETHERNET,
            octets: &frame.octets,
            wire_len: u32::try_from(frame.octets.len()).unwrap_or(u32::MAX),
        };
        self.dissector.frame(&captured, &mut self.findings);
    }

    /// Reads the frames of the next event. `is_kept` is whether the evidence has these frames.
    fn event(&mut self, event: &TrafficEvent, is_kept: bool) {
        self.sides.note(event);
        let first = self.frames + 1;
        let mut framer = std::mem::take(&mut self.framer);
        framer.event(event, |frame| self.frame(&frame));
        self.framer = framer;
        if is_kept || self.frames < first {
            return;
        }
        match self.dropped.last_mut() {
            Some(range) if range.end == first => range.end = self.frames + 1,
            _ => self.dropped.push(first..self.frames + 1),
        }
    }

    /// Returns the number that a frame has in the evidence, if the evidence has the frame.
    fn number(&self, frame: u64) -> Option<u64> {
        let before = self.dropped.partition_point(|range| range.end <= frame);
        let is_dropped = self.dropped.get(before).is_some_and(|range| range.contains(&frame));
        let missing: u64 = self.dropped[..before].iter().map(|range| range.end - range.start).sum();
        (!is_dropped).then(|| frame - missing)
    }

    /// Replaces the numbers of frames in a text by their numbers in the evidence.
    fn renumbered(&self, text: &str) -> String {
        const FRAME: &str = "frame ";
        if self.dropped.is_empty() {
            return text.to_owned();
        }
        let mut pieces = text.split(FRAME);
        let mut renumbered = pieces.next().unwrap_or_default().to_owned();
        for piece in pieces {
            let digits = piece.find(|c: char| !c.is_ascii_digit()).unwrap_or(piece.len());
            let (number, rest) = piece.split_at(digits);
            match number.parse::<u64>().ok().map(|number| self.number(number)) {
                Some(Some(number)) => renumbered.push_str(&format!("{FRAME}{number}")),
                Some(None) => renumbered.push_str("a frame that the evidence lacks"),
                None => renumbered.push_str(&format!("{FRAME}{number}")),
            }
            renumbered.push_str(rest);
        }
        renumbered
    }

    /// Returns the findings, and the number of findings that were not kept.
    fn finish(mut self) -> (Vec<MonitorFinding>, u64) {
        self.dissector.finish(&mut self.findings);
        (self.findings.kept.iter().map(|finding| self.convert(finding)).collect(), self.findings.lost)
    }

    fn convert(&self, finding: &Finding) -> MonitorFinding {
        let (expected, found) = (self.renumbered(&finding.expected), self.renumbered(&finding.found));
        MonitorFinding {
            requirement: finding.requirement,
            severity: finding.severity,
            text: format!("expected {expected}, found {found}"),
            packet: self.number(finding.frame.into()),
            by_target: self.sides.is_by_target(finding),
        }
    }
}

/// The monitor of a traffic log. It begins to read when the traffic log is full.
#[derive(Clone, Default)]
pub(crate) struct OverflowMonitor(Arc<Mutex<Option<Box<Reading>>>>);

impl OverflowMonitor {
    /// Creates the monitor of a traffic log that is still empty.
    pub(crate) fn of(traffic: &TrafficLog) -> Self {
        let monitor = OverflowMonitor::default();
        let reader = monitor.clone();
        traffic.on_overflow(move |event, is_kept| {
            reader.lock().get_or_insert_with(|| Box::new(Reading::of(EvidenceSource::Endpoint))).event(event, is_kept);
        });
        monitor
    }

    fn lock(&self) -> MutexGuard<'_, Option<Box<Reading>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Returns the monitor's findings in the traffic of a case, and the number of findings that were
/// not kept. `frames` are the frames of the evidence. `overflow` is the monitor of the traffic log.
pub(crate) fn watch(
    traffic: &RecordedTraffic,
    frames: &Frames,
    overflow: &OverflowMonitor,
) -> (Vec<MonitorFinding>, u64) {
    // A capture on an interface is complete, even if the traffic log is not.
    let begun = overflow.lock().take().filter(|_| frames.source == EvidenceSource::Endpoint);
    let Some(mut reading) = begun else {
        let mut reading = Reading::of(frames.source);
        traffic.events.iter().for_each(|event| reading.sides.note(event));
        frames.list.iter().for_each(|frame| reading.frame(frame));
        return reading.finish();
    };
    for (event, anchor) in traffic.events.iter().zip(&frames.anchors).skip(traffic.unread) {
        reading.event(event, anchor.is_some());
    }
    reading.finish()
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use weft_core::crc;
    use weft_core::requirement::Severity;
    use weft_dissector::FrameNumber;
    use weft_peer::Instant;
    use weft_peer::driver::DroppedOctets;

    use super::*;
    use crate::correct;
    use crate::evidence::synthesize_frames;

    fn finding(requirement: &str, direction: u8) -> Finding {
        Finding {
            requirement: requirement.parse().unwrap(),
            severity: Severity::Error,
            stream: None,
            direction,
            frame: FrameNumber::FIRST,
            range: 0..0,
            locations: Vec::new(),
            expected: String::new(),
            found: String::new(),
        }
    }

    /// Repeated findings leave room for the findings of the other direction and of other
    /// requirements. No finding is reported as lost, because repeats cannot change a verdict.
    #[test]
    fn keeps_a_limited_number_of_equal_findings() {
        let mut findings = Findings::default();
        (0..3000).for_each(|_| findings.finding(&finding("MPA-4.1-3", 0)));
        findings.finding(&finding("MPA-4.1-3", 1));
        findings.finding(&finding("DDP-5.2-4", 0));
        assert_eq!((findings.kept.len(), findings.lost), (MAX_REPEATS as usize + 2, 0));
    }

    /// The requirements that a wrong PAD violates.
    const PAD_ROWS: [RequirementId; 2] = [weft_core::requirement!("MPA-2-5"), weft_core::requirement!("MPA-4.1-3")];

    fn event(direction: Direction, octets: Vec<u8>) -> TrafficEvent {
        let content = EventContent::Octets(octets.into());
        TrafficEvent { at: Instant::from_nanos(5), connection: 0, direction, content }
    }

    /// An FPDU of the target: the length (2), the ULPDU (20), the PAD (2) and the CRC (4).
    fn fpdu(msn: u32, has_wrong_pad: bool) -> TrafficEvent {
        let mut octets = correct::fpdu(&correct::send(msn, b"hi"), true);
        if has_wrong_pad {
            octets[22] = 1;
            let crc = crc::to_octets(crc::crc32c(&octets[..24]));
            octets[24..].copy_from_slice(&crc);
        }
        event(Direction::FromTarget, octets)
    }

    /// The traffic log dropped ten FPDUs of the target. Of these, the fifth has a wrong PAD. It
    /// kept three FPDUs after them. Of these, the second has a wrong PAD.
    fn overflown() -> (RecordedTraffic, OverflowMonitor) {
        let [tester, target] = [(2, 50_000), (1, 7174)].map(|(last, port)| SocketAddr::from(([192, 0, 2, last], port)));
        let connected = EventContent::Connected { tester, target };
        let mut events = vec![
            TrafficEvent { content: connected, ..event(Direction::ToTarget, Vec::new()) },
            event(Direction::ToTarget, correct::startup(&correct::StartupFields::REQUEST)),
            event(Direction::FromTarget, correct::startup(&correct::StartupFields::REPLY)),
            event(Direction::ToTarget, correct::fpdu(&correct::send(1, b"hi"), true)),
        ];
        let monitor = OverflowMonitor::default();
        let mut reading = Box::new(Reading::of(EvidenceSource::Endpoint));
        events.iter().for_each(|event| reading.event(event, true));
        (1..=10).for_each(|msn| reading.event(&fpdu(msn, msn == 5), false));
        *monitor.lock() = Some(reading);
        let until = Instant::from_nanos(5);
        let dropped = DroppedOctets { datagrams: false, events: 10, octets: 280, crc: 0, until };
        let gap = event(Direction::FromTarget, Vec::new());
        events.push(TrafficEvent { content: EventContent::Dropped(dropped), ..gap });
        let unread = events.len();
        events.extend((11..=13).map(|msn| fpdu(msn, msn == 12)));
        (RecordedTraffic { events, unread, lost: 10 }, monitor)
    }

    /// Frames 1 to 3 of the evidence are the handshake. Frames 4 to 6 have the start-up frames and
    /// the tester's FPDU. Frames 7 to 9 have the FPDUs that the traffic log kept.
    #[test]
    fn judges_traffic_that_the_evidence_lacks() {
        let (traffic, overflow) = overflown();
        let frames = synthesize_frames(&traffic.events);
        let (findings, lost) = watch(&traffic, &frames, &overflow);
        let found: Vec<_> =
            findings.iter().map(|finding| (finding.requirement, finding.by_target, finding.packet)).collect();
        let rows = |packet| PAD_ROWS.map(|row| (row, true, packet));
        assert_eq!((found, lost), ([rows(None), rows(Some(8))].concat(), 0));
    }

    /// In the evidence, the dropped bytes look like frames that a capture has lost.
    #[test]
    fn the_evidence_alone_has_no_other_violation() {
        let (traffic, _) = overflown();
        let frames = synthesize_frames(&traffic.events);
        let (findings, _) = watch(&traffic, &frames, &OverflowMonitor::default());
        assert!(findings.iter().all(|finding| PAD_ROWS.contains(&finding.requirement)), "{findings:?}");
    }

    /// The monitor has read frames 7 to 16, which the evidence lacks.
    #[test]
    fn texts_have_the_numbers_of_the_evidence() {
        let (_, overflow) = overflown();
        let reading = overflow.lock().take().unwrap();
        let text = "a frame after frame 6, in frame 17 and frame 16: frame x";
        let expected = "a frame after frame 6, in frame 7 and a frame that the evidence lacks: frame x";
        assert_eq!(reading.renumbered(text), expected);
    }
}
