//! [`Conversation`]: the outstanding requests of a connection. With them, each response gets the
//! request that it answers.
//!
//! **Memory**: For each direction, at most [`MAX_OUTSTANDING`] requests with at most
//! [`MAX_OUTSTANDING_BYTES`] bytes are stored. If a limit is exceeded, the oldest requests are
//! removed. The responses to the removed requests are read without their requests.
//!
//! If a connection has no CRC, weft reads an FPDU only after the next FPDU of its direction has
//! arrived. So weft can read a response before its request. Such a response has no request, but the
//! request then has the response. For each direction, the last 64 responses without a request are
//! stored.

use std::collections::VecDeque;

use super::command::Command;
use super::header::{Header, NO_MESSAGE_ID};
use super::message::Message;
use super::pdu::{Body, EarlyResponse, SentRequest};
use super::status::Status;
use crate::direction::Direction;
use crate::frame_number::FrameNumber;

/// Maximum number of stored requests of a direction.
pub const MAX_OUTSTANDING: usize = 1024;
/// Maximum memory of the stored requests of a direction, in bytes.
pub const MAX_OUTSTANDING_BYTES: usize = 1 << 20;

/// Maximum number of stored responses of a direction whose request is unknown.
const MAX_EARLY: usize = 64;

/// The outstanding requests of a connection.
#[derive(Debug, Clone, Default)]
pub struct Conversation {
    /// The outstanding requests of each direction.
    outstanding: [Outstanding; 2],
    /// The responses of each direction whose request is unknown, the oldest first.
    early: [VecDeque<(u64, Command, EarlyResponse)>; 2],
}

/// The outstanding requests of one direction, the oldest first.
#[derive(Debug, Clone, Default)]
struct Outstanding {
    requests: VecDeque<SentRequest>,
    memory: usize,
}

impl Outstanding {
    fn add(&mut self, request: SentRequest) {
        self.memory += request.memory();
        self.requests.push_back(request);
        while self.requests.len() > MAX_OUTSTANDING || self.memory > MAX_OUTSTANDING_BYTES {
            let Some(oldest) = self.requests.pop_front() else { break };
            self.memory -= oldest.memory();
        }
    }

    /// The request with this message ID and command. The request is removed if `is_final` is set.
    fn take(&mut self, message_id: u64, command: Command, is_final: bool) -> Option<SentRequest> {
        let is_it = |header: &Header| (header.message_id, header.command) == (message_id, command);
        let at = self.requests.iter().position(|request| is_it(&request.header))?;
        if !is_final {
            return self.requests.get(at).cloned();
        }
        let request = self.requests.remove(at)?;
        self.memory -= request.memory();
        Some(request)
    }
}

impl Conversation {
    /// Reads a message of `direction`, see [`Message::parse`]. `frame` completed the message at
    /// `time`, in nanoseconds since 1970.
    pub(crate) fn message(
        &mut self,
        direction: Direction,
        (bytes, len): (&[u8], u64),
        (frame, time): (FrameNumber, u64),
    ) -> Option<Message> {
        let mut message = Message::parse(bytes, len)?;
        for pdu in message.pdus_mut() {
            let (command, message_id) = (pdu.header.command, pdu.header.message_id);
            match &pdu.body {
                // A CANCEL has the message ID of the request that it cancels. It has no response.
                Body::Request(_) if command == Command::CANCEL => {}
                Body::Request(request) => {
                    pdu.early_response = self.take_early(direction.peer(), message_id, command);
                    if pdu.early_response.is_none() {
                        let (header, request) = (pdu.header, request.clone());
                        self.outstanding[direction].add(SentRequest { header, request, frame, time });
                    }
                }
                // A notification of a broken oplock answers no request.
                Body::Response(_) if message_id == NO_MESSAGE_ID => {}
                Body::Response(response) => {
                    let status = pdu.header.status.unwrap_or(Status::SUCCESS);
                    let is_final = status != Status::PENDING;
                    let request = self.outstanding[direction.peer()].take(message_id, command, is_final);
                    if request.is_none() && is_final {
                        let response = EarlyResponse { status, response: *response, frame, time };
                        self.add_early(direction, message_id, command, response);
                    }
                    pdu.answered = request.map(Box::new);
                }
            }
        }
        Some(message)
    }

    fn add_early(&mut self, direction: Direction, message_id: u64, command: Command, response: EarlyResponse) {
        let early = &mut self.early[direction];
        if early.len() == MAX_EARLY {
            early.pop_front();
        }
        early.push_back((message_id, command, response));
    }

    /// Removes the response of `direction` with this message ID and command.
    fn take_early(&mut self, direction: Direction, message_id: u64, command: Command) -> Option<EarlyResponse> {
        let early = &mut self.early[direction];
        let at = early.iter().position(|(id, of, _)| (*id, *of) == (message_id, command))?;
        early.remove(at).map(|(.., response)| response)
    }

    /// Number of outstanding requests of both directions.
    #[must_use]
    pub fn outstanding(&self) -> usize {
        self.outstanding.iter().map(|outstanding| outstanding.requests.len()).sum()
    }

    /// Allocated memory in bytes.
    #[must_use]
    pub fn memory(&self) -> usize {
        let outstanding: usize = self.outstanding.iter().map(|outstanding| outstanding.memory).sum();
        let early: usize = self.early.iter().map(VecDeque::len).sum();
        outstanding + early * size_of::<(u64, Command, EarlyResponse)>()
    }
}
