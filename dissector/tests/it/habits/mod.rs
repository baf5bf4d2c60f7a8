//! What capturing does to a capture: each habit changes frames as a snap length, a busy tap, a
//! mirror port, a merge of two files or a network card does. None adds a fault of an endpoint.
//!
//! A habit leaves frames alone that it cannot read, such as those that another habit has cut.
#![expect(clippy::unwrap_used, reason = "helpers of tests; the lint's own exception covers test functions only")]

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

/// One captured frame, of which a habit may change everything.
#[derive(Debug, Clone)]
pub(crate) struct CapturedFrame {
    /// In nanoseconds.
    pub(crate) time: u64,
    /// Number of the interface in the capture.
    pub(crate) interface: u32,
    pub(crate) link_type: u16,
    pub(crate) octets: Vec<u8>,
    pub(crate) wire_len: u32,
}

impl CapturedFrame {
    /// Did a snap length cut it?
    fn is_cut(&self) -> bool {
        self.octets.len() < self.wire_len as usize
    }
}

pub(crate) type Frames = Vec<CapturedFrame>;

/// One habit.
pub(crate) struct Habit {
    pub(crate) name: &'static str,
    /// Changes the frames; what it leaves to chance comes from the dice.
    pub(crate) change: fn(&mut Frames, &mut Dice),
}

const fn habit(name: &'static str, change: fn(&mut Frames, &mut Dice)) -> Habit {
    Habit { name, change }
}

/// Every habit.
pub(crate) const HABITS: &[Habit] = &[
    habit("ended after any frame", cut::end_anywhere),
    habit("ended within the first frames", cut::end_early),
    habit("ended before the last frame", cut::end_before_last),
    habit("begun at any frame", cut::begin_anywhere),
    habit("begun after the SYN", cut::begin_after::<1>),
    habit("begun after the SYN-ACK", cut::begin_after::<2>),
    habit("begun after the handshake", cut::begin_after::<3>),
    habit("begun after the Request", cut::begin_after::<4>),
    habit("begun after the Reply", cut::begin_after::<6>),
    habit("begun and ended anywhere", cut::middle),
    habit("a hole in the middle", cut::hole),
    habit("54 octets of each frame", snap::to::<54>),
    habit("64 octets of each frame", snap::to::<64>),
    habit("68 octets of each frame", snap::to::<68>),
    habit("80 octets of each frame", snap::to::<80>),
    habit("96 octets of each frame", snap::to::<96>),
    habit("128 octets of each frame", snap::to::<128>),
    habit("200 octets of each frame", snap::to::<200>),
    habit("256 octets of each frame", snap::to::<256>),
    habit("512 octets of each frame", snap::to::<512>),
    habit("1500 octets of each frame", snap::to::<1500>),
    habit("any number of octets of each frame", snap::anywhere),
    habit("the first direction alone", sides::only::<0>),
    habit("the second direction alone", sides::only::<1>),
    habit("the first direction from any frame on", sides::until::<1>),
    habit("the second direction from any frame on", sides::until::<0>),
    habit("the first direction ends early", sides::from::<1>),
    habit("the second direction ends early", sides::from::<0>),
    habit("one frame lost", loss::one),
    habit("one frame of the start-up lost", loss::one_early),
    habit("one frame in 100 lost", loss::one_in::<100>),
    habit("one frame in 20 lost", loss::one_in::<20>),
    habit("one frame in 5 lost", loss::one_in::<5>),
    habit("5 frames in a row lost", loss::burst::<5>),
    habit("30 frames in a row lost", loss::burst::<30>),
    habit("the SYN lost", loss::syn),
    habit("the SYN-ACK lost", loss::syn_ack),
    habit("both SYNs lost", loss::both_syns),
    habit("every FIN and RST lost", loss::ends),
    habit("bare acknowledgements lost", loss::bare_acks),
    habit("one frame with payload lost in each direction", loss::one_each_way),
    habit("a pair of neighbours swapped", order::swap_one),
    habit("many neighbours swapped", order::swap_many),
    habit("a frame comes 3 frames late", order::late::<3>),
    habit("a frame comes 20 frames late", order::late::<20>),
    habit("a frame comes 8 frames early", order::early::<8>),
    habit("the SYN-ACK before the SYN", order::syns),
    habit("blocks of 4 frames reversed", order::reversed),
    habit("one frame twice", again::one),
    habit("every frame twice", again::every),
    habit("every frame twice, once late", again::every_late),
    habit("a retransmission captured for the original", again::retransmitted),
    habit("a keep-alive before its octet", again::keep_alive_early),
    habit("two taps, 0.1 ms apart", taps::skewed::<100_000>),
    habit("two taps, 1 ms apart", taps::skewed::<1_000_000>),
    habit("two taps, 10 ms apart", taps::skewed::<10_000_000>),
    habit("two taps, 1 s apart", taps::skewed::<1_000_000_000>),
    habit("two taps, the other late by 5 ms", taps::other_skewed::<5_000_000>),
    habit("one file a direction, appended", taps::appended::<0>),
    habit("one file a direction, appended the other way round", taps::appended::<1>),
    habit("the ports used again", taps::ports_again),
    habit("the ports used again, SYNs lost", taps::ports_again_without_syns),
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
    habit("IPv4 fragments, one in 10 lost", fragments::some_lost),
    habit("one identification for all fragments", fragments::same_identification),
    habit("receive offload", offload::merged),
    habit("CRC off, the fields zero", crc::zero),
    habit("CRC off, the fields anything", crc::anything),
];
