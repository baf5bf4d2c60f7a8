//! Builds datagrams, and the two machines (PM Client and PM Server) with the settings that the
//! tests need. The messages have the layout of draft-pinkerton-iwarp-sdp-01 Figure 17.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use weft_core::RequirementId;
use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::portmap::PmTime;
use weft_peer::Instant;
use weft_peer::portmap::{
    Client, ClientSettings, Mapping, Query, Resolution, Server, ServerEvent, ServerSettings, Table, Target,
};

pub(crate) const REQ: u8 = 0x04;
pub(crate) const ACCEPT: u8 = 0x14;
pub(crate) const ACK: u8 = 0x24;
pub(crate) const DENY: u8 = 0x34;
/// The first AssocHandle of every client in these tests.
pub(crate) const HANDLE: u64 = 0x1122_3344_5566_7788;

pub(crate) fn at(text: &str) -> SocketAddr {
    text.parse().unwrap()
}

/// The fields of a message. A test changes only some of the fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Fields {
    pub(crate) first: u8,
    pub(crate) time: u8,
    pub(crate) reserved: u16,
    pub(crate) ap_port: u16,
    pub(crate) cp_port: u16,
    pub(crate) handle: u64,
    pub(crate) cp: IpAddr,
    pub(crate) ap: IpAddr,
}

/// The default fields. The client 10.0.0.2 requests port 5001 of 10.0.0.1 for its own port 40001.
/// The answer grants port 7001.
pub(crate) fn fields(first: u8) -> Fields {
    let ap_port = match first {
        ACCEPT | ACK => 7001,
        DENY => 0,
        _ => 5001,
    };
    let (cp, ap) = ("10.0.0.2".parse().unwrap(), "10.0.0.1".parse().unwrap());
    Fields { first, time: 0, reserved: 0, ap_port, cp_port: 40001, handle: HANDLE, cp, ap }
}

impl Fields {
    /// The octets of the message, as in Figure 17.
    pub(crate) fn octets(&self) -> Vec<u8> {
        let mut out = vec![self.first, self.time];
        out.extend(self.reserved.to_be_bytes());
        out.extend(self.ap_port.to_be_bytes());
        out.extend(self.cp_port.to_be_bytes());
        out.extend(self.handle.to_be_bytes());
        for address in [self.cp, self.ap] {
            let mut field = [0; 16];
            match address {
                IpAddr::V4(v4) => field[..4].copy_from_slice(&v4.octets()),
                IpAddr::V6(v6) => field = v6.octets(),
            }
            out.extend(field);
        }
        out
    }

    pub(crate) fn read(octets: &[u8]) -> Fields {
        assert_eq!(octets.len(), 48);
        let short = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
        let address = |at: usize| match octets[0] & 0xf {
            4 => {
                assert_eq!(octets[at + 4..at + 16], [0; 12]);
                IpAddr::from(<[u8; 4]>::try_from(&octets[at..at + 4]).unwrap())
            }
            _ => IpAddr::from(<[u8; 16]>::try_from(&octets[at..at + 16]).unwrap()),
        };
        Fields {
            first: octets[0],
            time: octets[1],
            reserved: short(2),
            ap_port: short(4),
            cp_port: short(6),
            handle: u64::from_be_bytes(octets[8..16].try_into().unwrap()),
            cp: address(16),
            ap: address(32),
        }
    }
}

pub(crate) fn millis(millis: u64) -> Instant {
    Instant::ORIGIN + Duration::from_millis(millis)
}

pub(crate) fn mapper() -> SocketAddr {
    at("10.0.0.1:3935")
}

pub(crate) fn ask() -> Query {
    Query { mapper: mapper(), service: at("10.0.0.1:5001"), connecting: at("10.0.0.2:40001") }
}

/// UDP address of the client.
pub(crate) fn asker() -> SocketAddr {
    at("10.0.0.2:33333")
}

pub(crate) fn client() -> Client {
    Client::new(ClientSettings::default(), HANDLE)
}

/// Returns a client that has sent a request at time 0, and its PMReq.
pub(crate) fn requesting_client() -> (Client, Vec<u8>) {
    let mut client = client();
    client.query(millis(0), ask()).unwrap();
    let request = client.poll_datagram().unwrap().octets;
    assert_eq!(client.poll_datagram(), None);
    (client, request)
}

pub(crate) fn resolution(client: &mut Client) -> Option<Resolution> {
    client.poll_event().map(|resolved| resolved.resolution)
}

/// All pending datagrams, as fields.
pub(crate) fn sent(client: &mut Client) -> Vec<Fields> {
    std::iter::from_fn(|| client.poll_datagram()).map(|datagram| Fields::read(&datagram.octets)).collect()
}

pub(crate) fn fixed(service: &str, addresses: &[&str], pm_time: u8) -> Mapping {
    let target = Target::Fixed(addresses.iter().map(|address| at(address)).collect());
    Mapping { service: at(service), target, pm_time: PmTime(pm_time) }
}

/// A mapping to the ports 9001 to 9003. Each port is for one Request.
pub(crate) fn made(service: &str) -> Mapping {
    let target = Target::PortRange { at: at("10.0.0.1:0"), ports: 9001..=9003 };
    Mapping { service: at(service), target, pm_time: PmTime(0) }
}

pub(crate) fn table(mappings: impl IntoIterator<Item = Mapping>) -> Table {
    let mut table = Table::default();
    mappings.into_iter().for_each(|mapping| table.insert(mapping).unwrap());
    table
}

/// A server that maps 10.0.0.1:5001 to port 7001. It maps 10.0.0.1:6001 to a new port for each
/// Request.
pub(crate) fn server() -> Server {
    let mappings = [fixed("10.0.0.1:5001", &["10.0.0.1:7001"], 20), made("10.0.0.1:6001")];
    Server::new(ServerSettings::default(), table(mappings))
}

/// The answers to a datagram from this address.
pub(crate) fn answers_to(server: &mut Server, from: SocketAddr, now: Instant, octets: &[u8]) -> Vec<Fields> {
    server.handle_datagram(now, from, octets);
    std::iter::from_fn(|| server.poll_datagram())
        .map(|datagram| {
            assert_eq!(datagram.to, from);
            Fields::read(&datagram.octets)
        })
        .collect()
}

pub(crate) fn answers(server: &mut Server, now: Instant, octets: &[u8]) -> Vec<Fields> {
    answers_to(server, asker(), now, octets)
}

pub(crate) fn answer(server: &mut Server, now: Instant, octets: &[u8]) -> Fields {
    let answers = answers(server, now, octets);
    assert_eq!(answers.len(), 1);
    answers[0]
}

pub(crate) fn events(server: &mut Server) -> Vec<ServerEvent> {
    std::iter::from_fn(|| server.poll_event()).collect()
}

/// Runs the assertions. Each assertion proves the requirement in the same row.
pub(crate) fn proves<const N: usize>(rows: [(RequirementId, &dyn Fn()); N]) {
    let mut proof = Coverage::new(CoverageKind::Test);
    for (id, assertion) in rows {
        proof.verify(id, assertion);
    }
}
