//! SMB Direct (MS-SMBD section 2.2): Negotiate Request and Response, then Data Transfer messages;
//! all fields little-endian.
//!
//! **Proved by** a Negotiate Request of 20 octets or a Negotiate Response of 32 octets. It must
//! have versions 0x0100, reserved fields zero, and sizes at or above the specified minimum. A Data
//! Transfer is also proof if its DataOffset and DataLength add up to the message, and its data
//! begins like an SMB message. Later messages must add up.

use std::fmt;

use super::verdict::{Len, Verdict};

const REQUEST_LEN: usize = 20;
const RESPONSE_LEN: usize = 32;
/// Octets of a Data Transfer header without padding.
const DATA_LEN: usize = 20;
/// Minimum PreferredSendSize and MaxReceiveSize (section 3.1.5.2), and minimum MaxFragmentedSize
/// (section 3.1.5.2).
const LEAST_SIZE: u32 = 128;
const LEAST_FRAGMENTED: u32 = 131_072;
/// SMB_DIRECT_RESPONSE_REQUESTED.
const FLAGS: u16 = 1;

/// A message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SmbDirect {
    /// Negotiate Request.
    NegotiateRequest {
        /// CreditsRequested.
        credits: u16,
    },
    /// Negotiate Response.
    NegotiateResponse {
        /// CreditsGranted.
        credits: u16,
        /// Status.
        status: u32,
    },
    /// Data Transfer.
    Data {
        /// CreditsRequested and CreditsGranted.
        credits: (u16, u16),
        /// DataLength.
        len: u32,
        /// RemainingDataLength.
        remaining: u32,
    },
}

impl SmbDirect {
    pub(super) fn message(&self) -> &'static str {
        match self {
            SmbDirect::NegotiateRequest { .. } => "Negotiate Request",
            SmbDirect::NegotiateResponse { .. } => "Negotiate Response",
            SmbDirect::Data { .. } => "Data Transfer",
        }
    }

    pub(super) fn details(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            SmbDirect::NegotiateRequest { credits } => write!(f, " credits requested {credits}"),
            SmbDirect::NegotiateResponse { credits, status } => {
                write!(f, " credits granted {credits} status {status:#010x}")
            }
            SmbDirect::Data { credits: (requested, granted), len, remaining } => {
                write!(f, " credits requested {requested} granted {granted} data {len} remaining {remaining}")
            }
        }
    }
}

/// Tests the octets at the beginning of a Send; `is_complete`: nothing follows them.
pub(super) fn read(octets: &[u8], is_complete: bool) -> Verdict<SmbDirect> {
    if octets.len() < REQUEST_LEN {
        return if is_complete { Verdict::Not } else { Verdict::Open };
    }
    // MinVersion, MaxVersion, then Reserved or NegotiatedVersion.
    match octets[..6] {
        [0, 1, 0, 1, 0, 0] => request(octets),
        [0, 1, 0, 1, 0, 1] => response(octets, is_complete),
        _ => data(octets),
    }
}

fn short(octets: &[u8], at: usize) -> u16 {
    octets.get(at..at + 2).map_or(0, |octets| u16::from_le_bytes([octets[0], octets[1]]))
}

fn long(octets: &[u8], at: usize) -> u32 {
    u32::from(short(octets, at)) | u32::from(short(octets, at + 2)) << 16
}

/// PreferredSendSize, MaxReceiveSize and MaxFragmentedSize from `at` on.
fn sizes_fit(octets: &[u8], at: usize) -> bool {
    long(octets, at) >= LEAST_SIZE && long(octets, at + 4) >= LEAST_SIZE && long(octets, at + 8) >= LEAST_FRAGMENTED
}

fn request(octets: &[u8]) -> Verdict<SmbDirect> {
    let credits = short(octets, 6);
    if credits == 0 || !sizes_fit(octets, 8) {
        return Verdict::Not;
    }
    let parsed = SmbDirect::NegotiateRequest { credits };
    Verdict::Is { parsed, len: Len::Exactly(REQUEST_LEN as u64), proves: true }
}

fn response(octets: &[u8], is_complete: bool) -> Verdict<SmbDirect> {
    if octets.len() < RESPONSE_LEN {
        return if is_complete { Verdict::Not } else { Verdict::Open };
    }
    let (reserved, credits, status) = (short(octets, 6), short(octets, 10), long(octets, 12));
    if reserved != 0 || status == 0 && !sizes_fit(octets, 20) {
        return Verdict::Not;
    }
    let parsed = SmbDirect::NegotiateResponse { credits, status };
    Verdict::Is { parsed, len: Len::Exactly(RESPONSE_LEN as u64), proves: true }
}

fn data(octets: &[u8]) -> Verdict<SmbDirect> {
    let (credits, flags, reserved) = ((short(octets, 0), short(octets, 2)), short(octets, 4), short(octets, 6));
    let (remaining, offset, len) = (long(octets, 8), long(octets, 12), long(octets, 16));
    if flags & !FLAGS != 0 || reserved != 0 {
        return Verdict::Not;
    }
    let parsed = SmbDirect::Data { credits, len, remaining };
    if len == 0 {
        // Only credits: no data, and none to come.
        let fits = offset == 0 && remaining == 0;
        return if fits {
            Verdict::Is { parsed, len: Len::AtLeast(DATA_LEN as u64), proves: false }
        } else {
            Verdict::Not
        };
    }
    // DataOffset is a multiple of 8 after the header.
    if offset < DATA_LEN as u32 || !offset.is_multiple_of(8) {
        return Verdict::Not;
    }
    let end = Len::Exactly(u64::from(offset) + u64::from(len));
    let start = usize::try_from(offset).ok().and_then(|at| octets.get(at..at.checked_add(4)?));
    match start {
        // 0xFE: SMB 2 and 3; 0xFD: encrypted; 0xFC: compressed.
        Some([0xfc..=0xfe, b'S', b'M', b'B']) => Verdict::Is { parsed, len: end, proves: true },
        _ => Verdict::Is { parsed, len: end, proves: false },
    }
}
