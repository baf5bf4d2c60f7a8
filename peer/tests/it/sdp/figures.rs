//! These tests compare the octets of every sent message with Figures 2 to 14 of
//! draft-pinkerton-iwarp-sdp-01.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::sdp::Mode;
use weft_peer::Instant;
use weft_peer::sdp::{Connection, Half, Output, Policy, Profile, Settings};

use crate::sdp::bench::Bench;
use crate::sdp::host::Item;
use crate::sdp::shows;
use crate::sdp::wire::{HELLO, message, sink_ah, src_ah, word};
use crate::sdp::zcopy::{POLICY, bench, pipelined};

/// Returns the octets of the last message that the machine sent. Other tests check the fields Bufs,
/// MSeq and MSeqAck.
fn last(bench: &mut Bench) -> Vec<u8> {
    let items = bench.all();
    let message = items.iter().rev().find_map(|item| match item {
        Item::Message { octets, .. } => Some(octets.clone()),
        _ => None,
    });
    message.unwrap()
}

/// Returns the expected octets of a message with this MID. Bufs, MSeq and MSeqAck are copied from
/// `like`.
fn figure(like: &[u8], flags: u8, mid: u8, rest: &[u8]) -> Vec<u8> {
    let number = |at: usize| u32::from_be_bytes(like[at..at + 4].try_into().unwrap());
    message(u16::from_be_bytes([like[0], like[1]]), flags, mid, number(8), number(12), rest)
}

fn is(octets: &[u8], mid: u8, rest: &[u8]) -> bool {
    octets == figure(octets, 0, mid, rest)
}

#[test]
fn the_hellos_fields() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut machine = Connection::connect(Instant::ORIGIN, Settings::default());
    let outputs: Vec<Output> = std::iter::from_fn(|| machine.poll(Instant::ORIGIN, &mut |_| None)).collect();
    let Some(Output::Streaming(hello)) = outputs.last() else { panic!() };
    shows!(proof:
        "SDP-6.2.1-1" => hello.len() == 32;
        "SDP-6.2.1-3" => hello[3] == 0;
        "SDP-6.2.1-4" => hello[4..8] == word(32)[..];
        "SDP-6.2.1-5" => hello[2] == 0;
        "SDP-6.2.1-7" => hello[8..12] == word(0)[..];
        "SDP-6.2.1-9" => hello[12..16] == word(0)[..];
        "SDP-6.2.1.1-1" => hello[19] & 0xf == 1;
        "SDP-6.2.1.2-1" => hello[19] >> 4 == 1;
    );
}

#[test]
fn the_hello_acks_fields() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let settings = Settings { profile: Profile::Bare, ..Settings::default() };
    let mut host = crate::sdp::host::Host::new(Connection::accept(Instant::ORIGIN, settings));
    host.arrive(Instant::ORIGIN, Item::Streaming(HELLO.octets()));
    let Some(Item::Message { octets: ack, .. }) = host.outgoing.front() else { panic!() };
    shows!(proof:
        "SDP-6.2.2-1" => ack.len() == 28;
        "SDP-6.2.2-3" => ack[3] == 1;
        "SDP-6.2.2-4" => ack[4..8] == word(28)[..];
        "SDP-6.2.2-5" => ack[2] == 0;
        "SDP-6.2.2-7" => ack[8..12] == word(0)[..];
        "SDP-6.2.2-9" => ack[12..16] == word(0)[..];
        "SDP-6.2.2.1-1" => ack[19] & 0xf == 1;
        "SDP-6.2.2.2-1" => ack[19] >> 4 == 1;
    );
}

#[test]
fn messages_of_headers_alone() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut closing = bench(POLICY);
    closing.host.machine.shut_down();
    let dis_conn = last(&mut closing);
    closing.host.machine.abort(closing.now);
    let abort_conn = last(&mut closing);
    let mut source = pipelined(POLICY);
    source.send(1, 150);
    source.messages();
    source.host.machine.cancel_sends();
    let src_avail_cancel = last(&mut source);
    let mut sink = pipelined(POLICY);
    sink.receive(1, 100);
    sink.messages();
    sink.host.machine.cancel_receives();
    let sink_avail_cancel = last(&mut sink);
    let mut acknowledging = pipelined(POLICY);
    acknowledging.deliver(0xfd, &sink_ah(150, 5, 0, 0));
    acknowledging.deliver(9, &[]);
    let sink_cancel_ack = last(&mut acknowledging);
    let mut asking = bench(Policy { answer: weft_peer::sdp::SrcAvailAnswer::SendSm, ..POLICY });
    asking.deliver(0xfe, &[src_ah(50, 5, 0), vec![1]].concat());
    asking.receive(1, 50);
    let send_sm = last(&mut asking);
    shows!(proof:
        "SDP-6.1.1-4" => is(&dis_conn, 2, &[]);
        "SDP-6.1.1-5" => is(&abort_conn, 3, &[]);
        "SDP-6.1.1-6" => is(&send_sm, 4, &[]);
        "SDP-6.1.1-10" => is(&src_avail_cancel, 8, &[]);
        "SDP-6.1.1-11" => is(&sink_avail_cancel, 9, &[]);
        "SDP-6.1.1-12" => is(&sink_cancel_ack, 10, &[]);
    );
}

#[test]
fn messages_with_one_word() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut writing = pipelined(POLICY);
    writing.deliver(0xfd, &sink_ah(150, 5, 0, 0));
    writing.send(1, 150);
    let wr_compl = last(&mut writing);
    let mut reading = bench(POLICY);
    reading.deliver(0xfe, &[src_ah(51, 5, 0), vec![1]].concat());
    reading.receive(1, 51);
    let Some(Item::ReadRequest { op, .. }) = reading.all().pop() else { panic!() };
    reading.host.arrive(reading.now, Item::ReadResponse { op, octets: vec![0; 50] });
    let rd_compl = last(&mut reading);
    let mut changing = bench(POLICY);
    changing.host.machine.set_mode(Half::Out, Mode::Pipelined).unwrap();
    let mode_change = last(&mut changing);
    changing.host.machine.resize(0x1234);
    let ch_rcv_buf = last(&mut changing);
    changing.deliver(0x0b, &word(50));
    shows!(proof:
        "SDP-6.1.1-7" => is(&wr_compl, 5, &word(150));
        "SDP-14.2-8" => writing.host.written == 150;
        "SDP-6.1.1-8" => is(&rd_compl, 6, &word(50));
        "SDP-6.1.1-9" => is(&mode_change, 7, &word(4));
        "SDP-6.1.1-13" => is(&ch_rcv_buf, 11, &word(0x1234));
    );
    let mut answering = bench(POLICY);
    answering.deliver(0x0b, &word(50));
    shows!(proof:
        "SDP-6.1.1-14" => is(&last(&mut answering), 12, &word(50));
    );
}

#[test]
fn messages_with_payload_and_their_advertisements() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut data = bench(POLICY);
    data.send(1, 3);
    let data = last(&mut data);
    let mut source = bench(Policy { src_avail_payload: 2, ..POLICY });
    source.send(1, 150);
    let src_avail = last(&mut source);
    let mut sink = pipelined(POLICY);
    sink.receive(1, 100);
    let sink_avail = last(&mut sink);
    // The first STag of a `Host` is 0x201. A region begins at the address STag * 2^20 + 3, which is
    // not aligned.
    let (stag, va) = (0x201, 0x2010_0003);
    shows!(proof:
        "SDP-6.1.1-23" => is(&data, 0xff, &[1, 2, 3]);
        "SDP-6.3.2-3" => is(&src_avail, 0xfe, &[src_ah(150, stag, va), vec![1, 2]].concat());
        "SDP-6.1.1-22" => src_avail.len() == 34 && src_avail[3] == 0xfe;
        "SDP-6.3.3-1" => is(&sink_avail, 0xfd, &sink_ah(100, stag, va, 0));
        "SDP-6.1.1-21" => sink_avail.len() == 36 && sink_avail[3] == 0xfd;
        "SDP-6.3.3.4-1" => sink_avail[32..36] == word(0)[..];
    );
}

/// REQ_PIPE (flag 4) is valid only in completion messages. Receivers ignore it in other messages.
#[test]
fn the_request_for_pipelined_mode() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut wishing = bench(Policy { wants_pipelined: true, ..POLICY });
    wishing.deliver(0xfe, &[src_ah(51, 5, 0), vec![1]].concat());
    wishing.receive(1, 51);
    let Some(Item::ReadRequest { op, .. }) = wishing.all().pop() else { panic!() };
    wishing.host.arrive(wishing.now, Item::ReadResponse { op, octets: vec![0; 50] });
    wishing.send(1, 3);
    let messages = wishing.messages();
    let follows = |flags, mid: u8, rest: &[u8], follows_hints| {
        let mut bench = bench(Policy { follows_hints, ..POLICY });
        bench.send(1, 150);
        bench.messages();
        bench.deliver_with(flags, mid, 1, rest, None);
        bench.messages().iter().any(|message| message.mid == 7)
    };
    shows!(proof:
        "SDP-6.1.2-4" => messages[0].mid == 6 && messages[0].flags == 4;
        "SDP-6.1.2-17" => messages[1].mid == 0xff && messages[1].flags == 0;
        "SDP-12.5-12" => follows(4, 6, &word(140), true);
        "SDP-6.1.2-14" => !follows(4, 6, &word(140), false);
        "SDP-6.1.2-18" => !follows(4, 0xff, &[], true);
    );
    assert!(!follows(0, 6, &word(140), true));
}
