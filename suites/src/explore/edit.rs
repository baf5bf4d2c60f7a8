//! Changes to the steps of a session: the candidates of a reduction. Each sequence of steps is
//! legal, so each candidate can be played.

use std::collections::BTreeSet;
use std::ops::Range;

use crate::session::Step;

/// Returns the numbers of the connections in ascending order.
pub(super) fn numbers(steps: &[Step]) -> Vec<u32> {
    let numbers: BTreeSet<u32> = steps.iter().filter_map(|step| step.number()).collect();
    numbers.into_iter().collect()
}

/// Returns the steps whose index is kept. A loop keeps the rest of its steps. Without such a rest,
/// it is removed.
pub(super) fn kept(steps: &[Step], is_kept: impl Fn(usize) -> bool) -> Vec<Step> {
    let mut all = Vec::with_capacity(steps.len());
    for (index, step) in steps.iter().enumerate().filter(|(index, _)| is_kept(*index)) {
        if let Step::Repeat { count, .. } = *step {
            match body(steps, index).filter(|index| is_kept(*index)).count() {
                0 => {}
                rest => all.push(Step::Repeat { count, steps: u32::try_from(rest).unwrap_or(u32::MAX) }),
            }
        } else {
            all.push(*step);
        }
    }
    all
}

/// Returns the indices of the steps in the loop that begins at `index`. Empty for any other step.
fn body(steps: &[Step], index: usize) -> Range<usize> {
    let begin = index + 1;
    match steps[index] {
        Step::Repeat { steps: length, .. } => begin..begin.saturating_add(length as usize).min(steps.len()),
        _ => begin..begin,
    }
}

/// Moves the steps of the connections `from` to the connection `to`.
pub(super) fn moved(steps: &[Step], from: &[u32], to: u32) -> Vec<Step> {
    let mut steps = steps.to_vec();
    for number in steps.iter_mut().filter_map(Step::connection).filter(|number| from.contains(number)) {
        *number = to;
    }
    steps
}

/// Merges later steps into the step at `at`, at most `most` of them. `None` if no step can be
/// merged.
pub(super) fn merged(steps: &[Step], at: usize, most: usize) -> Option<Vec<Step>> {
    let (mut step, mut gone) = (*steps.get(at)?, Vec::new());
    for (index, next) in steps.iter().enumerate().skip(at + 1) {
        if gone.len() >= most {
            break;
        }
        if let Some(merged) = step.merged(*next) {
            step = merged;
            gone.push(index);
        }
    }
    if gone.is_empty() {
        return None;
    }
    let mut steps = steps.to_vec();
    steps[at] = step;
    Some(kept(&steps, |index| !gone.contains(&index)))
}

/// Returns the number of similar groups of `length` steps that follow each other from `at`. A group
/// with a loop, or with a part of a loop, is not counted.
pub(super) fn similar_groups(steps: &[Step], at: usize, length: usize) -> usize {
    let free = without_loops(steps, at);
    let Some(first) = free.get(..length) else { return 0 };
    let is_similar = |group: &[Step]| group.iter().zip(first).all(|(step, like)| step.is_like(like));
    free.chunks_exact(length).take_while(|group| is_similar(group)).count()
}

/// Returns the steps from `at` to the next loop. Empty if `at` is in a loop.
fn without_loops(steps: &[Step], at: usize) -> &[Step] {
    let mut index = 0;
    while index < steps.len() {
        let body = body(steps, index);
        if matches!(steps[index], Step::Repeat { .. }) && at < body.end {
            return if at < index { &steps[at..index] } else { &[] };
        }
        index = body.end;
    }
    steps.get(at..).unwrap_or_default()
}

/// Replaces the steps `from` by a loop that plays the steps `group` this number of times.
pub(super) fn repeated(steps: &[Step], from: &Range<usize>, group: Range<usize>, times: usize) -> Vec<Step> {
    let number = |number: usize| u32::try_from(number).unwrap_or(u32::MAX);
    let repeat = Step::Repeat { count: number(times), steps: number(group.len()) };
    [&steps[..from.start], &[repeat], &steps[group], &steps[from.end..]].concat()
}

/// Returns all pairs of steps as indices. `numbers` has the number of the connection of each step.
/// First come pairs on one connection, and near pairs come before distant pairs. A long session has
/// millions of pairs, so they are not stored.
pub(super) fn pairs(numbers: &[Option<u32>]) -> impl Iterator<Item = [usize; 2]> {
    [true, false].into_iter().flat_map(move |is_same| {
        (1..numbers.len()).flat_map(move |distance| {
            (0..numbers.len() - distance).filter_map(move |first| {
                let second = first + distance;
                ((numbers[first] == numbers[second]) == is_same).then_some([first, second])
            })
        })
    })
}

/// Returns the steps that a session plays.
#[cfg(test)]
pub(super) fn unrolled(steps: &[Step]) -> Vec<Step> {
    let (mut all, mut index) = (Vec::new(), 0);
    while index < steps.len() {
        let body = body(steps, index);
        match steps[index] {
            Step::Repeat { count, .. } => (0..count).for_each(|_| all.extend(&steps[body.clone()])),
            step => all.push(step),
        }
        index = body.end;
    }
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reset(connection: u32) -> Step {
        Step::Reset { connection }
    }

    /// A loop stays correct when a step before it, in it or after it is removed.
    #[test]
    fn a_loop_loses_the_steps_that_are_removed() {
        let repeat = |steps| Step::Repeat { count: 9, steps };
        let steps = [reset(1), repeat(2), reset(2), reset(3), reset(4)];
        assert_eq!(kept(&steps, |index| index != 2), [reset(1), repeat(1), reset(3), reset(4)]);
        assert_eq!(kept(&steps, |index| index == 0 || index > 3), [reset(1), reset(4)]);
        assert_eq!(kept(&steps, |index| index != 1), [reset(1), reset(2), reset(3), reset(4)]);
        assert_eq!(kept(&steps, |index| !(2..4).contains(&index)), [reset(1), reset(4)]);
        assert_eq!([0, 1, 2, 4].map(|at| similar_groups(&steps, at, 1)), [1, 0, 0, 1]);
    }

    #[test]
    fn similar_steps_become_a_loop() {
        let steps = [reset(1), Step::Pause { ms: 1 }, Step::Pause { ms: 2 }, Step::Pause { ms: 3 }, reset(2)];
        assert_eq!(similar_groups(&steps, 1, 1), 3);
        let looped = repeated(&steps, &(1..4), 3..4, 3);
        assert_eq!(looped, [reset(1), Step::Repeat { count: 3, steps: 1 }, Step::Pause { ms: 3 }, reset(2)]);
        let pause = Step::Pause { ms: 3 };
        assert_eq!(unrolled(&looped), [reset(1), pause, pause, pause, reset(2)]);
    }

    #[test]
    fn later_steps_are_merged_into_a_step() {
        let pause = |ms| Step::Pause { ms };
        let steps = [pause(1), reset(1), pause(2), pause(4)];
        assert_eq!(merged(&steps, 0, usize::MAX), Some(vec![pause(7), reset(1)]));
        assert_eq!(merged(&steps, 0, 1), Some(vec![pause(3), reset(1), pause(4)]));
        assert_eq!(merged(&steps, 1, usize::MAX), None);
    }

    #[test]
    fn pairs_on_one_connection_come_first() {
        let found: Vec<[usize; 2]> = pairs(&[Some(1), Some(2), Some(1), Some(1)]).collect();
        assert_eq!(found, [[2, 3], [0, 2], [0, 3], [0, 1], [1, 2], [1, 3]]);
        // With 100,000 steps, there are 5,000,000,000 pairs.
        assert_eq!(pairs(&vec![None; 100_000]).nth(1), Some([1, 2]));
        assert_eq!(pairs(&[]).count(), 0);
    }
}
