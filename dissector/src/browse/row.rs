//! An index has one [`Row`] for each frame. The fields of the row are the columns of the index.

use std::net::SocketAddr;
use std::ops::{Deref, DerefMut, Range};

use weft_core::requirement::Severity;

use crate::frame_number::FrameNumber;
use crate::source::Frame;
use crate::stream_id::StreamId;
use crate::{Packet, TransportKind};

/// Maximum length of the text of a row in characters. The text contains the summaries of the units
/// of the row.
pub(super) const MAX_SUMMARY_CHARS: usize = 240;
/// [`Row::known_at`] of rows that are complete only at the end of the capture.
pub const AT_END: FrameNumber = FrameNumber::MAX;

/// The data of one frame in an index.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Row {
    /// Number of the frame in the capture, from 1.
    pub number: FrameNumber,
    /// Capture time in nanoseconds since 1970.
    pub time: u64,
    /// Captured length in octets.
    pub captured: u32,
    /// Length on the wire in octets.
    pub wire_len: u32,
    /// The TCP or UDP header.
    pub transport: Option<TransportKind>,
    /// Length of the TCP or UDP payload on the wire in octets.
    pub payload_len: u32,
    /// Number of units that end in the frame.
    pub units: u32,
    /// Number of findings that the frame shows.
    pub findings: u32,
    /// Highest severity of these findings.
    pub worst: Option<Severity>,
    /// The frame after which the row is complete: the frame of the row, a later frame, or
    /// [`AT_END`].
    pub known_at: FrameNumber,
    /// Indices of addresses and text in an [`Index`](super::Index).
    pub(super) pair: Option<u32>,
    pub(super) text: Range<usize>,
}

impl Row {
    /// The row of a frame before it is dissected.
    #[must_use]
    pub fn of(frame: &Frame<'_>) -> Self {
        let captured = u32::try_from(frame.octets.len()).unwrap_or(u32::MAX);
        Row { time: frame.time, captured, wire_len: frame.wire_len, ..Row::new(frame.number) }
    }

    pub(super) fn new(number: FrameNumber) -> Self {
        Row { number, known_at: number, ..Row::default() }
    }

    /// Number of the TCP connection; `None` for a frame without TCP.
    #[must_use]
    pub fn stream(&self) -> Option<StreamId> {
        self.transport?.stream()
    }

    /// Names of the TCP flags that are set.
    #[must_use]
    pub fn tcp_flags(&self) -> String {
        self.transport.map_or_else(String::new, TransportKind::tcp_flags)
    }

    /// A summary of the transport header, for a frame without units.
    #[must_use]
    pub fn transport_summary(&self) -> String {
        let len = self.payload_len;
        match self.transport {
            Some(TransportKind::Tcp { seq, .. }) => {
                let flags = self.tcp_flags();
                let gap = if flags.is_empty() { "" } else { " " };
                format!("TCP{gap}{flags}  seq {seq} len {len}")
            }
            Some(TransportKind::Udp) => format!("UDP  {len} bytes"),
            None => "neither TCP nor UDP".to_owned(),
        }
    }

    pub(super) fn set_packet(&mut self, packet: &Packet) {
        (self.transport, self.payload_len) = (Some(packet.transport), packet.payload_len);
    }

    /// Counts a unit that was delivered after frame `at`.
    pub(super) fn add_unit(&mut self, at: FrameNumber) {
        self.units = self.units.saturating_add(1);
        self.known_at = self.known_at.max(at);
    }

    /// Counts a finding that was delivered after frame `at`.
    pub(super) fn add_finding(&mut self, at: FrameNumber, severity: Severity) {
        self.findings = self.findings.saturating_add(1);
        self.worst = self.worst.max(Some(severity));
        self.known_at = self.known_at.max(at);
    }
}

/// Appends the summary of a unit to the text of a row. The text of the row is the last `len`
/// characters of `text`.
pub(super) fn append_summary(text: &mut String, len: usize, summary: &str) {
    if len >= MAX_SUMMARY_CHARS {
        return;
    }
    if len > 0 {
        text.push_str(" | ");
    }
    text.extend(summary.chars().take(MAX_SUMMARY_CHARS - len));
}

/// A row with addresses and text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedRow {
    /// All columns except the addresses and the summary.
    pub row: Row,
    /// Sender and receiver.
    pub ends: Option<(SocketAddr, SocketAddr)>,
    /// Summaries of the units.
    pub summary: String,
}

impl OwnedRow {
    /// The row of a frame before it is dissected.
    #[must_use]
    pub fn of(frame: &Frame<'_>) -> Self {
        Row::of(frame).into()
    }

    /// The text of the frame: the summaries of its units. If the frame has no units, the text is
    /// the summary of its transport header.
    #[must_use]
    pub fn text(&self) -> String {
        if self.units > 0 { self.summary.clone() } else { self.transport_summary() }
    }
}

impl From<Row> for OwnedRow {
    fn from(row: Row) -> Self {
        OwnedRow { row, ends: None, summary: String::new() }
    }
}

impl Deref for OwnedRow {
    type Target = Row;

    fn deref(&self) -> &Row {
        &self.row
    }
}

impl DerefMut for OwnedRow {
    fn deref_mut(&mut self) -> &mut Row {
        &mut self.row
    }
}
