//! Counts what an endpoint sent: messages, FPDUs, SDP data, and octets that are not in the capture.

use serde::Serialize;
use weft_core::wire::rdmap::Opcode;
use weft_core::wire::sdp::{Mid, RawBsdh, RawHeader};

use crate::fact::Message;
use crate::format::counted;
use crate::unit::{CrcStatus, Kind, Unit};

/// Messages with one opcode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct MessageCount {
    /// The name of the opcode.
    pub opcode: &'static str,
    /// Number of complete messages.
    pub messages: u64,
    /// Number of payload octets in these messages.
    pub octets: u64,
}

/// What an endpoint sent.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
pub struct Carried {
    /// Complete messages, for each opcode that the endpoint used.
    pub messages: Vec<MessageCount>,
    /// Number of FPDUs.
    pub fpdus: u64,
    /// Number of FPDUs with a wrong CRC.
    pub bad_crcs: u64,
    /// Number of FPDUs in segments that the network damaged (the TCP checksum is wrong).
    pub damaged: u64,
    /// Number of octets of user data in SDP Data messages.
    pub sdp_octets: u64,
    /// Number of octets outside MPA.
    pub streaming_octets: u64,
    /// Number of octets that are not in the capture.
    pub missing_octets: u64,
    /// Number of other units with octets that are not in the capture.
    pub incomplete: u64,
    /// Number of octets in which no FPDU was found.
    pub unparsed_octets: u64,
}

/// The counters of one direction. Their size does not depend on the traffic.
#[derive(Debug, Default)]
pub(super) struct Counters {
    messages: [(u64, u64); 16],
    pub(super) other: Carried,
}

impl Counters {
    pub(super) fn unit(&mut self, unit: &Unit<'_>) {
        let other = &mut self.other;
        let mut is_incomplete = unit.incomplete;
        match &unit.kind {
            Kind::Fpdu(fpdu) => {
                other.fpdus += 1;
                if fpdu.crc_status == CrcStatus::Bad {
                    other.bad_crcs += 1;
                    // weft computes a CRC only if it has all octets of the FPDU. If such an FPDU is
                    // incomplete, its segment has a wrong TCP checksum.
                    other.damaged += u64::from(unit.incomplete);
                    is_incomplete = false;
                }
            }
            Kind::Sdp(_, order, part) => {
                if let Some((bsdh, _)) = RawBsdh::read(part.beginning(), *order)
                    && bsdh.mid() == Mid::DATA
                {
                    other.sdp_octets += u64::from(bsdh.len.get()).saturating_sub(16);
                }
            }
            Kind::Streaming { len, .. } => other.streaming_octets += len,
            Kind::Gap { len } => {
                other.missing_octets += len;
                is_incomplete = false;
            }
            Kind::Unparsed { len } => other.unparsed_octets += len,
            Kind::Startup(..) | Kind::PortMapper(_) => {}
        }
        other.incomplete += u64::from(is_incomplete);
    }

    pub(super) fn message(&mut self, message: &Message) {
        let (count, octets) = &mut self.messages[usize::from(message.opcode.0 & 0xf)];
        *count += 1;
        *octets += message.len;
    }

    /// Returns whether all octets of the direction were captured.
    pub(super) fn is_complete(&self) -> bool {
        self.other.missing_octets == 0 && self.other.incomplete == 0 && self.other.unparsed_octets == 0
    }

    pub(super) fn into_carried(self) -> Carried {
        let counts = (0..).map(Opcode).zip(self.messages).filter(|(_, (count, _))| *count > 0);
        let messages =
            counts.map(|(opcode, (messages, octets))| MessageCount { opcode: opcode.name(), messages, octets });
        Carried { messages: messages.collect(), ..self.other }
    }
}

impl Carried {
    /// Describes the messages, for example "3 Sends (48 bytes) and 1 RDMA Write (160 bytes)".
    /// Returns `None` if there are no messages.
    pub(super) fn phrase(&self) -> Option<String> {
        let mut parts: Vec<String> = self.messages.iter().map(MessageCount::phrase).collect();
        if self.sdp_octets > 0 {
            parts.push(format!("{} of SDP data", counted(self.sdp_octets, "byte")));
        }
        if parts.is_empty() && self.fpdus > 0 {
            parts.push(counted(self.fpdus, "FPDU"));
        }
        let last = parts.pop()?;
        Some(if parts.is_empty() { last } else { format!("{} and {last}", parts.join(", ")) })
    }
}

impl MessageCount {
    fn phrase(&self) -> String {
        let MessageCount { opcode, messages, octets } = self;
        let name = match opcode.strip_prefix("Send ") {
            _ if *messages == 1 || *opcode == "Immediate Data" => (*opcode).to_owned(),
            Some(rest) => format!("Sends {rest}"),
            None => format!("{opcode}s"),
        };
        // The length of these messages does not depend on the traffic.
        let is_fixed = [Opcode::READ_REQUEST, Opcode::TERMINATE].iter().any(|it| it.name() == *opcode);
        match octets {
            _ if is_fixed => format!("{messages} {name}"),
            0 => format!("{messages} {name}"),
            octets => format!("{messages} {name} ({})", counted(*octets, "byte")),
        }
    }
}
