//! Starts and stops runs for operators, who use a page or the API. Runs are possible only against
//! the targets on the server's command line.
//!
//! Each target has a queue. At most one run against a target is active, and a few runs can wait.
//! Each target also has a folder for evidence (`targets/NAME` in the server's folder), because only
//! one run at a time can write into a folder. All runs write into the server's results store. Each
//! run has its own async runtime, so pages do not wait for test scripts.

mod finish_killed;
mod queue;
mod run_job;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::oneshot;
use weft_suites::model::{CaseKey, Labels, RunInfo, Tier, Verdict};
use weft_suites::script::Suites;
use weft_suites::store::Store;
use weft_suites::targets::Target;
use weft_suites::{Filter, Plan};

use crate::error::WebError;
use crate::live::Live;
use crate::webhook::RunEnds;
use queue::TargetQueue;
pub(crate) use queue::{Job, QueueState};

/// Name of the folder, in the server's folder, that contains one folder for each target.
const FOLDERS: &str = "targets";
/// The maximum number of words in a selection of cases.
const WORDS: usize = 64;
/// The maximum number of characters in a word of a selection.
const WORD: usize = 200;

/// The runs that the server is allowed to start.
#[derive(Debug, Clone)]
pub struct Start {
    /// The targets. Each target must have a different name.
    pub targets: Vec<Target>,
    /// The test suites with the cases.
    pub suites: Suites,
}

/// Why a run cannot be started or stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum JobError {
    #[error(
        "This server is not allowed to start runs against this target. Restart the server with --target or --targets."
    )]
    UnknownTarget,
    #[error("The queue of this target is full: {most} runs are waiting.", most = queue::MAX_WAITING)]
    QueueFull,
    /// The selection contains no case. The field is the message.
    #[error("{0}")]
    EmptySelection(String),
    /// The selection is too long. The field is the message.
    #[error("{0}")]
    InvalidSelection(String),
    #[error("This target has no unfinished run to resume.")]
    NothingToResume,
    #[error("A resumed run keeps its plan: omit `select`, `tier` and `seed`.")]
    ResumeKeepsPlan,
    #[error("The run is over, or the server is stopping.")]
    AlreadyOver,
}

/// A requested run.
#[derive(Debug, Clone, Default)]
pub(crate) struct JobRequest {
    pub(crate) filter: Filter,
    pub(crate) seed: Option<u64>,
    /// Whether to resume the newest unfinished run.
    pub(crate) resume: bool,
    /// The selection, as text for the user.
    pub(crate) about: String,
    /// Labels of the run, in addition to those of the target.
    pub(crate) labels: Labels,
}

/// Starts and stops runs. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Starter(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    suites: Suites,
    queues: BTreeMap<String, TargetQueue>,
}

impl Starter {
    /// Makes a queue for each target. The runs write into a subfolder of `folder` and into the
    /// store. `ends` notes each end of a run.
    ///
    /// # Errors
    /// Returns an error if the name of a target is not a valid folder name.
    pub(crate) fn new(
        start: Option<Start>,
        folder: &Path,
        store_url: &str,
        live: &Live,
        ends: &RunEnds,
    ) -> Result<Self, WebError> {
        let Some(Start { targets, suites }) = start else { return Ok(Starter::default()) };
        let queue = |target: Target| {
            let below = target_folder(target.name()).ok_or_else(|| WebError::TargetName(target.name().to_owned()))?;
            let context = run_job::JobContext {
                out: folder.join(below),
                store_url: store_url.to_owned(),
                suites: suites.clone(),
                live: live.clone(),
                ends: ends.clone(),
            };
            Ok((target.name().to_owned(), TargetQueue::new(target, context)))
        };
        let queues = targets.into_iter().map(queue).collect::<Result<_, WebError>>()?;
        Ok(Starter(Some(Arc::new(Inner { suites, queues }))))
    }

    /// Finishes the runs that a killed server left unfinished: writes their reports and summaries.
    pub(crate) async fn finish_killed(&self, store: &Store) {
        for queue in self.queues() {
            finish_killed::finish_killed(store, queue.target(), queue.context()).await;
        }
    }

    fn queues(&self) -> impl Iterator<Item = &TargetQueue> {
        self.0.iter().flat_map(|inner| inner.queues.values())
    }

    fn queue(&self, target: &str) -> Result<&TargetQueue, JobError> {
        self.0.as_ref().and_then(|inner| inner.queues.get(target)).ok_or(JobError::UnknownTarget)
    }

    /// Returns the targets in the order of their names, with their current and queued runs.
    pub(crate) fn states(&self) -> impl Iterator<Item = (&Target, QueueState)> {
        self.queues().map(|queue| (queue.target(), queue.state()))
    }

    /// Returns a target with its current and queued runs. Returns `None` if the server is not
    /// allowed to start runs against the target.
    pub(crate) fn state(&self, target: &str) -> Option<(&Target, QueueState)> {
        self.queue(target).ok().map(|queue| (queue.target(), queue.state()))
    }

    /// Returns the number of the job that executes `run`. Returns `None` if this server did not
    /// start the run, or if the run is over.
    pub(crate) fn job_of(&self, target: &str, run: &str) -> Option<u64> {
        let (_, state) = self.state(target)?;
        state.running.filter(|job| job.run.as_deref() == Some(run)).map(|job| job.id)
    }

    /// Makes a request for the cases that the words select, as on the command line.
    ///
    /// # Errors
    /// Returns an error if there are too many words, if a word is too long, or if a word selects no
    /// case.
    pub(crate) fn request(&self, words: &[&str], tier: Tier, seed: Option<u64>) -> Result<JobRequest, JobError> {
        if words.len() > WORDS || words.iter().any(|word| word.chars().count() > WORD) {
            return Err(JobError::InvalidSelection(format!(
                "A selection has at most {WORDS} words of at most {WORD} characters."
            )));
        }
        let inner = self.0.as_ref().ok_or(JobError::UnknownTarget)?;
        for word in words {
            if Plan::of(&inner.suites, &Filter::of([*word]).tier(tier), 0).keys.is_empty() {
                return Err(JobError::EmptySelection(format!("{word:?} selects no case.")));
            }
        }
        let about = if words.is_empty() { "all cases".to_owned() } else { words.join(" ") };
        let about = if tier == Tier::default() { about } else { format!("{about}, tier {}", tier.as_str()) };
        let filter = Filter::of(words.iter().copied()).tier(tier);
        Ok(JobRequest { filter, seed, about, ..JobRequest::default() })
    }

    /// Adds a run to the queue of `target`. Returns the job, and a channel that receives the id of
    /// the run when the run starts.
    pub(crate) fn start(&self, target: &str, wanted: JobRequest) -> Result<(Job, oneshot::Receiver<String>), JobError> {
        self.queue(target)?.add(wanted)
    }

    /// Stops a run or removes it from the queue. The results of finished cases remain.
    pub(crate) fn stop(&self, target: &str, job: u64) -> Result<(), JobError> {
        self.queue(target)?.stop(job)
    }

    /// Waits until no run against the target is active.
    #[cfg(test)]
    pub(crate) async fn idle(&self, target: &str) {
        self.queue(target).unwrap().idle().await;
    }

    /// Stops all runs, and waits until no run is active.
    pub(crate) async fn close(&self) {
        for queue in self.queues() {
            queue.close();
        }
        for queue in self.queues() {
            queue.idle().await;
        }
    }
}

/// Returns the folder for runs against a target, relative to the server's folder. Returns `None` if
/// `name` is not a valid name of a target. Names also come from stored runs, which other programs
/// can write.
pub(crate) fn target_folder(name: &str) -> Option<PathBuf> {
    Target::is_name(name).then(|| Path::new(FOLDERS).join(name))
}

/// The cases of a run to rerun.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum RerunSelection {
    All,
    /// Cases that ran, but did not pass.
    Failed,
    /// The case with this key.
    One(CaseKey),
}

impl RerunSelection {
    /// Makes a request to rerun the selected cases of `run`. `planned` has the planned cases of
    /// `run` with their verdicts. The request has the seed of `run`, so the random choices are the
    /// same as in `run`.
    ///
    /// # Errors
    /// Returns an error if the selection contains no case.
    pub(crate) fn request(
        &self,
        run: &RunInfo,
        planned: impl Iterator<Item = (CaseKey, Option<Verdict>)>,
    ) -> Result<JobRequest, JobError> {
        let is_bad = |verdict: Option<Verdict>| verdict.is_some_and(|verdict| verdict > Verdict::Pass);
        let keys: Vec<CaseKey> = planned
            .filter(|(key, verdict)| match self {
                RerunSelection::All => true,
                RerunSelection::Failed => is_bad(*verdict),
                RerunSelection::One(one) => key == one,
            })
            .map(|(key, _)| key)
            .collect();
        let about = match (self, keys.as_slice()) {
            (RerunSelection::Failed, []) => {
                return Err(JobError::EmptySelection("All cases of the run passed or were skipped.".to_owned()));
            }
            (_, []) => return Err(JobError::EmptySelection("The run has no such case.".to_owned())),
            (_, [one]) => one.to_string(),
            (RerunSelection::All, keys) => format!("the {} cases of an earlier run", keys.len()),
            (_, keys) => format!("{} cases that did not pass", keys.len()),
        };
        // If `run` is a rerun, the new rerun replaces results of the original run, not of `run`.
        let filter = Filter::everything().rerun(run.rerun_of.as_deref().unwrap_or(&run.id), keys);
        Ok(JobRequest { filter, seed: Some(run.seed), about, ..JobRequest::default() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_a_folder() {
        assert_eq!(target_folder("nic-1.a_b"), Some(PathBuf::from("targets/nic-1.a_b")));
        for name in ["", ".", "..", ".nic", "../nic", "a/b", "/a", "a b"] {
            assert_eq!(target_folder(name), None, "{name}");
        }
    }
}
