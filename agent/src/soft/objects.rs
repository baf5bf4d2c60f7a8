//! Domains, regions, windows and shared receive queues, and access to the memory of regions.

use weft_core::crc::crc32c;
use weft_peer::memory::{Access as Rights, PhysicalBufferList, Registration, Stag, StagKey, ToBase};
use weft_peer::verbs::{SrqInit, SrqModify};

use super::{Inner, Region, Thing, invalid};
use crate::common::{at_once, beside, none};
use crate::protocol::{Access, Device, Done, Failure, Object, Octets, pattern};

/// Page size in a region's physical buffer list, in bytes.
const PAGE: u32 = 1 << 21;
/// Distance between the addresses of regions that are not zero-based. The address of a region is
/// its object number multiplied by this distance.
const APART: u64 = 1 << 33;

impl Inner {
    pub(super) fn device(&self) -> Result<Done, Failure> {
        let settings = self.rnic.query().map_err(invalid)?.settings;
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Done::Device(Box::new(Device {
            name: "weft0".to_owned(),
            driver: Some("weft".to_owned()),
            firmware: env!("CARGO_PKG_VERSION").to_owned(),
            ports: vec!["active".to_owned()],
            max_region: settings.memory.max_octets,
            max_queue_pairs: number(settings.max_qps),
            max_work_requests: settings.max_wrs,
            max_parts: settings.max_sges,
            max_read_parts: 1,
            max_ird: settings.max_ird,
            max_ord: settings.max_ord,
            max_shared: number(settings.max_srqs),
            max_windows: number(settings.memory.max_windows),
            atomics: settings.extensions,
            capabilities: ["memory_management_extensions", "window_type_2b"].map(str::to_owned).to_vec(),
            ..Device::default()
        })))
    }

    pub(super) fn domain(&mut self) -> Result<Done, Failure> {
        self.limits.room(self.things.len())?;
        let pd = self.rnic.allocate_pd().map_err(invalid)?;
        Ok(Done::Domain { domain: self.keep(Thing::Domain(pd)) })
    }

    pub(super) fn of_domain(&self, object: Object) -> Result<weft_peer::memory::PdId, Failure> {
        match self.things.get(&object) {
            Some(Thing::Domain(pd)) => Ok(*pd),
            _ => Err(none(object, "domain")),
        }
    }

    pub(super) fn of_region(&self, object: Object) -> Result<Region, Failure> {
        match self.things.get(&object) {
            Some(Thing::Region(region)) => Ok(*region),
            _ => Err(none(object, "region")),
        }
    }

    pub(super) fn register(&mut self, domain: Object, octets: u64, access: &[Access]) -> Result<Done, Failure> {
        let pd = self.of_domain(domain)?;
        self.limits.room(self.things.len())?;
        let of_region = |thing: &Thing| if let Thing::Region(region) = thing { region.octets } else { 0 };
        self.limits.memory(self.things.values().map(of_region).sum(), octets)?;
        let has = |right| access.contains(&right);
        let length = usize::try_from(octets).ok().filter(|length| *length > 0);
        let length = length.ok_or_else(|| invalid("a region has at least one byte"))?;
        let access = Rights {
            local_read: true,
            local_write: has(Access::LocalWrite),
            remote_read: has(Access::RemoteRead),
            remote_write: has(Access::RemoteWrite),
            bind: has(Access::Bind),
        };
        let buffer = self.rnic.allocate_buffer(length).map_err(invalid)?;
        let address = if has(Access::ZeroBased) { 0 } else { (u64::from(self.last) + 1) * APART };
        let registration = Registration {
            pd,
            // The consumer chooses the key. Different keys distinguish the regions of a case.
            key: StagKey((self.last & 0xff) as u8),
            list: PhysicalBufferList::of(buffer, 0, octets, PAGE),
            base: if has(Access::ZeroBased) { ToBase::ZeroBased } else { ToBase::VaBased(address) },
            remote: access.is_remote(),
            access,
        };
        let stag = match self.rnic.register(&registration) {
            Ok(registered) => registered.stag,
            Err(error) => {
                // The buffer was allocated above, so this cannot fail.
                let _ = self.rnic.free_buffer(buffer);
                return Err(invalid(error));
            }
        };
        let region = self.keep(Thing::Region(Region { buffer, stag, address, octets }));
        Ok(Done::Region { region, address, local_key: stag.to_bits(), remote_key: stag.to_bits() })
    }

    pub(super) fn window(&mut self, domain: Object) -> Result<Done, Failure> {
        self.limits.room(self.things.len())?;
        let index = self.rnic.allocate_window(self.of_domain(domain)?).map_err(invalid)?;
        let window = self.keep(Thing::Window { index, key: 0 });
        Ok(Done::Window { window, remote_key: Stag { index, key: StagKey(0) }.to_bits() })
    }

    pub(super) fn shared(&mut self, domain: Object, depth: u32, parts: u32) -> Result<Done, Failure> {
        self.limits.room(self.things.len())?;
        let init = SrqInit { pd: self.of_domain(domain)?, max_wrs: depth, max_sges: parts, limit: 0 };
        let (srq, _) = self.rnic.create_srq(init).map_err(invalid)?;
        Ok(Done::Shared { shared: self.keep(Thing::Shared(srq)) })
    }

    pub(super) fn limit(&mut self, shared: Object, receives: u32) -> Result<Done, Failure> {
        let Some(Thing::Shared(srq)) = self.things.get(&shared) else {
            return Err(none(shared, "shared receive queue"));
        };
        let modify = SrqModify { limit: Some(receives), ..SrqModify::default() };
        self.rnic.modify_srq(*srq, modify).map_err(invalid)?;
        Ok(Done::Nothing)
    }

    /// Destroys an object. Fails if the object is in use.
    pub(super) fn destroy(&mut self, object: Object) -> Result<Done, Failure> {
        match self.things.get(&object) {
            None => return Err(none(object, "object")),
            Some(Thing::Listener) => {}
            Some(Thing::Connection) => self.forget(object),
            Some(Thing::Domain(pd)) => self.rnic.deallocate_pd(*pd).map_err(invalid)?,
            Some(Thing::Region(Region { buffer, stag, .. })) => {
                self.rnic.deallocate_stag(stag.index).map_err(invalid)?;
                self.rnic.free_buffer(*buffer).map_err(invalid)?;
            }
            Some(Thing::Window { index, .. }) => {
                self.rnic.deallocate_stag(*index).map_err(invalid)?;
                for pair in std::mem::take(&mut self.kept) {
                    self.give_back(pair);
                }
            }
            Some(Thing::Shared(srq)) => self.rnic.destroy_srq(*srq).map_err(invalid)?,
        }
        self.things.remove(&object);
        Ok(Done::Nothing)
    }

    /// Returns bytes of a region's memory for reading or writing.
    fn octets(&mut self, region: Object, offset: u64, length: u64) -> Result<&mut [u8], Failure> {
        let Region { buffer, octets, .. } = self.of_region(region)?;
        let end = offset.checked_add(length).filter(|end| *end <= octets);
        let beside = || beside(offset, length, octets);
        let range = usize::try_from(offset).ok().zip(end.and_then(|end| usize::try_from(end).ok()));
        let (begin, end) = range.ok_or_else(beside)?;
        self.rnic.buffer_mut(buffer).map_err(invalid)?.get_mut(begin..end).ok_or_else(beside)
    }

    pub(super) fn put(&mut self, region: Object, offset: u64, octets: &[u8]) -> Result<Done, Failure> {
        self.octets(region, offset, octets.len() as u64)?.copy_from_slice(octets);
        Ok(Done::Nothing)
    }

    pub(super) fn get(&mut self, region: Object, offset: u64, length: u64) -> Result<Done, Failure> {
        at_once(length)?;
        Ok(Done::Octets { octets: Octets(self.octets(region, offset, length)?.to_vec()) })
    }

    pub(super) fn fill(&mut self, region: Object, offset: u64, length: u64, seed: u64) -> Result<Done, Failure> {
        let octets = self.octets(region, offset, length)?;
        for (index, octet) in (0..).zip(octets) {
            *octet = pattern(seed, index);
        }
        Ok(Done::Nothing)
    }

    pub(super) fn hash(&mut self, region: Object, offset: u64, length: u64) -> Result<Done, Failure> {
        Ok(Done::Hash { crc32c: crc32c(self.octets(region, offset, length)?) })
    }
}
