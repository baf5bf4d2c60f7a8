//! One line of a transcript, and one arrow of a ladder diagram.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_dissector::output::text::counted;

use super::{Mark, MarkKind, Octets};

/// Something that happened between tester and target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Step {
    /// Nanoseconds since the case began, by the link's clock. The clock of the builtin target is
    /// virtual.
    pub at_ns: u64,
    /// Number of the connection in the case, from 1. 0 if the step belongs to no connection.
    pub connection: u32,
    /// Direction of the step.
    pub direction: Direction,
    /// Kind of the step.
    pub kind: StepKind,
    /// Description of the step, one line.
    pub text: String,
    /// The bytes, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub octets: Option<Octets>,
}

/// Begin of the note in the place of steps that a transcript lacks.
const GAP: &str = "not in the transcript: ";

impl Step {
    /// Returns the note in the place of `count` steps that a transcript lacks. `most` is the
    /// maximum number of its steps.
    pub(crate) fn gap(at_ns: u64, count: u64, most: usize) -> Self {
        let text = format!("{GAP}{}; a transcript keeps at most {most} steps", counted(count, "step"));
        let (direction, kind) = (Direction::Observed, StepKind::Note);
        Step { at_ns, connection: 0, direction, kind, text, octets: None }
    }

    /// Returns whether the step is the note in the place of steps that the transcript lacks.
    pub(crate) fn is_gap(&self) -> bool {
        self.kind == StepKind::Note && self.text.starts_with(GAP)
    }

    /// Returns whether the step shows a violation, or the bytes in which the tester deviates.
    pub(crate) fn is_decisive(&self) -> bool {
        let is_loud = |mark: &Mark| matches!(mark.kind, MarkKind::Stimulus | MarkKind::Wrong);
        self.kind == StepKind::Unmet || self.octets.iter().flat_map(|octets| &octets.marks).any(is_loud)
    }
}

/// Direction of an arrow in the ladder diagram.
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
    /// A connection was established. The direction is `received` if the target connected to the
    /// tester.
    Connected,
    /// No connection was established.
    Refused,
    /// Bytes of the stream.
    Octets,
    /// One side closed its direction of the connection with a FIN.
    Fin,
    /// The connection was reset.
    Reset,
    /// Nothing arrived within the waiting time.
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
