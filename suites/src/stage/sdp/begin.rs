//! The first bytes of a connection from a port mapper's client: SDP, or streaming mode without SDP.

use weft_core::wire::mpa::startup::{REPLY_KEY, REQUEST_KEY};
use weft_core::wire::sdp::{FieldOrder, Mid};

use super::SdpSide;
use crate::sdp::ReceivedMessage;
use crate::stage::{Arrival, Expectation, Stop, describe};

/// Length of a Hello in bytes.
const HELLO_LEN: usize = 32;

impl SdpSide<'_> {
    /// Expects that the connection begins with SDP: with a Hello, or with a start-up frame of MPA.
    pub(crate) async fn expect_start(&mut self, number: u32, expectation: &Expectation) -> Result<(), Stop> {
        let expected = "a Hello";
        let octets = self.first_octets(number, expectation).await?;
        if octets.is_empty() {
            let text = self.recorder().silence(number, expectation);
            return Err(self.recorder().overdue(expectation, expected, &text));
        }
        if !begins_sdp(&octets) {
            self.recorder().mark_wrong(number);
            let actual = format!("it sent {}", describe::stream(&octets));
            return Err(self.recorder().unmet(expectation, expected, &actual));
        }
        self.recorder().met(number, expectation, expected, "SDP's start-up");
        Ok(())
    }

    /// Expects streaming mode without SDP: the first bytes, if any arrive, are neither a Hello nor
    /// a start-up frame of MPA.
    pub(crate) async fn expect_no_start(&mut self, number: u32, expectation: &Expectation) -> Result<(), Stop> {
        let octets = self.first_octets(number, expectation).await?;
        let expected = "bytes of the user, without a Hello";
        if begins_sdp(&octets) {
            self.recorder().mark_wrong(number);
            return Err(self.recorder().unmet(expectation, expected, "it sent SDP's start-up"));
        }
        self.recorder().met(number, expectation, expected, &format!("{} bytes that are not a Hello", octets.len()));
        Ok(())
    }

    /// Returns the first bytes of a connection: enough to recognise a Hello, or what arrived until
    /// the time was over or the stream ended.
    pub(in crate::stage) async fn first_octets(
        &mut self,
        number: u32,
        expectation: &Expectation,
    ) -> Result<Vec<u8>, Stop> {
        let deadline = self.connections.link.now() + expectation.within;
        let at = expectation.at.as_ref();
        while self.connections.get(number, at)?.unread.len() < HELLO_LEN {
            if self.connections.receive(number, deadline, at).await? != Arrival::Octets {
                break;
            }
        }
        Ok(std::mem::take(&mut self.connections.get(number, at)?.unread))
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
