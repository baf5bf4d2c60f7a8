//! The message sequence of rping. The peer can be this module or librdmacm's `rping`.
//!
//! ```text
//!   client                                     server
//!     | Send: address of the source     ------->  |
//!     |  <-------        RDMA Read of the source  |
//!     |  <-------                 Send: go ahead  |
//!     | Send: address of the sink       ------->  |
//!     |  <-------         RDMA Write to the sink  |
//!     |  <-------                 Send: go ahead  |
//! ```
//!
//! Each Send has 16 bytes, which are an [`Advertisement`] or zeros. There is no private data. The
//! server treats the data that it has read as a C string. It writes back all bytes up to and
//! including the first zero byte.

use core::net::SocketAddr;

use bytes::Bytes;

use super::{Endpoint, EndpointSettings, Region, WorkloadError};
use crate::driver::Device;
use crate::driver::cm::{CmError, CmSettings, ConnectRequest, Connected};
use crate::memory::Access;
use crate::mpa::PrivateData;
use crate::verbs::{CompletedOperation, Operation, Payload, RemoteAddress, SendWr, WorkCompletion};

/// The sizes in bytes that rping accepts. The smallest size is enough for the text with the longest
/// round number. The largest size fits in rping's buffer.
pub const SIZES: std::ops::RangeInclusive<u32> = 23..=65_535;

/// Size of each Send in bytes.
pub(crate) const MESSAGE: u32 = 16;
/// Number of posted receives. A correct peer has at most one Send in flight.
pub(crate) const RECEIVES: u32 = 2;

/// Memory that the peer has to read or write.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Advertisement {
    /// Address of the first byte.
    pub address: RemoteAddress,
    /// Size in bytes.
    pub size: u32,
}

impl Advertisement {
    /// Returns the message, with all fields in network byte order: TO (8 bytes), STag (4), size
    /// (4).
    #[must_use]
    pub fn emit(&self) -> [u8; 16] {
        let mut octets = [0; 16];
        octets[..8].copy_from_slice(&self.address.tagged_offset.to_be_bytes());
        octets[8..12].copy_from_slice(&self.address.stag.to_be_bytes());
        octets[12..].copy_from_slice(&self.size.to_be_bytes());
        octets
    }

    /// Parses the first 16 bytes. Returns `None` if there are fewer than 16 bytes.
    #[must_use]
    pub fn parse(octets: &[u8]) -> Option<Self> {
        let (tagged_offset, rest) = octets.split_first_chunk()?;
        let (stag, rest) = rest.split_first_chunk()?;
        let (size, _) = rest.split_first_chunk()?;
        let address =
            RemoteAddress { stag: u32::from_be_bytes(*stag), tagged_offset: u64::from_be_bytes(*tagged_offset) };
        Some(Advertisement { address, size: u32::from_be_bytes(*size) })
    }
}

/// Returns the data of a round. The first round is round 0. The data of round N is the text
/// `rdma-ping-N: `, then the characters from `A` to `z` again and again, then a zero byte. In each
/// round, the first of these characters is the successor of the first character of the previous
/// round.
#[must_use]
pub fn text(round: u64, size: u32) -> Vec<u8> {
    const LETTERS: u64 = 58;
    let mut text = format!("rdma-ping-{round}: ").into_bytes();
    let size = size as usize;
    let letter = |n: u64| u8::try_from((round + n) % LETTERS).unwrap_or(0) + b'A';
    text.extend((0..).map(letter).take(size.saturating_sub(text.len())));
    text.truncate(size);
    if let Some(last) = text.last_mut() {
        *last = 0;
    }
    text
}

/// Returns the text in the data: all bytes before the first zero byte.
#[must_use]
pub fn printed(data: &[u8]) -> String {
    let text = data.split(|octet| *octet == 0).next().unwrap_or_default();
    String::from_utf8_lossy(text).into_owned()
}

pub(crate) const REMOTE: Access = Access { bind: false, ..Access::ALL };

/// The memory of a side's receives.
#[derive(Debug)]
struct Messages(Region);

impl Messages {
    fn new(endpoint: &mut Endpoint) -> Result<Self, WorkloadError> {
        let messages = Messages(endpoint.register((MESSAGE * RECEIVES) as usize, Access::LOCAL)?);
        (0..u64::from(RECEIVES)).try_for_each(|slot| messages.post(endpoint, slot))?;
        Ok(messages)
    }

    fn post(&self, endpoint: &Endpoint, slot: u64) -> Result<(), WorkloadError> {
        endpoint.post_receive(slot, self.0.part(slot * u64::from(MESSAGE), MESSAGE))
    }

    /// Returns the bytes of a completed receive, and posts this receive again.
    fn take(&self, endpoint: &Endpoint, received: &WorkCompletion) -> Result<[u8; 16], WorkloadError> {
        if received.octets != MESSAGE {
            let problem = format!("received a Send of {} bytes, but rping requires {MESSAGE}", received.octets);
            return Err(WorkloadError::Protocol(problem));
        }
        let start = usize::try_from(received.wr_id).unwrap_or(0) * MESSAGE as usize;
        let octets = endpoint.with(self.0, |octets| octets.get(start..).and_then(<[u8]>::first_chunk).copied())?;
        // The peer can close after its last round. In this case the receive cannot be posted again,
        // but it is not needed.
        let _ = self.post(endpoint, received.wr_id);
        octets.ok_or_else(|| WorkloadError::Protocol("a received Send has no data".to_owned()))
    }
}

/// Waits for the completion of `operation`. Completions of other operations of this side are
/// ignored. If a Send arrives and `operation` is not a receive, returns an error.
async fn wait_for(endpoint: &Endpoint, operation: CompletedOperation) -> Result<WorkCompletion, WorkloadError> {
    loop {
        let completion = endpoint.completion().await?;
        if completion.operation == operation {
            return Ok(completion);
        }
        if completion.operation == CompletedOperation::Receive {
            return Err(WorkloadError::Protocol(format!("a Send arrived before the {operation:?} completed")));
        }
    }
}

/// The side whose data is read and written back.
#[derive(Debug)]
pub struct Client {
    endpoint: Endpoint,
    messages: Messages,
    source: Region,
    sink: Region,
    size: u32,
    validate: bool,
    round: u64,
}

impl Client {
    /// Creates a client for rounds of `size` bytes. If `validate` is set, the client compares the
    /// received data with the sent data.
    ///
    /// # Errors
    /// The device cannot create the client's resources.
    pub fn new(device: &Device, size: u32, validate: bool) -> Result<Self, WorkloadError> {
        let mut endpoint = Endpoint::new(device, EndpointSettings::default())?;
        let messages = Messages::new(&mut endpoint)?;
        let source = endpoint.register(size as usize, REMOTE)?;
        let sink = endpoint.register(size as usize, REMOTE)?;
        Ok(Client { endpoint, messages, source, sink, size, validate, round: 0 })
    }

    /// Connects.
    ///
    /// # Errors
    /// See [`CmError`].
    pub async fn connect(&self, address: SocketAddr, settings: CmSettings) -> Result<Connected, CmError> {
        self.endpoint.connect(address, settings, &PrivateData::default()).await
    }

    /// Performs one round. Returns the data that the server wrote.
    ///
    /// # Errors
    /// The connection ended, or the data differs.
    pub async fn round(&mut self) -> Result<Vec<u8>, WorkloadError> {
        let sent = text(self.round, self.size);
        self.endpoint.with_mut(self.source, |octets| octets.copy_from_slice(&sent))?;
        for region in [self.source, self.sink] {
            let advertisement = Advertisement { address: region.remote(0), size: self.size };
            self.endpoint.send(Bytes::copy_from_slice(&advertisement.emit()))?;
            let go_ahead = wait_for(&self.endpoint, CompletedOperation::Receive).await?;
            // rping's server sends zeros, or old contents of its own buffer. An echo server sends
            // back the advertisement. It never reads or writes, so the round would prove nothing.
            if self.messages.take(&self.endpoint, &go_ahead)? == advertisement.emit() {
                let problem = "the peer sends back each message; it is an echo server, not a ping server";
                return Err(WorkloadError::Protocol(problem.to_owned()));
            }
        }
        let came = self.endpoint.with(self.sink, <[u8]>::to_vec)?;
        if self.validate
            && let Some(offset) = (0..sent.len()).find(|n| came[*n] != sent[*n])
        {
            let (expected, found) = (sent[offset], came[offset]);
            return Err(WorkloadError::Mismatch { round: self.round, offset, expected, found });
        }
        self.round += 1;
        Ok(came)
    }

    /// Closes gracefully.
    ///
    /// # Errors
    /// The device was closed.
    pub async fn disconnect(&self) -> Result<(), WorkloadError> {
        self.endpoint.disconnect().await
    }
}

/// The side that reads and writes the client's data.
#[derive(Debug)]
pub struct Server {
    endpoint: Endpoint,
    messages: Messages,
    data: Region,
    size: u32,
}

impl Server {
    /// Returns the number of bytes of registered memory that a server for rounds of at most `size`
    /// bytes needs.
    #[must_use]
    pub const fn memory(size: u32) -> u64 {
        size as u64 + (MESSAGE * RECEIVES) as u64
    }

    /// Creates a server for rounds of at most `size` bytes.
    ///
    /// # Errors
    /// The device cannot create the server's resources.
    pub fn new(device: &Device, size: u32) -> Result<Self, WorkloadError> {
        let mut endpoint = Endpoint::new(device, EndpointSettings::default())?;
        let messages = Messages::new(&mut endpoint)?;
        let data = endpoint.register(size as usize, REMOTE)?;
        Ok(Server { endpoint, messages, data, size })
    }

    /// Accepts a client.
    ///
    /// # Errors
    /// See [`CmError`].
    pub fn accept(&self, request: ConnectRequest) -> Result<Connected, CmError> {
        self.endpoint.accept(request, &PrivateData::default())
    }

    /// Performs one round. Returns the data that this side read, or `None` if the client closed
    /// between two rounds.
    ///
    /// # Errors
    /// The connection ended in another way, or the client requests a larger round than this server
    /// accepts.
    pub async fn round(&mut self) -> Result<Option<Vec<u8>>, WorkloadError> {
        let source = match self.advertisement().await {
            Err(WorkloadError::Ended { operation: CompletedOperation::Receive, terminate: None }) => return Ok(None),
            source => source?,
        };
        let local = self.data.part(0, source.size);
        let read = Operation::Read { local, remote: source.address, invalidate_local: false };
        self.endpoint.post(vec![SendWr::new(0, read)])?;
        wait_for(&self.endpoint, CompletedOperation::Read).await?;
        self.endpoint.send(Bytes::from_static(&[0; 16]))?;
        let sink = self.advertisement().await?;
        let data = self.endpoint.with(self.data, |octets| octets[..source.size as usize].to_vec())?;
        let text = data.iter().position(|octet| *octet == 0).map_or(data.len(), |zero| zero + 1);
        let length = u32::try_from(text).unwrap_or(source.size).min(sink.size);
        let payload = Payload::Gather(vec![self.data.part(0, length)]);
        let write = Operation::Write { payload, remote: sink.address };
        self.endpoint.post(vec![SendWr { signaled: false, ..SendWr::new(0, write) }])?;
        self.endpoint.send(Bytes::from_static(&[0; 16]))?;
        Ok(Some(data))
    }

    async fn advertisement(&self) -> Result<Advertisement, WorkloadError> {
        let received = wait_for(&self.endpoint, CompletedOperation::Receive).await?;
        let octets = self.messages.take(&self.endpoint, &received)?;
        match Advertisement::parse(&octets) {
            Some(advertisement) if advertisement.size <= self.size => Ok(advertisement),
            advertisement => {
                let requested = advertisement.map_or(0, |advertisement| advertisement.size);
                Err(WorkloadError::Protocol(format!(
                    "the client requests {requested} bytes, this server accepts {}; use the same size on both sides",
                    self.size
                )))
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
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The expected bytes are from a capture of librdmacm's rping over siw. They are the first Send
    /// and the data of the first round.
    #[test]
    fn as_rping_has_it() {
        let octets = [0, 0, 0x56, 0x47, 0x2e, 0x05, 0xc7, 0x60, 0xb7, 0x6c, 0x6c, 0, 0, 0, 0, 0x64];
        let address = RemoteAddress { stag: 0xb76c_6c00, tagged_offset: 0x5647_2e05_c760 };
        let advertisement = Advertisement { address, size: 100 };
        assert_eq!((Advertisement::parse(&octets), advertisement.emit()), (Some(advertisement), octets));
        assert_eq!(Advertisement::parse(&octets[..15]), None);
        let letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZ[\\]^_`abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ[\\";
        assert_eq!(text(0, 100), format!("rdma-ping-0: {letters}\0").into_bytes());
        assert_eq!(printed(&text(0, 100)), format!("rdma-ping-0: {letters}"));
    }

    /// The first character of each round is the successor of the first character of the previous
    /// round. After 58 rounds the first character is `A` again.
    #[test]
    fn rounds_differ() {
        assert_eq!(text(57, 23), b"rdma-ping-57: zABCDEFG\0");
        assert_eq!(text(58, 23), b"rdma-ping-58: ABCDEFGH\0");
        assert_eq!(text(u64::MAX / 2, 23).len(), 23);
    }
}
