//! Unused memory of a connection. Reuse of memory is much cheaper than a new buffer. The allocation
//! of a buffer costs more than copying the data.

use std::ops::RangeInclusive;

use super::SdpError;
use super::area::Area;
use crate::driver::Device;

/// Maximum number of bytes that are kept.
const MAX_OCTETS: usize = 4 << 20;
/// Maximum number of areas that are kept.
const MAX_AREAS: usize = 256;

/// Unused areas. The last area was used most recently.
#[derive(Debug, Default)]
pub(super) struct SpareMemory {
    pub(super) areas: Vec<Area>,
    octets: usize,
}

impl SpareMemory {
    /// An area whose size in bytes is in this range. A newly allocated area has the smallest size.
    pub(super) fn take(&mut self, device: &Device, octets: RangeInclusive<usize>) -> Result<Area, SdpError> {
        let Some(at) = self.areas.iter().rposition(|area| octets.contains(&area.len())) else {
            return device.verbs(|rnic| Area::new(rnic, *octets.start()));
        };
        let area = self.areas.remove(at);
        self.octets -= area.len();
        Ok(area)
    }

    /// Keeps an area that is no longer used, or frees it if enough areas are kept already.
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

    /// All memory, to free it.
    pub(super) fn take_all(&mut self) -> impl Iterator<Item = Area> + use<> {
        self.octets = 0;
        std::mem::take(&mut self.areas).into_iter()
    }
}
