//! Output of units and findings: one file for each format.
//!
//! | file | what it writes |
//! | --- | --- |
//! | [`json`] | JSON Lines, an object a unit |
//! | [`text`], [`hexdump`] | lines for people |
//! | [`frames`] | collects units and findings by frame, for the next three |
//! | [`fields`], [`packets`], [`pdml`] | tshark's `-T fields`, `json` and `pdml` |
//! | [`messages`] | reassembled DDP messages |
//! | [`ladder`], [`story`] | sequence diagrams, and the one of a connection |
//! | [`senders`] | senders and receivers of the traffic in findings |
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
mod record;
pub mod senders;
pub mod story;
pub mod text;
