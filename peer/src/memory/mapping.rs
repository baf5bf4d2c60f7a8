//! Physical Buffer Lists, and their conversion to the bytes of a region (draft-hilland-rddp-verbs
//! sections 7.6.1 and 7.6.2).

use super::arena::{Arena, Extent};
use super::{Buffer, MappingError, PhysicalAddress};
use crate::reject::reject_if;

/// Kind of buffer list that an RNIC accepts while it is open (draft section 5.1.2).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ListMode {
    /// Pages: all entries have the same size, one of [`PAGE_SIZES`]. Each address is a multiple of
    /// that size.
    Page,
    /// Blocks: all entries have the same size, one of [`BLOCK_SIZES`]. Addresses can have any
    /// alignment.
    Block,
}

/// Sizes of a page in bytes.
pub const PAGE_SIZES: [u32; 3] = [1 << 12, 1 << 16, 1 << 21];
/// Sizes of a block in bytes.
pub const BLOCK_SIZES: std::ops::RangeInclusive<u32> = 1..=1 << 30;

impl ListMode {
    fn takes_size(self, size: u32) -> bool {
        match self {
            ListMode::Page => PAGE_SIZES.contains(&size),
            ListMode::Block => BLOCK_SIZES.contains(&size),
        }
    }

    fn takes_address(self, address: PhysicalAddress, size: u32) -> bool {
        match self {
            ListMode::Page => address.0.is_multiple_of(u64::from(size)),
            ListMode::Block => true,
        }
    }
}

/// The physical memory of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PhysicalBufferList {
    /// Length of each entry in bytes.
    pub entry_size: u32,
    /// Physical address of each entry.
    pub entries: Vec<PhysicalAddress>,
    /// Offset of the region's first byte in the first entry, less than `entry_size`.
    pub first_byte_offset: u32,
    /// Length of the region in bytes, at least 1.
    pub length: u64,
}

impl PhysicalBufferList {
    /// The list of the pages that contain `length` bytes of `buffer` from `offset` on. `page_size`
    /// is in bytes.
    #[must_use]
    pub fn of(buffer: Buffer, offset: u64, length: u64, page_size: u32) -> Self {
        let page = u64::from(page_size.max(1));
        let start = buffer.address().0.saturating_add(offset);
        let first = start - start % page;
        let pages = (start - first).saturating_add(length).div_ceil(page);
        let entries = (0..pages).map(|n| PhysicalAddress(first.saturating_add(n * page))).collect();
        let first_byte_offset = u32::try_from(start - first).unwrap_or(u32::MAX);
        PhysicalBufferList { entry_size: page_size, entries, first_byte_offset, length }
    }
}

/// First tagged offset (TO) of a region or window (draft section 7.3.1.1).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ToBase {
    /// VA based: the first byte has this TO, which is the Consumer's virtual address.
    VaBased(u64),
    /// Zero based: the first byte has TO 0.
    ZeroBased,
}

impl ToBase {
    /// TO of the first byte.
    #[must_use]
    pub const fn first(self) -> u64 {
        match self {
            ToBase::VaBased(address) => address,
            ToBase::ZeroBased => 0,
        }
    }
}

/// The checked list of a region, as contiguous ranges of bytes.
#[derive(Debug)]
pub(super) struct Mapping {
    extents: Vec<Extent>,
    /// For each extent, its offset in the region in bytes.
    starts: Vec<u64>,
    pub(super) length: u64,
    pub(super) entry_size: u32,
    pub(super) first_byte_offset: u32,
}

impl Mapping {
    /// Checks a list according to draft sections 7.6.2.1 and 7.6.2.2, and its base address.
    pub(super) fn new(
        arena: &Arena,
        mode: ListMode,
        list: &PhysicalBufferList,
        base: ToBase,
    ) -> Result<Self, MappingError> {
        let size = u64::from(list.entry_size);
        reject_if(!mode.takes_size(list.entry_size), MappingError::Size)?;
        reject_if(list.first_byte_offset >= list.entry_size, MappingError::FirstByteOffset)?;
        let room = (list.entries.len() as u64).saturating_mul(size).saturating_sub(u64::from(list.first_byte_offset));
        reject_if(list.length == 0 || list.length > room, MappingError::Length)?;
        let (entry_size, first_byte_offset) = (list.entry_size, list.first_byte_offset);
        let mut mapping =
            Mapping { extents: Vec::new(), starts: Vec::new(), length: list.length, entry_size, first_byte_offset };
        mapping.check_base(base)?;
        let mut start = 0;
        let mut skip = u64::from(list.first_byte_offset);
        for address in &list.entries {
            reject_if(!mode.takes_address(*address, list.entry_size), MappingError::Entry)?;
            let used = (size - skip).min(list.length - start);
            let first = address.0.checked_add(skip).ok_or(MappingError::Entry)?;
            if used > 0 {
                mapping.push(start, arena.find(PhysicalAddress(first), used).ok_or(MappingError::Entry)?);
            }
            start += used;
            skip = 0;
        }
        Ok(mapping)
    }

    /// Checks the virtual address (VA) of a VA based region. The offset of the VA within an entry
    /// must be the First Byte Offset (VERBS-7.6.1.1-5). The region must not wrap around the end of
    /// the address space.
    pub(super) fn check_base(&self, base: ToBase) -> Result<(), MappingError> {
        let ToBase::VaBased(address) = base else { return Ok(()) };
        let fits = address % u64::from(self.entry_size) == u64::from(self.first_byte_offset);
        if fits && address.checked_add(self.length - 1).is_some() { Ok(()) } else { Err(MappingError::VirtualAddress) }
    }

    fn push(&mut self, start: u64, extent: Extent) {
        if let Some(last) = self.extents.last_mut()
            && last.slot == extent.slot
            && last.offset + last.len == extent.offset
        {
            last.len += extent.len;
            return;
        }
        self.extents.push(extent);
        self.starts.push(start);
    }

    pub(super) fn slots(&self) -> impl Iterator<Item = usize> {
        self.extents.iter().map(|extent| extent.slot)
    }

    /// The longest contiguous range of at most `len` bytes that starts at `offset` in the region.
    /// All `len` bytes must be in the region, and `len` must not be 0.
    pub(super) fn first_extent(&self, offset: u64, len: usize) -> Option<Extent> {
        let n = self.starts.partition_point(|start| *start <= offset).checked_sub(1)?;
        let (extent, start) = (self.extents.get(n)?, self.starts[n]);
        let within = usize::try_from(offset - start).ok()?;
        let left = extent.len.checked_sub(within)?;
        Some(Extent { slot: extent.slot, offset: extent.offset + within, len: left.min(len) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn arena() -> (Arena, Buffer) {
        let mut arena = Arena::new(1 << 20);
        let buffer = arena.allocate(5 * 4096).unwrap();
        (arena, buffer)
    }

    fn list(buffer: Buffer, pages: &[u64], fbo: u32, length: u64) -> PhysicalBufferList {
        let entries = pages.iter().map(|page| PhysicalAddress(buffer.address().0 + page * 4096)).collect();
        PhysicalBufferList { entry_size: 4096, entries, first_byte_offset: fbo, length }
    }

    #[test]
    fn a_list_of_a_buffer_covers_it() {
        let (arena, buffer) = arena();
        let of = PhysicalBufferList::of(buffer, 5000, 4096, 4096);
        assert_eq!(of, list(buffer, &[1, 2], 904, 4096));
        let mapping = Mapping::new(&arena, ListMode::Page, &of, ToBase::ZeroBased).unwrap();
        assert_eq!(mapping.extents.len(), 1, "pages that follow each other are one extent");
        assert_eq!(mapping.first_extent(0, 9999), Some(Extent { slot: 0, offset: 5000, len: 4096 }));
        assert_eq!(mapping.first_extent(4095, 1), Some(Extent { slot: 0, offset: 9095, len: 1 }));
    }

    #[test]
    fn scattered_pages_are_walked_in_list_order() {
        let (arena, buffer) = arena();
        let mapping =
            Mapping::new(&arena, ListMode::Page, &list(buffer, &[3, 0, 1], 4095, 4098), ToBase::ZeroBased).unwrap();
        assert_eq!(mapping.first_extent(0, 100), Some(Extent { slot: 0, offset: 3 * 4096 + 4095, len: 1 }));
        assert_eq!(mapping.first_extent(1, 5000), Some(Extent { slot: 0, offset: 0, len: 4097 }));
        assert_eq!(mapping.first_extent(4097, 1), Some(Extent { slot: 0, offset: 4096, len: 1 }));
    }

    #[test]
    fn faults_are_distinguished() {
        let (arena, buffer) = arena();
        let check = |mode, list: &PhysicalBufferList, base| Mapping::new(&arena, mode, list, base).map(|_| ());
        let good = list(buffer, &[0, 1], 5, 8187);
        assert_eq!(check(ListMode::Page, &good, ToBase::VaBased(4101)), Ok(()));
        assert_eq!(check(ListMode::Page, &good, ToBase::VaBased(4102)), Err(MappingError::VirtualAddress));
        let last = u64::MAX - 8191 + 5;
        assert_eq!(check(ListMode::Page, &good, ToBase::VaBased(last)), Ok(()));
        assert_eq!(check(ListMode::Page, &good, ToBase::VaBased(last + 4096)), Err(MappingError::VirtualAddress));
        for (length, expected) in [(0, MappingError::Length), (8188, MappingError::Length)] {
            assert_eq!(check(ListMode::Page, &list(buffer, &[0, 1], 5, length), ToBase::ZeroBased), Err(expected));
        }
        let beyond = list(buffer, &[0, 1], 4096, 1);
        assert_eq!(check(ListMode::Page, &beyond, ToBase::ZeroBased), Err(MappingError::FirstByteOffset));
        let outside = list(buffer, &[4, 5], 0, 4097);
        assert_eq!(check(ListMode::Page, &outside, ToBase::ZeroBased), Err(MappingError::Entry));
        let mut odd = list(buffer, &[0], 0, 10);
        odd.entries[0].0 += 8;
        assert_eq!(check(ListMode::Page, &odd, ToBase::ZeroBased), Err(MappingError::Entry));
        assert_eq!(check(ListMode::Block, &odd, ToBase::ZeroBased), Ok(()));
        odd.entry_size = 100;
        assert_eq!(check(ListMode::Block, &odd, ToBase::ZeroBased), Ok(()));
        assert_eq!(check(ListMode::Page, &odd, ToBase::ZeroBased), Err(MappingError::Size));
        odd.entry_size = 0;
        assert_eq!(check(ListMode::Block, &odd, ToBase::ZeroBased), Err(MappingError::Size));
    }
}
