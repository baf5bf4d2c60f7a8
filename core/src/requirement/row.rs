//! One row of a catalogue.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Level;

/// The catalogue (one specification or group of them) that has the row.
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
}

impl fmt::Display for Catalogue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Catalogue::Mpa => "mpa",
            Catalogue::MpaP2p => "mpa-p2p",
            Catalogue::Ddp => "ddp",
            Catalogue::Rdmap => "rdmap",
            Catalogue::Sdp => "sdp",
            Catalogue::SdpPm => "sdp-pm",
            Catalogue::Verbs => "verbs",
        })
    }
}

impl Catalogue {
    /// The specification, as people cite it.
    #[must_use]
    pub const fn specification(self) -> &'static str {
        match self {
            Catalogue::Mpa => "RFC 5044",
            Catalogue::MpaP2p => "RFC 6581",
            Catalogue::Ddp => "RFC 5041",
            Catalogue::Rdmap => "RFC 5040",
            Catalogue::Sdp | Catalogue::SdpPm => "draft-pinkerton-iwarp-sdp-01",
            Catalogue::Verbs => "draft-hilland-rddp-verbs-00",
        }
    }
}

/// Where a breach of a row shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Observe {
    /// In the octets of a connection, by watching alone.
    Wire,
    /// In the answer to a stimulus.
    Reaction,
    /// At the interface above the protocol.
    Upper,
    /// At the verbs.
    Api,
    /// Inside an implementation only.
    Local,
    /// In its documentation only.
    Doc,
}

/// Whether a row can be judged: by watching where it shows on the wire, by a tester that does
/// something to an implementation where it shows in an answer or to a user. The classes are data of
/// their own (`core/requirements/classes/*.csv`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Some stream of octets, or some answer, breaks it for everyone to see.
    Judgeable,
    /// It permits or defines something: no octets can break it.
    Permission,
    /// Whether it is broken depends on what no capture holds, or no test has in hand.
    Outside,
}

/// The class of a row, and why it has it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Classified {
    /// The class.
    pub class: Class,
    /// The reason; may be empty for judgeable rows.
    pub reason: &'static str,
}

/// One normative statement.
#[derive(Debug)]
pub struct Requirement {
    /// Stable id, for example `MPA-7.1.1-2`.
    pub id: &'static str,
    /// The catalogue that holds it.
    pub catalogue: Catalogue,
    /// Section of the specification; `7306:x` is RFC 7306 section x, `mail.n` item n of the 2007
    /// proposal.
    pub section: &'static str,
    /// How strongly it binds.
    pub level: Level,
    /// The bound party, in the specification's words.
    pub role: &'static str,
    /// The statement, condensed to one sentence.
    pub summary: &'static str,
    /// Where a breach shows.
    pub observe: Observe,
    /// How to check it.
    pub check: &'static str,
    /// Whether it can be judged; `None` if that is not decided yet.
    pub classified: Option<Classified>,
}

impl Requirement {
    /// Its place: `RFC 5044 section 7.1.1`.
    #[must_use]
    pub fn citation(&self) -> String {
        if let Some(section) = self.section.strip_prefix("7306:") {
            return format!("RFC 7306 section {section}");
        }
        match self.section.strip_prefix("mail.") {
            Some(item) => format!("peer-to-peer proposal of 2007, item {item}"),
            None => format!("{} section {}", self.catalogue.specification(), self.section),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::requirement;

    #[test]
    fn rows_are_cited_by_specification_and_section() {
        for (id, citation) in [
            (requirement!("MPA-7.1.1-2"), "RFC 5044 section 7.1.1"),
            (requirement!("P2P-mail.0-1"), "peer-to-peer proposal of 2007, item 0"),
            (requirement!("SDP-8.1.1-13"), "draft-pinkerton-iwarp-sdp-01 section 8.1.1"),
        ] {
            assert_eq!(id.row().citation(), citation);
        }
        let (_, row) = requirement::all().find(|(_, row)| row.section == "7306:4.1").unwrap();
        assert_eq!(row.citation(), "RFC 7306 section 4.1");
    }
}
