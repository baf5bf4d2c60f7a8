//! Runs random programs of two users of SDP. The link between the users can delay any data for any
//! time.

use std::time::Duration;

use weft_core::wire::sdp::{FieldOrder, Mode};
use weft_peer::Deviations;
use weft_peer::sdp::{Half, Policy, Profile, Settings, SrcAvailAnswer};

use super::clean::PROFILES;
use super::net::Net;

/// Random numbers from a seed (splitmix64).
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ mixed >> 31
    }

    fn below(&mut self, end: u64) -> u64 {
        self.next() % end
    }

    fn percent(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

pub(crate) struct Program {
    random: Random,
    pub(crate) profile: Profile,
    net: Net,
}

fn policy(random: &mut Random) -> Policy {
    Policy {
        source_threshold: random.pick(&[0, 10, 100, 300, u64::MAX]),
        sink_threshold: random.pick(&[0, 100, 400]),
        max_src_avail: random.pick(&[2, 77, 500, 1000, 1 << 30, 1 << 30, 1 << 30]),
        src_avails: random.pick(&[1, 2, 4]),
        sink_avails: random.pick(&[0, 1, 2, 4]),
        src_avail_payload: random.pick(&[1, 20, u32::MAX]),
        answer: random.pick(&[SrcAvailAnswer::Read, SrcAvailAnswer::SendSm, SrcAvailAnswer::ReadThenSendSm]),
        max_read: random.pick(&[13, 200, 1 << 30]),
        read_batch: random.pick(&[1, 100, u32::MAX]),
        transactions: random.percent(70),
        wants_pipelined: random.percent(30),
        follows_hints: random.percent(30),
        ..Policy::default()
    }
}

impl Program {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let profile = random.pick(&PROFILES);
        let order = random.pick(&[FieldOrder::Figure, FieldOrder::Mirrored]);
        let settings = [(); 2].map(|()| Settings {
            profile,
            order,
            bufs: random.pick(&[3, 3, 4, 8, 20]),
            recv_size: random.pick(&[37, 100, 300, 300]),
            max_recv_size: 600,
            des_rem_rcv_sz: random.pick(&[0, 64, 400]),
            max_adverts: random.pick(&[1, 2, 5]),
            policy: policy(&mut random),
            ..Settings::default()
        });
        let none = Deviations::NONE;
        Program { random, profile, net: Net::new(settings, [&none, &none]) }
    }

    fn length(&mut self) -> u64 {
        let most = self.random.pick(&[30, 30, 600, 600, 1500]);
        1 + self.random.below(most)
    }

    fn step(&mut self, side: usize) {
        let len = self.length();
        let random = &mut self.random;
        let end = &mut self.net.ends[side];
        match random.below(100) {
            0..35 => {
                let urgent = random.percent(8);
                end.send((0..len).map(|n| n as u8).collect(), urgent);
            }
            35..75 => end.receive(len, random.percent(10)),
            75..84 => {
                let half = random.pick(&[Half::Out, Half::Out, Half::In]);
                let mode = random.pick(&[Mode::Combined, Mode::Pipelined, Mode::Pipelined, Mode::Buffered]);
                let _ = end.machine.set_mode(half, mode);
            }
            84..88 => end.machine.resize(30 + random.below(670) as u32),
            88..91 => end.machine.cancel_sends(),
            91..94 => end.machine.cancel_receives(),
            94..97 => *end.machine.policy_mut() = policy(random),
            97 if random.percent(60) => _ = end.machine.suspend(Net::port(side)),
            98 if random.percent(30) => end.machine.shut_down(),
            99 if random.percent(10) => end.machine.abort(self.net.now),
            _ => {}
        }
    }

    /// Runs the program to the end of the connection.
    pub(crate) fn run(mut self) -> Net {
        let steps = 5 + self.random.below(75);
        let haste = 1 + self.random.below(12);
        for _ in 0..steps {
            let side = self.random.below(2) as usize;
            self.step(side);
            self.net.load();
            for _ in 0..self.random.below(haste) {
                let from = self.random.below(2) as usize;
                self.net.deliver(from);
            }
        }
        for end in &mut self.net.ends {
            end.machine.shut_down();
        }
        self.net.load();
        for _ in 0..200_000 {
            if self.net.is_over() {
                break;
            }
            // Without these receives, two ends with two free Private Buffers could send each other
            // updates forever.
            for end in &mut self.net.ends {
                if end.waiting() == 0 {
                    end.receive(3000, false);
                }
            }
            self.net.load();
            if !(self.net.deliver(0) | self.net.deliver(1) || self.net.reconnect()) {
                self.net.tick(self.net.now + Duration::from_secs(60));
            }
        }
        assert!(self.net.is_over(), "it goes on for ever");
        self.net
    }
}
