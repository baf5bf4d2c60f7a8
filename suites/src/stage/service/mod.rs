//! The tester's exchanges with the service of a target. Each service has a file.
//!
//! To add a service, write a file with its [`ServiceDriver`], and add a variant to [`Service`]. The
//! defaults of the trait are those of an iWARP service that echoes Sends.

mod agent;
mod echo;
mod none;
mod port_mapper;
mod rping;
mod sdp;

use std::future::Future;
use std::net::SocketAddr;
use std::pin::Pin;

use weft_peer::Settings;
use weft_peer::driver::initiate::echo_client;
use weft_peer::driver::{Link, LinkListener, VirtualLink};

pub(crate) use agent::Agent;
pub(crate) use echo::Echo;
pub(crate) use none::NoService;
pub(crate) use port_mapper::PortMapper;
pub(crate) use rping::Rping;
pub(crate) use sdp::Sdp;

use super::rdma::{AcceptedStartUp, Operation, RdmaSide, StartUpResult, TaggedBuffer};
use super::{Expectation, Stage, Stop};
use crate::model::Capability;
use crate::targets::{LOOPBACK, OpenError, Service, Start};

/// A step of the tester. The inner error is the reason why the step did not work. [`Stop`] ends the
/// case.
pub(crate) type Outcome<'s, T = ()> = Pin<Box<dyn Future<Output = Result<Result<T, String>, Stop>> + Send + 's>>;
/// A step that decides the case if it does not work.
pub(crate) type Decided<'s> = Pin<Box<dyn Future<Output = Result<(), Stop>> + Send + 's>>;
/// The work of a builtin client, until its server closes.
pub(crate) type Client = Pin<Box<dyn Future<Output = Result<(), Box<dyn std::error::Error + Send + Sync>>> + Send>>;

/// The protocol that a service speaks first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// MPA, with Sends, Writes and Reads.
    Iwarp,
    /// SDP, above MPA or before it.
    Sdp,
    /// Port mapper messages over UDP.
    PortMapper,
}

/// How the tester exercises a service, and how a builtin target offers the service.
pub(crate) trait ServiceDriver: Sync {
    /// The service's name in target files and reports.
    fn name(&self) -> &'static str;

    /// The capability of a target that offers the service.
    fn capability(&self) -> Option<Capability>;

    /// The protocol that the service speaks.
    fn protocol(&self) -> Protocol {
        Protocol::Iwarp
    }

    /// Description of the expected good exchange, for reports.
    fn good_exchange_text(&self) -> &'static str;

    /// Returns whether the service accepts SDP connections.
    fn accepts_sdp(&self) -> bool {
        false
    }

    /// Returns whether the good exchange reaches Full Operation, so that the target has sent FPDUs
    /// and may send more.
    fn operates(&self) -> bool {
        false
    }

    /// Returns whether the service has an exchange of messages that can replace a step that
    /// deviates.
    fn has_plain_exchange(&self) -> bool {
        true
    }

    /// Returns whether the tester sends FPDUs in the service's exchanges.
    fn has_fpdus(&self) -> bool {
        true
    }

    /// Does a good exchange, which is evidence for `expectation.shows`.
    fn good_exchange<'s>(&'s self, stage: &'s mut Stage, expectation: &'s Expectation) -> Decided<'s> {
        Box::pin(async move {
            let done = self.exchange(stage, expectation).await?;
            stage.conclude(done, self.good_exchange_text(), expectation).await
        })
    }

    /// Does the good exchange on a new connection, without closing it. Returns the connection.
    fn exchange<'s>(&'s self, stage: &'s mut Stage, expectation: &'s Expectation) -> Outcome<'s, u32> {
        Box::pin(async move {
            let number = stage.connect(expectation.at.as_ref()).await?;
            let done = stage.iwarp_exchange(number, expectation).await?;
            Ok(done.map(|()| number))
        })
    }

    /// Does one exchange of the service, after start-up by the tester.
    fn work<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        started: &'s StartUpResult,
        expectation: &'s Expectation,
    ) -> Outcome<'s> {
        let _ = (stage, number, started, expectation);
        Box::pin(std::future::ready(Ok(Ok(()))))
    }

    /// Does the exchange that reaches Full Operation, after start-up by the tester.
    fn operate<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        started: &'s StartUpResult,
        expectation: &'s Expectation,
    ) -> Outcome<'s, Operation> {
        let _ = (stage, number, started, expectation);
        Box::pin(std::future::ready(Ok(Err("neither echo nor rping runs above MPA".to_owned()))))
    }

    /// Returns whether a target that is Initiator sends the first Send. (MPA does not permit a
    /// Responder to send first.)
    fn opens_with_send(&self) -> bool {
        true
    }

    /// Returns the buffer that the first Send of an Initiator describes, if it describes one.
    ///
    /// # Errors
    /// The Send does not belong to this service.
    fn buffer_of(&self, first_send: &[u8]) -> Result<Option<TaggedBuffer>, String> {
        let _ = first_send;
        Ok(None)
    }

    /// Does one exchange of the service, after the first Send of an Initiator.
    fn serve<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        opened: &'s AcceptedStartUp,
        expectation: &'s Expectation,
    ) -> Outcome<'s> {
        Box::pin(async move { stage.rdma().echo_at(number, &opened.started, 1, expectation).await })
    }

    /// Does the plain exchanges of a control, which replace a step that deviates.
    fn plain_exchanges<'s>(&'s self, stage: &'s mut Stage, number: u32, expectation: &'s Expectation) -> Outcome<'s> {
        Box::pin(async move {
            for length in stage.control_lengths() {
                if let Err(why) = self.plain_exchange(stage, number, length, expectation).await? {
                    return Ok(Err(format!("in a plain exchange with a ULPDU of {length} bytes, {why}")));
                }
            }
            Ok(Ok(()))
        })
    }

    /// Sends one message and waits for its answer. The ULPDU has about `length` bytes and the same
    /// PAD.
    fn plain_exchange<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        length: u16,
        expectation: &'s Expectation,
    ) -> Outcome<'s> {
        let _ = (stage, number, length, expectation);
        Box::pin(std::future::ready(Ok(Ok(()))))
    }

    /// Creates a builtin target in process, which offers the service as Responder.
    ///
    /// # Errors
    /// The RNIC does not open.
    fn responder(&self, settings: Settings) -> Result<VirtualLink, OpenError> {
        Ok(VirtualLink::echo(settings))
    }

    /// Creates a builtin target in process, which uses the service as Initiator.
    ///
    /// # Errors
    /// The errors of [`responder`](Self::responder), or the private data do not fit into the
    /// Request.
    fn initiator(&self, settings: Settings) -> Result<VirtualLink, OpenError> {
        VirtualLink::echo_client(settings).map_err(|error| OpenError::Builtin(std::io::Error::other(error)))
    }

    /// Like [`initiator`](Self::initiator), over loopback TCP. Returns the link that the tester
    /// waits on, and what makes the Initiator connect.
    ///
    /// # Errors
    /// No port is free.
    fn initiator_over_tcp(&self, settings: Settings, service: Service) -> Result<(Link, Start), OpenError> {
        let failed = |error| OpenError::Listen { address: LOOPBACK, error };
        let listener = LinkListener::bind(LOOPBACK).map_err(failed)?;
        let link = Link::Accept(listener.link());
        Ok((link, Start::Builtin { settings: Box::new(settings), service, listener }))
    }

    /// Runs the builtin Initiator in real time.
    fn client(&self, address: SocketAddr, settings: Settings) -> Client {
        Box::pin(async move { echo_client(address, settings).await.map_err(Into::into) })
    }
}
