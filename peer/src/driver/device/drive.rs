//! The task of one connection. The task reads from TCP, and sends the bytes that could not be sent
//! at once.
//!
//! The task is one hand-written future instead of a loop of awaits. Therefore one poll of the
//! socket, one lock of the device, and no allocation are enough to read, handle and answer a
//! message.

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
use super::state::SendResult;
use super::{Device, Stream};
use crate::time::Instant;
use crate::verbs::LlpHandle;

/// Maximum number of bytes in one read. While a read copies bytes, TCP sends no acknowledgement.
/// Therefore longer reads delay a sender on the same machine. In `bench/loopback`, reads of 256 KiB
/// make a transfer slower by a fifth.
const READ_LEN: usize = 64 * 1024;
/// Number of rounds (reads, or attempts to send) after which the task yields. Then the tasks of
/// other connections, and the task that posts the next receives, can run.
const ROUNDS: u32 = 4;

thread_local! {
    /// Contains the bytes of a read while the task handles them. All connections of one thread
    /// share this buffer.
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
        polling: Polling::new(&device.0.permits),
    };
    poll_fn(|cx| drive.poll(cx)).await;
}

struct Drive<'a> {
    device: &'a Device,
    stream: Arc<Stream>,
    llp: LlpHandle,
    /// The peer has not closed or reset the connection.
    open: bool,
    /// The task has nothing left to do.
    over: bool,
    /// The RNIC can handle more bytes.
    wanted: bool,
    /// TCP did not accept all bytes that the RNIC wants to send.
    blocked: bool,
    deadline: Option<Instant>,
    timer: Option<Pin<Box<Sleep>>>,
    polling: Polling<'a>,
}

impl Drive<'_> {
    fn poll(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        // Each poll calls `process` at least once: even if the socket has no event, another task
        // has possibly posted work.
        let mut processed = false;
        let mut rounds = 0;
        while !self.over {
            if rounds == ROUNDS {
                cx.waker().wake_by_ref();
                return Poll::Pending;
            }
            rounds += 1;
            let reads = self.open && self.wanted;
            if reads && self.stream.tcp.poll_read_ready(cx).is_ready() {
                processed |= self.read(cx.waker());
            } else if self.blocked && self.stream.tcp.poll_write_ready(cx).is_ready() {
                self.polling.work_arrived(self.device.0.clock.now());
                self.process(cx.waker(), |_, _| {});
                processed = true;
            } else if !processed || self.is_late(cx) {
                self.process(cx.waker(), |_, _| {});
                processed = true;
            } else {
                let now = self.device.0.clock.now();
                if !reads && !self.blocked {
                    // A task that posts work wakes this task.
                    self.polling.work_arrived(now);
                } else if self.polling.should_poll(now) {
                    // The runtime polls its sockets instead of sleeping, and then wakes this task.
                    let _ = pin!(yield_now()).poll(cx);
                }
                return Poll::Pending;
            }
        }
        Poll::Ready(())
    }

    /// Reads once. Returns whether there was anything to read.
    fn read(&mut self, task: &Waker) -> bool {
        BUFFER.with_borrow_mut(|buffer| {
            let read = self.stream.read(buffer);
            let llp = self.llp;
            if !matches!(&read, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
                self.polling.work_arrived(self.device.0.clock.now());
            }
            match read {
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return false,
                Ok(octets @ 1..) => self.process(task, |state, now| state.handle_octets(now, llp, &buffer[..octets])),
                end => {
                    self.open = false;
                    self.process(task, |rnic, now| match end {
                        Ok(_) => rnic.handle_fin(now, llp),
                        Err(error) if error.kind() == io::ErrorKind::TimedOut => rnic.handle_lost(now, llp),
                        Err(_) => rnic.handle_reset(now, llp),
                    });
                }
            }
            true
        })
    }

    /// Passes an event to the RNIC through `handle`, and sends the RNIC's answers.
    fn process(&mut self, task: &Waker, handle: impl FnOnce(&mut crate::verbs::Rnic, Instant)) {
        let now = self.device.0.clock.now();
        let mut state = self.device.lock();
        state.set_task(self.llp, task);
        handle(&mut state.rnic, now);
        if self.deadline.is_some() {
            state.rnic.handle_timeout(now, self.llp);
        }
        let result = state.transmit(now, self.llp);
        let qp = state.qp_of(self.llp);
        state.notify(qp);
        let late = self.stream.flush_timeout();
        self.over = result == SendResult::Reset || state.rnic.is_stream_over(self.llp) && late.is_none();
        self.blocked = result == SendResult::Blocked;
        self.wanted = state.rnic.wants_octets(self.llp);
        let late = late.filter(|_| !self.blocked);
        self.deadline = [state.rnic.poll_timeout(self.llp), late].into_iter().flatten().min();
    }

    /// Returns whether the deadline has passed. If not, the task is woken at the deadline.
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
