//! Domains, regions, windows and shared receive queues, and access to the memory of regions.

use weft_core::crc::crc32c;
use weft_peer::memory::{Access as Rights, PhysicalBufferList, Registration, Stag, StagKey, ToBase};
use weft_peer::verbs::{SrqHandle, SrqInit, SrqModify};

use super::{DeviceObject, Inner, Region, invalid};
use crate::common::{check_transfer_size, not_found, out_of_bounds};
use crate::protocol::{Access, Device, Failure, Object, Octets, Success, pattern};

/// Page size in a region's physical buffer list, in bytes.
const PAGE: u32 = 1 << 21;
/// Distance between the addresses of regions that are not zero-based. The address of a region is
/// its object number multiplied by this distance.
const REGION_DISTANCE: u64 = 1 << 33;

impl Inner {
    pub(super) fn device(&self) -> Result<Success, Failure> {
        let settings = self.rnic.query().map_err(invalid)?.settings;
        let number = |count: usize| u32::try_from(count).unwrap_or(u32::MAX);
        Ok(Success::Device(Box::new(Device {
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

    pub(super) fn domain(&mut self) -> Result<Success, Failure> {
        self.limits.check_objects(self.objects.len())?;
        let pd = self.rnic.memory_mut().allocate_pd().map_err(invalid)?;
        Ok(Success::Domain { domain: self.insert_object(DeviceObject::Domain(pd)) })
    }

    pub(super) fn find_domain(&self, object: Object) -> Result<weft_peer::memory::PdId, Failure> {
        let Some(DeviceObject::Domain(pd)) = self.objects.get(&object) else { return Err(not_found(object, "domain")) };
        Ok(*pd)
    }

    pub(super) fn find_region(&self, object: Object) -> Result<Region, Failure> {
        match self.objects.get(&object) {
            Some(DeviceObject::Region(region)) => Ok(*region),
            _ => Err(not_found(object, "region")),
        }
    }

    pub(super) fn find_shared(&self, object: Object) -> Result<SrqHandle, Failure> {
        match self.objects.get(&object) {
            Some(DeviceObject::Shared(srq)) => Ok(*srq),
            _ => Err(not_found(object, "shared receive queue")),
        }
    }

    pub(super) fn register(&mut self, domain: Object, octets: u64, access: &[Access]) -> Result<Success, Failure> {
        let pd = self.find_domain(domain)?;
        self.limits.check_objects(self.objects.len())?;
        let region_size =
            |object: &DeviceObject| if let DeviceObject::Region(region) = object { region.octets } else { 0 };
        self.limits.check_memory(self.objects.values().map(region_size).sum(), octets)?;
        let has = |right| access.contains(&right);
        let length = usize::try_from(octets).ok().filter(|length| *length > 0);
        let length = length.ok_or_else(|| invalid("a region must have at least one byte"))?;
        let access = Rights {
            local_read: true,
            local_write: has(Access::LocalWrite),
            remote_read: has(Access::RemoteRead),
            remote_write: has(Access::RemoteWrite),
            bind: has(Access::Bind),
        };
        let buffer = self.rnic.memory_mut().allocate_buffer(length).map_err(invalid)?;
        let address = if has(Access::ZeroBased) { 0 } else { (u64::from(self.last) + 1) * REGION_DISTANCE };
        let registration = Registration {
            pd,
            // The consumer chooses the key. The key of a region comes from its object number, so
            // that a test case can distinguish its regions.
            key: StagKey((self.last & 0xff) as u8),
            list: PhysicalBufferList::of(buffer, 0, octets, PAGE),
            base: if has(Access::ZeroBased) { ToBase::ZeroBased } else { ToBase::VaBased(address) },
            remote: access.is_remote(),
            access,
        };
        let registered = self.rnic.memory_mut().register(&registration).map_err(|error| {
            // The buffer was allocated above, so this cannot fail.
            let _ = self.rnic.memory_mut().free_buffer(buffer);
            invalid(error)
        })?;
        let stag = registered.stag;
        let region = self.insert_object(DeviceObject::Region(Region { buffer, stag, address, octets }));
        Ok(Success::Region { region, address, local_key: stag.to_bits(), remote_key: stag.to_bits() })
    }

    pub(super) fn window(&mut self, domain: Object) -> Result<Success, Failure> {
        self.limits.check_objects(self.objects.len())?;
        let pd = self.find_domain(domain)?;
        let index = self.rnic.memory_mut().allocate_window(pd).map_err(invalid)?;
        let window = self.insert_object(DeviceObject::Window { index, key: 0 });
        Ok(Success::Window { window, remote_key: Stag { index, key: StagKey(0) }.to_bits() })
    }

    pub(super) fn shared(&mut self, domain: Object, depth: u32, parts: u32) -> Result<Success, Failure> {
        self.limits.check_objects(self.objects.len())?;
        let init = SrqInit { pd: self.find_domain(domain)?, max_wrs: depth, max_sges: parts, limit: 0 };
        let (srq, _) = self.rnic.create_srq(init).map_err(invalid)?;
        Ok(Success::Shared { shared: self.insert_object(DeviceObject::Shared(srq)) })
    }

    pub(super) fn limit(&mut self, shared: Object, receives: u32) -> Result<Success, Failure> {
        let srq = self.find_shared(shared)?;
        let modify = SrqModify { limit: Some(receives), ..SrqModify::default() };
        self.rnic.modify_srq(srq, modify).map_err(invalid)?;
        Ok(Success::Nothing)
    }

    /// Destroys an object. Fails if the object is in use.
    pub(super) fn destroy(&mut self, object: Object) -> Result<Success, Failure> {
        match self.objects.get(&object) {
            None => return Err(not_found(object, "object")),
            Some(DeviceObject::Listener) => {}
            Some(DeviceObject::Connection) => self.destroy_connection(object),
            Some(DeviceObject::Domain(pd)) => self.rnic.memory_mut().deallocate_pd(*pd).map_err(invalid)?,
            Some(DeviceObject::Region(Region { buffer, stag, .. })) => {
                self.rnic.memory_mut().deallocate_stag(stag.index).map_err(invalid)?;
                self.rnic.memory_mut().free_buffer(*buffer).map_err(invalid)?;
            }
            Some(DeviceObject::Window { index, .. }) => {
                self.rnic.memory_mut().deallocate_stag(*index).map_err(invalid)?;
                for pair in std::mem::take(&mut self.bound_pairs) {
                    self.release_pair(pair);
                }
            }
            Some(DeviceObject::Shared(srq)) => self.rnic.destroy_srq(*srq).map_err(invalid)?,
        }
        self.objects.remove(&object);
        Ok(Success::Nothing)
    }

    /// Returns bytes of a region's memory for reading or writing.
    fn octets(&mut self, region: Object, offset: u64, length: u64) -> Result<&mut [u8], Failure> {
        let Region { buffer, octets, .. } = self.find_region(region)?;
        let end = offset.checked_add(length).filter(|end| *end <= octets);
        let out_of_bounds = || out_of_bounds(offset, length, octets);
        let range = usize::try_from(offset).ok().zip(end.and_then(|end| usize::try_from(end).ok()));
        let (begin, end) = range.ok_or_else(out_of_bounds)?;
        self.rnic.memory_mut().buffer_mut(buffer).map_err(invalid)?.get_mut(begin..end).ok_or_else(out_of_bounds)
    }

    pub(super) fn put(&mut self, region: Object, offset: u64, octets: &[u8]) -> Result<Success, Failure> {
        self.octets(region, offset, octets.len() as u64)?.copy_from_slice(octets);
        Ok(Success::Nothing)
    }

    pub(super) fn get(&mut self, region: Object, offset: u64, length: u64) -> Result<Success, Failure> {
        check_transfer_size(length)?;
        Ok(Success::Octets { octets: Octets(self.octets(region, offset, length)?.to_vec()) })
    }

    pub(super) fn fill(&mut self, region: Object, offset: u64, length: u64, seed: u64) -> Result<Success, Failure> {
        let octets = self.octets(region, offset, length)?;
        for (index, octet) in (0..).zip(octets) {
            *octet = pattern(seed, index);
        }
        Ok(Success::Nothing)
    }

    pub(super) fn hash(&mut self, region: Object, offset: u64, length: u64) -> Result<Success, Failure> {
        Ok(Success::Hash { crc32c: crc32c(self.octets(region, offset, length)?) })
    }
}
