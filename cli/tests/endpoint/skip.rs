//! Has a function for tests that need a program or a right that this machine lacks. The test
//! binaries `suites` and `captures` also include this file.

use std::env;

/// Prints why the caller skips itself. If the environment variable `WEFT_PROGRAMS` is set, fails
/// the test instead. `.ci/checks/test` sets the variable, so that CI notices a missing program.
pub(crate) fn skip(missing: &str) {
    assert!(env::var_os("WEFT_PROGRAMS").is_none(), "WEFT_PROGRAMS is set, but there is {missing}");
    println!("skipped: {missing}");
}
