//! The task of one connection: reads what TCP has, and sends what could not be sent at once.
//!
//! It is one future that is polled, not a loop of waits: a connection on which a message arrives is read from, handled and answered with
//! one look at the socket, one lock of the device, and nothing made or thrown away.

use std::cell::RefCell;
use std::future::poll_fn;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, Waker};

use tokio::time::{Sleep, sleep_until};

use super::state::After;
use super::{Device, Stream};
use crate::time::Instant;
use crate::verbs::LlpHandle;

/// Octets that one read takes at most.
const READ_LEN: usize = 256 * 1024;
/// Reads and turns at sending after which the task lets others run: those of other connections, and whoever posts the next receives.
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
        busy_until: None,
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
    /// Until when the socket is asked again before the task sleeps.
    busy_until: Option<tokio::time::Instant>,
}

impl Drive<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Somebody may have posted work, whatever the socket says.
        let mut looked = false;
        let mut rounds = 0;
        while !self.over {
            if rounds == ROUNDS {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            rounds += 1;
            if self.open && self.wanted && self.stream.poll_readable(cx).is_ready() {
                looked |= self.read(cx.waker(), Stream::read);
            } else if !looked || self.blocked && self.stream.poll_writable(cx).is_ready() || self.is_late(cx) {
                self.turn(cx.waker(), |_, _| {});
                looked = true;
            } else if self.is_busy() {
                if !self.read(cx.waker(), Stream::read_now) {
                    cx.waker().wake_by_ref();
                    return Poll::Pending;
                }
            } else {
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Reads once; was there something?
    fn read(&mut self, task: &Waker, read: impl FnOnce(&Stream, &mut [u8]) -> io::Result<usize>) -> bool {
        BUFFER.with_borrow_mut(|buffer| {
            let read = read(&self.stream, buffer);
            let llp = self.llp;
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
            self.busy_until = None;
            true
        })
    }

    /// Lets the RNIC handle what happened, and sends what it has to say to that.
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

    /// The socket is to be asked again at once, as the device's settings have it.
    fn is_busy(&mut self) -> bool {
        let busy_poll = self.device.0.settings.busy_poll;
        if busy_poll.is_zero() || self.blocked || !self.wanted || !self.open {
            return false;
        }
        let now = tokio::time::Instant::now();
        now < *self.busy_until.get_or_insert(now + busy_poll)
    }
}
