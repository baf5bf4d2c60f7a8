//! Accepts control connections over TCP, and serves each of them on its own thread. If a tester
//! makes an error, or if the host lacks a resource, the listener continues. Only the request `exit`
//! or a failure of the listener itself stops the listener.
//!
//! The module `waiting` holds the connections whose token is not verified yet. The module
//! `back_off` slows down an origin (an IPv4 address, or the first 64 bits of an IPv6 address) that
//! sends wrong tokens.

mod back_off;
mod waiting;

use std::io;
use std::net::{TcpListener, TcpStream};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use socket2::{SockRef, TcpKeepalive};
use weft_core::origin::Origin;

use self::back_off::BackOff;
use self::waiting::{Waiting, WaitingSlot};
use crate::protocol::Failure;
use crate::serve::{Backend, Control, Hello, ServeError, WRONG_TOKEN, refuse_early};

/// Maximum number of testers at the same time. The agent counts a tester only after it has received
/// the tester's valid hello (the first request).
pub const MAX_TESTERS: usize = 8;
/// Maximum time for a write to a tester. If a tester reads nothing for this time, the agent assumes
/// that the tester has gone.
const WRITTEN_WITHIN: Duration = Duration::from_secs(10);
/// If a tester is silent for this time, TCP sends a keepalive probe, and then one more probe after
/// each [`PROBE_EVERY`]. (A host that lost its power sends no FIN.)
const PROBE_AFTER: Duration = Duration::from_secs(30);
const PROBE_EVERY: Duration = Duration::from_secs(5);
/// Pause if the host lacks a resource. Without the pause, the next `accept` would fail at once,
/// because the connection still waits in the backlog.
const ACCEPT_PAUSE: Duration = Duration::from_secs(1);

/// Serves all testers that connect. Returns only when the listener itself fails. The agent calls
/// `backend` once for each tester with a valid hello. The agent calls `report` with the address of
/// a peer. When the agent begins to serve the peer, the second argument is `None`. When the agent
/// has served the peer, or cannot serve it, the second argument is the result. If `accept` fails,
/// the first argument is "a tester" instead of an address.
pub fn listen<C: Backend>(
    listener: &TcpListener,
    token: Option<&str>,
    backend: impl Fn() -> Result<C, Failure> + Send + Sync + 'static,
    report: impl Fn(&str, Option<Result<(), ServeError>>) + Send + Sync + 'static,
) -> io::Error {
    let agent = Arc::new(Agent {
        begin: Instant::now(),
        token: token.map(str::to_owned),
        testers: Arc::default(),
        back_off: Mutex::default(),
        backend,
    });
    let (waiting, report) = (Arc::new(Waiting::default()), Arc::new(report));
    loop {
        let (stream, peer) = match listener.accept() {
            Ok((stream, peer)) => (Arc::new(stream), peer),
            Err(why) if is_for_good(&why) => return why,
            Err(why) => {
                // `ConnectionAborted` means that the peer has already closed this connection. The
                // next `accept` can succeed at once, so the listener needs no pause.
                if why.kind() != io::ErrorKind::ConnectionAborted {
                    report("a tester", Some(Err(why.into())));
                    thread::sleep(ACCEPT_PAUSE);
                }
                continue;
            }
        };
        let (origin, peer) = (Origin::of(peer.ip()), peer.to_string());
        let slot = waiting.admit(origin, &stream);
        let served = {
            let (agent, report, stream, peer) =
                (Arc::clone(&agent), Arc::clone(&report), Arc::clone(&stream), peer.clone());
            move || {
                report(&peer, None);
                report(&peer, Some(agent.serve(&stream, origin, slot)));
            }
        };
        if let Err(why) = thread::Builder::new().name("tester".to_owned()).spawn(served) {
            // One line always fits into the empty send buffer of a new connection, so this write
            // does not block.
            let why = format!("this host cannot start a thread for one more tester: {why}");
            report(&peer, Some(Err(refuse_early(&*stream, agent.begin, &why))));
        }
    }
}

/// Returns whether `accept` failed because of the listener itself: the listener is not a listening
/// socket, or the listener is closed. All other errors of accept(2) concern one connection, or are
/// temporary.
fn is_for_good(why: &io::Error) -> bool {
    matches!(why.raw_os_error(), Some(libc::EBADF | libc::EINVAL | libc::ENOTSOCK | libc::EOPNOTSUPP))
}

/// One of [`MAX_TESTERS`] slots. Dropping this value frees the slot.
struct TesterSlot(Arc<AtomicUsize>);

impl TesterSlot {
    fn take(testers: &Arc<AtomicUsize>) -> Option<Self> {
        let more = |taken| (taken < MAX_TESTERS).then_some(taken + 1);
        testers.fetch_update(Ordering::Relaxed, Ordering::Relaxed, more).ok().map(|_| TesterSlot(Arc::clone(testers)))
    }
}

impl Drop for TesterSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// State that all control connections share.
struct Agent<F> {
    begin: Instant,
    token: Option<String>,
    testers: Arc<AtomicUsize>,
    back_off: Mutex<BackOff>,
    backend: F,
}

impl<C: Backend, F: Fn() -> Result<C, Failure>> Agent<F> {
    /// Serves one connection until it closes.
    fn serve(&self, stream: &TcpStream, origin: Origin, waiting: WaitingSlot) -> Result<(), ServeError> {
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(WRITTEN_WITHIN))?;
        let keepalive = TcpKeepalive::new().with_time(PROBE_AFTER).with_interval(PROBE_EVERY);
        SockRef::from(stream).set_tcp_keepalive(&keepalive)?;
        let mut control = Control::new(stream, stream, self.begin);
        let hello = control.read_hello()?;
        let verified = hello.as_ref().map(|hello| self.verify(&control, origin, hello)).transpose()?.flatten();
        let (Some(hello), Some(is_right)) = (hello, verified) else {
            if waiting.is_lost() {
                return Err(
                    control.refuse(None, "no valid `hello` arrived in time, and another connection needs the slot")
                );
            }
            return Ok(());
        };
        if !is_right {
            return Err(control.refuse(Some(hello.id), WRONG_TOKEN));
        }
        // Dropping the slot frees it, even if this thread panics.
        let Some(_slot) = TesterSlot::take(&self.testers) else {
            return Err(control.refuse(Some(hello.id), &format!("the agent already serves {MAX_TESTERS} testers")));
        };
        drop(waiting);
        control.serve(&hello, &self.backend)
    }

    /// If the same origin has sent wrong tokens before, waits for a delay. Then compares the token.
    /// Returns `None` if the tester closes the connection during the delay.
    fn verify(
        &self,
        control: &Control<&TcpStream, &TcpStream>,
        origin: Origin,
        hello: &Hello,
    ) -> io::Result<Option<bool>> {
        let Some(token) = &self.token else { return Ok(Some(true)) };
        let mut left = self.lock().delay(origin, Instant::now());
        while control.wait_while_connected(left)? {
            let mut back_off = self.lock();
            let now = Instant::now();
            // During the wait, another connection of this origin can send a wrong token, which
            // makes the delay longer.
            left = back_off.left(origin, now);
            if left.is_zero() {
                let is_right = hello.has_token(token);
                back_off.record(origin, is_right, now);
                return Ok(Some(is_right));
            }
        }
        Ok(None)
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, BackOff> {
        // A panic cannot interrupt a change of `BackOff`, so a poisoned lock is safe to use.
        self.back_off.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
