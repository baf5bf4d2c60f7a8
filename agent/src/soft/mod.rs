//! The software RNIC instead of a device. It executes requests in this process, and its caller
//! supplies the time.
//!
//! [`SoftDevice`] serves one control connection. It opens no socket: the owner of a stream calls
//! [`SoftDevice::accept_stream`], and drives the endpoint that this call returns. [`SoftAgent`]
//! adds sockets. The result is a complete agent without a hardware device.
//!
//! | file | content |
//! | --- | --- |
//! | `objects` | domains, regions, windows, shared receive queues |
//! | `connection` | connections: their state, and requests about them |
//! | `connection_events` | connections: events on their streams |
//! | `stream` | the endpoint of a stream, for its driver |
//! | `work` | work requests, completions and asynchronous events |
//! | `sockets`, `socket` | TCP connections of this host for the RNIC |
//! | `names` | names of statuses, operations and events in libibverbs |
//!
//! There are no windows of type 1, because the verbs of iWARP do not define them.

mod connection;
mod connection_events;
mod names;
mod objects;
mod socket;
mod sockets;
mod stream;
mod work;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_peer::memory::{Buffer, MemorySettings, PdId, Stag, StagIndex};
use weft_peer::service::DrivenConnection;
use weft_peer::verbs::{
    CompletionHandlerId, HandlerAddress, HandlerOperation, Node, Rnic, RnicError, RnicSettings, SrqHandle,
};
use weft_peer::{Instant, Settings};

pub use self::sockets::SoftAgent;

use self::connection::{Connection, Pair, State};
use self::stream::SoftConnection;
use crate::Limits;
use crate::common::repeated_hello;
use crate::protocol::{Action, Event, Failure, Object, Success};

/// errno for an invalid argument.
const EINVAL: i32 = 22;

/// A software RNIC with all objects that were created on it. Clones share the same RNIC.
#[derive(Debug, Clone)]
pub struct SoftDevice(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    rnic: Rnic,
    /// Handler for notifications of completion queues.
    handler: CompletionHandlerId,
    /// Settings of MPA, and the deviations.
    settings: Settings,
    objects: BTreeMap<Object, DeviceObject>,
    connections: BTreeMap<Object, Connection>,
    /// Queue Pairs of ended connections. They cannot be destroyed while windows are bound to them.
    bound_pairs: Vec<Pair>,
    /// Connections of this side that wait for a stream.
    connecting: VecDeque<Object>,
    events: VecDeque<(Instant, Event)>,
    limits: Limits,
    last: Object,
    /// The time that the caller supplied last.
    now: Instant,
    /// Whether a request has ended the simulated process.
    exited: bool,
}

#[derive(Debug)]
enum DeviceObject {
    Listener,
    Connection,
    Domain(PdId),
    Region(Region),
    Window { index: StagIndex, key: u8 },
    Shared(SrqHandle),
}

#[derive(Debug, Clone, Copy)]
struct Region {
    buffer: Buffer,
    stag: Stag,
    /// Tagged Offset of the region's first byte.
    address: u64,
    octets: u64,
}

impl SoftDevice {
    /// Returns a new RNIC. Its connections use `settings`, including the deviations.
    ///
    /// # Errors
    /// Fails if the RNIC cannot be created.
    pub fn new(settings: Settings) -> Result<Self, RnicError> {
        SoftDevice::with_limits(settings, Limits::NONE, MemorySettings::default())
    }

    /// Returns a new RNIC for a tester with these limits.
    ///
    /// # Errors
    /// Fails if the RNIC cannot be created.
    pub fn with_limits(settings: Settings, limits: Limits, memory: MemorySettings) -> Result<Self, RnicError> {
        const NAME: &str = "weft0";
        let (mut rnic, _) = Node::new([NAME]).open(NAME, RnicSettings { memory, ..RnicSettings::default() })?;
        rnic.deviate(settings.deviations.clone());
        // The RNIC is newly opened, so this cannot fail.
        let _ = rnic.set_async_event_handler(Some(HandlerAddress(0)));
        let handler = HandlerOperation::Register(HandlerAddress(0));
        let handler = rnic.set_completion_event_handler(handler).map_err(|_| RnicError::InsufficientResources)?;
        Ok(SoftDevice(Arc::new(Mutex::new(Inner {
            rnic,
            handler,
            settings,
            objects: BTreeMap::new(),
            connections: BTreeMap::new(),
            bound_pairs: Vec::new(),
            connecting: VecDeque::new(),
            events: VecDeque::new(),
            limits,
            last: 0,
            now: Instant::ORIGIN,
            exited: false,
        }))))
    }

    /// Executes a request. Output for a stream is sent when the stream is driven next.
    ///
    /// # Errors
    /// Fails if a hardware device would fail, with the same errno.
    pub fn perform(&self, now: Instant, action: Action) -> Result<Success, Failure> {
        let mut inner = self.lock();
        inner.now = now;
        let done = inner.perform(now, action);
        inner.collect(now);
        done
    }

    /// Removes and returns the oldest event that was not reported yet, with its time.
    pub fn next_event(&self) -> Option<(Instant, Event)> {
        self.lock().events.pop_front()
    }

    /// Returns whether an event waits to be reported.
    #[must_use]
    pub fn has_event(&self) -> bool {
        !self.lock().events.is_empty()
    }

    /// Assigns a new TCP connection to the oldest connection that waits for a stream. If no
    /// connection waits, assigns the TCP connection to the newest listener. Returns `None` if there
    /// is no waiting connection and no listener.
    #[must_use]
    pub fn accept_stream(&self, now: Instant) -> Option<Box<dyn DrivenConnection>> {
        let object = self.lock().accept_stream(now)?;
        Some(Box::new(SoftConnection { soft: self.clone(), object }))
    }

    /// Assigns a new TCP connection with this segment size in bytes to `listener`.
    fn accept_stream_at(&self, now: Instant, listener: Object, emss: u32) -> Option<SoftConnection> {
        let mut inner = self.lock();
        let object = inner.accept_stream_at(now, listener)?;
        inner.set_emss(object, emss);
        Some(SoftConnection { soft: self.clone(), object })
    }

    /// Returns whether the limit of objects allows one more connection.
    fn has_room(&self) -> bool {
        let inner = self.lock();
        inner.limits.check_objects(inner.connections.len()).is_ok()
    }

    /// Returns the endpoint of a connection that this side opens. The connection possibly has no
    /// stream yet.
    fn connecting(&self, object: Object) -> Option<SoftConnection> {
        let mut inner = self.lock();
        inner.connecting.retain(|connecting| *connecting != object);
        inner.connections.contains_key(&object).then(|| SoftConnection { soft: self.clone(), object })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // After a panic in a verb, all objects are still consistent.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn perform(&mut self, now: Instant, action: Action) -> Result<Success, Failure> {
        if self.exited {
            return Err(Failure::of("the agent has ended, because it received the request `exit`"));
        }
        match action {
            Action::Hello { .. } => Err(repeated_hello()),
            Action::Device => self.device(),
            Action::Listen { port, .. } => {
                self.limits.check_objects(self.objects.len())?;
                let listener = self.insert_object(DeviceObject::Listener);
                Ok(Success::Listener { listener, port })
            }
            Action::Resolve { .. } => {
                self.limits.check_objects(self.objects.len())?;
                let connection = self.insert_object(DeviceObject::Connection);
                self.connections.insert(connection, Connection::new(State::Resolved, 0, None));
                Ok(Success::Connection { connection })
            }
            Action::Domain => self.domain(),
            Action::Register { domain, octets, access } => self.register(domain, octets, &access),
            Action::Window { domain, .. } => self.window(domain),
            Action::Shared { domain, depth, parts } => self.shared(domain, depth, parts),
            Action::Limit { shared, receives } => self.limit(shared, receives),
            action @ Action::Pair { .. } => self.pair(&action),
            Action::Connect(parameters) => self.connect(now, &parameters),
            Action::Accept(parameters) => self.accept(now, &parameters),
            Action::Reject { connection, private_data } => self.reject(now, connection, &private_data),
            Action::Disconnect { connection } => self.disconnect(now, connection),
            Action::Destroy { object } => self.destroy(object),
            Action::PostReceive { on, work, parts } => self.post_receive(on, work, &parts),
            action @ Action::PostSend { .. } => self.post_send(action),
            Action::Put { region, offset, octets } => self.put(region, offset, &octets.0),
            Action::Get { region, offset, length } => self.get(region, offset, length),
            Action::Fill { region, offset, length, seed } => self.fill(region, offset, length, seed),
            Action::Hash { region, offset, length } => self.hash(region, offset, length),
            Action::Exit => {
                self.exited = true;
                let objects: Vec<Object> = self.connections.keys().copied().collect();
                objects.into_iter().for_each(|object| self.destroy_connection(object));
                Ok(Success::Nothing)
            }
        }
    }

    /// Destroys a Queue Pair and its completion queue. While a window is bound to the Queue Pair,
    /// keeps both. Returns whether both are destroyed.
    fn release_pair(&mut self, pair: Pair) -> bool {
        let released = self.rnic.destroy_qp(pair.qp).is_ok();
        if released {
            // No other Queue Pair used the completion queue.
            let _ = self.rnic.destroy_cq(pair.cq);
        } else {
            self.bound_pairs.push(pair);
        }
        released
    }

    /// Stores an object and returns its number.
    fn insert_object(&mut self, device_object: DeviceObject) -> Object {
        let object = self.number();
        self.objects.insert(object, device_object);
        object
    }

    fn set_emss(&mut self, object: Object, emss: u32) {
        if let Some(entry) = self.connections.get_mut(&object) {
            entry.emss = Some(emss);
        }
    }

    fn number(&mut self) -> Object {
        self.last += 1;
        self.last
    }
}

/// Returns the failure that a driver would report, with EINVAL.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` passes errors by value")]
fn invalid(why: impl ToString) -> Failure {
    Failure { what: why.to_string(), errno: Some(EINVAL) }
}
