//! Finds out what a responder can do: its protocol, its service, its capabilities, and the Request
//! that it accepts. The probes send correct messages only.
//!
//! Some facts do not show on the wire, so no probe looks for them: the capability `atomics`, the
//! settle time, and the roles and services that the target has at other addresses.

use std::sync::Arc;

use weft_core::wire::sdp::FieldOrder;
use weft_peer::service::RpingServer;

use super::Observer;
use super::mpa::Replies;
use crate::model::{Capability, EventSink};
use crate::targets::description::SdpFacts;
use crate::targets::{Facts, OpenError, OpenTarget, SdpStart, Service, Target, down};

/// Size in bytes of the buffer of `rping -s` without the option `-S`.
const USUAL_RPING_SIZE: u32 = 64;

/// Why probes found out nothing about a target.
#[derive(Debug, thiserror::Error)]
pub enum DiscoverError {
    /// The target cannot be opened, for example because its name has no address.
    #[error(transparent)]
    Open(#[from] OpenError),
    /// The target accepts no TCP connection.
    #[error("{0}")]
    Down(String),
    /// The target accepts TCP connections, but answers no message of weft.
    #[error("the target ({0}) accepts connections, but answers neither an MPA Request nor an SDP Hello")]
    Silent(String),
    /// The target answers with MPA frames, but accepts no Request and no Hello.
    #[error("the target ({0}) rejects each kind of MPA Request, and accepts no SDP Hello")]
    Rejects(String),
}

/// Probes a responder. `sink` receives the events of the probes. A service that the target file
/// names is not probed.
///
/// # Errors
/// The target cannot be reached, or weft does not know its protocol.
pub async fn discover(target: &Target, sink: Arc<dyn EventSink>) -> Result<Facts, DiscoverError> {
    let live = OpenTarget::open(target).await?;
    let mut observer = Observer { live, target: Arc::new(target.clone()), sink, probes: Vec::new() };
    let facts = observer.facts().await?;
    Ok(Facts { probes: observer.probes, ..facts })
}

impl Observer {
    async fn facts(&mut self) -> Result<Facts, DiscoverError> {
        let works = self.starts_up().await?;
        let replies = self.requests(works).await?;
        if works || replies.accepted.as_ref().is_some_and(|request| !request.markers) {
            return Ok(self.iwarp_facts(works, replies).await?);
        }
        if let Some((start, order)) = self.profiles().await? {
            return Ok(self.sdp_facts(start, order).await?);
        }
        let reached_by = self.target.info().reached_by;
        Err(match replies.speaks_mpa {
            true => DiscoverError::Rejects(reached_by),
            false => DiscoverError::Silent(reached_by),
        })
    }

    /// Returns whether the target accepts the Request of its target file.
    async fn starts_up(&self) -> Result<bool, DiscoverError> {
        let mut stage = self.stage_for(Arc::new(self.target.with_service(Service::None)))?;
        let works = stage.good_exchange(Vec::new()).await.is_ok();
        stage.leave().await;
        let log = stage.log();
        match log.unreached() {
            Some(why) if log.connections == 0 => Err(DiscoverError::Down(down::headline(why))),
            _ => Ok(works),
        }
    }

    /// Returns the facts about a target that speaks MPA. `works` is whether the target accepts the
    /// Request of its target file.
    async fn iwarp_facts(&mut self, works: bool, replies: Replies) -> Result<Facts, OpenError> {
        let Replies { accepted, shown, .. } = replies;
        let request = accepted.filter(|request| !works && !request.markers);
        if let Some(request) = &request {
            let mut target = Target::clone(&self.target);
            target.description.request = request.clone();
            self.target = Arc::new(target);
        }
        let is_unstated = self.target.options.unstated.service;
        let service = match self.target.service() {
            Service::None if is_unstated => self.known_service().await?,
            stated => Some(stated),
        };
        let mut facts = Facts { service, shown, request, ..Facts::default() };
        let Some(service) = service.filter(|service| service.driver().facts().operates) else { return Ok(facts) };
        self.target = Arc::new(self.target.with_service(service));
        // In these exchanges, the target sends FPDUs, and weft checks their CRCs and markers.
        if self.target.description.request.crc && self.works(Target::clone(&self.target)).await? {
            facts.shown.insert(Capability::Crc);
        }
        let mut with_markers = Target::clone(&self.target);
        with_markers.description.request.markers = true;
        if self.works(with_markers).await? {
            facts.shown.insert(Capability::Markers);
        }
        if service == Service::Rping && is_unstated {
            facts.rping_size = self.rping_size().await?.filter(|size| *size != USUAL_RPING_SIZE);
        }
        Ok(facts)
    }

    /// Returns the size in bytes of the buffer of `rping -s`. Returns `None` if the size cannot be
    /// found out. The search takes at most about half a minute, and no time for the usual size.
    async fn rping_size(&self) -> Result<Option<u32>, OpenError> {
        // The target accepts a byte after `accepted` bytes, and rejects a byte after `rejected`
        // bytes.
        let (mut accepted, mut rejected) = (USUAL_RPING_SIZE - 1, USUAL_RPING_SIZE);
        if self.has_byte_after(rejected).await? == Some(true) {
            (accepted, rejected) = (USUAL_RPING_SIZE, RpingServer::SIZE);
            // `weft ping -s` has the largest buffer.
            match self.has_byte_after(RpingServer::SIZE - 1).await? {
                Some(true) => accepted = RpingServer::SIZE - 1,
                Some(false) => rejected = RpingServer::SIZE - 1,
                None => return Ok(None),
            }
        }
        while rejected - accepted > 1 {
            let middle = accepted.midpoint(rejected);
            match self.has_byte_after(middle).await? {
                Some(true) => accepted = middle,
                Some(false) => rejected = middle,
                None => return Ok(None),
            }
        }
        Ok(Some(rejected))
    }

    /// Returns whether the server of rping accepts a Write of the byte after the first `size` bytes
    /// of its buffer. Returns `None` if the exchange before the Write does not work.
    async fn has_byte_after(&self, size: u32) -> Result<Option<bool>, OpenError> {
        let mut target = Target::clone(&self.target);
        target.description.rping_size = size;
        let mut stage = self.stage_for(Arc::new(target))?;
        let taken = stage.probe_rping_buffer(self.try_time()).await;
        stage.leave().await;
        Ok(taken.ok())
    }

    /// Returns the facts about a target that speaks SDP.
    async fn sdp_facts(&self, start: SdpStart, order: FieldOrder) -> Result<Facts, OpenError> {
        let facts = Facts { speaks_sdp: true, ..Facts::default() };
        Ok(match self.sdp_service(start, order).await? {
            Some((service, sdp)) => Facts { service: Some(service), sdp, ..facts },
            None => Facts { sdp: SdpFacts { start, order, ..SdpFacts::default() }, ..facts },
        })
    }
}
