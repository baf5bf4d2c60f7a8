//! The answers of `weft why`: what happened on each connection of a capture, and why it ended.
//!
//! `weft why` prints all of them. `weft lint` and `weft stats` print them briefly before their own
//! output ([`Answers::write`]). These commands store fewer diagnoses, so that they need little
//! memory for captures with many connections.

use std::io::{self, Write};

use weft_core::text::visible_in_line;
use weft_dissector::diagnosis::{Diagnoses, Diagnosis, ExchangeReport};
use weft_dissector::exchange::State;
use weft_dissector::output::text::counted;
use weft_dissector::source::Comments;
use weft_dissector::{StreamId, StreamSet};

/// If at most this many connections have an answer, each of them gets its paragraph. Otherwise,
/// each of them gets its first sentence.
const MAX_PARAGRAPHS: usize = 3;
/// Maximum number of connections, and of port mapper exchanges, that get a sentence.
const MAX_SENTENCES: usize = 10;
/// Maximum number of lines of the comments about a capture that are written.
const MAX_COMMENT_LINES: usize = 12;
/// Limits of [`brief_diagnoses`]: the number of stored diagnoses, and of connections that are
/// followed at the same time.
const BRIEF: (usize, usize) = (4096, 2048);

/// Makes a sink for the answers at the beginning of another output.
pub(super) fn brief_diagnoses() -> Diagnoses {
    let (most, most_open) = BRIEF;
    Diagnoses::with_limits(most, most_open)
}

/// Writes the comments about the capture, and an empty line after them. The evidence of a case has
/// its verdict there.
pub(super) fn write_comments(comments: &Comments, out: &mut impl Write) -> io::Result<()> {
    let comments = comments.of_capture();
    let mut lines = comments.iter().flat_map(|comment| comment.lines()).take(MAX_COMMENT_LINES).peekable();
    if lines.peek().is_none() {
        return Ok(());
    }
    writeln!(out, "Comment of the capture:")?;
    lines.try_for_each(|line| writeln!(out, "  {}", visible_in_line(line)))?;
    writeln!(out)
}

/// The connections that have answers. By default, all connections.
#[derive(Default)]
pub(super) struct SelectedConnections(Option<StreamSet>);

impl SelectedConnections {
    /// Selects only the connections that [`SelectedConnections::add`] names.
    pub(super) fn one_by_one() -> Self {
        SelectedConnections(Some(StreamSet::default()))
    }

    /// Selects a connection, if connections are selected one by one.
    pub(super) fn add(&mut self, stream: Option<StreamId>) {
        if let (Some(selected), Some(stream)) = (&mut self.0, stream) {
            selected.insert(stream);
        }
    }

    fn contains(&self, stream: StreamId) -> bool {
        self.0.as_ref().is_none_or(|selected| selected.contains(stream))
    }
}

/// The answers about one capture.
pub(super) struct Answers {
    diagnoses: Diagnoses,
    selected: SelectedConnections,
}

impl Answers {
    /// Diagnoses the connections that have not ended. Call this after the last frame.
    pub(super) fn of(mut diagnoses: Diagnoses, selected: SelectedConnections) -> Self {
        diagnoses.finish();
        Answers { diagnoses, selected }
    }

    /// The diagnoses of the selected connections.
    pub(super) fn connections(&self) -> impl Iterator<Item = &Diagnosis> {
        self.diagnoses.connections().filter(move |diagnosis| self.selected.contains(diagnosis.stream))
    }

    /// The port mapper exchanges that led to no connection. Empty if only some connections are
    /// selected.
    pub(super) fn exchanges(&self) -> &[ExchangeReport] {
        if self.selected.0.is_some() { &[] } else { self.diagnoses.exchanges() }
    }

    /// All diagnoses.
    pub(super) fn diagnoses(&self) -> &Diagnoses {
        &self.diagnoses
    }

    /// The number of connections without an explanation, as text. `None` if there are none.
    pub(super) fn unexplained(&self) -> Option<String> {
        let (unstored, unanswered) = (self.diagnoses.unstored(), self.diagnoses.unanswered());
        let text = (unstored > 0).then(|| format!("{} not explained", counted(unstored, "further connection")))?;
        Some(match unanswered {
            0 => text,
            unanswered => {
                format!("{text}, including {} with only SYNs without an answer", counted(unanswered, "connection"))
            }
        })
    }

    /// Writes the answers about the connections that pass `is_wanted`, and an empty line after
    /// them. If there are many, writes only the first sentence of some of them. Connections with a
    /// problem come first. Of the port mapper exchanges, only the denied ones are included.
    pub(super) fn write(&self, is_wanted: impl Fn(&Diagnosis) -> bool, out: &mut impl Write) -> io::Result<()> {
        let mut found: Vec<&Diagnosis> = self.connections().filter(|diagnosis| is_wanted(diagnosis)).collect();
        let is_denied = |exchange: &&ExchangeReport| exchange.state == State::Denied.name();
        let exchanges: Vec<&ExchangeReport> = self.exchanges().iter().filter(is_denied).collect();
        if found.is_empty() && exchanges.is_empty() && self.diagnoses.unstored() == 0 {
            return Ok(());
        }
        if found.len() <= MAX_PARAGRAPHS {
            for diagnosis in &found {
                writeln!(out, "{diagnosis}")?;
            }
        } else {
            found.sort_by_key(|diagnosis| (diagnosis.is_healthy(), !diagnosis.is_iwarp));
            for diagnosis in found.iter().take(MAX_SENTENCES) {
                writeln!(out, "{}", diagnosis.sentence())?;
            }
        }
        for exchange in exchanges.iter().take(MAX_SENTENCES) {
            writeln!(out, "{exchange}")?;
        }
        let more = found.len().saturating_sub(MAX_SENTENCES) + exchanges.len().saturating_sub(MAX_SENTENCES);
        if more > 0 {
            writeln!(out, "and {}; `weft why` explains all of them", counted(more as u64, "more answer"))?;
        }
        if let Some(unexplained) = self.unexplained() {
            writeln!(out, "{unexplained}")?;
        }
        writeln!(out)
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use weft_dissector::Dissector;

    use super::*;
    use crate::input::Input;

    /// Passes the results about a capture to `diagnoses`.
    fn read(name: &str, mut diagnoses: Diagnoses) -> Diagnoses {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/siw").join(name);
        Input::open(&path).unwrap().dissect(Dissector::default(), &mut diagnoses).unwrap();
        diagnoses
    }

    fn answers(name: &str) -> Answers {
        Answers::of(read(name, brief_diagnoses()), SelectedConnections::default())
    }

    fn written(answers: &Answers, is_wanted: impl Fn(&Diagnosis) -> bool) -> String {
        let mut out = Vec::new();
        answers.write(is_wanted, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn one_connection_has_its_paragraph() {
        let answers = answers("rping-size-mismatch-terminate.pcap");
        let text = written(&answers, Diagnosis::is_failure);
        assert!(text.starts_with("connection 0, 10.1.0.2:") && text.ends_with(".\n\n"), "{text}");
        assert!(text.lines().count() > 4, "{text}");
    }

    /// captures/README.md: 18 connections, of which 16 have a wrong key.
    #[test]
    fn many_connections_have_sentences_and_a_count() {
        let answers = answers("wrong-key-16-octets.pcap");
        let text = written(&answers, |_| true);
        let lines: Vec<&str> = text.lines().collect();
        let (sentences, rest) = lines.split_at(MAX_SENTENCES);
        assert!(sentences.iter().all(|line| line.starts_with("connection ") && line.ends_with('.')), "{text}");
        assert_eq!(rest, ["and 8 more answers; `weft why` explains all of them", ""]);
        assert!(!sentences.iter().any(|line| line.starts_with("connection 0,")), "{text}");
    }

    #[test]
    fn connections_without_an_answer_are_counted() {
        let diagnoses = read("wrong-key-16-octets.pcap", Diagnoses::with_limits(0, usize::MAX));
        let answers = Answers::of(diagnoses, SelectedConnections::default());
        assert_eq!(written(&answers, |_| true), "18 further connections not explained\n\n");
    }

    /// captures/causes/README.md: the only connection has SYNs without an answer.
    #[test]
    fn unanswered_connections_are_counted_separately() {
        let diagnoses = read("../causes/syn-unanswered.pcap", Diagnoses::with_limits(0, usize::MAX));
        let answers = Answers::of(diagnoses, SelectedConnections::default());
        let text = "1 further connection not explained, including 1 connection with only SYNs without an answer";
        assert_eq!(answers.unexplained().as_deref(), Some(text));
    }

    #[test]
    fn only_selected_connections_have_answers() {
        let mut answers = answers("wrong-key-16-octets.pcap");
        answers.selected = SelectedConnections::one_by_one();
        assert_eq!(written(&answers, |_| true), "");
        answers.selected.add(Some(3.into()));
        answers.selected.add(None);
        let text = written(&answers, |_| true);
        assert!(text.starts_with("connection 3, ") && !text.contains("connection 4, "), "{text}");
    }
}
