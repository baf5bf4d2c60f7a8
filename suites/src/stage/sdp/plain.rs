//! The plain exchange of a control with an SDP service: Data to the service, and the service's
//! answer.

use weft_core::wire::sdp::Mid;

use super::SdpSide;
use super::SendFields;
use super::correct_exchange::{COMMAND, COMMANDED};
use crate::sdp::BSDH_LEN;
use crate::stage::deviation::{UNTAGGED, pattern, payload_len};
use crate::stage::{Attempt, Expectation, Message, Stop};

/// Messages that may still be in flight from earlier steps.
const UNDER_WAY: [Mid; 4] = [Mid::CH_RCV_BUF, Mid::MODE_CHANGE, Mid::RDMA_RD_COMPL, Mid::SINK_AVAIL];

impl SdpSide<'_> {
    /// Sends Data, and waits for the answer. The ULPDU has about `length` bytes. Its PAD has the
    /// same length as the PAD of a ULPDU with exactly `length` bytes.
    pub(in crate::stage) async fn plain_exchange(
        &mut self,
        is_echo: bool,
        length: usize,
        expectation: &Expectation,
    ) -> Attempt {
        let mut payload = pattern(room(length, if is_echo { 1 } else { COMMAND.len() }));
        let due = if is_echo { payload.len() } else { COMMANDED };
        if !is_echo {
            // Fill the space between the command and the end of its line with blanks.
            let (command, end) = COMMAND.split_at(COMMAND.len() - 1);
            let last = payload.len() - end.len();
            payload.fill(b' ');
            payload[..command.len()].copy_from_slice(command);
            payload[last..].copy_from_slice(end);
        }
        self.send(&Message::data(&payload), SendFields::default()).await?;
        match self.collect(expectation, due, &UNDER_WAY).await {
            Ok(echo) if is_echo && echo != payload => Err("it answered Data with different bytes".into()),
            Ok(_) => Ok(()),
            Err(Stop) => {
                let found = self.connections.log.decision.as_ref().and_then(|decision| decision.actual.clone());
                let found = found.unwrap_or_else(|| "nothing arrived".to_owned());
                Err(format!("the answer to Data is missing: {found}").into())
            }
        }
    }
}

/// Returns the payload length for a ULPDU of `length` bytes. If this payload is shorter than
/// `least` bytes, returns the payload length for a longer ULPDU with the same PAD.
fn room(length: usize, least: usize) -> usize {
    let mut room = payload_len(length, UNTAGGED + BSDH_LEN);
    while room < least {
        room += 4;
    }
    room
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn data_has_room_for_a_command_and_the_same_pad() {
        for length in 0..200 {
            let (room, ulpdu) = (room(length, 7), |room| room + UNTAGGED + BSDH_LEN);
            assert!(room >= 7 && ulpdu(room) % 4 == length % 4 && ulpdu(room) >= length, "{length}: {room}");
        }
        // This is Data with three bytes of payload.
        assert_eq!(room(37, 1), 3);
    }
}
