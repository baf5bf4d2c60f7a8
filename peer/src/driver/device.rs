//! An RNIC in real time. Its streams are TCP connections. One task drives each stream. Functions
//! that wait for the RNIC are async.
//!
//! Clones of a [`Device`] share one RNIC. Most verbs are called through [`verbs`](Device::verbs). A
//! verb that can cause a stream to send bytes has its own method. [`post_send`](Device::post_send)
//! writes at once from registered memory to TCP. The stream's task sends all other bytes, for
//! example the bytes that TCP did not accept. One lock guards the RNIC. A write also holds this
//! lock.
//!
//! A task that waits for completions of a CQ from [`create_cq`](Device::create_cq) is woken only by
//! completions of that CQ.

mod drive;
mod polling;
mod state;
mod waiters;

use std::future::poll_fn;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;

use tokio::net::TcpStream;

pub use self::polling::BusyPoll;
use self::polling::PollPermits;
use self::state::{Driven, SendResult, State, WaitEvent};
use self::waiters::{Ticket, Waiters};
use super::clock::Clock;
use super::stream::{Opener, Stream};
use super::traffic_log::TrafficLog;
use crate::hostile::mangle::Mangling;
use crate::verbs::{
    CompletionHandlerId, CqError, CqHandle, HandlerAddress, HandlerOperation, LlpHandle, LlpSettings, NotifyKind,
    PostError, QpAllocated, QpError, QpHandle, QpModify, QpState, ReceiveWr, Rnic, SendWr, SrqHandle, WorkCompletion,
};

/// The completion event handler of CQs from [`Device::create_cq`].
const HANDLER: HandlerAddress = HandlerAddress(u64::MAX);

/// An RNIC in real time. Use it in a tokio runtime.
#[derive(Debug, Clone)]
pub struct Device(Arc<Inner>);

/// How a [`Device`] drives its RNIC.
#[derive(Debug, Clone, Default)]
pub struct DeviceSettings {
    /// Records all connections, including start-up. Recording copies every byte. Default: nothing
    /// is recorded.
    pub traffic: Option<TrafficLog>,
    /// How a connection's task waits while it has nothing to do. Default adaptive.
    pub busy_poll: BusyPoll,
    /// Mangles the bytes that all connections send, including start-up. The mangler numbers the
    /// connections from 0. Default: no mangling.
    pub mangling: Option<Mangling>,
}

#[derive(Debug)]
struct Inner {
    state: Mutex<State>,
    handler: Option<CompletionHandlerId>,
    clock: Clock,
    settings: DeviceSettings,
    connections: AtomicU32,
    permits: PollPermits,
}

impl Device {
    /// Takes over an open RNIC, with default settings.
    #[must_use]
    pub fn new(rnic: Rnic) -> Self {
        Device::with(rnic, DeviceSettings::default())
    }

    /// Takes over an open RNIC.
    #[must_use]
    pub fn with(mut rnic: Rnic, settings: DeviceSettings) -> Self {
        let handler = rnic.set_completion_event_handler(HandlerOperation::Register(HANDLER)).ok();
        Device(Arc::new(Inner {
            state: Mutex::new(State::new(rnic)),
            handler,
            clock: Clock::start(),
            permits: PollPermits::new(settings.busy_poll),
            settings,
            connections: AtomicU32::new(0),
        }))
    }

    /// Calls verbs that send nothing. Do not block inside `call`: all streams wait until it
    /// returns.
    pub fn verbs<R>(&self, call: impl FnOnce(&mut Rnic) -> R) -> R {
        call(&mut self.lock().rnic)
    }

    /// Performs the verb Create CQ. A task that waits in [`completion`](Self::completion) for this
    /// CQ is not woken by completions of other CQs.
    ///
    /// # Errors
    /// The same errors as [`Rnic::create_cq`].
    pub fn create_cq(&self, entries: u32) -> Result<CqHandle, CqError> {
        let mut state = self.lock();
        let (cq, _) = state.rnic.create_cq(entries, self.0.handler)?;
        state.cqs.insert(cq, Waiters::default());
        Ok(cq)
    }

    /// Performs the verb Destroy CQ. A task that waits for a completion of this CQ gets an error.
    ///
    /// # Errors
    /// The same errors as [`Rnic::destroy_cq`].
    pub fn destroy_cq(&self, cq: CqHandle) -> Result<(), CqError> {
        let mut state = self.lock();
        state.rnic.destroy_cq(cq)?;
        state.cqs.remove(&cq).iter_mut().for_each(Waiters::wake);
        Ok(())
    }

    /// Performs the verb PostSQ. Before this function returns, it writes to TCP the bytes that TCP
    /// accepts at once.
    ///
    /// # Errors
    /// The same errors as [`Rnic::post_send`].
    pub fn post_send(&self, qp: QpHandle, list: impl IntoIterator<Item = SendWr>) -> Result<usize, PostError> {
        let now = self.0.clock.now();
        let mut state = self.lock();
        let posted = state.rnic.post_send(qp, list);
        if let Some(llp) = state.rnic.stream_of(qp)
            && (state.transmit(now, llp) != SendResult::Idle || state.has_delayed_output(llp))
        {
            // The stream's task does the remaining work: it waits until TCP accepts more bytes, or
            // it ends the connection.
            state.wake(qp);
        }
        state.notify(Some(qp));
        posted
    }

    /// Performs the verb PostRQ on a Queue Pair. If a message waits for a receive, the stream
    /// continues to read.
    ///
    /// # Errors
    /// The same errors as [`Rnic::post_receive`].
    pub fn post_receive(&self, qp: QpHandle, list: impl IntoIterator<Item = ReceiveWr>) -> Result<usize, PostError> {
        let mut state = self.lock();
        let posted = state.rnic.post_receive(qp, list);
        if state.rnic.stream_of(qp).is_some_and(|llp| !state.rnic.wants_octets(llp)) {
            state.wake(qp);
        }
        posted
    }

    /// Performs the verb PostRQ on an S-RQ. If a message on a stream waits for a receive, this
    /// stream continues to read.
    ///
    /// # Errors
    /// The same errors as [`Rnic::post_srq`].
    pub fn post_srq(&self, srq: SrqHandle, list: impl IntoIterator<Item = ReceiveWr>) -> Result<usize, PostError> {
        let mut state = self.lock();
        let posted = state.rnic.post_srq(srq, list);
        state.streams.values().for_each(Driven::wake);
        posted
    }

    /// Performs the verb Modify QP.
    ///
    /// # Errors
    /// The same errors as [`Rnic::modify_qp`].
    pub fn modify_qp(&self, qp: QpHandle, modify: &QpModify) -> Result<QpAllocated, QpError> {
        let mut state = self.lock();
        // Wake both the stream that the Queue Pair leaves and the stream that the Queue Pair joins.
        state.wake(qp);
        let modified = state.rnic.modify_qp(self.0.clock.now(), qp, modify);
        state.wake(qp);
        state.notify(Some(qp));
        modified
    }

    /// Performs the verb Destroy QP. An open connection is reset.
    ///
    /// # Errors
    /// The same errors as [`Rnic::destroy_qp`].
    pub fn destroy_qp(&self, qp: QpHandle) -> Result<(), QpError> {
        let mut state = self.lock();
        state.wake(qp);
        let destroyed = state.rnic.destroy_qp(qp);
        state.notify(Some(qp));
        destroyed
    }

    /// Waits for the next completion of a CQ.
    ///
    /// # Errors
    /// The same errors as [`Rnic::poll_cq`], except `Empty`.
    pub async fn completion(&self, cq: CqHandle) -> Result<WorkCompletion, CqError> {
        self.until(WaitEvent::Cq(cq), |rnic| match rnic.poll_cq(cq) {
            Err(CqError::Empty) => {
                // The CQ exists: it was polled just now.
                let _ = rnic.request_completion_notification(cq, NotifyKind::NextCompletion);
                None
            }
            result => Some(result),
        })
        .await
    }

    /// Waits until the Queue Pair's connection is over. Returns the Queue Pair's state, usually
    /// Idle or Error.
    ///
    /// # Errors
    /// The same errors as [`Rnic::query_qp`].
    pub async fn ended(&self, qp: QpHandle) -> Result<QpState, QpError> {
        self.until(WaitEvent::Qp(qp), |rnic| match rnic.query_qp(qp).map(|attributes| attributes.state) {
            Ok(QpState::Rts | QpState::Closing | QpState::Terminate) => None,
            result => Some(result),
        })
        .await
    }

    /// Waits until the Queue Pair is in `state`.
    ///
    /// # Errors
    /// The same errors as [`Rnic::query_qp`].
    pub async fn state_is(&self, qp: QpHandle, state: QpState) -> Result<(), QpError> {
        self.until(WaitEvent::Qp(qp), |rnic| match rnic.query_qp(qp) {
            Ok(attributes) if attributes.state != state => None,
            result => Some(result.map(|_| ())),
        })
        .await
    }

    /// Calls `ready` now, and then each time that `event` has possibly happened, until `ready`
    /// returns a result.
    async fn until<R>(&self, event: WaitEvent, mut ready: impl FnMut(&mut Rnic) -> Option<R>) -> R {
        let mut waiting = Waiting { device: self, event, ticket: None };
        poll_fn(|cx| {
            let mut state = self.lock();
            if let Some(ticket) = waiting.ticket.take() {
                state.leave(event, ticket);
            }
            match ready(&mut state.rnic) {
                Some(result) => Poll::Ready(result),
                None => {
                    waiting.ticket = Some(state.join(event, cx.waker()));
                    Poll::Pending
                }
            }
        })
        .await
    }

    /// Returns whether `self` and `other` are handles of the same RNIC.
    pub(super) fn is(&self, other: &Device) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }

    /// Returns the clock of all streams of this device.
    pub(super) fn clock(&self) -> Clock {
        self.0.clock
    }

    /// Takes over a TCP connection before MPA start-up.
    pub(super) fn stream_of(&self, tcp: TcpStream, by: Opener) -> io::Result<Stream> {
        let number = self.0.connections.fetch_add(1, Ordering::Relaxed);
        let settings = &self.0.settings;
        let mangler = settings.mangling.as_ref().map(|mangling| mangling.mangler(number.into()));
        Stream::new(tcp, settings.traffic.as_ref(), mangler, self.0.clock, by)
    }

    /// Connects a stream, after MPA start-up, to a Queue Pair, and starts the task that drives the
    /// stream.
    pub(super) fn join(
        &self,
        stream: Stream,
        settings: LlpSettings,
        qp: QpHandle,
        modify: impl FnOnce(LlpHandle) -> QpModify,
    ) -> Result<(), QpError> {
        let stream = Arc::new(stream);
        let llp = {
            let mut state = self.lock();
            let llp = state.rnic.attach_stream(settings)?;
            state.streams.insert(llp, Driven::new(Arc::clone(&stream), qp));
            llp
        };
        if let Err(error) = self.modify_qp(qp, &modify(llp)) {
            self.leave(llp);
            return Err(error);
        }
        let device = self.clone();
        tokio::spawn(async move {
            drive::drive(&device, stream, llp).await;
            device.leave(llp);
        });
        Ok(())
    }

    fn leave(&self, llp: LlpHandle) {
        let mut state = self.lock();
        let qp = state.streams.remove(&llp).map(|driven| driven.qp);
        state.rnic.detach_stream(self.0.clock.now(), llp);
        state.notify(qp);
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // If a task panicked while it held the lock, the state is still consistent. No code here
        // waits or calls a callback in the middle of a change.
        self.0.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A task's registration as a waiter. Dropping this value ends the registration.
struct Waiting<'a> {
    device: &'a Device,
    event: WaitEvent,
    ticket: Option<Ticket>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        if let Some(ticket) = self.ticket {
            self.device.lock().leave(self.event, ticket);
        }
    }
}

/// Returns an unpredictable number, for
/// [`MemorySettings::stag_seed`](crate::memory::MemorySettings::stag_seed).
#[must_use]
pub fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // The hasher's keys come from the operating system's random number generator.
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}
