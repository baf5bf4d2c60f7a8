//! Memory that the device can read or write at any time. Therefore this module accesses the memory
//! only through pointers, never as a slice.

use core::ptr::NonNull;
use std::alloc::{Layout, alloc_zeroed, dealloc};

/// Page-aligned memory, zero at first.
#[derive(Debug)]
pub(super) struct Memory {
    begin: NonNull<u8>,
    layout: Layout,
}

const PAGE: usize = 4096;

impl Memory {
    /// Returns `None` if `octets` is 0, or if there is not enough memory.
    pub(super) fn new(octets: usize) -> Option<Self> {
        let layout = Layout::from_size_align(octets, PAGE).ok().filter(|layout| layout.size() > 0)?;
        // SAFETY: the size of the layout is not 0.
        let begin = unsafe { alloc_zeroed(layout) };
        Some(Memory { begin: NonNull::new(begin)?, layout })
    }

    pub(super) fn begin(&self) -> *mut u8 {
        self.begin.as_ptr()
    }

    pub(super) fn octets(&self) -> usize {
        self.layout.size()
    }

    /// Returns a pointer to the byte at `offset`, if `length` bytes from there lie in this memory.
    pub(super) fn begin_of(&self, offset: u64, length: u64) -> Option<*mut u8> {
        self.part(offset, usize::try_from(length).ok()?)
    }

    fn part(&self, offset: u64, length: usize) -> Option<*mut u8> {
        let offset = usize::try_from(offset).ok()?;
        let inside = offset.checked_add(length).is_some_and(|end| end <= self.octets());
        // SAFETY: the range lies within the allocation.
        inside.then(|| unsafe { self.begin().add(offset) })
    }

    /// Returns a copy of `length` bytes from `offset`, or `None` if these bytes exceed this memory.
    /// If the device writes at the same time, each byte has its old or its new value.
    pub(super) fn get(&self, offset: u64, length: usize) -> Option<Vec<u8>> {
        let from = self.part(offset, length)?;
        let octet = |index| {
            // SAFETY: the byte lies in the range. The access is volatile, because the compiler does
            // not know that the device writes.
            unsafe { from.add(index).read_volatile() }
        };
        Some((0..length).map(octet).collect())
    }

    /// Writes `length` bytes from `offset`, or returns `None` if these bytes exceed this memory.
    /// `octet(0)` returns the first byte to write, `octet(1)` the second, and so on.
    pub(super) fn put(&mut self, offset: u64, length: usize, octet: impl Fn(usize) -> u8) -> Option<()> {
        let to = self.part(offset, length)?;
        for index in 0..length {
            // SAFETY: the byte lies in the range. The access is volatile, because the compiler does
            // not know that the device reads.
            unsafe { to.add(index).write_volatile(octet(index)) };
        }
        Some(())
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        // SAFETY: the memory was allocated with this layout, and no region uses it any more.
        unsafe { dealloc(self.begin(), self.layout) };
    }
}
