//! Joins several sessions to one. A failure may need the sessions that were played before it, for
//! example if each of them uses up something that the target never returns.

use std::collections::BTreeSet;

use crate::session::Step;

/// Returns one session with the steps of `sessions`, in their order. The connections of a session
/// are closed at its end, as when it is played alone. Sessions do not share connections. A fault
/// that the target must survive does not end its connection, but an abort does.
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
                if step.needs_neighbour() && open.iter().all(|other| *other == number) {
                    // The Lua module opens the connection with the lowest other number.
                    open.insert(if number == 1 { 2 } else { 1 });
                }
                if step.ends_connection() {
                    open.remove(&number);
                } else if !matches!(step, Step::UseOthers { .. }) {
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
    use crate::session::{AgentAction, AgentStep, DriveAction, DriveStep, SdpAction, SdpStep, Step};

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

    /// A fault with the buffer of another connection opens this connection.
    #[test]
    fn a_neighbour_is_closed_too() {
        let fault = |connection| Step::Fault { connection, fault: "neighbour-write", at_once: false };
        let (close, pause) = (|connection| Step::Close { connection }, Step::Pause { ms: 5 });
        for (session, closed) in [
            (vec![fault(1)], vec![close(2)]),
            (vec![fault(2)], vec![close(1)]),
            (vec![Step::Answers { connection: 3 }, fault(2)], vec![close(3)]),
        ] {
            let joined = join(&[session.clone(), vec![pause]]);
            assert_eq!(joined[session.len()..joined.len() - 1], closed, "{session:?}");
        }
    }

    /// The last step of the first session decides whether its connection is still open.
    #[test]
    fn a_connection_is_closed_only_if_it_is_open() {
        let fault = |fault| Step::Fault { connection: 1, fault, at_once: false };
        let sdp = |action| Step::Sdp(SdpStep { connection: 1, action });
        let drive = |action| Step::Drive(DriveStep { connection: 1, action });
        for (step, is_closed) in [
            (fault("wrong-crc"), false),
            (fault("suspend"), false),
            (fault("reserved-flags"), true),
            (fault("updates"), true),
            // The client of a port mapper.
            (fault("padding"), true),
            (sdp(SdpAction::Abort), false),
            (drive(DriveAction::Abort), false),
            (drive(DriveAction::Shut), true),
            (drive(DriveAction::Suspend(7200)), false),
            (sdp(SdpAction::CloseEarly), false),
            // The step uses only other connections.
            (Step::UseOthers { connection: 1 }, false),
            (Step::Agent(AgentStep { connection: 1, action: AgentAction::Disconnect }), false),
        ] {
            let joined = join(&[vec![step], vec![Step::Pause { ms: 5 }]]);
            assert_eq!(joined.contains(&Step::Close { connection: 1 }), is_closed, "{step}");
        }
    }
}
