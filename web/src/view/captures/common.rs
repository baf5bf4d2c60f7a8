//! Common parts of pages about captures.

use std::fmt::Write as _;
use std::net::SocketAddr;

use weft_core::requirement::Severity;
use weft_dissector::FrameNumber;
use weft_dissector::browse::Survey;
use weft_dissector::output::text::counted;

use crate::view::url;

/// The maximum number of lines of a list on one page.
pub(crate) const LINES: usize = 100;

/// The head of each page of a capture.
pub(crate) struct Head {
    pub(super) page: &'static str,
    pub(super) name: String,
    /// The address of the capture. The addresses of the capture's pages begin with this address.
    pub(super) base: String,
    pub(super) size: String,
    pub(super) packets: usize,
    /// Number of the last packet.
    pub(super) last: FrameNumber,
    /// Number of problems: groups of findings with one root.
    pub(super) problems: u64,
    pub(super) counts: Vec<Count>,
    pub(super) note: Option<String>,
    pub(super) remarks: Vec<String>,
    /// The case that recorded the capture: key and address.
    pub(super) case: Option<(String, String)>,
    /// The links to the pages of the capture: name of the page, address, text.
    pub(super) tabs: Vec<(&'static str, String, &'static str)>,
}

impl Head {
    pub(crate) fn new(
        page: &'static str,
        (id, name, len): (&str, &str, u64),
        case: Option<(String, String)>,
        survey: &Survey,
    ) -> Self {
        let base = url::capture(id);
        let pages = [
            ("packets", "", "Packets"),
            ("findings", "/findings", "Findings"),
            ("connections", "/connections", "Connections"),
            ("operations", "/operations", "Operations"),
            ("commands", "/io", "Commands"),
            ("statistics", "/statistics", "Statistics"),
        ];
        let rows = survey.index.rows();
        let is_growing = case.is_none();
        let has_commands = survey.commands.totals().commands > 0;
        Head {
            page,
            name: name.to_owned(),
            size: octets(len),
            packets: rows.len(),
            last: rows.last().map_or(FrameNumber::NONE, |row| row.number),
            problems: survey.problems.groups().count(),
            counts: counts(survey.index.counts()),
            note: survey.note.clone(),
            remarks: survey.remarks.clone(),
            case,
            tabs: pages
                .into_iter()
                .filter(|(name, ..)| *name != "commands" || has_commands || page == "commands")
                // The capture of a case does not grow.
                .chain(is_growing.then_some(("live", "/live", "Live")))
                .map(|(page, below, words)| (page, format!("{base}{below}"), words))
                .collect(),
            base,
        }
    }
}

/// The number of findings of one severity, as text.
pub(crate) struct Count {
    pub(super) class: &'static str,
    pub(super) words: String,
}

/// Takes the numbers of notes, warnings and errors. Returns the numbers that are not zero, errors
/// first.
pub(crate) fn counts(counts: [u64; 3]) -> Vec<Count> {
    let named = [Severity::Note, Severity::Warning, Severity::Error].into_iter().zip(counts).rev();
    let some = named.filter(|(_, count)| *count > 0);
    some.map(|(severity, count)| Count { class: class(severity), words: counted(count, &severity.to_string()) })
        .collect()
}

pub(super) fn class(severity: Severity) -> &'static str {
    match severity {
        Severity::Error => "sev-error",
        Severity::Warning => "sev-warning",
        Severity::Note => "sev-note",
    }
}

/// Formats a number of bytes for people, with decimal units.
pub(crate) fn octets(len: u64) -> String {
    match len {
        0..1000 => counted(len, "byte"),
        1000..1_000_000 => format!("{}.{} kB", len / 1000, len / 100 % 10),
        1_000_000..1_000_000_000 => format!("{}.{} MB", len / 1_000_000, len / 100_000 % 10),
        _ => format!("{}.{} GB", len / 1_000_000_000, len / 100_000_000 % 10),
    }
}

/// Formats nanoseconds as seconds with six decimals.
pub(super) fn seconds(ns: u64) -> String {
    format!("{}.{:06}", ns / 1_000_000_000, ns / 1000 % 1_000_000)
}

pub(super) fn pair(ends: Option<(SocketAddr, SocketAddr)>) -> (String, String) {
    ends.map_or_else(Default::default, |(from, to)| (from.to_string(), to.to_string()))
}

/// Links to other parts of a list: value of `rel`, address, text.
pub(in crate::view) type Links = Vec<(&'static str, String, &'static str)>;

/// Returns the part of a list of `total` lines that begins at index `from`, and the links to the
/// other parts of the list.
pub(in crate::view) fn part(
    from: usize,
    total: usize,
    href: impl Fn(usize) -> String,
) -> (std::ops::Range<usize>, Links) {
    let from = if from < total { from } else { total.saturating_sub(1) / LINES * LINES };
    let end = total.min(from.saturating_add(LINES));
    let mut links = Vec::new();
    if from > 0 {
        links.push(("", href(0), "First"));
        links.push(("prev", href(from.saturating_sub(LINES)), "Previous"));
    }
    if end < total {
        links.push(("next", href(end), "Next"));
        links.push(("", href((total - 1) / LINES * LINES), "Last"));
    }
    (from..end, links)
}

/// Formats byte ranges for the page's script, for example `54-70 71-72`. The second number is the
/// offset after the last byte.
pub(super) fn ranges(location: &weft_dissector::browse::detail::FrameLocation) -> String {
    location.in_frame.iter().filter(|range| !range.is_empty()).fold(String::new(), |mut text, range| {
        let gap = if text.is_empty() { "" } else { " " };
        let _ = write!(text, "{gap}{}-{}", range.start, range.end);
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_of_a_list_link_to_other_parts() {
        let words = |from, total| {
            let (range, links) = part(from, total, |from| from.to_string());
            (range, links.into_iter().map(|(_, href, words)| format!("{words} {href}")).collect::<Vec<_>>().join(", "))
        };
        assert_eq!(words(0, 0), (0..0, String::new()));
        assert_eq!(words(0, 100), (0..100, String::new()));
        assert_eq!(words(0, 250), (0..100, "Next 100, Last 200".into()));
        assert_eq!(words(150, 250), (150..250, "First 0, Previous 50".into()));
        assert_eq!(words(usize::MAX, 250), (200..250, "First 0, Previous 100".into()));
    }

    #[test]
    fn formats_numbers() {
        let texts = [1, 999, 1000, 1_999_999, 2_500_000_000].map(octets);
        assert_eq!(texts, ["1 byte", "999 bytes", "1.0 kB", "1.9 MB", "2.5 GB"]);
        assert_eq!((seconds(1_234_567_890), seconds(999)), ("1.234567".into(), "0.000000".into()));
        let words: Vec<String> = counts([2, 0, 1]).into_iter().map(|count| count.words).collect();
        assert_eq!(words, ["1 error", "2 notes"]);
    }
}
