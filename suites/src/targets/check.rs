//! Probes a target before a run: whether it is reachable, whether its good exchange works, and how
//! its service answers. A good exchange is a correct exchange with the target's service. Probes
//! give no verdicts.
//!
//! | file | probes |
//! | --- | --- |
//! | `agent` | the agent, if the target has one: its device, and a connection |
//! | `discover` | a target without a description: its protocol, service and capabilities |
//! | `mpa` | an MPA Responder: each kind of Request |
//! | `sdp` | an SDP socket: a Hello, and Data. If no HelloAck arrives, each start-up profile |
//! | `mapper` | a port mapper: the services that the target file names |

mod agent;
mod discover;
mod mapper;
mod mpa;
mod sdp;

use std::sync::Arc;
use std::time::Duration;

use super::{OpenError, OpenTarget, Service, Target};
use crate::model::{Capability, CaseKey, EventSink, Role};
use crate::stage::Stage;

pub use discover::{DiscoverError, discover};

/// Result of one probe.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What was probed.
    pub what: &'static str,
    /// Whether the result is what a run needs. `None` for a fact that is neither good nor bad.
    pub works: Option<bool>,
    /// What the target did.
    pub text: String,
}

/// Probes a target. `sink` receives an event when a probe waits. The first probe shows whether
/// suites can run against the target.
///
/// # Errors
/// The target cannot be opened.
pub async fn check(target: &Target, sink: Arc<dyn EventSink>) -> Result<Vec<Probe>, OpenError> {
    let live = OpenTarget::open(target).await?;
    // Good exchanges have markers if the target file declares that the target requests markers.
    let requests_markers = target.remote().is_some() && target.capabilities().contains(&Capability::AsksForMarkers);
    let mut target = target.clone();
    target.options.requests_markers = requests_markers;
    let target = Arc::new(target);
    let mut observer = Observer { live, target: target.clone(), sink, probes: Vec::new() };
    let (works, there) = observer.good_exchanges().await?;
    let service = target.service();
    if !there {
        observer.agent().await?;
        return Ok(observer.probes);
    }
    if target.role() == Role::Initiator {
        // The client of a port mapper and an SDP socket do not begin with an MPA Request.
        if works && service != Service::PortMapper && !service.is_sdp() {
            observer.request_of_target().await?;
        }
    } else if service == Service::PortMapper {
        if works {
            observer.mapper().await?;
        }
    } else if service.is_sdp() {
        // The good exchange has already used the commands of a driven socket.
        if !matches!(service, Service::SdpConnect | Service::SdpDrive) {
            observer.sdp().await?;
        }
    } else {
        observer.mpa(works).await?;
        if works && service == Service::Rping {
            observer.buffer_of_rping().await?;
        }
        if works && service == Service::None {
            observer.unnamed_service().await?;
        }
    }
    observer.agent().await?;
    Ok(observer.probes)
}

/// Seconds to wait for an answer. `TRY_SECONDS` is for attempts that often get no answer.
const ANSWER_SECONDS: f64 = 5.0;
const TRY_SECONDS: f64 = 2.0;

/// Runs the probes and collects their results.
struct Observer {
    live: OpenTarget,
    target: Arc<Target>,
    sink: Arc<dyn EventSink>,
    probes: Vec<Probe>,
}

impl Observer {
    fn stage(&self) -> Result<Stage, OpenError> {
        self.stage_for(self.target.clone())
    }

    /// Returns a stage for the open target, but with the description in `target`.
    fn stage_for(&self, target: Arc<Target>) -> Result<Stage, OpenError> {
        let link = self.live.link(&target)?;
        Ok(Stage::new(target, link, CaseKey::new("target/check"), self.sink.clone()))
    }

    fn add(&mut self, what: &'static str, works: Option<bool>, text: impl Into<String>) {
        self.probes.push(Probe { what, works, text: text.into() });
    }

    fn answer_time(&self) -> Duration {
        self.target.scaled(ANSWER_SECONDS)
    }

    fn try_time(&self) -> Duration {
        self.target.scaled(TRY_SECONDS)
    }

    /// Runs two good exchanges, because the first may break something that the second needs.
    /// Returns whether both exchanges work, and whether a connection was established.
    async fn good_exchanges(&mut self) -> Result<(bool, bool), OpenError> {
        for what in ["a good exchange", "a second exchange"] {
            let mut stage = self.stage()?;
            let done = stage.good_exchange(Vec::new()).await;
            stage.leave().await;
            let why = stage.log().decision.as_ref().and_then(|decision| decision.actual.clone());
            let text = match done {
                Ok(()) => "works".to_owned(),
                Err(_) if stage.log().connections == 0 && self.target.role() != Role::Initiator => {
                    let why = why.unwrap_or_else(|| "the target was not reached".into());
                    format!("{why}; is the target running, and does it listen on this address?")
                }
                Err(_) => why.unwrap_or_else(|| "does not work".into()),
            };
            self.add(what, Some(done.is_ok()), text);
            if done.is_err() {
                let is_there = stage.log().connections > 0;
                if is_there {
                    self.other_service().await?;
                }
                return Ok((false, is_there));
            }
        }
        Ok((true, true))
    }

    /// Reports if the buffer of rping's server is larger than the target file declares.
    async fn buffer_of_rping(&mut self) -> Result<(), OpenError> {
        let mut stage = self.stage()?;
        let taken = stage.probe_rping_buffer(self.try_time()).await;
        stage.leave().await;
        if let Ok(true) = taken {
            let text = format!(
                "accepts a byte after the end of a buffer of `rping_size` = {} bytes; set `rping_size` to the server's option -S; \
                 if `rping_size` is already correct, the target does not check bounds",
                self.target.description.rping_size
            );
            self.add("its buffer", None, text);
        }
        Ok(())
    }

    /// Called if the target file names no service. Reports the service that runs on the target, if
    /// weft knows the service.
    async fn unnamed_service(&mut self) -> Result<(), OpenError> {
        if let Some(service) = self.known_service().await? {
            let does = if service == Service::Echo { "the target echoes" } else { "the target runs rping -s" };
            let name = service.as_str();
            self.add("its service", None, format!("{does}; set service = \"{name}\" to run more cases"));
        }
        Ok(())
    }

    /// Returns the service above MPA that runs on the target. `None` if weft does not know the
    /// service.
    async fn known_service(&self) -> Result<Option<Service>, OpenError> {
        for service in [Service::Echo, Service::Rping] {
            if self.works(self.target.with_service(service)).await? {
                return Ok(Some(service));
            }
        }
        Ok(None)
    }

    /// Returns whether a good exchange works if the target has this description.
    async fn works(&self, target: Target) -> Result<bool, OpenError> {
        let mut stage = self.stage_for(Arc::new(target))?;
        let works = stage.good_exchange(Vec::new()).await.is_ok();
        stage.leave().await;
        Ok(works)
    }

    /// Called if the service that the target file declares does not work. Tries rping instead of
    /// echo, or echo instead of rping.
    async fn other_service(&mut self) -> Result<(), OpenError> {
        let other = match self.target.service() {
            Service::Echo => Service::Rping,
            Service::Rping => Service::Echo,
            _ => return Ok(()),
        };
        if self.target.role() == Role::Initiator {
            return Ok(());
        }
        if self.works(self.target.with_service(other)).await? {
            let (declared, other) = (self.target.service().as_str(), other.as_str());
            self.add(
                "its service",
                Some(false),
                format!("the target runs {other}, not {declared}; set service = \"{other}\""),
            );
        }
        Ok(())
    }
}
