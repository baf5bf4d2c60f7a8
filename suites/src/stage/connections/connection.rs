//! One connection of a case: the bytes that no expectation has used yet, the position in the
//! tester's stream, and the markers of both directions.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use weft_core::wire::mpa::Startup;
use weft_core::wire::mpa::startup::{HEADER_LEN, REPLY_KEY, REQUEST_KEY};
use weft_peer::Instant;
use weft_peer::driver::TesterConnection;

use super::markers::MarkedStream;
use super::segments::WithheldMessage;
use super::unsent::Unsent;
use crate::stage::Message;
use crate::stage::rdma::Progress;
use crate::stage::sdp::HELLO_LEN;

/// Number of sent messages that a script can retransmit.
const REMEMBERED: usize = 8;

/// A message that was sent, and what the tester needs to retransmit it.
pub(super) struct SentMessage {
    /// Length in bytes, with markers.
    pub(super) len: usize,
    /// The tester's stream before the message, if the stream has markers.
    before: Option<MarkedStream>,
}

/// One connection of the case.
pub(in crate::stage) struct Connection {
    pub(in crate::stage) end: TesterConnection,
    /// Bytes that TCP has not accepted yet.
    pub(super) unsent: Unsent,
    /// Received bytes that no expectation has used yet. If the target sends markers, these bytes
    /// include the markers. [`fpdus`](Self::fpdus) moves the bytes without the markers to
    /// `unmarked`.
    pub(in crate::stage) unread: Vec<u8>,
    /// Received bytes without their markers, that no expectation has used yet.
    pub(super) unmarked: Vec<u8>,
    /// The directions with markers. `sending` is set if the target requests markers, and
    /// `receiving` is set if the tester requests markers.
    pub(super) sending: Option<MarkedStream>,
    pub(super) receiving: Option<MarkedStream>,
    /// Whether the tester requests markers, and whether the target's start-up frame has arrived.
    /// The target's markers begin after its frame.
    pub(super) requests_markers: bool,
    pub(super) has_frame: bool,
    /// The last messages that were sent.
    pub(super) sent: VecDeque<SentMessage>,
    /// A message whose TCP segments the script chooses.
    pub(super) withheld: Option<WithheldMessage>,
    /// Number of bytes that the tester sent after its start-up frame. The tester's next FPDU begins
    /// at this position.
    pub(in crate::stage) position: u64,
    pub(in crate::stage) finished: bool,
    /// The time that is `settle_ms` after the target's start-up frame. Until then, the target may
    /// be busy with the new connection.
    pub(in crate::stage) settled: Option<Instant>,
    /// State for a plain exchange that continues on this connection.
    pub(in crate::stage) progress: Progress,
    /// The Request of a target that is the Initiator, once it has arrived.
    pub(in crate::stage) request: Option<Vec<u8>>,
}

impl Connection {
    /// Returns the received bytes that no expectation has used yet, without markers.
    pub(in crate::stage) fn fpdus(&mut self) -> &mut Vec<u8> {
        let Some(stream) = &mut self.receiving else { return &mut self.unread };
        stream.remove(&std::mem::take(&mut self.unread), self.progress.crc, &mut self.unmarked);
        &mut self.unmarked
    }

    /// Returns the received bytes that no expectation has used yet. With `has_markers`, these are
    /// the bytes as they were received, otherwise the bytes without markers.
    pub(in crate::stage) fn octets(&mut self, has_markers: bool) -> &mut Vec<u8> {
        if has_markers { &mut self.unread } else { self.fpdus() }
    }

    /// Notes a start-up frame that the target sent. The bytes after it are FPDUs.
    pub(in crate::stage) fn started(&mut self, frame: &[u8]) {
        self.progress.started(frame);
        self.has_frame = true;
        self.receiving = self.requests_markers.then(MarkedStream::default);
        if Startup::parse(frame).is_ok_and(|frame| frame.markers && !frame.reject) {
            self.sending = Some(MarkedStream::default());
        }
    }

    /// Returns the bytes of a message without the markers that a script inserted.
    pub(in crate::stage) fn without_markers<'m>(&self, message: &'m Message) -> Cow<'m, [u8]> {
        match &self.sending {
            Some(stream) if message.has_markers => {
                let mut plain = Vec::new();
                stream.clone().remove(&message.octets, self.progress.crc, &mut plain);
                Cow::Owned(plain)
            }
            _ => Cow::Borrowed(&message.octets),
        }
    }

    /// Returns the bytes that the tester sends for a message. If the target requests markers, and
    /// the script has not inserted markers, these bytes include markers. Also returns whether the
    /// message begins with the connection's first FPDU and this FPDU has a wrong CRC.
    pub(super) fn framed<'m>(&mut self, message: &'m Message) -> (Cow<'m, [u8]>, bool) {
        let octets = &message.octets[..];
        let before = self.sending.clone();
        let startup = startup_range(octets);
        if let Some(range) = &startup {
            self.position = 0;
            self.requests_markers =
                Startup::parse(&octets[range.clone()]).is_ok_and(|frame| frame.markers && !frame.reject);
            self.receiving = (self.requests_markers && self.has_frame).then(MarkedStream::default);
        }
        let (frame, fpdus) = octets.split_at(startup.map_or(0, |range| range.end));
        let has_crc = self.progress.crc;
        let mut changed = frame.to_vec();
        let (sent, plain) = match &mut self.sending {
            None => (Cow::Borrowed(octets), octets),
            Some(stream) if message.has_markers => {
                stream.remove(fpdus, has_crc, &mut changed);
                (Cow::Borrowed(octets), &changed[..])
            }
            Some(stream) => {
                stream.insert(fpdus, has_crc, &mut changed);
                (Cow::Owned(changed.clone()), octets)
            }
        };
        self.position += (sent.len() - frame.len()) as u64;
        if self.sent.len() == REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back(SentMessage { len: sent.len(), before });
        (sent, self.progress.sends(plain))
    }

    /// Returns the bytes that the tester would have sent for `message` in place of `sent`.
    pub(super) fn framed_again(&self, message: &Message, sent: &SentMessage) -> Vec<u8> {
        let Some(mut stream) = sent.before.clone().filter(|_| !message.has_markers) else {
            return message.octets.clone();
        };
        let mut octets = Vec::new();
        stream.insert(&message.octets, self.progress.crc, &mut octets);
        octets
    }
}

/// Returns where the start-up frame of a message is: at the beginning of the message, or after a
/// Hello. `None` if the message has no start-up frame.
fn startup_range(octets: &[u8]) -> Option<Range<usize>> {
    let begin = [0, HELLO_LEN].into_iter().find(|begin| {
        octets.get(*begin..).is_some_and(|octets| octets.starts_with(&REQUEST_KEY) || octets.starts_with(&REPLY_KEY))
    })?;
    let pd_length = octets.get(begin..begin + HEADER_LEN)?.last_chunk()?;
    Some(begin..octets.len().min(begin + HEADER_LEN + usize::from(u16::from_be_bytes(*pd_length))))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_stream_begins_after_the_start_up_frame() {
        assert_eq!(startup_range(b"MPA ID Req Frame\x40\x01\0\x02hi"), Some(0..22));
        assert_eq!(startup_range(b"MPA ID Rep Frame\x40\x01\0\x02hi1234"), Some(0..22));
        assert_eq!(startup_range(b"MPA ID Rep Frame\x40\x01\0\x02h"), Some(0..21));
        assert_eq!(startup_range(b"MPA ID Rep Frame"), None);
        assert_eq!(startup_range(&[0; 60]), None);
        let after_hello = [&[0; HELLO_LEN][..], b"MPA ID Req Frame\x40\x01\0\0"].concat();
        assert_eq!(startup_range(&after_hello), Some(32..52));
    }
}
