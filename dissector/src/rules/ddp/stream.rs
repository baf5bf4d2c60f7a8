//! Checks how a DDP stream begins and ends, with and without an error.

use weft_core::requirement;
use weft_core::wire::rdmap::Opcode;

use crate::direction::Direction;
use crate::follow::ConnectionState;
use crate::parse::{Kind, STREAMING_HEAD, SenderError, Unit};
use crate::rules::mpa::continues_frame;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static NOT_AN_FPDU: Rule = Check::Other(not_an_fpdu).covers(requirements!["DDP-6.1-2", "RDMAP-6.1-3"]);

pub(super) static TEARDOWN: Rule =
    Check::End(teardown).covers(requirements!["DDP-6.2.1-1", "DDP-6.2.1-6", "DDP-6.2.1-8"]);

pub(super) static UNFINISHED: Rule = Check::End(unfinished).covers(requirements!["DDP-4.1-4", "DDP-4.1-6"]);

pub(super) static ERRORS: Rule = Check::End(errors).covers(requirements!["DDP-7-1"]);

/// Reports octets that are not an FPDU, if all earlier octets were captured and parsed.
fn not_an_fpdu(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Kind::Unparsed { len } = unit.kind else { return };
    let side = &state.traffic.directions[unit.direction()];
    // If only one start-up frame was captured, it is unknown whether the Responder accepted the
    // connection.
    let in_rdma_mode = side.fpdus.is_some() || state.connection.startup_pair().is_some_and(|pair| pair.is_accepted());
    // If `sender_error` is `None`, the octets are possibly the beginning of an FPDU that was
    // captured only in part. If the parser knows the error, the octets are an FPDU with this error.
    let is_unexplained = unit.sender_error == Some(SenderError::Unexplained);
    if !(side.lost_framing && in_rdma_mode && is_unexplained) || continues_frame(state, unit) {
        return;
    }
    let found = format!("{len} bytes that are not an FPDU");
    let (direction, octets) = (unit.direction(), unit.locate_first(0..STREAMING_HEAD));
    let expected = "only FPDUs after the first FPDU";
    findings.report_in_frame(requirement!("DDP-6.1-2"), direction, octets, expected, found.clone());
    let expected = "only RDMA messages after the stream has entered RDMA mode";
    findings.report_in_frame(requirement!("RDMAP-6.1-3"), direction, octets, expected, found);
}

/// Reports a message whose latest segment has L=0, if the message's sender closed the connection
/// gracefully. There are two cases. In case 1, a segment with L=1 continues this message, but was
/// sent before this message. So the sender sent that segment too early. In case 2, the sender sent
/// another complete message before the close. So the close did not cut off the unfinished message:
/// the last segment of this message has L=0.
fn unfinished(state: &ConnectionState, findings: &mut Findings<'_>) {
    let (connection, traffic) = (&state.connection, &state.traffic);
    if traffic.directions.iter().any(|side| side.terminate.is_some()) || connection.rst.iter().any(Option::is_some) {
        return;
    }
    for direction in Direction::BOTH {
        let side = &traffic.directions[direction];
        let (Some(fin), Some(message)) = (connection.fin[direction], side.messages.unfinished_message()) else {
            continue;
        };
        if message.frame > fin {
            continue;
        }
        // All segments of this message are known. So if octets of the direction are missing
        // (`lost`), they come before this message. The missing octets may belong to an earlier
        // Response that ended with the segment with L=1. In that case, this message is the next
        // Response, and the close cut it off.
        let opcode = message.opcode;
        let is_early = message.has_later_message || opcode == Opcode::READ_RESPONSE && !side.lost;
        if let Some(last) = message.early_last.filter(|_| is_early) {
            let expected = "the segment with L=1 after all other segments of its message";
            let found = format!("a later segment of the {opcode}, with L=0 and a lower offset");
            findings.report_in_frame(requirement!("DDP-4.1-6"), direction, last, expected, found);
        } else if message.has_later_message
            && state.mpa.tcp[direction].had_fin(fin, &state.mpa.tcp[direction.peer()]) != Some(true)
        {
            let found = format!(
                "L=0 in the last segment of the {opcode}, although another message follows before the FIN in frame {fin}"
            );
            let expected = "L=1 in the last segment";
            findings.report_in_frame(requirement!("DDP-4.1-4"), direction, message.control, expected, found);
        }
    }
}

fn teardown(state: &ConnectionState, findings: &mut Findings<'_>) {
    let (connection, traffic) = (&state.connection, &state.traffic);
    let terminated = traffic.directions.iter().any(|side| side.terminate.is_some());
    for direction in Direction::BOTH {
        let (own, peer) = (&traffic.directions[direction], &traffic.directions[direction.peer()]);
        let reset = connection.rst.iter().any(Option::is_some);
        if let Some(fin) = connection.fin[direction]
            && let Some((opcode, latest)) = own.messages.open_message()
            && latest <= fin
            && !terminated
            && !reset
        {
            let expected = "all segments of each message before the close";
            let found = format!("a close in the middle of a message ({opcode})");
            // The capture does not show whether the ULP requested a graceful close, so the findings
            // are notes.
            findings.as_note().report_in_frame(requirement!("DDP-6.2.1-1"), direction, fin, expected, found.clone());
            let tcp = &state.mpa.tcp;
            if tcp[direction].had_fin(fin, &tcp[direction.peer()]) == Some(true) {
                let expected = "complete messages, even after the peer has closed its half of the connection";
                findings.as_note().report_in_frame(requirement!("DDP-6.2.1-6"), direction, fin, expected, found);
            }
        }
        let Some(peer_fin) = connection.fin[direction.peer()] else { continue };
        let ended = [connection.fin[direction], connection.rst[direction]].into_iter().flatten().min();
        // A peer that resets the connection after its FIN accepts no more responses.
        let given_up = connection.rst[direction.peer()].is_some();
        let Some(ended) = ended.filter(|ended| *ended > peer_fin && !given_up) else { continue };
        let tcp = &state.mpa.tcp;
        if traffic.is_complete()
            && state.is_in_send_order()
            && !terminated
            && let Some(read) = peer.operations.unanswered().next()
            && read.frame < peer_fin
            && tcp[direction].had_received(ended, &tcp[direction.peer()], read.end) == Some(true)
        {
            let expected = "responses to all requests, even after the peer has closed its half of the connection";
            let found = format!("a close, and no response to the request of frame {}", read.frame);
            findings.report_in_frame(requirement!("DDP-6.2.1-6"), direction, ended, expected, found);
        }
        if connection.rst[direction] == Some(ended) && !terminated && own.fpdus.is_some() {
            let expected = "a graceful close of both halves, unless the ULP aborts";
            let found = "a reset after the FIN of the peer";
            findings.as_note().report_in_frame(requirement!("DDP-6.2.1-8"), direction, ended, expected, found);
        }
    }
}

/// Reports a receiver that closed after a bad CRC, but sent no Terminate about that CRC. RFC 5041
/// section 6.2.2 allows the ULP to send more messages after an error, but does not require such
/// messages. So this rule does not expect them.
fn errors(state: &ConnectionState, findings: &mut Findings<'_>) {
    let (connection, traffic) = (&state.connection, &state.traffic);
    for direction in Direction::BOTH {
        let (own, receiver) = (&traffic.directions[direction], &traffic.directions[direction.peer()]);
        let closed = [connection.fin[direction.peer()], connection.rst[direction.peer()]].into_iter().flatten().min();
        let closed = closed.filter(|_| state.would_know_terminate(direction.peer()));
        // MPA forbids a Responder to send a Terminate before the Responder has received a valid
        // FPDU. So a bad CRC in the first FPDU causes no finding.
        let Some(bad) = own.bad_crc.filter(|bad| own.fpdus.is_some_and(|(first, _)| first < bad.frame)) else {
            continue;
        };
        let (bad, end) = (bad.frame, bad.end);
        let (frame, found) = match &receiver.terminate {
            None => (closed, format!("a close without Terminate after the bad CRC of frame {bad}")),
            Some(seen) => {
                let about_earlier = seen.reported_segment().is_some_and(|target| target.frame < bad);
                let is_other = seen.error.layer.0 != 2 && !about_earlier;
                let error = seen.error;
                let found = format!("a Terminate with another error ({error}) after the bad CRC of frame {bad}");
                (is_other.then_some(seen.frame), found)
            }
        };
        if let Some(frame) = frame.filter(|at| state.mpa.may_know(direction.peer(), *at, bad, end)) {
            let expected = "a Terminate of layer 2 about the bad CRC";
            findings.report_in_frame(requirement!("DDP-7-1"), direction.peer(), frame, expected, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, exchange, proves};

    const SEND: &str = "4143 00000000 00000000 00000001 00000000 2a";
    const READ: &str = "4141 00000000 00000001 00000001 00000000
        00000100 0000000000001000 00000004 00000200 0000000000002000";

    fn then(begin: &[(usize, &str)], end: impl FnOnce(&mut Wire)) -> Wire {
        let mut wire = exchange(begin);
        end(&mut wire);
        wire
    }

    #[test]
    fn nothing_but_fpdus_after_the_startup() {
        let stray = || then(&[(0, SEND)], |wire| wire.send(0, &[0xee; 64]));
        let second = "4143 00000000 00000000 00000002 00000000 2a";
        let clean = exchange(&[(0, SEND), (0, second)]);
        proves(requirement!("DDP-6.1-2"), &stray(), &clean);
        proves(requirement!("RDMAP-6.1-3"), &then(&[(0, SEND)], |wire| wire.send(0, &testing::request())), &clean);
        // The parser finds the error in this FPDU: it has no PAD.
        let bare = testing::with_crc(testing::hex(&format!("0013 {}", second.replacen("2a", "2b", 1))));
        let next = testing::fpdu(&testing::hex("4143 00000000 00000000 00000003 00000000 2a"));
        let without_pad = then(&[(0, SEND)], |wire| wire.send(0, &[bare, next].concat()));
        proves(requirement!("DDP-6.1-2"), &stray(), &without_pad);
        // These octets are a part of the Reply.
        let mut long_reply = Wire::connected();
        long_reply.send(0, &testing::request());
        long_reply.send(1, &[testing::reply(), vec![0xee; 4]].concat());
        long_reply.send(0, &testing::fpdu(&testing::hex(SEND)));
        proves(requirement!("DDP-6.1-2"), &stray(), &long_reply);
        let mut lost = exchange(&[(0, SEND)]);
        lost.lose(0, &testing::fpdu(&testing::hex(second)));
        lost.send(0, &[0xee; 64]);
        assert!(lost.findings().iter().all(|finding| finding.requirement != requirement!("DDP-6.1-2")));
    }

    #[test]
    fn graceful_teardown() {
        let part = "0143 00000000 00000000 00000001 00000000 2a";
        proves(
            requirement!("DDP-6.2.1-1"),
            &then(&[(0, part)], |wire| wire.fin(0)),
            &then(&[(0, SEND)], |wire| wire.fin(0)),
        );
        let half_closed = |answer: bool| {
            then(&[(0, READ)], |wire| {
                wire.fin(0);
                if answer {
                    wire.send_ulpdu(1, "c142 00000100 0000000000001000 01020304");
                }
                wire.fin(1);
            })
        };
        proves(requirement!("DDP-6.2.1-6"), &half_closed(false), &half_closed(true));
        let given_up = then(&[(0, READ)], |wire| {
            wire.fin(0);
            wire.rst(0);
            wire.rst(1);
        });
        proves(requirement!("DDP-6.2.1-6"), &half_closed(false), &given_up);
        let stops = |part: &str| {
            then(&[(0, SEND), (1, part)], |wire| {
                wire.fin(0);
                wire.fin(1);
            })
        };
        proves(requirement!("DDP-6.2.1-6"), &stops(part), &stops(SEND));
        let crossing = then(&[(0, SEND), (1, part)], |wire| {
            wire.fin(1);
            wire.fin(0);
        });
        proves(requirement!("DDP-6.2.1-6"), &stops(part), &crossing);
        let ends = |reset: bool| {
            then(&[(0, SEND), (1, SEND)], |wire| {
                wire.fin(0);
                if reset { wire.rst(1) } else { wire.fin(1) }
            })
        };
        proves(requirement!("DDP-6.2.1-8"), &ends(true), &ends(false));
        proves(requirement!("DDP-6.2.1-8"), &ends(true), &given_up);
    }

    const WRITE_ON: &str = "8140 11223344 0000000000001000 2a2a2a2a";
    const WRITE_LAST: &str = "c140 11223344 0000000000001004 2b2b2b2b";

    /// If an endpoint sends another message after an incomplete Write and then closes, the close
    /// did not cut the Write off.
    #[test]
    fn a_message_is_ended_before_the_close() {
        let closed = |ulpdus: &[&str], first: usize| {
            let sent: Vec<(usize, &str)> = ulpdus.iter().map(|ulpdu| (0, *ulpdu)).collect();
            then(&sent, |wire| {
                wire.fin(first);
                wire.fin(1 - first);
            })
        };
        let id = requirement!("DDP-4.1-4");
        proves(id, &closed(&[WRITE_ON, SEND], 0), &closed(&[WRITE_ON, SEND, WRITE_LAST], 0));
        proves(id, &closed(&[WRITE_ON, SEND], 0), &closed(&[SEND, WRITE_ON], 0));
        proves(id, &closed(&[WRITE_ON, SEND], 0), &closed(&[WRITE_ON, SEND], 1));
    }

    #[test]
    fn the_last_segment_comes_last() {
        let closed = |ulpdus: &[&str]| {
            let sent: Vec<(usize, &str)> = ulpdus.iter().map(|ulpdu| (0, *ulpdu)).collect();
            then(&sent, |wire| {
                wire.fin(0);
                wire.fin(1);
            })
        };
        let id = requirement!("DDP-4.1-6");
        proves(id, &closed(&[WRITE_LAST, WRITE_ON, SEND]), &closed(&[WRITE_ON, WRITE_LAST, SEND]));
        // WRITE_ON can be the beginning of a new Write, which the close cut off.
        proves(id, &closed(&[WRITE_LAST, WRITE_ON, SEND]), &closed(&[WRITE_LAST, WRITE_ON]));
        let response = |last_first: bool| {
            let mut parts = ["8142 00000100 0000000000001000 0102", "c142 00000100 0000000000001002 0304"];
            if last_first {
                parts.reverse();
            }
            then(&[(0, READ), (1, parts[0]), (1, parts[1])], |wire| {
                wire.fin(0);
                wire.fin(1);
            })
        };
        proves(id, &response(true), &response(false));
        let unrequested =
            response(true).findings().iter().any(|finding| finding.requirement == requirement!("RDMAP-1.2-1"));
        assert!(!unrequested, "the segment with L=0 is not a second Response");
    }

    /// If the missing octets can belong to these messages, there is no finding. Other missing
    /// octets do not prevent the finding.
    #[test]
    fn the_last_segment_comes_last_after_missing_octets() {
        let missing = testing::fpdu(&testing::hex(SEND));
        let closed = |ulpdus: &[&str]| {
            let mut wire = Wire::started();
            for ulpdu in ulpdus {
                if *ulpdu == SEND { wire.lose(0, &missing) } else { wire.send_ulpdu(0, ulpdu) }
            }
            wire.fin(0);
            wire.fin(1);
            wire
        };
        let id = requirement!("DDP-4.1-6");
        let second = "4143 00000000 00000000 00000002 00000000 2a";
        let wrong = closed(&[SEND, WRITE_LAST, WRITE_ON, second]);
        proves(id, &wrong, &closed(&[SEND, WRITE_ON, WRITE_LAST, second]));
        proves(id, &wrong, &closed(&[WRITE_LAST, SEND, WRITE_ON, second]));
        proves(id, &wrong, &closed(&[WRITE_LAST, WRITE_ON, SEND, second]));
        // It is possible that the first Response answers a Request that is missing in the capture.
        // Then the close can have cut off the second Response.
        let parts = ["c142 00000100 0000000000001002 0304", "8142 00000100 0000000000001000 0102"];
        let mut responses = exchange(&[(0, READ)]);
        responses.lose(1, &missing);
        responses.send_ulpdu(1, parts[0]);
        responses.send_ulpdu(1, parts[1]);
        responses.fin(0);
        responses.fin(1);
        proves(id, &wrong, &responses);
    }

    #[test]
    fn errors_are_answered() {
        // QN 9 does not exist.
        let bad = "4143 00000000 00000009 00000001 00000000 2a";
        // "DDP SHOULD continue to allow the ULP to transfer additional DDP Messages", but the ULP
        // does not have to send any.
        let silent = then(&[(0, bad)], |wire| wire.fin(1));
        let found = silent.findings();
        assert!(found.iter().all(|finding| finding.requirement != requirement!("DDP-6.2.2-3")), "{found:?}");

        let mut bad_crc = testing::fpdu(&testing::hex("4143 00000000 00000000 00000002 00000000 2a"));
        bad_crc[20] ^= 1;
        let answered = |report: &str| {
            then(&[(0, SEND)], |wire| {
                wire.send(0, &bad_crc);
                wire.send_ulpdu(1, report);
                wire.fin(1);
            })
        };
        let of_mpa = answered("4147 00000000 00000002 00000001 00000000 20020000");
        let rdmap = "4147 00000000 00000002 00000001 00000000 02ff0000";
        proves(requirement!("DDP-7-1"), &answered(rdmap), &of_mpa);
        // A Terminate about another error crosses the FPDU with the bad CRC.
        let crossing = then(&[(0, SEND)], |wire| {
            wire.at_once(|wire| wire.send(0, &bad_crc), |wire| wire.send_ulpdu(1, rdmap));
            wire.fin(1);
        });
        proves(requirement!("DDP-7-1"), &answered(rdmap), &crossing);
    }

    /// Of the receiver, only the last frames were captured: its FIN or RST, or also a single FPDU,
    /// in which the dissector recognises no Terminate.
    #[test]
    fn an_answer_to_an_error_may_be_missing() {
        let mut bad_crc = testing::fpdu(&testing::hex("4143 00000000 00000000 00000002 00000000 2a"));
        bad_crc[20] ^= 1;
        let terminate = "4147 00000000 00000002 00000001 00000000 20020000";
        for end in [Wire::fin, Wire::rst] {
            let closed = |answers: bool| {
                then(&[(0, SEND), (1, SEND)], |wire| {
                    wire.send(0, &bad_crc);
                    if answers {
                        wire.send_ulpdu(1, terminate);
                    }
                    end(wire, 1);
                })
            };
            // The last octet of the address of direction 1 is 1.
            let last = |wire: &Wire, count: usize| {
                wire.changed(|mut frames| {
                    let first = frames.len() - count;
                    let mut index = 0..;
                    frames.retain(|(_, frame)| index.next() >= Some(first) || frame[29] != 1);
                    frames
                })
            };
            for id in [requirement!("DDP-7-1"), requirement!("RDMAP-6.2.1-1")] {
                proves(id, &closed(false), &last(&closed(true), 1));
                proves(id, &closed(false), &last(&closed(true), 2));
            }
        }
    }
}
