//! Memory that a device reads and writes at times of its own: reached through pointers only, never
//! as a slice.

use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc};

/// Octets from a page's boundary on, zero at first.
#[derive(Debug)]
pub(super) struct Memory {
    begin: NonNull<u8>,
    layout: Layout,
}

const PAGE: usize = 4096;

impl Memory {
    /// `None` for no octets, or more than there are.
    pub(super) fn new(octets: usize) -> Option<Self> {
        let layout = Layout::from_size_align(octets, PAGE).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: the layout has a size.
        let begin = unsafe { alloc_zeroed(layout) };
        Some(Memory { begin: NonNull::new(begin)?, layout })
    }

    pub(super) fn begin(&self) -> *mut u8 {
        self.begin.as_ptr()
    }

    pub(super) fn octets(&self) -> usize {
        self.layout.size()
    }

    /// Where the octets from `offset` on begin, if all `length` of them are its own.
    pub(super) fn begin_of(&self, offset: u64, length: u64) -> Option<*mut u8> {
        self.part(offset, usize::try_from(length).ok()?)
    }

    fn part(&self, offset: u64, length: usize) -> Option<*mut u8> {
        let offset = usize::try_from(offset).ok()?;
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.octets());
        // SAFETY: within what was allocated.
        inside.then(|| unsafe { self.begin().add(offset) })
    }

    /// A copy of octets; the device may write meanwhile, and then each octet is the old or the new
    /// one.
    pub(super) fn get(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let from = self.part(offset, length)?;
        let octet = |index| {
            // SAFETY: within the part; volatile, since the device writes without the compiler's knowing.
            unsafe { from.add(index).read_volatile() }
        };
        Some((0..length).map(octet).collect())
    }

    /// Puts octets there, of which `octet` gives the `index`-th.
    pub(super) fn put(&mut self, offset: u64, length: usize, octet: impl Fn(usize) -> u8) -> Option<()> {
        let to = self.part(offset, length)?;
        for index in 0..length {
            // SAFETY: within the part; volatile, since the device reads without the compiler's knowing.
            unsafe { to.add(index).write_volatile(octet(index)) };
        }
        Some(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: allocated with this layout, and no region has it any more.
        unsafe { dealloc(self.begin(), self.layout) };
    }
}
