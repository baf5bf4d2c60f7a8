//! Wraps text to the width of a panel.

/// Breaks `text` at spaces and line ends into lines of at most `width` characters. Splits words
/// that are longer than `width`.
pub(crate) fn wrap(text: &str, width: usize) -> Vec<String> {
    let width = width.max(1);
    let mut lines = Vec::new();
    for paragraph in text.lines() {
        let mut line = String::new();
        let mut len = 0;
        for word in paragraph.split_whitespace() {
            let mut word: Vec<char> = word.chars().collect();
            if len > 0 && len + 1 + word.len() > width {
                lines.push(std::mem::take(&mut line));
                len = 0;
            }
            while word.len() > width {
                let rest = word.split_off(width);
                lines.push(word.into_iter().collect());
                word = rest;
            }
            if len > 0 {
                line.push(' ');
                len += 1;
            }
            len += word.len();
            line.extend(word);
        }
        lines.push(line);
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn splits_only_words_that_do_not_fit() {
        assert_eq!(wrap("one two three", 7), ["one two", "three"]);
        assert_eq!(wrap("abcdefghij kl", 4), ["abcd", "efgh", "ij", "kl"]);
        assert_eq!(wrap("a\n\nb", 4), ["a", "", "b"]);
        assert_eq!(wrap("x", 0), ["x"]);
        assert!(wrap("", 4).is_empty());
    }

    #[test]
    fn no_line_is_too_long() {
        for width in 1..12 {
            for line in wrap("the quick brown fox jumps over incomprehensibilities", width) {
                assert!(line.chars().count() <= width, "{width}: {line:?}");
            }
        }
    }
}
