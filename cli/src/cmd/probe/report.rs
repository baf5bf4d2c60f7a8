//! Prints the events of a probe, one line each, as text or JSON.

use serde_json::{Value, json};
use weft_core::text::visible_in_line;
use weft_peer::driver::cm::Connected;
use weft_peer::verbs::TerminateRecord;
use weft_peer::workload::WorkloadError;
use weft_peer::workload::probe::{Advertisement, Arrived, Done, Ended, Op};

use crate::exit::print_line;
use crate::rnic;

pub(super) struct Report {
    json: bool,
}

impl Report {
    pub(super) fn new(json: bool) -> Self {
        Report { json }
    }

    fn line(&self, json: &Value, text: &str) {
        if self.json {
            print_line!("{json}");
        } else {
            print_line!("{text}");
        }
    }

    /// Prints that a side rejected an MPA Request. In the text format, `event` names this side.
    pub(super) fn rejection(&self, kind: &str, event: &str, private_data: &[u8]) {
        let text = text_of(private_data);
        self.line(&json!({ "kind": kind, "text": text }), &format!("{event}: {}", visible_in_line(&text)));
    }

    pub(super) fn connected(&self, connected: &Connected, peer: Option<Advertisement>) {
        let text = text_of(connected.peer.private_data.as_octets());
        let negotiated = &connected.negotiated;
        let region = peer.map(|Advertisement { address, length, readable, writable }| {
            json!({ "stag": address.stag, "tagged_offset": address.tagged_offset, "octets": length,
                    "readable": readable, "writable": writable })
        });
        let json = json!({
            "kind": "connected", "peer_revision": negotiated.peer_revision, "crc": negotiated.crc,
            "ird": negotiated.enhanced.map(|agreed| agreed.ird), "ord": negotiated.enhanced.map(|agreed| agreed.ord),
            "text": text, "region": region,
        });
        let region = peer.map_or_else(String::new, |Advertisement { address, length, .. }| {
            format!("; peer's region: STag {:#010x}, TO {:#x}, {length} bytes", address.stag, address.tagged_offset)
        });
        let text = if text.is_empty() { text } else { format!("; peer's text: {}", visible_in_line(&text)) };
        self.line(&json, &format!("connected: {}{region}{text}", rnic::agreed(connected)));
    }

    pub(super) fn arrived(&self, all: impl IntoIterator<Item = Arrived>) {
        for Arrived { octets, hash, solicited, invalidated, immediate } in all {
            let hash = format!("{hash:016x}");
            let json = json!({
                "kind": "received", "octets": octets, "fnv": hash, "solicited": solicited, "invalidated": invalidated,
                "immediate": immediate.is_some(),
            });
            let kind = if immediate.is_some() { "Immediate Data" } else { "Send" };
            let event = if solicited { ", with solicited event" } else { "" };
            let stag = invalidated.map_or_else(String::new, |stag| format!(", invalidates STag {stag:#010x}"));
            self.line(&json, &format!("received: {kind} of {octets} bytes, hash {hash}{event}{stag}"));
        }
    }

    pub(super) fn done(&self, op: Op, done: &Result<Done, WorkloadError>) {
        let (word, error) = (op.to_string(), done.as_ref().err().map(ToString::to_string));
        let Done { hash, original_value, received } = done.as_ref().copied().unwrap_or_default();
        self.arrived(received);
        let hash = hash.map(|hash| format!("{hash:016x}"));
        let json = json!({
            "kind": "operation", "operation": word, "done": error.is_none(), "error": error, "fnv": hash,
            "original_value": original_value,
        });
        let hash = hash.map_or_else(String::new, |hash| format!(", hash {hash}"));
        let value = original_value.map_or_else(String::new, |value| format!(", the old value was {value:#018x}"));
        self.line(&json, &format!("{word}: {}{hash}{value}", error.as_deref().unwrap_or("done")));
    }

    pub(super) fn ended(&self, ended: &Ended) {
        let hash = format!("{:016x}", ended.hash);
        let terminate = ended.terminate.map(|TerminateRecord { terminate, local }| {
            let error = terminate.error;
            json!({ "layer": error.layer.0, "type": error.error_type, "code": error.code, "text": error.to_string(),
                    "sent": local })
        });
        let json = json!({ "kind": "ended", "graceful": ended.graceful, "terminate": terminate, "region_fnv": hash });
        self.line(&json, &format!("the connection ended by {}; the region's hash is {hash}", how(ended)));
    }
}

/// Describes how a connection ended.
pub(in crate::cmd) fn how(ended: &Ended) -> String {
    match ended.terminate {
        Some(TerminateRecord { terminate, local }) => {
            let who = if local { "this side" } else { "the peer" };
            format!("a Terminate that {who} sent: {}", terminate.error)
        }
        None if ended.graceful => "a close of both sides".to_owned(),
        None => "a reset, or a close before the end of a message".to_owned(),
    }
}

/// Returns the text in private data: the bytes after the description of a region, if there is one.
fn text_of(private_data: &[u8]) -> String {
    String::from_utf8_lossy(Advertisement::parse(private_data).1).into_owned()
}
