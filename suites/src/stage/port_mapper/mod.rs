//! The exchanges with a target that is a port mapper (`server`), or a client of a port mapper
//! (`client`).

pub(super) mod client;
pub(super) mod server;

use weft_core::wire::portmap::{Message as PmMessage, RawMessage};
use zerocopy::FromBytes;

use super::{Connections, Expectation, Message, Stop};
use crate::model::{Direction, Octets, StepKind};

/// Returns the fields of a datagram, or `None` if it is too short.
fn raw_message(octets: &[u8]) -> Option<RawMessage> {
    RawMessage::read_from_prefix(octets).ok().map(|(raw, _)| raw)
}

fn name(octets: &[u8]) -> &'static str {
    PmMessage::parse(octets).map_or("not a port mapper message", |message| message.message_type.name())
}

impl Connections {
    /// Records a datagram that the tester sent.
    fn sent_datagram(&mut self, message: &Message) {
        self.datagram(Direction::Sent, &message.name, &message.octets);
    }

    /// Records a datagram that the target sent.
    fn received_datagram(&mut self, octets: &[u8]) {
        self.has_responded = true;
        self.log.answered();
        self.datagram(Direction::Received, name(octets), octets);
    }

    fn datagram(&mut self, direction: Direction, name: &str, octets: &[u8]) {
        let text = format!("datagram: {name}");
        self.recorder().step(0, direction, StepKind::Octets, text, Some(Octets::new(octets)));
    }

    /// Judges a received datagram. `miss` describes the first wrong field of the datagram.
    fn judge_datagram(
        &mut self,
        octets: &[u8],
        expectation: &Expectation,
        expected: &str,
        miss: impl FnOnce(&RawMessage) -> Option<String>,
    ) -> Result<(), Stop> {
        let Some(raw) = raw_message(octets) else {
            return Err(self.recorder().wrong(expectation, expected, &format!("{} bytes", octets.len())));
        };
        if let Some(what) = miss(&raw) {
            return Err(self.recorder().wrong(expectation, expected, &format!("{}{what}", raw.mt().name())));
        }
        self.recorder().met(expectation, expected, raw.mt().name());
        Ok(())
    }
}
