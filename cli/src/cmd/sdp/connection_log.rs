//! Prints one line per relayed connection, and the totals at the end.
//!
//! A relay connects two sides. The first side is the accepted connection, the second side is the
//! connection that the relay opens. "forth" means from the first side to the second, "back" means
//! the reverse direction.

use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde_json::json;
use weft_dissector::output::text::counted;
use weft_peer::driver::sdp::{RelayEnd, RelayResult};

use crate::exit::{note, print_json, print_line};
use crate::lock::locked;

/// The options for the output of a relay.
#[derive(Debug, clap::Args)]
pub(super) struct OutputArguments {
    /// Print only the listening address
    #[arg(long, short)]
    quiet: bool,
    /// Print one JSON object per connection, and one with the totals
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
}

/// The format of the output.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Format {
    Json,
    Lines,
    Quiet,
}

/// Counts the connections of a relay.
#[derive(Debug)]
pub(super) struct ConnectionLog {
    format: Format,
    next: AtomicU64,
    totals: Mutex<Totals>,
}

/// The counts.
#[derive(Debug, Default, Clone, Copy)]
struct Totals {
    connections: u64,
    /// Number of connections that are currently open.
    open: u64,
    /// Maximum of `open` so far.
    most: u64,
    /// Connections whose second side failed.
    failed: u64,
    reset: u64,
    /// Connections that were stopped because the command ended.
    stopped: u64,
    /// Number of bytes from the first side to the second.
    forth: u64,
    /// Number of bytes from the second side to the first.
    back: u64,
}

/// A connection that is counted.
#[derive(Debug)]
pub(super) struct Entry<'a> {
    log: &'a ConnectionLog,
    number: u64,
    what: String,
    begin: Instant,
}

impl ConnectionLog {
    pub(super) fn new(arguments: &OutputArguments) -> Self {
        let format = match (arguments.json, arguments.quiet) {
            (true, _) => Format::Json,
            (false, true) => Format::Quiet,
            (false, false) => Format::Lines,
        };
        ConnectionLog { format, next: AtomicU64::new(1), totals: Mutex::default() }
    }

    /// Counts a new connection. `what` describes its source and destination.
    pub(super) fn open(&self, what: String) -> Entry<'_> {
        let mut totals = locked(&self.totals);
        totals.connections += 1;
        totals.open += 1;
        totals.most = totals.most.max(totals.open);
        drop(totals);
        Entry { log: self, number: self.next.fetch_add(1, Ordering::Relaxed), what, begin: Instant::now() }
    }

    /// Prints an event that belongs to no connection.
    pub(super) fn report_error(&self, what: &str) {
        match self.format {
            Format::Json => print_json(&json!({"kind": "sdp_trouble", "error": what})),
            Format::Lines | Format::Quiet => note(what),
        }
    }

    /// Prints the totals.
    pub(super) fn finish(&self) {
        let Totals { connections, most, failed, reset, stopped, forth, back, .. } = *locked(&self.totals);
        match self.format {
            Format::Json => print_json(&json!({
                "kind": "sdp_totals", "connections": connections, "most": most, "failed": failed, "reset": reset,
                "stopped": stopped, "forth": forth, "back": back,
            })),
            Format::Lines => print_line!(
                "{}, at most {most} at a time; {failed} failed, {reset} reset, {stopped} stopped; \
                 {forth} bytes forth, {back} back",
                counted(connections, "connection")
            ),
            Format::Quiet => {}
        }
    }
}

impl Entry<'_> {
    /// Ends the entry of a connection without a second side.
    pub(super) fn finish_failed(self, error: &dyn std::fmt::Display) {
        locked(&self.log.totals).failed += 1;
        self.print("failed", None, Some(error));
    }

    /// Ends the entry of a relayed connection.
    pub(super) fn finish_relayed(self, relayed: &RelayResult) {
        let mut totals = locked(&self.log.totals);
        totals.forth += relayed.forth;
        totals.back += relayed.back;
        match relayed.end {
            RelayEnd::Graceful => {}
            RelayEnd::First(_) | RelayEnd::Second(_) => totals.reset += 1,
            RelayEnd::Stopped => totals.stopped += 1,
        }
        drop(totals);
        match &relayed.end {
            RelayEnd::Graceful => self.print("closed", Some(relayed), None),
            RelayEnd::First(error) => self.print("reset by the first side", Some(relayed), Some(error)),
            RelayEnd::Second(error) => self.print("reset by the second side", Some(relayed), Some(error)),
            RelayEnd::Stopped => self.print("stopped", Some(relayed), None),
        }
    }

    fn print(&self, end: &str, relayed: Option<&RelayResult>, error: Option<&dyn std::fmt::Display>) {
        let Entry { number, what, .. } = self;
        let (forth, back) = relayed.map_or((0, 0), |relayed| (relayed.forth, relayed.back));
        let time = self.begin.elapsed();
        match self.log.format {
            Format::Json => print_json(&json!({
                "kind": "sdp_connection", "number": number, "what": what, "end": end, "forth": forth, "back": back,
                "ms": u64::try_from(time.as_millis()).unwrap_or(u64::MAX), "error": error.map(ToString::to_string),
            })),
            Format::Lines => {
                let why = error.map_or_else(String::new, |error| format!(": {error}"));
                let seconds = time.as_secs_f64();
                print_line!("{number:>4}  {what}  {end}{why}; {forth} bytes forth, {back} back, {seconds:.3} s");
            }
            Format::Quiet => {}
        }
    }
}

impl Drop for Entry<'_> {
    fn drop(&mut self) {
        locked(&self.log.totals).open -= 1;
    }
}
