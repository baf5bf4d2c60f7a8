//! Checks the order of messages (RFC 5044 section 7.1.2). Most of these rules run when the
//! connection ends, and compare frame numbers and TCP acknowledgements.

use weft_core::requirement;
use weft_core::wire::mpa::StartupKind;

use crate::direction::Direction;
use crate::follow::{AfterStartup, ConnectionState, StartupPair};
use crate::frame_number::FrameNumber;
use crate::parse::{Kind, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static REQUEST_COMES_FIRST: Rule =
    Check::End(request_comes_first).covers(requirements!["MPA-7.1.2-12", "MPA-7.1.2-3"]);

pub(super) static NO_FPDU_BEFORE_BOTH: Rule =
    Check::End(no_fpdu_before_both).covers(requirements!["MPA-7.1.2-11", "MPA-7.1.2-1"]);

pub(super) static INITIATOR_BEGINS: Rule =
    Check::End(initiator_begins).covers(requirements!["MPA-7.1.2-17", "MPA-7.1.3-2", "P2P-3-4", "P2P-mail.5-1"]);

pub(super) static REQUEST_IS_ANSWERED: Rule =
    Check::End(request_is_answered).covers(requirements!["MPA-7.1.2-5", "MPA-7.1.2-8", "MPA-7.1.2-20"]);

pub(super) static NOTHING_AFTER_REJECTION: Rule =
    Check::Other(nothing_after_rejection).covers(requirements!["MPA-7.1.1-17", "P2P-9.1-22"]);

/// Returns whether all octets of `direction` were captured, from the first octet on.
pub(super) fn is_complete(state: &ConnectionState, direction: Direction) -> bool {
    state.connection.syn[direction] && !state.mpa.streams[direction].broken && !state.mpa.tcp[direction].missed
}

fn request_comes_first(state: &ConnectionState, findings: &mut Findings<'_>) {
    let connection = &state.connection;
    let Some(responder) =
        Direction::BOTH.into_iter().find(|d| connection.startup[*d].is_some_and(|s| s.kind == StartupKind::Reply))
    else {
        return;
    };
    let Some(reply) = connection.startup[responder] else { return };
    let initiator = responder.peer();
    let request = connection.startup[initiator].map(|request| request.frame);
    // Octets that are missing in the initiator's direction can contain a Request.
    let silent =
        connection.streaming_start[initiator].is_none() && state.mpa.streams[initiator].after_startup.is_none();
    if request.is_none() && !(is_complete(state, initiator) && silent && is_complete(state, responder)) {
        return;
    }
    let late = |frame: FrameNumber| format!("the Request came only later, in frame {frame}");
    let found = || request.map_or("no Request".to_owned(), late);
    // Some captures have frames out of order. Acknowledgements show the real order.
    let tcp = &state.mpa.tcp;
    let end = connection.startup[initiator].map_or(0, |request| request.end);
    let had_not = |frame: FrameNumber| tcp[responder].had_received(frame, &tcp[initiator], end) == Some(false);
    let too_early = |at: FrameNumber| request.is_none_or(|frame| at < frame && had_not(at));
    if too_early(reply.frame) {
        let expected = "a Reply only after a Request";
        findings.report_in_frame(requirement!("MPA-7.1.2-12"), responder, reply.header, expected, found());
    }
    let own = &state.mpa.streams[responder];
    if let Some(first) = own.first
        && too_early(first)
    {
        let expected = "no FPDU from the Responder before it has received a Request";
        findings.report_in_frame(requirement!("MPA-7.1.2-3"), responder, own.first_octets, expected, found());
    }
}

fn no_fpdu_before_both(state: &ConnectionState, findings: &mut Findings<'_>) {
    let connection = &state.connection;
    if connection.streaming_hello.is_some() {
        return;
    }
    let expected = "FPDUs only after both start-up frames";
    let none = connection.startup.iter().all(Option::is_none);
    // Missing octets can be an SDP Hello. After an SDP Hello, no start-up frames are needed.
    let may_be_sdp = state.mpa.streams.iter().any(|stream| stream.begins_with_hole);
    if none && connection.syn == [true; 2] && !may_be_sdp {
        // There are no start-up frames, although the connection was captured from its beginning.
        for (direction, stream) in Direction::BOTH.into_iter().zip(&state.mpa.streams) {
            if stream.first.is_none() || stream.after_startup != Some(AfterStartup::Fpdu) {
                continue;
            }
            let first = stream.first_octets;
            let found = "FPDUs without any start-up frame";
            findings.report_in_frame(requirement!("MPA-7.1.2-11"), direction, first, expected, found);
            if connection.active_opener == Some(direction) {
                let expected = "a valid Request before all FPDUs";
                findings.report_in_frame(requirement!("MPA-7.1.2-1"), direction, first, expected, found);
            }
        }
        return;
    }
    if let Some(initiator) = connection.initiator()
        && connection.startup[initiator.peer()].is_none()
        && connection.streaming_start[initiator.peer()].is_none()
        && is_complete(state, initiator.peer())
        && state.mpa.streams[initiator].first.is_some()
    {
        let first = state.mpa.streams[initiator].first_octets;
        let found = "an FPDU, although there is no Reply";
        findings.report_in_frame(requirement!("MPA-7.1.2-11"), initiator, first, expected, found);
    }
    let Some(pair) = connection.startup_pair() else { return };
    let both = pair.request.frame.max(pair.reply.frame);
    for (direction, stream) in Direction::BOTH.into_iter().zip(&state.mpa.streams) {
        let Some(first) = stream.first.filter(|first| *first < both) else { continue };
        let (tcp, other) = (&state.mpa.tcp, state.connection.peer_startup(direction).map_or(0, |frame| frame.end));
        if tcp[direction].had_received(first, &tcp[direction.peer()], other) != Some(false) {
            continue;
        }
        let found = format!("an FPDU before frame {both}, which contains a start-up frame");
        findings.report_in_frame(requirement!("MPA-7.1.2-11"), direction, stream.first_octets, expected, found);
    }
}

/// Reports a Responder that sends an FPDU before it has received a valid FPDU. Rule 4 of section
/// 7.1.2 forbids such an FPDU without exception. Rule 4 applies even if the ULP of the Responder
/// sends first, or knows that the Initiator is ready. A note below rule 4 mentions that the rule
/// was debated.
fn initiator_begins(state: &ConnectionState, findings: &mut Findings<'_>) {
    let Some(pair) = state.connection.startup_pair().filter(StartupPair::is_accepted) else { return };
    let (own, other) = (&state.mpa.streams[pair.responder], &state.mpa.streams[pair.initiator]);
    let Some(first) = own.first else { return };
    // Octets after the Reply that only look like an FPDU belong to the Reply: its PD_Length is wrong.
    let has_all_octets = own.first_valid == Some(first) && (own.fpdus > 1 || own.cut_fpdu.is_none());
    if own.first_octets.frame == pair.reply.frame && !has_all_octets {
        return;
    }
    let allowed = other.first_valid;
    // If the Initiator's first octets were not captured, it is possible that its first FPDU is
    // missing.
    let known = match other.after_startup {
        Some(AfterStartup::Fpdu) => true,
        Some(_) => false,
        None => is_complete(state, pair.initiator),
    };
    if !known || allowed.is_some_and(|allowed| allowed <= first) {
        return;
    }
    // Some captures have frames out of order. The Responder's acknowledgements show the real order.
    let tcp = &state.mpa.tcp;
    let had = tcp[pair.responder].had_received(first, &tcp[pair.initiator], other.first_valid_end);
    if allowed.is_some() && had != Some(false) {
        return;
    }
    let found = || match (allowed, other.first) {
        (Some(frame), _) => format!("an FPDU before frame {frame}, which contains the Initiator's first valid FPDU"),
        (None, Some(frame)) => format!("an FPDU, although the Initiator's FPDU in frame {frame} is not valid"),
        (None, None) => "an FPDU, although the Initiator sent no FPDU".to_owned(),
    };
    let expected = "no FPDU from the Responder before a valid FPDU from the Initiator";
    let at = own.first_octets;
    findings.report_in_frame(requirement!("MPA-7.1.2-17"), pair.responder, at, expected, found());
    findings.as_behaviour().report_in_frame(requirement!("MPA-7.1.3-2"), pair.responder, at, expected, found());
    if pair.is_peer_to_peer() {
        findings.as_behaviour().report_in_frame(requirement!("P2P-3-4"), pair.responder, at, expected, found());
        findings.as_note().report_in_frame(requirement!("P2P-mail.5-1"), pair.responder, at, expected, found());
    }
}

/// Reports a Responder that closes instead of answering a valid Request. A Reply is due even if the
/// ULP does not accept the connection. Requests with the IRD and ORD fields of RFC 6581 are not
/// checked.
fn request_is_answered(state: &ConnectionState, findings: &mut Findings<'_>) {
    let connection = &state.connection;
    let Some(initiator) = connection.initiator() else { return };
    let responder = initiator.peer();
    // If an SDP Hello precedes the Request, a Responder that rejects the Hello closes TCP. SDP has
    // no other way to reject a Hello (SDP-8.1.1-14 to SDP-8.1.1-18).
    if connection.streaming_hello == Some(initiator) {
        return;
    }
    let Some(request) = connection.startup[initiator].filter(|frame| frame.kind == StartupKind::Request) else {
        return;
    };
    let good = request.complete
        && request.revision <= 2
        && !request.is_enhanced()
        && request.pd_length <= 512
        && request.private_len() == usize::from(request.pd_length);
    let silent = connection.startup[responder].is_none()
        && connection.streaming_start[responder].is_none()
        && is_complete(state, responder)
        && state.mpa.streams[responder].after_startup.is_none();
    // RFC 5044 allows the Responder to close if the Initiator sends more octets than the Request
    // announces.
    let alone = state.mpa.streams[initiator].after_startup.is_none() && !state.mpa.streams[initiator].broken;
    let closes = connection.fin[responder].or(connection.rst[responder]);
    let gone = connection.fin[initiator].or(connection.rst[initiator]);
    let Some(frame) = closes.filter(|closes| gone.is_none_or(|gone| *closes < gone)) else { return };
    // A Responder that closes before the Request arrives owes no Reply.
    let tcp = &state.mpa.tcp;
    let had = tcp[responder].had_received(frame, &tcp[initiator], request.end) == Some(true);
    if !(good && silent && alone && had) {
        return;
    }
    let found = "the connection closed without a Reply";
    let expected = "a Reply with R = 0, or with R = 1 if the Private Data is not acceptable";
    // Revision 0: by RFC 5044 Appendix C, only some kinds of Responders must answer. So all
    // findings are notes.
    //
    // Other revisions: the capture does not show whether the Private Data was acceptable. Most
    // likely it was not acceptable. So the finding with MPA-7.1.2-5, which is about unacceptable
    // Private Data (rule 2), keeps its severity. The finding with MPA-7.1.2-8 is a note, because it
    // is about acceptable Private Data. The finding with MPA-7.1.2-20 is a note, because rule 6
    // repeats rule 2.
    let unacceptable = requirement!("MPA-7.1.2-5");
    for id in [unacceptable, requirement!("MPA-7.1.2-8"), requirement!("MPA-7.1.2-20")] {
        let is_note = request.revision == 0 || id != unacceptable;
        findings.as_note_if(is_note).report_in_frame(id, responder, frame, expected, found);
    }
}

/// Reports an FPDU directly after a rejecting Reply.
fn nothing_after_rejection(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Kind::Streaming { head, .. } = &unit.kind else { return };
    if state.connection.startup_pair().is_none_or(|pair| pair.is_accepted()) {
        return;
    }
    let head = if head.starts_with(&[0; 4]) { &head[4..] } else { head };
    let &[high, low, ddp, rdmap, ..] = head else { return };
    let version = ddp & 3;
    let is_header = ddp & 0x3c == 0 && version <= 1 && rdmap >> 6 == version && rdmap & 0x30 == 0;
    let length = u16::from_be_bytes([high, low]);
    if !is_header || rdmap & 0xf > 11 || length < 14 {
        return;
    }
    let (direction, frame) = (unit.direction(), unit.frame);
    let found = format!("an FPDU with opcode {}", rdmap & 0xf);
    let expected = "no FPDU after a Reply with R = 1";
    findings.report_in_frame(requirement!("MPA-7.1.1-17"), direction, frame, expected, found);
    if (length, ddp, rdmap) == (22, 0x41, 0x47)
        && let Some(&[layer, code]) = head.get(20..22)
        && (layer, code) != (0x20, 0x06)
    {
        let found = format!("a Terminate with error {layer:02x} {code:02x}");
        let expected = "no Terminate, or a Terminate with error 20 06";
        findings.as_note().report_in_frame(requirement!("P2P-9.1-22"), direction, frame, expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, fpdu, proves};

    fn send(msn: u32) -> Vec<u8> {
        fpdu(&testing::send_of(msn, 30))
    }

    #[derive(Clone, Copy)]
    enum Step {
        Request,
        Reply,
        Rejects,
        /// This direction sends an FPDU.
        Sends(usize),
        /// This direction sends an FPDU with a bad CRC.
        Damages(usize),
        Closes(usize),
    }

    fn play(steps: &[Step]) -> Wire {
        play_as(0x40, 1, &[], steps)
    }

    fn play_as(flags: u8, revision: u8, words: &[u8], steps: &[Step]) -> Wire {
        let mut wire = Wire::connected();
        let mut msn = 0;
        for step in steps {
            msn += 1;
            match *step {
                Step::Request => wire.send(0, &testing::startup_frame(flags, revision, words)),
                Step::Reply => wire.send(1, &testing::reply_frame(flags, revision, words)),
                Step::Rejects => wire.send(1, &testing::reply_frame(flags | 0x20, revision, words)),
                Step::Sends(direction) => wire.send(direction, &send(msn)),
                Step::Damages(direction) => {
                    let mut octets = send(msn);
                    octets[22] ^= 1;
                    wire.send(direction, &octets);
                }
                Step::Closes(direction) => wire.fin(direction),
            }
        }
        wire
    }

    use Step::{Closes, Damages, Rejects, Reply, Request, Sends};

    #[test]
    fn the_request_comes_first() {
        let good = play(&[Request, Reply, Sends(0), Sends(1)]);
        proves(requirement!("MPA-7.1.2-12"), &play(&[Reply, Request, Sends(0), Sends(1)]), &good);
        proves(requirement!("MPA-7.1.2-12"), &play(&[Reply, Closes(0), Closes(1)]), &good);
        proves(requirement!("MPA-7.1.2-3"), &play(&[Reply, Sends(1), Request, Sends(0)]), &good);
    }

    #[test]
    fn fpdus_come_after_both_frames() {
        let good = play(&[Request, Reply, Sends(0), Sends(1)]);
        proves(requirement!("MPA-7.1.2-11"), &play(&[Request, Sends(0), Reply, Sends(0)]), &good);
        proves(requirement!("MPA-7.1.2-11"), &play(&[Request, Sends(0), Closes(1)]), &play(&[Request, Closes(1)]));
        let bare = play(&[Sends(0), Sends(0), Sends(0)]);
        proves(requirement!("MPA-7.1.2-11"), &bare, &good);
        proves(requirement!("MPA-7.1.2-1"), &bare, &good);
    }

    #[test]
    fn the_responder_waits_for_the_first_fpdu() {
        let good = play(&[Request, Reply, Sends(0), Sends(1)]);
        let bad = play(&[Request, Reply, Sends(1), Sends(0)]);
        proves(requirement!("MPA-7.1.2-17"), &bad, &good);
        proves(requirement!("MPA-7.1.2-17"), &play(&[Request, Reply, Damages(0), Sends(1)]), &good);
        proves(requirement!("MPA-7.1.3-2"), &bad, &good);
        // Control flags A, C and D are set. IRD and ORD are 1.
        let words = testing::hex("8001 c001");
        let peer_to_peer = |steps: &[Step]| play_as(0x50, 2, &words, steps);
        let good = peer_to_peer(&[Request, Reply, Sends(0), Sends(1)]);
        let bad = peer_to_peer(&[Request, Reply, Sends(1), Sends(0)]);
        proves(requirement!("P2P-3-4"), &bad, &good);
        proves(requirement!("P2P-mail.5-1"), &bad, &good);
    }

    /// The octets after the Reply are not a complete FPDU. They are a part of the Reply.
    #[test]
    fn a_long_reply_is_not_an_early_fpdu() {
        let mut long = play(&[Request]);
        long.send(1, &[testing::reply(), send(1)[..20].to_vec()].concat());
        long.fin(1);
        proves(requirement!("MPA-7.1.2-17"), &play(&[Request, Reply, Sends(1), Sends(0)]), &long);
    }

    #[test]
    fn acknowledged_fpdus_came_before() {
        // The capture has the two FPDUs in the wrong order.
        let mut wire = play(&[Request, Reply]);
        wire.swapped(|wire| wire.send(0, &send(1)), |wire| wire.send(1, &send(1)));
        assert_eq!(wire.errors(), []);
    }

    #[test]
    fn a_good_request_is_answered() {
        let good = play(&[Request, Rejects, Closes(1)]);
        let bad = play(&[Request, Closes(1)]);
        proves(requirement!("MPA-7.1.2-5"), &bad, &good);
        proves(requirement!("MPA-7.1.2-20"), &bad, &good);
        // The capture does not show whether the Private Data was acceptable, so only one of the
        // three findings is a warning.
        let loud: Vec<_> = bad.errors().iter().map(|finding| finding.requirement).collect();
        assert_eq!(loud, [requirement!("MPA-7.1.2-5")]);
        proves(requirement!("MPA-7.1.2-8"), &bad, &play(&[Request, Reply, Closes(1)]));
        proves(requirement!("MPA-7.1.2-8"), &bad, &play(&[Request, Closes(0), Closes(1)]));
        proves(requirement!("MPA-7.1.2-8"), &bad, &play(&[Request, Sends(0), Closes(1)]));
    }

    #[test]
    fn rejecting_an_sdp_hello_needs_no_reply_to_the_request_after_it() {
        let rejected = |hello: &[u8]| {
            let mut wire = Wire::connected();
            wire.send(0, &[hello, &testing::request()].concat());
            wire.fin(1);
            wire
        };
        // The same Request must be answered if no Hello precedes it.
        proves(requirement!("MPA-7.1.2-8"), &rejected(&[]), &rejected(&testing::hello()));
        assert_eq!(rejected(&testing::hello()).errors(), []);
        let mut major_2 = testing::hello();
        major_2[19] = 0x22;
        assert!(
            rejected(&major_2).errors().iter().all(|finding| finding.direction == 0),
            "the endpoint that rejects the Hello is not at fault"
        );
    }

    #[test]
    fn nothing_follows_a_rejection() {
        let good = play(&[Request, Rejects, Closes(1), Closes(0)]);
        proves(requirement!("MPA-7.1.1-17"), &play(&[Request, Rejects, Sends(0)]), &good);
        let terminate = |code: u8| {
            let mut wire = play_as(0x50, 2, &testing::hex("0001 0001"), &[Request, Rejects]);
            let ulpdu = format!("4147 00000000 00000002 00000001 00000000 20{code:02x} 0000");
            wire.send(1, &fpdu(&testing::hex(&ulpdu)));
            wire
        };
        proves(requirement!("P2P-9.1-22"), &terminate(5), &terminate(6));
    }
}
