//! Compares the signature in an entry with the signature of a result.
//!
//! A signature begins with the ids of the violated requirements (`MPA-7.1.1-2: it sent ...`). The
//! signature in an entry can be a part of it. But an id is compared as an id: `MPA-7.1.1-1` is no
//! part of `MPA-7.1.1-10`, and a text after the ids is valid only for exactly these ids. Otherwise,
//! an entry would hide new violations. In an entry, an id with a question mark (`PM-7.5.1-1?`) can be
//! missing in a result, because some targets violate a requirement only sometimes.

use std::collections::BTreeSet;

use weft_core::RequirementId;

/// A signature, split into its parts.
pub(super) struct Signature {
    /// The complete signature.
    all: String,
    /// The ids of requirements at the begin. Empty if the signature does not begin with ids only.
    ids: BTreeSet<RequirementId>,
    /// The ids with a question mark.
    optional: BTreeSet<RequirementId>,
    /// The text after the ids. `None` if there are only ids.
    text: Option<String>,
}

impl Signature {
    /// Parses a signature.
    pub(super) fn of(signature: &str) -> Self {
        let (ids, text) = match signature.split_once(": ") {
            Some((ids, text)) => (ids, Some(text.to_owned())),
            None => (signature, None),
        };
        let (optional, ids): (Vec<&str>, Vec<&str>) = ids.split_whitespace().partition(|id| id.ends_with('?'));
        let parsed = |ids: Vec<&str>| {
            let ids = ids.into_iter().map(|id| id.trim_end_matches('?').parse().ok());
            ids.collect::<Option<BTreeSet<_>>>().unwrap_or_default()
        };
        Signature { all: signature.to_owned(), ids: parsed(ids), optional: parsed(optional), text }
    }

    /// Returns whether an entry with this signature expects a failure with the signature `shown`.
    /// If `only_known` is set, the failure may have no other ids than the entry.
    pub(super) fn expects(&self, shown: &Signature, only_known: bool) -> bool {
        if self.ids.is_empty() || shown.ids.is_empty() {
            return shown.all.contains(&self.all);
        }
        let is_exact = only_known || self.text.is_some();
        let is_known = |id: &RequirementId| self.ids.contains(id) || self.optional.contains(id);
        let has_ids = self.ids.is_subset(&shown.ids) && (!is_exact || shown.ids.iter().all(is_known));
        let has_text = |text: &String| shown.text.as_ref().is_some_and(|shown| shown.contains(text));
        has_ids && self.text.as_ref().is_none_or(has_text)
    }
}

#[cfg(test)]
mod tests {
    use super::Signature;

    fn expects(known: &str, shown: &str, only_known: bool) -> bool {
        Signature::of(known).expects(&Signature::of(shown), only_known)
    }

    #[test]
    fn an_id_is_no_part_of_another_id() {
        assert!(expects("MPA-7.1.1-1", "MPA-7.1.1-1", true));
        assert!(!expects("MPA-7.1.1-1", "MPA-7.1.1-10", false));
        assert!(!expects("MPA-7.1.1-1", "MPA-7.1.1-10: it sent a Reply", false));
    }

    #[test]
    fn new_violations_are_not_expected() {
        assert!(!expects("MPA-7.1.1-1", "MPA-7.1.1-1 RDMAP-4.8-6", true));
        assert!(!expects("MPA-7.1.1-2: it sent", "DDP-7-1 MPA-7.1.1-2: it sent a Reply", false));
        assert!(expects("MPA-7.1.1-2: it sent", "MPA-7.1.1-2: it sent a Reply", false));
    }

    #[test]
    fn an_id_with_a_question_mark_can_be_missing() {
        let known = "PM-7.3-1 PM-7.5.1-1?";
        assert!(expects(known, "PM-7.3-1", true) && expects(known, "PM-7.3-1 PM-7.5.1-1", true));
        assert!(!expects(known, "PM-7.5.1-1", true) && !expects(known, "PM-7.3-1 PM-7.3.1.5-1", true));
    }

    #[test]
    fn a_part_of_the_text_and_some_of_the_ids_are_enough() {
        let shown = "DDP-7-1 MPA-7.1.1-2: it sent a Reply";
        for known in ["", "a Reply", "MPA", "MPA-7.1.1-2", "DDP-7-1 MPA-7.1.1-2", "DDP-7-1 MPA-7.1.1-2: it sent"] {
            assert!(expects(known, shown, false), "{known}");
        }
        assert!(!expects("it closed", shown, false) && !expects("MPA-7.1.1-3", shown, false));
    }
}
