//! Finds out what a failure needs, and reduces it.
//!
//! A failing session is played again. If it fails again, its steps are reduced. If it does not, the
//! sessions before it may have a part in the failure, so the last sessions are played again as one
//! session. A target may no longer work after a session. If the target file has a command that
//! restarts it, the target is restarted before each session. Otherwise nothing can be reduced. The
//! failure is then the good exchange that no longer works.

use std::collections::BTreeSet;

use weft_core::RequirementId;

use super::history;
use super::player::{Player, violated};
use super::shrink;
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
    /// The target no longer does a good exchange after the session.
    Damaged,
    /// The session did not fail again.
    Once,
    /// The time was over before the session could be played again.
    NotReplayed,
}

/// Reduces a session that failed. Plays no further session when `is_over` returns `true`.
pub(super) async fn reduce(
    player: &Player,
    failed: FailedSession<'_>,
    is_over: &impl Fn() -> bool,
) -> Result<Reduced, RunError> {
    let FailedSession { service, name, steps, result, rows, history } = failed;
    if !player.can_restart() && !player.recovers(service).await? {
        let damaged = player.play_damaged(service, name, rows).await?;
        if damaged.verdict == Verdict::Fail {
            return Ok(Reduced { steps: Vec::new(), result: damaged, outcome: Outcome::Damaged });
        }
    }
    let replay = Replay { player, service, name, rows, is_over };
    if let Some((steps, result)) = replay.reduce(&steps).await? {
        return Ok(Reduced { steps, result, outcome: Outcome::Reduced });
    }
    let mut sessions = 1;
    while sessions < history.len() + 1 && sessions < MAX_HISTORY && !is_over() {
        sessions = (2 * sessions).min(history.len() + 1);
        let mut joined = history[history.len() + 1 - sessions..].to_vec();
        joined.push(steps.clone());
        let joined = history::join(&joined);
        if history::connections(&joined) > MAX_CONNECTIONS {
            break;
        }
        if let Some((steps, result)) = replay.reduce(&joined).await? {
            return Ok(Reduced { steps, result, outcome: Outcome::Joined(sessions) });
        }
    }
    let outcome = if is_over() { Outcome::NotReplayed } else { Outcome::Once };
    Ok(Reduced { steps, result, outcome })
}

/// Plays a session again while it is reduced.
struct Replay<'r, F> {
    player: &'r Player,
    service: SessionService,
    name: &'r str,
    rows: &'r BTreeSet<RequirementId>,
    is_over: &'r F,
}

impl<F: Fn() -> bool> Replay<'_, F> {
    /// Plays the steps, and returns the result if they fail in the same way.
    async fn fails(&self, steps: &[Step]) -> Result<Option<CaseResult>, RunError> {
        if (self.is_over)() {
            return Ok(None);
        }
        // Without the restart, a damaged target would fail with any steps.
        if self.player.can_restart() && !self.player.restart().await {
            return Ok(None);
        }
        let result = self.player.play_after_recovery(self.service, self.name, steps).await?;
        Ok(violated(&result).intersection(self.rows).next().is_some().then_some(result))
    }

    /// Reduces the steps. Returns the reduced steps and their result, or `None` if the steps do not
    /// fail again.
    async fn reduce(&self, steps: &[Step]) -> Result<Option<(Vec<Step>, CaseResult)>, RunError> {
        let (mut failures, mut last) = (0, None);
        for _ in 0..REPLAYS {
            if let Some(result) = self.fails(steps).await? {
                (failures, last) = (failures + 1, Some(result));
            }
        }
        let Some(first) = last else { return Ok(None) };
        // If the failure is reliable, a shorter session must fail twice, so that it is reliable, too.
        let repeats = if failures == REPLAYS { 2 } else { 1 };
        let mut shortest = (steps.to_vec(), first);
        let fails = async |steps: &[Step]| {
            let mut last = None;
            for _ in 0..repeats {
                last = self.fails(steps).await?;
                if last.is_none() {
                    return Ok(false);
                }
            }
            if let Some(result) = last {
                shortest = (steps.to_vec(), result);
            }
            Ok::<bool, RunError>(true)
        };
        let (mut reduced, _) = shrink::shrink(steps.to_vec(), fails).await?;
        number_from_1(&mut reduced);
        // The new numbers change the order in which the last connections are closed.
        for _ in 0..REPLAYS {
            if let Some(result) = self.fails(&reduced).await? {
                return Ok(Some((reduced, result)));
            }
        }
        Ok(Some(shortest))
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
