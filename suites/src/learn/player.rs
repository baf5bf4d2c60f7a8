//! Plays a sequence of inputs with a target: each sequence is a case of its own, on a connection of
//! its own.

use std::path::PathBuf;
use std::time::Duration;

use super::{LearnError, script};
use crate::model::{Capability, Role};
use crate::run::{CaseRunner, RunError};
use crate::script::Suites;
use crate::targets::{Service, Target};

/// Begin of the note of a case that calls `t:unimplemented`.
const UNIMPLEMENTED: &str = "unimplemented: ";

pub(super) struct Player {
    runner: CaseRunner,
    silence: Duration,
    is_enhanced: bool,
    scratch: PathBuf,
}

impl Player {
    /// Opens the target. The evidence of each sequence overwrites that of the previous sequence in
    /// `scratch`.
    pub(super) async fn open(
        target: &Target,
        silence: Duration,
        scratch: PathBuf,
        seed: u64,
    ) -> Result<Self, LearnError> {
        if !matches!(target.service(), Service::Echo | Service::Rping | Service::None) {
            return Err(LearnError::Service(target.name().to_owned(), target.service().as_str()));
        }
        let runner = CaseRunner::open(target, Suites::none(), scratch.clone(), seed).await?;
        // This capability makes a builtin initiator send an enhanced Request.
        let is_enhanced = target.role() == Role::Initiator && target.capabilities().contains(&Capability::Revision2);
        Ok(Player { runner, silence, is_enhanced, scratch })
    }

    /// Plays the inputs. Returns the output of the connection itself, and the output of each input.
    pub(super) async fn play(&self, inputs: &[&'static str]) -> Result<Vec<String>, LearnError> {
        let source = script::observing_case(inputs, self.silence, self.is_enhanced);
        // The text is generated from the names of inputs, so it is a correct case.
        let case = Suites::generated(script::FILE, source).map_err(|error| RunError::Write {
            path: self.scratch.clone(),
            error: std::io::Error::other(error.to_string()),
        })?;
        let result = self.runner.run(&case).await?;
        // If the monitor observes a violation, it replaces the verdict and the explanation of the
        // case. But the note of the case remains.
        let note = result.steps.iter().rev().find_map(|step| step.text.strip_prefix(UNIMPLEMENTED));
        let outputs: Vec<String> = note.unwrap_or_default().lines().map(str::to_owned).collect();
        if outputs.len() != inputs.len() + 1 {
            return Err(LearnError::NoOutputs { inputs: inputs.to_vec(), why: result.explanation });
        }
        Ok(outputs)
    }

    /// Returns whether a builtin initiator sends enhanced Requests.
    pub(super) fn is_enhanced(&self) -> bool {
        self.is_enhanced
    }

    /// Removes the evidence.
    pub(super) fn close(self) {
        // The folder is inside the folder of the results, and nothing reads it.
        let _ = std::fs::remove_dir_all(&self.scratch);
    }
}
