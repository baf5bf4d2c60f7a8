//! Tests the diagnosis with the captures of the project. Each connection must have exactly one
//! diagnosis, with a short paragraph. For some captures, `captures/README.md` describes why the
//! connection ended. The diagnosis must agree.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use weft_dissector::context::Context;
use weft_dissector::diagnosis::{Cause, Culprit, Diagnoses, Diagnosis};
use weft_dissector::exchange::Exchange;
use weft_dissector::fact::Fact;
use weft_dissector::source::Capture;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Packet, Sink, StreamId, TcpSegment, TransportKind};

/// Maximum number of characters of a paragraph.
const LONGEST: usize = 4000;

/// The diagnoses of a capture, and the numbers of its connections.
#[derive(Default)]
pub(crate) struct Collected {
    pub(crate) diagnoses: Diagnoses,
    streams: BTreeSet<StreamId>,
}

impl Sink for Collected {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.diagnoses.unit(unit);
    }

    fn finding(&mut self, finding: &Finding) {
        self.diagnoses.finding(finding);
    }

    fn fact(&mut self, stream: StreamId, fact: &Fact) {
        self.diagnoses.fact(stream, fact);
    }

    fn exchange(&mut self, exchange: &Exchange, over: bool) {
        self.diagnoses.exchange(exchange, over);
    }

    fn ended(&mut self, stream: StreamId, context: &Context) {
        self.diagnoses.ended(stream, context);
    }

    fn packet(&mut self, packet: &Packet) {
        if let TransportKind::Tcp { stream, .. } = packet.transport {
            self.streams.insert(stream);
        }
    }

    fn segment(&mut self, stream: StreamId, segment: &TcpSegment<'_>) {
        self.diagnoses.segment(stream, segment);
    }
}

pub(crate) fn read(path: &Path) -> Collected {
    read_some(path, |_| true)
}

/// Reads the frames of a capture that `keep` selects. The first frame has number 1.
pub(crate) fn read_some(path: &Path, keep: impl Fn(u64) -> bool) -> Collected {
    let mut collected = Collected::default();
    let mut capture = Capture::open(path).unwrap();
    let mut dissector = Dissector::default();
    let mut number = 0;
    while let Some(frame) = capture.next_frame() {
        number += 1;
        if keep(number) {
            dissector.frame(&frame, &mut collected);
        }
    }
    dissector.finish(&mut collected);
    collected.diagnoses.finish();
    collected
}

/// The diagnoses of a capture in the folder `captures`.
fn diagnoses(name: &str) -> Vec<Diagnosis> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures").join(name);
    read(&path).diagnoses.connections().cloned().collect()
}

fn verdicts(name: &str) -> Vec<(Cause, Culprit)> {
    diagnoses(name).iter().map(|diagnosis| (diagnosis.cause, diagnosis.culprit)).collect()
}

/// The files below `folder` that are captures.
fn files(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy();
        if path.is_dir() {
            files(&path, found);
        } else if name.contains(".pcap") {
            found.push(path);
        }
    }
}

#[test]
fn each_connection_of_each_capture_has_one_diagnosis() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut paths = Vec::new();
    files(&root.join("../captures"), &mut paths);
    files(&root.join("tests/captures"), &mut paths);
    assert!(paths.len() > 40, "{}", paths.len());
    for path in paths {
        let Collected { diagnoses, streams } = read(&path);
        let count = diagnoses.connections().count() as u64 + diagnoses.others() + diagnoses.unstored();
        assert_eq!(count, streams.len() as u64, "{}", path.display());
        for diagnosis in diagnoses.connections() {
            let text = diagnosis.to_string();
            assert!(!text.is_empty() && text.len() < LONGEST, "{}: {text}", path.display());
            let culprit = diagnosis.culprit_end();
            assert!(culprit.is_none_or(|end| text.contains(end)), "{}: {text}", path.display());
        }
    }
}

/// The server reads 200 bytes into a buffer of 64 bytes, and rejects the response.
#[test]
fn the_reader_with_the_short_buffer_is_at_fault() {
    let found = diagnoses("siw/rping-size-mismatch-terminate.pcap");
    let [one] = &found[..] else { panic!("{found:#?}") };
    assert_eq!((one.cause, one.culprit_end()), (Cause::OwnReadRequest, Some("10.1.0.1:7174")), "{one}");
}

#[test]
fn rejections_name_the_responder() {
    for name in ["siw/reject-mpa1.pcap", "siw/reject-crc-not-wanted.pcap"] {
        assert_eq!(verdicts(name), [(Cause::Rejected, Culprit::Second)], "{name}");
    }
    assert_eq!(verdicts("siw/refused-no-listener.pcap"), [(Cause::Refused, Culprit::NotInCapture)]);
}

#[test]
fn a_send_without_a_receive_is_named() {
    assert_eq!(verdicts("siw/terminate-no-receive-crc.pcap"), [(Cause::NoReceiveBuffer, Culprit::NotInCapture)]);
}

/// The initiator sends 16 Requests with a wrong key, and siw closes each of these connections.
#[test]
fn wrong_keys_are_the_fault_of_their_sender() {
    let found = verdicts("siw/wrong-key-16-octets.pcap");
    let wrong = found.iter().filter(|verdict| **verdict == (Cause::WrongKey, Culprit::First)).count();
    assert_eq!(wrong, 16, "{found:?}");
}

/// Six connections, each ended by a Terminate. Each violation is provoked on purpose.
#[test]
fn six_violations_have_six_causes() {
    let found = verdicts("siw/violations-6-kinds-crc.pcap");
    assert_eq!(found.len(), 6, "{found:?}");
    assert!(found.iter().all(|(cause, _)| *cause != Cause::None && *cause != Cause::Violations), "{found:?}");
    assert!(found.iter().all(|(_, culprit)| *culprit != Culprit::Second), "{found:?}");
}

/// No endpoint sends a Terminate, and no frame is lost.
#[test]
fn an_orderly_ping_has_no_faulty_message() {
    for (cause, culprit) in verdicts("siw/rping-p2p-crc.pcap") {
        assert!(!matches!(cause, Cause::BeyondBuffer | Cause::BadCrc | Cause::Message), "{cause:?}");
        assert_ne!(culprit, Culprit::Network);
    }
}

/// Reads the capture with six violations into `sink`.
fn read_violations(sink: &mut dyn Sink) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw/violations-6-kinds-crc.pcap");
    let mut capture = Capture::open(&path).unwrap();
    let mut dissector = Dissector::default();
    while let Some(frame) = capture.next_frame() {
        dissector.frame(&frame, sink);
    }
    dissector.finish(sink);
}

#[test]
fn connections_beyond_the_limits_are_counted() {
    for (limits, stored) in [((2, usize::MAX), 2), ((9, 0), 0), ((9, 6), 6)] {
        let mut diagnoses = Diagnoses::with_limits(limits.0, limits.1);
        read_violations(&mut diagnoses);
        diagnoses.finish();
        assert_eq!(diagnoses.connections().count(), stored, "{limits:?}");
        assert_eq!(diagnoses.unstored(), 6 - stored as u64, "{limits:?}");
        assert!(stored < 6 || diagnoses.of(0.into()).is_some(), "{limits:?}");
    }
}

/// The capture has 153 packets (captures/README.md).
#[test]
fn both_sinks_of_a_pair_receive_everything() {
    #[derive(Default)]
    struct Count([u64; 2]);
    impl Sink for Count {
        fn unit(&mut self, _: &Unit<'_>) {
            self.0[0] += 1;
        }

        fn packet(&mut self, _: &Packet) {
            self.0[1] += 1;
        }
    }
    let mut pair = (Count::default(), (Some(Count::default()), None::<Count>));
    read_violations(&mut pair);
    let (Count(one), (Some(Count(other)), None)) = pair else { panic!("a sink is missing") };
    assert!(one == other && one[0] > 60 && one[1] > 100, "{one:?} {other:?}");
}

#[test]
fn the_first_sentence_begins_the_paragraph() {
    for diagnosis in diagnoses("siw/violations-6-kinds-crc.pcap") {
        let text = diagnosis.to_string().replace("\n  ", " ");
        assert!(text.starts_with(&diagnosis.sentence()) && diagnosis.is_failure(), "{text}");
        assert!(text.ends_with(&diagnosis.details()), "{text}");
    }
    let healthy = &diagnoses("siw/rping-crc.pcap")[0];
    assert!(healthy.to_string().replace("\n  ", " ").starts_with(&healthy.sentence()) && !healthy.is_failure());
}

/// captures/causes/README.md: three outstanding Reads with an IRD of 2. The Reply also ignores a
/// recommendation.
#[test]
fn the_paragraph_names_the_fault_first_and_accuses_no_one_for_a_recommendation() {
    let found = &diagnoses("causes/reads-beyond-ird.pcap")[0];
    let (sentence, details) = (found.sentence(), found.details());
    assert!(
        sentence.starts_with("connection 0, 10.20.56.11:40627 to 10.20.56.21:7174: 10.20.56.11 sent"),
        "{sentence}"
    );
    assert!(sentence.contains("3 unanswered Read Requests instead of at most 2"), "{sentence}");
    assert!(details.starts_with("At fault: 10.20.56.11. To the vendor of 10.20.56.11: see P2P-9.1-9 "), "{details}");
    assert!(!details.contains("P2P-9.1-7") && details.contains("`weft lint` also lists 1 warning."), "{details}");
    assert!(details.contains(" UTC, the last one 0.005 s later."), "{details}");
}

/// captures/causes/README.md: the capture has only the segments of the server.
#[test]
fn an_access_that_only_the_terminate_shows_is_not_stated_as_captured() {
    let found = &diagnoses("causes/half-terminate.pcap")[0];
    assert!(found.headline.ends_with(" (known only from the header in the Terminate)"), "{found}");
    let found = &diagnoses("causes/write-wrong-stag.pcap")[0];
    assert!(!found.headline.contains("known only"), "{found}");
}
