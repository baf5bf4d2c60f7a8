//! A search through the rows, a piece at a time: a capture of millions of frames does not hold the screen up.

/// Rows that are looked at before keys are looked at again.
const PIECE: usize = 8192;

/// A search that goes on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hunt {
    from: usize,
    len: usize,
    /// Rows behind `from`, around the end, that are looked at.
    seen: usize,
}

/// What a piece of it came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hunted {
    /// The place.
    At(usize),
    /// There is none.
    Nowhere,
    /// Nothing so far.
    NotYet,
}

impl Hunt {
    /// A search behind `from`, around the end of `len` rows; `from` itself comes last.
    pub(crate) fn new(from: usize, len: usize) -> Self {
        Hunt { from, len, seen: 0 }
    }

    /// Looks at some more.
    pub(crate) fn on(&mut self, is_it: impl Fn(usize) -> bool) -> Hunted {
        for _ in 0..PIECE {
            if self.seen == self.len {
                return Hunted::Nowhere;
            }
            self.seen += 1;
            let place = (self.from + self.seen) % self.len;
            if is_it(place) {
                return Hunted::At(place);
            }
        }
        Hunted::NotYet
    }

    /// How much is looked at, in percent.
    pub(crate) fn percent(&self) -> usize {
        100 * self.seen / self.len.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_goes_around_the_end_in_pieces() {
        let mut hunt = Hunt::new(3, 5);
        assert_eq!(hunt.on(|place| place == 1), Hunted::At(1));
        assert_eq!(hunt.on(|place| place == 1), Hunted::Nowhere);
        assert_eq!(Hunt::new(0, 0).on(|_| true), Hunted::Nowhere);
        let mut hunt = Hunt::new(10, 2 * PIECE);
        assert_eq!([hunt.on(|_| false), hunt.on(|_| false)], [Hunted::NotYet; 2]);
        assert_eq!((hunt.percent(), hunt.on(|_| false)), (100, Hunted::Nowhere));
    }
}
