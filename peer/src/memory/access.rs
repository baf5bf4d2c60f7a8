//! Checked access: from (STag, TO, length, what for) to octets (draft sections 7.6.3 and 7.10.6.2,
//! Figure 21).

use super::arena::{Arena, Extent};
use super::mapping::Mapping;
use super::{AccessError, Entry, Memory, PdId, PhysicalAddress, QpId, Right, STAG_ZERO, Stag, StagIndex};

/// On whose behalf memory is reached: a Queue Pair, or for receives from a Shared Receive Queue,
/// that queue's PD.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Accessor {
    /// The PD that regions must have.
    pub pd: PdId,
    /// The Queue Pair that windows must be bound to.
    pub qp: QpId,
    /// STag 0 may be used, for local access.
    pub physical: bool,
}

/// Octets that were checked. Good until the memory's next verb or work request: used later it may
/// give other octets of the same RNIC's buffers, or none.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Place {
    of: Of,
    offset: u64,
    len: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Of {
    Nothing,
    Region(StagIndex),
    Physical(Extent),
}

impl Place {
    /// Its octets.
    #[must_use]
    pub const fn len(&self) -> usize {
        self.len
    }

    /// It has none.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len == 0
    }
}

impl Memory {
    /// Checks that `accessor` may use the `len` octets from `to` on of the region or window called
    /// `stag`.
    ///
    /// Zero octets are always allowed: nothing is looked at (VERBS-7.6.3-3, VERBS-7.10.6.2-11).
    ///
    /// # Errors
    /// The first that is wrong of: STag, PD or Queue Pair, right, wrap, bounds.
    pub fn locate(
        &self,
        accessor: Accessor,
        stag: u32,
        to: u64,
        len: usize,
        right: Right,
    ) -> Result<Place, AccessError> {
        if len == 0 {
            return Ok(Place { of: Of::Nothing, offset: 0, len });
        }
        if stag == STAG_ZERO && !right.is_remote() && accessor.physical {
            let found = self.arena.find(PhysicalAddress(to), len as u64);
            return found.map(|at| Place { of: Of::Physical(at), offset: 0, len }).ok_or(AccessError::BaseAndBounds);
        }
        let stag = Stag::from_bits(stag).ok_or(AccessError::InvalidStag)?;
        match self.entry(stag.index).ok_or(AccessError::InvalidStag)? {
            Entry::Region(region) => {
                let valid = region.mapping.as_ref().filter(|_| region.key == stag.key);
                let mapping = valid.ok_or(AccessError::InvalidStag)?;
                if region.pd != accessor.pd {
                    return Err(AccessError::NotAssociated);
                }
                if !region.access.allows(right) {
                    return Err(AccessError::Rights);
                }
                let offset = within(region.base.first(), mapping.length, to, len as u64)?;
                Ok(Place { of: Of::Region(stag.index), offset, len })
            }
            Entry::Window(window) => {
                let valid = window.binding.filter(|binding| binding.key == stag.key && right.is_remote());
                let binding = valid.ok_or(AccessError::InvalidStag)?;
                if binding.qp != accessor.qp {
                    return Err(AccessError::NotAssociated);
                }
                if !binding.access.allows(right) {
                    return Err(AccessError::Rights);
                }
                let offset = within(binding.base.first(), binding.length, to, len as u64)?;
                Ok(Place { of: Of::Region(binding.region), offset: binding.offset + offset, len })
            }
        }
    }

    /// The octets of a place, as few slices as its memory lies in.
    #[must_use]
    pub fn slices(&self, place: Place) -> Slices<'_> {
        let mapping = self.mapping_of(place);
        Slices { arena: &self.arena, mapping, place }
    }

    /// Puts `octets` to a place, as many as it has.
    pub fn put(&mut self, place: Place, octets: &[u8]) {
        let (mut place, mut rest) = (place, octets);
        while !rest.is_empty()
            && let Some(extent) = next_extent(self.mapping_of(place), place)
        {
            let (now, later) = rest.split_at(extent.len.min(rest.len()));
            self.arena.slice_mut(Extent { len: now.len(), ..extent }).copy_from_slice(now);
            place.offset += now.len() as u64;
            place.len -= now.len();
            rest = later;
        }
    }

    /// A deviation: puts octets at STag and TO, whatever key, stream, rights and bounds are, as far
    /// as the region extends.
    pub(crate) fn put_regardless(&mut self, stag: u32, to: u64, octets: &[u8]) {
        let Some(stag) = Stag::from_bits(stag) else { return };
        let (index, offset) = match self.entry(stag.index) {
            Some(Entry::Region(region)) => (stag.index, to.wrapping_sub(region.base.first())),
            Some(Entry::Window(window)) => match window.binding {
                Some(it) => (it.region, to.wrapping_sub(it.base.first()).wrapping_add(it.offset)),
                None => return,
            },
            None => return,
        };
        let length =
            self.region(index).ok().and_then(|region| region.mapping.as_ref()).map_or(0, |mapping| mapping.length);
        let room = usize::try_from(length.saturating_sub(offset)).unwrap_or(0);
        let octets = octets.get(..room.min(octets.len())).unwrap_or_default();
        self.put(Place { of: Of::Region(index), offset, len: octets.len() }, octets);
    }

    /// Appends the octets of a place to `out`.
    pub fn copy_to(&self, place: Place, out: &mut Vec<u8>) {
        self.slices(place).for_each(|slice| out.extend_from_slice(slice));
    }

    /// The extent that holds a place of eight octets alone, when its memory is aligned to them.
    pub(super) fn aligned_word(&self, place: Place) -> Option<Extent> {
        next_extent(self.mapping_of(place), place).filter(|extent| extent.len == 8 && extent.offset.is_multiple_of(8))
    }

    /// The place is eight octets that lie together and are aligned to 64 bits.
    #[must_use]
    pub fn is_aligned_word(&self, place: Place) -> bool {
        place.len == 8 && self.aligned_word(place).is_some()
    }

    fn mapping_of(&self, place: Place) -> Option<&Mapping> {
        match place.of {
            Of::Region(index) => self.region(index).ok()?.mapping.as_deref(),
            Of::Nothing | Of::Physical(_) => None,
        }
    }
}

/// The offset of `to` in a region of `length` octets whose first one is `first`; all `len` octets
/// lie in it.
fn within(first: u64, length: u64, to: u64, len: u64) -> Result<u64, AccessError> {
    // The last octet may have number 2^64 - 1.
    to.checked_add(len - 1).ok_or(AccessError::Wrap)?;
    let offset = to.checked_sub(first).ok_or(AccessError::BaseAndBounds)?;
    let fits = offset.checked_add(len).is_some_and(|end| end <= length);
    if fits { Ok(offset) } else { Err(AccessError::BaseAndBounds) }
}

fn next_extent(mapping: Option<&Mapping>, place: Place) -> Option<Extent> {
    if place.len == 0 {
        return None;
    }
    match place.of {
        Of::Nothing => None,
        Of::Region(_) => mapping?.first_extent(place.offset, place.len),
        Of::Physical(extent) => {
            let passed = usize::try_from(place.offset).ok()?;
            Some(Extent { offset: extent.offset + passed, len: place.len, ..extent })
        }
    }
}

/// The slices of a [`Place`].
#[derive(Debug)]
pub struct Slices<'a> {
    arena: &'a Arena,
    mapping: Option<&'a Mapping>,
    place: Place,
}

impl<'a> Iterator for Slices<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let extent = next_extent(self.mapping, self.place)?;
        self.place.offset += extent.len as u64;
        self.place.len -= extent.len;
        Some(self.arena.slice(extent))
    }
}
