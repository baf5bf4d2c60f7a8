//! Reassembles IP packets from fragments.
//!
//! A sender may reuse an identification, so an incomplete packet is dropped after [`MOST_TIME`]. If
//! fragments contradict each other, two packets have the same identification, and it is unknown
//! which fragments belong together. All fragments with this identification are then dropped, as in
//! Linux.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Maximum number of incomplete packets. The oldest packet is dropped first. 256 packets of 65,535
/// octets, with one octet of state for each octet, take 32 MiB.
const MOST_WAITING: usize = 256;
const LONGEST: usize = 65535;
/// Maximum capture time from the first to the last fragment of a packet, in nanoseconds. Linux
/// waits for the same time (`net.ipv4.ipfrag_time`). The limit for hosts is 60 seconds (RFC 8200
/// section 4.5, RFC 1122 section 3.3.2).
const MOST_TIME: u64 = 30_000_000_000;

/// The fields that are equal in all fragments of a packet (RFC 791, RFC 8200 section 4.5).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) struct Key {
    pub(super) src: IpAddr,
    pub(super) dst: IpAddr,
    pub(super) identification: u32,
    pub(super) protocol: u8,
}

#[derive(Clone, Copy, PartialEq)]
enum Octet {
    Absent,
    /// The octet was on the wire, but the snap length cut it off.
    Cut,
    Captured,
}

#[derive(Default)]
struct Packet {
    /// Capture time of the first fragment, in nanoseconds since 1970.
    begun: u64,
    octets: Vec<u8>,
    state: Vec<Octet>,
    /// Number of octets that are not absent.
    there: usize,
    total: Option<usize>,
    /// Number of frames with fragments of the packet.
    frames: u64,
    /// Whether the fragments belong to several packets.
    is_mixed: bool,
}

impl Packet {
    fn new(begun: u64) -> Self {
        Packet { begun, ..Packet::default() }
    }

    /// Returns whether the fragment has other octets than the packet at the same offset, or another
    /// end of the packet.
    fn contradicts(&self, offset: usize, octets: &[u8], wire_len: usize, more: bool) -> bool {
        let end = offset + wire_len;
        let is_other_end = self.total.is_some_and(|total| end > total || !more && end != total);
        let is_beyond = !more && self.state.get(end..).is_some_and(|after| after.iter().any(|s| *s != Octet::Absent));
        let mut known = self.state.iter().zip(&self.octets).skip(offset).zip(octets);
        is_other_end || is_beyond || known.any(|((state, known), octet)| *state == Octet::Captured && known != octet)
    }

    fn add(&mut self, offset: usize, octets: &[u8], wire_len: usize, more: bool) {
        let end = offset + wire_len;
        self.frames += 1;
        if !more {
            self.total = Some(end);
        }
        if self.octets.len() < end {
            self.octets.resize(end, 0);
            self.state.resize(end, Octet::Absent);
        }
        for i in 0..wire_len {
            let at = offset + i;
            if self.state[at] == Octet::Absent {
                self.state[at] = Octet::Cut;
                self.there += 1;
                if let Some(octet) = octets.get(i) {
                    self.octets[at] = *octet;
                    self.state[at] = Octet::Captured;
                }
            }
        }
    }

    /// Length of the packet in octets; `None` while octets are absent.
    fn complete(&self) -> Option<usize> {
        let total = self.total.filter(|total| *total <= self.state.len())?;
        // Octets after the end of the last fragment do not count.
        let complete = self.there >= total && !self.state[..total].contains(&Octet::Absent);
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
pub(super) struct Reassembled {
    pub(super) octets: Vec<u8>,
    /// Number of octets at the start that were captured without a gap.
    pub(super) captured: usize,
    pub(super) wire_len: usize,
}

impl Fragments {
    /// Adds a fragment that was captured at `time`. Returns the payload of the packet if the packet
    /// is then complete.
    pub(super) fn add(
        &mut self,
        time: u64,
        key: Key,
        offset: usize,
        octets: &[u8],
        wire_len: usize,
        more: bool,
    ) -> Option<Reassembled> {
        if offset + wire_len > LONGEST {
            return None;
        }
        if !self.waiting.contains_key(&key) {
            if self.waiting.len() >= MOST_WAITING
                && let Some(oldest) = self.order.pop_front()
            {
                self.lost += self.waiting.remove(&oldest).map_or(0, |packet| packet.frames);
            }
            self.order.push_back(key);
        }
        let packet = self.waiting.entry(key).or_insert_with(|| Packet::new(time));
        if time.abs_diff(packet.begun) > MOST_TIME {
            self.lost += packet.frames;
            *packet = Packet::new(time);
        }
        if packet.is_mixed || packet.contradicts(offset, octets, wire_len, more) {
            let frames = packet.frames + 1;
            *packet = Packet { begun: time, frames, is_mixed: true, ..Packet::default() };
            return None;
        }
        packet.add(offset, octets, wire_len, more);
        let total = packet.complete()?;
        let captured = packet.state[..total].iter().position(|s| *s == Octet::Cut).unwrap_or(total);
        let packet = self.waiting.remove(&key)?;
        self.order.retain(|k| *k != key);
        Some(Reassembled { octets: packet.octets, captured, wire_len: total })
    }

    /// Number of frames with fragments of packets that were dropped or are incomplete.
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
        assert_eq!(payload(MOST_TIME + 1), Some(vec![2; 16]));
        assert_eq!(payload(MOST_TIME), None);
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
        // Fragments with different ends of the packet, in both orders.
        assert_eq!(packet(&[(16, last, false), (32, last, false), (0, first, true)]), (vec![], 3));
        assert_eq!(packet(&[(24, last, true), (16, last, false), (0, first, true)]), (vec![], 3));
    }
}
