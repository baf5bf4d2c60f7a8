//! Plays sessions with the target. Each session is a case of its own.

use std::collections::BTreeSet;
use std::path::Path;

use weft_core::RequirementId;

use crate::model::{CaseResult, Verdict};
use crate::run::{CaseRunner, RunError};
use crate::script::Suites;
use crate::session::{self, SessionService, Step};
use crate::targets::Target;

/// Maximum number of empty sessions that are played until one of them passes. Data that a target
/// keeps from an ended connection can disturb the next connections.
const RECOVERIES: u32 = 3;

/// Plays sessions.
pub(super) struct Player {
    runner: CaseRunner,
}

impl Player {
    /// Opens the target. `scratch` is the folder for the evidence of the current session.
    pub(super) async fn open(target: &Target, scratch: &Path, seed: u64) -> Result<Self, RunError> {
        let runner = CaseRunner::open(target, Suites::none(), scratch.to_owned(), seed).await?;
        Ok(Player { runner })
    }

    /// Plays a session and returns its result.
    pub(super) async fn play(
        &self,
        service: SessionService,
        name: &str,
        steps: &[Step],
    ) -> Result<CaseResult, RunError> {
        self.run(service, name, session::lua(service, name, "", steps, &[])).await
    }

    /// Plays a session. If it has no verdict, for example because the target still has data of an
    /// ended connection, lets the target recover and plays the session again.
    pub(super) async fn play_after_recovery(
        &self,
        service: SessionService,
        name: &str,
        steps: &[Step],
    ) -> Result<CaseResult, RunError> {
        let result = self.play(service, name, steps).await?;
        match result.verdict == Verdict::Inconclusive && self.recovers(service).await? {
            true => self.play(service, name, steps).await,
            false => Ok(result),
        }
    }

    /// Does a good exchange. If it fails, the target violates `rows`.
    pub(super) async fn play_damaged(
        &self,
        service: SessionService,
        name: &str,
        rows: &BTreeSet<RequirementId>,
    ) -> Result<CaseResult, RunError> {
        self.run(service, name, session::lua_damaged(service, name, "", rows)).await
    }

    /// Returns whether the target works, or works again after a few connections.
    pub(super) async fn recovers(&self, service: SessionService) -> Result<bool, RunError> {
        for _ in 0..RECOVERIES {
            if self.play(service, "recovery", &[]).await?.verdict == Verdict::Pass {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns whether the target file has a command that restarts the target.
    pub(super) fn can_restart(&self) -> bool {
        self.runner.can_restart()
    }

    /// Restarts the target if the target file has a command for that.
    pub(super) async fn restart(&self) -> bool {
        self.runner.restart().await
    }

    async fn run(&self, service: SessionService, name: &str, text: String) -> Result<CaseResult, RunError> {
        let file = format!("{}/{name}.lua", service.topic());
        // The text is generated from steps, and each sequence of steps is a correct case.
        let case = Suites::generated(&file, text).map_err(|error| RunError::Generated(error.to_string()))?;
        self.runner.run(&case).await
    }
}

/// Returns the requirements that the target violated in a session. Empty if the session did not
/// fail.
pub(super) fn violated(result: &CaseResult) -> BTreeSet<RequirementId> {
    result.failing().collect()
}
