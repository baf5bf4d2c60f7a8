//! What TCP shows about a frame: its range of bytes, its acknowledgement and window, and whether it
//! is a retransmission, a keep-alive and so on. The values are those of the fields `tcp.*`.

use weft_dissector::Packet;
use weft_dissector::filter::{FieldReader, KnownField, Slot, Values, WantedFields, known};
use weft_dissector::source::Frame;

/// Range, acknowledgement and window, counted from the SYNs.
const NUMBERS: [&str; 3] = ["tcp.seq", "tcp.ack", "tcp.window_size"];
/// What the analysis of the connection shows.
const REMARKS: [&str; 9] = [
    "tcp.analysis.retransmission",
    "tcp.analysis.out_of_order",
    "tcp.analysis.lost_segment",
    "tcp.analysis.ack_lost_segment",
    "tcp.analysis.keep_alive",
    "tcp.analysis.keep_alive_ack",
    "tcp.analysis.zero_window",
    "tcp.analysis.window_update",
    "tcp.analysis.duplicate_ack",
];

/// Reads the TCP headers of all frames, because the values depend on earlier segments.
pub(super) struct TcpAnalysis {
    wanted: WantedFields,
    reader: FieldReader,
    /// The values of the current frame.
    values: Values,
    numbers: Vec<Slot>,
    remarks: Vec<(&'static KnownField, Slot)>,
}

impl Default for TcpAnalysis {
    fn default() -> Self {
        let mut wanted = WantedFields::default();
        let numbers = NUMBERS.iter().filter_map(|name| known(name)).map(|field| wanted.add(field)).collect();
        let remarks = REMARKS.iter().filter_map(|name| known(name)).map(|field| (field, wanted.add(field))).collect();
        let (reader, values) = (FieldReader::default(), Values::default());
        TcpAnalysis { wanted, reader, values, numbers, remarks }
    }
}

impl TcpAnalysis {
    /// Reads the headers of a frame, before the dissector reads it.
    pub(super) fn frame(&mut self, frame: &Frame<'_>) {
        self.values.clear();
        self.reader.frame(&self.wanted, frame, &mut self.values);
    }

    /// Reads the packet of the current frame.
    pub(super) fn packet(&mut self, packet: &Packet) {
        self.reader.packet(&self.wanted, packet, &mut self.values);
    }

    /// The values of the current frame as lines of text. Empty if the frame has no TCP segment.
    pub(super) fn lines(&self, payload_len: u32) -> Vec<String> {
        let number = |slot: &Slot| self.values.numbers(*slot).next();
        let numbers: Vec<i128> = self.numbers.iter().filter_map(number).collect();
        let [start, ack, window] = numbers[..] else { return Vec::new() };
        // A SYN and a FIN count as a byte, too.
        let range = match payload_len {
            0 => format!("no bytes (at {start})"),
            1 => format!("byte {start}"),
            len => format!("bytes {start} to {}", start + i128::from(len) - 1),
        };
        let acked = if ack > 0 { format!(", acknowledges the bytes before {ack}") } else { String::new() };
        let mut lines = vec![format!("TCP: {range}{acked}, window {window} bytes; counted from the SYNs")];
        let remarks = self.remarks.iter().filter(|(_, slot)| self.values.count(*slot) > 0);
        lines.extend(remarks.map(|(field, _)| format!("TCP: {} ({})", field.label, field.name)));
        lines
    }
}
