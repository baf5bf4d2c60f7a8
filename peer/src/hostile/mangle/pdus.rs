//! Finds the PDUs in what one endpoint sends: one start-up frame, then FPDUs.
//!
//! It sees one direction only. Whether markers and CRCs are in it shows the first FPDU: markers
//! begin with one whose octets are zero, which no `ULPDU_Length` of an endpoint is; the CRC field
//! is right, or it is not used.

use bytes::BytesMut;
use weft_core::crc;
use weft_core::wire::mpa::Framing;
use weft_core::wire::mpa::fpdu::{self, Fpdu, LENGTH_LEN, Layout};
use weft_core::wire::mpa::startup::HEADER_LEN;

/// What was found.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pdu {
    /// A start-up frame.
    Startup(Vec<u8>),
    /// What is in an FPDU.
    Ulpdu { ulpdu: Vec<u8>, framing: Framing },
    /// Octets that are neither.
    Unknown(Vec<u8>),
}

#[derive(Debug, Default)]
pub(super) struct Pdus {
    buffer: BytesMut,
    started: bool,
    framing: Option<Framing>,
    /// Octets of FPDUs before those of the buffer.
    position: u64,
}

impl Pdus {
    pub(super) fn push(&mut self, octets: &[u8]) {
        self.buffer.extend_from_slice(octets);
    }

    /// How FPDUs look, once there was one.
    pub(super) fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// The next PDU, once it is complete.
    pub(super) fn next(&mut self) -> Option<Pdu> {
        if !self.started {
            return self.startup();
        }
        let phase = self.framing.or_else(|| self.first_framing())?.phase();
        let header = usize::try_from(fpdu::header_position(self.position, phase) - self.position).ok()?;
        let length = u16::from_be_bytes(*self.buffer.get(..header + LENGTH_LEN)?.last_chunk()?);
        let layout = Layout::new(self.position, length, phase);
        let len = usize::try_from(layout.end - layout.start).ok()?;
        if self.buffer.len() < len {
            return None;
        }
        let octets = self.buffer.split_to(len);
        self.position = layout.end;
        let crc =
            || octets.split_last_chunk().is_some_and(|(covered, crc)| crc::to_octets(crc::crc32c(covered)) == *crc);
        let framing = *self.framing.get_or_insert_with(|| Framing { markers: phase.is_some(), crc: crc() });
        Some(match Fpdu::new(&octets, layout) {
            Ok(fpdu) => Pdu::Ulpdu { ulpdu: fpdu.ulpdu().flatten().copied().collect(), framing },
            Err(_) => Pdu::Unknown(octets.to_vec()),
        })
    }

    /// What is left when nothing more comes.
    pub(super) fn rest(&mut self) -> Vec<u8> {
        self.buffer.split().to_vec()
    }

    fn startup(&mut self) -> Option<Pdu> {
        let header = self.buffer.get(..HEADER_LEN)?;
        let length = HEADER_LEN + usize::from(u16::from_be_bytes(*header.last_chunk()?));
        if self.buffer.len() < length {
            return None;
        }
        self.started = true;
        Some(Pdu::Startup(self.buffer.split_to(length).to_vec()))
    }

    /// Markers or none; CRCs for now.
    fn first_framing(&self) -> Option<Framing> {
        let first = self.buffer.first_chunk::<4>()?;
        Some(Framing { markers: *first == [0; 4], crc: true })
    }
}
