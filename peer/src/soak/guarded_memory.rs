//! Registered memory that detects wrong accesses. It has several parts, with guards between them.
//! The guards and all protected parts contain known bytes, which must not change.
//!
//! ```text
//!   guard | all rights | guard | readable | guard | writable | guard | other PD | guard | own | guard
//! ```
//!
//! Most parts begin or end inside a page. Therefore the bytes next to a part are on the same page.
//! `own` has only local rights. The first half of `own` holds receives, and the second half holds
//! data to send. The end of the second half is never used. At the start, the pattern (one repeated
//! byte) fills all memory that no peer may read. No message may ever contain the pattern.

use fastrand::Rng;

use crate::memory::{Access, Buffer, MemoryError, PdId, PhysicalBufferList, Registration, Stag, StagKey, ToBase};
use crate::reject::reject_if;
use crate::verbs::{RemoteAddress, Rnic, Sge};

/// The byte that patterns consist of.
const PATTERN: u8 = 0xe7;
/// If sent bytes contain this number of consecutive pattern bytes, the cause cannot be a
/// coincidence.
const RUN: usize = 24;
const PAGE: u64 = 4096;
/// Size of the buffer in bytes.
const LENGTH: u64 = 32 * PAGE;

/// A part of the buffer: the offset and the length of the part, in bytes.
type Part = (u64, u64);
const ALL: Part = (PAGE + 123, 2 * PAGE + 500);
const READABLE: Part = (5 * PAGE + 1, 3000);
const WRITABLE: Part = (7 * PAGE + 77, PAGE);
const OTHER: Part = (10 * PAGE, PAGE);
const OWN: Part = (12 * PAGE + 600, 18 * PAGE);
const HALF: u64 = 9 * PAGE;
/// Number of bytes at the end of `own` that are never used.
const UNUSED: u64 = 1000;

/// The guarded memory of one endpoint.
#[derive(Debug)]
pub struct GuardedMemory {
    buffer: Buffer,
    pds: [PdId; 2],
    /// The parts in this order: all rights, readable, writable, other PD, own.
    stags: [Stag; 5],
    /// More STags of the part with all rights. Sends with Invalidate may invalidate these STags.
    spares: Vec<Stag>,
    base: u64,
}

/// The parts of an endpoint's memory whose addresses the peer gets. The peer has no right to access
/// some of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Remote {
    stags: [Stag; 5],
    spares: Vec<Stag>,
    base: u64,
}

/// A violation of the memory checks.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum MemoryViolation {
    /// A byte changed, but it must not change.
    #[error("byte {offset} of the buffer ({part}) was changed")]
    Changed {
        /// Offset in the buffer.
        offset: usize,
        /// The part of the buffer, as text.
        part: &'static str,
    },
    /// The pattern was sent. The value is the position in the sent bytes.
    #[error("the sent bytes contain, at byte {0}, the fill pattern of memory that no peer may read")]
    Sent(usize),
}

impl GuardedMemory {
    /// Allocates the memory, and registers its parts for Queue Pairs of `pd`.
    ///
    /// # Errors
    /// The RNIC has no free memory.
    pub fn new(rnic: &mut Rnic, pd: PdId, rng: &mut Rng) -> Result<Self, MemoryError> {
        let memory = rnic.memory_mut();
        let other = memory.allocate_pd()?;
        let buffer = memory.allocate_buffer(LENGTH as usize)?;
        let base = if rng.bool() { 0 } else { rng.u64(..) >> rng.u32(0..48) | PAGE };
        if let Ok(octets) = memory.buffer_mut(buffer) {
            octets.fill(PATTERN);
            for (offset, length) in [ALL, READABLE, (OWN.0 + HALF, HALF - UNUSED)] {
                for (at, octet) in octets.iter_mut().enumerate().skip(offset as usize).take(length as usize) {
                    *octet = filler(at);
                }
            }
        }
        let readable = Access { remote_read: true, ..Access::LOCAL };
        let writable = Access { remote_write: true, ..Access::LOCAL };
        let mut register = |pd, (offset, length): Part, access: Access| {
            let list = PhysicalBufferList::of(buffer, offset, length, 4096);
            let base = if base == 0 { ToBase::ZeroBased } else { ToBase::VaBased(first(base, (offset, length))) };
            let key = StagKey(rng.u8(..));
            memory
                .register(&Registration { pd, key, list, base, remote: access.is_remote(), access })
                .map(|made| made.stag)
        };
        let stags = [
            register(pd, ALL, Access::ALL)?,
            register(pd, READABLE, readable)?,
            register(pd, WRITABLE, writable)?,
            register(other, OTHER, Access::ALL)?,
            register(pd, OWN, Access { remote_write: false, ..Access::LOCAL })?,
        ];
        let spares = (0..4).map(|_| register(pd, ALL, Access::ALL)).collect::<Result<_, _>>()?;
        Ok(GuardedMemory { buffer, pds: [pd, other], stags, spares, base })
    }

    /// Returns the STags and addresses that the peer gets.
    #[must_use]
    pub fn remote(&self) -> Remote {
        Remote { stags: self.stags, spares: self.spares.clone(), base: self.base }
    }

    /// Returns a random range of bytes that may be sent.
    pub fn source(&self, rng: &mut Rng, length: u32) -> Sge {
        let most = HALF - UNUSED;
        let length = u64::from(length).min(most);
        let offset = HALF + rng.u64(0..=most - length);
        self.own(offset, length)
    }

    /// Returns a random range for received data.
    pub fn sink(&self, rng: &mut Rng, length: u32) -> Sge {
        let length = u64::from(length).min(HALF);
        self.own(rng.u64(0..=HALF - length), length)
    }

    /// Returns a random range for the data of an RDMA Read. The range needs the right of remote
    /// write access.
    pub fn read_sink(&self, rng: &mut Rng, length: u32) -> Sge {
        let length = u64::from(length).min(ALL.1);
        let tagged_offset = first(self.base, ALL) + rng.u64(0..=ALL.1 - length);
        Sge { stag: self.stags[0].to_bits(), tagged_offset, length: u32::try_from(length).unwrap_or(0) }
    }

    fn own(&self, offset: u64, length: u64) -> Sge {
        let tagged_offset = first(self.base, OWN) + offset;
        Sge { stag: self.stags[4].to_bits(), tagged_offset, length: u32::try_from(length).unwrap_or(0) }
    }

    /// Checks that all protected bytes are unchanged.
    ///
    /// # Errors
    /// A protected byte was changed.
    pub fn check(&self, rnic: &Rnic) -> Result<(), MemoryViolation> {
        let Ok(octets) = rnic.memory().buffer(self.buffer) else { return Ok(()) };
        let end = |part: Part| (part.0 + part.1) as usize;
        let check_pattern = |from: usize, to: usize, part| {
            let wrong = octets.get(from..to).unwrap_or_default().iter().position(|octet| *octet != PATTERN);
            wrong.map_or(Ok(()), |at| Err(MemoryViolation::Changed { offset: from + at, part }))
        };
        check_pattern(0, ALL.0 as usize, "the guard before all parts")?;
        check_pattern(end(ALL), READABLE.0 as usize, "the guard after the part with all rights")?;
        check_pattern(end(READABLE), WRITABLE.0 as usize, "the guard after the readable part")?;
        check_pattern(end(WRITABLE), OWN.0 as usize, "the guards and the other PD's part")?;
        check_pattern(
            end(OWN) - UNUSED as usize,
            LENGTH as usize,
            "the end of this side's part and the guard after it",
        )?;
        for (part, name) in [(READABLE, "the readable part"), ((OWN.0 + HALF, HALF - UNUSED), "the data to send")] {
            let octets = octets.iter().enumerate().skip(part.0 as usize).take(part.1 as usize);
            if let Some((offset, _)) = octets.into_iter().find(|(at, octet)| **octet != filler(*at)) {
                return Err(MemoryViolation::Changed { offset, part: name });
            }
        }
        Ok(())
    }

    /// Checks that sent bytes do not contain the pattern.
    ///
    /// # Errors
    /// The bytes contain the pattern.
    pub fn check_sent(octets: &[u8]) -> Result<(), MemoryViolation> {
        let mut run = 0;
        for (at, octet) in octets.iter().enumerate() {
            run = if *octet == PATTERN { run + 1 } else { 0 };
            reject_if(run == RUN, MemoryViolation::Sent(at))?;
        }
        Ok(())
    }

    /// Frees everything except the Queue Pair's PD. If a peer has invalidated an STag, this
    /// function still has to deallocate the STag.
    ///
    /// # Errors
    /// A resource is still in use, or no longer exists.
    pub fn release(self, rnic: &mut Rnic) -> Result<(), String> {
        let memory = rnic.memory_mut();
        for stag in self.stags.iter().chain(&self.spares) {
            memory.deallocate_stag(stag.index).map_err(|error| format!("{stag:?}: {error}"))?;
        }
        memory.deallocate_pd(self.pds[1]).map_err(|error| format!("PD: {error}"))?;
        memory.free_buffer(self.buffer).map_err(|error| format!("buffer: {error}"))
    }
}

impl Remote {
    /// Returns a random address to write to, usually a valid one.
    pub fn write_address(&self, rng: &mut Rng, length: u32) -> RemoteAddress {
        let right = if rng.bool() { (0, ALL) } else { (2, WRITABLE) };
        self.address(rng, right, length)
    }

    /// Returns a random address to read from, usually a valid one.
    pub fn read_address(&self, rng: &mut Rng, length: u32) -> RemoteAddress {
        self.address(rng, (1, READABLE), length)
    }

    /// Returns the random address of an eight-byte value.
    pub fn atomic_address(&self, rng: &mut Rng) -> RemoteAddress {
        let mut address = self.address(rng, (0, ALL), 8);
        if !rng.bool() {
            address.tagged_offset &= !7;
        }
        address
    }

    /// Returns a random STag that may be invalidated.
    pub fn spare_stag(&self, rng: &mut Rng) -> Option<u32> {
        rng.choice(&self.spares).map(|stag| stag.to_bits())
    }

    /// Returns a random address in the part `right`. With a probability of 1/8, the address is in a
    /// random part, and the range can exceed this part.
    fn address(&self, rng: &mut Rng, right: (usize, Part), length: u32) -> RemoteAddress {
        const PARTS: [Part; 5] = [ALL, READABLE, WRITABLE, OTHER, OWN];
        let wrong = rng.u32(0..8) == 0;
        let index = if wrong { rng.usize(0..PARTS.len()) } else { right.0 };
        let part = PARTS[index];
        let room = part.1.saturating_sub(u64::from(length));
        let offset = if wrong { room.wrapping_add(rng.u64(0..64)).wrapping_sub(16) } else { rng.u64(0..=room) };
        let tagged_offset = first(self.base, part).wrapping_add(offset);
        RemoteAddress { stag: self.stags[index].to_bits(), tagged_offset }
    }
}

/// Returns the Tagged Offset of a part's first byte. If the region is not zero-based, the Tagged
/// Offset and the part have the same offset in a page.
fn first(base: u64, part: Part) -> u64 {
    if base == 0 { 0 } else { (base.min(u64::MAX - LENGTH) & !(PAGE - 1)) + part.0 % PAGE }
}

/// Returns the byte at position `at` of memory that may be sent. This memory never contains two
/// consecutive pattern bytes.
fn filler(at: usize) -> u8 {
    (at % 251) as u8
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::verbs::{Node, RnicSettings};

    #[test]
    fn what_is_changed_or_sent_is_found() {
        let mut rng = Rng::with_seed(1);
        let (mut rnic, _) = Node::new(["weft0"]).open("weft0", RnicSettings::default()).unwrap();
        let pd = rnic.memory_mut().allocate_pd().unwrap();
        let guarded = GuardedMemory::new(&mut rnic, pd, &mut rng).unwrap();
        assert_eq!(guarded.check(&rnic), Ok(()));
        let free = [ALL, WRITABLE, (OWN.0, HALF)];
        for at in (0..LENGTH as usize).step_by(61) {
            let octet = &mut rnic.memory_mut().buffer_mut(guarded.buffer).unwrap()[at];
            *octet ^= 0x10;
            let is_free = free.iter().any(|part| (part.0..part.0 + part.1).contains(&(at as u64)));
            assert_eq!(guarded.check(&rnic).is_ok(), is_free, "octet {at}");
            rnic.memory_mut().buffer_mut(guarded.buffer).unwrap()[at] ^= 0x10;
        }
        let memory = rnic.memory().buffer(guarded.buffer).unwrap();
        assert_eq!(GuardedMemory::check_sent(&memory[..100]), Err(MemoryViolation::Sent(RUN - 1)));
        assert_eq!(GuardedMemory::check_sent(&memory[READABLE.0 as usize..][..3000]), Ok(()));
        guarded.release(&mut rnic).unwrap();
        rnic.memory_mut().deallocate_pd(pd).unwrap();
    }
}
