//! Converts outputs of the SDP state machine to Work Requests, and completions to inputs.

use crate::sdp::{Arrival, Connection, Event, Exposed, OpId, Output, Piece, PrivateBuffer, ReceiveId, Region, Start};
use crate::time::Instant;
use crate::verbs::{CompletedOperation, CompletionStatus, Operation, Payload, ReceiveWr, SendWr, Sge, WorkCompletion};

/// This bit is set in the `wr_id` of a receive. The other bits are the number of the Private
/// Buffer.
const RECEIVE: u64 = 1 << 63;
/// The `wr_id` of a Send whose completion the state machine does not need.
const UNREPORTED: u64 = RECEIVE - 1;

/// The memory of a connection's Work Requests.
pub(crate) trait Memory {
    type Error;

    /// Registers memory for access by the peer. `None` if the registration fails.
    fn register(&mut self, exposed: Exposed) -> Option<Region>;

    /// Ends the peer's access through this STag.
    fn withdraw(&mut self, stag: u32) -> Result<(), Self::Error>;

    /// Returns memory of `octets` bytes for a Private Buffer. If the Private Buffer already has
    /// memory, but fewer than `octets` bytes, replaces this memory with larger memory.
    fn private_buffer(&mut self, buffer: PrivateBuffer, octets: u32) -> Result<Vec<Sge>, Self::Error>;

    /// Releases a Private Buffer that the state machine no longer needs.
    fn release(&mut self, buffer: PrivateBuffer);

    /// Calls `handle` with the message of `octets` bytes that has arrived in a Private Buffer.
    fn arrived(&mut self, buffer: PrivateBuffer, octets: u32, handle: &mut dyn FnMut(&[u8]));

    /// Appends the payload of a Send to `head`, or returns a list of the memory that contains the
    /// payload.
    fn send(&mut self, head: &mut Vec<u8>, piece: Piece) -> Result<Vec<Sge>, Self::Error>;

    /// The payload of an RDMA Write.
    fn write(&mut self, piece: Piece) -> Result<Payload, Self::Error>;

    /// The memory for the data of an RDMA Read. `None` if the receive no longer exists.
    fn read(&mut self, op: OpId, receive: ReceiveId, at: u64, len: u32) -> Result<Option<Sge>, Self::Error>;

    /// Notes that the Work Request with this `wr_id` has completed. The Work Request can be an RDMA
    /// Read.
    fn completed(&mut self, wr_id: u64);

    /// Copies the bytes `from..from + len` of a Private Buffer to offset `at` of a receive.
    fn place(
        &mut self,
        buffer: PrivateBuffer,
        from_len: (u32, u32),
        receive: ReceiveId,
        at: u64,
    ) -> Result<(), Self::Error>;
}

/// An action for the owner of the Queue Pair.
#[derive(Debug)]
pub(crate) enum Step {
    /// This output needs no action from the owner.
    Done,
    /// Post `wr` to the Send Queue. If `wr` gathers its payload from memory, `head` precedes the
    /// payload. Otherwise `head` is empty.
    Send { wr: SendWr, head: Vec<u8> },
    /// Post the receive to the Receive Queue.
    Receive(ReceiveWr),
    /// Send these bytes in streaming mode.
    Streaming(Vec<u8>),
    /// Attach the stream to the Queue Pair.
    Start(Box<Start>),
    /// Report the event to the user.
    Event(Event),
    /// End the connection.
    Disconnect { abortive: bool },
}

/// Takes the state machine's next output, and performs the parts of the output that concern memory.
/// Returns what the owner of the Queue Pair has to do. `None` if there is no output.
pub(crate) fn step<M: Memory>(
    now: Instant,
    machine: &mut Connection,
    memory: &mut M,
) -> Option<Result<Step, M::Error>> {
    let output = machine.poll(now, &mut |exposed| memory.register(exposed))?;
    Some(act(output, memory))
}

fn act<M: Memory>(output: Output, memory: &mut M) -> Result<Step, M::Error> {
    let request = |wr_id, operation| Step::Send { wr: SendWr::new(wr_id, operation), head: Vec::new() };
    Ok(match output {
        Output::Receive { buffer, octets } => {
            let scatter = memory.private_buffer(buffer, octets)?;
            Step::Receive(ReceiveWr { wr_id: RECEIVE | u64::from(buffer.0), scatter })
        }
        Output::Release(buffer) => {
            memory.release(buffer);
            Step::Done
        }
        Output::Streaming(octets) => Step::Streaming(octets),
        Output::Start(start) => Step::Start(start),
        Output::Send { op, mut head, payload, solicited, invalidate } => {
            let gather = payload.map(|piece| memory.send(&mut head, piece)).transpose()?.unwrap_or_default();
            let (payload, head) = match gather.is_empty() {
                true => (Payload::Inline(head.into()), Vec::new()),
                false => (Payload::Gather(gather), head),
            };
            let wr_id = op.map_or(UNREPORTED, |op| op.0);
            Step::Send { wr: SendWr::new(wr_id, Operation::Send { payload, solicited, invalidate }), head }
        }
        Output::Read { op, remote, receive, at, len } => match memory.read(op, receive, at, len)? {
            Some(local) => request(op.0, Operation::Read { local, remote, invalidate_local: false }),
            None => Step::Done,
        },
        Output::Write { op, data, remote } => {
            let payload = memory.write(data)?;
            request(op.0, Operation::Write { payload, remote })
        }
        Output::Place { buffer, from, len, receive, at } => {
            memory.place(buffer, (from, len), receive, at)?;
            Step::Done
        }
        Output::Withdraw { stag } => {
            memory.withdraw(stag)?;
            Step::Done
        }
        Output::Event(event) => Step::Event(event),
        Output::Disconnect { abortive } => Step::Disconnect { abortive },
    })
}

/// Reports the completion of a Work Request to the state machine.
pub(crate) fn complete<M: Memory>(now: Instant, machine: &mut Connection, memory: &mut M, completion: &WorkCompletion) {
    let is_success = completion.status == CompletionStatus::Success;
    if completion.operation == CompletedOperation::Receive {
        if !is_success {
            return machine.handle_disconnected(now);
        }
        let buffer = PrivateBuffer(u32::try_from(completion.wr_id & !RECEIVE).unwrap_or(u32::MAX));
        let arrival = Arrival { invalidated: completion.invalidated };
        let mut handle = |octets: &[u8]| machine.handle_message(now, buffer, octets, arrival);
        return memory.arrived(buffer, completion.octets, &mut handle);
    }
    memory.completed(completion.wr_id);
    if completion.wr_id != UNREPORTED {
        machine.handle_completed(now, OpId(completion.wr_id), is_success);
    } else if !is_success {
        machine.handle_disconnected(now);
    }
}
