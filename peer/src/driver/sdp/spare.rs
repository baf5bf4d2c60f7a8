//! Memory of a connection that holds nothing at the moment. Octets that come and go find it warm:
//! making a new buffer for each costs more than copying does.

use std::ops::RangeInclusive;

use super::SdpError;
use super::area::Area;
use crate::driver::Device;

/// Octets that are kept at most.
const MOST: usize = 4 << 20;
/// Areas that are kept at most.
const COUNT: usize = 256;

/// Areas that nothing waits in; the one that was used last is the last.
#[derive(Debug, Default)]
pub(super) struct Spare {
    areas: Vec<Area>,
    octets: usize,
}

impl Spare {
    /// One with a number of octets in this range: at least, and at most. A new one has as few as
    /// may be.
    pub(super) fn take(&mut self, device: &Device, octets: RangeInclusive<usize>) -> Result<Area, SdpError> {
        match self.areas.iter().rposition(|area| octets.contains(&area.len())) {
            Some(at) => {
                let area = self.areas.remove(at);
                self.octets -= area.len();
                Ok(area)
            }
            None => device.verbs(|rnic| Area::new(rnic, *octets.start())),
        }
    }

    /// Nobody needs it for now.
    pub(super) fn give(&mut self, device: &Device, area: Area) {
        if self.octets + area.len() > MOST || self.areas.len() >= COUNT {
            return device.verbs(|rnic| area.free(rnic));
        }
        self.octets += area.len();
        self.areas.push(area);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.areas.is_empty()
    }

    /// All of it, to be moved.
    pub(super) fn areas_mut(&mut self) -> impl Iterator<Item = &mut Area> {
        self.areas.iter_mut()
    }

    /// All of it, to be given back.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Area> + use<> {
        self.octets = 0;
        std::mem::take(&mut self.areas).into_iter()
    }
}
