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

use super::rdma::{Exchange, Operation, RdmaSide, TaggedBuffer};
use super::{Attempt, Expectation, Stage, StepFailure, Stop};
use crate::model::Capability;
use crate::targets::{LOOPBACK, OpenError, Service, Start};

/// The future of a step of the tester.
pub(crate) type Outcome<'s, T = ()> = Pin<Box<dyn Future<Output = Attempt<T>> + Send + 's>>;
/// The future of a step. If the step does not work, it decides the case.
pub(crate) type Decided<'s> = Pin<Box<dyn Future<Output = Result<(), Stop>> + Send + 's>>;
/// The work of a builtin client, until its server closes.
pub(crate) type Client = Pin<Box<dyn Future<Output = Result<(), Box<dyn std::error::Error + Send + Sync>>> + Send>>;

/// The protocol that a service speaks first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// MPA, with Sends, Writes and Reads.
    Iwarp,
    /// SDP. The start-up profile determines when MPA starts.
    Sdp,
    /// Port mapper messages over UDP.
    PortMapper,
}

/// The properties of a service.
#[derive(Debug, Clone, Copy)]
pub(crate) struct ServiceFacts {
    /// The service's name in target files and reports.
    pub(crate) name: &'static str,
    /// The capability of a target that offers the service.
    pub(crate) capability: Option<Capability>,
    /// The protocol that the service speaks.
    pub(crate) protocol: Protocol,
    /// Description of the expected good exchange, for reports.
    pub(crate) good_exchange: &'static str,
    /// Whether the service accepts SDP connections.
    pub(crate) accepts_sdp: bool,
    /// Whether the good exchange reaches Full Operation, so that the target has sent FPDUs and may
    /// send more.
    pub(crate) operates: bool,
    /// Whether the service has an exchange of messages that can replace a step that deviates.
    pub(crate) has_plain_exchange: bool,
    /// Whether a target that is Initiator sends the first Send. (MPA does not permit a Responder to
    /// send first.)
    pub(crate) opens_with_send: bool,
}

impl ServiceFacts {
    /// Creates the properties of an iWARP service whose good exchange does not reach Full
    /// Operation.
    const fn new(name: &'static str, capability: Option<Capability>, good_exchange: &'static str) -> Self {
        ServiceFacts {
            name,
            capability,
            protocol: Protocol::Iwarp,
            good_exchange,
            accepts_sdp: false,
            operates: false,
            has_plain_exchange: true,
            opens_with_send: true,
        }
    }
}

/// How the tester exercises a service, and how a builtin target offers the service.
pub(crate) trait ServiceDriver: Sync {
    /// Returns the properties of the service.
    fn facts(&self) -> ServiceFacts;

    /// Does a good exchange, which is evidence for `expectation.shows`.
    fn good_exchange<'s>(&'s self, stage: &'s mut Stage, expectation: &'s Expectation) -> Decided<'s> {
        Box::pin(async move {
            let done = self.exchange(stage, expectation).await;
            stage.conclude(done, self.facts().good_exchange, expectation).await
        })
    }

    /// Does the good exchange on a new connection, without closing it. Returns the connection.
    fn exchange<'s>(&'s self, stage: &'s mut Stage, expectation: &'s Expectation) -> Outcome<'s, u32> {
        Box::pin(async move {
            let number = stage.connect().await?;
            stage.iwarp_exchange(number, expectation).await?;
            Ok(number)
        })
    }

    /// Does one exchange of the service, after start-up by the tester.
    fn work<'s>(&'s self, _: Exchange<'s>) -> Outcome<'s> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Does the exchange that reaches Full Operation, after start-up by the tester.
    fn operate<'s>(&'s self, _: Exchange<'s>) -> Outcome<'s, Operation> {
        Box::pin(std::future::ready(Err(StepFailure::from("neither echo nor rping runs above MPA"))))
    }

    /// Returns the buffer that the first Send of an Initiator describes, if it describes one.
    ///
    /// # Errors
    /// The Send does not belong to this service.
    fn buffer_of(&self, _first_send: &[u8]) -> Result<Option<TaggedBuffer>, String> {
        Ok(None)
    }

    /// Does one exchange of the service, after the first Send of an Initiator. `buffer` is the
    /// buffer that this Send describes.
    fn serve<'s>(&'s self, mut exchange: Exchange<'s>, _buffer: Option<TaggedBuffer>) -> Outcome<'s> {
        Box::pin(async move { exchange.echo_at(1).await })
    }

    /// Does the plain exchanges that replace the step that deviates in a control.
    fn plain_exchanges<'s>(&'s self, stage: &'s mut Stage, number: u32, expectation: &'s Expectation) -> Outcome<'s> {
        Box::pin(async move {
            for length in stage.control_lengths() {
                let done = self.plain_exchange(stage, number, length, expectation).await;
                let step = format!("in a correct exchange with a ULPDU of {length} bytes");
                done.map_err(|failure| failure.in_step(&step))?;
            }
            Ok(())
        })
    }

    /// Sends one message and waits for its answer. The ULPDU has about `length` bytes. Its PAD has
    /// the same length as the PAD of a ULPDU with exactly `length` bytes.
    fn plain_exchange<'s>(&'s self, _: &'s mut Stage, _: u32, _length: u16, _: &'s Expectation) -> Outcome<'s> {
        Box::pin(std::future::ready(Ok(())))
    }

    /// Creates a builtin target inside weft's process. The target is the Responder, and offers the
    /// service.
    ///
    /// # Errors
    /// The RNIC does not open.
    fn responder(&self, settings: Settings) -> Result<VirtualLink, OpenError> {
        Ok(VirtualLink::echo(settings))
    }

    /// Creates a builtin target inside weft's process. The target is the Initiator, and uses the
    /// service.
    ///
    /// # Errors
    /// The errors of [`responder`](Self::responder), or the private data do not fit into the
    /// Request.
    fn initiator(&self, settings: Settings) -> Result<VirtualLink, OpenError> {
        VirtualLink::echo_client(settings).map_err(|error| OpenError::Builtin(std::io::Error::other(error)))
    }

    /// Like [`initiator`](Self::initiator), over loopback TCP. Returns the link on which the tester
    /// waits, and the [`Start`] that makes the Initiator connect.
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
