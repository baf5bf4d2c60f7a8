//! IP fragments that wait for the rest of their packet.
//!
//! A sender may use an identification again, so an incomplete packet is dropped after
//! [`MOST_TIME`]. If fragments contradict each other, two packets share the identification, and
//! nothing shows which fragments belong together. All of them are dropped, as Linux does.

use std::collections::{HashMap, VecDeque};
use std::net::IpAddr;

/// Packets that may wait at once; the oldest is dropped first. 256 packets of 65,535 octets, twice
/// (octets and their state): 32 MiB.
const MOST_WAITING: usize = 256;
const LONGEST: usize = 65535;
/// Nanoseconds of capture time between the first fragment of a packet and its last. Linux waits
/// this long (`net.ipv4.ipfrag_time`), and it is within the limit for hosts (RFC 8200 section 4.5,
/// RFC 1122 section 3.3.2: 60 seconds).
const MOST_TIME: u64 = 30_000_000_000;

/// The key that the fragments of one packet share (RFC 791, RFC 8200 section 4.5).
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
    /// On the wire, but cut off by the snap length.
    Cut,
    Captured,
}

#[derive(Default)]
struct Packet {
    /// When its first fragment was captured.
    begun: u64,
    octets: Vec<u8>,
    state: Vec<Octet>,
    /// Octets that are not absent.
    there: usize,
    total: Option<usize>,
    /// Frames that carried a part of it.
    frames: u64,
    /// Do its fragments belong to several packets?
    is_mixed: bool,
}

impl Packet {
    fn new(begun: u64) -> Self {
        Packet { begun, ..Packet::default() }
    }

    /// Has the packet other octets where the fragment has these, or another end?
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

    /// Length of the packet once no octet of it is absent.
    fn complete(&self) -> Option<usize> {
        let total = self.total.filter(|total| *total <= self.state.len())?;
        // Octets after the end that the last fragment shows do not count.
        let complete = self.there >= total && !self.state[..total].contains(&Octet::Absent);
        complete.then_some(total)
    }
}

#[derive(Default)]
pub(super) struct Fragments {
    waiting: HashMap<Key, Packet>,
    order: VecDeque<Key>,
    /// Frames of packets that were dropped.
    lost: u64,
}

/// The reassembled payload of a packet.
pub(super) struct Reassembled {
    pub(super) octets: Vec<u8>,
    /// The number of octets, from the first on, that were captured without a gap.
    pub(super) captured: usize,
    pub(super) wire_len: usize,
}

impl Fragments {
    /// Adds a fragment, captured at `time`; returns the payload when it was the last one missing.
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

    /// Frames that carried a part of a packet that was dropped, or that waits now.
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
            // Its second fragment is lost; the next packet has the same identification.
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
        // Another end, in either order.
        assert_eq!(packet(&[(16, last, false), (32, last, false), (0, first, true)]), (vec![], 3));
        assert_eq!(packet(&[(24, last, true), (16, last, false), (0, first, true)]), (vec![], 3));
    }
}
