//! Runs with markers (RFC 5044 section 4.3) in one or both directions of every connection.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Target, TargetError};
use crate::model::Capability;

/// The directions with markers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum MarkerDirections {
    /// The tester requests markers, so the target inserts them.
    FromTarget,
    /// The target requests markers, so the tester inserts them.
    ToTarget,
    /// Both ends request markers.
    Both,
}

impl MarkerDirections {
    /// Returns the suffix of the target's name in a run with markers in these directions.
    #[must_use]
    pub fn suffix(self) -> &'static str {
        match self {
            MarkerDirections::FromTarget => "+markers-from-target",
            MarkerDirections::ToTarget => "+markers-to-target",
            MarkerDirections::Both => "+markers",
        }
    }
}

impl Target {
    /// Returns the same target for a run with markers. The name of the target has a suffix, so that
    /// the results do not replace the results without markers.
    ///
    /// # Errors
    /// The target does not declare a capability that one of the directions needs.
    pub fn with_markers(mut self, directions: MarkerDirections) -> Result<Self, TargetError> {
        self.use_markers(directions)?;
        self.description.name += directions.suffix();
        Ok(self)
    }

    /// Runs all cases with markers in these directions.
    ///
    /// # Errors
    /// The target does not declare a capability that one of the directions needs.
    pub(super) fn use_markers(&mut self, directions: MarkerDirections) -> Result<(), TargetError> {
        let is_builtin = self.access.builtin().is_some();
        if is_builtin && !self.capabilities().contains(&Capability::AsksForMarkers) {
            self.description.capabilities.push(Capability::AsksForMarkers);
        }
        let (from, to) = match directions {
            MarkerDirections::FromTarget => (true, false),
            MarkerDirections::ToTarget => (false, true),
            MarkerDirections::Both => (true, true),
        };
        for (is_used, capability, remedy) in [
            (from, Capability::Markers, "add the capability to the target file if the target sends markers on request"),
            (to, Capability::AsksForMarkers, "configure the target for M=1, and add the capability to the target file"),
        ] {
            if is_used && !self.capabilities().contains(&capability) {
                let name = self.name();
                return Err(TargetError::Markers(format!(
                    "{name} does not declare the capability {capability}; {remedy}"
                )));
            }
        }
        self.description.request.markers |= from;
        self.options.requests_markers |= to;
        Ok(())
    }
}
