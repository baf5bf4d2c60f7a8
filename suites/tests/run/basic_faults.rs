//! Tests with a small responder that has one basic fault. Other authors wrote this responder only
//! from the RFCs. A basic case (a case that only needs normal traffic) must name the fault. No case
//! is allowed to report a rule that the responder follows.

use std::collections::BTreeSet;
use std::io::{BufRead, BufReader};
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use crate::common::{has, run, with_all_steps};
use crate::relay::{echo, relay};
use weft_peer::Settings;
use weft_suites::Filter;
use weft_suites::model::{CaseResult, Direction, RunReport, Tier, Verdict};
use weft_suites::script::Suites;
use weft_suites::targets::Target;

/// Words that select all cases that can apply to the responder.
const ALL: [&str; 4] = ["mpa", "mpa-p2p", "ddp", "rdmap"];

/// These cases test or use a behaviour that one of the faults changes.
const CASES: [&str; 13] = [
    "basic",
    "ddp/4.1-control/last",
    "ddp/5.2-segmentation/echo",
    "ddp/5.2-segmentation/empty",
    "ddp/5.2-segmentation/numbers",
    "ddp/7.1-untagged/mo",
    "mpa/4.1-fpdu/echo",
    "mpa/4.1-fpdu/joined",
    "mpa/4.1-fpdu/pad",
    "mpa/7.1.1-flags/accepts",
    "mpa/7.1.2-startup/first-fpdu-at-once",
    "mpa/7.1.2-startup/waits-for-first-fpdu",
    "rdmap/6.1-mode/only-messages",
];

/// The process of `interop/basic/responder.py`. It ends when this value is dropped.
struct Responder {
    child: Child,
    address: String,
}

impl Responder {
    /// Returns `None` if this machine has no Python.
    fn start(fault: &str) -> Option<Self> {
        if !has("python3") {
            return None;
        }
        let script = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../interop/basic/responder.py");
        let mut command = Command::new("python3");
        let mut child = command.arg(script).args(["--fault", fault]).stdout(Stdio::piped()).spawn().unwrap();
        let mut address = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut address).unwrap();
        Some(Responder { child, address: address.trim().to_owned() })
    }
}

impl Drop for Responder {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

async fn report_of(fault: &str) -> Option<RunReport> {
    report_of_cases(fault, &CASES).await
}

async fn report_of_cases(fault: &str, cases: &[&str]) -> Option<RunReport> {
    report_with(fault, "service = \"echo\"\ncapabilities = [\"crc\"]", cases, Tier::Smoke).await
}

/// Runs cases against the responder with this fault. `lines` are the lines of the target file that
/// set the service and the capabilities.
async fn report_with(fault: &str, lines: &str, cases: &[&str], tier: Tier) -> Option<RunReport> {
    let responder = Responder::start(fault)?;
    let text =
        format!("name = \"basic\"\nkind = \"tcp\"\naddress = \"{}\"\ntime_scale = 0.1\n{lines}\n", responder.address);
    let target = Target::from_toml("basic.toml", &text).unwrap();
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of(cases.iter().copied()).tier(tier);
    Some(run(target, Suites::embedded().unwrap(), filter, out.path()).await.0)
}

fn failed(report: &RunReport) -> Vec<&CaseResult> {
    report.results.iter().filter(|result| result.verdict >= Verdict::Fail).collect()
}

/// A fault, the case that names the fault, and the requirements that the fault violates.
type Fault = (&'static str, &'static str, &'static [&'static str]);

const PAD: Fault = ("pad", "mpa/4-basic/pad", &["MPA-4.1-5"]);
const LENGTH: Fault = ("length", "mpa/4-basic/length", &["MPA-4.1-1", "MPA-5.2-1"]);
const MSN: Fault = ("msn", "ddp/4.3-basic/first-number", &["DDP-4.3-7"]);
const CRC: Fault = ("crc", "mpa/4-basic/crc", &["MPA-4.1-6", "MPA-4.4-14", "MPA-4.4-15", "MPA-4.4-19"]);
/// This responder ignores MO. The segments of a message normally arrive in order, so only a case
/// that sends a wrong MO, or segments in another order, shows the fault.
const MO: Fault =
    ("mo", "ddp/7.1-untagged/mo", &["DDP-5.2-4", "DDP-5.4-3", "DDP-7.1-7", "DDP-7.2-11", "RDMAP-6.2.1-1"]);

/// Runs [`CASES`] against a responder with this fault. Checks that the case of the fault fails, and
/// that only the requirements of the fault fail. If another case is inconclusive, it must name the
/// case of the fault. This does not apply to other basic cases.
async fn is_named(fault: Fault) {
    if let Some(report) = report_of(fault.0).await {
        blames_no_other(&report, fault);
    }
}

/// Does the same as [`is_named`], with every variant of an ordinary run.
async fn is_named_by_all(fault: Fault) {
    let lines = "service = \"echo\"\ncapabilities = [\"crc\"]";
    if let Some(report) = report_with(fault.0, lines, &ALL, Tier::Default).await {
        assert!(report.results.len() > 1000, "{} results", report.results.len());
        blames_no_other(&report, fault);
    }
}

fn blames_no_other(report: &RunReport, (fault, case, rows): Fault) {
    let failed = failed(report);
    assert!(failed.iter().any(|result| result.key.case == case), "{fault}: {:?}", report.summary);
    let broken: BTreeSet<&str> = report.summary.failing.iter().map(|row| row.as_str()).collect();
    let innocent: Vec<_> = broken.iter().filter(|row| !rows.contains(row)).collect();
    let explanations: Vec<String> =
        failed.iter().map(|result| format!("{}: {}", result.key, result.explanation)).collect();
    assert!(innocent.is_empty(), "{fault}: {innocent:?}\n{}", explanations.join("\n"));
    for result in report.results.iter().filter(|result| result.verdict == Verdict::Inconclusive) {
        let named = result.explanation.contains(case);
        assert!(named || result.key.case.contains("basic"), "{fault}: {}: {}", result.key, result.explanation);
    }
}

#[tokio::test]
async fn the_responder_without_a_fault_passes() {
    let Some(report) = report_of("none").await else { return };
    for result in &report.results {
        let is_good = matches!(result.verdict, Verdict::Pass | Verdict::NotApplicable);
        assert!(is_good, "{}: {}", result.key, result.explanation);
    }
    assert!(report.results.first().is_some_and(|result| result.key.case.contains("basic")));
    assert_eq!(report.summary.failing, []);
}

#[tokio::test]
async fn an_exchanged_pad_is_named() {
    is_named(PAD).await;
}

#[tokio::test]
async fn a_length_in_the_other_order_is_named() {
    is_named(LENGTH).await;
}

#[tokio::test]
async fn numbers_from_0_are_named() {
    is_named(MSN).await;
}

#[tokio::test]
async fn a_crc_over_too_little_is_named() {
    is_named(CRC).await;
}

#[tokio::test]
async fn an_offset_that_is_ignored_is_named() {
    is_named(MO).await;
}

#[tokio::test]
#[ignore = "minutes; .ci/checks/basic-faults runs it"]
async fn every_case_blames_an_exchanged_pad_alone() {
    is_named_by_all(PAD).await;
}

#[tokio::test]
#[ignore = "minutes; .ci/checks/basic-faults runs it"]
async fn every_case_blames_a_length_in_the_other_order_alone() {
    is_named_by_all(LENGTH).await;
}

#[tokio::test]
#[ignore = "minutes; .ci/checks/basic-faults runs it"]
async fn every_case_blames_numbers_from_0_alone() {
    is_named_by_all(MSN).await;
}

#[tokio::test]
#[ignore = "minutes; .ci/checks/basic-faults runs it"]
async fn every_case_blames_a_crc_over_too_little_alone() {
    is_named_by_all(CRC).await;
}

#[tokio::test]
#[ignore = "minutes; .ci/checks/basic-faults runs it"]
async fn every_case_blames_an_offset_that_is_ignored_alone() {
    is_named_by_all(MO).await;
}

/// Only a Request with private data shows this fault, so no other case fails.
#[tokio::test]
async fn a_private_data_length_in_the_other_order_is_named() {
    let cases = [
        "basic",
        "mpa/7.1.1-pd-length/taken[length=512]",
        "mpa/7.1.1-pd-length/too-long",
        "mpa/7.1.1-pd-length/surplus",
        "mpa/7.1.2-startup/malformed-at-once",
        "mpa/7.1.2-startup/split-request",
    ];
    let Some(report) = report_of_cases("private-data", &cases).await else { return };
    let failed: Vec<&str> = failed(&report).iter().map(|result| result.key.case.as_str()).collect();
    assert_eq!(failed, ["mpa/7.1.1-pd-length/taken"]);
    let split = report.results.iter().find(|result| result.key.case.ends_with("split-request")).unwrap();
    assert_eq!(split.verdict, Verdict::Inconclusive);
    let expected =
        "In the control run, after a legal MPA Request, it closed the connection when its Reply was expected.";
    assert!(split.explanation.contains(expected), "{}", split.explanation);
}

/// Checks the sizes of the Sends that the target received, and the sizes of the Sends that it
/// returned.
#[tokio::test]
async fn the_basic_cases_echo_every_small_size() {
    let out = tempfile::tempdir().unwrap();
    let filter = Filter::of(["mpa/4-basic/sizes"]).tier(Tier::Smoke);
    let (report, _) = run(Target::builtin(), Suites::embedded().unwrap(), filter, out.path()).await;
    let results: Vec<CaseResult> = report.results.iter().map(|result| with_all_steps(result, out.path())).collect();
    for direction in [Direction::Sent, Direction::Received] {
        let mut sizes = BTreeSet::new();
        for step in results.iter().flat_map(|result| &result.steps) {
            if let Some(octets) = step.octets.as_ref().filter(|_| step.direction == direction)
                && step.text == "FPDU with Send"
            {
                // ULPDU_Length includes a header of 18 bytes.
                sizes.insert(usize::from_str_radix(&octets.hex[..4], 16).unwrap() - 18);
            }
        }
        assert_eq!(sizes, (0..=128).collect(), "{direction:?}");
    }
}

/// Runs cases against the echo service at this address. `lines` are additional lines of the target
/// file.
async fn report_of_echo(address: SocketAddr, lines: &str, case: &str) -> RunReport {
    let text = format!("name = \"echo\"\nkind = \"tcp\"\naddress = \"{address}\"\nservice = \"echo\"\n{lines}\n");
    let target = Target::from_toml("echo.toml", &text).unwrap();
    let out = tempfile::tempdir().unwrap();
    run(target, Suites::embedded().unwrap(), Filter::of([case]).tier(Tier::Smoke), out.path()).await.0
}

/// The last byte of one echo is wrong.
#[tokio::test]
async fn a_wrong_echo_of_one_size_is_named() {
    for size in [1, 77, 128] {
        let damage = move |ulpdu: &mut Vec<u8>| {
            // A header of 18 bytes precedes the payload.
            if ulpdu.len() == 18 + size {
                ulpdu[17 + size] ^= 1;
            }
        };
        let address = relay(echo(Settings::default()), damage).await;
        let report = report_of_echo(address, "", "mpa/4-basic/sizes").await;
        let failed: Vec<_> = failed(&report).iter().map(|result| result.expected.clone()).collect();
        assert_eq!(failed, [Some(format!("the echo of a Send of {size} bytes"))], "{:?}", report.summary);
    }
}

/// Neither the tester nor the target requests CRCs.
#[tokio::test]
async fn basic_cases_judge_a_connection_without_crcs() {
    let mut settings = Settings::default();
    settings.mpa.crc = false;
    let report = report_of_echo(echo(settings), "[startup]\ncrc = false", "basic").await;
    assert!(report.results.iter().any(|result| result.key.case == "mpa/4-basic/crc"));
    for result in &report.results {
        let needs_rping = result.key.case.ends_with("-rping");
        let verdict = if needs_rping { Verdict::NotApplicable } else { Verdict::Pass };
        assert_eq!(result.verdict, verdict, "{}: {}", result.key, result.explanation);
        for octets in result.steps.iter().filter_map(|step| step.octets.as_ref()) {
            let shown: Vec<u8> = octets.shown().collect();
            // The flags follow the key. C is the second bit.
            let uses_crc = shown.starts_with(b"MPA ID Re") && shown[16] & 0x40 != 0;
            assert!(!uses_crc, "{}: {}", result.key, octets.hex);
        }
    }
}

/// Some of the basic cases need no capability and no service.
#[tokio::test]
async fn basic_cases_need_no_capability() {
    for (fault, lines, named) in [
        ("pad", "service = \"echo\"", "mpa/4-basic/pad"),
        ("length", "service = \"echo\"", "mpa/4-basic/length"),
        ("msn", "service = \"echo\"", "ddp/4.3-basic/first-number"),
        ("crc", "service = \"echo\"", "mpa/4-basic/crc"),
        ("crc", "service = \"none\"", "mpa/4-basic/first-fpdu"),
    ] {
        let Some(report) = report_with(fault, lines, &["basic"], Tier::Smoke).await else { return };
        let failed = failed(&report);
        assert!(failed.iter().any(|result| result.key.case == named), "{fault}, {lines}: {:?}", report.summary);
    }
    for lines in ["service = \"echo\"", "service = \"none\""] {
        let Some(report) = report_with("none", lines, &["basic"], Tier::Smoke).await else { return };
        let passed = report.results.iter().filter(|result| result.verdict == Verdict::Pass).count();
        assert!(passed > 0, "{lines}: {:?}", report.summary);
        assert!(report.results.iter().all(|result| result.verdict <= Verdict::Pass), "{lines}: {:?}", report.summary);
    }
}

/// The FPDU has a wrong CRC. If the Terminate reports an error of DDP or RDMAP, MPA has passed the
/// ULPDU on without checking the CRC first.
#[tokio::test]
async fn a_wrong_crc_that_ddp_or_rdmap_reports_was_not_checked_in_time() {
    for fault in ["crc-reported-by-ddp", "crc-reported-by-ddp-exchanged", "crc-reported-by-rdmap"] {
        let Some(report) = report_of_cases(fault, &["mpa/4.4-crc/bad-later[octet=20]"]).await else { return };
        let result = &report.results[0];
        assert_eq!(result.verdict, Verdict::Fail, "{fault}: {}", result.explanation);
        let failing: Vec<&str> = result.failing().map(weft_core::RequirementId::as_str).collect();
        for row in ["MPA-6-1", "MPA-6-3", "MPA-4.4-19"] {
            assert!(failing.contains(&row), "{fault}, {row}: {failing:?}");
        }
        assert!(!failing.contains(&"MPA-8-2"), "{fault}: {failing:?}");
    }
}

/// The responder sends the error code 02 02, in which two fields are exchanged. This is not an
/// error of RDMAP. So the responder violates the layout of the Terminate, but no rule about CRCs.
#[tokio::test]
async fn a_wrong_crc_that_an_exchanged_terminate_reports_was_checked() {
    let Some(report) = report_of_cases("crc-reported-exchanged", &["mpa/4.4-crc/bad-later[octet=20]"]).await else {
        return;
    };
    let result = &report.results[0];
    assert_eq!(result.verdict, Verdict::Pass, "{}", result.explanation);
    let failing: Vec<&str> = result.failing().map(weft_core::RequirementId::as_str).collect();
    assert!(failing.contains(&"RDMAP-4.8-37"), "{failing:?}");
    assert!(failing.iter().all(|row| row.starts_with("RDMAP-4.8-")), "{failing:?}");
}
