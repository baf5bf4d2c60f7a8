//! Suggestions for misspelled names.

/// Converts `word` to lower case, and returns the most similar name in `known`. A name may differ
/// by at most 2 letters. If `word` has 9 letters or more, a name may differ by at most a third of
/// the letters of `word`. If every name differs by more letters, returns `None`.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The comparison time grows with the length, and no known name is longer than 80 characters. So
    // the rest of a longer word is ignored.
    let word: String = word.chars().take(80).collect::<String>().to_lowercase();
    let (slips, _, best) = known.into_iter().map(|name| (distance(&word, name), name.len(), name)).min()?;
    (slips <= 2.max(word.chars().count() / 3)).then_some(best)
}

/// Number of letters to insert, remove or replace to change `from` into `to` (Levenshtein
/// distance).
#[must_use]
pub fn distance(from: &str, to: &str) -> usize {
    strsim::levenshtein(from, to)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_is_near_and_another_word_is_not() {
        let names = ["builtin", "builtin-tcp"];
        assert_eq!(nearest("bulitin", names), Some("builtin"));
        assert_eq!(nearest("builtin-tc", names), Some("builtin-tcp"));
        assert_eq!(nearest("nic-17.toml", names), None);
        assert_eq!(nearest("", []), None);
        assert_eq!((distance("", "abc"), distance("kitten", "sitting"), distance("same", "same")), (3, 3, 0));
    }
}
