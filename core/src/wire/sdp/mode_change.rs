//! The ModeChange Header (section 6.3.8 of the SDP draft, Figures 11 and 12). It follows the BSDH
//! (base header) in a ModeChange message.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +-------------------------------------------------------+-----+-+
//! |                          Rsvd                         | Mode|S|  mirrored: S, Mode, Rsvd
//! +-------------------------------------------------------+-----+-+
//! ```
//!
//! The current Mode determines which Modes a peer may request. This module does not know the
//! current Mode, and accepts all requests.

use std::fmt;

use zerocopy::network_endian::U32;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::check::{bad, extension};
use super::{FieldOrder, RawHeader};
use crate::error::WireError;
use crate::requirement;

/// A Flow Control Mode of a half-connection (Figure 12).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Mode {
    /// BUFF_MODE, 0.
    Buffered,
    /// COMB_MODE, 1: the initial Mode of each half-connection.
    #[default]
    Combined,
    /// PIPE_MODE, 2.
    Pipelined,
}

impl Mode {
    /// The Mode for a value of the Mode field; `None` for the reserved values 3 to 7.
    #[must_use]
    pub const fn from_value(value: u8) -> Option<Self> {
        match value {
            0 => Some(Mode::Buffered),
            1 => Some(Mode::Combined),
            2 => Some(Mode::Pipelined),
            _ => None,
        }
    }

    /// The value of the Mode field.
    #[must_use]
    pub const fn value(self) -> u8 {
        match self {
            Mode::Buffered => 0,
            Mode::Combined => 1,
            Mode::Pipelined => 2,
        }
    }
}

impl fmt::Display for Mode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Mode::Buffered => "Buffered",
            Mode::Combined => "Combined",
            Mode::Pipelined => "Pipelined",
        })
    }
}

/// Raw view of the header. Its word is in figure order ([`FieldOrder::Figure`]).
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawModeChange {
    /// Octets 16 to 19: Rsvd (28 bits), Mode (3), S (1).
    pub word: U32,
}

impl RawModeChange {
    /// Combines three fields into the header word. Mode is cut to three bits, Rsvd to 28 bits.
    #[must_use]
    pub const fn new(rsvd: u32, mode: u8, s: bool) -> Self {
        RawModeChange { word: U32::from_bytes((rsvd << 4 | (mode as u32 & 7) << 1 | s as u32).to_be_bytes()) }
    }

    /// The 28 reserved bits: zero when sent, not checked when received.
    #[must_use]
    pub fn rsvd(&self) -> u32 {
        self.word.get() >> 4
    }

    /// Mode, 0 to 7.
    #[must_use]
    pub fn mode(&self) -> u8 {
        (self.word.get() >> 1 & 7) as u8
    }

    /// S.
    #[must_use]
    pub fn s(&self) -> bool {
        self.word.get() & 1 != 0
    }
}

impl RawHeader for RawModeChange {
    fn unmirrored(self) -> Self {
        let word = self.word.get();
        RawModeChange::new(word & 0x0fff_ffff, (word >> 28 & 7) as u8, word >> 31 != 0)
    }

    fn mirrored(self) -> Self {
        let word = u32::from(self.s()) << 31 | u32::from(self.mode()) << 28 | self.rsvd();
        RawModeChange { word: U32::new(word) }
    }
}

/// A valid ModeChange Header.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ModeChange {
    /// The requested Mode.
    pub mode: Mode,
    /// S: if S is set, the Mode applies to the data that the receiver of the ModeChange sends. If S
    /// is clear, the Mode applies to the data that the sender of the ModeChange sends.
    pub s: bool,
}

impl ModeChange {
    /// Reads the header from the octets after the BSDH. Returns the header and the octets after it.
    /// Rsvd is not checked.
    ///
    /// # Errors
    /// There are less than 4 octets, or Mode is reserved. The offset in the error counts from the
    /// start of the message.
    pub fn parse(octets: &[u8], order: FieldOrder) -> Result<(Self, &[u8]), WireError> {
        let (raw, rest): (RawModeChange, _) = extension(octets, order, "ModeChange Header")?;
        let Some(mode) = Mode::from_value(raw.mode()) else {
            // Mode is in the last octet of the word in figure order, and in the first octet of the
            // word in mirrored order.
            let (position, requirement) = ((order, 19, 1), requirement!("SDP-6.3.8.2-5"));
            let found = u32::from(raw.mode());
            return Err(bad("Mode", position, "0, 1 or 2", found, Some(requirement)));
        };
        Ok((ModeChange { mode, s: raw.s() }, rest))
    }

    /// The raw header.
    #[must_use]
    pub const fn to_raw(self) -> RawModeChange {
        RawModeChange::new(0, self.mode.value(), self.s)
    }
}

#[cfg(test)]
mod tests {
    use super::super::FieldOrder::{Figure, Mirrored};
    use super::*;

    /// Tests four valid words of Figure 11 in figure order and in mirrored order. In mirrored
    /// order, S is the highest bit.
    #[test]
    fn both_orders() {
        for (mode, s, figure, mirrored) in [
            (Mode::Buffered, false, 0, 0x00),
            (Mode::Pipelined, false, 4, 0x20),
            (Mode::Combined, true, 3, 0x90),
            (Mode::Combined, false, 2, 0x10),
        ] {
            let change = ModeChange { mode, s };
            for (order, octets) in [(Figure, [0, 0, 0, figure]), (Mirrored, [mirrored, 0, 0, 0])] {
                let mut out = Vec::new();
                change.to_raw().append(order, &mut out);
                assert_eq!(out, octets);
                assert_eq!(ModeChange::parse(&octets, order), Ok((change, &[][..])));
            }
        }
    }

    #[test]
    fn reserved_modes_are_refused_and_reserved_bits_are_not() {
        let error = ModeChange::parse(&[0, 0, 0, 6], Figure).unwrap_err();
        assert_eq!((error.field, error.offset), ("Mode", 19));
        assert_eq!(ModeChange::parse(&[0x70, 0, 0, 0], Mirrored).unwrap_err().offset, 16);
        let change = ModeChange { mode: Mode::Combined, s: true };
        assert_eq!(ModeChange::parse(&[0xff, 0xff, 0xff, 0xf3], Figure), Ok((change, &[][..])));
        assert!(ModeChange::parse(&[0; 3], Figure).is_err());
    }
}
