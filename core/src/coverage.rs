//! Counts the requirements that the tests prove, while they run.
//!
//! A test that proves requirements makes a [`Proof`] and passes it each id together with the
//! assertion that would fail if the id's rule did not hold. When the test has passed, and
//! `WEFT_COVERAGE` names a folder, the ids are written there; a test that fails, or does not run,
//! counts for nothing. `make coverage` collects the files.
//!
//! This is for tests; nothing in the product calls it.

use std::cell::Cell;
use std::fs::OpenOptions;
use std::io::Write;
use std::path::Path;
use std::{env, fmt, process, thread};

use crate::RequirementId;

/// The folder that proofs are written to.
pub const FOLDER_VARIABLE: &str = "WEFT_COVERAGE";
/// Ids that one test may prove, in however many proofs; a test that claims more checks none of them
/// well.
pub const MOST_IDS: usize = 8;

/// How a requirement is covered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum By {
    /// A case of the suites, shown by a deviation that makes it fail.
    Case,
    /// A rule of the monitor, shown by a stream that makes it fire and one that does not.
    Rule,
    /// A test of the endpoint's interface or behaviour.
    Test,
}

impl fmt::Display for By {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            By::Case => "case",
            By::Rule => "rule",
            By::Test => "test",
        })
    }
}

thread_local! {
    /// Ids that this thread's test proved; each test has a thread of its own.
    static SHOWN: Cell<usize> = const { Cell::new(0) };
}

/// The ids that one test proves.
pub struct Proof {
    by: By,
    ids: Vec<RequirementId>,
}

impl Proof {
    /// Begins; keep it until the end of the test.
    #[must_use]
    pub fn new(by: By) -> Self {
        Proof { by, ids: Vec::new() }
    }

    /// `id` is proven when `assertion` does not panic.
    ///
    /// # Panics
    /// When `assertion` does, or when it is one id too many.
    pub fn shows(&mut self, id: RequirementId, assertion: impl FnOnce()) {
        assertion();
        self.ids.push(id);
        // One after the other in the main thread (`--test-threads=1`) they cannot be distinguished.
        if thread::current().name() != Some("main") {
            let shown = SHOWN.replace(SHOWN.get() + 1) + 1;
            assert!(shown <= MOST_IDS, "a test proves at most {MOST_IDS} requirements");
        }
    }
}

impl Drop for Proof {
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
