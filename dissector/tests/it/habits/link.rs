//! These habits (effects of capturing) change the headers before the IP packet.

use weft_dissector::link_type::ETHERNET;

use super::again::insert;
use super::packet::{RAW_IP, ipv4_at};
use super::sides::sides;
use super::{CapturedFrame, Dice, Frames};

/// Inserts octets between the addresses and the EtherType.
fn tag(frames: &mut Frames, tags: &[u8]) {
    frames.iter_mut().for_each(|frame| tag_one(frame, tags));
}

fn tag_one(frame: &mut CapturedFrame, tags: &[u8]) {
    if frame.link_type == ETHERNET && frame.octets.len() >= 14 {
        frame.octets.splice(12..12, tags.iter().copied());
        frame.wire_len += u32::try_from(tags.len()).unwrap();
    }
}

/// Puts each direction into its own VLAN, as a switch with asymmetric VLANs does.
pub(super) fn vlan_each_way(frames: &mut Frames, _: &mut Dice) {
    let sides = sides(frames);
    for (frame, side) in frames.iter_mut().zip(sides) {
        tag_one(frame, &[0x81, 0, 0, if side == Some(1) { 8 } else { 7 }]);
    }
}

/// Gives each direction its own interface, as a passive tap on a full-duplex link does.
pub(super) fn interface_each_way(frames: &mut Frames, _: &mut Dice) {
    let sides = sides(frames);
    frames.iter_mut().zip(sides).for_each(|(frame, side)| frame.interface = u32::from(side == Some(1)));
}

/// Adds a copy of each frame in a VLAN. A capture on both ports of a router has such copies.
pub(super) fn copied_to_vlan(frames: &mut Frames, _: &mut Dice) {
    let twice = |frame: &CapturedFrame| {
        let mut copy = frame.clone();
        tag_one(&mut copy, &[0x81, 0, 0, 7]);
        [frame.clone(), copy]
    };
    *frames = frames.iter().flat_map(twice).collect();
}

pub(super) fn copied_to_interface(frames: &mut Frames, _: &mut Dice) {
    for (number, frame) in frames.clone().into_iter().enumerate() {
        insert(frames, 2 * number + 4, CapturedFrame { interface: 1, ..frame });
    }
}

pub(super) fn vlan(frames: &mut Frames, _: &mut Dice) {
    tag(frames, &[0x81, 0, 0, 7]);
}

pub(super) fn two_vlans(frames: &mut Frames, _: &mut Dice) {
    tag(frames, &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8]);
}

pub(super) fn raw_ip(frames: &mut Frames, _: &mut Dice) {
    for frame in frames.iter_mut() {
        let Some(at) = ipv4_at(frame) else { continue };
        frame.octets.drain(..at);
        frame.wire_len -= u32::try_from(at).unwrap();
        frame.link_type = RAW_IP;
    }
}

fn append(frame: &mut CapturedFrame, octets: &[u8]) {
    if frame.link_type == ETHERNET && !frame.is_cut() {
        frame.octets.extend_from_slice(octets);
        frame.wire_len += u32::try_from(octets.len()).unwrap();
    }
}

pub(super) fn padding(frames: &mut Frames, _: &mut Dice) {
    frames.iter_mut().for_each(|frame| append(frame, &vec![0; 60_usize.saturating_sub(frame.octets.len())]));
}

pub(super) fn fcs(frames: &mut Frames, _: &mut Dice) {
    frames.iter_mut().for_each(|frame| append(frame, &[0xde, 0xad, 0xbe, 0xef]));
}
