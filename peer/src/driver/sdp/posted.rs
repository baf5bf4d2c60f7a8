//! Receives that are posted ahead, and where what arrives for them lies.
//!
//! A receive has no memory until something needs it. Octets that come by Bcopy stay in the Private
//! Buffer that they arrived in, which is the receive's from then on, where they fill a good part of
//! it: another one is posted in its place, and nothing is copied.

use super::SdpError;
use super::area::Area;
use super::spare::Spare;
use crate::driver::Device;

/// A receive that has not ended.
#[derive(Debug)]
pub(super) struct Posted {
    /// Its octets.
    pub(super) len: usize,
    /// The first octets that it has, in the areas that they arrived in.
    taken: Vec<Part>,
    /// Octets of `taken`.
    in_taken: usize,
    /// Memory for all octets of it; those of `taken` are not there.
    own: Option<Area>,
}

/// Octets, and where they lie.
#[derive(Debug)]
pub(super) struct Part {
    pub(super) area: Area,
    pub(super) from: usize,
    pub(super) to: usize,
}

impl Posted {
    /// One for up to `len` octets.
    pub(super) fn new(len: usize) -> Self {
        Posted { len, taken: Vec::new(), in_taken: 0, own: None }
    }

    /// Memory for all of it.
    pub(super) fn own(&mut self, device: &Device, spare: &mut Spare) -> Result<&mut Area, SdpError> {
        let own = match self.own.take() {
            Some(own) => own,
            None => {
                let mut area = spare.take(device, self.len..=self.len)?;
                // It may have been a Private Buffer.
                device.verbs(|rnic| area.withdraw(rnic));
                area
            }
        };
        Ok(self.own.insert(own))
    }

    /// Octet `at` may come as it lies in somebody else's area: nothing after the last one that did
    /// has been filled.
    pub(super) fn can_take(&self, at: u64) -> bool {
        at == self.in_taken as u64
    }

    /// Its next octets lie there.
    pub(super) fn take(&mut self, part: Part) {
        self.in_taken += part.to - part.from;
        self.taken.push(part);
    }

    /// Its own memory, where it has some.
    pub(super) fn own_area_mut(&mut self) -> Option<&mut Area> {
        self.own.as_mut()
    }

    /// The same, to be looked at.
    #[cfg(test)]
    pub(super) fn own_area(&self) -> Option<&Area> {
        self.own.as_ref()
    }

    /// It ended with this number of octets: their place. The rest goes to `spare`.
    pub(super) fn into_parts(self, device: &Device, octets: usize, spare: &mut Spare) -> Vec<Part> {
        let Posted { mut taken, in_taken, own, .. } = self;
        if let Some(mut area) = own {
            // A Read that the connection's end cut short.
            device.verbs(|rnic| area.withdraw(rnic));
            if octets > in_taken {
                taken.push(Part { area, from: in_taken, to: octets });
            } else {
                spare.give(device, area);
            }
        }
        taken
    }

    /// All memory, to be moved.
    pub(super) fn areas_mut(&mut self) -> impl Iterator<Item = &mut Area> {
        self.taken.iter_mut().map(|part| &mut part.area).chain(&mut self.own)
    }

    /// All memory, to be given back.
    pub(super) fn into_areas(self) -> impl Iterator<Item = Area> {
        self.taken.into_iter().map(|part| part.area).chain(self.own)
    }
}
