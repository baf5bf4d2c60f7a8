//! What the books of an SDP connection say behind a message: fields without octets of their own.
//!
//! All of them are of the end that sent the message, as it was when it had sent it; what is not sure is left out. The words
//! of `iwarp_sdp.state`: `hello`, `open`, `half_closed`, `closed`, `aborted`, `suspending`, `suspended`.

use crate::follow::sdp::Books;

use super::field::{Base, Field, Group, Value, Visitor, fields};

/// The books.
pub static BOOKS: Group = Group { name: "iwarp_sdp.books", label: "SDP, as followed so far", section: "SDP 8" };

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
    ADVERT_LEFT: "iwarp_sdp.advert.left", "Octets of it that are left", Base::Dec, "SDP 9";
    OWED: "iwarp_sdp.owed", "Octets of Data that a SendSm asked for", Base::Dec, "SDP 9.2";
    NONDISCARDS: "iwarp_sdp.nondiscards", "NonDiscards", Base::Dec, "SDP 6.3.3.4";
    POTENTIALNONDISCARDS: "iwarp_sdp.potentialnondiscards", "PotentialNonDiscards", Base::Dec, "SDP 9.5.1";
    OOB_PENDING: "iwarp_sdp.oob_pending", "Out-Of-Band octets announced", Base::Dec, "SDP 9.5.3";
}

/// What stands in `books` of the sender of the last message.
pub(super) fn told<V: Visitor>(books: &Books, at: usize, visitor: &mut V) {
    let latest = &books.latest;
    let (own, peer) = (latest.direction, 1 - latest.direction);
    let (end, closing) = (&books.ends[own], &books.closing);
    visitor.enter(&BOOKS, at..at);
    let mut tell = |field: &'static Field, value: Value<'_>| visitor.field(field, value, at..at);
    if latest.hello_ack
        && let Some(profile) = books.profile
    {
        tell(&PROFILE, Value::Text(profile.name()));
    }
    tell(&STATE, Value::Text(closing.state().name()));
    for (field, mode) in [(&MODE, books.modes[own]), (&PEER_MODE, books.modes[peer])] {
        if let Some(mode) = mode {
            tell(field, Value::Text(mode_word(mode)));
        }
    }
    if let Some(left) = books.credits[own].left().filter(|_| closing.hello_ack.is_some()) {
        tell(&CREDITS, Value::Uint(u64::from(left)));
    }
    if latest.gratuitous {
        tell(&CREDIT_UPDATE, Value::Uint(1));
    }
    if books.certain && closing.hello_ack.is_some() {
        tell(&SRCAVAILS, Value::Uint(end.source.adverts.open().len() as u64));
        tell(&SINKAVAILS, Value::Uint(end.sink.adverts.open().len() as u64));
        if let Some(subject) = latest.subject {
            tell(&ADVERT_FRAME, Value::Uint(subject.frame));
            tell(&ADVERT_LEFT, Value::Uint(subject.left));
        }
        if end.source.owed > 0 {
            tell(&OWED, Value::Uint(end.source.owed));
        }
        tell(&NONDISCARDS, Value::Uint(u64::from(end.sink.non_discards)));
        tell(&POTENTIALNONDISCARDS, Value::Uint(u64::from(end.source.potential_non_discards)));
    }
    if end.oob_pending > 0 {
        tell(&OOB_PENDING, Value::Uint(u64::from(end.oob_pending)));
    }
    visitor.leave();
}

fn mode_word(mode: weft_core::wire::sdp::Mode) -> &'static str {
    super::sdp::mode_name(u64::from(mode.value())).unwrap_or_default()
}
