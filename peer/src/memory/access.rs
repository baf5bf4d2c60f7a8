//! Checked access: finds the bytes for an STag, a tagged offset (TO), a length and a right
//! (draft-hilland-rddp-verbs sections 7.6.3 and 7.10.6.2, Figure 21).

use super::arena::{Arena, Extent};
use super::mapping::Mapping;
use super::{AccessError, Entry, Memory, PdId, PhysicalAddress, QpId, Right, STAG_ZERO, Stag, StagIndex};
use crate::reject::reject_if;

/// The Queue Pair that accesses memory. For receives from a Shared Receive Queue, `pd` is the PD of
/// the Shared Receive Queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Accessor {
    /// The PD that a region must belong to.
    pub(crate) pd: PdId,
    /// The Queue Pair that a window must be bound to.
    pub(crate) qp: QpId,
    /// True if local accesses of the Queue Pair may use STag 0.
    pub(crate) physical: bool,
}

/// A checked range of bytes. The range is valid until the next verb or Work Request changes the
/// memory. After such a change, the range can refer to other bytes of the RNIC's buffers, or to no
/// bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct MemoryRange {
    source: RangeSource,
    offset: u64,
    len: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum RangeSource {
    Nothing,
    Region(StagIndex),
    Physical(Extent),
}

impl MemoryRange {
    /// Length in bytes.
    pub(crate) const fn len(&self) -> usize {
        self.len
    }
}

impl Memory {
    /// Checks whether `accessor` has the access right `right` to `len` bytes of the region or
    /// window `stag`, from offset `to` on.
    ///
    /// An access of 0 bytes is always allowed, without any check (VERBS-7.6.3-3,
    /// VERBS-7.10.6.2-11).
    ///
    /// # Errors
    /// The first fault, in this order: STag, PD or Queue Pair, right, wrap, bounds.
    pub(crate) fn locate(
        &self,
        accessor: Accessor,
        stag: u32,
        to: u64,
        len: usize,
        right: Right,
    ) -> Result<MemoryRange, AccessError> {
        if len == 0 {
            return Ok(MemoryRange { source: RangeSource::Nothing, offset: 0, len });
        }
        if stag == STAG_ZERO && !right.is_remote() && accessor.physical {
            let found = self.arena.find(PhysicalAddress(to), len as u64);
            return found
                .map(|at| MemoryRange { source: RangeSource::Physical(at), offset: 0, len })
                .ok_or(AccessError::BaseAndBounds);
        }
        let stag = Stag::from_bits(stag).ok_or(AccessError::InvalidStag)?;
        match self.entry(stag.index).ok_or(AccessError::InvalidStag)? {
            Entry::Region(region) => {
                let valid = region.mapping.as_ref().filter(|_| region.key == stag.key);
                let mapping = valid.ok_or(AccessError::InvalidStag)?;
                reject_if(region.pd != accessor.pd, AccessError::NotAssociated)?;
                reject_if(!region.access.allows(right), AccessError::Rights)?;
                let offset = within(region.base.first(), mapping.length, to, len as u64)?;
                Ok(MemoryRange { source: RangeSource::Region(stag.index), offset, len })
            }
            Entry::Window(window) => {
                let valid = window.binding.filter(|binding| binding.key == stag.key && right.is_remote());
                let binding = valid.ok_or(AccessError::InvalidStag)?;
                reject_if(binding.qp != accessor.qp, AccessError::NotAssociated)?;
                reject_if(!binding.access.allows(right), AccessError::Rights)?;
                let offset = within(binding.base.first(), binding.length, to, len as u64)?;
                Ok(MemoryRange { source: RangeSource::Region(binding.region), offset: binding.offset + offset, len })
            }
        }
    }

    /// Returns the bytes of a range: one slice for each contiguous part.
    pub(crate) fn slices(&self, range: MemoryRange) -> Slices<'_> {
        let mapping = self.mapping_of(range);
        Slices { arena: &self.arena, mapping, range }
    }

    /// Writes `octets` to a range. Ignores bytes that exceed the length of the range.
    pub(crate) fn put(&mut self, range: MemoryRange, octets: &[u8]) {
        let (mut range, mut rest) = (range, octets);
        while !rest.is_empty()
            && let Some(extent) = next_extent(self.mapping_of(range), range)
        {
            let (now, later) = rest.split_at(extent.len.min(rest.len()));
            self.arena.slice_mut(Extent { len: now.len(), ..extent }).copy_from_slice(now);
            range.offset += now.len() as u64;
            range.len -= now.len();
            rest = later;
        }
    }

    /// Writes `octets` to an STag and TO without a check of key, stream, rights and window bounds.
    /// Ignores bytes that exceed the region. Only a [deviation](crate::hostile) (a deliberate
    /// protocol violation) uses this function.
    pub(crate) fn write_unchecked(&mut self, stag: u32, to: u64, octets: &[u8]) {
        let Some(stag) = Stag::from_bits(stag) else { return };
        let (index, offset) = match self.entry(stag.index) {
            Some(Entry::Region(region)) => (stag.index, to.wrapping_sub(region.base.first())),
            Some(Entry::Window(window)) => {
                let Some(it) = window.binding else { return };
                (it.region, to.wrapping_sub(it.base.first()).wrapping_add(it.offset))
            }
            None => return,
        };
        let length =
            self.region(index).ok().and_then(|region| region.mapping.as_ref()).map_or(0, |mapping| mapping.length);
        let room = usize::try_from(length.saturating_sub(offset)).unwrap_or(0);
        let octets = octets.get(..room.min(octets.len())).unwrap_or_default();
        self.put(MemoryRange { source: RangeSource::Region(index), offset, len: octets.len() }, octets);
    }

    /// Appends the bytes of a range to `out`.
    pub(crate) fn copy_to(&self, range: MemoryRange, out: &mut Vec<u8>) {
        self.slices(range).for_each(|slice| out.extend_from_slice(slice));
    }

    /// Returns the extent of a range of eight bytes. `None` if the bytes are not contiguous or not
    /// 64-bit aligned.
    pub(super) fn aligned_word(&self, range: MemoryRange) -> Option<Extent> {
        next_extent(self.mapping_of(range), range).filter(|extent| extent.len == 8 && extent.offset.is_multiple_of(8))
    }

    /// Returns whether the range has eight bytes that are contiguous and 64-bit aligned.
    pub(crate) fn is_aligned_word(&self, range: MemoryRange) -> bool {
        range.len == 8 && self.aligned_word(range).is_some()
    }

    fn mapping_of(&self, range: MemoryRange) -> Option<&Mapping> {
        match range.source {
            RangeSource::Region(index) => self.region(index).ok()?.mapping.as_deref(),
            RangeSource::Nothing | RangeSource::Physical(_) => None,
        }
    }
}

/// Converts `to` into an offset in a region or window of `length` bytes whose first byte has the TO
/// `first`. Checks that all `len` bytes are in the region or window. `len` must be at least 1.
fn within(first: u64, length: u64, to: u64, len: u64) -> Result<u64, AccessError> {
    // `to + len` can overflow in a valid access, because the last byte can have the TO 2^64 - 1.
    to.checked_add(len - 1).ok_or(AccessError::Wrap)?;
    let offset = to.checked_sub(first).ok_or(AccessError::BaseAndBounds)?;
    let fits = offset.checked_add(len).is_some_and(|end| end <= length);
    if fits { Ok(offset) } else { Err(AccessError::BaseAndBounds) }
}

fn next_extent(mapping: Option<&Mapping>, range: MemoryRange) -> Option<Extent> {
    if range.len == 0 {
        return None;
    }
    match range.source {
        RangeSource::Nothing => None,
        RangeSource::Region(_) => mapping?.first_extent(range.offset, range.len),
        RangeSource::Physical(extent) => {
            let passed = usize::try_from(range.offset).ok()?;
            Some(Extent { offset: extent.offset + passed, len: range.len, ..extent })
        }
    }
}

/// Iterator over the contiguous parts of a [`MemoryRange`].
#[derive(Debug)]
pub(crate) struct Slices<'a> {
    arena: &'a Arena,
    mapping: Option<&'a Mapping>,
    range: MemoryRange,
}

impl<'a> Iterator for Slices<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let extent = next_extent(self.mapping, self.range)?;
        self.range.offset += extent.len as u64;
        self.range.len -= extent.len;
        Some(self.arena.slice(extent))
    }
}
