//! A search through the list of packets. The search works in parts. Therefore a capture of millions
//! of frames does not block the screen.

/// The number of rows in a part.
const ROWS_PER_PART: usize = 8192;

/// A search in progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Search {
    from: usize,
    len: usize,
    /// The number of rows after `from` that were searched, with wrap-around.
    searched: usize,
}

/// The result of a part of the search.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum SearchStep {
    /// A row matches. Contains the index of the row.
    Found(usize),
    /// No row matches.
    NotFound,
    /// No row matches so far.
    Unfinished,
}

impl Search {
    /// Starts a search through `len` rows. The search begins after row `from`, wraps around, and
    /// checks row `from` last.
    pub(crate) fn new(from: usize, len: usize) -> Self {
        Search { from, len, searched: 0 }
    }

    /// Searches the next part. `matches` returns whether the row at an index matches.
    pub(crate) fn search_part(&mut self, matches: impl Fn(usize) -> bool) -> SearchStep {
        for _ in 0..ROWS_PER_PART {
            if self.searched == self.len {
                return SearchStep::NotFound;
            }
            self.searched += 1;
            let place = (self.from + self.searched) % self.len;
            if matches(place) {
                return SearchStep::Found(place);
            }
        }
        SearchStep::Unfinished
    }

    /// Returns the progress in percent.
    pub(crate) fn percent(&self) -> usize {
        100 * self.searched / self.len.max(1)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn wraps_around_and_works_in_parts() {
        let mut search = Search::new(3, 5);
        assert_eq!(search.search_part(|place| place == 1), SearchStep::Found(1));
        assert_eq!(search.search_part(|place| place == 1), SearchStep::NotFound);
        assert_eq!(Search::new(0, 0).search_part(|_| true), SearchStep::NotFound);
        let mut search = Search::new(10, 2 * ROWS_PER_PART);
        assert_eq!([search.search_part(|_| false), search.search_part(|_| false)], [SearchStep::Unfinished; 2]);
        assert_eq!((search.percent(), search.search_part(|_| false)), (100, SearchStep::NotFound));
    }
}
