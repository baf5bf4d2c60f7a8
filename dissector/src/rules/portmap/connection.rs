//! Checks the port mapper's rules for TCP (sections 7.1 and 7.4 of the SDP draft). A PMReq must not
//! be sent over TCP. An SDP Address is the address that a PMAccept contains. On a connection to an
//! SDP Address, only iWARP is allowed after the Hello.

use weft_core::requirement;
use weft_core::wire::portmap::{Message, MessageType, RawMessage, UDP_PORT};

use crate::follow::ConnectionState;
use crate::parse::{Kind, Unit};
use crate::rules::rule::{Check, Findings, Rule};

pub(super) static IN_IWARP_MODE: Rule = Check::Other(in_iwarp_mode).covers(requirements!["PM-7.1-3"]);

pub(super) static IN_UDP: Rule = Check::Other(in_udp).covers(requirements!["PM-7.4-3"]);

/// Reports octets that belong neither to MPA nor to the Hello, on an SDP connection to an address
/// from a PMAccept.
fn in_iwarp_mode(state: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let (Kind::Streaming { len, .. } | Kind::Unparsed { len }) = unit.kind else { return };
    let context = state.context();
    // Only a Hello shows that the connection carries SDP. The port mapper daemon of Linux also maps
    // connections of other protocols.
    let (Some(exchange), true) = (&context.exchange, context.sdp.is_some()) else { return };
    if unit.incomplete {
        return;
    }
    let mapped = exchange.mapped.map_or_else(String::new, |mapped| format!(" {mapped}"));
    let expected = format!("only MPA after the Hello, on a connection to the SDP Address{mapped}");
    let found = format!("{len} bytes that are not MPA");
    findings.report_in_frame(requirement!("PM-7.1-3"), unit.direction(), unit.frame, &expected, found);
}

/// Reports a PMReq over TCP: 48 octets to port 3935 that meet all rules for a PMReq.
fn in_udp(_: &ConnectionState, unit: &Unit<'_>, findings: &mut Findings<'_>) {
    let Kind::Streaming { len: 48, head, .. } = unit.kind else { return };
    if unit.ends.dst.port() != UDP_PORT || head.len() < RawMessage::LEN {
        return;
    }
    let head = &head[..RawMessage::LEN];
    let Ok(message) = Message::parse(head) else { return };
    let mut again = Vec::with_capacity(RawMessage::LEN);
    message.emit(&mut again);
    if message.message_type == MessageType::PM_REQ && again == head {
        let expected = "a PMReq in a UDP datagram";
        let found = "a PMReq over TCP";
        findings.report_in_frame(requirement!("PM-7.4-3"), unit.direction(), unit.frame, expected, found);
    }
}

#[cfg(test)]
mod tests {
    use weft_core::requirement;

    use crate::rules::portmap::testing::{ACCEPT, Datagram, REQ, datagram};
    use crate::testing::{self, Wire, proves};

    /// Plays the SYNs of a connection to 10.0.0.1:4210. If `follows` is true, a port mapper
    /// exchange precedes the connection.
    fn connected(follows: bool) -> Wire {
        if !follows {
            return Wire::connected();
        }
        let accept = datagram(ACCEPT, |octets| octets[4..6].copy_from_slice(&4210_u16.to_be_bytes())).octets();
        Wire::connected_after(&[(0, Datagram::new(REQ).octets()), (1, accept)])
    }

    #[test]
    fn iwarp_follows_the_hello() {
        let with = |follows: bool, begins: &[u8]| {
            let mut wire = connected(follows);
            wire.send(0, begins);
            wire.send(
                1,
                b"HTTP/1.1 200 OK\r\nContent-Length: 600\r\n\r\nsome text that is no start-up frame and no FPDU",
            );
            wire.fin(0);
            wire.fin(1);
            wire
        };
        let (wrong, plain) = (with(true, &testing::hello()), with(true, b"GET / HTTP/1.1\r\n\r\n"));
        proves(requirement!("PM-7.1-3"), &wrong, &plain);
        proves(requirement!("PM-7.1-3"), &wrong, &with(false, &testing::hello()));
        let mut swapped = connected(true);
        swapped.send(0, &testing::hello());
        swapped.send(1, &testing::request());
        swapped.send(0, &testing::reply());
        proves(requirement!("PM-7.1-3"), &wrong, &swapped);
    }

    #[test]
    fn a_request_is_a_datagram() {
        let over_tcp = |octets: &[u8]| {
            let mut wire = Wire::connected_to(3935);
            wire.send(0, octets);
            wire.fin(0);
            wire.fin(1);
            wire
        };
        let request = Datagram::new(REQ).octets();
        proves(requirement!("PM-7.4-3"), &over_tcp(&request), &over_tcp(&request[..47]));
        proves(requirement!("PM-7.4-3"), &over_tcp(&request), &over_tcp(&Datagram::new(ACCEPT).octets()));
    }
}
