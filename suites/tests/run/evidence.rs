//! Tests the evidence. Every case writes its files to the paths that its result names, and other
//! programs can read these files.

use std::path::Path;
use std::process::Command;

use crate::common::{deviating, key_case, one_case, run};
use weft_dissector::source::Capture;
use weft_dissector::unit::{Kind, Unit};
use weft_dissector::{Dissector, Finding, Sink};
use weft_suites::Filter;
use weft_suites::model::{CaseResult, EvidenceKind, ParameterValue, RunReport, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

#[derive(Default)]
struct Count {
    startups: usize,
    fpdus: usize,
    findings: Vec<Finding>,
}

impl Sink for Count {
    fn unit(&mut self, unit: &Unit<'_>) {
        match unit.kind {
            Kind::Startup(..) => self.startups += 1,
            Kind::Fpdu(_) => self.fpdus += 1,
            _ => {}
        }
    }

    fn finding(&mut self, finding: &Finding) {
        self.findings.push(finding.clone());
    }
}

/// Reads a capture as `weft dissect` does.
fn dissected(path: &Path) -> Count {
    let mut capture = Capture::open(path).unwrap();
    let (mut dissector, mut count) = (Dissector::default(), Count::default());
    while let Some(frame) = capture.next_frame() {
        dissector.frame(&frame, &mut count);
    }
    dissector.finish(&mut count);
    assert_eq!(capture.note(), None);
    count
}

fn pcapng(report: &RunReport, out: &Path, index: usize) -> std::path::PathBuf {
    out.join(report.results[index].evidence.path(EvidenceKind::Pcapng).unwrap())
}

#[tokio::test]
async fn paths_are_predictable_and_the_transcript_is_the_result() {
    let out = tempfile::tempdir().unwrap();
    let report = key_case(Target::builtin(), out.path()).await;
    for (octet, result) in report.results.iter().enumerate() {
        let folder = format!("cases/mpa/7.1.1-key/wrong-octet/octet={octet}");
        assert_eq!(result.evidence.folder, folder);
        let text = std::fs::read_to_string(out.path().join(&folder).join("transcript.json")).unwrap();
        assert_eq!(serde_json::from_str::<CaseResult>(&text).unwrap(), *result);
        assert!(out.path().join(&folder).join("evidence.pcapng").is_file());
    }
}

#[tokio::test]
async fn the_dissector_reads_the_packets_of_a_pass() {
    let out = tempfile::tempdir().unwrap();
    let report = key_case(Target::builtin_tcp(), out.path()).await;
    let count = dissected(&pcapng(&report, out.path(), 3));
    // There are two good exchanges, each with a Request, a Reply, a Send and its echo. The frame
    // with the wrong key does not count, because it is not a start-up frame.
    assert_eq!((count.startups, count.fpdus), (4, 4));
    // The tester violated the rules of an initiator on purpose. The target violated no rule.
    assert!(count.findings.iter().all(|finding| finding.direction == 0), "{:?}", count.findings);
}

#[tokio::test]
async fn the_dissector_finds_the_failure_in_the_packets() {
    let out = tempfile::tempdir().unwrap();
    let report = key_case(deviating(), out.path()).await;
    let count = dissected(&pcapng(&report, out.path(), 3));
    let by_target: Vec<_> = count.findings.iter().filter(|finding| finding.direction == 1).collect();
    assert_eq!(by_target.iter().map(|finding| finding.requirement.as_str()).collect::<Vec<_>>(), ["MPA-7.1.1-2"]);
    let finding = report.results[3].findings.iter().find(|finding| finding.by_target).unwrap();
    assert_eq!(finding.packet, Some(by_target[0].frame.into()));
    // The script failed the case because of the same frame.
    assert_eq!(report.results[3].decided_packet, finding.packet);
    // The Reply of 20 bytes is the first that the target sends on its connection.
    assert_eq!(report.results[3].decided_sequence, Some([1, 20]));
}

/// tshark checks the capture independently. If tshark is not installed, only the dissector checks
/// the capture, in the previous test.
#[tokio::test]
async fn tshark_shows_packets_with_their_comments() {
    let out = tempfile::tempdir().unwrap();
    let report = key_case(deviating(), out.path()).await;
    let fields = ["-T", "fields", "-e", "frame.comment", "-e", "tcp.checksum.status", "-e", "ip.checksum.status"];
    let check = ["-o", "tcp.check_checksum:TRUE", "-o", "ip.check_checksum:TRUE"];
    let mut command = Command::new("tshark");
    command.arg("-r").arg(pcapng(&report, out.path(), 3)).args(check).args(fields);
    let Ok(output) = command.output() else {
        eprintln!("tshark is not installed");
        return;
    };
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    assert!(text.contains("stimulus, bytes 3 to 3: byte 3 changed"), "{text}");
    assert!(text.contains("fail: MPA-7.1.1-2: it sent an MPA Reply"), "{text}");
    // Every packet has good checksums (1), and no packet is malformed.
    let is_good = |line: &str| line.ends_with("\t1\t1");
    assert!(text.lines().count() == 17 && text.lines().all(is_good), "{text}");
}

/// The text of a parameter can be longer than the maximum length of a file name.
#[tokio::test]
async fn a_long_parameter_has_a_folder_and_keeps_its_text() {
    let out = tempfile::tempdir().unwrap();
    let script = "case { id = 'mpa/x/one', version = 1, title = 'One', requirements = { 'MPA-7.1.1-2' }, roles = { 'responder' }, \
                  parameters = { text = { ('x'):rep(300) .. 'a', ('x'):rep(300) .. 'b' } }, run = function(t, p) t:good_exchange() end }";
    let suites = out.path().join("suites");
    std::fs::create_dir_all(suites.join("mpa")).unwrap();
    std::fs::write(suites.join("mpa/x.lua"), script).unwrap();
    let suites = Suites::from_folder(&suites).unwrap();
    let (report, _) = run(Target::builtin(), suites, Filter::everything(), out.path()).await;
    let texts: Vec<_> = report.results.iter().map(|result| result.key.parameters["text"].clone()).collect();
    assert_eq!(texts, ["a", "b"].map(|last| ParameterValue::Text("x".repeat(300) + last)));
    for result in &report.results {
        let file = out.path().join(result.evidence.path(EvidenceKind::Transcript).unwrap());
        let text = std::fs::read_to_string(file).unwrap();
        assert_eq!(serde_json::from_str::<CaseResult>(&text).unwrap(), *result);
    }
}

/// The target echoes 1,500 Sends. Each FPDU has 1,024 bytes: the length (2), the DDP header (18),
/// the payload (1,000) and the CRC (4). The capture keeps 1 MiB.
#[tokio::test]
async fn a_long_case_keeps_its_verdict_and_the_end_of_its_capture() {
    let out = tempfile::tempdir().unwrap();
    let body = "t:good_exchange()\nlocal c, data = t:start_up {}, ('x'):rep(1000)\n\
                for i = 1, 1500 do\nc:send(mpa.fpdu { ulpdu = rdmap.send { payload = data, msn = i } })\n\
                c:expect_fpdu { opcode = 3, payload = data }\nend\nc:close()\n\
                c = t:connect()\nc:send(t:request():flip(1))\nc:expect_close { requirement = 'MPA-7.1.1-2' }\nt:liveness()";
    let file = "name = \"b\"\nkind = \"builtin\"\n[limits]\nevidence_mib = 1\n";
    let (target, suites) = (Target::from_toml("b.toml", file).unwrap(), one_case(out.path(), body));
    let (report, _) = run(target, Suites::from_folder(&suites).unwrap(), Filter::everything(), out.path()).await;
    let result = &report.results[0];
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    assert!(result.explanation.contains(" The evidence lacks "), "{}", result.explanation);
    assert!(result.findings.iter().all(|finding| !finding.by_target), "{:?}", result.findings);
    let dropped = &result.evidence.dropped;
    assert_eq!(dropped.len(), 2, "{dropped:?}");
    for dropped in dropped {
        assert_eq!((dropped.connection, dropped.octets % 1024, dropped.crc32c.len()), (2, 0, 8), "{dropped:?}");
    }
    // For other readers, the capture has lost frames. They find no violation of the target in it.
    let path = pcapng(&report, out.path(), 0);
    let count = dissected(&path);
    assert!((100..2900).contains(&count.fpdus), "{}", count.fpdus);
    assert!(count.findings.iter().all(|finding| finding.direction == 0), "{:?}", count.findings);
    let octets = std::fs::read(&path).unwrap();
    let comment = b"before this packet, the capture lacks ";
    assert_eq!(octets.windows(comment.len()).filter(|window| *window == comment).count(), 2);
}
