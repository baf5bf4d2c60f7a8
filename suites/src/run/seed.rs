//! The source of randomness: one seed per run, and values that are derived from it.

use std::hash::{BuildHasher, Hasher, RandomState};

use crate::clock;
use crate::model::CaseKey;

/// Seed of a run that names no seed. It is the same in each run, so that two runs of a tier have
/// the same variants and can be compared.
pub const DEFAULT_SEED: u64 = 1;

/// Seeds have 53 bits, so that every JSON reader reads them exactly.
const MASK: u64 = (1 << 53) - 1;

/// Returns a random seed.
pub(super) fn draw() -> u64 {
    // The standard library's hash keys are random, which is enough here.
    RandomState::new().build_hasher().finish() & MASK
}

/// Returns the seed of one case. It depends only on the run's seed and on the key, not on the other
/// cases of the run.
pub(super) fn of_case(run: u64, key: &CaseKey) -> u64 {
    // The seed is FNV-1a over the key, followed by the finalizer of SplitMix64.
    let hash = key
        .to_string()
        .bytes()
        .fold(run ^ 0xcbf2_9ce4_8422_2325, |hash, octet| (hash ^ u64::from(octet)).wrapping_mul(0x0000_0100_0000_01b3));
    let hash = (hash ^ (hash >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let hash = (hash ^ (hash >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    (hash ^ (hash >> 31)) & MASK
}

/// Returns the id of a run, such as `20260131T120000.123Z-1f3a`. Ids sort by time, and are very
/// probably unique.
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
