//! A message that the tester sends.

use weft_core::wire::sdp::Mid;

use super::memory_share::MemoryShare;
use crate::model::Mark;
use crate::sdp::{Counters, Draft};

/// Bytes to send, with a name for the transcript.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Message {
    pub(crate) name: String,
    pub(crate) octets: Vec<u8>,
    pub(crate) marks: Vec<Mark>,
    /// Whether the bytes are FPDUs with markers. If the value is false and the target requests
    /// markers, the connection inserts markers.
    pub(crate) has_markers: bool,
    /// An SDP message. The connection that sends it fills in the missing counters.
    pub(crate) draft: Option<Box<Draft>>,
    /// The memory that the message uses while a script has it.
    pub(crate) share: MemoryShare,
}

impl Message {
    pub(crate) fn new(name: impl Into<String>, octets: Vec<u8>) -> Self {
        Message {
            name: name.into(),
            octets,
            marks: Vec::new(),
            has_markers: false,
            draft: None,
            share: MemoryShare::default(),
        }
    }

    /// Creates an SDP message. The connection that sends the message makes its bytes.
    pub(crate) fn of_draft(draft: Draft) -> Self {
        let mut message = Message::new(Mid(draft.mid).name(), Vec::new());
        message.draft = Some(Box::new(draft));
        message
    }

    /// Creates an SDP message with the default values of its fields.
    pub(crate) fn of_mid(mid: Mid) -> Self {
        Message::of_draft(Draft::new(mid))
    }

    /// Creates a Data message with this payload.
    pub(crate) fn data(payload: &[u8]) -> Self {
        Message::of_draft(Draft { payload: payload.to_vec(), ..Draft::new(Mid::DATA) })
    }

    /// Returns bytes `begin..end` of the message as its piece `number`, with their marks.
    pub(crate) fn piece(&self, number: usize, begin: usize, end: usize) -> Self {
        let end = end.min(self.octets.len());
        let begin = begin.min(end);
        let (from, to) = (begin as u64, end as u64);
        let marks = self.marks.iter().filter(|mark| mark.start < to && mark.end > from);
        Message {
            name: format!("{}, piece {number} ({} bytes)", self.name, end - begin),
            octets: self.octets[begin..end].to_vec(),
            marks: marks
                .map(|mark| Mark { start: mark.start.max(from) - from, end: mark.end.min(to) - from, ..mark.clone() })
                .collect(),
            has_markers: self.has_markers,
            draft: None,
            share: MemoryShare::default(),
        }
    }

    /// Returns the message with its bytes. `counters` are the counters of the connection that sends
    /// the message.
    pub(crate) fn filled(&self, counters: Counters) -> Self {
        match &self.draft {
            Some(draft) => Message { octets: draft.octets(counters), draft: None, ..self.clone() },
            None => self.clone(),
        }
    }
}
