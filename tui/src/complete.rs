//! What the display filter that is being typed lacks: whether it can be read, and how the word at its end may go on.
//!
//! The language is that of `weft dissect -Y`, and the dissector's own parser decides; nothing of it is known here but how to
//! find the last word. Inside of quotes nothing is proposed.

use weft_dissector::filter::{Filter, Known, Wanted, known};

/// Values of a field whose names are proposed: all that have names in these protocols are below.
const VALUES: u64 = 256;

/// What there is to say of a filter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    /// What is wrong with it, and in which column.
    pub(crate) fault: Option<String>,
    /// How its last word may go on, each with what it means.
    pub(crate) words: Vec<(String, &'static str)>,
}

/// Looks at a filter. An empty one lists all packets and is not wrong.
pub(crate) fn advise(text: &str) -> Advice {
    let fault = match Filter::parse(text, &mut Wanted::default()) {
        Err(error) if !text.trim().is_empty() => Some(format!("column {}: {}", error.column, error.message)),
        _ => None,
    };
    Advice { fault, words: words(text) }
}

/// The filter with its last word as long as all proposals agree; a blank behind the only one.
pub(crate) fn completed(text: &str) -> String {
    let words = words(text);
    let Some((first, more)) = words.split_first() else { return text.to_owned() };
    let agreed = more.iter().fold(first.0.len(), |len, (word, _)| {
        let same = first.0.bytes().zip(word.bytes()).take_while(|(a, b)| a == b).count();
        len.min(same)
    });
    let head = &text[..text.len() - last_word(text).len()];
    let blank = if more.is_empty() { " " } else { "" };
    format!("{head}{}{blank}", first.0.get(..agreed).unwrap_or(&first.0))
}

fn last_word(text: &str) -> &str {
    let is_part = |c: char| c.is_ascii_alphanumeric() || matches!(c, '_' | '.');
    &text[text.trim_end_matches(is_part).len()..]
}

fn words(text: &str) -> Vec<(String, &'static str)> {
    let word = last_word(text);
    let head = &text[..text.len() - word.len()];
    if head.matches('"').count() % 2 == 1 {
        return Vec::new();
    }
    let values = compared(head).map(values).unwrap_or_default();
    if !values.is_empty() {
        return values.into_iter().filter(|(value, _)| value.starts_with(word) && value != word).collect();
    }
    if word.is_empty() {
        return Vec::new();
    }
    let names = known::all().into_iter().filter(|known| known.name.starts_with(word) && known.name != word);
    let mut names: Vec<_> = names.map(|known| (known.name.to_owned(), known.label)).collect();
    names.sort_unstable();
    names
}

/// The field whose value is to come behind `head`, if one is.
fn compared(head: &str) -> Option<&'static Known> {
    let head = head.trim_end();
    let left = head.trim_end_matches(['=', '!', '<', '>', '~']);
    if left.len() < head.len() { known(last_word(left.trim_end())) } else { None }
}

/// The names of a field's values, as a filter writes them.
fn values(known: &'static Known) -> Vec<(String, &'static str)> {
    let named = (0..VALUES).filter_map(|value| known.names.and_then(|name| name(value)));
    let mut all: Vec<&'static str> = named.chain(known.words.iter().copied()).collect();
    all.sort_unstable();
    all.dedup();
    let is_bare = |name: &str| name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
    all.into_iter()
        .map(|name| (if is_bare(name) { name.to_owned() } else { format!("{name:?}") }, known.label))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn proposed(text: &str) -> Vec<String> {
        words(text).into_iter().map(|(word, _)| word).collect()
    }

    #[test]
    fn names_are_completed_as_far_as_they_agree() {
        assert_eq!(completed("tcp.str"), "tcp.stream ");
        assert_eq!(completed("frame.number > 3 && iwarp_mpa.ulp"), "frame.number > 3 && iwarp_mpa.ulpdulength ");
        let agreed = completed("iwarp_r");
        assert!(agreed.starts_with("iwarp_rdma") && !agreed.ends_with(' '), "{agreed}");
        assert!(proposed("iwarp_rdma.o").contains(&"iwarp_rdma.opcode".to_owned()));
        assert_eq!(completed("no_such_name"), "no_such_name");
        assert_eq!(completed(""), "");
    }

    #[test]
    fn every_proposal_for_a_value_can_be_read() {
        for field in ["iwarp_rdma.opcode", "crc_status", "finding.severity"] {
            let proposals = proposed(&format!("{field} == "));
            assert!(proposals.len() > 2, "{field}: {proposals:?}");
            for value in proposals {
                assert_eq!(advise(&format!("{field} == {value}")).fault, None, "{field} == {value}");
            }
        }
        assert_eq!(completed("crc_status!=go"), "crc_status!=good ");
        assert_eq!(proposed("iwarp_rdma.opcode == \"Se"), [""; 0]);
    }

    #[test]
    fn what_is_wrong_is_told_with_its_column() {
        assert_eq!(advise("tcp.stream == 0").fault, None);
        assert_eq!(advise(" ").fault, None);
        let fault = advise("finding && tcp.steam == 0").fault.unwrap();
        assert!(fault.starts_with("column 12: ") && fault.contains("did you mean tcp.stream?"), "{fault}");
        assert!(advise("tcp.stream ==").fault.is_some());
    }
}
