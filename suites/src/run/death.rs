//! Fails a case if the case makes the target die. One of these observations shows this:
//!
//! - A good exchange worked before the stimulus, and no good exchange works after it.
//! - The target answered before the stimulus, and the command `crashed` reports that it is dead.
//! - A program was started as the target and received the stimulus, and a signal for the program's
//!   own fault killed the program.
//!
//! The report of the case describes the end of the target: how the started programs ended, and what
//! the command `crashed` prints.

use std::sync::Arc;

use weft_core::RequirementId;

use super::RunError;
use super::context::RunContext;
use super::excuse;
use crate::model::{CaseInfo, CaseKey, Event, EventSink, ProgramEnd};
use crate::stage::{EndedProgram, Stage};
use crate::targets::{CRASHED_SECONDS, Start, Target};

impl RunContext {
    /// Records the ends of the programs that were started as the target. If the case certainly made
    /// the target die, the case fails, unless its script has an error.
    pub(super) async fn judge_death(
        &self,
        case: &CaseInfo,
        key: &CaseKey,
        target: &Arc<Target>,
        stage: &mut Stage,
        is_script_wrong: bool,
    ) -> Result<(), RunError> {
        if target.remote().is_none() {
            return Ok(());
        }
        let ended = stage.ended_programs().await;
        ended.iter().for_each(|EndedProgram { end, .. }| stage.recorder().note(&format!("{end}: {}", end.command)));
        stage.log_mut().program_ends = ended.iter().map(|program| program.end.clone()).collect();
        let first = case.requirements.first().copied();
        if !stage.log().is_dead_after() {
            if let Some(crash) = crash_of_stimulus(&ended).filter(|_| !is_script_wrong) {
                stage.log_mut().fail_as_crashed(first, crash);
            } else if stage.log().is_undecided_after_stimulus()
                && let Some(output) = output_of_crashed(target).await
            {
                fail_with_output(stage, first, &ended, &output);
                return Ok(());
            }
            stage.log_mut().explain(&ends_of_stimulated(&ended));
            return Ok(());
        }
        let state =
            excuse::TargetState { address: stage.connections.target_address(), has_ended: stage.has_target_ended() };
        // Some targets serve only one connection at a time, so close this connection before the
        // next attempt.
        stage.leave().await;
        // A single exchange may fail by chance, so try again. But do not try again if a person
        // would have to connect the target.
        let case_link = self.live.link(target)?;
        if !matches!(case_link.start, Some(Start::Manual { .. })) {
            let quiet: Arc<dyn EventSink> = Arc::new(|_: &Event| {});
            // If the service did not work before the stimulus, the case used only the start-up. So
            // repeat only the start-up.
            let service = if stage.log().has_worked { target.service() } else { target.service().of_startup() };
            let probed_target = Arc::new(target.with_service(service));
            let mut probe = Stage::new(probed_target, case_link, key.clone(), quiet);
            let alive = probe.good_exchange(Vec::new()).await.is_ok();
            probe.leave().await;
            if alive {
                return Ok(());
            }
        }
        let output = output_of_crashed(target).await;
        if state.has_ended || output.is_some() || excuse::host_is_there(target, state).await {
            fail_with_output(stage, first, &ended, &output.unwrap_or_default());
        }
        Ok(())
    }
}

/// Returns the last lines that the command `crashed` prints. `None` if there is no such command, or
/// if it reports that the target lives.
async fn output_of_crashed(target: &Target) -> Option<Vec<String>> {
    let (ended, printed) = target.remote()?.crashed.as_ref()?.run_and_read(target.scaled(CRASHED_SECONDS)).await;
    ended.is_ok().then_some(printed)
}

/// Fails the case because it made the target die. The failure counts against the requirement
/// `first`. `output` are the last lines of the command `crashed`.
fn fail_with_output(stage: &mut Stage, first: Option<RequirementId>, ended: &[EndedProgram], output: &[String]) {
    let ends = ends_of_stimulated(ended);
    stage.log_mut().fail_as_dead(first, &ends, output.last().map(String::as_str));
    output.iter().for_each(|line| stage.recorder().note(&format!("last output of the target: {line}")));
}

/// Returns the crash of a program that received a stimulus. `None` if a program without a stimulus
/// crashed, too.
fn crash_of_stimulus(ended: &[EndedProgram]) -> Option<&ProgramEnd> {
    let mut crashes = ended.iter().filter(|program| program.end.is_crash());
    let first = crashes.clone().next()?;
    crashes.all(|program| program.is_stimulated).then_some(&first.end)
}

/// Returns sentences about the programs that received a stimulus and did not exit with status 0.
fn ends_of_stimulated(ended: &[EndedProgram]) -> String {
    let is_reported = |program: &&EndedProgram| program.is_stimulated && !program.end.is_success();
    ended.iter().filter(is_reported).map(|EndedProgram { end, .. }| format!(" The {end}.")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::process::ExitStatusExt;
    use std::process::ExitStatus;

    /// Returns the ends of programs. Each program is given by a raw status of wait(2), and by
    /// whether it received a stimulus.
    fn programs(of: &[(i32, bool)]) -> Vec<EndedProgram> {
        let program = |(number, (raw, is_stimulated)): (u32, &(i32, bool))| EndedProgram {
            end: ProgramEnd::of(Some(number), "client".to_owned(), ExitStatus::from_raw(*raw)),
            is_stimulated: *is_stimulated,
        };
        (1..).zip(of).map(program).collect()
    }

    #[test]
    fn a_program_that_crashes_without_a_stimulus_too_did_not_crash_of_it() {
        let crashed = |of: &[(i32, bool)]| crash_of_stimulus(&programs(of)).and_then(|end| end.connection);
        assert_eq!(crashed(&[(0, false), (11, true), (0, false)]), Some(2));
        assert_eq!(crashed(&[(11, false), (11, true)]), None);
        assert_eq!(crashed(&[(11, true), (11, false)]), None);
        // Neither SIGKILL nor the exit status that a shell returns after a signal counts as a
        // crash.
        assert_eq!(crashed(&[(9, true), (139 << 8, true)]), None);
    }

    #[test]
    fn ends_are_explained_where_the_script_did_something() {
        let sentences = ends_of_stimulated(&programs(&[(1 << 8, false), (3 << 8, true), (0, true), (9, true)]));
        assert_eq!(
            sentences,
            " The program of connection 2 ended, exit status: 3. The program of connection 4 ended, signal: 9 (SIGKILL)."
        );
    }
}
