//! A *habit* is a way in which the method of capturing changes a capture. For example, a snap
//! length, a busy tap, a mirror port, a merge of two files or a network card changes frames. No
//! habit adds a fault of an endpoint.
//!
//! A habit does not change frames that it cannot parse, such as frames that another habit has cut.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

mod again;
mod crc;
mod cut;
mod dice;
mod fragments;
mod link;
mod loss;
mod offload;
mod order;
mod packet;
mod sides;
mod snap;
mod taps;

pub(crate) use dice::Dice;

use std::path::Path;

use weft_dissector::source::{Capture, Frame};
use weft_dissector::{Dissector, FrameNumber, Sink};

/// A captured frame. A habit can change all of its fields.
#[derive(Debug, Clone)]
pub(crate) struct CapturedFrame {
    /// When the frame was captured, in nanoseconds since 1970.
    pub(crate) time: u64,
    /// Number of the interface in the capture.
    pub(crate) interface: u32,
    pub(crate) link_type: u16,
    pub(crate) octets: Vec<u8>,
    pub(crate) wire_len: u32,
}

impl CapturedFrame {
    /// Returns whether a snap length cut the frame.
    fn is_cut(&self) -> bool {
        self.octets.len() < self.wire_len as usize
    }
}

pub(crate) type Frames = Vec<CapturedFrame>;

/// The longest time by which a habit delays a frame, in nanoseconds (1 s).
const LONGEST_DELAY: u64 = 1_000_000_000;

impl CapturedFrame {
    /// Sets the time of this frame to `time`, the time of a neighbouring frame. Does nothing if
    /// `time` differs from the time of this frame by more than [`LONGEST_DELAY`].
    fn delay_to(&mut self, time: u64) {
        if time.abs_diff(self.time) <= LONGEST_DELAY {
            self.time = time;
        }
    }
}

/// The frames of a capture file.
pub(crate) fn read(path: &Path) -> Frames {
    let mut capture = Capture::open(path).unwrap();
    let mut frames = Vec::new();
    while let Some(Frame { time, interface, link_type, octets, wire_len, .. }) = capture.next_frame() {
        frames.push(CapturedFrame { time, interface, link_type, octets: octets.to_vec(), wire_len });
    }
    frames
}

/// Passes all frames to a new dissector. The first frame has the number 1.
pub(crate) fn dissect<'f>(frames: impl IntoIterator<Item = &'f CapturedFrame>, sink: &mut dyn Sink) {
    let mut dissector = Dissector::default();
    for (frame, number) in frames.into_iter().zip((1..).map(FrameNumber::from)) {
        let CapturedFrame { time, interface, link_type, octets, wire_len } = frame;
        let (time, interface, link_type, wire_len) = (*time, *interface, *link_type, *wire_len);
        dissector.frame(&Frame { number, time, interface, link_type, octets, wire_len }, sink);
    }
    dissector.finish(sink);
}

/// The effect of a habit on the octets that the endpoints sent.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// The capture has all octets, in their order.
    Keeps,
    /// Frames or parts of them are missing or changed.
    Loses,
    /// The dissector can confuse frames of different connections or packets, or can stop waiting
    /// for late frames.
    Confuses,
    /// The order of the frames has changed.
    Reorders,
    /// A frame has octets that no earlier frame has. So the capture looks as if frames were missing
    /// or reordered.
    Puzzles,
}

/// A way in which capturing changes a capture.
pub(crate) struct Habit {
    pub(crate) name: &'static str,
    pub(crate) effect: Effect,
    /// Changes the frames. `Dice` makes the random decisions.
    pub(crate) change: fn(&mut Frames, &mut Dice),
}

const fn habit(name: &'static str, change: fn(&mut Frames, &mut Dice)) -> Habit {
    Habit { name, effect: Effect::Keeps, change }
}

const fn lossy(name: &'static str, change: fn(&mut Frames, &mut Dice)) -> Habit {
    Habit { name, effect: Effect::Loses, change }
}

const fn unordered(name: &'static str, change: fn(&mut Frames, &mut Dice)) -> Habit {
    Habit { name, effect: Effect::Reorders, change }
}

/// The octets that an endpoint sent in a frame, without the headers before the IP packet.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sent {
    /// The address and the port of the sender. Only the address if the frame has no TCP segment.
    /// Empty if the frame has no IPv4 packet.
    pub(crate) from: Vec<u8>,
    /// Sequence number, acknowledgement number and flags, if the frame has a TCP segment.
    pub(crate) header: Option<(u32, u32, u8)>,
    /// The TCP payload, or the complete frame if it has no TCP segment.
    octets: Vec<u8>,
}

/// Returns the octets that were sent in `frame`.
pub(crate) fn sent(frame: &CapturedFrame) -> Sent {
    if let Some(tcp) = packet::tcp_at(frame).filter(|tcp| tcp.end <= frame.octets.len()) {
        let header = (tcp.seq(frame), tcp.ack(frame), tcp.flags(frame));
        let octets = frame.octets[tcp.payload..tcp.end].to_vec();
        return Sent { from: tcp.ends(frame).0.to_vec(), header: Some(header), octets };
    }
    let address = packet::ipv4_at(frame).and_then(|ip| frame.octets.get(ip + 12..ip + 16));
    Sent { from: address.unwrap_or_default().to_vec(), header: None, octets: frame.octets.clone() }
}

/// All habits.
pub(crate) const HABITS: &[Habit] = &[
    lossy("ended after any frame", cut::end_anywhere),
    lossy("ended within the first frames", cut::end_early),
    lossy("ended before the last frame", cut::end_before_last),
    lossy("begun at any frame", cut::begin_anywhere),
    lossy("begun after the SYN", cut::begin_after::<1>),
    lossy("begun after the SYN-ACK", cut::begin_after::<2>),
    lossy("begun after the handshake", cut::begin_after::<3>),
    lossy("begun after the Request", cut::begin_after::<4>),
    lossy("begun after the Reply", cut::begin_after::<6>),
    lossy("begun and ended anywhere", cut::middle),
    lossy("a hole in the middle", cut::hole),
    lossy("54 octets of each frame", snap::to::<54>),
    lossy("64 octets of each frame", snap::to::<64>),
    lossy("68 octets of each frame", snap::to::<68>),
    lossy("80 octets of each frame", snap::to::<80>),
    lossy("96 octets of each frame", snap::to::<96>),
    lossy("128 octets of each frame", snap::to::<128>),
    lossy("200 octets of each frame", snap::to::<200>),
    lossy("256 octets of each frame", snap::to::<256>),
    lossy("512 octets of each frame", snap::to::<512>),
    lossy("1500 octets of each frame", snap::to::<1500>),
    lossy("any number of octets of each frame", snap::anywhere),
    lossy("the first direction alone", sides::only::<0>),
    lossy("the second direction alone", sides::only::<1>),
    lossy("the first direction from any frame on", sides::until::<1>),
    lossy("the second direction from any frame on", sides::until::<0>),
    lossy("the first direction ends early", sides::from::<1>),
    lossy("the second direction ends early", sides::from::<0>),
    lossy("one frame lost", loss::one),
    lossy("one frame of the start-up lost", loss::one_early),
    lossy("one frame in 100 lost", loss::one_in::<100>),
    lossy("one frame in 20 lost", loss::one_in::<20>),
    lossy("one frame in 5 lost", loss::one_in::<5>),
    lossy("5 frames in a row lost", loss::burst::<5>),
    lossy("30 frames in a row lost", loss::burst::<30>),
    lossy("the SYN lost", loss::syn),
    lossy("the SYN-ACK lost", loss::syn_ack),
    lossy("both SYNs lost", loss::both_syns),
    lossy("every FIN and RST lost", loss::ends),
    lossy("bare acknowledgements lost", loss::bare_acks),
    lossy("one frame with payload lost in each direction", loss::one_each_way),
    unordered("a pair of neighbours swapped", order::swap_one),
    unordered("many neighbours swapped", order::swap_many),
    unordered("a frame comes 3 frames late", order::late::<3>),
    unordered("a frame comes 20 frames late", order::late::<20>),
    unordered("a frame comes 8 frames early", order::early::<8>),
    unordered("the SYN-ACK before the SYN", order::syns),
    unordered("blocks of 4 frames reversed", order::reversed),
    habit("one frame twice", again::one),
    habit("every frame twice", again::every),
    habit("every frame twice, once late", again::every_late),
    unordered("a retransmission captured for the original", again::retransmitted),
    Habit { name: "a keep-alive before its octet", effect: Effect::Puzzles, change: again::keep_alive_early },
    unordered("two taps, 0.1 ms apart", taps::skewed::<100_000>),
    unordered("two taps, 1 ms apart", taps::skewed::<1_000_000>),
    unordered("two taps, 10 ms apart", taps::skewed::<10_000_000>),
    unordered("two taps, 1 s apart", taps::skewed::<1_000_000_000>),
    unordered("two taps, the other late by 5 ms", taps::other_skewed::<5_000_000>),
    unordered("one file a direction, appended", taps::appended::<0>),
    unordered("one file a direction, appended the other way round", taps::appended::<1>),
    habit("the ports used again", taps::ports_again),
    Habit { name: "the ports used again, SYNs lost", effect: Effect::Confuses, change: taps::ports_again_without_syns },
    habit("a VLAN", link::vlan),
    habit("two VLANs", link::two_vlans),
    habit("a VLAN for each direction", link::vlan_each_way),
    habit("an interface for each direction", link::interface_each_way),
    habit("every frame twice, the copy in a VLAN", link::copied_to_vlan),
    habit("every frame twice, the copy late and from another interface", link::copied_to_interface),
    habit("raw IP", link::raw_ip),
    habit("Ethernet padding", link::padding),
    habit("the FCS captured", link::fcs),
    habit("IPv4 fragments", fragments::in_two),
    habit("IPv4 fragments, the last one first", fragments::reversed),
    lossy("IPv4 fragments, one in 10 lost", fragments::some_lost),
    Habit {
        name: "one identification for all fragments",
        effect: Effect::Confuses,
        change: fragments::same_identification,
    },
    habit("receive offload", offload::merged),
    lossy("CRC off, the fields zero", crc::zero),
    lossy("CRC off, the fields anything", crc::anything),
];
