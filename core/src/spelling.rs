//! A word that nothing is called: which name was meant?

/// The name among `known` that was most likely meant; `None` when nothing is near.
pub fn nearest<'a>(word: &str, known: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    // No name is longer, and the work grows with the length.
    let word: String = word.chars().take(80).collect::<String>().to_lowercase();
    let (slips, _, best) = known.into_iter().map(|name| (distance(&word, name), name.len(), name)).min()?;
    (slips <= 2.max(word.chars().count() / 3)).then_some(best)
}

/// Letters to insert, remove or replace to come from one word to the other.
#[must_use]
pub fn distance(from: &str, to: &str) -> usize {
    let to: Vec<char> = to.chars().collect();
    let mut row: Vec<usize> = (0..=to.len()).collect();
    for (i, a) in from.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, b) in to.iter().enumerate() {
            let above = row[j + 1];
            row[j + 1] = (above + 1).min(row[j] + 1).min(diagonal + usize::from(a != *b));
            diagonal = above;
        }
    }
    row[to.len()]
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
