//! Checks that the Reply matches the Request in its revision, the depths of the Read queues, and
//! the connection model.

use weft_core::wire::mpa::startup::{Enhanced, NOT_NEGOTIATED};
use weft_core::{RequirementId, requirement};

use crate::follow::{ConnectionState, StartupPair};
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static SAME_VARIANT: Rule =
    Check::Startup(same_variant).covers(requirements!["P2P-5-2", "P2P-10-2", "P2P-10-3", "P2P-10-9", "P2P-10-11"]);

pub(super) static DEPTHS: Rule = Check::Startup(depths).covers(requirements![
    "P2P-9-1",
    "P2P-9-2",
    "P2P-9-7",
    "P2P-9.1-6",
    "P2P-9.1-7",
    "P2P-9.1-12",
    "P2P-9.1-13",
    "P2P-9.1-14",
    "P2P-9.1-20"
]);

pub(super) static MODEL: Rule = Check::Startup(model).covers(requirements![
    "P2P-9.2-4",
    "P2P-9.2-6",
    "P2P-9.2-7",
    "P2P-9.2-20",
    "P2P-9.2-22",
    "P2P-mail.2-1"
]);

/// Returns both start-up frames if the later frame is in `unit`, and `None` otherwise. So each rule
/// reports once, when both frames have arrived.
fn pair<'b>(state: &'b ConnectionState, unit: &Unit<'_>) -> Option<StartupPair<'b>> {
    let pair = state.connection.startup_pair()?;
    let own = state.connection.startup[unit.direction()]?;
    (own.frame >= pair.request.frame.max(pair.reply.frame)).then_some(pair)
}

/// Adds a finding about octets `range` of the Reply.
fn report(
    findings: &mut Findings<'_>,
    unit: &Unit<'_>,
    pair: StartupPair<'_>,
    (id, range): (RequirementId, std::ops::Range<usize>),
    expected: &str,
    found: String,
) {
    if unit.direction() == pair.responder {
        findings.report(id, unit, range, expected, found);
    } else {
        findings.report_in_frame(id, pair.responder, pair.reply.header, expected, found);
    }
}

fn same_variant(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(pair) = pair(state, unit) else { return };
    let (request, reply) = (pair.request, pair.reply);
    let enhanced = reply.is_enhanced();
    let found = || format!("a Reply of Rev {}, S = {}", reply.revision, reply.flags >> 4 & 1);
    let mut violation = |id, expected: &str| report(findings, unit, pair, (id, 16..18), expected, found());
    if request.is_enhanced() && !enhanced {
        let expected = "a Reply of Rev 2 with S = 1 to an enhanced Request";
        violation(requirement!("P2P-10-2"), expected);
        violation(requirement!("P2P-10-9"), expected);
        violation(requirement!("P2P-5-2"), "a Reply that completes the negotiation");
    }
    if request.revision == 1 && (enhanced || reply.revision > 1) {
        violation(requirement!("P2P-10-3"), "a Reply of Rev 1 with S = 0 to a Request of Rev 1");
    }
    if request.revision >= 1 && !request.is_enhanced() && enhanced {
        violation(requirement!("P2P-10-11"), "S = 0 in the Reply to a Request that is not enhanced");
    }
}

fn depths(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(pair) = pair(state, unit).filter(StartupPair::is_accepted) else { return };
    let (Some(request), Some(reply)) = (pair.request.words, pair.reply.words) else { return };
    let (ird, ord) = (20..22, 22..24);
    let mut warn =
        |id, range, expected: &str, found: String| report(findings, unit, pair, (id, range), expected, found);
    let open = NOT_NEGOTIATED;
    if request.ord == open && reply.ird != open {
        let found = || format!("IRD = {}", reply.ird);
        warn(requirement!("P2P-9.1-13"), ird.clone(), "IRD = 0x3fff, because the Request has ORD = 0x3fff", found());
        warn(requirement!("P2P-9.1-12"), ird.clone(), "0x3fff in the Reply, as in the Request", found());
    }
    if request.ird == open && reply.ord != open {
        let found = || format!("ORD = {}", reply.ord);
        warn(requirement!("P2P-9.1-14"), ord.clone(), "ORD = 0x3fff, because the Request has IRD = 0x3fff", found());
        warn(requirement!("P2P-9.1-12"), ord.clone(), "0x3fff in the Reply, as in the Request", found());
    }
    if request.ird != open && reply.ord != open && reply.ord > request.ird {
        let (found, expected) =
            (|| format!("ORD = {}", reply.ord), format!("ORD of at most {}, the Request's IRD", request.ird));
        warn(requirement!("P2P-9.1-20"), ord.clone(), &expected, found());
        warn(requirement!("P2P-9.1-6"), ord.clone(), &expected, found());
        if swapped(reply).ord <= request.ird && swapped(reply).ord > 0 {
            let found = || format!("ORD = {}, which is {} in the other byte order", reply.ord, swapped(reply).ord);
            let expected = "a 16-bit word with C and D in the upper two bits and ORD in the lower 14 bits";
            warn(requirement!("P2P-9-2"), ord.clone(), expected, found());
            warn(requirement!("P2P-9-7"), ord, "IRD and ORD in network byte order", found());
        }
    }
    if request.ord != open && reply.ird != open && reply.ird < request.ord {
        let other = swapped(reply);
        if request.peer_to_peer && !reply.peer_to_peer && other.peer_to_peer && other.ird >= request.ord {
            let found = || format!("A = 0, IRD = {} (A = 1, IRD = {} in the other byte order)", reply.ird, other.ird);
            let expected = "a 16-bit word with A and B in the upper two bits and IRD in the lower 14 bits";
            warn(requirement!("P2P-9-1"), ird.clone(), expected, found());
            warn(requirement!("P2P-9-7"), ird.clone(), "IRD and ORD in network byte order", found());
        }
        let expected = format!("IRD of at least {}, the Request's ORD", request.ord);
        let id = requirement!("P2P-9.1-7");
        report(&mut findings.as_behaviour(), unit, pair, (id, ird), &expected, format!("IRD = {}", reply.ird));
    }
}

/// Returns the IRD and ORD fields with swapped bytes, to recognise a sender that used the wrong
/// byte order.
fn swapped(words: Enhanced) -> Enhanced {
    let mut raw = words.to_raw();
    raw.ird = raw.ird.get().swap_bytes().into();
    raw.ord = raw.ord.get().swap_bytes().into();
    Enhanced::from_raw(raw)
}

fn model(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(pair) = pair(state, unit).filter(StartupPair::is_accepted) else { return };
    let (Some(request), Some(reply)) = (pair.request.words, pair.reply.words) else { return };
    if !request.peer_to_peer {
        if reply.peer_to_peer {
            let id = requirement!("P2P-9.2-7");
            report(findings, unit, pair, (id, 20..22), "A = 0, as in the Request", "A = 1".to_owned());
        }
        return;
    }
    if !reply.peer_to_peer {
        let id = requirement!("P2P-9.2-4");
        report(findings, unit, pair, (id, 20..22), "A = 1, as in the Request", "A = 0".to_owned());
        return;
    }
    if reply.rtr_send || reply.rtr_write || reply.rtr_read {
        return;
    }
    let found = || "B = C = D = 0".to_owned();
    let id = requirement!("P2P-9.2-6");
    report(findings, unit, pair, (id, 20..24), "a ready-to-receive type that the Responder supports", found());
    if request.rtr_send || request.rtr_write || request.rtr_read {
        // The Responder violates one of these two requirements: the first requirement if it
        // supports an offered type, and otherwise the second requirement.
        let expected = "one of the offered ready-to-receive types, or another type that the Responder supports";
        report(findings, unit, pair, (requirement!("P2P-9.2-20"), 20..24), expected, found());
        report(findings, unit, pair, (requirement!("P2P-9.2-22"), 20..24), expected, found());
    }
    let expected = "a Reply that names the first message that the Responder accepts";
    report(&mut findings.as_note(), unit, pair, (requirement!("P2P-mail.2-1"), 20..24), expected, found());
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::testing::{self, Wire, proves};

    /// Plays a Request and a Reply with these flags, revisions, and IRD and ORD fields.
    fn pair(request: (u8, u8, &str), reply: (u8, u8, &str)) -> Wire {
        let request = testing::startup_frame(request.0, request.1, &testing::hex(request.2));
        Wire::started_as(&request, &testing::reply_frame(reply.0, reply.1, &testing::hex(reply.2)))
    }

    /// Plays two enhanced start-up frames with these IRD and ORD fields.
    fn words(request: &str, reply: &str) -> Wire {
        pair((0x50, 2, request), (0x50, 2, reply))
    }

    #[test]
    fn a_reply_is_of_the_variant_of_the_request() {
        let good = words("0001 0001", "0001 0001");
        let plain = pair((0x50, 2, "0001 0001"), (0x40, 2, ""));
        proves(requirement!("P2P-10-2"), &plain, &good);
        proves(requirement!("P2P-10-9"), &plain, &good);
        proves(requirement!("P2P-5-2"), &plain, &good);
        proves(
            requirement!("P2P-10-2"),
            &pair((0x50, 2, "0001 0001"), (0x60, 1, "")),
            &pair((0x50, 2, "0001 0001"), (0x70, 2, "0001 0001")),
        );
        let good = pair((0x40, 1, ""), (0x40, 1, ""));
        proves(requirement!("P2P-10-3"), &pair((0x40, 1, ""), (0x50, 2, "0001 0001")), &good);
        let good = pair((0x40, 2, ""), (0x40, 2, ""));
        proves(requirement!("P2P-10-11"), &pair((0x40, 2, ""), (0x50, 2, "0001 0001")), &good);
    }

    #[test]
    fn depths_fit() {
        let good = words("0003 0004", "0004 0003");
        proves(requirement!("P2P-9.1-6"), &words("0003 0004", "0004 0004"), &good);
        proves(requirement!("P2P-9.1-20"), &words("0000 0004", "0004 0001"), &words("0000 0004", "0004 0000"));
        proves(requirement!("P2P-9.1-7"), &words("0003 0004", "0003 0003"), &good);
        proves(requirement!("P2P-9.1-13"), &words("0003 3fff", "0004 0003"), &words("0003 3fff", "3fff 0003"));
        proves(requirement!("P2P-9.1-14"), &words("3fff 0004", "0004 0003"), &words("3fff 0004", "0004 3fff"));
        proves(requirement!("P2P-9.1-12"), &words("3fff 3fff", "0004 0003"), &words("3fff 3fff", "3fff 3fff"));
    }

    #[test]
    fn words_are_in_network_byte_order() {
        let good = words("8004 c004", "8004 8004");
        proves(requirement!("P2P-9-2"), &words("8004 c004", "8004 0480"), &good);
        proves(requirement!("P2P-9-7"), &words("8004 c004", "8004 0480"), &good);
        let short = words("8004 c100", "0180 8004");
        proves(requirement!("P2P-9-1"), &words("8004 c501", "0185 8004"), &short);
    }

    #[test]
    fn the_reply_agrees_on_the_model() {
        let good = words("8001 c001", "8001 8001");
        proves(requirement!("P2P-9.2-4"), &words("8001 c001", "0001 0001"), &good);
        proves(requirement!("P2P-9.2-7"), &words("0001 0001", "8001 8001"), &words("0001 0001", "0001 0001"));
        let none = words("8001 c001", "8001 0001");
        proves(requirement!("P2P-9.2-6"), &none, &good);
        proves(requirement!("P2P-9.2-20"), &none, &good);
        proves(requirement!("P2P-9.2-22"), &words("8001 4001", "8001 0001"), &words("8001 4001", "8001 8001"));
        proves(requirement!("P2P-mail.2-1"), &none, &good);
    }
}
