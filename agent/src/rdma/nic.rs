//! The objects of one control connection on one device, and the actions on them. Dropping a [`Nic`]
//! destroys its objects.

use core::ffi::{c_int, c_void};
use core::ptr::{self, NonNull};
use std::collections::BTreeMap;
use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};

use super::abi::{CmId, CompChannel, Context, Cq, EventChannel, Mr, Mw, Pd, Srq, SrqAttr, SrqInitAttr};
use super::load::Functions;
use super::memory::Memory;
use super::route::{TesterId, router};
use crate::Limits;
use crate::common::{check_transfer_size, not_found, out_of_bounds, repeated_hello};
use crate::protocol::{Access, Action, Event, Failure, MAX_TRANSFER_OCTETS, Object, Octets, Success, pattern};
use crate::serve::Backend;

/// An object of a control connection.
#[derive(Debug)]
pub(super) enum DeviceObject {
    Listener(*mut CmId),
    Connection(Connection),
    Domain(*mut Pd),
    Region(Region),
    Window { window: *mut Mw, posted: bool },
    Shared { queue: *mut Srq, parts: u32 },
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: *mut CmId,
    /// Completion queue for both queues of the Queue Pair. Null if there is no Queue Pair.
    pub(super) cq: *mut Cq,
    /// Maximum number of parts in a work request to send, and maximum number of parts in a receive.
    pub(super) parts: (u32, u32),
    /// Maximum number of inline bytes in a work request.
    pub(super) inline: u32,
    /// Whether the agent reports only the first completion at once, and delays all later
    /// completions until a solicited event (the field `solicited` of the request `pair`).
    pub(super) solicited: bool,
    /// Whether the peer's request still waits to be accepted or rejected.
    pub(super) undecided: bool,
}

impl Connection {
    /// Returns a connection without a Queue Pair.
    pub(super) fn new(id: *mut CmId, undecided: bool) -> Self {
        Connection { id, cq: ptr::null_mut(), parts: (0, 0), inline: 0, solicited: false, undecided }
    }
}

#[derive(Debug)]
pub(super) struct Region {
    pub(super) mr: *mut Mr,
    pub(super) memory: Memory,
    pub(super) zero_based: bool,
}

/// A device, opened for one control connection.
#[derive(Debug)]
pub struct Nic {
    pub(super) lib: &'static Functions,
    pub(super) devices: NonNull<*mut Context>,
    pub(super) context: *mut Context,
    pub(super) channel: *mut EventChannel,
    pub(super) completions: *mut CompChannel,
    pub(super) objects: BTreeMap<Object, DeviceObject>,
    /// Events that arrived while the agent waited for another event.
    pub(super) early: Vec<Event>,
    pub(super) last: Object,
    pub(super) used: u64,
    pub(super) limits: Limits,
    /// Registration for asynchronous events. `None` until the device is open.
    pub(super) tester: Option<TesterId>,
    /// This descriptor is readable if another control connection has read an asynchronous event for
    /// this control connection.
    pub(super) wake: OwnedFd,
}

/// Returns the failure of a function, with errno. Some drivers fail without setting errno.
fn failed(what: &str) -> Failure {
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(0) | None => Failure::of(format!("{what} failed without an error number")),
        errno => Failure { what: format!("{what}: {error}"), errno },
    }
}

/// Checks that a function returned an object.
pub(super) fn not_null<T>(what: &str, object: *mut T) -> Result<*mut T, Failure> {
    if object.is_null() { Err(failed(what)) } else { Ok(object) }
}

/// Checks the result of a function: 0 means success, -1 means that errno has the error number, and
/// any other value is the error number itself.
pub(super) fn check(what: &str, result: c_int) -> Result<(), Failure> {
    match result {
        0 => Ok(()),
        -1 => Err(failed(what)),
        errno => {
            let error = io::Error::from_raw_os_error(errno.abs());
            Err(Failure { what: format!("{what}: {error}"), errno: Some(errno.abs()) })
        }
    }
}

impl Nic {
    /// Stores an object, if the limit allows one more object. Otherwise destroys the object.
    pub(super) fn insert_object(&mut self, device_object: DeviceObject) -> Result<Object, Failure> {
        if let Err(full) = self.limits.check_objects(self.objects.len()) {
            // If the device has not released a region, the device can still write to the memory of
            // the region. So the memory must not be freed.
            if let Err((device_object, _)) = self.destroy(device_object) {
                core::mem::forget(device_object);
            }
            return Err(full);
        }
        self.last += 1;
        self.objects.insert(self.last, device_object);
        Ok(self.last)
    }

    /// Registers a queue. Asynchronous events of the queue then reach this control connection.
    pub(super) fn register_queue(&self, element: usize, connection: Option<Object>) {
        if let Some(tester) = self.tester {
            router().register(element, tester, connection);
        }
    }

    fn domain(&mut self) -> Result<Success, Failure> {
        // SAFETY: the device is open.
        let domain = not_null("ibv_alloc_pd", unsafe { (self.lib.ibv_alloc_pd)(self.context) })?;
        self.insert_object(DeviceObject::Domain(domain)).map(|domain| Success::Domain { domain })
    }

    pub(super) fn find_domain(&self, domain: Object) -> Result<*mut Pd, Failure> {
        let Some(DeviceObject::Domain(found)) = self.objects.get(&domain) else {
            return Err(not_found(domain, "domain"));
        };
        Ok(*found)
    }

    pub(super) fn find_region(&self, region: Object) -> Result<&Region, Failure> {
        let Some(DeviceObject::Region(found)) = self.objects.get(&region) else {
            return Err(not_found(region, "region"));
        };
        Ok(found)
    }

    pub(super) fn find_shared(&self, shared: Object) -> Result<*mut Srq, Failure> {
        let Some(DeviceObject::Shared { queue, .. }) = self.objects.get(&shared) else {
            return Err(not_found(shared, "shared receive queue"));
        };
        Ok(*queue)
    }

    fn register(&mut self, domain: Object, octets: u64, access: &[Access]) -> Result<Success, Failure> {
        let domain = self.find_domain(domain)?;
        self.limits.check_memory(self.used, octets)?;
        let memory = usize::try_from(octets).ok().and_then(Memory::new);
        let memory = memory.ok_or_else(|| Failure::of(format!("cannot allocate {octets} bytes of memory")))?;
        // SAFETY: the memory exists as long as the region.
        let mr =
            unsafe { (self.lib.ibv_reg_mr)(domain, memory.begin().cast::<c_void>(), memory.octets(), flags(access)) };
        let mr = not_null("ibv_reg_mr", mr)?;
        let zero_based = access.contains(&Access::ZeroBased);
        // SAFETY: the library created the region.
        let (local_key, remote_key) = unsafe { ((*mr).lkey, (*mr).rkey) };
        let address = if zero_based { 0 } else { memory.begin().addr() as u64 };
        self.used += octets;
        let region = self.insert_object(DeviceObject::Region(Region { mr, memory, zero_based }))?;
        Ok(Success::Region { region, address, local_key, remote_key })
    }

    fn window(&mut self, domain: Object, posted: bool) -> Result<Success, Failure> {
        let domain = self.find_domain(domain)?;
        // SAFETY: the device is open.
        let alloc =
            unsafe { (*self.context).ops.alloc_mw }.filter(|_| self.query_device().is_ok_and(|it| it.max_windows > 0));
        let alloc = alloc.ok_or_else(|| Failure::of("the device does not support memory windows"))?;
        // SAFETY: the domain belongs to this device.
        let window = not_null("ibv_alloc_mw", unsafe { alloc(domain, 1 + c_int::from(posted)) })?;
        // SAFETY: the library created the window.
        let remote_key = unsafe { (*window).rkey };
        self.insert_object(DeviceObject::Window { window, posted }).map(|window| Success::Window { window, remote_key })
    }

    fn shared(&mut self, domain: Object, depth: u32, parts: u32) -> Result<Success, Failure> {
        let domain = self.find_domain(domain)?;
        let mut attributes = SrqInitAttr { srq_context: ptr::null_mut(), max_wr: depth, max_sge: parts, srq_limit: 0 };
        // SAFETY: the domain belongs to this device.
        let shared = unsafe { (self.lib.ibv_create_srq)(domain, &raw mut attributes) };
        let shared = not_null("ibv_create_srq", shared)?;
        let done = self.insert_object(DeviceObject::Shared { queue: shared, parts: attributes.max_sge.max(parts) });
        if done.is_ok() {
            self.register_queue(shared.addr(), None);
        }
        done.map(|shared| Success::Shared { shared })
    }

    fn limit(&mut self, shared: Object, receives: u32) -> Result<Success, Failure> {
        /// `IBV_SRQ_LIMIT`.
        const LIMIT: c_int = 2;
        let queue = self.find_shared(shared)?;
        let mut attributes = SrqAttr { max_wr: 0, max_sge: 0, srq_limit: receives };
        // SAFETY: the queue exists. The library reads only the limit.
        let result = unsafe { (self.lib.ibv_modify_srq)(queue, &raw mut attributes, LIMIT) };
        check("ibv_modify_srq", result).map(|()| Success::Nothing)
    }

    fn put(
        &mut self,
        region: Object,
        offset: u64,
        length: u64,
        octet: impl Fn(usize) -> u8,
    ) -> Result<Success, Failure> {
        let Some(DeviceObject::Region(found)) = self.objects.get_mut(&region) else {
            return Err(not_found(region, "region"));
        };
        let has = found.memory.octets() as u64;
        let put = usize::try_from(length).ok().and_then(|length| found.memory.put(offset, length, octet));
        put.map(|()| Success::Nothing).ok_or_else(|| out_of_bounds(offset, length, has))
    }

    fn get(&self, region: Object, offset: u64, length: u64) -> Result<Vec<u8>, Failure> {
        let found = self.find_region(region)?;
        let octets = usize::try_from(length).ok().and_then(|length| found.memory.get(offset, length));
        octets.ok_or_else(|| out_of_bounds(offset, length, found.memory.octets() as u64))
    }

    /// Computes the hash in chunks, because a copy of all bytes would need as much memory as the
    /// region.
    fn hash(&self, region: Object, offset: u64, length: u64) -> Result<Success, Failure> {
        let found = self.find_region(region)?;
        let begin = found.memory.begin_of(offset, length);
        begin.ok_or_else(|| out_of_bounds(offset, length, found.memory.octets() as u64))?;
        let (mut crc32c, mut at) = (0, offset);
        let end = offset + length;
        while at < end {
            let octets = self.get(region, at, (end - at).min(MAX_TRANSFER_OCTETS as u64))?;
            crc32c = weft_core::crc::append(crc32c, &octets);
            at += octets.len() as u64;
        }
        Ok(Success::Hash { crc32c })
    }

    /// Destroys an object. If the device refuses, returns the object and the reason.
    fn destroy(&mut self, device_object: DeviceObject) -> Result<(), (DeviceObject, Failure)> {
        // SAFETY: the library created each object, and no table has it any more.
        let result = unsafe {
            match &device_object {
                DeviceObject::Listener(id) => check("rdma_destroy_id", (self.lib.rdma_destroy_id)(*id)),
                DeviceObject::Connection(connection) => self.destroy_connection(connection),
                DeviceObject::Domain(domain) => check("ibv_dealloc_pd", (self.lib.ibv_dealloc_pd)(*domain)),
                DeviceObject::Region(region) => check("ibv_dereg_mr", (self.lib.ibv_dereg_mr)(region.mr)),
                DeviceObject::Window { window, .. } => {
                    let dealloc = (*self.context).ops.dealloc_mw;
                    dealloc.map_or(Ok(()), |dealloc| check("ibv_dealloc_mw", dealloc(*window)))
                }
                DeviceObject::Shared { queue, .. } => {
                    router().unregister(queue.addr());
                    check("ibv_destroy_srq", (self.lib.ibv_destroy_srq)(*queue))
                }
            }
        };
        if let Err(failure) = result {
            return Err((device_object, failure));
        }
        if let DeviceObject::Region(region) = &device_object {
            self.used -= region.memory.octets() as u64;
        }
        Ok(())
    }
}

impl Backend for Nic {
    /// The descriptors become readable for these events, in this order: events of connections,
    /// completions, asynchronous events, and asynchronous events that another control connection
    /// has read.
    fn descriptors(&self) -> Vec<BorrowedFd<'_>> {
        // SAFETY: the three descriptors are open as long as the device is.
        unsafe {
            let [channel, completions, asynchronous] =
                [(*self.channel).fd, (*self.completions).fd, (*self.context).async_fd]
                    .map(|fd| BorrowedFd::borrow_raw(fd));
            vec![channel, completions, asynchronous, self.wake.as_fd()]
        }
    }

    fn perform(&mut self, action: Action) -> Result<Success, Failure> {
        // Reading an empty channel sets errno. Clear errno, because a failure must report its own
        // errno. SAFETY: errno belongs to this thread.
        unsafe { *libc::__errno_location() = 0 };
        match action {
            Action::Hello { .. } => Err(repeated_hello()),
            Action::Exit => std::process::abort(),
            Action::Device => self.query_device().map(|device| Success::Device(Box::new(device))),
            Action::Listen { address, port, backlog } => self.listen(&address, port, backlog),
            Action::Resolve { address, port } => self.resolve(&address, port),
            Action::Domain => self.domain(),
            Action::Register { domain, octets, access } => self.register(domain, octets, &access),
            Action::Window { domain, posted } => self.window(domain, posted),
            Action::Shared { domain, depth, parts } => self.shared(domain, depth, parts),
            Action::Limit { shared, receives } => self.limit(shared, receives),
            Action::Pair { .. } => self.pair(&action),
            Action::Connect(parameters) => self.connect(&parameters),
            Action::Accept(parameters) => self.accept(&parameters),
            Action::Reject { connection, private_data } => self.reject(connection, &private_data),
            Action::Disconnect { connection } => self.disconnect(connection),
            Action::Destroy { object } => {
                let device_object = self.objects.remove(&object).ok_or_else(|| not_found(object, "object"))?;
                self.destroy(device_object).map(|()| Success::Nothing).map_err(|(device_object, failure)| {
                    self.objects.insert(object, device_object);
                    failure
                })
            }
            Action::PostReceive { on, work, parts } => self.post_receive(on, work, &parts),
            Action::PostSend { .. } => self.post_send(&action),
            Action::Put { region, offset, octets } => {
                self.put(region, offset, octets.0.len() as u64, |index| octets.0[index])
            }
            Action::Fill { region, offset, length, seed } => {
                self.put(region, offset, length, |index| pattern(seed, index as u64))
            }
            Action::Get { region, offset, length } => {
                check_transfer_size(length)?;
                self.get(region, offset, length).map(|octets| Success::Octets { octets: Octets(octets) })
            }
            Action::Hash { region, offset, length } => self.hash(region, offset, length),
        }
    }

    fn events(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.early);
        self.connection_events(&mut events);
        self.completion_events(&mut events);
        self.asynchronous_events(&mut events);
        events
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        // Objects that use other objects come first. The order is: connections and listeners,
        // shared receive queues and windows, regions, domains.
        let rank = |device_object: &DeviceObject| match device_object {
            DeviceObject::Connection(_) | DeviceObject::Listener(_) => 0,
            DeviceObject::Shared { .. } | DeviceObject::Window { .. } => 1,
            DeviceObject::Region(_) => 2,
            DeviceObject::Domain(_) => 3,
        };
        let mut objects: Vec<DeviceObject> = std::mem::take(&mut self.objects).into_values().collect();
        objects.sort_by_key(rank);
        for device_object in objects {
            // If the device has not released a region, the device can still write to the memory of
            // the region. So the memory must not be freed.
            if let Err((device_object, _)) = self.destroy(device_object) {
                core::mem::forget(device_object);
            }
        }
        if let Some(tester) = self.tester {
            router().leave(tester);
        }
        if !self.completions.is_null() {
            // SAFETY: no completion queue uses the channel any more.
            unsafe { (self.lib.ibv_destroy_comp_channel)(self.completions) };
        }
        if !self.channel.is_null() {
            // SAFETY: no connection uses the channel any more.
            unsafe { (self.lib.rdma_destroy_event_channel)(self.channel) };
        }
        // SAFETY: the devices are not used any more.
        unsafe { (self.lib.rdma_free_devices)(self.devices.as_ptr()) };
    }
}

/// `enum ibv_access_flags`.
pub(super) fn flags(access: &[Access]) -> c_int {
    let bit = |access: &Access| match access {
        Access::LocalWrite => 1,
        Access::RemoteWrite => 2,
        Access::RemoteRead => 4,
        Access::Bind => 16,
        Access::ZeroBased => 32,
    };
    access.iter().map(bit).fold(0, |flags, bit| flags | bit)
}
