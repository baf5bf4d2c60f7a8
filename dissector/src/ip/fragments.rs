//! Reassembles IP packets from fragments.
//!
//! A sender can use the identification of a packet again for a later packet. Therefore an
//! incomplete packet is dropped after [`MAX_REASSEMBLY_TIME`]. If fragments contradict each other,
//! they belong to two packets with the same identification, and it is unknown which fragments
//! belong together. In this case, all fragments with this identification are dropped, as in Linux.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Maximum number of incomplete packets. The oldest packet is dropped first. Each octet of a
/// packet is stored with one octet of state. So 256 packets of 65,535 octets take 32 MiB.
const MAX_INCOMPLETE: usize = 256;
const LONGEST: usize = 65535;
/// Maximum capture time from the first to the last fragment of a packet, in nanoseconds. Linux
/// waits for the same time (`net.ipv4.ipfrag_time`). The limit for hosts is 60 seconds (RFC 8200
/// section 4.5, RFC 1122 section 3.3.2).
const MAX_REASSEMBLY_TIME: u64 = 30_000_000_000;

/// The fields that are equal in all fragments of a packet (RFC 791, RFC 8200 section 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    pub(super) identification: u32,
    pub(super) protocol: u8,
}

#[derive(Clone, Copy, PartialEq)]
enum OctetState {
    Absent,
    /// The octet was on the wire, but the snap length cut it off.
    Cut,
    Captured,
}

#[derive(Default)]
struct Packet {
    /// Capture time of the first fragment, in nanoseconds since 1970.
    began: u64,
    octets: Vec<u8>,
    state: Vec<OctetState>,
    /// Number of octets that are not absent.
    present: usize,
    total: Option<usize>,
    /// Number of frames with fragments of the packet.
    frames: u64,
    /// Whether the fragments belong to several packets.
    is_mixed: bool,
}

impl Packet {
    fn new(began: u64) -> Self {
        Packet { began, ..Packet::default() }
    }

    /// Returns whether the fragment contradicts an earlier fragment: either their octets at the
    /// same offset differ, or the two fragments give the packet different ends.
    fn contradicts(&self, offset: usize, octets: &[u8], wire_len: usize, more: bool) -> bool {
        let end = offset + wire_len;
        let is_other_end = self.total.is_some_and(|total| end > total || !more && end != total);
        let is_beyond =
            !more && self.state.get(end..).is_some_and(|after| after.iter().any(|s| *s != OctetState::Absent));
        let mut known = self.state.iter().zip(&self.octets).skip(offset).zip(octets);
        is_other_end
            || is_beyond
            || known.any(|((state, known), octet)| *state == OctetState::Captured && known != octet)
    }

    fn add(&mut self, offset: usize, octets: &[u8], wire_len: usize, more: bool) {
        let end = offset + wire_len;
        self.frames += 1;
        if !more {
            self.total = Some(end);
        }
        if self.octets.len() < end {
            self.octets.resize(end, 0);
            self.state.resize(end, OctetState::Absent);
        }
        for i in 0..wire_len {
            let at = offset + i;
            if self.state[at] == OctetState::Absent {
                self.state[at] = OctetState::Cut;
                self.present += 1;
                if let Some(octet) = octets.get(i) {
                    self.octets[at] = *octet;
                    self.state[at] = OctetState::Captured;
                }
            }
        }
    }

    /// Length of the packet in octets; `None` while octets are absent.
    fn complete(&self) -> Option<usize> {
        let total = self.total.filter(|total| *total <= self.state.len())?;
        // Octets after the end of the last fragment do not count.
        let complete = self.present >= total && !self.state[..total].contains(&OctetState::Absent);
        complete.then_some(total)
    }
}

#[derive(Default)]
pub(super) struct Fragments {
    waiting: HashMap<Key, Packet>,
    order: VecDeque<Key>,
    /// Number of frames with fragments of dropped packets.
    lost: u64,
}

/// The reassembled payload of a packet.
pub(super) struct ReassembledPayload {
    pub(super) octets: Vec<u8>,
    /// Number of octets from the start to the first octet that was not captured.
    pub(super) captured: usize,
    pub(super) wire_len: usize,
}

impl Fragments {
    /// Adds a fragment that was captured at `time`. If this fragment completes the packet, returns
    /// the payload of the packet.
    pub(super) fn add(
        &mut self,
        time: u64,
        key: Key,
        offset: usize,
        octets: &[u8],
        wire_len: usize,
        more: bool,
    ) -> Option<ReassembledPayload> {
        if offset + wire_len > LONGEST {
            return None;
        }
        if !self.waiting.contains_key(&key) {
            if self.waiting.len() >= MAX_INCOMPLETE
                && let Some(oldest) = self.order.pop_front()
            {
                self.lost += self.waiting.remove(&oldest).map_or(0, |packet| packet.frames);
            }
            self.order.push_back(key);
        }
        let packet = self.waiting.entry(key).or_insert_with(|| Packet::new(time));
        if time.abs_diff(packet.began) > MAX_REASSEMBLY_TIME {
            self.lost += packet.frames;
            *packet = Packet::new(time);
        }
        if packet.is_mixed || packet.contradicts(offset, octets, wire_len, more) {
            let frames = packet.frames + 1;
            *packet = Packet { began: time, frames, is_mixed: true, ..Packet::default() };
            return None;
        }
        packet.add(offset, octets, wire_len, more);
        let total = packet.complete()?;
        let captured = packet.state[..total].iter().position(|s| *s == OctetState::Cut).unwrap_or(total);
        let packet = self.waiting.remove(&key)?;
        self.order.retain(|k| *k != key);
        Some(ReassembledPayload { octets: packet.octets, captured, wire_len: total })
    }

    /// Number of frames with a fragment of a packet that was dropped or is still incomplete.
    pub(super) fn lost(&self) -> u64 {
        self.lost + self.waiting.values().map(|packet| packet.frames).sum::<u64>()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key() -> Key {
        let address = IpAddr::from([10, 0, 0, 1]);
        Key { src: address, dst: address, identification: 9, protocol: 6 }
    }

    #[test]
    fn an_identification_is_used_again_after_30_seconds() {
        let payload = |wait: u64| {
            let mut fragments = Fragments::default();
            // The second fragment is lost, and the next packet has the same identification.
            fragments.add(5, key(), 0, &[1; 8], 8, true);
            fragments.add(5 + wait, key(), 0, &[2; 8], 8, true);
            fragments.add(5 + wait, key(), 8, &[2; 8], 8, false).map(|packet| packet.octets)
        };
        assert_eq!(payload(MAX_REASSEMBLY_TIME + 1), Some(vec![2; 16]));
        assert_eq!(payload(MAX_REASSEMBLY_TIME), None);
    }

    #[test]
    fn fragments_that_contradict_each_other_make_no_packet() {
        let packet = |fragments: &[(usize, &[u8], bool)]| {
            let mut waiting = Fragments::default();
            let add = |(offset, octets, more): &(usize, &[u8], bool)| {
                waiting.add(5, key(), *offset, octets, octets.len(), *more)
            };
            let packets: Vec<_> = fragments.iter().filter_map(add).map(|packet| packet.octets).collect();
            (packets, waiting.lost())
        };
        let (first, other, last): (&[u8], &[u8], &[u8]) = (&[1; 16], &[2; 16], &[3; 8]);
        let complete = [first, last].concat();
        assert_eq!(packet(&[(0, first, true), (0, first, true), (16, last, false)]), (vec![complete.clone()], 0));
        assert_eq!(packet(&[(0, first, true), (8, &first[8..], true), (16, last, false)]), (vec![complete], 0));
        assert_eq!(packet(&[(0, first, true), (0, other, true), (16, last, false), (0, first, true)]), (vec![], 4));
        // The fragments give the packet two different ends. Test both orders of the two fragments.
        assert_eq!(packet(&[(16, last, false), (32, last, false), (0, first, true)]), (vec![], 3));
        assert_eq!(packet(&[(24, last, true), (16, last, false), (0, first, true)]), (vec![], 3));
    }
}
