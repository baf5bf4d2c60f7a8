//! Two SDP machines run random programs over a link with random delays. A plain list of octets
//! predicts the octets that each user receives.
//!
//! With `SDP_SEED=n`, the test runs the program of seed n and prints it. With `SDP_PROGRAMS=n`, the
//! test runs n programs.

use std::collections::{BTreeMap, VecDeque};
use std::env;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};

use weft_core::wire::sdp::{FieldOrder, Mid, Mode};
use weft_peer::sdp::{
    Event, Half, Policy, Profile, ReceiveId, ReceiveOutcome, SendId, SendOutcome, Settings, SrcAvailAnswer,
};

use crate::sdp::peers::Peers;
use crate::sdp::random::Random;

/// Number of programs in one run of the test.
const PROGRAMS: u64 = 1000;

/// A send.
struct Sent {
    octets: Vec<u8>,
    /// If this is true, the last octet of the send is Out-Of-Band data.
    urgent: bool,
    /// The number of octets that were sent, and how the send ended.
    end: Option<(u64, SendOutcome)>,
}

/// The state of one direction of the stream, as its user knows it.
#[derive(Default)]
struct Stream {
    /// Accepted sends, in order.
    sent: Vec<Sent>,
    received: Vec<u8>,
    /// The positions in the received stream that directly follow an Out-Of-Band octet.
    marks: Vec<usize>,
    pending: usize,
    waiting: VecDeque<ReceiveId>,
    end_of_stream: bool,
}

impl Stream {
    /// Returns whether the stream has not ended and the reader has no receive posted.
    fn hungry(&self) -> bool {
        self.waiting.is_empty() && !self.end_of_stream
    }
}

struct Program {
    random: Random,
    peers: Peers,
    /// The stream of octets that each side sends.
    streams: [Stream; 2],
    next_id: u64,
    verbose: bool,
    aborted: bool,
    canceled: bool,
    closed: [Option<bool>; 2],
    shut: [bool; 2],
}

fn policy(random: &mut Random) -> Policy {
    Policy {
        source_threshold: random.pick(&[0, 10, 100, 300, u64::MAX]),
        sink_threshold: random.pick(&[0, 100, 400]),
        max_src_avail: u32::try_from(random.pick(&[2, 77, 500, 1000, 1 << 30, 1 << 30, 1 << 30])).unwrap(),
        src_avails: usize::try_from(random.range(1, 4)).unwrap(),
        sink_avails: usize::try_from(random.range(0, 4)).unwrap(),
        src_avail_payload: random.pick(&[1, 20, u32::MAX]),
        answer: random.pick(&[SrcAvailAnswer::Read, SrcAvailAnswer::SendSm, SrcAvailAnswer::ReadThenSendSm]),
        max_read: random.pick(&[13, 200, 1 << 30]),
        read_batch: random.pick(&[1, 100, u32::MAX]),
        transactions: random.percent(70),
        wants_pipelined: random.percent(30),
        follows_hints: random.percent(30),
        data_first: random.percent(30),
        ..Policy::default()
    }
}

fn settings(random: &mut Random, profile: Profile, order: FieldOrder) -> Settings {
    Settings {
        profile,
        order,
        bufs: u16::try_from(random.pick(&[3, 3, 4, 8, 20])).unwrap(),
        recv_size: u32::try_from(random.pick(&[37, 50, 100, 300])).unwrap(),
        max_recv_size: 600,
        des_rem_rcv_sz: u32::try_from(random.pick(&[0, 64, 400])).unwrap(),
        max_adverts: u16::try_from(random.range(1, 5)).unwrap(),
        policy: policy(random),
        ..Settings::default()
    }
}

impl Program {
    fn new(seed: u64, verbose: bool) -> Self {
        let mut random = Random::new(seed);
        let profiles = [Profile::Swapped, Profile::Bare, Profile::Natural, Profile::Enhanced, Profile::PrivateData];
        let profile = random.pick(&profiles);
        let order = random.pick(&[FieldOrder::Figure, FieldOrder::Mirrored]);
        let connecting = settings(&mut random, profile, order);
        let accepting = settings(&mut random, profile, order);
        if verbose {
            println!("connecting: {connecting:?}\naccepting: {accepting:?}");
        }
        let mut peers = Peers::new(connecting, accepting);
        peers.verbose = verbose;
        Program {
            random,
            peers,
            streams: Default::default(),
            next_id: 0,
            verbose,
            aborted: false,
            canceled: false,
            closed: [None; 2],
            shut: [false; 2],
        }
    }

    fn log(&self, what: impl FnOnce() -> String) {
        if self.verbose {
            println!("{}", what());
        }
    }

    fn length(&mut self) -> u64 {
        match self.random.below(10) {
            0..4 => self.random.range(1, 30),
            4..8 => self.random.range(30, 600),
            _ => self.random.range(600, 3000),
        }
    }

    fn send(&mut self, side: usize) {
        let (len, urgent) = (self.length(), self.random.percent(8));
        let index = self.streams[side].sent.len();
        let id = SendId(index as u64);
        let mut pattern = Random::new(index as u64 * 2 + side as u64);
        let octets: Vec<u8> = (0..len).map(|_| pattern.next() as u8).collect();
        self.peers.hosts[side].sends.insert(id, octets.clone());
        if self.peers.hosts[side].machine.send(id, len, urgent).is_ok() {
            self.log(|| format!("{side}: send {index} of {len}{}", if urgent { ", urgent" } else { "" }));
            self.streams[side].sent.push(Sent { octets, urgent, end: None });
        } else {
            assert!(self.shut[side] || self.closed[side].is_some() || self.peers.hosts[side].machine.is_over());
        }
    }

    fn receive(&mut self, side: usize, wait_for_all: bool) {
        let len = self.length();
        let id = ReceiveId(self.next_id);
        self.next_id += 1;
        self.log(|| format!("{side}: receive {} of {len}{}", id.0, if wait_for_all { ", wait for all" } else { "" }));
        self.peers.hosts[side].receives.insert(id, vec![0; usize::try_from(len).unwrap()]);
        self.peers.hosts[side].machine.receive(id, len, wait_for_all).unwrap();
        self.streams[1 - side].waiting.push_back(id);
    }

    /// One step of the user's program on a side.
    fn step(&mut self, side: usize) {
        match self.random.below(100) {
            0..35 => self.send(side),
            35..75 => {
                let wait_for_all = self.random.percent(10);
                self.receive(side, wait_for_all);
            }
            75..84 => {
                let half = self.random.pick(&[Half::Out, Half::Out, Half::In]);
                let mode = self.random.pick(&[Mode::Combined, Mode::Pipelined, Mode::Pipelined, Mode::Buffered]);
                let taken = self.peers.hosts[side].machine.set_mode(half, mode);
                self.log(|| format!("{side}: {half:?} to {mode}: {taken:?}"));
            }
            84..88 => {
                let size = u32::try_from(self.random.range(30, 700)).unwrap();
                self.log(|| format!("{side}: resize {size}"));
                self.peers.hosts[side].machine.resize(size);
            }
            88..91 => {
                self.log(|| format!("{side}: cancel sends"));
                self.canceled = true;
                self.peers.hosts[side].machine.cancel_sends();
            }
            91..94 => {
                self.log(|| format!("{side}: cancel receives"));
                self.peers.hosts[side].machine.cancel_receives();
            }
            94..97 => {
                let policy = policy(&mut self.random);
                self.log(|| format!("{side}: {policy:?}"));
                *self.peers.hosts[side].machine.policy_mut() = policy;
            }
            97 if self.random.percent(50) => {
                let taken = self.peers.hosts[side].machine.suspend(7000);
                self.log(|| format!("{side}: suspend: {taken:?}"));
            }
            97 => self.peers.hosts[side].no_memory ^= true,
            98 => {
                if self.random.percent(30) {
                    self.log(|| format!("{side}: shut down"));
                    self.shut[side] = true;
                    self.peers.hosts[side].machine.shut_down();
                }
            }
            _ => {
                if self.random.percent(10) {
                    self.log(|| format!("{side}: abort"));
                    self.aborted = true;
                    let now = self.peers.now;
                    self.peers.hosts[side].machine.abort(now);
                }
            }
        }
        self.peers.run(side);
        self.listen();
    }

    /// Moves one item. Returns `false` if no item can move.
    fn move_on(&mut self) -> bool {
        let first = self.random.below(4);
        let moved = (0..4).any(|way| match (first + way) % 4 {
            0 => self.peers.deliver(0),
            1 => self.peers.deliver(1),
            2 => self.peers.complete(0),
            _ => self.peers.complete(1),
        }) || self.peers.reconnect();
        self.listen();
        moved
    }

    /// Records the events that the two users get.
    fn listen(&mut self) {
        for side in 0..2 {
            for event in self.peers.events(side) {
                self.log(|| format!("  {side}: {event:?}"));
                let (out, incoming) = (side, 1 - side);
                match event {
                    Event::Sent { send, octets, end } => {
                        let index = usize::try_from(send.0).unwrap();
                        let entry = &mut self.streams[out].sent[index];
                        assert!(entry.end.replace((octets, end)).is_none(), "a send ends twice");
                        match end {
                            SendOutcome::Complete => assert_eq!(octets, entry.octets.len() as u64),
                            SendOutcome::Canceled => assert!(self.canceled),
                            SendOutcome::Aborted => assert!(self.aborted, "a send was aborted"),
                        }
                    }
                    Event::Received { receive, octets, urgent, end } => {
                        let stream = &mut self.streams[incoming];
                        assert_eq!(stream.waiting.pop_front(), Some(receive), "receives end in their order");
                        let buffer = self.peers.hosts[side].receives.remove(&receive).unwrap();
                        stream.received.extend_from_slice(&buffer[..usize::try_from(octets).unwrap()]);
                        if urgent {
                            stream.marks.push(stream.received.len());
                        }
                        assert!(!stream.end_of_stream || octets == 0, "octets after the end of the stream");
                        stream.end_of_stream |= end == ReceiveOutcome::EndOfStream;
                        assert!(end != ReceiveOutcome::Aborted || self.aborted, "a receive was aborted");
                    }
                    Event::UrgentPending => self.streams[incoming].pending += 1,
                    Event::Closed { graceful, violation } => {
                        assert_eq!(violation, None);
                        assert!(graceful || self.aborted, "closed abortively");
                        self.closed[side] = Some(graceful);
                    }
                    Event::Refused(refusal) => assert!(self.aborted, "{refusal}"),
                    Event::Suspended { .. }
                    | Event::Resumed(_)
                    | Event::Opened(_)
                    | Event::ModeChanged { .. }
                    | Event::Resized(_)
                    | Event::PeerClosed => {}
                }
            }
        }
    }

    fn run(&mut self) {
        let steps = self.random.range(5, 80);
        let haste = self.random.range(1, 12);
        for _ in 0..steps {
            let side = usize::try_from(self.random.below(2)).unwrap();
            self.step(side);
            for _ in 0..self.random.below(haste) {
                self.move_on();
            }
        }
        self.log(|| "the program finishes all work".to_owned());
        for side in 0..2 {
            self.peers.hosts[side].machine.shut_down();
            self.shut[side] = true;
            self.peers.run(side);
        }
        let mut turns = 0;
        while self.peers.hosts.iter().any(|host| !host.machine.is_over()) {
            turns += 1;
            assert!(turns < 100_000, "the program does not end");
            for side in 0..2 {
                if self.streams[1 - side].hungry() && self.random.percent(50) {
                    self.receive(side, false);
                    self.peers.run(side);
                    self.listen();
                }
            }
            if !self.move_on() && !self.streams.iter().any(Stream::hungry) {
                let deadlines: Vec<_> =
                    self.peers.hosts.iter().filter_map(|host| host.machine.poll_timeout()).collect();
                assert!(self.peers.wait(), "stuck: {:#?}", self.peers.hosts.each_ref().map(|host| &host.machine));
                self.log(|| format!("  time passes: {deadlines:?}"));
                self.listen();
            }
        }
        while self.move_on() {}
        self.end();
    }

    /// Checks that each user received the octets that the other user sent.
    fn end(&mut self) {
        // After the end, also read the octets that are still in Private Buffers.
        for side in 0..2 {
            while !self.aborted && !self.streams[1 - side].end_of_stream {
                self.receive(side, false);
                self.peers.run(side);
                self.listen();
            }
        }
        for (side, stream) in self.streams.iter().enumerate() {
            let (mut expected, mut marks) = (Vec::new(), Vec::new());
            for (index, Sent { octets, urgent, end }) in stream.sent.iter().enumerate() {
                let Some((out, end)) = end else { panic!("{side}: send {index} never ended") };
                let kept = if *end == SendOutcome::Aborted { octets.len() } else { usize::try_from(*out).unwrap() };
                expected.extend_from_slice(&octets[..kept]);
                if *urgent && kept == octets.len() {
                    marks.push(expected.len());
                }
            }
            let received = &stream.received;
            let same = received.iter().zip(&expected).take_while(|(a, b)| a == b).count();
            assert_eq!(same, received.len(), "{side}: what arrived differs from octet {same} on");
            if self.aborted {
                continue;
            }
            assert_eq!(received.len(), expected.len(), "{side}: octets are missing");
            assert_eq!(stream.marks, marks, "{side}: Out-Of-Band octets");
            assert!(stream.pending >= marks.len() && (self.canceled || stream.pending == marks.len()));
        }
        for host in &self.peers.hosts {
            assert_eq!(host.registered(), 0, "memory is still registered");
        }
    }
}

fn number(name: &str) -> Option<u64> {
    env::var(name).ok().filter(|value| !value.is_empty()).map(|value| value.parse().unwrap())
}

#[test]
fn random_programs_transfer_the_expected_octets() {
    if let Some(seed) = number("SDP_SEED") {
        return Program::new(seed, true).run();
    }
    let mut tally = Tally::default();
    for seed in 0..number("SDP_PROGRAMS").unwrap_or(PROGRAMS) {
        let run = || {
            let mut program = Program::new(seed, false);
            program.run();
            tally.add(&program.peers);
        };
        if let Err(panic) = catch_unwind(AssertUnwindSafe(run)) {
            println!("SDP_SEED={seed} replays it");
            resume_unwind(panic);
        }
    }
    println!("{tally:?}");
    assert!(tally.copied > 0 && tally.read > 0 && tally.written > 0, "{tally:?}");
    let missing: Vec<Mid> = USED.into_iter().filter(|mid| !tally.messages.contains_key(&mid.0)).collect();
    assert_eq!(missing, [], "messages that no program sent");
    assert!(tally.reconnected > 0, "no suspension");
    assert!(tally.transactions > 0, "no SinkAvail with payload");
}

/// All messages that the machine sends.
const USED: [Mid; 18] = [
    Mid::HELLO,
    Mid::HELLO_ACK,
    Mid::DIS_CONN,
    Mid::ABORT_CONN,
    Mid::SEND_SM,
    Mid::RDMA_WR_COMPL,
    Mid::RDMA_RD_COMPL,
    Mid::MODE_CHANGE,
    Mid::SRC_AVAIL_CANCEL,
    Mid::SINK_AVAIL_CANCEL,
    Mid::SINK_CANCEL_ACK,
    Mid::CH_RCV_BUF,
    Mid::CH_RCV_BUF_ACK,
    Mid::SUSP_COMM,
    Mid::SUSP_COMM_ACK,
    Mid::SINK_AVAIL,
    Mid::SRC_AVAIL,
    Mid::DATA,
];

/// Counts how often the programs used each feature. A feature with the count 0 is not tested.
#[derive(Debug, Default)]
struct Tally {
    messages: BTreeMap<u8, u64>,
    transactions: u64,
    copied: u64,
    read: u64,
    written: u64,
    reconnected: u64,
}

impl Tally {
    fn add(&mut self, peers: &Peers) {
        for host in &peers.hosts {
            self.copied += host.copied;
            self.read += host.read;
            self.written += host.written;
        }
        self.reconnected += peers.reconnected;
        for octets in peers.sent.iter().flatten().filter(|octets| !octets.starts_with(b"MPA ")) {
            let mid = octets[if peers.order == FieldOrder::Figure { 3 } else { 0 }];
            *self.messages.entry(mid).or_default() += 1;
            self.transactions += u64::from(mid == Mid::SINK_AVAIL.0 && octets.len() > 36);
        }
    }
}
