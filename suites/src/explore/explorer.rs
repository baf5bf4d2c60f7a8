//! Draws and plays sessions until the time is over, and collects the failures.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::time::{Duration, Instant};

use fastrand::Rng;
use weft_core::RequirementId;
use weft_core::requirement::Severity;
use weft_dissector::output::text::counted;

use super::player::{Player, violated};
use super::reduce::{FailedSession, MAX_HISTORY, Outcome, Reduced, StopReason, reduce};
use super::{Exploration, ExploreError, ExploreOptions, ExploreProgress, ExploredFailure, limits};
use crate::model::{CaseResult, RequirementVerdict, Role, Verdict};
use crate::run::{RunError, random_seed};
use crate::session::{self, Profile, SessionService, Step};
use crate::stage::service::Protocol;

/// After this number of consecutive sessions without a verdict, a service is not explored any more.
const MAX_UNDECIDED: u32 = 5;
/// After this number of different failures, the exploration stops.
const MAX_FAILURES: usize = 20;
/// Maximum number of findings about the tester that are kept.
const MAX_TESTER_ERRORS: usize = 20;
/// Interval between two reports of the progress. A new failure is also reported at once.
const PROGRESS: Duration = Duration::from_secs(1);

/// Explores a target. Calls `progress` at most once per second, and after each failure.
///
/// # Errors
/// The target has no service with sessions, or the tester cannot work.
pub async fn explore(
    options: &ExploreOptions,
    progress: impl FnMut(&ExploreProgress),
) -> Result<Exploration, ExploreError> {
    let began = Instant::now();
    let target = &options.target;
    let offered = SessionService::ALL.into_iter().filter(|(service, _)| target.offers(*service));
    let services = offered.map(|(_, service)| service);
    // A case about iWARP judges no target with an SDP service, even if the target has an agent.
    let is_iwarp = target.service().driver().facts().protocol == Protocol::Iwarp;
    // The builtin initiator has no SDP socket.
    let has_socket = target.role() != Role::Initiator || target.remote().is_some();
    let is_judged = |service: SessionService| match service {
        SessionService::PortMapper => true,
        socket if socket.is_sdp() => has_socket,
        _ => is_iwarp,
    };
    let is_played =
        |service: &SessionService| is_judged(*service) && service.roles().iter().any(|role| target.role().plays(*role));
    let services: Vec<SessionService> = services.filter(is_played).collect();
    if services.is_empty() {
        let (name, service) = (target.name().to_owned(), target.service().as_str());
        return Err(match target.role() {
            Role::Responder | Role::Both => ExploreError::Service(name, service),
            Role::Initiator => ExploreError::Initiator(name, service),
        });
    }
    let seed = options.seed.unwrap_or_else(random_seed);
    prepare(&options.out)?;
    // weft does not read a folder as suites if its name begins with a dot.
    let scratch = options.out.join(".session");
    let found = Exploration {
        seed,
        limits: Vec::new(),
        abandoned: Vec::new(),
        progress: ExploreProgress::default(),
        failures: Vec::new(),
        tester_errors: Vec::new(),
        undecided: None,
        stopped: None,
    };
    let player = Player::open(target, &scratch, seed).await?;
    let mut explorer = Explorer { options, began, player, found, sources: Vec::new(), known: Vec::new(), progress };
    for service in services {
        explorer.add_source(service).await?;
    }
    explorer.run().await?;
    // The evidence of the last session is not needed any more. It is written again with each run of
    // a saved case.
    let _ = fs::remove_dir_all(&scratch);
    Ok(explorer.found)
}

/// Creates the folders of the saved cases, and deletes the cases of an earlier exploration.
fn prepare(out: &Path) -> Result<(), RunError> {
    for (_, service) in SessionService::ALL {
        let folder = out.join(service.topic());
        let failed = |error| RunError::Write { path: folder.clone(), error };
        match fs::remove_dir_all(&folder) {
            Err(error) if error.kind() != std::io::ErrorKind::NotFound => return Err(failed(error)),
            _ => fs::create_dir_all(&folder).map_err(failed)?,
        }
    }
    Ok(())
}

/// Returns whether a session failed because an answer or a completion did not arrive in time. If it
/// arrives when the session is played again, the target or the machine may have been slow.
fn is_missing(result: &CaseResult) -> bool {
    result.actual.as_deref().is_some_and(is_missing_answer)
}

/// Returns whether `actual` describes an answer or a completion that did not arrive in time. The
/// modules of the sessions (`suites/library`) have these texts.
fn is_missing_answer(actual: &str) -> bool {
    let begins = ["nothing ", "it did not answer ", "the target's user is not notified "];
    begins.iter().any(|text| actual.starts_with(text)) || actual.contains("then nothing more for ")
}

/// A service of the target, for which sessions are drawn.
struct SessionSource {
    profile: Profile,
    /// Requirements that the target violates in every session, even in a session without steps.
    always: BTreeSet<RequirementId>,
    /// The number of consecutive sessions without a verdict.
    undecided: u32,
    /// Whether a session passed.
    has_passed: bool,
    /// The last sessions.
    history: Vec<Vec<Step>>,
}

/// An exploration that is in progress.
struct Explorer<'o, P> {
    options: &'o ExploreOptions,
    began: Instant,
    player: Player,
    found: Exploration,
    sources: Vec<SessionSource>,
    /// The sets of requirements that failures violated.
    known: Vec<BTreeSet<RequirementId>>,
    progress: P,
}

/// A session that was drawn and played.
struct PlayedSession {
    /// Index of its source.
    source: usize,
    /// The last part of the id of its case.
    name: String,
    steps: Vec<Step>,
    result: CaseResult,
}

impl<P: FnMut(&ExploreProgress)> Explorer<'_, P> {
    /// Finds out what sessions with this service may contain.
    async fn add_source(&mut self, service: SessionService) -> Result<(), RunError> {
        let (options, seed) = (self.options, self.found.seed);
        let (profile, sentences) = limits::find(&self.player, &options.target, service, options.connections).await?;
        self.found.limits.extend(sentences);
        let name = format!("{seed}-0-{}", service.name());
        let result = self.player.play(service, &name, &[]).await?;
        let always = violated(&result);
        let (undecided, has_passed, history) = (0, result.verdict == Verdict::Pass, Vec::new());
        self.sources.push(SessionSource { profile, always: always.clone(), undecided, has_passed, history });
        if !always.is_empty() && !self.known.contains(&always) {
            self.known.push(always);
            let origin = format!("A session of seed {seed} without steps. Every session fails in the same way.");
            let reduced = Reduced { steps: Vec::new(), result, outcome: Outcome::Reduced };
            self.save(service, &name, &origin, 0, reduced)?;
        }
        Ok(())
    }

    /// Plays sessions until the exploration has to stop.
    async fn run(&mut self) -> Result<(), RunError> {
        let mut shown = Instant::now();
        while self.began.elapsed() < self.options.time
            && self.options.sessions.is_none_or(|most| self.found.progress.sessions < most)
        {
            self.found.stopped = self.reason_to_stop();
            if self.found.stopped.is_some() {
                break;
            }
            self.session().await?;
            if shown.elapsed() >= PROGRESS {
                shown = Instant::now();
                (self.progress)(&self.found.progress);
            }
        }
        Ok(())
    }

    fn is_cancelled(&self) -> bool {
        self.options.cancel.as_ref().is_some_and(|cancel| *cancel.borrow())
    }

    /// Returns why no further session is played.
    fn reason_to_stop(&self) -> Option<String> {
        let failures = &self.found.failures;
        if self.is_cancelled() {
            return Some("the exploration was interrupted".to_owned());
        }
        if self.sources.is_empty() {
            return Some("the last sessions of every service had no verdict".to_owned());
        }
        if failures.len() >= MAX_FAILURES {
            return Some(format!("weft found {MAX_FAILURES} different failures"));
        }
        if failures.iter().any(|failure| failure.outcome == Outcome::Damaged) {
            return Some("the target no longer works; restart it before you continue".to_owned());
        }
        (self.options.until_fail && !failures.is_empty()).then(|| "weft found a failure".to_owned())
    }

    /// Draws and plays one session.
    async fn session(&mut self) -> Result<(), RunError> {
        let number = self.found.progress.sessions + 1;
        // 2^64 divided by the golden ratio: consecutive numbers get different seeds.
        let mut rng = Rng::with_seed(self.found.seed ^ number.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let source = rng.usize(..self.sources.len());
        let profile = self.sources[source].profile;
        let steps = session::steps(&mut rng, &profile);
        let name = format!("{}-{number}", self.found.seed);
        let result = self.player.play(profile.service, &name, &steps).await?;
        self.found.progress.sessions = number;
        self.found.progress.steps += steps.len() as u64;
        if steps.iter().all(Step::is_legal) {
            self.keep_tester_errors(&name, &result);
        }
        let rows: BTreeSet<RequirementId> =
            violated(&result).difference(&self.sources[source].always).copied().collect();
        let verdict = result.verdict;
        let played = PlayedSession { source, name, steps: steps.clone(), result };
        if !rows.is_empty() {
            self.sources[source].undecided = 0;
            match self.known.contains(&rows) {
                true => self.found.progress.failed += 1,
                false => self.failed(played, rows).await?,
            }
        } else if matches!(verdict, Verdict::Inconclusive | Verdict::Error) {
            return self.undecided(played).await;
        } else {
            self.sources[source].undecided = 0;
            self.sources[source].has_passed = true;
        }
        let history = &mut self.sources[source].history;
        if history.len() >= MAX_HISTORY {
            history.remove(0);
        }
        history.push(steps);
        Ok(())
    }

    /// Keeps the violations of the tester in a legal session.
    fn keep_tester_errors(&mut self, name: &str, result: &CaseResult) {
        let errors = result.findings.iter().filter(|finding| !finding.by_target && finding.severity == Severity::Error);
        let texts = errors.map(|finding| format!("{name}: {}: {}", finding.requirement, finding.text));
        let left = MAX_TESTER_ERRORS.saturating_sub(self.found.tester_errors.len());
        self.found.tester_errors.extend(texts.take(left));
    }

    /// Handles a session that violated `rows`.
    async fn failed(&mut self, played: PlayedSession, rows: BTreeSet<RequirementId>) -> Result<(), RunError> {
        let PlayedSession { source, name, steps, result } = played;
        let source = &self.sources[source];
        let (service, always) = (source.profile.service, source.always.clone());
        let (before, number) = (steps.len(), self.found.progress.sessions);
        // A reduction may continue after the time of the exploration, for at most half of this time.
        let end = self.began + self.options.time + self.options.time / 2;
        let reason_to_stop = || match self.is_cancelled() {
            true => Some(StopReason::Interrupt),
            false => (Instant::now() >= end).then_some(StopReason::TimeLimit),
        };
        let failed = FailedSession { service, name: &name, steps, result, rows: &rows, history: &source.history };
        let reduced = reduce(&self.player, failed, &reason_to_stop).await?;
        let is_late = is_missing(&reduced.result);
        let undecided = match reduced.outcome {
            Outcome::Once if is_late => {
                Some("An answer was late or missing, and arrived when the session was played again.")
            }
            Outcome::NotReplayed if is_late => {
                Some("An answer was late or missing, and no time was left to play the session again.")
            }
            _ => None,
        };
        if let Some(why) = undecided {
            self.found.progress.undecided += 1;
            self.found.undecided = Some(why.to_owned());
            return Ok(());
        }
        self.found.progress.failed += 1;
        self.known.push(rows);
        // The reduced session may violate fewer requirements than the session that was drawn. An
        // earlier failure may already have violated the same requirements.
        let rows: BTreeSet<RequirementId> = violated(&reduced.result).difference(&always).copied().collect();
        if self.known[..self.known.len() - 1].contains(&rows) {
            return Ok(());
        }
        self.known.push(rows);
        let (seed, after) = (self.found.seed, reduced.steps.len());
        let origin = match reduced.outcome {
            Outcome::Reduced => format!("Session {number} of seed {seed}, reduced from {before} to {after} steps."),
            Outcome::Joined(sessions) => {
                format!("The last {sessions} sessions up to session {number} of seed {seed}, reduced to {after} steps.")
            }
            Outcome::Stopped(sessions, reason) => {
                let first = match sessions {
                    1 => "Session".to_owned(),
                    _ => format!("The last {sessions} sessions up to session"),
                };
                let left = counted(after as u64, "step");
                format!("{first} {number} of seed {seed}. The reduction stopped {reason}, {left} left.")
            }
            Outcome::Damaged => format!("The target no longer works after session {number} of seed {seed}."),
            Outcome::Once => format!("Session {number} of seed {seed}. It failed once, and not again."),
            Outcome::NotReplayed => {
                format!("Session {number} of seed {seed}. The time was over before it was played again.")
            }
        };
        self.save(service, &name, &origin, before, reduced)
    }

    /// Handles a session without a verdict. If the target worked before and works no longer, this
    /// is a failure.
    async fn undecided(&mut self, played: PlayedSession) -> Result<(), RunError> {
        let PlayedSession { source: index, name, steps, result } = played;
        let source = &mut self.sources[index];
        let service = source.profile.service;
        source.undecided += 1;
        let is_over = source.undecided >= MAX_UNDECIDED;
        if source.has_passed && source.undecided == 1 && !self.player.recovers(service).await? {
            let rows = result.requirements.iter().map(|judged| judged.requirement).take(1).collect();
            let damaged = self.player.play_damaged(service, &name, &rows).await?;
            if damaged.verdict == Verdict::Fail {
                self.found.progress.failed += 1;
                let (number, seed) = (self.found.progress.sessions, self.found.seed);
                let origin = format!("The target no longer works since session {number} of seed {seed}.");
                let reduced = Reduced { steps: Vec::new(), result: damaged, outcome: Outcome::Damaged };
                return self.save(service, &name, &origin, steps.len(), reduced);
            }
        }
        self.found.progress.undecided += 1;
        self.found.undecided = Some(result.explanation.clone());
        if is_over {
            let (service, why) = (service.name(), &result.explanation);
            self.found.abandoned.push(format!("{service}: no verdict in {MAX_UNDECIDED} consecutive sessions ({why})"));
            self.sources.remove(index);
        }
        Ok(())
    }

    /// Writes a failure as a case, and adds it to the failures. `origin` describes in one line where
    /// the session comes from. `before` is the number of steps of the session that failed.
    fn save(
        &mut self,
        service: SessionService,
        name: &str,
        origin: &str,
        before: usize,
        reduced: Reduced,
    ) -> Result<(), RunError> {
        let Reduced { steps, result, outcome } = reduced;
        let is_observed = |judged: &&RequirementVerdict| judged.verdict == Verdict::Fail && judged.also_observed;
        let observed: Vec<RequirementId> =
            result.requirements.iter().filter(is_observed).map(|judged| judged.requirement).collect();
        let text = match outcome {
            Outcome::Damaged => session::lua_damaged(service, name, origin, &violated(&result)),
            _ => session::lua(service, name, origin, &steps, &observed),
        };
        let path = self.options.out.join(service.topic()).join(format!("{name}.lua"));
        fs::write(&path, text).map_err(|error| RunError::Write { path, error })?;
        let case = format!("{}/{name}", service.topic());
        self.found.failures.push(ExploredFailure { case, steps: [before, steps.len()], outcome, result });
        self.found.progress.failures = self.found.failures.len();
        (self.progress)(&self.found.progress);
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_late_answer_differs_from_a_wrong_answer() {
        for late in ["nothing for 10 s", "it did not answer within 10 s", "9 bytes, then nothing more for 10 s"] {
            assert!(is_missing_answer(late), "{late}");
        }
        for wrong in ["byte 3 is 0x01", "a close", "Terminate 12 05"] {
            assert!(!is_missing_answer(wrong), "{wrong}");
        }
    }
}
