//! A case as its script declares it, before any parameter is chosen.

use std::collections::BTreeMap;
use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_core::RequirementId;

use super::{Capability, ParameterValue, Role};

/// A script's description of one case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaseInfo {
    /// Stable id: `<protocol>/<section>-<topic>/<name>`, for example `mpa/7.1.1-key/wrong-octet`.
    pub id: String,
    /// Raised whenever the case may judge differently than before.
    pub version: u32,
    /// One line for people.
    pub title: String,
    /// The requirements that it judges, the first being the one that a plain failure counts
    /// against.
    #[schemars(with = "Vec<String>")]
    pub requirements: Vec<RequirementId>,
    /// Roles of the target that it can judge.
    pub roles: Vec<Role>,
    /// Capabilities that the target must have.
    pub capabilities: Vec<Capability>,
    /// Free words to select by.
    pub tags: Vec<String>,
    /// The values that each parameter takes.
    pub parameters: BTreeMap<String, Vec<ParameterValue>>,
    /// The position of the case in its file.
    pub source: SourceLocation,
}

/// A line of a script.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct SourceLocation {
    /// The script, relative to the suites folder.
    pub file: String,
    /// Line, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
