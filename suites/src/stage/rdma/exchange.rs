//! Messages of the tester's own exchanges with a target, after start-up.

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::Opcode;

use super::{StartUpResult, crc_is_right, ulpdu};
use crate::correct::{self, Rtr};
use crate::stage::{Attempt, Connections, Expectation, Message, StepFailure, Stop, describe};

/// An exchange on one connection, after start-up.
pub(crate) struct Exchange<'a> {
    pub(in crate::stage) connections: &'a mut Connections,
    pub(in crate::stage) number: u32,
    pub(in crate::stage) started: StartUpResult,
    pub(in crate::stage) expectation: &'a Expectation,
}

impl Exchange<'_> {
    /// Sends the first Send of a connection. Returns its MSN, which is 2 after a ready-to-receive
    /// Send (RFC 5040 section 5.3).
    pub(in crate::stage) async fn first_send(&mut self, payload: &[u8]) -> Attempt<u32> {
        if self.started.rtr.is_none() && !self.connections.rdma(self.number).wait_until_settled().await? {
            return Err("after its Reply, it did not wait for the tester's first FPDU".into());
        }
        let msn = if self.started.rtr == Some(Rtr::Send) { 2 } else { 1 };
        self.send("Send", &correct::send(msn, payload)).await?;
        Ok(msn)
    }

    /// Sends a correct FPDU.
    pub(in crate::stage) async fn send(&mut self, name: &str, ulpdu: &[u8]) -> Result<(), Stop> {
        let octets = correct::fpdu(ulpdu, self.started.crc);
        self.connections.put(self.number, &Message::new(format!("FPDU with {name}"), octets)).await
    }

    /// Waits for the target's next FPDU, and skips the answer to a ready-to-receive Read. `due`
    /// names the expected FPDU in errors.
    pub(in crate::stage) async fn answer(&mut self, due: &str) -> Attempt<Vec<u8>> {
        let deadline = self.connections.link.now() + self.expectation.within;
        loop {
            match self.connections.fpdu(self.number, deadline).await? {
                Ok(fpdu) if self.started.rtr == Some(Rtr::Read) && is_empty_response(&fpdu) => {}
                Ok(fpdu) if self.started.crc && !crc_is_right(&fpdu) => {
                    return Err("the CRC of its FPDU is wrong".into());
                }
                Ok(fpdu) => return Ok(fpdu),
                Err(none) => return Err(format!("it {none} when {due} was expected").into()),
            }
        }
    }

    /// Waits for the target's next message, and returns its payload.
    pub(in crate::stage) async fn collect(&mut self, due: &str) -> Attempt<Vec<u8>> {
        let mut message = Vec::new();
        loop {
            let fpdu = self.answer(due).await?;
            let segment = Segment::parse(ulpdu(&fpdu)).ok();
            let is_message = |segment: &Segment<'_>| segment.ulp_control().opcode() != Opcode::TERMINATE;
            let Some(segment) = segment.filter(is_message) else { return Err(unexpected(&fpdu, due)) };
            let (Segment::Tagged(_, payload) | Segment::Untagged(_, payload)) = segment;
            message.extend_from_slice(payload);
            if segment.control().last() {
                return Ok(message);
            }
        }
    }
}

/// Describes an FPDU that arrived instead of the expected FPDU.
pub(in crate::stage) fn unexpected(fpdu: &[u8], due: &str) -> StepFailure {
    format!("it sent {} when {due} was expected", describe::stream(fpdu)).into()
}

fn is_empty_response(fpdu: &[u8]) -> bool {
    Segment::parse(ulpdu(fpdu)).is_ok_and(|segment| {
        segment.ulp_control().opcode() == Opcode::READ_RESPONSE
            && matches!(segment, Segment::Tagged(_, payload) if payload.is_empty())
    })
}
