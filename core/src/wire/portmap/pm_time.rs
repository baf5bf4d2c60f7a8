//! PmTime (section 7.3.1.4 of the SDP draft): how long a client may cache an answer of the port
//! mapper.

use std::time::Duration;

/// The PmTime octet. Every value has a meaning.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct PmTime(pub u8);

/// The time for which a client may cache a PMAccept, counted from its receipt.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Cache {
    /// 0: the answer is valid for one connection and must not be cached.
    Once,
    /// The values 1 to 127 are multiples of 250 ms, and the values 128 to 254 are seconds. No value
    /// expresses a time between 31.75 s and 128 s.
    For(Duration),
    /// 255: the answer may be cached for ever.
    Forever,
}

impl PmTime {
    /// The answer is valid for one connection only. Messages other than PMAccept also have this
    /// value.
    pub const ONCE: PmTime = PmTime(0);

    /// The caching time that the value allows.
    #[must_use]
    pub const fn cache(self) -> Cache {
        match self.0 {
            0 => Cache::Once,
            units @ 1..=127 => Cache::For(Duration::from_millis(units as u64 * 250)),
            seconds @ 128..=254 => Cache::For(Duration::from_secs(seconds as u64)),
            255 => Cache::Forever,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the edges of the four ranges in section 7.3.1.4 of the SDP draft.
    #[test]
    fn ranges() {
        let millis = |value| match PmTime(value).cache() {
            Cache::For(time) => Some(time.as_millis()),
            Cache::Once | Cache::Forever => None,
        };
        assert_eq!([1, 127, 128, 254].map(millis), [Some(250), Some(31_750), Some(128_000), Some(254_000)]);
        assert_eq!((PmTime::ONCE.cache(), PmTime(255).cache()), (Cache::Once, Cache::Forever));
    }
}
