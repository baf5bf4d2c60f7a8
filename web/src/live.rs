//! Runs of this process: their events, each with the run it belongs to and small enough for many browsers.
//!
//! One task reads the runs' own channel and passes updates on; whoever falls behind is told so and reads the store, where
//! every finished case is before its event.

use std::sync::Arc;

use serde::Serialize;
use tokio::sync::broadcast::{self, error::RecvError};
use weft_suites::clock;
use weft_suites::model::{Event, RunStatus, Summary, Verdict};

/// Updates that a slow browser may be behind.
const QUEUE: usize = 1024;

/// What a run page is told. The data of one Server-Sent Event, as JSON.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub(crate) enum Update {
    /// Somebody has to do something.
    Waiting { what: String, seconds: u64 },
    /// A case begins.
    Started { key: String },
    /// Something happened in it.
    Step { key: String, text: String },
    /// A case has its verdict.
    Finished { key: String, verdict: Verdict, duration: String },
    /// The run is over.
    Done { status: RunStatus, exit_code: u8, reasons: Vec<String> },
}

impl Update {
    fn of(event: &Event) -> Option<Self> {
        Some(match event {
            Event::RunStarted { .. } => return None,
            Event::TargetWaiting { what, seconds } => Update::Waiting { what: what.clone(), seconds: *seconds },
            Event::CaseStarted { key, .. } => Update::Started { key: key.to_string() },
            Event::CaseStep { key, step } => Update::Step { key: key.to_string(), text: step.text.clone() },
            Event::CaseFinished { result } => Update::Finished {
                key: result.key.to_string(),
                verdict: result.verdict,
                duration: clock::duration(result.duration_us),
            },
            Event::RunFinished { summary } => Update::done(summary),
        })
    }

    /// What the end of a run came to.
    pub(crate) fn done(summary: &Summary) -> Self {
        let (status, exit_code) = (summary.status, summary.exit_code.code());
        Update::Done { status, exit_code, reasons: summary.reasons.clone() }
    }
}

/// What the hub passes on.
#[derive(Debug, Clone)]
pub(crate) enum Passed {
    /// An update of the run with this id.
    Update(Arc<str>, Update),
    /// Something was missed: the store knows.
    Missed,
}

/// Where pages join the live run. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Hub {
    passed: broadcast::Sender<Passed>,
}

impl Hub {
    /// Starts to pass on what `events` says; without events the hub stays silent. Must be called within a tokio runtime.
    pub(crate) fn start(events: Option<broadcast::Sender<Arc<Event>>>) -> Self {
        let (passed, _) = broadcast::channel(QUEUE);
        if let Some(events) = events {
            // The sender itself is not kept: it would hold the channel open.
            tokio::spawn(pass_on(events.subscribe(), passed.clone()));
        }
        Hub { passed }
    }

    /// Joins. What happens from now on arrives.
    pub(crate) fn join(&self) -> broadcast::Receiver<Passed> {
        self.passed.subscribe()
    }
}

async fn pass_on(mut events: broadcast::Receiver<Arc<Event>>, passed: broadcast::Sender<Passed>) {
    let mut run: Option<Arc<str>> = None;
    loop {
        let pass = match events.recv().await {
            Ok(event) => {
                if let Event::RunStarted { run: info, .. } = &*event {
                    run = Some(info.id.as_str().into());
                }
                match (&run, Update::of(&event)) {
                    (Some(run), Some(update)) => Passed::Update(run.clone(), update),
                    _ => continue,
                }
            }
            Err(RecvError::Lagged(_)) => {
                // A run may have begun in between: until the next one begins, nobody knows whose the events are.
                run = None;
                Passed::Missed
            }
            Err(RecvError::Closed) => return,
        };
        // That nobody listens is fine.
        let _ = passed.send(pass);
    }
}
