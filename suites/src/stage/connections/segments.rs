//! Messages in TCP segments that the script chooses: in any order, more than once, or with a pause
//! while earlier bytes are missing. This needs a link on which the tester chooses its segments.

use std::ops::Range;
use std::time::Duration;

use weft_peer::driver::Fragments;

use super::Connections;
use crate::model::{Direction, StepKind};
use crate::stage::{Message, Stop, describe};

/// A message that TCP has, and whose TCP segments the script sends.
pub(super) struct WithheldMessage {
    name: String,
    /// The bytes of the message, with markers.
    octets: Vec<u8>,
    /// The ranges of the segments, in the order of the stream.
    segments: Vec<Range<usize>>,
    /// For each segment, whether it was sent.
    sent: Vec<bool>,
}

impl WithheldMessage {
    /// Describes the segment with this index, before it is sent.
    fn describe(&self, index: usize, fragments: Option<Fragments>) -> String {
        let (number, count, len) = (index + 1, self.segments.len(), self.segments[index].len());
        let mut text = format!("{}, segment {number} of {count} ({len} bytes)", self.name);
        if let Some(missing) = self.sent[..index].iter().position(|sent| !sent) {
            text.push_str(&format!(", before segment {}", missing + 1));
        }
        if self.sent[index] {
            text.push_str(", again");
        }
        if let Some(Fragments { most, last_first }) = fragments {
            let order = if last_first { ", the last fragment first" } else { "" };
            text.push_str(&format!(", in IP fragments of at most {most} bytes{order}"));
        }
        text
    }

    /// Returns the bytes of the segments that were not sent.
    fn rest(&self) -> Vec<u8> {
        let missing = self.segments.iter().zip(&self.sent).filter(|(_, sent)| !**sent);
        missing.flat_map(|(range, _)| &self.octets[range.clone()]).copied().collect()
    }
}

impl Connections {
    /// Sends a message in TCP segments. `cuts` are the offsets at which a new segment begins, in the
    /// bytes with markers. `order` has the numbers of the segments, from 1, in the order in which
    /// they leave. A number may occur twice. Segments that are not in `order` leave last. `pause` is
    /// the time between two segments. With `fragments`, IP fragments carry each segment.
    pub(crate) async fn send_segments(
        &mut self,
        number: u32,
        message: &Message,
        cuts: &[usize],
        order: &[usize],
        pause: Duration,
        fragments: Option<Fragments>,
    ) -> Result<(), Stop> {
        self.withhold(number, message, cuts).await?;
        let others = (1..=cuts.len() + 1).filter(|segment| !order.contains(segment));
        for (nth, segment) in order.iter().copied().chain(others).enumerate() {
            if nth > 0 && !pause.is_zero() {
                self.link.pause(self.link.now() + pause).await;
            }
            self.send_segment(number, segment, fragments).await?;
        }
        self.send_withheld(number).await
    }

    /// Gives a message to TCP, which does not send it yet. `cuts` are those of
    /// [`send_segments`](Self::send_segments).
    pub(crate) async fn withhold(&mut self, number: u32, message: &Message, cuts: &[usize]) -> Result<(), Stop> {
        self.stimulate(number);
        self.check_not_withheld(number)?;
        let octets = self.framed(number, message)?.into_owned();
        let len = octets.len();
        if let Some(cut) = cuts.iter().find(|cut| **cut >= len) {
            let why = format!("a TCP segment cannot begin at the offset {cut} of a message of {len} bytes");
            return Err(self.recorder().harness(&why));
        }
        let begins = std::iter::once(0).chain(cuts.iter().copied());
        let ends = cuts.iter().copied().chain([len]);
        let segments: Vec<Range<usize>> = begins.zip(ends).map(|(begin, end)| begin..end).collect();
        let conn = self.get(number)?;
        let withheld = conn.end.withhold(&octets).await;
        let (name, sent) = (message.name.clone(), vec![false; segments.len()]);
        conn.withheld = Some(WithheldMessage { name, octets, segments, sent });
        self.check_result(withheld)
    }

    /// Sends one TCP segment of the withheld message. `segment` is its number, from 1.
    pub(crate) async fn send_segment(
        &mut self,
        number: u32,
        segment: usize,
        fragments: Option<Fragments>,
    ) -> Result<(), Stop> {
        self.stimulate(number);
        let Some(mut withheld) = self.get(number)?.withheld.take() else { return Err(self.nothing_withheld()) };
        let count = withheld.segments.len();
        let index = segment.wrapping_sub(1);
        let Some(range) = withheld.segments.get(index).cloned() else {
            let why = format!("there is no TCP segment {segment}; the message has {count}");
            return Err(self.recorder().harness(&why));
        };
        let begin = i64::try_from(range.start).unwrap_or(i64::MAX);
        let piece = Message::new(withheld.describe(index, fragments), withheld.octets[range].to_vec());
        withheld.sent[index] = true;
        self.get(number)?.withheld = Some(withheld);
        self.put_segment(number, begin, &piece, fragments).await
    }

    /// Sends those bytes of the withheld message that no segment had. From now on, TCP chooses the
    /// segments.
    pub(crate) async fn send_withheld(&mut self, number: u32) -> Result<(), Stop> {
        self.stimulate(number);
        let Some(withheld) = self.get(number)?.withheld.take() else { return Err(self.nothing_withheld()) };
        let rest = withheld.rest();
        let sent = self.get(number)?.end.send_withheld().await;
        if !rest.is_empty() {
            let rest = Message::new(format!("the rest of {} ({} bytes)", withheld.name, rest.len()), rest);
            self.check_sent(&rest)?;
            let octets = describe::octets(&rest.octets, &[]);
            self.recorder().step(number, Direction::Sent, StepKind::Octets, rest.name, Some(octets));
        }
        self.check_result(sent)
    }

    /// Sends a TCP segment with this message in the place of a message that was sent before. `back`
    /// is the number of messages after that message. Both messages must have the same length.
    pub(crate) async fn retransmit(&mut self, number: u32, message: &Message, back: usize) -> Result<(), Stop> {
        self.stimulate(number);
        self.check_not_withheld(number)?;
        let conn = self.get(number)?;
        let index = conn.sent.len().checked_sub(back.saturating_add(1));
        let Some((sent, index)) = index.and_then(|index| Some((conn.sent.get(index)?, index))) else {
            let why = "the tester has not sent the message to retransmit, or has sent too many messages after it";
            return Err(self.recorder().harness(why));
        };
        let (octets, len) = (conn.framed_again(message, sent), sent.len);
        let distance: usize = conn.sent.range(index..).map(|sent| sent.len).sum();
        if octets.len() != len {
            let why = format!("a retransmission of {} bytes replaces a message of {len} bytes", octets.len());
            return Err(self.recorder().harness(&why));
        }
        let begin = i64::try_from(distance).map_or(i64::MIN, |distance| -distance);
        let piece = Message::new(format!("{}, as a retransmission ({len} bytes)", message.name), octets);
        self.put_segment(number, begin, &piece, None).await
    }

    /// Sends and records one TCP segment. `begin` is the offset of its first byte, counted from the
    /// first withheld byte or, if no byte is withheld, from the next byte of the stream.
    async fn put_segment(
        &mut self,
        number: u32,
        begin: i64,
        piece: &Message,
        fragments: Option<Fragments>,
    ) -> Result<(), Stop> {
        self.check_sent(piece)?;
        let sent = self.get(number)?.end.send_segment(begin, &piece.octets, fragments).await;
        let octets = describe::octets(&piece.octets, &[]);
        self.recorder().step(number, Direction::Sent, StepKind::Octets, piece.name.clone(), Some(octets));
        self.check_result(sent)
    }

    /// Ends the case if a message is withheld, because TCP sends its bytes before all later bytes.
    pub(super) fn check_not_withheld(&mut self, number: u32) -> Result<(), Stop> {
        if self.get(number)?.withheld.is_none() {
            return Ok(());
        }
        Err(self.recorder().harness("a message is withheld, so the script has to call conn:send_withheld() first"))
    }

    fn nothing_withheld(&mut self) -> Stop {
        self.recorder().harness("no message is withheld, so the script has to call conn:withhold(message) first")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_shows_which_segment_was_sent_before_which() {
        let mut withheld = WithheldMessage {
            name: "FPDU".into(),
            octets: b"abcdefghij".to_vec(),
            segments: vec![0..2, 2..5, 5..10],
            sent: vec![false; 3],
        };
        assert_eq!(withheld.describe(1, None), "FPDU, segment 2 of 3 (3 bytes), before segment 1");
        withheld.sent[1] = true;
        assert_eq!(withheld.rest(), b"abfghij");
        assert_eq!(withheld.describe(0, None), "FPDU, segment 1 of 3 (2 bytes)");
        withheld.sent[0] = true;
        assert_eq!(withheld.describe(1, None), "FPDU, segment 2 of 3 (3 bytes), again");
        let text = "FPDU, segment 3 of 3 (5 bytes), in IP fragments of at most 8 bytes";
        let fragments = Fragments { most: 8, last_first: false };
        assert_eq!(withheld.describe(2, Some(fragments)), text);
        let reversed = withheld.describe(2, Some(Fragments { last_first: true, ..fragments }));
        assert_eq!(reversed, format!("{text}, the last fragment first"));
    }
}
