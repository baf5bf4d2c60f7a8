//! The tester's exchanges with the service of a target: one file per service.
//!
//! A new service is a file with its [`ServiceDriver`], and a variant of [`Service`] that names it.
//! The defaults of the trait are those of an iWARP service that echoes Sends.

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

/// A step of the tester that works, or does not for a reason; [`Stop`] ends the case.
pub(crate) type Outcome<'s, T = ()> = Pin<Box<dyn Future<Output = Result<Result<T, String>, Stop>> + Send + 's>>;
/// A step that decides the case where it does not work.
pub(crate) type Decided<'s> = Pin<Box<dyn Future<Output = Result<(), Stop>> + Send + 's>>;
/// The work of a client of weft's own, until its server closes.
pub(crate) type Client = Pin<Box<dyn Future<Output = Result<(), Box<dyn std::error::Error + Send + Sync>>> + Send>>;

/// The protocol that a service speaks first.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Protocol {
    /// MPA, with Sends, Writes and Reads.
    Iwarp,
    /// SDP on top of it, or in front of it.
    Sdp,
    /// Port mapper messages over UDP.
    PortMapper,
}

/// How a service is exercised by the tester, and how a builtin target offers it.
pub(crate) trait ServiceDriver: Sync {
    /// Its name in target files and reports.
    fn name(&self) -> &'static str;

    /// The capability of a target that offers it.
    fn capability(&self) -> Option<Capability>;

    /// The protocol that it speaks.
    fn protocol(&self) -> Protocol {
        Protocol::Iwarp
    }

    /// The expected good exchange, for reports.
    fn good_exchange_text(&self) -> &'static str;

    /// Does it accept SDP connections?
    fn accepts_sdp(&self) -> bool {
        false
    }

    /// Does its good exchange reach Full Operation, so that the target has sent FPDUs and may send
    /// more?
    fn operates(&self) -> bool {
        false
    }

    /// Does an exchange of messages exist that can take the place of a step that deviates?
    fn has_plain_exchange(&self) -> bool {
        true
    }

    /// Do its exchanges have FPDUs of the tester?
    fn has_fpdus(&self) -> bool {
        true
    }

    /// A good exchange that is evidence for `expectation.shows`.
    fn good_exchange<'s>(&'s self, stage: &'s mut Stage, expectation: &'s Expectation) -> Decided<'s> {
        Box::pin(async move {
            let done = self.exchange(stage, expectation).await?;
            stage.conclude(done, self.good_exchange_text(), expectation).await
        })
    }

    /// The good exchange on a connection of its own, without its end. Returns the connection.
    fn exchange<'s>(&'s self, stage: &'s mut Stage, expectation: &'s Expectation) -> Outcome<'s, u32> {
        Box::pin(async move {
            let number = stage.connect(expectation.at.as_ref()).await?;
            let done = stage.iwarp_exchange(number, expectation).await?;
            Ok(done.map(|()| number))
        })
    }

    /// One exchange of the service, after start-up by the tester.
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

    /// The exchange that reaches Full Operation after start-up by the tester.
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

    /// As Initiator, does it send first? A Responder must not.
    fn opens_with_send(&self) -> bool {
        true
    }

    /// The buffer that the first Send of an Initiator describes, if it does.
    ///
    /// # Errors
    /// The Send is not this service's.
    fn buffer_of(&self, first_send: &[u8]) -> Result<Option<TaggedBuffer>, String> {
        let _ = first_send;
        Ok(None)
    }

    /// One exchange of the service, after the first Send of an Initiator.
    fn serve<'s>(
        &'s self,
        stage: &'s mut Stage,
        number: u32,
        opened: &'s AcceptedStartUp,
        expectation: &'s Expectation,
    ) -> Outcome<'s> {
        Box::pin(async move { stage.rdma().echo_at(number, &opened.started, 1, expectation).await })
    }

    /// The plain exchanges of a control, which take the place of a step that deviates.
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

    /// One message there and its answer back, with a ULPDU of about `length` bytes and of the same
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

    /// The service on a builtin target in process, as Responder.
    ///
    /// # Errors
    /// Its RNIC does not open.
    fn responder(&self, settings: Settings) -> Result<VirtualLink, OpenError> {
        Ok(VirtualLink::echo(settings))
    }

    /// The same as Initiator.
    ///
    /// # Errors
    /// As above, or its Request has no room for its private data.
    fn initiator(&self, settings: Settings) -> Result<VirtualLink, OpenError> {
        VirtualLink::echo_client(settings).map_err(|error| OpenError::Builtin(std::io::Error::other(error)))
    }

    /// The same over loopback TCP: what the tester waits on, and what makes the Initiator connect.
    ///
    /// # Errors
    /// No port is free.
    fn initiator_over_tcp(&self, settings: Settings, service: Service) -> Result<(Link, Start), OpenError> {
        let failed = |error| OpenError::Listen { address: LOOPBACK, error };
        let listener = LinkListener::bind(LOOPBACK).map_err(failed)?;
        let link = Link::Accept(listener.link());
        Ok((link, Start::Builtin { settings: Box::new(settings), service, listener }))
    }

    /// The Initiator itself, in real time.
    fn client(&self, address: SocketAddr, settings: Settings) -> Client {
        Box::pin(async move { echo_client(address, settings).await.map_err(Into::into) })
    }
}
