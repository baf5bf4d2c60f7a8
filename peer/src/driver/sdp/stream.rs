//! The socket of an SDP connection, and the task that drives its engine.

use core::pin::{Pin, pin};
use core::task::{Context, Poll};
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::sync::Notify;
use tokio::time::sleep;
use weft_core::wire::sdp::Mode;

use super::addresses::Addresses;
use super::engine::Engine;
use super::failover::replace_connection;
use super::{SdpError, SdpSettings};
use crate::driver::Device;
use crate::driver::clock::Clock;
use crate::driver::stream::Stream;
use crate::sdp::{CommandError, Half, Policy, Role, Start};
use crate::verbs::{CqHandle, QpModify, QpState};

/// If no Work Request has completed on a connection for this time, the connection frees its unused
/// memory.
const IDLE_TIME: Duration = Duration::from_secs(1);

/// An SDP connection. Dropping this value shuts the connection down. Written data is still sent.
#[derive(Debug)]
pub struct SdpStream {
    pub(super) shared: Arc<Shared>,
    local: SocketAddr,
    peer: SocketAddr,
}

#[derive(Debug)]
pub(super) struct Shared {
    engine: Mutex<Engine>,
    /// Notified when a user's call has given the task work.
    command: Notify,
    pub(super) clock: Clock,
}

impl Shared {
    pub(super) fn lock(&self) -> MutexGuard<'_, Engine> {
        // If a holder of the lock panicked, the engine is still consistent: each change is
        // complete.
        self.engine.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Lets the state machine act on the last change. Wakes the connection's task if only this task
    /// can do the remaining work.
    fn go(&self, engine: &mut Engine) {
        if !engine.run_on(self.clock.now()) || engine.wants_task() {
            self.command.notify_one();
        }
    }
}

impl SdpStream {
    pub(super) async fn start(
        device: &Device,
        stream: Stream,
        role: Role,
        settings: SdpSettings,
    ) -> Result<Self, SdpError> {
        let (clock, local, peer) = (device.clock(), stream.tcp.local_addr()?, stream.tcp.peer_addr()?);
        let addresses = Addresses { local, peer, connected: role == Role::Connecting };
        let engine = Mutex::new(Engine::new(device, clock.now(), role, settings, addresses)?);
        let shared = Arc::new(Shared { engine, command: Notify::new(), clock });
        if let Err(error) = set_up(&shared, stream).await {
            shared.lock().tear_down();
            return Err(error);
        }
        let mut task = Box::pin(drive(Arc::clone(&shared)));
        // Complete the exchange of Hello and HelloAck before the caller gets the socket.
        let over = tokio::select! {
            () = &mut task => true,
            () = wait(&shared, |engine| engine.opened) => false,
        };
        if !over {
            tokio::spawn(task);
        } else if !shared.lock().opened {
            let error = shared.lock().error.clone();
            return Err(error.unwrap_or(SdpError::Closed));
        }
        // The connection opened. If it broke right after that, reading from the connection returns
        // the error.
        Ok(SdpStream { shared, local, peer })
    }

    pub(super) fn lock(&self) -> MutexGuard<'_, Engine> {
        self.shared.lock()
    }

    /// Lets the state machine act on the last change.
    pub(super) fn go(&self, engine: &mut Engine) {
        self.shared.go(engine);
    }

    /// Changes the engine, and lets the state machine act on the change.
    pub(super) fn change(&self, change: impl FnOnce(&mut Engine)) {
        let mut engine = self.lock();
        change(&mut engine);
        self.go(&mut engine);
    }

    /// This side's address when the connection was opened.
    #[must_use]
    pub fn local_addr(&self) -> SocketAddr {
        self.local
    }

    /// Returns the peer's address when the connection was opened.
    #[must_use]
    pub fn peer_addr(&self) -> SocketAddr {
        self.peer
    }

    /// Returns the Mode of one half-connection.
    #[must_use]
    pub fn mode(&self, half: Half) -> Mode {
        self.shared.lock().machine.mode(half)
    }

    /// Requests a Mode. See [`Connection::set_mode`](crate::sdp::Connection::set_mode).
    ///
    /// # Errors
    /// See [`CommandError`].
    pub fn set_mode(&self, half: Half, mode: Mode) -> Result<(), CommandError> {
        let mut engine = self.shared.lock();
        engine.machine.set_mode(half, mode)?;
        self.shared.go(&mut engine);
        Ok(())
    }

    /// Changes the policy that selects the transfer mechanisms.
    pub fn set_policy(&self, policy: Policy) {
        self.change(|engine| *engine.machine.policy_mut() = policy);
    }

    /// Requests that the peer change the size of its Private Buffers to `octets` bytes.
    pub fn resize(&self, octets: u32) {
        self.change(|engine| engine.machine.resize(octets));
    }

    /// Returns the number of bytes that this side copied: from the user, to the user, or between
    /// its own buffers for Bcopy.
    #[must_use]
    pub fn copied(&self) -> u64 {
        self.shared.lock().copied
    }

    /// Closes the connection abortively.
    pub fn abort(&self) {
        self.change(|engine| engine.machine.abort(self.shared.clock.now()));
    }

    /// Waits until the connection is over and its resources are free.
    pub async fn closed(&self) {
        over(&self.shared).await;
    }

    /// Acts like [`closed`](Self::closed), and also returns how the connection ended.
    ///
    /// # Errors
    /// The connection did not end with a graceful close.
    pub async fn ended(&self) -> io::Result<()> {
        over(&self.shared).await;
        let engine = self.shared.lock();
        if engine.is_broken() { Err(engine.end_error().into()) } else { Ok(()) }
    }

    /// Waits until the connection ends without a graceful close. Returns the reason. Never returns
    /// after a graceful close.
    pub async fn broken(&self) -> io::Error {
        wait(&self.shared, Engine::is_broken).await;
        self.shared.lock().end_error().into()
    }
}

impl Drop for SdpStream {
    fn drop(&mut self) {
        self.change(|engine| {
            engine.machine.shut_down();
            engine.stop_reading();
        });
    }
}

/// Reading and writing, also through shared references. A completed write only means that the bytes
/// are in the send buffer. A completed flush or shut-down means that all bytes were sent. A byte
/// counts as sent after an RDMA Read has fetched it, an RDMA Write has placed it, or TCP has
/// accepted its message. If the connection ends before all bytes were sent, flush and shut-down
/// fail. If several tasks poll to read, only the last of these tasks is woken. The same is true for
/// tasks that poll to write.
impl SdpStream {
    pub(super) fn poll_send(
        &self,
        cx: &mut Context<'_>,
        octets: &[IoSlice<'_>],
        urgent: bool,
    ) -> Poll<io::Result<usize>> {
        let mut engine = self.lock();
        let Some(written) = engine.write(octets, urgent) else {
            engine.writer = Some(cx.waker().clone());
            return Poll::Pending;
        };
        self.go(&mut engine);
        Poll::Ready(Ok(written?))
    }

    fn poll_sent(&self, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let mut engine = self.lock();
        if engine.unsent() > 0 && !engine.gone {
            engine.writer = Some(cx.waker().clone());
            return Poll::Pending;
        }
        Poll::Ready(if engine.lost { Err(engine.broken_pipe().into()) } else { Ok(()) })
    }
}

impl AsyncRead for &SdpStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        let mut engine = self.lock();
        let Some(read) = engine.read(buf.initialize_unfilled(), false) else {
            engine.reader = Some(cx.waker().clone());
            return Poll::Pending;
        };
        buf.advance(read?);
        self.go(&mut engine);
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for &SdpStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        self.poll_send(cx, &[IoSlice::new(octets)], false)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        self.poll_send(cx, octets, false)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.shut_down(Half::Out);
        self.poll_sent(cx)
    }
}

impl AsyncRead for SdpStream {
    fn poll_read(self: Pin<&mut Self>, cx: &mut Context<'_>, buf: &mut ReadBuf<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self).poll_read(cx, buf)
    }
}

impl AsyncWrite for SdpStream {
    fn poll_write(self: Pin<&mut Self>, cx: &mut Context<'_>, octets: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_write(cx, octets)
    }

    fn poll_write_vectored(
        self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        octets: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut &*self).poll_write_vectored(cx, octets)
    }

    fn is_write_vectored(&self) -> bool {
        true
    }

    fn poll_flush(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.poll_sent(cx)
    }

    fn poll_shutdown(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut &*self).poll_shutdown(cx)
    }
}

impl From<SdpError> for io::Error {
    fn from(error: SdpError) -> Self {
        match error {
            SdpError::Io(kind, words) => io::Error::new(kind, words),
            SdpError::Closed => io::Error::new(io::ErrorKind::ConnectionReset, error),
            SdpError::Refused(_) => io::Error::new(io::ErrorKind::ConnectionRefused, error),
            SdpError::Violation(_) => io::Error::new(io::ErrorKind::ConnectionAborted, error),
            SdpError::Rnic(_) => io::Error::other(error),
        }
    }
}

/// Runs the start-up in TCP's streaming mode, until iWARP begins.
pub(super) async fn set_up(shared: &Arc<Shared>, stream: Stream) -> Result<(), SdpError> {
    let mut buffer = vec![0; 1024];
    loop {
        let (streaming, start, deadline, disconnect) = {
            let mut engine = shared.lock();
            engine.run(shared.clock.now());
            let streaming: Vec<Vec<u8>> = engine.streaming.drain(..).collect();
            let disconnect = engine.disconnect.map(|abortive| (abortive, engine.error.clone()));
            (streaming, engine.start.take(), engine.machine.poll_timeout(), disconnect)
        };
        if let Some((true, error)) = disconnect {
            stream.reset();
            return Err(error.unwrap_or(SdpError::Closed));
        }
        for octets in streaming {
            stream.write_all(&octets).await?;
        }
        if let Some((_, error)) = disconnect {
            // The last message was sent. Dropping the stream now closes TCP.
            return Err(error.unwrap_or(SdpError::Closed));
        }
        if let Some(start) = start {
            return join(shared, stream, start);
        }
        tokio::select! {
            read = stream.read_some(&mut buffer) => {
                let mut engine = shared.lock();
                match read {
                    Ok(read @ 1..) => engine.machine.handle_streaming(shared.clock.now(), &buffer[..read]),
                    Ok(_) => engine.machine.handle_disconnected(shared.clock.now()),
                    Err(error) => return Err(error.into()),
                }
                if engine.machine.is_over() {
                    engine.disconnect.get_or_insert(true);
                }
            }
            () = shared.clock.sleep_until(deadline) => {
                shared.lock().machine.handle_timeout(shared.clock.now());
            }
        }
    }
}

/// Starts iWARP on the stream. If start-up has already read iWARP bytes, these bytes go to the RNIC
/// before TCP's next bytes.
fn join(shared: &Arc<Shared>, stream: Stream, start: Start) -> Result<(), SdpError> {
    let (device, qp) = {
        let engine = shared.lock();
        (engine.device.clone(), engine.qp)
    };
    let llp = start.llp(stream.emss()?);
    let now = device.clock().now();
    let Start { last, unread, .. } = start;
    device.join(stream, llp, qp, |llp| {
        device.verbs(|rnic| rnic.handle_octets(now, llp, &unread));
        let stream_message = (!last.is_empty()).then(|| last.into());
        QpModify { llp: Some(llp), stream_message, ..QpModify::to(QpState::Rts) }
    })?;
    Ok(())
}

/// Drives the engine until the connection is over. This is the connection's task.
async fn drive(shared: Arc<Shared>) {
    let mut idle_timer = pin!(sleep(IDLE_TIME));
    let mut idle_timer_runs = false;
    loop {
        let (device, cqs, qp, deadline, done, idle, rests) = {
            let mut engine = shared.lock();
            let settled = engine.run_on(shared.clock.now());
            let done = engine.machine.is_over().then_some(engine.disconnect);
            let deadline = engine.machine.poll_timeout();
            engine.watched = deadline;
            if !settled {
                // Let other tasks run first.
                shared.command.notify_one();
            }
            if !idle_timer_runs && engine.has_unused_memory() {
                idle_timer_runs = true;
                idle_timer.as_mut().reset(tokio::time::Instant::now() + IDLE_TIME);
            }
            engine.watches_sends = !engine.is_idle();
            let rests = engine.machine.is_suspended();
            (engine.device.clone(), engine.cqs, engine.qp, deadline, done, engine.is_idle(), rests)
        };
        if rests && idle {
            replace_connection(&shared).await;
            continue;
        }
        if let Some(disconnect) = done
            && (idle || disconnect != Some(false))
        {
            if disconnect == Some(false) {
                // If the connection cannot be closed gracefully, it is reset when its Queue Pair is
                // destroyed.
                let _ = device.disconnect(qp).await;
            } else if disconnect.is_none() {
                let _ = device.ended(qp).await;
            }
            let mut engine = shared.lock();
            engine.gone = true;
            engine.tear_down();
            engine.wake();
            drop(engine);
            shared.command.notify_waiters();
            return;
        }
        tokio::select! {
            () = completion(&shared, &device, cqs.receive) => {}
            () = completion(&shared, &device, cqs.send), if !idle => {}
            _ = device.ended(qp) => shared.lock().ended(shared.clock.now()),
            () = shared.command.notified() => {}
            () = shared.clock.sleep_until(deadline) => {
                shared.lock().machine.handle_timeout(shared.clock.now());
            }
            () = &mut idle_timer, if idle_timer_runs => {
                let mut engine = shared.lock();
                if !std::mem::take(&mut engine.busy) {
                    engine.free_unused_memory();
                }
                idle_timer_runs = false;
            }
        }
    }
}

/// Waits for the next completion. Then takes and handles this completion under one lock of the
/// engine. Without this lock, calls that read or write could take the next completions, and
/// completions would be handled in the wrong order.
async fn completion(shared: &Shared, device: &Device, cq: CqHandle) {
    let mut next = pin!(device.completion(cq));
    core::future::poll_fn(|cx| {
        let mut engine = shared.lock();
        next.as_mut().poll(cx).map(|completion| engine.handle_completion(shared.clock.now(), completion))
    })
    .await;
}

async fn over(shared: &Shared) {
    wait(shared, |engine| engine.gone).await;
}

/// Waits until `there` returns true. Calls `there` after each event that wakes the engine's
/// watchers.
pub(super) async fn wait(shared: &Shared, there: impl Fn(&Engine) -> bool) {
    core::future::poll_fn(|cx| {
        let mut engine = shared.lock();
        if there(&engine) {
            return Poll::Ready(());
        }
        engine.watch(cx.waker());
        Poll::Pending
    })
    .await;
}
