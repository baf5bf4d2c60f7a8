//! One line of a transcript, and one arrow of a ladder diagram.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::Octets;

/// Something that happened between tester and target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Nanoseconds since the case began, by the link's clock (virtual for the builtin target).
    pub at_ns: u64,
    /// Which connection of the case, from 1; 0 where no connection is meant.
    pub connection: u32,
    /// The actor.
    pub direction: Direction,
    /// What it was.
    pub kind: StepKind,
    /// In words, one line.
    pub text: String,
    /// The octets, where there were any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub octets: Option<Octets>,
}

/// Which way an arrow of the ladder points.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum Direction {
    /// Tester to target.
    Sent,
    /// Target to tester.
    Received,
    /// Nothing crossed the wire: the tester waited, decided, or noted something.
    Observed,
}

/// The kind of a [`Step`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum StepKind {
    /// A connection is established (`received` when the target connected to the tester).
    Connected,
    /// No connection came about.
    Refused,
    /// Octets of the stream.
    Octets,
    /// The half connection was closed in order.
    Fin,
    /// The connection was reset.
    Reset,
    /// Nothing came within the time that was waited.
    Silence,
    /// An expectation was met.
    Met,
    /// An expectation was not met.
    Unmet,
    /// A request to the target's agent (`sent`), or its answer (`received`). Nothing crossed the
    /// wire.
    Agent,
    /// A message of the script or the engine.
    Note,
}
