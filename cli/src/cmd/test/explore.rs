//! `weft test --explore`: plays random sessions with the target, reduces those that fail, and runs
//! the reduced sessions as cases.

use std::io::{IsTerminal, Write as _};
use std::time::Duration;

use tokio::sync::watch;
use weft_dissector::output::text::counted;
use weft_suites::explore::{Exploration, ExploreOptions, ExploreProgress, Outcome, explore};
use weft_suites::model::{ExitCode, Tier};
use weft_suites::script::Suites;
use weft_suites::targets::Target;
use weft_suites::{Filter, RunOptions};

use super::{Arguments, play_by};
use crate::exit::print_line;
use crate::results::{make_folder, terminal};
use crate::select::duration;

/// The option --explore, and the options that need it.
#[derive(clap::Args)]
#[command(next_help_heading = "Options for exploring")]
pub(super) struct ExploreArguments {
    /// Play random sessions instead of the suites, and reduce each session that fails
    ///
    /// A session consists of random steps: messages of many sizes, segments, pauses, several
    /// connections, and illegal messages that the target must reject. weft compares all data that
    /// the target returns with the sent data, and checks each message of the target against the
    /// rules of the protocols. If a session fails, weft removes steps as long as the shorter
    /// session violates at least one requirement that the original session violated. Then weft
    /// saves the session as a Lua case in the folder `explored` of --out. At the end, weft runs all
    /// saved cases. The target needs the service echo or rping, an agent, a port mapper, or an SDP
    /// socket. --seed repeats the sessions of an earlier exploration.
    #[arg(long, conflicts_with_all = ["select", "suites", "tier", "shard", "rerun", "repeat", "jobs", "resume", "tui", "web"])]
    pub(super) explore: bool,
    /// Explore this long: a number of seconds (s), minutes (m) or hours (h), such as 90s
    #[arg(long = "for", value_name = "TIME", default_value = "1m", requires = "explore", value_parser = duration)]
    time: Duration,
    /// Play at most this many sessions
    #[arg(long, value_name = "COUNT", requires = "explore", value_parser = clap::value_parser!(u64).range(1..))]
    sessions: Option<u64>,
    /// Open at most this many connections at a time
    #[arg(long, value_name = "COUNT", default_value_t = 4, requires = "explore", value_parser = clap::value_parser!(u32).range(1..=100))]
    connections: u32,
}

/// Explores the target, prints what was found, and returns the exit code.
pub(super) async fn run(arguments: &Arguments, target: Target, cancel: watch::Receiver<bool>) -> anyhow::Result<u8> {
    make_folder(&arguments.out)?;
    let out = arguments.out.join("explored");
    let options = ExploreOptions {
        target: target.clone(),
        out: out.clone(),
        seed: arguments.seed(),
        time: arguments.explore.time,
        sessions: arguments.explore.sessions,
        connections: arguments.explore.connections,
        until_fail: arguments.until_fail,
        cancel: Some(cancel.clone()),
    };
    let mut terminal_line = TerminalLine(std::io::stderr().is_terminal());
    let exploration = explore(&options, |progress| terminal_line.show(&counts(progress))).await?;
    terminal_line.show("");
    print(&target, &exploration);
    if exploration.failures.is_empty() {
        return Ok(if exploration.progress.sessions > exploration.progress.undecided { 0 } else { 2 });
    }
    // Only the full tier has the limits of the sessions.
    let tier = Tier::Full;
    print_line!(
        "  the cases are in {0}; to run them again: weft test TARGET --suites {0} --tier {tier}",
        out.display()
    );
    print_line!("");
    let suites = Suites::from_folder(&out)?;
    let seed = Some(exploration.seed);
    let filter = Filter::everything().tier(tier);
    let options = RunOptions { target, suites, filter, out: arguments.out.clone(), seed, cancel: Some(cancel) };
    let sink = std::sync::Arc::new(terminal(arguments.verbose, arguments.quiet, &arguments.out));
    let report = play_by(arguments, options, arguments.schedule(), sink).await?;
    // Each of these failures was observed, even if its case has another verdict now.
    let is_error = report.summary.exit_code == ExitCode::HarnessError;
    Ok(if is_error { ExitCode::HarnessError } else { ExitCode::Unexpected }.code())
}

/// The line that shows the progress. It is shown only if standard error is a terminal.
struct TerminalLine(bool);

impl TerminalLine {
    /// Replaces the line.
    fn show(&mut self, text: &str) {
        if self.0 {
            // Ignore an error: if the terminal is closed, nobody can read the progress.
            let _ = write!(std::io::stderr(), "\r\x1b[K{text}");
        }
    }
}

/// The counts of an exploration, in one line.
fn counts(progress: &ExploreProgress) -> String {
    let failures = counted(progress.failures as u64, "distinct failure");
    let undecided = match progress.undecided {
        0 => String::new(),
        undecided => format!(", {undecided} without a verdict"),
    };
    let (sessions, steps) = (counted(progress.sessions, "session"), counted(progress.steps, "step"));
    format!("{sessions} with {steps} in total: {} failed ({failures}){undecided}", progress.failed)
}

fn print(target: &Target, exploration: &Exploration) {
    let target = target.name();
    print_line!("explored {target} with seed {}: {}", exploration.seed, counts(&exploration.progress));
    for limit in &exploration.limits {
        print_line!("  limit of the target: {limit}");
    }
    for text in &exploration.abandoned {
        print_line!("  not explored to the end: {text}");
    }
    if let Some(why) = &exploration.undecided {
        print_line!("  the last session without a verdict: {why}");
    }
    if let Some(why) = &exploration.stopped {
        print_line!("  stopped early: {why}");
    }
    for failure in &exploration.failures {
        let [before, after] = failure.steps;
        let rows: Vec<&str> = failure.result.failing().map(weft_core::RequirementId::as_str).collect();
        let before = counted(before as u64, "step");
        match failure.outcome {
            Outcome::Reduced => print_line!("  {} reduced from {before} to {after}", failure.case),
            Outcome::Joined(sessions) => {
                print_line!(
                    "  {} needs {sessions} sessions; reduced to {}",
                    failure.case,
                    counted(after as u64, "step")
                );
            }
            Outcome::Stopped(sessions, reason) => {
                let needs = match sessions {
                    1 => format!("with {before}"),
                    _ => format!("needs {sessions} sessions"),
                };
                let left = counted(after as u64, "step");
                print_line!("  {} {needs}: the reduction stopped {reason}, {left} left", failure.case);
            }
            Outcome::Damaged => {
                print_line!("  {}: the target no longer works after {before}", failure.case);
                print_line!("    with the field `restart` in the target file, weft can reduce the session");
            }
            Outcome::Once => print_line!("  {} with {before}: failed once, and not again", failure.case),
            Outcome::NotReplayed => print_line!("  {} with {before}: no time was left to reduce it", failure.case),
        }
        print_line!("    violates {}", rows.join(", "));
    }
}
