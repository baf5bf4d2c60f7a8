//! Interface between the [`Receiver`](super::Receiver) and the owner of buffers and requests.

use weft_core::wire::rdmap::{AtomicRequest, AtomicResponse, Immediate, ReadRequest, Terminate};

use super::Fault;
use crate::memory::AccessError;

/// A complete Send or Immediate Data message.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Received {
    /// Number of payload bytes in the receive buffer. 0 for Immediate Data.
    pub length: u32,
    /// The message requests a solicited event.
    pub solicited: bool,
    /// The STag that the peer wants to invalidate.
    pub invalidate: Option<u32>,
    /// The data of an Immediate Data message. `None` for a Send.
    pub immediate: Option<Immediate>,
}

/// The owner of buffers and requests of one stream. The receiver calls these functions in the order
/// in which segments arrive, and stops at the first fault.
///
/// The default functions are for a sink that has no registered memory, no receive buffers and no
/// space for requests. These functions reject everything.
#[expect(unused_variables, reason = "the documentation of the default functions needs the parameter names")]
pub trait DataSink {
    /// Places the payload of a Write at tagged offset `to` of `stag`. The payload is never empty.
    ///
    /// # Errors
    /// The Write has no right to access this memory.
    fn write(&mut self, stag: u32, to: u64, payload: &[u8]) -> Result<(), Fault> {
        Err(Fault::Tagged(AccessError::InvalidStag))
    }

    /// Processes a segment of the response to the oldest unanswered Read. If `payload` is empty,
    /// `stag` and `to` have no meaning.
    ///
    /// # Errors
    /// No Read is outstanding, or the segment does not match the Read.
    fn read_response(&mut self, stag: u32, to: u64, payload: &[u8], last: bool) -> Result<(), Fault> {
        Err(Fault::UnexpectedReadResponse)
    }

    /// Returns the length in bytes of the receive buffer for the Send or Immediate Data that is
    /// arriving. The receiver calls this function for each segment of a message. The first call
    /// selects the next posted buffer.
    ///
    /// # Errors
    /// No receive is posted.
    fn receive_buffer(&mut self) -> Result<u64, Fault> {
        Err(Fault::NoBuffer)
    }

    /// Places payload of the arriving Send at byte `offset` of its receive buffer. The receiver has
    /// checked that the payload fits.
    ///
    /// # Errors
    /// The RNIC cannot access the buffer.
    fn receive(&mut self, offset: u32, payload: &[u8]) -> Result<(), Fault> {
        Err(Fault::NoBuffer)
    }

    /// Delivers a complete Send or Immediate Data message, which has used one receive buffer.
    ///
    /// # Errors
    /// The STag of a Send with Invalidate cannot be invalidated.
    fn received(&mut self, message: Received) -> Result<(), Fault> {
        Err(Fault::NoBuffer)
    }

    /// Checks whether this endpoint can hold one more Read Request or Atomic Request.
    ///
    /// # Errors
    /// This endpoint already holds the greatest number of requests, or accepts no requests.
    fn request_buffer(&mut self) -> Result<(), Fault> {
        Err(Fault::NoBuffer)
    }

    /// Processes a Read Request.
    ///
    /// # Errors
    /// The peer has no right to read the requested memory.
    fn read_request(&mut self, request: ReadRequest) -> Result<(), Fault> {
        Err(Fault::NoBuffer)
    }

    /// Processes an Atomic Request.
    ///
    /// # Errors
    /// The peer has no right to change the requested memory, or the request is invalid.
    fn atomic_request(&mut self, request: AtomicRequest) -> Result<(), Fault> {
        Err(Fault::NoBuffer)
    }

    /// Processes an Atomic Response.
    ///
    /// # Errors
    /// The response does not match a request.
    fn atomic_response(&mut self, response: AtomicResponse) -> Result<(), Fault> {
        Err(Fault::AtomicResponse)
    }

    /// Processes the peer's Terminate. All segments of the stream after the Terminate are ignored.
    fn terminate(&mut self, terminate: Terminate);
}
