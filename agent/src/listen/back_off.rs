//! Slows down senders of wrong tokens: the agent compares the next token of the same origin only
//! after a delay. A client with the right token can have the same origin, so the delay is short.

use std::collections::HashMap;
use std::time::{Duration, Instant};

use weft_core::origin::Origin;

/// The delay after the first wrong token. Each further wrong token doubles the delay.
const FIRST: Duration = Duration::from_millis(50);
const LONGEST: Duration = Duration::from_secs(1);
/// If an origin sends no wrong token for this time, the agent forgets the earlier wrong tokens of
/// this origin.
const FORGOTTEN_AFTER: Duration = Duration::from_secs(60);
/// Maximum number of origins that the agent remembers.
const MAX_ORIGINS: usize = 1024;

/// Counts of wrong tokens, by origin.
#[derive(Debug, Default)]
pub(super) struct BackOff(HashMap<Origin, WrongTokens>);

#[derive(Debug)]
struct WrongTokens {
    count: u32,
    last: Instant,
}

impl BackOff {
    /// Returns the delay before a token of this origin is compared.
    pub(super) fn delay(&self, origin: Origin, now: Instant) -> Duration {
        match self.0.get(&origin) {
            Some(wrong) if now.saturating_duration_since(wrong.last) < FORGOTTEN_AFTER => {
                FIRST.saturating_mul(1 << (wrong.count - 1).min(16)).min(LONGEST)
            }
            _ => Duration::ZERO,
        }
    }

    /// Returns the remaining delay, counted from the last wrong token of this origin.
    pub(super) fn left(&self, origin: Origin, now: Instant) -> Duration {
        self.0.get(&origin).map_or(Duration::ZERO, |wrong| {
            (wrong.last + self.delay(origin, wrong.last)).saturating_duration_since(now)
        })
    }

    /// Records the outcome of a comparison. A right token resets the count of its origin to zero.
    pub(super) fn record(&mut self, origin: Origin, is_right: bool, now: Instant) {
        if is_right {
            self.0.remove(&origin);
            return;
        }
        self.0.retain(|_, wrong| now.saturating_duration_since(wrong.last) < FORGOTTEN_AFTER);
        if self.0.len() >= MAX_ORIGINS
            && let Some(oldest) = self.0.iter().min_by_key(|(_, wrong)| wrong.last).map(|(origin, _)| *origin)
        {
            self.0.remove(&oldest);
        }
        let wrong = self.0.entry(origin).or_insert(WrongTokens { count: 0, last: now });
        (wrong.count, wrong.last) = (wrong.count.saturating_add(1), now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn origin(last: u8) -> Origin {
        Origin::of([192, 0, 2, last].into())
    }

    #[test]
    fn wrong_tokens_delay_the_next_of_the_same_origin() {
        let (mut back_off, now) = (BackOff::default(), Instant::now());
        let mut delays = Vec::new();
        for _ in 0..7 {
            delays.push(back_off.delay(origin(1), now).as_millis());
            back_off.record(origin(1), false, now);
        }
        assert_eq!(delays, [0, 50, 100, 200, 400, 800, 1000]);
        let left = |millis| back_off.left(origin(1), now + Duration::from_millis(millis)).as_millis();
        assert_eq!([0, 400, 1000, 5000].map(left), [1000, 600, 0, 0]);
        assert_eq!(back_off.delay(origin(2), now), Duration::ZERO);
        assert_eq!(back_off.left(origin(2), now), Duration::ZERO);
        assert_eq!(back_off.delay(origin(1), now + FORGOTTEN_AFTER), Duration::ZERO);
        back_off.record(origin(1), true, now);
        assert_eq!(back_off.delay(origin(1), now), Duration::ZERO);
    }

    #[test]
    fn remembers_a_bounded_number_of_origins() {
        let (mut back_off, now) = (BackOff::default(), Instant::now());
        for number in 0..=u32::try_from(MAX_ORIGINS).unwrap() {
            let address = std::net::Ipv4Addr::from(number);
            back_off.record(Origin::of(address.into()), false, now + Duration::from_micros(number.into()));
        }
        assert_eq!(back_off.0.len(), MAX_ORIGINS);
        assert_eq!(back_off.delay(Origin::of([0, 0, 0, 0].into()), now), Duration::ZERO);
    }
}
