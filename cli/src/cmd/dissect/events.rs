//! Reports the TCP events of each connection once: opened, closed by one of the endpoints, refused,
//! or reset.

use std::collections::BTreeMap;

use weft_dissector::StreamId;
use weft_dissector::{Packet, TransportKind};

use super::order::Rank;

/// Maximum number of connections whose events are stored. If there are more, weft drops the events
/// of the connections with the smallest numbers.
const REMEMBERED: usize = 1 << 16;

/// Bit of [`Events::reported`]: a SYN opened the connection.
const OPENED: u8 = 1;
/// Bit of [`Events::reported`]: an endpoint acknowledged the SYN.
const ACCEPTED: u8 = 2;
/// Bit of [`Events::reported`]: an endpoint refused or reset the connection.
const RESET: u8 = 4;
/// Bit of [`Events::reported`]: the endpoint with the lower address closed the connection. The next
/// higher bit is for the endpoint with the higher address.
const CLOSED: u8 = 8;

/// The events that were reported so far.
#[derive(Default)]
pub(super) struct Events {
    /// For each connection, the bits of its reported events.
    reported: BTreeMap<StreamId, u8>,
    /// Number of refused or reset connections.
    pub(super) resets: u64,
}

impl Events {
    /// Returns the event of a packet: its rank (its place among the lines of the frame) and its
    /// text. Returns `None` if the packet has no event, or if the same event of the connection was
    /// already reported.
    pub(super) fn of(&mut self, packet: &Packet) -> Option<(Rank, String)> {
        let TransportKind::Tcp { stream, syn, fin, rst, ack, .. } = packet.transport else { return None };
        if !(syn || fin || rst) {
            return None;
        }
        if self.reported.len() == REMEMBERED && !self.reported.contains_key(&stream) {
            self.reported.pop_first();
        }
        let reported = self.reported.entry(stream).or_default();
        let who = packet.src.ip();
        let mut once = |bit: u8| {
            let first = *reported & bit == 0;
            *reported |= bit;
            first
        };
        if rst {
            let accepted = !once(ACCEPTED);
            let refused = !accepted && !once(OPENED);
            return once(RESET).then(|| {
                self.resets += 1;
                let what = if refused { "refused" } else { "reset" };
                (Rank::Closing, format!("TCP connection {what} by {who} with RST"))
            });
        }
        if fin {
            let bit = if packet.src < packet.dst { CLOSED } else { CLOSED << 1 };
            return once(bit).then(|| (Rank::Closing, format!("TCP closed by {who} with FIN")));
        }
        if ack {
            once(ACCEPTED);
            return None;
        }
        once(OPENED).then(|| (Rank::Opening, format!("TCP connection begun by {who} with SYN")))
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use weft_dissector::FrameNumber;

    use super::*;

    /// A packet with these flags. If `begins` is set, the sender is the endpoint that opens the
    /// connection.
    fn packet(stream: u32, begins: bool, flags: &str) -> Packet {
        let (a, b) = (SocketAddr::from(([10, 0, 0, 2], 49152)), SocketAddr::from(([10, 0, 0, 1], 4210)));
        let (src, dst) = if begins { (a, b) } else { (b, a) };
        let has = |flag| flags.contains(flag);
        let (syn, fin, rst, ack) = (has('S'), has('F'), has('R'), has('A'));
        let transport = TransportKind::Tcp { stream: stream.into(), seq: 0, syn, fin, rst, ack };
        Packet { frame: FrameNumber::FIRST, src, dst, payload_len: 0, transport }
    }

    /// Returns the events of packets. Each packet is a text: `>` for the endpoint that opens the
    /// connection or `<` for its peer, and the TCP flags.
    fn events_of(packets: &[&str]) -> (Vec<String>, u64) {
        let mut events = Events::default();
        let each = packets.iter().filter_map(|text| events.of(&packet(0, text.starts_with('>'), &text[1..])));
        let lines = each.map(|(_, what)| what).collect();
        (lines, events.resets)
    }

    const BEGUN: &str = "TCP connection begun by 10.0.0.2 with SYN";

    #[test]
    fn a_connection_is_begun_and_closed_by_both() {
        let (events, resets) = events_of(&[">S", "<SA", ">A", ">S", ">FA", ">FA", "<FA"]);
        let closed = ["TCP closed by 10.0.0.2 with FIN", "TCP closed by 10.0.0.1 with FIN"];
        assert_eq!(events, [BEGUN, closed[0], closed[1]]);
        assert_eq!(resets, 0);
    }

    #[test]
    fn a_syn_that_is_answered_by_rst_was_refused() {
        let (events, resets) = events_of(&[">S", "<RA", ">S", "<RA"]);
        assert_eq!(events, [BEGUN, "TCP connection refused by 10.0.0.1 with RST"]);
        assert_eq!(resets, 1);
    }

    #[test]
    fn an_accepted_connection_is_reset() {
        for packets in [&[">S", "<SA", ">A", ">RA", "<R"][..], &[">S", "<SA", "<R"]] {
            let (events, resets) = events_of(packets);
            let who = if packets.len() == 5 { "10.0.0.2" } else { "10.0.0.1" };
            assert_eq!(events, [BEGUN.to_owned(), format!("TCP connection reset by {who} with RST")]);
            assert_eq!(resets, 1);
        }
    }

    /// A capture that starts within a connection lacks the connection's SYN. weft then reports an
    /// RST as a reset, not as a refusal.
    #[test]
    fn without_a_syn_nothing_was_refused() {
        let (events, _) = events_of(&[">A", "<R"]);
        assert_eq!(events, ["TCP connection reset by 10.0.0.1 with RST"]);
    }

    #[test]
    fn remembers_a_limited_number_of_connections() {
        let mut events = Events::default();
        for stream in 0..=REMEMBERED as u32 {
            assert!(events.of(&packet(stream, true, "S")).is_some());
        }
        assert_eq!(events.reported.len(), REMEMBERED);
        assert!(!events.reported.contains_key(&StreamId::FIRST));
    }
}
