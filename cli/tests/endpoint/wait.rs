//! Waits for an effect of another process or of the kernel, if no event reports this effect. The
//! test binary `suites` also includes this file.

use std::thread;
use std::time::{Duration, Instant};

/// Time limit for an event that normally happens soon.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Calls `is_there` until it returns a value, and returns this value. If this takes too long, the
/// test fails with a message that contains `what`.
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
