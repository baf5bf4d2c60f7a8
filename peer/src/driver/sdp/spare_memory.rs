//! Unused memory of a connection. To reuse memory is much cheaper than to allocate a buffer. The
//! allocation of a buffer costs more than the copy of the data.

use std::ops::RangeInclusive;

use super::SdpError;
use super::area::Area;
use crate::driver::Device;

/// Maximum number of bytes that are kept.
const MAX_OCTETS: usize = 4 << 20;
/// Maximum number of areas that are kept.
const MAX_AREAS: usize = 256;

/// Unused areas. The last area of the list is the area that was used most recently.
#[derive(Debug, Default)]
pub(super) struct SpareMemory {
    pub(super) areas: Vec<Area>,
    octets: usize,
}

impl SpareMemory {
    /// Takes an unused area whose size in bytes is in this range. If there is no such area,
    /// allocates an area of the smallest size.
    pub(super) fn take(&mut self, device: &Device, octets: RangeInclusive<usize>) -> Result<Area, SdpError> {
        let Some(at) = self.areas.iter().rposition(|area| octets.contains(&area.len())) else {
            return device.verbs(|rnic| Area::new(rnic, *octets.start()));
        };
        let area = self.areas.remove(at);
        self.octets -= area.len();
        Ok(area)
    }

    /// Keeps an unused area. If enough areas are kept already, frees the area instead.
    pub(super) fn give(&mut self, device: &Device, area: Area) {
        if self.octets + area.len() > MAX_OCTETS || self.areas.len() >= MAX_AREAS {
            return device.verbs(|rnic| area.free(rnic));
        }
        self.octets += area.len();
        self.areas.push(area);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.areas.is_empty()
    }

    /// Returns all memory, so that the caller can free it.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Area> + use<> {
        self.octets = 0;
        std::mem::take(&mut self.areas).into_iter()
    }
}
