//! Compares MT (message type) with the sender of the datagram (section 7.3.1.2 of the SDP draft).
//! Clients send PMReq and PMAck, servers send PMAccept and PMDeny.

use weft_core::requirement;
use weft_core::wire::portmap::MessageType;

use super::view::{IntendedType, PmView};
use crate::follow::portmap::Role;
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static KIND: Rule = Check::PortMapper(kind).covers(requirements![
    "PM-7.3.1.2-1",
    "PM-7.3.1.2-2",
    "PM-7.3.1.2-3",
    "PM-7.3.1.2-4",
    "PM-7.3.1.2-5",
    "PM-7.4-2",
    "PM-7.4-7",
    "PM-7.4-21",
    "PM-7.4-35",
    "PM-7.4-54"
]);

fn kind(view: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(seen) = view.datagram else { return };
    let (sent, expected) = match seen.role() {
        None => return,
        Some(Role::Client) => ([MessageType::PM_REQ, MessageType::PM_ACK], "MT 0 or 2 from a client"),
        Some(Role::Server) => ([MessageType::PM_ACCEPT, MessageType::PM_DENY], "MT 1 or 3 from a server"),
    };
    let mt = seen.raw.mt();
    if sent.contains(&mt) {
        return;
    }
    let found = format!("MT {} ({mt})", mt.0);
    findings.report(requirement!("PM-7.3.1.2-1"), unit, 0..1, expected, found.clone());
    let Some(intended) = view.intended_type() else { return };
    let (expected, ids) = match intended {
        IntendedType::Request => {
            ("MT 0, which opens a transaction", requirements!["PM-7.3.1.2-2", "PM-7.4-7", "PM-7.4-2"])
        }
        IntendedType::Accept => ("MT 1, a positive answer", requirements!["PM-7.3.1.2-3", "PM-7.4-21"]),
        IntendedType::Ack => ("MT 2, after a PMAccept", requirements!["PM-7.3.1.2-4", "PM-7.4-35"]),
        IntendedType::Deny => ("MT 3, a negative answer", requirements!["PM-7.3.1.2-5", "PM-7.4-54"]),
    };
    findings.report_each(ids, unit, 0..1, expected, &found);
    findings.report(intended.all_fields(), unit, 0..1, expected, found);
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::rules::portmap::testing::{accepted, denied, proves, request_only};

    fn flip(octets: &mut [u8]) {
        octets[0] ^= 0x10;
    }

    #[test]
    fn a_client_opens_with_a_request() {
        let (wrong, right) = (request_only(|octets| flip(octets)), request_only(|_| {}));
        for id in [
            requirement!("PM-7.3.1.2-1"),
            requirement!("PM-7.3.1.2-2"),
            requirement!("PM-7.4-7"),
            requirement!("PM-7.4-2"),
        ] {
            proves(id, &wrong, &right);
        }
    }

    #[test]
    fn a_server_accepts_and_denies() {
        let accept = accepted(|octets| flip(octets), |_| {});
        let deny = denied(|octets| flip(octets));
        proves(requirement!("PM-7.3.1.2-3"), &accept, &deny);
        proves(requirement!("PM-7.4-21"), &accept, &deny);
        proves(requirement!("PM-7.3.1.2-5"), &deny, &accept);
        proves(requirement!("PM-7.4-54"), &deny, &accept);
        proves(requirement!("PM-7.4-18"), &accept, &deny);
    }

    #[test]
    fn a_client_acknowledges() {
        let (wrong, right) = (accepted(|_| {}, |octets| flip(octets)), accepted(|_| {}, |_| {}));
        proves(requirement!("PM-7.3.1.2-4"), &wrong, &right);
        proves(requirement!("PM-7.4-35"), &wrong, &right);
    }
}
