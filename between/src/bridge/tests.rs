//! Tests of the bridge: each impairment, and the limits of the faults.

use std::time::Duration;

use etherparse::TcpOptionElement;

use super::*;
use crate::aim::{FpduPart, SplitAt};
use crate::impairments::{ClosedWindow, Probability};
use crate::testing::{A, B, segment, segment_of};

const MILLISECOND: u64 = 1_000_000;

fn always() -> Probability {
    Probability::from_percent(100.0).unwrap()
}

fn half() -> Probability {
    Probability::from_percent(50.0).unwrap()
}

/// Passes the frames through a bridge, one millisecond after the other. Returns the frames in
/// the order of their arrival, and the bridge.
fn passed(impairments: Impairments, frames: &[Vec<u8>]) -> (Vec<Delivery>, Bridge) {
    let mut bridge = Bridge::new(impairments, 1);
    let mut deliveries = Vec::new();
    for (index, frame) in frames.iter().enumerate() {
        let now = (index as u64 + 1) * MILLISECOND;
        bridge.frame(now, Side::A, frame, (index as u64 + 1).into());
        deliveries.extend(std::iter::from_fn(|| bridge.deliver(now)));
    }
    deliveries.extend(std::iter::from_fn(|| bridge.deliver(u64::MAX)));
    (deliveries, bridge)
}

fn payloads(deliveries: &[Delivery]) -> Vec<Vec<u8>> {
    let payload = |delivery: &Delivery| {
        let tcp = TcpFrame::find(&delivery.octets).unwrap();
        delivery.octets[tcp.payload].to_vec()
    };
    deliveries.iter().map(payload).collect()
}

fn stream(count: u32) -> Vec<Vec<u8>> {
    (0..count).map(|index| segment(index * 10, &[index as u8; 10])).collect()
}

#[test]
fn without_impairments_every_frame_is_identical() {
    let mut frames = stream(20);
    frames.push(vec![0xff; 60]);
    frames.push(Vec::new());
    let mut wrong = segment(7, b"wrong checksum");
    *wrong.last_mut().unwrap() ^= 1;
    frames.push(wrong);
    let (deliveries, bridge) = passed(Impairments::default(), &frames);
    let octets: Vec<_> = deliveries.iter().map(|delivery| delivery.octets.clone()).collect();
    assert_eq!((octets, bridge.faults()), (frames, &[][..]));
    assert!(deliveries.iter().all(|delivery| delivery.to == Side::B && delivery.faults.is_empty()));
    assert_eq!(bridge.counts(Side::A).bad_checksums, 1);
}

#[test]
fn lost_segments_do_not_arrive() {
    let (deliveries, bridge) = passed(Impairments { loss: half(), ..Impairments::default() }, &stream(100));
    assert_eq!(deliveries.len() + bridge.faults().len(), 100);
    assert!((20..80).contains(&deliveries.len()), "{}", deliveries.len());
    assert!(bridge.faults().iter().all(|fault| fault.kind == FaultKind::Loss && fault.received.is_none()));
}

#[test]
fn the_same_seed_gives_the_same_faults() {
    let impairments = || Impairments { loss: half(), split: half(), corrupt: half(), ..Impairments::default() };
    let [first, second] = [(); 2].map(|()| passed(impairments(), &stream(50)));
    assert_eq!((first.0, first.1.faults()), (second.0, second.1.faults()));
}

#[test]
fn a_duplicate_arrives_directly_after_the_original() {
    let (deliveries, bridge) = passed(Impairments { duplicate: always(), ..Impairments::default() }, &stream(3));
    let arrived: Vec<u8> = payloads(&deliveries).iter().map(|payload| payload[0]).collect();
    assert_eq!((arrived, bridge.faults().len()), (vec![0, 0, 1, 1, 2, 2], 3));
}

#[test]
fn a_reordered_segment_arrives_after_later_segments() {
    let (deliveries, bridge) = passed(Impairments { reorder: half(), ..Impairments::default() }, &stream(100));
    let mut arrived: Vec<u8> = payloads(&deliveries).iter().map(|payload| payload[0]).collect();
    assert!(!arrived.is_sorted() && bridge.faults().len() > 5);
    arrived.sort_unstable();
    assert_eq!(arrived, (0..100).collect::<Vec<u8>>());
}

#[test]
fn without_later_segments_a_reorder_is_no_fault() {
    let (deliveries, bridge) = passed(Impairments { reorder: always(), ..Impairments::default() }, &stream(1));
    assert_eq!((deliveries.len(), bridge.faults()), (1, &[][..]));
}

#[test]
fn divided_segments_have_all_bytes() {
    let stream = stream(100);
    for impairments in [
        Impairments { split: always(), ..Impairments::default() },
        Impairments { segment: Some(3), ..Impairments::default() },
        Impairments { segment: Some(4), split: half(), duplicate: Probability::default(), ..Impairments::default() },
    ] {
        let most = impairments.segment.unwrap_or(9);
        let (deliveries, bridge) = passed(impairments, &stream);
        let parts = payloads(&deliveries);
        assert!(parts.iter().all(|part| (1..=usize::from(most)).contains(&part.len())));
        assert_eq!(parts.concat(), (0..100).flat_map(|index| [index; 10]).collect::<Vec<u8>>());
        assert_eq!(bridge.faults().len(), parts.len() - 100);
    }
}

#[test]
fn the_offset_of_a_corrupted_byte_is_known_even_if_the_segment_is_divided() {
    let impairments = Impairments { corrupt: always(), segment: Some(3), ..Impairments::default() };
    let (deliveries, bridge) = passed(impairments, &stream(100));
    let mut corrupted = 0;
    for delivery in &deliveries {
        for fault in &delivery.faults {
            let record = &bridge.faults()[fault.number as usize - 1];
            let FaultKind::Corrupt { bits, .. } = record.kind else { continue };
            let index = u8::try_from(record.seq / 10).unwrap();
            assert_eq!(delivery.octets[fault.offset.unwrap()], index ^ bits);
            corrupted += 1;
        }
    }
    assert_eq!(corrupted, 100);
}

#[test]
fn a_long_packet_is_answered_with_an_icmp_error() {
    let frames = [segment(0, &[1; 1300]), segment(0, &[1; 100])];
    let (deliveries, bridge) = passed(Impairments { mtu: Some(1280), ..Impairments::default() }, &frames);
    let to: Vec<Side> = deliveries.iter().map(|delivery| delivery.to).collect();
    assert_eq!(to, [Side::A, Side::B]);
    assert_eq!(bridge.faults()[0].kind, FaultKind::TooLong { mtu: 1280 });
}

#[test]
fn merged_segments_fit_the_mtu_that_their_sender_knows() {
    let mut bridge = Bridge::new(Impairments { mtu: Some(1280), ..Impairments::default() }, 1);
    bridge.set_link_mtu(Side::B, 1500);
    for (time, len) in [(1, 4000), (2, 4000), (3, 1300)] {
        bridge.frame(time, Side::A, &segment(0, &vec![1; len]), time.into());
    }
    let deliveries: Vec<_> = std::iter::from_fn(|| bridge.deliver(9)).collect();
    let icmp = deliveries.iter().filter(|delivery| delivery.to == Side::A).count();
    let segments: Vec<_> = deliveries.into_iter().filter(|delivery| delivery.to == Side::B).collect();
    let lengths: Vec<usize> = payloads(&segments).iter().map(Vec::len).collect();
    assert_eq!((icmp, bridge.faults().len(), lengths), (2, 2, vec![1240, 1240, 1240, 280]));
}

#[test]
fn windows_are_reduced_with_their_scale() {
    let scaled = |frame: &mut etherparse::TcpHeader| {
        frame.syn = true;
        frame.set_options(&[TcpOptionElement::WindowScale(4)]).unwrap();
    };
    let syn = segment_of(A, B, 0, &[], |tcp| {
        tcp.ack = false;
        scaled(tcp);
    });
    let window = |most: u32, syn_ack: &dyn Fn(&mut etherparse::TcpHeader)| {
        let mut bridge = Bridge::new(Impairments { window: Some(most), ..Impairments::default() }, 1);
        bridge.frame(1, Side::A, &syn, 1.into());
        bridge.frame(2, Side::B, &segment_of(B, A, 0, &[], syn_ack), 1.into());
        bridge.frame(3, Side::A, &segment(1, &[]), 2.into());
        let last = std::iter::from_fn(|| bridge.deliver(u64::MAX)).filter(|delivery| delivery.to == Side::B).last();
        let octets = last.unwrap().octets;
        let tcp = TcpFrame::find(&octets).unwrap();
        assert_eq!(tcp.checksum_state(&octets), ChecksumState::Good);
        tcp.window(&octets)
    };
    assert_eq!(window(4096, &scaled), 256);
    assert_eq!(window(3, &scaled), 1);
    assert_eq!(window(1 << 20, &scaled), 1000);
    // Without the option in the SYN-ACK, no window is scaled.
    assert_eq!(window(512, &|tcp| tcp.syn = true), 512);
}

#[test]
fn delays_keep_the_order() {
    let impairments =
        Impairments { delay: Duration::from_millis(10), jitter: Duration::from_millis(50), ..Impairments::default() };
    let mut bridge = Bridge::new(impairments, 3);
    for (index, frame) in stream(50).iter().enumerate() {
        bridge.frame(index as u64, Side::A, frame, (index as u64 + 1).into());
    }
    assert_eq!(bridge.deliver(9 * MILLISECOND), None);
    let (mut now, mut arrived) = (0, Vec::new());
    while let Some(due) = bridge.next_due() {
        assert!(due >= now);
        now = due;
        arrived.extend(bridge.deliver(now));
    }
    assert!(now <= 61 * MILLISECOND);
    assert!(payloads(&arrived).is_sorted());
}

#[test]
fn a_delay_applies_only_to_the_selected_connections() {
    let delay = Duration::from_millis(10);
    let mut bridge = Bridge::new(Impairments { delay, ports: vec![7174], ..Impairments::default() }, 1);
    let other = SocketAddr::new(B.ip(), 80);
    bridge.frame(1, Side::A, &segment(0, b"delayed"), 1.into());
    bridge.frame(2, Side::A, &segment_of(A, other, 0, b"passes", |_| {}), 2.into());
    let arrived: Vec<_> = std::iter::from_fn(|| bridge.deliver(2)).collect();
    assert_eq!(payloads(&arrived), [b"passes"]);
    assert_eq!((bridge.waiting(Side::A) > 0, bridge.next_due()), (true, Some(1 + 10 * MILLISECOND)));
}

#[test]
fn selections_limit_the_faults() {
    let all = Impairments { loss: always(), ..Impairments::default() };
    let count = |impairments| passed(impairments, &stream(20)).1.faults().len();
    assert_eq!(count(all.clone()), 20);
    assert_eq!(count(Impairments { from: Some(Side::B), ..all.clone() }), 0);
    assert_eq!(count(Impairments { ports: vec![1], ..all.clone() }), 0);
    assert_eq!(count(Impairments { ports: vec![1, 7174], ..all.clone() }), 20);
    assert_eq!(count(Impairments { max_faults: Some(3), ..all.clone() }), 3);
    assert_eq!(count(Impairments { after: Duration::from_millis(10), ..all }), 10);
}

#[test]
fn merged_segments_are_divided_to_fit_the_link() {
    let mut bridge = Bridge::new(Impairments::default(), 1);
    bridge.set_link_mtu(Side::B, 1500);
    let frame = segment(0, &(0..4000_u32).map(|at| at as u8).collect::<Vec<u8>>());
    bridge.frame(1, Side::A, &frame, 1.into());
    let deliveries: Vec<_> = std::iter::from_fn(|| bridge.deliver(1)).collect();
    let lengths: Vec<usize> = payloads(&deliveries).iter().map(Vec::len).collect();
    assert_eq!((lengths, bridge.counts(Side::A).oversized), (vec![1460, 1460, 1080], 1));
    assert_eq!(payloads(&deliveries).concat(), (0..4000_u32).map(|at| at as u8).collect::<Vec<u8>>());
    assert_eq!(bridge.faults(), []);
}

/// The headers have 1508 bytes, so even a piece with one byte is too long for the link.
#[test]
fn segments_whose_headers_fill_the_link_are_not_divided() {
    let options = etherparse::Ipv6RawExtHeader::new_raw(etherparse::ip_number::TCP, &[0; 1446]).unwrap();
    let extensions = etherparse::Ipv6Extensions { destination_options: Some(options), ..Default::default() };
    let header = etherparse::Ipv6Header { source: [1; 16], destination: [2; 16], ..Default::default() };
    let ip = etherparse::IpHeaders::Ipv6(header, extensions);
    let mut frame = Vec::new();
    let builder = etherparse::PacketBuilder::ethernet2([2; 6], [4; 6]).ip(ip).tcp(40_000, 7174, 1, 1000);
    builder.write(&mut frame, &[7; 4000]).unwrap();
    let mut bridge = Bridge::new(Impairments::default(), 1);
    bridge.set_link_mtu(Side::B, 1500);
    bridge.frame(1, Side::A, &frame, 1.into());
    let deliveries: Vec<_> = std::iter::from_fn(|| bridge.deliver(1)).map(|delivery| delivery.octets).collect();
    assert_eq!(deliveries, [frame]);
    let counts = bridge.counts(Side::A);
    assert_eq!((counts.tcp, counts.bad_checksums, counts.oversized), (1, 0, 0));
}

#[test]
fn held_back_segments_count_as_faults() {
    let impairments = Impairments { reorder: always(), max_faults: Some(1), ..Impairments::default() };
    let mut bridge = Bridge::new(impairments, 1);
    for time in 1..10 {
        bridge.frame(time, Side::A, &segment(0, b"from A"), time.into());
        bridge.frame(time, Side::B, &segment_of(B, A, 0, b"from B", |_| {}), time.into());
    }
    while bridge.deliver(u64::MAX).is_some() {}
    assert_eq!(bridge.faults().len(), 1);
}

/// Passes a segment of A with these parts of FPDUs through a bridge.
fn passed_with_parts(impairments: Impairments, frame: &[u8], parts: &[PartInFrame]) -> (Vec<Delivery>, Bridge) {
    let mut bridge = Bridge::new(impairments, 1);
    bridge.frame_with_parts(1, Side::A, frame, 1.into(), parts);
    let deliveries = std::iter::from_fn(|| bridge.deliver(u64::MAX)).collect();
    (deliveries, bridge)
}

/// A segment with one FPDU, and the parts of this FPDU.
fn segment_with_parts() -> (Vec<u8>, Vec<PartInFrame>) {
    let frame = segment(0, &[0; 28]);
    let start = TcpFrame::find(&frame).unwrap().payload.start;
    let parts =
        [(FpduPart::Header, 0..16), (FpduPart::Payload, 16..22), (FpduPart::Pad, 22..24), (FpduPart::Crc, 24..28)];
    let parts = parts.map(|(part, range)| PartInFrame {
        part,
        offset: Some(range.start),
        is_start: true,
        range: start + range.start..start + range.end,
    });
    (frame, parts.to_vec())
}

#[test]
fn an_aimed_corruption_changes_a_byte_of_the_part() {
    let (frame, parts) = segment_with_parts();
    let corrupt_in = |part| Impairments { corrupt: always(), corrupt_in: vec![part], ..Impairments::default() };
    for (part, range) in [(FpduPart::Header, 0..16), (FpduPart::Pad, 22..24), (FpduPart::Crc, 24..28)] {
        let (deliveries, bridge) = passed_with_parts(corrupt_in(part), &frame, &parts);
        let payload = payloads(&deliveries).concat();
        let changed: Vec<usize> = (0..payload.len()).filter(|at| payload[*at] != 0).collect();
        assert!(changed.len() == 1 && range.contains(&changed[0]), "{part:?}: {changed:?}");
        assert_eq!(bridge.faults().len(), 1);
    }
    assert_eq!(passed_with_parts(corrupt_in(FpduPart::Marker), &frame, &parts).1.faults(), []);
}

#[test]
fn an_aimed_split_divides_the_segment_at_its_place() {
    let (frame, parts) = segment_with_parts();
    let lengths = |place, segment| {
        let impairments = Impairments { split: always(), split_at: Some(place), segment, ..Impairments::default() };
        let (deliveries, _) = passed_with_parts(impairments, &frame, &parts);
        payloads(&deliveries).iter().map(Vec::len).collect::<Vec<usize>>()
    };
    for (place, cuts) in [
        (SplitAt::Inside(FpduPart::Header), 1..16),
        (SplitAt::Inside(FpduPart::Crc), 25..28),
        (SplitAt::BeforeCrc, 24..25),
        (SplitAt::Offset(20), 20..21),
    ] {
        let lengths = lengths(place, None);
        assert!(lengths.len() == 2 && cuts.contains(&lengths[0]), "{place:?}: {lengths:?}");
    }
    assert_eq!(lengths(SplitAt::BeforeCrc, Some(10)), [10, 10, 4, 4]);
    assert_eq!(lengths(SplitAt::Inside(FpduPart::Marker), None), [28]);
}

#[test]
fn windows_are_closed_at_the_end_of_each_period() {
    let closed_window = Some(ClosedWindow { time: Duration::from_millis(2), every: Duration::from_millis(5) });
    let (deliveries, bridge) = passed(Impairments { closed_window, ..Impairments::default() }, &stream(10));
    let window = |delivery: &Delivery| {
        let tcp = TcpFrame::find(&delivery.octets).unwrap();
        assert_eq!(tcp.checksum_state(&delivery.octets), ChecksumState::Good);
        tcp.window(&delivery.octets)
    };
    let windows: Vec<u16> = deliveries.iter().map(window).collect();
    assert_eq!(windows, [1000, 1000, 1000, 0, 0, 1000, 1000, 1000, 0, 0]);
    assert_eq!(bridge.faults(), []);
}
