//! Exchanges datagrams with the target's port mapper.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use weft_core::wire::portmap::{Addresses, Message as PmMessage, MessageType, PmTime, RawMessage};
use weft_peer::driver::{DatagramSocket, LinkError};
use zerocopy::IntoBytes;

use super::raw_message;
use crate::model::Direction;
use crate::stage::rdma::write_wanted;
use crate::stage::{Connections, Expectation, Message, Recorder, Stop};

/// Maximum number of sockets of one case.
const MAX_SOCKETS: usize = 64;
/// The AssocHandles of queries begin here.
const QUERY_HANDLES: u64 = 0x0a5c_ed00_0000_0000;

/// The expected fields of an answer.
#[derive(Debug, Clone, Default)]
pub(crate) struct MapperFields {
    /// The type. This field and the next fields have the raw values of the message.
    pub(crate) message_type: Option<MessageType>,
    pub(crate) pm_time: Option<u8>,
    pub(crate) ap_port: Option<u16>,
    pub(crate) cp_port: Option<u16>,
    pub(crate) handle: Option<u64>,
    /// Whether the source of the answer must be the destination of the Request.
    pub(crate) from_there: bool,
}

impl MapperFields {
    /// Returns the name and the expected value of each field except the type.
    fn wanted(&self) -> [(&'static str, Option<u64>); 4] {
        [
            ("PmTime", self.pm_time.map(u64::from)),
            ("ApPort", self.ap_port.map(u64::from)),
            ("CpPort", self.cp_port.map(u64::from)),
            ("AssocHandle", self.handle),
        ]
    }

    pub(in crate::stage) fn miss(&self, message: &RawMessage, from_there: bool) -> Option<String> {
        if self.message_type.is_some_and(|wanted| wanted != message.mt()) {
            return Some(String::new());
        }
        if self.from_there && !from_there {
            return Some(", from an address or port that the tester did not query".into());
        }
        let ports = [message.ap_port, message.cp_port].map(|port| u64::from(port.get()));
        let found = [message.pm_time.into(), ports[0], ports[1], message.assoc_handle.get()];
        let mut fields = self.wanted().into_iter().zip(found);
        let other = fields.find(|((_, wanted), found)| wanted.is_some_and(|wanted| wanted != *found));
        other.map(|((name, _), found)| format!(", whose {name} is {found:#x}"))
    }
}

impl std::fmt::Display for MapperFields {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.message_type.map_or("a port mapper message", |kind| kind.name()))?;
        write_wanted(f, &self.wanted())
    }
}

/// The operations of the tester with a target that is a port mapper.
pub(crate) struct MapperServerSide<'a> {
    pub(in crate::stage) connections: &'a mut Connections,
    pub(in crate::stage) sockets: &'a mut Vec<DatagramSocket>,
}

impl MapperServerSide<'_> {
    pub(in crate::stage) fn recorder(&mut self) -> Recorder<'_> {
        self.connections.recorder()
    }

    /// Opens a socket for datagrams to the target's port mapper. Returns the index of the socket.
    pub(crate) async fn open(&mut self, v6: bool) -> Result<usize, Stop> {
        if self.sockets.len() >= MAX_SOCKETS {
            return Err(self.recorder().harness(&format!("the case opens more than {MAX_SOCKETS} sockets")));
        }
        match self.connections.link.datagrams(v6).await {
            Ok(socket) => {
                self.sockets.push(socket);
                Ok(self.sockets.len() - 1)
            }
            Err(error) => Err(self.recorder().harness(&error.to_string())),
        }
    }

    /// Returns the address of a socket, and the address of the next connection. If the address of
    /// the next connection is unknown, returns the address of the socket twice.
    pub(crate) fn addresses(&self, socket: usize) -> (SocketAddr, SocketAddr) {
        let own = self.sockets.get(socket).map_or_else(|| self.connections.link.target(), |socket| socket.tester);
        (own, self.connections.link.next_address().unwrap_or(own))
    }

    pub(crate) async fn send(&mut self, socket: usize, message: &Message) -> Result<(), Stop> {
        self.connections.log.stimulated();
        // If the bytes after an IPv4 address are not zero, the target may reflect them with the
        // address (draft-pinkerton-iwarp-sdp-01 section 7.3.1.9). So the requirement about these
        // bytes is exempt.
        if let Some(sent) = raw_message(&message.octets)
            && sent.ipv() == 4
            && sent.cp_ip_addr[4..].iter().any(|octet| *octet != 0)
        {
            self.connections.log.exempt.push(weft_core::requirement!("PM-7.3.1.3-2"));
        }
        self.put(socket, message).await
    }

    async fn put(&mut self, socket: usize, message: &Message) -> Result<(), Stop> {
        self.connections.check_sent(message)?;
        let Some(open) = self.sockets.get(socket) else {
            return Err(self.recorder().harness("there is no such socket"));
        };
        let sent = self.connections.link.send_datagram(open, &message.octets).await;
        self.connections.sent_datagram(message);
        sent.map_err(|error| self.recorder().harness(&error.to_string()))
    }

    async fn receive(
        &mut self,
        socket: usize,
        deadline: weft_peer::Instant,
    ) -> Result<Option<(SocketAddr, Vec<u8>)>, Stop> {
        let Some(open) = self.sockets.get(socket) else {
            return Err(self.recorder().harness("there is no such socket"));
        };
        match self.connections.link.receive_datagram(open, deadline).await {
            Ok(None) => Ok(None),
            Ok(Some((from, octets))) => {
                self.connections.received_datagram(&octets);
                Ok(Some((from, octets.to_vec())))
            }
            Err(error) => Err(self.recorder().harness(&error.to_string())),
        }
    }

    /// Expects that the next datagram has these fields.
    pub(crate) async fn expect(
        &mut self,
        socket: usize,
        expectation: &Expectation,
        fields: &MapperFields,
    ) -> Result<(SocketAddr, Vec<u8>), Stop> {
        let expected = fields.to_string();
        let deadline = self.connections.link.now() + expectation.within;
        let Some((from, octets)) = self.receive(socket, deadline).await? else {
            return Err(self.recorder().timed_out(expectation, &expected));
        };
        let there = self.sockets.get(socket).is_some_and(|open| open.target == from);
        self.connections.judge_datagram(&octets, expectation, &expected, |raw| fields.miss(raw, there))?;
        Ok((from, octets))
    }

    /// Waits for the next datagram, `expectation.within` at most, and judges nothing. Returns the
    /// sender's address, the payload, and whether the datagram came from the queried port mapper.
    pub(crate) async fn next(
        &mut self,
        socket: usize,
        expectation: &Expectation,
    ) -> Result<Option<(SocketAddr, Vec<u8>, bool)>, Stop> {
        let deadline = self.connections.link.now() + expectation.within;
        let Some((from, octets)) = self.receive(socket, deadline).await? else {
            self.recorder().silence(expectation);
            return Ok(None);
        };
        let is_from_there = self.sockets.get(socket).is_some_and(|open| open.target == from);
        Ok(Some((from, octets, is_from_there)))
    }

    /// Opens a TCP connection to `address`, the address in an answer. The tester connects from the
    /// address `from`. Returns the number of the connection.
    pub(crate) async fn connect(
        &mut self,
        (from, address): (SocketAddr, SocketAddr),
        expectation: &Expectation,
    ) -> Result<u32, Stop> {
        self.connections.check_limit()?;
        let expected = format!("a TCP connection to {address}");
        match self.connections.link.connect_to(address, Some(from)).await {
            Ok(end) => {
                let number = self.connections.connected(end, Direction::Sent);
                self.connections.recorder_of(number).met(expectation, &expected, "it accepts the connection");
                Ok(number)
            }
            Err(error @ (LinkError::Connect { .. } | LinkError::ConnectTimeout { .. })) => {
                Err(self.recorder().unmet(expectation, &expected, &error.to_string()))
            }
            Err(error) => Err(self.recorder().harness(&error.to_string())),
        }
    }

    /// Expects that no datagram arrives. With `or_deny`, a PMDeny may arrive.
    pub(crate) async fn expect_quiet(
        &mut self,
        socket: usize,
        expectation: &Expectation,
        or_deny: bool,
    ) -> Result<(), Stop> {
        let expected = if or_deny { "no datagram, or a PMDeny" } else { "no datagram" };
        let deadline = self.connections.link.now() + expectation.within;
        let actual = match self.receive(socket, deadline).await? {
            None => self.recorder().silence(expectation),
            Some((_, octets))
                if or_deny && raw_message(&octets).is_some_and(|raw| raw.mt() == MessageType::PM_DENY) =>
            {
                "a PMDeny".to_owned()
            }
            Some((_, octets)) => {
                let sent = format!("a datagram of {} bytes", octets.len());
                return Err(self.recorder().wrong(expectation, expected, &sent));
            }
        };
        self.recorder().met(expectation, expected, &actual);
        Ok(())
    }

    /// Sends a PMReq for a service from a new socket, and acknowledges a PMAccept. Returns `None`
    /// if there is no answer. An inner error describes a datagram that is not the answer.
    pub(crate) async fn query(
        &mut self,
        service: SocketAddr,
        within: Duration,
    ) -> Result<Option<Result<PmMessage, String>>, Stop> {
        let socket = self.open(service.is_ipv6()).await?;
        let (own, connecting) = self.addresses(socket);
        let addresses = match (if service.is_ipv6() { own.ip() } else { connecting.ip() }, service.ip()) {
            (IpAddr::V4(connecting), IpAddr::V4(accepting)) => Addresses::V4 { connecting, accepting },
            (IpAddr::V6(connecting), IpAddr::V6(accepting)) => Addresses::V6 { connecting, accepting },
            _ => {
                let why = "the target's port mapper and the service have addresses of different families";
                return Err(self.recorder().harness(why));
            }
        };
        let pm_req = PmMessage {
            message_type: MessageType::PM_REQ,
            pm_time: PmTime::ONCE,
            ap_port: service.port(),
            cp_port: own.port(),
            assoc_handle: QUERY_HANDLES + self.sockets.len() as u64,
            addresses,
            mapped: None,
        };
        self.put(socket, &Message::new("PMReq", pm_req.to_raw().as_bytes().to_vec())).await?;
        let deadline = self.connections.link.now() + within;
        let Some((_, octets)) = self.receive(socket, deadline).await? else { return Ok(None) };
        let answer = match PmMessage::parse(&octets) {
            Ok(answer) if answer.assoc_handle == pm_req.assoc_handle => answer,
            Ok(answer) => return Ok(Some(Err(format!("{} with another AssocHandle", answer.message_type.name())))),
            Err(error) => return Ok(Some(Err(format!("a datagram that is not a port mapper message: {error}")))),
        };
        if answer.message_type == MessageType::PM_ACCEPT {
            let ack = PmMessage { message_type: MessageType::PM_ACK, pm_time: PmTime::ONCE, ..answer };
            self.put(socket, &Message::new("PMAck", ack.to_raw().as_bytes().to_vec())).await?;
        }
        Ok(Some(Ok(answer)))
    }

    /// Sends a Request from a new socket, and expects an answer. If the expectation has
    /// requirements, a missing answer violates them.
    pub(in crate::stage) async fn good_exchange(&mut self, expectation: &Expectation) -> Result<(), Stop> {
        const HANDLE: u64 = 0x600d_0000_0000_0000;
        let socket = self.open(false).await?;
        let (own, connecting) = self.addresses(socket);
        let handle = HANDLE + self.sockets.len() as u64;
        let mapped = self.connections.target.description.mapper.mapped;
        let pm_req = RawMessage {
            ver_mt_ipv: RawMessage::first_octet(0, MessageType::PM_REQ, 4),
            pm_time: 0,
            reserved: 0.into(),
            ap_port: mapped.port().into(),
            cp_port: own.port().into(),
            assoc_handle: handle.into(),
            cp_ip_addr: padded(connecting),
            ap_ip_addr: padded(mapped),
        };
        self.put(socket, &Message::new("PMReq", pm_req.as_bytes().to_vec())).await?;
        let is_judged = !expectation.requirements.is_empty();
        let expectation = Expectation { overdue_fails: is_judged, ..expectation.clone() };
        let wanted = MapperFields { handle: Some(handle), ..MapperFields::default() };
        let alive = self.connections.log.alive_before;
        let (_, octets) = self.expect(socket, &expectation, &wanted).await?;
        self.connections.log.alive_before = alive;
        if let Some(answer) = raw_message(&octets).filter(|answer| answer.mt() == MessageType::PM_ACCEPT) {
            let first = RawMessage::first_octet(0, MessageType::PM_ACK, 4);
            let ack = RawMessage { ver_mt_ipv: first, pm_time: 0, ..answer };
            self.put(socket, &Message::new("PMAck", ack.as_bytes().to_vec())).await?;
        }
        self.connections.log.alive();
        Ok(())
    }
}

/// Returns the 16-byte field of an IPv4 address.
pub(in crate::stage) fn padded(address: SocketAddr) -> [u8; 16] {
    let mut field = [0; 16];
    if let IpAddr::V4(address) = address.ip() {
        field[..4].copy_from_slice(&address.octets());
    }
    field
}
