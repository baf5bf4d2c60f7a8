//! The octets and fields of frames, dissected again when they are looked at.
//!
//! A thread of its own reads the capture from the start up to the frame where all is known of the wanted one (a unit can become
//! certain frames later), and keeps the neighbours too, since the next question is mostly about them. A newer request ends
//! the work on an older one.

use std::ops::{Range, RangeInclusive};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use weft_core::RequirementId;
use weft_core::requirement::Severity;
use weft_dissector::output::text;
use weft_dissector::tree::{self, Node};
use weft_dissector::unit::{Located, Unit};
use weft_dissector::{Dissector, Finding, Sink};

use super::recording::Recording;

/// Frames on each side of the wanted one that are kept too.
pub(crate) const NEIGHBOURS: u64 = 250;
/// Octets of one frame that are shown.
pub(crate) const MAX_OCTETS: usize = 1 << 16;
/// Fields of neighbours that are kept; bounds the memory of a window of very large frames.
const MAX_FIELDS: usize = 50_000;
/// Octets of neighbours that are kept.
const MAX_NEIGHBOUR_OCTETS: usize = 4 << 20;
/// A newer request is looked for this often, in frames.
const LOOK: u64 = 256;

/// Which frames are wanted.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Request {
    /// The one that is looked at.
    pub(crate) frame: u64,
    /// The last one that must be read to know all about it and its neighbours; past the end: all of them, and the end.
    pub(crate) until: u64,
}

impl Request {
    fn window(&self) -> RangeInclusive<u64> {
        self.frame.saturating_sub(NEIGHBOURS)..=self.frame.saturating_add(NEIGHBOURS)
    }
}

/// The answer.
#[derive(Debug, Default)]
pub(crate) struct Answer {
    /// The frames that were kept, by number.
    pub(crate) frames: Vec<Detail>,
    /// Why the file could not be read, if so.
    pub(crate) error: Option<String>,
}

/// One frame in full.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Detail {
    /// Its number.
    pub(crate) number: u64,
    /// Its octets, at most [`MAX_OCTETS`].
    pub(crate) octets: Vec<u8>,
    /// The units that end in it.
    pub(crate) units: Vec<UnitDetail>,
    /// The findings that it shows.
    pub(crate) findings: Vec<FindingDetail>,
}

/// One unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UnitDetail {
    pub(crate) summary: String,
    pub(crate) ends: String,
    pub(crate) fields: Vec<FieldDetail>,
}

/// A header or field of a unit, with its place in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FieldDetail {
    /// 0 for headers.
    pub(crate) depth: usize,
    pub(crate) name: &'static str,
    pub(crate) label: &'static str,
    pub(crate) value: String,
    pub(crate) section: &'static str,
    pub(crate) is_header: bool,
    pub(crate) place: Place,
}

/// A finding.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct FindingDetail {
    pub(crate) requirement: RequirementId,
    pub(crate) severity: Severity,
    pub(crate) expected: String,
    pub(crate) found: String,
    pub(crate) place: Place,
}

/// Where octets stand.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(crate) struct Place {
    /// Ranges in the frame that is shown.
    pub(crate) here: Vec<Range<usize>>,
    /// Other frames that hold some of them.
    pub(crate) elsewhere: Vec<u64>,
}

impl Place {
    fn of(located: &[Located], frame: u64) -> Self {
        let mut place = Place::default();
        for at in located {
            match at.offset {
                Some(offset) if at.frame == frame => {
                    let start = offset as usize;
                    place.here.push(start..start.saturating_add(usize::try_from(at.len).unwrap_or(usize::MAX)));
                }
                _ if at.frame == frame || place.elsewhere.contains(&at.frame) => {}
                _ => place.elsewhere.push(at.frame),
            }
        }
        place
    }

    /// How many octets of the frame.
    pub(crate) fn len(&self) -> usize {
        self.here.iter().map(ExactSizeIterator::len).sum()
    }

    /// Is the octet at `offset` one of them?
    pub(crate) fn contains(&self, offset: usize) -> bool {
        self.here.iter().any(|range| range.contains(&offset))
    }
}

/// The thread, as the screen sees it.
pub(crate) struct Details {
    requests: Sender<Request>,
    pub(crate) answers: Receiver<Answer>,
}

impl Details {
    /// Starts the thread.
    pub(crate) fn start(recording: &Recording) -> Self {
        let (requests, wanted) = channel();
        let (answer, answers) = channel();
        let recording = recording.clone();
        thread::spawn(move || work(&recording, &wanted, &answer));
        Details { requests, answers }
    }

    /// Asks for frames; an earlier question that is not answered yet is forgotten.
    pub(crate) fn ask(&self, request: Request) {
        // The thread outlives every question.
        let _ = self.requests.send(request);
    }
}

fn work(recording: &Recording, wanted: &Receiver<Request>, answer: &Sender<Answer>) {
    let mut next = wanted.recv().ok();
    while let Some(mut request) = next.take() {
        while let Ok(newer) = wanted.try_recv() {
            request = newer;
        }
        let newer = || wanted.try_recv().ok();
        match read(recording, request, newer) {
            Read::Done(found) => {
                if answer.send(found).is_err() {
                    return;
                }
                next = wanted.recv().ok();
            }
            Read::Newer(request) => next = Some(request),
        }
    }
}

enum Read {
    Done(Answer),
    Newer(Request),
}

fn read(recording: &Recording, request: Request, mut newer: impl FnMut() -> Option<Request>) -> Read {
    let mut dissector = Dissector::default();
    let mut keep = Keep { request, frames: Vec::new(), fields: 0, octets: 0 };
    let mut instead = None;
    let mut past = false;
    let ended = recording.read(
        false,
        || false,
        |frame, _| {
            if frame.number % LOOK == 0 {
                instead = newer();
            }
            past = frame.number > request.until;
            if past || instead.is_some() {
                return false;
            }
            keep.frame(frame.number, frame.octets);
            dissector.frame(frame, &mut keep);
            true
        },
    );
    if let Some(instead) = instead {
        return Read::Newer(instead);
    }
    let error = ended.as_ref().err().map(ToString::to_string);
    if !past && ended.is_ok_and(|ended| ended.is_whole) {
        dissector.finish(&mut keep);
    }
    Read::Done(Answer { frames: keep.frames, error })
}

/// Keeps what belongs to the window.
struct Keep {
    request: Request,
    frames: Vec<Detail>,
    fields: usize,
    octets: usize,
}

impl Keep {
    fn frame(&mut self, number: u64, octets: &[u8]) {
        if !self.request.window().contains(&number) {
            return;
        }
        let octets = &octets[..octets.len().min(MAX_OCTETS)];
        if number != self.request.frame {
            self.octets += octets.len();
            if self.octets > MAX_NEIGHBOUR_OCTETS {
                return;
            }
        }
        self.frames.push(Detail { number, octets: octets.to_vec(), ..Detail::default() });
    }

    fn find(&mut self, number: u64) -> Option<usize> {
        self.frames.binary_search_by_key(&number, |detail| detail.number).ok()
    }
}

impl Sink for Keep {
    fn unit(&mut self, unit: &Unit<'_>) {
        let Some(at) = self.find(unit.frame) else { return };
        if unit.frame != self.request.frame && self.fields > MAX_FIELDS {
            // Half a frame would be wrong; it is asked for again when somebody goes there.
            self.frames.remove(at);
            return;
        }
        let mut fields = Vec::new();
        flatten(&tree::tree(unit), 0, unit, &mut fields);
        self.fields += fields.len();
        let ends = format!("{} → {}", unit.ends.src_text, unit.ends.dst_text);
        self.frames[at].units.push(UnitDetail { summary: text::summary(unit), ends, fields });
    }

    fn finding(&mut self, finding: &Finding) {
        let Some(at) = self.find(finding.frame) else { return };
        self.frames[at].findings.push(FindingDetail {
            requirement: finding.requirement,
            severity: finding.severity,
            expected: finding.expected.clone(),
            found: finding.found.clone(),
            place: Place::of(&finding.located, finding.frame),
        });
    }
}

fn flatten(nodes: &[Node], depth: usize, unit: &Unit<'_>, out: &mut Vec<FieldDetail>) {
    for node in nodes {
        out.push(FieldDetail {
            depth,
            name: node.name,
            label: node.label,
            value: node.value.clone(),
            section: node.section,
            is_header: !node.children.is_empty(),
            place: Place::of(&unit.locate(node.range.clone()), unit.frame),
        });
        flatten(&node.children, depth + 1, unit, out);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::capture_path;

    fn details(name: &str, frame: u64, until: u64) -> Answer {
        match read(&Recording::file(&capture_path(name)), Request { frame, until }, || None) {
            Read::Done(answer) => answer,
            Read::Newer(_) => panic!("there is no newer request"),
        }
    }

    #[test]
    fn a_request_frame_with_its_key_where_it_stands() {
        let answer = details("rping-crc.pcap", 4, 60);
        let detail = answer.frames.iter().find(|detail| !detail.units.is_empty()).unwrap();
        let unit = &detail.units[0];
        assert!(unit.summary.starts_with("MPA Request"), "{}", unit.summary);
        let key = unit.fields.iter().find(|field| field.value.contains("MPA ID Req Frame")).unwrap();
        let [at] = key.place.here.as_slice() else { panic!("{:?}", key.place) };
        assert_eq!(&detail.octets[at.clone()], b"MPA ID Req Frame");
    }

    #[test]
    fn only_the_window_is_kept() {
        let answer = details("host-matrix.pcap", 300, u64::MAX);
        let numbers: Vec<u64> = answer.frames.iter().map(|detail| detail.number).collect();
        assert_eq!(numbers, (300 - NEIGHBOURS..=300 + NEIGHBOURS).collect::<Vec<_>>());
    }

    #[test]
    fn a_newer_request_ends_the_work() {
        let newer = Request { frame: 1, until: 1 };
        let recording = Recording::file(&capture_path("host-matrix.pcap"));
        let read = read(&recording, Request { frame: 600, until: 627 }, || Some(newer));
        assert!(matches!(read, Read::Newer(request) if request == newer));
    }

    #[test]
    fn a_file_that_is_gone_is_told() {
        assert!(details("no-such-file.pcap", 1, 1).error.is_some());
    }
}
