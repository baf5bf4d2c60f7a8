//! Counts the frames, units and findings of a capture, and formats the counts as text. A unit is a
//! message, or a part of a connection that weft cannot decode.

use weft_core::requirement::Severity;
use weft_dissector::output::text::counted;
use weft_dissector::unit::{CrcStatus, Kind, MarkerStatus, Unit};
use weft_dissector::{Finding, Packet, TransportKind};

/// The counts of a capture.
#[derive(Debug, Clone, Default)]
pub(crate) struct Counts {
    pub(crate) frames: u64,
    streams: u32,
    startups: u64,
    fpdus: u64,
    crc: [u64; 5],
    wrong_markers: u64,
    sdp: u64,
    port_mapper: u64,
    incomplete: u64,
    gap_octets: u64,
    unparsed_octets: u64,
    findings: [u64; 3],
}

impl Counts {
    /// Counts the connection of a TCP segment.
    pub(crate) fn packet(&mut self, packet: &Packet) {
        if let TransportKind::Tcp { stream, .. } = packet.transport {
            self.streams = self.streams.max(stream.next().into());
        }
    }

    /// Counts a unit.
    pub(crate) fn unit(&mut self, unit: &Unit<'_>) {
        self.count(CountedItem::unit(unit));
    }

    /// Counts a finding.
    pub(crate) fn finding(&mut self, finding: &Finding) {
        self.count(CountedItem::finding(finding));
    }

    /// Counts a unit or finding, of which only the [`CountedItem`] values are known.
    #[inline]
    pub(crate) fn count(&mut self, counted: CountedItem) {
        self.incomplete += u64::from(counted.incomplete);
        match counted.kind {
            ItemKind::Startup => self.startups += 1,
            ItemKind::Fpdu(crc, markers) => {
                self.fpdus += 1;
                self.crc[crc as usize] += 1;
                self.wrong_markers += u64::from(matches!(markers, MarkerStatus::BadValue | MarkerStatus::Misplaced));
            }
            ItemKind::Sdp => self.sdp += 1,
            ItemKind::PortMapper => self.port_mapper += 1,
            ItemKind::Streaming => {}
            ItemKind::Gap(len) => self.gap_octets += len,
            ItemKind::Unparsed(len) => self.unparsed_octets += len,
            ItemKind::Finding(severity) => self.findings[severity as usize] += 1,
        }
    }
}

/// The values of a unit or finding that matter for the counts.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CountedItem {
    kind: ItemKind,
    incomplete: bool,
}

#[derive(Debug, Clone, Copy)]
enum ItemKind {
    Startup,
    Fpdu(CrcStatus, MarkerStatus),
    Sdp,
    PortMapper,
    Streaming,
    Gap(u64),
    Unparsed(u64),
    Finding(Severity),
}

impl CountedItem {
    /// Returns the values of a unit.
    #[inline]
    pub(crate) fn unit(unit: &Unit<'_>) -> Self {
        let kind = match &unit.kind {
            Kind::Startup(..) => ItemKind::Startup,
            Kind::Fpdu(fpdu) => ItemKind::Fpdu(fpdu.crc_status, fpdu.marker_status),
            Kind::Sdp(..) => ItemKind::Sdp,
            Kind::PortMapper(_) => ItemKind::PortMapper,
            Kind::Streaming { .. } => ItemKind::Streaming,
            Kind::Gap { len } => ItemKind::Gap(*len),
            Kind::Unparsed { len } => ItemKind::Unparsed(*len),
        };
        CountedItem { kind, incomplete: unit.incomplete }
    }

    /// Returns the values of a finding.
    pub(crate) fn finding(finding: &Finding) -> Self {
        CountedItem { kind: ItemKind::Finding(finding.severity), incomplete: false }
    }
}

impl Counts {
    /// Adds the numbers of units and findings in `other`.
    pub(crate) fn add(&mut self, other: &Counts) {
        self.startups += other.startups;
        self.fpdus += other.fpdus;
        self.crc.iter_mut().zip(other.crc).for_each(|(own, other)| *own += other);
        self.wrong_markers += other.wrong_markers;
        self.sdp += other.sdp;
        self.port_mapper += other.port_mapper;
        self.incomplete += other.incomplete;
        self.gap_octets += other.gap_octets;
        self.unparsed_octets += other.unparsed_octets;
        self.findings.iter_mut().zip(other.findings).for_each(|(own, other)| *own += other);
    }

    /// Formats the counts as one line. `filtered` means that units and findings are counted only if
    /// they passed the filter. `judged` means that the command looks for findings.
    pub(crate) fn summary(&self, filtered: bool, judged: bool) -> String {
        let connections = counted(u64::from(self.streams), "TCP connection");
        let between = if filtered { "; passing the filter: " } else { ", " };
        let mut text = format!(
            "{}, {connections}{between}{}, {}: CRC {} good",
            counted(self.frames, "frame"),
            counted(self.startups, "start-up frame"),
            counted(self.fpdus, "FPDU"),
            self.crc[CrcStatus::Good as usize]
        );
        for (status, name) in [
            (CrcStatus::Bad, "bad"),
            (CrcStatus::Unchecked, "unchecked"),
            (CrcStatus::Truncated, "truncated"),
            (CrcStatus::Absent, "absent"),
        ] {
            let count = self.crc[status as usize];
            if count > 0 || status == CrcStatus::Bad {
                text += &format!(", {count} {name}");
            }
        }
        for (count, what, so) in [
            (self.wrong_markers, "FPDU", " with wrong markers"),
            (self.sdp, "SDP message", ""),
            (self.port_mapper, "port mapper message", ""),
            (self.incomplete, "unit", " incomplete"),
            (self.gap_octets, "byte", " not captured"),
            (self.unparsed_octets, "byte", " unparsed"),
        ] {
            if count > 0 {
                text += &format!("; {}{so}", counted(count, what));
            }
        }
        if judged {
            let found = |severity: Severity, name| counted(self.findings[severity as usize], name);
            let (errors, warnings) = (found(Severity::Error, "error"), found(Severity::Warning, "warning"));
            text += &format!("; findings: {errors}, {warnings}, {}", found(Severity::Note, "note"));
        }
        text
    }

    /// Formats the message for a capture without iWARP and SDP. `resets` is the number of refused or
    /// reset connections.
    pub(crate) fn no_messages(&self, resets: u64) -> String {
        let (frames, connections) = (counted(self.frames, "frame"), counted(u64::from(self.streams), "TCP connection"));
        let reset = match (resets, self.streams) {
            (0, _) => String::new(),
            (_, 1) => ", which was reset".to_owned(),
            _ => format!(", {resets} of them reset"),
        };
        format!("the capture has no iWARP or SDP: {frames}, {connections}{reset}")
    }
}
