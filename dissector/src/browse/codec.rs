//! Encodes rows as octets. Encoded numbers have a variable length. For a number that increases from
//! row to row, only the difference from the previous row is encoded.

use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, SocketAddrV4, SocketAddrV6};

use weft_core::requirement::Severity;

use super::row::{OwnedRow, Row};
use crate::TransportKind;

/// Encodes rows as octets.
pub(super) fn encode(rows: &[OwnedRow]) -> Vec<u8> {
    let mut out = Vec::new();
    let (mut number, mut time) = (0_u64, 0_u64);
    for row in rows {
        put(&mut out, u64::from(row.number).wrapping_sub(number));
        put(&mut out, row.time.wrapping_sub(time));
        (number, time) = (row.number.into(), row.time);
        put(&mut out, u64::from(row.known_at).wrapping_sub(number));
        for count in [row.captured, row.wire_len, row.payload_len, row.units, row.findings] {
            put(&mut out, count.into());
        }
        out.push(row.worst.map_or(0, |severity| 1 + severity as u8));
        put_transport(&mut out, row.transport);
        match row.ends {
            None => out.push(0),
            Some((src, dst)) => {
                out.push(1);
                put_address(&mut out, src);
                put_address(&mut out, dst);
            }
        }
        put(&mut out, row.summary.len() as u64);
        out.extend_from_slice(row.summary.as_bytes());
    }
    out
}

/// Decodes the output of [`encode`]; `None` for invalid octets.
pub(super) fn decode(octets: &[u8]) -> Option<Vec<OwnedRow>> {
    let mut input = Input(octets);
    let mut rows = Vec::new();
    let (mut number, mut time) = (0_u64, 0_u64);
    while !input.0.is_empty() {
        number = number.wrapping_add(input.number()?);
        time = time.wrapping_add(input.number()?);
        let known_at = number.wrapping_add(input.number()?).into();
        let mut row = Row { time, known_at, ..Row::new(number.into()) };
        for count in [&mut row.captured, &mut row.wire_len, &mut row.payload_len, &mut row.units, &mut row.findings] {
            *count = input.short()?;
        }
        row.worst = match input.octet()? {
            0 => None,
            severity => Some(severity_of(severity - 1)?),
        };
        row.transport = input.transport()?;
        let ends = match input.octet()? {
            0 => None,
            _ => Some((input.address()?, input.address()?)),
        };
        let len = usize::try_from(input.number()?).ok()?;
        let summary = String::from_utf8(input.take(len)?.to_vec()).ok()?;
        rows.push(OwnedRow { row, ends, summary });
    }
    Some(rows)
}

fn severity_of(number: u8) -> Option<Severity> {
    [Severity::Note, Severity::Warning, Severity::Error].into_iter().find(|severity| *severity as u8 == number)
}

/// Appends a number with seven bits in each octet, the lowest bits first. The highest bit is set in
/// all octets except the last.
fn put(out: &mut Vec<u8>, mut number: u64) {
    while number >= 0x80 {
        out.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    out.push(number as u8);
}

const TCP: u8 = 1 << 4;
const UDP: u8 = 1 << 5;

fn put_transport(out: &mut Vec<u8>, transport: Option<TransportKind>) {
    match transport {
        None => out.push(0),
        Some(TransportKind::Udp) => out.push(UDP),
        Some(TransportKind::Tcp { stream, seq, syn, fin, rst, ack }) => {
            let flags = [syn, fin, rst, ack].into_iter().enumerate();
            out.push(flags.fold(TCP, |octet, (bit, set)| octet | u8::from(set) << bit));
            put(out, stream.into());
            put(out, seq.into());
        }
    }
}

fn put_address(out: &mut Vec<u8>, address: SocketAddr) {
    match address {
        SocketAddr::V4(address) => {
            out.push(4);
            out.extend(address.ip().octets());
        }
        SocketAddr::V6(address) => {
            out.push(6);
            out.extend(address.ip().octets());
            put(out, address.flowinfo().into());
            put(out, address.scope_id().into());
        }
    }
    put(out, address.port().into());
}

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> Option<&'a [u8]> {
        let (taken, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        Some(taken)
    }

    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        self.take(N)?.try_into().ok()
    }

    fn octet(&mut self) -> Option<u8> {
        self.array().map(|[octet]| octet)
    }

    fn number(&mut self) -> Option<u64> {
        let mut number = 0;
        for shift in (0..u64::BITS).step_by(7) {
            let octet = self.octet()?;
            number |= u64::from(octet & 0x7f) << shift;
            if octet < 0x80 {
                return Some(number);
            }
        }
        None
    }

    fn short(&mut self) -> Option<u32> {
        u32::try_from(self.number()?).ok()
    }

    fn transport(&mut self) -> Option<Option<TransportKind>> {
        Some(match self.octet()? {
            0 => None,
            UDP => Some(TransportKind::Udp),
            flags => {
                let [syn, fin, rst, ack] = [0, 1, 2, 3].map(|bit| flags & 1 << bit != 0);
                Some(TransportKind::Tcp { stream: self.short()?.into(), seq: self.short()?, syn, fin, rst, ack })
            }
        })
    }

    fn address(&mut self) -> Option<SocketAddr> {
        Some(match self.octet()? {
            4 => SocketAddrV4::new(Ipv4Addr::from(self.array::<4>()?), self.port()?).into(),
            _ => {
                let ip = Ipv6Addr::from(self.array::<16>()?);
                let (flowinfo, scope) = (self.short()?, self.short()?);
                SocketAddrV6::new(ip, self.port()?, flowinfo, scope).into()
            }
        })
    }

    fn port(&mut self) -> Option<u16> {
        u16::try_from(self.number()?).ok()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::browse::row::AT_END;
    use crate::frame_number::FrameNumber;

    fn address() -> impl Strategy<Value = SocketAddr> {
        let v6 = (any::<[u8; 16]>(), any::<u16>(), any::<u32>(), any::<u32>());
        prop_oneof![
            (any::<[u8; 4]>(), any::<u16>()).prop_map(SocketAddr::from),
            v6.prop_map(|(ip, port, flow, scope)| SocketAddrV6::new(ip.into(), port, flow, scope).into()),
        ]
    }

    fn transport() -> impl Strategy<Value = TransportKind> {
        let tcp = (any::<u32>(), any::<u32>(), any::<[bool; 4]>());
        prop_oneof![
            Just(TransportKind::Udp),
            tcp.prop_map(|(stream, seq, [syn, fin, rst, ack])| {
                TransportKind::Tcp { stream: stream.into(), seq, syn, fin, rst, ack }
            }),
        ]
    }

    fn row() -> impl Strategy<Value = OwnedRow> {
        let known_at = prop_oneof![Just(AT_END), any::<u64>().prop_map(FrameNumber::from)];
        let worst =
            prop::sample::select(vec![None, Some(Severity::Note), Some(Severity::Warning), Some(Severity::Error)]);
        let ends = prop::option::of((address(), address()));
        let numbers = (any::<u64>(), any::<u64>(), known_at, any::<[u32; 5]>());
        (numbers, worst, prop::option::of(transport()), ends, ".{0,20}").prop_map(
            |(
                (number, time, known_at, [captured, wire_len, payload_len, units, findings]),
                worst,
                transport,
                ends,
                summary,
            )| {
                let counts = Row { captured, wire_len, payload_len, units, findings, ..Row::new(number.into()) };
                OwnedRow { row: Row { time, known_at, worst, transport, ..counts }, ends, summary }
            },
        )
    }

    proptest! {
        #[test]
        fn decodes_what_it_encodes(rows in prop::collection::vec(row(), 0..8)) {
            prop_assert_eq!(decode(&encode(&rows)), Some(rows));
        }

        #[test]
        fn rejects_other_octets_without_a_panic(octets in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = decode(&octets);
        }
    }
}
