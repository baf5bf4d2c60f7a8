//! The verbs resources of every workload: a Queue Pair, one completion queue for both of its
//! queues, and registered memory.

use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, Ordering};

use bytes::Bytes;

use super::WorkloadError;
use crate::driver::Device;
use crate::driver::cm::{CmError, CmSettings, ConnectRequest, Connected};
use crate::memory::{Access, Buffer, PdId, PhysicalBufferList, QpId, Registration, Stag, StagKey, ToBase};
use crate::mpa::PrivateData;
use crate::verbs::{
    CompletedOperation, CompletionStatus, CqHandle, Operation, Payload, PostError, PostStatus, QpHandle, QpInit,
    QpModify, QpState, ReceiveWr, RemoteAddress, Rnic, SendWr, Sge, TerminateRecord, WorkCompletion,
};

/// Sizes of the queues of an [`Endpoint`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EndpointSettings {
    /// Maximum number of outstanding Work Requests in the Send Queue.
    pub sends: u32,
    /// Maximum number of outstanding receives.
    pub receives: u32,
    /// Maximum number of outstanding RDMA Reads of this side (ORD). Enhanced MPA start-up can lower
    /// this number.
    pub ord: u32,
    /// Maximum number of outstanding RDMA Reads of the peer (IRD). Enhanced MPA start-up can raise
    /// this number.
    pub ird: u32,
}

impl Default for EndpointSettings {
    fn default() -> Self {
        EndpointSettings { sends: 64, receives: 64, ord: 16, ird: 16 }
    }
}

/// Registered memory of an [`Endpoint`]. It is one buffer, with a zero-based region that covers all
/// of the buffer.
#[derive(Debug, Clone, Copy)]
pub struct Region {
    pub(crate) buffer: Buffer,
    stag: Stag,
}

impl Region {
    /// Returns `length` bytes that begin at `offset`, for Work Requests of this side.
    #[must_use]
    pub fn part(&self, offset: u64, length: u32) -> Sge {
        Sge { stag: self.stag.to_bits(), tagged_offset: offset, length }
    }

    /// Returns the remote address of the byte at `offset`, for the peer.
    #[must_use]
    pub fn remote(&self, offset: u64) -> RemoteAddress {
        RemoteAddress { stag: self.stag.to_bits(), tagged_offset: offset }
    }

    /// Allocates `len` bytes, at least one, and registers them with the rights in `access`.
    ///
    /// # Errors
    /// The RNIC does not have enough free memory.
    pub(crate) fn register(
        rnic: &mut Rnic,
        pd: PdId,
        key: u8,
        len: usize,
        access: Access,
    ) -> Result<Self, WorkloadError> {
        let buffer = rnic.memory_mut().allocate_buffer(len.max(1))?;
        // Each buffer begins at a multiple of the largest page size. Therefore pages of this size
        // make the shortest list.
        let list = PhysicalBufferList::of(buffer, 0, buffer.len() as u64, 1 << 21);
        let (key, base) = (StagKey(key), ToBase::ZeroBased);
        let registration = Registration { pd, key, list, base, remote: access.is_remote(), access };
        match rnic.memory_mut().register(&registration) {
            Ok(registered) => Ok(Region { buffer, stag: registered.stag }),
            Err(error) => {
                rnic.memory_mut().free_buffer(buffer)?;
                Err(WorkloadError::from(error))
            }
        }
    }

    /// Deregisters the region and frees its buffer.
    pub(crate) fn deregister(self, rnic: &mut Rnic) {
        // The call fails if a Memory Window is bound to the region, or if the STag is already
        // deallocated.
        let _ = rnic.memory_mut().deallocate_stag(self.stag.index);
        let _ = rnic.memory_mut().free_buffer(self.buffer);
    }

    /// Returns the size of the region in bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.buffer.len()
    }

    /// Returns whether the region has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.buffer.is_empty()
    }
}

/// If `made` contains this side's resources for a connection, returns them. If `made` is an error,
/// rejects the Request with a Reply, because a close without a Reply would not show the reason.
///
/// # Errors
/// The error of `made`.
pub async fn or_reject<T>(
    request: ConnectRequest,
    made: Result<T, WorkloadError>,
) -> Result<(T, ConnectRequest), WorkloadError> {
    match made {
        Ok(made) => Ok((made, request)),
        Err(error) => {
            let reason = PrivateData::new(&b"no room"[..]).unwrap_or_default();
            // If the peer has already closed, `error` is still the error to report.
            let _ = request.reject(&reason).await;
            Err(error)
        }
    }
}

/// One side of a connection. Dropping an endpoint frees all resources, and resets a connection that
/// is still open.
#[derive(Debug)]
pub struct Endpoint {
    device: Device,
    pd: PdId,
    cq: CqHandle,
    qp: QpHandle,
    id: QpId,
    regions: Vec<Region>,
    /// The endpoint has, or had, a connection.
    connected: AtomicBool,
}

impl Endpoint {
    /// Creates an endpoint without a connection.
    ///
    /// # Errors
    /// The device cannot create the endpoint's resources.
    pub fn new(device: &Device, settings: EndpointSettings) -> Result<Self, WorkloadError> {
        let pd = device.verbs(|rnic| rnic.memory_mut().allocate_pd())?;
        let made = device.create_cq(settings.sends.saturating_add(settings.receives)).map_err(WorkloadError::from);
        let made = made.and_then(|cq| {
            let EndpointSettings { sends: max_sq_wrs, receives: max_rq_wrs, ord, ird } = settings;
            let init = QpInit { max_sq_wrs, max_rq_wrs, ord, ird, ..QpInit::new(pd, cq, cq) };
            match device.verbs(|rnic| rnic.create_qp(init, None)) {
                Ok((qp, id, _)) => Ok((cq, qp, id)),
                Err(error) => {
                    device.destroy_cq(cq)?;
                    Err(error.into())
                }
            }
        });
        match made {
            Ok((cq, qp, id)) => {
                let (device, connected) = (device.clone(), AtomicBool::new(false));
                Ok(Endpoint { device, pd, cq, qp, id, regions: Vec::new(), connected })
            }
            Err(error) => {
                device.verbs(|rnic| rnic.memory_mut().deallocate_pd(pd))?;
                Err(error)
            }
        }
    }

    /// Allocates `len` bytes, at least one, and registers them with the rights in `access`.
    ///
    /// # Errors
    /// The device does not have enough free memory.
    pub fn register(&mut self, len: usize, access: Access) -> Result<Region, WorkloadError> {
        let key = u8::try_from(self.regions.len() % 256).unwrap_or(0);
        let region = self.device.verbs(|rnic| Region::register(rnic, self.pd, key, len, access))?;
        self.regions.push(region);
        Ok(region)
    }

    /// Calls `look` with the bytes of a region.
    ///
    /// # Errors
    /// The region does not belong to this device.
    pub fn with<R>(&self, region: Region, look: impl FnOnce(&[u8]) -> R) -> Result<R, WorkloadError> {
        Ok(self.device.verbs(|rnic| rnic.memory().buffer(region.buffer).map(look))?)
    }

    /// Calls `change` with the bytes of a region.
    ///
    /// # Errors
    /// The region does not belong to this device.
    pub fn with_mut<R>(&self, region: Region, change: impl FnOnce(&mut [u8]) -> R) -> Result<R, WorkloadError> {
        Ok(self.device.verbs(|rnic| rnic.memory_mut().buffer_mut(region.buffer).map(change))?)
    }

    /// Connects to a listener.
    ///
    /// # Errors
    /// See [`CmError`].
    pub async fn connect(
        &self,
        address: SocketAddr,
        settings: CmSettings,
        private_data: &PrivateData,
    ) -> Result<Connected, CmError> {
        let connected = self.device.connect(self.qp, address, settings, private_data).await?;
        self.connected.store(true, Ordering::Relaxed);
        Ok(connected)
    }

    /// Accepts a peer. Before this call, post the receives for the peer's first messages.
    ///
    /// # Errors
    /// See [`CmError`].
    pub fn accept(&self, request: ConnectRequest, private_data: &PrivateData) -> Result<Connected, CmError> {
        let connected = request.accept(self.qp, private_data)?;
        self.connected.store(true, Ordering::Relaxed);
        Ok(connected)
    }

    /// Posts a receive into registered memory.
    ///
    /// # Errors
    /// The queue is full, or the connection has ended.
    pub fn post_receive(&self, wr_id: u64, to: Sge) -> Result<(), WorkloadError> {
        let wr = ReceiveWr { wr_id, scatter: vec![to] };
        let posted = self.device.post_receive(self.qp, [wr]);
        self.posted(posted, CompletedOperation::Receive)
    }

    /// Posts Work Requests to the Send Queue.
    ///
    /// # Errors
    /// The queue is full, or the connection has ended.
    pub fn post(&self, list: impl IntoIterator<Item = SendWr>) -> Result<(), WorkloadError> {
        let mut list = list.into_iter().peekable();
        let Some(first) = list.peek().map(|wr| CompletedOperation::from(&wr.operation)) else { return Ok(()) };
        let posted = self.device.post_send(self.qp, list);
        self.posted(posted, first)
    }

    /// Converts the result of posting. If the connection is over, returns the error `Ended` even if
    /// posting succeeded, because the Work Request would wait for the next connection.
    fn posted(&self, posted: Result<usize, PostError>, operation: CompletedOperation) -> Result<(), WorkloadError> {
        match posted {
            Ok(_) if !self.is_idle_again() => Ok(()),
            Ok(_) | Err(PostError { status: PostStatus::InvalidQpState, .. }) => {
                Err(self.failure(operation, CompletionStatus::Flushed))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Returns whether a connection has ended gracefully. In this case the Queue Pair is in Idle,
    /// and new Work Requests would wait for the next connection.
    fn is_idle_again(&self) -> bool {
        self.connected.load(Ordering::Relaxed)
            && self.device.verbs(|rnic| {
                rnic.stream_of(self.qp).is_none()
                    && rnic.query_qp(self.qp).is_ok_and(|attributes| attributes.state == QpState::Idle)
            })
    }

    /// Posts a Send. The bytes of the Send need no registered memory. The Send has a completion
    /// only if it fails.
    ///
    /// # Errors
    /// The queue is full, or the connection has ended.
    pub fn send(&self, octets: impl Into<Bytes>) -> Result<(), WorkloadError> {
        let payload = Payload::Inline(octets.into());
        let operation = Operation::Send { payload, solicited: false, invalidate: None };
        self.post([SendWr { signaled: false, ..SendWr::new(0, operation) }])
    }

    /// Waits for the next completion. If its status is not success, returns an error.
    ///
    /// # Errors
    /// The error is `Ended` if the completion was flushed, and `Failed` if the completion has any
    /// other status than success.
    pub async fn completion(&self) -> Result<WorkCompletion, WorkloadError> {
        let completion = self.any_completion().await?;
        match completion.status {
            CompletionStatus::Success => Ok(completion),
            status => Err(self.failure(completion.operation, status)),
        }
    }

    /// Waits for the next completion, with any status.
    ///
    /// # Errors
    /// The device was closed.
    pub async fn any_completion(&self) -> Result<WorkCompletion, WorkloadError> {
        Ok(self.device.completion(self.cq).await?)
    }

    /// Returns the error for an `operation` that completed with `status`.
    pub(super) fn failure(&self, operation: CompletedOperation, status: CompletionStatus) -> WorkloadError {
        let terminate = self.terminate();
        match status {
            CompletionStatus::Flushed => WorkloadError::Ended { operation, terminate },
            status => WorkloadError::Failed { operation, status, terminate },
        }
    }

    /// Returns the Terminate that ended the connection, if there was one.
    #[must_use]
    pub fn terminate(&self) -> Option<TerminateRecord> {
        self.device.verbs(|rnic| rnic.query_qp(self.qp)).ok().and_then(|attributes| attributes.terminate)
    }

    /// Returns the Queue Pair's number.
    #[must_use]
    pub fn id(&self) -> QpId {
        self.id
    }

    /// Returns the endpoint's device.
    #[must_use]
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Returns the Queue Pair's state.
    ///
    /// # Errors
    /// The device was closed.
    pub fn state(&self) -> Result<QpState, WorkloadError> {
        Ok(self.device.verbs(|rnic| rnic.query_qp(self.qp))?.state)
    }

    /// If the connection is not over yet, closes it gracefully. Waits until the connection is over.
    ///
    /// # Errors
    /// The device was closed.
    pub async fn disconnect(&self) -> Result<(), WorkloadError> {
        if self.state()? == QpState::Rts {
            self.device.disconnect(self.qp).await?;
        } else {
            self.ended().await?;
        }
        Ok(())
    }

    /// Resets the connection.
    ///
    /// # Errors
    /// The Queue Pair cannot enter the Error state.
    pub fn abort(&self) -> Result<(), WorkloadError> {
        self.device.modify_qp(self.qp, &QpModify::to(QpState::Error))?;
        Ok(())
    }

    /// Waits until one of the two sides has ended the connection. Returns the Queue Pair's state,
    /// which is Idle after a graceful close.
    ///
    /// # Errors
    /// The device was closed.
    pub async fn ended(&self) -> Result<QpState, WorkloadError> {
        Ok(self.device.ended(self.qp).await?)
    }
}

impl Drop for Endpoint {
    fn drop(&mut self) {
        // A closed device has already destroyed some of these objects.
        let _ = self.device.destroy_qp(self.qp);
        let _ = self.device.destroy_cq(self.cq);
        self.device.verbs(|rnic| {
            for region in &self.regions {
                region.deregister(rnic);
            }
            let _ = rnic.memory_mut().deallocate_pd(self.pd);
        });
    }
}
