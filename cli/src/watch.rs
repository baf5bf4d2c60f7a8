//! Implements `--trace` and `--write`. With these options, a command prints or saves its own
//! traffic.
//!
//! weft records the bytes that it sends and receives, so it needs no live capture and no privilege.
//! Bytes, order and times are real. TCP headers and segment boundaries are synthetic.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::{SystemTime, UNIX_EPOCH};

use weft_dissector::link_type::ETHERNET;
use weft_dissector::output::pcapng::{Interface, PacketBlock, PacketDirection, Writer};
use weft_dissector::output::senders::Senders;
use weft_dissector::output::text::{finding_lines, unit_line};
use weft_dissector::source::Frame as Captured;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, Packet, Sink};
use weft_peer::driver::{TrafficEvent, TrafficLog};
use weft_suites::evidence::{Frame, Framer};

use crate::exit::{BadInput, note, unwritable};
use crate::lock::locked;
use crate::signals;

/// Which traffic to print and to save.
#[derive(Debug, clap::Args)]
#[command(next_help_heading = "Traces and captures")]
pub(crate) struct WatchArguments {
    /// Print each sent or received message to standard error, with findings
    ///
    /// The lines have the format of `weft dissect`.
    #[arg(long)]
    trace: bool,
    /// Write the traffic of all connections to this capture file
    ///
    /// This option needs no privilege, because weft records its own bytes. Headers and segment
    /// boundaries in the file are synthetic.
    #[arg(long, value_name = "FILE.pcapng")]
    write: Option<PathBuf>,
}

/// The monitor of a running command.
struct Watch(Arc<Mutex<State>>);

struct State {
    framer: Framer,
    /// Number of frames so far.
    frames: u64,
    /// Time at which the traffic log's clock is 0, in nanoseconds since 1970.
    origin: u64,
    trace: Option<(Dissector, Printer)>,
    capture: Option<Writer<BufWriter<File>>>,
    /// Path of the capture.
    path: PathBuf,
    /// The error that stopped the writing of the capture.
    failed: io::Result<()>,
}

impl WatchArguments {
    /// Runs `work` with a log that records the traffic of `work`. Then completes the capture, also
    /// if `work` fails.
    pub(crate) async fn around<T>(
        &self,
        work: impl AsyncFnOnce(Option<TrafficLog>) -> anyhow::Result<T>,
    ) -> anyhow::Result<T> {
        let (traffic, watch) = self.start()?.unzip();
        let done = work(traffic).await;
        if let Some(watch) = watch {
            watch.finish()?;
        }
        done
    }

    /// Returns the traffic log for a new device, and the [`Watch`] that reads this log. Returns
    /// `None` without `--trace` and `--write`.
    fn start(&self) -> anyhow::Result<Option<(TrafficLog, Watch)>> {
        if !self.trace && self.write.is_none() {
            return Ok(None);
        }
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        let origin = u64::try_from(since_1970.as_nanos()).unwrap_or(u64::MAX);
        let capture = match &self.write {
            None => None,
            Some(path) => {
                let cannot = |error| BadInput(format!("cannot write {}: {error}", path.display()));
                let mut writer = Writer::new(BufWriter::new(File::create(path).map_err(cannot)?), None)?;
                let description = "Made from the bytes that this side sent and received. Headers, segment boundaries \
                                   and acknowledgements are synthetic.";
                writer.interface(&Interface {
                    link_type: ETHERNET,
                    name: Some("weft"),
                    description: Some(description),
                    ..Interface::default()
                })?;
                Some(writer)
            }
        };
        let trace = self.trace.then(|| (Dissector::default(), Printer { origin, senders: Senders::default() }));
        let path = self.write.clone().unwrap_or_default();
        let state = State { framer: Framer::default(), frames: 0, origin, trace, capture, path, failed: Ok(()) };
        let state = Arc::new(Mutex::new(state));
        if self.write.is_some() {
            let last = Watch(Arc::clone(&state));
            signals::finish_first(move || {
                if let Err(error) = last.finish() {
                    note(&format!("{error:#}"));
                }
            })?;
        }
        let reader = Arc::clone(&state);
        let traffic = TrafficLog::live(move |event| locked(&reader).event(event));
        Ok(Some((traffic, Watch(state))))
    }
}

impl Watch {
    /// Ends the trace and completes the capture.
    fn finish(self) -> anyhow::Result<()> {
        let mut state = locked(&self.0);
        if let Some((dissector, printer)) = &mut state.trace {
            dissector.finish(printer);
        }
        if let Some(writer) = state.capture.take() {
            writer.finish()?;
        }
        std::mem::replace(&mut state.failed, Ok(())).map_err(|error| {
            anyhow::Error::new(error).context(format!("{}: the capture is incomplete", state.path.display()))
        })
    }
}

impl State {
    fn event(&mut self, event: &TrafficEvent) {
        let mut framer = std::mem::take(&mut self.framer);
        framer.event(event, |frame| self.frame(&frame));
        self.framer = framer;
    }

    fn frame(&mut self, frame: &Frame) {
        self.frames += 1;
        let (number, octets) = (self.frames.into(), &frame.octets[..]);
        let wire_len = u32::try_from(octets.len()).unwrap_or(u32::MAX);
        let time = self.origin.saturating_add(frame.at_ns);
        if let Some((dissector, printer)) = &mut self.trace {
            dissector.frame(&Captured { number, time, interface: 0, link_type: ETHERNET, octets, wire_len }, printer);
        }
        if let Some(writer) = &mut self.capture {
            let direction = Some(if frame.from_tester { PacketDirection::Outbound } else { PacketDirection::Inbound });
            let written =
                writer.packet(&PacketBlock { interface: 0, time, octets, wire_len, direction, comments: &[] });
            if let Err(error) = &written {
                // Report the error now, because the command can run for hours.
                let why = unwritable(&self.path, error);
                note(&format!("{}: {why}; weft writes no more frames to this file", self.path.display()));
                self.capture = None;
                self.failed = written;
            }
        }
    }
}

/// Prints to standard error, if possible.
struct Printer {
    origin: u64,
    senders: Senders,
}

impl Sink for Printer {
    fn unit(&mut self, unit: &Unit<'_>) {
        let _ = writeln!(io::stderr(), "{}", unit_line(unit, self.origin));
    }

    fn finding(&mut self, finding: &Finding) {
        let _ = writeln!(io::stderr(), "{}", finding_lines(finding, &self.senders));
    }

    fn packet(&mut self, packet: &Packet) {
        self.senders.packet(packet);
    }
}
