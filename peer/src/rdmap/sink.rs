//! The receiving engine's interface to the owner of buffers and requests.

use weft_core::wire::rdmap::{AtomicRequest, AtomicResponse, Immediate, ReadRequest, Terminate};

use super::Fault;

/// A Send or Immediate Data that is complete.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Octets of payload in the buffer; none of Immediate Data.
    pub length: u32,
    /// It asks for a solicited event.
    pub solicited: bool,
    /// The STag that the peer wants invalidated.
    pub invalidate: Option<u32>,
    /// Immediate Data instead of a Send.
    pub immediate: Option<Immediate>,
}

/// The owner of buffers and requests of one stream. The engine calls in the order in which segments
/// arrive, and stops at the first fault.
pub trait DataSink {
    /// Payload of a Write, never empty, goes to `stag` and `to`.
    ///
    /// # Errors
    /// It may not.
    fn write(&mut self, stag: u32, to: u64, payload: &[u8]) -> Result<(), Fault>;

    /// A segment of the response to the oldest unanswered Read arrived. With an empty payload
    /// `stag` and `to` mean nothing.
    ///
    /// # Errors
    /// There is no such Read, or it requested something else.
    fn read_response(&mut self, stag: u32, to: u64, payload: &[u8], last: bool) -> Result<(), Fault>;

    /// Octets of the buffer for the Send that is arriving. Called for each of its segments; the
    /// first call takes the buffer.
    ///
    /// # Errors
    /// There is none.
    fn receive_buffer(&mut self) -> Result<u64, Fault>;

    /// Payload of the Send that is arriving goes to `offset` of its buffer, where it fits.
    ///
    /// # Errors
    /// The buffer is not usable.
    fn receive(&mut self, offset: u32, payload: &[u8]) -> Result<(), Fault>;

    /// The Send or Immediate Data that took the buffer is complete.
    ///
    /// # Errors
    /// Its invalidation fails.
    fn received(&mut self, message: Received) -> Result<(), Fault>;

    /// Is there room for one more Read Request or Atomic Request?
    ///
    /// # Errors
    /// There is none, or never was.
    fn request_buffer(&mut self) -> Result<(), Fault>;

    /// A Read Request arrived.
    ///
    /// # Errors
    /// Its source may not be read.
    fn read_request(&mut self, request: ReadRequest) -> Result<(), Fault>;

    /// An Atomic Request arrived.
    ///
    /// # Errors
    /// What it names may not be used so.
    fn atomic_request(&mut self, request: AtomicRequest) -> Result<(), Fault>;

    /// An Atomic Response arrived.
    ///
    /// # Errors
    /// It answers no request.
    fn atomic_response(&mut self, response: AtomicResponse) -> Result<(), Fault>;

    /// The peer's Terminate arrived. Nothing that follows is looked at.
    fn terminate(&mut self, terminate: Terminate);
}
