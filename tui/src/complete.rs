//! Checks and completes a display filter while the user types it.
//!
//! The parser of the dissector checks the filter. This module only finds the last word and proposes
//! completions. Inside quotes there are no proposals.

use weft_dissector::filter::{Filter, KnownField, WantedFields, known};

/// Only named values below this number are proposed. All named values of the supported protocols
/// are below this number.
const VALUES: u64 = 256;

/// The fields that filters use most, in this order. Their completions come first.
const MOST_USED: [&str; 20] = [
    "finding",
    "tcp.stream",
    "frame.number",
    "iwarp_rdma.opcode",
    "ip.addr",
    "tcp.port",
    "iwarp_rdma.terminate",
    "finding.severity",
    "finding.requirement",
    "iwarp_mpa.req",
    "iwarp_mpa.rep",
    "crc_status",
    "iwarp_ddp.stag",
    "iwarp_mpa.fpdu",
    "iwarp_rdma.rr",
    "frame.time_relative",
    "kind",
    "ipv6.addr",
    "iwarp_sdp.mid",
    "iwarp_pm",
];

/// The error and the completions of a filter.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Advice {
    /// The error message with the column of the error. `None` if the filter is valid.
    pub(crate) fault: Option<String>,
    /// The completions of the last word. Each completion has the complete word and its meaning.
    pub(crate) words: Vec<(String, &'static str)>,
}

/// Checks a filter. An empty filter lists all packets and is valid.
pub(crate) fn advise(text: &str) -> Advice {
    let fault = match Filter::parse(text, &mut WantedFields::default()) {
        Err(error) if !text.trim().is_empty() => Some(format!("column {}: {}", error.column, error.message)),
        _ => None,
    };
    Advice { fault, words: words(text) }
}

/// Returns the filter after the Tab key: the last word is completed as far as all proposals agree.
/// If there is only one proposal, adds a blank.
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
    // An empty filter gets only the fields that filters use most.
    if word.is_empty() && !text.trim().is_empty() {
        return Vec::new();
    }
    let is_proposed = |known: &&KnownField| match word.is_empty() {
        true => MOST_USED.contains(&known.name),
        false => known.name.starts_with(word) && known.name != word,
    };
    let mut names: Vec<_> = known::all().into_iter().filter(is_proposed).collect();
    names.sort_by_key(|known| (rank(known.name), known.name));
    names.into_iter().map(|known| (known.name.to_owned(), known.label)).collect()
}

/// Returns the rank of a field by its use. The rank of the most used field is 0.
fn rank(name: &str) -> usize {
    MOST_USED.iter().position(|used| *used == name).unwrap_or(MOST_USED.len())
}

/// Returns the field that is compared, if `head` ends with a field and a comparison operator.
fn compared(head: &str) -> Option<&'static KnownField> {
    let head = head.trim_end();
    let left = head.trim_end_matches(['=', '!', '<', '>', '~']);
    if left.len() < head.len() { known(last_word(left.trim_end())) } else { None }
}

/// Returns the names of a field's values in the syntax of filters, each with the label of the
/// field.
fn values(known: &'static KnownField) -> Vec<(String, &'static str)> {
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
    fn completes_names_as_far_as_they_agree() {
        assert_eq!(completed("tcp.str"), "tcp.stream ");
        assert_eq!(completed("frame.number > 3 && iwarp_mpa.ulp"), "frame.number > 3 && iwarp_mpa.ulpdulength ");
        let agreed = completed("iwarp_r");
        assert!(agreed.starts_with("iwarp_rdma") && !agreed.ends_with(' '), "{agreed}");
        assert!(proposed("iwarp_rdma.o").contains(&"iwarp_rdma.opcode".to_owned()));
        assert_eq!(completed("no_such_name"), "no_such_name");
        assert_eq!(completed(""), "");
    }

    #[test]
    fn most_used_fields_come_first() {
        for name in MOST_USED {
            assert!(known(name).is_some(), "{name}");
        }
        assert_eq!(proposed("tcp.")[..2], ["tcp.stream", "tcp.port"]);
        assert_eq!(proposed("iwarp_rdma.t")[0], "iwarp_rdma.terminate");
        let rest = &proposed("frame.")[2..];
        assert!(rest.len() > 2 && rest.is_sorted(), "{rest:?}");
        assert_eq!((proposed("").len(), proposed("")[0].as_str()), (MOST_USED.len(), "finding"));
        assert_eq!(proposed("finding && "), [""; 0]);
    }

    #[test]
    fn every_proposed_value_is_valid() {
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
    fn reports_an_error_with_its_column() {
        assert_eq!(advise("tcp.stream == 0").fault, None);
        assert_eq!(advise(" ").fault, None);
        let fault = advise("finding && tcp.steam == 0").fault.unwrap();
        assert!(fault.starts_with("column 12: ") && fault.contains("did you mean tcp.stream?"), "{fault}");
        assert!(advise("tcp.stream ==").fault.is_some());
    }
}
