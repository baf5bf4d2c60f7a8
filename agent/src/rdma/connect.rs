//! Creates, uses and destroys connections and listeners. Each connection and each listener has an
//! identifier of librdmacm.

use core::ffi::{c_int, c_void};
use core::ptr;
use core::time::Duration;
use std::io;
use std::os::fd::BorrowedFd;
use std::time::Instant;

use libc::sockaddr;
use rustix::event::{PollFd, PollFlags, poll};

use super::abi::{CmEvent, CmId, ConnParam, PORT_SPACE_TCP, QUEUE_PAIR_RC, QpCap, QpInitAttr};
use super::device::device_name;
use super::names;
use super::nic::{Connection, DeviceObject, Nic, check, not_null};
use super::route::router;
use super::socket_address::socket_address;
use crate::common::{
    NO_ROOM, NO_ROOM_STATUS, cq_entries, no_pair, not_found, pair_exists, private_data, requests_nothing, require,
};
use crate::protocol::{Action, Address, Event, Failure, Object, Octets, Parameters, Success};

/// Time limit for librdmacm to resolve an address, and time limit to resolve a route.
const RESOLVED_WITHIN: Duration = Duration::from_secs(2);

/// Numbers of `enum rdma_cm_event_type`.
const ADDR_RESOLVED: c_int = 0;
const ROUTE_RESOLVED: c_int = 2;
const CONNECT_REQUEST: c_int = 4;
const REJECTED: c_int = 8;
const ESTABLISHED: c_int = 9;
const DISCONNECTED: c_int = 10;
const TIMEWAIT_EXIT: c_int = 15;

/// An event of librdmacm, copied and acknowledged.
struct ConnectionEvent {
    id: *mut CmId,
    /// Number of the object that the event concerns. For a connection request, this is the number
    /// of the listener.
    object: Object,
    kind: c_int,
    status: i32,
    private_data: Octets,
    ird: u8,
    ord: u8,
}

impl Nic {
    /// Creates an identifier. The identifier is in no table yet, and its context is 0.
    fn create_id(&mut self) -> Result<*mut CmId, Failure> {
        let mut id = ptr::null_mut();
        // SAFETY: the channel exists as long as the device.
        let result = unsafe { (self.lib.rdma_create_id)(self.channel, &raw mut id, ptr::null_mut(), PORT_SPACE_TCP) };
        check("rdma_create_id", result).map(|()| id)
    }

    /// Stores an object that has an identifier. Events of the identifier then contain the object's
    /// number.
    fn insert_with_id(&mut self, id: *mut CmId, device_object: DeviceObject) -> Result<Object, Failure> {
        let object = self.insert_object(device_object)?;
        // SAFETY: the object is stored, so its identifier exists. The context is a number, not a
        // pointer.
        unsafe { (*id).context = ptr::without_provenance_mut(object as usize) };
        Ok(object)
    }

    /// Returns the device that has an address.
    pub(super) fn find_device_by_address(&mut self, address: &Address) -> Option<*mut super::abi::Context> {
        let mut socket = socket_address(address.at(0).ok()?);
        let id = self.create_id().ok()?;
        // SAFETY: the socket address has the length of its family. The identifier is destroyed
        // below.
        let bound = unsafe { (self.lib.rdma_bind_addr)(id, (&raw mut socket).cast::<sockaddr>()) };
        // SAFETY: the library created the identifier.
        let context = unsafe { (*id).verbs };
        // SAFETY: no table has the identifier.
        unsafe { (self.lib.rdma_destroy_id)(id) };
        (bound == 0 && !context.is_null()).then_some(context)
    }

    pub(super) fn listen(&mut self, address: &Address, port: u16, backlog: u32) -> Result<Success, Failure> {
        let mut socket = socket_address(address.at(port)?);
        let id = self.create_id()?;
        // SAFETY: the socket address has the length of its family.
        let bound = unsafe { (self.lib.rdma_bind_addr)(id, (&raw mut socket).cast::<sockaddr>()) };
        let listens = check("rdma_bind_addr", bound).and_then(|()| {
            let backlog = c_int::try_from(backlog).unwrap_or(c_int::MAX);
            // SAFETY: the identifier is bound.
            check("rdma_listen", unsafe { (self.lib.rdma_listen)(id, backlog) })
        });
        if let Err(failure) = listens {
            // SAFETY: no table has the identifier.
            unsafe { (self.lib.rdma_destroy_id)(id) };
            return Err(failure);
        }
        // SAFETY: the identifier is bound.
        let port = u16::from_be(unsafe { (self.lib.rdma_get_src_port)(id) });
        self.insert_with_id(id, DeviceObject::Listener(id)).map(|listener| Success::Listener { listener, port })
    }

    pub(super) fn resolve(&mut self, address: &Address, port: u16) -> Result<Success, Failure> {
        let mut socket = socket_address(address.at(port)?);
        let id = self.create_id()?;
        let within = c_int::try_from(RESOLVED_WITHIN.as_millis()).unwrap_or(c_int::MAX);
        // SAFETY: the socket address has the length of its family. The source address is optional.
        let begun =
            unsafe { (self.lib.rdma_resolve_addr)(id, ptr::null_mut(), (&raw mut socket).cast::<sockaddr>(), within) };
        let resolved =
            check("rdma_resolve_addr", begun).and_then(|()| self.wait_for_event(id, ADDR_RESOLVED)).and_then(|()| {
                // SAFETY: the address of the identifier is resolved.
                check("rdma_resolve_route", unsafe { (self.lib.rdma_resolve_route)(id, within) })?;
                self.wait_for_event(id, ROUTE_RESOLVED)
            });
        if let Err(failure) = resolved {
            // SAFETY: no table has the identifier.
            unsafe { (self.lib.rdma_destroy_id)(id) };
            return Err(failure);
        }
        self.insert_with_id(id, DeviceObject::Connection(Connection::new(id, false)))
            .map(|connection| Success::Connection { connection })
    }

    /// Waits for the `wanted` event of an identifier that is in no table yet. Fails if the
    /// identifier has any other event. Stores the events of other identifiers for later.
    fn wait_for_event(&mut self, id: *mut CmId, wanted: c_int) -> Result<(), Failure> {
        let until = Instant::now() + 2 * RESOLVED_WITHIN;
        loop {
            while let Some(received) = self.next_connection_event() {
                if received.id != id {
                    let event = self.convert_event(received);
                    self.early.extend(event);
                } else if received.kind == wanted {
                    return Ok(());
                } else {
                    let (kind, errno) = (names::cm_event(received.kind), received.status.abs());
                    let error = io::Error::from_raw_os_error(errno);
                    return Err(Failure { what: format!("{kind}: {error}"), errno: Some(errno) });
                }
            }
            let left = until.saturating_duration_since(Instant::now());
            if left.is_zero() {
                return Err(Failure::of(format!(
                    "librdmacm did not report {} within {} s",
                    names::cm_event(wanted),
                    2 * RESOLVED_WITHIN.as_secs()
                )));
            }
            // SAFETY: the descriptor is open as long as the device is.
            let fd = unsafe { BorrowedFd::borrow_raw((*self.channel).fd) };
            let left = left.try_into().map_err(|_| Failure::of("the time limit is out of range"))?;
            match poll(&mut [PollFd::new(&fd, PollFlags::IN)], Some(&left)) {
                // A signal also ends a wait.
                Ok(_) | Err(rustix::io::Errno::INTR) => {}
                Err(why) => return Err(Failure::of(format!("cannot wait for an event of librdmacm: {why}"))),
            }
        }
    }

    pub(super) fn find_connection(&mut self, connection: Object) -> Result<&mut Connection, Failure> {
        match self.objects.get_mut(&connection) {
            Some(DeviceObject::Connection(connection)) => Ok(connection),
            _ => Err(not_found(connection, "connection")),
        }
    }

    pub(super) fn pair(&mut self, action: &Action) -> Result<Success, Failure> {
        let Action::Pair { connection: object, domain, shared, depth, parts, inline, solicited } = *action else {
            return Err(Failure::of("the request is not `pair`"));
        };
        let domain = self.find_domain(domain)?;
        let srq = shared.map_or(Ok(ptr::null_mut()), |shared| self.find_shared(shared))?;
        let (id, cq) = {
            let connection = self.find_connection(object)?;
            (connection.id, connection.cq)
        };
        require(cq.is_null(), || pair_exists(object))?;
        // SAFETY: the identifier is in the table, and bound to a device.
        let of = unsafe { (*id).verbs };
        if of != self.context {
            return Err(Failure::of(format!(
                "connection {object} uses the device {}, not the device of this control connection",
                device_name(of)
            )));
        }
        let cq_entries = c_int::try_from(cq_entries(depth, !srq.is_null())).unwrap_or(c_int::MAX);
        // SAFETY: the device is open, and has this completion channel. The context is a number, not
        // a pointer.
        let cq = unsafe {
            (self.lib.ibv_create_cq)(
                (*id).verbs,
                cq_entries,
                ptr::without_provenance_mut(object as usize),
                self.completions,
                0,
            )
        };
        let cq = not_null("ibv_create_cq", cq)?;
        let mut attributes = QpInitAttr {
            qp_context: ptr::without_provenance_mut(object as usize),
            send_cq: cq,
            recv_cq: cq,
            srq,
            cap: QpCap {
                max_send_wr: depth,
                max_recv_wr: if srq.is_null() { depth } else { 0 },
                max_send_sge: parts,
                max_recv_sge: if srq.is_null() { parts } else { 0 },
                max_inline_data: inline,
            },
            qp_type: QUEUE_PAIR_RC,
            sq_sig_all: 0,
        };
        // SAFETY: all objects belong to one device.
        let created = check("rdma_create_qp", unsafe { (self.lib.rdma_create_qp)(id, domain, &raw mut attributes) });
        // SAFETY: the identifier is in the table, so it exists. If it has no Queue Pair, the
        // pointer is null.
        let qp = unsafe { (*id).qp };
        if created.is_ok() {
            self.register_queue(qp.addr(), Some(object));
            self.register_queue(cq.addr(), Some(object));
        }
        let armed = created.and_then(|()| self.arm(cq, false));
        if let Err(failure) = armed {
            unregister(qp.addr(), cq.addr());
            // SAFETY: the Queue Pair, if any, was created just now. It is destroyed before its
            // completion queue.
            unsafe {
                if !qp.is_null() {
                    (self.lib.rdma_destroy_qp)(id);
                }
                (self.lib.ibv_destroy_cq)(cq);
            }
            return Err(failure);
        }
        // The library can provide more than was requested.
        let cap = &attributes.cap;
        let connection = self.find_connection(object)?;
        connection.cq = cq;
        connection.parts = (cap.max_send_sge.max(parts), cap.max_recv_sge.max(parts));
        connection.solicited = solicited;
        connection.inline = cap.max_inline_data.max(inline);
        Ok(Success::Nothing)
    }

    fn with_parameters(
        &mut self,
        parameters: &Parameters,
        what: &str,
        call: impl Fn(&Self, *mut CmId, *mut ConnParam) -> c_int,
    ) -> Result<Success, Failure> {
        let (octets, length) = private_data(&parameters.private_data)?;
        let mut param = ConnParam {
            private_data: octets.as_ptr().cast::<c_void>(),
            private_data_len: length,
            responder_resources: parameters.ird,
            initiator_depth: parameters.ord,
            flow_control: 0,
            retry_count: 0,
            rnr_retry_count: 0,
            srq: 0,
            qp_num: 0,
        };
        let id = {
            let connection = self.find_connection(parameters.connection)?;
            require(!connection.cq.is_null(), || no_pair(parameters.connection))?;
            connection.id
        };
        check(what, call(self, id, &raw mut param))?;
        // If the call failed, this line is not reached: the peer's request still waits for an
        // answer.
        self.find_connection(parameters.connection)?.undecided = false;
        Ok(Success::Nothing)
    }

    pub(super) fn connect(&mut self, parameters: &Parameters) -> Result<Success, Failure> {
        self.with_parameters(parameters, "rdma_connect", |nic, id, param| {
            // SAFETY: the identifier has a Queue Pair. The library copies the private data.
            unsafe { (nic.lib.rdma_connect)(id, param) }
        })
    }

    pub(super) fn accept(&mut self, parameters: &Parameters) -> Result<Success, Failure> {
        self.with_parameters(parameters, "rdma_accept", |nic, id, param| {
            // SAFETY: the identifier has a Queue Pair. The library copies the private data.
            unsafe { (nic.lib.rdma_accept)(id, param) }
        })
    }

    pub(super) fn reject(&mut self, connection: Object, data: &Octets) -> Result<Success, Failure> {
        let (octets, length) = private_data(data)?;
        let requested = self.find_connection(connection)?;
        require(requested.undecided, || requests_nothing(connection))?;
        let id = requested.id;
        let octets = octets.as_ptr().cast::<c_void>();
        // SAFETY: the peer's request is not answered yet.
        check("rdma_reject", unsafe { (self.lib.rdma_reject)(id, octets, length) })?;
        self.find_connection(connection)?.undecided = false;
        Ok(Success::Nothing)
    }

    pub(super) fn disconnect(&mut self, connection: Object) -> Result<Success, Failure> {
        let id = self.find_connection(connection)?.id;
        // SAFETY: the identifier is in the table, so it exists.
        check("rdma_disconnect", unsafe { (self.lib.rdma_disconnect)(id) }).map(|()| Success::Nothing)
    }

    pub(super) fn destroy_connection(&mut self, connection: &Connection) -> Result<(), Failure> {
        // SAFETY: the identifier exists, because only the code below destroys it. If it has no
        // Queue Pair, the pointer is null.
        unregister(unsafe { (*connection.id).qp }.addr(), connection.cq.addr());
        // SAFETY: no table has the identifier. Its Queue Pair is destroyed before the completion
        // queue that the Queue Pair used.
        unsafe {
            if !(*connection.id).qp.is_null() {
                (self.lib.rdma_destroy_qp)(connection.id);
            }
            if !connection.cq.is_null() {
                check("ibv_destroy_cq", (self.lib.ibv_destroy_cq)(connection.cq))?;
            }
            check("rdma_destroy_id", (self.lib.rdma_destroy_id)(connection.id))
        }
    }

    pub(super) fn connection_events(&mut self, events: &mut Vec<Event>) {
        while let Some(received) = self.next_connection_event() {
            let event = self.convert_event(received);
            events.extend(event);
        }
    }

    fn next_connection_event(&mut self) -> Option<ConnectionEvent> {
        let mut event: *mut CmEvent = ptr::null_mut();
        // SAFETY: the channel does not block. The event is acknowledged below.
        let got = unsafe { (self.lib.rdma_get_cm_event)(self.channel, &raw mut event) };
        if got != 0 || event.is_null() {
            return None;
        }
        // SAFETY: the event exists until it is acknowledged, and its private data has the stated
        // length.
        let received = unsafe {
            let (conn, of) =
                (&(*event).conn, if (*event).kind_is_request() { (*event).listen_id } else { (*event).id });
            let private_data = match conn.private_data_len {
                length @ 1.. if !conn.private_data.is_null() && (*event).is_about_a_connection() => {
                    std::slice::from_raw_parts(conn.private_data.cast::<u8>(), length.into()).to_vec()
                }
                _ => Vec::new(),
            };
            ConnectionEvent {
                id: (*event).id,
                object: u32::try_from((*of).context.addr()).unwrap_or(0),
                kind: (*event).event,
                status: (*event).status,
                private_data: Octets(private_data),
                ird: conn.responder_resources,
                ord: conn.initiator_depth,
            }
        };
        // SAFETY: the event came from this channel, and is not used after this call.
        unsafe { (self.lib.rdma_ack_cm_event)(event) };
        Some(received)
    }

    fn convert_event(&mut self, received: ConnectionEvent) -> Option<Event> {
        let ConnectionEvent { id, object, kind, status, private_data, ird, ord } = received;
        match kind {
            CONNECT_REQUEST => {
                // librdmacm reports the values of this side: `responder_resources` is the number of
                // RDMA Reads that the peer may send. Our event reports the values of the peer.
                let (ird, ord) = (ord, ird);
                match self.insert_with_id(id, DeviceObject::Connection(Connection::new(id, true))) {
                    Ok(connection) => Some(Event::Request { listener: object, connection, private_data, ird, ord }),
                    // If the identifier of a request is destroyed without an answer, librdmacm
                    // rejects the request.
                    Err(_) => {
                        Some(Event::Failed { connection: object, kind: NO_ROOM.to_owned(), status: NO_ROOM_STATUS })
                    }
                }
            }
            ESTABLISHED => Some(Event::Established { connection: object, private_data, ird, ord }),
            REJECTED => Some(Event::Rejected { connection: object, status: status.abs(), private_data }),
            DISCONNECTED => Some(Event::Disconnected { connection: object }),
            TIMEWAIT_EXIT => None,
            _ => Some(Event::Failed { connection: object, kind: names::cm_event(kind), status: status.abs() }),
        }
    }
}

impl CmEvent {
    fn kind_is_request(&self) -> bool {
        self.event == CONNECT_REQUEST
    }

    /// Returns whether the event has the parameters of a connection.
    fn is_about_a_connection(&self) -> bool {
        matches!(self.event, CONNECT_REQUEST | REJECTED | ESTABLISHED | 5 | 6 | 7)
    }
}

/// Removes a Queue Pair and its completion queue from the router. The router then drops their later
/// events.
fn unregister(qp: usize, cq: usize) {
    let mut router = router();
    router.unregister(qp);
    router.unregister(cq);
}
