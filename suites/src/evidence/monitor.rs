//! Lets the monitor read the frames of a case, and keeps its findings.

use weft_core::wire::portmap::UDP_PORT;
use weft_dissector::source::Frame as Captured;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Sink};
use weft_peer::driver::{Direction, TapeEvent, What};

use super::{Frames, LINKTYPE_ETHERNET};
use crate::model::{EvidenceSource, Seen};

/// Maximum number of findings that are kept for one case.
const MAX_SEEN: usize = 1000;

#[derive(Default)]
struct Findings {
    kept: Vec<Finding>,
    lost: u64,
}

impl Sink for Findings {
    fn unit(&mut self, _: &Unit<'_>) {}

    fn finding(&mut self, finding: &Finding) {
        if self.kept.len() < MAX_SEEN {
            self.kept.push(finding.clone());
        } else {
            self.lost += 1;
        }
    }
}

/// Returns the monitor's findings in the frames of a tape, and the number of findings that were not
/// kept.
pub(crate) fn watch(tape: &[TapeEvent], frames: &Frames) -> (Vec<Seen>, u64) {
    let mut dissector = Dissector::default();
    if frames.source == EvidenceSource::Endpoint {
        dissector = dissector.recorded_by_an_end();
    }
    let mut findings = Findings::default();
    for (number, frame) in (1..).zip(&frames.list) {
        let captured = Captured {
            number,
            time: frame.at_ns,
            interface: 0,
            link_type: LINKTYPE_ETHERNET,
            octets: &frame.octets,
            wire_len: u32::try_from(frame.octets.len()).unwrap_or(u32::MAX),
        };
        dissector.frame(&captured, &mut findings);
    }
    dissector.finish(&mut findings);
    (findings.kept.iter().map(|finding| seen(tape, finding)).collect(), findings.lost)
}

fn seen(tape: &[TapeEvent], finding: &Finding) -> Seen {
    // The monitor numbers connections by their first frames, as the tape does. Direction 0 is that
    // of the end that connected.
    let opener = finding.stream.and_then(|stream| {
        let mut connected = tape.iter().filter(|event| matches!(event.what, What::Connected { .. }));
        connected.nth(stream.index()).map(|event| event.direction)
    });
    // For datagrams, which have no connection, direction 0 is that of the client. If the tester is
    // the port mapper, the target is the client.
    let asks = finding.stream.is_none() && tape.iter().any(|event| is_from_client(&event.what));
    let by_opener = finding.direction == 0;
    let by_target = by_opener == (asks || opener == Some(Direction::FromTarget));
    Seen {
        requirement: finding.requirement,
        severity: finding.severity,
        text: format!("expected {}, found {}", finding.expected, finding.found),
        packet: Some(finding.frame),
        by_target,
    }
}

/// Returns whether the tester is a port mapper, and the target its client.
fn is_from_client(what: &What) -> bool {
    matches!(what, What::Datagram { tester, .. } if tester.port() == UDP_PORT)
}
