//! Looks at a target before the suites are run against it: is it there, does its good exchange work, and what does it answer to the
//! kinds of Request there are. Judges nothing.

use std::sync::Arc;

use weft_core::wire::mpa::startup::Enhanced;
use weft_core::wire::mpa::{Startup, StartupKind};

use super::{Live, OpenError, Target};
use crate::correct::StartupFields;
use crate::model::{CaseKey, EventSink, Role};
use crate::stage::Stage;

/// What one look showed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Probe {
    /// What was tried.
    pub what: &'static str,
    /// Did it work as a run needs it? `None`: a fact that is neither good nor bad.
    pub works: Option<bool>,
    /// What the target did.
    pub text: String,
}

/// Looks at a target; `sink` hears what is waited for. The first probe tells whether suites can be run against it.
///
/// # Errors
/// The target cannot be had at all.
pub async fn check(target: &Target, sink: Arc<dyn EventSink>) -> Result<Vec<Probe>, OpenError> {
    let live = Live::open(target).await?;
    let described = Arc::new(target.clone());
    let stage = || {
        let key = CaseKey::new("target/check");
        let link = live.link(&described)?;
        Ok::<_, OpenError>(Stage::new(described.clone(), link, key, sink.clone()))
    };
    let mut probes = Vec::new();
    for what in ["a good exchange", "a second one"] {
        let mut stage = stage()?;
        let done = stage.good_exchange(Vec::new(), None).await;
        stage.leave().await;
        let why = stage.log.decision.as_ref().and_then(|decision| decision.actual.clone());
        let text = match done {
            Ok(()) => "works".to_owned(),
            Err(_) => why.unwrap_or_else(|| "does not work".into()),
        };
        probes.push(Probe { what, works: Some(done.is_ok()), text });
        if done.is_err() {
            return Ok(probes);
        }
    }
    if target.role == Role::Initiator {
        let mut stage = stage()?;
        let request = stage.request_of_target().await;
        stage.leave().await;
        let text = request.map_or_else(|_| "did not come".to_owned(), |request| described_frame(&request));
        probes.push(Probe { what: "its Request", works: None, text });
        return Ok(probes);
    }
    let enhanced = Enhanced { ird: 1, ord: 1, ..Enhanced::default() };
    let ready = Enhanced { peer_to_peer: true, rtr_write: true, rtr_read: true, ..enhanced };
    let plain = StartupFields { private_data: target.request.private_data.clone(), ..StartupFields::REQUEST };
    let with = |enhanced| StartupFields { revision: 2, enhanced: Some(enhanced), ..plain.clone() };
    for (what, request) in [
        ("revision 1, C=1", plain.clone()),
        ("revision 1, C=0", StartupFields { crc: false, ..plain.clone() }),
        ("revision 1, M=1", StartupFields { markers: true, ..plain.clone() }),
        ("revision 2, S=0", StartupFields { revision: 2, ..plain.clone() }),
        ("revision 2, enhanced", with(enhanced)),
        ("revision 2, peer to peer", with(ready)),
    ] {
        let mut stage = stage()?;
        let answer = stage.probe(&request).await;
        stage.leave().await;
        let text = match answer {
            Ok(Ok(reply)) => described_frame(&reply),
            Ok(Err(what)) => what,
            Err(_) => "was not reached".into(),
        };
        probes.push(Probe { what, works: None, text });
    }
    Ok(probes)
}

fn described_frame(octets: &[u8]) -> String {
    let Ok(frame) = Startup::parse(octets) else { return "sent a start-up frame that makes no sense".into() };
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
        text.push_str(&format!(", {} octets of private data", frame.private_data.len()));
    }
    text
}
