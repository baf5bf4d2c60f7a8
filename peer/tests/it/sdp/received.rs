//! In these tests, the peer sends messages that draft-pinkerton-iwarp-sdp-01 section 6 allows. The
//! machine interprets them correctly and ignores the fields that it must ignore.

use weft_core::coverage::{Coverage, CoverageKind};
use weft_core::wire::sdp::Mode;
use weft_peer::Instant;
use weft_peer::sdp::{
    Connection, Event, Half, OpId, Policy, Profile, ReceiveId, ReceiveOutcome, SendId, Settings, SrcAvailAnswer,
};

use crate::sdp::bench::{Bench, parse_message};
use crate::sdp::host::{Host, Item};
use crate::sdp::shows;
use crate::sdp::wire::{HELLO, Hello, sink_ah, src_ah, word};
use crate::sdp::zcopy::{
    DATA, MODE_CHANGE, POLICY, RDMA_RD_COMPL, RDMA_WR_COMPL, S, SEND_SM, SINK_AVAIL, SINK_AVAIL_CANCEL,
    SINK_CANCEL_ACK, SRC_AVAIL, SRC_AVAIL_CANCEL, TO_BUFFERED, TO_COMBINED, TO_PIPELINED, bench, pipelined, received,
    serve_read,
};

#[test]
fn flags_that_a_peer_sets() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let gets = |flags: u8, octets: &[u8]| {
        let mut bench = bench(POLICY);
        bench.receive(1, 50);
        bench.deliver_with(flags, DATA, 0, octets, None);
        (!bench.is_aborted()).then(|| (bench.events(), bench.host.receives[&ReceiveId(1)][..octets.len()].to_vec()))
    };
    let urgent = Event::Received { receive: ReceiveId(1), octets: 3, urgent: true, end: ReceiveOutcome::More };
    let mut later = bench(POLICY);
    later.receive(1, 50);
    later.receive(2, 50);
    later.deliver_with(2, DATA, 0, &[], None);
    let first = later.events();
    later.deliver_with(0, DATA, 0, &[1, 2], None);
    later.deliver_with(1, DATA, 0, &[3], None);
    let second = later.events();
    shows!(proof:
        "SDP-6.1.2-6" => (3..8).all(|bit| gets(1 << bit, &[1, 2, 3]) == Some((vec![received(1, 3,
            ReceiveOutcome::More)], vec![1, 2, 3])));
        "SDP-6.1.2-9" => gets(1, &[1, 2, 3]) == Some((vec![urgent], vec![1, 2, 3]));
        "SDP-6.1.2-11" => first == [Event::UrgentPending] && second[0] == received(1, 2, ReceiveOutcome::More)
            && matches!(second[1], Event::Received { octets: 1, urgent: true, .. });
        "SDP-6.1.2-10" => {
            let mut any = pipelined(POLICY);
            any.deliver_with(2, SRC_AVAIL, 1, &src_ah(50, 7, 0), None);
            any.deliver_with(2, SINK_AVAIL, 1, &sink_ah(300, 8, 0, 0), None);
            let mut reading = bench(POLICY);
            reading.send(1, 150);
            reading.messages();
            reading.deliver_with(2, RDMA_RD_COMPL, 1, &word(140), None);
            any.events() == [Event::UrgentPending; 2] && reading.events().contains(&Event::UrgentPending)
        };
    );
}

/// The peer sets the flag that requests Pipelined Mode, and the policy follows this request. Only
/// one half-connection changes its Mode.
#[test]
fn a_request_for_pipelined_mode_concerns_one_half() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let policy = Policy { follows_hints: true, ..POLICY };
    let changes = |bench: &mut Bench| {
        bench
            .messages()
            .iter()
            .filter(|message| message.mid == MODE_CHANGE)
            .map(|message| message.word(0))
            .collect::<Vec<u32>>()
    };
    // Delivers an RdmaWrCompl for the SinkAvail of this side. The half-connection on which this
    // side sends is in the Mode `own`.
    let written = |own: Option<Mode>, flags: u8| {
        let mut bench = bench(policy);
        bench.deliver(MODE_CHANGE, &word(TO_PIPELINED));
        if let Some(mode) = own {
            bench.host.machine.set_mode(Half::Out, mode).unwrap();
            bench.messages();
        }
        bench.receive(1, 100);
        bench.messages();
        bench.deliver_with(flags, RDMA_WR_COMPL, 1, &word(20), None);
        let changes = changes(&mut bench);
        assert!(!bench.is_aborted());
        changes
    };
    let mut read = bench(policy);
    read.send(1, 150);
    read.messages();
    read.deliver_with(4, RDMA_RD_COMPL, 1, &word(140), None);
    let mut other = bench(Policy { answer: SrcAvailAnswer::SendSm, ..policy });
    other.send(1, 150);
    other.messages();
    other.deliver_with(4, SEND_SM, 1, &[], None);
    other.deliver_with(4, DATA, 1, &[1], None);
    shows!(proof:
        "SDP-6.1.2-15" => written(Some(Mode::Buffered), 4).is_empty();
        "SDP-6.1.2-20" => changes(&mut read) == [TO_PIPELINED];
        "SDP-6.1.2-21" => written(None, 4) == [TO_PIPELINED] && written(None, 0).is_empty();
        "SDP-6.1.2-19" => changes(&mut other).is_empty() && !other.is_aborted();
    );
}

#[test]
fn versions_and_limits_of_the_peers_hello() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let accepts = |hello: Hello| {
        let settings = Settings { profile: Profile::Bare, ..Settings::default() };
        let mut host = Host::new(Connection::accept(Instant::ORIGIN, settings));
        host.arrive(Instant::ORIGIN, Item::Streaming(hello.octets()));
        let accepted = host.outgoing == [Item::Message { octets: HELLO.ack(), solicited: true, invalidate: None }];
        assert!(accepted || host.outgoing == [Item::Reset], "the machine sends either a HelloAck or only a reset");
        accepted
    };
    let connects = |hello: Hello| {
        let settings = Settings { profile: Profile::Bare, ..Settings::default() };
        let mut host = Host::new(Connection::connect(Instant::ORIGIN, settings));
        host.run(Instant::ORIGIN);
        host.outgoing.clear();
        let (octets, solicited, invalidate) = (hello.ack(), true, None);
        host.arrive(Instant::ORIGIN, Item::Message { octets, solicited, invalidate });
        assert_eq!(host.machine.is_open(), host.outgoing.is_empty(), "only a machine that is not open sends items");
        host.machine.is_open()
    };
    let versions = |takes: &dyn Fn(Hello) -> bool, of: &[u8]| {
        of.iter().map(|version| takes(Hello { version: *version, ..HELLO })).collect::<Vec<bool>>()
    };
    shows!(proof:
        // MinV is in the high nibble, and MajV is in the low nibble.
        "SDP-6.2.1.1-2" => versions(&accepts, &[0x00, 0x22, 0xff, 0x11]) == [false, false, false, true];
        "SDP-6.2.1.2-2" => versions(&accepts, &[0x01, 0x21, 0xf1]) == [true; 3];
        "SDP-6.2.1.3-2" => !accepts(Hello { max_adverts: 0, ..HELLO }) && accepts(Hello { max_adverts: 1, ..HELLO });
        "SDP-6.2.2.1-2" => versions(&connects, &[0x00, 0x22, 0xff, 0x11]) == [false, false, false, true];
        "SDP-6.2.2.2-2" => versions(&connects, &[0x01, 0xf1]) == [true; 2];
        "SDP-6.2.2.3-2" => !connects(Hello { max_adverts: 0, ..HELLO }) && connects(Hello { max_adverts: 1, ..HELLO });
    );
}

#[test]
fn the_peers_max_adverts_bounds_both_kinds_together() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let settings = Settings { recv_size: 64, policy: POLICY, ..Settings::default() };
    let open = |mut bench: Bench, piped: bool| {
        if piped {
            bench.host.machine.set_mode(Half::Out, Mode::Pipelined).unwrap();
            bench.deliver(MODE_CHANGE, &word(TO_PIPELINED));
        }
        bench.messages();
        bench.receive(1, 100);
        bench.receive(2, 100);
        (1..=3).for_each(|id| bench.send(id, 150));
        bench.mids().iter().filter(|mid| matches!(**mid, SRC_AVAIL | SINK_AVAIL)).count()
    };
    let hello = |max_adverts| Hello { max_adverts, bufs: 16, local: 200, des_rem: 64, ..HELLO };
    shows!(proof:
        "SDP-6.2.1.3-3" => open(Bench::accepting(settings, hello(2)), true) == 2
            && open(Bench::accepting(settings, hello(5)), true) == 5;
        "SDP-6.2.2.3-3" => open(Bench::with(settings, hello(1)), true) == 1
            && open(Bench::with(settings, hello(1)), false) == 1;
    );
}

/// The peer reads and writes at the addresses of an advertisement, and reaches the user's buffer.
#[test]
fn advertised_addresses_lead_to_the_buffers() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut source = pipelined(POLICY);
    source.send(1, 150);
    let advert = source.messages().remove(0);
    let (len, stag) = (advert.word(0), advert.word(4));
    let va = u64::from(advert.word(8)) << 32 | u64::from(advert.word(12));
    let mut read = |at: u64, len: u32| {
        source.host.arrive(source.now, Item::ReadRequest { op: OpId(0), stag, va: va + at, len });
        source.all()
    };
    let all = read(0, len);
    let mut combined = bench(POLICY);
    combined.send(1, 150);
    let advert = combined.messages().remove(0);
    let at = u64::from(advert.word(8)) << 32 | u64::from(advert.word(12));
    combined.host.arrive(combined.now, Item::ReadRequest { op: OpId(0), stag: advert.word(4), va: at, len: 10 });
    let mut sink = pipelined(POLICY);
    sink.receive(1, 100);
    let sink_avail = sink.messages().remove(0);
    let to = u64::from(sink_avail.word(8)) << 32 | u64::from(sink_avail.word(12));
    let octets: Vec<u8> = (1..=100).collect();
    sink.host.arrive(sink.now, Item::Write { stag: sink_avail.word(4), va: to, octets: octets.clone() });
    let landed = sink.host.receives[&ReceiveId(1)].clone();
    sink.deliver(RDMA_WR_COMPL, &word(100));
    shows!(proof:
        "SDP-6.3.2-4" => read(149, 1) == [Item::ReadResponse { op: OpId(0), octets: vec![150] }] && va >> 32 == 0 && va == 0x2010_0003;
        "SDP-6.3.2.3-1" => all == [Item::ReadResponse { op: OpId(0), octets: (1..=150).collect() }];
        "SDP-6.3.2.2-2" => combined.all() == [Item::ReadResponse { op: OpId(0), octets: advert.rest[16..].to_vec() }];
        "SDP-6.3.3.1-1" => sink_avail.word(0) == 100 && sink.events() == [received(1, 100, ReceiveOutcome::More)];
        "SDP-6.3.3.2-1" => landed == octets;
        "SDP-6.3.3.3-1" => sink_avail.word(4) == 0x201 && !sink.host.exposes(0x201);
        "SDP-6.3.3-4" => to == 0x2010_0003;
    );
}

/// The buffers that the peer advertises can begin at any address.
#[test]
fn any_alignment_of_the_peers_buffers() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let odd = [0x1_0000_0001, 0x2_0000_0003, 0xffff_ffff_ffff_0007];
    let reads = |va: u64| {
        let mut bench = pipelined(POLICY);
        bench.deliver(SRC_AVAIL, &src_ah(40, 7, va));
        bench.receive(1, 50);
        serve_read(&mut bench)
    };
    let writes = |va: u64| {
        let mut bench = pipelined(POLICY);
        bench.deliver(SINK_AVAIL, &sink_ah(150, 7, va, 0));
        bench.send(1, 150);
        bench.all().remove(0)
    };
    shows!(proof:
        "SDP-6.3.2.2-1" => odd.iter().all(|va| reads(*va) == (7, *va, 40));
        "SDP-6.3.3.2-2" => odd.iter().all(|va| writes(*va) == Item::Write { stag: 7, va: *va, octets: (1..=150).collect() });
    );
}

#[test]
fn completion_messages_carry_the_transferred_sizes() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut bench = bench(POLICY);
    bench.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1; 30]].concat());
    bench.receive(1, 200);
    serve_read(&mut bench);
    let completions = bench.messages();
    let mut parts = self::bench(Policy { max_read: 25, read_batch: 25, ..POLICY });
    parts.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1; 30]].concat());
    parts.receive(1, 200);
    let mut sum = 0;
    for _ in 0..4 {
        for item in parts.all() {
            match item {
                Item::ReadRequest { op, len, .. } => {
                    parts.host.arrive(parts.now, Item::ReadResponse { op, octets: vec![0; len as usize] });
                }
                item => sum += parse_message(item).unwrap().word(0),
            }
        }
    }
    let mut short = pipelined(POLICY);
    short.receive(1, 100);
    short.messages();
    short.deliver(RDMA_WR_COMPL, &word(1));
    let mut big = pipelined(Policy { max_src_avail: u32::MAX, ..POLICY });
    big.host.sends.insert(SendId(1), Vec::new());
    big.host.machine.send(SendId(1), 3 << 30, false).unwrap();
    let most = big.messages()[0].word(0);
    big.host.machine.receive(ReceiveId(1), 3 << 30, false).unwrap();
    big.deliver(RDMA_RD_COMPL, &word(1 << 31));
    let mut sink = pipelined(POLICY);
    sink.host.machine.receive(ReceiveId(1), 3 << 30, false).unwrap();
    shows!(proof:
        "SDP-6.3.7.1-3" => completions.len() == 1 && completions[0].word(0) == 70;
        "SDP-6.3.7.1-2" => sum == 70 && parts.messages().is_empty();
        "SDP-6.3.6.1-2" => !short.is_aborted() && short.events() == [received(1, 1, ReceiveOutcome::More)];
        "SDP-6.3.2.1-2" => most == 1 << 31;
        "SDP-6.3.3.1-3" => sink.messages()[0].word(0) == 1 << 31;
    );
}

#[test]
fn obeys_a_mode_change_with_any_reserved_bits() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut out_of_buffered = bench(POLICY);
    out_of_buffered.host.machine.set_mode(Half::Out, Mode::Buffered).unwrap();
    out_of_buffered.messages();
    out_of_buffered.send(1, 150);
    let before = out_of_buffered.mids();
    out_of_buffered.deliver(MODE_CHANGE, &word(TO_COMBINED | S));
    out_of_buffered.send(2, 150);
    let mut piped = bench(POLICY);
    piped.deliver(MODE_CHANGE, &word(0xffff_fff0 | TO_PIPELINED));
    piped.receive(1, 50);
    let rsvd = piped.host.machine.mode(Half::In);
    piped.deliver(SRC_AVAIL, &src_ah(40, 7, 0));
    let modes = |change: u32| {
        let mut bench = bench(POLICY);
        bench.deliver(MODE_CHANGE, &word(change));
        (bench.host.machine.mode(Half::In), bench.host.machine.mode(Half::Out))
    };
    shows!(proof:
        "SDP-6.3.8.1-1" => before == [DATA] && out_of_buffered.mids() == [SRC_AVAIL];
        "SDP-6.3.8.1-2" => serve_read(&mut piped) == (7, 0, 40);
        "SDP-6.3.8-3" => modes(TO_PIPELINED) == (Mode::Pipelined, Mode::Combined)
            && modes(TO_BUFFERED) == (Mode::Buffered, Mode::Combined);
        "SDP-6.3.8.3-2" => rsvd == Mode::Pipelined;
    );
}

#[test]
fn a_revocation_covers_all_open_advertisements() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut sink = pipelined(POLICY);
    for stag in 1..=3 {
        sink.deliver(SRC_AVAIL, &src_ah(100, stag, 0));
    }
    sink.deliver(SRC_AVAIL_CANCEL, &[]);
    sink.receive(1, 500);
    let answered = sink.all();
    let mut source = pipelined(POLICY);
    for stag in 1..=3 {
        source.deliver(SINK_AVAIL, &sink_ah(150, stag, 0, 0));
    }
    source.deliver(SINK_AVAIL_CANCEL, &[]);
    let acknowledged = source.mids();
    source.send(1, 150);
    let mut declines = bench(Policy { answer: SrcAvailAnswer::SendSm, ..POLICY });
    declines.deliver(SRC_AVAIL, &[src_ah(100, 7, 0), vec![1]].concat());
    declines.receive(1, 100);
    shows!(proof:
        "SDP-6.3.9-2" => matches!(&answered[0], Item::Message { octets, .. } if octets[3] == SEND_SM)
            && answered.iter().all(|item| !matches!(item, Item::ReadRequest { .. }));
        "SDP-6.3.10-2" => source.all().iter().all(|item| !matches!(item, Item::Write { .. }));
        "SDP-6.3.11-1" => acknowledged == [SINK_CANCEL_ACK];
        "SDP-6.3.5-1" => declines.mids() == [SEND_SM];
    );
}

#[test]
fn sends_the_data_and_sizes_that_a_peer_requests() {
    let mut proof = Coverage::new(CoverageKind::Test);
    let mut data = bench(POLICY);
    data.receive(1, 50);
    data.deliver(DATA, &[1, 2, 3]);
    data.send(1, 1);
    let ack = data.messages()[0].mseq_ack;
    let answer = |wanted: u32| {
        let settings = Settings { recv_size: 64, max_recv_size: 64, policy: POLICY, ..Settings::default() };
        let mut bench = Bench::with(settings, Hello { bufs: 16, local: 200, ..HELLO });
        bench.deliver(0x0b, &word(wanted));
        bench.messages().iter().map(|message| (message.mid, message.word(0))).collect::<Vec<_>>()
    };
    // The peer is allowed to answer with the present size.
    let mut same = bench(POLICY);
    same.host.machine.resize(500);
    same.messages();
    same.deliver(0x0c, &word(200));
    // There are sixteen Private Buffers of 64 octets. The peer sends sixteen messages of the
    // maximum length.
    let mut full = bench(POLICY);
    full.receive(1, 4096);
    for _ in 0..16 {
        full.deliver(DATA, &[7; 48]);
    }
    shows!(proof:
        "SDP-6.3.1-2" => data.events()[0] == received(1, 3, ReceiveOutcome::More) && ack == 1;
        "SDP-6.4.1.1-1" => answer(50) == [(0x0c, 50)];
        "SDP-10.6-14" => answer(1000) == [(0x0c, 64)];
        "SDP-6.4.2.1-1" => same.events() == [Event::Resized(200)] && !same.is_aborted();
        "SDP-5-1" => !full.is_aborted() && full.host.copied >= 48;
    );
}
