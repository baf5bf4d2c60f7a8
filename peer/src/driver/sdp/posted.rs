//! The receives that a socket posts before its user reads, and the memory that contains their data.
//!
//! A receive has no memory until memory is needed. If data that arrives by Bcopy fills at least
//! half of its Private Buffer, the receive takes over that buffer. Another Private Buffer is posted
//! instead, and nothing is copied.

use super::SdpError;
use super::area::Area;
use super::spare_memory::SpareMemory;
use crate::driver::Device;

/// A receive that has not ended.
#[derive(Debug)]
pub(super) struct Posted {
    /// Size of the receive in bytes.
    pub(super) len: usize,
    /// The first bytes of the receive, in the Private Buffers that they arrived in.
    taken: Vec<Part>,
    /// Number of bytes in `taken`.
    in_taken: usize,
    /// Memory with room for all bytes of the receive. The bytes in `taken` are not copied to this
    /// memory.
    own: Option<Area>,
}

/// A range of bytes in an area.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) area: Area,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Posted {
    /// Creates a receive of up to `len` bytes.
    pub(super) fn new(len: usize) -> Self {
        Posted { len, taken: Vec::new(), in_taken: 0, own: None }
    }

    /// Returns memory for all bytes of the receive. The first call allocates this memory.
    pub(super) fn own(&mut self, device: &Device, spare: &mut SpareMemory) -> Result<&mut Area, SdpError> {
        let own = match self.own.take() {
            Some(own) => own,
            None => {
                let mut area = spare.take(device, self.len..=self.len)?;
                // The area is sometimes still registered, because it was a Private Buffer.
                device.verbs(|rnic| area.withdraw(rnic));
                area
            }
        };
        Ok(self.own.insert(own))
    }

    /// Returns whether the receive may take over a Private Buffer. `at` is the offset of the
    /// buffer's bytes in the receive. The receive may take over the buffer only if these bytes
    /// directly follow the bytes of the last buffer that the receive took over.
    pub(super) fn can_take(&self, at: u64) -> bool {
        at == self.in_taken as u64
    }

    /// Takes over a buffer with the next bytes of the receive.
    pub(super) fn take(&mut self, part: Part) {
        self.in_taken += part.to - part.from;
        self.taken.push(part);
    }

    /// Returns the receive's own memory. Returns `None` if the receive has no own memory.
    pub(super) fn own_area_mut(&mut self) -> Option<&mut Area> {
        self.own.as_mut()
    }

    /// Acts like [`own_area_mut`](Self::own_area_mut), but returns a shared reference. Only tests
    /// use this function.
    #[cfg(test)]
    pub(super) fn own_area(&self) -> Option<&Area> {
        self.own.as_ref()
    }

    /// Ends the receive with `octets` bytes. Returns the areas with these bytes. Memory that
    /// contains none of these bytes goes to `spare`.
    pub(super) fn into_parts(self, device: &Device, octets: usize, spare: &mut SpareMemory) -> Vec<Part> {
        let Posted { mut taken, in_taken, own, .. } = self;
        if let Some(mut area) = own {
            // If the end of the connection interrupted an RDMA Read, the area can still be
            // registered.
            device.verbs(|rnic| area.withdraw(rnic));
            if octets > in_taken {
                taken.push(Part { area, from: in_taken, to: octets });
            } else {
                spare.give(device, area);
            }
        }
        taken
    }

    /// Returns all memory, so that the caller can move it to another device.
    pub(super) fn areas_mut(&mut self) -> impl Iterator<Item = &mut Area> {
        self.taken.iter_mut().map(|part| &mut part.area).chain(&mut self.own)
    }

    /// Returns all memory, so that the caller can free it.
    pub(super) fn into_areas(self) -> impl Iterator<Item = Area> {
        self.taken.into_iter().map(|part| part.area).chain(self.own)
    }
}
