//! Judged random traffic. weft draws sessions (selects their steps at random) that the protocols
//! and the target's service allow, plays them, and judges them like cases. A session that fails is
//! reduced and saved as a case.
//!
//! | file | content |
//! | --- | --- |
//! | `edit` | changes to the steps of a session, for a reduction |
//! | `explorer` | draws and plays sessions, and collects the failures |
//! | `history` | joins several sessions to one |
//! | `limits` | what the target can do: the largest Send, connections at the same time, and so on |
//! | `player` | plays sessions with the target |
//! | `reduce` | finds out what a failure needs, and reduces it |
//! | `shrink` | removes steps from a session, combines steps, and makes steps simpler |
//!
//! The seed determines the sessions, as long as the target has the same limits. Each deliberate
//! fault in a session is a separate step. So if the target refuses any other step, that is a
//! failure.

mod edit;
mod explorer;
mod history;
mod limits;
mod player;
mod reduce;
mod shrink;

use std::path::PathBuf;
use std::time::Duration;

use tokio::sync::watch;

pub use explorer::explore;
pub use reduce::{Outcome, StopReason};

use crate::model::CaseResult;
use crate::run::RunError;
use crate::targets::Target;

/// How to explore.
#[derive(Debug, Clone)]
pub struct ExploreOptions {
    /// The target. Its service is echo, rping, a port mapper, or an SDP socket, or it has an agent.
    /// If it is the Initiator, its service is echo, rping or an SDP socket that connects, or it has
    /// an agent.
    pub target: Target,
    /// Folder for the saved cases: a folder of suites. It is created if it is missing. Cases of an
    /// earlier exploration are deleted.
    pub out: PathBuf,
    /// Seed of the sessions. If it is `None`, weft draws a random seed.
    pub seed: Option<u64>,
    /// How long to draw sessions. The reduction of a failure is part of this time.
    pub time: Duration,
    /// Maximum number of sessions. `None`: no maximum.
    pub sessions: Option<u64>,
    /// Maximum number of connections of a session at a time, from 1.
    pub connections: u32,
    /// Whether the exploration ends after the first failure, when the failure is reduced and saved.
    pub until_fail: bool,
    /// Becomes `true` when the exploration shall stop.
    pub cancel: Option<watch::Receiver<bool>>,
}

/// Counts of an exploration.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct ExploreProgress {
    /// Number of sessions that were drawn and played.
    pub sessions: u64,
    /// Number of their steps.
    pub steps: u64,
    /// Number of sessions that failed.
    pub failed: u64,
    /// Number of different failures. Each has a saved case.
    pub failures: usize,
    /// Number of sessions without a verdict, for example because the link was lost.
    pub undecided: u64,
}

/// A failure that the exploration found.
#[derive(Debug, Clone)]
pub struct ExploredFailure {
    /// Id of the saved case.
    pub case: String,
    /// Number of steps of the session that failed, and of the saved case.
    pub steps: [usize; 2],
    /// How the reduction ended.
    pub outcome: Outcome,
    /// The result of the saved case when it failed.
    pub result: CaseResult,
}

/// The result of an exploration.
#[derive(Debug, Clone)]
pub struct Exploration {
    /// The seed.
    pub seed: u64,
    /// The limits of the target that the sessions respect, a sentence for each.
    pub limits: Vec<String>,
    /// The services for which no more sessions were drawn, and why. A sentence for each.
    pub abandoned: Vec<String>,
    /// The counts.
    pub progress: ExploreProgress,
    /// The failures, in the order in which they were found.
    pub failures: Vec<ExploredFailure>,
    /// The requirements that the tester violated in sessions without illegal steps. Each of them
    /// shows a fault of weft. At most 20.
    pub tester_errors: Vec<String>,
    /// The reason why the most recent undecided session has no verdict.
    pub undecided: Option<String>,
    /// Why the exploration ended before its time, if it did.
    pub stopped: Option<String>,
}

/// Why a target cannot be explored.
#[derive(Debug, thiserror::Error)]
pub enum ExploreError {
    /// The service of the target has no sessions.
    #[error(
        "{0} has the service {1}; --explore needs a target with the service `echo` or `rping`, with an agent, a port mapper, or an SDP socket"
    )]
    Service(String, &'static str),
    /// The target is the Initiator, has no agent, and its service has no sessions in this role.
    #[error(
        "{0} connects to weft and has the service {1}; --explore needs an Initiator with the service `echo`, `rping` or `sdp-connect`, or with an agent"
    )]
    Initiator(String, &'static str),
    /// The tester cannot work.
    #[error(transparent)]
    Run(#[from] RunError),
}
