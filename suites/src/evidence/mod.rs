//! The files of a case: `cases/<case>/<parameters>/evidence.pcapng` and `transcript.json`. A case
//! that passed also has these files.
//!
//! The packets are made from the traffic log. This log contains the bytes that the tester sent and
//! received on each connection. The bytes, their order and their times are real. Segment
//! boundaries, acknowledgements and headers are synthetic, and the capture has a note about this.
//! If the run captures on an interface, captured frames replace the synthetic frames.
//!
//! The size of the evidence is limited. If the traffic log is full, it drops the middle of each
//! connection. The capture then has a gap in the sequence numbers, as if the capture had lost
//! frames. A comment at the gap and [`Evidence::dropped`] have the number of the missing bytes and
//! their CRC32c. The monitor has read the missing bytes before they were dropped.

mod comments;
mod frames;
mod monitor;
mod pcapng;
mod sequence;
mod step_frame;
mod wire;

use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::Range;
use std::path::{Path, PathBuf};

use weft_peer::driver::{Direction as Side, EventContent, TrafficEvent};

use crate::model::{
    CaseResult, Direction, DroppedTraffic, Evidence, EvidenceFile, EvidenceKind, EvidenceSource as Source, RunInfo,
};

pub(crate) use frames::synthesize_frames;
pub use frames::{Frame, Framer};
pub(crate) use monitor::{OverflowMonitor, watch};
pub(crate) use sequence::sequence_numbers;
pub(crate) use step_frame::frame_number;
pub(crate) use wire::Wire;

/// The folder of all cases.
pub(crate) const CASES: &str = "cases";
/// Name of the file with the packets.
const PCAPNG: &str = "evidence.pcapng";
/// Name of the file with the result.
const TRANSCRIPT: &str = "transcript.json";

/// The frames of a case.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) list: Vec<Frame>,
    /// For each event of the traffic log, the index of the first frame that shows it, if any.
    anchors: Vec<Option<usize>>,
    /// For each event of the traffic log with bytes, the index of the frame that has the last byte,
    /// if any. Other events have the index in `anchors`.
    ends: Vec<Option<usize>>,
    /// Source of the frames.
    pub(crate) source: Source,
}

/// Returns the paths of the files of a case, relative to the run's folder
/// ([`crate::folder::of_run`]), and what the capture lacks.
pub(crate) fn place(
    key: &crate::model::CaseKey,
    source: Source,
    without_wire: Option<String>,
    traffic: &[TrafficEvent],
) -> Evidence {
    let folder = format!("{CASES}/{}", key.path());
    let file = |kind, name: &str| EvidenceFile { kind, path: format!("{folder}/{name}") };
    let files = vec![file(EvidenceKind::Pcapng, PCAPNG), file(EvidenceKind::Transcript, TRANSCRIPT)];
    let dropped = match source {
        Source::Endpoint => traffic.iter().filter_map(dropped).collect(),
        // The captured frames are complete.
        Source::Wire => Vec::new(),
    };
    Evidence { folder, files, source, without_wire, dropped }
}

/// Describes what the traffic log dropped, if the event is such a place.
fn dropped(event: &TrafficEvent) -> Option<DroppedTraffic> {
    let EventContent::Dropped(dropped) = &event.content else { return None };
    Some(DroppedTraffic {
        connection: if dropped.datagrams { 0 } else { event.connection + 1 },
        direction: if event.direction == Side::ToTarget { Direction::Sent } else { Direction::Received },
        events: dropped.events,
        octets: dropped.octets,
        crc32c: format!("{:08x}", dropped.crc),
        first_ns: event.at.as_nanos(),
        last_ns: dropped.until.as_nanos(),
    })
}

/// Files of a case that were written, but that a power failure may still destroy.
pub(crate) struct UnsyncedFiles {
    files: Vec<File>,
    /// The folders with new entries: the case's folder, each created folder above it, and the
    /// existing folder that contains the created folders.
    folders: Vec<PathBuf>,
}

impl UnsyncedFiles {
    /// Writes the files to the disk. This may take some milliseconds.
    pub(crate) fn sync(self) -> io::Result<()> {
        self.files.iter().try_for_each(File::sync_all)?;
        // The name of a new file or folder is stored in the folder above it.
        self.folders.iter().try_for_each(|folder| File::open(folder)?.sync_all())
    }
}

/// Writes the files of a finished case below the run's folder `out`. `left_out` is the place of the
/// steps that the transcript lacks.
pub(crate) fn write(
    out: &Path,
    run: &RunInfo,
    result: &CaseResult,
    left_out: &Range<usize>,
    traffic: &[TrafficEvent],
    frames: &Frames,
    began_unix_ns: u64,
) -> io::Result<UnsyncedFiles> {
    let folder = out.join(&result.evidence.folder);
    let folders = folders_made(out, &folder);
    fs::create_dir_all(&folder)?;
    let mut comments = vec![Vec::new(); frames.list.len()];
    for (anchor, of_event) in frames.anchors.iter().zip(comments::of_events(result, left_out, traffic)) {
        if let Some(comments) = anchor.and_then(|frame| comments.get_mut(frame)) {
            comments.extend(of_event);
        }
    }
    let section = comments::of_section(run, result);
    let mut capture = Vec::new();
    pcapng::write(&mut capture, &section, frames, &comments, began_unix_ns)?;
    let mut transcript = serde_json::to_vec_pretty(result)?;
    transcript.push(b'\n');
    let put = |name: &str, octets: &[u8]| {
        let mut file = File::create(folder.join(name))?;
        file.write_all(octets)?;
        io::Result::Ok(file)
    };
    let files = vec![put(PCAPNG, &capture)?, put(TRANSCRIPT, &transcript)?];
    Ok(UnsyncedFiles { files, folders })
}

/// Returns the folders whose entries change when `folder`, below `out`, is created.
fn folders_made(out: &Path, folder: &Path) -> Vec<PathBuf> {
    let mut folders = vec![folder.to_owned()];
    let above = folder.ancestors().skip(1).take_while(|above| above.starts_with(out));
    let mut below_exists = folder.exists();
    for above in above {
        if below_exists {
            break;
        }
        folders.push(above.to_owned());
        below_exists = above.exists();
    }
    folders
}

/// Returns the transcripts of all cases below the run's folder `out`.
pub(crate) fn transcripts(out: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    let mut folders = vec![out.join(CASES)];
    while let Some(folder) = folders.pop() {
        let Ok(entries) = fs::read_dir(&folder) else { continue };
        for path in entries.filter_map(|entry| Some(entry.ok()?.path())) {
            if path.is_dir() {
                folders.push(path);
            } else if path.ends_with(TRANSCRIPT) {
                files.push(path);
            }
        }
    }
    files.sort_unstable();
    files
}
