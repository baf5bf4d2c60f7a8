//! Waits for what another process or the kernel does, where no event reports it. The suites' tests
//! use it, too.

use std::thread;
use std::time::{Duration, Instant};

/// For what has to happen soon.
pub(crate) const LONG: Duration = Duration::from_secs(60);

/// Looks until `is_there` has something; the test fails with `what` if that takes too long.
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
