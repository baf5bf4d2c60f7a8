//! Checks the keys of start-up frames, and the Responder's reaction to a wrong key.

use weft_core::requirement;
use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::{HEADER_LEN, KEY_LEN, REPLY_KEY, REQUEST_KEY};

use super::order::is_complete;
use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::rules::rule::{Check, Findings, Rule};
use crate::tcp::direction_stream::ORIGIN;

pub(super) static WRONG_KEY_IS_CLOSED: Rule = Check::End(wrong_key_is_closed).covers(requirements!["MPA-7.1.1-2"]);

/// Reports a Reply to a frame with a wrong key: the Responder did not check the key. If the
/// Responder closes directly after the Reply, it did check the key.
fn wrong_key_is_closed(state: &ConnectionState, findings: &mut Findings<'_>) {
    let connection = &state.connection;
    for responder in Direction::BOTH {
        let initiator = responder.peer();
        let Some(reply) = connection.startup[responder].filter(|s| s.kind == StartupKind::Reply) else { continue };
        let Some(start) = &connection.streaming_start[initiator] else { continue };
        // If the SYN was not captured, it is possible that earlier octets of the direction are
        // missing. If the parser has found a Request later in this direction, `start` is streaming
        // data and not a Request with a wrong key.
        if !connection.syn[initiator] || connection.startup[initiator].is_some() || start.head.len() < HEADER_LEN {
            continue;
        }
        // It is possible that the Request is missing in the capture, and came before `start`. If
        // the Reply acknowledges octets after `start`, it is also possible that the Request came
        // after `start`.
        let tcp = &state.mpa.tcp;
        let had_more = tcp[responder].had_received(reply.frame, &tcp[initiator], start.end + 1) != Some(false);
        let begins_stream = start.position == ORIGIN;
        if !is_complete(state, initiator) && (had_more || !begins_stream) {
            continue;
        }
        let ended = |end: Direction| [connection.fin[end], connection.rst[end]].into_iter().flatten().min();
        let closes_itself = ended(responder).is_some_and(|own| ended(initiator).is_none_or(|other| own <= other));
        let key = &start.head[..KEY_LEN];
        if key != REQUEST_KEY && !(closes_itself && state.mpa.streams[responder].after_startup.is_none()) {
            let found = format!("a Reply to the key \"{}\"", key.escape_ascii());
            let expected = "the end of the connection, and no Reply";
            findings.report_in_frame(requirement!("MPA-7.1.1-2"), responder, reply.header, expected, found);
        }
    }
}

pub(super) static KEY_IS_RIGHT: Rule =
    Check::End(key_is_right).covers(requirements!["MPA-7.1.1-1", "MPA-7.1.1-3", "MPA-7.1.2-1"]);

/// Maximum number of wrong octets in a key. If more of the first 16 octets are wrong, weft does not
/// treat these octets as a key.
const MAX_WRONG_OCTETS: usize = 6;

/// Reports a direction that begins with octets similar to a key, but not equal to a key.
fn key_is_right(state: &ConnectionState, findings: &mut Findings<'_>) {
    let connection = &state.connection;
    for direction in Direction::BOTH {
        let Some(start) = connection.streaming_start[direction].as_ref().filter(|_| connection.syn[direction]) else {
            continue;
        };
        if connection.startup[direction].is_some() || start.head.len() < HEADER_LEN {
            continue;
        }
        let key = &start.head[..KEY_LEN];
        let wrong = |right: &[u8]| key.iter().zip(right).filter(|(a, b)| a != b).count();
        let (request, reply) = (wrong(&REQUEST_KEY), wrong(&REPLY_KEY));
        if request.min(reply) > MAX_WRONG_OCTETS {
            continue;
        }
        let other = connection.startup[direction.peer()].map(|frame| frame.kind);
        let is_reply = other == Some(StartupKind::Request) || other.is_none() && reply < request;
        let at = start.key;
        let found = || format!("the key \"{}\"", key.escape_ascii());
        if is_reply {
            let expected = "the key \"MPA ID Rep Frame\"";
            findings.report_in_frame(requirement!("MPA-7.1.1-3"), direction, at, expected, found());
        } else {
            let expected = "the key \"MPA ID Req Frame\"";
            findings.report_in_frame(requirement!("MPA-7.1.1-1"), direction, at, expected, found());
            findings.report_in_frame(requirement!("MPA-7.1.2-1"), direction, at, "a valid Request", found());
        }
    }
}

pub(super) static REQUEST_IS_ANSWERED_BY_A_REPLY: Rule =
    Check::End(request_is_answered_by_a_reply).covers(requirements!["MPA-7.1.1-3"]);

/// Reports a Responder that answers a Request with the key of a Request. If two Requests cross,
/// both endpoints are Initiators, and there is no finding. But an endpoint that sends a Request
/// after it has received a Request is a Responder: an Initiator would have closed the connection.
fn request_is_answered_by_a_reply(state: &ConnectionState, findings: &mut Findings<'_>) {
    let requests = state.connection.startup.map(|frame| frame.filter(|frame| frame.kind == StartupKind::Request));
    let [Some(_), Some(_)] = requests else { return };
    let tcp = &state.mpa.tcp;
    for direction in Direction::BOTH {
        let other = direction.peer();
        let (Some(own), Some(first)) = (requests[direction], requests[other]) else { continue };
        if tcp[direction].had_received(own.frame, &tcp[other], first.end) == Some(true) {
            let expected = "the key \"MPA ID Rep Frame\", because a Request had arrived";
            let found = format!("a Request in answer to the Request of frame {}", first.frame);
            let key = own.header.part(0..KEY_LEN as u64);
            findings.report_in_frame(requirement!("MPA-7.1.1-3"), direction, key, expected, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, proves};

    /// Plays a Request with a wrong octet 3 in its key. `answer` plays the Responder's reaction.
    fn wrong_key(answer: impl FnOnce(&mut Wire)) -> Wire {
        let mut wire = Wire::connected();
        let mut request = testing::request();
        request[3] ^= 0x20;
        wire.send(0, &request);
        answer(&mut wire);
        wire
    }

    #[test]
    fn a_wrong_key_is_answered_by_a_close() {
        let replies = wrong_key(|wire| wire.send(1, &testing::reply()));
        let closes = wrong_key(|wire| wire.fin(1));
        proves(requirement!("MPA-7.1.1-2"), &replies, &closes);
        let ends = |first: usize| {
            wrong_key(|wire| {
                wire.send(1, &testing::reply());
                wire.fin(first);
                wire.fin(1 - first);
            })
        };
        proves(requirement!("MPA-7.1.1-2"), &ends(0), &ends(1));
    }

    #[test]
    fn keys_are_exact() {
        let begins = |direction: usize, frame: &[u8]| {
            let mut wire = Wire::connected();
            if direction == 1 {
                wire.send(0, &testing::request());
            }
            wire.send(direction, frame);
            wire.fin(direction);
            wire
        };
        let wrong = |mut frame: Vec<u8>| {
            frame[11] = b'f';
            frame
        };
        let good = begins(0, &testing::request());
        proves(requirement!("MPA-7.1.1-1"), &begins(0, &wrong(testing::request())), &good);
        proves(requirement!("MPA-7.1.2-1"), &begins(0, &wrong(testing::request())), &good);
        let good = begins(1, &testing::reply());
        proves(requirement!("MPA-7.1.1-3"), &begins(1, &wrong(testing::reply())), &good);
    }

    #[test]
    fn a_request_does_not_answer_a_request() {
        let (mut answered, mut crossing) = (Wire::connected(), Wire::connected());
        answered.send(0, &testing::request());
        answered.send(1, &testing::request());
        crossing.at_once(|wire| wire.send(0, &testing::request()), |wire| wire.send(1, &testing::request()));
        proves(requirement!("MPA-7.1.1-3"), &answered, &crossing);
    }

    #[test]
    fn a_lost_request_is_not_a_wrong_key() {
        let mut wire = Wire::connected();
        wire.lose(0, &testing::request());
        wire.send(1, &testing::reply());
        assert_eq!(wire.findings(), []);
        let send = || testing::fpdu(&testing::send_of(1, 30));
        // The first Request is missing in the capture, and the Responder rejected it. The next
        // Request was captured.
        let mut wire = Wire::connected();
        wire.lose(0, &testing::request());
        wire.send(1, &testing::reply_frame(0x60, 1, &[]));
        wire.send(0, &testing::request());
        wire.send(1, &testing::reply());
        (0..2).for_each(|direction| wire.send(direction, &send()));
        assert_eq!(wire.errors(), []);
        // The Request comes after streaming data. The Reply shows that the Request was sent.
        let after_text = |lost: &[u8]| {
            let mut wire = Wire::connected();
            wire.send(0, b"EXPECT rdma, please\r\n");
            wire.send(1, b"OK, send your frame\r\n");
            wire.lose(0, lost);
            wire.send(1, &testing::reply());
            wire.lose(0, &send());
            wire.send(1, &send());
            (0..2).for_each(|direction| wire.fin(direction));
            wire
        };
        proves(requirement!("MPA-7.1.1-2"), &after_text(&[]), &after_text(&testing::request()));
        assert_eq!(after_text(&testing::request()).errors(), []);
    }

    #[test]
    fn swapped_roles_are_not_a_wrong_key() {
        let mut wire = Wire::connected();
        wire.send(0, &testing::hello());
        wire.send(1, &testing::request());
        wire.send(0, &testing::reply());
        assert_eq!(wire.findings(), []);
    }
}
