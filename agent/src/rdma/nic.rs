//! The objects of one control connection on one device, and what is done with them. When it is dropped, each is given back.

use core::ffi::{CStr, c_int, c_void};
use core::ptr::{self, NonNull};
use std::collections::BTreeMap;
use std::io;
use std::net::IpAddr;
use std::os::fd::BorrowedFd;

use super::abi::{
    CmId, CompChannel, Context, Cq, DeviceAttr, EventChannel, Mr, Mw, Pd, PortAttr, Srq, SrqInitAttr, TRANSPORT_IWARP,
};
use super::load::{Functions, Missing};
use super::memory::Memory;
use super::names;
use crate::protocol::{Access, Action, Device, Done, Event, Failure, MOST_OCTETS, Object, Octets, pattern};

/// How a device is named, and how much one control connection may take of it.
#[derive(Debug, Clone)]
pub struct Opened {
    /// By its own name, or by an address that it has; the first that speaks iWARP, where this is absent.
    pub device: Option<String>,
    /// Octets of all regions together.
    pub memory: u64,
    /// Objects.
    pub objects: usize,
}

/// Why there is no device: a sentence that says what to do.
#[derive(Debug, thiserror::Error)]
pub enum NoDevice {
    /// The libraries are not there.
    #[error(transparent)]
    Libraries(#[from] &'static Missing),
    /// They find none.
    #[error(
        "this host has no RDMA device: load its driver (`modprobe siw`, `rdma link add siw0 type siw netdev eth0` makes one of \
        software)"
    )]
    None,
    /// They find others.
    #[error("no RDMA device {wanted:?}: there are {there}")]
    Other {
        /// As asked for.
        wanted: String,
        /// Their names.
        there: String,
    },
    /// None of them speaks iWARP.
    #[error("no device speaks iWARP: there are {there}; --device takes one all the same")]
    NoIwarp {
        /// Their names.
        there: String,
    },
    /// They are there, and cannot be opened.
    #[error("{what}: {why}")]
    Failed {
        /// What was tried.
        what: &'static str,
        /// What the library said.
        why: io::Error,
    },
}

/// An object of a control connection.
#[derive(Debug)]
pub(super) enum Thing {
    Listener(*mut CmId),
    Connection(Connection),
    Domain(*mut Pd),
    Region(Region),
    Window { window: *mut Mw, posted: bool },
    Shared(*mut Srq),
}

#[derive(Debug)]
pub(super) struct Connection {
    pub(super) id: *mut CmId,
    /// Of its Queue Pair, for both queues; null without one.
    pub(super) cq: *mut Cq,
    /// It answers a request that is neither accepted nor rejected yet.
    pub(super) asked: bool,
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
    devices: NonNull<*mut Context>,
    context: *mut Context,
    pub(super) channel: *mut EventChannel,
    pub(super) completions: *mut CompChannel,
    pub(super) things: BTreeMap<Object, Thing>,
    /// Events that came while something else was waited for.
    pub(super) early: Vec<Event>,
    last: Object,
    used: u64,
    limits: Opened,
}

/// The library's errno, with what failed.
pub(super) fn failed(what: &str) -> Failure {
    let error = io::Error::last_os_error();
    Failure { what: format!("{what}: {error}"), errno: error.raw_os_error() }
}

/// The same where the function gives it back.
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
    /// Loads the libraries and opens a device.
    pub fn open(limits: Opened) -> Result<Self, NoDevice> {
        let lib = Functions::loaded()?;
        let mut count = 0;
        // SAFETY: the count is ours; the list is given back when the device is dropped.
        let devices = unsafe { (lib.rdma_get_devices)(&raw mut count) };
        let (Some(devices), Ok(count @ 1..)) = (NonNull::new(devices), usize::try_from(count)) else {
            return Err(NoDevice::None);
        };
        // SAFETY: the list has so many.
        let all: Vec<*mut Context> = (0..count).map(|index| unsafe { *devices.as_ptr().add(index) }).collect();
        let mut nic = Nic {
            lib,
            devices,
            context: ptr::null_mut(),
            channel: ptr::null_mut(),
            completions: ptr::null_mut(),
            things: BTreeMap::new(),
            early: Vec::new(),
            last: 0,
            used: 0,
            limits,
        };
        // SAFETY: without arguments.
        nic.channel = unsafe { (nic.lib.rdma_create_event_channel)() };
        if nic.channel.is_null() {
            return Err(NoDevice::Failed { what: "rdma_create_event_channel", why: io::Error::last_os_error() });
        }
        nic.context = nic.choose(&all)?;
        // SAFETY: an open device.
        nic.completions = unsafe { (nic.lib.ibv_create_comp_channel)(nic.context) };
        if nic.completions.is_null() {
            return Err(NoDevice::Failed { what: "ibv_create_comp_channel", why: io::Error::last_os_error() });
        }
        for fd in nic.descriptors() {
            rustix::io::ioctl_fionbio(fd, true)
                .map_err(|why| NoDevice::Failed { what: "a descriptor that does not block", why: why.into() })?;
        }
        Ok(nic)
    }

    fn choose(&mut self, all: &[*mut Context]) -> Result<*mut Context, NoDevice> {
        let there = || all.iter().map(|context| device_name(*context)).collect::<Vec<_>>().join(", ");
        // SAFETY: each is an open device.
        let is_iwarp = |context: *mut Context| unsafe { (*(*context).device).transport_type == TRANSPORT_IWARP };
        let Some(wanted) = self.limits.device.clone() else {
            let found = all.iter().find(|context| is_iwarp(**context));
            return found.copied().ok_or_else(|| NoDevice::NoIwarp { there: there() });
        };
        if let Some(found) = all.iter().find(|context| device_name(**context) == wanted) {
            return Ok(*found);
        }
        let by_address = wanted.parse().ok().and_then(|address: IpAddr| self.of_address(address));
        by_address.ok_or_else(|| NoDevice::Other { wanted, there: there() })
    }

    /// What poll(2) has to look at: connections, completions, asynchronous events.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 3] {
        // SAFETY: all three are there, and open, as long as the device is.
        unsafe {
            [(*self.channel).fd, (*self.completions).fd, (*self.context).async_fd].map(|fd| BorrowedFd::borrow_raw(fd))
        }
    }

    /// Does what is asked.
    pub fn perform(&mut self, action: Action) -> Result<Done, Failure> {
        match action {
            Action::Hello { .. } => Err(Failure::of("hello is said once, and first")),
            Action::Exit => std::process::abort(),
            Action::Device => self.report().map(|device| Done::Device(Box::new(device))),
            Action::Listen { address, port, backlog } => self.listen(address, port, backlog),
            Action::Resolve { address, port } => self.resolve(address, port),
            Action::Domain => self.domain(),
            Action::Register { domain, octets, access } => self.register(domain, octets, &access),
            Action::Window { domain, posted } => self.window(domain, posted),
            Action::Shared { domain, depth, parts } => self.shared(domain, depth, parts),
            Action::Pair { .. } => self.pair(&action),
            Action::Connect(parameters) => self.connect(&parameters),
            Action::Accept(parameters) => self.accept(&parameters),
            Action::Reject { connection, private_data } => self.reject(connection, &private_data),
            Action::Disconnect { connection } => self.disconnect(connection),
            Action::Destroy { object } => {
                let thing = self.things.remove(&object).ok_or_else(|| none(object, "object"))?;
                self.destroy(thing).map(|()| Done::Nothing).map_err(|(thing, failure)| {
                    self.things.insert(object, thing);
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
                if length > MOST_OCTETS as u64 {
                    return Err(Failure::of(format!("{length} octets at once: at most {MOST_OCTETS}")));
                }
                self.get(region, offset, length).map(|octets| Done::Octets { octets: Octets(octets) })
            }
            Action::Hash { region, offset, length } => {
                self.get(region, offset, length).map(|octets| Done::Hash { crc32c: weft_core::crc::crc32c(&octets) })
            }
        }
    }

    /// What happened since it was asked last.
    pub fn events(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.early);
        self.connection_events(&mut events);
        self.completion_events(&mut events);
        self.asynchronous_events(&mut events);
        events
    }

    /// Keeps an object, if there may be one more.
    pub(super) fn keep(&mut self, thing: Thing) -> Result<Object, Failure> {
        if self.things.len() >= self.limits.objects {
            let most = self.limits.objects;
            // What the device does not give back it may still write to.
            if let Err((thing, _)) = self.destroy(thing) {
                core::mem::forget(thing);
            }
            return Err(Failure::of(format!("{most} objects are the most of a control connection")));
        }
        self.last += 1;
        self.things.insert(self.last, thing);
        Ok(self.last)
    }

    /// The number that the next object gets.
    pub(super) fn next(&self) -> Object {
        self.last + 1
    }

    pub(super) fn context(&self) -> *mut Context {
        self.context
    }

    fn report(&mut self) -> Result<Device, Failure> {
        let mut attributes = core::mem::MaybeUninit::<DeviceAttr>::zeroed();
        // SAFETY: an open device; room for all that it says.
        check("ibv_query_device", unsafe { (self.lib.ibv_query_device)(self.context, attributes.as_mut_ptr()) })?;
        // SAFETY: all zeros are right values of each member, and the library has written others.
        let attributes = unsafe { attributes.assume_init() };
        let name = device_name(self.context);
        let count = |value: c_int| u32::try_from(value).unwrap_or(0);
        let has = |bit: u32| attributes.device_cap_flags & 1 << bit != 0;
        let capabilities = [
            ("window_type_1", 17),
            ("window_type_2a", 23),
            ("window_type_2b", 24),
            ("memory_management_extensions", 21),
        ];
        let ports = (1..=attributes.phys_port_cnt).map(|port| {
            let mut attributes = PortAttr { state: 0, rest: [0; 15] };
            // SAFETY: an open device; room for more than the library writes.
            let result = unsafe { (self.lib.ibv_query_port)(self.context, port, &raw mut attributes) };
            check("ibv_query_port", result).map(|()| names::port(attributes.state))
        });
        let driver = std::fs::read_link(format!("/sys/class/infiniband/{name}/device/driver")).ok();
        let firmware: Vec<u8> =
            attributes.fw_ver.iter().map(|c| c.cast_unsigned()).take_while(|octet| *octet != 0).collect();
        Ok(Device {
            driver: driver.and_then(|path| Some(path.file_name()?.to_string_lossy().into_owned())),
            firmware: String::from_utf8_lossy(&firmware).into_owned(),
            vendor: attributes.vendor_id,
            part: attributes.vendor_part_id,
            ports: ports.collect::<Result<_, _>>()?,
            max_region: attributes.max_mr_size,
            max_queue_pairs: count(attributes.max_qp),
            max_work_requests: count(attributes.max_qp_wr),
            max_parts: count(attributes.max_sge),
            max_read_parts: count(attributes.max_sge_rd),
            max_ird: count(attributes.max_qp_rd_atom),
            max_ord: count(attributes.max_qp_init_rd_atom),
            max_shared: count(attributes.max_srq),
            max_windows: count(attributes.max_mw),
            capabilities: capabilities
                .iter()
                .filter(|(_, bit)| has(*bit))
                .map(|(name, _)| (*name).to_owned())
                .collect(),
            name,
        })
    }

    fn domain(&mut self) -> Result<Done, Failure> {
        // SAFETY: an open device.
        let domain = unsafe { (self.lib.ibv_alloc_pd)(self.context) };
        if domain.is_null() {
            return Err(failed("ibv_alloc_pd"));
        }
        self.keep(Thing::Domain(domain)).map(|domain| Done::Domain { domain })
    }

    pub(super) fn of_domain(&self, domain: Object) -> Result<*mut Pd, Failure> {
        match self.things.get(&domain) {
            Some(Thing::Domain(domain)) => Ok(*domain),
            _ => Err(none(domain, "domain")),
        }
    }

    pub(super) fn of_region(&self, region: Object) -> Result<&Region, Failure> {
        match self.things.get(&region) {
            Some(Thing::Region(region)) => Ok(region),
            _ => Err(none(region, "region")),
        }
    }

    fn register(&mut self, domain: Object, octets: u64, access: &[Access]) -> Result<Done, Failure> {
        let domain = self.of_domain(domain)?;
        let left = self.limits.memory - self.used;
        if octets > left {
            return Err(Failure::of(format!("{octets} octets: {left} are left to this control connection")));
        }
        let memory = usize::try_from(octets).ok().and_then(Memory::new);
        let memory = memory.ok_or_else(|| Failure::of(format!("no memory of {octets} octets")))?;
        // SAFETY: memory that is kept as long as the region is.
        let mr =
            unsafe { (self.lib.ibv_reg_mr)(domain, memory.begin().cast::<c_void>(), memory.octets(), flags(access)) };
        if mr.is_null() {
            return Err(failed("ibv_reg_mr"));
        }
        let zero_based = access.contains(&Access::ZeroBased);
        // SAFETY: the library has made it.
        let (local_key, remote_key) = unsafe { ((*mr).lkey, (*mr).rkey) };
        let address = if zero_based { 0 } else { memory.begin().addr() as u64 };
        self.used += octets;
        let region = self.keep(Thing::Region(Region { mr, memory, zero_based }))?;
        Ok(Done::Region { region, address, local_key, remote_key })
    }

    fn window(&mut self, domain: Object, posted: bool) -> Result<Done, Failure> {
        let domain = self.of_domain(domain)?;
        // SAFETY: an open device.
        let alloc = unsafe { (*self.context).ops.alloc_mw }.ok_or_else(|| Failure::of("the device has no windows"))?;
        // SAFETY: one of its domains.
        let window = unsafe { alloc(domain, 1 + c_int::from(posted)) };
        if window.is_null() {
            return Err(failed("ibv_alloc_mw"));
        }
        // SAFETY: the library has made it.
        let remote_key = unsafe { (*window).rkey };
        self.keep(Thing::Window { window, posted }).map(|window| Done::Window { window, remote_key })
    }

    fn shared(&mut self, domain: Object, depth: u32, parts: u32) -> Result<Done, Failure> {
        let domain = self.of_domain(domain)?;
        let mut attributes = SrqInitAttr { srq_context: ptr::null_mut(), max_wr: depth, max_sge: parts, srq_limit: 0 };
        // SAFETY: one of the device's domains.
        let shared = unsafe { (self.lib.ibv_create_srq)(domain, &raw mut attributes) };
        if shared.is_null() {
            return Err(failed("ibv_create_srq"));
        }
        self.keep(Thing::Shared(shared)).map(|shared| Done::Shared { shared })
    }

    fn put(&mut self, region: Object, offset: u64, length: u64, octet: impl Fn(usize) -> u8) -> Result<Done, Failure> {
        let Some(Thing::Region(found)) = self.things.get_mut(&region) else { return Err(none(region, "region")) };
        let has = found.memory.octets();
        let put = usize::try_from(length).ok().and_then(|length| found.memory.put(offset, length, octet));
        put.map(|()| Done::Nothing).ok_or_else(|| beside(offset, length, has))
    }

    fn get(&self, region: Object, offset: u64, length: u64) -> Result<Vec<u8>, Failure> {
        let found = self.of_region(region)?;
        let octets = usize::try_from(length).ok().and_then(|length| found.memory.get(offset, length));
        octets.ok_or_else(|| beside(offset, length, found.memory.octets()))
    }

    /// Gives an object back; what the device keeps comes back with the reason.
    fn destroy(&mut self, thing: Thing) -> Result<(), (Thing, Failure)> {
        // SAFETY: each was made by the library, and is in no table any more.
        let result = unsafe {
            match &thing {
                Thing::Listener(id) => check("rdma_destroy_id", (self.lib.rdma_destroy_id)(*id)),
                Thing::Connection(connection) => self.destroy_connection(connection),
                Thing::Domain(domain) => check("ibv_dealloc_pd", (self.lib.ibv_dealloc_pd)(*domain)),
                Thing::Region(region) => check("ibv_dereg_mr", (self.lib.ibv_dereg_mr)(region.mr)),
                Thing::Window { window, .. } => {
                    let dealloc = (*self.context).ops.dealloc_mw;
                    dealloc.map_or(Ok(()), |dealloc| check("ibv_dealloc_mw", dealloc(*window)))
                }
                Thing::Shared(shared) => check("ibv_destroy_srq", (self.lib.ibv_destroy_srq)(*shared)),
            }
        };
        match result {
            Ok(()) => {
                if let Thing::Region(region) = &thing {
                    self.used -= region.memory.octets() as u64;
                }
                Ok(())
            }
            Err(failure) => Err((thing, failure)),
        }
    }
}

impl Drop for Nic {
    fn drop(&mut self) {
        // What hangs on others first: connections, listeners, queues, windows, regions, domains.
        let rank = |thing: &Thing| match thing {
            Thing::Connection(_) | Thing::Listener(_) => 0,
            Thing::Shared(_) | Thing::Window { .. } => 1,
            Thing::Region(_) => 2,
            Thing::Domain(_) => 3,
        };
        let mut things: Vec<Thing> = std::mem::take(&mut self.things).into_values().collect();
        things.sort_by_key(rank);
        for thing in things {
            // What the device does not give back it may still write to.
            if let Err((thing, _)) = self.destroy(thing) {
                core::mem::forget(thing);
            }
        }
        if !self.completions.is_null() {
            // SAFETY: no completion queue has it any more.
            unsafe { (self.lib.ibv_destroy_comp_channel)(self.completions) };
        }
        if !self.channel.is_null() {
            // SAFETY: no connection has it any more.
            unsafe { (self.lib.rdma_destroy_event_channel)(self.channel) };
        }
        // SAFETY: nothing of the devices is used from here on.
        unsafe { (self.lib.rdma_free_devices)(self.devices.as_ptr()) };
    }
}

pub(super) fn none(object: Object, kind: &str) -> Failure {
    Failure::of(format!("{object} is no {kind} of this control connection"))
}

fn beside(offset: u64, length: u64, has: usize) -> Failure {
    Failure::of(format!("{length} octets from {offset}: the region has {has}"))
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

fn device_name(context: *mut Context) -> String {
    // SAFETY: an open device, whose name ends with a zero.
    let name = unsafe { CStr::from_ptr((&raw const (*(*context).device).name).cast()) };
    name.to_string_lossy().into_owned()
}
