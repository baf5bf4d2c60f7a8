//! Defines the fields of port mapper messages (draft-pinkerton-iwarp-sdp-01, section 7.3). A
//! message has 48 octets in a UDP datagram.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use weft_core::wire::portmap::{Cache, MessageType, PmTime};

use super::reader::Reader;
use crate::follow::exchange::Exchange;

use super::field::{Base, Field, Group, Value, Visitor, fields, nth_name};

pub use weft_core::wire::portmap::UDP_PORT as PORT;

/// Length of a message in octets.
pub const MESSAGE_LEN: usize = 48;

/// A port mapper message.
pub static MESSAGE: Group = Group { name: "iwarp_pm", label: "SDP Port Mapper", section: "SDP 7.3" };

/// The state of an exchange of port mapper messages.
pub static EXCHANGE_STATE: Group =
    Group { name: "iwarp_pm.followed", label: "SDP port mapper exchange", section: "SDP 7.5" };

fields! { 4:
    VER: "iwarp_pm.ver", "Ver", Base::Dec, "SDP 7.3.1.1", mask 0xc0;
    MT: "iwarp_pm.mt", "MT", Base::Dec, "SDP 7.3.1.2", mask 0x30, names type_name;
    IPV: "iwarp_pm.ipv", "IPV", Base::Dec, "SDP 7.3.1.3", mask 0x0f;
    PMTIME: "iwarp_pm.pmtime", "PmTime", Base::Dec, "SDP 7.3.1.4", names pm_time_name;
    CACHE_MS: "iwarp_pm.cache_ms", "PmTime in milliseconds", Base::Dec, "SDP 7.3.1.4";
    RESERVED: "iwarp_pm.reserved", "Reserved", Base::Hex(4), "SDP 7.3.1.5";
    APPORT: "iwarp_pm.apport", "ApPort", Base::Dec, "SDP 7.3.1.6";
    CPPORT: "iwarp_pm.cpport", "CpPort", Base::Dec, "SDP 7.3.1.7";
    ASSOCHANDLE: "iwarp_pm.assochandle", "AssocHandle", Base::Hex(16), "SDP 7.3.1.8";
    CPIPADDR: "iwarp_pm.cpipaddr", "CpIPAddr", Base::Text, "SDP 7.3.1.9";
    APIPADDR: "iwarp_pm.apipaddr", "ApIPAddr", Base::Text, "SDP 7.3.1.10";
    EXCHANGE: "iwarp_pm.exchange", "Exchange", Base::Dec, "SDP 7.5";
    STATE: "iwarp_pm.state", "State of the exchange", Base::Text, "SDP 7.5";
    REPEAT: "iwarp_pm.repeat", "Repetition of an earlier message", Base::Flag, "SDP 7.5";
    REQUESTED_ADDR: "iwarp_pm.asked_ipaddr", "Requested address", Base::Text, "SDP 7.3";
    REQUESTED_PORT: "iwarp_pm.asked_port", "Requested port", Base::Dec, "SDP 7.3";
    EXTRA_LEN: "iwarp_pm.extra_len", "Bytes after the message", Base::Dec, "SDP 7.3";
}

fn type_name(message_type: u64) -> Option<&'static str> {
    nth_name(&["PMReq", "PMAccept", "PMAck", "PMDeny"], message_type)
}

/// The names of the two PmTime values that do not express a time.
fn pm_time_name(pm_time: u64) -> Option<&'static str> {
    match pm_time {
        0 => Some("for one connection"),
        255 => Some("permanently"),
        _ => None,
    }
}

/// Visits the port mapper exchange to which a unit belongs. If the unit is a datagram of the
/// exchange, the fields are the state after this datagram. If the unit is a start-up frame or Hello
/// of the connection that the exchange prepared, the fields are the requested address and port.
pub(super) fn visit_exchange<V: Visitor>(exchange: &Exchange, is_datagram: bool, at: usize, visitor: &mut V) {
    visitor.enter(&EXCHANGE_STATE, at..at);
    visitor.field(&EXCHANGE, Value::Uint(exchange.exchange), at..at);
    if is_datagram {
        visitor.field(&STATE, Value::Text(exchange.state().name()), at..at);
        if exchange.repeated {
            visitor.field(&REPEAT, Value::Uint(1), at..at);
        }
    } else if let Some(requested) = exchange.requested {
        visitor.field(&REQUESTED_ADDR, Value::Address(requested.ip()), at..at);
        visitor.field(&REQUESTED_PORT, Value::Uint(u64::from(requested.port())), at..at);
    }
    visitor.leave();
}

/// Reads a datagram.
pub(super) fn message<V: Visitor>(reader: &mut Reader<'_, '_, V>) {
    let all = reader.left();
    reader.enter(&MESSAGE, MESSAGE_LEN);
    let first = reader.bits(1, &[&VER, &MT, &IPV]).unwrap_or(0);
    let version = first & 0xf;
    let is_accept = MessageType((first >> 4 & 3) as u8) == MessageType::PM_ACCEPT;
    let pm_time = reader.u8(&PMTIME).and_then(|time| u8::try_from(time).ok());
    if is_accept && let Some(Cache::For(time)) = pm_time.map(|time| PmTime(time).cache()) {
        reader.derived(&CACHE_MS, Value::Uint(u64::try_from(time.as_millis()).unwrap_or(u64::MAX)), 0);
    }
    reader.u16(&RESERVED);
    reader.u16(&APPORT);
    reader.u16(&CPPORT);
    reader.u64(&ASSOCHANDLE);
    for field in [&CPIPADDR, &APIPADDR] {
        if let Some(octets) = reader.rest().get(0..16).and_then(<[u8]>::first_chunk::<16>) {
            let address = match version {
                4 => IpAddr::V4(Ipv4Addr::new(octets[0], octets[1], octets[2], octets[3])),
                _ => IpAddr::V6(Ipv6Addr::from(*octets)),
            };
            reader.derived(field, Value::Address(address), 16);
        }
        reader.skip(16);
    }
    reader.derived(&EXTRA_LEN, Value::Uint(all.saturating_sub(MESSAGE_LEN) as u64), 0);
    reader.leave();
}
