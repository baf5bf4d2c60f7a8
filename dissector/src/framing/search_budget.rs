//! Limits the cost of a search for FPDUs.
//!
//! If the position of FPDUs is unknown, each plausible header is a candidate. The CRC shows whether
//! the candidate is an FPDU. In random octets, one of 1,400 positions has a plausible header. A
//! payload that consists of the letter A, or that an attacker has crafted, contains many plausible
//! headers, each with an FPDU of up to 64 KB.
//!
//! Therefore a budget limits the number of octets over which CRCs are computed. The budget starts
//! with [`MAX_BUDGET`] octets, and grows by [`BUDGET_PER_OCTET`] octets for each octet of the
//! stream that the search has passed. When the budget is used up, only headers at the start of a
//! TCP segment are candidates, because senders align FPDUs with segments (RFC 5044 section 5). When
//! the budget has grown again, all plausible headers are candidates.

/// Initial and maximum budget in octets. This budget is enough for 16 KB in which a candidate of 16
/// KB starts at every octet.
const MAX_BUDGET: u64 = 256 << 20;
/// Growth of the budget in octets per octet of the stream. For random octets, a growth of about 50
/// is enough.
const BUDGET_PER_OCTET: u64 = 256;

/// The remaining budget of one direction.
#[derive(Debug)]
pub(super) struct SearchBudget {
    left: u64,
    /// The highest position so far. The budget has already grown for the octets before this
    /// position.
    position: u64,
}

impl Default for SearchBudget {
    fn default() -> Self {
        SearchBudget { left: MAX_BUDGET, position: 0 }
    }
}

impl SearchBudget {
    /// Returns whether the budget allows a CRC over `octets` octets for a candidate at `position`.
    /// If the budget allows it, subtracts `octets` from the budget.
    pub(super) fn allows(&mut self, position: u64, octets: u64) -> bool {
        let passed = position.saturating_sub(self.position);
        self.position = self.position.max(position);
        self.left = self.left.saturating_add(passed.saturating_mul(BUDGET_PER_OCTET)).min(MAX_BUDGET);
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
        let mut budget = SearchBudget::default();
        assert!(budget.allows(1_000, MAX_BUDGET));
        assert!(!budget.allows(1_000, 1));
        assert!(budget.allows(1_010, 10 * BUDGET_PER_OCTET));
        assert!(!budget.allows(1_010, 1));
        // An earlier position does not increase the budget.
        assert!(!budget.allows(900, 1) && !budget.allows(1_010, 1));
    }

    #[test]
    fn no_more_is_saved_up_than_may_be_taken_at_once() {
        let mut budget = SearchBudget::default();
        assert!(!budget.allows(u64::MAX, MAX_BUDGET + 1));
        assert!(budget.allows(u64::MAX, MAX_BUDGET));
    }
}
