//! Atomic operations on 64 bits of registered memory (RFC 7306 sections 5.1.1 and 5.1.2).
//!
//! The operations are atomic because a [`Memory`] executes only one call at a time. Numbers in
//! memory have the byte order of this machine. This module does not convert numbers from or to the
//! byte order of the wire.

use weft_core::wire::rdmap::AtomicOperation;

use super::{Memory, MemoryRange};

/// Error: the address is not aligned to 64 bits (RDMAP-7306.8.2-8).
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the address of an atomic operation is not a multiple of 8 bytes")]
pub(crate) struct Misaligned;

impl Memory {
    /// Applies `operation` to the eight bytes of `range`. Returns the previous value.
    ///
    /// # Errors
    /// The bytes are not contiguous or not 64-bit aligned. An error does not change the bytes.
    pub(crate) fn atomic(&mut self, range: MemoryRange, operation: AtomicOperation) -> Result<u64, Misaligned> {
        let extent = self.aligned_word(range).ok_or(Misaligned)?;
        let word: &mut [u8; 8] = self.arena.slice_mut(extent).try_into().map_err(|_| Misaligned)?;
        let before = u64::from_ne_bytes(*word);
        *word = apply(before, operation).to_ne_bytes();
        Ok(before)
    }
}

fn apply(before: u64, operation: AtomicOperation) -> u64 {
    match operation {
        AtomicOperation::FetchAdd { add_data, add_mask: 0 } => before.wrapping_add(add_data),
        AtomicOperation::FetchAdd { add_data, add_mask } => masked_add(before, add_data, add_mask),
        AtomicOperation::CmpSwap { swap_data, swap_mask, compare_data, compare_mask } => {
            if before & compare_mask == compare_data & compare_mask {
                before & !swap_mask | swap_data & swap_mask
            } else {
                before
            }
        }
    }
}

/// Adds each field of `a` and `b` separately. A set bit of `mask` is the top bit of a field. The
/// carry out of a field is discarded.
fn masked_add(a: u64, b: u64, mask: u64) -> u64 {
    // Add the fields without their top bits, so that no field can carry into the next field. Then
    // add the top bits without carry.
    let below = (a & !mask).wrapping_add(b & !mask);
    below ^ (a ^ b) & mask
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Computes the sum by the pseudo-code of RFC 7306 section 5.1.1.
    fn by_the_rfc(original: u64, add: u64, mask: u64) -> u64 {
        let (mut value, mut carry) = (0, 0);
        for bit in 0..64 {
            let sum = carry + (original >> bit & 1) + (add >> bit & 1);
            carry = sum >> 1;
            value |= (sum & 1) << bit;
            if mask >> bit & 1 == 1 {
                carry = 0;
            }
        }
        value
    }

    proptest! {
        #[test]
        fn masked_addition_is_the_rfcs(original: u64, add: u64, mask: u64) {
            let operation = AtomicOperation::FetchAdd { add_data: add, add_mask: mask };
            prop_assert_eq!(apply(original, operation), by_the_rfc(original, add, mask));
            let plain = AtomicOperation::FetchAdd { add_data: add, add_mask: 0 };
            prop_assert_eq!(apply(original, plain), original.wrapping_add(add));
        }
    }

    #[test]
    fn cmp_swap_looks_at_and_changes_masked_bits_only() {
        let swap = |compare_data| AtomicOperation::CmpSwap {
            swap_data: 0xaaaa,
            swap_mask: 0x0f0f,
            compare_data,
            compare_mask: 0xff00,
        };
        assert_eq!(apply(0x1234, swap(0x12ff)), 0x1a3a);
        assert_eq!(apply(0x1234, swap(0x1334)), 0x1234);
    }
}
