//! Lets the monitor read the frames of a case, and keeps its findings.

use std::collections::HashMap;

use weft_core::RequirementId;
use weft_core::wire::portmap::UDP_PORT;
use weft_dissector::source::Frame as Captured;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Sink};
use weft_peer::driver::{Direction, EventContent, TrafficEvent};

use super::{Frames, LINKTYPE_ETHERNET};
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

/// Returns the monitor's findings in the frames of a traffic log, and the number of findings that
/// were not kept.
pub(crate) fn watch(traffic: &[TrafficEvent], frames: &Frames) -> (Vec<MonitorFinding>, u64) {
    let mut dissector = Dissector::default();
    if frames.source == EvidenceSource::Endpoint {
        dissector = dissector.recorded_by_an_end();
    }
    let mut findings = Findings::default();
    for (number, frame) in (1_u64..).zip(&frames.list) {
        let captured = Captured {
            number: number.into(),
            time: frame.at_ns,
            interface: 0,
            link_type: LINKTYPE_ETHERNET,
            octets: &frame.octets,
            wire_len: u32::try_from(frame.octets.len()).unwrap_or(u32::MAX),
        };
        dissector.frame(&captured, &mut findings);
    }
    dissector.finish(&mut findings);
    (findings.kept.iter().map(|finding| convert(traffic, finding)).collect(), findings.lost)
}

fn convert(traffic: &[TrafficEvent], finding: &Finding) -> MonitorFinding {
    // The monitor numbers connections by their first frames, as the traffic log does. Direction 0
    // is the direction from the end that connected.
    let opener = finding.stream.and_then(|stream| {
        let mut connected = traffic.iter().filter(|event| matches!(event.content, EventContent::Connected { .. }));
        connected.nth(stream.index()).map(|event| event.direction)
    });
    // For datagrams, which have no connection, direction 0 is the direction from the client. If the
    // tester is the port mapper, the target is the client.
    let asks = finding.stream.is_none() && traffic.iter().any(|event| is_from_client(&event.content));
    let by_opener = finding.direction == 0;
    let by_target = by_opener == (asks || opener == Some(Direction::FromTarget));
    MonitorFinding {
        requirement: finding.requirement,
        severity: finding.severity,
        text: format!("expected {}, found {}", finding.expected, finding.found),
        packet: Some(finding.frame.into()),
        by_target,
    }
}

/// Returns whether the tester is a port mapper, and the target its client.
fn is_from_client(content: &EventContent) -> bool {
    matches!(content, EventContent::Datagram { tester, .. } if tester.port() == UDP_PORT)
}

#[cfg(test)]
mod tests {
    use weft_core::requirement::Severity;
    use weft_dissector::FrameNumber;

    use super::*;

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
}
