//! Reads GTP-U headers (3GPP TS 29.281). GTP-U carries user data of mobile networks.

use super::header::{Header, Step, u8_at};
use super::skip_reason::SkipReason;

/// UDP port of GTP-U.
pub(crate) const PORT: u16 = 2152;

const FIXED_LEN: usize = 8;
/// Length in bytes of the optional part: sequence number, N-PDU number, and type of the next
/// extension header. Each of these three fields has a flag. If one flag is set, all three fields
/// are present.
const OPTIONAL_LEN: usize = 4;
const OPTIONAL: u8 = 0x07;
const EXTENDED: u8 = 0x04;
const USER_DATA: u8 = 255;
/// Maximum number of extension headers.
const MAX_EXTENSIONS: usize = 16;

pub(super) fn read(bytes: &[u8]) -> Step {
    let flags = u8_at(bytes, 0)?;
    // Version 1, and the protocol type of GTP.
    if flags >> 4 != 3 {
        return Err(SkipReason::Malformed);
    }
    if u8_at(bytes, 1)? != USER_DATA {
        return Err(SkipReason::TunnelControl);
    }
    let mut at = FIXED_LEN;
    if flags & OPTIONAL != 0 {
        at += OPTIONAL_LEN;
        let mut next = if flags & EXTENDED == 0 { 0 } else { u8_at(bytes, at - 1)? };
        for _ in 0..MAX_EXTENSIONS {
            if next == 0 {
                break;
            }
            let words = usize::from(u8_at(bytes, at)?);
            if words == 0 {
                return Err(SkipReason::Malformed);
            }
            at += words * 4;
            next = u8_at(bytes, at - 1)?;
        }
        if next != 0 {
            return Err(SkipReason::Malformed);
        }
    }
    Ok((Header::Ip, at))
}
