//! One requirement: a row of a catalogue.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Level;

/// A catalogue: the requirements of one specification or of a group of specifications.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Catalogue {
    /// RFC 5044.
    Mpa,
    /// RFC 6581 and the 2007 peer-to-peer proposal.
    MpaP2p,
    /// RFC 5041.
    Ddp,
    /// RFC 5040 and RFC 7306.
    Rdmap,
    /// draft-pinkerton-iwarp-sdp-01 without the port mapper.
    Sdp,
    /// The port mapper of draft-pinkerton-iwarp-sdp-01.
    SdpPm,
    /// draft-hilland-rddp-verbs-00.
    Verbs,
    /// RFC 7145, and the part of RFC 7143 that shows on an iSER connection.
    Iser,
    /// RFC 8166, RFC 8167 and RFC 8797.
    #[serde(rename = "rpcrdma")]
    RpcRdma,
}

impl fmt::Display for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}

impl Catalogue {
    /// The usual citation of the main specification, for example `RFC 5044`.
    #[must_use]
    pub const fn specification(self) -> &'static str {
        match self {
            Catalogue::Mpa => "RFC 5044",
            Catalogue::MpaP2p => "RFC 6581",
            Catalogue::Ddp => "RFC 5041",
            Catalogue::Rdmap => "RFC 5040",
            Catalogue::Sdp | Catalogue::SdpPm => "draft-pinkerton-iwarp-sdp-01",
            Catalogue::Verbs => "draft-hilland-rddp-verbs-00",
            Catalogue::Iser => "RFC 7145",
            Catalogue::RpcRdma => "RFC 8166",
        }
    }
}

/// Where a violation of a requirement can be observed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Observe {
    /// In the captured octets of a connection.
    Wire,
    /// In the reaction of an implementation, if a tester sends a message that provokes a reaction.
    Reaction,
    /// At the interface to the upper-layer protocol.
    Upper,
    /// At the verbs interface.
    Api,
    /// Only inside an implementation.
    Local,
    /// Only in the documentation of an implementation.
    Doc,
}

/// Whether weft can decide if an implementation meets a requirement. weft decides from the captured
/// octets, or from the reaction of the implementation to a test. The files
/// `core/requirements/classes/*.csv` contain the classes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// A violation can be proved by octets on the wire, or by a reaction.
    Judgeable,
    /// The requirement permits or defines something. Therefore no octets can violate the
    /// requirement.
    Permission,
    /// Whether an implementation violates the requirement depends on facts that no capture shows
    /// and no test controls.
    Outside,
}

/// The class of a requirement, and the reason for the class.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classification {
    /// The class.
    pub class: Class,
    /// The reason. It can be empty for [`Class::Judgeable`].
    pub reason: &'static str,
}

/// One normative statement.
#[derive(Debug)]
pub struct Requirement {
    /// Stable id, for example `MPA-7.1.1-2`.
    pub id: &'static str,
    /// The catalogue that contains the requirement.
    pub catalogue: Catalogue,
    /// Section of the specification. `7306:x` means RFC 7306 section x, and the same is true of RFC
    /// 7143, 8167 and 8797. `mail.n` means item n of the peer-to-peer proposal of 2007.
    pub section: &'static str,
    /// How strongly the specification requires the behaviour.
    pub level: Level,
    /// The party that must meet the requirement, in the words of the specification.
    pub role: &'static str,
    /// The requirement, condensed to one sentence.
    pub summary: &'static str,
    /// Where a violation can be observed.
    pub observe: Observe,
    /// How to check the requirement.
    pub check: &'static str,
    /// Whether weft can judge the requirement; `None` if the catalogue does not classify it yet.
    pub classified: Option<Classification>,
    /// The specification's own words, of at most 420 characters: complete sentences, or fragments
    /// that are separated by ` [...] `. `None` if the specification states the requirement only in a
    /// figure, or if the catalogue has no quotation. The files `core/requirements/sentences/*.csv`
    /// contain the quotations.
    pub sentence: Option<&'static str>,
}

impl Requirement {
    /// Citation of the section, for example `RFC 5044 section 7.1.1`.
    #[must_use]
    pub fn citation(&self) -> String {
        if let Some((rfc @ ("7306" | "7143" | "8167" | "8797"), section)) = self.section.split_once(':') {
            return format!("RFC {rfc} section {section}");
        }
        match self.section.strip_prefix("mail.") {
            Some(item) => format!("peer-to-peer proposal of 2007 (before RFC 6581), item {item}"),
            None => format!("{} section {}", self.catalogue.specification(), self.section),
        }
    }

    /// The address of the section, if the specification is an RFC.
    #[must_use]
    pub fn link(&self) -> Option<String> {
        let citation = self.citation();
        let (rfc, section) = citation.strip_prefix("RFC ")?.split_once(" section ")?;
        let is_number = rfc.chars().all(|c| c.is_ascii_digit());
        let part = if section.starts_with(|c: char| c.is_ascii_digit()) { "section" } else { "appendix" };
        is_number.then(|| format!("https://www.rfc-editor.org/rfc/rfc{rfc}#{part}-{section}"))
    }
}

#[cfg(test)]
mod tests {
    use crate::requirement;

    #[test]
    fn rows_are_cited_by_specification_and_section() {
        for (id, citation) in [
            (requirement!("MPA-7.1.1-2"), "RFC 5044 section 7.1.1"),
            (requirement!("P2P-mail.0-1"), "peer-to-peer proposal of 2007 (before RFC 6581), item 0"),
            (requirement!("SDP-8.1.1-13"), "draft-pinkerton-iwarp-sdp-01 section 8.1.1"),
            (requirement!("ISER-9.2-1"), "RFC 7145 section 9.2"),
            (requirement!("ISER-7143.11.4.1-1"), "RFC 7143 section 11.4.1"),
            (requirement!("RPCRDMA-4.3.1-1"), "RFC 8166 section 4.3.1"),
            (requirement!("RPCRDMA-8797.4.1-2"), "RFC 8797 section 4.1"),
        ] {
            assert_eq!(id.row().citation(), citation);
        }
        let (_, row) = requirement::all().find(|(_, row)| row.section == "7306:4.1").unwrap();
        assert_eq!(row.citation(), "RFC 7306 section 4.1");
        assert_eq!(row.link().as_deref(), Some("https://www.rfc-editor.org/rfc/rfc7306#section-4.1"));
        let of = |id: crate::RequirementId| id.row().link();
        assert_eq!(
            of(requirement!("MPA-A.1-1")).as_deref(),
            Some("https://www.rfc-editor.org/rfc/rfc5044#appendix-A.1")
        );
        assert_eq!(of(requirement!("SDP-8.1.1-13")), None);
    }
}
