//! The software RNIC in the place of a device: requests are executed in process, and time is handed
//! in.
//!
//! [`Soft`] is what one control connection has. It opens no socket: the owner of a stream calls
//! [`Soft::arrive`] for the end to drive. [`OnSockets`] is that with sockets: an agent like any
//! other, without a device.
//!
//! | file | what |
//! | --- | --- |
//! | `objects` | domains, regions, windows, shared receive queues |
//! | `end` | connections: requests about them |
//! | `happen` | connections: what happens to them |
//! | `stream` | the end of a stream, for who drives it |
//! | `work` | work requests, and what comes of them |
//! | `sockets`, `socket` | this host's TCP for it |
//! | `names` | what libibverbs calls things |
//!
//! What is left out: windows of type 1, which the verbs of iWARP do not have.

mod end;
mod happen;
mod names;
mod objects;
mod socket;
mod sockets;
mod stream;
mod work;

use std::collections::{BTreeMap, VecDeque};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_peer::memory::{Buffer, MemorySettings, PdId, Stag, StagIndex};
use weft_peer::service::Served;
use weft_peer::verbs::{
    CompletionHandlerId, HandlerAddress, HandlerOperation, Node, Rnic, RnicError, RnicSettings, SrqHandle,
};
use weft_peer::{Instant, Settings};

pub use self::sockets::OnSockets;

use self::end::{End, Pair};
use self::stream::SoftEnd;
use crate::Limits;
use crate::common::hello_again;
use crate::protocol::{Action, Done, Event, Failure, Object};

/// The errno of a wrong argument.
const EINVAL: i32 = 22;

/// A software RNIC, and all that was made on it. Clones are the same one.
#[derive(Debug, Clone)]
pub struct Soft(Arc<Mutex<Inner>>);

#[derive(Debug)]
struct Inner {
    rnic: Rnic,
    /// The handler of armed completion queues.
    handler: CompletionHandlerId,
    /// Settings of MPA, and the deviations.
    settings: Settings,
    things: BTreeMap<Object, Thing>,
    ends: BTreeMap<Object, End>,
    /// Queue Pairs of ended connections, which bound windows keep alive.
    kept: Vec<Pair>,
    /// Those that have to connect, and have no stream yet.
    connecting: VecDeque<Object>,
    events: VecDeque<(Instant, Event)>,
    limits: Limits,
    last: Object,
    /// What was handed in last.
    now: Instant,
    /// The process would be gone by now.
    exited: bool,
}

#[derive(Debug)]
enum Thing {
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
    /// Address of its first byte.
    address: u64,
    octets: u64,
}

impl Soft {
    /// An RNIC of its own, whose connections have these settings, deviations among them.
    ///
    /// # Errors
    /// There is no such RNIC.
    pub fn new(settings: Settings) -> Result<Self, RnicError> {
        Soft::limited(settings, Limits::NONE, MemorySettings::default())
    }

    /// The same for a tester that may take so much of it.
    ///
    /// # Errors
    /// There is no such RNIC.
    pub fn limited(settings: Settings, limits: Limits, memory: MemorySettings) -> Result<Self, RnicError> {
        const NAME: &str = "weft0";
        let (mut rnic, _) = Node::new([NAME]).open(NAME, RnicSettings { memory, ..RnicSettings::default() })?;
        rnic.deviate(settings.deviations.clone());
        // It has just been opened.
        let _ = rnic.set_async_event_handler(Some(HandlerAddress(0)));
        let handler = HandlerOperation::Register(HandlerAddress(0));
        let handler = rnic.set_completion_event_handler(handler).map_err(|_| RnicError::InsufficientResources)?;
        Ok(Soft(Arc::new(Mutex::new(Inner {
            rnic,
            handler,
            settings,
            things: BTreeMap::new(),
            ends: BTreeMap::new(),
            kept: Vec::new(),
            connecting: VecDeque::new(),
            events: VecDeque::new(),
            limits,
            last: 0,
            now: Instant::ORIGIN,
            exited: false,
        }))))
    }

    /// Executes a request. Its output for a stream goes out when that is driven next.
    ///
    /// # Errors
    /// It cannot be done, with the error of a device.
    pub fn perform(&self, now: Instant, action: Action) -> Result<Done, Failure> {
        let mut inner = self.lock();
        inner.now = now;
        let done = inner.perform(now, action);
        inner.collect(now);
        done
    }

    /// The oldest event that was not reported yet, with its time.
    pub fn next_event(&self) -> Option<(Instant, Event)> {
        self.lock().events.pop_front()
    }

    /// Is there something to report?
    #[must_use]
    pub fn has_event(&self) -> bool {
        !self.lock().events.is_empty()
    }

    /// A TCP connection is there: that of a connection that has to connect, or one to a listener.
    /// `None`: nobody wants it.
    #[must_use]
    pub fn arrive(&self, now: Instant) -> Option<Box<dyn Served>> {
        let object = self.lock().arrive(now)?;
        Some(Box::new(SoftEnd { soft: self.clone(), object }))
    }

    /// The same for one to a certain listener, with this segment size in octets.
    fn arrive_at(&self, now: Instant, listener: Object, emss: u32) -> Option<SoftEnd> {
        let mut inner = self.lock();
        let object = inner.arrive_at(now, listener)?;
        inner.set_emss(object, emss);
        Some(SoftEnd { soft: self.clone(), object })
    }

    /// May one more connection arrive?
    fn has_room(&self) -> bool {
        let inner = self.lock();
        inner.limits.room(inner.ends.len()).is_ok()
    }

    /// The end of a connection that has to connect; its stream may not be there yet.
    fn connecting(&self, object: Object) -> Option<SoftEnd> {
        let mut inner = self.lock();
        inner.connecting.retain(|connecting| *connecting != object);
        inner.ends.contains_key(&object).then(|| SoftEnd { soft: self.clone(), object })
    }

    fn lock(&self) -> MutexGuard<'_, Inner> {
        // A verb that panicked left complete objects.
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Inner {
    fn perform(&mut self, now: Instant, action: Action) -> Result<Done, Failure> {
        if self.exited {
            return Err(Failure::of("the process has ended"));
        }
        match action {
            Action::Hello { .. } => Err(hello_again()),
            Action::Device => self.device(),
            Action::Listen { port, .. } => {
                self.limits.room(self.things.len())?;
                let listener = self.keep(Thing::Listener);
                Ok(Done::Listener { listener, port })
            }
            Action::Resolve { .. } => {
                self.limits.room(self.things.len())?;
                let connection = self.keep(Thing::Connection);
                self.ends.insert(connection, End::resolved());
                Ok(Done::Connection { connection })
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
                let objects: Vec<Object> = self.ends.keys().copied().collect();
                objects.into_iter().for_each(|object| self.forget(object));
                Ok(Done::Nothing)
            }
        }
    }

    /// Gives a connection's queues back, or as soon as no window is bound to them; whether that is
    /// now.
    fn give_back(&mut self, pair: Pair) -> bool {
        let given = self.rnic.destroy_qp(pair.qp).is_ok();
        if given {
            // Only that Queue Pair used it.
            let _ = self.rnic.destroy_cq(pair.cq);
        } else {
            self.kept.push(pair);
        }
        given
    }

    /// Puts a thing into the table.
    fn keep(&mut self, thing: Thing) -> Object {
        let object = self.number();
        self.things.insert(object, thing);
        object
    }

    fn set_emss(&mut self, object: Object, emss: u32) {
        if let Some(end) = self.ends.get_mut(&object) {
            end.emss = Some(emss);
        }
    }

    fn number(&mut self) -> Object {
        self.last += 1;
        self.last
    }
}

/// What a driver would have refused.
#[expect(clippy::needless_pass_by_value, reason = "`map_err` hands errors over")]
fn invalid(why: impl ToString) -> Failure {
    Failure { what: why.to_string(), errno: Some(EINVAL) }
}
