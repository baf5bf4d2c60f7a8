//! Relative TCP sequence numbers, as Wireshark shows them: the SYN of a connection has 0, and the
//! first byte has 1. Without a SYN, the first captured segment has 1.

use std::collections::HashMap;
use std::net::SocketAddr;

use weft_dissector::browse::OwnedRow;
use weft_dissector::{StreamId, TransportKind};

/// The maximum number of senders whose first sequence number is kept. The sequence numbers of
/// further senders are absolute. A connection has two senders.
const MAX_SENDERS: usize = 200_000;

/// The sequence number before the first byte of each sender of a connection.
#[derive(Debug, Default)]
pub(crate) struct Sequences(HashMap<(StreamId, SocketAddr), u32>);

impl Sequences {
    /// Notes the next row of the capture.
    pub(crate) fn note(&mut self, row: &OwnedRow) {
        if let (Some(TransportKind::Tcp { stream, seq, syn, .. }), Some((from, _))) = (row.transport, row.ends)
            && self.0.len() < MAX_SENDERS
        {
            self.0.entry((stream, from)).or_insert(if syn { seq } else { seq.wrapping_sub(1) });
        }
    }

    /// Returns the row with a relative sequence number.
    pub(crate) fn relative(&self, mut row: OwnedRow) -> OwnedRow {
        if let (Some(TransportKind::Tcp { stream, seq, .. }), Some((from, _))) = (&mut row.row.transport, row.ends)
            && let Some(first) = self.0.get(&(*stream, from))
        {
            *seq = seq.wrapping_sub(*first);
        }
        row
    }
}

#[cfg(test)]
mod tests {
    use weft_dissector::FrameNumber;
    use weft_dissector::source::Frame;

    use super::*;

    fn row(from: u8, seq: u32, syn: bool) -> OwnedRow {
        let frame =
            Frame { number: FrameNumber::FIRST, time: 0, interface: 0, link_type: 1, octets: &[0; 60], wire_len: 60 };
        let address = |host: u8| SocketAddr::from(([10, 0, 0, host], 7174));
        let mut row = OwnedRow::of(&frame);
        row.ends = Some((address(from), address(3 - from)));
        let stream = StreamId::FIRST;
        row.row.transport = Some(TransportKind::Tcp { stream, seq, syn, fin: false, rst: false, ack: true });
        row
    }

    #[test]
    fn each_sender_has_its_own_numbers() {
        let mut sequences = Sequences::default();
        for noted in [row(1, u32::MAX, true), row(2, 500, false), row(1, 0, false)] {
            sequences.note(&noted);
        }
        let relative = |row| match sequences.relative(row).transport {
            Some(TransportKind::Tcp { seq, .. }) => seq,
            _ => panic!("no TCP"),
        };
        // The sequence number of the SYN is before the first byte (RFC 9293 section 3.4).
        assert_eq!([row(1, u32::MAX, true), row(1, 0, false), row(1, 9, false)].map(relative), [0, 1, 10]);
        assert_eq!(relative(row(2, 520, false)), 21);
    }
}
