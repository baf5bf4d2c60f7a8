//! Rules of RFC 8166 (RPC-over-RDMA version 1), RFC 8167 (calls in the reverse direction) and RFC
//! 8797 (settings in private data).
//!
//! The rules about messages run only after the messages of the connection proved RPC-over-RDMA. They
//! check a message when its last segment arrives.
//!
//! | file | subject |
//! | --- | --- |
//! | [`header`] | the transport header, and its chunk lists |
//! | [`reply`] | the chunks that a reply returns |
//! | [`invalidate`] | replies that invalidate an STag |
//! | [`settings`] | the settings in private data |
//!
//! **Limits.** A header with another version, without credits, or with another XID than its RPC
//! message disproves the protocol, so no rule is about it. Credits and inline thresholds are not
//! judged.

mod header;
mod invalidate;
mod reply;
mod sent;
mod settings;
#[cfg(test)]
mod testing;

use super::rule::Rule;

/// All rules of RFC 8166, RFC 8167 and RFC 8797.
pub(super) static RULES: &[&Rule] = &[
    &header::PROCEDURE,
    &header::LISTS,
    &reply::WRITE_LIST,
    &reply::REPLY_CHUNK,
    &invalidate::OWN_STAG,
    &invalidate::PERMITTED,
    &settings::RESERVED,
];
