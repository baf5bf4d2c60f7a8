//! A case as its script declares it, before its parameters have values.

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
    /// Version of the case, increased whenever the case may judge differently than before.
    pub version: u32,
    /// Title of the case, one line.
    pub title: String,
    /// The requirements that the case judges. A failure counts against the first requirement,
    /// unless the script names another requirement.
    #[schemars(with = "Vec<String>")]
    pub requirements: Vec<RequirementId>,
    /// Roles of the target that the case can test.
    pub roles: Vec<Role>,
    /// Capabilities that the target must have.
    pub capabilities: Vec<Capability>,
    /// Words that select the case.
    pub tags: Vec<String>,
    /// All values of each parameter.
    pub parameters: BTreeMap<String, Vec<ParameterValue>>,
    /// Position of the case in its file.
    pub source: SourceLocation,
}

/// A line of a script.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
pub struct SourceLocation {
    /// The script, relative to the suites folder.
    pub file: String,
    /// Line number, from 1.
    pub line: u32,
}

impl fmt::Display for SourceLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.file, self.line)
    }
}
