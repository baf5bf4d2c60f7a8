//! [`Details`] collects the details of a few frames: their octets, their fields with the location
//! of each field, and their findings.

use std::ops::Range;

use weft_core::RequirementId;
use weft_core::requirement::Severity;

use super::pass::Collector;
use crate::frame_number::FrameNumber;
use crate::output::text;
use crate::source::Frame;
use crate::tree::{self, Node};
use crate::unit::{Location, Unit};
use crate::{Finding, Sink};

/// Maximum number of stored octets of a frame.
pub const MAX_OCTETS: usize = 1 << 16;
/// Maximum number of stored units of a frame.
pub const MAX_UNITS: usize = 256;
/// Maximum number of stored fields of all frames together. A neighbour is a frame near the
/// requested frame. If the limit is exceeded and a further unit of a neighbour arrives, this
/// neighbour is dropped. This limit and [`MAX_NEIGHBOUR_OCTETS`] keep the memory small even for
/// very large frames.
const MAX_FIELDS: usize = 50_000;
const MAX_NEIGHBOUR_OCTETS: usize = 4 << 20;

/// All details of one frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Detail {
    /// Number of the frame.
    pub number: FrameNumber,
    /// Capture time in nanoseconds since 1970.
    pub time: u64,
    /// The captured octets, at most the first [`MAX_OCTETS`].
    pub octets: Vec<u8>,
    /// Number of octets in the capture.
    pub captured: usize,
    /// Number of octets on the wire.
    pub wire_len: u32,
    /// The units that end in the frame, at most [`MAX_UNITS`].
    pub units: Vec<UnitDetail>,
    /// Number of further units that are not stored.
    pub omitted: u64,
    /// The findings that the frame shows.
    pub findings: Vec<FindingDetail>,
}

/// One unit.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnitDetail {
    /// A short summary.
    pub summary: String,
    /// Sender and receiver.
    pub ends: [String; 2],
    /// Headers and fields, in the order of their octets.
    pub fields: Vec<FieldDetail>,
}

/// A header or field of a unit, with its depth in the tree.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldDetail {
    /// Depth in the tree; 0 for headers.
    pub depth: usize,
    /// Name in filters.
    pub name: &'static str,
    /// Name in the specification.
    pub label: &'static str,
    /// Value for display; empty for headers.
    pub value: String,
    /// Section of the specification.
    pub section: &'static str,
    /// Whether this is a header. A header contains fields.
    pub is_header: bool,
    /// Location of the octets.
    pub location: FrameLocation,
}

/// A finding that the frame shows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FindingDetail {
    /// The violated requirement.
    pub requirement: RequirementId,
    /// The severity of the finding.
    pub severity: Severity,
    /// Description of the required behaviour.
    pub expected: String,
    /// Description of the observed behaviour.
    pub found: String,
    /// Location of the octets that show the violation.
    pub location: FrameLocation,
}

/// The location of octets, relative to a frame.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct FrameLocation {
    /// Ranges of the octets in this frame.
    pub in_frame: Vec<Range<usize>>,
    /// Numbers of other frames that contain some of the octets.
    pub other_frames: Vec<FrameNumber>,
}

impl Detail {
    /// Approximate memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let fields: usize = self.units.iter().map(|unit| unit.fields.len()).sum();
        size_of::<Detail>() + self.octets.len() + fields * 256 + self.findings.len() * 512
    }
}

impl FrameLocation {
    /// The location of the octets `located`, relative to frame `frame`.
    #[must_use]
    pub fn of(located: &[Location], frame: FrameNumber) -> Self {
        let mut location = FrameLocation::default();
        for at in located {
            match at.offset {
                Some(offset) if at.frame == frame => {
                    let start = offset as usize;
                    location.in_frame.push(start..start.saturating_add(usize::try_from(at.len).unwrap_or(usize::MAX)));
                }
                _ if at.frame == frame || location.other_frames.contains(&at.frame) => {}
                _ => location.other_frames.push(at.frame),
            }
        }
        location
    }

    /// Number of octets in this frame.
    #[must_use]
    pub fn len(&self) -> usize {
        self.in_frame.iter().map(ExactSizeIterator::len).sum()
    }

    /// Returns whether none of the octets are in this frame.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.in_frame.is_empty()
    }

    /// Returns whether the location includes the octet at `offset` of this frame.
    #[must_use]
    pub fn contains(&self, offset: usize) -> bool {
        self.in_frame.iter().any(|range| range.contains(&offset))
    }
}

/// Collects all details of one frame and of its neighbours. Users usually open a neighbour next.
#[derive(Debug)]
pub struct Details {
    focus: FrameNumber,
    neighbours: u64,
    /// Number of the last frame to read.
    until: FrameNumber,
    frames: Vec<Detail>,
    fields: usize,
    octets: usize,
}

impl Details {
    /// Collects the details of frame `focus`, and of `neighbours` frames before and after it.
    #[must_use]
    pub fn new(focus: FrameNumber, neighbours: u64) -> Self {
        Details { focus, neighbours, until: FrameNumber::MAX, frames: Vec::new(), fields: 0, octets: 0 }
    }

    /// Limits a [`Pass`](super::Pass) to the frames up to `until`. The details of a frame are
    /// complete after frame [`Row::known_at`](super::index::Row::known_at).
    #[must_use]
    pub fn until(self, until: FrameNumber) -> Self {
        Details { until, ..self }
    }

    /// Registers a frame. Call this method before the frame is dissected.
    pub fn frame(&mut self, frame: &Frame<'_>) {
        if frame.number.distance(self.focus) > self.neighbours {
            return;
        }
        let octets = &frame.octets[..frame.octets.len().min(MAX_OCTETS)];
        if frame.number != self.focus {
            self.octets += octets.len();
            if self.octets > MAX_NEIGHBOUR_OCTETS {
                return;
            }
        }
        self.frames.push(Detail {
            number: frame.number,
            time: frame.time,
            octets: octets.to_vec(),
            captured: frame.octets.len(),
            wire_len: frame.wire_len,
            ..Detail::default()
        });
    }

    /// The details, ordered by frame number.
    #[must_use]
    pub fn into_frames(self) -> Vec<Detail> {
        self.frames
    }

    fn find(&mut self, number: FrameNumber) -> Option<usize> {
        self.frames.binary_search_by_key(&number, |detail| detail.number).ok()
    }
}

impl Collector for Details {
    fn begin(&mut self, frame: &Frame<'_>) -> bool {
        let is_wanted = frame.number <= self.until;
        if is_wanted {
            self.frame(frame);
        }
        is_wanted
    }
}

impl Sink for Details {
    fn unit(&mut self, unit: &Unit<'_>) {
        let Some(at) = self.find(unit.frame) else { return };
        if unit.frame != self.focus && self.fields > MAX_FIELDS {
            // Drop the neighbour, because incomplete details would be wrong. Details are collected
            // again when the user opens the frame.
            self.frames.remove(at);
            return;
        }
        let detail = &mut self.frames[at];
        if detail.units.len() == MAX_UNITS {
            detail.omitted += 1;
            return;
        }
        let mut fields = Vec::new();
        flatten(&tree::tree(unit), 0, unit, &mut fields);
        self.fields += fields.len();
        let ends = [unit.ends.src_text.clone(), unit.ends.dst_text.clone()];
        detail.units.push(UnitDetail { summary: text::summary(unit), ends, fields });
    }

    fn finding(&mut self, finding: &Finding) {
        let Some(at) = self.find(finding.frame) else { return };
        self.frames[at].findings.push(FindingDetail {
            requirement: finding.requirement,
            severity: finding.severity,
            expected: finding.expected.clone(),
            found: finding.found.clone(),
            location: FrameLocation::of(&finding.locations, finding.frame),
        });
    }
}

fn flatten(nodes: &[Node], depth: usize, unit: &Unit<'_>, out: &mut Vec<FieldDetail>) {
    for node in nodes {
        let Node { name, label, section, .. } = *node;
        let location = FrameLocation::of(&unit.locate(node.range.clone()), unit.frame);
        let (value, is_header) = (node.value.clone(), !node.children.is_empty());
        out.push(FieldDetail { depth, name, label, value, section, is_header, location });
        flatten(&node.children, depth + 1, unit, out);
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::Dissector;
    use crate::source::Capture;

    fn details(name: &str, focus: u64, neighbours: u64) -> Vec<Detail> {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
        let mut capture = Capture::open(&folder.join(name)).unwrap();
        let mut dissector = Dissector::default();
        let mut details = Details::new(focus.into(), neighbours);
        while let Some(frame) = capture.next_frame() {
            details.frame(&frame);
            dissector.frame(&frame, &mut details);
        }
        dissector.finish(&mut details);
        details.into_frames()
    }

    #[test]
    fn a_request_frame_has_the_location_of_its_key() {
        let frames = details("rping-crc.pcap", 4, 60);
        let detail = frames.iter().find(|detail| !detail.units.is_empty()).unwrap();
        let unit = &detail.units[0];
        assert!(unit.summary.starts_with("MPA Request"), "{}", unit.summary);
        let key = unit.fields.iter().find(|field| field.value.contains("MPA ID Req Frame")).unwrap();
        let [at] = key.location.in_frame.as_slice() else { panic!("{:?}", key.location) };
        assert_eq!(&detail.octets[at.clone()], b"MPA ID Req Frame");
        assert!(key.location.contains(at.start) && !key.location.contains(at.end) && key.location.len() == 16);
    }

    #[test]
    fn only_the_window_is_kept() {
        let numbers = |frames: Vec<Detail>| frames.iter().map(|detail| u64::from(detail.number)).collect::<Vec<_>>();
        assert_eq!(numbers(details("host-matrix.pcap", 300, 60)), (240..=360).collect::<Vec<_>>());
        assert_eq!(numbers(details("host-matrix.pcap", 3, 0)), [3]);
        assert_eq!(numbers(details("host-matrix.pcap", 10_000, 1)), [0; 0]);
    }

    #[test]
    fn findings_are_at_their_frame_with_octets() {
        let frames = details("violations-6-kinds-crc.pcap", 100, 1000);
        let found: Vec<_> = frames.iter().flat_map(|detail| &detail.findings).collect();
        assert!(found.iter().any(|finding| finding.severity == Severity::Error && !finding.location.is_empty()));
    }
}
