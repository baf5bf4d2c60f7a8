//! An SDP port mapper, or a client of a port mapper. The good exchange is a Request and its answer.

use weft_core::wire::portmap::MessageType;
use weft_peer::Settings;
use weft_peer::driver::portmap::PmClient;
use weft_peer::driver::{Link, MapperSocket, VirtualLink};
use weft_peer::portmap::ClientSettings;
use weft_peer::service::SdpUser;

use super::{Decided, Expectation, Outcome, Protocol, ServiceDriver, Stage, Stop};
use crate::model::Capability;
use crate::stage::MapperServerSide;
use crate::targets::{LOOPBACK, OpenError, Service, Start, sdp_link};

pub(crate) struct PortMapper;

impl ServiceDriver for PortMapper {
    fn name(&self) -> &'static str {
        "port-mapper"
    }

    fn capability(&self) -> Option<Capability> {
        Some(Capability::PortMapper)
    }

    fn protocol(&self) -> Protocol {
        Protocol::PortMapper
    }

    fn good_exchange_text(&self) -> &'static str {
        "a good exchange: an answer to a PMReq"
    }

    fn good_exchange<'s>(&'s self, stage: &'s mut Stage, expectation: &'s Expectation) -> Decided<'s> {
        let (shows, within, at) = (expectation.shows.clone(), expectation.within, expectation.at.as_ref());
        match stage.connections.start().is_some() {
            true => Box::pin(async move { stage.mapper_client().good_exchange(shows, within, at).await }),
            false => Box::pin(async move { stage.mapper_server().good_exchange(shows, within, at).await }),
        }
    }

    fn plain_exchanges<'s>(&'s self, stage: &'s mut Stage, _: u32, expectation: &'s Expectation) -> Outcome<'s> {
        Box::pin(async move {
            match stage.connections.start().is_some() {
                true => Ok(plain_accept(stage, expectation).await),
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
async fn plain_accept(stage: &mut Stage, expectation: &Expectation) -> Result<(), String> {
    let done = stage.mapper_client().good_exchange(Vec::new(), expectation.within, expectation.at.as_ref()).await;
    done.map_err(|_| {
        let actual = stage.log().decision.as_ref().and_then(|decision| decision.actual.clone());
        format!("after a right PMAccept, {}", actual.unwrap_or_else(|| "nothing follows".to_owned()))
    })
}

impl MapperServerSide<'_> {
    /// Sends a correct Request for a service that the port mapper maps, and expects its answer.
    pub(in crate::stage) async fn plain_exchange(
        &mut self,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        Ok(match self.query(self.connections.target.description.mapper.mapped, expectation.within).await? {
            Some(Ok(answer)) if answer.message_type == MessageType::PM_ACCEPT => Ok(()),
            Some(Ok(answer)) => Err(format!("it answers a right PMReq with a {}", answer.message_type.name())),
            Some(Err(why)) => Err(format!("it answers a right PMReq with {why}")),
            None => Err("it does not answer a right PMReq".to_owned()),
        })
    }
}
