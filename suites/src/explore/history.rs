//! Joins several sessions to one. A failure may need the sessions that were played before it, for
//! example if each of them uses up something that the target never returns.

use std::collections::BTreeSet;

use crate::session::{AgentAction, AgentStep, Step};

/// Returns one session with the steps of `sessions`, in their order. The connections of a session
/// are closed at its end, as when it is played alone. Sessions do not share connections.
pub(super) fn join(sessions: &[Vec<Step>]) -> Vec<Step> {
    let (mut joined, mut used) = (Vec::new(), 0);
    for (index, session) in sessions.iter().enumerate() {
        let (mut open, mut most) = (BTreeSet::new(), 0);
        for step in session {
            let mut step = *step;
            if let Some(connection) = step.connection() {
                most = most.max(*connection);
                *connection += used;
                let number = *connection;
                let is_end = matches!(
                    step,
                    Step::Close { .. }
                        | Step::Finish { .. }
                        | Step::Reset { .. }
                        | Step::Fault { .. }
                        | Step::Agent(AgentStep { action: AgentAction::Disconnect, .. })
                );
                if is_end {
                    open.remove(&number);
                } else {
                    open.insert(number);
                }
            }
            joined.push(step);
        }
        used += most;
        if index + 1 < sessions.len() {
            joined.extend(open.into_iter().map(|connection| Step::Close { connection }));
        }
    }
    joined
}

/// Returns the highest number of a connection.
pub(super) fn connections(steps: &[Step]) -> u32 {
    steps.iter().filter_map(|step| step.clone().connection().copied()).max().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use super::{connections, join};
    use crate::session::Step;

    #[test]
    fn connections_are_closed_between_sessions() {
        let read = |connection| Step::Read { connection, at: 0, size: 8, align: 0 };
        let first = vec![read(1), read(2), Step::Reset { connection: 1 }];
        let second = vec![Step::Pause { ms: 5 }, read(1)];
        let close = Step::Close { connection: 2 };
        assert_eq!(
            join(&[first.clone(), second]),
            [read(1), read(2), Step::Reset { connection: 1 }, close, Step::Pause { ms: 5 }, read(3)]
        );
        assert_eq!(join(core::slice::from_ref(&first)), first);
        assert_eq!(connections(&first), 2);
    }
}
