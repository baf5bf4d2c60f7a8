//! The good exchange with a client of a port mapper. The tester answers with one of its own
//! addresses. The target acknowledges the answer, and connects to the address.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use weft_core::RequirementId;
use weft_core::wire::portmap::{MessageType, RawMessage};
use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::{Answer, Datagram, DatagramFields, MapperClientSide};
use crate::stage::Message;
use crate::stage::port_mapper::server::{MapperFields, padded};
use crate::stage::{Expectation, Stop};

/// Number of the service that good exchanges use.
const GOOD: u32 = 0;

impl MapperClientSide<'_> {
    /// Does the good exchange: the target requests a service, and acknowledges the tester's
    /// PMAccept. If the target is of a kind that then connects to the address in the PMAccept, the
    /// exchange also waits for this connection.
    pub(in crate::stage) async fn good_exchange(
        &mut self,
        shows: Vec<RequirementId>,
        within: Duration,
    ) -> Result<(), Stop> {
        let alive = self.connections.log.alive_before;
        let v6 = self.connections.link.mapper_address(false).is_ipv6();
        let service = self.service(GOOD, v6)?;
        let address = self.address(v6, false, true)?;
        // Datagrams from before the start are not part of the exchange.
        self.state.datagrams.clear();
        self.start(service).await?;
        let preparation = Expectation::preparation(within);
        let deadline = self.connections.link.now() + within;
        let pm_req = loop {
            match self.state.datagrams.pop_front() {
                Some(datagram) if datagram.asks_for(service) => break datagram,
                Some(_) => {}
                None if self.receive(deadline).await? => {}
                None => return Err(self.recorder().undecided(&preparation, "a PMReq", "it sends no PMReq")),
            }
        };
        let accept = accepting(&pm_req.octets, address);
        let handle = pm_req.message().map(|raw| raw.assoc_handle.get());
        let (answer, since) = (accept.octets.clone(), self.connections.link.now());
        self.state.answers.push(Answer { request: pm_req.octets, answer, other_port: false, since, again: 0 });
        self.put(&accept, pm_req.from, false).await?;
        let ack = DatagramFields {
            message: MapperFields { message_type: Some(MessageType::PM_ACK), handle, ..MapperFields::default() },
            past: Some(MessageType::PM_REQ),
            ..DatagramFields::default()
        };
        self.expect(&Expectation { shows, ..preparation.clone() }, &ack).await?;
        while self.connections.target.connects() {
            match self.state.connections.pop_front() {
                Some((to, number)) if to == address => {
                    self.connections.close(number).await?;
                    break;
                }
                Some(_) => {}
                None if self.receive(deadline).await? => {}
                None => {
                    let expected = format!("a TCP connection to {address}");
                    return Err(self.recorder().undecided(&preparation, &expected, "it does not connect"));
                }
            }
        }
        self.connections.log.alive_before = alive;
        self.connections.log.alive();
        Ok(())
    }
}

impl Datagram {
    /// Returns whether the datagram is a PMReq for this service.
    fn asks_for(&self, service: SocketAddr) -> bool {
        self.message().is_some_and(|raw| raw.mt() == MessageType::PM_REQ && raw.ap_port.get() == service.port())
    }
}

/// Returns a correct PMAccept for one connection. `request` is the received PMReq, which may be
/// wrong.
fn accepting(request: &[u8], address: SocketAddr) -> Message {
    let mut octets = request.to_vec();
    octets.resize(RawMessage::LEN, 0);
    let mut raw = RawMessage::read_from_bytes(&octets).unwrap_or_else(|_| RawMessage::new_zeroed());
    raw.ver_mt_ipv = RawMessage::first_octet(0, MessageType::PM_ACCEPT, raw.ipv());
    (raw.pm_time, raw.reserved, raw.ap_port) = (0, 0.into(), address.port().into());
    raw.ap_ip_addr = match address.ip() {
        IpAddr::V4(_) => padded(address),
        IpAddr::V6(ip) => ip.octets(),
    };
    Message::new("PMAccept", raw.as_bytes().to_vec())
}
