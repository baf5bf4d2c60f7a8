//! One stream of bytes from a source to a sink. At the end, both sides compare length and hash.
//!
//! The stream is sent in parts. The carrier determines how a part is transferred:
//!
//! - `Send`: the Send contains the part;
//! - `Write`: the source writes the part, then sends the part's length;
//! - `Read`: the source sends the part's length, then the sink reads the part.
//!
//! ```text
//!   source                                        sink
//!     | Send: a part, or a part's length    ------->  |
//!     |  <-------              Send, empty: go ahead  |
//!     |                     ...                       |
//!     | Send, empty: no more parts          ------->  |
//!     | Send: length and hash               ------->  |
//!     |  <-------              Send: length and hash  |
//! ```
//!
//! Each side's memory has [`SLOTS`] slots. The parts use the slots in rotation. At most [`SLOTS`]
//! parts are in flight. The Initiator's private data contains the roles and the address of the
//! Initiator's slots. The Responder's private data contains the address of the Responder's slots.
//! An Initiator that is the sink first sends an empty Send, because MPA does not permit the
//! Responder to send the first message. Hashes are 64-bit FNV-1a, which detects mistakes but not
//! forged data.

use core::net::SocketAddr;
use std::collections::VecDeque;

use bytes::Bytes;

use super::bench::{Carrier, emit_memory, parse_memory};
use super::{Endpoint, EndpointSettings, Region, WorkloadError, or_reject};
use crate::driver::Device;
use crate::driver::cm::{CmError, CmSettings, ConnectRequest};
use crate::memory::Access;
use crate::mpa::PrivateData;
use crate::verbs::{CompletedOperation, Operation, Payload, RemoteAddress, SendWr, WorkCompletion};

/// Maximum size of a part in bytes.
pub const PART: usize = 256 << 10;
/// Maximum number of parts in flight, and number of slots in a side's memory.
pub const SLOTS: u64 = 4;

const MAGIC: &str = "weft-cat/1";
const PART_U32: u32 = PART as u32;
/// Number of receives. There is one receive for each slot, and three more receives for the other
/// messages: the start, the end of the parts, and the totals.
const RECEIVES: u64 = SLOTS + 3;

/// The totals of a stream: its length and its hash.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Totals {
    /// Number of bytes.
    pub length: u64,
    /// 64-bit FNV-1a hash of the bytes.
    pub hash: u64,
}

impl Default for Totals {
    fn default() -> Self {
        Totals { length: 0, hash: 0xcbf2_9ce4_8422_2325 }
    }
}

impl Totals {
    /// Adds the next bytes of the stream.
    pub fn add(&mut self, octets: &[u8]) {
        self.length += octets.len() as u64;
        for octet in octets {
            self.hash = (self.hash ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3);
        }
    }

    fn emit(self) -> Bytes {
        Bytes::from([self.length.to_be_bytes(), self.hash.to_be_bytes()].concat())
    }

    fn parse(octets: &[u8]) -> Option<Self> {
        let (length, rest) = octets.split_first_chunk()?;
        let (hash, rest) = rest.split_first_chunk()?;
        rest.is_empty().then_some(Totals { length: u64::from_be_bytes(*length), hash: u64::from_be_bytes(*hash) })
    }
}

/// The Initiator's request for a stream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TransferRequest {
    /// The operation that transfers the parts.
    pub carrier: Carrier,
    /// The Initiator is the sink.
    pub pull: bool,
}

impl TransferRequest {
    fn emit(self, memory: RemoteAddress) -> String {
        let way = if self.pull { "pull" } else { "push" };
        format!("{MAGIC} {} {way} {}", self.carrier.name(), emit_memory(memory))
    }

    /// Parses a Request's private data. Returns `None` if the private data is not a request for a
    /// stream.
    #[must_use]
    pub fn parse(private_data: &[u8]) -> Option<(Self, RemoteAddress)> {
        let text = std::str::from_utf8(private_data).ok()?;
        let [magic, name, way, memory] = text.split(' ').collect::<Vec<_>>().try_into().ok()?;
        let carrier = Carrier::ALL.into_iter().find(|carrier| carrier.name() == name)?;
        let ways = magic == MAGIC && (way == "pull" || way == "push");
        ways.then_some((TransferRequest { carrier, pull: way == "pull" }, parse_memory(memory)?))
    }
}

/// Copies the next bytes of a stream into the buffer, and returns their number. Returns 0 at the
/// end of the stream.
pub type ReadInput<'a> = dyn FnMut(&mut [u8]) -> Result<usize, String> + Send + 'a;
/// Takes the next bytes of a stream and stores them.
pub type WriteOutput<'a> = dyn FnMut(&[u8]) -> Result<(), String> + Send + 'a;

/// One side of a connection.
#[derive(Debug)]
pub struct Cat {
    endpoint: Endpoint,
    carrier: Carrier,
    slots: Region,
    messages: Region,
    peer: RemoteAddress,
    /// Completions of receives that arrived while this side waited for an RDMA Read.
    arrived: VecDeque<WorkCompletion>,
}

impl Cat {
    /// Bytes of registered memory that a side needs.
    pub const MEMORY: u64 = PART as u64 * (SLOTS + RECEIVES);

    fn new(device: &Device, carrier: Carrier) -> Result<Self, WorkloadError> {
        let mut endpoint = Endpoint::new(device, EndpointSettings::default())?;
        let access = Access { bind: false, ..Access::ALL };
        let slots = endpoint.register(PART * SLOTS as usize, access)?;
        let messages = endpoint.register(PART * RECEIVES as usize, Access::LOCAL)?;
        let peer = RemoteAddress { stag: 0, tagged_offset: 0 };
        let cat = Cat { endpoint, carrier, slots, messages, peer, arrived: VecDeque::new() };
        (0..RECEIVES).try_for_each(|slot| cat.post_receive(slot))?;
        Ok(cat)
    }

    /// Connects, and requests a stream.
    ///
    /// # Errors
    /// The connection could not be opened, or the peer does not support this workload.
    pub async fn connect(
        device: &Device,
        address: SocketAddr,
        settings: CmSettings,
        transfer: TransferRequest,
    ) -> Result<Self, WorkloadError> {
        let mut cat = Cat::new(device, transfer.carrier)?;
        let request = PrivateData::new(transfer.emit(cat.slots.remote(0))).map_err(CmError::from)?;
        let connected = cat.endpoint.connect(address, settings, &request).await?;
        let reply = std::str::from_utf8(connected.peer.private_data.as_octets()).ok().and_then(parse_memory);
        cat.peer = reply.ok_or_else(|| {
            WorkloadError::Protocol("the Reply advertises no memory; is weft running on the other side?".into())
        })?;
        if transfer.pull {
            cat.endpoint.send(Bytes::new())?;
        }
        Ok(cat)
    }

    /// Accepts a peer whose Request [contains a `TransferRequest`](TransferRequest::parse), and
    /// rejects any other peer.
    ///
    /// # Errors
    /// The Request is not for a stream, or the connection failed.
    pub async fn accept(device: &Device, request: ConnectRequest) -> Result<(Self, TransferRequest), WorkloadError> {
        let Some((transfer, memory)) = TransferRequest::parse(request.peer().private_data.as_octets()) else {
            let reason = PrivateData::new(&b"no weft cat"[..]).map_err(CmError::from)?;
            request.reject(&reason).await?;
            return Err(WorkloadError::Protocol("the Request is not from `weft cat`".into()));
        };
        let (mut cat, request) = or_reject(request, Cat::new(device, transfer.carrier)).await?;
        cat.peer = memory;
        let reply = PrivateData::new(emit_memory(cat.slots.remote(0))).map_err(CmError::from)?;
        cat.endpoint.accept(request, &reply)?;
        if transfer.pull {
            let begin = cat.receive().await?;
            cat.post_receive(begin.wr_id)?;
        }
        Ok((cat, transfer))
    }

    /// Acts as the source: sends all bytes that the callback `read` supplies. Returns the totals of
    /// these bytes. On success, the sink has the same totals.
    ///
    /// # Errors
    /// The connection ended, `read` failed, or the sink's totals differ.
    pub async fn send_stream(&mut self, read: &mut ReadInput<'_>) -> Result<Totals, WorkloadError> {
        let (mut totals, mut part) = (Totals::default(), vec![0; PART]);
        let (mut sent, mut free) = (0, SLOTS);
        loop {
            let length = fill(&mut part, read)?;
            if length == 0 {
                break;
            }
            totals.add(&part[..length]);
            while free == 0 {
                free += self.wait_for_free_slot().await?;
            }
            let offset = (sent % SLOTS) * PART as u64;
            let start = usize::try_from(offset).unwrap_or(0);
            self.endpoint
                .with_mut(self.slots, |slots| slots[start..start + length].copy_from_slice(&part[..length]))?;
            self.send_part(offset, u32::try_from(length).unwrap_or(PART_U32))?;
            (sent, free) = (sent + 1, free - 1);
        }
        while free < SLOTS {
            free += self.wait_for_free_slot().await?;
        }
        self.endpoint.send(Bytes::new())?;
        self.endpoint.send(totals.emit())?;
        let its = self.totals().await?;
        if its == totals { Ok(totals) } else { Err(differ(totals, its)) }
    }

    fn send_part(&self, offset: u64, length: u32) -> Result<(), WorkloadError> {
        let payload = Payload::Gather(vec![self.slots.part(offset, length)]);
        let unsignaled = |operation| SendWr { signaled: false, ..SendWr::new(0, operation) };
        let send = |payload| unsignaled(Operation::Send { payload, solicited: false, invalidate: None });
        let length_message = send(Payload::Inline(Bytes::copy_from_slice(&length.to_be_bytes())));
        self.endpoint.post(match self.carrier {
            Carrier::Read => vec![length_message],
            Carrier::Send => vec![send(payload)],
            Carrier::Write => vec![unsignaled(Operation::Write { payload, remote: self.at(offset) }), length_message],
        })
    }

    /// Waits until the sink has processed a part. Returns the number of slots that became free.
    async fn wait_for_free_slot(&mut self) -> Result<u64, WorkloadError> {
        let received = self.receive().await?;
        self.post_receive(received.wr_id)?;
        if received.octets > 0 {
            return Err(WorkloadError::Protocol(format!("expected an empty Send, received {} bytes", received.octets)));
        }
        Ok(1)
    }

    /// Acts as the sink: passes all bytes of the stream to the callback `write`. Returns the totals
    /// of these bytes. On success, the source has the same totals.
    ///
    /// # Errors
    /// The connection ended, `write` failed, or the source's totals differ.
    pub async fn receive_stream(&mut self, write: &mut WriteOutput<'_>) -> Result<Totals, WorkloadError> {
        let (mut totals, mut part) = (Totals::default(), Vec::new());
        for n in 0.. {
            let received = self.receive().await?;
            if received.octets == 0 {
                self.post_receive(received.wr_id)?;
                break;
            }
            let offset = (n % SLOTS) * PART as u64;
            self.fetch(offset, &received, &mut part).await?;
            self.post_receive(received.wr_id)?;
            self.endpoint.send(Bytes::new())?;
            totals.add(&part);
            write(&part).map_err(WorkloadError::Local)?;
        }
        let its = self.totals().await?;
        self.endpoint.send(totals.emit())?;
        if its == totals { Ok(totals) } else { Err(differ(totals, its)) }
    }

    /// Copies an announced part to `part`. If the carrier is Read, fetches the part by an RDMA Read
    /// before the copy.
    async fn fetch(
        &mut self,
        offset: u64,
        announced: &WorkCompletion,
        part: &mut Vec<u8>,
    ) -> Result<(), WorkloadError> {
        part.clear();
        if self.carrier == Carrier::Send {
            return self.message(announced, |octets| part.extend_from_slice(octets));
        }
        let length = self.message(announced, |octets| octets.first_chunk().copied().map(u32::from_be_bytes))?;
        let length = length.filter(|length| (1..=PART_U32).contains(length) && announced.octets == 4);
        let length =
            length.ok_or_else(|| WorkloadError::Protocol("expected a Send with the length of a part".into()))?;
        if self.carrier == Carrier::Read {
            let local = self.slots.part(offset, length);
            let read = Operation::Read { local, remote: self.at(offset), invalidate_local: false };
            self.endpoint.post(vec![SendWr::new(0, read)])?;
            self.read_done().await?;
        }
        let start = usize::try_from(offset).unwrap_or(0);
        self.endpoint.with(self.slots, |slots| part.extend_from_slice(&slots[start..start + length as usize]))
    }

    async fn totals(&mut self) -> Result<Totals, WorkloadError> {
        let received = self.receive().await?;
        let totals = self.message(&received, Totals::parse)?;
        totals.ok_or_else(|| WorkloadError::Protocol("expected a Send with the total length and the hash".into()))
    }

    fn message<R>(&self, received: &WorkCompletion, look: impl FnOnce(&[u8]) -> R) -> Result<R, WorkloadError> {
        let start = usize::try_from(received.wr_id).unwrap_or(0) * PART;
        self.endpoint.with(self.messages, |octets| look(&octets[start..start + received.octets as usize]))
    }

    fn at(&self, offset: u64) -> RemoteAddress {
        RemoteAddress { tagged_offset: self.peer.tagged_offset.wrapping_add(offset), ..self.peer }
    }

    fn post_receive(&self, slot: u64) -> Result<(), WorkloadError> {
        self.endpoint.post_receive(slot, self.messages.part(slot * PART as u64, PART_U32))
    }

    /// Waits for the peer's next Send.
    async fn receive(&mut self) -> Result<WorkCompletion, WorkloadError> {
        if let Some(received) = self.arrived.pop_front() {
            return Ok(received);
        }
        loop {
            let completion = self.endpoint.completion().await?;
            if completion.operation == CompletedOperation::Receive {
                return Ok(completion);
            }
        }
    }

    /// Waits for the completion of the RDMA Read that was posted.
    async fn read_done(&mut self) -> Result<(), WorkloadError> {
        loop {
            let completion = self.endpoint.completion().await?;
            match completion.operation {
                CompletedOperation::Read => return Ok(()),
                CompletedOperation::Receive => self.arrived.push_back(completion),
                _ => {}
            }
        }
    }

    /// Closes gracefully.
    ///
    /// # Errors
    /// The device was closed.
    pub async fn disconnect(&self) -> Result<(), WorkloadError> {
        self.endpoint.disconnect().await
    }

    /// Waits for the peer to close.
    ///
    /// # Errors
    /// The device was closed.
    pub async fn ended(&self) -> Result<(), WorkloadError> {
        self.endpoint.ended().await.map(|_| ())
    }
}

/// Fills `part` until it is full or the stream ends. Returns the number of bytes.
fn fill(part: &mut [u8], read: &mut ReadInput<'_>) -> Result<usize, WorkloadError> {
    let mut length = 0;
    while length < part.len() {
        match read(&mut part[length..]).map_err(WorkloadError::Local)? {
            0 => break,
            octets => length += octets.min(part.len() - length),
        }
    }
    Ok(length)
}

fn differ(mine: Totals, its: Totals) -> WorkloadError {
    let Totals { length, hash } = mine;
    WorkloadError::Differs(format!(
        "this side has {length} bytes with hash {hash:016x}, the peer has {} bytes with hash {:016x}",
        its.length, its.hash
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Tests the vectors of 64-bit FNV-1a from appendix C of draft-eastlake-fnv. Their strings are
    /// the empty string, "a" and "foobar".
    #[test]
    fn hashes_are_fnv_1a() {
        for (text, hash) in
            [("", 0xcbf2_9ce4_8422_2325), ("a", 0xaf63_dc4c_8601_ec8c), ("foobar", 0x8594_4171_f739_67e8)]
        {
            let mut totals = Totals::default();
            totals.add(text.as_bytes());
            assert_eq!(totals, Totals { length: text.len() as u64, hash });
            assert_eq!(Totals::parse(&totals.emit()), Some(totals));
        }
    }

    #[test]
    fn asks_travel_as_text() {
        let memory = RemoteAddress { stag: 0x0102_03ff, tagged_offset: 0 };
        let (transfer, text) =
            (TransferRequest { carrier: Carrier::Read, pull: true }, "weft-cat/1 read pull 0@10203ff");
        assert_eq!(
            (transfer.emit(memory).as_str(), TransferRequest::parse(text.as_bytes())),
            (text, Some((transfer, memory)))
        );
        for wrong in [
            "",
            "weft-cat/2 read pull 0@1",
            "weft-cat/1 read shove 0@1",
            "weft-cat/1 read pull 0",
            "weft-cat/1 read pull 0@1 ",
        ] {
            assert_eq!(TransferRequest::parse(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
