//! Probes a target that speaks SDP: its HelloAck, and how it uses data. If there is no HelloAck,
//! finds the start-up profile that gets one.

use std::sync::Arc;
use std::time::Duration;

use weft_core::wire::sdp::FieldOrder;

use super::Observer;
use crate::stage::StepFailure;
use crate::targets::description::SdpFacts;
use crate::targets::{OpenError, SdpStart, Service, Target};

/// Seconds to wait for data from a socket that sends without a request.
const QUIET_SECONDS: f64 = 1.0;

/// Each start-up profile in each field order, with the text that the probe reports.
const STARTS: [(SdpStart, FieldOrder, &str); 10] = [
    (SdpStart::Swapped, FieldOrder::Figure, "start = \"swapped\""),
    (SdpStart::Bare, FieldOrder::Figure, "start = \"bare\""),
    (SdpStart::Natural, FieldOrder::Figure, "start = \"natural\""),
    (SdpStart::Enhanced, FieldOrder::Figure, "start = \"enhanced\""),
    (SdpStart::PrivateData, FieldOrder::Figure, "start = \"private-data\""),
    (SdpStart::Swapped, FieldOrder::Mirrored, "\"swapped\", mirrored"),
    (SdpStart::Bare, FieldOrder::Mirrored, "\"bare\", mirrored"),
    (SdpStart::Natural, FieldOrder::Mirrored, "\"natural\", mirrored"),
    (SdpStart::Enhanced, FieldOrder::Mirrored, "\"enhanced\", mirrored"),
    (SdpStart::PrivateData, FieldOrder::Mirrored, "\"private-data\", mirrored"),
];

impl Observer {
    /// Probes the HelloAck and the behaviour of an SDP socket.
    pub(super) async fn sdp(&mut self) -> Result<(), OpenError> {
        let (start, order) = (self.target.description.sdp.start, self.target.description.sdp.order);
        let times = (self.target.scaled(QUIET_SECONDS), self.answer_time());
        let mut stage = self.stage()?;
        let behaviour = stage.probe_sdp(start, order, times).await;
        stage.leave().await;
        let behaviour = match behaviour {
            Ok(behaviour) => behaviour,
            Err(StepFailure::Reason(why)) => {
                self.add("its HelloAck", Some(false), why);
                return self.other_start().await;
            }
            Err(StepFailure::Decided) => {
                self.add("its HelloAck", Some(false), "was not reached");
                return Ok(());
            }
        };
        self.add("its HelloAck", None, behaviour.hello_ack.describe());
        let declared = self.target.service();
        let (what, service) = match behaviour.service() {
            Some(service) => (does(service), service.as_str()),
            None => ("sends nothing, and does not close", "no service that weft knows"),
        };
        let works = behaviour.service() == Some(declared);
        let not = if works { String::new() } else { format!(", not {}", declared.as_str()) };
        self.add("its service", Some(works), format!("{what}: {service}{not}"));
        if behaviour.service().is_none() {
            self.other_first_mseq(times).await?;
        }
        Ok(())
    }

    /// Tries the other MSeq for the first message after Hello and HelloAck.
    /// draft-pinkerton-iwarp-sdp-01 section 6.1.5 can mean 1 or 0. Reports the other MSeq if the
    /// target's service works with it.
    async fn other_first_mseq(&mut self, times: (Duration, Duration)) -> Result<(), OpenError> {
        let mut target = Target::clone(&self.target);
        let sdp = &mut target.description.sdp;
        sdp.first_mseq = 1 - sdp.first_mseq;
        let (start, order, first) = (sdp.start, sdp.order, sdp.first_mseq);
        let mut stage = self.stage_for(Arc::new(target))?;
        let behaviour = stage.probe_sdp(start, order, times).await;
        stage.leave().await;
        if let Some(service) = behaviour.ok().and_then(|behaviour| behaviour.service()) {
            let name = if first == 0 { "first_mseq = 0" } else { "first_mseq = 1" };
            self.add(name, None, format!("{}: {}", does(service), service.as_str()));
        }
        Ok(())
    }

    /// If SDP does not start in the way that the target file declares, finds out which protocol the
    /// target speaks.
    async fn other_start(&mut self) -> Result<(), OpenError> {
        if self.profiles().await?.is_some() {
            return Ok(());
        }
        let text = match self.mpa_reply().await? {
            Some(reply) => {
                format!("the target uses MPA without SDP ({reply}); set service to \"none\", \"echo\" or \"rping\"")
            }
            None => "it answers neither a Hello nor an MPA Request".to_owned(),
        };
        self.add("its service", Some(false), text);
        Ok(())
    }

    /// Finds out the service of an SDP socket, if the start-up profile and the order of fields are
    /// known. Returns `None` if no known service behaves like the socket.
    pub(super) async fn sdp_service(
        &self,
        start: SdpStart,
        order: FieldOrder,
    ) -> Result<Option<(Service, SdpFacts)>, OpenError> {
        let times = (self.target.scaled(QUIET_SECONDS), self.answer_time());
        for first_mseq in [1, 0] {
            let facts = SdpFacts { start, order, first_mseq };
            let mut target = self.target.with_service(Service::SdpEcho);
            target.description.sdp = facts;
            let mut stage = self.stage_for(Arc::new(target))?;
            let behaviour = stage.probe_sdp(start, order, times).await;
            stage.leave().await;
            if let Some(service) = behaviour.ok().and_then(|behaviour| behaviour.service()) {
                return Ok(Some((service, facts)));
            }
        }
        Ok(None)
    }

    /// Tries each start-up profile of SDP, and reports the profiles that get a HelloAck. Returns
    /// the first of them, with its order of fields.
    pub(super) async fn profiles(&mut self) -> Result<Option<(SdpStart, FieldOrder)>, OpenError> {
        let (mut found, mut has_answered) = (None, false);
        for (start, order, what) in STARTS {
            // An answer that is invalid in one field order may be a HelloAck in the other order. If
            // the target never answers, weft does not try the other order.
            if order == FieldOrder::Mirrored && (found.is_some() || !has_answered) {
                break;
            }
            let mut stage = self.stage()?;
            let answer = stage.probe_sdp_start(start, order, self.try_time()).await;
            stage.leave().await;
            has_answered |= stage.connections.has_responded;
            if let Ok(hello_ack) = answer {
                found = found.or(Some((start, order)));
                self.add(what, None, format!("is answered by {}", hello_ack.describe()));
            }
        }
        Ok(found)
    }
}

fn does(service: Service) -> &'static str {
    match service {
        Service::SdpEcho => "sends back what it receives",
        Service::SdpSource => "sends without a request",
        _ => "accepts the data, and sends nothing",
    }
}
