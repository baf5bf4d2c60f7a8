//! The file of a capture, or the files of a live capture. Several threads read the files, more than
//! once.
//!
//! The files of a live capture grow. In ring mode, the capturing code deletes old files. The
//! capturing code reports how many bytes are complete ([`Recording::update`]). Readers stop
//! there, so they never read an incomplete record. A reader that follows the capture waits for
//! more bytes. A slow reader loses no frames while the files exist, and does not block other
//! threads.

use std::collections::VecDeque;
use std::fmt;
use std::fs::File;
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use weft_dissector::FrameNumber;
use weft_dissector::browse::{self, Control, Reader, Stop, Tail};
use weft_dissector::source::{Capture, OpenError};

/// Interval at which a waiting reader checks whether it is still needed.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);

/// The files of a capture.
#[derive(Clone)]
pub struct Recording(Arc<Shared>);

struct Shared {
    state: Mutex<State>,
    more: Condvar,
    /// Opens a file. Tests use synthetic captures.
    open: Box<Opener>,
}

type Opener = dyn Fn(&Path) -> io::Result<Box<dyn Read + Send>> + Send + Sync;

#[derive(Default)]
struct State {
    parts: VecDeque<Part>,
    /// The number of bytes that readers are allowed to read in the last part. `u64::MAX` for a file
    /// that does not grow.
    octets: u64,
    growing: bool,
    /// Whether the screen is gone.
    left: bool,
    live: Option<Live>,
}

/// A file of a capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Part {
    /// The path of the file.
    pub path: PathBuf,
    /// The number of frames in earlier parts.
    pub before: u64,
}

/// The state of a live capture.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Live {
    /// Interface and capture filter, as text.
    pub what: String,
    /// Number of captured frames.
    pub frames: u64,
    /// Number of frames that the kernel dropped because its buffer was full.
    pub dropped_by_kernel: u64,
    /// Number of frames that the interface or its driver dropped.
    pub dropped_by_interface: u64,
    /// Number of files so far, including deleted files.
    pub files: u64,
    /// Why the capture ended. `None` if it is running, or if the user ended it.
    pub ended: Option<String>,
}

impl fmt::Debug for Recording {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Recording").field(&self.state().parts).finish()
    }
}

impl Recording {
    /// Makes a recording for the file at `path`.
    pub(crate) fn file(path: &Path) -> Self {
        let part = Part { path: path.to_owned(), before: 0 };
        let state = State { parts: VecDeque::from([part]), octets: u64::MAX, ..State::default() };
        Self::of(state, Box::new(|path| Ok(Box::new(File::open(path)?))))
    }

    /// Makes a recording for a live capture that has written nothing yet. `what` is the interface
    /// and the capture filter, as text.
    #[must_use]
    pub fn live(what: &str) -> Self {
        let live = Some(Live { what: what.to_owned(), ..Live::default() });
        let state = State { growing: true, live, ..State::default() };
        Self::of(state, Box::new(|path| Ok(Box::new(File::open(path)?))))
    }

    fn of(state: State, open: Box<Opener>) -> Self {
        Recording(Arc::new(Shared { state: Mutex::new(state), more: Condvar::new(), open }))
    }

    /// Makes a recording for a synthetic capture.
    #[cfg(test)]
    pub(crate) fn made(open: impl Fn() -> Box<dyn Read + Send> + Send + Sync + 'static) -> Self {
        let part = Part { path: PathBuf::new(), before: 0 };
        let state = State { parts: VecDeque::from([part]), octets: u64::MAX, ..State::default() };
        Self::of(state, Box::new(move |_| Ok(open())))
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports the state of a live capture: the files (oldest first), the length of the complete
    /// records in the last file in bytes, and the counters.
    pub fn update(&self, parts: impl IntoIterator<Item = Part>, octets: u64, live: Live) {
        let mut state = self.state();
        (state.parts, state.octets, state.live) = (parts.into_iter().collect(), octets, Some(live));
        drop(state);
        self.0.more.notify_all();
    }

    /// Reports that the live capture has ended.
    pub fn end(&self) {
        self.state().growing = false;
        self.0.more.notify_all();
    }

    /// Returns whether the screen is gone.
    #[must_use]
    pub fn is_left(&self) -> bool {
        self.state().left
    }

    /// Waits until the screen is gone.
    pub fn wait_until_left(&self) {
        let mut state = self.state();
        while !state.left {
            state = self.0.more.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
    }

    /// Reports that the screen is gone.
    pub fn leave(&self) {
        self.state().left = true;
        self.0.more.notify_all();
    }

    /// Returns whether the capture is still running.
    pub(crate) fn is_growing(&self) -> bool {
        self.state().growing
    }

    /// Returns the state of a live capture, or `None` for a file.
    pub(crate) fn live_state(&self) -> Option<Live> {
        self.state().live.clone()
    }

    /// Returns how far readers are allowed to read: the number of frames in the parts before the
    /// last part, and the number of bytes of the last part. The value changes when the capture
    /// grows.
    pub(crate) fn extent(&self) -> (u64, u64) {
        let state = self.state();
        (state.parts.back().map_or(0, |part| part.before), state.octets)
    }

    /// Returns the length of the file in bytes, or `None` for a live capture.
    pub(crate) fn len(&self) -> Option<u64> {
        let state = self.state();
        let part = state.parts.front().filter(|_| state.live.is_none())?;
        part.path.metadata().ok().map(|metadata| metadata.len())
    }

    /// Checks that the first file is a capture.
    pub(crate) fn check(&self) -> Result<(), OpenError> {
        let first = self.state().parts.front().cloned();
        match first {
            Some(part) => Capture::from_reader((self.0.open)(&part.path)?).map(drop),
            None => Ok(()),
        }
    }

    /// Passes frames to `reader` while `reader` needs more frames. After each frame, calls
    /// `keep_reading` with the number of the frame and the number of bytes that were read so far.
    /// If `keep_reading` returns `false`, reading is cancelled. If `follow` is `true`, waits for
    /// more frames while the capture is running, unless `gone` returns `true`.
    ///
    /// # Errors
    /// Returns an error if a file cannot be read. A missing file of a live capture is not an error.
    pub(crate) fn read<R: Reader>(
        &self,
        follow: bool,
        gone: impl Fn() -> bool + Send + Clone + 'static,
        reader: &mut R,
        mut keep_reading: impl FnMut(&mut R, FrameNumber, u64) -> bool,
    ) -> Result<End, OpenError> {
        let read = Arc::new(AtomicU64::new(0));
        let mut next = Some(0);
        let mut note = None;
        while let Some((part, octets)) = self.part_from(next, follow, &gone) {
            let is_live = self.live_state().is_some();
            let file = match (self.0.open)(&part.path) {
                Ok(file) => file,
                // The capturing code has deleted the file meanwhile.
                Err(_) if is_live => {
                    next = part.before.checked_add(1);
                    continue;
                }
                Err(error) => return Err(error.into()),
            };
            let tail = Tail::new(
                file,
                Readable {
                    recording: self.clone(),
                    before: part.before,
                    limit: if follow { None } else { octets },
                    follows: follow && octets.is_some(),
                    gone: Box::new(gone.clone()),
                    read: Arc::clone(&read),
                },
            );
            let mut capture = match Capture::from_reader(Box::new(tail)) {
                Ok(capture) => capture,
                Err(OpenError::Empty) if is_live => break,
                Err(error) => return Err(error),
            };
            let keep_reading = |reader: &mut R, number| keep_reading(reader, number, read.load(Relaxed));
            let stop = browse::read(&mut capture, part.before, reader, keep_reading);
            if stop != Stop::AtEnd {
                return Ok(End { stop, note: None, is_complete: false });
            }
            note = capture.note().map(str::to_owned);
            next = part.before.checked_add(1);
        }
        Ok(End { stop: Stop::AtEnd, note, is_complete: !self.is_growing() })
    }

    /// Returns the first part whose [`Part::before`] is at least `before`. If that part still
    /// grows, also returns how many of its bytes can be read.
    fn part_from(&self, before: Option<u64>, follow: bool, gone: &impl Fn() -> bool) -> Option<(Part, Option<u64>)> {
        let before = before?;
        let mut state = self.state();
        loop {
            let parts = state.parts.len();
            if let Some(at) = state.parts.iter().position(|part| part.before >= before) {
                let grows = state.growing && at + 1 == parts;
                return Some((state.parts[at].clone(), grows.then_some(state.octets)));
            }
            if !follow || !state.growing || state.left || gone() {
                return None;
            }
            state = self.0.more.wait_timeout(state, CHECK_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }
}

/// How reading ended.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct End {
    pub(crate) stop: Stop,
    /// Why the capture was not read completely, for example because the file is damaged.
    pub(crate) note: Option<String>,
    /// Whether all frames were read and the capture is not growing.
    pub(crate) is_complete: bool,
}

/// Controls how far a reader is allowed to read a file of the recording.
struct Readable {
    recording: Recording,
    /// The number of frames in earlier parts, which identifies the part.
    before: u64,
    limit: Option<u64>,
    follows: bool,
    gone: Box<dyn Fn() -> bool + Send>,
    read: Arc<AtomicU64>,
}

impl Control for Readable {
    /// Returns the number of bytes after offset `at` that the reader is allowed to read. If the
    /// reader follows the capture, waits for more bytes. Returns 0 if the reader must stop, and
    /// `u64::MAX` if there is no limit.
    fn readable(&mut self, at: u64) -> io::Result<u64> {
        if !self.follows {
            return Ok(self.limit.map_or(u64::MAX, |limit| limit.saturating_sub(at)));
        }
        let mut state = self.recording.state();
        loop {
            let is_last = state.parts.back().is_some_and(|part| part.before == self.before);
            if !is_last || !state.growing {
                return Ok(u64::MAX);
            }
            if state.octets > at {
                return Ok(state.octets - at);
            }
            if state.left || (self.gone)() {
                return Ok(0);
            }
            state = self.recording.0.more.wait_timeout(state, CHECK_INTERVAL).unwrap_or_else(PoisonError::into_inner).0;
        }
    }

    fn advance(&mut self, count: u64) {
        self.read.fetch_add(count, Relaxed);
    }
}
