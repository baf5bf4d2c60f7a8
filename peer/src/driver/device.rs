//! An RNIC that lives in real time: its streams are TCP connections that tasks drive, and waiting for it is async.
//!
//! A [`Device`] is shared by its clones. Verbs are called through [`verbs`](Device::verbs); those that give a stream something to
//! do have a method of their own, which wakes the stream's task. One lock guards the RNIC: a write to TCP happens under
//! it, straight from registered memory.

use std::collections::HashMap;
use std::io;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tokio::io::Interest;
use tokio::net::TcpStream;
use tokio::sync::Notify;
use tokio::time::sleep_until;

use super::tcp::{self, Clock};
use crate::verbs::{
    CqError, CqHandle, LlpHandle, LlpSettings, PostError, QpAllocated, QpError, QpHandle, QpModify, QpState, ReceiveWr,
    Rnic, SendWr, Sent, SrqHandle, WorkCompletion,
};

/// Octets that one read takes at most.
const READ_LEN: usize = 256 * 1024;

/// An RNIC in real time. Use it in a tokio runtime.
#[derive(Debug, Clone)]
pub struct Device(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    rnic: Mutex<Rnic>,
    /// Wakes the task of each stream.
    streams: Mutex<HashMap<LlpHandle, Arc<Notify>>>,
    /// Something happened: completions may be there, states may have changed.
    happened: Notify,
    clock: Clock,
}

impl Device {
    /// Takes over an RNIC that was opened.
    #[must_use]
    pub fn new(rnic: Rnic) -> Self {
        let streams = Mutex::new(HashMap::new());
        Device(Arc::new(Inner { rnic: Mutex::new(rnic), streams, happened: Notify::new(), clock: Clock::start() }))
    }

    /// Calls verbs that send nothing. Do not wait inside: all streams wait with it.
    pub fn verbs<R>(&self, call: impl FnOnce(&mut Rnic) -> R) -> R {
        call(&mut self.lock())
    }

    /// PostSQ.
    ///
    /// # Errors
    /// As [`Rnic::post_send`].
    pub fn post_send(&self, qp: QpHandle, list: Vec<SendWr>) -> Result<usize, PostError> {
        let posted = self.lock().post_send(qp, list);
        self.wake(qp);
        posted
    }

    /// PostRQ to a Queue Pair: a message that waits for a receive goes on.
    ///
    /// # Errors
    /// As [`Rnic::post_receive`].
    pub fn post_receive(&self, qp: QpHandle, list: Vec<ReceiveWr>) -> Result<usize, PostError> {
        let posted = self.lock().post_receive(qp, list);
        self.wake(qp);
        posted
    }

    /// PostRQ to an S-RQ: messages that wait for a receive go on.
    ///
    /// # Errors
    /// As [`Rnic::post_srq`].
    pub fn post_srq(&self, srq: SrqHandle, list: Vec<ReceiveWr>) -> Result<usize, PostError> {
        let posted = self.lock().post_srq(srq, list);
        self.streams().values().for_each(|wake| wake.notify_one());
        posted
    }

    /// Modify QP.
    ///
    /// # Errors
    /// As [`Rnic::modify_qp`].
    pub fn modify_qp(&self, qp: QpHandle, modify: &QpModify) -> Result<QpAllocated, QpError> {
        // The stream that is left has to hear of it as much as the one that is joined.
        self.wake(qp);
        let modified = self.lock().modify_qp(self.0.clock.now(), qp, modify);
        self.wake(qp);
        self.0.happened.notify_waiters();
        modified
    }

    /// The next completion of a CQ.
    ///
    /// # Errors
    /// As [`Rnic::poll_cq`], but it is never `Empty`.
    pub async fn completion(&self, cq: CqHandle) -> Result<WorkCompletion, CqError> {
        self.until(|rnic| match rnic.poll_cq(cq) {
            Err(CqError::Empty) => None,
            result => Some(result),
        })
        .await
    }

    /// Waits until the Queue Pair is in `state`.
    ///
    /// # Errors
    /// As [`Rnic::query_qp`].
    pub async fn state_is(&self, qp: QpHandle, state: QpState) -> Result<(), QpError> {
        self.until(|rnic| match rnic.query_qp(qp) {
            Ok(attributes) if attributes.state != state => None,
            result => Some(result.map(|_| ())),
        })
        .await
    }

    async fn until<R>(&self, mut ready: impl FnMut(&mut Rnic) -> Option<R>) -> R {
        loop {
            let happened = self.0.happened.notified();
            tokio::pin!(happened);
            // From here on nothing that happens is missed.
            happened.as_mut().enable();
            if let Some(result) = ready(&mut self.lock()) {
                return result;
            }
            happened.await;
        }
    }

    /// Makes a stream of a connection on which start-up is done, joins it with a Queue Pair, and drives it until it is over.
    pub(super) fn join(
        &self,
        stream: TcpStream,
        settings: LlpSettings,
        qp: QpHandle,
        modify: impl FnOnce(LlpHandle) -> QpModify,
    ) -> Result<(), QpError> {
        let llp = self.lock().attach_stream(settings)?;
        let wake = Arc::new(Notify::new());
        self.streams().insert(llp, Arc::clone(&wake));
        if let Err(error) = self.modify_qp(qp, &modify(llp)) {
            self.leave(llp);
            return Err(error);
        }
        let device = self.clone();
        tokio::spawn(async move {
            device.drive(stream, llp, &wake).await;
            device.leave(llp);
        });
        Ok(())
    }

    fn leave(&self, llp: LlpHandle) {
        self.streams().remove(&llp);
        self.lock().detach_stream(self.0.clock.now(), llp);
        self.0.happened.notify_waiters();
    }

    async fn drive(&self, stream: TcpStream, llp: LlpHandle, wake: &Notify) {
        let mut buffer = vec![0; READ_LEN];
        let mut readable = true;
        loop {
            let blocked = match self.transmit(&stream, llp) {
                After::Idle => false,
                After::Blocked => true,
                After::Reset => {
                    // The connection is gone whether or not the socket could be told to send RST.
                    let _ = tcp::reset(stream);
                    return;
                }
            };
            self.0.happened.notify_waiters();
            let (deadline, wanted) = {
                let rnic = self.lock();
                if rnic.is_stream_over(llp) {
                    return;
                }
                (rnic.poll_timeout(llp), rnic.wants_octets(llp))
            };
            let reads = readable && wanted;
            let interest = match (reads, blocked) {
                (true, true) => Interest::READABLE | Interest::WRITABLE,
                (true, false) => Interest::READABLE,
                (false, _) => Interest::WRITABLE,
            };
            tokio::select! {
                _ = stream.ready(interest), if reads || blocked => {}
                () = wake.notified() => {}
                () = sleep_until(self.0.clock.to_tokio(deadline.unwrap_or_default())), if deadline.is_some() => {
                    self.lock().handle_timeout(self.0.clock.now(), llp);
                }
            }
            if reads {
                readable = self.receive(&stream, llp, &mut buffer);
            }
        }
    }

    /// Sends as long as TCP takes some.
    fn transmit(&self, stream: &TcpStream, llp: LlpHandle) -> After {
        loop {
            let now = self.0.clock.now();
            let mut failed = None;
            let mut rnic = self.lock();
            let sent = rnic.poll_transmit(now, llp, |slices| {
                stream.try_write_vectored(slices).unwrap_or_else(|error| {
                    failed = Some(error.kind());
                    0
                })
            });
            match (sent, failed) {
                (Sent::Nothing, _) => return After::Idle,
                (Sent::Reset, _) => return After::Reset,
                (Sent::Fin, _) => {
                    let shut = socket2::SockRef::from(stream).shutdown(std::net::Shutdown::Write);
                    if shut.is_err() {
                        rnic.handle_reset(now, llp);
                    }
                }
                (Sent::Octets(_), None) => {}
                (Sent::Octets(_), Some(io::ErrorKind::WouldBlock)) => return After::Blocked,
                (Sent::Octets(_), Some(_)) => {
                    rnic.handle_reset(now, llp);
                    return After::Idle;
                }
            }
        }
    }

    /// Reads once; false when nothing more comes.
    fn receive(&self, stream: &TcpStream, llp: LlpHandle, buffer: &mut [u8]) -> bool {
        let read = stream.try_read(buffer);
        let now = self.0.clock.now();
        let mut rnic = self.lock();
        match read {
            Ok(0) => rnic.handle_fin(now, llp),
            Ok(octets) => {
                rnic.handle_octets(now, llp, &buffer[..octets]);
                return true;
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => return true,
            Err(error) if error.kind() == io::ErrorKind::TimedOut => rnic.handle_lost(now, llp),
            Err(_) => rnic.handle_reset(now, llp),
        }
        false
    }

    fn wake(&self, qp: QpHandle) {
        let llp = self.lock().query_qp(qp).ok().and_then(|attributes| attributes.llp);
        if let Some(wake) = llp.and_then(|llp| self.streams().get(&llp).cloned()) {
            wake.notify_one();
        }
    }

    fn lock(&self) -> MutexGuard<'_, Rnic> {
        self.0.rnic.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn streams(&self) -> MutexGuard<'_, HashMap<LlpHandle, Arc<Notify>>> {
        self.0.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A number that nobody can guess, for [`MemorySettings::stag_seed`](crate::memory::MemorySettings::stag_seed).
#[must_use]
pub fn random_seed() -> u64 {
    use std::hash::{BuildHasher, Hasher};
    // Its keys are the operating system's random numbers.
    std::collections::hash_map::RandomState::new().build_hasher().finish()
}

/// What sending came to.
enum After {
    /// All is sent.
    Idle,
    /// TCP takes no more for now.
    Blocked,
    /// The connection is to be reset.
    Reset,
}
