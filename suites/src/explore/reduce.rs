//! Finds out what a failure needs, and reduces it.
//!
//! A failing session is played again. If it fails again, its steps are reduced. If it does not, the
//! sessions before it may have a part in the failure, so the last sessions are played again as one
//! session. A target may no longer work after a session. If the target file has a command that
//! restarts it, the target is restarted before each session. Otherwise nothing can be reduced. The
//! failure is then the good exchange that no longer works. The same applies if the session still
//! fails without any step, because the target keeps a state from one connection to the next.
//!
//! # Number of sessions
//!
//! A session, and each of at most 6 joined sessions, is played [`REPLAYS`] times. If one of them
//! fails, at most [`shrink::MAX_TRIES`] candidates are played, each of them at most [`REPLAYS`]
//! times. The result is played [`REPLAYS`] times if its connections get other numbers. These are at
//! most 1,224 sessions. If a session has no verdict, the player also lets the target recover (at
//! most 3 sessions), and plays the session once more. The time of the exploration also limits the
//! reduction.

use std::collections::BTreeSet;
use std::fmt::{self, Display, Formatter};

use weft_core::RequirementId;

use super::history;
use super::player::{Player, violated};
use super::shrink::{self, Shrunk, Trial};
use crate::model::{CaseResult, Verdict};
use crate::run::RunError;
use crate::session::{SessionService, Step};

/// Number of times that a session is played to find out whether it fails again.
const REPLAYS: usize = 3;
/// Maximum number of connections of a joined session. The Lua module finds connections with numbers
/// up to 1,000 (`MAX_NUMBER`).
const MAX_CONNECTIONS: u32 = 900;
/// Maximum number of sessions that are joined to reproduce a failure.
pub(super) const MAX_HISTORY: usize = 64;

/// A session that failed.
pub(super) struct FailedSession<'f> {
    pub(super) service: SessionService,
    /// The last part of the id of its case.
    pub(super) name: &'f str,
    pub(super) steps: Vec<Step>,
    pub(super) result: CaseResult,
    /// The requirements that the session violated, without those that every session violates.
    pub(super) rows: &'f BTreeSet<RequirementId>,
    /// The sessions that were played before it with the same service, the last one at the end.
    pub(super) history: &'f [Vec<Step>],
}

/// What remains of a session that failed.
pub(super) struct Reduced {
    pub(super) steps: Vec<Step>,
    pub(super) result: CaseResult,
    pub(super) outcome: Outcome,
}

/// How the reduction of a session ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// The remaining steps fail again.
    Reduced,
    /// The remaining steps fail again. They come from this number of sessions.
    Joined(usize),
    /// The remaining steps fail again. They come from this number of sessions. The reduction
    /// stopped before its end, so more steps may be unnecessary.
    Stopped(usize, StopReason),
    /// The target no longer does a good exchange after the session.
    Damaged,
    /// The session did not fail again.
    Once,
    /// The time was over before the session could be played again.
    NotReplayed,
}

impl Outcome {
    /// The remaining steps fail again, and come from this number of sessions. `reason` is set if
    /// the reduction stopped before its end.
    fn of(sessions: usize, reason: Option<StopReason>) -> Self {
        match (reason, sessions) {
            (Some(reason), _) => Outcome::Stopped(sessions, reason),
            (None, 1) => Outcome::Reduced,
            (None, _) => Outcome::Joined(sessions),
        }
    }
}

/// Why a reduction stopped before its end. The displayed text follows the word "stopped".
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StopReason {
    /// The time of the exploration, and half of this time again, was over.
    TimeLimit,
    /// The exploration was interrupted.
    Interrupt,
}

impl Display for StopReason {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            StopReason::TimeLimit => "at the time limit",
            StopReason::Interrupt => "by an interrupt",
        })
    }
}

/// Reduces a session that failed. Plays no further session when `reason_to_stop` returns a reason.
pub(super) async fn reduce(
    player: &Player,
    failed: FailedSession<'_>,
    reason_to_stop: &impl Fn() -> Option<StopReason>,
) -> Result<Reduced, RunError> {
    let FailedSession { service, name, steps, result, rows, history } = failed;
    if !player.can_restart() && !player.recovers(service).await? {
        let damaged = player.play_damaged(service, name, rows).await?;
        if damaged.verdict == Verdict::Fail {
            return Ok(Reduced { steps: Vec::new(), result: damaged, outcome: Outcome::Damaged });
        }
    }
    let replay = Replay { player, service, name, rows, reason_to_stop };
    if let Some(reduced) = replay.reduce(&steps, 1).await? {
        return Ok(reduced);
    }
    let is_replayed = reason_to_stop().is_none();
    let mut sessions = 1;
    while sessions < history.len() + 1 && sessions < MAX_HISTORY && reason_to_stop().is_none() {
        sessions = (2 * sessions).min(history.len() + 1);
        let mut joined = history[history.len() + 1 - sessions..].to_vec();
        joined.push(steps.clone());
        let joined = history::join(&joined);
        if history::connections(&joined) > MAX_CONNECTIONS {
            break;
        }
        if let Some(reduced) = replay.reduce(&joined, sessions).await? {
            return Ok(reduced);
        }
    }
    let outcome = if is_replayed { Outcome::Once } else { Outcome::NotReplayed };
    Ok(Reduced { steps, result, outcome })
}

/// How often the session that failed fails again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Reliability {
    /// Each of the first replays failed.
    Always,
    /// Some of the first replays failed, for example because the failure depends on times.
    Sometimes,
}

impl Reliability {
    /// Plays a candidate. A reliable failure must occur twice, so that the reduced session is
    /// reliable, too. An unreliable failure must occur once in [`REPLAYS`] sessions.
    async fn play<R>(self, mut play: impl AsyncFnMut() -> Result<Trial<R>, RunError>) -> Result<Trial<R>, RunError> {
        let plays = match self {
            Reliability::Always => 2,
            Reliability::Sometimes => REPLAYS,
        };
        let mut trial = Trial::Passes;
        for _ in 0..plays {
            trial = play().await?;
            let is_decided = match trial {
                Trial::Fails(_) => self == Reliability::Sometimes,
                Trial::Passes => self == Reliability::Always,
                Trial::Stopped => true,
            };
            if is_decided {
                break;
            }
        }
        Ok(trial)
    }
}

/// Plays a session again while it is reduced.
struct Replay<'r, F> {
    player: &'r Player,
    service: SessionService,
    name: &'r str,
    rows: &'r BTreeSet<RequirementId>,
    reason_to_stop: &'r F,
}

impl<F: Fn() -> Option<StopReason>> Replay<'_, F> {
    /// Plays the steps, and returns the result if they fail in the same way.
    async fn play(&self, steps: &[Step]) -> Result<Trial<CaseResult>, RunError> {
        if (self.reason_to_stop)().is_some() {
            return Ok(Trial::Stopped);
        }
        // Without the restart, a damaged target would fail with any steps.
        if self.player.can_restart() && !self.player.restart().await {
            return Ok(Trial::Passes);
        }
        let result = self.player.play_after_recovery(self.service, self.name, steps).await?;
        let fails = violated(&result).intersection(self.rows).next().is_some();
        Ok(if fails { Trial::Fails(result) } else { Trial::Passes })
    }

    /// Reduces the steps, which come from this number of sessions. Returns `None` if the steps do
    /// not fail again.
    async fn reduce(&self, steps: &[Step], sessions: usize) -> Result<Option<Reduced>, RunError> {
        let (mut failures, mut last) = (0, None);
        for _ in 0..REPLAYS {
            if let Trial::Fails(result) = self.play(steps).await? {
                (failures, last) = (failures + 1, Some(result));
            }
        }
        let Some(first) = last else { return Ok(None) };
        let reliability = if failures == REPLAYS { Reliability::Always } else { Reliability::Sometimes };
        let trial = async |steps: &[Step]| reliability.play(async || self.play(steps).await).await;
        let Shrunk { mut steps, mut result, is_stopped } = shrink::shrink(steps.to_vec(), first, trial).await?;
        // A session without steps is the good exchange that precedes every session.
        if steps.is_empty() {
            let damaged = self.player.play_damaged(self.service, self.name, self.rows).await?;
            if damaged.verdict == Verdict::Fail {
                return Ok(Some(Reduced { steps, result: damaged, outcome: Outcome::Damaged }));
            }
        }
        let reason = if is_stopped { (self.reason_to_stop)() } else { None };
        let outcome = Outcome::of(sessions, reason);
        let mut numbered = steps.clone();
        number_from_1(&mut numbered);
        // The new numbers change the order in which the last connections are closed.
        let again = match numbered == steps {
            true => Trial::Passes,
            false => Reliability::Sometimes.play(async || self.play(&numbered).await).await?,
        };
        if let Trial::Fails(again) = again {
            (steps, result) = (numbered, again);
        }
        Ok(Some(Reduced { steps, result, outcome }))
    }
}

/// Numbers the connections from 1, in the order of their first steps.
fn number_from_1(steps: &mut [Step]) {
    let mut numbers = Vec::new();
    for number in steps.iter_mut().filter_map(Step::connection) {
        let place = numbers.iter().position(|known| known == number).unwrap_or_else(|| {
            numbers.push(*number);
            numbers.len() - 1
        });
        *number = u32::try_from(place + 1).unwrap_or(u32::MAX);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Plays a candidate whose sessions have these results. Returns whether it counts as a failure,
    /// and the number of sessions.
    async fn tried(reliability: Reliability, results: &[bool]) -> (bool, usize) {
        let mut plays = 0;
        let trial = reliability.play(async || {
            plays += 1;
            Ok::<_, RunError>(if results[plays - 1] { Trial::Fails(()) } else { Trial::Passes })
        });
        let fails = matches!(trial.await.unwrap(), Trial::Fails(()));
        (fails, plays)
    }

    #[tokio::test]
    async fn a_reliable_failure_must_occur_twice() {
        for (results, expected) in [([true, true], (true, 2)), ([true, false], (false, 2)), ([false, true], (false, 1))]
        {
            assert_eq!(tried(Reliability::Always, &results).await, expected, "{results:?}");
        }
    }

    #[tokio::test]
    async fn an_unreliable_failure_must_occur_once_in_three_sessions() {
        for (results, expected) in [
            ([true, false, false], (true, 1)),
            ([false, true, false], (true, 2)),
            ([false, false, true], (true, 3)),
            ([false, false, false], (false, 3)),
        ] {
            assert_eq!(tried(Reliability::Sometimes, &results).await, expected, "{results:?}");
        }
    }

    #[test]
    fn only_a_complete_reduction_counts_as_reduced() {
        let late = StopReason::TimeLimit;
        for (sessions, reason, outcome) in [
            (1, None, Outcome::Reduced),
            (4, None, Outcome::Joined(4)),
            (1, Some(late), Outcome::Stopped(1, late)),
            (4, Some(late), Outcome::Stopped(4, late)),
        ] {
            assert_eq!(Outcome::of(sessions, reason), outcome);
        }
        assert_eq!(format!("stopped {late}"), "stopped at the time limit");
    }

    #[tokio::test]
    async fn a_candidate_is_not_played_again_after_a_stop() {
        for reliability in [Reliability::Always, Reliability::Sometimes] {
            let mut plays = 0;
            let trial = reliability.play(async || {
                plays += 1;
                Ok::<_, RunError>(Trial::<()>::Stopped)
            });
            assert!(matches!(trial.await.unwrap(), Trial::Stopped));
            assert_eq!(plays, 1);
        }
    }
}
