//! Tests that Reads are counted with correct latencies even if octets are missing in the capture.

use super::{ConnectionStats, Stats};
use crate::testing::{Wire, fpdu, hex, reply_frame, send_of, startup_frame};

/// Number of Reads on each connection.
const READS: u32 = 20;

fn request(msn: u32) -> Vec<u8> {
    let sink = "00000100 0000000000001000 00000008 00000200 0000000000002000";
    fpdu(&hex(&format!("4141 00000000 00000001 {msn:08x} 00000000 {sink}")))
}

fn response() -> Vec<u8> {
    fpdu(&hex("c142 00000100 0000000000001000 0102030405060708"))
}

/// `requester` sends `READS` Reads, one after the other. All Reads use the same buffer. Each
/// segment is sent one millisecond after the previous segment.
fn reads(flags: u8, requester: usize) -> Wire {
    let mut wire = Wire::started_as(&startup_frame(flags, 1, &[]), &reply_frame(flags, 1, &[]));
    if requester == 1 {
        // The Initiator must send the first FPDU.
        wire.send_ulpdu(0, "4143 00000000 00000000 00000001 00000000 2a");
    }
    for msn in 1..=READS {
        wire.send(requester, &request(msn));
        wire.send(1 - requester, &response());
    }
    wire
}

fn stats(wire: &Wire) -> ConnectionStats {
    let mut stats = Stats::default();
    wire.feed(&mut stats);
    stats.connections().next().unwrap().clone()
}

/// Returns the number of Reads, their minimum and maximum latency in milliseconds, and whether the
/// count is possibly too low.
fn count_reads(wire: &Wire, requester: usize) -> (u64, u64, u64, bool) {
    let stats = stats(wire);
    let found = stats.directions[requester].reads.percentiles().unwrap();
    (found.count, found.min_ns / 1_000_000, found.max_ns / 1_000_000, stats.partial)
}

#[test]
fn reads_with_and_without_crc_are_counted() {
    for flags in [0x40, 0] {
        for requester in [0, 1] {
            let expected = (u64::from(READS), 1, 1, false);
            assert_eq!(
                count_reads(&reads(flags, requester), requester),
                expected,
                "flags {flags:x}, requester {requester}"
            );
        }
    }
}

#[test]
fn counting_continues_after_a_loss() {
    for flags in [0x40, 0] {
        // Frames 0 to 3 are the SYNs and the start-up frames. After that, requests and responses
        // alternate.
        for lost in [10, 11] {
            let wire = reads(flags, 0).changed(|mut frames| {
                frames.remove(lost);
                frames
            });
            let (count, least, most, partial) = count_reads(&wire, 0);
            // The count includes neither the Read with the lost message nor the Read of the first
            // message after the loss.
            assert!(count >= u64::from(READS) - 3, "flags {flags:x}, frame {lost} lost: {count} Reads");
            assert_eq!((least, most, partial), (1, 1, true), "flags {flags:x}, frame {lost} lost");
        }
    }
}

#[test]
fn a_capture_that_begins_in_mid_stream_is_partial() {
    let wire = reads(0x40, 0).changed(|mut frames| frames.split_off(6));
    let (count, least, most, partial) = count_reads(&wire, 0);
    assert!(count >= u64::from(READS) - 3, "{count} Reads");
    assert_eq!((least, most, partial), (1, 1, true));
}

/// The frame headers have 54 octets. After these, the FPDU of a Read Request has 52 octets, and the
/// FPDU of a Response has 28 octets.
#[test]
fn a_snap_length_changes_no_latency() {
    for flags in [0x40, 0] {
        for (requester, snap_length) in [(0, 100), (1, 100), (0, 75), (1, 75)] {
            let wire = reads(flags, requester).cut_to(snap_length);
            let stats = stats(&wire);
            let how = format!("flags {flags:x}, requester {requester}, {snap_length} bytes");
            assert!(stats.partial, "{how}");
            if let Some(found) = stats.directions[requester].reads.percentiles() {
                assert_eq!((found.min_ns, found.max_ns), (1_000_000, 1_000_000), "{how}");
            }
        }
    }
}

/// The snap length cuts a Send, but does not cut messages of Reads.
#[test]
fn reads_beside_a_cut_message_are_counted() {
    for flags in [0x40, 0] {
        let mut wire = reads(flags, 0);
        wire.send(0, &fpdu(&send_of(1, 400)));
        let (count, least, most, is_partial) = count_reads(&wire.cut_to(200), 0);
        assert_eq!((count, least, most, is_partial), (u64::from(READS), 1, 1, true), "flags {flags:x}");
    }
}
