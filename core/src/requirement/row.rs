//! One row of a catalogue.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::Level;

/// The catalogue (one specification or group of them) that a row stands in.
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

/// Whether watching can judge a row. The classes are data of their own (`core/requirements/classes/*.csv`).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Class {
    /// Some stream of octets breaks it for everyone to see.
    Judgeable,
    /// It permits or defines something: no octets can break it.
    Permission,
    /// Whether it is broken depends on what no capture holds.
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
    /// Section of the specification; `7306:x` is RFC 7306 section x, `mail.n` item n of the 2007 proposal.
    pub section: &'static str,
    /// How strongly it binds.
    pub level: Level,
    /// Who is bound, in the specification's words.
    pub role: &'static str,
    /// The statement, condensed to one sentence.
    pub summary: &'static str,
    /// Where a breach shows.
    pub observe: Observe,
    /// How to check it.
    pub check: &'static str,
    /// Whether it can be judged; `None` where nobody has said yet.
    pub classified: Option<Classified>,
}
