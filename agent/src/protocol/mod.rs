//! The messages between a tester and an agent. Each [`Request`], answer ([`Outcome`]) and [`Event`]
//! is one line of JSON in UTF-8. A line has at most [`LONGEST_LINE`] bytes, including its line
//! feed.
//!
//! The first request is [`Action::Hello`], with the version of the protocol. If the agent requires
//! a token, this request also contains the token. The tester numbers its requests. The agent
//! answers each request once, with the same number, in the order of the requests. Between answers,
//! the agent sends events: changes of a connection, completions, and asynchronous events of the
//! device. Answers and events contain the agent's time.
//!
//! The agent gives each object a number. When a control connection closes, the agent destroys all
//! objects that this connection created.
//!
//! The module `request` has the messages of a tester. The module `message` has the messages of an
//! agent. The module `address` has the addresses in these messages.
//!
//! Bytes (`private_data`, `octets`) are hexadecimal digits. STags and addresses in memory are
//! numbers. They have the same values in the verbs and on the wire.

mod address;
mod message;
mod request;

use serde::{Deserialize, Serialize};

pub use address::{Address, InvalidAddress};
pub use message::{AgentMessage, Completion, Device, Event, Failure, MessageContent, Outcome, Success};
pub use request::{Access, Action, Operation, Parameters, Part, Request};

/// The version of this protocol. An agent refuses any other version.
pub const VERSION: u32 = 1;
/// Maximum length of a line in bytes, including its line feed.
pub const LONGEST_LINE: usize = 1 << 20;
/// Maximum length of an event's line in bytes, including its line feed. An event with 512 bytes of
/// private data and the longest names needs half of this length.
pub const LONGEST_EVENT: usize = 4096;
/// Maximum number of bytes of memory that one [`Action::Get`] can read. The answer has two
/// hexadecimal digits for each byte, so it fits in a line.
pub const MAX_TRANSFER_OCTETS: usize = 1 << 18;

/// Number of an object, as an answer or event reported it.
pub type Object = u32;

/// Bytes, transferred as hexadecimal digits.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Octets(pub Vec<u8>);

impl std::fmt::Debug for Octets {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|octet| write!(f, "{octet:02x}"))
    }
}

impl Serialize for Octets {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{self:?}"))
    }
}

impl<'de> Deserialize<'de> for Octets {
    fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let digits = std::borrow::Cow::<'de, str>::deserialize(deserializer)?;
        let value = |digit: u8| char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok());
        let octets = digits.as_bytes().chunks(2).map(|pair| match *pair {
            [high, low] => Some(value(high)? << 4 | value(low)?),
            _ => None,
        });
        let octets: Option<Vec<u8>> = octets.collect();
        octets.map(Octets).ok_or_else(|| serde::de::Error::custom("expected two hexadecimal digits for each byte"))
    }
}

/// Returns the byte at `index` of a region that [`Action::Fill`] filled with `seed`. Both the
/// tester and the agent can compute this byte.
pub fn pattern(seed: u64, index: u64) -> u8 {
    // Use a byte from the upper part of the product. Then adjacent bytes differ, and no short
    // sequence repeats.
    let mixed = (index ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_be_bytes()[2]
}
