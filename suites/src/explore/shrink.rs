//! Reduces a session that fails: removes connections and steps, combines steps, and makes steps
//! simpler. Keeps a change only if the session still fails.
//!
//! 1. Remove all steps of half of the connections, then of fewer connections.
//! 2. Remove halves of the steps, then smaller parts, and finally single steps.
//! 3. Move all steps of a connection to another connection, replace several steps by one counted
//!    step, replace repeated groups of steps by a loop, and remove single steps and pairs of steps.
//!    Repeat this until nothing changes.
//! 4. Make numbers smaller and options simpler. After a success, continue with 3.
//!
//! The changes and their order depend only on the steps, and on which candidates fail. Each
//! candidate is tried once, and all phases together try at most [`MAX_TRIES`] candidates.

use std::collections::HashSet;
use std::hash::{DefaultHasher, Hash, Hasher};

use super::edit::{kept, merged, moved, numbers, pairs, repeated, similar_groups};
use crate::run::RunError;
use crate::session::Step;

/// Maximum number of candidates that are tried to reduce one session. `reduce` plays each of them
/// at most three times.
pub(super) const MAX_TRIES: u32 = 400;
/// Maximum number of these candidates that make one step simpler, before the next step.
const MAX_TRIES_OF_STEP: u32 = 60;
/// Maximum number of candidates in each search for steps to remove. Without this limit, a long
/// session that needs all of its steps would leave no candidates for the other changes.
const MAX_TRIES_OF_PARTS: u32 = 200;
/// Maximum number of candidates without a pair of steps, in each search for a pair.
const MAX_TRIES_OF_PAIRS: u32 = 120;
/// Maximum number of candidates in each search for connections to join.
const MAX_TRIES_OF_CONNECTIONS: u32 = 40;
/// Maximum number of candidates in each search for steps to combine, and for groups to repeat.
const MAX_TRIES_OF_GROUPS: u32 = 60;
/// Maximum number of steps in a repeated group.
const MAX_GROUP: usize = 6;

/// The result of a candidate: of a session that may replace the session that failed.
#[derive(Debug)]
pub(super) enum Trial<R> {
    /// The candidate fails in the same way. This is its result.
    Fails(R),
    /// The candidate passes, has no verdict, or fails in another way.
    Passes,
    /// The candidate was not played, because the reduction has to stop.
    Stopped,
}

/// A session after its reduction.
#[derive(Debug)]
pub(super) struct Shrunk<R> {
    pub(super) steps: Vec<Step>,
    /// The result of these steps when they failed.
    pub(super) result: R,
    /// Whether the reduction had to stop before its end.
    pub(super) is_stopped: bool,
}

/// Reduces steps that failed with `result`. `fails` plays a candidate.
///
/// # Errors
/// The first error of `fails`.
pub(super) async fn shrink<R>(
    steps: Vec<Step>,
    result: R,
    fails: impl AsyncFnMut(&[Step]) -> Result<Trial<R>, RunError>,
) -> Result<Shrunk<R>, RunError> {
    let mut shrinker = Shrinker { steps, result, tries: 0, passed: HashSet::new(), is_stopped: false, fails };
    shrinker.remove_connections().await?;
    shrinker.remove_parts(shrinker.steps.len().div_ceil(2)).await?;
    loop {
        shrinker.combine().await?;
        // Steps that were necessary may be unnecessary now.
        if !shrinker.simplify().await? {
            break;
        }
    }
    let Shrinker { steps, result, is_stopped, .. } = shrinker;
    Ok(Shrunk { steps, result, is_stopped })
}

/// A reduction that is in progress.
struct Shrinker<R, F> {
    /// The shortest steps that failed until now.
    steps: Vec<Step>,
    result: R,
    tries: u32,
    /// The digests of the candidates that did not fail. Joined sessions have thousands of steps, so
    /// the candidates themselves would need much memory.
    passed: HashSet<u64>,
    is_stopped: bool,
    fails: F,
}

impl<R, F: AsyncFnMut(&[Step]) -> Result<Trial<R>, RunError>> Shrinker<R, F> {
    /// Returns whether no further candidate is tried.
    fn is_over(&self) -> bool {
        self.is_stopped || self.tries >= MAX_TRIES
    }

    /// Tries a candidate, and keeps it if it fails. Returns whether it is kept.
    async fn keeps(&mut self, candidate: Vec<Step>) -> Result<bool, RunError> {
        if self.is_over() || candidate == self.steps {
            return Ok(false);
        }
        let digest = digest(&candidate);
        if self.passed.contains(&digest) {
            return Ok(false);
        }
        self.tries += 1;
        let trial = (self.fails)(&candidate).await?;
        match trial {
            Trial::Fails(result) => {
                (self.steps, self.result) = (candidate, result);
                return Ok(true);
            }
            Trial::Passes => {
                self.passed.insert(digest);
            }
            Trial::Stopped => self.is_stopped = true,
        }
        Ok(false)
    }

    /// Removes connections with all their steps. A session can have hundreds of steps, and most
    /// failures need one or two connections.
    async fn remove_connections(&mut self) -> Result<(), RunError> {
        let mut numbers = numbers(&self.steps);
        let mut part = numbers.len().div_ceil(2);
        while part > 0 {
            let mut at = 0;
            while at < numbers.len() && numbers.len() > 1 {
                let end = (at + part).min(numbers.len());
                let is_gone = |step: &Step| step.number().is_some_and(|number| numbers[at..end].contains(&number));
                let without = kept(&self.steps, |index| !is_gone(&self.steps[index]));
                if self.keeps(without).await? {
                    numbers.drain(at..end);
                } else {
                    at = end;
                }
            }
            part /= 2;
        }
        Ok(())
    }

    /// Removes parts of the steps, first parts of `part` steps, then smaller parts. Returns whether
    /// a step was removed.
    async fn remove_parts(&mut self, mut part: usize) -> Result<bool, RunError> {
        let (begin, length) = (self.tries, self.steps.len());
        while part > 0 {
            let (mut at, before) = (0, self.steps.len());
            while at < self.steps.len() && self.tries - begin < MAX_TRIES_OF_PARTS {
                let end = (at + part).min(self.steps.len());
                let without = kept(&self.steps, |index| !(at..end).contains(&index));
                if !self.keeps(without).await? {
                    at = end;
                }
            }
            // Steps that were necessary may be unnecessary now.
            let again = part == 1 && self.steps.len() < before;
            part = if again { 1 } else { part / 2 };
        }
        Ok(self.steps.len() < length)
    }

    /// Joins connections, combines and repeats steps, and removes single steps and pairs, until
    /// nothing changes.
    async fn combine(&mut self) -> Result<(), RunError> {
        loop {
            let mut has_changed = self.join_connections().await?;
            has_changed |= self.merge_steps().await?;
            has_changed |= self.repeat_groups().await?;
            has_changed |= self.remove_parts(1).await?;
            has_changed |= self.remove_pairs().await?;
            if !has_changed {
                return Ok(());
            }
        }
    }

    /// Moves the steps of a connection to another connection. The first connection then has no more
    /// steps, so the session does not open it. Each sequence of steps on a connection is legal.
    async fn join_connections(&mut self) -> Result<bool, RunError> {
        let begin = self.tries;
        let mut numbers = numbers(&self.steps);
        let Some((&first, others)) = numbers.split_first() else { return Ok(false) };
        if others.is_empty() {
            return Ok(false);
        }
        if self.keeps(moved(&self.steps, others, first)).await? {
            return Ok(true);
        }
        let mut has_changed = false;
        for from in (1..numbers.len()).rev() {
            for to in 0..from {
                let may_try = self.tries - begin < MAX_TRIES_OF_CONNECTIONS;
                if may_try && self.keeps(moved(&self.steps, &numbers[from..=from], numbers[to])).await? {
                    has_changed = true;
                    numbers.remove(from);
                    break;
                }
            }
        }
        Ok(has_changed)
    }

    /// Replaces several steps by one counted step. Tries all later steps at once, then one of them.
    async fn merge_steps(&mut self) -> Result<bool, RunError> {
        let (begin, mut has_changed, mut at) = (self.tries, false, 0);
        while at < self.steps.len() && self.tries - begin < MAX_TRIES_OF_GROUPS {
            let mut is_merged = false;
            for most in [usize::MAX, 1] {
                if let Some(candidate) = merged(&self.steps, at, most)
                    && self.keeps(candidate).await?
                {
                    is_merged = true;
                    break;
                }
            }
            has_changed |= is_merged;
            // Further steps may fit into the merged step.
            at += usize::from(!is_merged);
        }
        Ok(has_changed)
    }

    /// Replaces groups of similar steps that follow each other by one of these groups in a loop.
    async fn repeat_groups(&mut self) -> Result<bool, RunError> {
        let (begin, mut has_changed) = (self.tries, false);
        for length in 1..=MAX_GROUP {
            let mut at = 0;
            while at < self.steps.len() && self.tries - begin < MAX_TRIES_OF_GROUPS {
                let groups = similar_groups(&self.steps, at, length);
                let end = at + groups * length;
                // The loop is one more step.
                let is_shorter = end - at > length + 1;
                let mut is_repeated = false;
                for group in [at..at + length, end.saturating_sub(length)..end] {
                    if is_shorter && self.keeps(repeated(&self.steps, &(at..end), group, groups)).await? {
                        is_repeated = true;
                        break;
                    }
                }
                has_changed |= is_repeated;
                at += if is_repeated { length + 1 } else { 1 };
            }
        }
        Ok(has_changed)
    }

    /// Removes two steps at once that may be far from each other. A failure can need both of them
    /// or none, for example if one step begins something that the other step ends.
    async fn remove_pairs(&mut self) -> Result<bool, RunError> {
        let (begin, mut has_changed) = (self.tries, false);
        loop {
            let mut is_removed = false;
            let numbers: Vec<Option<u32>> = self.steps.iter().map(|step| step.number()).collect();
            for [first, second] in pairs(&numbers) {
                if self.is_over() || self.tries - begin >= MAX_TRIES_OF_PAIRS {
                    break;
                }
                let without = kept(&self.steps, |index| index != first && index != second);
                if self.keeps(without).await? {
                    is_removed = true;
                    break;
                }
            }
            if !is_removed {
                return Ok(has_changed);
            }
            has_changed = true;
        }
    }

    /// Makes numbers smaller, and options simpler. Returns whether a step has changed.
    async fn simplify(&mut self) -> Result<bool, RunError> {
        let mut has_changed = false;
        for at in 0..self.steps.len() {
            let begin = self.tries;
            while self.tries - begin < MAX_TRIES_OF_STEP && self.simplify_step(at).await? {
                has_changed = true;
            }
        }
        Ok(has_changed)
    }

    /// Replaces a step by the first simpler step with which the session fails.
    async fn simplify_step(&mut self, at: usize) -> Result<bool, RunError> {
        for simpler in self.steps[at].simpler() {
            let mut candidate = self.steps.clone();
            candidate[at] = simpler;
            if self.keeps(candidate).await? {
                return Ok(true);
            }
        }
        Ok(false)
    }
}

/// Returns a number that differs for different steps, except in extremely rare cases.
fn digest(steps: &[Step]) -> u64 {
    let mut hasher = DefaultHasher::new();
    for step in steps {
        // The debug text has all fields of the step.
        format!("{step:?}").hash(&mut hasher);
    }
    hasher.finish()
}

#[cfg(test)]
mod tests {
    use super::super::edit::unrolled;
    use super::*;
    use crate::session::MessageFields;

    /// Reduces steps. `fails` decides whether a session fails. Returns the reduced steps and the
    /// number of candidates.
    async fn shrunk(steps: Vec<Step>, fails: impl Fn(&[Step]) -> bool) -> (Vec<Step>, u32) {
        let mut tries = 0;
        let trial = async |steps: &[Step]| {
            tries += 1;
            Ok::<_, RunError>(if fails(steps) { Trial::Fails(()) } else { Trial::Passes })
        };
        let shrunk = shrink(steps, (), trial).await.unwrap();
        assert!(!shrunk.is_stopped && fails(&shrunk.steps), "{:?}", shrunk.steps);
        (shrunk.steps, tries)
    }

    fn reset(connection: u32) -> Step {
        Step::Reset { connection }
    }

    fn answers(connection: u32) -> Step {
        Step::Answers { connection }
    }

    fn is_reset(step: &Step) -> bool {
        matches!(step, Step::Reset { .. })
    }

    /// The session fails if a Send of at least 700 bytes precedes a pause.
    #[tokio::test]
    async fn only_the_cause_remains() {
        let message = |size| Step::Message(MessageFields { solicited: true, ..MessageFields::plain(1, size, 9) });
        let mut steps: Vec<Step> = (0..30).map(|count| Step::Segments { connection: 2, count }).collect();
        steps.insert(7, message(5000));
        steps.insert(20, Step::Pause { ms: 100 });
        let fails = |steps: &[Step]| {
            let send = steps.iter().position(|step| matches!(step, Step::Message(MessageFields { size: 700.., .. })));
            let pause = steps.iter().position(|step| matches!(step, Step::Pause { .. }));
            send.is_some_and(|send| pause.is_some_and(|pause| send < pause))
        };
        let (steps, tries) = shrunk(steps, fails).await;
        let Step::Message(MessageFields { size, segment, solicited, .. }) = steps[0] else { panic!("{steps:?}") };
        assert!(steps.len() == 2 && (700..1400).contains(&size) && segment >= size && !solicited, "{steps:?}");
        assert_eq!(steps[1], Step::Pause { ms: 1 });
        assert!(tries < 150, "{tries}");
    }

    /// The session has 400 steps on 32 connections. It fails if three connections are open, and one
    /// of them has a certain step.
    #[tokio::test]
    async fn connections_that_a_failure_does_not_need_are_removed_first() {
        let on = |connection: u32, count: u32| Step::Segments { connection, count };
        let mut steps: Vec<Step> = (0..400_u32).map(|index| on(index % 32 + 1, 1)).collect();
        steps[211] = on(20, 7);
        let fails = |steps: &[Step]| {
            let has_step = steps.iter().any(|step| matches!(step, Step::Segments { connection: 20, count: 2.. }));
            has_step && numbers(steps).len() >= 3
        };
        let (steps, tries) = shrunk(steps, fails).await;
        assert!(steps.len() == 3 && steps.contains(&on(20, 2)), "{steps:?}");
        assert!(tries < 100, "{tries}");
    }

    /// The session fails if at least 24 Sends are sent, in any steps.
    #[tokio::test]
    async fn repeated_sends_become_a_burst() {
        let steps: Vec<Step> = (0..40).flat_map(|index| [Step::message(1, 30 + index, 2000), answers(1)]).collect();
        let fails = |steps: &[Step]| {
            let sends = unrolled(steps).into_iter().map(|step| match step {
                Step::Message(_) => 1,
                Step::Burst { count, .. } => count,
                _ => 0,
            });
            sends.sum::<u32>() >= 24
        };
        let (steps, _) = shrunk(steps, fails).await;
        assert!(matches!(steps[..], [Step::Burst { connection: 1, count: 24, .. }]), "{steps:?}");
    }

    /// No counted step opens connections. The session fails if at least 40 connections are reset.
    #[tokio::test]
    async fn repeated_steps_become_a_loop() {
        let steps: Vec<Step> = (1..=64).flat_map(|number| [Step::message(number, 8, 8), reset(number)]).collect();
        let fails = |steps: &[Step]| unrolled(steps).iter().filter(|step| is_reset(step)).count() >= 40;
        let (steps, _) = shrunk(steps, fails).await;
        assert!(matches!(steps[..], [Step::Repeat { count: 40, steps: 1 }, Step::Reset { .. }]), "{steps:?}");
    }

    /// The session fails if at least 20 times a reset follows a Send.
    #[tokio::test]
    async fn repeated_groups_become_a_loop() {
        let steps: Vec<Step> = (0..30).flat_map(|_| [Step::message(1, 8, 8), reset(1)]).collect();
        let fails = |steps: &[Step]| {
            let all = unrolled(steps);
            let is_group = |steps: &&[Step]| matches!(steps, [Step::Message(_), Step::Reset { .. }]);
            all.windows(2).filter(is_group).count() >= 20
        };
        let (steps, _) = shrunk(steps, fails).await;
        assert_eq!(steps, [Step::Repeat { count: 20, steps: 2 }, Step::message(1, 0, 1), reset(1)]);
    }

    /// The session fails with both the Read and its Response, or with none of them. The other steps
    /// are necessary.
    #[tokio::test]
    async fn distant_pairs_are_removed() {
        let announce = Step::Announce { connection: 1, size: 9, segment: 9, to: 0, empty: false };
        let respond = Step::Respond { connection: 1, count: 0 };
        let steps = vec![announce, answers(1), Step::Half { connection: 1, size: 0 }, respond, Step::Pause { ms: 1 }];
        let necessary = [steps[1], steps[2], steps[4]];
        let fails = |steps: &[Step]| {
            let has = |kind: &Step| steps.iter().any(|step| step.is_like(kind));
            necessary.iter().all(has) && has(&announce) == has(&respond)
        };
        assert_eq!(shrunk(steps, fails).await.0, necessary);
    }

    /// The failure needs all steps, on any connections.
    #[tokio::test]
    async fn steps_of_several_connections_move_to_one() {
        let steps: Vec<Step> = (0..6).flat_map(|index| [answers(index % 3 + 1), reset(index % 2 + 1)]).collect();
        let fails = |steps: &[Step]| {
            steps.len() == 12 && steps.chunks(2).all(|pair| matches!(pair, [Step::Answers { .. }, Step::Reset { .. }]))
        };
        let (steps, _) = shrunk(steps, fails).await;
        assert_eq!((steps.len(), numbers(&steps)), (12, vec![1]));
    }

    /// Two connections are necessary, and the third is not.
    #[tokio::test]
    async fn only_some_connections_can_be_joined() {
        let fails = |steps: &[Step]| steps.len() == 3 && numbers(steps).len() >= 2;
        let (steps, _) = shrunk([5, 6, 7].map(answers).to_vec(), fails).await;
        assert_eq!(steps, [5, 6, 5].map(answers));
    }

    /// The first and the third candidate fail, with half of the steps each. The second is empty.
    #[tokio::test]
    async fn a_reduction_that_has_to_stop_keeps_its_last_success() {
        let mut left = 3;
        let trial = async |steps: &[Step]| {
            left -= 1;
            Ok::<_, RunError>(match left {
                0.. if steps.is_empty() => Trial::Passes,
                0.. => Trial::Fails(steps.len()),
                _ => Trial::Stopped,
            })
        };
        let shrunk = shrink(vec![reset(1); 40], 40, trial).await.unwrap();
        assert_eq!((shrunk.is_stopped, shrunk.steps.len(), shrunk.result), (true, 10, 10));
        // After the stop, no candidate is played.
        assert_eq!(left, -1);
    }

    /// The session fails with at least seven steps.
    #[tokio::test]
    async fn a_candidate_that_passed_is_not_tried_again() {
        let steps: Vec<Step> = (0..20).map(|index| Step::message(index % 3 + 1, 900 + index, 2000)).collect();
        let mut passed: Vec<Vec<Step>> = Vec::new();
        let trial = async |steps: &[Step]| {
            assert!(passed.iter().all(|known| known.as_slice() != steps), "{steps:?}");
            if steps.len() >= 7 {
                return Ok::<_, RunError>(Trial::Fails(()));
            }
            passed.push(steps.to_vec());
            Ok(Trial::Passes)
        };
        let shrunk = shrink(steps, (), trial).await.unwrap();
        assert!(shrunk.steps.len() == 7 && passed.len() > 7, "{:?}", shrunk.steps);
    }

    /// Each of 400 steps is necessary, and each of them can be made simpler.
    #[tokio::test]
    async fn the_number_of_candidates_is_limited() {
        let steps: Vec<Step> = (0..400).map(|index| Step::message(index % 7 + 1, 900 + index, 2000)).collect();
        let (_, tries) = shrunk(steps, |steps| steps.len() == 400).await;
        assert_eq!(tries, MAX_TRIES);
    }
}
