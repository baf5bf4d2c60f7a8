//! Deviations of the SDP port mapper: wrong datagrams, and wrong or missing actions of a client or
//! a server.

use weft_core::wire::portmap::{MessageType, RawMessage};
use zerocopy::FromBytes;
use zerocopy::network_endian::U16;

use super::PmSide;

const REQ: MessageType = MessageType::PM_REQ;
const ACCEPT: MessageType = MessageType::PM_ACCEPT;
const ACK: MessageType = MessageType::PM_ACK;
const DENY: MessageType = MessageType::PM_DENY;

fn retype(raw: &mut RawMessage, message_type: MessageType) {
    raw.ver_mt_ipv = RawMessage::first_octet(raw.ver(), message_type, raw.ipv());
}

fn version(raw: &mut RawMessage) {
    raw.ver_mt_ipv |= 0x40;
}

fn other_ipv(raw: &mut RawMessage) {
    raw.ver_mt_ipv = RawMessage::first_octet(raw.ver(), raw.mt(), 10 - raw.ipv().min(10));
}

fn plus_one(port: &mut U16) {
    port.set(port.get() ^ 1);
}

/// Changes the fourth byte of an address. In an IPv4 address, this byte is the last byte.
fn change_address(field: &mut [u8; 16]) {
    field[3] ^= 1;
}

/// Drops a received datagram of this type if `heeds` returns true for its fields.
fn discard_if(octets: &mut Vec<u8>, message_type: MessageType, heeds: impl FnOnce(&RawMessage) -> bool) {
    let heeded = RawMessage::ref_from_prefix(octets).is_ok_and(|(raw, _)| raw.mt() == message_type && heeds(raw));
    if heeded {
        octets.clear();
    }
}

/// Turns a PMReq with a reserved IPV into a PMReq for IPv4.
fn as_ipv4(octets: &mut [u8]) {
    if let Ok((raw, _)) = RawMessage::mut_from_prefix(octets)
        && raw.mt() == REQ
        && ![4, 6].contains(&raw.ipv())
    {
        raw.ver_mt_ipv = RawMessage::first_octet(raw.ver(), REQ, 4);
    }
}

fn has_padding(raw: &RawMessage) -> bool {
    raw.ipv() == 4 && [raw.cp_ip_addr, raw.ap_ip_addr].iter().any(|field| field[4..].iter().any(|octet| *octet != 0))
}

deviations! {
    "pm.accept-cp-address" [PmSent(|sent| sent.change(ACCEPT, |raw| change_address(&mut raw.cp_ip_addr)))]
        ["PM-7.4-26", "PM-7.3.1.9-2", "PM-7.4-18"] "sends a PMAccept whose CpIPAddr differs from the CpIPAddr of the PMReq";
    "pm.accept-cp-port" [PmSent(|sent| sent.change(ACCEPT, |raw| plus_one(&mut raw.cp_port)))]
        ["PM-7.4-24", "PM-7.3.1.7-2", "PM-7.4-18"] "sends a PMAccept whose CpPort differs from the CpPort of the PMReq";
    "pm.accept-from-elsewhere" [PmSent(|sent| sent.from_other_port |= sent.is(ACCEPT))]
        ["PM-16-1", "PM-7.4-17"] "sends a PMAccept from another UDP port than the port to which the PMReq was sent";
    "pm.accept-goes-elsewhere" [PmSent(|sent| sent.change_port(ACCEPT))]
        ["PM-7.4-29", "PM-7.4-17"] "sends a PMAccept to another UDP port than the port from which the PMReq came";
    "pm.accept-handle" [PmSent(|sent| sent.change(ACCEPT, |raw| raw.assoc_handle.set(raw.assoc_handle.get() ^ 1)))]
        ["PM-7.4-25", "PM-7.3.1.8-2", "PM-7.4-18"] "sends a PMAccept whose AssocHandle differs from the AssocHandle of the PMReq";
    "pm.accept-ipv" [PmSent(|sent| sent.change(ACCEPT, other_ipv))]
        ["PM-7.4-20", "PM-7.4-18"] "sends a PMAccept whose IPV differs from the IPV of the PMReq";
    "pm.accept-nowhere" [PmSent(|sent| sent.change(ACCEPT, |raw| raw.ap_port.set(9)))]
        ["PM-7.4-23", "PM-7.3.1.6-2", "PM-7.4-27"] "sends a PMAccept with a port where nothing listens";
    "pm.accept-padding" [PmSent(|sent| sent.change(ACCEPT, |raw| raw.ap_ip_addr[15] = 1))]
        ["PM-7.3.1.3-2"] "sends a PMAccept with bytes other than zero after an IPv4 address";
    "pm.accept-reserved" [PmSent(|sent| sent.change(ACCEPT, |raw| raw.reserved.set(0xcf23)))]
        ["PM-7.3.1.5-1"] "sends a PMAccept whose Reserved field is not zero";
    "pm.accept-short" [PmSent(|sent| if sent.is(ACCEPT) { sent.octets.truncate(40); })]
        ["PM-7.3-1"] "sends a PMAccept of 40 bytes";
    "pm.accept-time-1" [PmSent(|sent| sent.change(ACCEPT, |raw| raw.pm_time = 1))]
        ["PM-7.3.1.4-10"] "sends a PMAccept whose PmTime is 250 ms, which is too short if a SYN is lost";
    "pm.accept-type" [PmSent(|sent| sent.change(ACCEPT, |raw| retype(raw, REQ)))]
        ["PM-7.4-21", "PM-7.3.1.2-3", "PM-7.3.1.2-1", "PM-7.4-18", "PM-7.4-46"] "sends a PMAccept with the MT of a PMReq";
    "pm.accept-version" [PmSent(|sent| sent.change(ACCEPT, version))]
        ["PM-7.4-19", "PM-7.3.1.1-1", "PM-7.4-18"] "sends a PMAccept with Ver 1";
    "pm.ack-ap-address" [PmSent(|sent| sent.change(ACK, |raw| change_address(&mut raw.ap_ip_addr)))]
        ["PM-7.4-43", "PM-7.3.1.10-3", "PM-7.4-32"] "sends a PMAck whose ApIPAddr differs from the ApIPAddr of the PMAccept";
    "pm.ack-ap-port" [PmSent(|sent| sent.change(ACK, |raw| plus_one(&mut raw.ap_port)))]
        ["PM-7.4-38", "PM-7.3.1.6-3", "PM-7.4-32"] "sends a PMAck whose ApPort differs from the ApPort of the PMAccept";
    "pm.ack-cp-address" [PmSent(|sent| sent.change(ACK, |raw| change_address(&mut raw.cp_ip_addr)))]
        ["PM-7.4-41", "PM-7.3.1.9-2", "PM-7.4-32"] "sends a PMAck whose CpIPAddr differs from the CpIPAddr of the PMAccept";
    "pm.ack-cp-port" [PmSent(|sent| sent.change(ACK, |raw| plus_one(&mut raw.cp_port)))]
        ["PM-7.4-39", "PM-7.3.1.7-3", "PM-7.4-32"] "sends a PMAck whose CpPort differs from the CpPort of the PMAccept";
    "pm.ack-from-elsewhere" [PmSent(|sent| sent.from_other_port |= sent.is(ACK))]
        ["PM-7.4-45", "PM-7.4-31"] "sends a PMAck from another UDP port than its PMReq";
    "pm.ack-goes-elsewhere" [PmSent(|sent| sent.change_port(ACK))]
        ["PM-7.4-44", "PM-7.4-31"] "sends a PMAck to another UDP port than the port from which the PMAccept came";
    "pm.ack-handle" [PmSent(|sent| sent.change(ACK, |raw| raw.assoc_handle.set(raw.assoc_handle.get() ^ 1)))]
        ["PM-7.4-40", "PM-7.3.1.8-2", "PM-7.4-32"] "sends a PMAck whose AssocHandle differs from the AssocHandle of the PMAccept";
    "pm.ack-ipv" [PmSent(|sent| sent.change(ACK, other_ipv))]
        ["PM-7.4-34", "PM-7.4-32"] "sends a PMAck whose IPV differs from the IPV of the PMAccept";
    "pm.ack-left-out" [PmSent(|sent| if sent.is(ACK) { sent.copies = 0; })]
        ["PM-7.4-30", "PM-7.4-46"] "sends no PMAck after a PMAccept";
    "pm.ack-time" [PmSent(|sent| sent.change(ACK, |raw| raw.pm_time = 7))]
        ["PM-7.4-36", "PM-7.4-32"] "sends a PMAck whose PmTime is not zero";
    "pm.ack-type" [PmSent(|sent| sent.change(ACK, |raw| retype(raw, DENY)))]
        ["PM-7.4-35", "PM-7.3.1.2-4", "PM-7.3.1.2-1", "PM-7.4-32"] "sends a PMAck with the MT of a PMDeny";
    "pm.ack-version" [PmSent(|sent| sent.change(ACK, version))]
        ["PM-7.4-33", "PM-7.3.1.1-1", "PM-7.4-32"] "sends a PMAck with Ver 1";
    "pm.acknowledges-again" [PmConduct(|conduct| conduct.acknowledges_again = true)]
        ["PM-7.5-4", "PM-7.5.1-10"] "sends a second PMAck for a repeated PMAccept";
    "pm.acknowledges-deny" [PmConduct(|conduct| conduct.acknowledges_deny = true)]
        ["PM-7.4-65", "PM-7.4-63"] "sends a PMAck for a PMDeny";
    "pm.answers-as-before" [PmConduct(|conduct| conduct.answers_as_before = true)]
        ["PM-7.5.2-7"] "answers a duplicate PMReq with a PMAccept although the service is no longer mapped";
    "pm.answers-once" [PmConduct(|conduct| conduct.answers_once = true)]
        ["PM-7.5.2-10"] "ignores a repeated PMReq after the stored state for the PMReq has expired";
    "pm.answers-unknown-ack" [PmConduct(|conduct| conduct.answers_unknown_ack = true)]
        ["PM-7.5.2-6"] "answers a PMAck that belongs to no exchange";
    "pm.checks-ack-time" [PmArrived(|side, octets| if side == PmSide::Server { discard_if(octets, ACK, |raw| raw.pm_time != 0); })]
        ["PM-7.4-37"] "discards a PMAck whose PmTime is not zero";
    "pm.checks-padding" [PmArrived(|_, octets| for message_type in [REQ, ACCEPT, ACK, DENY] { discard_if(octets, message_type, has_padding); })]
        ["PM-7.3.1.3-3"] "discards a message with bytes other than zero after its IPv4 addresses";
    "pm.checks-request-time" [PmArrived(|_, octets| discard_if(octets, REQ, |raw| raw.pm_time != 0))]
        ["PM-7.4-9"] "discards a PMReq whose PmTime is not zero";
    "pm.checks-reserved" [PmArrived(|_, octets| for message_type in [REQ, ACCEPT, ACK, DENY] {
        discard_if(octets, message_type, |raw| raw.reserved.get() != 0);
    })] ["PM-7.3.1.5-2"] "discards a message whose Reserved field is not zero";
    "pm.connects-after-deny" [PmConduct(|conduct| conduct.connects_after_deny = true)]
        ["PM-7-3", "PM-7.1-1", "PM-7.1-2", "PM-7.2-1"] "uses SDP at the Conventional Address after a PMDeny";
    "pm.deny-ap-address" [PmSent(|sent| sent.change(DENY, |raw| change_address(&mut raw.ap_ip_addr)))]
        ["PM-7.4-61", "PM-7.3.1.10-4", "PM-7.4-51"] "sends a PMDeny whose ApIPAddr differs from the ApIPAddr of the PMReq";
    "pm.deny-ap-port" [PmSent(|sent| {
        let requested = sent.answers.map_or(0, |request| request.ap_port);
        sent.change(DENY, |raw| raw.ap_port.set(requested ^ 1));
    })] ["PM-7.4-57", "PM-7.3.1.6-4", "PM-7.4-51"] "sends a PMDeny whose ApPort is neither zero nor the ApPort of the PMReq";
    "pm.deny-cp-address" [PmSent(|sent| sent.change(DENY, |raw| change_address(&mut raw.cp_ip_addr)))]
        ["PM-7.4-60", "PM-7.3.1.9-2", "PM-7.4-51"] "sends a PMDeny whose CpIPAddr differs from the CpIPAddr of the PMReq";
    "pm.deny-cp-port" [PmSent(|sent| sent.change(DENY, |raw| plus_one(&mut raw.cp_port)))]
        ["PM-7.4-58", "PM-7.3.1.7-4", "PM-7.4-51"] "sends a PMDeny whose CpPort differs from the CpPort of the PMReq";
    "pm.deny-from-elsewhere" [PmSent(|sent| sent.from_other_port |= sent.is(DENY))]
        ["PM-16-1", "PM-7.4-50"] "sends a PMDeny from another UDP port than the port to which the PMReq was sent";
    "pm.deny-goes-elsewhere" [PmSent(|sent| sent.change_port(DENY))]
        ["PM-7.4-62", "PM-7.4-50"] "sends a PMDeny to another UDP port than the port from which the PMReq came";
    "pm.deny-handle" [PmSent(|sent| sent.change(DENY, |raw| raw.assoc_handle.set(raw.assoc_handle.get() ^ 1)))]
        ["PM-7.4-59", "PM-7.3.1.8-2", "PM-7.4-51"] "sends a PMDeny whose AssocHandle differs from the AssocHandle of the PMReq";
    "pm.deny-ipv" [PmSent(|sent| sent.change(DENY, other_ipv))]
        ["PM-7.4-53", "PM-7.4-51"] "sends a PMDeny whose IPV differs from the IPV of the PMReq";
    "pm.deny-left-out" [PmSent(|sent| if sent.is(DENY) { sent.copies = 0; })]
        ["PM-7.4-49", "PM-7.4-63"] "sends no answer to a PMReq for a service that is not mapped";
    "pm.deny-time" [PmSent(|sent| sent.change(DENY, |raw| raw.pm_time = 9))]
        ["PM-7.4-55", "PM-7.4-51"] "sends a PMDeny whose PmTime is not zero";
    "pm.deny-type" [PmSent(|sent| sent.change(DENY, |raw| retype(raw, ACK)))]
        ["PM-7.4-54", "PM-7.3.1.2-5", "PM-7.3.1.2-1", "PM-7.4-51"] "sends a PMDeny with the MT of a PMAck";
    "pm.deny-version" [PmSent(|sent| sent.change(DENY, version))]
        ["PM-7.4-52", "PM-7.3.1.1-1", "PM-7.4-51"] "sends a PMDeny with Ver 1";
    "pm.gives-anew" [PmConduct(|conduct| conduct.gives_anew = true)]
        ["PM-7.5-3"] "assigns another port to a duplicate PMReq";
    "pm.heeds-deny-port" [PmConduct(|conduct| conduct.heeds_deny_port = true)]
        ["PM-7.3.1.6-5"] "ignores a PMDeny whose ApPort is not zero";
    "pm.ignores-deny" [PmConduct(|conduct| conduct.ignores_deny = true)]
        ["PM-7.4-64", "PM-7.1-1", "PM-7-3"] "repeats a PMReq after a PMDeny";
    "pm.ignores-duplicates" [PmConduct(|conduct| conduct.ignores_duplicates = true)]
        ["PM-7.5.2-4"] "ignores a duplicate PMReq";
    "pm.ignores-requests" [PmSent(|sent| if sent.is(ACCEPT) { sent.copies = 0; })]
        ["PM-7.4-16"] "ignores a PMReq for a service that is mapped";
    "pm.ignores-reset" [PmConduct(|conduct| conduct.ignores_reset = true)]
        ["PM-7.5.1-9"] "does not fall back to the Conventional Address after a reset from the SDP Address";
    "pm.keeps-requested-address" [PmConduct(|conduct| conduct.keeps_requested_address = true)]
        ["PM-7.1-4", "PM-7-2"] "connects to the requested address instead of the address in the PMAccept";
    "pm.keeps-denials" [PmConduct(|conduct| conduct.keeps_denials = true)]
        ["PM-7.4-56"] "treats a denied service as mapped until the PmTime of the PMDeny expires";
    "pm.keeps-for-ever" [PmConduct(|conduct| conduct.keeps_for_ever = true)]
        ["PM-7.3.1.4-2", "PM-7.3.1.4-1", "PM-7.3.1.4-3", "PM-7.3.1.4-7", "PM-7.3.1.4-8"]
        "uses an answer after the PmTime of the answer has expired";
    "pm.keeps-old-handle" [PmConduct(|conduct| conduct.keeps_old_handle = true)]
        ["PM-7.5.2-8", "PM-7.5.2-9", "PM-7.2-7"] "sends the old AssocHandle in the answer to a PMReq with a known four-tuple and a new AssocHandle";
    "pm.keeps-once" [PmConduct(|conduct| conduct.keeps_once = true)]
        ["PM-7.3.1.4-4"] "keeps an answer whose PmTime is 0";
    "pm.keeps-time" [PmConduct(|conduct| conduct.keeps_time = true)]
        ["PM-7.5.2-5"] "does not restart the timer of a mapping when a duplicate PMReq arrives";
    "pm.loses-ipv6" [PmArrived(|_, octets| discard_if(octets, REQ, |raw| raw.ipv() == 6))]
        ["PM-7.2-6"] "ignores a PMReq for IPv6";
    "pm.never-expires" [PmConduct(|conduct| conduct.never_expires = true)]
        ["PM-7.5.2-2", "PM-7.5-2", "PM-15.2.1-1", "PM-15.2.2.1-1"] "never releases an offered port that the client did not use";
    "pm.never-falls-back" [PmConduct(|conduct| conduct.never_falls_back = true)]
        ["PM-7.5.1-8"] "does not fall back to the Conventional Address if the port mapper does not answer";
    "pm.never-repeats" [PmConduct(|conduct| conduct.never_repeats = true)]
        ["PM-7.5.1-3", "PM-7.5.1-2", "PM-7.5-1"] "does not repeat a PMReq that gets no answer";
    "pm.never-stops" [PmConduct(|conduct| conduct.never_stops = true)]
        ["PM-7.5.1-4"] "repeats a PMReq for ever if no answer arrives";
    "pm.one-at-a-time" [PmConduct(|conduct| conduct.one_at_a_time = true)]
        ["PM-7.3.1.8-3"] "ignores new PMReqs while it stores the state of an earlier PMReq";
    "pm.repeats-otherwise" [PmSent(|sent| {
        let repeat = u16::try_from(sent.repeat).unwrap_or(u16::MAX);
        sent.change(REQ, |raw| raw.ap_port.set(raw.ap_port.get().wrapping_add(repeat)));
    })] ["PM-7.5.1-5"] "requests another port in a repeated PMReq";
    "pm.request-from-elsewhere" [PmSent(|sent| sent.from_other_port |= sent.is(REQ) && sent.repeat > 0)]
        ["PM-7.5.1-7"] "repeats a PMReq from another UDP port";
    "pm.request-goes-elsewhere" [PmSent(|sent| sent.change_port(REQ))]
        ["PM-7.4-15", "PM-7.4-1"] "sends a PMReq to a UDP port that is not the port of the port mapper";
    "pm.request-handle-again" [PmRequest(|message| message.assoc_handle = 0x5eed)]
        ["PM-7.4-12", "PM-7.3.1.8-1", "PM-7.5.1-1"] "sends the same AssocHandle in every PMReq";
    "pm.request-ipv" [PmSent(|sent| sent.change(REQ, |raw| raw.ver_mt_ipv |= 1))]
        ["PM-7.3.1.3-5", "PM-7.4-6", "PM-7.4-4"] "sends a PMReq with IPV 5 or 7";
    "pm.request-ipv4-as-6" [PmSent(|sent| if sent.message.addresses.ipv() == 4 {
        sent.change(REQ, |raw| raw.ver_mt_ipv = RawMessage::first_octet(0, REQ, 6));
    })] ["PM-7.3.1.3-4", "PM-7.4-6", "PM-7.4-4"] "sends a PMReq with IPv4 addresses and IPV 6";
    "pm.request-ipv4-mapped" [PmSent(|sent| if sent.message.addresses.ipv() == 4 {
        sent.change(REQ, |raw| for field in [&mut raw.cp_ip_addr, &mut raw.ap_ip_addr] {
            let [a, b, c, d, ..] = *field;
            *field = [0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, a, b, c, d];
        });
    })] ["PM-7.3.1.3-1", "PM-7.3.1.3-2", "PM-7.4-6", "PM-7.4-4"] "sends the IPv4 addresses of a PMReq in the form ::ffff:a.b.c.d, but with IPV 4";
    "pm.request-long" [PmSent(|sent| if sent.is(REQ) { sent.octets.resize(64, 0); })]
        ["PM-7.3-1"] "sends a PMReq of 64 bytes, like iwpmd, the port mapper of Linux";
    "pm.request-other-address" [PmRequest(|message| {
        if let weft_core::wire::portmap::Addresses::V4 { connecting, .. } = &mut message.addresses {
            *connecting = core::net::Ipv4Addr::from_bits(connecting.to_bits() ^ 0x100);
        }
    })] ["PM-7.4-13", "PM-7.3.1.9-1"] "connects from another address than CpIPAddr of its PMReq";
    "pm.request-other-port" [PmRequest(|message| message.cp_port ^= 1)]
        ["PM-7.4-11", "PM-7.3.1.7-1"] "connects from another port than CpPort of its PMReq";
    "pm.request-padding" [PmSent(|sent| sent.change(REQ, |raw| if raw.ipv() == 4 { raw.cp_ip_addr[15] = 2; }))]
        ["PM-7.3.1.3-2"] "sends a PMReq with bytes other than zero after an IPv4 address";
    "pm.request-reserved" [PmSent(|sent| sent.change(REQ, |raw| raw.reserved.set(0xbd95)))]
        ["PM-7.3.1.5-1"] "sends a PMReq whose Reserved field is not zero";
    "pm.request-time" [PmSent(|sent| sent.change(REQ, |raw| raw.pm_time = 4))]
        ["PM-7.4-8", "PM-7.4-4"] "sends a PMReq whose PmTime is not zero";
    "pm.request-type" [PmSent(|sent| sent.change(REQ, |raw| retype(raw, ACCEPT)))]
        ["PM-7.4-7", "PM-7.3.1.2-2", "PM-7.4-2", "PM-7.3.1.2-1", "PM-7.4-4"] "sends a PMReq with the MT of a PMAccept";
    "pm.request-version" [PmSent(|sent| sent.change(REQ, version))]
        ["PM-7.4-5", "PM-7.3.1.1-1", "PM-7.4-4"] "sends a PMReq with Ver 1";
    "pm.takes-any-ipv" [PmArrived(|side, octets| if side == PmSide::Server { as_ipv4(octets); })]
        ["PM-7.4-20", "PM-7.3.1.3-5", "PM-7.4-18"] "treats a PMReq with a reserved IPV as a PMReq with IPV 4";
    "pm.takes-later-reply" [PmConduct(|conduct| conduct.takes_later = true)]
        ["PM-7.5.1-10", "PM-7.5-4"] "uses a later reply to a PMReq instead of the first reply";
    "pm.takes-unrequested" [PmConduct(|conduct| conduct.takes_unrequested = true)]
        ["PM-7.5.1-11"] "sends a PMAck for an unsolicited PMAccept";
}
