//! Tests correct but unusual traffic, which occurs on the wire and in captures. This traffic must
//! not cause errors or warnings.
//!
//! Each connection is checked without defects, over VLANs, over IPv6, and with the usual defects of
//! captures. In some captures, a frame is missing, duplicated, out of order, or cut by the snap
//! length. Other captures begin late, end early, or have only one direction.

use crate::testing::{self, Marked, Wire, fpdu, hex};

/// Returns the ULPDU of an untagged message in one segment.
fn untagged(opcode: u8, queue: u32, msn: u32, payload: &str) -> Vec<u8> {
    hex(&format!("41 {:02x} 00000000 {queue:08x} {msn:08x} 00000000 {payload}", 0x40 | opcode))
}

fn read_request(msn: u32, sink: u32, len: u32) -> Vec<u8> {
    let octets = format!("{sink:08x} 0000000000001000 {len:08x} 00000200 0000000000002000");
    untagged(1, 1, msn, &octets)
}

/// Returns a segment of a tagged message. The segment has `len` octets of payload.
fn tagged(last: bool, opcode: u8, stag: u32, to: u64, len: usize) -> Vec<u8> {
    let control = if last { 0xc1 } else { 0x81 };
    let mut ulpdu = hex(&format!("{control:02x} {:02x} {stag:08x} {to:016x}", 0x40 | opcode));
    ulpdu.resize(ulpdu.len() + len, 0x5a);
    ulpdu
}

fn response(sink: u32, len: usize) -> Vec<u8> {
    tagged(true, 2, sink, 0x1000, len)
}

fn terminate(content: &str) -> Vec<u8> {
    untagged(7, 2, 1, content)
}

fn closed(mut wire: Wire) -> Wire {
    wire.fin(0);
    wire.fin(1);
    wire
}

/// The endpoints send messages without payload, of each type that allows such messages.
fn without_payload() -> Wire {
    let mut wire = Wire::started();
    wire.send(0, &fpdu(&untagged(3, 0, 1, "")));
    wire.send(1, &fpdu(&untagged(5, 0, 1, "")));
    wire.send(0, &fpdu(&tagged(true, 0, 0, 0, 0)));
    wire.send(0, &fpdu(&tagged(true, 0, 7, u64::MAX, 0)));
    wire.send(0, &fpdu(&read_request(1, 0, 0)));
    wire.send(0, &fpdu(&read_request(2, 0, 0)));
    wire.send(1, &fpdu(&response(0, 0)));
    wire.send(1, &fpdu(&response(0, 0)));
    wire.send(1, &fpdu(&read_request(1, 9, 0)));
    wire.send(0, &[fpdu(&tagged(true, 0, 3, 5, 0)), fpdu(&response(9, 0)), fpdu(&untagged(3, 0, 2, ""))].concat());
    closed(wire)
}

/// The endpoint sends the longest ULPDUs that MPA allows, in many TCP segments. The MSS is not
/// known.
fn longest() -> Wire {
    let mut wire = Wire::started();
    let mut write = tagged(true, 0, 0x1100, 0, 0);
    write.resize(64768, 1);
    let octets = fpdu(&write);
    octets.chunks(8000).for_each(|piece| wire.send(0, piece));
    let mut send = untagged(3, 0, 1, "");
    send.resize(64768, 2);
    let octets = [fpdu(&send), fpdu(&testing::send_of(2, 30))].concat();
    octets.chunks(8000).for_each(|piece| wire.send(0, piece));
    wire.send(1, &fpdu(&testing::send_of(1, 30)));
    closed(wire)
}

/// The endpoint sends the longest ULPDUs that fit into a TCP segment, and short ULPDUs between
/// them. If `markers` is true, the stream has markers.
fn filled(markers: bool) -> Wire {
    let flags = if markers { 0xc0 } else { 0x40 };
    let mut wire = Wire::connected_with_mss(1460);
    wire.send(0, &testing::startup_frame(flags, 1, &[]));
    wire.send(1, &testing::reply_frame(flags, 1, &[]));
    let mut sender = Marked { none: !markers, ..Marked::default() };
    // RFC 5044 section 4.5: MULPDU is EMSS - (6 + 4 * ceil(EMSS / 512) + EMSS mod 4) with markers,
    // and EMSS - (6 + EMSS mod 4) without markers.
    let full = if markers { 1460 - 6 - 4 * 3 } else { 1460 - 6 };
    for message in 0..6_u32 {
        let base = u64::from(message) * 0x1_0000;
        wire.send(0, &sender.fpdu(&tagged(false, 0, 5, base, full - 14)));
        wire.send(0, &sender.fpdu(&tagged(false, 0, 5, base + full as u64 - 14, full - 14)));
        wire.send(0, &sender.fpdu(&tagged(true, 0, 5, base + 2 * (full as u64 - 14), 3)));
    }
    closed(wire)
}

/// The endpoints send ULPDUs of many sizes up to 600 octets. So the markers are at many positions
/// of an FPDU. `towards` selects the endpoints that receive markers.
fn marked(towards: [bool; 2]) -> Wire {
    let flags = |wants: bool| if wants { 0xc0 } else { 0x40 };
    // An endpoint requests the markers that it receives.
    let request = testing::startup_frame(flags(towards[0]), 1, &[]);
    let mut wire = Wire::started_as(&request, &testing::reply_frame(flags(towards[1]), 1, &[]));
    let mut senders = [towards[1], towards[0]].map(|markers| Marked { none: !markers, ..Marked::default() });
    for (msn, len) in (1..).zip((18..600).step_by(7)) {
        for (direction, sender) in senders.iter_mut().enumerate() {
            wire.send(direction, &sender.fpdu(&testing::send_of(msn, len)));
        }
    }
    closed(wire)
}

/// Only one endpoint requires CRC. Therefore both directions use CRC.
fn crc_for_one(request: u8, reply: u8) -> Wire {
    let mut wire = Wire::started_as(&testing::startup_frame(request, 1, &[]), &testing::reply_frame(reply, 1, &[]));
    wire.send(0, &fpdu(&testing::send_of(1, 31)));
    wire.send(1, &fpdu(&testing::send_of(1, 40)));
    closed(wire)
}

/// CRC is not in use. The CRC fields have arbitrary values in both directions.
fn no_crc() -> Wire {
    let mut wire = Wire::started_as(&testing::startup_frame(0, 1, &[]), &testing::reply_frame(0, 1, &[]));
    for (msn, direction) in [(1, 0), (1, 1), (2, 0), (2, 1)] {
        let mut octets = fpdu(&testing::send_of(msn, 29 + direction));
        let at = octets.len() - 4;
        octets[at..].copy_from_slice(&[0xde, 0xad, msn as u8, direction as u8]);
        wire.send(direction, &octets);
    }
    closed(wire)
}

/// Plays the peer-to-peer start-up with the IRD and ORD fields `words`. A ready-to-receive message
/// and its answer follow.
fn ready(words: &str, message: &[u8], answer: Option<Vec<u8>>) -> Wire {
    let frame = hex(words);
    let mut wire = Wire::started_as(&testing::startup_frame(0x50, 2, &frame), &testing::reply_frame(0x50, 2, &frame));
    wire.send(0, &fpdu(message));
    answer.into_iter().for_each(|answer| wire.send(1, &fpdu(&answer)));
    wire.send(1, &fpdu(&testing::send_of(1, 30)));
    // A Send that is the ready-to-receive message has MSN 1.
    wire.send(0, &fpdu(&testing::send_of(if message[1] & 0xf == 3 { 2 } else { 1 }, 30)));
    closed(wire)
}

/// Both endpoints send a Terminate at the same time.
fn crossing_terminates(reset: bool) -> Wire {
    let mut wire = Wire::started();
    wire.send(0, &fpdu(&testing::send_of(1, 30)));
    wire.send(1, &fpdu(&testing::send_of(1, 30)));
    wire.at_once(
        |wire| wire.send(0, &fpdu(&terminate("0000 0000"))),
        |wire| wire.send(1, &fpdu(&terminate("0000 0000"))),
    );
    wire.at_once(|wire| wire.fin(0), |wire| wire.fin(1));
    if reset {
        wire.rst(0);
        wire.rst(1);
    }
    wire
}

/// One endpoint sends a Terminate and closes its socket. Octets that arrive from the peer after the
/// close cause a reset.
fn reset_after_terminate() -> Wire {
    let mut wire = Wire::started();
    wire.send(0, &fpdu(&testing::send_of(1, 30)));
    wire.at_once(
        |wire| {
            wire.send(1, &fpdu(&terminate("0000 0000")));
            wire.fin(1);
        },
        |wire| {
            wire.send(0, &fpdu(&read_request(1, 4, 8)));
            wire.send(0, &fpdu(&testing::send_of(2, 30)));
        },
    );
    wire.rst(1);
    wire
}

/// One endpoint has many outstanding Reads. Between the segments of its Responses, the other
/// endpoint also sends its own Sends, Writes and Reads.
fn interleaved() -> Wire {
    let mut wire = Wire::started();
    let (mut sends, mut reads) = (0, 0);
    (1..=6).for_each(|n| wire.send(0, &fpdu(&read_request(n, n, 300))));
    for n in 1..=6 {
        for part in 0..3 {
            let to = 0x1000 + 100 * part;
            wire.send(1, &fpdu(&tagged(part == 2, 2, n, to, 100)));
            sends += 1;
            wire.send(1, &fpdu(&testing::send_of(sends, 40)));
            wire.send(1, &fpdu(&tagged(true, 0, 0x99, to, 10)));
        }
        reads += 1;
        wire.send(1, &fpdu(&read_request(reads, 0x70 + n, 5)));
    }
    (1..=6).for_each(|n| wire.send(0, &fpdu(&response(0x70 + n, 5))));
    closed(wire)
}

/// A Send and a Read Request are between the segments of a Write.
fn write_around_sends() -> Wire {
    let mut wire = Wire::started();
    wire.send(0, &fpdu(&tagged(false, 0, 5, 0, 64)));
    wire.send(0, &fpdu(&testing::send_of(1, 30)));
    wire.send(0, &fpdu(&read_request(1, 6, 8)));
    wire.send(1, &fpdu(&response(6, 8)));
    wire.send(0, &fpdu(&tagged(true, 0, 5, 64, 64)));
    closed(wire)
}

/// TCP works normally. It retransmits octets with different segment boundaries, and sends
/// keep-alives and window probes.
fn tcp_at_work() -> Wire {
    let mut wire = Wire::started();
    let octets: Vec<u8> = (1..=8).flat_map(|msn| fpdu(&testing::send_of(msn, 50))).collect();
    octets.chunks(70).for_each(|piece| wire.send(0, piece));
    let len = octets.len() as u32;
    for (from, to) in [(0, 100), (30, 200), (100, octets.len())] {
        wire.send_again(0, len - from as u32, &octets[from..to]);
    }
    // A keep-alive with one octet comes first, followed by its answer. This octet can differ from
    // the octet that the sender first sent at this position. A keep-alive without octets comes
    // next, followed by its answer.
    wire.send_again(0, 1, &[0xff]);
    wire.send(1, &[]);
    wire.send_again(0, 1, &[]);
    wire.send(1, &[]);
    // The window is closed. The sender probes the window repeatedly with one octet of the next
    // FPDU, until the window opens.
    wire.window = 0;
    wire.send(1, &[]);
    wire.window = 65535;
    let next = fpdu(&testing::send_of(9, 50));
    wire.send(0, &next[..1]);
    wire.window = 0;
    wire.send(1, &[]);
    wire.window = 65535;
    wire.send_again(0, 1, &next[..1]);
    wire.send(1, &[]);
    wire.send(0, &next[1..]);
    wire.send(1, &fpdu(&testing::send_of(1, 30)));
    closed(wire)
}

/// A FIN carries octets, and a keep-alive follows the FIN.
fn fin_with_octets() -> Wire {
    let mut wire = Wire::started();
    wire.send(0, &fpdu(&testing::send_of(1, 30)));
    wire.send(1, &fpdu(&testing::send_of(1, 30)));
    let last = fpdu(&testing::send_of(2, 30));
    wire.fin_with(0, &last);
    // The other direction stays open for a long time. Therefore the endpoint sends a keep-alive
    // with one octet at the position of the FIN. The peer answers it.
    wire.send_again(0, 1, &[0]);
    wire.send(1, &[]);
    wire.fin_with(1, &last);
    wire
}

/// Both endpoints close at the same time, and the last request stays unanswered.
fn simultaneous_close() -> Wire {
    let mut wire = Wire::started();
    wire.send(0, &fpdu(&testing::send_of(1, 30)));
    wire.send(1, &fpdu(&testing::send_of(1, 30)));
    wire.at_once(
        |wire| {
            wire.send(0, &fpdu(&read_request(1, 4, 8)));
            wire.fin(0);
        },
        |wire| wire.fin(1),
    );
    wire
}

/// The Responder closes before the Request arrives.
fn closed_before_the_request() -> Wire {
    let mut wire = Wire::connected();
    wire.at_once(|wire| wire.send(0, &testing::request()), |wire| wire.fin(1));
    wire.fin(0);
    wire
}

/// The start-up frames are sent in pieces. Two pieces are out of order. The next TCP segment has
/// two FPDUs, and an FPDU in the other direction follows.
fn start_up_in_pieces() -> Wire {
    let mut wire = Wire::connected();
    let request = testing::startup_frame(0x40, 1, &[7; 40]);
    wire.send(0, &request[..5]);
    wire.swapped(|wire| wire.send(0, &request[5..30]), |wire| wire.send(0, &request[30..]));
    let reply = testing::reply_frame(0x40, 1, &[8; 512]);
    wire.send(1, &reply[..1]);
    wire.send(1, &reply[1..]);
    wire.send(0, &[fpdu(&testing::send_of(1, 30)), fpdu(&testing::send_of(2, 30))].concat());
    wire.send(1, &fpdu(&testing::send_of(1, 30)));
    closed(wire)
}

/// The Responder rejects the connection. The private data of the Reply has the reason. After the
/// rejection, the connection carries another protocol.
fn rejected() -> Wire {
    let mut wire = Wire::started_as(&testing::startup_frame(0x40, 1, &[1; 9]), &testing::reply_frame(0x60, 1, b"no"));
    wire.send(0, b"QUIT\r\n");
    wire.send(1, b"221 bye\r\n");
    closed(wire)
}

/// The connection begins in streaming mode. Then the endpoint that accepted the TCP connection
/// sends the MPA Request. FPDUs follow the start-up.
fn delayed() -> Wire {
    let mut wire = Wire::connected();
    wire.send(0, b"HELO\r\n");
    wire.send(1, b"250 ok, RDMA\r\n");
    wire.send(1, &testing::request());
    wire.send(0, &testing::reply());
    wire.send(1, &fpdu(&testing::send_of(1, 30)));
    wire.send(0, &fpdu(&testing::send_of(1, 30)));
    closed(wire)
}

/// One endpoint uses the atomic operations and the Immediate Data of RFC 7306, and also sends a
/// Read.
fn extensions() -> Wire {
    let mut wire = Wire::started();
    let swap = "00000002 00000007 00000200 0000000000002000 \
        0000000000000005 ffffffffffffffff 0000000000000001 ffffffffffffffff";
    let add = "00000000 00000008 00000200 0000000000002008 \
        0000000000000005 0000000000000000 0000000000000000 ffffffffffffffff";
    wire.send(0, &fpdu(&untagged(10, 1, 1, swap)));
    wire.send(0, &fpdu(&read_request(2, 4, 8)));
    wire.send(0, &fpdu(&untagged(10, 1, 3, add)));
    wire.send(1, &fpdu(&untagged(11, 3, 1, "00000007 0000000000000001")));
    wire.send(1, &fpdu(&response(4, 8)));
    wire.send(1, &fpdu(&untagged(11, 3, 2, "00000008 0000000000000001")));
    wire.send(0, &fpdu(&tagged(true, 0, 5, 0, 64)));
    wire.send(0, &fpdu(&untagged(8, 0, 1, "0102030405060708")));
    wire.send(0, &fpdu(&untagged(9, 0, 2, "0102030405060708")));
    closed(wire)
}

/// Number of random seeds for the changes of each connection.
const ROUNDS: u64 = 20;

fn scenarios() -> Vec<(&'static str, Wire)> {
    let empty_read = read_request(1, 0, 0);
    let mut scenarios = vec![
        ("without payload", without_payload()),
        ("longest", longest()),
        ("filled", filled(false)),
        ("filled, markers", filled(true)),
        ("markers both ways", marked([true, true])),
        ("markers to the Initiator", marked([true, false])),
        ("markers to the Responder", marked([false, true])),
        ("CRC for the Initiator", crc_for_one(0x40, 0x00)),
        ("CRC for the Responder", crc_for_one(0x00, 0x40)),
        ("no CRC", no_crc()),
        ("ready: Send", ready("c004 0004", &untagged(3, 0, 1, ""), None)),
        ("ready: Write", ready("8004 8004", &tagged(true, 0, 0, 0, 0), None)),
        ("ready: Read", ready("8004 4004", &empty_read, Some(response(0, 0)))),
        ("Terminates cross", crossing_terminates(false)),
        ("Terminates cross, then resets", crossing_terminates(true)),
        ("reset after a Terminate", reset_after_terminate()),
        ("interleaved", interleaved()),
        ("a Write around Sends", write_around_sends()),
        ("TCP at work", tcp_at_work()),
        ("FIN with octets", fin_with_octets()),
        ("simultaneous close", simultaneous_close()),
        ("closed before the Request", closed_before_the_request()),
        ("start-up in pieces", start_up_in_pieces()),
        ("rejected", rejected()),
        ("delayed start-up", delayed()),
        ("RFC 7306", extensions()),
    ];
    scenarios.extend(crate::rules::sdp::unusual::scenarios());
    scenarios.extend(super::sdp::unusual_transfer::scenarios());
    scenarios
}

/// Returns the connections that have errors or warnings after `change`.
fn alarms(change: impl Fn(&Wire) -> Vec<(String, Wire)>) -> Vec<String> {
    let mut alarms = Vec::new();
    for (name, wire) in scenarios() {
        for (what, changed) in change(&wire) {
            let mut ids: Vec<String> =
                changed.errors().iter().map(|f| format!("{} in frame {}", f.requirement, f.frame)).collect();
            ids.dedup();
            if !ids.is_empty() {
                alarms.push(format!("{name}, {what}: {}", ids.join(", ")));
            }
        }
    }
    alarms
}

fn quiet(change: impl Fn(&Wire) -> Vec<(String, Wire)>) {
    let alarms = alarms(change);
    assert!(alarms.is_empty(), "{} alarms:\n{}", alarms.len(), alarms.join("\n"));
}

#[test]
fn complete() {
    quiet(|wire| vec![("complete".to_owned(), wire.changed(|frames| frames))]);
}

#[test]
fn after_tags_and_over_ipv6() {
    quiet(|wire| {
        vec![
            ("VLAN".to_owned(), wire.over(&hex("8100 0007"))),
            ("QinQ".to_owned(), wire.over(&hex("88a8 0007 8100 0008"))),
            ("IPv6".to_owned(), wire.over_ipv6()),
        ]
    });
}

#[test]
fn one_direction_alone() {
    quiet(|wire| (0..2).map(|d| (format!("direction {d} alone"), wire.alone(d))).collect());
}

#[test]
fn begun_late_or_ended_early() {
    quiet(|wire| {
        let count = wire.count().min(40);
        let late = (1..count).map(|n| (format!("without the first {n}"), wire.changed(|f| f[n..].to_vec())));
        let early = (1..count).map(|n| (format!("the first {n}"), wire.changed(|f| f[..n].to_vec())));
        late.chain(early).collect()
    });
}

#[test]
fn a_frame_missed() {
    quiet(|wire| {
        let without = |n: usize| {
            wire.changed(|mut frames| {
                frames.remove(n);
                frames
            })
        };
        (0..wire.count().min(60)).map(|n| (format!("without frame {}", n + 1), without(n))).collect()
    });
}

#[test]
fn a_frame_twice() {
    quiet(|wire| {
        let twice = |n: usize| {
            wire.changed(|mut frames| {
                let again = frames[n].clone();
                frames.insert((n + 3).min(frames.len()), again);
                frames
            })
        };
        (0..wire.count().min(60)).map(|n| (format!("frame {} twice", n + 1), twice(n))).collect()
    });
}

#[test]
fn neighbours_swapped() {
    quiet(|wire| {
        let swapped = |n: usize| {
            wire.changed(|mut frames| {
                frames.swap(n, n + 1);
                frames
            })
        };
        (0..wire.count().min(60) - 1).map(|n| (format!("frames {} and {} swapped", n + 1, n + 2), swapped(n))).collect()
    });
}

#[test]
fn cut_by_the_snap_length() {
    quiet(|wire| {
        let lengths = [40, 54, 58, 60, 64, 70, 74, 78, 80, 90, 94, 96, 100, 128, 256, 1000];
        lengths.into_iter().map(|len| (format!("{len} octets of each frame"), wire.cut_to(len))).collect()
    });
}

/// The captures have random combinations of missing, duplicated and swapped frames.
#[test]
fn much_at_once() {
    let first = 0x5eed_2026_u64;
    println!("seeds from {first:#x} on");
    quiet(|wire| {
        let shaken = |seed: u64| {
            let mut state = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15);
            let mut one_in = |n: u64| {
                // The random number generator of Knuth's MMIX.
                state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
                (state >> 33).is_multiple_of(n)
            };
            wire.changed(|frames| {
                let mut out: Vec<(u64, Vec<u8>)> = Vec::new();
                for frame in frames {
                    if one_in(12) {
                        continue;
                    }
                    if one_in(12) {
                        out.push(frame.clone());
                    }
                    let place = if one_in(8) { out.len().saturating_sub(1) } else { out.len() };
                    out.insert(place, frame);
                }
                out
            })
        };
        (first..first + ROUNDS).map(|seed| (format!("seed {seed:#x}"), shaken(seed))).collect()
    });
}
