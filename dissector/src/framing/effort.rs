//! Limits the cost of a search for FPDUs.
//!
//! If the position of FPDUs is unknown, each plausible header is a candidate, and the CRC of its
//! FPDU decides. In random octets, one of 1,400 positions is plausible. A payload that consists of
//! the letter A, or that an attacker has crafted, contains many plausible headers, each with an
//! FPDU of up to 64 KB.
//!
//! Therefore a budget limits the number of octets over which CRCs are computed. The budget starts
//! with [`AT_ONCE`] octets, and grows by [`PER_OCTET`] for each octet of the stream that the search
//! has passed. When the budget is used up, only headers at the start of a TCP segment are
//! candidates, because senders align FPDUs with segments (RFC 5044 section 5). When the budget has
//! grown again, all plausible headers are candidates.

/// Initial and maximum budget in octets. It is enough for 16 KB in which every octet starts a
/// candidate of 16 KB.
const AT_ONCE: u64 = 256 << 20;
/// Growth of the budget in octets per octet of the stream. Random octets need about 50.
const PER_OCTET: u64 = 256;

/// The remaining budget of one direction.
#[derive(Debug)]
pub(super) struct Effort {
    left: u64,
    /// The highest position so far. It has already increased the budget.
    position: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Effort { left: AT_ONCE, position: 0 }
    }
}

impl Effort {
    /// Returns whether the budget allows a CRC over `octets` octets for a candidate at `position`.
    /// If it does, subtracts `octets` from the budget.
    pub(super) fn allows(&mut self, position: u64, octets: u64) -> bool {
        let passed = position.saturating_sub(self.position);
        self.position = self.position.max(position);
        self.left = self.left.saturating_add(passed.saturating_mul(PER_OCTET)).min(AT_ONCE);
        match self.left.checked_sub(octets) {
            Some(left) => {
                self.left = left;
                true
            }
            None => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_used_up_comes_back_with_the_octets_that_pass() {
        let mut effort = Effort::default();
        assert!(effort.allows(1_000, AT_ONCE));
        assert!(!effort.allows(1_000, 1));
        assert!(effort.allows(1_010, 10 * PER_OCTET));
        assert!(!effort.allows(1_010, 1));
        // An earlier position does not increase the budget.
        assert!(!effort.allows(900, 1) && !effort.allows(1_010, 1));
    }

    #[test]
    fn no_more_is_saved_up_than_may_be_taken_at_once() {
        let mut effort = Effort::default();
        assert!(!effort.allows(u64::MAX, AT_ONCE + 1));
        assert!(effort.allows(u64::MAX, AT_ONCE));
    }
}
