//! Reads a capture and prints its protocol units, and each requirement that a connection violates.
//!
//! ```text
//! cargo run -p weft-dissector --example findings captures/siw/rping-crc.pcap
//! ```
//!
//! The exit status is 1 if there is a finding.

use std::env;
use std::path::Path;
use std::process::ExitCode;

use weft_dissector::output::text::summary;
use weft_dissector::source::{Capture, OpenError};
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Sink};

/// Prints what the dissector reports, and counts it.
#[derive(Default)]
struct Report {
    units: u64,
    findings: u64,
}

impl Sink for Report {
    fn unit(&mut self, unit: &Unit<'_>) {
        self.units += 1;
        println!("frame {}: {}", unit.frame, summary(unit));
    }

    fn finding(&mut self, finding: &Finding) {
        self.findings += 1;
        let Finding { frame, severity, requirement, expected, found, .. } = finding;
        println!("frame {frame}: {severity} {requirement}: expected {expected}, found {found}");
        println!("    {}", requirement.row().summary);
    }
}

fn main() -> ExitCode {
    let Some(path) = env::args_os().nth(1) else {
        eprintln!("usage: findings CAPTURE");
        return ExitCode::from(2);
    };
    match read(Path::new(&path)) {
        Ok(Report { units, findings }) => {
            println!("{units} units, {findings} findings");
            if findings == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
        }
        Err(error) => {
            eprintln!("cannot read {}: {error}", Path::new(&path).display());
            ExitCode::from(2)
        }
    }
}

fn read(path: &Path) -> Result<Report, OpenError> {
    let mut capture = Capture::open(path)?;
    let (mut dissector, mut report) = (Dissector::default(), Report::default());
    while let Some(frame) = capture.next_frame() {
        dissector.frame(&frame, &mut report);
    }
    dissector.finish(&mut report);
    if let Some(note) = capture.note() {
        eprintln!("{}: {note}", path.display());
    }
    Ok(report)
}
