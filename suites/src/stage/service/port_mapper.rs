//! An SDP port mapper, or a client of a port mapper. The good exchange is a Request and its answer.

use weft_core::wire::portmap::MessageType;
use weft_peer::Settings;
use weft_peer::driver::portmap::PmClient;
use weft_peer::driver::{Link, MapperSocket, VirtualLink};
use weft_peer::portmap::ClientSettings;
use weft_peer::service::SdpUser;

use super::{Attempt, Decided, Expectation, Outcome, Protocol, ServiceDriver, ServiceFacts, Stage};
use crate::model::Capability;
use crate::stage::MapperServerSide;
use crate::targets::{LOOPBACK, OpenError, Service, Start, sdp_link};

pub(crate) struct PortMapper;

impl ServiceDriver for PortMapper {
    fn facts(&self) -> ServiceFacts {
        let text = "a good exchange: an answer to a PMReq";
        let mapper = ServiceFacts::new("port-mapper", Some(Capability::PortMapper), text);
        ServiceFacts { protocol: Protocol::PortMapper, ..mapper }
    }

    fn good_exchange<'s>(&'s self, stage: &'s mut Stage, expectation: &'s Expectation) -> Decided<'s> {
        let (shows, within) = (expectation.shows.clone(), expectation.within);
        match stage.connections.start().is_some() {
            true => Box::pin(async move { stage.mapper_client().good_exchange(shows, within).await }),
            false => Box::pin(async move { stage.mapper_server().good_exchange(expectation).await }),
        }
    }

    fn plain_exchanges<'s>(&'s self, stage: &'s mut Stage, _: u32, expectation: &'s Expectation) -> Outcome<'s> {
        Box::pin(async move {
            match stage.connections.start().is_some() {
                true => plain_accept(stage, expectation).await,
                false => stage.mapper_server().plain_exchange(expectation).await,
            }
        })
    }

    fn responder(&self, settings: Settings) -> Result<VirtualLink, OpenError> {
        sdp_link(SdpUser::Echo, weft_peer::sdp::Role::Accepting, &settings)
    }

    fn initiator(&self, settings: Settings) -> Result<VirtualLink, OpenError> {
        VirtualLink::with_port_mapper_client(settings.deviations).map_err(OpenError::Sdp)
    }

    fn initiator_over_tcp(&self, settings: Settings, _: Service) -> Result<(Link, Start), OpenError> {
        let mapper = MapperSocket::bind(LOOPBACK).map_err(|error| OpenError::Listen { address: LOOPBACK, error })?;
        let deviations = settings.deviations;
        let settings = ClientSettings { deviations: deviations.clone(), ..ClientSettings::default() };
        let client = PmClient::bind(settings, None).map_err(OpenError::Builtin)?;
        Ok((Link::Mapper(mapper.link()), Start::MapperClient { client, deviations }))
    }
}

/// Starts the client once more, sends a correct PMAccept, and expects the acknowledgement.
async fn plain_accept(stage: &mut Stage, expectation: &Expectation) -> Attempt {
    let done = stage.mapper_client().good_exchange(Vec::new(), expectation.within).await;
    done.map_err(|_| {
        let actual = stage.log().decision.as_ref().and_then(|decision| decision.actual.clone());
        format!("after a correct PMAccept, {}", actual.unwrap_or_else(|| "nothing follows".to_owned())).into()
    })
}

impl MapperServerSide<'_> {
    /// Sends a correct Request for a service that the port mapper maps, and expects its answer.
    pub(in crate::stage) async fn plain_exchange(&mut self, expectation: &Expectation) -> Attempt {
        let mapped = self.connections.target.description.mapper.mapped;
        let answer = match self.query(mapped, expectation.within).await? {
            Some(Ok(answer)) if answer.message_type == MessageType::PM_ACCEPT => return Ok(()),
            Some(Ok(answer)) => format!("a {}", answer.message_type.name()),
            Some(Err(why)) => why,
            None => return Err("it does not answer a correct PMReq".into()),
        };
        Err(format!("it answers a correct PMReq with {answer}").into())
    }
}
