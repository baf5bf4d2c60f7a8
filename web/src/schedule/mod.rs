//! Starts runs at fixed intervals, or at a time of day.
//!
//! A run starts through the queue of its target. If the previous run of an entry is not over at the
//! next time, this time is left out, so runs never pile up. Times that pass while the server does
//! not run are left out, too.

mod entry;

use std::str::FromStr;

use serde::Deserialize;
use tokio::sync::watch;

use crate::clock::Clock;
use crate::starter::{JobError, JobRequest, QueueState, Starter};
use entry::{Entry, Fields};

/// The runs that the server starts by itself. The text of a schedule is a TOML document with a
/// table `[[run]]` for each entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RunSchedule {
    entries: Vec<Entry>,
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    run: Vec<Fields>,
}

impl FromStr for RunSchedule {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let file: File = toml::from_str(text).map_err(|error| error.message().to_owned())?;
        let entries = file.run.into_iter().map(Entry::try_from).collect::<Result<_, _>>()?;
        Ok(RunSchedule { entries })
    }
}

impl RunSchedule {
    /// Returns the next time of a run against `target`, in milliseconds since 1970-01-01 UTC.
    pub(crate) fn next_ms(&self, target: &str, now_ms: u64) -> Option<u64> {
        self.entries.iter().filter(|entry| entry.target == target).map(|entry| entry.next_ms(now_ms)).min()
    }

    /// Returns the first error of an entry: an unknown target, or a selection without cases.
    pub(crate) fn fault(&self, starter: &Starter) -> Option<String> {
        self.entries.iter().find_map(|entry| {
            let checked = match starter.state(&entry.target) {
                Some(_) => request(entry, starter).map(drop),
                None => Err(JobError::UnknownTarget),
            };
            checked.err().map(|error| format!("target {:?}: {error}", entry.target))
        })
    }

    /// Starts the runs at their times until `stopped` becomes `true`.
    pub(crate) async fn keep(self, starter: Starter, clock: Clock, mut stopped: watch::Receiver<bool>) {
        let begin_ms = clock.now_ms();
        let due = |entry: Entry| Due { at_ms: entry.next_ms(begin_ms), entry, job: None };
        let mut all: Vec<Due> = self.entries.into_iter().map(due).collect();
        while let Some(next_ms) = all.iter().map(|due| due.at_ms).min() {
            tokio::select! {
                () = clock.wait_until(next_ms) => {}
                _ = stopped.wait_for(|stopped| *stopped) => return,
            }
            let now_ms = clock.now_ms();
            for due in all.iter_mut().filter(|due| due.at_ms <= now_ms) {
                due.start(&starter);
                due.at_ms = due.entry.next_ms(now_ms);
            }
        }
    }
}

fn request(entry: &Entry, starter: &Starter) -> Result<JobRequest, JobError> {
    let words: Vec<&str> = entry.select.iter().map(String::as_str).collect();
    Ok(JobRequest { labels: entry.labels.clone(), ..starter.request(&words, entry.tier, None)? })
}

/// An entry with its next time.
struct Due {
    entry: Entry,
    at_ms: u64,
    /// Number of the job that this entry started last.
    job: Option<u64>,
}

impl Due {
    /// Starts the run, unless the last run of this entry is not over.
    fn start(&mut self, starter: &Starter) {
        let target = &self.entry.target;
        let is_last = |id: u64| self.job == Some(id);
        if starter.state(target).is_some_and(|(_, state)| has_job(&state, is_last)) {
            tracing::warn!("schedule: {target}: the previous run is not over, so this time is left out");
            return;
        }
        match request(&self.entry, starter).and_then(|wanted| starter.start(target, wanted)) {
            Ok((job, _)) => {
                tracing::info!("schedule: {target}: starts a run of {}", job.about);
                self.job = Some(job.id);
            }
            Err(error) => tracing::error!("schedule: {target}: {error}"),
        }
    }
}

/// Returns whether one of the jobs of a queue is wanted.
fn has_job(state: &QueueState, is_wanted: impl Fn(u64) -> bool) -> bool {
    state.running.iter().chain(&state.waiting).any(|job| is_wanted(job.id))
}
