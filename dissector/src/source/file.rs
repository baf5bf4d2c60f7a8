//! [`Capture`]: reads the frames of a capture file of any supported format.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;

use super::buffer::{Buffer, LONGEST_RECORD};
use super::comments::Comments;
use super::compressed;
use super::erf::Erf;
use super::format::{Format, Next};
use super::frame::Frame;
use super::names::Names;
use super::netmon::{self, NetMon};
use super::pcap::{self, Pcap};
use super::pcapng::PcapNg;
use super::snoop::{self, Snoop};
use super::time_resolution::TimeResolution;
use crate::frame_number::FrameNumber;

/// Number of bytes at the start of a file that are read to recognise a format without a magic
/// number.
const HEAD: usize = 4096;

/// The reason why a capture cannot be opened.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The operating system reports an error.
    #[error("{0}")]
    Io(#[from] io::Error),
    /// The path is a folder.
    #[error("is a directory; pass the path of a capture file")]
    Directory,
    /// The file is empty.
    #[error("is empty; a capture file has at least a header")]
    Empty,
    /// The first octets do not match any supported format.
    #[error(
        "is not a capture that weft reads (first bytes: {0}); weft reads pcap, pcapng, snoop, netmon and ERF, \
         plain or compressed with gzip, zstd, xz, bzip2 or lz4"
    )]
    UnknownFormat(String),
    /// The pcapng file has an unsupported major version. In such a version, blocks possibly have a
    /// different layout.
    #[error("is a pcapng file of version {0}.{1}; weft reads version 1, so convert the file, for example with editcap")]
    PcapngVersion(u16, u16),
}

/// An open capture. Its memory depends on the longest record, not on the length of the file.
pub struct Capture {
    buffer: Buffer,
    format: Box<dyn Format>,
    frames: u64,
    comments: Comments,
    names: Names,
    resolution: TimeResolution,
    /// The number of decimals in `resolution` for the latest frame.
    decimals: Option<u8>,
    used: usize,
    note: Option<String>,
    /// Whether reading stopped before the end of the capture.
    is_damaged: bool,
    /// The last frame, if the file ends within its record.
    partial: Option<FrameNumber>,
    /// If the capture does not describe the interface of some frames: the first of these frames,
    /// and how many such frames there are.
    unreadable: Option<(FrameNumber, u64)>,
    /// The latest capture time so far.
    latest: u64,
    /// The first frame whose time is much earlier than the latest time so far, and the difference
    /// of the two times in nanoseconds.
    backwards: Option<(FrameNumber, u64)>,
}

/// Accepted time difference of frames that are out of order, in nanoseconds. For example, a NIC
/// with several queues can reorder frames by some microseconds.
const OUT_OF_ORDER: u64 = 10_000_000;

impl Capture {
    /// Opens the file at `path`; `-` is standard input.
    ///
    /// # Errors
    /// See [`OpenError`]. If the file is damaged after its header, this is not an error (see
    /// [`Capture::note`]).
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        if path == Path::new("-") {
            return Self::from_reader(Box::new(io::stdin()));
        }
        let file = File::open(path)?;
        if file.metadata()?.is_dir() {
            return Err(OpenError::Directory);
        }
        Self::from_reader(Box::new(file))
    }

    /// Reads a capture from any reader.
    ///
    /// # Errors
    /// As [`Capture::open`].
    pub fn from_reader(reader: Box<dyn Read + Send>) -> Result<Self, OpenError> {
        let mut buffer = Buffer::new(reader);
        while buffer.octets().len() < 4 && buffer.fill()? {}
        match compressed::recognise(buffer.octets()) {
            None => Self::from_buffer(buffer),
            Some(compression) => {
                let mut buffer = Buffer::new(compression.decompress(Box::new(BufferReader(buffer)))?);
                buffer.fill()?;
                Self::from_buffer(buffer)
            }
        }
    }

    fn from_buffer(mut buffer: Buffer) -> Result<Self, OpenError> {
        while buffer.octets().len() < pcap::HEADER_LEN && buffer.fill()? {}
        if buffer.octets().is_empty() {
            return Err(OpenError::Empty);
        }
        let (format, header_len): (Box<dyn Format>, usize) = if buffer.octets().starts_with(&[0x0a, 0x0d, 0x0d, 0x0a]) {
            PcapNg::check_version(buffer.octets()).map_err(|(major, minor)| OpenError::PcapngVersion(major, minor))?;
            (Box::new(PcapNg::default()), 0)
        } else if let Some(format) = Pcap::recognise(buffer.octets()) {
            (Box::new(format), pcap::HEADER_LEN)
        } else {
            // It is possible that a live source has no further octets yet. So wait for more octets
            // only if the file possibly has the format Network Monitor or ERF. To recognise these
            // formats, weft needs more octets.
            let head = if NetMon::may_begin(buffer.octets()) || Erf::may_begin(buffer.octets()) { HEAD } else { 0 };
            while buffer.octets().len() < head && buffer.fill()? {}
            other_format(buffer.octets())?
        };
        buffer.consume(header_len);
        Ok(Capture {
            buffer,
            format,
            frames: 0,
            comments: Comments::default(),
            names: Names::default(),
            resolution: TimeResolution::default(),
            decimals: None,
            used: 0,
            note: None,
            is_damaged: false,
            partial: None,
            unreadable: None,
            latest: 0,
            backwards: None,
        })
    }

    /// The next frame. Returns `None` at the end of the file, or if the file is damaged and reading
    /// cannot continue. In the second case, [`Capture::note`] describes the damage.
    pub fn next_frame(&mut self) -> Option<Frame<'_>> {
        self.buffer.consume(std::mem::take(&mut self.used));
        if self.note.is_some() {
            return None;
        }
        loop {
            match self.format.next(self.buffer.octets()) {
                Next::Frame { start, len, used, time, interface, link_type, wire_len } => {
                    self.frames += 1;
                    let number = FrameNumber::from(self.frames);
                    self.used = used;
                    if time.saturating_add(OUT_OF_ORDER) < self.latest {
                        self.backwards.get_or_insert((number, self.latest - time));
                    }
                    self.latest = self.latest.max(time);
                    self.note_resolution(number, interface);
                    let record = self.buffer.octets().get(..used).unwrap_or_default();
                    self.comments.note(number, self.format.comments(record));
                    let octets = &self.buffer.octets()[start..start + len];
                    return Some(Frame { number, time, interface, link_type, octets, wire_len });
                }
                Next::Unreadable { used } => {
                    self.frames += 1;
                    self.unreadable.get_or_insert((self.frames.into(), 0)).1 += 1;
                    self.buffer.consume(used);
                }
                Next::Other { used } => {
                    for (address, name) in self.format.take_names() {
                        self.names.add(address, &name);
                    }
                    self.comments.note_capture(self.format.take_capture_comments());
                    self.buffer.consume(used);
                }
                Next::Incomplete => match self.buffer.fill() {
                    Ok(true) => {}
                    Ok(false) => return self.last_frame(),
                    Err(e) => {
                        self.stop(format!(
                            "reading stopped at byte {} of the capture, after frame {}: {e}",
                            self.buffer.position(),
                            self.frames
                        ));
                        return None;
                    }
                },
                Next::Damaged(what) => {
                    self.stop(format!(
                        "the capture is damaged at byte {}, after frame {}: {what}",
                        self.buffer.position(),
                        self.frames
                    ));
                    return None;
                }
            }
        }
    }

    /// A description of a problem of the file. If reading stopped before the end of the file, the
    /// text has the position and the reason. Otherwise the text has the frames that are unreadable
    /// or out of order. Returns `None` if there was no problem so far.
    #[must_use]
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// Returns whether reading stopped before the end of the capture, because the file is truncated,
    /// damaged or unreadable.
    #[must_use]
    pub fn is_damaged(&self) -> bool {
        self.is_damaged
    }

    /// The last frame, if the file ends within the record of this frame. Octets of such a frame are
    /// missing, although no snap length cut the frame.
    #[must_use]
    pub fn partial_frame(&self) -> Option<FrameNumber> {
        self.partial
    }

    /// The comments of the latest frames.
    #[must_use]
    pub fn comments(&self) -> Comments {
        self.comments.clone()
    }

    /// The names of addresses in the records so far. Only pcapng captures have names.
    #[must_use]
    pub fn names(&self) -> Names {
        self.names.clone()
    }

    /// Adds the names of the capture to `names`.
    #[must_use]
    pub fn with_names(self, names: Names) -> Self {
        Capture { names, ..self }
    }

    /// The resolution of the times of the frames so far.
    #[must_use]
    pub fn time_resolution(&self) -> TimeResolution {
        self.resolution.clone()
    }

    /// Number of frames delivered so far.
    #[must_use]
    pub fn frames(&self) -> u64 {
        self.frames
    }

    /// Number of consumed octets of the (decompressed) capture.
    #[must_use]
    pub fn position(&self) -> u64 {
        self.buffer.position()
    }

    fn note_of_unreadable(&self) -> Option<String> {
        self.unreadable.map(|(first, count)| match count {
            1 => format!("weft omits frame {first}, because the capture does not describe the interface of this frame"),
            _ => format!(
                "weft omits {count} frames, because the capture does not describe their interfaces; the first of them \
                 is frame {first}"
            ),
        })
    }

    fn note_of_order(&self) -> Option<String> {
        let (frame, by) = self.backwards?;
        Some(format!(
            "time runs backwards by {:.3} s at frame {frame}; if files were joined in the wrong order, weft can \
             report captured bytes as missing; sort the capture with 'reordercap FILE SORTED'",
            by as f64 / 1e9
        ))
    }

    /// Ends reading. If the file ends within a record, returns the part of the frame that is in the
    /// file.
    fn last_frame(&mut self) -> Option<Frame<'_>> {
        let left = self.buffer.octets().len();
        if left == 0 {
            self.note = match (self.note_of_unreadable(), self.note_of_order()) {
                (Some(unreadable), Some(order)) => Some(format!("{unreadable}; {order}")),
                (unreadable, order) => unreadable.or(order),
            };
            return None;
        }
        if left >= LONGEST_RECORD {
            self.stop(format!(
                "the capture is damaged at byte {}, after frame {}: the length of a record exceeds {} MiB",
                self.buffer.position(),
                self.frames,
                LONGEST_RECORD >> 20
            ));
            return None;
        }
        self.stop(format!(
            "the capture is truncated: the record at byte {}, after frame {}, is incomplete (the file has only {left} \
             bytes of the record)",
            self.buffer.position(),
            self.frames
        ));
        let cut = self.format.cut(self.buffer.octets());
        let Next::Frame { start, len, time, interface, link_type, wire_len, .. } = cut else { return None };
        self.frames += 1;
        self.used = left;
        let number = FrameNumber::from(self.frames);
        self.partial = Some(number);
        self.note_resolution(number, interface);
        let octets = &self.buffer.octets()[start..start + len];
        Some(Frame { number, time, interface, link_type, octets, wire_len })
    }

    /// Records the resolution of the time of frame `number`.
    fn note_resolution(&mut self, number: FrameNumber, interface: u32) {
        let decimals = self.format.decimals(interface);
        if self.decimals.replace(decimals) != Some(decimals) {
            self.resolution.note(number, decimals);
        }
    }

    /// Stops reading before the end of the capture, for the reason `note`.
    fn stop(&mut self, note: String) {
        self.note = Some(note);
        self.is_damaged = true;
    }
}

/// Recognises all formats except pcap and pcapng. Returns the format and the length of its file
/// header.
fn other_format(octets: &[u8]) -> Result<(Box<dyn Format>, usize), OpenError> {
    if let Some(format) = Snoop::recognise(octets) {
        return Ok((Box::new(format), snoop::HEADER_LEN));
    }
    if let Some(format) = NetMon::recognise(octets) {
        return Ok((Box::new(format), netmon::HEADER_LEN));
    }
    // ERF has no magic number. So check for ERF last.
    if let Some(format) = Erf::recognise(octets) {
        return Ok((Box::new(format), 0));
    }
    let first: Vec<String> = octets.iter().take(8).map(|o| format!("{o:02x}")).collect();
    Err(OpenError::UnknownFormat(first.join(" ")))
}

/// Reads the octets of a buffer as a stream: first the buffered octets, and then the rest of the
/// file.
struct BufferReader(Buffer);

impl Read for BufferReader {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.0.octets().is_empty() && !self.0.fill()? {
            return Ok(0);
        }
        let octets = self.0.octets();
        let count = octets.len().min(out.len());
        out[..count].copy_from_slice(&octets[..count]);
        self.0.consume(count);
        Ok(count)
    }
}
