//! Records which requirements the unit tests verify.
//!
//! A test creates a [`Coverage`]. For each requirement, the test passes the id and an assertion to
//! the `Coverage`. The assertion fails if the requirement is violated. If the test passes and the
//! environment variable `WEFT_COVERAGE` names a folder, `Coverage` appends the ids to a file in
//! this folder. A test that fails or does not run records nothing. `make coverage` collects the
//! files.
//!
//! Only tests use this module.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::{env, fmt, process, thread};

use crate::RequirementId;

/// The environment variable that names the folder for the recorded ids.
pub const FOLDER_VARIABLE: &str = "WEFT_COVERAGE";
/// Maximum number of ids that one test may verify, summed over all its [`Coverage`]s. A test that
/// claims more ids verifies none of them well.
pub const MAX_IDS: usize = 8;

/// How a requirement is covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CoverageKind {
    /// A case of the suites covers the requirement. If weft's endpoint violates the requirement on
    /// purpose, the case fails.
    Case,
    /// A rule of the monitor covers the requirement. One test stream violates the rule, and another
    /// test stream meets it.
    Rule,
    /// A test of the interface or of the behaviour of the endpoint covers the requirement.
    Test,
}

impl fmt::Display for CoverageKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            CoverageKind::Case => "case",
            CoverageKind::Rule => "rule",
            CoverageKind::Test => "test",
        })
    }
}

thread_local! {
    /// Number of ids that the test of this thread has verified. Each test has its own thread.
    static SHOWN: Cell<usize> = const { Cell::new(0) };
}

/// The ids that one test verifies. When a `Coverage` is dropped, it writes the ids to the folder.
pub struct Coverage {
    by: CoverageKind,
    ids: Vec<RequirementId>,
}

impl Coverage {
    /// Creates an empty `Coverage`. Keep it alive until the end of the test.
    #[must_use]
    pub fn new(by: CoverageKind) -> Self {
        Coverage { by, ids: Vec::new() }
    }

    /// Runs `assertion` and records `id` if `assertion` does not panic.
    ///
    /// # Panics
    /// If `assertion` panics, or if the test has already recorded [`MAX_IDS`] ids.
    pub fn verify(&mut self, id: RequirementId, assertion: impl FnOnce()) {
        assertion();
        self.ids.push(id);
        // With `--test-threads=1`, all tests run in the main thread. In this case, the ids of each
        // test cannot be counted separately.
        if thread::current().name() != Some("main") {
            let shown = SHOWN.replace(SHOWN.get() + 1) + 1;
            assert!(shown <= MAX_IDS, "a test proves at most {MAX_IDS} requirements");
        }
    }
}

impl Drop for Coverage {
    fn drop(&mut self) {
        let Some(folder) = env::var_os(FOLDER_VARIABLE) else { return };
        if thread::panicking() {
            return;
        }
        let thread = thread::current();
        let test = thread.name().unwrap_or("unnamed");
        let lines: String = self.ids.iter().map(|id| format!("{},{id},{test}\n", self.by)).collect();
        let file = Path::new(&folder).join(format!("{}.csv", process::id()));
        let written =
            OpenOptions::new().create(true).append(true).open(&file).and_then(|mut f| f.write_all(lines.as_bytes()));
        assert!(written.is_ok(), "{}: {written:?}", file.display());
    }
}
