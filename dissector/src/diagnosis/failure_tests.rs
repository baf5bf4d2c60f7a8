//! Small captures in which TCP, the path or a host fails, and in which a port is denied. With each
//! capture, there is a similar capture that just does not show this cause.

use super::tests::{one, quiet};
use super::{Cause, Culprit, Diagnosis, EndKind};
use crate::testing::{Wire, fpdu, hex, reply, request, send_of};

/// Between two frames of [`Wire`], there is at least this time, in nanoseconds.
const FRAME_TIME: u64 = 1_000_000;
/// The number of octets of the FPDU `fpdu(&send_of(_, 30))`: 2 octets of length, 30 of the ULPDU,
/// and 4 of the CRC.
const SHORT: u32 = 36;
/// The same for `fpdu(&send_of(_, 400))`, which has 2 octets of PAD.
const LONG: u32 = 408;

fn result(wire: &Wire) -> (Cause, Culprit) {
    let found = one(wire);
    (found.cause, found.culprit)
}

/// Direction 1 closes its window, and direction 0 resets the connection after `time` nanoseconds.
fn closed_window(time: u64) -> Wire {
    let mut wire = quiet();
    wire.window = 0;
    wire.send(1, &[]);
    wire.window = 65535;
    wire.wait(time - FRAME_TIME);
    wire.rst(0);
    wire
}

/// A window that stays closed for ten seconds is the cause.
#[test]
fn a_window_that_stays_closed_blames_its_owner_after_some_time() {
    assert_eq!(result(&closed_window(10_000_000_000)), (Cause::ClosedWindow, Culprit::Second));
    assert_eq!(result(&closed_window(9_999_999_999)), (Cause::Reset, Culprit::NotInCapture));
    // The window opens again before the reset.
    let mut wire = quiet();
    wire.window = 0;
    wire.send(1, &[]);
    wire.window = 65535;
    wire.wait(20_000_000_000);
    wire.send(1, &[]);
    wire.rst(0);
    assert_eq!(result(&wire), (Cause::Reset, Culprit::NotInCapture));
}

#[test]
fn a_window_that_is_closed_at_the_end_of_the_capture_counts() {
    let until = |time: u64| {
        let mut wire = quiet();
        wire.window = 0;
        wire.send(1, &[]);
        wire.wait(time - FRAME_TIME);
        wire.send(1, &[]);
        one(&wire)
    };
    let found = until(10_000_000_000);
    assert_eq!((found.cause, found.ending.kind), (Cause::ClosedWindow, EndKind::Open), "{found}");
    assert_eq!(until(9_999_999_999).cause, Cause::None);
}

/// Direction 0 sends an FPDU, and repeats it. Direction 1 sends FPDUs, but acknowledges nothing.
/// Then direction 0 resets the connection.
fn lost_path(repeats: u32, answers: u32) -> Wire {
    let mut wire = quiet();
    let lost = fpdu(&send_of(2, 30));
    wire.at_once(
        |wire| {
            wire.send(0, &lost);
            for _ in 0..repeats {
                wire.wait(200_000_000);
                wire.send_again(0, SHORT, &lost);
            }
        },
        |wire| (0..answers).for_each(|index| wire.send(1, &fpdu(&send_of(2 + index, 30)))),
    );
    wire.rst(0);
    wire
}

/// Three retransmissions and two segments of the peer show that only one direction works.
#[test]
fn segments_that_never_arrive_are_lost_by_the_network() {
    assert_eq!(result(&lost_path(3, 2)), (Cause::PathLoss, Culprit::Network));
    assert_eq!(result(&lost_path(2, 2)), (Cause::Reset, Culprit::NotInCapture));
    assert_eq!(result(&lost_path(3, 1)), (Cause::Reset, Culprit::NotInCapture));
}

/// Direction 0 sends a long FPDU and a short one, and repeats the long one. Direction 1 receives
/// only the short one. If `has_arrived` is set, an earlier FPDU of the same length has arrived.
fn black_hole(repeats: usize, has_arrived: bool) -> Diagnosis {
    let mut wire = quiet();
    if has_arrived {
        wire.send(0, &fpdu(&send_of(2, 400)));
        wire.send(1, &[]);
    }
    let msn = 2 + u32::from(has_arrived);
    let long = fpdu(&send_of(msn, 400));
    wire.send(0, &long);
    wire.send(0, &fpdu(&send_of(msn + 1, 30)));
    wire.sack(1, LONG + SHORT, LONG);
    for _ in 0..repeats {
        wire.wait(200_000_000);
        wire.send_again(0, LONG + SHORT, &long);
    }
    wire.rst(0);
    one(&wire)
}

/// The peer acknowledges only short segments, so a device drops the long ones.
#[test]
fn long_segments_that_never_arrive_show_a_smaller_mtu() {
    let found = black_hole(3, false);
    assert_eq!((found.cause, found.culprit), (Cause::MtuBlackHole, Culprit::Network), "{found}");
    assert!(found.to_string().replace("\n  ", " ").contains("408 bytes of payload"), "{found}");
    // With two retransmissions, or if such a segment has arrived, only the missing answer is
    // certain.
    for (repeats, has_arrived) in [(2, false), (3, true)] {
        let found = black_hole(repeats, has_arrived);
        assert_eq!((found.cause, found.culprit), (Cause::Silence, Culprit::NotInCapture), "{found}");
    }
}

/// After a pause of `time` nanoseconds, direction 1 answers a Send with a RST without ACK.
fn reset_after_pause(time: u64) -> Wire {
    let mut wire = quiet();
    // The TTL of a RST is compared only with the TTL of at least three segments.
    wire.send(1, &[]);
    wire.wait(time - FRAME_TIME);
    wire.send(0, &fpdu(&send_of(2, 30)));
    wire.rst(1);
    wire
}

/// A pause has at least 30 seconds.
#[test]
fn a_reset_after_a_pause_shows_a_lost_state() {
    assert_eq!(result(&reset_after_pause(30_000_000_000)), (Cause::LostState, Culprit::Second));
    assert_eq!(result(&reset_after_pause(29_999_999_999)), (Cause::Reset, Culprit::NotInCapture));
}

/// The port mapper denies SDP for 10.0.0.1 and this port, and 10.0.0.2 then connects to port 4210.
/// The messages have the format of Figure 17 of the SDP draft.
fn denied(port: u16) -> Wire {
    let zeros = "00".repeat(12);
    let rest = format!("00 0000 {port:04x} c000 000000000000004d 0a000002 {zeros} 0a000001 {zeros}");
    let [pm_req, pm_deny] = ["04", "34"].map(|first| hex(&format!("{first} {rest}")));
    Wire::connected_after(&[(0, pm_req), (1, pm_deny)])
}

#[test]
fn an_mpa_request_on_a_denied_port_blames_the_client() {
    let mut wire = denied(4210);
    wire.send(0, &request());
    wire.fin(1);
    let found = one(&wire);
    assert_eq!((found.cause, found.culprit), (Cause::PortDenied, Culprit::First), "{found}");
    assert_eq!(found.chain[0].frame, Some(2.into()));
    // The port mapper denied another port.
    let mut wire = denied(4211);
    wire.send(0, &request());
    wire.fin(1);
    assert_eq!(result(&wire), (Cause::Startup, Culprit::NotInCapture));
    // The server accepts MPA on the denied port.
    let mut wire = denied(4210);
    wire.send(0, &request());
    wire.send(1, &reply());
    wire.fin(1);
    assert_ne!(one(&wire).cause, Cause::PortDenied);
}
