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
use super::route::{Tester, router};
use crate::Limits;
use crate::common::{at_once, beside, hello_again, none};
use crate::protocol::{Access, Action, Done, Event, Failure, MOST_OCTETS, Object, Octets, pattern};

/// An object of a control connection.
#[derive(Debug)]
pub(super) enum Thing {
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
    /// Completion queue for both queues of the Queue Pair. Null without a Queue Pair.
    pub(super) cq: *mut Cq,
    /// Maximum numbers of parts in a work request: to send, and to receive.
    pub(super) parts: (u32, u32),
    /// Maximum number of inline bytes in a work request.
    pub(super) inline: u32,
    /// Whether the completion queue, after its first report, reports only solicited completions.
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
    pub(super) things: BTreeMap<Object, Thing>,
    /// Events that came while the agent waited for another event.
    pub(super) early: Vec<Event>,
    pub(super) last: Object,
    pub(super) used: u64,
    pub(super) limits: Limits,
    /// Registration for asynchronous events. `None` until the device is open.
    pub(super) tester: Option<Tester>,
    /// Readable when another control connection has read an asynchronous event of this one.
    pub(super) wake: OwnedFd,
}

/// Returns the failure of a function, with errno. A driver's part of libibverbs may leave errno
/// unchanged.
pub(super) fn failed(what: &str) -> Failure {
    let error = io::Error::last_os_error();
    match error.raw_os_error() {
        Some(0) | None => Failure::of(format!("{what}: no reason is given")),
        errno => Failure { what: format!("{what}: {error}"), errno },
    }
}

/// Checks the result of a function: 0 means success, -1 an error in errno, and any other value is
/// the errno.
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
    /// Descriptors to poll: connections, completions, asynchronous events, and events that others
    /// have read.
    pub fn descriptors(&self) -> [BorrowedFd<'_>; 4] {
        // SAFETY: all three exist, and are open as long as the device is.
        unsafe {
            let [channel, completions, asynchronous] =
                [(*self.channel).fd, (*self.completions).fd, (*self.context).async_fd]
                    .map(|fd| BorrowedFd::borrow_raw(fd));
            [channel, completions, asynchronous, self.wake.as_fd()]
        }
    }

    /// Executes a request.
    pub fn perform(&mut self, action: Action) -> Result<Done, Failure> {
        // A failure must report its own errno, and not the one that reading an empty channel left.
        // SAFETY: errno belongs to this thread.
        unsafe { *libc::__errno_location() = 0 };
        match action {
            Action::Hello { .. } => Err(hello_again()),
            Action::Exit => std::process::abort(),
            Action::Device => self.report().map(|device| Done::Device(Box::new(device))),
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
                at_once(length)?;
                self.get(region, offset, length).map(|octets| Done::Octets { octets: Octets(octets) })
            }
            Action::Hash { region, offset, length } => self.hash(region, offset, length),
        }
    }

    /// Returns the events since the last call.
    pub fn events(&mut self) -> Vec<Event> {
        let mut events = std::mem::take(&mut self.early);
        self.connection_events(&mut events);
        self.completion_events(&mut events);
        self.asynchronous_events(&mut events);
        events
    }

    /// Stores an object, if the limit allows one more. Otherwise destroys it.
    pub(super) fn keep(&mut self, thing: Thing) -> Result<Object, Failure> {
        if let Err(full) = self.limits.room(self.things.len()) {
            // If the device does not release the memory, it may still write to it.
            if let Err((thing, _)) = self.destroy(thing) {
                core::mem::forget(thing);
            }
            return Err(full);
        }
        self.last += 1;
        self.things.insert(self.last, thing);
        Ok(self.last)
    }

    /// Registers a queue, so that its asynchronous events reach this control connection.
    pub(super) fn made(&self, element: usize, connection: Option<Object>) {
        if let Some(tester) = self.tester {
            router().made(element, tester, connection);
        }
    }

    pub(super) fn context(&self) -> *mut Context {
        self.context
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
        self.limits.memory(self.used, octets)?;
        let memory = usize::try_from(octets).ok().and_then(Memory::new);
        let memory = memory.ok_or_else(|| Failure::of(format!("no memory of {octets} bytes")))?;
        // SAFETY: the memory exists as long as the region.
        let mr =
            unsafe { (self.lib.ibv_reg_mr)(domain, memory.begin().cast::<c_void>(), memory.octets(), flags(access)) };
        if mr.is_null() {
            return Err(failed("ibv_reg_mr"));
        }
        let zero_based = access.contains(&Access::ZeroBased);
        // SAFETY: the library created the region.
        let (local_key, remote_key) = unsafe { ((*mr).lkey, (*mr).rkey) };
        let address = if zero_based { 0 } else { memory.begin().addr() as u64 };
        self.used += octets;
        let region = self.keep(Thing::Region(Region { mr, memory, zero_based }))?;
        Ok(Done::Region { region, address, local_key, remote_key })
    }

    fn window(&mut self, domain: Object, posted: bool) -> Result<Done, Failure> {
        let domain = self.of_domain(domain)?;
        // SAFETY: an open device.
        let alloc =
            unsafe { (*self.context).ops.alloc_mw }.filter(|_| self.report().is_ok_and(|it| it.max_windows > 0));
        let alloc = alloc.ok_or_else(|| Failure::of("the device has no windows"))?;
        // SAFETY: the domain belongs to this device.
        let window = unsafe { alloc(domain, 1 + c_int::from(posted)) };
        if window.is_null() {
            return Err(failed("ibv_alloc_mw"));
        }
        // SAFETY: the library created the window.
        let remote_key = unsafe { (*window).rkey };
        self.keep(Thing::Window { window, posted }).map(|window| Done::Window { window, remote_key })
    }

    fn shared(&mut self, domain: Object, depth: u32, parts: u32) -> Result<Done, Failure> {
        let domain = self.of_domain(domain)?;
        let mut attributes = SrqInitAttr { srq_context: ptr::null_mut(), max_wr: depth, max_sge: parts, srq_limit: 0 };
        // SAFETY: the domain belongs to this device.
        let shared = unsafe { (self.lib.ibv_create_srq)(domain, &raw mut attributes) };
        if shared.is_null() {
            return Err(failed("ibv_create_srq"));
        }
        let done = self.keep(Thing::Shared { queue: shared, parts: attributes.max_sge.max(parts) });
        if done.is_ok() {
            self.made(shared.addr(), None);
        }
        done.map(|shared| Done::Shared { shared })
    }

    fn limit(&mut self, shared: Object, receives: u32) -> Result<Done, Failure> {
        /// `IBV_SRQ_LIMIT`.
        const LIMIT: c_int = 2;
        let Some(Thing::Shared { queue, .. }) = self.things.get(&shared) else {
            return Err(none(shared, "shared receive queue"));
        };
        let mut attributes = SrqAttr { max_wr: 0, max_sge: 0, srq_limit: receives };
        // SAFETY: the queue exists. The library reads only the limit.
        let result = unsafe { (self.lib.ibv_modify_srq)(*queue, &raw mut attributes, LIMIT) };
        check("ibv_modify_srq", result).map(|()| Done::Nothing)
    }

    fn put(&mut self, region: Object, offset: u64, length: u64, octet: impl Fn(usize) -> u8) -> Result<Done, Failure> {
        let Some(Thing::Region(found)) = self.things.get_mut(&region) else { return Err(none(region, "region")) };
        let has = found.memory.octets() as u64;
        let put = usize::try_from(length).ok().and_then(|length| found.memory.put(offset, length, octet));
        put.map(|()| Done::Nothing).ok_or_else(|| beside(offset, length, has))
    }

    fn get(&self, region: Object, offset: u64, length: u64) -> Result<Vec<u8>, Failure> {
        let found = self.of_region(region)?;
        let octets = usize::try_from(length).ok().and_then(|length| found.memory.get(offset, length));
        octets.ok_or_else(|| beside(offset, length, found.memory.octets() as u64))
    }

    /// Computes the hash in chunks, since a copy of all bytes would need as much memory as the
    /// region.
    fn hash(&self, region: Object, offset: u64, length: u64) -> Result<Done, Failure> {
        let found = self.of_region(region)?;
        let begin = found.memory.begin_of(offset, length);
        begin.ok_or_else(|| beside(offset, length, found.memory.octets() as u64))?;
        let (mut crc32c, mut at) = (0, offset);
        let end = offset + length;
        while at < end {
            let octets = self.get(region, at, (end - at).min(MOST_OCTETS as u64))?;
            crc32c = weft_core::crc::append(crc32c, &octets);
            at += octets.len() as u64;
        }
        Ok(Done::Hash { crc32c })
    }

    /// Destroys an object. If the device refuses, returns the object and the reason.
    fn destroy(&mut self, thing: Thing) -> Result<(), (Thing, Failure)> {
        // SAFETY: the library created each object, and no table has it any more.
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
                Thing::Shared { queue, .. } => {
                    router().gone(queue.addr());
                    check("ibv_destroy_srq", (self.lib.ibv_destroy_srq)(*queue))
                }
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
        // Objects that use others come first: connections, listeners, queues, windows, regions,
        // domains.
        let rank = |thing: &Thing| match thing {
            Thing::Connection(_) | Thing::Listener(_) => 0,
            Thing::Shared { .. } | Thing::Window { .. } => 1,
            Thing::Region(_) => 2,
            Thing::Domain(_) => 3,
        };
        let mut things: Vec<Thing> = std::mem::take(&mut self.things).into_values().collect();
        things.sort_by_key(rank);
        for thing in things {
            // If the device does not release the memory, it may still write to it.
            if let Err((thing, _)) = self.destroy(thing) {
                core::mem::forget(thing);
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
