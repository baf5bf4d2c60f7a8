//! The list of all deviations, and the search for a deviation by its name.

use std::fmt;

use super::{Deviation, Deviations, old_names};

/// Returns every deviation, sorted by name.
pub fn all() -> impl Iterator<Item = &'static Deviation> {
    let tables = [
        super::arrival::ALL,
        super::completion::ALL,
        super::conduct::ALL,
        super::ddp::ALL,
        super::extension::ALL,
        super::fpdu::ALL,
        super::p2p::ALL,
        super::placement::ALL,
        super::portmap::ALL,
        super::rdmap::ALL,
        super::reassembly::ALL,
        super::startup::ALL,
        super::terminate::ALL,
        super::user::ALL,
    ];
    let mut all: Vec<&'static Deviation> = tables.into_iter().flatten().chain(super::sdp::all()).collect();
    all.sort_unstable_by_key(|deviation| deviation.name);
    all.into_iter()
}

/// Returns the deviation with this name. Names from previous versions also work.
///
/// # Errors
/// No deviation has the name. The error message suggests similar names.
pub fn by_name(name: &str) -> Result<&'static Deviation, UnknownDeviation> {
    let current = old_names::current(name);
    all().find(|deviation| deviation.name == current).ok_or_else(|| UnknownDeviation { name: name.to_owned() })
}

/// A name that no deviation has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownDeviation {
    /// The unknown name.
    pub name: String,
}

impl fmt::Display for UnknownDeviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no deviation is called {:?}; ", self.name)?;
        let names = || all().map(|deviation| deviation.name);
        if let Some(near) = weft_core::spelling::nearest(&self.name, names()) {
            return write!(f, "did you mean {near}?");
        }
        let same_layer: Vec<_> = names().filter(|name| name.split('.').next() == self.name.split('.').next()).collect();
        if same_layer.is_empty() {
            let mut layers: Vec<_> = names().filter_map(|name| name.split('.').next()).collect();
            layers.dedup();
            return write!(f, "names begin with {}.", layers.join("., "));
        }
        write!(f, "the deviations of this layer are {}", same_layer.join(", "))
    }
}

impl std::error::Error for UnknownDeviation {}

impl Deviations {
    /// Returns the set of the deviations with these names.
    ///
    /// # Errors
    /// One of the names is unknown.
    pub fn from_names<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, UnknownDeviation> {
        let mut set = Deviations::NONE;
        for name in names {
            set.insert(by_name(name)?);
        }
        Ok(set)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_entry_is_complete_and_has_a_unique_name() {
        let mut names = BTreeSet::new();
        for deviation in all() {
            assert!(names.insert(deviation.name), "{} twice", deviation.name);
            assert!(!deviation.breaks.is_empty(), "{}", deviation.name);
            let is_phrase = deviation.description.starts_with(|c: char| c.is_ascii_lowercase());
            assert!(is_phrase && !deviation.description.ends_with('.'), "{}", deviation.name);
            assert!(deviation.name.split_once('.').is_some_and(|(layer, what)| !layer.is_empty() && !what.is_empty()));
            assert_eq!(by_name(deviation.name), Ok(deviation));
        }
        assert!(all().map(|deviation| deviation.name).is_sorted());
    }

    #[test]
    fn an_unknown_name_is_reported_with_those_that_exist() {
        let error = Deviations::from_names(["mpa.accepts-wrong-key", "mpa.nonsense"]).unwrap_err();
        let text = error.to_string();
        assert!(
            text.starts_with("no deviation is called \"mpa.nonsense\"; the deviations of this layer are mpa.accepts-"),
            "{text}"
        );
        assert!(text.contains(", mpa.accepts-wrong-key, ") && !text.contains("p2p."), "{text}");
        let text = by_name("nonsense").unwrap_err().to_string();
        assert_eq!(text, "no deviation is called \"nonsense\"; names begin with ddp., mpa., p2p., pm., rdmap., sdp.");
    }

    #[test]
    fn a_set_holds_each_once() {
        let set = Deviations::from_names(["mpa.accepts-wrong-key", "mpa.accepts-wrong-key"]).unwrap();
        assert_eq!(set.iter().count(), 1);
        assert!(set.contains(by_name("mpa.accepts-wrong-key").unwrap()) && !set.is_empty());
        assert!(Deviations::NONE.is_empty());
    }
}
