//! Limits the log lines about wrong tokens: a client that guesses must not fill the disk.

use std::time::{Duration, Instant};

/// The maximum number of lines in [`WINDOW`] for all addresses. One address causes fewer lines,
/// because it has to wait after ten wrong tokens.
const MAX_LINES: u32 = 60;
/// The time for which lines are counted.
const WINDOW: Duration = Duration::from_secs(60);

/// The number of log lines in the current window.
#[derive(Debug, Default)]
pub(super) struct LogLimit {
    since: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl LogLimit {
    /// Counts a line. If the limit allows the line, returns the number of lines that were omitted
    /// before this line.
    pub(super) fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= WINDOW) {
            (self.since, self.lines) = (Some(now), 0);
        }
        if self.lines >= MAX_LINES {
            self.left_out += 1;
            return None;
        }
        self.lines += 1;
        Some(std::mem::take(&mut self.left_out))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_omitted_lines() {
        let (mut limit, now) = (LogLimit::default(), Instant::now());
        let written = (0..100).filter(|_| limit.admit(now) == Some(0)).count();
        assert_eq!(written, MAX_LINES as usize);
        assert_eq!(limit.admit(now + WINDOW), Some(40));
        assert_eq!(limit.admit(now + WINDOW), Some(0));
    }
}
