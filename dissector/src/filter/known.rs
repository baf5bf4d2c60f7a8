//! The fields and protocols that filters and `-e` accept, with the format of their values in
//! Wireshark.

use std::collections::HashMap;
use std::sync::LazyLock;

use weft_core::spelling::{distance, is_beginning};

use super::column::{COLUMNS, Column};
pub use super::field_type::{Kind, Show};
use super::header_field::{HEADER_FIELDS, HeaderField};
use super::send_field::{SEND_FIELDS, SendField};
use crate::grammar::field::nth_name;
use crate::grammar::{self, Base, Field, ddp, rdmap, smb};

/// A field or protocol.
#[derive(Debug)]
pub struct KnownField {
    /// Name of the field or protocol.
    pub name: &'static str,
    /// Label for display.
    pub label: &'static str,
    /// Section of the specification; empty for fields of frames.
    pub section: &'static str,
    /// Type of the values. The type determines how the values are compared.
    pub kind: Kind,
    /// Output format of the values.
    pub show: Show,
    /// Function that returns the name of a value, for fields with named values.
    pub names: Option<fn(u64) -> Option<&'static str>>,
    /// All possible text values, for a field with a fixed set of text values.
    pub words: &'static [&'static str],
    pub(super) source: Source,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Source {
    Grammar(&'static Field),
    /// A field of the grammar, but only in units that meet the condition.
    When(&'static Field, Condition),
    Group(GroupKind),
    Fact(Fact),
    Header(HeaderField),
    Column(Column),
    Send(SendField),
}

/// Some Wireshark fields correspond to only some occurrences of a field of weft. The condition
/// selects these occurrences.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Condition {
    Request,
    Reply,
    /// The CRC of the FPDU was checked.
    Checked,
    /// The unit is a Terminate with this layer. If an error type is given, the Terminate also has
    /// this error type.
    Terminated(u64, Option<u64>),
    /// No condition, and the value does not matter.
    Present,
}

/// The unit or header whose presence a filter tests.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum GroupKind {
    Mpa,
    Request,
    Reply,
    Fpdu,
    Markers,
    Ddp,
    Tagged,
    Untagged,
    ReadRequest,
    Terminate,
    Sdp,
    PortMapper,
    Ip,
    Ipv6,
    Tcp,
    Udp,
    Frame,
    Finding,
    /// A message of a protocol above RDMAP. The value is the name of the group in the grammar.
    UpperLayer(&'static str),
}

/// Fields that are not in the grammar. The order of the variants is significant. Fields of frames
/// come first. [`Fact::IpSrc`] is the first field of packets, [`Fact::Kind`] the first field of
/// units, and [`Fact::FindingRequirement`] the first field of findings.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd)]
pub(super) enum Fact {
    FrameNumber,
    FrameTime,
    FrameTimeEpoch,
    FrameTimeDelta,
    FrameTimeRelative,
    FrameLen,
    FrameCapLen,
    FrameComment,
    IpSrc,
    IpDst,
    IpAddr,
    Ipv6Src,
    Ipv6Dst,
    Ipv6Addr,
    TcpSrcPort,
    TcpDstPort,
    TcpPort,
    TcpStream,
    TcpSeqRaw,
    TcpLen,
    TcpSyn,
    TcpFin,
    TcpReset,
    TcpAck,
    UdpSrcPort,
    UdpDstPort,
    UdpPort,
    UdpLength,
    Kind,
    Direction,
    Incomplete,
    Len,
    PayloadLen,
    Payload,
    RsvdUlp,
    MarkerRes,
    ResNotSet0,
    RevNotSet1,
    RejectBitResponder,
    BadLength,
    FindingRequirement,
    FindingSeverity,
    FindingSummary,
    FindingExpected,
    FindingFound,
}

impl Fact {
    /// Returns whether the field names an endpoint or a connection.
    pub(super) fn is_endpoint(self) -> bool {
        (Fact::IpSrc..=Fact::TcpStream).contains(&self)
            || matches!(self, Fact::UdpSrcPort | Fact::UdpDstPort | Fact::UdpPort)
    }
}

type FactRow = (&'static str, &'static str, Kind, Show, Fact);

static FACTS: &[FactRow] = &[
    ("frame.number", "Frame number", Kind::Number, Show::Dec, Fact::FrameNumber),
    ("frame.time", "Date and time of day, in UTC", Kind::Date, Show::Plain, Fact::FrameTime),
    ("frame.time_epoch", "Seconds since 1970", Kind::Time, Show::Plain, Fact::FrameTimeEpoch),
    ("frame.time_delta", "Seconds since the previous frame", Kind::Time, Show::Plain, Fact::FrameTimeDelta),
    ("frame.time_relative", "Seconds since the first frame", Kind::Time, Show::Plain, Fact::FrameTimeRelative),
    ("frame.len", "Bytes on the wire", Kind::Number, Show::Dec, Fact::FrameLen),
    ("frame.cap_len", "Bytes captured", Kind::Number, Show::Dec, Fact::FrameCapLen),
    ("frame.comment", "Comment on the frame in the capture", Kind::Text, Show::Plain, Fact::FrameComment),
    ("ip.src", "Source address", Kind::Ipv4, Show::Plain, Fact::IpSrc),
    ("ip.dst", "Destination address", Kind::Ipv4, Show::Plain, Fact::IpDst),
    ("ip.addr", "Source or destination address", Kind::Ipv4, Show::Plain, Fact::IpAddr),
    ("ipv6.src", "Source address", Kind::Ipv6, Show::Plain, Fact::Ipv6Src),
    ("ipv6.dst", "Destination address", Kind::Ipv6, Show::Plain, Fact::Ipv6Dst),
    ("ipv6.addr", "Source or destination address", Kind::Ipv6, Show::Plain, Fact::Ipv6Addr),
    ("tcp.srcport", "Source port", Kind::Number, Show::Dec, Fact::TcpSrcPort),
    ("tcp.dstport", "Destination port", Kind::Number, Show::Dec, Fact::TcpDstPort),
    ("tcp.port", "Source or destination port", Kind::Number, Show::Dec, Fact::TcpPort),
    ("tcp.stream", "Number of the connection", Kind::Number, Show::Dec, Fact::TcpStream),
    ("tcp.seq_raw", "Sequence number", Kind::Number, Show::Dec, Fact::TcpSeqRaw),
    ("tcp.len", "Bytes of the segment", Kind::Number, Show::Dec, Fact::TcpLen),
    ("tcp.flags.syn", "SYN", Kind::Number, Show::Dec, Fact::TcpSyn),
    ("tcp.flags.fin", "FIN", Kind::Number, Show::Dec, Fact::TcpFin),
    ("tcp.flags.reset", "RST", Kind::Number, Show::Dec, Fact::TcpReset),
    ("tcp.flags.ack", "ACK", Kind::Number, Show::Dec, Fact::TcpAck),
    ("udp.srcport", "Source port", Kind::Number, Show::Dec, Fact::UdpSrcPort),
    ("udp.dstport", "Destination port", Kind::Number, Show::Dec, Fact::UdpDstPort),
    ("udp.port", "Source or destination port", Kind::Number, Show::Dec, Fact::UdpPort),
    ("udp.length", "Bytes of the UDP header and the payload", Kind::Number, Show::Dec, Fact::UdpLength),
    ("kind", "Type of the unit: fpdu, mpa_request, sdp, gap, ...", Kind::Text, Show::Plain, Fact::Kind),
    (
        "direction",
        "0: sent by the endpoint that sent the connection's first frame; 1: sent by its peer",
        Kind::Number,
        Show::Dec,
        Fact::Direction,
    ),
    ("incomplete", "1: bytes of the unit are missing", Kind::Number, Show::Dec, Fact::Incomplete),
    ("len", "Bytes of streaming data, of a gap, or of unparsed data", Kind::Number, Show::Dec, Fact::Len),
    ("payload_len", "Bytes of ULP payload", Kind::Number, Show::Dec, Fact::PayloadLen),
    ("payload", "ULP payload", Kind::Octets, Show::Plain, Fact::Payload),
    ("iwarp_ddp.rsvdulp", "Bytes that DDP reserves for RDMAP", Kind::Octets, Show::Plain, Fact::RsvdUlp),
    ("iwarp_mpa.marker_res", "RESERVED of each marker", Kind::Number, Show::Hex(4), Fact::MarkerRes),
    ("iwarp_mpa.res.not_set0", "A Request with Res other than 0", Kind::Presence, Show::Dec, Fact::ResNotSet0),
    ("iwarp_mpa.rev.not_set1", "A Request with Rev other than 1", Kind::Presence, Show::Dec, Fact::RevNotSet1),
    (
        "iwarp_mpa.reject_bit_responder",
        "A Reply that rejects the connection",
        Kind::Presence,
        Show::Dec,
        Fact::RejectBitResponder,
    ),
    ("iwarp_mpa.bad_length", "PD_Length exceeds 512", Kind::Presence, Show::Dec, Fact::BadLength),
    ("finding.requirement", "The violated requirement", Kind::Text, Show::Plain, Fact::FindingRequirement),
    ("finding.severity", "note, warning or error, in this order", Kind::Number, Show::Name, Fact::FindingSeverity),
    ("finding.summary", "Summary of the requirement", Kind::Text, Show::Plain, Fact::FindingSummary),
    ("finding.expected", "Required behaviour", Kind::Text, Show::Plain, Fact::FindingExpected),
    ("finding.found", "Observed behaviour", Kind::Text, Show::Plain, Fact::FindingFound),
];

static GROUPS: &[(&str, &str, GroupKind)] = &[
    ("frame", "Any frame", GroupKind::Frame),
    ("ip", "IPv4", GroupKind::Ip),
    ("ipv6", "IPv6", GroupKind::Ipv6),
    ("tcp", "TCP", GroupKind::Tcp),
    ("udp", "UDP", GroupKind::Udp),
    ("iwarp_mpa", "MPA: a start-up frame or an FPDU", GroupKind::Mpa),
    ("iwarp_mpa.req", "MPA Request Frame", GroupKind::Request),
    ("iwarp_mpa.rep", "MPA Reply Frame", GroupKind::Reply),
    ("iwarp_mpa.fpdu", "FPDU", GroupKind::Fpdu),
    ("iwarp_mpa.markers", "An FPDU with markers", GroupKind::Markers),
    ("iwarp_ddp_rdmap", "DDP and RDMAP", GroupKind::Ddp),
    ("iwarp_ddp", "DDP header", GroupKind::Ddp),
    ("iwarp_ddp.tagged", "DDP Tagged Segment", GroupKind::Tagged),
    ("iwarp_ddp.untagged", "DDP Untagged Segment", GroupKind::Untagged),
    ("iwarp_rdma", "RDMAP header", GroupKind::Ddp),
    ("iwarp_rdma.rr", "Read Request", GroupKind::ReadRequest),
    ("iwarp_rdma.terminate", "Terminate", GroupKind::Terminate),
    ("iwarp_sdp", "SDP message", GroupKind::Sdp),
    ("iwarp_pm", "SDP port mapper message", GroupKind::PortMapper),
    ("finding", "A finding", GroupKind::Finding),
    ("rpcordma", "RPC-over-RDMA message", GroupKind::UpperLayer("rpcordma")),
    ("rpc", "RPC message in RPC-over-RDMA", GroupKind::UpperLayer("rpc")),
    ("nfs", "NFS message in RPC-over-RDMA", GroupKind::UpperLayer("nfs")),
];

/// Wireshark fields that correspond to only some occurrences of a field of weft. Each entry has the
/// name in Wireshark, the name in weft, and the condition.
static CONDITIONAL_FIELDS: &[(&str, &str, Condition)] = &[
    ("iwarp_mpa.key.req", "iwarp_mpa.key", Condition::Request),
    ("iwarp_mpa.key.rep", "iwarp_mpa.key", Condition::Reply),
    ("iwarp_mpa.crc_check", "iwarp_mpa.crc", Condition::Checked),
    ("iwarp_rdma.term_etype_rdma", "iwarp_rdma.term_etype", Condition::Terminated(0, None)),
    ("iwarp_rdma.term_etype_ddp", "iwarp_rdma.term_etype", Condition::Terminated(1, None)),
    ("iwarp_rdma.term_etype_llp", "iwarp_rdma.term_etype", Condition::Terminated(2, None)),
    ("iwarp_rdma.term_errcode_rdma", "iwarp_rdma.term_errcode", Condition::Terminated(0, None)),
    ("iwarp_rdma.term_errcode_ddp_tagged", "iwarp_rdma.term_errcode", Condition::Terminated(1, Some(1))),
    ("iwarp_rdma.term_errcode_ddp_untagged", "iwarp_rdma.term_errcode", Condition::Terminated(1, Some(2))),
    ("iwarp_rdma.term_errcode_llp", "iwarp_rdma.term_errcode", Condition::Terminated(2, None)),
];

/// Parts of headers in Wireshark that have no value of their own. Each part is present if this
/// field of weft is present.
static PARTS: [(&str, &str, &Field); 8] = [
    ("iwarp_ddp.control_field", "DDP control octet", &ddp::TAGGED_FLAG),
    ("iwarp_rdma.control_field", "RDMAP control octet", &rdmap::OPCODE),
    ("iwarp_rdma.term_ctrl", "Terminate Control Field", &rdmap::TERM_LAYER),
    ("iwarp_rdma.term_hdrct", "HdrCt", &rdmap::TERM_HDRCT_M),
    ("smb_direct", "Message of SMB Direct", &smb::direct::CREDITS_REQUESTED),
    ("smb_direct.negotiate_response", "Negotiate Response", &smb::direct::VERSION_NEGOTIATED),
    ("smb_direct.data_message", "Data Transfer", &smb::direct::DATA_LENGTH),
    ("smb2", "Message of SMB 2 or 3", &smb::smb2::KIND),
];

/// Fields whose format in Wireshark differs from the display format in weft.
static WIRESHARK_FORMATS: &[(&str, Show)] = &[
    ("iwarp_ddp.rsvd", Show::Hex(2)),
    ("iwarp_rdma.rsv", Show::Hex(2)),
    ("iwarp_rdma.opcode", Show::Hex(2)),
    ("iwarp_rdma.inval_stag", Show::Dec),
    ("iwarp_rdma.term_layer", Show::Hex(2)),
    ("iwarp_rdma.term_etype", Show::Hex(2)),
    ("iwarp_rdma.term_ddp_seg_len", Show::HexOctets(2)),
    ("iwarp_rdma.atomic.reserved", Show::Dec),
    ("iwarp_rdma.atomic.remote_stag", Show::Dec),
    ("iwarp_rdma.atomic.remote_tagged_offset", Show::Dec),
    ("iwarp_rdma.atomic.add_data", Show::Dec),
    ("iwarp_rdma.atomic.swap_data", Show::Dec),
    ("iwarp_rdma.atomic.compare_data", Show::Dec),
    ("iwarp_rdma.atomic.original_remote_data_value", Show::Dec),
];

static ALL: LazyLock<HashMap<&'static str, KnownField>> = LazyLock::new(|| {
    let fields = grammar::fields().map(|field| of_field(field.name, field, Source::Grammar(field)));
    let narrower = CONDITIONAL_FIELDS.iter().filter_map(|(name, field, condition)| {
        let field = grammar::fields().find(|known| known.name == *field)?;
        Some(of_field(name, field, Source::When(field, *condition)))
    });
    let parts = PARTS.iter().map(|(name, label, field)| {
        let source = Source::When(field, Condition::Present);
        KnownField { section: field.section, ..plain(name, label, Kind::Presence, Show::Dec, source) }
    });
    let headers = HEADER_FIELDS
        .iter()
        .map(|(name, label, kind, show, field)| plain(name, label, *kind, *show, Source::Header(*field)));
    let columns = COLUMNS
        .iter()
        .map(|(name, label, column)| plain(name, label, Kind::Text, Show::Plain, Source::Column(*column)));
    let displayed = [plain(
        "frame.time_delta_displayed",
        "Seconds since the previous frame that passes -Y (only with -T)",
        Kind::Time,
        Show::Plain,
        Source::Column(Column::DeltaDisplayed),
    )];
    let sends = SEND_FIELDS
        .iter()
        .map(|(name, label, kind, show, field)| plain(name, label, *kind, *show, Source::Send(*field)));
    let wireshark = parts.chain(headers).chain(columns).chain(displayed).chain(sends);
    let groups = GROUPS
        .iter()
        .map(|(name, label, group)| plain(name, label, Kind::Presence, Show::Plain, Source::Group(*group)));
    let facts = FACTS.iter().map(|(name, label, kind, show, fact)| KnownField {
        names: (*fact == Fact::FindingSeverity).then_some(severity_name as fn(u64) -> _),
        words: if *fact == Fact::Kind { KINDS } else { &[] },
        ..plain(name, label, *kind, *show, Source::Fact(*fact))
    });
    fields.chain(narrower).chain(wireshark).chain(groups).chain(facts).map(|known| (known.name, known)).collect()
});

fn plain(name: &'static str, label: &'static str, kind: Kind, show: Show, source: Source) -> KnownField {
    KnownField { name, label, section: "", kind, show, names: None, words: &[], source }
}

fn of_field(name: &'static str, field: &'static Field, source: Source) -> KnownField {
    let kind = match field.base {
        Base::Dec | Base::Hex(_) | Base::Flag => Kind::Number,
        Base::Octets => Kind::Octets,
        Base::Text if field.name.ends_with("ipaddr") => Kind::Address,
        Base::Text => Kind::Text,
    };
    let written = WIRESHARK_FORMATS.iter().find(|(name, _)| *name == field.name).map(|(_, show)| *show);
    let show = written.unwrap_or(match field.base {
        Base::Dec | Base::Flag => Show::Dec,
        Base::Hex(digits) => Show::Hex(digits),
        Base::Octets | Base::Text => Show::Plain,
    });
    let (section, names, words) = (field.section, field.names, words(field.name));
    KnownField { section, names, words, ..plain(name, field.label, kind, show, source) }
}

/// The text values of the field `kind`.
static KINDS: &[&str] =
    &["mpa_request", "mpa_reply", "fpdu", "sdp", "sdp_pm", "streaming", "gap", "unparsed", "finding"];

/// The text values of a field with a fixed set of text values; empty for other fields.
fn words(field: &str) -> &'static [&'static str] {
    match field {
        "crc_status" => &["good", "bad", "unchecked", "truncated", "absent"],
        "marker_status" => &["none", "good", "bad_value", "misplaced"],
        "iwarp_sdp.carrier" => &["streaming", "private_data", "send"],
        "weft.smb2.kind" => &["request", "response", "encrypted", "compressed"],
        "rpc.carrier" => &["send", "read_chunk", "reply_chunk"],
        "rpc.decoded" => &["complete", "missing", "malformed", "unknown"],
        _ => &[],
    }
}

fn severity_name(severity: u64) -> Option<&'static str> {
    nth_name(&["note", "warning", "error"], severity)
}

/// The field or protocol with the name `name`.
#[must_use]
pub fn known(name: &str) -> Option<&'static KnownField> {
    ALL.get(name)
}

/// All fields and protocols, ordered by name.
#[must_use]
pub fn all() -> Vec<&'static KnownField> {
    let mut all: Vec<_> = ALL.values().collect();
    all.sort_by_key(|known| known.name);
    all
}

/// The known name that is most similar to `name`; `None` if no name is similar. Known names that
/// continue `name` come first: `tcp.hdr_len` for `tcp.hdr`.
#[must_use]
pub fn nearest(name: &str) -> Option<&'static str> {
    let name: String = name.chars().take(80).collect::<String>().to_lowercase();
    let likely = |known: &str| {
        // If `name` lacks only the part before the last dot, this counts as one wrong letter.
        if known.rsplit_once('.').is_some_and(|(_, last)| last == name) { 1 } else { distance(&name, known) }
    };
    // Of equally similar names, one of iWARP comes first.
    let rank = |known: &'static str| {
        (!is_beginning(&name, known), likely(known), !known.starts_with("iwarp"), known.len(), known)
    };
    let (is_other, slips, _, _, best) = ALL.keys().copied().map(rank).min()?;
    (!is_other || slips <= 2.max(name.chars().count() / 3)).then_some(best)
}
