//! Reduces a session that fails: removes steps, then makes steps simpler. Keeps a change only if
//! the session still fails.

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
}
