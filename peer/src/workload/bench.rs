//! Streams of equal messages in one direction. They measure the bandwidth and the latency of Send,
//! RDMA Write and RDMA Read.
//!
//! One side is the [`Source`], which posts the operations. The other side is the [`Sink`]. Either
//! side can open the connection. The Request's private data contains the [`Plan`] as text. Each
//! side advertises its memory: the Initiator in the text after the plan, and the Responder in its
//! Reply. All messages of a side use the same buffer.
//!
//! After each group of [`Plan::answered`] Sends, the sink answers with one Send. If the plan
//! measures the latency of Sends, the answer has the plan's message size. In all other cases the
//! answer is empty. A run of Writes or Reads ends with a Send and its answer. The answer shows that
//! all data has been transferred. This module reads no clock. The caller measures how long
//! [`Source::run`] or [`Sink::request`] takes.

use core::net::SocketAddr;

use bytes::Bytes;

use super::{Endpoint, EndpointSettings, Region, WorkloadError, or_reject};
use crate::driver::Device;
use crate::driver::cm::{CmSettings, ConnectRequest, Connected};
use crate::memory::Access;
use crate::mpa::PrivateData;
use crate::verbs::{CompletedOperation, Operation, Payload, RemoteAddress, SendWr};

/// The operation that transfers the data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Carrier {
    /// RDMA Reads of the sink's memory. The side that posts the Reads is called [`Source`],
    /// although it receives the data.
    Read,
    /// Sends.
    Send,
    /// RDMA Writes.
    Write,
}

impl Carrier {
    /// All operations.
    pub const ALL: [Carrier; 3] = [Carrier::Write, Carrier::Read, Carrier::Send];

    /// Returns the name of the operation in a plan.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Carrier::Read => "read",
            Carrier::Send => "send",
            Carrier::Write => "write",
        }
    }
}

/// Maximum size of a message in bytes.
pub const MAX_SIZE: u32 = 64 << 20;
/// Maximum number of messages in flight.
pub const MAX_DEPTH: u32 = 1024;

/// The measurement on a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Plan {
    /// The operation that transfers the data.
    pub carrier: Carrier,
    /// Size of a message in bytes, at most [`MAX_SIZE`].
    pub size: u32,
    /// Number of messages in flight, 1 to [`MAX_DEPTH`].
    pub depth: u32,
    /// Whether to measure round trips. If true, only one message is in flight at a time, and the
    /// sink answers each Send.
    pub latency: bool,
    /// The Responder is the source.
    pub reverse: bool,
}

const MAGIC: &str = "weft-bench/1";
/// Size in bytes of a Send that ends a run, or that requests a number of messages from the source.
const CONTROL: u32 = 8;

impl Plan {
    /// Returns the text of the plan, followed by this side's memory.
    fn emit(&self, memory: RemoteAddress) -> String {
        let Plan { carrier, size, depth, latency, reverse } = self;
        let (kind, way) = (if *latency { "latency" } else { "bandwidth" }, if *reverse { "back" } else { "forth" });
        format!("{MAGIC} {} {size} {depth} {kind} {way} {}", carrier.name(), emit_memory(memory))
    }

    /// Parses a Request's private data. Returns `None` if the private data is not a plan, or if a
    /// value exceeds its limit.
    #[must_use]
    pub fn parse(private_data: &[u8]) -> Option<(Self, RemoteAddress)> {
        let text = std::str::from_utf8(private_data).ok()?;
        let mut words = text.split(' ');
        let mut word = || words.next();
        (word()? == MAGIC).then_some(())?;
        let name = word()?;
        let carrier = Carrier::ALL.into_iter().find(|carrier| carrier.name() == name)?;
        let size = word()?.parse().ok().filter(|size| *size <= MAX_SIZE)?;
        let depth = word()?.parse().ok().filter(|depth| (1..=MAX_DEPTH).contains(depth))?;
        let latency = word()? == "latency";
        let reverse = word()? == "back";
        let memory = parse_memory(word()?)?;
        Some((Plan { carrier, size, depth, latency, reverse }, memory))
    }

    /// Returns the number of bytes of registered memory that a side needs for this plan.
    #[must_use]
    pub fn memory(&self) -> u64 {
        u64::from(self.size.max(1)) + u64::from(self.room())
    }

    /// Returns the size of each receive in bytes.
    fn room(&self) -> u32 {
        self.size.max(CONTROL)
    }

    /// Returns the number of Sends after which the sink sends one answer.
    #[must_use]
    pub fn answered(&self) -> u32 {
        if self.latency || self.carrier != Carrier::Send { 1 } else { self.depth.div_ceil(2) }
    }

    /// Returns the number of Sends that reach the sink in a run of `count` messages.
    fn sends(&self, count: u64) -> u64 {
        match self.carrier {
            Carrier::Send => count,
            Carrier::Write if self.latency => count,
            Carrier::Read | Carrier::Write => 1,
        }
    }
}

pub(super) fn emit_memory(memory: RemoteAddress) -> String {
    format!("{:x}@{:x}", memory.tagged_offset, memory.stag)
}

pub(super) fn parse_memory(text: &str) -> Option<RemoteAddress> {
    let (offset, stag) = text.split_once('@')?;
    let tagged_offset = u64::from_str_radix(offset, 16).ok()?;
    Some(RemoteAddress { stag: u32::from_str_radix(stag, 16).ok()?, tagged_offset })
}

/// The state of one side, which is a source or a sink.
#[derive(Debug)]
struct Side {
    endpoint: Endpoint,
    plan: Plan,
    /// Memory for the data of the messages. The source sends the data of Sends and Writes from this
    /// memory, and receives the data of Reads in it. The sink only offers this memory: the source
    /// writes to it or reads from it.
    data: Region,
    /// Memory of the receives.
    messages: Region,
    peer: RemoteAddress,
    /// Size of each receive in bytes.
    room: u32,
}

impl Side {
    fn new(device: &Device, plan: Plan) -> Result<Self, WorkloadError> {
        let settings =
            EndpointSettings { sends: plan.depth + 8, receives: plan.depth + 8, ord: plan.depth.min(128), ird: 128 };
        let mut endpoint = Endpoint::new(device, settings)?;
        let data = endpoint.register(plan.size as usize, Access { bind: false, ..Access::ALL })?;
        let room = plan.room();
        let messages = endpoint.register(room as usize, Access::LOCAL)?;
        let side = Side { endpoint, plan, data, messages, peer: RemoteAddress { stag: 0, tagged_offset: 0 }, room };
        (0..settings.receives).try_for_each(|_| side.post_receive())?;
        Ok(side)
    }

    fn post_receive(&self) -> Result<(), WorkloadError> {
        self.endpoint.post_receive(0, self.messages.part(0, self.room))
    }

    /// Waits for the peer's next Send. Returns its size in bytes.
    async fn receive(&self) -> Result<u32, WorkloadError> {
        loop {
            let completion = self.endpoint.completion().await?;
            if completion.operation == CompletedOperation::Receive {
                return Ok(completion.octets);
            }
        }
    }

    fn operation(&self) -> Operation {
        let part = self.data.part(0, self.plan.size);
        let payload = Payload::Gather(vec![part]);
        match self.plan.carrier {
            Carrier::Read => Operation::Read { local: part, remote: self.peer, invalidate_local: false },
            Carrier::Send => Operation::Send { payload, solicited: false, invalidate: None },
            Carrier::Write => Operation::Write { payload, remote: self.peer },
        }
    }

    fn message(&self, octets: u32, signaled: bool) -> SendWr {
        let payload = Payload::Gather(vec![self.data.part(0, octets)]);
        let operation = Operation::Send { payload, solicited: false, invalidate: None };
        SendWr { signaled, ..SendWr::new(0, operation) }
    }

    fn send(&self, octets: u32, signaled: bool) -> Result<(), WorkloadError> {
        self.endpoint.post([self.message(octets, signaled)])
    }
}

/// The side that posts the operations.
#[derive(Debug)]
pub struct Source(Side);

impl Source {
    /// Sends, writes or reads `count` messages. Returns when all data has been transferred.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn run(&self, count: u64) -> Result<(), WorkloadError> {
        let side = &self.0;
        match (side.plan.latency, side.plan.carrier) {
            (true, Carrier::Send | Carrier::Write) => self.round_trips(count).await,
            (_, Carrier::Send) => self.stream_sends(count).await,
            (_, Carrier::Read | Carrier::Write) => {
                let depth = if side.plan.latency { 1 } else { u64::from(side.plan.depth) };
                let (mut posted, mut done) = (0, 0);
                while done < count {
                    while posted < count && posted - done < depth {
                        side.endpoint.post([SendWr::new(0, side.operation())])?;
                        posted += 1;
                    }
                    side.endpoint.completion().await?;
                    done += 1;
                }
                side.endpoint.send(Bytes::from_static(&[0; CONTROL as usize]))?;
                side.receive().await?;
                side.post_receive()
            }
        }
    }

    async fn round_trips(&self, count: u64) -> Result<(), WorkloadError> {
        let side = &self.0;
        for _ in 0..count {
            if side.plan.carrier == Carrier::Write {
                // An RDMA Write gives the sink no completion, so a Send follows it.
                let write = SendWr { signaled: false, ..SendWr::new(0, side.operation()) };
                side.endpoint.post([write, side.message(0, false)])?;
            } else {
                side.send(side.plan.size, false)?;
            }
            side.receive().await?;
            side.post_receive()?;
        }
        Ok(())
    }

    /// Posts Sends such that at most `depth` Sends are unanswered. `count` is rounded up to a
    /// multiple of [`Plan::answered`].
    async fn stream_sends(&self, count: u64) -> Result<(), WorkloadError> {
        let (side, answered) = (&self.0, u64::from(self.0.plan.answered()));
        let count = count.next_multiple_of(answered);
        let (mut posted, mut confirmed) = (0, 0);
        while confirmed < count {
            while posted < count && posted - confirmed < u64::from(side.plan.depth) {
                side.endpoint.post([SendWr { signaled: false, ..SendWr::new(0, side.operation()) }])?;
                posted += 1;
            }
            side.receive().await?;
            side.post_receive()?;
            confirmed += answered;
        }
        Ok(())
    }

    /// Closes gracefully.
    ///
    /// # Errors
    /// The device was closed.
    pub async fn disconnect(&self) -> Result<(), WorkloadError> {
        self.0.endpoint.disconnect().await
    }
}

/// The side that answers the source's Sends.
#[derive(Debug)]
pub struct Sink(Side);

impl Sink {
    /// Answers a source's run of `count` messages.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn run(&self, count: u64) -> Result<(), WorkloadError> {
        let side = &self.0;
        let answered = u64::from(side.plan.answered());
        let sends = side.plan.sends(count).next_multiple_of(answered);
        self.answer(sends).await
    }

    /// Requests a run of `count` messages from a source that listens, and answers this run.
    ///
    /// # Errors
    /// The connection has ended.
    pub async fn request(&self, count: u64) -> Result<(), WorkloadError> {
        self.0.endpoint.send(Bytes::copy_from_slice(&count.to_be_bytes()))?;
        self.run(count).await
    }

    async fn answer(&self, sends: u64) -> Result<(), WorkloadError> {
        let side = &self.0;
        let every = u64::from(side.plan.answered());
        let octets = if side.plan.latency && side.plan.carrier == Carrier::Send { side.plan.size } else { 0 };
        for n in 1..=sends {
            side.receive().await?;
            if n % every == 0 {
                side.send(octets, false)?;
            }
            // There are more posted receives than messages in flight. Therefore this side can send
            // the answer before it posts the receive again.
            side.post_receive()?;
        }
        Ok(())
    }

    /// Closes gracefully.
    ///
    /// # Errors
    /// The device was closed.
    pub async fn disconnect(&self) -> Result<(), WorkloadError> {
        self.0.endpoint.disconnect().await
    }
}

/// Connects as the source of a plan.
///
/// # Errors
/// The connection could not be opened, or the peer does not support plans.
pub async fn connect_source(
    device: &Device,
    address: SocketAddr,
    settings: CmSettings,
    plan: Plan,
) -> Result<(Source, Connected), WorkloadError> {
    let (side, connected) = connect(device, address, settings, Plan { reverse: false, ..plan }).await?;
    Ok((Source(side), connected))
}

/// Connects as the sink of a source that listens.
///
/// # Errors
/// The connection could not be opened, or the peer does not support plans.
pub async fn connect_sink(
    device: &Device,
    address: SocketAddr,
    settings: CmSettings,
    plan: Plan,
) -> Result<(Sink, Connected), WorkloadError> {
    let (side, connected) = connect(device, address, settings, Plan { reverse: true, ..plan }).await?;
    Ok((Sink(side), connected))
}

async fn connect(
    device: &Device,
    address: SocketAddr,
    settings: CmSettings,
    plan: Plan,
) -> Result<(Side, Connected), WorkloadError> {
    let mut side = Side::new(device, plan)?;
    let request = PrivateData::new(plan.emit(side.data.remote(0))).map_err(crate::driver::cm::CmError::from)?;
    let connected = side.endpoint.connect(address, settings, &request).await?;
    let reply = connected.peer.private_data.as_octets();
    side.peer = std::str::from_utf8(reply).ok().and_then(parse_memory).ok_or_else(|| {
        WorkloadError::Protocol("the Reply advertises no memory; is `weft serve` running on the other side?".into())
    })?;
    Ok((side, connected))
}

/// Accepts a peer whose Request contains a plan, and performs this side's part until the peer
/// closes.
///
/// # Errors
/// This function fails in these cases:
/// - The Request contains no plan.
/// - The device has no memory left. A rejecting Reply reports this to the peer.
/// - The connection ended for another reason than a close by the peer between two runs.
pub async fn serve(device: &Device, request: ConnectRequest) -> Result<(), WorkloadError> {
    let Some((plan, memory)) = Plan::parse(request.peer().private_data.as_octets()) else {
        return Err(WorkloadError::Protocol("the Request's benchmark settings are missing or invalid".into()));
    };
    let (mut side, request) = or_reject(request, Side::new(device, plan)).await?;
    side.peer = memory;
    let reply = PrivateData::new(emit_memory(side.data.remote(0))).map_err(crate::driver::cm::CmError::from)?;
    side.endpoint.accept(request, &reply)?;
    let served = if plan.reverse { serve_source(side).await } else { Sink(side).answer(u64::MAX).await };
    match served {
        Err(WorkloadError::Ended { operation: CompletedOperation::Receive, terminate: None }) => Ok(()),
        served => served,
    }
}

async fn serve_source(side: Side) -> Result<(), WorkloadError> {
    let source = Source(side);
    loop {
        let side = &source.0;
        if side.receive().await? != CONTROL {
            return Err(WorkloadError::Protocol("expected a Send that requests a number of messages".into()));
        }
        let count =
            side.endpoint.with(side.messages, |octets| octets.first_chunk().copied().map(u64::from_be_bytes))?;
        side.post_receive()?;
        source.run(count.unwrap_or(0)).await?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plans_travel_as_text() {
        let plan = Plan { carrier: Carrier::Write, size: 1 << 20, depth: 16, latency: false, reverse: true };
        let memory = RemoteAddress { stag: 0x1234_56ff, tagged_offset: 0x1000 };
        let text = "weft-bench/1 write 1048576 16 bandwidth back 1000@123456ff";
        assert_eq!((plan.emit(memory).as_str(), Plan::parse(text.as_bytes())), (text, Some((plan, memory))));
        for wrong in [
            "",
            "weft-bench/2 write 1048576 16 bandwidth back 1000@123456ff",
            "weft-bench/1 push 1048576 16 bandwidth back 1000@123456ff",
            "weft-bench/1 write 67108865 16 bandwidth back 1000@123456ff",
            "weft-bench/1 write 1048576 0 bandwidth back 1000@123456ff",
            "weft-bench/1 write 1048576 1025 bandwidth back 1000@123456ff",
            "weft-bench/1 write 1048576 16 bandwidth back 1000",
        ] {
            assert_eq!(Plan::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
