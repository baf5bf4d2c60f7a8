//! Deviations in what the user is told of start-up and of what becomes of connections. The wire shows none of them.
//!
//! What completions and asynchronous events tell is in `completion`.

use super::{Deviations, hook};
use crate::mpa::{PeerFrame, PrivateData};

/// What becomes of a connection, as a connection manager tells it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fate {
    /// It was there, and has ended.
    Disconnected,
    /// It did not come about.
    Failed,
    /// The peer said no.
    Rejected,
}

/// Do these deviations keep it from the user? For those that tell users of connections and are not in this crate.
#[must_use]
pub fn conceals(deviations: &Deviations, fate: Fate) -> bool {
    hook::conceals_fate(deviations, fate)
}

/// Octets of the private data that InfiniBand's connection manager tells of a Reply, however many of them were sent.
const PADDED: usize = 196;

fn tell(frame: &mut PeerFrame, private_data: Vec<u8>) {
    if let Ok(told) = PrivateData::new(private_data) {
        frame.private_data = told;
    }
}

deviations! {
    "mpa.conceals-end" [ConcealsFate(|fate| fate == Fate::Disconnected)] ["MPA-8-1", "MPA-7.2-2", "MPA-3-13"]
        "does not report the end of a connection to the user";
    "mpa.conceals-failure" [ConcealsFate(|fate| fate != Fate::Disconnected)]
        ["MPA-7.1.2-18", "MPA-7.1.1-4", "MPA-7.1.1-22", "MPA-7.1.1-26", "MPA-8-4", "MPA-7.1.4.2-2", "P2P-10-12"]
        "does not report to the user that a requested connection was rejected or failed";
    "mpa.conceals-private-data" [Told(|frame| tell(frame, Vec::new()))] ["MPA-7.1.1-27", "MPA-7.1.4.2-2"]
        "reports no private data to the user, whatever the peer sent";
    "mpa.pads-private-data" [Told(|frame| {
        let mut told = frame.private_data.as_octets().to_vec();
        told.resize(told.len().max(PADDED), 0);
        tell(frame, told);
    })] ["MPA-7.1.1-27", "MPA-7.1.4.2-2"] "reports at least 196 bytes of private data to the user, with zeros after the peer's data";
    "p2p.swaps-told-depths" [Told(|frame| if let Some(words) = &mut frame.enhanced {
        (words.ird, words.ord) = (words.ord, words.ird);
    })] ["P2P-9.1-8", "P2P-9.1-25"] "reports the peer's ORD to the user as its IRD, and its IRD as its ORD";
    "p2p.tells-words" [Told(|frame| if let Some(words) = frame.enhanced {
        let told = [&words.ird.to_be_bytes()[..], &words.ord.to_be_bytes(), frame.private_data.as_octets()].concat();
        tell(frame, told);
    })] ["P2P-9-8", "P2P-6-12", "MPA-7.1.1-27"] "reports IRD and ORD to the user as the first four bytes of the private data";
}
