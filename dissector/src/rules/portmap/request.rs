//! Compares a PMReq with earlier PMReqs (section 7.5.1 of the SDP draft): AssocHandle, CpIPAddr and
//! CpPort are unique, and repetitions are identical.

use weft_core::requirement;
use weft_core::wire::portmap::MessageType;

use super::view::PmView;
use crate::follow::portmap::{RequestConflict, Role};
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static CONFLICT: Rule = Check::PortMapper(conflict).covers(requirements![
    "PM-7.3.1.8-1",
    "PM-7.4-12",
    "PM-7.5.1-1",
    "PM-7.5.1-5",
    "PM-7.5.1-7"
]);

fn conflict(view: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(seen) = view.datagram.filter(|seen| seen.is_from(Role::Client, MessageType::PM_REQ)) else { return };
    let Some((conflict, earlier)) = view.conflict else { return };
    let frame = earlier.frame;
    match conflict {
        RequestConflict::Changed => {
            let expected = format!(
                "the same ApPort and ApIPAddr as in frame {frame}, because this PMReq repeats the earlier PMReq"
            );
            let found = "a different ApPort or ApIPAddr";
            findings.report(requirement!("PM-7.5.1-5"), unit, 0..48, &expected, found);
        }
        RequestConflict::Reused => {
            let expected = format!(
                "a different AssocHandle, CpIPAddr or CpPort than in frame {frame}, because another service is requested"
            );
            findings.report(requirement!("PM-7.5.1-1"), unit, 6..32, &expected, "the same combination");
        }
        RequestConflict::SameHandle => {
            let expected = format!(
                "a different AssocHandle than in the PMReq of frame {frame}, because that PMReq has no answer yet"
            );
            let found = format!("{:#x} again", seen.raw.assoc_handle.get());
            findings.report_each(requirements!["PM-7.3.1.8-1", "PM-7.4-12"], unit, 8..16, &expected, &found);
        }
        // It is possible that the client repeated the PMReq from another socket, so the finding is
        // a note.
        RequestConflict::OtherSource => {
            let expected =
                format!("a different five-tuple than in the PMReq of frame {frame}, sent from {}", earlier.src);
            let found = format!("the same five-tuple, sent from {}", seen.src);
            findings.as_note().report(requirement!("PM-7.5.1-7"), unit, 0..48, &expected, found);
        }
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::rules::portmap::testing::{ACCEPT, Datagram, Datagrams, REQ, datagram, other_host, proves};

    /// Two PMReqs, `seconds` apart. `change` changes the second PMReq. If `answered` is true, the
    /// first PMReq has an answer.
    fn two(answered: bool, seconds: u64, change: impl Fn(&mut Vec<u8>)) -> Datagrams {
        let mut wire = Datagrams::default();
        wire.put(0, &Datagram::new(REQ).octets());
        if answered {
            wire.put(1, &Datagram::new(ACCEPT).octets());
        }
        wire.wait(seconds);
        wire.put(0, &datagram(REQ, change).octets());
        wire
    }

    fn other_service(octets: &mut [u8]) {
        octets[5] ^= 1;
    }

    fn other_end_of_it(octets: &mut [u8]) {
        octets[7] ^= 1;
    }

    fn other_handle(octets: &mut [u8]) {
        octets[15] ^= 1;
        octets[7] ^= 1;
    }

    #[test]
    fn repetitions_do_not_change() {
        proves(requirement!("PM-7.5.1-5"), &two(false, 1, |octets| other_service(octets)), &two(false, 1, |_| {}));
        proves(
            requirement!("PM-7.5.1-5"),
            &two(false, 1, |octets| octets[35] ^= 1),
            &two(true, 1, |octets| other_service(octets)),
        );
    }

    #[test]
    fn handles_differ() {
        let wrong = two(false, 1, |octets| other_end_of_it(octets));
        proves(requirement!("PM-7.3.1.8-1"), &wrong, &two(false, 1, |octets| other_handle(octets)));
        // After the answer, or when the client has given up, the client is allowed to reuse the
        // AssocHandle.
        proves(requirement!("PM-7.4-12"), &wrong, &two(true, 1, |octets| other_end_of_it(octets)));
        proves(requirement!("PM-7.4-12"), &wrong, &two(false, 6, |octets| other_end_of_it(octets)));
    }

    #[test]
    fn the_three_tuple_is_not_used_again_while_a_packet_may_live() {
        proves(
            requirement!("PM-7.5.1-1"),
            &two(true, 119, |octets| other_service(octets)),
            &two(true, 121, |octets| other_service(octets)),
        );
    }

    #[test]
    fn a_five_tuple_has_one_source() {
        let from = |other: bool| {
            let mut wire = Datagrams::default();
            wire.put(0, &Datagram::new(REQ).octets());
            let octets = Datagram::new(REQ).octets();
            let ends = Datagrams::ENDPOINTS.map(|end| end.parse().unwrap());
            wire.put_between(if other { other_host(0) } else { ends[0] }, ends[1], &octets);
            wire
        };
        proves(requirement!("PM-7.5.1-7"), &from(true), &from(false));
    }
}
