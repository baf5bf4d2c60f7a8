//! The task of one connection: reads what TCP has, and sends what could not be sent at once.
//!
//! It is one future that is polled, not a loop of waits: a connection on which a message arrives is
//! read from, handled and answered with one look at the socket, one lock of the device, and nothing
//! made or thrown away.

use std::cell::RefCell;
use std::future::Future;
use std::future::poll_fn;
use std::io;
use std::pin::{Pin, pin};
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::task::yield_now;
use tokio::time::{Sleep, sleep_until};

use super::polling::Polling;
use super::state::After;
use super::{Device, Stream};
use crate::time::Instant;
use crate::verbs::LlpHandle;

/// Octets that one read takes at most. While a read copies, its TCP acknowledges nothing, so a
/// longer one makes a sender on the same machine wait (`bench/loopback`: 256 KiB are slower by a
/// fifth).
const READ_LEN: usize = 64 * 1024;
/// Reads and turns at sending after which the task lets others run: those of other connections, and
/// the task that posts the next receives.
const ROUNDS: u32 = 4;

thread_local! {
    /// Where octets lie while they are handled; no connection keeps any.
    static BUFFER: RefCell<Vec<u8>> = RefCell::new(vec![0; READ_LEN]);
}

/// Drives a stream until it is over.
pub(super) async fn drive(device: &Device, stream: Arc<Stream>, llp: LlpHandle) {
    let mut drive = Drive {
        device,
        stream,
        llp,
        open: true,
        over: false,
        wanted: false,
        blocked: false,
        deadline: None,
        timer: None,
        polling: Polling::new(&device.0.places),
    };
    poll_fn(|cx| drive.poll(cx)).await;
}

struct Drive<'a> {
    device: &'a Device,
    stream: Arc<Stream>,
    llp: LlpHandle,
    /// The peer's half is.
    open: bool,
    /// Nothing is left to do.
    over: bool,
    /// The RNIC wants octets.
    wanted: bool,
    /// There is more to send than TCP took.
    blocked: bool,
    deadline: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    polling: Polling<'a>,
}

impl Drive<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // A task may have posted work, whatever the socket's state is.
        let mut looked = false;
        let mut rounds = 0;
        while !self.over {
            if rounds == ROUNDS {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            rounds += 1;
            let reads = self.open && self.wanted;
            if reads && self.stream.poll_readable(cx).is_ready() {
                looked |= self.read(cx.waker());
            } else if self.blocked && self.stream.poll_writable(cx).is_ready() {
                self.polling.goes_on(self.device.0.clock.now());
                self.turn(cx.waker(), |_, _| {});
                looked = true;
            } else if !looked || self.is_late(cx) {
                self.turn(cx.waker(), |_, _| {});
                looked = true;
            } else {
                let now = self.device.0.clock.now();
                if !reads && !self.blocked {
                    // A task that has work for it wakes it.
                    self.polling.goes_on(now);
                } else if self.polling.looks_again(now) {
                    // The runtime looks at its sockets, does not sleep, and wakes this task.
                    let _ = pin!(yield_now()).poll(cx);
                }
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Reads once; was there something?
    fn read(&mut self, task: &Waker) -> bool {
        BUFFER.with_borrow_mut(|buffer| {
            let read = self.stream.read(buffer);
            let llp = self.llp;
            if !matches!(&read, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
                self.polling.goes_on(self.device.0.clock.now());
            }
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Ok(octets @ 1..) => self.turn(task, |state, now| state.handle_octets(now, llp, &buffer[..octets])),
                end => {
                    self.open = false;
                    self.turn(task, |rnic, now| match end {
                        Ok(_) => rnic.handle_fin(now, llp),
                        Err(error) if error.kind() == io::ErrorKind::TimedOut => rnic.handle_lost(now, llp),
                        Err(_) => rnic.handle_reset(now, llp),
                    });
                }
            }
            true
        })
    }

    /// Lets the RNIC handle what happened, and sends its answers.
    fn turn(&mut self, task: &Waker, handle: impl FnOnce(&mut crate::verbs::Rnic, Instant)) {
        let now = self.device.0.clock.now();
        let mut state = self.device.lock();
        state.attend(self.llp, task);
        handle(&mut state.rnic, now);
        if self.deadline.is_some() {
            state.rnic.handle_timeout(now, self.llp);
        }
        let after = state.transmit(now, self.llp);
        let qp = state.qp_of(self.llp);
        state.notify(qp);
        let late = self.stream.flush_timeout();
        self.over = after == After::Reset || state.rnic.is_stream_over(self.llp) && late.is_none();
        self.blocked = after == After::Blocked;
        self.wanted = state.rnic.wants_octets(self.llp);
        let late = late.filter(|_| !self.blocked);
        self.deadline = [state.rnic.poll_timeout(self.llp), late].into_iter().flatten().min();
    }

    /// The deadline has passed; otherwise the task is woken then.
    fn is_late(&mut self, cx: &mut Context<'_>) -> bool {
        let Some(deadline) = self.deadline else {
            self.timer = None;
            return false;
        };
        let at = self.device.0.clock.to_tokio(deadline);
        let timer = self.timer.get_or_insert_with(|| Box::pin(sleep_until(at)));
        if timer.deadline() != at {
            timer.as_mut().reset(at);
        }
        timer.as_mut().poll(cx).is_ready()
    }
}
