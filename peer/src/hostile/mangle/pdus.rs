//! Finds the PDUs in the bytes that one endpoint sends: one start-up frame, then FPDUs.
//!
//! This module knows only one direction of the connection. Therefore it derives the use of markers
//! and CRCs from the first FPDU. If markers are in use, the stream begins with a marker of four
//! zero bytes. An endpoint never sends such bytes as `ULPDU_Length`. CRCs are in use if the CRC
//! field of the first FPDU is correct.

use bytes::BytesMut;
use weft_core::crc;
use weft_core::wire::mpa::Framing;
use weft_core::wire::mpa::fpdu::{self, Fpdu, LENGTH_LEN, Layout};
use weft_core::wire::mpa::startup::HEADER_LEN;

/// A PDU in the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Pdu {
    /// A start-up frame.
    Startup(Vec<u8>),
    /// The ULPDU of an FPDU.
    Ulpdu { ulpdu: Vec<u8>, framing: Framing },
    /// Bytes that are neither a start-up frame nor a valid FPDU.
    Unknown(Vec<u8>),
}

/// Splits a byte stream into PDUs.
#[derive(Debug, Default)]
pub(super) struct Pdus {
    buffer: BytesMut,
    started: bool,
    framing: Option<Framing>,
    /// Number of bytes of FPDUs that precede the bytes in the buffer.
    position: u64,
}

impl Pdus {
    pub(super) fn push(&mut self, octets: &[u8]) {
        self.buffer.extend_from_slice(octets);
    }

    /// Returns whether the FPDUs use markers and CRCs. Returns `None` before the first FPDU.
    pub(super) fn framing(&self) -> Option<Framing> {
        self.framing
    }

    /// Returns the next PDU, or `None` if the next PDU is not complete yet.
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

    /// Returns the bytes that remain when the stream ends.
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

    /// Detects markers before the first FPDU. CRCs are assumed until the first FPDU is complete.
    fn first_framing(&self) -> Option<Framing> {
        let first = self.buffer.first_chunk::<4>()?;
        Some(Framing { markers: *first == [0; 4], crc: true })
    }
}
