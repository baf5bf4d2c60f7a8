//! The expected octets come from an independent implementation of the figures in the SDP draft
//! (draft-pinkerton-iwarp-sdp-01).

use proptest::prelude::*;

use super::super::FieldOrder::{Figure, Mirrored};
use super::super::Mode;
use super::*;

fn octets(hex: &str) -> Vec<u8> {
    (0..hex.len()).step_by(2).map(|at| u8::from_str_radix(&hex[at..at + 2], 16).unwrap()).collect()
}

fn emitted(message: &Message<'_>, order: FieldOrder) -> Vec<u8> {
    let mut out = Vec::new();
    message.emit(order, &mut out);
    out
}

/// Makes a message with `body`, MSeq `mseq` and Bufs 9. Checks that the message has the octets
/// `figure` in figure order, and the octets `mirrored` in mirrored order.
fn check(mseq: u32, flags: Flags, body: Body<'_>, figure: &str, mirrored: &str) {
    let message = Message { bufs: 9, flags, mseq, mseq_ack: u32::from(mseq > 0), body };
    for (order, expected) in [(Figure, octets(figure)), (Mirrored, octets(mirrored))] {
        assert_eq!(emitted(&message, order), expected, "{} in {order:?} order", message.mid());
        assert_eq!(Message::parse(&expected, order), Ok(message));
        assert_eq!(usize::try_from(message.wire_len()), Ok(expected.len()));
    }
}

#[test]
fn connection_messages() {
    let none = Flags::default();
    let hello = Hello {
        max_adverts: 5,
        majv: 1,
        minv: 1,
        des_rem_rcv_sz: 0x1000,
        local_rcv_sz: 0x2000,
        loc_ird: 4,
        loc_ord: 6,
    };
    check(
        0,
        none,
        Body::Hello(hello),
        "0009000000000020000000000000000000050011000010000000200000040006",
        "0000000900000020000000000000000011000005000010000000200000060004",
    );
    let ack = HelloAck { max_adverts: 7, majv: 1, minv: 1, act_rcv_sz: 0x1000, loc_ird: 8, loc_ord: 9 };
    check(
        0,
        none,
        Body::HelloAck(ack),
        "000900010000001c0000000000000000000700110000100000080009",
        "010000090000001c0000000000000000110000070000100000090008",
    );
    check(
        11,
        none,
        Body::ChRcvBuf(ChRcvBuf { des_sz: 0x800 }),
        "0009000b000000140000000b0000000100000800",
        "0b000009000000140000000b0000000100000800",
    );
    check(
        12,
        none,
        Body::ChRcvBufAck(ChRcvBufAck { act_sz: 0x600 }),
        "0009000c000000140000000c0000000100000600",
        "0c000009000000140000000c0000000100000600",
    );
    check(
        13,
        none,
        Body::SuspComm(SuspComm { port: 7000 }),
        "0009000d000000180000000d00000001000000001b580001",
        "0d000009000000180000000d000000010000000000011b58",
    );
    check(
        7,
        none,
        Body::ModeChange(ModeChange { mode: Mode::Pipelined, s: false }),
        "0009000700000014000000070000000100000004",
        "0700000900000014000000070000000120000000",
    );
}

#[test]
fn header_only_messages() {
    for (body, mid) in [
        (Body::DisConn, "02"),
        (Body::AbortConn, "03"),
        (Body::SendSm, "04"),
        (Body::SrcAvailCancel, "08"),
        (Body::SinkAvailCancel, "09"),
        (Body::SinkCancelAck, "0a"),
        (Body::SuspCommAck, "0e"),
    ] {
        let figure = format!("000900{mid}000000100000000200000001");
        let mirrored = format!("{mid}000009000000100000000200000001");
        check(2, Flags::default(), body, &figure, &mirrored);
    }
}

#[test]
fn data_messages() {
    let none = Flags::default();
    check(
        5,
        Flags { req_pipe: true, ..none },
        Body::RdmaWrCompl(RdmaWrCompl { len: 0x300 }),
        "0009040500000014000000050000000100000300",
        "0504000900000014000000050000000100000300",
    );
    check(
        6,
        none,
        Body::RdmaRdCompl(RdmaRdCompl { len: 0x400 }),
        "0009000600000014000000060000000100000400",
        "0600000900000014000000060000000100000400",
    );
    check(
        15,
        none,
        Body::SinkAvail(SinkAvail { len: 0x1_0000, stag: 0x1122_3344, va: 0x1000, non_discards: 3 }, b"hi"),
        "000900fd000000260000000f0000000100010000112233440000000000001000000000036869",
        "fd000009000000260000000f0000000100010000112233440000000000001000000000036869",
    );
    check(
        16,
        none,
        Body::SrcAvail(SrcAvail { len: 0x1000, stag: 0x100, va: 0x2000 }, b"x"),
        "000900fe0000002100000010000000010000100000000100000000000000200078",
        "fe0000090000002100000010000000010000100000000100000000000000200078",
    );
    check(
        17,
        Flags { oob_pres: true, oob_pend: true, ..none },
        Body::Data(b"abc!"),
        "000903ff00000014000000110000000161626321",
        "ff03000900000014000000110000000161626321",
    );
}

/// Reads octets in figure order. Returns the field, the offset and the requirement of the error.
fn wrong(hex: &str) -> (&'static str, usize, Option<RequirementId>) {
    let octets = octets(hex);
    let error = Message::parse(&octets, Figure).unwrap_err();
    assert_eq!(error.layer, Layer::Sdp);
    (error.field, error.offset, error.requirement)
}

#[test]
fn len_is_the_octets_that_came() {
    let len = Some(requirement!("SDP-6.1.4-1"));
    assert_eq!(wrong("000900ff0000001100000011000000"), ("BSDH", 0, Some(requirement!("SDP-6-1"))));
    assert_eq!(wrong("000900ff000000110000001100000001"), ("Len", 4, len));
    assert_eq!(wrong("000900ff00000010000000110000000161"), ("Len", 4, len));
    assert_eq!(wrong("000900ff000000000000001100000001"), ("Len", 4, len));
}

#[test]
fn payload_and_extension_follow_from_the_mid() {
    assert_eq!(wrong("0009000200000011000000020000000161"), ("payload", 16, Some(requirement!("SDP-6.1.1-4"))));
    assert_eq!(wrong("000900060000001500000006000000010000040061"), ("payload", 20, Some(requirement!("SDP-6.1.1-8"))));
    assert_eq!(
        wrong("00090007000000130000000700000001000000"),
        ("ModeChange Header", 16, Some(requirement!("SDP-6.1.1-1")))
    );
}

#[test]
fn unassigned_mids_are_refused() {
    let mid = |mid: u8| wrong(&format!("000900{mid:02x}000000100000000200000001"));
    assert_eq!(mid(0x0f), ("MID", 3, Some(requirement!("SDP-6.1.1-17"))));
    assert_eq!(mid(0x10), ("MID", 3, Some(requirement!("SDP-6.1.1-18"))));
    assert_eq!(mid(0x40), ("MID", 3, None));
    assert_eq!(mid(0xfc), ("MID", 3, Some(requirement!("SDP-6.1.1-20"))));
}

#[test]
fn flags_and_bufs() {
    // OOB_PRES is set in a DisConn, and in a Data message without payload.
    assert_eq!(wrong("00090102000000100000000200000001").2, Some(requirement!("SDP-6.1.2-8")));
    assert_eq!(wrong("000901ff000000100000000200000001").2, Some(requirement!("SDP-6.1.2-7")));
    // Reserved flags are not examined.
    let data = octets("0009f8ff000000100000000200000001");
    assert_eq!(Message::parse(&data, Figure).map(|message| message.flags), Ok(Flags::default()));
    let hello = "0002000000000020000000000000000000050011000010000000200000040006";
    assert_eq!(wrong(hello), ("Bufs", 0, Some(requirement!("SDP-6.2.1-6"))));
    let ack = "000200010000001c0000000000000000000700110000100000080009";
    assert_eq!(wrong(ack), ("Bufs", 0, Some(requirement!("SDP-6.2.2-6"))));
}

const SIZE: std::ops::RangeInclusive<u32> = 37..=1 << 31;

fn body(payload: &'static [u8]) -> impl Strategy<Value = Body<'static>> {
    let hello = (1u16.., 0u8..16, 0u8..16, 0u32..=1 << 31, SIZE, 1u16.., 1u16..);
    let word = || 1u32..=1 << 31;
    prop_oneof![
        hello.clone().prop_map(|(max_adverts, majv, minv, des_rem_rcv_sz, local_rcv_sz, loc_ird, loc_ord)| {
            Body::Hello(Hello { max_adverts, majv, minv, des_rem_rcv_sz, local_rcv_sz, loc_ird, loc_ord })
        }),
        hello.prop_map(|(max_adverts, majv, minv, _, act_rcv_sz, loc_ird, loc_ord)| {
            Body::HelloAck(HelloAck { max_adverts, majv, minv, act_rcv_sz, loc_ird, loc_ord })
        }),
        proptest::sample::select(vec![
            Body::DisConn,
            Body::AbortConn,
            Body::SendSm,
            Body::SrcAvailCancel,
            Body::SinkAvailCancel,
            Body::SinkCancelAck,
            Body::SuspCommAck,
            Body::Data(payload),
        ]),
        word().prop_map(|len| Body::RdmaWrCompl(RdmaWrCompl { len })),
        word().prop_map(|len| Body::RdmaRdCompl(RdmaRdCompl { len })),
        (0u8..3, any::<bool>())
            .prop_map(|(mode, s)| Body::ModeChange(ModeChange { mode: Mode::from_value(mode).unwrap(), s })),
        any::<u32>().prop_map(|des_sz| Body::ChRcvBuf(ChRcvBuf { des_sz })),
        (37u32..).prop_map(|act_sz| Body::ChRcvBufAck(ChRcvBufAck { act_sz })),
        any::<u16>().prop_map(|port| Body::SuspComm(SuspComm { port })),
        (word(), any::<u32>(), any::<u64>(), any::<u32>()).prop_map(move |(len, stag, va, non_discards)| {
            Body::SinkAvail(SinkAvail { len, stag, va, non_discards }, payload)
        }),
        (64u32..=1 << 31, any::<u32>(), any::<u64>())
            .prop_map(move |(len, stag, va)| Body::SrcAvail(SrcAvail { len, stag, va }, payload)),
    ]
}

proptest! {
    #[test]
    fn what_is_emitted_is_read_back(
        body in body(b"some payload"), bufs in 3u16.., oob: bool, oob_pend: bool, req_pipe: bool, mseq: u32, mseq_ack: u32,
        mirrored: bool,
    ) {
        let order = if mirrored { Mirrored } else { Figure };
        let oob_pres = oob && matches!(body, Body::Data(_));
        let message = Message { bufs, flags: Flags { oob_pres, oob_pend, req_pipe }, mseq, mseq_ack, body };
        let octets = emitted(&message, order);
        prop_assert_eq!(Message::parse(&octets, order), Ok(message));
    }

    #[test]
    fn no_octets_panic(mut octets in proptest::collection::vec(any::<u8>(), 0..64), fit: bool, mid in 0u8..18, mirrored: bool) {
        let order = if mirrored { Mirrored } else { Figure };
        if fit && octets.len() >= RawBsdh::LEN {
            // Most random octets fail at Len or MID. Correct these fields to test the later checks.
            let len = u32::try_from(octets.len()).unwrap();
            octets[4..8].copy_from_slice(&len.to_be_bytes());
            octets[if mirrored { 0 } else { 3 }] = Mid::ALL[usize::from(mid)].0;
        }
        if let Ok(message) = Message::parse(&octets, order) {
            let again = emitted(&message, order);
            prop_assert_eq!(Message::parse(&again, order), Ok(message));
        }
    }
}
