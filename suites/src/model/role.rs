//! A target's role in the MPA start-up.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// The role of the implementation under test.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Role {
    /// Sends the MPA Request.
    Initiator,
    /// Waits for an MPA Request.
    Responder,
    /// Can be initiator or responder.
    Both,
}

impl Role {
    /// Returns whether a target of this role can play `wanted`.
    #[must_use]
    pub fn plays(self, wanted: Role) -> bool {
        self == Role::Both || self == wanted
    }
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.serialize(f)
    }
}
