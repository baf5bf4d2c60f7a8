//! Time for the state machines. The driver passes in each point in time, because a state machine
//! never reads a clock.
//!
//! A driver picks the origin (its own start, or zero for a virtual clock) and never changes it.
//! Durations are [`core::time::Duration`]. Arithmetic saturates at the smallest and largest
//! [`Instant`], which are 584 years apart.

use core::fmt;
use core::ops::Add;
use core::time::Duration;

/// A point in time: nanoseconds since an origin that the driver picks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Instant(u64);

impl Instant {
    /// The driver's origin.
    pub const ORIGIN: Instant = Instant(0);

    /// The point `nanos` nanoseconds after the origin.
    #[must_use]
    pub const fn from_nanos(nanos: u64) -> Self {
        Instant(nanos)
    }

    /// Nanoseconds since the origin.
    #[must_use]
    pub const fn as_nanos(self) -> u64 {
        self.0
    }

    /// Time since the origin.
    #[must_use]
    pub const fn since_origin(self) -> Duration {
        Duration::from_nanos(self.0)
    }

    /// Time from `earlier` to this point. Zero if `earlier` is after this point.
    #[must_use]
    pub const fn saturating_duration_since(self, earlier: Instant) -> Duration {
        Duration::from_nanos(self.0.saturating_sub(earlier.0))
    }
}

impl Add<Duration> for Instant {
    type Output = Instant;
    fn add(self, duration: Duration) -> Instant {
        Instant(self.0.saturating_add(u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)))
    }
}

impl fmt::Display for Instant {
    /// Seconds since the origin, with microseconds.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{:06}", self.0 / 1_000_000_000, self.0 % 1_000_000_000 / 1000)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates() {
        let late = Instant::from_nanos(u64::MAX - 1);
        assert_eq!(late + Duration::from_secs(1), Instant::from_nanos(u64::MAX));
        assert_eq!(late + Duration::MAX, Instant::from_nanos(u64::MAX));
        assert_eq!(Instant::ORIGIN.saturating_duration_since(late), Duration::ZERO);
        assert_eq!((Instant::ORIGIN + Duration::from_micros(1_500_001)).to_string(), "1.500001");
    }
}
