//! The captures that pages show: files of one folder, and the evidence of cases.
//!
//! ```text
//! shelf: the files of the folder, by id      upload: adds a complete file, or nothing
//!          |
//!          v
//! work: a few threads, each with a time limit -> cache: results, as long as there is memory
//! ```
//!
//! [`mod@follow`] reads files that still grow.
//!
//! `weft-dissector` makes a [`Survey`] in one pass. Other passes make the list of frames that
//! pass a filter, the details of a few frames, and the ladder of a connection. All caches and
//! passes share one account of memory ([`memory`]).

mod attempt;
mod cache;
pub(crate) mod follow;
mod id;
mod memory;
pub(crate) mod read;
pub(crate) mod shelf;
mod source;
pub(crate) mod upload;
mod work;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use weft_dissector::StreamId;
use weft_dissector::browse::detail::Detail;
use weft_dissector::browse::{FrameList, Survey};
use weft_dissector::output::ladder::Ladder;

use attempt::Attempt;
pub(crate) use cache::{Cache, Got};
use memory::Memory;
use read::Budget;
pub(crate) use shelf::Shelf;
pub(crate) use source::Source;
use upload::Uploads;
pub(crate) use work::Requester;
use work::{WorkLimits, Workers};

use crate::access::{FOLLOWERS, Places};

/// The captures to show, in addition to the evidence of cases.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// The folder of captures and uploads. Without it, pages show only evidence.
    pub folder: Option<PathBuf>,
    /// The maximum length of an upload in bytes.
    pub most_upload: u64,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        CaptureOptions { folder: None, most_upload: 256 << 20 }
    }
}

/// The estimated memory for captures in bytes. The rest of 512 MiB is for the server, for its
/// connections, and for errors of the estimate and overhead of the allocator.
const MEMORY: usize = 256 << 20;
/// Passes over captures. There are two threads, because an owner has one at a time, and another
/// owner must not wait for it.
const WORK: WorkLimits = WorkLimits { threads: 2, places: 34, reserved: 8, owner: 8 };
/// How long a page waits for a pass before it shows the progress.
const PATIENCE: Duration = Duration::from_millis(1500);
/// Frames before and after a frame whose details are also cached.
const NEIGHBOURS: u64 = 24;
/// The maximum number of rows of a ladder.
const LADDER_ROWS: usize = 1000;

/// The captures of the server. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Captures {
    pub(crate) shelf: Option<Shelf>,
    pub(crate) uploads: Uploads,
    surveys: Cache<Source, Survey>,
    sifted: Cache<(Source, String), FrameList>,
    details: Cache<(Source, (u64, u64)), Vec<Detail>>,
    ladders: Cache<(Source, StreamId), Option<Ladder>>,
    budget: Budget,
    pub(crate) memory: Memory,
    /// Places for live pages.
    pub(crate) followers: Places,
}

impl Captures {
    /// `stopped` ends all passes.
    pub(crate) fn new(options: CaptureOptions, stopped: watch::Receiver<bool>) -> Self {
        let (workers, memory) = (Workers::new(WORK), Memory::new(MEMORY));
        Captures {
            shelf: options.folder.map(Shelf::new),
            uploads: Uploads::new(options.most_upload),
            sifted: Cache::new(workers.clone(), memory.clone(), |frames: &FrameList| frames.len() * 8),
            details: Cache::new(workers.clone(), memory.clone(), |frames| frames.iter().map(Detail::memory).sum()),
            ladders: Cache::new(workers.clone(), memory.clone(), |_| LADDER_ROWS * 200),
            // The last cache to drop results, because surveys take longest.
            surveys: Cache::new(workers, memory.clone(), Survey::memory),
            memory,
            budget: Budget { stopped, ..Budget::default() },
            followers: Places::new(FOLLOWERS),
        }
    }

    /// The survey of a capture.
    pub(crate) async fn survey(&self, requester: Requester, source: &Source) -> Got<Survey> {
        self.surveys.get(requester, source.clone(), PATIENCE, self.reads(source)).await
    }

    /// Makes the survey. If that fails, a mark remains.
    fn reads(&self, source: &Source) -> impl FnOnce(&cache::Progress) -> Result<Survey, String> + Send + 'static {
        let (source, budget) = (source.clone(), self.budget.clone());
        // Captures of cases are not read in the background, and their folder has no marks.
        let is_on_shelf = self.shelf.as_ref().is_some_and(|shelf| source.path.parent() == Some(&*shelf.folder));
        move |progress| {
            let attempt = if is_on_shelf { Attempt::begin(&source) } else { None };
            let read = read::make_survey(&source.path, &budget, progress);
            if let Some(attempt) = attempt.filter(|_| read.is_ok() || *budget.stopped.borrow()) {
                attempt.succeed();
            }
            read
        }
    }

    /// True if a survey of it is in progress.
    pub(crate) fn is_being_read(&self, source: &Source) -> bool {
        self.surveys.is_under_way(source)
    }

    /// The survey or error, if the capture was read.
    pub(crate) fn known(&self, source: &Source) -> Option<Result<Arc<Survey>, Arc<str>>> {
        self.surveys.known(source)
    }

    /// Has it read in the background.
    pub(crate) async fn prepare(&self, source: &Source) {
        self.surveys.get(Requester::reads_ahead(), source.clone(), Duration::ZERO, self.reads(source)).await;
    }

    /// The numbers of the frames that pass `filter`, which must be valid.
    pub(crate) async fn sifted(&self, requester: Requester, source: &Source, filter: &str) -> Got<FrameList> {
        let (path, budget, text) = (source.path.clone(), self.budget.clone(), filter.to_owned());
        let key = (source.clone(), filter.to_owned());
        self.sifted.get(requester, key, PATIENCE, move |progress| read::sift(&path, &text, &budget, progress)).await
    }

    /// The details of frame `number` and perhaps of others. They are complete when frame `known_at`
    /// has been read.
    pub(crate) async fn detail(
        &self,
        requester: Requester,
        source: &Source,
        number: u64,
        known_at: u64,
    ) -> Got<Vec<Detail>> {
        // Neighbours share a pass.
        let focus = number - number % NEIGHBOURS;
        let end = focus.saturating_add(NEIGHBOURS);
        if known_at <= end {
            match self.details_of(requester.clone(), source, (focus, NEIGHBOURS), end).await {
                // If its neighbours are very large, a frame may be missing.
                Got::Ready(frames) if !frames.iter().any(|detail| detail.number == number) => {}
                got => return got,
            }
        }
        self.details_of(requester, source, (number, 0), known_at).await
    }

    async fn details_of(
        &self,
        requester: Requester,
        source: &Source,
        window: (u64, u64),
        until: u64,
    ) -> Got<Vec<Detail>> {
        let (path, budget) = (source.path.clone(), self.budget.clone());
        let read = move |progress: &cache::Progress| read::details(&path, window, until, &budget, progress);
        self.details.get(requester, (source.clone(), window), PATIENCE, read).await
    }

    /// The ladder of a connection; `None` if there is no such connection.
    pub(crate) async fn ladder(&self, requester: Requester, source: &Source, stream: StreamId) -> Got<Option<Ladder>> {
        let (path, budget) = (source.path.clone(), self.budget.clone());
        let read = move |progress: &cache::Progress| read::ladder(&path, stream, LADDER_ROWS, &budget, progress);
        self.ladders.get(requester, (source.clone(), stream), PATIENCE, read).await
    }
}
