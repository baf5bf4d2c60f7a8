//! Runs that an operator starts from a page or through the API, only against the targets on the
//! server's command line.
//!
//! Each target has a lane: one run at a time, a short queue, and a folder for evidence
//! (`targets/NAME` in the server's folder), because a folder has only one writer. All lanes write
//! into the server's results store. Runs have a runtime of their own, so that pages do not wait for
//! scripts.

mod lane;
mod play;
mod settle;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use tokio::sync::oneshot;
use weft_suites::model::{CaseKey, RunInfo, RunReport, Tier, Verdict};
use weft_suites::script::Suites;
use weft_suites::store::Store;
use weft_suites::targets::Target;
use weft_suites::{Filter, Plan};

use crate::error::WebError;
use crate::live::Live;
use lane::Lane;
pub(crate) use lane::{Job, LaneState};

/// The folder with the folders of the lanes.
const FOLDERS: &str = "targets";
/// The maximum number of words in a selection, and of characters in a word.
const WORDS: usize = 64;
const WORD: usize = 200;

/// The runs that the server may start.
#[derive(Debug, Clone)]
pub struct Start {
    /// The targets, with different names.
    pub targets: Vec<Target>,
    /// The cases.
    pub suites: Suites,
}

/// Why a run is not started or stopped.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum NotTaken {
    #[error("This server may not start runs against this target; see weft web --target and --targets.")]
    Unknown,
    #[error("The queue of this target is full: {most} runs are waiting.", most = lane::MOST)]
    Full,
    /// The selection is empty.
    #[error("{0}")]
    Nothing(String),
    /// The selection cannot be parsed.
    #[error("{0}")]
    Unclear(String),
    #[error("This target has no unfinished run to resume.")]
    NoRun,
    #[error("A resumed run keeps its plan: omit select, tier and seed.")]
    KeepsPlan,
    #[error("The run is over, or the server is stopping.")]
    Over,
}

/// A requested run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) filter: Filter,
    pub(crate) seed: Option<u64>,
    /// Resumes the newest unfinished run.
    pub(crate) resume: bool,
    /// The selection as text.
    pub(crate) about: String,
}

/// Starts and stops runs. Cheap to clone.
#[derive(Debug, Clone, Default)]
pub(crate) struct Starter(Option<Arc<Inner>>);

#[derive(Debug)]
struct Inner {
    suites: Suites,
    lanes: BTreeMap<String, Lane>,
}

impl Starter {
    /// Makes a lane for each target, which writes into `folder` and into the store.
    ///
    /// # Errors
    /// The name of a target cannot be the name of a folder.
    pub(crate) fn new(start: Option<Start>, folder: &Path, store_url: &str, live: &Live) -> Result<Self, WebError> {
        let Some(Start { targets, suites }) = start else { return Ok(Starter::default()) };
        let lane = |target: Target| {
            let below = of_target(target.name()).ok_or_else(|| WebError::TargetName(target.name().to_owned()))?;
            let place = play::Place {
                out: folder.join(below),
                store_url: store_url.to_owned(),
                suites: suites.clone(),
                live: live.clone(),
            };
            Ok((target.name().to_owned(), Lane::new(target, place)))
        };
        let lanes = targets.into_iter().map(lane).collect::<Result<_, WebError>>()?;
        Ok(Starter(Some(Arc::new(Inner { suites, lanes }))))
    }

    /// Ends runs of a killed server: writes their summaries.
    pub(crate) async fn settle(&self, store: &Store) {
        for lane in self.lanes() {
            settle::settle(store, lane.out()).await;
        }
    }

    fn lanes(&self) -> impl Iterator<Item = &Lane> {
        self.0.iter().flat_map(|inner| inner.lanes.values())
    }

    fn lane(&self, target: &str) -> Result<&Lane, NotTaken> {
        self.0.as_ref().and_then(|inner| inner.lanes.get(target)).ok_or(NotTaken::Unknown)
    }

    /// The targets by name, with their current and queued runs.
    pub(crate) fn states(&self) -> impl Iterator<Item = (&Target, LaneState)> {
        self.lanes().map(|lane| (lane.target(), lane.state()))
    }

    /// A target with its current and queued runs.
    pub(crate) fn state(&self, target: &str) -> Option<(&Target, LaneState)> {
        self.lane(target).ok().map(|lane| (lane.target(), lane.state()))
    }

    /// The number of the job, if this server started the run and it is not over.
    pub(crate) fn job_of(&self, target: &str, run: &str) -> Option<u64> {
        let (_, state) = self.state(target)?;
        state.running.filter(|job| job.run.as_deref() == Some(run)).map(|job| job.id)
    }

    /// Selects cases by words, as on the command line.
    pub(crate) fn wanted(&self, words: &[&str], tier: Tier, seed: Option<u64>) -> Result<Wanted, NotTaken> {
        if words.len() > WORDS || words.iter().any(|word| word.chars().count() > WORD) {
            return Err(NotTaken::Unclear(format!(
                "A selection has at most {WORDS} words of at most {WORD} characters."
            )));
        }
        let inner = self.0.as_ref().ok_or(NotTaken::Unknown)?;
        for word in words {
            if Plan::of(&inner.suites, &Filter::of([*word]).tier(tier), 0).keys.is_empty() {
                return Err(NotTaken::Nothing(format!("{word:?} selects no case.")));
            }
        }
        let about = if words.is_empty() { "all cases".to_owned() } else { words.join(" ") };
        let about = if tier == Tier::default() { about } else { format!("{about}, tier {}", tier.as_str()) };
        Ok(Wanted { filter: Filter::of(words.iter().copied()).tier(tier), seed, resume: false, about })
    }

    /// Adds a run to the lane of its target. Returns its job; the channel has its id once it
    /// starts.
    pub(crate) fn start(&self, target: &str, wanted: Wanted) -> Result<(Job, oneshot::Receiver<String>), NotTaken> {
        self.lane(target)?.add(wanted)
    }

    /// Stops a run or removes it from the queue. The results of finished cases remain.
    pub(crate) fn stop(&self, target: &str, job: u64) -> Result<(), NotTaken> {
        self.lane(target)?.stop(job)
    }

    /// Waits until no run against the target is active.
    #[cfg(test)]
    pub(crate) async fn idle(&self, target: &str) {
        self.lane(target).unwrap().idle().await;
    }

    /// Stops all runs and waits for their end.
    pub(crate) async fn close(&self) {
        for lane in self.lanes() {
            lane.close();
        }
        for lane in self.lanes() {
            lane.idle().await;
        }
    }
}

/// The folder of a lane, relative to the server's folder; `None` if this cannot be the name of a
/// target. Names also come from stored runs, which other programs may have written.
pub(crate) fn of_target(name: &str) -> Option<PathBuf> {
    Target::is_name(name).then(|| Path::new(FOLDERS).join(name))
}

/// Which cases of a run to run again.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Again {
    All,
    /// Cases that neither passed nor were skipped.
    Failed,
    One(CaseKey),
}

impl Again {
    /// These cases of `run`, with its seed, so that random choices are the same.
    pub(crate) fn wanted(
        &self,
        run: &RunInfo,
        planned: impl Iterator<Item = (CaseKey, Option<Verdict>)>,
    ) -> Result<Wanted, NotTaken> {
        let is_bad = |verdict: Option<Verdict>| verdict.is_some_and(|verdict| verdict > Verdict::Pass);
        let keys: Vec<CaseKey> = planned
            .filter(|(key, verdict)| match self {
                Again::All => true,
                Again::Failed => is_bad(*verdict),
                Again::One(one) => key == one,
            })
            .map(|(key, _)| key)
            .collect();
        let about = match (self, keys.as_slice()) {
            (Again::Failed, []) => {
                return Err(NotTaken::Nothing("All cases of the run passed or were skipped.".to_owned()));
            }
            (_, []) => return Err(NotTaken::Nothing("The run has no such case.".to_owned())),
            (_, [one]) => one.to_string(),
            (Again::All, keys) => format!("the {} cases of an earlier run", keys.len()),
            (_, keys) => format!("{} cases that did not pass", keys.len()),
        };
        // A rerun of a rerun replaces results of the first run.
        let filter = Filter::everything().rerun(run.rerun_of.as_deref().unwrap_or(&run.id), keys);
        Ok(Wanted { filter, seed: Some(run.seed), resume: false, about })
    }
}

/// The result of a run.
type Played = Result<RunReport, String>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_target_has_a_folder() {
        assert_eq!(of_target("nic-1.a_b"), Some(PathBuf::from("targets/nic-1.a_b")));
        for name in ["", ".", "..", ".nic", "../nic", "a/b", "/a", "a b"] {
            assert_eq!(of_target(name), None, "{name}");
        }
    }
}
