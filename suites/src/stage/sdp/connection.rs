//! One SDP connection: its counters, and the messages of the target.

use std::collections::{BTreeSet, VecDeque};

use weft_core::wire::ddp::Segment;
use weft_core::wire::rdmap::{Opcode, ReadRequest};
use weft_core::wire::sdp::{FieldOrder, Mid, Mode};
use weft_peer::Instant;

use super::SdpSide;
use crate::correct;
use crate::sdp::{Counters, ReceivedMessage, observed_rules};
use crate::stage::{Connections, Message, NoFrame, Stop, ulpdu};
use crate::targets::DriverCommand;

/// Maximum size in bytes of a message that is assembled from segments.
const MAX_MESSAGE: usize = 1 << 20;
/// Number of Receive Private Buffers that the tester announces.
const BUFS: u16 = 16;
/// When the target may send only this number of further messages, the tester announces its buffers
/// again.
const LEAST_TARGET_CREDIT: u32 = 3;

/// Fields of a Send that a script sets. `None` means the correct value.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct SendFields {
    pub(crate) solicited: Option<bool>,
    pub(crate) invalidate: Option<u32>,
    pub(crate) opcode: Option<u8>,
    pub(crate) msn: Option<u32>,
}

/// An event from the target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Item {
    Message(Box<ReceivedMessage>),
    /// Bytes that are not a valid message, Read Request or DDP segment.
    Other(Vec<u8>),
    Read(ReadRequest),
    Write {
        stag: u32,
        tagged_offset: u64,
        payload: Vec<u8>,
    },
    Response {
        stag: u32,
        tagged_offset: u64,
        payload: Vec<u8>,
        last: bool,
    },
    Terminate(Vec<u8>),
}

/// The tester's counters of one SDP connection, and its unread messages.
#[derive(Debug)]
pub(crate) struct SdpConnection {
    pub(crate) order: FieldOrder,
    pub(super) first_mseq: u32,
    /// MSeq of the next message to send.
    pub(crate) mseq: u32,
    /// MSeq of the last received message.
    pub(crate) last_mseq: u32,
    /// Whether a message after Hello and HelloAck was received.
    has_received: bool,
    /// Bufs and MSeqAck of the last sent message.
    pub(crate) announced: (u16, u32),
    /// Bufs of the next message to send.
    pub(crate) bufs: u16,
    /// Whether the tester sends updates automatically.
    pub(crate) updates: bool,
    /// MSN of the next Send. `read_msn` is the MSN of the next Read Request.
    send_msn: u32,
    read_msn: u32,
    /// Bufs and MSeqAck in the target's last message.
    credit: (u16, u32),
    partial: Vec<u8>,
    pub(crate) queue: VecDeque<Item>,
    /// Subjects of the messages that the target sent ([`observed_rules`]).
    pub(super) came: BTreeSet<&'static str>,
    /// The Mode of the half-connection to the tester.
    source_mode: Mode,
}

impl SdpConnection {
    /// `first_mseq` is the MSeq of the first message after Hello and HelloAck.
    /// draft-pinkerton-iwarp-sdp-01 section 6.1.5 can mean 1 or 0.
    pub(super) fn new(order: FieldOrder, first_mseq: u32) -> Self {
        SdpConnection {
            order,
            first_mseq,
            mseq: first_mseq,
            last_mseq: 0,
            has_received: false,
            announced: (BUFS, 0),
            bufs: BUFS,
            updates: true,
            send_msn: 1,
            read_msn: 1,
            credit: (0, 0),
            partial: Vec::new(),
            queue: VecDeque::new(),
            came: BTreeSet::new(),
            source_mode: Mode::Combined,
        }
    }

    /// Notes the credit of a HelloAck, whose number is always 0.
    pub(super) fn acknowledged(&mut self, first: &ReceivedMessage) {
        // HelloAck is message number 0.
        self.last_mseq = 0;
        self.credit = (first.bufs, self.first_mseq.wrapping_sub(1));
    }

    pub(super) fn note_hello(&mut self, hello: &ReceivedMessage) {
        self.last_mseq = 0;
        self.credit = (hello.bufs, u32::MAX);
        self.note(hello);
    }

    /// Notes what the target sent.
    fn note(&mut self, received: &ReceivedMessage) {
        self.came.extend(observed_rules::of_message(received, self.source_mode));
        self.change(received, 0);
    }

    /// Notes the Mode of a ModeChange if its S bit is `s`. Such a ModeChange is about the
    /// half-connection to the tester.
    fn change(&mut self, message: &ReceivedMessage, s: u64) {
        let named = message.field("mode").filter(|_| message.field("s") == Some(s));
        if let Some(mode) = named.and_then(|mode| Mode::from_value(u8::try_from(mode).ok()?)) {
            self.source_mode = mode;
        }
    }

    pub(crate) fn counters(&self) -> Counters {
        Counters { bufs: self.bufs, mseq: self.mseq, mseq_ack: self.last_mseq, order: self.order }
    }

    /// Returns how many messages the tester may still send, according to the target's last
    /// announcement.
    fn credit(&self) -> u32 {
        let sent = self.mseq.wrapping_sub(1).wrapping_sub(self.credit.1);
        // If the first MSeq is 0, MSeqAck 0 may mean that the target has received nothing. Then the
        // difference is negative and counts as 0.
        let sent = if sent < 1 << 31 { sent } else { 0 };
        u32::from(self.credit.0).saturating_sub(sent)
    }

    /// Returns how many messages the target may still send, according to the tester's last
    /// announcement.
    fn target_credit(&self) -> u32 {
        let sent = self.last_mseq.wrapping_sub(self.announced.1);
        u32::from(self.announced.0).saturating_sub(sent)
    }

    /// Puts the content of a complete FPDU into the queue.
    fn take(&mut self, fpdu: &[u8]) {
        let octets = ulpdu(fpdu);
        let item = match Segment::parse(octets) {
            Ok(Segment::Tagged(header, payload)) => {
                let (stag, tagged_offset, payload) = (header.stag.get(), header.tagged_offset.get(), payload.to_vec());
                match header.ulp_control.opcode() {
                    Opcode::WRITE => Item::Write { stag, tagged_offset, payload },
                    _ => Item::Response { stag, tagged_offset, payload, last: header.control.last() },
                }
            }
            Ok(Segment::Untagged(header, payload)) => match header.ulp_control.opcode() {
                Opcode::READ_REQUEST => match ReadRequest::parse(payload) {
                    Ok(read) => Item::Read(read),
                    Err(_) => Item::Other(octets.to_vec()),
                },
                Opcode::TERMINATE => Item::Terminate(fpdu.to_vec()),
                opcode => {
                    if self.partial.len() < MAX_MESSAGE {
                        self.partial.extend_from_slice(payload);
                    }
                    if !header.control.last() {
                        return;
                    }
                    let message = std::mem::take(&mut self.partial);
                    match ReceivedMessage::read(&message, self.order) {
                        Some(mut received) => {
                            received.opcode = opcode.0;
                            received.invalidates = header.ulp_word.get();
                            // HelloAck is message number 0. So an update directly after HelloAck
                            // has MSeqAck 0.
                            if received.mid != Mid::HELLO_ACK {
                                let next = self.last_mseq.wrapping_add(1);
                                self.last_mseq = if self.has_received { next } else { self.first_mseq };
                                self.has_received = true;
                            }
                            self.credit = (received.bufs, received.mseq_ack);
                            self.note(&received);
                            Item::Message(Box::new(received))
                        }
                        None => Item::Other(message),
                    }
                }
            },
            Err(_) => Item::Other(octets.to_vec()),
        };
        self.queue.push_back(item);
    }
}

impl Connections {
    /// Ends the case if the driven socket does not execute one of the commands of a line.
    pub(super) fn check_commands(&mut self, line: &[u8]) -> Result<(), Stop> {
        let known = self.target.description.commands.as_ref();
        let mut commands = DriverCommand::of_text(core::str::from_utf8(line).unwrap_or_default());
        let missing = known.and_then(|known| commands.find(|command| !known.contains(command)));
        if let Some(missing) = missing {
            let why = format!("The driven socket does not execute the command `{missing}`.");
            return Err(self.recorder().unimplemented(&why));
        }
        Ok(())
    }
}

impl SdpSide<'_> {
    pub(crate) fn connection(&mut self) -> Result<&mut SdpConnection, Stop> {
        let number = self.number;
        if self.list.contains_key(&number) {
            // The connection is looked up twice, because the error below borrows the stage.
            return self.list.get_mut(&number).ok_or(Stop);
        }
        Err(self.recorder().harness(&format!("connection {number} does not use SDP")))
    }

    /// Sends an SDP message in a Send. Fills in the counters that the message does not set. If
    /// there is little send credit, first waits at most 1 s (times the time scale) for more credit.
    pub(crate) async fn send(&mut self, message: &Message, send_fields: SendFields) -> Result<(), Stop> {
        let deadline = self.connections.link.now() + self.connections.target.scaled(1.0);
        while self.connection()?.credit() < 3 && self.connections.link.now() < deadline {
            if self.receive_fpdu(deadline).await?.is_err() {
                break;
            }
        }
        self.connections.stimulate(self.number);
        self.put(message, send_fields).await
    }

    /// Sends a line of commands to a driven socket.
    pub(crate) async fn command(&mut self, line: &[u8]) -> Result<(), Stop> {
        self.connections.check_commands(line)?;
        self.send(&Message::data(&[line, b"\n"].concat()), SendFields::default()).await
    }

    pub(in crate::stage) async fn put(&mut self, message: &Message, send_fields: SendFields) -> Result<(), Stop> {
        let connection = self.connection()?;
        let filled = message.filled(connection.counters());
        let received = ReceivedMessage::read(&filled.octets, connection.order);
        let mid = received.as_ref().map(|received| received.mid);
        if let Some(received) = &received {
            connection.announced = (received.bufs, received.mseq_ack);
            connection.change(received, 1);
        }
        connection.mseq = connection.mseq.wrapping_add(1);
        let solicited = send_fields.solicited.unwrap_or(mid.is_some_and(is_solicited));
        let opcode = match (solicited, send_fields.invalidate) {
            (false, None) => Opcode::SEND,
            (false, Some(_)) => Opcode::SEND_INVALIDATE,
            (true, None) => Opcode::SEND_SE,
            (true, Some(_)) => Opcode::SEND_SE_INVALIDATE,
        };
        let opcode = send_fields.opcode.unwrap_or(opcode.0);
        let msn = send_fields.msn.unwrap_or(connection.send_msn);
        connection.send_msn = connection.send_msn.wrapping_add(1);
        let pieces: Vec<&[u8]> = filled.octets.chunks(SEGMENT).collect();
        for (index, piece) in pieces.iter().enumerate() {
            let last = index + 1 == pieces.len();
            let offset = u32::try_from(index * SEGMENT).unwrap_or(u32::MAX);
            let segment =
                correct::send_segment(Opcode(opcode), send_fields.invalidate.unwrap_or(0), msn, offset, last, piece);
            self.put_ulpdu(&filled.name, &segment).await?;
        }
        Ok(())
    }

    /// Sends an RDMA Read Request for bytes of the target. `sink_stag` identifies the Read.
    pub(crate) async fn request_read(&mut self, read: ReadRequest) -> Result<(), Stop> {
        self.connections.stimulate(self.number);
        let connection = self.connection()?;
        let msn = connection.read_msn;
        connection.read_msn = msn.wrapping_add(1);
        self.put_ulpdu("RDMA Read Request", &correct::read_request(msn, &read)).await
    }

    /// Sends an FPDU. SDP's FPDUs have a CRC, and no markers.
    pub(super) async fn put_ulpdu(&mut self, name: &str, ulpdu: &[u8]) -> Result<(), Stop> {
        self.connections.put(self.number, &Message::new(name, correct::fpdu(ulpdu, true))).await
    }

    /// Sends a complete RDMA Write or Read Response.
    pub(crate) async fn send_tagged(
        &mut self,
        opcode: Opcode,
        (stag, tagged_offset): (u32, u64),
        data: &[u8],
    ) -> Result<(), Stop> {
        self.connections.stimulate(self.number);
        self.connection()?;
        for segment in correct::tagged(opcode, stag, tagged_offset, data, SEGMENT) {
            self.put_ulpdu(opcode.name(), &segment).await?;
        }
        Ok(())
    }

    /// Reads the next FPDU from the stream, and puts its content into the connection's queue.
    pub(in crate::stage) async fn receive_fpdu(&mut self, deadline: Instant) -> Result<Result<(), NoFrame>, Stop> {
        let fpdu = match self.connections.fpdu(self.number, deadline).await? {
            Ok(fpdu) => fpdu,
            Err(none) => return Ok(Err(none)),
        };
        let connection = self.connection()?;
        connection.take(&fpdu);
        if connection.updates && connection.bufs > 4 && connection.target_credit() <= LEAST_TARGET_CREDIT {
            self.put(&Message::of_mid(Mid::DATA), SendFields::default()).await?;
        }
        Ok(Ok(()))
    }

    /// Returns the next event from the target.
    pub(in crate::stage) async fn next_item(&mut self, deadline: Instant) -> Result<Result<Item, NoFrame>, Stop> {
        loop {
            if let Some(item) = self.connection()?.queue.pop_front() {
                return Ok(Ok(item));
            }
            if let Err(none) = self.receive_fpdu(deadline).await? {
                return Ok(Err(none));
            }
        }
    }
}

/// Maximum number of payload bytes in one segment from the tester.
pub(in crate::stage) const SEGMENT: usize = 1000;

/// Returns whether a message is sent in a Send with Solicited Event by default (section 14.2).
pub(super) fn is_solicited(mid: Mid) -> bool {
    const UNSOLICITED: [Mid; 7] = [
        Mid::DIS_CONN,
        Mid::SRC_AVAIL,
        Mid::SINK_AVAIL,
        Mid::DATA,
        Mid::MODE_CHANGE,
        Mid::CH_RCV_BUF,
        Mid::CH_RCV_BUF_ACK,
    ];
    mid.is_assigned() && !UNSOLICITED.contains(&mid)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn message(connection: &SdpConnection, mid: Mid, msn: u32) -> Vec<u8> {
        let octets = Message::of_mid(mid).filled(connection.counters()).octets;
        correct::fpdu(&correct::send_segment(Opcode::SEND_SE, 0, msn, 0, true, &octets), true)
    }

    /// With three buffers, an update is due as soon as HelloAck arrives. The update has MSeqAck 0.
    #[test]
    fn hello_ack_is_the_message_of_number_0() {
        let mut connection = SdpConnection::new(FieldOrder::Figure, 1);
        connection.announced = (3, 0);
        connection.take(&message(&connection, Mid::HELLO_ACK, 1));
        assert_eq!((connection.queue.len(), connection.counters().mseq_ack, connection.target_credit()), (1, 0, 3));
        connection.take(&message(&connection, Mid::DATA, 2));
        assert_eq!((connection.queue.len(), connection.counters().mseq_ack, connection.target_credit()), (2, 1, 2));
    }
}
