//! Deviations in what the endpoint reports to its user about start-up and about the outcome of
//! connections. A capture cannot show these deviations.
//!
//! Deviations in completions and asynchronous events are in `completion`.

use super::ConnectionOutcome;
use crate::mpa::{PeerFrame, PrivateData};

/// Number of bytes of a Reply's private data that the connection manager of InfiniBand always
/// reports, even if the peer sent fewer bytes.
const PADDED: usize = 196;

fn report(frame: &mut PeerFrame, private_data: Vec<u8>) {
    if let Ok(private_data) = PrivateData::new(private_data) {
        frame.private_data = private_data;
    }
}

deviations! {
    "mpa.conceals-end" [ConcealsOutcome(|outcome| outcome == ConnectionOutcome::Disconnected)] ["MPA-8-1", "MPA-7.2-2",
        "MPA-3-13"]
        "does not report to the user that a connection has ended";
    "mpa.conceals-failure" [ConcealsOutcome(|outcome| outcome != ConnectionOutcome::Disconnected)]
        ["MPA-7.1.2-18", "MPA-7.1.1-4", "MPA-7.1.1-22", "MPA-7.1.1-26", "MPA-8-4", "MPA-7.1.4.2-2", "P2P-10-12"]
        "does not report to the user that a requested connection was rejected or failed";
    "mpa.conceals-private-data" [ReportedFrame(|frame| report(frame, Vec::new()))] ["MPA-7.1.1-27", "MPA-7.1.4.2-2"]
        "reports no private data to the user, whatever the peer sent";
    "mpa.pads-private-data" [ReportedFrame(|frame| {
        let mut padded = frame.private_data.as_octets().to_vec();
        padded.resize(padded.len().max(PADDED), 0);
        report(frame, padded);
    })] ["MPA-7.1.1-27", "MPA-7.1.4.2-2"] "reports at least 196 bytes of private data to the user, with zeros after the peer's data";
    "p2p.swaps-reported-depths" [ReportedFrame(|frame| if let Some(words) = &mut frame.enhanced {
        (words.ird, words.ord) = (words.ord, words.ird);
    })] ["P2P-9.1-8", "P2P-9.1-25"] "swaps the peer's IRD and ORD in the report to the user";
    "p2p.reports-words" [ReportedFrame(|frame| if let Some(words) = frame.enhanced {
        let with_words = [&words.ird.to_be_bytes()[..], &words.ord.to_be_bytes(), frame.private_data.as_octets()].concat();
        report(frame, with_words);
    })] ["P2P-9-8", "P2P-6-12", "MPA-7.1.1-27"] "reports IRD and ORD to the user as the first four bytes of the private data";
}
