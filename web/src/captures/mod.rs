//! Captures to look into: files of one folder, and the evidence of cases.
//!
//! ```text
//! shelf: which files there are, by id      upload: a new one, whole or not at all
//!          |
//!          v
//! work: a few threads, each with a bound on time -> cache: what was read, as long as there is room
//! ```
//!
//! A file that still grows is followed ([`mod@follow`]).
//!
//! What is read of a capture is made by `weft-dissector`: [`read::Survey`] in one pass, and by passes of their own the frames that pass a
//! filter, a few frames in full, the ladder of a connection. Memory: all caches and all passes share one account ([`memory`]).

mod attempt;
mod cache;
pub(crate) mod follow;
mod memory;
pub(crate) mod read;
pub(crate) mod shelf;
pub(crate) mod upload;
mod work;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use tokio::sync::{Semaphore, watch};
use weft_dissector::browse::detail::Detail;
use weft_dissector::filter::{Filter, FilterError, Wanted};
use weft_dissector::output::ladder::Ladder;

use attempt::Attempt;
pub(crate) use cache::{Cache, Got};
use memory::Memory;
use read::{Budget, Survey};
pub(crate) use shelf::Shelf;
use upload::Uploads;
pub(crate) use work::Asker;
use work::{WorkLimits, Workers};

use crate::access::{FOLLOWERS, Places};
use crate::app::Failure;

/// Which captures there are to look into, beside the evidence of cases.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// Where they are, and uploads go; without it there is evidence alone.
    pub folder: Option<PathBuf>,
    /// Octets of an upload at most.
    pub most_upload: u64,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        CaptureOptions { folder: None, most_upload: 256 << 20 }
    }
}

/// Bytes that all of this may take, as it is estimated. The rest of 512 MiB is for the server itself, for its connections, and for
/// what the estimate and the allocator waste.
const MEMORY: usize = 256 << 20;
/// Work on captures. Two threads, because one owner has one at a time and another owner is not to wait for it.
const WORK: WorkLimits = WorkLimits { threads: 2, places: 34, reserved: 8, owner: 8 };
/// How long a page waits for what is being read; then it says how far that is.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Frames on each side of one that is looked at that are kept too.
const NEIGHBOURS: u64 = 24;
/// Rows of a ladder at most.
const LADDER_ROWS: usize = 1000;

/// A file as it was when somebody asked for it; one that changed is read again.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub(crate) struct Source {
    pub(crate) path: PathBuf,
    pub(crate) len: u64,
    pub(crate) changed: SystemTime,
}

/// All that the routes know of captures. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Captures {
    pub(crate) shelf: Option<Shelf>,
    pub(crate) uploads: Uploads,
    surveys: Cache<Source, Survey>,
    sifted: Cache<(Source, String), Vec<u64>>,
    details: Cache<(Source, (u64, u64)), Vec<Detail>>,
    ladders: Cache<(Source, u32), Option<Ladder>>,
    budget: Budget,
    pub(crate) memory: Memory,
    /// For those who follow a file.
    pub(crate) followers: Places,
}

const STOPPING: Failure = Failure::Busy("This server is stopping.");

/// Filters that are compiled at a time; others wait.
static COMPILERS: Semaphore = Semaphore::const_new(2);

/// What is wrong with a filter, if anything. Compiles it on a blocking thread: many expressions take milliseconds each, and
/// would block a runtime thread.
///
/// # Errors
/// The server stops before the filter is compiled.
pub(crate) async fn filter_error(text: String) -> Result<Option<FilterError>, Failure> {
    // The permit goes with the work, which goes on if the client disconnects. The semaphore is never closed.
    let permit = COMPILERS.acquire().await.map_err(|_| STOPPING)?;
    let compile = move || {
        let _permit = permit;
        Filter::parse(&text, &mut Wanted::default()).err()
    };
    // A runtime that stops cancels blocking tasks that still wait for a thread; that is not a panic.
    tokio::task::spawn_blocking(compile).await.map_err(|error| match error.try_into_panic() {
        Ok(panic) => std::panic::resume_unwind(panic),
        Err(_) => STOPPING,
    })
}

impl Captures {
    /// `stopped` ends what is being read.
    pub(crate) fn new(options: CaptureOptions, stopped: watch::Receiver<bool>) -> Self {
        let (workers, memory) = (Workers::new(WORK), Memory::new(MEMORY));
        Captures {
            shelf: options.folder.map(Shelf::new),
            uploads: Uploads::new(options.most_upload),
            sifted: Cache::new(workers.clone(), memory.clone(), |numbers: &Vec<u64>| numbers.len() * 8),
            details: Cache::new(workers.clone(), memory.clone(), |frames| frames.iter().map(read::memory).sum()),
            ladders: Cache::new(workers.clone(), memory.clone(), |_| LADDER_ROWS * 200),
            // The last one to give something up, because it took longest to read.
            surveys: Cache::new(workers, memory.clone(), Survey::memory),
            memory,
            budget: Budget { stopped, ..Budget::default() },
            followers: Places::new(FOLLOWERS),
        }
    }

    /// What is in it.
    pub(crate) async fn survey(&self, asker: Asker, source: &Source) -> Got<Survey> {
        self.surveys.get(asker, source.clone(), PATIENCE, self.reads(source)).await
    }

    /// Makes the survey, and remembers that it was not made if that fails.
    fn reads(&self, source: &Source) -> impl FnOnce(&cache::Progress) -> Result<Survey, String> + Send + 'static {
        let (source, budget) = (source.clone(), self.budget.clone());
        // What a case recorded is read for a person only, and its folder is not for marks.
        let is_on_shelf = self.shelf.as_ref().is_some_and(|shelf| source.path.parent() == Some(&*shelf.folder));
        move |progress| {
            let attempt = if is_on_shelf { Attempt::begin(&source) } else { None };
            let read = Survey::read(&source.path, &budget, progress);
            if let Some(attempt) = attempt.filter(|_| read.is_ok() || *budget.stopped.borrow()) {
                attempt.succeed();
            }
            read
        }
    }

    /// True if somebody reads it now.
    pub(crate) fn is_being_read(&self, source: &Source) -> bool {
        self.surveys.is_under_way(source)
    }

    /// What is known of it already; `None` where it was not read yet.
    pub(crate) fn known(&self, source: &Source) -> Option<Result<Arc<Survey>, Arc<str>>> {
        self.surveys.known(source)
    }

    /// Has it read, in case somebody asks.
    pub(crate) async fn prepare(&self, source: &Source) {
        self.surveys.get(Asker::reads_ahead(), source.clone(), Duration::ZERO, self.reads(source)).await;
    }

    /// Numbers of the frames that pass `filter`, which the caller knows to be one.
    pub(crate) async fn sifted(&self, asker: Asker, source: &Source, filter: &str) -> Got<Vec<u64>> {
        let (path, budget, text) = (source.path.clone(), self.budget.clone(), filter.to_owned());
        let key = (source.clone(), filter.to_owned());
        self.sifted.get(asker, key, PATIENCE, move |progress| read::sift(&path, &text, &budget, progress)).await
    }

    /// Frame `number` in full, of which all is known when frame `known_at` is read, and perhaps others.
    pub(crate) async fn detail(&self, asker: Asker, source: &Source, number: u64, known_at: u64) -> Got<Vec<Detail>> {
        // Neighbours share what is read.
        let focus = number - number % NEIGHBOURS;
        let end = focus.saturating_add(NEIGHBOURS);
        if known_at <= end {
            match self.details_of(asker.clone(), source, (focus, NEIGHBOURS), end).await {
                // Very large neighbours are left out.
                Got::Ready(frames) if !frames.iter().any(|detail| detail.number == number) => {}
                got => return got,
            }
        }
        self.details_of(asker, source, (number, 0), known_at).await
    }

    async fn details_of(&self, asker: Asker, source: &Source, window: (u64, u64), until: u64) -> Got<Vec<Detail>> {
        let (path, budget) = (source.path.clone(), self.budget.clone());
        let read = move |progress: &cache::Progress| read::details(&path, window, until, &budget, progress);
        self.details.get(asker, (source.clone(), window), PATIENCE, read).await
    }

    /// The ladder of a connection; nothing where there is no such connection.
    pub(crate) async fn ladder(&self, asker: Asker, source: &Source, stream: u32) -> Got<Option<Ladder>> {
        let (path, budget) = (source.path.clone(), self.budget.clone());
        let read = move |progress: &cache::Progress| read::ladder(&path, stream, LADDER_ROWS, &budget, progress);
        self.ladders.get(asker, (source.clone(), stream), PATIENCE, read).await
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_a_filter_that_a_stopping_runtime_cancels() {
        let runtime = tokio::runtime::Runtime::new().unwrap();
        let stopped = runtime.handle().clone();
        runtime.shutdown_background();
        // The runtime cancels every blocking task that comes after its end.
        let read = stopped.block_on(filter_error("tcp.stream == 1".to_owned()));
        assert!(matches!(read, Err(Failure::Busy(_))), "{read:?}");
    }
}
