//! The frames of one connection of the tester. A flow changes the frames that TCP sends: it sets the
//! first sequence number, and keeps back the bytes that the tester withholds.
//!
//! TCP itself does not know this. It counts withheld bytes as sent, and it keeps its own sequence
//! numbers. All sequence numbers in this file are those on the wire, unless a comment states that
//! they are TCP's.

use smoltcp::wire::TcpSeqNumber;

use super::frame::TcpFrame;
use super::segment::Headers;
use crate::driver::withheld_bytes::WithheldBytes;

/// The window scale of RFC 7323 section 2.3 is at most this number.
const MAX_SCALE: u8 = 14;
/// The MSS if the target's SYN has no MSS option (RFC 9293 section 3.7.1), in bytes.
const DEFAULT_MSS: usize = 536;
/// Kind of the option SACK (RFC 2018 section 3).
const SACK: u8 = 5;

/// The frames of one connection of the tester.
#[derive(Debug)]
pub(super) struct Flow {
    /// The first sequence number that the tester has chosen.
    first: Option<u32>,
    /// A sequence number on the wire minus TCP's sequence number.
    shift: u32,
    /// Sequence number of the next byte that the tester gives to TCP.
    next: u32,
    /// Sequence number after the last byte that TCP has sent.
    sent_end: u32,
    /// Headers of the last frame with an acknowledgment.
    headers: Option<Headers>,
    /// The target's window scale.
    scale: u8,
    /// Sequence number at the end of the target's window.
    window_end: Option<u32>,
    /// The target's MSS.
    mss: usize,
    /// Bytes that TCP counts as sent, and that this file keeps back. The number is the sequence
    /// number of the first of them.
    withheld: Option<(u32, WithheldBytes)>,
}

/// Returns how far `to` is after `from`. The result is negative if `to` is before `from`.
fn distance(from: u32, to: u32) -> i32 {
    to.wrapping_sub(from).cast_signed()
}

/// Returns `sequence` plus a number of bytes, which is at most the size of a buffer.
fn advance(sequence: u32, len: usize) -> u32 {
    sequence.wrapping_add(u32::try_from(len).unwrap_or(u32::MAX))
}

fn signed(len: usize) -> i32 {
    i32::try_from(len).unwrap_or(i32::MAX)
}

impl Flow {
    /// Creates the flow of a new connection. If `first` is set, it is the sequence number of the
    /// SYN.
    pub(super) fn new(first: Option<u32>) -> Self {
        Flow {
            first,
            shift: 0,
            next: 0,
            sent_end: 0,
            headers: None,
            scale: 0,
            window_end: None,
            mss: DEFAULT_MSS,
            withheld: None,
        }
    }

    /// Changes a frame that TCP sends. Returns the frame for the interface. Returns `None` if the
    /// frame has only withheld bytes.
    pub(super) fn outgoing(&mut self, mut frame: Vec<u8>, location: &TcpFrame) -> Option<Vec<u8>> {
        let segment = location.segment(&frame);
        let own = segment.seq_number().0.cast_unsigned();
        let (is_syn, has_ack, len) = (segment.syn(), segment.ack(), segment.payload().len());
        if is_syn {
            self.shift = self.first.map_or(0, |first| first.wrapping_sub(own));
        }
        let sequence = own.wrapping_add(self.shift);
        if self.shift != 0 {
            location.segment_mut(&mut frame).set_seq_number(TcpSeqNumber(sequence.cast_signed()));
            location.fill_checksum(&mut frame);
        }
        if is_syn {
            // The SYN has the first sequence number, so the first byte has the next number.
            self.next = sequence.wrapping_add(1);
            self.sent_end = self.next;
        }
        let before = self.headers.as_ref().map(Headers::acknowledgment);
        if has_ack {
            self.headers = Some(Headers::of(&frame, location));
        }
        let end = advance(sequence, len);
        if distance(self.sent_end, end) > 0 {
            self.sent_end = end;
        }
        let Some((begin, _)) = self.withheld.as_ref().filter(|_| len > 0) else { return Some(frame) };
        let earlier = distance(sequence, *begin);
        if earlier >= signed(len) {
            return Some(frame);
        }
        let headers = self.headers.as_ref()?;
        match usize::try_from(earlier) {
            // TCP retransmits bytes that it had sent before the withheld bytes.
            Ok(earlier) if earlier > 0 => {
                let payload = location.segment(&frame).payload().get(..earlier).map(<[u8]>::to_vec)?;
                Some(headers.segment(sequence, &payload))
            }
            // The segment may have the only acknowledgment of bytes that the target has sent. So
            // its acknowledgment leaves without its bytes.
            _ => (before != Some(headers.acknowledgment())).then(|| headers.segment(end, &[])),
        }
    }

    /// Changes a frame from the target, so that TCP gets its own sequence numbers. Does not correct
    /// the checksum, because TCP does not check it.
    pub(super) fn incoming(&mut self, frame: &mut [u8], location: &TcpFrame) {
        let segment = location.segment(frame);
        if !segment.ack() {
            return;
        }
        let ack = segment.ack_number().0.cast_unsigned();
        let (is_syn, is_reset, window) = (segment.syn(), segment.rst(), u32::from(segment.window_len()));
        if is_syn && let Ok(options) = segment.options_summary() {
            self.scale = options.window_scale.unwrap_or(0).min(MAX_SCALE);
            self.mss = options.max_segment_size.map_or(DEFAULT_MSS, usize::from).max(1);
        }
        if !is_reset {
            // The window of a SYN is not scaled (RFC 7323 section 2.2).
            let scale = if is_syn { 0 } else { self.scale };
            self.window_end = Some(ack.wrapping_add(window << scale));
        }
        if self.shift != 0 {
            let mut segment = location.segment_mut(frame);
            segment.set_ack_number(TcpSeqNumber(ack.wrapping_sub(self.shift).cast_signed()));
            shift_sack(segment.options_mut(), self.shift);
        }
    }

    /// Notes that the tester has given `len` bytes to TCP.
    pub(super) fn written(&mut self, len: usize) {
        self.next = advance(self.next, len);
    }

    /// Returns whether the tester withholds bytes.
    pub(super) fn is_withholding(&self) -> bool {
        self.withheld.is_some()
    }

    /// Returns whether TCP has sent all earlier bytes, and `len` more bytes fit into the target's
    /// window.
    pub(super) fn can_withhold(&self, len: usize) -> bool {
        let fits = |end: u32| distance(self.next, end) >= signed(len);
        self.headers.is_some() && self.sent_end == self.next && self.window_end.is_some_and(fits)
    }

    /// Keeps back `octets`. The caller gives them to TCP after this call.
    pub(super) fn withhold(&mut self, octets: &[u8]) {
        self.withheld = Some((self.next, WithheldBytes::new(octets)));
        self.written(octets.len());
    }

    /// Builds the frame of a segment. `begin` is the offset of its first byte, counted from the
    /// first withheld byte, or from the next byte if no bytes are withheld. Returns `None` before
    /// the connection is established.
    pub(super) fn segment(&mut self, begin: i64, octets: &[u8]) -> Option<Vec<u8>> {
        let headers = self.headers.as_ref()?;
        let base = self.withheld.as_ref().map_or(self.next, |(first, _)| *first);
        // The offset is negative for bytes that were sent before. Sequence numbers wrap around.
        let offset = u32::try_from(begin.rem_euclid(1 << 32)).unwrap_or(0);
        let frame = headers.segment(base.wrapping_add(offset), octets);
        if let Some((_, withheld)) = &mut self.withheld {
            withheld.note_segment(begin, octets.len());
        }
        Some(frame)
    }

    /// Ends the withheld send. Returns frames with the bytes that no segment had, with at most
    /// `most` bytes each.
    pub(super) fn release(&mut self, most: usize) -> Vec<Vec<u8>> {
        let (Some((first, withheld)), Some(headers)) = (self.withheld.take(), &self.headers) else { return Vec::new() };
        let most = most.min(self.mss).max(1);
        let mut frames = Vec::new();
        for range in withheld.missing() {
            let begin = range.start;
            for (index, octets) in withheld.octets[range].chunks(most).enumerate() {
                frames.push(headers.segment(advance(first, begin + index * most), octets));
            }
        }
        frames
    }

    /// Returns the offset of the TCP header in the frames of this connection.
    pub(super) fn tcp_offset(&self) -> usize {
        self.headers.as_ref().map_or(0, Headers::tcp)
    }
}

/// Subtracts `shift` from the sequence numbers in SACK options.
fn shift_sack(options: &mut [u8], shift: u32) {
    let mut at = 0;
    while let Some(kind) = options.get(at).copied() {
        let len = match kind {
            // End of the options.
            0 => return,
            // Padding.
            1 => 1,
            _ => match options.get(at + 1) {
                Some(len) if *len >= 2 => usize::from(*len),
                _ => return,
            },
        };
        if kind == SACK
            && let Some(edges) = options.get_mut(at + 2..at + len)
        {
            for edge in edges.chunks_exact_mut(4) {
                let value = u32::from_be_bytes([edge[0], edge[1], edge[2], edge[3]]);
                edge.copy_from_slice(&value.wrapping_sub(shift).to_be_bytes());
            }
        }
        at += len;
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::{TARGET, TESTER, checked, data, frame, frame_of, syn, syn_ack};
    use super::*;

    /// TCP's own sequence number of the SYN in these tests.
    const OWN: u32 = 9000;

    fn outgoing(flow: &mut Flow, frame: Vec<u8>) -> Option<Vec<u8>> {
        let location = TcpFrame::find(&frame).unwrap();
        flow.outgoing(frame, &location)
    }

    fn incoming(flow: &mut Flow, mut frame: Vec<u8>) -> Vec<u8> {
        let location = TcpFrame::find(&frame).unwrap();
        flow.incoming(&mut frame, &location);
        frame
    }

    /// A connection after the handshake. `first` is the first sequence number on the wire.
    fn established(first: u32) -> Flow {
        let mut flow = Flow::new(Some(first));
        let sent = outgoing(&mut flow, syn(OWN)).unwrap();
        assert_eq!(checked(&sent).1.seq_number().0.cast_unsigned(), first);
        let answer = incoming(&mut flow, syn_ack(first.wrapping_add(1)));
        let location = TcpFrame::find(&answer).unwrap();
        assert_eq!(location.segment(&answer).ack_number().0.cast_unsigned(), OWN + 1);
        outgoing(&mut flow, frame(TESTER, TARGET, OWN + 1, 5001, b"")).unwrap();
        flow
    }

    /// Sequence number and bytes of a frame on the wire.
    fn content(frame: &[u8]) -> (u32, Vec<u8>) {
        let (_, segment) = checked(frame);
        (segment.seq_number().0.cast_unsigned(), segment.payload().to_vec())
    }

    #[test]
    fn the_first_sequence_number_can_wrap_around() {
        let mut flow = established(u32::MAX - 1);
        let sent = outgoing(&mut flow, frame(TESTER, TARGET, OWN + 1, 5001, b"abc")).unwrap();
        assert_eq!(content(&sent), (u32::MAX, b"abc".to_vec()));
        // The acknowledgment of the three bytes, and a SACK of the bytes 4 and 5.
        let mut segment = data(TARGET, TESTER, 5001, 2, b"");
        segment.sack_ranges[0] = Some((3, 5));
        let received = incoming(&mut flow, frame_of(TARGET, TESTER, &segment));
        let location = TcpFrame::find(&received).unwrap();
        let segment = location.segment(&received);
        assert_eq!(segment.ack_number().0.cast_unsigned(), OWN + 4);
        assert_eq!(segment.selective_ack_ranges().unwrap()[0], Some((OWN + 5, OWN + 7)));
    }

    #[test]
    fn without_a_chosen_number_frames_do_not_change() {
        let mut flow = Flow::new(None);
        for sent in [syn(OWN), frame(TESTER, TARGET, OWN + 1, 5001, b"abc")] {
            assert_eq!(outgoing(&mut flow, sent.clone()), Some(sent));
        }
        let received = frame(TARGET, TESTER, 5001, OWN + 4, b"def");
        assert_eq!(incoming(&mut flow, received.clone()), received);
    }

    #[test]
    fn withheld_bytes_leave_in_the_segments_of_the_tester() {
        let mut flow = established(100);
        outgoing(&mut flow, frame(TESTER, TARGET, OWN + 1, 5001, b"earlier")).unwrap();
        flow.written(7);
        assert!(flow.can_withhold(6));
        flow.withhold(b"abcdef");
        let own = frame(TESTER, TARGET, OWN + 8, 5001, b"abcdef");
        assert_eq!(outgoing(&mut flow, own), None);
        let mut segment = |begin, octets: &[u8]| content(&flow.segment(begin, octets).unwrap());
        assert_eq!(segment(4, b"ef"), (112, b"ef".to_vec()));
        assert_eq!(segment(-7, b"another"), (101, b"another".to_vec()));
        assert_eq!(segment(0, b"ab"), (108, b"ab".to_vec()));
        let rest: Vec<_> = flow.release(1460).iter().map(|frame| content(frame)).collect();
        assert_eq!(rest, [(110, b"cd".to_vec())]);
        let later = outgoing(&mut flow, frame(TESTER, TARGET, OWN + 8, 5001, b"abcdef")).unwrap();
        assert_eq!(content(&later), (108, b"abcdef".to_vec()), "TCP retransmits again");
    }

    #[test]
    fn earlier_bytes_and_acknowledgments_leave_during_a_withheld_send() {
        let mut flow = established(100);
        outgoing(&mut flow, frame(TESTER, TARGET, OWN + 1, 5001, b"abc")).unwrap();
        flow.written(3);
        flow.withhold(b"def");
        let sent = outgoing(&mut flow, frame(TESTER, TARGET, OWN + 1, 5001, b"abcdef")).unwrap();
        assert_eq!(content(&sent), (101, b"abc".to_vec()));
        // TCP sends withheld bytes with an acknowledgment that the target does not have yet.
        let sent = outgoing(&mut flow, frame(TESTER, TARGET, OWN + 4, 5002, b"def")).unwrap();
        assert_eq!((content(&sent), checked(&sent).1.ack_number().0), ((107, Vec::new()), 5002));
        assert_eq!(outgoing(&mut flow, frame(TESTER, TARGET, OWN + 4, 5002, b"def")), None);
        let built = flow.segment(0, b"d").unwrap();
        assert_eq!(checked(&built).1.ack_number().0, 5002, "the newest acknowledgment");
    }

    #[test]
    fn a_withheld_send_needs_the_window_and_all_earlier_bytes() {
        let mut flow = established(100);
        assert!(flow.can_withhold(4000) && !flow.can_withhold(4001), "the window of the SYN is not scaled");
        incoming(&mut flow, frame(TARGET, TESTER, 5001, 101, b""));
        assert!(flow.can_withhold(16_000) && !flow.can_withhold(16_001), "a window scale of 2");
        flow.written(3);
        assert!(!flow.can_withhold(1), "TCP has not sent the earlier bytes");
    }

    #[test]
    fn the_rest_of_a_withheld_send_obeys_the_mss() {
        let mut flow = established(100);
        flow.withhold(&[7; 2500]);
        let lengths: Vec<_> = flow.release(1460).iter().map(|frame| content(frame).1.len()).collect();
        assert_eq!(lengths, [1000, 1000, 500]);
        assert!(!flow.is_withholding() && flow.release(1460).is_empty());
    }
}
