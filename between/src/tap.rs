//! A tap: the monitor of one side, and the capture of this side.
//!
//! A tap records the frames that its side sent, before an impairment, and the frames that its side
//! received, after the impairment. The monitor of the tap therefore judges the traffic as this side
//! sent and received it. `attribution` compares the findings of both taps.

mod received;
mod watched;

use std::collections::{BTreeMap, HashMap};
use std::io::{self, Write};
use std::net::SocketAddr;

use serde::Serialize;
use weft_core::RequirementId;
use weft_core::requirement::Severity;
use weft_core::wire::rdmap::Opcode;
use weft_dissector::link_type::ETHERNET;
use weft_dissector::output::pcapng;
use weft_dissector::output::pcapng::{PacketBlock, PacketDirection};
use weft_dissector::output::senders::Senders;
use weft_dissector::parse::{CrcStatus, Fpdu, Kind};
use weft_dissector::source::Frame;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, FrameNumber, Packet, Sink, StreamId, TransportKind};

use crate::aim::{self, PartInFrame};
use crate::bridge::FaultInFrame;
use crate::side::Side;
use watched::WatchedBytes;

/// Maximum number of different findings of one tap. A finding is different if its connection, its
/// direction or its requirement is different.
const MAX_FINDINGS: usize = 10_000;
/// Maximum number of connections with stored addresses.
const MAX_CONNECTIONS: usize = 65_536;

/// A direction of a connection, with the same value in both taps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
pub struct Flow {
    /// The endpoint that sends.
    pub sender: SocketAddr,
    /// The endpoint that receives.
    pub receiver: SocketAddr,
    /// Number of earlier connections between the two addresses.
    pub earlier: u32,
}

/// A requirement that one endpoint of a connection violates, as observed at a tap.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Violation {
    /// The side of the endpoint that violates the requirement.
    pub subject: Side,
    /// The direction in which this endpoint sends.
    pub flow: Flow,
    /// The requirement.
    pub requirement: RequirementId,
    /// The severity.
    pub severity: Severity,
    /// The first frame that shows a violation, in the capture of the tap.
    pub frame: FrameNumber,
    /// Number of findings.
    pub count: u64,
    /// The required behaviour.
    pub expected: String,
    /// The observed behaviour.
    pub found: String,
}

/// The unit of the protocol that contains a corrupted byte, as the receiver got it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum CorruptedUnit {
    /// An FPDU whose CRC is wrong, so that the receiver can detect the change.
    DetectableFpdu,
    /// An FPDU of a connection without CRC. The receiver cannot detect the change.
    UndetectableFpdu,
    /// An FPDU whose CRC is correct, in spite of the change.
    CorrectFpdu,
    /// A start-up frame. Start-up frames have no CRC.
    Startup,
    /// Bytes in which no complete FPDU was found, although the connection uses FPDUs. The change
    /// hides where the FPDU ends.
    BrokenFraming,
    /// No unit, because the receiver already had the byte. The segment was a superfluous
    /// retransmission.
    Repeated,
    /// Bytes of a connection without FPDUs.
    Other,
}

/// A corrupted byte that the receiver got.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Corruption {
    /// Number of the fault.
    pub fault: u32,
    /// The frame, in the capture of the receiver's side.
    pub frame: FrameNumber,
    /// The direction of the corrupted segment.
    pub flow: Option<Flow>,
    /// The unit that contains the byte.
    pub unit: CorruptedUnit,
}

/// How an endpoint ended a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum End {
    /// It sent a Terminate message.
    Terminate,
    /// It sent a FIN.
    Fin,
    /// It sent a reset.
    Reset,
}

/// The results of a tap.
#[derive(Debug, Default)]
pub struct Observed {
    /// The violations, by their first frame.
    pub violations: Vec<Violation>,
    /// Number of findings that were not stored, because there are too many different findings.
    pub omitted: u64,
    /// The corrupted bytes that the side received.
    pub corruptions: Vec<Corruption>,
    /// How each sender ended its direction of a connection, and the first frame that shows this. A
    /// Terminate counts before a FIN.
    pub ends: BTreeMap<Flow, (FrameNumber, End)>,
    /// Number of connections.
    pub connections: u64,
    /// Number of FPDUs.
    pub fpdus: u64,
    /// The remarks of the dissector, for example about dropped state.
    pub remarks: Vec<String>,
}

/// Receives the results of the dissector.
#[derive(Debug, Default)]
struct Observer {
    /// The side that sent the current frame.
    from: Option<Side>,
    /// Number of the current frame.
    frame: FrameNumber,
    /// The parts of the FPDUs that end in the current frame; `None` if no fault aims at a part.
    parts: Option<Vec<PartInFrame>>,
    senders: Senders,
    next: StreamId,
    /// The side of each sender.
    sides: HashMap<SocketAddr, Side>,
    /// For each connection, the endpoint that sent the first frame, its peer, and the number of
    /// earlier connections between them.
    connections: BTreeMap<StreamId, Flow>,
    pairs: HashMap<(SocketAddr, SocketAddr), u32>,
    found: BTreeMap<(Side, Flow, RequirementId), Violation>,
    watched: WatchedBytes,
    observed: Observed,
}

impl Observer {
    /// The direction of a connection, from its number and the number of the direction.
    fn flow(&self, stream: StreamId, direction: u8) -> Option<Flow> {
        let first = *self.connections.get(&stream)?;
        let Flow { sender, receiver, earlier } = first;
        Some(if direction == 0 { first } else { Flow { sender: receiver, receiver: sender, earlier } })
    }

    fn connection(&mut self, stream: StreamId, packet: &Packet) {
        if stream < self.next {
            return;
        }
        self.next = stream.next();
        self.observed.connections += 1;
        self.side_of(packet);
        if self.connections.len() >= MAX_CONNECTIONS {
            return;
        }
        let pair = (packet.src.min(packet.dst), packet.src.max(packet.dst));
        let count = self.pairs.entry(pair).or_default();
        let flow = Flow { sender: packet.src, receiver: packet.dst, earlier: *count };
        *count += 1;
        self.connections.insert(stream, flow);
    }

    /// Records the side of the endpoints of a packet.
    fn side_of(&mut self, packet: &Packet) {
        if let Some(from) = self.from
            && self.sides.len() < 2 * MAX_CONNECTIONS
        {
            self.sides.insert(packet.src, from);
            self.sides.insert(packet.dst, from.peer());
        }
    }

    fn end(&mut self, flow: Option<Flow>, frame: FrameNumber, end: End) {
        if let Some(flow) = flow {
            self.observed.ends.entry(flow).or_insert((frame, end));
        }
    }

    /// If the unit contains watched bytes (corrupted bytes whose unit is not known yet), records
    /// the unit for these bytes.
    fn find_watched(&mut self, unit: &Unit<'_>) {
        let (len, kind) = match &unit.parsed.kind {
            Kind::Fpdu(fpdu) => (fpdu.body.len() + 4 + 4 * fpdu.markers.len(), of_crc(fpdu)),
            Kind::Startup(_, part) => (part.len(), CorruptedUnit::Startup),
            Kind::Unparsed { len } => (usize::try_from(*len).unwrap_or(usize::MAX), CorruptedUnit::BrokenFraming),
            // An SDP message in a Send is a part of an FPDU, which has its own unit. For watched
            // bytes in all other units, the result is determined at the end of the capture.
            _ => return,
        };
        let flow = unit.parsed.stream.and_then(|stream| self.flow(stream, unit.parsed.direction));
        for location in unit.parsed.locate(0..len) {
            self.watched.unit_at(&location, flow, kind);
        }
    }
}

fn of_crc(fpdu: &Fpdu<'_>) -> CorruptedUnit {
    match fpdu.crc_status {
        CrcStatus::Bad => CorruptedUnit::DetectableFpdu,
        CrcStatus::Good => CorruptedUnit::CorrectFpdu,
        CrcStatus::Unchecked | CrcStatus::Absent => CorruptedUnit::UndetectableFpdu,
        CrcStatus::Truncated => CorruptedUnit::BrokenFraming,
    }
}

impl Sink for Observer {
    fn unit(&mut self, unit: &Unit<'_>) {
        if let Kind::Fpdu(fpdu) = &unit.parsed.kind {
            self.observed.fpdus += 1;
            if let Some(parts) = &mut self.parts {
                parts.extend(aim::parts_in(self.frame, unit, fpdu));
            }
            let is_terminate = fpdu.ulpdu().get(0..2).is_some_and(|octets| {
                // Bit 0 of the first octet is T (tagged). The opcode is in the low bits of the
                // second octet.
                octets[0] & 0x80 == 0 && octets[1] & 0x0f == Opcode::TERMINATE.0
            });
            if is_terminate {
                let flow = unit.parsed.stream.and_then(|stream| self.flow(stream, unit.parsed.direction));
                self.end(flow, unit.parsed.frame, End::Terminate);
            }
        }
        if !self.watched.is_empty() {
            self.find_watched(unit);
        }
    }

    fn finding(&mut self, finding: &Finding) {
        let Some((sender, receiver)) = self.senders.of(finding) else {
            self.observed.omitted += 1;
            return;
        };
        let flow = finding.stream.and_then(|stream| self.flow(stream, finding.direction));
        let flow = flow.unwrap_or(Flow { sender, receiver, earlier: 0 });
        let Some(subject) = self.sides.get(&sender).copied() else {
            self.observed.omitted += 1;
            return;
        };
        let key = (subject, flow, finding.requirement);
        if let Some(known) = self.found.get_mut(&key) {
            known.count += 1;
            return;
        }
        if self.found.len() >= MAX_FINDINGS {
            self.observed.omitted += 1;
            return;
        }
        let violation = Violation {
            subject,
            flow,
            requirement: finding.requirement,
            severity: finding.severity,
            frame: finding.frame,
            count: 1,
            expected: finding.expected.clone(),
            found: finding.found.clone(),
        };
        self.found.insert(key, violation);
    }

    fn packet(&mut self, packet: &Packet) {
        self.senders.packet(packet);
        self.watched.packet(packet);
        match packet.transport {
            TransportKind::Tcp { stream, fin, rst, .. } => {
                self.connection(stream, packet);
                if fin || rst {
                    let first = self.flow(stream, 0);
                    let flow = first.filter(|flow| flow.sender == packet.src).or_else(|| self.flow(stream, 1));
                    self.end(flow, packet.frame, if rst { End::Reset } else { End::Fin });
                }
            }
            TransportKind::Udp => self.side_of(packet),
        }
    }
}

/// The monitor and the capture of one side.
pub struct Tap<W> {
    dissector: Dissector,
    observer: Observer,
    frames: FrameNumber,
    capture: Option<Capture<W>>,
}

struct Capture<W> {
    writer: pcapng::Writer<W>,
    interface: u32,
    side: Side,
}

impl<W: Write> Tap<W> {
    /// Makes the tap of `side`. If there is an `output`, the tap writes all frames to `output`, as
    /// pcapng.
    ///
    /// # Errors
    /// `output` reports an error.
    pub fn new(side: Side, name: &str, output: Option<W>) -> io::Result<Self> {
        let make = |output| {
            let comment = format!("frames that side {side} sent, and frames that it received after the impairments");
            let mut writer = pcapng::Writer::new(output, Some(&comment))?;
            let interface = pcapng::Interface { link_type: ETHERNET, name: Some(name), ..Default::default() };
            let interface = writer.interface(&interface)?;
            io::Result::Ok(Capture { writer, interface, side })
        };
        let capture = output.map(make).transpose()?;
        Ok(Tap {
            dissector: Dissector::default(),
            observer: Observer::default(),
            frames: FrameNumber::default(),
            capture,
        })
    }

    /// Finds the parts of FPDUs in later frames, for [`take_parts`](Self::take_parts).
    pub fn find_parts(&mut self) {
        self.observer.parts = Some(Vec::new());
    }

    /// Returns the parts that the last recorded frame has of the FPDUs that end in this frame.
    /// Returns nothing without [`find_parts`](Self::find_parts).
    pub fn take_parts(&mut self) -> Vec<PartInFrame> {
        self.observer.parts.as_mut().map(std::mem::take).unwrap_or_default()
    }

    /// Records a frame that `from` sent, and returns its number. `time` is in nanoseconds since
    /// 1970. `faults` are the faults in the frame, and `comments` are written to the capture.
    ///
    /// # Errors
    /// The output reports an error.
    pub fn record(
        &mut self,
        time: u64,
        from: Side,
        octets: &[u8],
        faults: &[FaultInFrame],
        comments: &[String],
    ) -> io::Result<FrameNumber> {
        let number = self.frames.later(1);
        self.frames = number;
        for fault in faults {
            self.observer.watched.watch(number, octets, *fault);
        }
        let wire_len = u32::try_from(octets.len()).unwrap_or(u32::MAX);
        (self.observer.from, self.observer.frame) = (Some(from), number);
        if let Some(parts) = &mut self.observer.parts {
            parts.clear();
        }
        let frame = Frame { number, time, interface: 0, link_type: ETHERNET, octets, wire_len };
        self.dissector.frame(&frame, &mut self.observer);
        if let Some(Capture { writer, interface, side }) = &mut self.capture {
            // The capture is taken at the side's interface of the bridge, so a frame that the side
            // sent is inbound.
            let direction = if from == *side { PacketDirection::Inbound } else { PacketDirection::Outbound };
            let block =
                PacketBlock { interface: *interface, time, octets, wire_len, direction: Some(direction), comments };
            writer.packet(&block)?;
        }
        Ok(number)
    }

    /// Ends the capture, and returns the results.
    ///
    /// # Errors
    /// The output reports an error.
    pub fn finish(mut self) -> io::Result<Observed> {
        self.dissector.finish(&mut self.observer);
        if let Some(Capture { writer, .. }) = self.capture {
            writer.finish()?;
        }
        let Observer { mut observed, found, watched, .. } = self.observer;
        observed.corruptions = watched.finish();
        observed.violations = found.into_values().collect();
        observed.violations.sort_by_key(|violation| violation.frame);
        observed.remarks = self.dissector.remarks();
        Ok(observed)
    }
}
