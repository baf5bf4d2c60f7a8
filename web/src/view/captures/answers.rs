//! The answers on the pages of a capture: what happened on each connection, and why it ended.

use weft_dissector::StreamId;
use weft_dissector::browse::Survey;
use weft_dissector::diagnosis::Diagnosis;

use crate::view::url;

/// The maximum number of answers on the page with the packets.
const MAX_LISTED: usize = 10;

/// The answer about one connection.
pub(super) struct Answer<'a> {
    pub(super) stream: StreamId,
    pub(super) ends: &'a [String; 2],
    /// Address of the page of the connection.
    pub(super) href: String,
    /// The answer in one clause, without a period.
    pub(super) headline: &'a str,
    /// The other sentences. Empty if a list shows the answer.
    pub(super) details: String,
    pub(super) class: &'static str,
}

impl<'a> Answer<'a> {
    /// The answer with all its sentences.
    pub(super) fn complete(base: &str, diagnosis: &'a Diagnosis) -> Self {
        Answer { details: diagnosis.details(), ..Answer::brief(base, diagnosis) }
    }

    fn brief(base: &str, diagnosis: &'a Diagnosis) -> Self {
        Answer {
            stream: diagnosis.stream,
            ends: &diagnosis.ends,
            href: url::connection(base, diagnosis.stream),
            headline: &diagnosis.headline,
            details: String::new(),
            class: class(diagnosis),
        }
    }
}

/// The class of an answer in the style sheet.
pub(super) fn class(diagnosis: &Diagnosis) -> &'static str {
    match (diagnosis.is_healthy(), diagnosis.is_failure()) {
        (true, _) => "",
        (false, true) => "sev-error",
        (false, false) => "sev-warning",
    }
}

/// The answers for the top of a page.
#[derive(Default)]
pub(super) struct Answers<'a> {
    /// Connections that failed come first. A single answer has all its sentences.
    pub(super) listed: Vec<Answer<'a>>,
    /// Number of further answers.
    pub(super) more: usize,
    /// Number of connections without an answer, because the capture has too many connections.
    pub(super) unexplained: u64,
}

/// Returns the answers for the top of a page.
pub(super) fn answers<'a>(base: &str, survey: &'a Survey) -> Answers<'a> {
    let unexplained = survey.diagnoses.unstored();
    let mut all: Vec<&Diagnosis> = survey.diagnoses.connections().collect();
    if let [one] = all[..] {
        return Answers { listed: vec![Answer::complete(base, one)], more: 0, unexplained };
    }
    all.sort_by_key(|diagnosis| (!diagnosis.is_failure(), diagnosis.is_healthy()));
    let listed = all.iter().take(MAX_LISTED).map(|diagnosis| Answer::brief(base, diagnosis)).collect();
    Answers { listed, more: all.len().saturating_sub(MAX_LISTED), unexplained }
}
