//! Chooses the size of the receives that are posted ahead.
//!
//! If messages have many bytes, large receives are better: they can be advertised, or one Read can
//! fill them with all data of a SrcAvail. If each message has only a few bytes, small receives are
//! better. With large receives, each such message would cost a SinkAvail and an RdmaWrCompl,
//! although a Data message would be enough.

/// After this number of consecutive receives that got few bytes, the next receives are small.
const SMALL_AFTER: u8 = 4;

/// Records how full the recent receives were.
#[derive(Debug, Default)]
pub(super) struct ReceiveSizer {
    /// Number of consecutive receives that got few bytes, up to and including the last receive. The
    /// number is at most [`SMALL_AFTER`].
    few: u8,
}

impl ReceiveSizer {
    /// Notes that a receive of `len` bytes has ended with `octets` bytes. Receives of up to `least`
    /// bytes are not advertised.
    pub(super) fn ended(&mut self, len: usize, octets: usize, least: usize) {
        let got_few = octets < len.min(least);
        self.few = if got_few { SMALL_AFTER.min(self.few + 1) } else { 0 };
    }

    /// Returns the size in bytes of the next receive. `large` is the size of a large receive.
    pub(super) fn len(&self, large: usize, least: usize) -> usize {
        if self.few == SMALL_AFTER { large.min(least) } else { large }.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_octets_in_a_row_make_receives_small_until_one_is_filled() {
        let (large, least) = (65536, 16384);
        let mut receive_sizer = ReceiveSizer::default();
        let mut next = |octets| {
            let len = receive_sizer.len(large, least);
            receive_sizer.ended(len, octets, least);
            len
        };
        assert_eq!([1, 16383, 16384, 1, 2, 3].map(&mut next), [large; 6], "the third receive got enough bytes");
        assert_eq!([4, 5, 16383].map(&mut next), [large, least, least]);
        assert_eq!([16384, 1, 65536].map(&mut next), [least, large, large], "after a full small receive, a large one");
        // Receives that are too small to be advertised keep their size.
        assert_eq!(
            [0; 9].map(|octets| {
                receive_sizer.ended(100, octets, least);
                receive_sizer.len(100, least)
            }),
            [100; 9]
        );
    }
}
