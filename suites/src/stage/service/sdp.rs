//! The drivers of SDP sockets. The good exchange consists of a HelloAck, the socket's reaction to
//! Data, and a graceful close.

use weft_peer::Settings;
use weft_peer::driver::VirtualLink;
use weft_peer::sdp::Role;
use weft_peer::service::SdpUser;

use super::{Expectation, Outcome, Protocol, ServiceDriver, ServiceFacts, Stage};
use crate::model::Capability;
use crate::targets::{OpenError, sdp_link};

/// One kind of SDP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Sdp {
    name: &'static str,
    capability: Capability,
    /// The user of the socket.
    pub(in crate::stage) user: SdpUser,
    /// The target's role: connecting or accepting.
    pub(in crate::stage) role: Role,
}

impl Sdp {
    pub(crate) const CONNECT: Sdp =
        Sdp { name: "sdp-connect", capability: Capability::SdpConnect, user: SdpUser::Drive, role: Role::Connecting };
    pub(crate) const DRIVE: Sdp =
        Sdp { name: "sdp-drive", capability: Capability::SdpDrive, user: SdpUser::Drive, role: Role::Accepting };
    pub(crate) const ECHO: Sdp =
        Sdp { name: "sdp-echo", capability: Capability::SdpEcho, user: SdpUser::Echo, role: Role::Accepting };
    pub(crate) const SINK: Sdp =
        Sdp { name: "sdp-sink", capability: Capability::SdpSink, user: SdpUser::Sink, role: Role::Accepting };
    pub(crate) const SOURCE: Sdp =
        Sdp { name: "sdp-source", capability: Capability::SdpSource, user: SdpUser::Source, role: Role::Accepting };
}

impl ServiceDriver for Sdp {
    fn facts(&self) -> ServiceFacts {
        let text = "a good exchange: a HelloAck, the exchange of the service, and a graceful close";
        ServiceFacts {
            protocol: Protocol::Sdp,
            accepts_sdp: self.role == Role::Accepting,
            has_plain_exchange: matches!(self.user, SdpUser::Drive | SdpUser::Echo),
            ..ServiceFacts::new(self.name, Some(self.capability), text)
        }
    }

    fn exchange<'s>(&'s self, stage: &'s mut Stage, expectation: &'s Expectation) -> Outcome<'s, u32> {
        Box::pin(async move {
            let number = stage.connect().await?;
            stage.sdp(number).exchange(self, expectation).await?;
            Ok(number)
        })
    }

    fn plain_exchange<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        length: u16,
        expectation: &'s Expectation,
    ) -> Outcome<'s> {
        Box::pin(async move {
            stage.sdp(number).plain_exchange(self.user == SdpUser::Echo, usize::from(length), expectation).await
        })
    }

    fn responder(&self, settings: Settings) -> Result<VirtualLink, OpenError> {
        sdp_link(self.user, self.role, &settings)
    }

    /// Creates the same socket as [`responder`](Self::responder), because the service determines
    /// whether the socket connects.
    fn initiator(&self, settings: Settings) -> Result<VirtualLink, OpenError> {
        self.responder(settings)
    }
}
