//! The monitor reports no warnings and no errors about two correct endpoints of SDP.

use weft_core::requirement::Severity;
use weft_core::wire::sdp::{FieldOrder, Mode};
use weft_peer::Deviations;
use weft_peer::sdp::{Half, Policy, Profile, Settings, SrcAvailAnswer};

use super::net::Net;
use super::random::Program;
use crate::hostile::capture::Capture;

pub(crate) const PROFILES: [Profile; 5] =
    [Profile::Swapped, Profile::Bare, Profile::Natural, Profile::Enhanced, Profile::PrivateData];
const ORDERS: [FieldOrder; 2] = [FieldOrder::Figure, FieldOrder::Mirrored];
/// Default number of random programs. The environment variable `SDP_PROGRAMS` sets another number.
const PROGRAMS: u64 = 150;

/// Requirements that the profile `natural` always violates. With this profile, the Responder sends
/// HelloAck before it has received an FPDU.
const OF_NATURAL: [&str; 2] = ["MPA-7.1.2-17", "MPA-7.1.3-2"];

/// Returns the warnings and errors of the monitor, except the violations that are part of the
/// profile.
pub(crate) fn blamed(capture: &Capture, profile: Profile) -> Vec<String> {
    let findings = capture.findings();
    let known = |id: &str| profile == Profile::Natural && OF_NATURAL.contains(&id);
    let bad = findings.iter().filter(|it| it.severity >= Severity::Warning && !known(it.requirement.as_str()));
    bad.map(|f| {
        format!(
            "{} of end {}, frame {}: expected {}, found {}",
            f.requirement, f.direction, f.frame, f.expected, f.found
        )
    })
    .collect()
}

fn settings(profile: Profile, order: FieldOrder) -> Settings {
    let policy = Policy { source_threshold: 3000, sink_threshold: 0, src_avail_payload: 100, ..Policy::default() };
    Settings {
        profile,
        order,
        recv_size: 1000,
        max_recv_size: 5000,
        des_rem_rcv_sz: 1000,
        policy,
        ..Settings::default()
    }
}

fn octets(len: usize, salt: u8) -> Vec<u8> {
    (0..len).map(|n| (n ^ n >> 8) as u8 ^ salt).collect()
}

/// Sends data to the other end. If `ahead` is true, the other end posts its receive first.
fn transfer(net: &mut Net, from: usize, len: usize, ahead: bool) {
    if ahead {
        net.ends[1 - from].receive(len as u64, false);
        net.settle();
    }
    net.ends[from].send(octets(len, 0x11), false);
    net.settle();
    while net.ends[1 - from].waited() < net.ends[from].sent() {
        net.ends[1 - from].receive(len as u64, false);
        net.settle();
    }
    net.wait(100);
}

/// Uses every transfer mechanism in every Mode and in both directions. Also resizes buffers,
/// revokes advertisements and sends Out-Of-Band data.
fn everything(net: &mut Net) {
    net.wait(100);
    for from in 0..2 {
        let to = 1 - from;
        for answer in [SrcAvailAnswer::Read, SrcAvailAnswer::SendSm, SrcAvailAnswer::ReadThenSendSm] {
            let policy = net.ends[to].machine.policy_mut();
            (policy.answer, policy.max_read) = (answer, 700);
            for mode in [Mode::Combined, Mode::Pipelined] {
                let _ = net.ends[from].machine.set_mode(Half::Out, mode);
                net.settle();
                for ahead in [false, true] {
                    for len in [1, 900, 2999, 10_000] {
                        transfer(net, from, len, ahead);
                    }
                }
            }
        }
        let _ = net.ends[from].machine.set_mode(Half::Out, Mode::Buffered);
        net.settle();
        transfer(net, from, 20_000, false);
        net.ends[to].machine.set_mode(Half::In, Mode::Combined).unwrap();
        net.settle();
        transfer(net, from, 20_000, false);
        // Out-Of-Band bytes, close to other data and far from it.
        net.ends[from].machine.policy_mut().source_threshold = u64::MAX;
        for len in [1, 2000, 100_000] {
            net.ends[from].send(octets(len, 0x22), true);
            net.settle();
            while net.ends[to].waited() < net.ends[from].sent() {
                net.ends[to].receive(len as u64, false);
                net.settle();
                net.wait(100);
            }
        }
        net.ends[from].machine.policy_mut().source_threshold = 3000;
        for size in [2000, 500, 1000] {
            net.ends[from].machine.resize(size);
            net.settle();
            transfer(net, from, 2900, false);
            transfer(net, from, 2900, true);
            net.wait(1000);
        }
        // In two Modes, first cancel an advertised send, and then cancel an advertised receive.
        for mode in [Mode::Combined, Mode::Pipelined] {
            let _ = net.ends[from].machine.set_mode(Half::Out, mode);
            net.ends[from].send(octets(9000, 0x33), false);
            net.settle();
            net.ends[from].machine.cancel_sends();
            net.settle();
            net.wait(100);
            net.ends[to].receive(9000, false);
            net.settle();
            net.ends[to].machine.cancel_receives();
            net.settle();
            net.wait(100);
        }
    }
    // Both ends send at the same time.
    for from in 0..2 {
        net.ends[from].machine.resize(1500);
        net.ends[from].receive(9000, false);
        net.ends[from].send(octets(9000, 0x44), false);
    }
    net.settle();
    net.wait(1000);
}

#[test]
fn nothing_is_found_in_correct_traffic() {
    let (none, mut wrong) = (Deviations::NONE, Vec::new());
    for (profile, order) in PROFILES.into_iter().flat_map(|profile| ORDERS.map(|order| (profile, order))) {
        for abortive in [false, true] {
            let mut net = Net::new([settings(profile, order); 2], [&none, &none]);
            net.settle();
            everything(&mut net);
            for end in 0..2 {
                net.ends[end].machine.shut_down();
                net.settle();
                if abortive {
                    net.ends[end].machine.abort(net.now);
                }
                net.settle();
            }
            net.wait(60_000);
            assert!(net.is_over(), "{profile:?} {order:?}");
            let found = blamed(&net.capture, profile);
            wrong.extend(found.into_iter().map(|line| format!("{profile:?} {order:?} abortive {abortive}: {line}")));
        }
    }
    assert!(wrong.is_empty(), "{wrong:#?}");
}

#[test]
fn nothing_is_found_in_random_programs() {
    let number = |name| std::env::var(name).ok().map(|value| value.parse::<u64>().unwrap());
    let seeds = number("SDP_SEED").map_or(0..number("SDP_PROGRAMS").unwrap_or(PROGRAMS), |seed| seed..seed + 1);
    let (mut wrong, runs) = (Vec::new(), seeds.end - seeds.start);
    for seed in seeds {
        let program = Program::new(seed);
        let profile = program.profile;
        let found = blamed(&program.run().capture, profile).into_iter();
        wrong.extend(found.map(|line| format!("SDP_SEED={seed}: {line}")));
    }
    println!("{runs} programs: {} findings", wrong.len());
    assert!(wrong.is_empty(), "{wrong:#?}");
}
