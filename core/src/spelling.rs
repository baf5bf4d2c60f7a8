//! Suggestions for misspelled names.

/// Converts `word` to lower case, and returns the most similar name in `known`. Names of which
/// `word` [is the beginning](is_beginning) come first. Another name may differ by at most 2
/// letters. If `word` has 9 letters or more, a name may differ by at most a third of the letters of
/// `word`. If every name differs by more letters, returns `None`.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // The comparison time grows with the length, and no known name is longer than 80 characters. So
    // the rest of a longer word is ignored.
    let word: String = word.chars().take(80).collect::<String>().to_lowercase();
    let rank = |name: &'a str| (!is_beginning(&word, name), distance(&word, name), name.len(), name);
    let (is_other, slips, _, best) = known.into_iter().map(rank).min()?;
    (!is_other || slips <= 2.max(word.chars().count() / 3)).then_some(best)
}

/// Returns whether `word` consists of the first parts of `name`, such as `tcp.seq` of
/// `tcp.seq_raw`. A `word` of one part is too short to identify a name.
#[must_use]
pub fn is_beginning(word: &str, name: &str) -> bool {
    let is_separator = |c: char| !c.is_alphanumeric();
    word.contains(is_separator) && name.strip_prefix(word).is_some_and(|rest| rest.starts_with(is_separator))
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

    #[test]
    fn prefers_names_that_begin_with_the_word() {
        assert_eq!(nearest("mpa/7.1.1-pd", ["mpa/7.1.1-key", "mpa/7.1.1-pd-length"]), Some("mpa/7.1.1-pd-length"));
        assert_eq!(nearest("Frame.time", ["frame.time_relative", "frame.time_epoch"]), Some("frame.time_epoch"));
        assert!(!is_beginning("mpa", "mpa/7.1.1-key") && !is_beginning("mpa/7.1.1-p", "mpa/7.1.1-pd"));
    }
}
