//! Runs single operations on one connection, and returns the result of each operation. The
//! operations can be valid or invalid. The program `siwprobe` in `interop/siw` runs the same
//! operations with libibverbs. The peer can be `siwprobe` or another probe.
//!
//! Each side has a region for its peer, and advertises this region at the start of its private data
//! ([`Advertisement`]). A text can follow the advertisement. At the start, byte `i` of the region
//! is `7 i + 3`. Byte `i` of a Send or Write is `13 i + 5`. In each message, `i` starts at 0. Both
//! values are modulo 256. The results contain 64-bit FNV-1a hashes of the data. The caller can
//! compare the hashes of both sides. A side that [echoes](ProbeSettings::echo) sends each Send
//! back.
//!
//! The probe sends no malformed segments, because the verbs cannot express such segments.
//! [`hostile`](crate::hostile) and the suites send malformed segments.

mod advertisement;
mod op;

pub use advertisement::Advertisement;
pub use op::{Op, RemotePosition, Target};

use core::net::SocketAddr;
use std::collections::VecDeque;

use bytes::Bytes;
use weft_core::wire::rdmap::{AtomicOperation, Immediate};

use super::bench::Carrier;
use super::cat::Totals;
use super::{Endpoint, EndpointSettings, Region, WorkloadError};
use crate::driver::Device;
use crate::driver::cm::{CmError, CmSettings, ConnectRequest, Connected};
use crate::memory::Access;
use crate::mpa::PrivateData;
use crate::verbs::{
    CompletedOperation, CompletionStatus, Operation, Payload, QpState, RemoteAddress, SendWr, Sge, TerminateRecord,
    WorkCompletion,
};

/// Settings of one side. siwprobe has the same defaults.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSettings {
    /// Size in bytes of the region for the peer. This is also the maximum size of this side's
    /// messages. Default 2^20.
    pub region: u32,
    /// The peer may read the region. Default true.
    pub readable: bool,
    /// The peer may write to the region. Default true.
    pub writable: bool,
    /// Number of posted receives. Default 16.
    pub receives: u32,
    /// Size of each receive in bytes. Default 65,536.
    pub room: u32,
    /// Maximum number of outstanding RDMA Reads of this side (ORD). Default 16.
    pub ord: u32,
    /// Maximum number of outstanding RDMA Reads of the peer (IRD). Default 16.
    pub ird: u32,
    /// This side sends back each Send that it receives. Default false.
    pub echo: bool,
    /// The text after the advertisement in the private data. Default: no text.
    pub text: Bytes,
}

impl Default for ProbeSettings {
    fn default() -> Self {
        ProbeSettings {
            region: 1 << 20,
            readable: true,
            writable: true,
            receives: 16,
            room: 65_536,
            ord: 16,
            ird: 16,
            echo: false,
            text: Bytes::new(),
        }
    }
}

impl ProbeSettings {
    /// Returns the number of bytes of registered memory that a side needs.
    #[must_use]
    pub fn memory(&self) -> u64 {
        3 * u64::from(self.region) + u64::from(self.receives) * u64::from(self.room)
    }
}

/// A message that completed a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Size of the message in bytes.
    pub octets: u32,
    /// 64-bit FNV-1a hash of the message.
    pub hash: u64,
    /// The message was sent with Solicited Event.
    pub solicited: bool,
    /// The STag that the message invalidated.
    pub invalidated: Option<u32>,
    /// The value of the message, if the message was Immediate Data.
    pub immediate: Option<Immediate>,
}

/// The result of an operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// 64-bit FNV-1a hash of the data that an RDMA Read returned.
    pub hash: Option<u64>,
    /// The value in memory before an Atomic Operation.
    pub original_value: Option<u64>,
    /// The received message.
    pub received: Option<Arrived>,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// The connection was closed gracefully.
    pub graceful: bool,
    /// The Terminate that ended the connection, if there was one.
    pub terminate: Option<TerminateRecord>,
    /// 64-bit FNV-1a hash of this side's region.
    pub hash: u64,
}

/// Maximum number of outstanding messages of a [burst](Op::Burst).
const OUTSTANDING: u32 = 64;
/// The `wr_id` of an echo is this number plus the slot of the receive.
const ECHO: u64 = 1 << 32;
/// The `wr_id` of operations.
const OPERATION: u64 = 0;

/// One side of a connection.
#[derive(Debug)]
pub struct Probe {
    endpoint: Endpoint,
    settings: ProbeSettings,
    /// The region that the peer may access.
    region: Region,
    /// The data of Sends and Writes.
    source: Region,
    /// Memory for the data of Reads.
    sink: Region,
    receives: Region,
    peer: Option<Advertisement>,
    /// Messages that [`Probe::next`] has not returned yet.
    arrived: VecDeque<Arrived>,
    /// Messages that arrived while this side waits for the end of the connection.
    before_end: Vec<Arrived>,
    /// Whether a receive is posted, or will be posted after an echo. No receive can be posted after
    /// the peer has closed the connection.
    listens: bool,
}

impl Probe {
    /// Creates a side without a connection.
    ///
    /// # Errors
    /// The device cannot create the side's resources.
    pub fn new(device: &Device, settings: ProbeSettings) -> Result<Self, WorkloadError> {
        let ProbeSettings { region: length, readable, writable, receives: slots, room, ord, ird, .. } = settings;
        let sends = OUTSTANDING + slots + 1;
        let mut endpoint = Endpoint::new(device, EndpointSettings { sends, receives: slots.max(1), ord, ird })?;
        let access = Access { remote_read: readable, remote_write: writable, ..Access::LOCAL };
        let region = endpoint.register(length as usize, access)?;
        let source = endpoint.register(length as usize, Access::LOCAL)?;
        // The peer's Read Response writes to this region.
        let sink = endpoint.register(length as usize, Access { remote_write: true, ..Access::LOCAL })?;
        let receives = endpoint.register(slots as usize * room as usize, Access::LOCAL)?;
        endpoint.with_mut(region, |octets| fill(octets, 7, 3))?;
        endpoint.with_mut(source, |octets| fill(octets, 13, 5))?;
        let (arrived, before_end, listens) = (VecDeque::new(), Vec::new(), slots > 0);
        let probe =
            Probe { endpoint, settings, region, source, sink, receives, peer: None, arrived, before_end, listens };
        (0..u64::from(slots)).try_for_each(|slot| probe.post_receive(slot))?;
        Ok(probe)
    }

    /// Connects.
    ///
    /// # Errors
    /// The connection could not be opened.
    pub async fn connect(&mut self, address: SocketAddr, settings: CmSettings) -> Result<Connected, CmError> {
        let connected = self.endpoint.connect(address, settings, &self.private_data()?).await?;
        self.peer = Advertisement::parse(connected.peer.private_data.as_octets()).0;
        Ok(connected)
    }

    /// Accepts a peer.
    ///
    /// # Errors
    /// See [`CmError`].
    pub fn accept(&mut self, request: ConnectRequest) -> Result<Connected, CmError> {
        self.peer = Advertisement::parse(request.peer().private_data.as_octets()).0;
        self.endpoint.accept(request, &self.private_data()?)
    }

    fn private_data(&self) -> Result<PrivateData, CmError> {
        let ProbeSettings { region, readable, writable, .. } = self.settings;
        let access = Access { remote_read: readable, remote_write: writable, ..Access::LOCAL };
        let advertisement = Advertisement::new(self.region.remote(0), region, access);
        Ok(PrivateData::new([&advertisement.emit()[..], &self.settings.text].concat())?)
    }

    /// Returns the peer's advertisement. Returns `None` if the peer's private data contains no
    /// advertisement.
    #[must_use]
    pub fn peer(&self) -> Option<Advertisement> {
        self.peer
    }

    /// Performs an operation, and waits until this side has completed the operation. The peer can
    /// still reject the operation after that.
    ///
    /// # Errors
    /// The operation failed, the connection is over, or this side cannot perform the operation.
    pub async fn run(&mut self, op: Op) -> Result<Done, WorkloadError> {
        match op {
            Op::Abort => {
                self.endpoint.abort()?;
                Ok(Done::default())
            }
            Op::Disconnect => self.endpoint.disconnect().await.map(|()| Done::default()),
            Op::End => {
                // If the caller stops to wait, these messages remain.
                while let Some(arrived) = self.next().await? {
                    self.before_end.push(arrived);
                }
                self.arrived.extend(self.before_end.drain(..));
                Ok(Done::default())
            }
            Op::Receive => match self.next().await? {
                Some(arrived) => Ok(Done { received: Some(arrived), ..Done::default() }),
                None => Err(self.endpoint.failure(CompletedOperation::Receive, CompletionStatus::Flushed)),
            },
            Op::Burst { carrier, octets, count } => {
                let position = RemotePosition::Offset { offset: 0, wrong: 0 };
                let op = match carrier {
                    Carrier::Read => Op::Read { octets, position },
                    Carrier::Send => Op::Send { octets, solicited: false, invalidate: None },
                    Carrier::Write => Op::Write { octets, position },
                };
                self.burst(op, count).await
            }
            Op::FetchAdd { .. } | Op::Immediate | Op::Read { .. } | Op::Send { .. } | Op::Write { .. } => {
                self.burst(op, 1).await
            }
        }
    }

    async fn burst(&mut self, op: Op, count: u32) -> Result<Done, WorkloadError> {
        let (operation, brings) = self.operation(op)?;
        let (mut posted, mut completed, mut done) = (0, 0, Done::default());
        while completed < count {
            let room = count.min(completed + OUTSTANDING);
            self.endpoint.post((posted..room).map(|_| SendWr::new(OPERATION, operation.clone())))?;
            posted = room;
            let completion = self.operation_done().await?;
            completed += 1;
            done.original_value = completion.original_value;
        }
        if let Some(octets) = brings {
            done.hash = Some(self.endpoint.with(self.sink, |sink| hash(&sink[..octets as usize]))?);
        }
        Ok(done)
    }

    /// Returns the operation for a Work Request. For an RDMA Read, also returns the number of bytes
    /// to read.
    fn operation(&self, op: Op) -> Result<(Operation, Option<u32>), WorkloadError> {
        let largest = self.settings.region;
        let local = |region: Region, octets: u32| -> Result<Sge, WorkloadError> {
            (octets <= largest).then(|| region.part(0, octets)).ok_or_else(|| {
                WorkloadError::Local(format!("{octets} bytes do not fit in this side's region of {largest} bytes"))
            })
        };
        let payload = |octets| -> Result<Payload, WorkloadError> {
            let part = local(self.source, octets)?;
            Ok(Payload::Gather(if octets == 0 { Vec::new() } else { vec![part] }))
        };
        Ok(match op {
            Op::Send { octets, solicited, invalidate } => {
                let invalidate = match invalidate {
                    None => None,
                    Some(Target::Zero) => Some(0),
                    Some(Target::Region(wrong)) => Some(self.advertised()?.address.stag ^ wrong),
                };
                (Operation::Send { payload: payload(octets)?, solicited, invalidate }, None)
            }
            Op::Write { octets, position } => {
                (Operation::Write { payload: payload(octets)?, remote: self.remote(position, octets)? }, None)
            }
            Op::Read { octets, position } => {
                let (local, remote) = (local(self.sink, octets)?, self.remote(position, octets)?);
                (Operation::Read { local, remote, invalidate_local: false }, Some(octets))
            }
            Op::FetchAdd { offset, wrong } => {
                let operation = AtomicOperation::FetchAdd { add_data: 1, add_mask: 0 };
                (
                    Operation::Atomic { remote: self.remote(RemotePosition::Offset { offset, wrong }, 8)?, operation },
                    None,
                )
            }
            Op::Immediate => (Operation::Immediate { data: Immediate { data: *b"immedia." }, solicited: false }, None),
            Op::Abort | Op::Burst { .. } | Op::Disconnect | Op::End | Op::Receive => {
                return Err(WorkloadError::Local(format!("{op} is not a Work Request")));
            }
        })
    }

    fn advertised(&self) -> Result<Advertisement, WorkloadError> {
        self.peer.ok_or_else(|| WorkloadError::Protocol("the peer's private data advertises no region".to_owned()))
    }

    fn remote(&self, position: RemotePosition, octets: u32) -> Result<RemoteAddress, WorkloadError> {
        let Advertisement { address, length, .. } = self.advertised()?;
        let (first, half) = (address.tagged_offset, u64::from(octets / 2));
        let (tagged_offset, wrong) = match position {
            RemotePosition::Offset { offset, wrong } => (first.wrapping_add(offset), wrong),
            RemotePosition::AcrossTheEnd => (first.wrapping_add(u64::from(length)).wrapping_sub(half), 0),
            RemotePosition::AcrossTheWrap => (half.wrapping_neg(), 0),
        };
        Ok(RemoteAddress { stag: address.stag ^ wrong, tagged_offset })
    }

    /// Waits for the peer's next message. Returns `None` if the connection is over.
    ///
    /// # Errors
    /// The device was closed.
    pub async fn next(&mut self) -> Result<Option<Arrived>, WorkloadError> {
        loop {
            if let Some(arrived) = self.arrived.pop_front() {
                return Ok(Some(arrived));
            }
            // The end of the connection completes a posted receive. Without a posted receive, no
            // completion would arrive.
            if !self.listens {
                self.endpoint.ended().await?;
                return Ok(None);
            }
            let completion = self.endpoint.any_completion().await?;
            if completion.status != CompletionStatus::Success {
                self.endpoint.ended().await?;
                return Ok(None);
            }
            self.handle(completion)?;
        }
    }

    /// Waits for the completion of an operation that was posted.
    async fn operation_done(&mut self) -> Result<WorkCompletion, WorkloadError> {
        loop {
            let completion = self.endpoint.any_completion().await?;
            let is_operation = completion.operation != CompletedOperation::Receive && completion.wr_id == OPERATION;
            match (completion.status, is_operation) {
                (CompletionStatus::Success, true) => return Ok(completion),
                (CompletionStatus::Success, false) => self.handle(completion)?,
                // A different Work Request failed. The completion of the awaited operation arrives
                // after this completion, and contains more details.
                (_, false) => {}
                (status, true) => return Err(self.endpoint.failure(completion.operation, status)),
            }
        }
    }

    /// Handles the completion of a receive or of an echo. After an echo, posts the receive of this
    /// echo again.
    fn handle(&mut self, completion: WorkCompletion) -> Result<(), WorkloadError> {
        if completion.operation != CompletedOperation::Receive {
            if let Some(slot) = completion.wr_id.checked_sub(ECHO) {
                self.listens = self.post_receive(slot).is_ok();
            }
            return Ok(());
        }
        let WorkCompletion { wr_id: slot, solicited, invalidated, immediate, .. } = completion;
        let part = self.slot(slot, completion.octets);
        let start = usize::try_from(part.tagged_offset).unwrap_or(0);
        let (octets, hash) = match immediate {
            // The value is in the completion, not in the receive's memory.
            Some(Immediate { data }) => (data.len() as u32, hash(&data)),
            None => {
                let end = start + part.length as usize;
                (part.length, self.endpoint.with(self.receives, |octets| hash(&octets[start..end]))?)
            }
        };
        self.arrived.push_back(Arrived { octets, hash, solicited, invalidated, immediate });
        if self.settings.echo {
            let payload = Payload::Gather(if part.length == 0 { Vec::new() } else { vec![part] });
            let echo = Operation::Send { payload, solicited: false, invalidate: None };
            self.listens = self.endpoint.post([SendWr::new(ECHO + slot, echo)]).is_ok();
        } else {
            self.listens = self.post_receive(slot).is_ok();
        }
        Ok(())
    }

    fn slot(&self, slot: u64, length: u32) -> Sge {
        self.receives.part(slot * u64::from(self.settings.room), length)
    }

    fn post_receive(&self, slot: u64) -> Result<(), WorkloadError> {
        self.endpoint.post_receive(slot, self.slot(slot, self.settings.room))
    }

    /// Returns the messages that have arrived and were not returned by [`Probe::next`].
    pub fn arrivals(&mut self) -> impl Iterator<Item = Arrived> + '_ {
        self.before_end.drain(..).chain(self.arrived.drain(..))
    }

    /// Returns whether a message has the bytes of a Send of the same length from this side.
    #[must_use]
    pub fn is_like_own(&self, message: &Arrived) -> bool {
        let sent = self.endpoint.with(self.source, |source| source.get(..message.octets as usize).map(hash));
        sent.is_ok_and(|sent| sent == Some(message.hash))
    }

    /// If the connection is not over yet, closes it gracefully. Returns how the connection ended.
    ///
    /// # Errors
    /// The device was closed.
    pub async fn finish(&mut self) -> Result<Ended, WorkloadError> {
        self.endpoint.disconnect().await?;
        let graceful = self.endpoint.state()? == QpState::Idle;
        let hash = self.endpoint.with(self.region, hash)?;
        Ok(Ended { graceful, terminate: self.endpoint.terminate(), hash })
    }
}

/// Returns whether a Request with this private data comes from a probe: from weft, or from siwprobe
/// with `-g` or `-d probe`.
#[must_use]
pub fn is_requested(private_data: &[u8]) -> bool {
    Advertisement::parse(private_data).0.is_some() || private_data.starts_with(b"probe")
}

fn fill(octets: &mut [u8], factor: usize, first: usize) {
    for (n, octet) in octets.iter_mut().enumerate() {
        *octet = (n.wrapping_mul(factor).wrapping_add(first) & 0xff) as u8;
    }
}

fn hash(octets: &[u8]) -> u64 {
    let mut totals = Totals::default();
    totals.add(octets);
    totals.hash
}
