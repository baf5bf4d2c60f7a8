//! Fields for the state of an SDP connection after a message. These fields have no octets.
//!
//! All fields describe the state of the sender directly after the message. Uncertain values are
//! omitted. The values of `iwarp_sdp.state` are `hello`, `open`, `half_closed`, `closed`,
//! `aborted`, `suspending` and `suspended`.

use crate::follow::sdp::SdpState;

use super::field::{Base, Field, Group, Value, Visitor, fields};

/// The group of these fields.
pub static STATE_SO_FAR: Group =
    Group { name: "iwarp_sdp.followed", label: "SDP, as followed so far", section: "SDP 8" };

fields! { 5:
    PROFILE: "iwarp_sdp.profile", "Start-up sequence", Base::Text, "SDP 8.1.1";
    STATE: "iwarp_sdp.state", "Connection", Base::Text, "SDP 8";
    MODE: "iwarp_sdp.mode", "Mode of the data sent", Base::Text, "SDP 12";
    PEER_MODE: "iwarp_sdp.peer_mode", "Mode of the data received", Base::Text, "SDP 12";
    CREDITS: "iwarp_sdp.credits", "Credit left to the sender", Base::Dec, "SDP 10.2";
    CREDIT_UPDATE: "iwarp_sdp.credit_update", "Gratuitous update", Base::Flag, "SDP 10.4";
    SRCAVAILS: "iwarp_sdp.srcavails", "Own SrcAvails open", Base::Dec, "SDP 9.2";
    SINKAVAILS: "iwarp_sdp.sinkavails", "Own SinkAvails open", Base::Dec, "SDP 9.3";
    ADVERT_FRAME: "iwarp_sdp.advert.frame", "Advertised in frame", Base::Dec, "SDP 9";
    ADVERT_LEFT: "iwarp_sdp.advert.left", "Bytes of it that are left", Base::Dec, "SDP 9";
    OWED: "iwarp_sdp.owed", "Bytes of Data that a SendSm requested", Base::Dec, "SDP 9.2";
    NONDISCARDS: "iwarp_sdp.nondiscards", "NonDiscards", Base::Dec, "SDP 6.3.3.4";
    POTENTIALNONDISCARDS: "iwarp_sdp.potentialnondiscards", "PotentialNonDiscards", Base::Dec, "SDP 9.5.1";
    OOB_PENDING: "iwarp_sdp.oob_pending", "Out-Of-Band bytes announced", Base::Dec, "SDP 9.5.3";
}

/// Visits the state of the sender of the latest message.
pub(super) fn visit<V: Visitor>(connection: &SdpState, at: usize, visitor: &mut V) {
    let latest = &connection.latest;
    let (own, peer) = (latest.direction, latest.direction.peer());
    let (end, closing) = (&connection.ends[own], &connection.closing);
    visitor.enter(&STATE_SO_FAR, at..at);
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
        report(&SRCAVAILS, Value::Uint(end.source.adverts.open().len() as u64));
        report(&SINKAVAILS, Value::Uint(end.sink.adverts.open().len() as u64));
        if let Some(subject) = latest.subject {
            report(&ADVERT_FRAME, Value::Uint(subject.frame));
            report(&ADVERT_LEFT, Value::Uint(subject.left));
        }
        if end.source.owed > 0 {
            report(&OWED, Value::Uint(end.source.owed));
        }
        report(&NONDISCARDS, Value::Uint(u64::from(end.sink.non_discards)));
        report(&POTENTIALNONDISCARDS, Value::Uint(u64::from(end.source.potential_non_discards)));
    }
    if end.oob_pending > 0 {
        report(&OOB_PENDING, Value::Uint(u64::from(end.oob_pending)));
    }
    visitor.leave();
}

fn mode_word(mode: weft_core::wire::sdp::Mode) -> &'static str {
    super::sdp::mode_name(u64::from(mode.value())).unwrap_or_default()
}
