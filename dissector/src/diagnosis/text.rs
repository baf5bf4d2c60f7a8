//! Formats a diagnosis as a paragraph.

use std::fmt;

use weft_core::requirement::Severity;

use crate::calendar::CalendarTime;
use crate::format::counted;

use super::ending::EndKind;
use super::names::shorten;
use super::problems::Problem;
use super::report::{Diagnosis, TcpShare};
use super::verdict::{Cause, Link};

/// Maximum number of characters in a line.
const COLUMNS: usize = 100;
/// Maximum number of problems that the paragraph lists.
const MAX_PROBLEMS: usize = 3;
const INDENT: &str = "  ";
/// Earlier times are not times of real captures: made captures often begin in 1970.
const FIRST_YEAR: u64 = 2000;

impl fmt::Display for Diagnosis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (sentence, details) = (self.sentence(), self.details());
        if self.is_healthy() {
            return write_wrapped(f, &format!("{sentence} {details}"));
        }
        write_wrapped(f, &sentence)?;
        f.write_str("\n")?;
        write_wrapped(f, &format!("{INDENT}{details}"))
    }
}

impl Diagnosis {
    /// The first sentence of the paragraph: the connection and the answer.
    #[must_use]
    pub fn sentence(&self) -> String {
        let [first, other] = &self.ends;
        format!("connection {}, {first} to {other}: {}.", self.stream, self.shortened(&self.headline))
    }

    /// Removes the ports from the addresses of the endpoints, unless the problem concerns a port.
    fn shortened(&self, text: &str) -> String {
        match self.cause {
            Cause::NoAnswer | Cause::Refused | Cause::PortDenied => text.to_owned(),
            _ => shorten(text, &self.ends),
        }
    }

    /// The other sentences of the paragraph, without line breaks.
    #[must_use]
    pub fn details(&self) -> String {
        let sentences = if self.is_healthy() {
            vec![self.end(), self.carried(), self.missing()]
        } else {
            vec![
                Some(format!("At fault: {}.", self.at_fault())),
                self.advice.as_ref().map(|advice| format!("{advice}.")),
                self.chain(),
                self.unknown.as_ref().map(|unknown| format!("Not in this capture: {unknown}.")),
                self.startup_text.clone(),
                self.carried(),
                self.time(),
                self.end(),
                self.tcp(),
                self.others(),
                self.interruption(),
            ]
        };
        self.shortened(&sentences.into_iter().flatten().collect::<Vec<String>>().join(" "))
    }

    /// The events, for example "A sends an FPDU (frame 7); therefore B sends a RST (frame 8)."
    fn chain(&self) -> Option<String> {
        let mut text = String::new();
        for link in &self.chain {
            if !text.is_empty() {
                text.push_str(if link.is_consequence { "; therefore " } else { "; then " });
            }
            text.push_str(&event(link));
        }
        if let Some(first) = text.get_mut(..1) {
            first.make_ascii_uppercase();
        }
        (!text.is_empty()).then(|| format!("{text}."))
    }

    fn carried(&self) -> Option<String> {
        let parts = [0_usize, 1].map(|direction| {
            let phrase = self.carried[direction].phrase()?;
            Some(format!("{} sent {phrase}", self.ends[direction]))
        });
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        let ulp = self.ulp_title.map_or_else(String::new, |ulp| format!(" The messages are from {ulp}."));
        (!parts.is_empty()).then(|| format!("{}.{ulp}", parts.join("; ")))
    }

    /// When the connection began, if the capture has real times.
    fn time(&self) -> Option<String> {
        let began = CalendarTime::of(self.began_ns);
        let seconds = self.duration_ns as f64 / 1e9;
        let is_real = began.year >= FIRST_YEAR;
        is_real.then(|| {
            format!("The first frame is of {} UTC, the last one {seconds:.3} s later.", began.date_and_time(3))
        })
    }

    /// How the connection ended, unless the chain has this event.
    fn end(&self) -> Option<String> {
        let ending = &self.ending;
        let by = ending.direction.map(|direction| self.ends[usize::from(direction.min(1))].as_str())?;
        let frame = ending.frame?;
        if self.chain.iter().any(|link| link.frame == Some(frame)) {
            return None;
        }
        let after = ending.after_ns.map_or_else(String::new, |ns| format!(" after {:.3} s", ns as f64 / 1e9));
        let text = match ending.kind {
            EndKind::Closed => format!("Both endpoints closed, {by} first"),
            EndKind::HalfClosed if self.tcp.iter().any(|share| share.segments == 0) => format!("{by} closed"),
            EndKind::HalfClosed => format!("Only {by} closed"),
            EndKind::Reset => format!("{by} reset the connection"),
            EndKind::Terminated => format!("{by} sent a Terminate"),
            EndKind::Rejected => format!("{by} rejected the connection"),
            EndKind::Refused | EndKind::Unanswered | EndKind::Silent | EndKind::Open => return None,
        };
        Some(format!("{text} (frame {frame}{after})."))
    }

    /// The bytes that the capture lacks.
    fn missing(&self) -> Option<String> {
        let missing = self.tcp.iter().map(|share| share.missing_octets).sum::<u64>();
        (missing > 0).then(|| format!("The capture lacks {}.", counted(missing, "byte")))
    }

    /// TCP's share, if it is not trivial.
    fn tcp(&self) -> Option<String> {
        let parts = [0_usize, 1].map(|direction| {
            let what = tcp_share(&self.tcp[direction], self.tcp[1 - direction].zero_windows > 0);
            (!what.is_empty()).then(|| format!("{}: {}", self.ends[direction], what.join(", ")))
        });
        let parts: Vec<String> = parts.into_iter().flatten().collect();
        (!parts.is_empty()).then(|| format!("TCP: {}.", parts.join("; ")))
    }

    /// The problems that did not cause the end. If the chain has a cause, warnings are only counted:
    /// their rules are recommendations, and an endpoint that ignores one is not "wrong".
    fn others(&self) -> Option<String> {
        let is_other = |problem: &&Problem| !problem.is_cause && problem.severity > Severity::Note;
        let (mut errors, mut warnings): (Vec<&Problem>, Vec<&Problem>) =
            self.problems.iter().filter(is_other).partition(|problem| problem.severity == Severity::Error);
        if self.chain.is_empty() {
            errors.append(&mut warnings);
        }
        errors.sort_by_key(|problem| (std::cmp::Reverse(problem.severity), problem.first()));
        let count = warnings.len() as u64;
        let warnings = (count > 0).then(|| format!("`weft lint` also lists {}.", counted(count, "warning")));
        let parts: Vec<String> = [self.listed(&errors), warnings].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join(" "))
    }

    /// Lists the first of these problems, and counts the others.
    fn listed(&self, others: &[&Problem]) -> Option<String> {
        if others.is_empty() {
            return None;
        }
        let listed: Vec<String> = others.iter().take(MAX_PROBLEMS).map(|problem| self.problem(problem)).collect();
        let more = others.len().saturating_sub(MAX_PROBLEMS) as u64;
        let more = if more > 0 { format!("; and {}", counted(more, "further problem")) } else { String::new() };
        let head = if self.chain.is_empty() { "Problems" } else { "Also wrong, but not the cause" };
        Some(format!("{head}: {}{more}.", listed.join("; ")))
    }

    fn problem(&self, problem: &Problem) -> String {
        let Problem { requirement, expected, found, .. } = problem;
        let end = &self.ends[usize::from(problem.direction)];
        let more = match problem.requirements.len() as u64 {
            0 | 1 => String::new(),
            count => format!(" and {}", counted(count - 1, "other rule")),
        };
        let frames = match problem.count {
            1 => format!("frame {}", problem.first()),
            count => format!("{}, first: frame {}", counted(count, "frame"), problem.first()),
        };
        format!("{end} violates {requirement}{more} ({frames}): expected {expected}, found {found}")
    }

    fn interruption(&self) -> Option<String> {
        self.is_interrupted.then(|| "The connection continued after weft had dropped its state.".to_owned())
    }
}

fn event(link: &Link) -> String {
    match link.frame {
        Some(frame) => format!("{} (frame {frame})", link.text),
        None => link.text.clone(),
    }
}

fn tcp_share(share: &TcpShare, is_probing: bool) -> Vec<String> {
    let mut parts = Vec::new();
    if share.retransmissions > 0 {
        let first = share.first_retransmission.map_or_else(String::new, |frame| format!(" (first: frame {frame})"));
        parts.push(format!("{}{first}", counted(share.retransmissions, "retransmission")));
    }
    if share.out_of_order > 0 {
        parts.push(format!("{} out of order", counted(share.out_of_order, "segment")));
    }
    if share.zero_windows > 0 {
        let first = share.first_zero_window.map_or_else(String::new, |frame| format!(", first: frame {frame}"));
        let seconds = share.zero_window_ns as f64 / 1e9;
        parts.push(format!("window closed {} ({seconds:.3} s{first})", counted(share.zero_windows, "time")));
    }
    if share.keep_alives > 0 {
        let name = if is_probing { "keep-alive or window probe" } else { "keep-alive" };
        parts.push(counted(share.keep_alives, name));
    }
    if share.missing_octets > 0 {
        parts.push(format!("{} not captured", counted(share.missing_octets, "byte")));
    }
    if share.segments == 0 {
        parts.push("no segment captured".to_owned());
    }
    parts
}

/// Writes `text` in lines of at most [`COLUMNS`] characters, without a line break at the end. Lines
/// after the first one are indented.
fn write_wrapped(f: &mut fmt::Formatter<'_>, text: &str) -> fmt::Result {
    let indent = text.len() - text.trim_start().len();
    let mut column = 0;
    for word in text.split_whitespace() {
        let len = word.chars().count();
        if column == 0 {
            f.write_str(&" ".repeat(indent))?;
            column = indent;
        } else if column + 1 + len > COLUMNS {
            f.write_str("\n")?;
            f.write_str(INDENT)?;
            column = INDENT.len();
        } else {
            f.write_str(" ")?;
            column += 1;
        }
        f.write_str(word)?;
        column += len;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    struct Wrapped(&'static str);

    impl fmt::Display for Wrapped {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            write_wrapped(f, self.0)
        }
    }

    #[test]
    fn lines_have_at_most_100_columns() {
        let text = Wrapped(
            "  0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 0123456789 \
                            0123456789 0123456789",
        );
        let text = text.to_string();
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!((lines.len(), lines[0].len(), lines[1]), (2, 100, "  0123456789"));
    }
}
