//! Limits the log lines about wrong tokens: a client that guesses must not fill the disk.

use std::time::{Duration, Instant};

/// Lines in [`WINDOW`]. One address has fewer, because it has to wait after ten wrong tokens.
const MOST: u32 = 60;
const WINDOW: Duration = Duration::from_secs(60);

/// The lines of the last window.
#[derive(Debug, Default)]
pub(super) struct LogLimit {
    since: Option<Instant>,
    lines: u32,
    left_out: u64,
}

impl LogLimit {
    /// Counts a line. If it may be written, returns the number of lines omitted before it.
    pub(super) fn admit(&mut self, now: Instant) -> Option<u64> {
        if self.since.is_none_or(|since| now.saturating_duration_since(since) >= WINDOW) {
            (self.since, self.lines) = (Some(now), 0);
        }
        if self.lines >= MOST {
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
        assert_eq!(written, MOST as usize);
        assert_eq!(limit.admit(now + WINDOW), Some(40));
        assert_eq!(limit.admit(now + WINDOW), Some(0));
    }
}
