//! Probes a target that speaks MPA. A Responder receives each kind of Request. For an Initiator,
//! the probe shows the Request that the target sends.

use std::collections::BTreeSet;

use weft_core::wire::mpa::startup::Enhanced;
use weft_core::wire::mpa::{Startup, StartupKind};

use super::Observer;
use crate::correct::StartupFields;
use crate::model::Capability;
use crate::stage::StepFailure;
use crate::targets::{OpenError, Service};

/// The answer to a Request.
enum Answer {
    Reply(Vec<u8>),
    /// Description of a close, or of bytes that are not a Reply.
    Other(String),
    Silence,
}

/// What a Responder answered to all kinds of Requests.
pub(super) struct Replies {
    /// Whether the target speaks MPA.
    pub(super) speaks_mpa: bool,
    /// The first Request that the target accepted.
    pub(super) accepted: Option<StartupFields>,
    /// The capabilities that the Replies show.
    pub(super) shown: BTreeSet<Capability>,
}

impl Observer {
    /// Probes what a Responder answers to each kind of Request. `works` is whether an exchange with
    /// the target has worked.
    pub(super) async fn requests(&mut self, works: bool) -> Result<Replies, OpenError> {
        let enhanced = Enhanced { ird: 1, ord: 1, ..Enhanced::default() };
        let ready = Enhanced { peer_to_peer: true, rtr_write: true, rtr_read: true, ..enhanced };
        let plain = self.plain();
        let with = |enhanced| StartupFields { revision: 2, enhanced: Some(enhanced), ..plain.clone() };
        let mut replies = Replies { speaks_mpa: works, accepted: None, shown: BTreeSet::new() };
        let mut silent = 0;
        for (what, request) in [
            ("revision 1, C=1", plain.clone()),
            ("revision 1, C=0", StartupFields { crc: false, ..plain.clone() }),
            ("revision 1, M=1", StartupFields { markers: true, ..plain.clone() }),
            ("revision 2, S=0", StartupFields { revision: 2, ..plain.clone() }),
            ("revision 2, enhanced", with(enhanced)),
            ("revision 2, peer to peer", with(ready)),
        ] {
            let answer = self.answer_to(&request, works).await?;
            let text = match answer {
                Answer::Reply(reply) => {
                    replies.speaks_mpa = true;
                    if replies.accepted.is_none() && Startup::parse(&reply).is_ok_and(|frame| !frame.reject) {
                        replies.accepted = Some(request);
                    }
                    replies.shown.extend(shown_by(&reply));
                    described_frame(&reply)
                }
                Answer::Other(text) => text,
                Answer::Silence => {
                    silent += 1;
                    "did not answer".to_owned()
                }
            };
            self.add(what, None, text);
            // A target that does not answer two Requests will not answer the remaining Requests.
            // Each attempt takes time.
            if !replies.speaks_mpa && silent == 2 {
                break;
            }
        }
        Ok(replies)
    }

    /// Probes what a Responder answers to each kind of Request. If the Responder accepts no
    /// Request, tries SDP, because the target file may declare a wrong service.
    pub(super) async fn mpa(&mut self, works: bool) -> Result<(), OpenError> {
        let Replies { speaks_mpa, accepted, mut shown } = self.requests(works).await?;
        // Before this probe, weft ran a correct exchange with the service. If these conditions are
        // met, the exchange worked, the target sent FPDUs in it, and weft checked their CRCs.
        if works && self.target.description.request.crc && self.target.service().driver().facts().operates {
            shown.insert(Capability::Crc);
        }
        let accepts = works || accepted.is_some();
        // If the target rejects every Request, try SDP. An SDP target that expects Hello as private
        // data rejects Requests without a Hello.
        if speaks_mpa && (accepts || self.profiles().await?.is_none()) {
            let is_declared = self.target.capabilities().contains(&Capability::Crc);
            if self.target.service() == Service::None && !is_declared && !shown.contains(&Capability::Crc) {
                let text = "unknown, because its Replies have C=0, and without a service it sends no FPDU; \
                            add crc to `capabilities`, because every MPA implementation must support CRCs";
                self.add("its CRCs", None, text);
            }
            self.undeclared(shown);
            return Ok(());
        }
        let text = match speaks_mpa || self.profiles().await?.is_some() {
            true => {
                "the target uses SDP; set service to \"sdp-echo\", \"sdp-sink\" or \"sdp-source\", and set the field `start` in [sdp] to the target's start-up profile"
            }
            false => "it accepts connections, but answers neither an MPA Request nor a Hello",
        };
        self.add("its service", Some(false), text);
        Ok(())
    }

    /// Reports capabilities that the target showed but that its file does not declare.
    fn undeclared(&mut self, mut shown: BTreeSet<Capability>) {
        shown.retain(|capability| !self.target.capabilities().contains(capability));
        if !shown.is_empty() {
            let names: Vec<String> = shown.iter().map(ToString::to_string).collect();
            let names = names.join(", ");
            let text = format!(
                "the target file does not declare these: {names}; add them to `capabilities`, or cases that need them do not apply"
            );
            self.add("its capabilities", None, text);
        }
    }

    /// Returns the Request with default fields and the private data of the target file.
    fn plain(&self) -> StartupFields {
        StartupFields { private_data: self.target.description.request.private_data.clone(), ..StartupFields::REQUEST }
    }

    /// Sends an MPA Request, and returns a description of the Reply. `None` if there is no Reply.
    pub(super) async fn mpa_reply(&mut self) -> Result<Option<String>, OpenError> {
        let request = self.plain();
        Ok(match self.answer_to(&request, false).await? {
            Answer::Reply(reply) => Some(described_frame(&reply)),
            Answer::Other(_) | Answer::Silence => None,
        })
    }

    /// Sends a Request and returns the answer. `patiently` is `true` if a Reply is expected. The
    /// function then waits longer.
    async fn answer_to(&mut self, request: &StartupFields, patiently: bool) -> Result<Answer, OpenError> {
        let within = if patiently { self.answer_time() } else { self.try_time() };
        let mut stage = self.stage()?;
        let answer = stage.probe_mpa(request, within).await;
        stage.leave().await;
        Ok(match answer {
            Ok(reply) => Answer::Reply(reply),
            Err(StepFailure::Reason(_)) if !stage.connections.has_responded => Answer::Silence,
            Err(StepFailure::Reason(what)) => Answer::Other(what),
            Err(StepFailure::Decided) => Answer::Other("was not reached".into()),
        })
    }

    /// Shows the Request of an Initiator.
    pub(super) async fn request_of_target(&mut self) -> Result<(), OpenError> {
        let mut stage = self.stage()?;
        let request = stage.request_of_target().await;
        stage.leave().await;
        let text = request.map_or_else(|_| "did not arrive".to_owned(), |request| described_frame(&request));
        self.add("its Request", None, text);
        Ok(())
    }
}

/// Returns the capabilities that a Reply shows: its revision, and whether it requests CRCs or
/// markers.
fn shown_by(reply: &[u8]) -> impl Iterator<Item = Capability> {
    let frame = Startup::parse(reply).ok().filter(|frame| !frame.reject);
    let revision = frame.and_then(|frame| match (frame.revision, frame.enhanced) {
        (1, _) => Some(Capability::Revision1),
        (2, Some(_)) => Some(Capability::Revision2),
        _ => None,
    });
    let crc = frame.filter(|frame| frame.crc).map(|_| Capability::Crc);
    let markers = frame.filter(|frame| frame.markers).map(|_| Capability::AsksForMarkers);
    revision.into_iter().chain(crc).chain(markers)
}

fn described_frame(octets: &[u8]) -> String {
    let Ok(frame) = Startup::parse(octets) else { return "sent an invalid start-up frame".into() };
    let bit = u8::from;
    let (m, c, r) = (bit(frame.markers), bit(frame.crc), bit(frame.reject));
    let kind = if frame.kind == StartupKind::Reply { "Reply" } else { "Request" };
    let mut text = format!("{kind}, revision {}, M={m} C={c} R={r}", frame.revision);
    if let Some(words) = frame.enhanced {
        text.push_str(&format!(", IRD {}, ORD {}", words.ird, words.ord));
        if words.peer_to_peer {
            let kinds = [("Send", words.rtr_send), ("Write", words.rtr_write), ("Read", words.rtr_read)];
            let kinds: Vec<&str> = kinds.into_iter().filter_map(|(name, set)| set.then_some(name)).collect();
            text.push_str(&format!(", ready to receive by {}", kinds.join(" or ")));
        }
    }
    if !frame.private_data.is_empty() {
        text.push_str(&format!(", {} bytes of private data", frame.private_data.len()));
    }
    text
}
