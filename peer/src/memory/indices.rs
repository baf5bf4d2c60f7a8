//! Chooses the STag Index of a new region or window.
//!
//! A peer that knows one STag must not be able to guess the next STag (RFC 5042 sections 6.2 and
//! 7.1.1). Regions and windows are at consecutive positions of a table in
//! [`Memory`](super::Memory). [`Indices`] converts a position into an Index by a permutation of all
//! 24-bit numbers. The permutation depends on a seed. The inverse permutation converts an Index
//! into its position. Therefore no search is necessary.
//!
//! The permutation hides the order of the Indices, but it is not a cipher. PDs and access rights
//! protect the memory.

use super::StagIndex;

/// Number of rounds of the permutation, which is a Feistel network. After four rounds, each output
/// bit depends on each input bit.
const ROUNDS: usize = 4;
/// Number of bits in half of an Index.
const HALF: u32 = 12;
const MASK: u32 = (1 << HALF) - 1;

/// A permutation of the numbers 0 to 2^24 - 1.
#[derive(Debug, Clone, Copy)]
pub(super) struct Indices {
    keys: [u32; ROUNDS],
    /// Number of rounds in use. With 0 rounds, the permutation leaves all numbers unchanged.
    rounds: usize,
}

impl Indices {
    pub(super) fn new(seed: u64) -> Self {
        let mut state = seed;
        // The generator is SplitMix64. Its consecutive outputs look unrelated.
        let keys = std::array::from_fn(|_| {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mixed = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            (mixed ^ (mixed >> 27)) as u32
        });
        Indices { keys, rounds: ROUNDS }
    }

    /// The permutation that leaves all numbers unchanged. Consecutive Indices are easy to guess, so
    /// only a [deviation](crate::hostile) (a deliberate protocol violation) uses this permutation.
    pub(super) fn consecutive() -> Self {
        Indices { keys: [0; ROUNDS], rounds: 0 }
    }

    /// Converts a position into its Index. `None` if `position` exceeds 2^24 - 1, and for the one
    /// position whose Index would be 0.
    pub(super) fn index(self, position: usize) -> Option<StagIndex> {
        let position = u32::try_from(position).ok().filter(|position| *position <= StagIndex::MAX)?;
        let (mut left, mut right) = (position >> HALF, position & MASK);
        for key in self.keys.into_iter().take(self.rounds) {
            (left, right) = (right, left ^ mix(right, key));
        }
        StagIndex::new(left << HALF | right)
    }

    /// Converts an Index into its position.
    pub(super) fn position(self, index: StagIndex) -> usize {
        self.place_of(index.get())
    }

    fn place_of(self, number: u32) -> usize {
        let (mut left, mut right) = (number >> HALF, number & MASK);
        for key in self.keys.into_iter().take(self.rounds).rev() {
            (left, right) = (right ^ mix(left, key), left);
        }
        (left << HALF | right) as usize
    }
}

fn mix(half: u32, key: u32) -> u32 {
    (half ^ key).wrapping_mul(0x9e37_79b1) >> (32 - HALF)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_place_has_an_index_of_its_own_and_one_has_none() {
        for seed in [0, 1, 0xdead_beef] {
            let indices = Indices::new(seed);
            for position in (0..1 << 24).step_by(997) {
                assert_eq!(indices.index(position).map(|index| indices.position(index)), Some(position));
            }
            assert_eq!(indices.index(indices.place_of(0)), None);
        }
        assert_eq!(Indices::new(0).index(1 << 24), None);
    }

    #[test]
    fn neighbours_are_far_apart_and_seeds_differ() {
        let first = |seed: u64| -> Vec<u32> {
            (0..64).map(|position| Indices::new(seed).index(position).map_or(0, StagIndex::get)).collect()
        };
        assert_ne!(first(1), first(2));
        let near = first(1).windows(2).filter(|pair| pair[0].abs_diff(pair[1]) < 256).count();
        assert!(near < 4, "{near} of 63 Indices are close to the previous Index");
    }
}
