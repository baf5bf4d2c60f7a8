//! [`RequirementId`]: the id of a requirement in a catalogue. Unknown ids cannot be constructed.

use std::cmp::Ordering;
use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::{Catalogue, Level, Observe, Requirement};

include!(concat!(env!("OUT_DIR"), "/catalogue.rs"));

/// The id of a requirement in one of the catalogues. Ids compare in catalogue order.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RequirementId(u16);

/// The error about an id that is in no catalogue.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("unknown requirement {0:?}; `weft requirements` lists all ids")]
pub struct UnknownRequirement(pub String);

impl RequirementId {
    /// The requirement with this id.
    #[must_use]
    pub fn row(self) -> &'static Requirement {
        &ROWS[self.0 as usize]
    }

    /// The id as text, in the spelling of the catalogue.
    #[must_use]
    pub fn as_str(self) -> &'static str {
        self.row().id
    }
}

/// Every requirement, in the order of the catalogues.
pub fn all() -> impl ExactSizeIterator<Item = (RequirementId, &'static Requirement)> {
    ROWS.iter().enumerate().map(|(i, row)| (RequirementId(u16::try_from(i).unwrap_or(u16::MAX)), row))
}

/// Looks up an id. Returns `None` if the id is in no catalogue. Constant expressions can call this
/// function. For a literal id, [`requirement!`](crate::requirement!) is shorter.
#[must_use]
pub const fn by_name(id: &str) -> Option<RequirementId> {
    let (mut low, mut high) = (0, BY_ID.len());
    while low < high {
        let middle = usize::midpoint(low, high);
        match compare(BY_ID[middle].0.as_bytes(), id.as_bytes()) {
            Ordering::Equal => return Some(RequirementId(BY_ID[middle].1)),
            Ordering::Greater => high = middle,
            Ordering::Less => low = middle + 1,
        }
    }
    None
}

/// Compares `a` with `b`. Replaces `Ord`, which constant expressions cannot call.
const fn compare(a: &[u8], b: &[u8]) -> Ordering {
    match (a, b) {
        ([], []) => Ordering::Equal,
        ([], _) => Ordering::Less,
        (_, []) => Ordering::Greater,
        ([first, a @ ..], [second, b @ ..]) if *first == *second => compare(a, b),
        ([first, ..], [second, ..]) if *first < *second => Ordering::Less,
        _ => Ordering::Greater,
    }
}

/// Returns the [`RequirementId`] of a literal id. If no catalogue contains the id, the code does
/// not compile.
#[macro_export]
macro_rules! requirement {
    ($id:literal) => {
        const {
            match $crate::requirement::by_name($id) {
                Some(id) => id,
                None => panic!(concat!("unknown requirement ", $id)),
            }
        }
    };
}

impl FromStr for RequirementId {
    type Err = UnknownRequirement;
    fn from_str(id: &str) -> Result<Self, UnknownRequirement> {
        by_name(id).ok_or_else(|| UnknownRequirement(id.to_owned()))
    }
}

impl fmt::Display for RequirementId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.as_str())
    }
}

impl fmt::Debug for RequirementId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for RequirementId {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

impl<'de> Deserialize<'de> for RequirementId {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        String::deserialize(deserializer)?.parse().map_err(serde::de::Error::custom)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_row_is_found_by_its_id() {
        for (id, row) in all() {
            assert_eq!(row.id.parse::<RequirementId>(), Ok(id));
        }
        assert_eq!(requirement!("MPA-7.1.1-2").row().level, Level::Must);
    }

    #[test]
    fn an_unknown_id_is_refused_with_its_name() {
        let error = "MPA-7.1.1-999".parse::<RequirementId>().unwrap_err();
        assert!(error.to_string().contains("MPA-7.1.1-999"), "{error}");
        assert_eq!(by_name(""), None);
        assert_eq!(by_name("ZZZ"), None);
    }
}
