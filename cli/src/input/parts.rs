//! Reads several captures as one, sorted by the times of the frames. The captures are the files of
//! a ring buffer in any order, or captures of several taps.
//!
//! weft first reads the first frame of each file, and closes the file. A file is due when its first
//! frame is the next frame by time. weft opens a file again only when the file is due. For a ring
//! of many files, only few files are therefore open at a time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use weft_dissector::FrameNumber;
use weft_dissector::source::{Capture, Comments, Frame, Names, TimeResolution};

use super::frame_origin::FrameFiles;
use super::{Damage, note_end, open_capture, shown};
use crate::exit::{note, reject};

/// At most this many files are named in a message.
const MAX_NAMED_FILES: usize = 5;

/// A frame that owns its bytes.
#[derive(Default)]
struct OwnedFrame {
    time: u64,
    interface: u32,
    link_type: u16,
    wire_len: u32,
    octets: Vec<u8>,
}

/// An open file and its next frame. The frame is `None` at the end of the file.
struct OpenCapture {
    capture: Box<Capture>,
    name: Arc<str>,
    next: Option<OwnedFrame>,
}

/// A file that is not due yet.
struct PendingFile {
    /// Time of the first frame, in nanoseconds since 1970.
    time: u64,
    path: PathBuf,
    /// If the file is a pipe: the open file, because weft cannot open a pipe a second time.
    pipe: Option<OpenCapture>,
}

/// The captures that are read as one.
pub(super) struct MergedCaptures {
    /// The files that are not due, sorted by time in descending order.
    pending: Vec<PendingFile>,
    open: Vec<OpenCapture>,
    current: OwnedFrame,
    frames: u64,
    frame_files: FrameFiles,
    comments: Comments,
    /// The names in all files.
    names: Names,
    resolution: TimeResolution,
    damage: Damage,
}

impl MergedCaptures {
    /// Reads the first frame of each file, and sorts the files by the times of these frames. If
    /// `paths` has another order, a note on standard error reports the new order.
    pub(super) fn open(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let (mut files, names) = (Vec::new(), Names::default());
        for path in paths {
            if path == Path::new("-") {
                reject!("standard input cannot be read together with other captures");
            }
            let part = OpenCapture::new(path, open_capture(path)?, &names);
            // A file without frames comes last.
            let time = part.next.as_ref().map_or(u64::MAX, |frame| frame.time);
            let pipe = (!path.is_file()).then_some(part);
            files.push(PendingFile { time, path: path.clone(), pipe });
        }
        if !files.is_sorted_by_key(|file| file.time) {
            files.sort_by_key(|file| file.time);
            let named: Vec<String> = files.iter().take(MAX_NAMED_FILES).map(|file| shown(&file.path)).collect();
            let more = if files.len() > MAX_NAMED_FILES { ", ..." } else { "" };
            note(&format!(
                "reading {} captures in the order of their first frames: {}{more}",
                files.len(),
                named.join(", ")
            ));
        }
        files.reverse();
        Ok(MergedCaptures {
            pending: files,
            open: Vec::new(),
            current: OwnedFrame::default(),
            frames: 0,
            frame_files: FrameFiles::default(),
            comments: Comments::default(),
            names,
            resolution: TimeResolution::default(),
            damage: Damage::default(),
        })
    }

    /// Number of frames read so far.
    pub(super) fn frames(&self) -> u64 {
        self.frames
    }

    /// The table that maps frames to their files.
    pub(super) fn frame_files(&self) -> FrameFiles {
        self.frame_files.clone()
    }

    /// The packet comments of the latest frames.
    pub(super) fn comments(&self) -> Comments {
        self.comments.clone()
    }

    /// The names of addresses in the files so far.
    pub(super) fn names(&self) -> Names {
        self.names.clone()
    }

    /// The resolution of the times of the frames so far.
    pub(super) fn time_resolution(&self) -> TimeResolution {
        self.resolution.clone()
    }

    /// The damage of the files that were read to their end.
    pub(super) fn damage(&self) -> Damage {
        self.damage.clone()
    }

    /// Returns the earliest remaining frame. Its number counts the frames of all files.
    pub(super) fn next_frame(&mut self) -> Option<Frame<'_>> {
        let time = |part: &OpenCapture| part.next.as_ref().map_or(u64::MAX, |frame| frame.time);
        let earliest = self.open.iter().map(time).min().unwrap_or(u64::MAX);
        while let Some(file) = self.pending.pop_if(|file| file.time <= earliest) {
            self.open.extend(file.pipe.or_else(|| OpenCapture::open(&file.path, &self.names)));
        }
        // Close the files that have no more frames.
        for part in self.open.extract_if(.., |part| part.next.is_none()) {
            self.damage.files += u64::from(part.capture.is_damaged());
            part.close();
        }
        let part = self.open.iter_mut().min_by_key(|part| time(part))?;
        std::mem::swap(&mut self.current, part.next.as_mut()?);
        self.frames += 1;
        let (number, own) = (FrameNumber::from(self.frames), FrameNumber::from(part.capture.frames()));
        self.frame_files.note(number, own, &part.name);
        self.comments.note(number, part.capture.comments().of(own));
        self.resolution.note(number, part.capture.time_resolution().of(own));
        if part.capture.partial_frame() == Some(own) {
            self.damage.partial_frames.push(number);
        }
        part.advance();
        let OwnedFrame { time, interface, link_type, wire_len, octets } = &self.current;
        let (time, interface, link_type, wire_len) = (*time, *interface, *link_type, *wire_len);
        Some(Frame { number, time, interface, link_type, octets, wire_len })
    }
}

impl OpenCapture {
    /// Adds the names in the file to `names`.
    fn new(path: &Path, capture: Capture, names: &Names) -> Self {
        let next = Some(OwnedFrame::default());
        let capture = capture.with_names(names.clone());
        let mut part = OpenCapture { capture: Box::new(capture), name: shown(path).into(), next };
        part.advance();
        part
    }

    /// Opens a file again. If that fails, prints the reason on standard error and returns `None`.
    fn open(path: &Path, names: &Names) -> Option<Self> {
        let opened = open_capture(path).map(|capture| OpenCapture::new(path, capture, names));
        opened.inspect_err(|error| note(&error.to_string())).ok()
    }

    /// Reads the next frame of the file, if there is one.
    fn advance(&mut self) {
        let (Some(next), Some(frame)) = (&mut self.next, self.capture.next_frame()) else {
            self.next = None;
            return;
        };
        let Frame { time, interface, link_type, octets, wire_len, .. } = frame;
        next.octets.clear();
        next.octets.extend_from_slice(octets);
        (next.time, next.interface, next.link_type, next.wire_len) = (time, interface, link_type, wire_len);
    }

    fn close(self) {
        note_end(&self.name, &self.capture);
    }
}
