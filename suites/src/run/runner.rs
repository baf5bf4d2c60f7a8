//! Runs single cases without a plan and without a store, for the explorer (`crate::explore`). The
//! explorer generates its cases while it runs, so it cannot plan them.

use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};

use super::context::{RunContext, UnansweredCases};
use super::reach::Reachability;
use super::standstill::Standstill;
use super::{RunError, basics, seed};
use crate::clock;
use crate::evidence;
use crate::model::{CaseKey, CaseResult, Event, Labels, RunInfo, Tier};
use crate::script::{SuiteCase, Suites};
use crate::targets::{OpenTarget, RESTART_SECONDS, Target};

/// Runs cases against one target.
pub(crate) struct CaseRunner(RunContext);

impl CaseRunner {
    /// Opens the target. `out` is the folder for evidence, which later cases overwrite.
    ///
    /// # Errors
    /// The target or the interface for the capture cannot be opened.
    pub(crate) async fn open(target: &Target, suites: Suites, out: PathBuf, run_seed: u64) -> Result<Self, RunError> {
        let wire = target.options.capture.as_deref().map(evidence::Wire::open).transpose()?;
        let mut target = target.clone();
        target.options.use_limits_of(Tier::Full);
        let live = OpenTarget::open(&target).await?;
        let started_unix_ms = clock::unix_ns() / 1_000_000;
        let run = RunInfo {
            id: seed::run_id(started_unix_ms),
            target: target.info(),
            seed: run_seed,
            started_unix_ms,
            weft_version: env!("CARGO_PKG_VERSION").to_owned(),
            is_selection: true,
            rerun_of: None,
            suites: None,
            labels: Labels::new(),
        };
        Ok(CaseRunner(RunContext {
            run,
            standstill: target.remote().map(|_| Standstill::watch()),
            target: Arc::new(target),
            live,
            wire,
            suites,
            out,
            // The events of single cases are not shown.
            sink: Arc::new(|_: &Event| {}),
            reach: Reachability::default(),
            unanswered: UnansweredCases::default(),
            restart_failure: OnceLock::new(),
            basics: basics::Basics::default(),
            is_silent: AtomicBool::new(true),
        }))
    }

    /// Returns whether the target file has a command that restarts the target.
    pub(crate) fn can_restart(&self) -> bool {
        self.0.target.remote().is_some_and(|remote| remote.restart.is_some())
    }

    /// Restarts the target, and returns whether that worked. Returns `false` for a target without a
    /// command that restarts it.
    pub(crate) async fn restart(&self) -> bool {
        let target = &self.0.target;
        match target.remote().and_then(|remote| remote.restart.as_ref()) {
            Some(restart) => restart.run(target.scaled(RESTART_SECONDS)).await.is_ok(),
            None => false,
        }
    }

    /// Runs a case without parameters.
    ///
    /// # Errors
    /// The tester cannot work, for example because the evidence cannot be written.
    pub(crate) async fn run(&self, case: &SuiteCase) -> Result<CaseResult, RunError> {
        let key = CaseKey::new(&case.info.id);
        Ok(self.0.run_suite_case(case, &key).await?.into_result())
    }
}

/// Returns a random seed for a run. It has at most 53 bits, so that every JSON reader reads it
/// exactly.
#[must_use]
pub fn random_seed() -> u64 {
    seed::draw()
}
