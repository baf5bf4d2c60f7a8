//! Selects the variants of a case that a tier runs. These are all variants, or a sample that a seed
//! determines, or a pairwise set. In a pairwise set, any two values of different parameters occur
//! together at least once.

use super::combination::Strategy;
use crate::model::{CaseInfo, CaseKey};

/// Returns the selected variants of a case, in the order of [`super::declare::variants`].
pub(crate) fn chosen(info: &CaseInfo, strategy: Strategy, seed: u64) -> Vec<CaseKey> {
    let all = super::declare::variants(info);
    let sizes: Vec<usize> = info.parameters.values().map(Vec::len).collect();
    let indices = match strategy {
        Strategy::All => return all,
        // If there is only one parameter, there are no pairs, but each value must occur. If there
        // are two parameters, each variant is a pair.
        Strategy::Pairwise if sizes.len() < 3 => return all,
        Strategy::Sample(count) if count >= all.len() => return all,
        Strategy::Pairwise => pairwise(&sizes),
        Strategy::Sample(count) => sample(all.len(), count, seed),
    };
    indices.into_iter().filter_map(|index| all.get(index).cloned()).collect()
}

/// Returns `count` different numbers below `of`, in rising order.
fn sample(of: usize, count: usize, seed: u64) -> Vec<usize> {
    let mut numbers: Vec<usize> = (0..of).collect();
    let mut state = seed;
    for place in 0..count.min(of) {
        let left = u64::try_from(of - place).unwrap_or(u64::MAX);
        let drawn = usize::try_from(split_mix(&mut state) % left).unwrap_or(0);
        numbers.swap(place, place + drawn);
    }
    numbers.truncate(count);
    numbers.sort_unstable();
    numbers
}

/// Returns the next number of SplitMix64, the generator of Steele, Lea and Flood.
fn split_mix(state: &mut u64) -> u64 {
    *state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let mixed = (*state ^ (*state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

/// Pairs of values of two parameters that no selected variant has yet.
struct UncoveredPairs {
    sizes: Vec<usize>,
    /// Whether a pair is not covered yet. The indices are the two parameters, then the two values
    /// as one number.
    open: Vec<Vec<Vec<bool>>>,
}

impl UncoveredPairs {
    fn new(sizes: &[usize]) -> Self {
        let pair = |i: usize, j: usize| if i < j { vec![true; sizes[i] * sizes[j]] } else { Vec::new() };
        let open = (0..sizes.len()).map(|i| (0..sizes.len()).map(|j| pair(i, j)).collect()).collect();
        UncoveredPairs { sizes: sizes.to_vec(), open }
    }

    fn place(&self, i: usize, a: usize, j: usize, b: usize) -> (usize, usize, usize) {
        if i < j { (i, j, a * self.sizes[j] + b) } else { (j, i, b * self.sizes[i] + a) }
    }

    fn is_open(&self, i: usize, a: usize, j: usize, b: usize) -> bool {
        let (i, j, at) = self.place(i, a, j, b);
        self.open[i][j][at]
    }

    fn first(&self) -> Option<(usize, usize, usize, usize)> {
        let pairs = (0..self.sizes.len()).flat_map(|i| (i + 1..self.sizes.len()).map(move |j| (i, j)));
        pairs.into_iter().find_map(|(i, j)| {
            let at = self.open[i][j].iter().position(|open| *open)?;
            Some((i, at / self.sizes[j], j, at % self.sizes[j]))
        })
    }

    fn cover(&mut self, row: &[usize]) {
        for i in 0..row.len() {
            for j in i + 1..row.len() {
                let (_, _, at) = self.place(i, row[i], j, row[j]);
                self.open[i][j][at] = false;
            }
        }
    }
}

/// Selects variants greedily: each variant begins with a pair that is not covered yet. Then each
/// other parameter gets the value that covers the most uncovered pairs. Returns the positions of
/// the variants in the list of all variants.
fn pairwise(sizes: &[usize]) -> Vec<usize> {
    let mut uncovered = UncoveredPairs::new(sizes);
    let mut rows = Vec::new();
    while let Some((i, a, j, b)) = uncovered.first() {
        let mut row: Vec<Option<usize>> = vec![None; sizes.len()];
        (row[i], row[j]) = (Some(a), Some(b));
        for parameter in 0..sizes.len() {
            if row[parameter].is_some() {
                continue;
            }
            let gain = |value: usize| {
                let set = row.iter().enumerate().filter_map(|(other, at)| Some((other, (*at)?)));
                set.filter(|(other, at)| uncovered.is_open(parameter, value, *other, *at)).count()
            };
            // `max_by_key` returns the last of equal values. The order is reversed to get the
            // first.
            row[parameter] = (0..sizes[parameter]).rev().max_by_key(|value| gain(*value));
        }
        let row: Vec<usize> = row.into_iter().map(|value| value.unwrap_or(0)).collect();
        uncovered.cover(&row);
        rows.push(row.iter().zip(sizes).fold(0, |number, (value, size)| number * size + value));
    }
    rows.sort_unstable();
    rows.dedup();
    rows
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{ParameterValue, SourceLocation};
    use std::collections::BTreeSet;

    fn case(sizes: &[i64]) -> CaseInfo {
        let values = |size: i64| (0..size).map(ParameterValue::Integer).collect();
        CaseInfo {
            id: "mpa/x/one".into(),
            version: 1,
            title: String::new(),
            requirements: Vec::new(),
            roles: Vec::new(),
            capabilities: Vec::new(),
            tags: Vec::new(),
            parameters: (0..).zip(sizes).map(|(i, size)| (format!("p{i}"), values(*size))).collect(),
            source: SourceLocation { file: "mpa/x.lua".into(), line: 1 },
        }
    }

    /// Every pair of values of two different parameters in a list of variants.
    fn pairs(keys: &[CaseKey]) -> BTreeSet<String> {
        let mut found = BTreeSet::new();
        for key in keys {
            for (a, x) in &key.parameters {
                for (b, y) in key.parameters.iter().filter(|(b, _)| a < *b) {
                    found.insert(format!("{a}={x} {b}={y}"));
                }
            }
        }
        found
    }

    #[test]
    fn pairwise_has_every_pair_in_few_variants() {
        for sizes in [&[3, 3, 3, 3][..], &[2, 5, 1, 7], &[10, 10, 10], &[2; 10]] {
            let case = case(sizes);
            let (all, few) = (chosen(&case, Strategy::All, 0), chosen(&case, Strategy::Pairwise, 0));
            assert_eq!(pairs(&few), pairs(&all), "{sizes:?}");
            let mut largest = sizes.to_vec();
            largest.sort_unstable_by(|a, b| b.cmp(a));
            let least = usize::try_from(largest[0] * largest[1]).unwrap();
            assert!(few.len() >= least && few.len() <= 2 * least + 8, "{sizes:?}: {} of {}", few.len(), all.len());
            assert!(few.iter().is_sorted_by_key(|key| all.iter().position(|other| other == key)));
        }
    }

    #[test]
    fn one_parameter_has_all_its_values() {
        assert_eq!(chosen(&case(&[16]), Strategy::Pairwise, 0).len(), 16);
        assert_eq!(chosen(&case(&[]), Strategy::Pairwise, 0), [CaseKey::new("mpa/x/one")]);
        assert_eq!(chosen(&case(&[]), Strategy::Sample(2), 0), [CaseKey::new("mpa/x/one")]);
    }

    #[test]
    fn a_sample_depends_on_its_seed() {
        let case = case(&[10, 10]);
        let drawn = |seed| chosen(&case, Strategy::Sample(7), seed);
        assert_eq!(drawn(1), drawn(1));
        assert_ne!(drawn(1), drawn(2));
        let different: BTreeSet<CaseKey> = drawn(3).into_iter().collect();
        assert_eq!(different.len(), 7);
        assert_eq!(chosen(&case, Strategy::Sample(100), 1).len(), 100);
    }

    /// Each number is drawn about equally often.
    #[test]
    fn a_sample_prefers_nothing() {
        let mut drawn = [0u32; 10];
        for seed in 0..1000 {
            for number in sample(10, 3, seed) {
                drawn[number] += 1;
            }
        }
        assert!(drawn.iter().all(|count| (220..=380).contains(count)), "{drawn:?}");
    }
}
