//! Runs one planned case: creates the link to the target, runs the script, judges the case, and
//! writes the evidence.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::{Duration, Instant};

use tokio::sync::{Mutex, OwnedMutexGuard};
use weft_peer::driver::TrafficEvent;

use super::applicable::not_applicable;
use super::context::RunContext;
use super::excuse::{self, TargetState};
use super::judge::{self, Judgement, Missing};
use super::{RunError, seed};
use crate::clock;
use crate::evidence;
use crate::model::{
    Capability, CaseInfo, CaseKey, CaseResult, Event, EventSink, Evidence, EvidenceSource, RequirementVerdict,
    SENDS_NOTHING, Verdict,
};
use crate::script::{Limits, ScriptFault, SuiteCase, invoke};
use crate::stage::{Log, Stage};
use crate::targets::{COMMAND_SECONDS, MANUAL_SECONDS, RESTART_SECONDS, Start, Target};

/// Maximum number of connections that a case may need, including those for good exchanges (correct
/// exchanges that show whether the target works).
const MAX_CONNECTIONS: u32 = 10;

/// Maximum number of times that a case runs again because of standstills of the tester.
const MAX_REPEATS: u32 = 2;

/// Seconds to wait until a capture has the packets that the tester's own record already has.
const WIRE_SECONDS: f64 = 1.0;

/// A case with its verdict.
pub(super) struct FinishedCase {
    result: CaseResult,
    /// The run's folder, and the files that must be on the disk before the verdict is recorded.
    evidence: Option<(PathBuf, evidence::UnsyncedFiles)>,
}

impl FinishedCase {
    fn without_evidence(result: CaseResult) -> Self {
        FinishedCase { result, evidence: None }
    }

    /// Returns the result. Its evidence may not be on the disk yet.
    pub(super) fn into_result(self) -> CaseResult {
        self.result
    }

    /// Returns the result, once its evidence is on the disk. May block for some milliseconds.
    pub(super) fn sync_evidence(self) -> Result<CaseResult, RunError> {
        let FinishedCase { result, evidence } = self;
        if let Some((out, written)) = evidence {
            written.sync().map_err(|error| RunError::Write { path: out.join(&result.evidence.folder), error })?;
        }
        Ok(result)
    }
}

/// A case whose script has ended.
pub(super) struct ScriptRun {
    pub(super) stage: OwnedMutexGuard<Stage>,
    fault: Option<ScriptFault>,
    /// The length of a standstill of the tester, if the case therefore decided nothing.
    spoiled_by: Option<Duration>,
}

/// Begin of the sentence about a target that was dead after a case.
pub(crate) const DEAD_AFTER: &str = "The target was dead after the case";

/// The state of the target after a case.
#[derive(Debug, Default)]
struct TargetRecovery {
    restarted: bool,
    /// A sentence that follows the explanation.
    sentence: String,
}

impl RunContext {
    /// Runs a case of the suites.
    pub(super) async fn run_case(&self, key: &CaseKey) -> Result<FinishedCase, RunError> {
        let Some(case) = self.suites.case(&key.case) else {
            // This cannot happen, because the plan was made from the same suites.
            let error = std::io::Error::other(format!("the suites have no case {key}"));
            return Err(RunError::Write { path: self.out.clone(), error });
        };
        self.run_suite_case(case, key).await
    }

    /// Runs a case, judges it and writes its evidence.
    pub(super) async fn run_suite_case(&self, case: &SuiteCase, key: &CaseKey) -> Result<FinishedCase, RunError> {
        let began = Instant::now();
        let mut began_unix_ns = clock::unix_ns();
        let seed = seed::of_case(self.run.seed, key);
        if let Some(why) = not_applicable(&self.target, &case.info) {
            return Ok(FinishedCase::without_evidence(not_run(&case.info, key, seed, Verdict::NotApplicable, why)));
        }
        if let Some(why) = self.reach.never_reached() {
            return Ok(FinishedCase::without_evidence(not_run(&case.info, key, seed, Verdict::Inconclusive, why)));
        }
        if let Some(cases) = self.unanswered.count_if_all() {
            let why = format!("{SENDS_NOTHING}: {cases} cases waited in vain for an answer.");
            return Ok(FinishedCase::without_evidence(not_run(&case.info, key, seed, Verdict::Inconclusive, why)));
        }
        if let Some(why) = self.restart_failure.get() {
            let why = format!("The target is dead, and its restart failed: {why}.");
            return Ok(FinishedCase::without_evidence(not_run(&case.info, key, seed, Verdict::Inconclusive, why)));
        }
        if let Some(wire) = &self.wire {
            wire.begin();
        }
        let service = self.target.service_for(&case.info.capabilities);
        let mut target = self.target.with_service(service);
        target.options.requests_enhanced = case.info.capabilities.contains(&Capability::Revision2);
        target.options.requests_markers |= case.info.capabilities.contains(&Capability::AsksForMarkers);
        let target = Arc::new(target);
        let mut script_run = self.run_script(case, key, &target, seed, self.stage(key, &target)?).await?;
        let mut recovery = self.restart_if_dead(script_run.stage.log(), key, &target).await?;
        if recovery.restarted && !script_run.stage.log().alive_before {
            // The target was dead before this case began. So the failure is no evidence, and the
            // script runs again on the restarted target.
            if let Some(wire) = &self.wire {
                wire.begin();
            }
            // Times in the traffic log count from the creation of the link.
            began_unix_ns = clock::unix_ns();
            script_run = self.run_script(case, key, &target, seed, self.stage(key, &target)?).await?;
            recovery = self.restart_if_dead(script_run.stage.log(), key, &target).await?;
        }
        let mut repeated = String::new();
        for _ in 0..MAX_REPEATS {
            let Some(standstill) = script_run.spoiled_by.filter(|_| !recovery.restarted) else { break };
            if matches!(script_run.stage.connections.start(), Some(Start::Manual { .. })) {
                break;
            }
            repeated = format!(" The case ran again, because the tester did not run for {} s.", standstill.as_secs());
            if let Some(wire) = &self.wire {
                wire.begin();
            }
            began_unix_ns = clock::unix_ns();
            script_run = self.run_script(case, key, &target, seed, self.stage(key, &target)?).await?;
            recovery = self.restart_if_dead(script_run.stage.log(), key, &target).await?;
        }
        let ScriptRun { mut stage, fault, .. } = script_run;
        self.remember(key, &target, &stage);

        let traffic = stage.connections.traffic();
        let (frames, without) = self.frames(&traffic.events, began_unix_ns).await;
        let (findings, lost_findings) = evidence::watch(&traffic, &frames, &stage.overflow);
        let case_evidence = evidence::place(key, frames.source, without, &traffic.events);
        let control = self.control(case, key, &target, seed, &mut stage).await?;
        if self.basics.has_failed() {
            stage.log_mut().doubt_missing_answer();
        }
        let missing = Missing {
            // A capture on an interface is complete.
            events: if frames.source == EvidenceSource::Endpoint { traffic.lost } else { 0 },
            octets: case_evidence.dropped.iter().map(|dropped| dropped.octets).sum(),
            steps: stage.log().steps.left_out(),
        };
        let Judgement { verdict, requirements, expected, actual, mut explanation, at, packet } =
            judge::judge(&case.info, stage.log(), fault.as_ref(), &findings, lost_findings);
        explanation.push_str(&control);
        if verdict == Verdict::Inconclusive && stage.log().connections > 0 {
            explanation.push_str(&self.basics.named());
        }
        explanation.push_str(&repeated);
        explanation.push_str(&recovery.sentence);
        explanation.push_str(&missing.sentence());
        let transcript = std::mem::take(&mut stage.log_mut().steps);
        let decision = stage.log().decision.as_ref();
        let deciding_step = decision.and_then(|decision| transcript.index_of(decision.step?));
        let (steps, left_out) = transcript.into_steps();
        let decided_packet = match verdict {
            Verdict::Fail => {
                packet.or_else(|| evidence::frame_number(&steps, deciding_step?, &left_out, &traffic.events, &frames))
            }
            _ => None,
        };
        let decided_sequence = decided_packet.and_then(|packet| evidence::sequence_numbers(&frames, packet));
        let mut result = CaseResult {
            key: key.clone(),
            version: case.info.version,
            title: case.info.title.clone(),
            verdict,
            requirements,
            expected,
            actual,
            explanation,
            decided_at: at,
            decided_packet,
            decided_sequence,
            steps,
            findings,
            program_ends: std::mem::take(&mut stage.log_mut().program_ends),
            evidence: case_evidence,
            seed,
            duration_us: u64::try_from(began.elapsed().as_micros()).unwrap_or(u64::MAX),
        };
        self.basics.note(case, &result);
        let failed = |error| RunError::Write { path: self.out.join(&result.evidence.folder), error };
        let written =
            evidence::write(&self.out, &self.run, &result, &left_out, &traffic.events, &frames, began_unix_ns)
                .map_err(failed)?;
        result.shorten_steps();
        Ok(FinishedCase { result, evidence: Some((self.out.clone(), written)) })
    }

    /// Returns the frames of a case. They come from the wire if the run has a complete capture.
    /// Otherwise they are made from the tester's record. If the capture is incomplete, the second
    /// value is the reason.
    async fn frames(&self, traffic: &[TrafficEvent], began_unix_ns: u64) -> (evidence::Frames, Option<String>) {
        let Some(wire) = &self.wire else { return (evidence::synthesize_frames(traffic), None) };
        match wire.frames(traffic, began_unix_ns, self.target.scaled(WIRE_SECONDS)).await {
            Ok(frames) => (frames, None),
            Err(why) => (evidence::synthesize_frames(traffic), Some(why)),
        }
    }

    /// Creates a stage that sends its events to the run's sink.
    fn stage(&self, key: &CaseKey, target: &Arc<Target>) -> Result<Stage, RunError> {
        let sink: Arc<dyn EventSink> = match self.is_silent.load(Relaxed) {
            true => Arc::new(|_: &Event| {}),
            false => self.sink.clone(),
        };
        Ok(Stage::new(target.clone(), self.live.link(target)?, key.clone(), sink))
    }

    /// Runs a case's script on new connections.
    pub(super) async fn run_script(
        &self,
        case: &SuiteCase,
        key: &CaseKey,
        target: &Arc<Target>,
        seed: u64,
        stage: Stage,
    ) -> Result<ScriptRun, RunError> {
        let mut limits = self.suites.limits;
        let factor = target.options.limits.script;
        let (factor, time) = match target.options.limits.seconds {
            // A script with more time may execute more instructions.
            Some(seconds) => (factor.max(seconds.div_ceil(Limits::SECONDS)), Duration::from_secs(seconds.into())),
            None => (factor, limits.time * factor),
        };
        limits.instructions *= u64::from(factor);
        limits.memory *= factor as usize;
        limits.time = script_time(time, target, stage.connections.start());
        let stage = Arc::new(Mutex::new(stage));
        let began = Instant::now();
        let fault = invoke(case, key, stage.clone(), target.clone(), limits, seed).await.err();
        let mut stage = stage.lock_owned().await;
        let stood_still = self.standstill.as_ref().and_then(|standstill| standstill.since(began));
        let mut spoiled_by = None;
        if self.standstill.is_some() && (stage.log().has_failed() || stood_still.is_some()) {
            let state =
                TargetState { address: stage.connections.target_address(), has_ended: stage.has_target_ended() };
            if let Some(why) = excuse::excuse(target, stage.log(), state, stood_still).await {
                stage.log_mut().excuse(&why);
                spoiled_by = stood_still.filter(|_| stage.log().is_excused);
            }
        }
        if !stage.is_control() && stood_still.is_none() {
            self.judge_death(&case.info, key, target, &mut stage, fault.is_some()).await?;
        }
        stage.leave().await;
        Ok(ScriptRun { stage, fault, spoiled_by })
    }

    /// If the case did not show that the target is alive, probes the target. If the target is dead,
    /// runs the command `restart` of the target file. Does nothing without such a command.
    async fn restart_if_dead(
        &self,
        log: &Log,
        key: &CaseKey,
        target: &Arc<Target>,
    ) -> Result<TargetRecovery, RunError> {
        let Some(restart) = target.remote().and_then(|remote| remote.restart.as_ref()).filter(|_| !log.alive_after)
        else {
            return Ok(TargetRecovery::default());
        };
        // The events of this stage are ignored.
        let mut stage = Stage::new(target.clone(), self.live.link(target)?, key.clone(), Arc::new(|_: &Event| {}));
        let alive = stage.good_exchange(Vec::new()).await.is_ok();
        stage.leave().await;
        if alive {
            return Ok(TargetRecovery::default());
        }
        match restart.run(target.scaled(RESTART_SECONDS)).await {
            Ok(()) => {
                let sentence = format!(" {DEAD_AFTER}, and was restarted.");
                Ok(TargetRecovery { restarted: true, sentence })
            }
            Err(why) => {
                let sentence = format!(" {DEAD_AFTER}, and its restart failed: {why}.");
                self.reach.note_failed_restart(key, &why);
                // Only the first reason is stored.
                let _ = self.restart_failure.set(why);
                Ok(TargetRecovery { restarted: false, sentence })
            }
        }
    }

    /// Stores what the next cases need: whether the target is reachable, and whether it sends
    /// anything.
    fn remember(&self, key: &CaseKey, target: &Target, stage: &Stage) {
        if let Some(headline) = self.reach.note(key, target, stage) {
            self.sink.event(&Event::TargetDown { headline });
        }
        if stage.log().connections > 0 || stage.connections.has_responded {
            self.unanswered.note(stage.connections.has_responded);
        }
    }
}

/// Returns the time limit of a script. `limit` is the time limit for a target that has usual speed
/// and that weft does not start.
fn script_time(limit: Duration, target: &Target, start: Option<&Start>) -> Duration {
    // The wait for the start of the target is not part of the script's time.
    let wait = match start {
        Some(Start::Manual { .. }) => target.scaled(MANUAL_SECONDS),
        Some(Start::Command { .. }) => target.scaled(COMMAND_SECONDS),
        Some(Start::MapperClient { .. } | Start::Builtin { .. } | Start::Virtual) | None => Duration::ZERO,
    };
    // A slow target gets more time for its answers.
    let own =
        Duration::try_from_secs_f64(limit.as_secs_f64() * target.options.time_scale.max(1.0)).unwrap_or(Duration::MAX);
    own.saturating_add(wait.saturating_mul(MAX_CONNECTIONS))
}

/// Returns the result of a case that did not run. `explanation` is the reason.
fn not_run(case: &CaseInfo, key: &CaseKey, seed: u64, verdict: Verdict, explanation: String) -> CaseResult {
    let judged = |requirement: &weft_core::RequirementId| RequirementVerdict {
        requirement: *requirement,
        verdict,
        also_observed: false,
    };
    CaseResult {
        key: key.clone(),
        version: case.version,
        title: case.title.clone(),
        verdict,
        requirements: case.requirements.iter().map(judged).collect(),
        expected: None,
        actual: None,
        explanation,
        decided_at: None,
        decided_packet: None,
        decided_sequence: None,
        steps: Vec::new(),
        findings: Vec::new(),
        program_ends: Vec::new(),
        // A case that did not run has no evidence.
        evidence: Evidence::default(),
        seed,
        duration_us: 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_peer::driver::LinkListener;

    /// If all waits of a case time out, the case is inconclusive. It must not be stopped like an
    /// endless script.
    #[tokio::test]
    async fn a_script_has_time_for_all_that_it_waits_for() {
        let limit = Duration::from_secs(300);
        let listener = LinkListener::bind(([127, 0, 0, 1], 0).into()).unwrap();
        let manual = Start::Manual { name: "nic".into() };
        let command = Start::Command { argv: vec!["rping".into()], listener: Some(listener) };
        let time = |time_scale, start| {
            let mut target = Target::builtin();
            target.options.time_scale = time_scale;
            script_time(limit, &target, start).as_secs()
        };
        assert_eq!(time(1.0, None), 300);
        assert_eq!(time(0.5, None), 300);
        assert_eq!(time(4.0, None), 1200);
        assert_eq!(time(1.0, Some(&manual)), 300 + 10 * 300);
        assert_eq!(time(2.0, Some(&manual)), 600 + 10 * 600);
        assert_eq!(time(1.0, Some(&command)), 300 + 10 * 30);
    }
}
