//! Counts the Requests of each second, for the alarm of section 15.2.1 of the SDP draft.

use core::time::Duration;

use crate::time::Instant;

const SECOND: Duration = Duration::from_secs(1);

/// Counter of the Requests in the current second.
#[derive(Debug, Default)]
pub(super) struct Rate {
    since: Instant,
    count: u32,
}

impl Rate {
    /// Counts a Request. Returns true only for the first Request above `most` in this second.
    pub(super) fn count(&mut self, now: Instant, most: u32) -> bool {
        if now.saturating_duration_since(self.since) >= SECOND {
            *self = Rate { since: now, count: 0 };
        }
        self.count = self.count.saturating_add(1);
        self.count == most.saturating_add(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_alarm_comes_once_a_second() {
        let mut rate = Rate::default();
        let at = |millis| Instant::ORIGIN + Duration::from_millis(millis);
        let alarms = [0, 1, 2, 3, 999, 1000, 1001, 1002].map(|millis| rate.count(at(millis), 2));
        assert_eq!(alarms, [false, false, true, false, false, false, false, true]);
    }
}
