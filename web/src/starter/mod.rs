//! Runs that a browser starts: against targets that the server was started with, and against nothing else.
//!
//! Each target has a lane: one run at a time, a short queue behind it, and a folder of its own for evidence (`targets/NAME` below the
//! server's folder), since one run at a time writes into a folder. All lanes write into the server's results store. A lane's runs are
//! played on a runtime of their own, so that pages do not wait for scripts.

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
use weft_suites::target::Target;
use weft_suites::{Filter, Plan};

use crate::WebError;
use crate::live::Live;
use lane::Lane;
pub(crate) use lane::{Job, LaneState};

/// Where the folders of the lanes are.
const FOLDERS: &str = "targets";
/// Words of a selection, and characters of one, at most.
const WORDS: usize = 64;
const WORD: usize = 200;

/// What the server may start.
#[derive(Debug, Clone)]
pub struct Start {
    /// Against whom. Names tell them apart.
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

/// What is to be run.
#[derive(Debug, Clone, Default)]
pub(crate) struct Wanted {
    pub(crate) filter: Filter,
    pub(crate) seed: Option<u64>,
    /// The newest run that did not come to its end goes on.
    pub(crate) resume: bool,
    /// In words, for who looks at the queue.
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
    /// Lanes for the targets, which write below `folder` and into the store at that URL.
    ///
    /// # Errors
    /// The name of a target is that of no folder.
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

    /// Runs that a server left unfinished when it was killed are over: what they had is summed up.
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

    /// The targets, by name, with what is done against each.
    pub(crate) fn states(&self) -> impl Iterator<Item = (&Target, LaneState)> {
        self.lanes().map(|lane| (lane.target(), lane.state()))
    }

    /// One target and what is done against it.
    pub(crate) fn state(&self, target: &str) -> Option<(&Target, LaneState)> {
        self.lane(target).ok().map(|lane| (lane.target(), lane.state()))
    }

    /// Is it a run that was started here and goes on?
    pub(crate) fn job_of(&self, target: &str, run: &str) -> Option<u64> {
        let (_, state) = self.state(target)?;
        state.running.filter(|job| job.run.as_deref() == Some(run)).map(|job| job.id)
    }

    /// What words select, as on a command line.
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

    /// Adds a run to the lane of its target; tells its number, and its id once it begins.
    pub(crate) fn start(&self, target: &str, wanted: Wanted) -> Result<(Job, oneshot::Receiver<String>), NotTaken> {
        self.lane(target)?.add(wanted)
    }

    /// Stops a run, or takes it out of the queue. Finished cases are kept.
    pub(crate) fn stop(&self, target: &str, job: u64) -> Result<(), NotTaken> {
        self.lane(target)?.stop(job)
    }

    /// Waits until nothing is done against a target.
    #[cfg(test)]
    pub(crate) async fn idle(&self, target: &str) {
        self.lane(target).unwrap().idle().await;
    }

    /// Stops all there is, and waits for it.
    pub(crate) async fn close(&self) {
        for lane in self.lanes() {
            lane.close();
        }
        for lane in self.lanes() {
            lane.idle().await;
        }
    }
}

/// Where below the server's folder a lane's runs have their files; `None` if the name is that of no target. Names also
/// come from stored runs, which a program other than this one may have written.
pub(crate) fn of_target(name: &str) -> Option<PathBuf> {
    Target::is_name(name).then(|| Path::new(FOLDERS).join(name))
}

/// Which cases of a run are wanted once more.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Again {
    All,
    /// What neither passed nor was skipped.
    Failed,
    One(CaseKey),
}

impl Again {
    /// That part of what `run` planned, with its seed, so that everything random comes out the same.
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

/// What came of a run that was started.
type Played = Result<RunReport, String>;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_target_has_a_folder_of_its_own_below_the_servers() {
        assert_eq!(of_target("nic-1.a_b"), Some(PathBuf::from("targets/nic-1.a_b")));
        for name in ["", ".", "..", ".nic", "../nic", "a/b", "/a", "a b"] {
            assert_eq!(of_target(name), None, "{name}");
        }
    }
}
