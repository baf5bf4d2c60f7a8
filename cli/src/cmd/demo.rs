//! `weft demo`: shows on one screen what weft does. The demonstration needs no network, no target
//! and no capture file.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use weft_dissector::output::senders::Senders;
use weft_dissector::output::text;
use weft_dissector::source::Capture;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, FrameNumber, Packet, Sink};
use weft_suites::model::{CaseResult, Counts, Event, RunReport, Tier, Verdict};
use weft_suites::{Filter, RunOptions, Schedule};

use crate::exit::{HARNESS, print_line};
use crate::{results, runtime, suites, target};

/// A capture of siw, the software iWARP driver of Linux. `captures/README.md` describes the
/// capture.
const CAPTURE: &[u8] = include_bytes!("../../../captures/siw/rping-crc.pcap");
/// Number of units of the capture that are printed.
const SHOWN: usize = 6;
/// Maximum number of cases that the output names for each verdict, in addition to the first
/// failure.
const NAMED: usize = 4;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Write the results to this folder
    #[arg(long, short, value_name = "DIR", default_value = "weft-report")]
    out: PathBuf,
}

/// Decodes a real capture, then judges a correct and a faulty responder.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    results::make_folder(&arguments.out)?;
    print_line!("1. Explain a capture (Linux kernel's iWARP driver, rping with CRC)\n");
    dissect()?;
    print_line!("\n2. Test weft's own responder, which is correct\n");
    let correct = judge(&arguments.out.join("correct"), &[], &[])?;
    print_results(&correct, &arguments.out.join("correct"));
    print_line!("\n3. Test the same responder with a fault: it accepts wrong keys in MPA Requests\n");
    let faulty = judge(&arguments.out.join("faulty"), &["mpa.accepts-wrong-key"], &["mpa"])?;
    print_results(&faulty, &arguments.out.join("faulty"));
    let codes = (correct.summary.exit_code.code(), faulty.summary.exit_code.code());
    if codes != (0, 1) {
        print_line!("\nNot as expected: the exit codes are {} and {} instead of 0 and 1.", codes.0, codes.1);
        return Ok(ExitCode::from(HARNESS));
    }
    print_line!("\nAs expected: the correct responder passed all cases, and the faulty responder failed.");
    print_line!("Report of the failures: {}", arguments.out.join("faulty/report.html").display());
    print_line!("\nNext, try");
    print_line!("  weft lint CAPTURE.pcap          # list the rules that the capture violates, and where");
    print_line!("  weft explain CAPTURE.pcap 13    # show frame 13, field by field");
    print_line!("  weft suite list                 # list the test cases");
    print_line!("  weft target --help              # learn how to test your own NIC, driver or stack");
    Ok(ExitCode::SUCCESS)
}

/// Prints the first units of the capture, and its findings.
fn dissect() -> anyhow::Result<()> {
    struct Show {
        origin: u64,
        units: usize,
        findings: Vec<Finding>,
        senders: Senders,
    }
    impl Sink for Show {
        fn unit(&mut self, unit: &Unit<'_>) {
            self.units += 1;
            if self.units <= SHOWN {
                print_line!("{}", text::unit_line(unit, self.origin));
            }
        }
        fn finding(&mut self, finding: &Finding) {
            self.findings.push(finding.clone());
        }
        fn packet(&mut self, packet: &Packet) {
            self.senders.packet(packet);
        }
    }
    let mut capture = Capture::from_reader(Box::new(Cursor::new(CAPTURE)))?;
    let mut dissector = Dissector::default();
    let mut show = Show { origin: 0, units: 0, findings: Vec::new(), senders: Senders::default() };
    while let Some(frame) = capture.next_frame() {
        if frame.number == FrameNumber::FIRST {
            show.origin = frame.time;
        }
        dissector.frame(&frame, &mut show);
    }
    dissector.finish(&mut show);
    let (messages, frames) = (text::counted(show.units as u64, "message"), text::counted(capture.frames(), "frame"));
    print_line!("       ... {messages} in {frames}, {}", text::counted(show.findings.len() as u64, "finding"));
    for finding in &show.findings {
        print_line!("{}", text::finding_lines(finding, &show.senders));
    }
    Ok(())
}

/// Runs the smoke tier of `suites` against the builtin responder with the deviations `deviate`. If
/// `suites` is empty, runs the smoke tier of all suites.
fn judge(out: &Path, deviate: &[&str], suites: &[&str]) -> anyhow::Result<RunReport> {
    let deviate: Vec<String> = deviate.iter().map(|name| (*name).to_owned()).collect();
    let options = RunOptions {
        target: target::resolve("builtin", &deviate, false)?,
        suites: suites::load(None)?,
        filter: Filter::of(suites.iter().map(|suite| (*suite).to_owned())).tier(Tier::Smoke),
        out: out.to_owned(),
        seed: Some(1),
        cancel: None,
    };
    runtime::block_on(results::record(options, Schedule::default(), Arc::new(|_: &Event| {})))
}

/// Prints the failures and the counts.
fn print_results(report: &RunReport, out: &Path) {
    let of =
        |verdict| -> Vec<&CaseResult> { report.results.iter().filter(|result| result.verdict == verdict).collect() };
    let failed = of(Verdict::Fail);
    if let Some((first, others)) = failed.split_first() {
        print_failure(first, out);
        name_some("FAIL", others);
    }
    name_some("INCONCLUSIVE", &of(Verdict::Inconclusive));
    name_some("ERROR", &of(Verdict::Error));
    print_line!("  {}", counts_line(&report.summary.counts));
}

/// Prints a failure with its rule and its evidence. The title of a case is the required behaviour.
fn print_failure(failure: &CaseResult, out: &Path) {
    print_line!("  FAIL {}", failure.key);
    print_line!("    required  {}", failure.title);
    for id in failure.failing() {
        let row = id.row();
        print_line!("    rule      {} {}: {}", row.id, row.level, row.summary);
    }
    if let (Some(expected), Some(actual)) = (&failure.expected, &failure.actual) {
        print_line!("    expected  {expected}\n    actual    {actual}");
    }
    print_line!("    capture   {}", out.join(&failure.evidence.folder).join("evidence.pcapng").display());
}

/// Prints a line for each of the first results, and a line with the number of further results.
fn name_some(word: &str, results: &[&CaseResult]) {
    let keys: Vec<String> = results.iter().map(|result| result.key.to_string()).collect();
    for line in named(&keys) {
        print_line!("  {word} {line}");
    }
}

/// Returns at most [`NAMED`] keys, and the number of the other keys.
fn named(keys: &[String]) -> Vec<String> {
    let mut lines: Vec<String> = keys.iter().take(NAMED).cloned().collect();
    if keys.len() > NAMED {
        lines.push(format!("{} more cases", keys.len() - NAMED));
    }
    lines
}

/// Formats the counts of the cases that ran. Inconclusive cases and errors of weft do not count as
/// failures of the target.
fn counts_line(counts: &Counts) -> String {
    let mut line = format!("{} test cases: {} passed, {} failed", counts.run(), counts.pass, counts.fail);
    for (verdict, word) in [(Verdict::Inconclusive, "inconclusive"), (Verdict::Error, "with an error of weft")] {
        if counts.of(verdict) > 0 {
            line.push_str(&format!(", {} {word}", counts.of(verdict)));
        }
    }
    line
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_only_failures_as_failed() {
        let counts = Counts { pass: 5, fail: 1, inconclusive: 2, error: 3, not_applicable: 7, ..Counts::default() };
        assert_eq!(counts_line(&counts), "11 test cases: 5 passed, 1 failed, 2 inconclusive, 3 with an error of weft");
        assert_eq!(counts_line(&Counts { pass: 5, ..Counts::default() }), "5 test cases: 5 passed, 0 failed");
    }

    #[test]
    fn names_at_most_a_few_cases() {
        let keys: Vec<String> = (0..9).map(|n| format!("mpa/x/{n}")).collect();
        assert_eq!(named(&keys), ["mpa/x/0", "mpa/x/1", "mpa/x/2", "mpa/x/3", "5 more cases"]);
        assert_eq!(named(&keys[..4]).len(), 4);
        assert!(named(&[]).is_empty());
    }
}
