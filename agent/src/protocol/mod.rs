//! The messages between a tester and an agent: a line of JSON for each [`Request`], answer
//! ([`Outcome`]) and [`Event`], in UTF-8, of at most [`LONGEST_LINE`] octets with its line feed.
//!
//! The tester speaks first: [`Action::Hello`] with the version and, where the agent wants one, the
//! token. Every request has a number of the tester's own and gets one answer with that number, in
//! the order of the requests. Between answers come events: what happened to a connection, a
//! completion, an asynchronous event of the device. Both have the agent's time.
//!
//! Objects have numbers that the agent gives. All that a control connection made ends with it.
//!
//! `request` has a tester's messages, `message` an agent's, `address` their addresses.
//!
//! Octets (`private_data`, `octets`) are hexadecimal. STags and addresses are numbers as the verbs
//! have them: what goes on the wire.

mod address;
mod message;
mod request;

use serde::{Deserialize, Serialize};

pub use address::{Address, NoAddress};
pub use message::{AgentMessage, Completion, Device, Done, Event, Failure, Outcome, What};
pub use request::{Access, Action, Operation, Parameters, Part, Request};

/// The version of this protocol. An agent answers no other.
pub const VERSION: u32 = 1;
/// Octets of a line, its line feed included.
pub const LONGEST_LINE: usize = 1 << 20;
/// Octets of the line of an event, its line feed included: private data of 512 octets, and the
/// longest names, take half of it.
pub const LONGEST_EVENT: usize = 4096;
/// Octets of memory that one request carries: twice as many digits have room in a line.
pub const MOST_OCTETS: usize = 1 << 18;

/// The number of an object, as an answer or event reported it.
pub type Object = u32;

/// Octets, as hexadecimal digits.
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
        octets.map(Octets).ok_or_else(|| serde::de::Error::custom("not hexadecimal digits, two for each byte"))
    }
}

/// Octets of [`Action::Fill`]: the `index`-th of a region filled with `seed`. Both sides can
/// compute it.
pub fn pattern(seed: u64, index: u64) -> u8 {
    // The middle octets of a product: neighbours differ, and no short row repeats.
    let mixed = (index ^ seed).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    mixed.to_be_bytes()[2]
}
