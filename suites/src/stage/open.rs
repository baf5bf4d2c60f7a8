//! Steps that open a new connection: start-up with SDP, and probes.

use std::time::Duration;

use weft_core::wire::sdp::FieldOrder;

use super::sdp::{Behaviour, HelloAck};
use super::{Attempt, Expectation, Stage, Stop};
use crate::correct::StartupFields;
use crate::sdp::ReceivedMessage;
use crate::stage::Message;
use crate::targets::SdpStart;

impl Stage {
    /// Connects, sends `hello`, and follows the start-up profile until HelloAck arrives.
    pub(crate) async fn open_sdp(
        &mut self,
        hello: &Message,
        profile: SdpStart,
        expectation: &Expectation,
    ) -> Result<(u32, HelloAck), Stop> {
        let number = self.connect().await?;
        Ok((number, self.sdp(number).open(hello, profile, expectation).await?))
    }

    /// Waits for the Hello of a target that connects. The tester then becomes MPA Initiator, waits
    /// for the time `hold`, and answers with this HelloAck. If bytes or a close arrive during
    /// `hold`, the expectation is not met. If there is a `port`, waits for the target to resume a
    /// suspended connection at this port. Returns the Hello.
    pub(crate) async fn accept_sdp(
        &mut self,
        hello_ack: &Message,
        (hold, port): (Duration, Option<u16>),
        expectation: &Expectation,
    ) -> Result<(u32, Box<ReceivedMessage>), Stop> {
        let number = match port {
            None => self.connect().await?,
            Some(port) => self.connections.await_reconnection(port, expectation).await?,
        };
        Ok((number, self.sdp(number).answer_hello(hello_ack, hold, expectation).await?))
    }

    /// Connects and sends a Hello, with the MPA frames of the profile. Does not wait for an answer.
    pub(crate) async fn send_hello(&mut self, hello: &Message, profile: SdpStart) -> Result<u32, Stop> {
        let number = self.connect().await?;
        self.sdp(number).send_hello(hello, profile).await?;
        Ok(number)
    }

    /// Connects, and starts SDP in this profile. Returns the HelloAck, or what arrived instead.
    pub(crate) async fn probe_sdp_start(
        &mut self,
        profile: SdpStart,
        order: FieldOrder,
        within: Duration,
    ) -> Attempt<HelloAck> {
        let number = self.connect().await?;
        self.sdp(number).probe_hello(profile, order, within).await
    }

    /// Connects, starts SDP in this profile, sends a few bytes, and closes the connection. Returns
    /// what the socket did. `times` are the wait for a socket that sends first, and the wait for an
    /// answer.
    pub(crate) async fn probe_sdp(
        &mut self,
        profile: SdpStart,
        order: FieldOrder,
        times: (Duration, Duration),
    ) -> Attempt<Behaviour> {
        let number = self.connect().await?;
        self.sdp(number).probe(profile, order, times).await
    }

    /// Sends a Request on a new connection. Returns the Reply, or what arrived instead.
    pub(crate) async fn probe_mpa(&mut self, request: &StartupFields, within: Duration) -> Attempt<Vec<u8>> {
        let number = self.connect().await?;
        self.rdma(number).probe(request, within).await
    }

    /// Returns whether a server of rping accepts a Write of one byte after the end of the buffer
    /// that the target file describes. `within` is the time for each answer.
    pub(crate) async fn probe_rping_buffer(&mut self, within: Duration) -> Attempt<bool> {
        let number = self.connect().await?;
        self.rdma(number).takes_byte_after_buffer(within).await
    }

    /// Waits for the Request of the target's next connection.
    pub(crate) async fn request_of_target(&mut self) -> Result<Vec<u8>, Stop> {
        let number = self.connect().await?;
        self.rdma(number).await_request().await
    }
}
