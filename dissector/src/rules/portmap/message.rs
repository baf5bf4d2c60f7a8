//! Checks the fields of a single datagram (sections 7.3 and 7.4 of the SDP draft).

use weft_core::RequirementId;
use weft_core::requirement;
use weft_core::wire::portmap::RawMessage;

use super::view::{IntendedType, PmView};
use crate::parse::Unit;
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static LENGTH: Rule = Check::PortMapper(length).covers(requirements!["PM-7.3-1"]);

pub(super) static VERSION: Rule =
    Check::PortMapper(version).covers(requirements!["PM-7.3.1.1-1", "PM-7.4-5", "PM-7.4-19", "PM-7.4-33", "PM-7.4-52"]);

pub(super) static IP_VERSION: Rule = Check::PortMapper(ip_version).covers(requirements!["PM-7.3.1.3-5", "PM-7.4-6"]);

pub(super) static ADDRESSES: Rule =
    Check::PortMapper(addresses).covers(requirements!["PM-7.3.1.3-1", "PM-7.3.1.3-4", "PM-7.4-6"]);

pub(super) static PADDING: Rule = Check::PortMapper(padding).covers(requirements!["PM-7.3.1.3-2"]);

pub(super) static RESERVED: Rule = Check::PortMapper(reserved).covers(requirements!["PM-7.3.1.5-1"]);

pub(super) static TIME: Rule =
    Check::PortMapper(time).covers(requirements!["PM-7.4-8", "PM-7.4-36", "PM-7.4-55", "PM-7.3.1.4-10"]);

fn length(_: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let len = unit.octets_len();
    if len != RawMessage::LEN {
        let range = if len > RawMessage::LEN { RawMessage::LEN..len } else { 0..len };
        findings.report(requirement!("PM-7.3-1"), unit, range, "a message of 48 bytes", format!("{len} bytes"));
    }
}

fn version(view: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(ver) = view.datagram.map(|seen| seen.raw.ver()).filter(|ver| *ver != 0) else { return };
    let (expected, found) = ("Ver 0", format!("Ver {ver}"));
    findings.report(requirement!("PM-7.3.1.1-1"), unit, 0..1, expected, found.clone());
    let Some(intended) = view.intended_type() else { return };
    let id = match intended {
        IntendedType::Request => requirement!("PM-7.4-5"),
        IntendedType::Accept => requirement!("PM-7.4-19"),
        IntendedType::Ack => requirement!("PM-7.4-33"),
        IntendedType::Deny => requirement!("PM-7.4-52"),
    };
    findings.report_each(&[id, intended.all_fields()], unit, 0..1, expected, &found);
}

fn ip_version(view: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(ipv) = view.datagram.map(|seen| seen.raw.ipv()).filter(|ipv| ![4, 6].contains(ipv)) else { return };
    let (expected, found) = ("IPV 4 or 6", format!("IPV {ipv}"));
    findings.report(requirement!("PM-7.3.1.3-5"), unit, 0..1, expected, found.clone());
    if view.intended_type() == Some(IntendedType::Request) {
        let ids = [requirement!("PM-7.4-6"), IntendedType::Request.all_fields()];
        findings.report_each(&ids, unit, 0..1, expected, &found);
    }
}

/// Returns the violated requirement, the expected value and the found value if an address field
/// does not fit IPV (the IP version).
fn address_violation(ipv: u8, field: &[u8; 16]) -> Option<(RequirementId, &'static str, &'static str)> {
    let (first, rest) = field.split_at(4);
    let zero = |octets: &[u8]| octets.iter().all(|octet| *octet == 0);
    match ipv {
        4 if zero(first) => {
            Some((requirement!("PM-7.3.1.3-1"), "an IPv4 address in the first four bytes", "no address"))
        }
        6 if zero(field) => Some((requirement!("PM-7.3.1.3-4"), "an IPv6 address in all sixteen bytes", "no address")),
        // An IPv6 address that ends with twelve octets of zeros can only be a router's anycast
        // address in 2000::/3 (RFC 4291 section 2.6.1).
        6 if zero(rest) && first.first().is_some_and(|octet| octet >> 5 != 1) => {
            Some((requirement!("PM-7.3.1.3-4"), "an IPv6 address in all sixteen bytes", "an IPv4 address and zeros"))
        }
        _ => None,
    }
}

fn addresses(view: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(seen) = view.datagram else { return };
    for (field, range) in [(&seen.raw.cp_ip_addr, 16..32), (&seen.raw.ap_ip_addr, 32..48)] {
        if let Some((id, expected, found)) = address_violation(seen.raw.ipv(), field) {
            findings.report(id, unit, range.clone(), expected, found.to_owned());
            if view.intended_type() == Some(IntendedType::Request) {
                let ids = [requirement!("PM-7.4-6"), IntendedType::Request.all_fields()];
                findings.report_each(&ids, unit, range, expected, found);
            }
        }
    }
}

fn padding(view: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(raw) = view.datagram.map(|seen| &seen.raw).filter(|raw| raw.ipv() == 4) else { return };
    for (field, start) in [(&raw.cp_ip_addr, 16), (&raw.ap_ip_addr, 32)] {
        let count = field.iter().skip(4).filter(|octet| **octet != 0).count();
        if count > 0 {
            let found = format!("bytes other than zero: {count}");
            let expected = "zeros after an IPv4 address";
            findings.report(requirement!("PM-7.3.1.3-2"), unit, start + 4..start + 16, expected, found);
        }
    }
}

fn reserved(view: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Some(reserved) = view.datagram.map(|seen| seen.raw.reserved.get()).filter(|it| *it != 0) else { return };
    findings.report(requirement!("PM-7.3.1.5-1"), unit, 2..4, "Reserved 0", format!("{reserved:#06x}"));
}

fn time(view: &PmView<'_>, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    /// One second, in units of 250 ms. After this time, a sender retransmits a lost SYN (RFC 6298
    /// section 2).
    const ROOM: u8 = 4;
    let Some(time) = view.datagram.map(|seen| seen.raw.pm_time).filter(|time| *time != 0) else { return };
    let Some(intended) = view.intended_type() else { return };
    let found = format!("PmTime {time}");
    let id = match intended {
        IntendedType::Request => requirement!("PM-7.4-8"),
        IntendedType::Ack => requirement!("PM-7.4-36"),
        IntendedType::Deny => requirement!("PM-7.4-55"),
        IntendedType::Accept => {
            // The draft does not define a minimum time, so the finding is a note.
            if time < ROOM {
                let expected = "PmTime 0, or at least 4 (one second), because a PMAck and a SYN may be lost";
                findings.as_note().report(requirement!("PM-7.3.1.4-10"), unit, 1..2, expected, found);
            }
            return;
        }
    };
    findings.report_each(&[id, intended.all_fields()], unit, 1..2, "PmTime 0", &found);
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::rules::portmap::testing::{ACCEPT, ACK, DENY, Datagram, REQ, accepted, denied, proves, request_only};

    fn v6(first: u8) -> Datagram {
        let mut datagram = Datagram::new(first);
        datagram.put(0, &[first & 0xf0 | 6]);
        datagram.put(16, &[0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
        datagram.put(32, &[0xfd, 0, 0, 9, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1]).clone()
    }

    #[test]
    fn a_message_has_48_octets() {
        let short = request_only(|octets| octets.truncate(47));
        let long = request_only(|octets| octets.resize(64, 0));
        let right = request_only(|_| {});
        proves(requirement!("PM-7.3-1"), &short, &right);
        proves(requirement!("PM-7.3-1"), &long, &right);
    }

    #[test]
    fn version_is_0() {
        let version = |octets: &mut Vec<u8>| octets[0] |= 0x40;
        let type_bit = |octets: &mut Vec<u8>| octets[0] ^= 0x02;
        proves(requirement!("PM-7.3.1.1-1"), &request_only(version), &request_only(type_bit));
        proves(requirement!("PM-7.4-5"), &request_only(version), &accepted(version, |_| {}));
        proves(requirement!("PM-7.4-19"), &accepted(version, |_| {}), &accepted(|_| {}, version));
        proves(requirement!("PM-7.4-33"), &accepted(|_| {}, version), &accepted(version, |_| {}));
        proves(requirement!("PM-7.4-52"), &denied(version), &accepted(version, |_| {}));
        proves(requirement!("PM-7.4-4"), &request_only(version), &request_only(|_| {}));
    }

    #[test]
    fn ip_version_is_4_or_6() {
        let five = |octets: &mut Vec<u8>| octets[0] |= 1;
        proves(requirement!("PM-7.3.1.3-5"), &request_only(five), &request_only(|octets| *octets = v6(REQ).octets()));
        proves(requirement!("PM-7.4-6"), &request_only(five), &accepted(five, |_| {}));
    }

    #[test]
    fn addresses_are_those_of_the_ip_version() {
        let mapped = |octets: &mut Vec<u8>| {
            octets[16..32].copy_from_slice(&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 10, 0, 0, 2]);
        };
        proves(requirement!("PM-7.3.1.3-1"), &request_only(mapped), &request_only(|_| {}));
        let six = |octets: &mut Vec<u8>| octets[0] |= 6;
        let mut with = v6(REQ).octets();
        proves(requirement!("PM-7.3.1.3-4"), &request_only(six), &request_only(|octets| octets.clone_from(&with)));
        with[16..48].fill(0);
        proves(requirement!("PM-7.3.1.3-4"), &request_only(|octets| octets.clone_from(&with)), &request_only(|_| {}));
        // A router's anycast address also ends with twelve octets of zeros.
        let router = |octets: &mut Vec<u8>| {
            *octets = v6(REQ).octets();
            octets[32..48].copy_from_slice(&[0x20, 1, 0xd, 0xb8, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0]);
        };
        proves(requirement!("PM-7.4-6"), &request_only(six), &request_only(router));
    }

    #[test]
    fn only_zeros_follow_an_ipv4_address() {
        proves(
            requirement!("PM-7.3.1.3-2"),
            &request_only(|octets| octets[31] = 1),
            &request_only(|octets| octets[19] = 1),
        );
        proves(
            requirement!("PM-7.3.1.3-2"),
            &denied(|octets| octets[36] = 1),
            &request_only(|octets| *octets = v6(REQ).octets()),
        );
    }

    #[test]
    fn reserved_is_0() {
        proves(
            requirement!("PM-7.3.1.5-1"),
            &request_only(|octets| octets[3] = 1),
            &accepted(|octets| octets[1] = 200, |_| {}),
        );
    }

    #[test]
    fn pm_time_is_the_accepts_alone() {
        let time = |octets: &mut Vec<u8>| octets[1] = 4;
        let one = |octets: &mut Vec<u8>| octets[1] = 3;
        proves(requirement!("PM-7.4-8"), &request_only(time), &accepted(time, |_| {}));
        proves(requirement!("PM-7.4-36"), &accepted(|_| {}, time), &accepted(time, |_| {}));
        proves(requirement!("PM-7.4-55"), &denied(time), &accepted(time, |_| {}));
        proves(requirement!("PM-7.3.1.4-10"), &accepted(one, |_| {}), &accepted(time, |_| {}));
        proves(requirement!("PM-7.4-32"), &accepted(|_| {}, time), &accepted(time, |_| {}));
        proves(requirement!("PM-7.4-51"), &denied(time), &denied(|_| {}));
        assert_eq!([ACCEPT, ACK, DENY].map(|first| first & 0xf), [4; 3]);
    }
}
