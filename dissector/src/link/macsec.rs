//! Reads MACsec headers (IEEE 802.1AE). If a frame is authenticated but not encrypted, weft reads
//! the frame. If a frame is encrypted, weft only counts the frame.

use super::ether_type;
use super::header::{Step, u8_at, u16_at};
use super::skip_reason::SkipReason;

/// Bits of the TAG control information. The three bits mean that the frame has an explicit channel
/// identifier (SCI), that it is encrypted, and that its user data was changed.
const HAS_CHANNEL: u8 = 0x20;
const ENCRYPTED: u8 = 0x08;
const CHANGED: u8 = 0x04;
/// Length in bytes of the fields after the EtherType: control, short length and packet number.
const TAG_LEN: usize = 6;
const CHANNEL_LEN: usize = 8;

pub(super) fn read(bytes: &[u8]) -> Step {
    let control = u8_at(bytes, 0)?;
    if control & (ENCRYPTED | CHANGED) != 0 {
        return Err(SkipReason::MacsecEncrypted);
    }
    let at = TAG_LEN + if control & HAS_CHANNEL == 0 { 0 } else { CHANNEL_LEN };
    ether_type::named(u16_at(bytes, at)?, at + 2)
}
