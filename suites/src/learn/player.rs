//! Plays a sequence of inputs with a target. Each sequence is a separate case, and uses a separate
//! connection.

use std::path::PathBuf;
use std::time::Duration;

use super::{LearnError, script};
use crate::model::{Capability, Role};
use crate::run::{CaseRunner, DEAD_AFTER, RunError};
use crate::script::Suites;
use crate::stage::DIED;
use crate::targets::{Service, Target};

/// Begin of the note of a case that calls `t:unimplemented`.
const UNIMPLEMENTED: &str = "unimplemented: ";

/// The result of a sequence.
pub(super) struct Played {
    /// The output of the connection itself, and the output of each input. If the target has died,
    /// the outputs may be empty.
    pub(super) outputs: Vec<String>,
    /// The target died, for example because its kernel crashed. weft has started it again, if the
    /// target file has a command for this.
    pub(super) has_died: bool,
}

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

    /// Plays the inputs.
    pub(super) async fn play(&self, inputs: &[&'static str]) -> Result<Played, LearnError> {
        self.play_within(inputs, self.silence).await
    }

    /// Plays the inputs. Sends the next input when the target has been silent for `silence`.
    pub(super) async fn play_within(&self, inputs: &[&'static str], silence: Duration) -> Result<Played, LearnError> {
        let source = script::observing_case(inputs, silence, self.is_enhanced);
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
        // A death is noticed only if the target file has a command `restart` or `crashed`.
        let has_died = [DIED, DEAD_AFTER].into_iter().any(|words| result.explanation.contains(words));
        if has_died && outputs.len() != inputs.len() + 1 {
            return Ok(Played { outputs: vec![String::new(); inputs.len() + 1], has_died });
        }
        if outputs.len() != inputs.len() + 1 {
            return Err(LearnError::NoOutputs { inputs: inputs.to_vec(), why: result.explanation });
        }
        Ok(Played { outputs, has_died })
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
