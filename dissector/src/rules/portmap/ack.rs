//! Compares a PMAck with its PMAccept (section 7.4 of the SDP draft).
//!
//! Several PMAccepts can answer copies of one PMReq. Each can contain a different SDP Address (the
//! address for the SDP connection). The PMAck must match one of these PMAccepts. If the capture has
//! fewer answers than PMReqs, it is possible that the PMAck matches a missing PMAccept.

use weft_core::RequirementId;
use weft_core::requirement;

use super::view::{IntendedType, PmView};
use crate::follow::portmap::PmDatagram;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static ACK: Rule = Check::PortMapper(ack).covers(requirements![
    "PM-7.3.1.6-3",
    "PM-7.3.1.7-3",
    "PM-7.3.1.8-2",
    "PM-7.3.1.9-2",
    "PM-7.3.1.10-3",
    "PM-7.4-31",
    "PM-7.4-32",
    "PM-7.4-34",
    "PM-7.4-38",
    "PM-7.4-39",
    "PM-7.4-40",
    "PM-7.4-41",
    "PM-7.4-43",
    "PM-7.4-45",
    "PM-7.4-65"
]);

fn ack(view: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let (Some(seen), Some(transaction), Some(IntendedType::Ack)) =
        (view.datagram, view.transaction, view.intended_type())
    else {
        return;
    };
    let direction = unit.direction();
    let client = transaction.request.src;
    if !transaction.address_pairs.iter().any(|(src, _)| *src == seen.src) {
        let expected = format!("a PMAck from {client}, the source of the PMReq");
        let found = format!("a PMAck from {}", seen.src);
        findings.report_in_frame(requirement!("PM-7.4-45"), direction, unit.udp_ports(), &expected, found);
    }
    if !transaction.is_complete() {
        return;
    }
    if transaction.accepts.is_empty() {
        // A PMAck with the ApPort of the PMDeny or of the PMReq does not show that a PMAccept
        // exists. A PMAck with another ApPort belongs to a PMAccept that is missing in the capture
        // or comes after the PMAck.
        let requested = transaction.request.raw.ap_port;
        if transaction.deny.is_some_and(|deny| [deny.raw.ap_port, requested].contains(&seen.raw.ap_port)) {
            let found = "a PMAck";
            findings.report(requirement!("PM-7.4-65"), unit, 0..1, "nothing after a PMDeny", found);
        }
        return;
    }
    let fits = |fits: &dyn Fn(&PmDatagram) -> bool| transaction.accepts.iter().any(fits);
    let all = IntendedType::Ack.all_fields();
    if !fits(&|accept| (accept.dst, accept.src) == (seen.src, seen.dst)) {
        let paths: Vec<String> =
            transaction.accepts.iter().map(|accept| format!("from {} to {}", accept.dst, accept.src)).collect();
        let expected = format!("{}, the reverse path of the PMAccept", paths.join(" or "));
        let found = format!("from {} to {}", seen.src, seen.dst);
        findings.report_in_frame(requirement!("PM-7.4-31"), direction, unit.udp_ports(), &expected, found);
    }
    let mut differs = |ids: &[RequirementId], range, name: &str, found: String| {
        let expected = format!("the {name} of the PMAccept");
        findings.report_each(ids, unit, range, &expected, &found);
        findings.report(all, unit, 0..48, &expected, found);
    };
    if !fits(&|accept| accept.raw.ipv() == seen.raw.ipv()) {
        differs(requirements!["PM-7.4-34"], 0..1, "IPV", format!("IPV {}", seen.raw.ipv()));
    }
    if !fits(&|accept| accept.raw.ap_port == seen.raw.ap_port) {
        let ids = requirements!["PM-7.4-38", "PM-7.3.1.6-3"];
        differs(ids, 4..6, "ApPort", format!("ApPort {}", seen.raw.ap_port));
    }
    if !fits(&|accept| accept.raw.cp_port == seen.raw.cp_port) {
        let ids = requirements!["PM-7.4-39", "PM-7.3.1.7-3"];
        differs(ids, 6..8, "CpPort", format!("CpPort {}", seen.raw.cp_port));
    }
    if !fits(&|accept| accept.raw.assoc_handle == seen.raw.assoc_handle) {
        let ids = requirements!["PM-7.4-40", "PM-7.3.1.8-2"];
        differs(ids, 8..16, "AssocHandle", format!("AssocHandle {:#x}", seen.raw.assoc_handle.get()));
    }
    if !fits(&|accept| seen.has_cp_address_of(accept)) {
        differs(requirements!["PM-7.4-41", "PM-7.3.1.9-2"], 16..32, "CpIPAddr", "another address".to_owned());
    }
    if !fits(&|accept| seen.has_ap_address_of(accept)) {
        differs(requirements!["PM-7.4-43", "PM-7.3.1.10-3"], 32..48, "ApIPAddr", "another address".to_owned());
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::rules::portmap::testing::{
        ACCEPT, ACK, Datagram, Datagrams, REQ, accepted, datagram, denied, other_host, proves,
    };

    #[test]
    fn an_ack_repeats_its_accept() {
        let right = accepted(|octets| octets[35] = 9, |octets| octets[35] = 9);
        let wrong =
            |at: usize| accepted(|octets| octets[35] = 9, move |octets| (octets[35], octets[at]) = (9, octets[at] ^ 1));
        proves(requirement!("PM-7.4-38"), &wrong(5), &right);
        proves(requirement!("PM-7.4-39"), &wrong(7), &right);
        proves(requirement!("PM-7.4-40"), &wrong(15), &right);
        proves(requirement!("PM-7.4-41"), &wrong(19), &right);
        proves(requirement!("PM-7.4-43"), &accepted(|octets| octets[35] = 9, |_| {}), &right);
        proves(requirement!("PM-7.4-34"), &accepted(|_| {}, |octets| octets[0] ^= 2), &right);
    }

    #[test]
    fn general_requirements_repeat_those_of_the_fields() {
        let right = accepted(|octets| octets[35] = 9, |octets| octets[35] = 9);
        let wrong = |at: usize| accepted(|_| {}, move |octets| octets[at] ^= 1);
        proves(requirement!("PM-7.3.1.6-3"), &wrong(4), &right);
        proves(requirement!("PM-7.3.1.7-3"), &wrong(6), &right);
        proves(requirement!("PM-7.3.1.10-3"), &wrong(32), &right);
        proves(requirement!("PM-7.4-65"), &denied_and_acknowledged(), &denied(|_| {}));
    }

    fn denied_and_acknowledged() -> Datagrams {
        let mut wire = denied(|_| {});
        wire.put(0, &datagram(ACK, |octets| octets[4..6].fill(0)).octets());
        wire
    }

    /// A faulty client can answer each message, even a PMDeny, with a PMAck.
    #[test]
    fn no_ack_after_a_deny() {
        let acknowledged = |ack: Datagram| {
            let mut wire = denied(|_| {});
            wire.put(0, &ack.octets());
            wire
        };
        let requested = || datagram(ACK, |octets| octets[4..6].copy_from_slice(&Datagram::new(REQ).octets()[4..6]));
        let other = || datagram(ACK, |octets| octets[4..6].fill(0x77));
        proves(requirement!("PM-7.4-65"), &acknowledged(requested()), &acknowledged(other()));
    }

    #[test]
    fn an_ack_goes_back_the_same_way() {
        let acknowledged = |from: Option<(std::net::SocketAddr, std::net::SocketAddr)>| {
            let mut wire = Datagrams::default();
            wire.put(0, &Datagram::new(REQ).octets());
            wire.put(1, &Datagram::new(ACCEPT).octets());
            match from {
                Some((from, to)) => wire.put_between(from, to, &Datagram::new(ACK).octets()),
                None => wire.put(0, &Datagram::new(ACK).octets()),
            }
            wire
        };
        let ends = Datagrams::ENDPOINTS.map(|end| end.parse().unwrap());
        let right = acknowledged(None);
        proves(requirement!("PM-7.4-31"), &acknowledged(Some((ends[0], other_host(1)))), &right);
        proves(requirement!("PM-7.4-45"), &acknowledged(Some((other_host(0), ends[1]))), &right);
    }

    /// If the server answers two copies of a PMReq, the client is allowed to acknowledge either
    /// answer.
    #[test]
    fn either_of_two_accepts_may_be_acknowledged() {
        for taken in [7001_u16, 7002] {
            let mut wire = Datagrams::default();
            for port in [7001_u16, 7002] {
                wire.put(0, &Datagram::new(REQ).octets());
                wire.put(1, &datagram(ACCEPT, |octets| octets[4..6].copy_from_slice(&port.to_be_bytes())).octets());
            }
            wire.put(0, &datagram(ACK, |octets| octets[4..6].copy_from_slice(&taken.to_be_bytes())).octets());
            assert_eq!(wire.findings(), []);
        }
    }
}
