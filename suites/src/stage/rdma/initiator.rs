//! Start-up of the tester as Initiator, and FPDUs of the tester's exchanges.

use std::time::Duration;

use weft_core::wire::ddp::Segment;
use weft_core::wire::mpa::{Startup, StartupKind};
use weft_core::wire::rdmap::Opcode;

use super::{MARKERS_REQUESTED, RdmaSide, StartUpResult, crc_is_right, ulpdu};
use crate::correct::{self, Rtr, StartupFields};
use crate::stage::Message;
use crate::stage::{Arrival, Expectation, Stop};

impl RdmaSide<'_> {
    /// Sends a Request, and resets the connection. Returns the Reply, or what arrived instead.
    pub(in crate::stage) async fn probe(
        &mut self,
        number: u32,
        request: &StartupFields,
        within: Duration,
    ) -> Result<Result<Vec<u8>, String>, Stop> {
        let expectation = Expectation::preparation(within, None);
        self.connections.put(number, &Message::new("MPA Request", correct::startup(request)), None).await?;
        let reply = self.connections.startup_frame(number, &expectation, StartupKind::Reply).await?;
        self.connections.abort(number, None).await?;
        Ok(reply.map_err(|none| none.to_string()))
    }

    /// Does start-up: Request, Reply and, in the peer-to-peer model, the ready-to-receive message.
    pub(in crate::stage) async fn start_up(
        &mut self,
        number: u32,
        request: &Message,
        expectation: &Expectation,
    ) -> Result<Result<StartUpResult, String>, Stop> {
        self.connections.put(number, request, expectation.at.as_ref()).await?;
        self.finish_start_up(number, request, expectation).await
    }

    /// Like [`start_up`](Self::start_up), after the Request was sent.
    pub(in crate::stage) async fn finish_start_up(
        &mut self,
        number: u32,
        request: &Message,
        expectation: &Expectation,
    ) -> Result<Result<StartUpResult, String>, Stop> {
        let reply = match self.connections.startup_frame(number, expectation, StartupKind::Reply).await? {
            Ok(reply) => reply,
            Err(none) => return Ok(Err(format!("it {none} where its Reply was expected"))),
        };
        let frame = match Startup::parse(&reply) {
            Ok(frame) => frame,
            Err(error) => return Ok(Err(format!("its Reply is wrong: {error}"))),
        };
        if frame.reject {
            return Ok(Err("it rejected the connection".into()));
        }
        if frame.markers && !self.sends_markers() {
            return Ok(Err(MARKERS_REQUESTED.into()));
        }
        let requested = Startup::parse(&request.octets).ok();
        if requested.is_some_and(|requested| requested.enhanced.is_some()) && frame.enhanced.is_none() {
            return Ok(Err("its Reply to an enhanced Request is not enhanced".into()));
        }
        let crc = frame.crc || requested.is_some_and(|requested| requested.crc);
        let ird = frame.enhanced.map(|words| words.ird);
        let mut started = StartUpResult { crc, markers: frame.markers, rtr: None, ird };
        if let Some(agreed) = frame.enhanced.filter(|agreed| agreed.peer_to_peer) {
            let Some((kind, ulpdu)) = correct::ready_to_receive(&agreed) else {
                return Ok(Err("its Reply agrees to no ready-to-receive message".into()));
            };
            self.wait_until_settled(number, expectation).await?;
            self.send_ulpdu(number, &format!("ready to receive ({kind:?})"), &ulpdu, &started, expectation).await?;
            started.rtr = Some(kind);
        }
        Ok(Ok(started))
    }

    /// Returns whether the tester's own exchanges have markers if the target requests them. They
    /// have markers only in cases about markers, because scripts place their own markers. If the
    /// service above MPA is unknown, no exchange has FPDUs.
    pub(in crate::stage) fn sends_markers(&self) -> bool {
        self.connections.target.options.requests_markers || !self.connections.target.service().driver().has_fpdus()
    }

    /// Waits `settle_ms`. Some implementations do not process bytes that arrive immediately after
    /// their Reply until more bytes arrive. Returns false if something arrived during the wait.
    pub(in crate::stage) async fn wait_until_settled(
        &mut self,
        number: u32,
        expectation: &Expectation,
    ) -> Result<bool, Stop> {
        let settled = self.connections.link.now() + self.connections.target.options.settle_time;
        Ok(self.connections.receive(number, settled, expectation.at.as_ref()).await? == Arrival::TimedOut)
    }

    /// Sends the first Send of a connection. Returns its MSN, which is 2 after a ready-to-receive
    /// Send (RFC 5040 section 5.3).
    pub(in crate::stage) async fn first_send(
        &mut self,
        number: u32,
        started: &StartUpResult,
        payload: &[u8],
        expectation: &Expectation,
    ) -> Result<Result<u32, String>, Stop> {
        if started.rtr.is_none() && !self.wait_until_settled(number, expectation).await? {
            return Ok(Err("it did not wait for the first FPDU after its Reply".into()));
        }
        let msn = if started.rtr == Some(Rtr::Send) { 2 } else { 1 };
        self.send_ulpdu(number, "Send", &correct::send(msn, payload), started, expectation).await?;
        Ok(Ok(msn))
    }

    /// Sends a correct FPDU, with markers if the target requested them.
    pub(in crate::stage) async fn send_ulpdu(
        &mut self,
        number: u32,
        name: &str,
        ulpdu: &[u8],
        started: &StartUpResult,
        expectation: &Expectation,
    ) -> Result<(), Stop> {
        let at = expectation.at.as_ref();
        let octets = match started.markers {
            true => correct::fpdu_with_markers(self.connections.position(number, at)?, ulpdu, started.crc),
            false => correct::fpdu(ulpdu, started.crc),
        };
        let message = Message::new(format!("FPDU with {name}"), octets);
        self.connections.put(number, &message, at).await
    }

    /// Waits for the target's next FPDU, and skips the answer to a ready-to-receive Read. `due`
    /// names the expected FPDU in errors.
    pub(in crate::stage) async fn answer(
        &mut self,
        number: u32,
        started: &StartUpResult,
        due: &str,
        expectation: &Expectation,
    ) -> Result<Result<Vec<u8>, String>, Stop> {
        let deadline = self.connections.link.now() + expectation.within;
        loop {
            match self.connections.fpdu(number, deadline, expectation.at.as_ref()).await? {
                Ok(fpdu) if started.rtr == Some(Rtr::Read) && is_empty_response(&fpdu) => {}
                Ok(fpdu) if started.crc && !crc_is_right(&fpdu) => {
                    return Ok(Err("the CRC of its FPDU is wrong".into()));
                }
                Ok(fpdu) => return Ok(Ok(fpdu)),
                Err(none) => return Ok(Err(format!("it {none} where {due} was expected"))),
            }
        }
    }
}

fn is_empty_response(fpdu: &[u8]) -> bool {
    Segment::parse(ulpdu(fpdu)).is_ok_and(|segment| {
        segment.ulp_control().opcode() == Opcode::READ_RESPONSE
            && matches!(segment, Segment::Tagged(_, payload) if payload.is_empty())
    })
}
