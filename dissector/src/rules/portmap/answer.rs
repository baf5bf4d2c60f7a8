//! Compares PMAccept and PMDeny with their PMReq (section 7.4 of the SDP draft).

use weft_core::RequirementId;
use weft_core::requirement;

use super::view::{IntendedType, PmView};
use crate::follow::portmap::PmDatagram;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static ACCEPT: Rule = Check::PortMapper(accept).covers(requirements![
    "PM-7.4-17",
    "PM-7.4-18",
    "PM-7.4-20",
    "PM-7.4-24",
    "PM-7.4-25",
    "PM-7.4-26",
    "PM-7.3.1.7-2",
    "PM-7.3.1.8-2",
    "PM-7.3.1.9-2"
]);

pub(super) static DENY: Rule = Check::PortMapper(deny).covers(requirements![
    "PM-7.4-50",
    "PM-7.4-51",
    "PM-7.4-53",
    "PM-7.4-57",
    "PM-7.4-58",
    "PM-7.4-59",
    "PM-7.4-60",
    "PM-7.4-61",
    "PM-7.3.1.6-4",
    "PM-7.3.1.7-4",
    "PM-7.3.1.10-4"
]);

/// The requirements for one type of answer (PMAccept or PMDeny).
struct Rows {
    intended: IntendedType,
    ends: RequirementId,
    ipv: RequirementId,
    cp_port: [RequirementId; 2],
    handle: RequirementId,
    cp_address: RequirementId,
}

fn accept(view: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let rows = Rows {
        intended: IntendedType::Accept,
        ends: requirement!("PM-7.4-17"),
        ipv: requirement!("PM-7.4-20"),
        cp_port: [requirement!("PM-7.4-24"), requirement!("PM-7.3.1.7-2")],
        handle: requirement!("PM-7.4-25"),
        cp_address: requirement!("PM-7.4-26"),
    };
    check_copied_fields(&rows, view, unit, findings);
}

fn deny(view: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let rows = Rows {
        intended: IntendedType::Deny,
        ends: requirement!("PM-7.4-50"),
        ipv: requirement!("PM-7.4-53"),
        cp_port: [requirement!("PM-7.4-58"), requirement!("PM-7.3.1.7-4")],
        handle: requirement!("PM-7.4-59"),
        cp_address: requirement!("PM-7.4-60"),
    };
    let Some((seen, request)) = check_copied_fields(&rows, view, unit, findings) else { return };
    let all = IntendedType::Deny.all_fields();
    if !seen.has_ap_address_of(request) {
        let ids = [requirement!("PM-7.4-61"), requirement!("PM-7.3.1.10-4"), all];
        findings.report_each(&ids, unit, 32..48, "ApIPAddr of the PMReq", "another address");
    }
    // One sentence of the draft requires 0, and another sentence requires the port of the PMReq. So
    // a finding about one of these two values is only a note.
    let (zero, echo) = (requirement!("PM-7.3.1.6-4"), requirement!("PM-7.4-57"));
    let (requested, port) = (request.raw.ap_port.get(), seen.raw.ap_port.get());
    let found = format!("ApPort {port}");
    if port == requested && port != 0 {
        let expected = "ApPort 0, as in section 7.3.1.6 of the SDP draft (section 7.4 requires the PMReq's ApPort)";
        findings.as_note().report(zero, unit, 4..6, expected, found);
    } else if port == 0 && requested != 0 {
        let expected = format!(
            "ApPort {requested}, as in the PMReq (section 7.4 of the SDP draft, but section 7.3.1.6 requires 0)"
        );
        findings.as_note().report(echo, unit, 4..6, &expected, found);
    } else if port != requested {
        findings.report_each(&[zero, echo, all], unit, 4..6, &format!("ApPort 0 or {requested}"), &found);
    }
}

/// Checks the fields that an answer copies from its PMReq. Returns the answer and its PMReq, if
/// both are known.
fn check_copied_fields<'a>(
    rows: &Rows,
    view: &'a PmView<'_>,
    unit: &Unit<'_>,
    findings: &mut Findings<'_>,
) -> Option<(&'a PmDatagram, &'a PmDatagram)> {
    if view.intended_type() != Some(rows.intended) {
        return None;
    }
    let (seen, transaction) = (view.datagram?, view.transaction?);
    let request = &transaction.request;
    let all = rows.intended.all_fields();
    // An answer with the AssocHandle of an older PMReq can go back on the path of the newest PMReq.
    // Then only the AssocHandle is wrong.
    let mut requests = [Some(transaction), view.newest].into_iter().flatten();
    if !requests.any(|request| request.address_pairs.contains(&(seen.dst, seen.src))) {
        let expected = format!("from {} to {}, the reverse path of the PMReq", request.dst, request.src);
        let found = format!("from {} to {}", seen.src, seen.dst);
        findings.report_in_frame(rows.ends, unit.direction(), unit.udp_ports(), &expected, found);
    }
    let (ipv, requested) = (seen.raw.ipv(), request.raw.ipv());
    if ipv != requested {
        let expected = format!("IPV {requested}, as in the PMReq");
        findings.report_each(&[rows.ipv, all], unit, 0..1, &expected, &format!("IPV {ipv}"));
    }
    let (port, requested) = (seen.raw.cp_port.get(), request.raw.cp_port.get());
    if port != requested {
        let [own, general] = rows.cp_port;
        let expected = format!("CpPort {requested}, as in the PMReq");
        findings.report_each(&[own, general, all], unit, 6..8, &expected, &format!("CpPort {port}"));
    }
    let (handle, requested) = (seen.raw.assoc_handle.get(), request.raw.assoc_handle.get());
    if handle != requested {
        let expected = format!("AssocHandle {requested:#x}, as in the PMReq");
        let ids = [rows.handle, requirement!("PM-7.3.1.8-2"), all];
        findings.report_each(&ids, unit, 8..16, &expected, &format!("{handle:#x}"));
    }
    if !seen.has_cp_address_of(request) {
        let ids = [rows.cp_address, requirement!("PM-7.3.1.9-2"), all];
        findings.report_each(&ids, unit, 16..32, "CpIPAddr of the PMReq", "another address");
    }
    Some((seen, request))
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use weft_core::requirement;

    use crate::rules::portmap::testing::{
        ACCEPT, DENY, Datagram, Datagrams, REQ, accepted, datagram, denied, other_host, proves,
    };

    #[test]
    fn an_accept_reflects_its_request() {
        let mapped = accepted(|octets| octets[35] ^= 1, |octets| octets[35] ^= 1);
        proves(requirement!("PM-7.4-20"), &accepted(|octets| octets[0] ^= 2, |_| {}), &mapped);
        proves(requirement!("PM-7.4-24"), &accepted(|octets| octets[7] ^= 1, |_| {}), &mapped);
        proves(requirement!("PM-7.3.1.7-2"), &accepted(|octets| octets[7] ^= 1, |_| {}), &mapped);
        proves(requirement!("PM-7.4-25"), &accepted(|octets| octets[8] ^= 1, |_| {}), &mapped);
        proves(requirement!("PM-7.3.1.8-2"), &accepted(|octets| octets[15] ^= 1, |_| {}), &mapped);
        proves(requirement!("PM-7.4-26"), &accepted(|octets| octets[19] ^= 1, |_| {}), &mapped);
        proves(requirement!("PM-7.3.1.9-2"), &accepted(|octets| octets[16] ^= 1, |_| {}), &mapped);
    }

    #[test]
    fn a_deny_reflects_its_request() {
        let right = denied(|_| {});
        proves(requirement!("PM-7.4-53"), &denied(|octets| octets[0] ^= 2), &right);
        proves(requirement!("PM-7.4-58"), &denied(|octets| octets[7] ^= 1), &right);
        proves(requirement!("PM-7.3.1.7-4"), &denied(|octets| octets[6] ^= 1), &right);
        proves(requirement!("PM-7.4-59"), &denied(|octets| octets[8] ^= 1), &right);
        proves(requirement!("PM-7.4-60"), &denied(|octets| octets[19] ^= 1), &right);
        // The server is allowed to change this address in a PMAccept.
        let steered = accepted(|octets| octets[35] ^= 1, |octets| octets[35] ^= 1);
        proves(requirement!("PM-7.4-61"), &denied(|octets| octets[35] ^= 1), &steered);
        proves(requirement!("PM-7.3.1.10-4"), &denied(|octets| octets[35] ^= 1), &steered);
    }

    /// The port 0 and the requested port cause only notes, because the SDP draft contradicts
    /// itself. Any other port is an error.
    #[test]
    fn the_port_of_a_deny_is_one_of_two() {
        let port = |port: u16| denied(move |octets| octets[4..6].copy_from_slice(&port.to_be_bytes()));
        proves(requirement!("PM-7.3.1.6-4"), &port(5002), &port(0));
        proves(requirement!("PM-7.4-57"), &port(5002), &port(5001));
        for right in [0, 5001] {
            assert!(port(right).errors().is_empty(), "{:?}", port(right).errors());
        }
    }

    #[test]
    fn an_answer_goes_back_the_same_way() {
        let way = |first, elsewhere| {
            let mut wire = Datagrams::default();
            wire.put(0, &Datagram::new(REQ).octets());
            let octets = datagram(first, |_| {}).octets();
            if elsewhere {
                wire.put_from(other_host(1), 0, &octets);
            } else {
                wire.put(1, &octets);
            }
            wire
        };
        proves(requirement!("PM-7.4-17"), &way(ACCEPT, true), &way(ACCEPT, false));
        proves(requirement!("PM-7.4-50"), &way(DENY, true), &way(DENY, false));
        // The client repeats its PMReq with another AssocHandle from another UDP port. The server
        // answers the new port, but with the first AssocHandle.
        let mut old_handle = Datagrams::default();
        let [mut client, server] = Datagrams::ENDPOINTS.map(|end| end.parse::<SocketAddr>().unwrap());
        old_handle.put(0, &Datagram::new(REQ).octets());
        client.set_port(40002);
        old_handle.put_between(client, server, &datagram(REQ, |octets| octets[15] ^= 1).octets());
        old_handle.put_between(server, client, &Datagram::new(ACCEPT).octets());
        proves(requirement!("PM-7.4-17"), &way(ACCEPT, true), &old_handle);
    }

    /// If the capture starts after the PMReq, an answer cannot be compared with the PMReq.
    #[test]
    fn reports_nothing_about_a_lone_answer() {
        let mut wire = Datagrams::default();
        wire.put(1, &datagram(DENY, |octets| octets[4] = 7).octets());
        wire.put(1, &datagram(ACCEPT, |octets| octets[8] = 7).octets());
        assert_eq!(wire.findings(), []);
    }
}
