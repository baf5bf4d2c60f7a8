//! The memory that an RNIC can access: buffers with emulated physical addresses.
//!
//! A buffer belongs to the RNIC. The user of a buffer has only a handle. Between two calls of
//! [`Memory`](super::Memory), the user can copy bytes in or out, or borrow the contents. A physical
//! address is only a number that identifies a byte of a buffer. Physical Buffer Lists,
//! Fast-Register and STag 0 therefore work as on a real RNIC, but cannot access memory outside the
//! buffers. There are gaps between the buffers. A list entry that extends past the end of a buffer
//! is therefore invalid.

use std::collections::BTreeMap;

use super::MemoryError;

/// The address of a byte in an RNIC's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct PhysicalAddress(pub u64);

/// Identifies a buffer of an RNIC's memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Buffer {
    address: PhysicalAddress,
    len: usize,
}

impl Buffer {
    /// Address of the first byte, a multiple of [`ALIGNMENT`].
    #[must_use]
    pub const fn address(self) -> PhysicalAddress {
        self.address
    }

    /// Length in bytes.
    #[must_use]
    pub const fn len(self) -> usize {
        self.len
    }

    /// Returns whether the length is 0.
    #[must_use]
    pub const fn is_empty(self) -> bool {
        self.len == 0
    }
}

/// The address of each buffer is a multiple of this number of bytes, which is the greatest page
/// size.
pub const ALIGNMENT: u64 = 1 << 21;

/// A contiguous range of bytes in a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Extent {
    pub(super) slot: usize,
    pub(super) offset: usize,
    pub(super) len: usize,
}

#[derive(Debug)]
pub(super) struct Arena {
    slots: Vec<Option<Chunk>>,
    free: Vec<usize>,
    by_address: BTreeMap<u64, usize>,
    next: u64,
    left: u64,
}

#[derive(Debug)]
struct Chunk {
    octets: Box<[u8]>,
    /// Number of extents in this chunk that belong to Valid regions.
    pins: usize,
}

impl Arena {
    pub(super) fn new(limit: u64) -> Self {
        Arena { slots: Vec::new(), free: Vec::new(), by_address: BTreeMap::new(), next: ALIGNMENT, left: limit }
    }

    /// Number of bytes that can still be allocated.
    pub(super) fn left(&self) -> u64 {
        self.left
    }

    pub(super) fn allocate(&mut self, len: usize) -> Result<Buffer, MemoryError> {
        let octets = len as u64;
        let end = self.next.checked_add(octets).and_then(|end| (end + 1).checked_next_multiple_of(ALIGNMENT));
        let (Some(left), Some(end)) = (self.left.checked_sub(octets), end) else {
            return Err(MemoryError::InsufficientResources);
        };
        let chunk = Chunk { octets: vec![0; len].into_boxed_slice(), pins: 0 };
        let slot = self.free.pop().unwrap_or_else(|| {
            self.slots.push(None);
            self.slots.len() - 1
        });
        self.slots[slot] = Some(chunk);
        self.by_address.insert(self.next, slot);
        let buffer = Buffer { address: PhysicalAddress(self.next), len };
        (self.left, self.next) = (left, end);
        Ok(buffer)
    }

    /// Frees a buffer. If a region uses the buffer, returns an error.
    pub(super) fn free(&mut self, buffer: Buffer) -> Result<(), BufferError> {
        let slot = self.slot_of(buffer)?;
        match &self.slots[slot] {
            Some(chunk) if chunk.pins > 0 => return Err(BufferError::Pinned(chunk.pins)),
            Some(chunk) => self.left += chunk.octets.len() as u64,
            None => return Err(BufferError::Unknown),
        }
        self.slots[slot] = None;
        self.free.push(slot);
        self.by_address.remove(&buffer.address.0);
        Ok(())
    }

    pub(super) fn buffer(&self, buffer: Buffer) -> Result<&[u8], BufferError> {
        let slot = self.slot_of(buffer)?;
        self.slots[slot].as_ref().map(|chunk| &chunk.octets[..]).ok_or(BufferError::Unknown)
    }

    pub(super) fn buffer_mut(&mut self, buffer: Buffer) -> Result<&mut [u8], BufferError> {
        let slot = self.slot_of(buffer)?;
        self.slots[slot].as_mut().map(|chunk| &mut chunk.octets[..]).ok_or(BufferError::Unknown)
    }

    /// Finds the `len` bytes that start at `address`. `None` if no buffer contains all these bytes.
    pub(super) fn find(&self, address: PhysicalAddress, len: u64) -> Option<Extent> {
        let (base, slot) = self.by_address.range(..=address.0).next_back()?;
        let chunk = self.slots[*slot].as_ref()?;
        let offset = address.0 - base;
        let fits = offset.checked_add(len).is_some_and(|end| end <= chunk.octets.len() as u64);
        let (offset, len) = (usize::try_from(offset).ok()?, usize::try_from(len).ok()?);
        fits.then_some(Extent { slot: *slot, offset, len })
    }

    /// The bytes of an extent. Empty if the arena does not contain the extent.
    pub(super) fn slice(&self, extent: Extent) -> &[u8] {
        let chunk = self.slots.get(extent.slot).and_then(Option::as_ref);
        chunk.and_then(|chunk| chunk.octets.get(extent.offset..extent.offset + extent.len)).unwrap_or_default()
    }

    pub(super) fn slice_mut(&mut self, extent: Extent) -> &mut [u8] {
        let chunk = self.slots.get_mut(extent.slot).and_then(Option::as_mut);
        chunk.and_then(|chunk| chunk.octets.get_mut(extent.offset..extent.offset + extent.len)).unwrap_or_default()
    }

    pub(super) fn pin(&mut self, slot: usize) {
        if let Some(Some(chunk)) = self.slots.get_mut(slot) {
            chunk.pins += 1;
        }
    }

    pub(super) fn unpin(&mut self, slot: usize) {
        if let Some(Some(chunk)) = self.slots.get_mut(slot) {
            chunk.pins -= 1;
        }
    }

    fn slot_of(&self, buffer: Buffer) -> Result<usize, BufferError> {
        let slot = self.by_address.get(&buffer.address.0).copied().ok_or(BufferError::Unknown)?;
        let chunk = self.slots[slot].as_ref().filter(|chunk| chunk.octets.len() == buffer.len);
        chunk.map(|_| slot).ok_or(BufferError::Unknown)
    }
}

/// Reason why a buffer cannot be used or freed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BufferError {
    /// The buffer was freed, or belongs to another RNIC.
    #[error("the buffer was freed, or belongs to another RNIC")]
    Unknown,
    /// Valid regions use the buffer. The number is the number of extents that these regions have in
    /// the buffer.
    #[error("memory regions still use the buffer (ranges in use: {0})")]
    Pinned(usize),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn buffers_come_and_go_within_the_limit() {
        let mut arena = Arena::new(100);
        let first = arena.allocate(60).unwrap();
        assert_eq!(arena.allocate(41), Err(MemoryError::InsufficientResources));
        let second = arena.allocate(40).unwrap();
        assert!(second.address() > first.address());
        assert_eq!(first.address().0 % ALIGNMENT, 0);
        arena.buffer_mut(second).unwrap()[39] = 7;
        assert_eq!(arena.buffer(second).unwrap()[39], 7);
        assert_eq!(arena.free(first), Ok(()));
        assert_eq!(arena.buffer(first), Err(BufferError::Unknown));
        assert_eq!(arena.free(first), Err(BufferError::Unknown));
        let third = arena.allocate(60).unwrap();
        assert!(third.address() > second.address(), "an address is not used again");
        assert_eq!(arena.buffer(third).unwrap(), [0; 60]);
    }

    #[test]
    fn only_octets_of_one_buffer_exist() {
        let mut arena = Arena::new(u64::MAX);
        let buffer = arena.allocate(100).unwrap();
        let at = |offset| PhysicalAddress(buffer.address().0 + offset);
        assert_eq!(arena.find(at(90), 10).unwrap().len, 10);
        assert_eq!(arena.find(at(90), 11), None);
        assert_eq!(arena.find(at(100), 1), None);
        assert_eq!(arena.find(PhysicalAddress(0), 1), None);
        assert_eq!(arena.find(PhysicalAddress(u64::MAX), u64::MAX), None);
    }

    #[test]
    fn a_pinned_buffer_stays() {
        let mut arena = Arena::new(100);
        let buffer = arena.allocate(1).unwrap();
        let slot = arena.find(buffer.address(), 1).unwrap().slot;
        arena.pin(slot);
        assert_eq!(arena.free(buffer), Err(BufferError::Pinned(1)));
        arena.unpin(slot);
        assert_eq!(arena.free(buffer), Ok(()));
    }
}
