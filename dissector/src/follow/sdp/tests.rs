//! Tests the state of synthetic SDP connections. Section and figure numbers refer to the SDP draft
//! (draft-pinkerton-iwarp-sdp-01). The messages have the formats of section 6. The sequences of
//! messages are similar to the ladder diagrams of the draft.

use proptest::prelude::*;
use serde_json::Value;

use super::*;
use crate::context::Context;
use crate::direction::Direction;
use crate::frame_number::FrameNumber;
use crate::output::json::JsonWriter;
use crate::stream_id::StreamId;
use crate::testing::sdp::{SdpScript, advert, hello_ack, word};
use crate::testing::{Wire, hello, hex, reply, request, startup_frame};
use crate::unit::Unit;

/// Extended headers of a ModeChange (Figure 12).
const TO_BUFFERED: &str = "00000000";
const TO_COMBINED: &str = "00000002";
const SINK_TO_COMBINED: &str = "00000003";
const TO_PIPELINED: &str = "00000004";

impl SdpScript {
    fn read(&self) -> (Vec<Value>, SdpState) {
        #[derive(Default)]
        struct Collect(JsonWriter, Vec<Value>, Option<SdpState>);
        impl crate::Sink for Collect {
            fn unit(&mut self, unit: &Unit<'_>) {
                let mut out = Vec::new();
                self.0.write(unit, &mut out).unwrap();
                self.1.push(serde_json::from_slice(&out).unwrap());
            }
            fn ended(&mut self, _: StreamId, context: &Context) {
                self.2 = context.sdp.as_deref().cloned();
            }
        }
        let mut found = Collect::default();
        self.wire.feed(&mut found);
        found.1.retain(|unit| unit["kind"] == "sdp");
        (found.1, found.2.unwrap())
    }

    /// The values of a field in all SDP messages after Hello and HelloAck. If a message does not
    /// have the field, the value is `-`.
    fn field(&self, field: &str) -> Vec<String> {
        let shown = |value: &Value| match value {
            Value::Null => "-".to_owned(),
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        self.read().0.iter().skip(2).map(|unit| shown(&unit[field])).collect()
    }

    /// The state at the end of the connection, after each peer has received all messages.
    fn state(&self) -> SdpState {
        self.read().1
    }
}

#[test]
fn each_start_up_sequence_is_named() {
    let bare = SdpScript::bare();
    let mut wire = Wire::connected();
    wire.send(0, &hello());
    wire.send(1, &request());
    wire.send(0, &reply());
    let swapped = SdpScript::after(wire);
    let natural = |revision| {
        let mut wire = Wire::connected();
        wire.send(0, &[hello(), startup_frame(0x40, revision, &[])].concat());
        wire.send(1, &reply());
        SdpScript::after(wire)
    };
    let mut wire = Wire::connected();
    wire.send(0, &startup_frame(0x40, 1, &hello()));
    wire.send(1, &reply());
    let private_data = SdpScript::after(wire);
    let talks = [bare, swapped, natural(1), natural(2), private_data];
    let names = talks.map(|script| {
        let (units, state) = script.read();
        assert_eq!(units[1]["iwarp_sdp.profile"], state.profile.unwrap().name());
        assert_eq!(
            (units[0]["iwarp_sdp.state"].clone(), units[1]["iwarp_sdp.state"].clone()),
            ("hello".into(), "open".into())
        );
        state.profile.unwrap()
    });
    let expected = [Profile::Bare, Profile::Swapped, Profile::Natural, Profile::Enhanced, Profile::PrivateData];
    assert_eq!(names, expected);
}

/// By Figure 12 and section 12, the Master changes its Mode when it sends a ModeChange. The Slave
/// changes its Mode when it receives the ModeChange.
#[test]
fn modes_change_for_the_master_first() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::MODE_CHANGE, TO_PIPELINED, 0);
    script.send(1, Mid::DATA, "", 0);
    let mut state = SdpState::begin(Direction::Forward, Carrier::Streaming);
    let mut receive = |direction: u8, octets: &str| {
        let octets = hex(octets);
        state.record_message(
            direction.into(),
            (Carrier::Send, FieldOrder::Figure, Part::complete(&octets)),
            (FrameNumber::FIRST, 1, Location::default()),
            &Connection::default(),
        );
        (state.modes[0], state.peers[0].source.mode, state.peers[1].sink.mode)
    };
    receive(1, "0010 00 01 0000001c 00000000 00000000 0004 00 11 00001000 0004 0004");
    let (combined, pipelined) = (Some(Mode::Combined), Some(Mode::Pipelined));
    let change = "0010 00 07 00000014 00000001 00000000 00000004";
    assert_eq!(receive(0, change), (pipelined, pipelined, combined));
    let acknowledges = "0010 00 ff 00000010 00000001 00000001";
    assert_eq!(receive(1, acknowledges), (pipelined, pipelined, pipelined));
    script.send(0, Mid::MODE_CHANGE, TO_COMBINED, 0);
    script.send(0, Mid::MODE_CHANGE, TO_BUFFERED, 0);
    script.receive_all(1);
    script.send(1, Mid::MODE_CHANGE, SINK_TO_COMBINED, 0);
    let expected = ["Pipelined", "Combined", "Combined", "Buffered", "Combined"];
    assert_eq!(script.field("iwarp_sdp.mode"), expected);
    assert_eq!(script.field("iwarp_sdp.peer_mode").last().unwrap(), "Combined", "the Sink is Master in Buffered Mode");
    let state = script.state();
    let listed: Vec<_> = state.changes[0].listed.iter().map(|change| change.mode.unwrap()).collect();
    assert_eq!(listed, [Mode::Pipelined, Mode::Combined, Mode::Buffered, Mode::Combined]);
    assert_eq!((state.changes[0].count, state.changes[1].count), (4, 0));
}

/// By section 10.2, the credit is Bufs minus (last sent MSeq minus MSeqAck). By section 10.4, a
/// Data message without payload grants new credit.
#[test]
fn credit_is_what_the_newest_header_leaves() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::DATA, "", 4);
    script.send(0, Mid::DATA, "", 4);
    script.receive_all(1);
    script.bufs = 17;
    script.send(1, Mid::DATA, "", 0);
    script.receive_all(0);
    script.bufs = 16;
    script.send(0, Mid::DATA, "", 4);
    assert_eq!(script.field("iwarp_sdp.credits"), ["15", "14", "15", "16"]);
    assert_eq!(script.field("iwarp_sdp.credit_update"), ["-", "-", "1", "-"]);
    let state = script.state();
    let own = &state.credits[0];
    // First the peer announced 16 buffers. Later MSeqAck + Bufs increased from 16 to 2 + 17.
    assert_eq!((own.advertised, own.consumed, own.gratuitous, own.min_left), (19, 3, 1, Some(14)));
    assert_eq!((state.peers[1].receive_size, state.peers[0].max_adverts), (Some(0x1000), Some(4)));
}

/// In Combined Mode (section 9.2), the peer reads the buffer of a SrcAvail in two parts. The
/// SrcAvail has payload.
#[test]
fn a_src_avail_is_completed_by_what_was_read() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::SRC_AVAIL, &advert(100, None), 10);
    script.receive_all(1);
    script.send(1, Mid::RDMA_RD_COMPL, &word(60), 0);
    script.receive_all(0);
    script.send(0, Mid::DATA, "", 0);
    script.send(1, Mid::RDMA_RD_COMPL, &word(30), 0);
    script.receive_all(0);
    script.send(0, Mid::DATA, "", 0);
    // The SYNs are frames 1 and 2, and Hello and HelloAck are frames 3 and 4.
    assert_eq!(script.field("iwarp_sdp.advert.frame"), ["-", "5", "-", "5", "-"]);
    assert_eq!(script.field("iwarp_sdp.advert.left"), ["-", "30", "-", "0", "-"]);
    assert_eq!(script.field("iwarp_sdp.srcavails"), ["1", "0", "1", "0", "0"]);
    let adverts = &script.state().peers[0].source.adverts;
    assert_eq!((adverts.made, adverts.completed, adverts.max_open), (1, 1, 1));
}

/// By section 9.5.2.1, the Data Source sends the remaining octets as Data after a SendSm.
#[test]
fn a_send_sm_asks_for_the_rest_as_data() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::SRC_AVAIL, &advert(100, None), 10);
    script.receive_all(1);
    script.send(1, Mid::SEND_SM, "", 0);
    script.receive_all(0);
    script.send(0, Mid::DATA, "", 50);
    script.send(0, Mid::DATA, "", 40);
    assert_eq!(script.field("iwarp_sdp.owed"), ["-", "-", "40", "-"]);
    assert_eq!(script.field("iwarp_sdp.advert.left"), ["-", "90", "-", "-"]);
    let state = script.state();
    assert_eq!((state.peers[0].source.adverts.by_data, state.peers[1].sink.awaited), (1, 0));
}

/// In Pipelined Mode (section 9.3), an RdmaWrCompl completes a SinkAvail.
#[test]
fn a_sink_avail_is_completed_by_what_was_written() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::MODE_CHANGE, TO_PIPELINED, 0);
    script.receive_all(1);
    script.send(1, Mid::SINK_AVAIL, &advert(8000, Some(0)), 0);
    script.receive_all(0);
    script.send(0, Mid::RDMA_WR_COMPL, &word(6000), 0);
    script.receive_all(1);
    script.send(1, Mid::DATA, "", 0);
    assert_eq!(script.field("iwarp_sdp.sinkavails"), ["0", "1", "0", "0"]);
    assert_eq!(script.field("iwarp_sdp.advert.frame"), ["-", "-", "6", "-"]);
    assert_eq!(script.field("iwarp_sdp.advert.left"), ["-", "-", "2000", "-"]);
    assert_eq!(script.state().peers[1].sink.adverts.completed, 1);
}

/// In the example of section 9.5.1, PotentialNonDiscards is 2, and NonDiscards is 0 in three
/// SinkAvails. So two of these SinkAvails are stale.
#[test]
fn two_of_three_sink_avails_are_stale() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::MODE_CHANGE, TO_PIPELINED, 0);
    script.receive_all(1);
    for _ in 0..3 {
        script.send(1, Mid::SINK_AVAIL, &advert(8000, Some(0)), 0);
    }
    script.send(0, Mid::DATA, "", 9);
    script.send(0, Mid::DATA, "", 9);
    script.receive_all(0);
    script.send(0, Mid::RDMA_WR_COMPL, &word(8000), 0);
    // The third SinkAvail is in frame 8.
    assert_eq!(script.field("iwarp_sdp.advert.frame").last().unwrap(), "8");
    assert_eq!(script.field("iwarp_sdp.potentialnondiscards"), ["0", "0", "0", "0", "1", "2", "0"]);
    script.receive_all(1);
    script.send(1, Mid::DATA, "", 0);
    let state = script.state();
    let adverts = &state.peers[1].sink.adverts;
    assert_eq!((adverts.made, adverts.stale, adverts.completed), (3, 2, 1));
    assert_eq!((state.peers[1].sink.non_discards, state.peers[0].source.potential_non_discards), (0, 0));
}

/// By section 11.3, SrcAvails become void if a SinkAvail crosses them.
#[test]
fn a_crossing_sink_avail_makes_src_avails_void() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::MODE_CHANGE, TO_PIPELINED, 0);
    script.receive_all(1);
    script.send(1, Mid::SINK_AVAIL, &advert(8000, Some(0)), 0);
    script.send(0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    script.send(0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    script.receive_all(0);
    script.receive_all(1);
    script.send(0, Mid::RDMA_WR_COMPL, &word(8000), 0);
    assert_eq!(script.field("iwarp_sdp.srcavails"), ["0", "0", "1", "2", "0"]);
    let state = script.state();
    assert_eq!((state.peers[0].source.adverts.void, state.peers[1].sink.sources.len()), (2, 0));
}

/// By section 12.4, the Data Sink drops its SinkAvails when the connection returns to Combined
/// Mode. If a SinkAvail crosses the ModeChange, it makes only those SrcAvails void that are older
/// than the ModeChange.
#[test]
fn leaving_pipelined_mode_drops_sink_avails() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::MODE_CHANGE, TO_PIPELINED, 0);
    script.receive_all(1);
    script.send(0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    script.send(1, Mid::SINK_AVAIL, &advert(8000, Some(0)), 0);
    script.send(0, Mid::MODE_CHANGE, TO_COMBINED, 0);
    script.receive_all(0);
    script.send(0, Mid::SRC_AVAIL, &advert(9000, None), 1);
    script.receive_all(1);
    script.send(1, Mid::DATA, "", 0);
    assert_eq!(script.field("iwarp_sdp.srcavails"), ["0", "1", "0", "1", "1", "0"]);
    let state = script.state();
    let adverts = &state.peers[1].sink.adverts;
    assert_eq!((adverts.made, adverts.void, adverts.stale), (1, 1, 0));
    assert_eq!(state.peers[0].source.adverts.void, 1);
}

/// A SendSm can acknowledge a SrcAvailCancel. By weft's interpretation of section 9.5.4, such a
/// SendSm settles the SrcAvailCancel and does not request Data.
#[test]
fn a_src_avail_cancel_revokes_what_is_open() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::MODE_CHANGE, TO_PIPELINED, 0);
    script.send(0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    script.send(0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    script.send(0, Mid::SRC_AVAIL_CANCEL, "", 0);
    script.receive_all(1);
    script.send(1, Mid::SEND_SM, "", 0);
    script.receive_all(0);
    script.send(0, Mid::DATA, "", 0);
    assert_eq!(script.field("iwarp_sdp.srcavails"), ["0", "1", "2", "2", "0", "0"]);
    let state = script.state();
    assert_eq!((state.peers[0].source.adverts.revoked, state.peers[0].source.owed), (2, 0));
}

/// By section 9.5.5, a SinkCancelAck ends all SinkAvails.
#[test]
fn a_sink_cancel_ack_revokes_what_is_open() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::MODE_CHANGE, TO_PIPELINED, 0);
    script.receive_all(1);
    script.send(1, Mid::SINK_AVAIL, &advert(8000, Some(0)), 0);
    script.send(1, Mid::SINK_AVAIL_CANCEL, "", 0);
    script.receive_all(0);
    script.send(0, Mid::SINK_CANCEL_ACK, "", 0);
    script.receive_all(1);
    script.send(1, Mid::DATA, "", 0);
    assert_eq!(script.field("iwarp_sdp.sinkavails"), ["0", "1", "1", "0", "0"]);
    let state = script.state();
    assert_eq!((state.peers[1].sink.adverts.revoked, state.peers[0].source.usable.len()), (1, 0));
}

/// By section 9.5.3, OOB_PEND (0x02) announces an Out-Of-Band octet. A Data message with OOB_PRES
/// (0x01) carries the octet.
#[test]
fn an_out_of_band_octet_is_pending_until_it_comes() {
    let mut script = SdpScript::bare();
    script.flags = 2;
    script.send(0, Mid::DATA, "", 3);
    script.flags = 0;
    script.send(0, Mid::DATA, "", 3);
    script.flags = 1;
    script.send(0, Mid::DATA, "", 3);
    assert_eq!(script.field("iwarp_sdp.oob_pending"), ["1", "1", "-"]);
}

/// By sections 8.2.1 and 8.2.2, a close with DisConn is graceful, and a close with AbortConn is
/// not.
#[test]
fn a_close_is_graceful_where_dis_conn_came_and_no_abort_conn() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::DIS_CONN, "", 0);
    script.send(1, Mid::DIS_CONN, "", 0);
    assert_eq!(script.field("iwarp_sdp.state"), ["half_closed", "closed"]);
    assert_eq!(script.state().closing.graceful(Direction::Forward), None, "TCP is not closed yet");
    script.wire.fin(1);
    let closing = script.state().closing;
    assert_eq!(
        ([closing.graceful(Direction::Forward), closing.graceful(Direction::Reverse)], closing.llp_end),
        ([Some(true); 2], Some(7.into()))
    );

    let mut script = SdpScript::bare();
    script.send(0, Mid::DIS_CONN, "", 0);
    script.send(0, Mid::ABORT_CONN, "", 0);
    script.wire.rst(0);
    assert_eq!(script.field("iwarp_sdp.state"), ["half_closed", "aborted"]);
    let closing = script.state().closing;
    assert_eq!([closing.graceful(Direction::Forward), closing.graceful(Direction::Reverse)], [Some(false); 2]);
}

/// By section 13.1, the header of a SuspComm has Constant1 0, a port, and Constant2 1.
#[test]
fn a_connection_is_suspended() {
    let mut script = SdpScript::bare();
    script.send(1, Mid::SUSP_COMM, "00000000 1388 0001", 0);
    script.send(0, Mid::SUSP_COMM_ACK, "", 0);
    script.wire.fin(0);
    assert_eq!(script.field("iwarp_sdp.state"), ["suspending", "suspended"]);
    let closing = script.state().closing;
    assert_eq!(closing.susp_comm[1], Some(Suspension { frame: 5.into(), port: 5000 }));
    assert_eq!(closing.graceful(Direction::Forward), None);
}

#[test]
fn a_ch_rcv_buf_ack_changes_the_size_of_buffers() {
    let mut script = SdpScript::bare();
    script.send(1, Mid::CH_RCV_BUF_ACK, &word(8192), 0);
    let state = script.state();
    assert_eq!((state.peers[0].receive_size, state.peers[1].receive_size), (Some(4096), Some(8192)));
}

#[test]
fn reports_only_certain_state_after_a_missing_message() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::MODE_CHANGE, TO_PIPELINED, 0);
    script.mseq[0] += 1;
    script.send(0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    script.send(0, Mid::MODE_CHANGE, TO_COMBINED, 0);
    script.send(0, Mid::DIS_CONN, "", 0);
    assert_eq!(script.field("iwarp_sdp.mode"), ["Pipelined", "-", "Combined", "Combined"]);
    assert_eq!(script.field("iwarp_sdp.srcavails"), ["0", "-", "-", "-"]);
    assert_eq!(script.field("iwarp_sdp.credits"), ["15", "13", "12", "11"]);
    assert_eq!(script.field("iwarp_sdp.state"), ["open", "open", "open", "half_closed"]);
}

#[test]
fn too_many_advertisements_end_their_tracking() {
    let mut script = SdpScript::bare();
    script.send(0, Mid::MODE_CHANGE, TO_PIPELINED, 0);
    for _ in 0..advert::MAX_OPEN {
        script.send(0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    }
    let state = script.state();
    assert!(state.certain && state.peers[0].source.adverts.open().len() == advert::MAX_OPEN);
    script.send(0, Mid::SRC_AVAIL, &advert(9000, None), 0);
    let state = script.state();
    assert!(!state.certain && state.peers[0].source.adverts.open().is_empty());
}

/// The state after Hello and HelloAck.
fn open(connection: &Connection) -> SdpState {
    let mut state = SdpState::begin(Direction::Forward, Carrier::Streaming);
    let octets = hello_ack();
    state.record_message(
        Direction::Reverse,
        (Carrier::Send, FieldOrder::Figure, Part::complete(&octets)),
        (FrameNumber::FIRST, 1, Location::default()),
        connection,
    );
    state
}

#[test]
fn too_many_unacknowledged_messages_end_the_tracking() {
    let connection = Connection::default();
    let mut state = open(&connection);
    for mseq in 1..=u32::try_from(MAX_UNACKNOWLEDGED).unwrap() + 1 {
        assert!(state.certain);
        let octets = hex(&format!("0010 00 ff 00000010 {mseq:08x} 00000000"));
        state.record_message(
            Direction::Forward,
            (Carrier::Send, FieldOrder::Figure, Part::complete(&octets)),
            (FrameNumber::FIRST, 1, Location::default()),
            &connection,
        );
    }
    assert!(!state.certain && state.unacknowledged[0].is_empty());
    assert!(state.memory() < 1 << 20);
}

/// In mirrored order, the first word has MID, Flags and Bufs in this order, and S and Mode are in
/// the highest bits.
#[test]
fn mirrored_words_are_read_as_well() {
    let mut wire = Wire::connected();
    wire.send(0, &hex("00 00 0010 00000020 00000000 00000000 11 00 0004 00001000 00001000 0004 0004"));
    // With `FieldOrder::Figure`, the test sends the octets unchanged.
    let mut script = SdpScript::after_hello(wire, FieldOrder::Figure);
    script.send_octets(5, 1, &hex("01 00 0010 0000001c 00000000 00000000 11 00 0004 00001000 0004 0004"));
    script.send_octets(3, 0, &hex("07 00 0010 00000014 00000001 00000000 20000000"));
    assert_eq!(script.field("iwarp_sdp.mode"), ["Pipelined"]);
    assert_eq!(script.field("iwarp_sdp.credits"), ["15"]);
}

proptest! {
    /// If messages come in any order, the state stays within its limits, and the code does not
    /// panic.
    #[test]
    fn no_message_is_too_odd(
        messages in proptest::collection::vec((0usize..2, any::<u8>(), any::<[u8; 24]>(), 0u32..12, 0u32..12, 0usize..50), 0..60),
    ) {
        let connection = Connection::default();
        let mut state = open(&connection);
        let mut mseq = [0u32; 2];
        for (direction, mid, rest, skip, ack, len) in messages {
            // In most cases, the MSeq is the previous MSeq plus one. Otherwise the state would
            // never be certain.
            mseq[direction] = mseq[direction].wrapping_add(if skip == 0 { 2 } else { 1 });
            let mid = if mid < 0xc0 { mid % 0x10 } else { 0xfd + mid % 3 };
            let mut octets = hex(&format!("0010 07 {mid:02x} 00000000 {:08x} {ack:08x}", mseq[direction]));
            octets.extend_from_slice(&rest);
            octets.truncate(len);
            state.record_message(Direction::BOTH[direction], (Carrier::Send, FieldOrder::Figure, Part::complete(&octets)), (FrameNumber::FIRST, 1, Location::default()), &connection);
            let _ = (state.credits[direction].left(), state.closing.state());
        }
        state.finish();
        prop_assert!(state.peers.iter().all(|peer| peer.source.usable.len() + peer.sink.sources.len() <= 120));
    }
}
