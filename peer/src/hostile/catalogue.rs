//! The list of deviations, and sets of them.

use std::fmt;

use weft_core::RequirementId;
use weft_core::error::Layer;

use super::hook::Hook;

/// One named violation.
#[derive(Debug)]
pub struct Deviation {
    /// Stable name: the layer, a dot, what the endpoint then does.
    pub name: &'static str,
    /// The layer whose rule is broken.
    pub layer: Layer,
    /// The requirements that are broken, the main one first; never empty.
    pub breaks: &'static [RequirementId],
    /// What the endpoint does wrong, as a phrase that begins with a verb: `sends ...`, `ignores
    /// ...`.
    pub description: &'static str,
    /// Where it does it.
    pub(crate) hooks: &'static [Hook],
}

impl Deviation {
    /// It is in what an MPA Initiator sends at start-up, so an endpoint that listens never commits
    /// it.
    #[must_use]
    pub fn is_of_initiator(&self) -> bool {
        self.hooks.iter().all(|hook| matches!(hook, Hook::Request(_) | Hook::Opening(_)))
    }

    /// It is in what a PM Client sends or does, so a PM Server never commits it.
    #[must_use]
    pub fn is_of_pm_client(&self) -> bool {
        const CONDUCT: [&str; 16] = [
            "pm.acknowledges-again",
            "pm.acknowledges-deny",
            "pm.connects-after-deny",
            "pm.heeds-deny-port",
            "pm.ignores-deny",
            "pm.ignores-reset",
            "pm.keeps-asked-address",
            "pm.keeps-denials",
            "pm.keeps-for-ever",
            "pm.keeps-once",
            "pm.never-falls-back",
            "pm.never-repeats",
            "pm.never-stops",
            "pm.repeats-otherwise",
            "pm.takes-later-reply",
            "pm.takes-unasked",
        ];
        self.name.starts_with("pm.request-") || self.name.starts_with("pm.ack-") || CONDUCT.contains(&self.name)
    }
}

/// The layer that a name begins with.
pub(super) const fn layer_of(name: &str) -> Layer {
    match name.as_bytes() {
        [b'd', b'd', b'p', ..] => Layer::Ddp,
        [b'r', b'd', b'm', b'a', b'p', ..] => Layer::Rdmap,
        [b's', b'd', b'p', b'.', ..] => Layer::Sdp,
        [b'p', b'm', b'.', ..] => Layer::SdpPm,
        _ => Layer::Mpa,
    }
}

/// Names identify deviations.
impl PartialEq for Deviation {
    fn eq(&self, other: &Self) -> bool {
        self.name == other.name
    }
}

impl Eq for Deviation {}

/// Every deviation, sorted by name.
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
        super::startup::ALL,
        super::terminate::ALL,
        super::user::ALL,
    ];
    let mut all: Vec<&'static Deviation> = tables.into_iter().flatten().chain(super::sdp::all()).collect();
    all.sort_unstable_by_key(|deviation| deviation.name);
    all.into_iter()
}

/// The deviation of that name.
///
/// # Errors
/// No deviation has the name. The error has the name and the nearest ones that exist.
pub fn by_name(name: &str) -> Result<&'static Deviation, UnknownDeviation> {
    all().find(|deviation| deviation.name == name).ok_or_else(|| UnknownDeviation { name: name.to_owned() })
}

/// A name that no deviation has.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnknownDeviation {
    /// The requested name.
    pub name: String,
}

impl fmt::Display for UnknownDeviation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no deviation is called {:?}; ", self.name)?;
        if let Some(near) = weft_core::spelling::nearest(&self.name, all().map(|deviation| deviation.name)) {
            return write!(f, "did you mean {near}?");
        }
        let layer = self.name.split('.').next().unwrap_or_default();
        let first_word = |deviation: &Deviation| deviation.name.split('.').next().unwrap_or_default();
        let same_layer: Vec<_> =
            all().map(|deviation| deviation.name).filter(|name| name.split('.').next() == Some(layer)).collect();
        if same_layer.is_empty() {
            let mut layers: Vec<_> = all().map(first_word).collect();
            layers.dedup();
            return write!(f, "names begin with {}.", layers.join("., "));
        }
        write!(f, "there is {}", same_layer.join(", "))
    }
}

impl std::error::Error for UnknownDeviation {}

/// The deviations that one endpoint commits; none by default.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Deviations(Vec<&'static Deviation>);

impl Deviations {
    /// The correct endpoint's set.
    pub const NONE: Deviations = Deviations(Vec::new());

    /// The set of these names.
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

    /// Adds one; adding it twice changes nothing.
    pub fn insert(&mut self, deviation: &'static Deviation) {
        if !self.contains(deviation) {
            self.0.push(deviation);
        }
    }

    /// Is it in the set?
    #[must_use]
    pub fn contains(&self, deviation: &Deviation) -> bool {
        self.0.contains(&deviation)
    }

    /// Is this the correct endpoint's set?
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The deviations, in the order they were added.
    pub fn iter(&self) -> impl Iterator<Item = &'static Deviation> {
        self.0.iter().copied()
    }
}

impl From<&'static Deviation> for Deviations {
    fn from(deviation: &'static Deviation) -> Self {
        Deviations(vec![deviation])
    }
}

impl fmt::Debug for Deviations {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(|deviation| deviation.name)).finish()
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
            text.starts_with("no deviation is called \"mpa.nonsense\"; there is mpa.accepts-any-revision, "),
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
