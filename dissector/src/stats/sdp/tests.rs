//! Uses captures of an independent SDP peer. Compares the tracked state with the messages that
//! `captures/README.md` lists for each half-connection.
//!
//! At the end of a correct connection, NonDiscards of a Data Sink equals PotentialNonDiscards of
//! its Data Source (section 9.5.1 of the SDP draft). No message contains PotentialNonDiscards. The
//! dissector computes this value. So if the two values are equal, the dissector tracks stale and
//! crossing advertisements correctly.

use std::path::Path;

use super::*;
use crate::Dissector;
use crate::source::Capture;
use crate::stats::{ConnectionStats, Stats};

fn connections(name: &str) -> Vec<ConnectionStats> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../captures/sdp").join(name);
    let (mut stats, mut dissector) = (Stats::default(), Dissector::default());
    let mut capture = Capture::open(&path).unwrap();
    while let Some(frame) = capture.next_frame() {
        dissector.frame(&frame, &mut stats);
    }
    dissector.finish(&mut stats);
    stats.connections().cloned().collect()
}

/// Returns the number of messages with each MID. Hello and HelloAck are not counted.
fn sent(connection: &ConnectionStats, direction: usize) -> String {
    let messages = &connection.directions[direction].sdp.as_ref().unwrap().messages;
    let counted = messages.iter().filter(|(name, _)| !name.starts_with("Hello"));
    counted.map(|(name, count)| format!("{name} {count}")).collect::<Vec<_>>().join(", ")
}

/// Asserts the properties of every complete connection.
fn meets(sdp: &SdpConnectionStats) {
    assert!(sdp.certain);
    for half in &sdp.halves {
        let (sink, source) = half.non_discards.unwrap();
        assert_eq!(sink, source, "{half:?}");
        assert_eq!(half.unexplained, Some((0, 0)), "{half:?}");
        assert_eq!((half.src_avails.unwrap().open, half.sink_avails.unwrap().open, half.oob_pending), (0, 0, 0));
    }
}

fn one(name: &str, client: &str, server: &str) -> SdpConnectionStats {
    let all = connections(name);
    assert_eq!((all.len(), sent(&all[0], 0).as_str(), sent(&all[0], 1).as_str()), (1, client, server));
    let sdp = all[0].sdp.clone().unwrap();
    assert_eq!((sdp.profile, sdp.connecting, sdp.state, sdp.graceful), (Some("swapped"), 0, "closed", [Some(true); 2]));
    meets(&sdp);
    sdp
}

fn modes(half: &HalfStats) -> Vec<&str> {
    half.modes.iter().map(|(_, mode)| mode.as_deref().unwrap()).collect()
}

#[test]
fn modes_and_stale_advertisements() {
    let client = "Data 5, DisConn 1, ModeChange 3, SinkAvail 10, SrcAvail 1";
    let server = "Data 15, DisConn 1, ModeChange 1, RdmaRdCompl 1, SinkAvail 3";
    let sdp = one("modes.pcap", client, server);
    assert_eq!(modes(&sdp.halves[0]), ["Pipelined", "Combined", "Buffered"]);
    assert_eq!(modes(&sdp.halves[1]), ["Pipelined"]);
    let source = sdp.halves[0].src_avails.unwrap();
    assert_eq!((source.made, source.completed), (1, 1));
    for (half, made) in sdp.halves.iter().zip([3, 10]) {
        let sinks = half.sink_avails.unwrap();
        assert_eq!((sinks.made, sinks.stale + sinks.void), (made, made), "no RdmaWrCompl was sent");
    }
}

#[test]
fn writes_complete_sink_avails() {
    let sdp = one("writes.pcap", "Data 3, DisConn 1, ModeChange 1, RdmaWrCompl 2", "DisConn 1, SinkAvail 6");
    let sinks = sdp.halves[0].sink_avails.unwrap();
    // Each of the three Data messages makes an open SinkAvail stale. The DisConn makes the
    // remaining SinkAvail void.
    assert_eq!((sinks.made, sinks.completed, sinks.stale + sinks.void), (6, 2, 4));
}

#[test]
fn a_canceled_src_avail_is_revoked() {
    let client = "Data 6, DisConn 1, ModeChange 1, SrcAvail 1, SrcAvailCancel 1";
    let sdp = one("cancel.pcap", client, "DisConn 1, SendSm 1");
    let source = sdp.halves[0].src_avails.unwrap();
    assert_eq!((source.made, source.revoked), (1, 1));
}

#[test]
fn mirrored_words_and_few_buffers() {
    let sdp = one("mirrored.pcap", "Data 2, DisConn 1", "Data 3, DisConn 1");
    // Each peer starts with three buffers. By section 10.5, a sender that sends payload keeps two
    // credits.
    assert!(
        sdp.halves.iter().all(|half| half.credits.1.unwrap() >= 1 && half.buffers_advertised >= half.buffers_consumed)
    );
    assert_eq!((sdp.halves[0].buffers_consumed, sdp.halves[1].buffers_consumed), (3, 4));
}

#[test]
fn a_suspended_connection_goes_on_at_the_port_that_it_named() {
    let all = connections("suspend.pcap");
    let [first, second] = [0, 1].map(|index| all[index].sdp.clone().unwrap());
    assert_eq!((first.state, first.graceful), ("suspended", [None; 2]));
    let there = format!(":{}", first.suspended_to.unwrap());
    assert!(all[1].ends[1].ends_with(&there), "{:?} {there}", all[1].ends);
    assert_eq!((second.state, second.graceful), ("closed", [Some(true); 2]));
    [first, second].iter().for_each(meets);
}
