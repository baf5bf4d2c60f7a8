//! [`Wire`] joins two machines by octet streams that can be split anywhere. [`fpdus`] reads the
//! output of the machines. [`fpdus`] shares no code with the machines.

use weft_core::crc;
use weft_core::wire::mpa::Framing;
use weft_peer::Settings;
use weft_peer::connection::{Event, Transmit};
use weft_peer::mpa::{Negotiated, PeerFrame};

use crate::connection::machine::Machine;

/// Two machines and their wire.
pub(crate) struct Wire {
    pub(crate) initiator: Machine,
    pub(crate) responder: Machine,
    passed: [usize; 2],
    /// Returns the number of octets of the next TCP segment. The argument is the number of earlier
    /// segments of the same output.
    cut: Box<dyn FnMut(usize) -> usize>,
}

impl Wire {
    pub(crate) fn new(initiator: Settings, responder: Settings) -> Self {
        Wire::cut(initiator, responder, |_| usize::MAX)
    }

    pub(crate) fn cut(initiator: Settings, responder: Settings, cut: impl FnMut(usize) -> usize + 'static) -> Self {
        let (initiator, responder) = (Machine::initiator(initiator), Machine::responder(responder));
        Wire { initiator, responder, passed: [0, 0], cut: Box::new(cut) }
    }

    /// Delivers everything that the sides send, until both sides send nothing more. The octets of a
    /// side are joined and then split by `cut`.
    pub(crate) fn run(&mut self) {
        loop {
            self.initiator.settle();
            self.responder.settle();
            let there = pass(&self.initiator, &mut self.responder, &mut self.passed[0], &mut self.cut);
            let back = pass(&self.responder, &mut self.initiator, &mut self.passed[1], &mut self.cut);
            if !there && !back {
                return;
            }
        }
    }
}

fn pass(from: &Machine, to: &mut Machine, passed: &mut usize, cut: &mut dyn FnMut(usize) -> usize) -> bool {
    let new = &from.sent[*passed..];
    *passed = from.sent.len();
    let mut octets = Vec::new();
    for transmit in new {
        match transmit {
            Transmit::Octets(more) => octets.extend_from_slice(more),
            Transmit::Fin => {
                deliver(&mut octets, to, cut);
                to.fin();
            }
            Transmit::Reset => {
                deliver(&mut octets, to, cut);
                to.reset();
            }
        }
    }
    deliver(&mut octets, to, cut);
    !new.is_empty()
}

fn deliver(octets: &mut Vec<u8>, to: &mut Machine, cut: &mut dyn FnMut(usize) -> usize) {
    let (mut rest, mut before) = (&octets[..], 0);
    while !rest.is_empty() {
        let (segment, remainder) = rest.split_at(cut(before).clamp(1, rest.len()));
        before += 1;
        to.octets(segment);
        rest = remainder;
    }
    octets.clear();
}

/// The result of start-up.
pub(crate) fn established(machine: &Machine) -> (Negotiated, &PeerFrame) {
    let found = machine.events.iter().find_map(|event| match event {
        Event::Established { negotiated, peer } => Some((*negotiated, peer)),
        _ => None,
    });
    found.unwrap_or_else(|| panic!("not established: {:?}", machine.events))
}

/// Splits the octets that a machine sent into its start-up frame and the octets after this frame.
pub(crate) fn split_frame(octets: &[u8]) -> (&[u8], &[u8]) {
    let pd_length = usize::from(u16::from_be_bytes([octets[18], octets[19]]));
    octets.split_at(20 + pd_length)
}

/// An FPDU as it was in the stream.
#[derive(Debug)]
pub(crate) struct SeenFpdu {
    pub(crate) ulpdu: Vec<u8>,
    /// Length of the complete FPDU in octets.
    pub(crate) length: usize,
    /// Position and FPDUPTR of each marker. RESERVED was zero in all markers.
    pub(crate) markers: Vec<(usize, u16)>,
    pub(crate) pad: Vec<u8>,
    pub(crate) crc_field: [u8; 4],
    /// The correct value of the CRC field.
    pub(crate) crc: [u8; 4],
}

/// Reads a stream octet by octet, as RFC 5044 section 4.3 describes, and checks all rules of this
/// section.
pub(crate) fn fpdus(stream: &[u8], framing: Framing) -> Vec<SeenFpdu> {
    let seen = read(stream, framing.markers);
    for fpdu in &seen {
        assert!(fpdu.pad.iter().all(|octet| *octet == 0), "{fpdu:02x?}");
        assert_eq!(fpdu.crc_field, if framing.crc { fpdu.crc } else { [0; 4] });
    }
    seen
}

/// Reads a stream like [`fpdus`], but does not check CRC and PAD.
pub(crate) fn read(stream: &[u8], with_markers: bool) -> Vec<SeenFpdu> {
    let mut seen = Vec::new();
    let mut at = 0;
    let due = |at: usize| with_markers && at.is_multiple_of(512);
    while at < stream.len() {
        let start = at;
        let mut markers = Vec::new();
        let marker = |at: &mut usize, header: usize, markers: &mut Vec<(usize, u16)>| {
            let [high, low, a, b] = stream[*at..*at + 4].try_into().unwrap();
            assert_eq!((high, low), (0, 0), "RESERVED of the marker at {at}");
            let pointer = u16::from_be_bytes([a, b]);
            assert_eq!(usize::from(pointer), *at - header.min(*at), "FPDUPTR at {at}");
            markers.push((*at, pointer));
            *at += 4;
        };
        if due(at) {
            marker(&mut at, usize::MAX, &mut markers);
        }
        let header = at;
        let length = usize::from(u16::from_be_bytes([stream[at], stream[at + 1]]));
        let mut body = Vec::new();
        for _ in 0..2 + length + (4 - (2 + length) % 4) % 4 {
            if at != header && due(at) {
                marker(&mut at, header, &mut markers);
            }
            body.push(stream[at]);
            at += 1;
        }
        if due(at) {
            marker(&mut at, header, &mut markers);
        }
        let crc = crc::to_octets(crc::crc32c(&stream[start..at]));
        let crc_field = stream[at..at + 4].try_into().unwrap();
        at += 4;
        let pad = body.split_off(2 + length);
        seen.push(SeenFpdu { ulpdu: body.split_off(2), length: at - start, markers, pad, crc_field, crc });
    }
    seen
}

/// Random numbers from a printed seed. The seed is the value of `WEFT_SEED`, or a new seed if this
/// variable is not set.
pub(crate) struct Random(u64);

impl Random {
    pub(crate) fn seeded(name: &str) -> Self {
        use std::hash::{BuildHasher, Hasher};
        let new = || std::collections::hash_map::RandomState::new().build_hasher().finish();
        let seed = std::env::var("WEFT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(new);
        println!("{name}: WEFT_SEED={seed}");
        Random(seed)
    }

    pub(crate) fn from(seed: u64) -> Self {
        Random(seed)
    }

    /// SplitMix64.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, end: usize) -> usize {
        usize::try_from(self.next() % end as u64).unwrap()
    }

    pub(crate) fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        from[self.below(from.len())]
    }

    pub(crate) fn bool(&mut self) -> bool {
        self.next() & 1 == 1
    }
}
