//! Collects the requested fields of units, frames and findings. In units, a grammar visitor skips
//! all fields that are not requested.

use std::net::SocketAddr;
use std::ops::Range;

use crate::calendar::difference;
use crate::finding::Finding;
use crate::grammar::field::FieldSet;
use crate::grammar::{self, Field, Group, Value, Visitor};
use crate::packet::TransportKind;
use crate::source::{Comments, Names, TimeResolution};
use crate::stream_id::StreamId;
use crate::unit::{CrcStatus, Kind, Unit};

use super::column::{Column, ColumnSource, OtherFrame, protocol_of};
use super::frame_facts::FrameFacts;
use super::header_field::HeaderField;
use super::known::{Condition, Fact, GroupKind, KnownField, Source};
use super::send_field::SendField;
use super::time_format::TimeFormat;
use super::unit_facts;
use super::values::{FieldValue, Slot, Values};

/// The requested fields: the fields of a filter, and the columns of an output.
#[derive(Debug, Clone, Default)]
pub struct WantedFields {
    slots: Vec<&'static KnownField>,
    fields: Vec<(&'static Field, Slot, Option<Condition>)>,
    /// The fields that the grammar must report.
    set: FieldSet,
    groups: Vec<(GroupKind, Slot)>,
    unit_facts: Vec<(Fact, Slot)>,
    frame_facts: Vec<(Fact, Slot)>,
    packet_facts: Vec<(Fact, Slot)>,
    /// Whether a requested fact or group depends on packets.
    packets: bool,
    finding_facts: Vec<(Fact, Slot)>,
    pub(super) headers: Vec<(HeaderField, Slot)>,
    columns: Vec<(Column, Slot)>,
    pub(super) sends: Vec<(SendField, Slot)>,
    /// Whether units must be parsed to find the values of the requested fields.
    walks: bool,
    /// Whether units must be parsed completely, because a requested group or fact depends on all
    /// octets of the unit.
    walks_all: bool,
    comments: Comments,
    /// The names and the form of times in columns.
    pub(super) names: Names,
    time: TimeFormat,
    /// The resolution of the times of the frames.
    resolution: TimeResolution,
    /// Whether TCP sequence numbers stay as they are.
    pub(super) has_absolute_sequence_numbers: bool,
}

impl WantedFields {
    /// Requests a field. Returns its index.
    pub fn add(&mut self, known: &'static KnownField) -> Slot {
        if let Some(at) = self.slots.iter().position(|slot| slot.name == known.name) {
            return Slot(at as u16);
        }
        let slot = Slot(u16::try_from(self.slots.len()).unwrap_or(u16::MAX));
        self.slots.push(known);
        match known.source {
            Source::Grammar(field) => {
                self.fields.push((field, slot, None));
                self.set.add(field);
            }
            Source::When(field, condition) => {
                self.fields.push((field, slot, Some(condition)));
                self.set.add(field);
                if matches!(condition, Condition::Terminated(..)) {
                    self.set.add(&grammar::rdmap::TERM_LAYER);
                    self.set.add(&grammar::rdmap::TERM_ETYPE);
                }
            }
            Source::Group(group) => {
                self.groups.push((group, slot));
                // These groups are in the DDP header, or after the DDP header, or after the other
                // fields of the unit.
                self.walks_all |= matches!(
                    group,
                    GroupKind::Ddp
                        | GroupKind::Tagged
                        | GroupKind::Untagged
                        | GroupKind::ReadRequest
                        | GroupKind::Terminate
                        | GroupKind::UpperLayer(_)
                );
                self.packets |= matches!(group, GroupKind::Ip | GroupKind::Ipv6 | GroupKind::Tcp | GroupKind::Udp);
            }
            Source::Fact(fact) if fact >= Fact::FindingRequirement => self.finding_facts.push((fact, slot)),
            Source::Fact(fact) if fact >= Fact::Kind => {
                self.unit_facts.push((fact, slot));
                self.walks_all |= matches!(fact, Fact::Payload | Fact::PayloadLen);
            }
            Source::Fact(fact) if fact >= Fact::IpSrc => {
                self.packet_facts.push((fact, slot));
                self.packets = true;
            }
            Source::Fact(fact) => self.frame_facts.push((fact, slot)),
            Source::Header(field) => self.headers.push((field, slot)),
            Source::Column(column) => self.columns.push((column, slot)),
            Source::Send(field) => self.sends.push((field, slot)),
        }
        self.walks = self.walks_all || !self.fields.is_empty();
        slot
    }

    /// Sets the comments of the frames.
    pub fn set_comments(&mut self, comments: Comments) {
        self.comments = comments;
    }

    /// Sets the names that columns show instead of addresses.
    pub fn set_names(&mut self, names: Names) {
        self.names = names;
    }

    /// Sets the form of times in columns.
    pub fn set_time_format(&mut self, time: TimeFormat) {
        self.time = time;
    }

    /// Sets the resolution of the times of the frames, for columns.
    pub fn set_time_resolution(&mut self, resolution: TimeResolution) {
        self.resolution = resolution;
    }

    /// From now on, `tcp.seq`, `tcp.nxtseq` and `tcp.ack` are the numbers in the header.
    pub fn set_absolute_sequence_numbers(&mut self) {
        self.has_absolute_sequence_numbers = true;
    }

    /// Returns whether a requested field needs a [`FieldReader`](super::FieldReader).
    #[must_use]
    #[inline]
    pub fn needs_reader(&self) -> bool {
        !self.headers.is_empty() || !self.sends.is_empty() || !self.columns.is_empty()
    }

    /// Returns whether a requested field is a column. Columns need the summaries of units.
    #[must_use]
    #[inline]
    pub fn columns(&self) -> bool {
        !self.columns.is_empty()
    }

    /// Returns whether a requested field belongs to the earlier segments of a Send, but is known
    /// only when the Send is complete.
    #[must_use]
    #[inline]
    pub fn awaits_sends(&self) -> bool {
        self.sends.iter().any(|(field, _)| *field == SendField::ReassembledIn)
    }

    /// The name of a requested field that only an output with one record for each frame can show;
    /// `None` if there is no such field.
    #[must_use]
    pub fn field_of_frames(&self) -> Option<&'static str> {
        let is_of_frames = |known: &&&KnownField| {
            matches!(known.source, Source::Column(Column::DeltaDisplayed) | Source::Send(SendField::ReassembledIn))
        };
        self.slots.iter().find(is_of_frames).map(|known| known.name)
    }

    /// Returns whether a filter of the requested fields can select a single TCP segment or UDP
    /// datagram without a unit. This is the case if all of them are fields of frames, and at least
    /// one of them is not an address, a port, a connection or a protocol.
    #[must_use]
    pub fn selects_segments(&self) -> bool {
        let mut is_about_segments = false;
        for known in &self.slots {
            match known.source {
                Source::Fact(fact) if fact >= Fact::Kind => return false,
                Source::Fact(fact) if fact.is_endpoint() => {}
                Source::Fact(_) | Source::Header(_) => is_about_segments = true,
                Source::Group(GroupKind::Frame | GroupKind::Ip | GroupKind::Ipv6 | GroupKind::Tcp | GroupKind::Udp) => {
                }
                Source::Grammar(_) | Source::When(..) | Source::Group(_) | Source::Column(_) | Source::Send(_) => {
                    return false;
                }
            }
        }
        is_about_segments
    }

    /// Returns whether a requested field depends on findings.
    #[must_use]
    pub fn findings(&self) -> bool {
        !self.finding_facts.is_empty() || self.groups.iter().any(|(group, _)| *group == GroupKind::Finding)
    }

    /// Returns whether a requested field needs the monitor. The monitor reports findings and the
    /// state of connections.
    #[must_use]
    pub fn monitor(&self) -> bool {
        let has_upper_layer = self.groups.iter().any(|(group, _)| matches!(group, GroupKind::UpperLayer(_)));
        let has_state = has_upper_layer || grammar::fields_of_context().any(|field| self.set.has(field));
        self.findings() || self.columns() || has_state
    }

    /// Adds the requested groups that are present.
    fn add_groups(&self, values: &mut Values, is_present: impl Fn(GroupKind) -> bool) {
        for (_, slot) in self.groups.iter().filter(|(group, _)| is_present(*group)) {
            values.add(*slot, FieldValue::Present);
        }
    }

    /// Adds the values of the fields of a unit.
    pub fn unit(&self, unit: &Unit<'_>, values: &mut Values) {
        self.add_groups(values, |group| is_kind(group, &unit.kind));
        let payload = if self.walks {
            let checked =
                matches!(&unit.kind, Kind::Fpdu(fpdu) if matches!(fpdu.crc_status, CrcStatus::Good | CrcStatus::Bad));
            let collector =
                Collector { wanted: self, values, left: self.set, checked, request: false, layer: None, etype: None };
            grammar::walk(unit, &mut { collector })
        } else {
            None
        };
        for (fact, slot) in &self.unit_facts {
            let value = match (fact, &unit.kind, payload) {
                (fact, ..) if *fact >= Fact::RsvdUlp => {
                    unit_facts::add(*fact, unit, *slot, values);
                    continue;
                }
                (Fact::Kind, kind, _) => FieldValue::StaticText(kind.name()),
                (Fact::Direction, ..) => FieldValue::Number(u64::from(unit.direction)),
                (Fact::Incomplete, ..) if unit.incomplete => FieldValue::Number(1),
                (Fact::Len, Kind::Streaming { len, .. } | Kind::Gap { len } | Kind::Unparsed { len }, _) => {
                    FieldValue::Number(*len)
                }
                (Fact::PayloadLen, _, Some(payload)) => FieldValue::Number(payload.len() as u64),
                (Fact::Payload, _, Some(payload)) => {
                    values.add_value(*slot, Value::Octets(payload.all().unwrap_or_default()));
                    continue;
                }
                _ => continue,
            };
            values.add(*slot, value);
        }
    }

    /// Adds the values of the frame that completed `unit`, as far as `unit` shows them. Use this
    /// method if the facts about the frame are no longer known.
    pub fn frame_of(&self, unit: &Unit<'_>, origin: u64, values: &mut Values) {
        let facts = FrameFacts { number: unit.frame, time: unit.time, origin, ..FrameFacts::default() };
        self.frame_itself(&facts, values);
        self.ends(unit.ends.src, unit.ends.dst, unit.stream, values);
    }

    /// Adds the values of a frame.
    pub fn frame(&self, facts: &FrameFacts, values: &mut Values) {
        self.frame_itself(facts, values);
        let Some(packet) = facts.packet.as_ref().filter(|_| self.packets) else { return };
        self.ends(packet.src, packet.dst, packet.transport.stream(), values);
        for (fact, slot) in &self.packet_facts {
            let value = match (fact, packet.transport) {
                (Fact::TcpLen, TransportKind::Tcp { .. }) => u64::from(packet.payload_len),
                (Fact::UdpLength, TransportKind::Udp) => u64::from(packet.payload_len) + 8,
                (Fact::TcpSeqRaw, TransportKind::Tcp { seq, .. }) => u64::from(seq),
                (Fact::TcpSyn, TransportKind::Tcp { syn, .. }) => u64::from(syn),
                (Fact::TcpFin, TransportKind::Tcp { fin, .. }) => u64::from(fin),
                (Fact::TcpReset, TransportKind::Tcp { rst, .. }) => u64::from(rst),
                (Fact::TcpAck, TransportKind::Tcp { ack, .. }) => u64::from(ack),
                _ => continue,
            };
            values.add(*slot, FieldValue::Number(value));
        }
    }

    fn frame_itself(&self, facts: &FrameFacts, values: &mut Values) {
        self.add_groups(values, |group| group == GroupKind::Frame);
        for (fact, slot) in &self.frame_facts {
            let value = match (fact, facts.len) {
                (Fact::FrameNumber, _) => FieldValue::Number(facts.number.into()),
                (Fact::FrameTime | Fact::FrameTimeEpoch, _) => FieldValue::Time(facts.time),
                (Fact::FrameTimeDelta, Some(_)) => {
                    FieldValue::Difference(difference(facts.time, facts.previous.unwrap_or(facts.time)))
                }
                (Fact::FrameTimeRelative, _) => FieldValue::Time(facts.time.saturating_sub(facts.origin)),
                (Fact::FrameLen, Some((wire, _))) => FieldValue::Number(u64::from(wire)),
                (Fact::FrameCapLen, Some((_, captured))) => FieldValue::Number(u64::from(captured)),
                (Fact::FrameComment, _) => {
                    for comment in self.comments.of(facts.number) {
                        values.add_octets(*slot, comment.as_bytes());
                    }
                    continue;
                }
                _ => continue,
            };
            values.add(*slot, value);
        }
    }

    fn ends(&self, src: SocketAddr, dst: SocketAddr, stream: Option<StreamId>, values: &mut Values) {
        let (v4, tcp) = (src.is_ipv4(), stream.is_some());
        self.add_groups(values, |group| match group {
            GroupKind::Ip => v4,
            GroupKind::Ipv6 => !v4,
            GroupKind::Tcp => tcp,
            GroupKind::Udp => !tcp,
            _ => false,
        });
        let address = |end: SocketAddr| FieldValue::Address(end.ip());
        let port = |end: SocketAddr| FieldValue::Number(u64::from(end.port()));
        for (fact, slot) in &self.packet_facts {
            let (one, two) = match fact {
                Fact::IpSrc if v4 => (address(src), None),
                Fact::IpDst if v4 => (address(dst), None),
                Fact::IpAddr if v4 => (address(src), Some(address(dst))),
                Fact::Ipv6Src if !v4 => (address(src), None),
                Fact::Ipv6Dst if !v4 => (address(dst), None),
                Fact::Ipv6Addr if !v4 => (address(src), Some(address(dst))),
                Fact::TcpSrcPort if tcp => (port(src), None),
                Fact::TcpDstPort if tcp => (port(dst), None),
                Fact::TcpPort if tcp => (port(src), Some(port(dst))),
                Fact::UdpSrcPort if !tcp => (port(src), None),
                Fact::UdpDstPort if !tcp => (port(dst), None),
                Fact::UdpPort if !tcp => (port(src), Some(port(dst))),
                Fact::TcpStream if tcp => (FieldValue::Number(stream.map_or(0, u64::from)), None),
                _ => continue,
            };
            values.add(*slot, one);
            if let Some(two) = two {
                values.add(*slot, two);
            }
        }
    }

    /// Adds the columns of a frame. Call this when all units of the frame are known. `displayed` is
    /// the time of the previous frame that passed the filter, and `summaries` are the summaries of
    /// the units of the frame.
    pub(crate) fn columns_of_frame(
        &self,
        facts: &FrameFacts,
        displayed: Option<u64>,
        other: Option<&OtherFrame>,
        (protocol, info): (Option<&'static str>, String),
        values: &mut Values,
    ) {
        let (names, time, resolution) = (&self.names, self.time, &self.resolution);
        let source = ColumnSource { facts, displayed, other, ends: None, protocol, info, names, time, resolution };
        self.add_columns(&source, values);
    }

    /// Adds the columns of a unit that is judged alone, without the other units of its frame.
    /// `facts` are the facts about the frame, if they are known. `summary` returns the summary of
    /// the unit.
    pub(super) fn columns_of_unit(
        &self,
        unit: &Unit<'_>,
        (facts, origin): (Option<&FrameFacts>, u64),
        summary: impl FnOnce() -> String,
        values: &mut Values,
    ) {
        if self.columns.is_empty() {
            return;
        }
        let of_unit = FrameFacts { number: unit.frame, time: unit.time, origin, ..FrameFacts::default() };
        let (names, time, resolution, info) = (&self.names, self.time, &self.resolution, summary());
        let (ends, protocol) = (Some((unit.ends.src.ip(), unit.ends.dst.ip())), protocol_of(unit));
        // The octets of a unit outside MPA are octets of TCP.
        let protocol = Some(protocol.unwrap_or("TCP"));
        let facts = facts.unwrap_or(&of_unit);
        let source =
            ColumnSource { facts, displayed: None, other: None, ends, protocol, info, names, time, resolution };
        self.add_columns(&source, values);
    }

    fn add_columns(&self, source: &ColumnSource<'_>, values: &mut Values) {
        for (column, slot) in &self.columns {
            if *column == Column::DeltaDisplayed {
                let FrameFacts { time, len, .. } = *source.facts;
                if len.is_some() {
                    let since = difference(time, source.displayed.unwrap_or(time));
                    values.add(*slot, FieldValue::Difference(since));
                }
                continue;
            }
            let text = source.text(*column);
            if !text.is_empty() {
                values.add_octets(*slot, text.as_bytes());
            }
        }
    }

    /// Adds the values of a finding.
    pub fn finding(&self, finding: &Finding, values: &mut Values) {
        self.add_groups(values, |group| group == GroupKind::Finding);
        for (fact, slot) in &self.finding_facts {
            match fact {
                Fact::FindingRequirement => values.add(*slot, FieldValue::StaticText(finding.requirement.as_str())),
                Fact::FindingSeverity => values.add(*slot, FieldValue::Number(finding.severity as u64)),
                Fact::FindingSummary => values.add(*slot, FieldValue::StaticText(finding.requirement.row().summary)),
                Fact::FindingExpected => values.add_octets(*slot, finding.expected.as_bytes()),
                Fact::FindingFound => values.add_octets(*slot, finding.found.as_bytes()),
                _ => {}
            }
        }
    }

    /// Adds the values of the frame and of the connection of `finding`, as far as `finding` shows
    /// them. Use this method if the facts about the frame are no longer known.
    pub fn frame_of_finding(&self, finding: &Finding, values: &mut Values) {
        for (fact, slot) in self.frame_facts.iter().chain(&self.packet_facts) {
            match (fact, finding.stream) {
                (Fact::FrameNumber, _) => values.add(*slot, FieldValue::Number(finding.frame.into())),
                (Fact::TcpStream, Some(stream)) => values.add(*slot, FieldValue::Number(u64::from(stream))),
                _ => {}
            }
        }
        for (fact, slot) in &self.unit_facts {
            match fact {
                Fact::Kind => values.add(*slot, FieldValue::StaticText("finding")),
                Fact::Direction => values.add(*slot, FieldValue::Number(u64::from(finding.direction))),
                _ => {}
            }
        }
    }
}

fn is_kind(group: GroupKind, kind: &Kind<'_>) -> bool {
    use weft_core::wire::mpa::StartupKind;
    match (group, kind) {
        (GroupKind::Mpa, Kind::Startup(..) | Kind::Fpdu(_))
        | (GroupKind::Fpdu, Kind::Fpdu(_))
        | (GroupKind::Sdp, Kind::Sdp(..))
        | (GroupKind::PortMapper, Kind::PortMapper(_))
        | (GroupKind::Request, Kind::Startup(StartupKind::Request, _))
        | (GroupKind::Reply, Kind::Startup(StartupKind::Reply, _)) => true,
        (GroupKind::Markers, Kind::Fpdu(fpdu)) => !fpdu.markers.is_empty(),
        _ => false,
    }
}

struct Collector<'w> {
    wanted: &'w WantedFields,
    values: &'w mut Values,
    /// Requested fields that have no value yet.
    left: FieldSet,
    checked: bool,
    request: bool,
    layer: Option<u64>,
    etype: Option<u64>,
}

impl Visitor for Collector<'_> {
    fn enter(&mut self, group: &'static Group, _: Range<usize>) {
        use grammar::{ddp, mpa, rdmap};
        self.request |= std::ptr::eq(group, &mpa::REQUEST);
        if !self.wanted.walks_all {
            return;
        }
        let (tagged, untagged) = (std::ptr::eq(group, &ddp::TAGGED), std::ptr::eq(group, &ddp::UNTAGGED));
        self.wanted.add_groups(self.values, |wanted| match wanted {
            GroupKind::Ddp => tagged || untagged,
            GroupKind::Tagged => tagged,
            GroupKind::Untagged => untagged,
            GroupKind::ReadRequest => std::ptr::eq(group, &rdmap::READ_REQUEST),
            GroupKind::Terminate => std::ptr::eq(group, &rdmap::TERMINATE),
            GroupKind::UpperLayer(name) => group.name == name,
            _ => false,
        });
    }

    fn is_satisfied(&self) -> bool {
        !self.wanted.walks_all && self.left.is_empty()
    }

    #[inline(always)] // because most fields are not requested
    fn field(&mut self, field: &'static Field, value: Value<'_>, _: Range<usize>) {
        if self.wanted.set.has(field) {
            self.take(field, value);
        }
    }
}

impl Collector<'_> {
    /// Adds the value of a field for each requested name of the field.
    fn take(&mut self, field: &'static Field, value: Value<'_>) {
        self.left.remove(field);
        for (wanted, slot, condition) in &self.wanted.fields {
            if !std::ptr::eq(*wanted, field) {
                continue;
            }
            let there = match condition {
                None => true,
                Some(Condition::Request) => self.request,
                Some(Condition::Reply) => !self.request,
                Some(Condition::Checked) => self.checked,
                Some(Condition::Terminated(layer, etype)) => {
                    self.layer == Some(*layer) && (etype.is_none() || *etype == self.etype)
                }
                Some(Condition::Present) => {
                    self.values.add(*slot, FieldValue::Present);
                    false
                }
            };
            if there {
                self.values.add_value(*slot, value);
            }
        }
        if let Value::Uint(value) = value {
            if std::ptr::eq(field, &grammar::rdmap::TERM_LAYER) {
                self.layer = Some(value);
            } else if std::ptr::eq(field, &grammar::rdmap::TERM_ETYPE) {
                self.etype = Some(value);
            }
        }
    }
}
