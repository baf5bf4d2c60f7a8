//! A search through the rows in parts, so that a capture of millions of frames does not block the
//! screen.

/// Rows in a part.
const PIECE: usize = 8192;

/// A search in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Hunt {
    from: usize,
    len: usize,
    /// The number of searched rows: those after `from`, with wrap-around.
    searched: usize,
}

/// The result of a part of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Hunted {
    /// The index of the row.
    At(usize),
    /// No row matches.
    Nowhere,
    /// No row matches so far.
    NotYet,
}

impl Hunt {
    /// A search through `len` rows that starts after `from` and wraps around; `from` comes last.
    pub(crate) fn new(from: usize, len: usize) -> Self {
        Hunt { from, len, searched: 0 }
    }

    /// Searches the next part.
    pub(crate) fn on(&mut self, matches: impl Fn(usize) -> bool) -> Hunted {
        for _ in 0..PIECE {
            if self.searched == self.len {
                return Hunted::Nowhere;
            }
            self.searched += 1;
            let place = (self.from + self.searched) % self.len;
            if matches(place) {
                return Hunted::At(place);
            }
        }
        Hunted::NotYet
    }

    /// The progress in percent.
    pub(crate) fn percent(&self) -> usize {
        100 * self.searched / self.len.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_around_and_works_in_parts() {
        let mut hunt = Hunt::new(3, 5);
        assert_eq!(hunt.on(|place| place == 1), Hunted::At(1));
        assert_eq!(hunt.on(|place| place == 1), Hunted::Nowhere);
        assert_eq!(Hunt::new(0, 0).on(|_| true), Hunted::Nowhere);
        let mut hunt = Hunt::new(10, 2 * PIECE);
        assert_eq!([hunt.on(|_| false), hunt.on(|_| false)], [Hunted::NotYet; 2]);
        assert_eq!((hunt.percent(), hunt.on(|_| false)), (100, Hunted::Nowhere));
    }
}
