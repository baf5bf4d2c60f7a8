//! Tests with captures of a software iWARP in user space, which departs from the RFCs. The
//! dissector must find exactly the departures that `captures/README.md` describes.
//!
//! [`CAPTURES`] has one line for each capture, with the departures that its frames show. D1 to D17
//! are the numbers of the departures in the README. D9, D10, D12, D13 and D16 are not visible in
//! captures. D3 is not visible if no start-up frame shows where FPDUs begin.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

use weft_core::requirement::Severity;
use weft_core::{RequirementId, requirement};

use weft_dissector::source::Capture;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Sink};

/// A departure, and the requirements for which the dissector reports errors or warnings because of
/// this departure.
struct Departure {
    name: &'static str,
    /// The requirements that have a finding in each capture with the departure.
    shown: &'static [RequirementId],
    /// The requirements that have a finding in only some of these captures.
    follows: &'static [RequirementId],
}

const DEPARTURES: &[Departure] = &[
    Departure { name: "D1", shown: &[requirement!("MPA-7.1.1-20")], follows: &[] },
    Departure { name: "D2", shown: &[requirement!("MPA-4.2-1")], follows: &[requirement!("MPA-4.3-16")] },
    Departure { name: "D3", shown: &[requirement!("MPA-4.2-4"), requirement!("MPA-4.3-5")], follows: &[] },
    Departure {
        name: "D4",
        shown: &[requirement!("MPA-4.3-4"), requirement!("MPA-4.3-12")],
        follows: &[requirement!("MPA-2-3"), requirement!("MPA-7.1.1-9")],
    },
    Departure {
        name: "D5",
        shown: &[
            requirement!("MPA-4.1-8"),
            requirement!("MPA-4.1-9"),
            requirement!("MPA-4.4-13"),
            requirement!("MPA-7.1.1-13"),
        ],
        follows: &[],
    },
    Departure {
        name: "D6",
        shown: &[requirement!("RDMAP-4.4-1"), requirement!("RDMAP-4.2-3")],
        // After this error the peer closes the connection without a Terminate.
        follows: &[requirement!("RDMAP-6.2.1-1")],
    },
    Departure { name: "D7", shown: &[requirement!("DDP-4.3-7")], follows: &[requirement!("DDP-4.3-6")] },
    Departure {
        name: "D11",
        shown: &[requirement!("MPA-4.1-1"), requirement!("DDP-6.1-2"), requirement!("RDMAP-6.1-3")],
        follows: &[],
    },
    Departure {
        name: "D14",
        shown: &[requirement!("MPA-7.1.2-11")],
        follows: &[requirement!("DDP-4.3-6"), requirement!("DDP-5.2-7")],
    },
    Departure { name: "D15", shown: &[requirement!("MPA-7.1.2-17"), requirement!("MPA-7.1.3-2")], follows: &[] },
    Departure {
        name: "D17",
        shown: &[requirement!("MPA-4.5-2"), requirement!("MPA-3-8")],
        // If the markers are wrong and CRC is off, the dissector does not find this departure,
        // because no octet is reliable.
        follows: &[requirement!("DDP-5.2-12")],
    },
];

const CAPTURES: &[(&str, &[&str])] = &[
    ("g-mix-m0c0-mtu64k", &["D1", "D5", "D6", "D7"]),
    ("g-mix-m0c1-mtu1500", &["D1", "D6", "D7"]),
    ("g-neg-responder-insists-m1c1-refuses", &["D1"]),
    ("g-recv-abort-m1c1", &["D1"]),
    ("g-send-1100-m1c1-oneway", &["D1", "D2", "D3"]),
    ("g-send-abort-m1c0", &["D1", "D5"]),
    ("g-taggedwRTT-3000-m0c1", &["D1", "D15"]),
    ("g-taggedwRTT-601-m0c0", &["D1", "D5", "D15"]),
    ("g-test_mpa-startup", &["D1"]),
    ("g-test_msg-1200-m0c0-nostart", &[]),
    ("g-test_rdmap-600-stuck", &["D14"]),
    ("g-untaggedRTT-5001-m0c1", &["D1", "D15"]),
    ("g-untaggedRTT-700-m0c0", &["D1", "D5", "D15"]),
    ("g-verbsTest-m0c0", &["D1", "D5", "D6", "D7"]),
    ("g-verbsTest-m0c1", &["D1", "D6", "D7"]),
    ("rx-front-and-precrc-m1c1", &["D1", "D2", "D3", "D4"]),
    ("rx-large-20000-m1c1-mtu64k", &["D1", "D2", "D4", "D6", "D7"]),
    ("rx-listener-is-mpa-initiator-m1c1", &["D1", "D2", "D4", "D15", "D17"]),
    ("rx-mix-m1c1-mtu1500", &["D1", "D2", "D4", "D6", "D7", "D17"]),
    ("rx-neg-responder-adopts-m1c1", &["D1", "D2", "D4"]),
    ("rx-neg-responder-m0c1-initiator-m1c1", &["D1", "D2", "D4"]),
    ("rx-precrc-marker-stops-sender-m1c1", &["D1", "D2", "D4", "D6", "D7", "D11", "D17"]),
    ("rx-sweep-small-m1c1", &["D1", "D2", "D4"]),
    ("rx-taggedwRTT-2500-m1c1", &["D1", "D2", "D3", "D4", "D15", "D17"]),
    ("rx-test_rdmap-600", &["D2", "D4", "D6", "D14"]),
    ("rx-untaggedRTT-1000-m1c1", &["D1", "D2", "D3", "D4", "D15"]),
    ("rx-verbsTest-m1c1", &["D1", "D2", "D3", "D4", "D6", "D7"]),
    ("len-mix-m1c0-mtu1500", &["D1", "D2", "D5", "D6", "D7", "D17"]),
    ("len-sweep-small-m1c0", &["D1", "D2", "D5"]),
    ("rfc-front-and-precrc-m1c1", &[]),
    ("rfc-large-30000-m1c1-mtu64k", &[]),
    ("rfc-mix-m0c0-mtu1500", &[]),
    ("rfc-mix-m1c0-mtu600", &["D17"]),
    ("rfc-mix-m1c1-mtu1500", &["D17"]),
    ("rfc-sweep-small-m1c1", &[]),
];

/// Requirements about the defaults of an endpoint that nobody has configured. A capture does not
/// show whether somebody has configured the endpoint.
const DEFAULTS: [RequirementId; 3] = [requirement!("MPA-1.2-3"), requirement!("MPA-4.4-4"), requirement!("MPA-4.4-5")];

fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/osc")
}

fn findings(name: &str) -> Vec<Finding> {
    struct Collect(Vec<Finding>);
    impl Sink for Collect {
        fn unit(&mut self, _: &Unit<'_>) {}
        fn finding(&mut self, finding: &Finding) {
            self.0.push(finding.clone());
        }
    }
    let mut found = Collect(Vec::new());
    let mut capture = Capture::open(&folder().join(format!("{name}.pcap"))).unwrap();
    let mut dissector = Dissector::default();
    while let Some(frame) = capture.next_frame() {
        dissector.frame(&frame, &mut found);
    }
    dissector.finish(&mut found);
    assert_eq!(capture.note(), None, "{name}");
    found.0
}

/// The requirement ids of the findings with a severity in `severities`.
fn ids(findings: &[Finding], severities: &[Severity]) -> BTreeSet<RequirementId> {
    let of = findings.iter().filter(|finding| severities.contains(&finding.severity));
    of.map(|finding| finding.requirement).collect()
}

#[test]
fn each_departure_is_found_and_nothing_else() {
    let mut wrong = Vec::new();
    for (capture, names) in CAPTURES {
        let found = ids(&findings(capture), &[Severity::Error, Severity::Warning]);
        let departures: Vec<_> =
            names.iter().map(|name| DEPARTURES.iter().find(|d| d.name == *name).unwrap()).collect();
        for departure in &departures {
            let missing = departure.shown.iter().filter(|id| !found.contains(id));
            wrong.extend(missing.map(|id| format!("{capture}: departure {} has no finding {id}", departure.name)));
        }
        let explained = |id: &RequirementId| departures.iter().any(|d| d.shown.contains(id) || d.follows.contains(id));
        let more = found.iter().filter(|id| !explained(id));
        wrong.extend(more.map(|id| format!("{capture}: the finding {id} belongs to no departure of this capture")));
    }
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn every_capture_has_its_line() {
    let mut files: Vec<String> = std::fs::read_dir(folder())
        .unwrap()
        .map(|entry| entry.unwrap().path().file_stem().unwrap().to_string_lossy().into_owned())
        .collect();
    let mut lines: Vec<&str> = CAPTURES.iter().map(|(name, _)| *name).collect();
    files.sort();
    lines.sort_unstable();
    assert_eq!(files, lines);
}

/// A capture does not show whether CRC and markers are off by default or by configuration.
#[test]
fn rows_about_defaults_are_notes() {
    let mut seen = BTreeSet::new();
    for (capture, _) in CAPTURES {
        let found = findings(capture);
        let loud = ids(&found, &[Severity::Error, Severity::Warning]);
        assert!(DEFAULTS.iter().all(|id| !loud.contains(id)), "{capture}: {loud:?}");
        seen.extend(ids(&found, &[Severity::Note]));
    }
    assert!(DEFAULTS.iter().all(|id| seen.contains(id)), "{seen:?}");
}

/// D8: a responder requires a setting that the Request does not have. It closes the connection
/// without a Reply.
#[test]
fn a_close_in_place_of_a_reply_is_a_note() {
    let notes = ids(&findings("g-neg-responder-insists-m1c1-refuses"), &[Severity::Note]);
    for id in [requirement!("MPA-7.1.2-5"), requirement!("MPA-7.1.2-8"), requirement!("MPA-7.1.2-20")] {
        assert!(notes.contains(&id), "{id}: {notes:?}");
    }
}
