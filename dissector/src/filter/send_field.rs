//! The fields of Sends of several DDP segments. The names are Wireshark's.

use super::field_type::{Kind, Show};

/// A field of a Send of several segments. All fields except [`SendField::ReassembledIn`] belong to
/// the unit that completes the Send.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum SendField {
    /// The Send has several segments.
    Fragments,
    /// The frame of each segment without an error.
    Fragment,
    /// A segment repeats octets.
    Overlap,
    /// A segment repeats octets with other values.
    OverlapConflict,
    /// Another segment with L follows the last segment.
    MultipleTails,
    /// A segment is longer than the message.
    TooLong,
    /// The frame of each segment with one of these errors.
    Error,
    Count,
    /// The frame that completes the Send. This field belongs to the other segments.
    ReassembledIn,
    Length,
    Data,
}

type Row = (&'static str, &'static str, Kind, Show, SendField);

pub(super) static SEND_FIELDS: &[Row] = &[
    ("iwarp_rdma.send.fragments", "Send of several segments", Kind::Presence, Show::Dec, SendField::Fragments),
    ("iwarp_rdma.send.fragment", "Frames of the segments", Kind::Number, Show::Dec, SendField::Fragment),
    ("iwarp_rdma.send.fragment.overlap", "A segment repeats bytes", Kind::Number, Show::Dec, SendField::Overlap),
    (
        "iwarp_rdma.send.fragment.overlap.conflict",
        "A segment repeats bytes with other values",
        Kind::Number,
        Show::Dec,
        SendField::OverlapConflict,
    ),
    (
        "iwarp_rdma.send.fragment.multipletails",
        "Another segment with L follows the last segment",
        Kind::Number,
        Show::Dec,
        SendField::MultipleTails,
    ),
    (
        "iwarp_rdma.send.fragment.toolongfragment",
        "A segment is longer than the message",
        Kind::Number,
        Show::Dec,
        SendField::TooLong,
    ),
    ("iwarp_rdma.send.fragment.error", "Frames of wrong segments", Kind::Number, Show::Dec, SendField::Error),
    ("iwarp_rdma.send.fragment.count", "Number of segments", Kind::Number, Show::Dec, SendField::Count),
    (
        "iwarp_rdma.send.reassembled_in",
        "Frame that completes the Send (only with -T)",
        Kind::Number,
        Show::Dec,
        SendField::ReassembledIn,
    ),
    ("iwarp_rdma.send.reassembled.length", "Bytes of the Send", Kind::Number, Show::Dec, SendField::Length),
    ("iwarp_rdma.send.reassembled.data", "Payload of the Send", Kind::Octets, Show::Plain, SendField::Data),
];
