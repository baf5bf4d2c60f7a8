//! Units and findings for readers: one file a format.
//!
//! | file | what it writes |
//! | --- | --- |
//! | [`json`] | JSON Lines, an object a unit |
//! | [`text`], [`hexdump`] | lines for people |
//! | [`frames`] | gathers what belongs to a frame, for the next three |
//! | [`fields`], [`packets`], [`pdml`] | tshark's `-T fields`, `json` and `pdml` |
//! | [`messages`] | DDP messages put together |
//! | [`ladder`], [`story`] | sequence diagrams, and the one of a connection |
//! | [`senders`] | who sent what a finding is about |
//! | [`pcapng`] | captures with comments |
//! | [`excerpt`] | chosen packets of a pcapng capture, with all that describes them |

pub mod excerpt;
pub mod fields;
pub mod follow;
pub mod frames;
pub mod hexdump;
pub mod json;
pub mod ladder;
pub mod layers;
pub mod messages;
pub mod packets;
pub mod pcapng;
pub mod pdml;
pub mod senders;
pub mod story;
pub mod text;
