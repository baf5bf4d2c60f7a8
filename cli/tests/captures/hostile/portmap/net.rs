//! A [`Net`] has a PM Client, a PM Server, a virtual clock, and a capture of all datagrams. It also
//! knows the ports on which the services listen for SDP.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use etherparse::PacketBuilder;
use weft_core::RequirementId;
use weft_core::requirement::Severity;
use weft_core::wire::portmap::PmTime;
use weft_dissector::link_type::ETHERNET;
use weft_dissector::source::Frame;
use weft_dissector::unit::Unit;
use weft_dissector::{Dissector, Finding, FrameNumber, Sink};
use weft_peer::portmap::{
    Client, ClientSettings, Datagram, Mapping, Query, Resolution, Server, ServerEvent, ServerSettings, Table, Target,
};
use weft_peer::{Deviations, Instant};

use crate::hostile::capture::pcapng;

/// The UDP ports of the client and of the server. The second port of each side is used only by a
/// deviation that sends from a wrong port.
const PORTS: [[u16; 2]; 2] = [[33333, 33334], [3935, 40404]];

/// The treatment of a datagram in flight.
pub(crate) enum Fate {
    Passes,
    Lost,
}

/// Decides about each datagram in flight. The arguments are the side that sent the datagram, the
/// number of the datagram (counted for each side), and its bytes. The function can change the
/// bytes.
pub(crate) type Way = fn(side: usize, number: usize, octets: &mut Vec<u8>) -> Fate;

pub(crate) struct Net {
    pub(crate) now: Instant,
    client: Client,
    settings: ClientSettings,
    pub(crate) server: Server,
    hosts: [IpAddr; 2],
    way: Way,
    sent: [usize; 2],
    frames: Vec<(u64, Vec<u8>)>,
    outcome: String,
}

/// The results of a run.
pub(crate) struct Run {
    pub(crate) findings: Vec<Finding>,
    /// The datagrams as pcapng.
    pub(crate) capture: Vec<u8>,
    pub(crate) outcome: String,
}

impl Run {
    /// Returns the requirements of the monitor's findings about a side, with at least the severity
    /// `least`.
    pub(crate) fn found(&self, side: usize, least: Severity) -> BTreeSet<RequirementId> {
        let of_side = self.findings.iter().filter(|finding| usize::from(finding.direction) == side);
        of_side.filter(|finding| finding.severity >= least).map(|finding| finding.requirement).collect()
    }
}

impl Net {
    pub(crate) fn new(v6: bool, pm_time: u8, deny_with_port: bool, way: Way, deviations: [&Deviations; 2]) -> Self {
        let hosts = if v6 { ["fd00:9::2", "fd00:9::1"] } else { ["10.0.0.2", "10.0.0.1"] };
        let hosts = hosts.map(|host| host.parse().unwrap());
        let mut table = Table::default();
        let at = |port| SocketAddr::new(hosts[1], port);
        // The services have different kinds of targets: a fixed port, a range of two ports, and a
        // port without a listener. Each connection gets one port of the range.
        for (port, target) in [
            (5001, Target::Fixed(vec![at(7001)])),
            (5002, Target::PortRange { at: at(0), ports: 9001..=9002 }),
            (5003, Target::Fixed(vec![at(7003)])),
            (5004, Target::Fixed(vec![at(7004)])),
        ] {
            table.insert(Mapping { service: at(port), target, pm_time: PmTime(pm_time) }).unwrap();
        }
        let settings = ClientSettings { deviations: deviations[0].clone(), ..ClientSettings::default() };
        let serves = ServerSettings {
            deviations: deviations[1].clone(),
            denies_with_port: deny_with_port,
            ..ServerSettings::default()
        };
        Net {
            now: Instant::ORIGIN,
            client: Client::new(settings.clone(), 0x1122_3344_5566_7788),
            settings,
            server: Server::new(serves, table),
            hosts,
            way,
            sent: [0; 2],
            frames: Vec::new(),
            outcome: String::new(),
        }
    }

    pub(crate) fn service(&self, port: u16) -> SocketAddr {
        SocketAddr::new(self.hosts[1], port)
    }

    fn end(&self, side: usize) -> SocketAddr {
        SocketAddr::new(self.hosts[side], PORTS[side][0])
    }

    /// Queries the mapping of a service, for a connection from this port.
    pub(crate) fn ask(&mut self, service: u16, cp_port: u16) {
        let connecting = SocketAddr::new(self.hosts[0], cp_port);
        let query = Query { mapper: self.end(1), service: self.service(service), connecting };
        self.client.query(self.now, query).unwrap();
        self.drain();
    }

    /// Restarts the client's host.
    pub(crate) fn restart(&mut self) {
        self.client = Client::new(self.settings.clone(), 0x99aa_bbcc_ddee_ff00);
    }

    /// Delivers a datagram that `side` did not send, as if `side` had sent it.
    pub(crate) fn inject(&mut self, side: usize, octets: &[u8]) {
        let (from, to) = (self.end(side), self.end(1 - side));
        self.capture(from, to, octets);
        self.arrive(1 - side, from, octets);
        self.drain();
    }

    pub(crate) fn wait(&mut self, millis: u64) {
        let end = self.now + Duration::from_millis(millis);
        // A deviating side can send forever, so the loop has a time limit.
        while let Some(next) = [self.client.deadline(), self.server.deadline()].into_iter().flatten().min() {
            if next > end {
                break;
            }
            self.now = next;
            self.client.handle_timeout(next);
            self.server.handle_timeout(next);
            self.drain();
        }
        self.now = end;
    }

    fn drain(&mut self) {
        loop {
            if let Some(datagram) = self.client.poll_datagram() {
                self.put(0, datagram);
            } else if let Some(datagram) = self.server.poll_datagram() {
                self.put(1, datagram);
            } else {
                break;
            }
        }
        while let Some(resolved) = self.client.poll_event() {
            self.connect(resolved.query, resolved.resolution);
        }
        while let Some(event) = self.server.poll_event() {
            let text = match event {
                ServerEvent::Expired { connecting, address } => format!("{connecting} has not used {address}"),
                ServerEvent::Acknowledged { connecting, address } => format!("{connecting} acknowledges {address}"),
                ServerEvent::Released { address } => format!("{address} is free"),
                // The other events are visible in the datagrams.
                _ => continue,
            };
            self.note(&text);
        }
    }

    fn put(&mut self, side: usize, datagram: Datagram) {
        let Datagram { to, mut octets, from_other_port } = datagram;
        let from = SocketAddr::new(self.hosts[side], PORTS[side][usize::from(from_other_port)]);
        let name = ["PMReq", "PMAccept", "PMAck", "PMDeny"][usize::from(octets[0] >> 4 & 3)];
        self.note(&format!("{name} from {from} to {to}"));
        self.sent[side] += 1;
        let fate = (self.way)(side, self.sent[side], &mut octets);
        self.capture(from, to, &octets);
        if matches!(fate, Fate::Passes) && to == self.end(1 - side) {
            self.arrive(1 - side, from, &octets);
        }
    }

    fn arrive(&mut self, side: usize, from: SocketAddr, octets: &[u8]) {
        if side == 0 {
            self.client.handle_datagram(self.now, from, octets);
        } else {
            self.server.handle_datagram(self.now, from, octets);
        }
    }

    /// Simulates a connection to the address that a query returned, and notes the outcome. SDP
    /// listens at 7001, at 7004 and at the ports that the server assigns. A connection by plain TCP
    /// always succeeds.
    fn connect(&mut self, query: Query, resolution: Resolution) {
        let address = resolution.address();
        let listens = [7001, 7004, 9001, 9002].contains(&address.port());
        let text = match resolution {
            Resolution::Sdp { .. } if listens => {
                let known = self.server.handle_connection(self.now, query.connecting, address).is_some();
                format!("{}: SDP at {address}, connected, expected {known}", query.service)
            }
            Resolution::Sdp { .. } => match self.client.reset(&query, address) {
                Resolution::Conventional { address, .. } => format!("reset, then plain TCP at {address}"),
                Resolution::Sdp { .. } => "reset, and given up".to_owned(),
            },
            Resolution::Conventional { why, .. } => format!("{}: plain TCP at {address}: {why}", query.service),
        };
        self.note(&text);
        self.note(&format!("SYN from {}", query.connecting));
    }

    fn note(&mut self, what: &str) {
        let _ = writeln!(self.outcome, "{} {what}", self.now);
    }

    fn capture(&mut self, from: SocketAddr, to: SocketAddr, octets: &[u8]) {
        let mut frame = Vec::new();
        let ethernet = PacketBuilder::ethernet2([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]);
        let ip = match (from.ip(), to.ip()) {
            (IpAddr::V4(from), IpAddr::V4(to)) => ethernet.ipv4(from.octets(), to.octets(), 64),
            (IpAddr::V6(from), IpAddr::V6(to)) => ethernet.ipv6(from.octets(), to.octets(), 64),
            _ => panic!("two families"),
        };
        ip.udp(from.port(), to.port()).write(&mut frame, octets).unwrap();
        self.frames.push((self.now.as_nanos() + self.frames.len() as u64, frame));
    }

    pub(crate) fn end_run(self) -> Run {
        struct Collect(Vec<Finding>);
        impl Sink for Collect {
            fn unit(&mut self, _: &Unit<'_>) {}
            fn finding(&mut self, finding: &Finding) {
                self.0.push(finding.clone());
            }
        }
        let (mut dissector, mut found) = (Dissector::default(), Collect(Vec::new()));
        for ((time, octets), number) in self.frames.iter().zip((1..).map(FrameNumber::from)) {
            let wire_len = u32::try_from(octets.len()).unwrap();
            let frame = Frame { number, time: *time, interface: 0, link_type: ETHERNET, octets, wire_len };
            dissector.frame(&frame, &mut found);
        }
        dissector.finish(&mut found);
        let frames = self.frames.iter().map(|(time, octets)| (*time, &octets[..]));
        Run { findings: found.0, capture: pcapng(frames), outcome: self.outcome }
    }

    /// Makes a message about a service, such as a PMReq or a PMAccept. `first` is its first octet,
    /// which has the message type.
    pub(crate) fn message(&self, first: u8, ap_port: u16, cp_port: u16, handle: u64) -> Vec<u8> {
        let mut octets = vec![first, 0, 0, 0];
        octets.extend(ap_port.to_be_bytes());
        octets.extend(cp_port.to_be_bytes());
        octets.extend(handle.to_be_bytes());
        for host in self.hosts {
            let mut field = [0; 16];
            match host {
                IpAddr::V4(v4) => field[..4].copy_from_slice(&v4.octets()),
                IpAddr::V6(v6) => field = v6.octets(),
            }
            octets.extend(field);
        }
        octets
    }
}
