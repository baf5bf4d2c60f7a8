//! Output of units and findings: one file for each format.
//!
//! | file | purpose |
//! | --- | --- |
//! | [`json`] | writes JSON Lines, one object for each unit |
//! | [`text`], [`hexdump`] | write text lines for people |
//! | [`frames`] | collects units and findings by frame, for the formats of `-T` |
//! | [`fields`], [`packets`], [`ek`], [`pdml`], [`columns`] | write the formats of tshark's `-T` |
//! | [`layers`] | converts a unit to layers of fields, for `packets`, `ek` and `pdml` |
//! | [`messages`] | reassembles DDP messages |
//! | [`follow`] | selects the traffic of one connection |
//! | [`ladder`] | draws sequence diagrams |
//! | [`connection_ladder`], `ladder_rows` | collect the sequence diagram of a connection |
//! | [`senders`] | finds the sender and receiver of the traffic in a finding |
//! | [`pcapng`] | writes captures with comments |
//! | [`pcap`] | writes captures without comments |
//! | [`excerpt`] | copies selected packets of a pcapng capture |
//! | [`upper_pdu`] | exports messages of protocols above RDMAP for Wireshark |

pub mod columns;
pub mod connection_ladder;
pub mod ek;
pub mod excerpt;
pub mod fields;
pub mod follow;
pub mod frames;
pub mod hexdump;
pub mod json;
pub mod ladder;
mod ladder_rows;
pub mod layers;
pub mod messages;
pub mod packets;
pub mod pcap;
pub mod pcapng;
pub mod pdml;
mod record;
pub mod senders;
pub mod text;
pub mod upper_pdu;
