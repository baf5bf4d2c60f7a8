//! How large the receives are that are posted ahead.
//!
//! A large one is worth an advertisement, or takes what a SrcAvail has in one Read. Where each
//! message has a few octets, it is neither: advertised again and again, it costs a SinkAvail and a
//! RdmaWrCompl for each of them, where a Data message alone would do.

/// Receives in a row that got few octets, after which the next ones are small.
const FEW: u8 = 4;

/// What has been seen of the peer's messages.
#[derive(Debug, Default)]
pub(super) struct Ahead {
    /// Receives in a row, up to the last one, that got few octets.
    few: u8,
}

impl Ahead {
    /// A receive of `len` octets has ended with `octets`. Those up to `least` are not advertised.
    pub(super) fn ended(&mut self, len: usize, octets: usize, least: usize) {
        let got_few = octets < len.min(least);
        self.few = if got_few { FEW.min(self.few + 1) } else { 0 };
    }

    /// Octets of the next one, where large ones have `large`.
    pub(super) fn len(&self, large: usize, least: usize) -> usize {
        if self.few == FEW { large.min(least) } else { large }.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_octets_in_a_row_make_receives_small_until_one_is_filled() {
        let (large, least) = (65536, 16384);
        let mut ahead = Ahead::default();
        let mut next = |octets| {
            let len = ahead.len(large, least);
            ahead.ended(len, octets, least);
            len
        };
        assert_eq!([1, 16383, 16384, 1, 2, 3].map(&mut next), [large; 6], "the third was not small");
        assert_eq!([4, 5, 16383].map(&mut next), [large, least, least]);
        assert_eq!([16384, 1, 65536].map(&mut next), [least, large, large], "a small one is filled: more waits");
        // Receives that are never advertised stay as they are.
        assert_eq!(
            [0; 9].map(|octets| {
                ahead.ended(100, octets, least);
                ahead.len(100, least)
            }),
            [100; 9]
        );
    }
}
