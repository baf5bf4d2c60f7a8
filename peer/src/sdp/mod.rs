//! The Sockets Direct Protocol (SDP) of draft-pinkerton-iwarp-sdp-01 as a sans-IO state machine.
//! One [`Connection`] is one socket.
//!
//! Each direction of a connection is a *half-connection*. Its *Data Source* sends the user's bytes,
//! and its *Data Sink* receives them. *Private Buffers* receive the messages and are not visible to
//! the user. With *Bcopy*, a message carries the bytes, and the receiver copies them out of a
//! Private Buffer. With *Zcopy*, RDMA moves the bytes between the memory of the two users. For
//! Zcopy, one side advertises its memory: the Data Source with a SrcAvail, or the Data Sink with a
//! SinkAvail. The draft calls an advertisement *Processed* as soon as the message that completes it
//! has been sent.
//!
//! The machine never calls the RNIC. The driver passes in what the RNIC and TCP report
//! ([`Connection::handle_streaming`], [`handle_message`](Connection::handle_message),
//! [`handle_completed`](Connection::handle_completed),
//! [`handle_disconnected`](Connection::handle_disconnected),
//! [`handle_timeout`](Connection::handle_timeout)) and what the user requests
//! ([`send`](Connection::send), [`receive`](Connection::receive),
//! [`shut_down`](Connection::shut_down), ...). [`poll`](Connection::poll) returns [`Output`]s in
//! the order in which the driver has to perform them: verbs to post, bytes to move, [`Event`]s for
//! the user. After each input, call `poll` until it returns `None`. Then
//! [`poll_timeout`](Connection::poll_timeout) returns the time at which to call `handle_timeout`.
//!
//! **The machine never accesses the user's bytes.** It knows only the id and the length of each
//! send and receive, and the number of each Private Buffer. An `Output` identifies the source and
//! the destination of bytes, and the driver moves the bytes. The driver uses gather lists, RDMA, or
//! one copy out of a Private Buffer ([`Output::Place`]). So bytes are copied only where the draft
//! requires a copy for Bcopy.
//!
//! | file | purpose | draft |
//! | --- | --- | --- |
//! | `settings`, `policy` | settings of one side; rules that select Bcopy or Zcopy | 9, 11 |
//! | `output` | outputs of the machine | |
//! | `violation` | violations by the peer that end the connection | 8.2.2 |
//! | `profile`, `startup` | streaming mode until iWARP begins, in each start-up profile | 8.1.1 |
//! | `hello` | Hello and HelloAck: refusals, versions, IRD and ORD | 6.2, 8.1.1 |
//! | `connection`, `role`, `phase`, `op`, `command`, `arrive` | commands, inputs and state | |
//! | `transfer_counts` | numbers of bytes that Bcopy and Zcopy moved | 9 |
//! | `inbound` | effect of each received message | 6 |
//! | `next`, `control` | selection and header of the next message; queued answers | 10.1 |
//! | `credits`, `credit_request`, `pool` | send credit, updates, Private Buffers | 10.2 to 10.5 |
//! | `source` | sending: Bcopy, own SrcAvails, the peer's SinkAvails | 9, 11, 12 |
//! | `sink` | receiving: Private Buffers, own SinkAvails, the peer's SrcAvails | 9, 11, 12 |
//! | `urgent` | Out-Of-Band bytes to send | 9.5.3 |
//! | `resize` | ChRcvBuf as requester and as responder, and requests that cross | 10.6 |
//! | `close`, `closing` | DisConn, AbortConn, and the end of TCP | 8.2 |
//! | `suspend`, `suspension` | suspension: the socket moves to another TCP connection | 13 |
//!
//! The draft leaves some rules open. Comments at the code state how this module interprets them.
//!
//! This module does not include the port mapper, sockets or a blocking API. Sockets and their API
//! are part of the driver. The machine detects only those violations after which the connection
//! cannot continue.

mod arrive;
mod close;
mod closing;
mod command;
mod connection;
mod control;
mod credit_request;
mod credits;
mod hello;
mod inbound;
mod next;
mod op;
mod output;
mod phase;
mod policy;
mod pool;
mod profile;
mod resize;
mod role;
mod settings;
mod sink;
mod source;
mod startup;
mod suspend;
mod suspension;
mod transfer_counts;
mod urgent;
mod violation;

pub use command::CommandError;
pub use connection::{Arrival, Connection};
pub(crate) use control::is_solicited;
pub use hello::{Agreed, Refusal};
pub use output::{
    Event, Exposed, Half, OpId, Output, Piece, PrivateBuffer, ReceiveId, ReceiveOutcome, Region, SendId, SendOutcome,
    Start,
};
pub use policy::{Policy, SrcAvailAnswer};
pub use profile::{BareSettings, Profile};
pub use role::Role;
pub use settings::Settings;
pub use transfer_counts::{TransferCount, TransferCounts};
pub use violation::Violation;
