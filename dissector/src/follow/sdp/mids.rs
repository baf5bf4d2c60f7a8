//! Sets of message types (MIDs).

use weft_core::wire::sdp::Mid;

/// A set of message types (MIDs) of the draft.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Mids(u32);

impl Mids {
    /// Returns whether the set contains `mid`.
    pub(crate) fn has(self, mid: Mid) -> bool {
        self.0 & bit(mid) != 0
    }

    pub(super) fn add(&mut self, mid: Mid) {
        self.0 |= bit(mid);
    }
}

/// Returns the bit of `mid`. MIDs 0x00 to 0x0E and 0xFD to 0xFF have one bit each. The remaining
/// MIDs have no bit.
fn bit(mid: Mid) -> u32 {
    match mid.0 {
        low @ ..=0x0e => 1 << low,
        high @ 0xfd.. => 1 << (high - 0xfd + 16),
        _ => 0,
    }
}
