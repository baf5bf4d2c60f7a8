//! Suggestions for misspelled names.

/// The name among `known` that is nearest to `word`; `None` if none is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No name is longer, and the work grows with the length.
    let word: String = word.chars().take(80).collect::<String>().to_lowercase();
    let (slips, _, best) = known.into_iter().map(|name| (distance(&word, name), name.len(), name)).min()?;
    (slips <= 2.max(word.chars().count() / 3)).then_some(best)
}

/// Letters to insert, remove or replace to get from one word to the other (Levenshtein distance).
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
