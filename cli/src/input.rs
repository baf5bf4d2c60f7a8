//! Reads the captures and interfaces that the command line names.
//!
//! Errors contain a remedy. Large files show their progress on a terminal. A damaged capture causes
//! a note on standard error at the end.

mod decode;
mod end_notes;
mod frame_origin;
mod live;
mod parts;
mod quantity;
mod reread;
mod save;

pub(crate) use decode::DecodeAs;
pub(crate) use end_notes::remark;
pub(crate) use frame_origin::FrameFiles;
pub(crate) use live::{LiveArguments, LiveProgress, SaveDestination, open_error};
pub(crate) use reread::{RereadableCapture, refuse_same};
pub(crate) use save::Ring;

use live::LiveInput;
use parts::MergedCaptures;

use std::io::{IsTerminal, stderr};
use std::path::{Path, PathBuf};

use indicatif::{ProgressBar, ProgressStyle};
use weft_core::text::visible;
use weft_dissector::output::text::counted;
use weft_dissector::source::{Capture, Comments, Frame, Names, OpenError, TimeResolution};
use weft_dissector::{Dissector, FrameNumber, Sink, SkipReason, reads_link_type};

use crate::exit::{BadInput, note, reject};

/// Reading a file of at least this many bytes shows progress.
const LONG: u64 = 64 << 20;
/// Number of frames between two updates of the progress.
const STEP: u64 = 4096;

/// The captures that a command reads. The user names them as arguments, or with `-r` as in tshark.
#[derive(clap::Args)]
pub(crate) struct CaptureFile {
    /// Read these captures (such as pcapng, also compressed); use - for standard input
    ///
    /// weft reads several files as one capture, sorted by the times of the frames. For example, the
    /// files can be those of a ring buffer. docs/captures.md lists the formats.
    #[arg(value_name = "FILE", required_unless_present_any = ["read", "interface"], conflicts_with = "interface")]
    files: Vec<PathBuf>,
    /// Read this capture (same as FILE, for users of tshark)
    #[arg(short = 'r', long = "read-file", value_name = "FILE", conflicts_with = "files", id = "read")]
    read: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) decode: DecodeAs,
    #[command(flatten)]
    pub(crate) live: LiveArguments,
}

impl CaptureFile {
    /// Opens the capture.
    pub(crate) fn open(&self) -> anyhow::Result<Input> {
        self.open_and_write(None)
    }

    /// Opens the capture. If the capture is an interface, weft also writes its frames to `write`.
    pub(crate) fn open_and_write(&self, write: Option<(&Path, Ring)>) -> anyhow::Result<Input> {
        if let Some(interface) = self.live.interface() {
            return Input::live(&self.live, interface, write.map(|(path, ring)| (SaveDestination::Path(path), ring)));
        }
        match &self.files[..] {
            paths @ [_, _, ..] => {
                self.live.reject_without_interface()?;
                Input::open_several(paths)
            }
            _ => Input::open(self.path()?),
        }
    }

    /// The paths of the files.
    pub(crate) fn files(&self) -> impl Iterator<Item = &PathBuf> {
        self.files.iter().chain(&self.read)
    }

    /// Returns the path of the only file. `-` is standard input. Fails if there are several files.
    pub(crate) fn path(&self) -> anyhow::Result<&Path> {
        self.live.reject_without_interface()?;
        match (&self.files[..], &self.read) {
            ([path], _) | ([], Some(path)) => Ok(path),
            ([], None) => Err(BadInput("missing capture: name a file, or - for standard input".to_owned()).into()),
            _ => Err(BadInput(
                "-w needs exactly one capture; first merge the captures, for example with mergecap".to_owned(),
            )
            .into()),
        }
    }
}

/// Returns the name of a file with escaped control characters.
fn shown(path: &Path) -> String {
    visible(&path.display().to_string()).into_owned()
}

/// The result of [`Input::next`].
pub(crate) enum Next<'a> {
    /// A frame.
    Frame(Frame<'a>),
    /// No frame of the live capture is ready, and the next frame can take long to arrive. The
    /// caller should print its buffered output now.
    Idle,
    /// The capture has ended.
    End,
}

/// Capture files that weft could not read to their end.
#[derive(Clone, Default)]
pub(crate) struct Damage {
    /// Number of these files.
    pub(crate) files: u64,
    /// The frames of which a file has only the beginning.
    pub(crate) partial_frames: Vec<FrameNumber>,
}

/// The name of standard input in messages.
const STANDARD_INPUT: &str = "standard input";

/// An open capture.
pub(crate) struct Input {
    source: Source,
    name: String,
    progress: ProgressBar,
    /// The link type of the latest frame. After the first frame with a supported link type, this
    /// value does not change any more.
    strange: Option<u16>,
    /// Whether a frame has had a supported link type.
    readable: bool,
}

enum Source {
    File(Box<Capture>),
    Files(MergedCaptures),
    Live(Box<LiveInput>),
}

impl Input {
    /// Captures on an interface.
    pub(crate) fn live(
        arguments: &LiveArguments,
        interface: &str,
        write: Option<(SaveDestination<'_>, Ring)>,
    ) -> anyhow::Result<Self> {
        let source = Source::Live(Box::new(arguments.open(interface, write)?));
        Ok(Input::of(source, interface.to_owned()))
    }

    fn of(source: Source, name: String) -> Self {
        Input { source, name, progress: ProgressBar::hidden(), strange: None, readable: false }
    }

    /// Opens the capture at `path`.
    pub(crate) fn open(path: &Path) -> anyhow::Result<Self> {
        let (capture, name) = (open_capture(path)?, name_of(path));
        let len = std::fs::metadata(path).map_or(0, |metadata| metadata.len());
        Ok(Self::read(name, capture, len))
    }

    /// Reads a capture of about `len` bytes. `len` is the total for the progress.
    fn read(name: String, capture: Capture, len: u64) -> Self {
        let mut input = Input::of(Source::File(Box::new(capture)), name);
        if len >= LONG && stderr().is_terminal() {
            let bar = ProgressBar::new(len);
            if let Ok(style) = ProgressStyle::with_template("{msg} {bar:30} {bytes} of {total_bytes}, {eta} left") {
                bar.set_style(style);
            }
            bar.set_message(input.name.clone());
            input.progress = bar;
        }
        input
    }

    /// Opens at least two captures, to read them as one.
    pub(crate) fn open_several(paths: &[PathBuf]) -> anyhow::Result<Self> {
        let source = Source::Files(MergedCaptures::open(paths)?);
        let others = counted(paths.len() as u64 - 1, "other");
        let name = format!("{} and {others}", paths.first().map_or_else(String::new, |path| shown(path)));
        Ok(Input::of(source, name))
    }

    /// The name of the input for messages.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Number of frames read so far.
    pub(crate) fn frames(&self) -> u64 {
        match &self.source {
            Source::File(capture) => capture.frames(),
            Source::Files(parts) => parts.frames(),
            Source::Live(live) => live.frames(),
        }
    }

    /// The table that maps frames to their files. Returns `None` if the input is not several files.
    pub(crate) fn frame_files(&self) -> Option<FrameFiles> {
        match &self.source {
            Source::Files(parts) => Some(parts.frame_files()),
            Source::File(_) | Source::Live(_) => None,
        }
    }

    /// The damage of the capture files so far.
    pub(crate) fn damage(&self) -> Damage {
        match &self.source {
            Source::File(capture) => Damage {
                files: u64::from(capture.is_damaged()),
                partial_frames: capture.partial_frame().into_iter().collect(),
            },
            Source::Files(parts) => parts.damage(),
            Source::Live(_) => Damage::default(),
        }
    }

    /// Call this at the end of the capture, before [`remark`]. If a file ends within a frame, the
    /// note about this file is enough, so the remarks do not include the frame.
    pub(crate) fn ignore_partial_frames(&self, dissector: &mut Dissector) {
        for frame in self.damage().partial_frames {
            dissector.ignore_partial_frame(frame);
        }
    }

    /// The packet comments of the latest frames.
    pub(crate) fn comments(&self) -> Comments {
        match &self.source {
            Source::File(capture) => capture.comments(),
            Source::Files(parts) => parts.comments(),
            Source::Live(_) => Comments::default(),
        }
    }

    /// The names of addresses in the captures so far.
    pub(crate) fn names(&self) -> Names {
        match &self.source {
            Source::File(capture) => capture.names(),
            Source::Files(parts) => parts.names(),
            Source::Live(_) => Names::default(),
        }
    }

    /// The resolution of the times of the frames so far.
    pub(crate) fn time_resolution(&self) -> TimeResolution {
        match &self.source {
            Source::File(capture) => capture.time_resolution(),
            Source::Files(parts) => parts.time_resolution(),
            Source::Live(_) => TimeResolution::nanoseconds(),
        }
    }

    /// The progress of a live capture. Returns `None` for files.
    pub(crate) fn live_progress(&mut self) -> Option<LiveProgress> {
        match &mut self.source {
            Source::Live(live) => Some(live.progress()),
            Source::File(_) | Source::Files(_) => None,
        }
    }

    /// Reports lost frames of a live capture on standard error. Call this function at
    /// [`Next::Idle`], unless a screen shows the number of lost frames.
    pub(crate) fn idle(&mut self) {
        if let Source::Live(live) = &mut self.source {
            live.warn(&self.name);
        }
    }

    /// Ends a live capture at this time, in nanoseconds since 1970. Has no effect on files.
    pub(crate) fn end_at(&mut self, time: u64) {
        if let Source::Live(live) = &mut self.source {
            live.end_at(time);
        }
    }

    /// Writes the buffered frames of a live capture to its file.
    pub(crate) fn flush(&mut self) {
        if let Source::Live(live) = &mut self.source {
            live.flush();
        }
    }

    /// Reads the next frame.
    pub(crate) fn next(&mut self) -> Next<'_> {
        let next = match &mut self.source {
            Source::Live(live) => live.next(),
            Source::File(capture) => {
                if capture.frames().is_multiple_of(STEP) && !self.progress.is_hidden() {
                    self.progress.set_position(capture.position());
                }
                capture.next_frame().map_or(Next::End, Next::Frame)
            }
            Source::Files(parts) => parts.next_frame().map_or(Next::End, Next::Frame),
        };
        if let Next::Frame(frame) = &next
            && !self.readable
        {
            self.readable = reads_link_type(frame.link_type);
            self.strange = Some(frame.link_type);
        }
        next
    }

    /// Decodes all frames, and passes all units and findings to `sink`.
    pub(crate) fn dissect(self, dissector: Dissector, sink: &mut dyn Sink) -> anyhow::Result<()> {
        self.dissect_until(dissector, sink, || false)
    }

    /// Decodes the frames until `is_done` returns true, and passes units and findings to `sink`.
    pub(crate) fn dissect_until(
        mut self,
        mut dissector: Dissector,
        sink: &mut dyn Sink,
        is_done: impl Fn() -> bool,
    ) -> anyhow::Result<()> {
        while !is_done() {
            match self.next() {
                Next::Frame(frame) => dissector.frame(&frame, sink),
                Next::Idle => self.idle(),
                Next::End => {
                    dissector.finish(sink);
                    let name = self.name.clone();
                    self.ignore_partial_frames(&mut dissector);
                    self.close()?;
                    remark(&name, &dissector);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Closes the input, and reports damage of the capture. If weft could read at least one frame,
    /// the report is a note on standard error. Otherwise it is an error.
    pub(crate) fn close(self) -> anyhow::Result<()> {
        self.progress.finish_and_clear();
        if let Some(link_type) = self.strange.filter(|_| !self.readable) {
            reject!(
                "{}: cannot read any frame: {} is not supported; docs/captures.md lists the supported link types",
                self.name,
                SkipReason::LinkType(link_type)
            );
        }
        let capture = match self.source {
            Source::File(capture) => capture,
            // `MergedCaptures` has already closed each file and reported its damage.
            Source::Files(_) => return Ok(()),
            Source::Live(live) => return live.close(&self.name),
        };
        match capture.note() {
            Some(note) if capture.frames() == 0 => reject!("{}: {note}", self.name),
            _ => note_end(&self.name, &capture),
        }
        Ok(())
    }
}

/// At the end of a capture file, reports its damage, or that it has no frames.
fn note_end(name: &str, capture: &Capture) {
    match capture.note() {
        Some(text) => note(&format!("{name}: {text}")),
        None if capture.frames() == 0 => note(&format!("{name}: the file ends after its header, without any frame")),
        None => {}
    }
}

/// Returns the name of a path for messages.
fn name_of(path: &Path) -> String {
    if path == Path::new("-") { STANDARD_INPUT.to_owned() } else { shown(path) }
}

/// Opens the capture at `path`.
fn open_capture(path: &Path) -> Result<Capture, BadInput> {
    Capture::open(path).map_err(|error| unreadable(&name_of(path), &error))
}

/// Makes the error for a capture that cannot be read at all.
fn unreadable(name: &str, error: &OpenError) -> BadInput {
    let why = match error {
        OpenError::Io(error) => match error.kind() {
            std::io::ErrorKind::NotFound => "there is no such file".to_owned(),
            std::io::ErrorKind::PermissionDenied => "cannot be read: permission denied".to_owned(),
            _ => error.to_string(),
        },
        OpenError::UnknownFormat(first) if begins_as_pcap(first) => {
            "ends inside the pcap header, which has 24 bytes".to_owned()
        }
        other => other.to_string(),
    };
    BadInput(format!("{name}: {why}"))
}

/// Returns whether these first bytes, in hexadecimal, start a pcap header.
fn begins_as_pcap(first: &str) -> bool {
    ["a1 b2 c3 d4", "d4 c3 b2 a1", "a1 b2 3c 4d", "4d 3c b2 a1"].iter().any(|magic| first.starts_with(magic))
}
