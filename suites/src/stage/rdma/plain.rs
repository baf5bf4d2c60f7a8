//! Parts that the plain exchanges of all services share.

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::Opcode;

use super::{Progress, RdmaSide, StartUpResult, ulpdu};
use crate::stage::{Expectation, Stop, describe};

impl RdmaSide<'_> {
    /// Returns the state of a connection, so that a plain exchange can continue there.
    pub(in crate::stage) fn progress(
        &mut self,
        number: u32,
        expectation: &Expectation,
    ) -> Result<(StartUpResult, Progress), Stop> {
        let progress = self.connections.get(number, expectation.at.as_ref())?.progress;
        Ok((StartUpResult { crc: progress.crc, markers: progress.markers, rtr: None, ird: None }, progress))
    }

    /// Waits for the target's next message, and returns its payload.
    pub(in crate::stage) async fn collect(
        &mut self,
        number: u32,
        started: &StartUpResult,
        due: &str,
        expectation: &Expectation,
    ) -> Result<Result<Vec<u8>, String>, Stop> {
        let mut message = Vec::new();
        loop {
            let fpdu = match self.answer(number, started, due, expectation).await? {
                Ok(fpdu) => fpdu,
                Err(why) => return Ok(Err(why)),
            };
            let segment = Segment::parse(ulpdu(&fpdu)).ok();
            let is_message = |segment: &Segment<'_>| segment.ulp_control().opcode() != Opcode::TERMINATE;
            let Some(segment) = segment.filter(is_message) else {
                return Ok(Err(format!("it sent {} where {due} was expected", describe::stream(&fpdu))));
            };
            let (Segment::Tagged(_, payload) | Segment::Untagged(_, payload)) = segment;
            message.extend_from_slice(payload);
            if segment.control().last() {
                return Ok(Ok(message));
            }
        }
    }

    /// Checks that the MSN of the target's first Send is 1 (DDP-4.3-7).
    pub(in crate::stage) fn check_first_msn(&mut self, number: u32) -> Result<(), String> {
        match self.connections.get(number, None).ok().and_then(|conn| conn.progress.first_msn) {
            None | Some(1) => Ok(()),
            Some(msn) => Err(format!("the MSN of its first Send is {msn}")),
        }
    }
}
