//! Decides why a connection ended. Each kind of end has its own module.

use crate::direction::Direction;

use super::by_close::{closed, reset, with_end};
use super::by_opening::{ordinary, refused, rejected, unanswered};
use super::by_silence::{blocked, silent};
use super::by_terminate;
use super::ending::{EndKind, Ending, first_fin, first_terminate, silence};
use super::track::Track;
use super::verdict::Verdict;

/// Finds the cause of the end `ending`.
pub(super) fn decide(track: &Track, ending: &Ending) -> Verdict {
    let by = ending.direction.map_or(Direction::Forward, Direction::from);
    let found = match ending.kind {
        EndKind::Unanswered => Some(unanswered(track)),
        EndKind::Refused => Some(refused(track, ending)),
        EndKind::Rejected => Some(rejected(track)),
        EndKind::Terminated => {
            first_terminate(track).map(|(owner, terminate)| by_terminate::explain(track, owner, terminate))
        }
        EndKind::Reset => reset(track, by).map(|verdict| with_end(track, verdict)),
        EndKind::Closed | EndKind::HalfClosed => {
            first_fin(track).and_then(|(by, fin)| closed(track, by, fin)).map(|verdict| with_end(track, verdict))
        }
        EndKind::Silent => silence(track).map(|(from, probes)| silent(track, from, &probes)),
        EndKind::Open => blocked(track),
    };
    found.unwrap_or_else(|| ordinary(track, ending.kind == EndKind::Open))
}
