//! `weft demo`: what weft does, on one screen, with nothing but weft itself.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use weft_dissector::output::text;
use weft_dissector::source::Capture;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Sink};
use weft_suites::model::{CaseResult, Event, RunReport, Tier, Verdict};
use weft_suites::{Filter, RunOptions, Schedule};

use crate::cmd::test;
use crate::exit::{HARNESS, say};
use crate::runtime;

/// A connection of the Linux kernel's siw; `captures/README.md` describes it.
const CAPTURE: &[u8] = include_bytes!("../../../captures/siw/rping-crc.pcap");
/// Units of it that are shown.
const SHOWN: usize = 6;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where results go
    #[arg(long, short, value_name = "DIR", default_value = "weft-report")]
    out: PathBuf,
}

/// Explains a real capture, then judges a correct and a faulty responder.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    test::make_folder(&arguments.out)?;
    say!("1. Explain a capture (Linux kernel's iWARP driver, rping with CRC)\n");
    dissect()?;
    say!("\n2. Test a responder: weft's own, correct\n");
    let correct = judge(&arguments.out.join("correct"), &[], &[])?;
    print_counts(&correct);
    say!("\n3. Test the same responder with a fault: it accepts wrong keys in MPA Requests\n");
    let faulty = judge(&arguments.out.join("faulty"), &["mpa.accepts-wrong-key"], &["mpa"])?;
    print_failures(&faulty, &arguments.out.join("faulty"));
    print_counts(&faulty);
    let codes = (correct.summary.exit_code.code(), faulty.summary.exit_code.code());
    if codes != (0, 1) {
        say!("\nNot as expected: exit codes {} and {}, where 0 and 1 are right.", codes.0, codes.1);
        return Ok(ExitCode::from(HARNESS));
    }
    say!("\nAs expected: the correct responder passed, the faulty one was caught.");
    say!("Report of the failures: {}", arguments.out.join("faulty/report.html").display());
    say!("\nNext, try");
    say!("  weft lint CAPTURE.pcap                which rules a capture violates, and where");
    say!("  weft explain CAPTURE.pcap 13          frame 13, field by field");
    say!("  weft test --list                      the test cases");
    say!("  weft target --help                    test a NIC, driver or stack of yours");
    Ok(ExitCode::SUCCESS)
}

fn dissect() -> anyhow::Result<()> {
    struct Show {
        origin: u64,
        units: usize,
        findings: Vec<Finding>,
    }
    impl Sink for Show {
        fn unit(&mut self, unit: &Unit<'_>) {
            self.units += 1;
            if self.units <= SHOWN {
                say!("{}", text::unit_line(unit, self.origin));
            }
        }
        fn finding(&mut self, finding: &Finding) {
            self.findings.push(finding.clone());
        }
    }
    let mut capture = Capture::from_reader(Box::new(Cursor::new(CAPTURE)))?;
    let mut dissector = Dissector::default();
    let mut show = Show { origin: 0, units: 0, findings: Vec::new() };
    while let Some(frame) = capture.next_frame() {
        if frame.number == 1 {
            show.origin = frame.time;
        }
        dissector.frame(&frame, &mut show);
    }
    dissector.finish(&mut show);
    let (messages, frames) = (text::counted(show.units as u64, "message"), text::counted(capture.frames(), "frame"));
    say!("       ... {messages} in {frames}, {}", text::counted(show.findings.len() as u64, "finding"));
    for finding in &show.findings {
        say!("{}", text::finding_lines(finding));
    }
    Ok(())
}

/// Runs the cases of `suites`, or all cases, against the builtin responder with the faults `deviate`.
fn judge(out: &Path, deviate: &[&str], suites: &[&str]) -> anyhow::Result<RunReport> {
    let deviate: Vec<String> = deviate.iter().map(|name| (*name).to_owned()).collect();
    let options = RunOptions {
        target: test::resolve("builtin", &deviate, false)?,
        suites: test::load(None)?,
        filter: Filter::of(suites.iter().map(|suite| (*suite).to_owned())).tier(Tier::Smoke),
        out: out.to_owned(),
        seed: Some(1),
        cancel: None,
    };
    let mut report = None;
    runtime::block_on(async {
        report = Some(test::record(options, Schedule::default(), Arc::new(|_: &Event| {})).await?);
        Ok(ExitCode::SUCCESS)
    })?;
    report.ok_or_else(|| anyhow::anyhow!("the run ended without a report"))
}

fn print_counts(report: &RunReport) {
    let counts = &report.summary.counts;
    let judged = counts.pass + counts.fail + counts.inconclusive + counts.error;
    say!("  {judged} test cases: {} passed, {} failed", counts.pass, judged - counts.pass);
}

/// The first failure with its evidence, and the names of the others.
fn print_failures(report: &RunReport, out: &Path) {
    let failed: Vec<&CaseResult> = report.results.iter().filter(|result| result.verdict == Verdict::Fail).collect();
    let Some(first) = failed.first() else { return };
    say!("  FAIL {}: {}", first.key, first.title);
    for id in first.failing() {
        let row = id.row();
        say!("    rule      {} {}: {}", row.id, row.level, row.summary);
    }
    if let (Some(expected), Some(actual)) = (&first.expected, &first.actual) {
        say!("    expected  {expected}\n    actual    {actual}");
    }
    say!("    capture   {}", out.join(&first.evidence.folder).join("evidence.pcapng").display());
    for other in failed.iter().skip(1) {
        say!("  FAIL {}", other.key);
    }
}
