//! Checks the fields of an enhanced start-up frame (S = 1): the flags (octet 16), and the two
//! 16-bit words with IRD and ORD.

use weft_core::requirement;
use weft_core::wire::mpa::StartupKind;
use weft_core::wire::mpa::startup::{FLAG_S, MAX_PD_LENGTH, NOT_NEGOTIATED};

use crate::follow::ConnectionState;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static FIELDS: Rule = Check::Startup(fields).covers(requirements![
    "P2P-5-1",
    "P2P-5-2",
    "P2P-6-1",
    "P2P-6-2",
    "P2P-6-4",
    "P2P-6-6",
    "P2P-6-9",
    "P2P-6-10",
    "P2P-9-8",
    "P2P-mail.1-2"
]);

pub(super) static WORDS: Rule =
    Check::Startup(words).covers(requirements!["P2P-9.2-1", "P2P-9.2-2", "P2P-9.2-3", "P2P-9.2-24", "P2P-10-1"]);

/// Octet 16: the flags.
const FLAGS: std::ops::Range<usize> = 16..17;
/// Octets 18 and 19.
const PD_LENGTH: std::ops::Range<usize> = 18..20;
/// Octets 20 to 23: IRD and ORD with the control flags A to D.
const WORDS_AT: std::ops::Range<usize> = 20..24;

fn fields(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(frame) = &state.connection.startup[unit.direction()] else { return };
    let length = frame.pd_length;
    if frame.revision < 2 {
        if frame.revision == 1 && frame.flags & 0x1f != 0 {
            let found = format!("Res = {:#04x}", frame.flags & 0x1f);
            let expected = "reserved bits of zero, unless RFC 6581 is in use";
            findings.as_note().report(requirement!("P2P-mail.1-2"), unit, FLAGS, expected, found);
        }
        if frame.revision == 1 && frame.flags & FLAG_S != 0 {
            findings.report(requirement!("P2P-6-6"), unit, 16..18, "Rev 2 or higher with S = 1", "Rev = 1");
        }
        return;
    }
    let reserved = frame.flags & 0x0f;
    if reserved != 0 {
        let found = || format!("reserved bits {reserved:#04x}");
        let expected = "the flags M, C, R and S, and then four reserved bits of zero";
        findings.report(requirement!("P2P-6-1"), unit, FLAGS, expected, found());
        findings.report(requirement!("P2P-6-4"), unit, FLAGS, "reserved bits of zero", found());
    }
    if frame.kind == StartupKind::Request && frame.rejects() {
        findings.report(requirement!("P2P-6-9"), unit, FLAGS, "R = 0 in a Request, as in RFC 5044", "R = 1");
    }
    if length > MAX_PD_LENGTH {
        let found = || format!("PD_Length = {length}");
        findings.report(requirement!("P2P-6-9"), unit, PD_LENGTH, "PD_Length of at most 512, as in RFC 5044", found());
        if frame.is_enhanced() {
            let expected = "at most 512 bytes, including IRD and ORD";
            findings.report(requirement!("P2P-6-10"), unit, PD_LENGTH, expected, found());
            findings.report(requirement!("P2P-9-8"), unit, PD_LENGTH, "at most 508 bytes after IRD and ORD", found());
        }
    }
    if frame.is_enhanced() && length < 4 {
        let found = || format!("PD_Length = {length} with S = 1");
        findings.report(requirement!("P2P-6-2"), unit, PD_LENGTH, "PD_Length of 4 or more with S = 1", found());
        let (id, expected) = match frame.kind {
            StartupKind::Request => (requirement!("P2P-5-1"), "IRD, ORD and flags in the Request"),
            StartupKind::Reply => (requirement!("P2P-5-2"), "IRD, ORD and flags in the Reply"),
        };
        findings.report(id, unit, PD_LENGTH, expected, found());
    }
}

fn words(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(frame) = &state.connection.startup[unit.direction()] else { return };
    let Some(words) = frame.words else { return };
    let offers = words.rtr_send || words.rtr_write || words.rtr_read;
    let is_request = frame.kind == StartupKind::Request;
    let mut at = |id, expected: &str, found: &str| findings.report(id, unit, WORDS_AT, expected, found.to_owned());
    if !words.peer_to_peer && offers {
        at(requirement!("P2P-9.2-3"), "B = C = D = 0 with A = 0", "A = 0, but a ready-to-receive flag is 1");
    }
    if is_request && words.peer_to_peer && !offers {
        let found = "A = 1, and B = C = D = 0";
        at(requirement!("P2P-9.2-2"), "a flag for each ready-to-receive type that the Initiator can send", found);
        // Either A or the flags B to D are wrong. In the peer-to-peer model, A = 1 is right.
        let expected = "A = 0 if no ready-to-receive message is offered";
        findings.as_note().report(requirement!("P2P-9.2-24"), unit, WORDS_AT, expected, found);
    }
    if is_request && !words.peer_to_peer && offers {
        // Either A or the flags B to D are wrong. The frame does not show which model the Initiator
        // meant, so the finding is a note.
        let (expected, found) = ("A = 1 for the peer-to-peer model", "ready-to-receive types, but A = 0".to_owned());
        findings.as_note().report(requirement!("P2P-9.2-1"), unit, WORDS_AT, expected, found);
    }
    if is_request && !words.peer_to_peer && words.ird == NOT_NEGOTIATED && words.ord == NOT_NEGOTIATED {
        // 0x3FFF means that the frame negotiates no depth (RFC 6581 section 9.1). It is possible
        // that the sender has another reason for an enhanced frame, so the finding is a note.
        let expected = "an enhanced frame only if it negotiates something";
        let found = "S = 1, but A = 0 and IRD = ORD = 0x3fff";
        findings.as_note().report(requirement!("P2P-10-1"), unit, WORDS_AT, expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, proves};

    /// Plays a Request with these flags, this revision and this Private Data.
    fn request(flags: u8, revision: u8, private: &str) -> Wire {
        let mut wire = Wire::connected();
        wire.send(0, &testing::startup_frame(flags, revision, &testing::hex(private)));
        wire
    }

    fn long(flags: u8, octets: usize) -> Wire {
        let mut wire = Wire::connected();
        wire.send(0, &testing::startup_frame(flags, 2, &vec![0; octets]));
        wire.fin(0);
        wire
    }

    #[test]
    fn octet_16_of_revision_2() {
        let good = request(0x50, 2, "0001 0001");
        proves(requirement!("P2P-6-1"), &request(0x58, 2, "0001 0001"), &good);
        proves(requirement!("P2P-6-4"), &request(0x51, 2, "0001 0001"), &good);
        proves(requirement!("P2P-6-6"), &request(0x50, 1, "0001 0001"), &good);
        proves(requirement!("P2P-6-9"), &request(0x70, 2, "0001 0001"), &good);
        proves(requirement!("P2P-mail.1-2"), &request(0x41, 1, ""), &request(0x40, 1, ""));
    }

    #[test]
    fn private_data_contains_the_words() {
        let good = request(0x50, 2, "0001 0001");
        proves(requirement!("P2P-6-2"), &request(0x50, 2, "0001"), &good);
        proves(requirement!("P2P-5-1"), &request(0x50, 2, ""), &good);
        let reply = |private: &str| {
            let frame = testing::reply_frame(0x50, 2, &testing::hex(private));
            Wire::started_as(&testing::startup_frame(0x50, 2, &testing::hex("0001 0001")), &frame)
        };
        proves(requirement!("P2P-5-2"), &reply("00"), &reply("0001 0001"));
        proves(requirement!("P2P-6-10"), &long(0x50, 513), &long(0x50, 512));
        proves(requirement!("P2P-9-8"), &long(0x50, 513), &long(0x50, 512));
        proves(requirement!("P2P-6-9"), &long(0x40, 513), &long(0x40, 512));
    }

    #[test]
    fn flags_fit_the_model() {
        let good = request(0x50, 2, "8001 c001");
        proves(requirement!("P2P-9.2-3"), &request(0x50, 2, "0001 4001"), &good);
        proves(requirement!("P2P-9.2-1"), &request(0x50, 2, "4001 0001"), &good);
        proves(requirement!("P2P-9.2-2"), &request(0x50, 2, "8001 0001"), &good);
        proves(requirement!("P2P-9.2-24"), &request(0x50, 2, "8001 0001"), &request(0x50, 2, "0001 0001"));
        let no_depths = request(0x50, 2, "3fff 3fff");
        proves(requirement!("P2P-10-1"), &no_depths, &request(0x50, 2, "3fff 0001"));
        let of_it = |found: Vec<crate::Finding>| found.iter().any(|it| it.requirement == requirement!("P2P-10-1"));
        assert!(!of_it(no_depths.errors()), "a note");
    }
}
