//! `weft demo`: the whole way once, with nothing but weft itself.

use std::io::Cursor;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use weft_dissector::output::text;
use weft_dissector::source::Capture;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Sink};
use weft_suites::model::Tier;
use weft_suites::{Filter, RunOptions};

use crate::cmd::test;
use crate::exit::{HARNESS, say};
use crate::runtime;

/// A connection of the Linux kernel's siw; `captures/README.md` tells more.
const CAPTURE: &[u8] = include_bytes!("../../../captures/siw/rping-crc.pcap");
/// Units of it that are shown.
const SHOWN: usize = 8;

/// The command line.
#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Where results go
    #[arg(long, short, value_name = "DIR", default_value = "weft-report")]
    out: PathBuf,
}

/// Dissects a real capture, then judges a correct and a deviating responder.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    test::make_folder(&arguments.out)?;
    say!("== A capture of the Linux kernel's iWARP driver (siw, rping with CRC)\n");
    dissect()?;
    say!("\n== The suites against weft's own responder\n");
    let correct = judge(&arguments.out.join("correct"), &[])?;
    say!("\n== The suites against the same responder, told to accept wrong keys: its case must fail\n");
    let deviating = judge(&arguments.out.join("deviating"), &["mpa.accepts-wrong-key".to_owned()])?;
    say!("");
    if (correct, deviating) == (0, 1) {
        say!("As it should be: the correct responder passed, the deviating one was caught.");
        return Ok(ExitCode::SUCCESS);
    }
    say!("Not as it should be: exit codes {correct} and {deviating}, expected 0 and 1.");
    Ok(ExitCode::from(HARNESS))
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
    say!("       ... {} units in {} frames, findings: {}", show.units, capture.frames(), show.findings.len());
    for finding in &show.findings {
        say!("{}", text::finding_lines(finding));
    }
    Ok(())
}

fn judge(out: &Path, deviate: &[String]) -> anyhow::Result<u8> {
    let options = RunOptions {
        target: test::resolve("builtin", deviate)?,
        suites: test::load(None)?,
        filter: Filter::everything().tier(Tier::Smoke),
        out: out.to_owned(),
        seed: Some(1),
        cancel: None,
    };
    let mut code = 0;
    runtime::block_on(async {
        code = test::play(options, Arc::new(test::terminal(false))).await?.summary.exit_code.code();
        Ok(ExitCode::SUCCESS)
    })?;
    Ok(code)
}
