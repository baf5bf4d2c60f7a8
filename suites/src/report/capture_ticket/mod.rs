//! The ticket of a capture: one page about connections with a problem, for the maker of an
//! endpoint.
//!
//! The page has the answer of the diagnosis, the relevant rows of the sequence diagram, the bytes
//! of the deciding frames, and the text of the violated requirements. The caller collects this
//! evidence, and writes the packets of the connections to a file next to the page.

mod html;
mod markdown;

use weft_core::{Requirement, RequirementId};
use weft_dissector::browse::detail::Detail;
use weft_dissector::diagnosis::Diagnosis;
use weft_dissector::output::ladder::Ladder;

use super::ReportError;
use crate::clock;
use crate::model::{Mark, MarkKind, Octets};

/// Number of bytes of a frame that are shown.
const SHOWN: usize = 256;
/// Maximum number of shown bytes of a frame whose wrong bytes come later.
const MAX_SHOWN: usize = 2048;
/// Maximum number of requirements of a connection whose text is shown.
const MAX_REQUIREMENTS: usize = 40;

/// The content of a ticket.
#[derive(Debug)]
pub struct CaptureTicket {
    /// Name of the capture.
    pub capture: String,
    /// The connections. The ticket of an empty list has no content.
    pub connections: Vec<ConnectionEvidence>,
    /// Number of further connections with a problem.
    pub further: usize,
    /// Name of the file with the packets of the connections. The file is in the folder of the page.
    pub packets: String,
    /// The content of this file, if an HTML page should contain it.
    pub included: Option<Vec<u8>>,
}

/// The evidence about one connection.
#[derive(Debug)]
pub struct ConnectionEvidence {
    /// What happened.
    pub diagnosis: Diagnosis,
    /// The relevant rows of the sequence diagram.
    pub ladder: Option<Ladder>,
    /// The deciding frames, in their order.
    pub frames: Vec<Detail>,
}

impl CaptureTicket {
    /// Returns the ticket as one HTML page without links to other files, except the file with the
    /// packets if the page does not contain it.
    ///
    /// # Errors
    /// The template of the page fails. No known ticket causes this error.
    pub fn html(&self) -> Result<String, ReportError> {
        html::html(self)
    }

    /// Returns the ticket as Markdown.
    #[must_use]
    pub fn markdown(&self) -> String {
        markdown::markdown(self)
    }

    /// The title: the answer about the first connection.
    fn title(&self) -> &str {
        self.connections.first().map_or("no connection", |connection| connection.diagnosis.headline.as_str())
    }

    /// A sentence about connections that the ticket does not have.
    fn omission(&self) -> Option<String> {
        match self.further {
            0 => None,
            1 => Some("The capture has 1 more connection with a problem.".to_owned()),
            more => Some(format!("The capture has {more} more connections with a problem.")),
        }
    }
}

impl ConnectionEvidence {
    /// Facts with their names.
    fn facts(&self) -> Vec<(&'static str, String)> {
        let Diagnosis { stream, ends: [first, other], frames, duration_ns, ulp, .. } = &self.diagnosis;
        let (begin, end) = frames;
        let seconds = *duration_ns as f64 / 1e9;
        let mut facts = vec![
            ("connection", format!("{stream}, {first} to {other}")),
            ("frames", format!("{begin} to {end}, {seconds:.6} s")),
            ("at fault", self.diagnosis.at_fault().to_owned()),
        ];
        facts.extend(ulp.map(|ulp| ("upper-layer protocol", ulp.to_owned())));
        if let Some(frame) = self.frames.first() {
            let time = clock::rfc3339(frame.time / 1_000_000);
            facts.push(("time", format!("{time} (frame {})", frame.number)));
        }
        facts
    }

    /// The violated requirements. Those that led to the end come first.
    fn requirements(&self) -> Vec<&'static Requirement> {
        let Diagnosis { chain, problems, .. } = &self.diagnosis;
        let of_chain = chain.iter().flat_map(|link| &link.requirements);
        let causes = problems.iter().filter(|problem| problem.is_cause);
        let others = problems.iter().filter(|problem| !problem.is_cause);
        let mut ids: Vec<RequirementId> = Vec::new();
        for id in of_chain.chain(causes.chain(others).flat_map(|problem| &problem.requirements)) {
            if !ids.contains(id) && ids.len() < MAX_REQUIREMENTS {
                ids.push(*id);
            }
        }
        ids.into_iter().map(RequirementId::row).collect()
    }
}

/// The bytes of a frame, with its fields and its wrong bytes as marks.
fn marked(detail: &Detail) -> Octets {
    let mut marks = Vec::new();
    let mut mark = |range: &std::ops::Range<usize>, label: String, kind| {
        marks.push(Mark { start: range.start as u64, end: range.end as u64, label, kind });
    };
    for field in detail.units.iter().flat_map(|unit| &unit.fields).filter(|field| !field.is_header) {
        let ranges = &field.location.in_frame;
        ranges.iter().for_each(|range| mark(range, format!("{}: {}", field.label, field.value), MarkKind::Field));
    }
    for finding in &detail.findings {
        let label = || format!("{}: expected {}, found {}", finding.requirement, finding.expected, finding.found);
        finding.location.in_frame.iter().for_each(|range| mark(range, label(), MarkKind::Wrong));
    }
    marks.sort_by_key(|mark: &Mark| mark.start);
    Octets { marks, ..Octets::new(&detail.octets) }
}

/// Number of bytes of a frame to show: at least the wrong bytes.
fn shown(octets: &Octets) -> usize {
    let wrong = octets.marks.iter().filter(|mark| mark.kind == MarkKind::Wrong).map(|mark| mark.end);
    let end = wrong.max().and_then(|end| usize::try_from(end).ok()).unwrap_or(0);
    end.next_multiple_of(super::hex::ROW).clamp(SHOWN, MAX_SHOWN)
}

/// What a frame contains: the summaries of its units.
fn contents(detail: &Detail) -> String {
    let units: Vec<&str> = detail.units.iter().map(|unit| unit.summary.as_str()).collect();
    if units.is_empty() { "TCP".to_owned() } else { units.join("; ") }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weft_dissector::Dissector;
    use weft_dissector::browse::{Details, Pass, read};
    use weft_dissector::diagnosis::Diagnoses;
    use weft_dissector::output::connection_ladder::{Subject, Timeline};
    use weft_dissector::source::Capture;

    use super::*;

    fn capture() -> Capture {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw");
        Capture::open(&folder.join("rping-size-mismatch-terminate.pcap")).unwrap()
    }

    /// The ticket of a capture with one connection. Frame 13 has a malformed Terminate.
    fn ticket(included: Option<Vec<u8>>) -> CaptureTicket {
        let mut diagnoses = Diagnoses::default();
        let (mut capture_of_all, mut dissector) = (capture(), Dissector::default());
        while let Some(frame) = capture_of_all.next_frame() {
            dissector.frame(&frame, &mut diagnoses);
        }
        dissector.finish(&mut diagnoses);
        diagnoses.finish();
        let mut details = Pass::new(Details::new(13.into(), 0));
        read(&mut capture(), 0, &mut details, |_, _| true);
        details.finish();
        let mut timeline = Pass::new(Timeline::new(Subject::Stream(0.into()), 100));
        read(&mut capture(), 0, &mut timeline, |_, _| true);
        let evidence = ConnectionEvidence {
            diagnosis: diagnoses.connections().next().unwrap().clone(),
            ladder: timeline.into_collector().ladder(),
            frames: details.into_collector().into_frames(),
        };
        let (capture, packets) = ("customer's <capture>.pcap".to_owned(), "a ticket.pcapng".to_owned());
        CaptureTicket { capture, connections: vec![evidence], further: 2, packets, included }
    }

    /// RFC 5040 section 4.8: the bytes 86 to 88 of the frame have a wrong layout.
    #[test]
    fn the_wrong_bytes_are_marked() {
        let ticket = ticket(None);
        let octets = marked(&ticket.connections[0].frames[0]);
        let wrong: Vec<&Mark> = octets.marks.iter().filter(|mark| mark.kind == MarkKind::Wrong).collect();
        assert!(wrong.iter().any(|mark| (mark.start, mark.end) == (86, 89)), "{wrong:?}");
        assert!(octets.marks.iter().any(|mark| mark.kind == MarkKind::Field), "{octets:?}");
        assert!(octets.marks.is_sorted_by_key(|mark| mark.start));
        assert_eq!(shown(&octets), SHOWN);
    }

    #[test]
    fn html_needs_no_other_file() {
        let page = ticket(Some(b"packets".to_vec())).html().unwrap();
        for part in ["<svg ", "class=\"wrong\"", "RDMAP-4.8-37", "RFC 5040 section 4.8", "2 more connections"] {
            assert!(page.contains(part), "{part}: {page}");
        }
        // "packets" in base64.
        assert!(page.contains("href=\"data:application/octet-stream;base64,cGFja2V0cw==\""), "{page}");
        assert!(page.contains("customer&#39;s &#60;capture&#62;.pcap") && !page.contains("<script"), "{page}");
        let linked = ticket(None).html().unwrap();
        assert!(linked.contains("href=\"a%20ticket.pcapng\"") && !linked.contains("base64"), "{linked}");
    }

    #[test]
    fn markdown_has_the_same_content() {
        let text = ticket(Some(Vec::new())).markdown();
        for part in
            ["# 10.1.0.1:7174", "RDMAP-4.8-37 (MUST", "Terminate", "bytes 86 to 88 are wrong", "`a ticket.pcapng`"]
        {
            assert!(text.contains(part), "{part}: {text}");
        }
        assert!(text.contains("customer's \\<capture\\>.pcap"), "{text}");
    }

    #[test]
    fn the_text_of_a_requirement_is_that_of_the_catalogue() {
        let ticket = ticket(None);
        let rows = ticket.connections[0].requirements();
        assert!(rows.len() > 4 && rows.iter().any(|row| row.id == "RDMAP-4.8-37"));
        let text = ticket.markdown();
        assert!(rows.iter().all(|row| text.contains(row.id)), "{text}");
    }
}
