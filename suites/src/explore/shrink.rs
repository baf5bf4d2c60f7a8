//! Reduces a session that fails: removes connections, then single steps, and then makes steps
//! simpler. Keeps a change only if the session still fails.

use std::collections::BTreeSet;

use crate::session::Step;

/// Maximum number of sessions that are played to reduce one session.
pub(super) const MAX_TRIES: u32 = 300;

/// Maximum number of these sessions that are played to make one step simpler.
const MAX_TRIES_OF_STEP: u32 = 60;

/// Returns the reduced steps, and the number of sessions that were played. `fails` plays a session
/// and returns whether it fails in the same way.
///
/// # Errors
/// The first error of `fails`.
pub(super) async fn shrink<E>(
    mut steps: Vec<Step>,
    mut fails: impl AsyncFnMut(&[Step]) -> Result<bool, E>,
) -> Result<(Vec<Step>, u32), E> {
    let mut tries = 0;
    // A session can have hundreds of steps. Most failures need one or two connections, so remove all
    // steps of half of the connections first, then of fewer connections.
    let mut numbers = numbers(&steps);
    let mut part = numbers.len().div_ceil(2);
    while part > 0 {
        let mut at = 0;
        while at < numbers.len() && numbers.len() > 1 && tries < MAX_TRIES {
            let end = (at + part).min(numbers.len());
            let is_kept = |step: &&Step| step.number().is_none_or(|number| !numbers[at..end].contains(&number));
            let without: Vec<Step> = steps.iter().filter(is_kept).copied().collect();
            tries += 1;
            if fails(&without).await? {
                steps = without;
                numbers.drain(at..end);
            } else {
                at = end;
            }
        }
        part /= 2;
    }
    // Remove halves first, then smaller parts, and finally single steps.
    let mut part = steps.len().div_ceil(2);
    while part > 0 {
        let mut at = 0;
        let before = steps.len();
        while at < steps.len() && tries < MAX_TRIES {
            let end = (at + part).min(steps.len());
            let without: Vec<Step> = steps[..at].iter().chain(&steps[end..]).copied().collect();
            tries += 1;
            if fails(&without).await? { steps = without } else { at = end }
        }
        // Steps that were necessary may be unnecessary now.
        let again = part == 1 && steps.len() < before && tries < MAX_TRIES;
        part = if again { 1 } else { part / 2 };
    }
    for at in 0..steps.len() {
        let (mut improved, begin) = (true, tries);
        while improved && tries < MAX_TRIES && tries - begin < MAX_TRIES_OF_STEP {
            improved = false;
            for simpler in steps[at].simpler() {
                if tries >= MAX_TRIES {
                    break;
                }
                let mut changed = steps.clone();
                changed[at] = simpler;
                tries += 1;
                if fails(&changed).await? {
                    steps = changed;
                    improved = true;
                    break;
                }
            }
        }
    }
    Ok((steps, tries))
}

/// Returns the numbers of the connections in ascending order.
fn numbers(steps: &[Step]) -> Vec<u32> {
    let numbers: BTreeSet<u32> = steps.iter().filter_map(|step| step.number()).collect();
    numbers.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::session::MessageFields;

    /// The session fails if a Send of at least 700 bytes precedes a pause.
    #[tokio::test]
    async fn only_the_cause_remains() {
        let message = |size| Step::Message(MessageFields { solicited: true, ..MessageFields::plain(1, size, 9) });
        let mut steps: Vec<Step> = (0..30).map(|count| Step::Segments { connection: 2, count }).collect();
        steps.insert(7, message(5000));
        steps.insert(20, Step::Pause { ms: 100 });
        let fails = async |steps: &[Step]| {
            let send = steps.iter().position(|step| matches!(step, Step::Message(MessageFields { size: 700.., .. })));
            let pause = steps.iter().position(|step| matches!(step, Step::Pause { .. }));
            Ok::<bool, ()>(send.is_some_and(|send| pause.is_some_and(|pause| send < pause)))
        };
        let (steps, tries) = shrink(steps, fails).await.unwrap();
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
        let fails = async |steps: &[Step]| {
            let has_step = steps.iter().any(|step| matches!(step, Step::Segments { connection: 20, count: 2.. }));
            Ok::<bool, ()>(has_step && numbers(steps).len() >= 3)
        };
        let (steps, tries) = shrink(steps, fails).await.unwrap();
        assert!(steps.len() == 3 && steps.contains(&on(20, 2)), "{steps:?}");
        assert!(tries < 100, "{tries}");
    }
}
