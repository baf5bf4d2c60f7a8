//! Operations of one's choice on one connection, right ones and wrong ones, reported one by one.
//! `siwprobe` of `interop/siw`, which does the same over libibverbs, can be the other side; so can
//! this.
//!
//! Each side has a region for the other and advertises it at the front of its private data
//! ([`Advertisement`]); a text may follow. Byte `i` of the region begins as `7 i + 3`, and byte `i`
//! of a Send or Write is `13 i + 5` (modulo 256, `i` from 0 in each message). The contents at the
//! end are compared by FNV-1a hashes of 64 bits. A side that [echoes](ProbeSettings::echo) sends
//! each Send back.
//!
//! Left out: what a Consumer of verbs cannot express. Malformed segments are
//! [`hostile`](crate::hostile)'s and the suites' matter.

mod advertisement;
mod op;

pub use advertisement::Advertisement;
pub use op::{Op, Place, Target};

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

/// What a side is made of. The defaults are siwprobe's.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProbeSettings {
    /// Octets of the region for the peer, and of the greatest message of this side. Default 2^20.
    pub region: u32,
    /// Peers may read the region. Default true.
    pub readable: bool,
    /// Peers may write it. Default true.
    pub writable: bool,
    /// Receives that are posted. Default 16.
    pub receives: u32,
    /// Octets of each. Default 65,536.
    pub room: u32,
    /// Reads of this side in flight. Default 16.
    pub ord: u32,
    /// Read Requests of the peer that are held. Default 16.
    pub ird: u32,
    /// Each Send is sent back. Default false.
    pub echo: bool,
    /// After the advertisement in the private data. Default none.
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
    /// Bytes of registered memory that a side needs.
    #[must_use]
    pub fn memory(&self) -> u64 {
        3 * u64::from(self.region) + u64::from(self.receives) * u64::from(self.room)
    }
}

/// A message that filled a receive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Arrived {
    /// Its octets.
    pub octets: u32,
    /// FNV-1a of them.
    pub hash: u64,
    /// With Solicited Event.
    pub solicited: bool,
    /// The STag that it invalidated.
    pub invalidated: Option<u32>,
    /// It was Immediate Data.
    pub immediate: Option<Immediate>,
}

/// What an operation came to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Done {
    /// FNV-1a of what a Read brought.
    pub hash: Option<u64>,
    /// What an Atomic Operation found.
    pub original_value: Option<u64>,
    /// The received message.
    pub received: Option<Arrived>,
}

/// How a connection ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ended {
    /// Both sides closed gracefully.
    pub graceful: bool,
    /// The Terminate that ended it, if one did.
    pub terminate: Option<TerminateRecord>,
    /// FNV-1a of the region.
    pub hash: u64,
}

/// Messages of a [burst](Op::Burst) that are outstanding at most.
const OUTSTANDING: u32 = 64;
/// Work request ids of echoes begin here: the slot follows.
const ECHO: u64 = 1 << 32;
/// Work request id of operations.
const OPERATION: u64 = 0;

/// One side of a connection.
#[derive(Debug)]
pub struct Probe {
    endpoint: Endpoint,
    settings: ProbeSettings,
    /// What the peer may read and write.
    region: Region,
    /// What Sends and Writes carry.
    source: Region,
    /// Where Reads go.
    sink: Region,
    receives: Region,
    peer: Option<Advertisement>,
    /// Messages that [`Probe::next`] did not give yet.
    arrived: VecDeque<Arrived>,
    /// A receive is posted, or comes back. With a peer that is content and closes at once none can
    /// be posted any more.
    listens: bool,
}

impl Probe {
    /// A side without connection.
    ///
    /// # Errors
    /// The device has no room for it.
    pub fn new(device: &Device, settings: ProbeSettings) -> Result<Self, WorkloadError> {
        let ProbeSettings { region: length, readable, writable, receives: slots, room, ord, ird, .. } = settings;
        let sends = OUTSTANDING + slots + 1;
        let mut endpoint = Endpoint::new(device, EndpointSettings { sends, receives: slots.max(1), ord, ird })?;
        let access = Access { remote_read: readable, remote_write: writable, ..Access::LOCAL };
        let region = endpoint.register(length as usize, access)?;
        let source = endpoint.register(length as usize, Access::LOCAL)?;
        // What a Read brings is a peer's writing.
        let sink = endpoint.register(length as usize, Access { remote_write: true, ..Access::LOCAL })?;
        let receives = endpoint.register(slots as usize * room as usize, Access::LOCAL)?;
        endpoint.with_mut(region, |octets| fill(octets, 7, 3))?;
        endpoint.with_mut(source, |octets| fill(octets, 13, 5))?;
        let (arrived, listens) = (VecDeque::new(), slots > 0);
        let probe = Probe { endpoint, settings, region, source, sink, receives, peer: None, arrived, listens };
        (0..u64::from(slots)).try_for_each(|slot| probe.post_receive(slot))?;
        Ok(probe)
    }

    /// Connects.
    ///
    /// # Errors
    /// No connection came about.
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

    /// What the peer advertised.
    #[must_use]
    pub fn peer(&self) -> Option<Advertisement> {
        self.peer
    }

    /// Does it, and waits until it is done: for this side, which may be before the peer refuses it.
    ///
    /// # Errors
    /// It failed, the connection is over, or this side cannot do it.
    pub async fn run(&mut self, op: Op) -> Result<Done, WorkloadError> {
        match op {
            Op::Abort => {
                self.endpoint.abort()?;
                Ok(Done::default())
            }
            Op::Disconnect => self.endpoint.disconnect().await.map(|()| Done::default()),
            Op::End => {
                let mut all = Vec::new();
                while let Some(arrived) = self.next().await? {
                    all.push(arrived);
                }
                self.arrived.extend(all);
                Ok(Done::default())
            }
            Op::Receive => match self.next().await? {
                Some(arrived) => Ok(Done { received: Some(arrived), ..Done::default() }),
                None => Err(self.endpoint.failure(CompletedOperation::Receive, CompletionStatus::Flushed)),
            },
            Op::Burst { carrier, octets, count } => {
                let place = Place::At { offset: 0, wrong: 0 };
                let op = match carrier {
                    Carrier::Read => Op::Read { octets, place },
                    Carrier::Send => Op::Send { octets, solicited: false, invalidate: None },
                    Carrier::Write => Op::Write { octets, place },
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

    /// The work request, and how many octets it brings.
    fn operation(&self, op: Op) -> Result<(Operation, Option<u32>), WorkloadError> {
        let largest = self.settings.region;
        let local = |region: Region, octets: u32| -> Result<Sge, WorkloadError> {
            (octets <= largest).then(|| region.part(0, octets)).ok_or_else(|| {
                WorkloadError::Local(format!("{octets} bytes: the region of this side has {largest}, make it larger"))
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
            Op::Write { octets, place } => {
                (Operation::Write { payload: payload(octets)?, remote: self.remote(place, octets)? }, None)
            }
            Op::Read { octets, place } => {
                let (local, remote) = (local(self.sink, octets)?, self.remote(place, octets)?);
                (Operation::Read { local, remote, invalidate_local: false }, Some(octets))
            }
            Op::FetchAdd { offset, wrong } => {
                let operation = AtomicOperation::FetchAdd { add_data: 1, add_mask: 0 };
                (Operation::Atomic { remote: self.remote(Place::At { offset, wrong }, 8)?, operation }, None)
            }
            Op::Immediate => (Operation::Immediate { data: Immediate { data: *b"immedia." }, solicited: false }, None),
            Op::Abort | Op::Burst { .. } | Op::Disconnect | Op::End | Op::Receive => {
                return Err(WorkloadError::Local(format!("{op:?} is no work request")));
            }
        })
    }

    fn advertised(&self) -> Result<Advertisement, WorkloadError> {
        self.peer.ok_or_else(|| WorkloadError::Protocol("it did not advertise a region".to_owned()))
    }

    fn remote(&self, place: Place, octets: u32) -> Result<RemoteAddress, WorkloadError> {
        let Advertisement { address, length, .. } = self.advertised()?;
        let (first, half) = (address.tagged_offset, u64::from(octets / 2));
        let (tagged_offset, wrong) = match place {
            Place::At { offset, wrong } => (first.wrapping_add(offset), wrong),
            Place::AcrossTheEnd => (first.wrapping_add(u64::from(length)).wrapping_sub(half), 0),
            Place::AcrossTheWrap => (half.wrapping_neg(), 0),
        };
        Ok(RemoteAddress { stag: address.stag ^ wrong, tagged_offset })
    }

    /// The next message of the peer; nothing when the connection is over.
    ///
    /// # Errors
    /// The device was closed.
    pub async fn next(&mut self) -> Result<Option<Arrived>, WorkloadError> {
        loop {
            if let Some(arrived) = self.arrived.pop_front() {
                return Ok(Some(arrived));
            }
            // The end flushes a receive, if one is posted.
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
                // Its own completion has more details.
                (_, false) => {}
                (status, true) => return Err(self.endpoint.failure(completion.operation, status)),
            }
        }
    }

    /// Takes what arrived, or gives an echo's receive back.
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
            // It comes with the completion; the receive's memory has nothing of it.
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

    /// What arrived and was not waited for.
    pub fn arrivals(&mut self) -> impl Iterator<Item = Arrived> + '_ {
        self.arrived.drain(..)
    }

    /// Closes gracefully, unless the connection is over already; returns how it ended.
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

/// A Request with this private data comes from a probe: weft's, or siwprobe with `-g` or `-d
/// probe`.
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
