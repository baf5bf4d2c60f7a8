//! Limits the cost of a search for FPDUs.
//!
//! If nothing shows where FPDUs begin, each plausible header is a candidate, and the CRC of its
//! FPDU decides. One in 1,400 positions of random octets is plausible. A crafted payload, or one
//! that consists only of the letter A, is full of plausible headers, each for up to 64 KB. The
//! octets that CRCs are computed over are therefore counted: [`AT_ONCE`], and [`PER_OCTET`] for
//! each octet of the stream that the search has passed. When that budget is used up, only headers
//! at the beginning of a TCP segment are candidates, since senders put them there (RFC 5044 section
//! 5). The search returns to all headers when enough octets have passed.

/// Octets of CRC that a search may use regardless of earlier octets: 16 KB of FPDU in which every
/// octet begins a candidate of 16 KB.
const AT_ONCE: u64 = 256 << 20;
/// Octets of CRC for each octet of the stream. Random octets need about 50.
const PER_OCTET: u64 = 256;

/// The remaining budget of one direction.
#[derive(Debug)]
pub(super) struct Effort {
    left: u64,
    /// The highest position that counted.
    position: u64,
}

impl Default for Effort {
    fn default() -> Self {
        Effort { left: AT_ONCE, position: 0 }
    }
}

impl Effort {
    /// May a CRC be computed over `octets` octets for a candidate at `position`? If so, they are
    /// counted.
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
        // A position that was passed before adds nothing to the budget.
        assert!(!effort.allows(900, 1) && !effort.allows(1_010, 1));
    }

    #[test]
    fn no_more_is_saved_up_than_may_be_taken_at_once() {
        let mut effort = Effort::default();
        assert!(!effort.allows(u64::MAX, AT_ONCE + 1));
        assert!(effort.allows(u64::MAX, AT_ONCE));
    }
}
