//! The first bytes of a connection from a port mapper's client: SDP, or streaming mode without SDP.

use weft_core::wire::mpa::startup::{REPLY_KEY, REQUEST_KEY};
use weft_core::wire::sdp::{FieldOrder, Mid};

use super::{HELLO_LEN, SdpSide};
use crate::sdp::ReceivedMessage;
use crate::stage::{Arrival, Expectation, Stop, describe};

impl SdpSide<'_> {
    /// Expects that the connection begins with SDP: with a Hello, or with a start-up frame of MPA.
    pub(crate) async fn expect_start(&mut self, expectation: &Expectation) -> Result<(), Stop> {
        let expected = "a Hello";
        let octets = self.first_octets(expectation).await?;
        if octets.is_empty() {
            return Err(self.recorder().timed_out(expectation, expected));
        }
        if !begins_sdp(&octets) {
            return Err(self.recorder().wrong(expectation, expected, &describe::stream(&octets)));
        }
        self.recorder().met(expectation, expected, "SDP's start-up");
        Ok(())
    }

    /// Expects streaming mode without SDP: the first bytes, if any arrive, are neither a Hello nor
    /// a start-up frame of MPA.
    pub(crate) async fn expect_no_start(&mut self, expectation: &Expectation) -> Result<(), Stop> {
        let octets = self.first_octets(expectation).await?;
        let expected = "the target does not start SDP, but it may send bytes of its user";
        if begins_sdp(&octets) {
            return Err(self.recorder().wrong(expectation, expected, "SDP's start-up"));
        }
        self.recorder().met(expectation, expected, &format!("{} bytes that are not a Hello", octets.len()));
        Ok(())
    }

    /// Returns the first bytes of a connection: at least as many bytes as a Hello has. If the time
    /// is over or the stream ends earlier, returns fewer bytes.
    pub(in crate::stage) async fn first_octets(&mut self, expectation: &Expectation) -> Result<Vec<u8>, Stop> {
        let deadline = self.connections.link.now() + expectation.within;
        while self.connections.get(self.number)?.unread.len() < HELLO_LEN {
            if self.connections.receive(self.number, deadline).await? != Arrival::Octets {
                break;
            }
        }
        Ok(std::mem::take(&mut self.connections.get(self.number)?.unread))
    }
}

/// Returns whether these bytes begin a connection with SDP.
fn begins_sdp(octets: &[u8]) -> bool {
    let hello = octets.get(..HELLO_LEN).is_some_and(|hello| {
        let order = FieldOrder::of_hello(hello).unwrap_or_default();
        FieldOrder::of_hello(hello).is_some()
            && ReceivedMessage::read(hello, order).is_some_and(|received| received.mid == Mid::HELLO)
    });
    hello || octets.starts_with(&REQUEST_KEY) || octets.starts_with(&REPLY_KEY)
}
