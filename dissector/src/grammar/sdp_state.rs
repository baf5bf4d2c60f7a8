//! Defines fields for the state of an SDP connection after a message. These fields have no octets.
//!
//! All fields describe the state of the sender directly after the message. A field with an
//! uncertain value is omitted. The values of `iwarp_sdp.state` are `hello`, `open`, `half_closed`,
//! `closed`, `aborted`, `suspending` and `suspended`.

use crate::follow::sdp::SdpState;

use super::field::{Base, Field, Group, Value, Visitor, fields};

/// The group of these fields.
pub static STATE_GROUP: Group =
    Group { name: "iwarp_sdp.followed", label: "SDP state after this message", section: "SDP 8" };

fields! { 5:
    PROFILE: "iwarp_sdp.profile", "Start-up sequence", Base::Text, "SDP 8.1.1";
    STATE: "iwarp_sdp.state", "Connection", Base::Text, "SDP 8";
    MODE: "iwarp_sdp.mode", "Mode of the sender's data", Base::Text, "SDP 12";
    PEER_MODE: "iwarp_sdp.peer_mode", "Mode of the peer's data", Base::Text, "SDP 12";
    CREDITS: "iwarp_sdp.credits", "Remaining credit of the sender", Base::Dec, "SDP 10.2";
    CREDIT_UPDATE: "iwarp_sdp.credit_update", "Gratuitous update", Base::Flag, "SDP 10.4";
    SRCAVAILS: "iwarp_sdp.srcavails", "Open SrcAvails of the sender", Base::Dec, "SDP 9.2";
    SINKAVAILS: "iwarp_sdp.sinkavails", "Open SinkAvails of the sender", Base::Dec, "SDP 9.3";
    ADVERT_FRAME: "iwarp_sdp.advert.frame", "Frame of the affected advertisement", Base::Dec, "SDP 9";
    ADVERT_LEFT: "iwarp_sdp.advert.left", "Remaining bytes of the affected advertisement", Base::Dec, "SDP 9";
    OWED: "iwarp_sdp.owed", "Unsent bytes of Data that a SendSm requested", Base::Dec, "SDP 9.2";
    NONDISCARDS: "iwarp_sdp.nondiscards", "NonDiscards", Base::Dec, "SDP 6.3.3.4";
    POTENTIALNONDISCARDS: "iwarp_sdp.potentialnondiscards", "PotentialNonDiscards", Base::Dec, "SDP 9.5.1";
    OOB_PENDING: "iwarp_sdp.oob_pending", "Announced Out-Of-Band bytes", Base::Dec, "SDP 9.5.3";
}

/// Visits the state of the sender of the latest message.
pub(super) fn visit<V: Visitor>(connection: &SdpState, at: usize, visitor: &mut V) {
    let latest = &connection.latest;
    let (own, peer) = (latest.direction, latest.direction.peer());
    let (sender, closing) = (&connection.peers[own], &connection.closing);
    visitor.enter(&STATE_GROUP, at..at);
    let mut report = |field: &'static Field, value: Value<'_>| visitor.field(field, value, at..at);
    if latest.hello_ack
        && let Some(profile) = connection.profile
    {
        report(&PROFILE, Value::Text(profile.name()));
    }
    report(&STATE, Value::Text(closing.state().name()));
    for (field, mode) in [(&MODE, connection.modes[own]), (&PEER_MODE, connection.modes[peer])] {
        if let Some(mode) = mode {
            report(field, Value::Text(mode_word(mode)));
        }
    }
    if let Some(left) = connection.credits[own].left().filter(|_| closing.hello_ack.is_some()) {
        report(&CREDITS, Value::Uint(u64::from(left)));
    }
    if latest.gratuitous {
        report(&CREDIT_UPDATE, Value::Uint(1));
    }
    if connection.certain && closing.hello_ack.is_some() {
        report(&SRCAVAILS, Value::Uint(sender.source.adverts.open().len() as u64));
        report(&SINKAVAILS, Value::Uint(sender.sink.adverts.open().len() as u64));
        if let Some(advert) = latest.affected_advert {
            report(&ADVERT_FRAME, Value::Uint(advert.frame.into()));
            report(&ADVERT_LEFT, Value::Uint(advert.left));
        }
        if sender.source.owed > 0 {
            report(&OWED, Value::Uint(sender.source.owed));
        }
        report(&NONDISCARDS, Value::Uint(u64::from(sender.sink.non_discards)));
        report(&POTENTIALNONDISCARDS, Value::Uint(u64::from(sender.source.potential_non_discards)));
    }
    if sender.oob_pending > 0 {
        report(&OOB_PENDING, Value::Uint(u64::from(sender.oob_pending)));
    }
    visitor.leave();
}

fn mode_word(mode: weft_core::wire::sdp::Mode) -> &'static str {
    super::sdp::mode_name(u64::from(mode.value())).unwrap_or_default()
}
