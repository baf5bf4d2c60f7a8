//! Where randomness comes from: one seed a run, and what follows from it.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::clock;
use crate::model::CaseKey;

/// Seeds are integers that every JSON reader holds exactly.
const MASK: u64 = (1 << 53) - 1;

/// A seed that nobody chose.
pub(super) fn draw() -> u64 {
    // The standard library's hash keys are random; nothing more is needed here.
    RandomState::new().build_hasher().finish() & MASK
}

/// The seed of one case: it follows from the run's and from the key alone, not from the other cases
/// of the run.
pub(super) fn of_case(run: u64, key: &CaseKey) -> u64 {
    // FNV-1a over the key, then the finalizer of SplitMix64.
    let hash = key
        .to_string()
        .bytes()
        .fold(run ^ 0xcbf2_9ce4_8422_2325, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3));
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash ^ (hash >> 31)) & MASK
}

/// `20260131T120000.123Z-1f3a`: sortable by time, and unique in all likelihood.
pub(super) fn run_id(unix_ms: u64) -> String {
    let time = clock::rfc3339(unix_ms).replace(['-', ':'], "");
    format!("{time}-{:04x}", draw() & 0xffff)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_has_its_own_seed_and_always_the_same() {
        let (a, b) = (CaseKey::new("mpa/a/a"), CaseKey::new("mpa/a/b"));
        assert_eq!(of_case(7, &a), of_case(7, &a));
        assert_ne!(of_case(7, &a), of_case(7, &b));
        assert_ne!(of_case(7, &a), of_case(8, &a));
        assert!(of_case(u64::MAX, &a) <= MASK && draw() <= MASK);
    }

    #[test]
    fn run_ids_are_readable() {
        assert!(run_id(1_769_860_800_123).starts_with("20260131T120000.123Z-"));
    }
}
