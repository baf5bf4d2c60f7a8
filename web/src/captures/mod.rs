//! The captures that pages show: files of one folder, and the evidence of cases.
//!
//! ```text
//! folder: the files of the folder, by id      upload: adds a complete file, or nothing
//!          |
//!          v
//! work: runs passes on a few threads, with a time limit -> cache: keeps results in limited memory
//! ```
//!
//! A pass reads a capture from its beginning. One pass makes a [`Survey`]: the list of packets, the
//! findings, the connections and the statistics. Other passes make the list of frames that match a
//! filter, the details of a few frames, or the ladder diagram of a connection. All caches and
//! passes share one limit of memory ([`memory`]).
//!
//! [`mod@follow`] reads files that still grow.

mod attempt;
mod cache;
pub(crate) mod folder;
pub(crate) mod follow;
mod id;
mod memory;
pub(crate) mod read;
mod source;
pub(crate) mod upload;
mod work;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::watch;
use weft_dissector::browse::detail::Detail;
use weft_dissector::browse::{FrameList, Survey};
use weft_dissector::output::ladder::Ladder;
use weft_dissector::{FrameNumber, StreamId};

use attempt::Attempt;
pub(crate) use cache::{Cache, CacheResult};
pub(crate) use folder::CaptureFolder;
use memory::Memory;
use read::Budget;
pub(crate) use source::Source;
use upload::Uploads;
pub(crate) use work::Requester;
use work::{WorkLimits, Workers};

use crate::access::{FOLLOWERS, Slots};

/// The captures to show, in addition to the evidence of cases.
#[derive(Debug, Clone)]
pub struct CaptureOptions {
    /// The folder of captures and uploads. If `None`, pages show only the evidence of cases.
    pub folder: Option<PathBuf>,
    /// The maximum length of an upload in bytes.
    pub most_upload: u64,
}

impl Default for CaptureOptions {
    fn default() -> Self {
        CaptureOptions { folder: None, most_upload: 256 << 20 }
    }
}

/// The limit of the estimated memory for captures, in bytes. The goal is that the server takes at
/// most 512 MiB in total. The rest is for other data of the server, for connections, for errors of
/// the estimate, and for overhead of the allocator.
const MEMORY: usize = 256 << 20;
/// Limits of passes over captures. An owner (usually a session) uses at most one thread at a time.
/// There are two threads, so a long pass of one owner does not block another owner.
const WORK: WorkLimits = WorkLimits { threads: 2, tickets: 34, reserved: 8, owner: 8 };
/// How long a page waits for a pass before the page shows the progress.
const PATIENCE: Duration = Duration::from_millis(1500);
/// A pass for the details of a frame also collects the details of this number of frames on each
/// side.
const NEIGHBOURS: u64 = 24;
/// The maximum number of rows of a ladder diagram.
const LADDER_ROWS: usize = 1000;

/// The captures of the server. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct Captures {
    pub(crate) folder: Option<CaptureFolder>,
    pub(crate) uploads: Uploads,
    surveys: Cache<Source, Survey>,
    filtered: Cache<(Source, String), FrameList>,
    details: Cache<(Source, (FrameNumber, u64)), Vec<Detail>>,
    ladders: Cache<(Source, StreamId), Option<Ladder>>,
    budget: Budget,
    pub(crate) memory: Memory,
    /// Slots for live pages.
    pub(crate) followers: Slots,
}

impl Captures {
    /// Makes the captures of the server. All passes end when `stopped` becomes `true`.
    pub(crate) fn new(options: CaptureOptions, stopped: watch::Receiver<bool>) -> Self {
        let (workers, memory) = (Workers::new(WORK), Memory::new(MEMORY));
        Captures {
            folder: options.folder.map(CaptureFolder::new),
            uploads: Uploads::new(options.most_upload),
            filtered: Cache::new(workers.clone(), memory.clone(), |frames: &FrameList| frames.len() * 8),
            details: Cache::new(workers.clone(), memory.clone(), |frames| frames.iter().map(Detail::memory).sum()),
            ladders: Cache::new(workers.clone(), memory.clone(), |_| LADDER_ROWS * 200),
            // If memory is short, the caches drop results in the order in which the caches are made
            // here. The cache of surveys is last, because a survey takes longest to make.
            surveys: Cache::new(workers, memory.clone(), Survey::memory),
            memory,
            budget: Budget { stopped, ..Budget::default() },
            followers: Slots::new(FOLLOWERS),
        }
    }

    /// Returns the survey of a capture. Reads the capture if the survey is not in the cache.
    pub(crate) async fn survey(&self, requester: Requester, source: &Source) -> CacheResult<Survey> {
        self.surveys.get(requester, source.clone(), PATIENCE, self.reads(source)).await
    }

    /// Returns the function that makes the survey. The function also creates a mark file: a hidden
    /// file next to the capture, which remains if reading the capture fails ([`attempt`]).
    fn reads(&self, source: &Source) -> impl FnOnce(&cache::Progress) -> Result<Survey, String> + Send + 'static {
        let (source, budget) = (source.clone(), self.budget.clone());
        // A mark file has only one effect: the server does not read the capture again in the
        // background. The server never reads captures of cases in the background, so it creates no
        // mark files for captures of cases.
        let is_in_folder = self.folder.as_ref().is_some_and(|folder| source.path.parent() == Some(&*folder.path));
        move |progress| {
            let attempt = if is_in_folder { Attempt::begin(&source) } else { None };
            let read = read::make_survey(&source.path, &budget, progress);
            if let Some(attempt) = attempt.filter(|_| read.is_ok() || *budget.stopped.borrow()) {
                attempt.succeed();
            }
            read
        }
    }

    /// Returns whether a survey of the capture is in progress.
    pub(crate) fn is_being_read(&self, source: &Source) -> bool {
        self.surveys.is_in_progress(source)
    }

    /// If the capture was already read, returns the survey or the error. If not, returns `None`.
    pub(crate) fn cached(&self, source: &Source) -> Option<Result<Arc<Survey>, Arc<str>>> {
        self.surveys.cached(source)
    }

    /// Reads the capture in the background.
    pub(crate) async fn prepare(&self, source: &Source) {
        self.surveys.get(Requester::background(), source.clone(), Duration::ZERO, self.reads(source)).await;
    }

    /// Returns the numbers of the frames that match `filter`. The filter must be valid.
    pub(crate) async fn filtered(&self, requester: Requester, source: &Source, filter: &str) -> CacheResult<FrameList> {
        let (path, budget, text) = (source.path.clone(), self.budget.clone(), filter.to_owned());
        let key = (source.clone(), filter.to_owned());
        self.filtered
            .get(requester, key, PATIENCE, move |progress| read::filter_frames(&path, &text, &budget, progress))
            .await
    }

    /// Returns the details of frame `number` and of some neighbouring frames. The details of frame
    /// `number` are complete when the pass has read frame `known_at`.
    pub(crate) async fn detail(
        &self,
        requester: Requester,
        source: &Source,
        number: FrameNumber,
        known_at: FrameNumber,
    ) -> CacheResult<Vec<Detail>> {
        // Neighbouring frames have the same focus, so they share a pass.
        let focus = FrameNumber::from(u64::from(number) / NEIGHBOURS * NEIGHBOURS);
        let end = focus.later(NEIGHBOURS);
        if known_at <= end {
            match self.details_of(requester.clone(), source, (focus, NEIGHBOURS), end).await {
                // If the neighbours are very large, the requested frame can be missing.
                CacheResult::Ready(frames) if !frames.iter().any(|detail| detail.number == number) => {}
                result => return result,
            }
        }
        self.details_of(requester, source, (number, 0), known_at).await
    }

    async fn details_of(
        &self,
        requester: Requester,
        source: &Source,
        window: (FrameNumber, u64),
        until: FrameNumber,
    ) -> CacheResult<Vec<Detail>> {
        let (path, budget) = (source.path.clone(), self.budget.clone());
        let read = move |progress: &cache::Progress| read::details(&path, window, until, &budget, progress);
        self.details.get(requester, (source.clone(), window), PATIENCE, read).await
    }

    /// Returns the ladder diagram of a connection, or `None` if there is no such connection.
    pub(crate) async fn ladder(
        &self,
        requester: Requester,
        source: &Source,
        stream: StreamId,
    ) -> CacheResult<Option<Ladder>> {
        let (path, budget) = (source.path.clone(), self.budget.clone());
        let read = move |progress: &cache::Progress| read::ladder(&path, stream, LADDER_ROWS, &budget, progress);
        self.ladders.get(requester, (source.clone(), stream), PATIENCE, read).await
    }
}
