//! The files of a case: `cases/<case>/<parameters>/evidence.pcapng` and `transcript.json`, on pass too.
//!
//! The packets are made from what the tester's end of each connection sent and received: octets, order and times are what
//! they were, while segment boundaries, acknowledgements and headers are made up. The capture says so itself. Where the run captures
//! on an interface, they are the frames that were there.

mod comments;
mod frames;
mod monitor;
mod pcapng;
mod wire;

use std::fs;
use std::io;
use std::path::Path;

use weft_peer::driver::TapeEvent;

use crate::model::{CaseResult, Evidence, EvidenceFile, EvidenceKind, EvidenceSource as Source, RunInfo};

pub(crate) use frames::made;
pub use frames::{Frame, Framer};
pub(crate) use monitor::watch;
pub(crate) use wire::Wire;

/// Link type of the frames, as <https://www.tcpdump.org/linktypes.html> numbers it.
const LINKTYPE_ETHERNET: u16 = 1;
/// Name of the packets' file.
const PCAPNG: &str = "evidence.pcapng";
/// Name of the result's file.
const TRANSCRIPT: &str = "transcript.json";

/// The frames of a case.
#[derive(Debug)]
pub(crate) struct Frames {
    pub(crate) list: Vec<Frame>,
    /// For each event of the tape the frame that shows it, where one does.
    anchors: Vec<Option<usize>>,
    /// Where they come from.
    pub(crate) source: Source,
}

/// Where the files of a case will be, relative to the run's folder ([`crate::folder::of_run`]).
pub(crate) fn place(key: &crate::model::CaseKey, source: Source, without_wire: Option<String>) -> Evidence {
    let folder = format!("cases/{}", key.path());
    let file = |kind, name: &str| EvidenceFile { kind, path: format!("{folder}/{name}") };
    let files = vec![file(EvidenceKind::Pcapng, PCAPNG), file(EvidenceKind::Transcript, TRANSCRIPT)];
    Evidence { folder, files, source, without_wire }
}

/// Writes the files of a finished case below the run's folder `out`.
pub(crate) fn write(
    out: &Path,
    run: &RunInfo,
    result: &CaseResult,
    tape: &[TapeEvent],
    frames: &Frames,
    began_unix_ns: u64,
) -> io::Result<()> {
    let folder = out.join(&result.evidence.folder);
    fs::create_dir_all(&folder)?;
    let mut comments = vec![Vec::new(); frames.list.len()];
    for (anchor, of_event) in frames.anchors.iter().zip(comments::of_events(result, tape)) {
        if let Some(comments) = anchor.and_then(|frame| comments.get_mut(frame)) {
            comments.extend(of_event);
        }
    }
    let section = comments::of_section(run, result);
    let capture = io::BufWriter::new(fs::File::create(folder.join(PCAPNG))?);
    pcapng::write(capture, &section, frames, &comments, began_unix_ns)?;
    let mut transcript = serde_json::to_vec_pretty(result)?;
    transcript.push(b'\n');
    fs::write(folder.join(TRANSCRIPT), transcript)
}
