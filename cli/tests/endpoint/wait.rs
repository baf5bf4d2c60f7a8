//! Waits for effects of another process or of the kernel that no event reports. The tests of the
//! suites use it, too.

use std::thread;
use std::time::{Duration, Instant};

/// Time limit for an event that normally happens soon.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Calls `is_there` until it returns a value. The test fails with `what` if this takes too long.
pub(crate) fn wait_for<T>(what: &str, mut is_there: impl FnMut() -> Option<T>) -> T {
    let begin = Instant::now();
    loop {
        if let Some(it) = is_there() {
            return it;
        }
        assert!(begin.elapsed() < LONG, "{what}: not within {LONG:?}");
        thread::sleep(Duration::from_millis(5));
    }
}
