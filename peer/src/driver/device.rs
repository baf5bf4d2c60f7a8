//! An RNIC that lives in real time: its streams are TCP connections that tasks drive, and waiting for it is async.
//!
//! A [`Device`] is shared by its clones. Verbs are called through [`verbs`](Device::verbs); those that give a stream something to
//! do have a method of their own, which writes to TCP at once and leaves to the stream's task only what TCP does not take. One
//! lock guards the RNIC: a write to TCP happens under it, straight from registered memory.
//!
//! Who waits for completions of a CQ that [`create_cq`](Device::create_cq) made is woken by completions of that CQ alone.

use std::collections::HashMap;
use std::io;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::sleep_until;

use super::stream::{Flushed, Opener, Stream};
use super::tape::Tape;
use super::tcp::Clock;
use crate::hostile::mangle::Mangling;
use crate::verbs::{
    CompletionHandlerId, CqError, CqHandle, HandlerAddress, HandlerOperation, LlpHandle, LlpSettings, Notification,
    NotifyKind, PostError, QpAllocated, QpError, QpHandle, QpModify, QpState, ReceiveWr, Rnic, SendWr, Sent, SrqHandle,
    WorkCompletion,
};

/// Octets that one read takes at most.
const READ_LEN: usize = 256 * 1024;
/// Octets that one turn with the lock sends, and at most one batch more.
const TURN: usize = 1 << 20;
/// Read buffers that are kept for the next read: they are in use only while octets are handled, so few are ever needed.
const KEPT_BUFFERS: usize = 4;
/// The completion event handler of a device's own CQs.
const HANDLER: HandlerAddress = HandlerAddress(u64::MAX);

/// An RNIC in real time. Use it in a tokio runtime.
#[derive(Debug, Clone)]
pub struct Device(Arc<Inner>);

/// How a [`Device`] drives its RNIC.
#[derive(Debug, Clone, Default)]
pub struct DeviceSettings {
    /// All connections are recorded here, start-up included; each octet is copied then. Default none.
    pub tape: Option<Tape>,
    /// A connection from which nothing more can be read is asked again for so long before its task sleeps: round trips without a
    /// wake-up, for a processor that does nothing else meanwhile. For few connections. Default 0.
    pub busy_poll: Duration,
    /// What is done to what all connections send, start-up included; the first has number 0. Default none.
    pub mangling: Option<Mangling>,
}

#[derive(Debug)]
struct Inner {
    rnic: Mutex<Rnic>,
    streams: Mutex<HashMap<LlpHandle, Arc<Stream>>>,
    /// Wakes who waits for completions of a CQ.
    cqs: Mutex<HashMap<CqHandle, Arc<Notify>>>,
    handler: Option<CompletionHandlerId>,
    /// Notifications that are not the device's own.
    notifications: Mutex<Vec<Notification>>,
    buffers: Mutex<Vec<Vec<u8>>>,
    /// Something happened: completions may be there, states may have changed.
    happened: Notify,
    clock: Clock,
    settings: DeviceSettings,
    connections: AtomicU32,
}

impl Device {
    /// Takes over an RNIC that was opened.
    #[must_use]
    pub fn new(rnic: Rnic) -> Self {
        Device::with(rnic, DeviceSettings::default())
    }

    /// Takes over an RNIC that was opened, and drives it so.
    #[must_use]
    pub fn with(mut rnic: Rnic, settings: DeviceSettings) -> Self {
        let handler = rnic.set_completion_event_handler(HandlerOperation::Register(HANDLER)).ok();
        Device(Arc::new(Inner {
            rnic: Mutex::new(rnic),
            streams: Mutex::default(),
            cqs: Mutex::default(),
            handler,
            notifications: Mutex::default(),
            buffers: Mutex::default(),
            happened: Notify::new(),
            clock: Clock::start(),
            settings,
            connections: AtomicU32::new(0),
        }))
    }

    /// Calls verbs that send nothing. Do not wait inside: all streams wait with it.
    pub fn verbs<R>(&self, call: impl FnOnce(&mut Rnic) -> R) -> R {
        call(&mut self.lock())
    }

    /// Create CQ, whose completions [`completion`](Self::completion) waits for without being woken by those of others.
    ///
    /// # Errors
    /// As [`Rnic::create_cq`].
    pub fn create_cq(&self, entries: u32) -> Result<CqHandle, CqError> {
        let (cq, _) = self.lock().create_cq(entries, self.0.handler)?;
        lock(&self.0.cqs).insert(cq, Arc::default());
        Ok(cq)
    }

    /// Destroy CQ.
    ///
    /// # Errors
    /// As [`Rnic::destroy_cq`].
    pub fn destroy_cq(&self, cq: CqHandle) -> Result<(), CqError> {
        self.lock().destroy_cq(cq)?;
        lock(&self.0.cqs).remove(&cq);
        Ok(())
    }

    /// PostSQ. What TCP takes goes out before it returns.
    ///
    /// # Errors
    /// As [`Rnic::post_send`].
    pub fn post_send(&self, qp: QpHandle, list: Vec<SendWr>) -> Result<usize, PostError> {
        let mut rnic = self.lock();
        let posted = rnic.post_send(qp, list);
        let llp = rnic.query_qp(qp).ok().and_then(|attributes| attributes.llp);
        if let Some((llp, stream)) = llp.and_then(|llp| Some((llp, self.stream(llp)?)))
            && (self.transmit(&mut rnic, &stream, llp) != After::Idle || stream.flush_timeout().is_some())
        {
            // Its task waits for TCP, or ends the connection.
            stream.wake.notify_one();
        }
        self.notify(&mut rnic);
        posted
    }

    /// PostRQ to a Queue Pair: a message that waits for a receive goes on.
    ///
    /// # Errors
    /// As [`Rnic::post_receive`].
    pub fn post_receive(&self, qp: QpHandle, list: Vec<ReceiveWr>) -> Result<usize, PostError> {
        let mut rnic = self.lock();
        let posted = rnic.post_receive(qp, list);
        let llp = rnic.query_qp(qp).ok().and_then(|attributes| attributes.llp);
        if let Some(llp) = llp.filter(|llp| !rnic.wants_octets(*llp))
            && let Some(stream) = self.stream(llp)
        {
            stream.wake.notify_one();
        }
        posted
    }

    /// PostRQ to an S-RQ: messages that wait for a receive go on.
    ///
    /// # Errors
    /// As [`Rnic::post_srq`].
    pub fn post_srq(&self, srq: SrqHandle, list: Vec<ReceiveWr>) -> Result<usize, PostError> {
        let posted = self.lock().post_srq(srq, list);
        lock(&self.0.streams).values().for_each(|stream| stream.wake.notify_one());
        posted
    }

    /// Modify QP.
    ///
    /// # Errors
    /// As [`Rnic::modify_qp`].
    pub fn modify_qp(&self, qp: QpHandle, modify: &QpModify) -> Result<QpAllocated, QpError> {
        let mut rnic = self.lock();
        // The stream that is left has to hear of it as much as the one that is joined.
        self.wake(&rnic, qp);
        let modified = rnic.modify_qp(self.0.clock.now(), qp, modify);
        self.wake(&rnic, qp);
        self.notify(&mut rnic);
        modified
    }

    /// Destroy QP; a connection is reset.
    ///
    /// # Errors
    /// As [`Rnic::destroy_qp`].
    pub fn destroy_qp(&self, qp: QpHandle) -> Result<(), QpError> {
        let mut rnic = self.lock();
        self.wake(&rnic, qp);
        let destroyed = rnic.destroy_qp(qp);
        self.notify(&mut rnic);
        destroyed
    }

    /// The next completion of a CQ.
    ///
    /// # Errors
    /// As [`Rnic::poll_cq`], but it is never `Empty`.
    pub async fn completion(&self, cq: CqHandle) -> Result<WorkCompletion, CqError> {
        let own = lock(&self.0.cqs).get(&cq).cloned();
        let waker = own.as_deref().unwrap_or(&self.0.happened);
        self.until(waker, |rnic| match rnic.poll_cq(cq) {
            Err(CqError::Empty) => {
                // It was there when it was polled.
                let _ = rnic.request_completion_notification(cq, NotifyKind::NextCompletion);
                None
            }
            result => Some(result),
        })
        .await
    }

    /// Waits until the Queue Pair's connection is over: it is Idle or in Error.
    ///
    /// # Errors
    /// As [`Rnic::query_qp`].
    pub async fn ended(&self, qp: QpHandle) -> Result<QpState, QpError> {
        self.until(&self.0.happened, |rnic| match rnic.query_qp(qp).map(|attributes| attributes.state) {
            Ok(QpState::Rts | QpState::Closing | QpState::Terminate) => None,
            result => Some(result),
        })
        .await
    }

    /// Waits until the Queue Pair is in `state`.
    ///
    /// # Errors
    /// As [`Rnic::query_qp`].
    pub async fn state_is(&self, qp: QpHandle, state: QpState) -> Result<(), QpError> {
        self.until(&self.0.happened, |rnic| match rnic.query_qp(qp) {
            Ok(attributes) if attributes.state != state => None,
            result => Some(result.map(|_| ())),
        })
        .await
    }

    /// The calls of event handlers that are due, but for those of CQs that [`create_cq`](Self::create_cq) made.
    pub fn notifications(&self) -> Vec<Notification> {
        self.notify(&mut self.lock());
        std::mem::take(&mut *lock(&self.0.notifications))
    }

    async fn until<R>(&self, waker: &Notify, mut ready: impl FnMut(&mut Rnic) -> Option<R>) -> R {
        loop {
            let happened = waker.notified();
            tokio::pin!(happened);
            // From here on nothing that happens is missed.
            happened.as_mut().enable();
            if let Some(result) = ready(&mut self.lock()) {
                return result;
            }
            happened.await;
        }
    }

    /// Takes over a TCP connection, on which start-up is still to be done.
    pub(super) fn stream_of(&self, tcp: TcpStream, by: Opener) -> io::Result<Stream> {
        let number = self.0.connections.fetch_add(1, Ordering::Relaxed);
        let settings = &self.0.settings;
        let mangler = settings.mangling.as_ref().map(|mangling| mangling.mangler(number.into()));
        Stream::new(tcp, settings.tape.as_ref(), mangler, self.0.clock, number, by)
    }

    /// Joins a connection on which start-up is done with a Queue Pair, and drives it until it is over.
    pub(super) fn join(
        &self,
        stream: Stream,
        settings: LlpSettings,
        qp: QpHandle,
        modify: impl FnOnce(LlpHandle) -> QpModify,
    ) -> Result<(), QpError> {
        let llp = self.lock().attach_stream(settings)?;
        let stream = Arc::new(stream);
        lock(&self.0.streams).insert(llp, Arc::clone(&stream));
        if let Err(error) = self.modify_qp(qp, &modify(llp)) {
            self.leave(llp);
            return Err(error);
        }
        let device = self.clone();
        tokio::spawn(async move {
            device.drive(&stream, llp).await;
            device.leave(llp);
        });
        Ok(())
    }

    fn leave(&self, llp: LlpHandle) {
        lock(&self.0.streams).remove(&llp);
        let mut rnic = self.lock();
        rnic.detach_stream(self.0.clock.now(), llp);
        self.notify(&mut rnic);
    }

    async fn drive(&self, stream: &Stream, llp: LlpHandle) {
        let mut readable = true;
        loop {
            let (blocked, deadline, wanted) = {
                let mut rnic = self.lock();
                let after = self.transmit(&mut rnic, stream, llp);
                self.notify(&mut rnic);
                let late = stream.flush_timeout();
                if after == After::Reset || rnic.is_stream_over(llp) && late.is_none() {
                    return;
                }
                let blocked = after == After::Blocked;
                let deadline = [rnic.poll_timeout(llp), late.filter(|_| !blocked)].into_iter().flatten().min();
                (blocked, deadline, rnic.wants_octets(llp))
            };
            let reads = readable && wanted;
            if reads && !blocked && !self.0.settings.busy_poll.is_zero() {
                match self.poll_busily(stream, llp).await {
                    Got::Nothing => {}
                    got => {
                        readable = got == Got::Octets;
                        continue;
                    }
                }
            }
            let interest = match (reads, blocked) {
                (true, true) => Interest::READABLE | Interest::WRITABLE,
                (true, false) => Interest::READABLE,
                (false, _) => Interest::WRITABLE,
            };
            tokio::select! {
                _ = stream.ready(interest), if reads || blocked => {}
                () = stream.wake.notified() => {}
                () = sleep_until(self.0.clock.to_tokio(deadline.unwrap_or_default())), if deadline.is_some() => {
                    self.lock().handle_timeout(self.0.clock.now(), llp);
                }
            }
            if reads {
                readable = self.receive(llp, |buffer| stream.read(buffer)) != Got::End;
            }
        }
    }

    /// Sends what there is, and what a mangler has made of it by now.
    fn transmit(&self, rnic: &mut Rnic, stream: &Stream, llp: LlpHandle) -> After {
        let after = self.offer(rnic, stream, llp);
        match stream.flush() {
            // It is full, and goes on by time, not when TCP takes more.
            Ok(Flushed::Idle) if after == After::Blocked && stream.flush_timeout().is_some() => After::Idle,
            Ok(Flushed::Idle) => after,
            Ok(Flushed::Blocked) => After::Blocked,
            // The RNIC may know nothing of it, and hears of it when the stream is left.
            Ok(Flushed::Reset) => After::Reset,
            Err(_) => {
                rnic.handle_reset(self.0.clock.now(), llp);
                After::Idle
            }
        }
    }

    /// Sends as long as TCP takes some, but not so long that others wait for the lock.
    fn offer(&self, rnic: &mut Rnic, stream: &Stream, llp: LlpHandle) -> After {
        let mut turn = 0;
        while turn < TURN {
            let now = self.0.clock.now();
            let mut failed = None;
            let sent = rnic.poll_transmit(now, llp, |slices| {
                stream.write(slices).unwrap_or_else(|error| {
                    failed = Some(error.kind());
                    0
                })
            });
            match (sent, failed) {
                (Sent::Nothing, _) => return After::Idle,
                (Sent::Reset, _) => {
                    stream.reset();
                    return After::Reset;
                }
                (Sent::Fin, _) => {
                    if stream.finish().is_err() {
                        rnic.handle_reset(now, llp);
                    }
                }
                (Sent::Octets(octets), None) => turn += octets,
                (Sent::Octets(_), Some(io::ErrorKind::WouldBlock)) => return After::Blocked,
                (Sent::Octets(_), Some(_)) => {
                    rnic.handle_reset(now, llp);
                    return After::Idle;
                }
            }
        }
        After::Blocked
    }

    /// Asks for octets again and again, and lets the other tasks of this thread run in between.
    async fn poll_busily(&self, stream: &Stream, llp: LlpHandle) -> Got {
        let end = tokio::time::Instant::now() + self.0.settings.busy_poll;
        loop {
            tokio::task::yield_now().await;
            match self.receive(llp, |buffer| stream.read_now(buffer)) {
                Got::Nothing if tokio::time::Instant::now() < end => {}
                got => return got,
            }
        }
    }

    /// Reads once.
    fn receive(&self, llp: LlpHandle, read: impl FnOnce(&mut [u8]) -> io::Result<usize>) -> Got {
        let mut buffer = lock(&self.0.buffers).pop().unwrap_or_else(|| vec![0; READ_LEN]);
        let read = read(&mut buffer);
        let now = self.0.clock.now();
        let got = match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Got::Nothing,
            Ok(octets @ 1..) => {
                self.lock().handle_octets(now, llp, &buffer[..octets]);
                Got::Octets
            }
            end => {
                let mut rnic = self.lock();
                match end {
                    Ok(_) => rnic.handle_fin(now, llp),
                    Err(error) if error.kind() == io::ErrorKind::TimedOut => rnic.handle_lost(now, llp),
                    Err(_) => rnic.handle_reset(now, llp),
                }
                Got::End
            }
        };
        let mut buffers = lock(&self.0.buffers);
        if buffers.len() < KEPT_BUFFERS {
            buffers.push(buffer);
        }
        got
    }

    /// Wakes the task of a Queue Pair's stream.
    fn wake(&self, rnic: &Rnic, qp: QpHandle) {
        let llp = rnic.query_qp(qp).ok().and_then(|attributes| attributes.llp);
        if let Some(stream) = llp.and_then(|llp| self.stream(llp)) {
            stream.wake.notify_one();
        }
    }

    /// Wakes who waits for what has happened.
    fn notify(&self, rnic: &mut Rnic) {
        while let Some(notification) = rnic.poll_notification() {
            match notification {
                Notification::Completion { handler: HANDLER, cq } => {
                    if let Some(waker) = lock(&self.0.cqs).get(&cq) {
                        waker.notify_waiters();
                    }
                }
                other => lock(&self.0.notifications).push(other),
            }
        }
        self.0.happened.notify_waiters();
    }

    fn stream(&self, llp: LlpHandle) -> Option<Arc<Stream>> {
        lock(&self.0.streams).get(&llp).cloned()
    }

    fn lock(&self) -> MutexGuard<'_, Rnic> {
        lock(&self.0.rnic)
    }
}

/// A number that nobody can guess, for [`MemorySettings::stag_seed`](crate::memory::MemorySettings::stag_seed).
#[must_use]
pub fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // Its keys are the operating system's random numbers.
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// A holder that panicked left whole entries: nothing here waits or calls out in the middle of a change.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// What sending came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum After {
    /// All is sent.
    Idle,
    /// TCP takes no more for now, or others have their turn.
    Blocked,
    /// The connection is to be reset.
    Reset,
}

/// What reading came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Got {
    /// Nothing for now.
    Nothing,
    /// Some octets.
    Octets,
    /// Nothing more comes.
    End,
}
