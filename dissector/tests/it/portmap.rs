//! Two port mapper daemons of Linux exchange messages. The monitor must find the violations that
//! `captures/README.md` describes.
#![expect(clippy::unwrap_used, reason = "the lint's exemption of tests does not reach their helpers")]

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use weft_core::requirement::Severity;
use weft_core::{RequirementId, requirement};
use weft_dissector::exchange::{Exchange, State};
use weft_dissector::source::Capture;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, FrameNumber, Sink};

type Frames = BTreeMap<RequirementId, BTreeSet<FrameNumber>>;

#[derive(Default)]
struct Collect {
    findings: Vec<Finding>,
    exchanges: Vec<Exchange>,
}

impl Sink for Collect {
    fn unit(&mut self, _: &Unit<'_>) {}

    fn finding(&mut self, finding: &Finding) {
        self.findings.push(finding.clone());
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        if over {
            self.exchanges.push(exchange.clone());
        }
    }
}

fn read() -> Collect {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/portmap/iwpmd-two-daemons.pcap");
    let mut capture = Capture::open(&path).unwrap();
    let (mut found, mut dissector) = (Collect::default(), Dissector::default());
    while let Some(frame) = capture.next_frame() {
        dissector.frame(&frame, &mut found);
    }
    dissector.finish(&mut found);
    found
}

fn frames(findings: &[Finding], severity: Severity) -> Frames {
    let mut frames = Frames::new();
    for finding in findings.iter().filter(|finding| finding.severity == severity) {
        frames.entry(finding.requirement).or_default().insert(finding.frame);
    }
    frames
}

/// The requests have 64 octets, and a port in Reserved. From frame 10 on, remains of an IPv6
/// message follow the IPv4 addresses.
#[test]
fn its_three_departures_are_found_and_nothing_else() {
    let found = read().findings;
    let requests = BTreeSet::from_iter([1, 4, 7, 10, 13, 15].into_iter().chain(18..=27).map(FrameNumber::from));
    let expected = Frames::from([
        (requirement!("PM-7.3-1"), requests.clone()),
        (requirement!("PM-7.3.1.3-2"), (10..=27).map(FrameNumber::from).collect()),
        (requirement!("PM-7.3.1.5-1"), requests),
    ]);
    assert_eq!(frames(&found, Severity::Error), expected);
    assert_eq!(frames(&found, Severity::Warning), Frames::new());
    // The PMDeny has the requested port. One of two contradicting sections requires this.
    assert_eq!(
        frames(&found, Severity::Note),
        Frames::from([(requirement!("PM-7.3.1.6-4"), BTreeSet::from([14.into()]))])
    );
}

#[test]
fn its_exchanges_are_reported() {
    let exchanges: Vec<_> = read()
        .exchanges
        .iter()
        .map(|exchange| (exchange.state(), exchange.requested.unwrap().port(), exchange.repeats[0]))
        .collect();
    use State::{Acknowledged, Denied, Requested};
    let expected = [
        (Acknowledged, 7000, 0),
        (Acknowledged, 7001, 0),
        (Acknowledged, 7000, 0),
        (Acknowledged, 7002, 0),
        (Denied, 7999, 0),
        (Acknowledged, 7000, 0),
        (Requested, 7000, 9),
    ];
    assert_eq!(exchanges, expected);
}
