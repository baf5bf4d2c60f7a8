//! The Sockets Direct Protocol of draft-pinkerton-iwarp-sdp-01 as a sans-IO machine: one
//! [`Connection`] is one socket.
//!
//! It uses an RNIC that it never touches. In go what the RNIC and TCP did
//! ([`Connection::handle_streaming`], [`handle_message`](Connection::handle_message),
//! [`handle_completed`](Connection::handle_completed),
//! [`handle_disconnected`](Connection::handle_disconnected),
//! [`handle_timeout`](Connection::handle_timeout)) and what the user wants
//! ([`send`](Connection::send), [`receive`](Connection::receive),
//! [`shut_down`](Connection::shut_down), ...). Out come, in order, from [`poll`](Connection::poll),
//! [`Output`]s: verbs to post, octets to move, [`Event`]s for the user. Whatever goes in, `poll`
//! until it gives nothing, then ask [`poll_timeout`](Connection::poll_timeout) when to come again.
//!
//! **The machine never sees the user's octets.** A send and a receive are a name and a length; a
//! Private Buffer is a number. An `Output` has which piece of what goes where, and the machine's
//! driver moves it: by gather lists, RDMA, or one copy ([`Output::Place`]) out of a Private Buffer.
//! So a copy is made where the draft's Bcopy asks for one, and nowhere else.
//!
//! | file | idea | draft |
//! | --- | --- | --- |
//! | `settings`, `policy` | what a side wants; when which mechanism is used | 9, 11 |
//! | `output` | what comes out | |
//! | `violation` | what a peer can do wrong | 8.2.2 |
//! | `profile`, `startup` | streaming octets until iWARP begins, in each profile | 8.1.1 |
//! | `hello` | Hello and HelloAck: refusals, versions, IRD and ORD | 6.2, 8.1.1 |
//! | `connection`, `role`, `phase`, `op`, `command`, `arrive` | the machine's surface: what comes out, commands, what arrives | |
//! | `moved` | what has moved, by mechanism | 9 |
//! | `inbound` | what each message does | 6 |
//! | `next`, `control` | which message goes out next, and its header; messages that are due | 10.1 |
//! | `credits`, `nudge`, `pool` | send credit, a way out at two credits, Private Buffers | 10.2 to 10.5 |
//! | `source` | the half that sends: Bcopy, SrcAvails, the peer's SinkAvails | 9, 11, 12 |
//! | `sink` | the half that receives: Private Buffers, the peer's SrcAvails, SinkAvails | 9, 11, 12 |
//! | `urgent` | Out-Of-Band octets on their way | 9.5.3 |
//! | `resize` | ChRcvBuf, both roles, and crossing | 10.6 |
//! | `close`, `closing` | DisConn, AbortConn, and the end of TCP | 8.2 |
//! | `suspend`, `suspension` | SuspComm and SuspCommAck: the socket goes on over another TCP connection | 13 |
//!
//! The letters C1 to C44 in comments are readings of places that the draft leaves open; they are
//! named where they matter.
//!
//! What is absent on purpose: sockets and an API to wait on (the driver's), the port mapper,
//! judging the peer beyond what makes going on impossible.

mod arrive;
mod close;
mod closing;
mod command;
mod connection;
mod control;
mod credits;
mod hello;
mod inbound;
mod moved;
mod next;
mod nudge;
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
mod urgent;
mod violation;

pub use command::Refused;
pub use connection::{Arrival, Connection};
pub(crate) use control::is_solicited;
pub use hello::{Agreed, Refusal};
pub use moved::{Count, Moved};
pub use output::{
    Event, Exposed, Half, OpId, Output, Piece, PrivateBuffer, ReceiveEnd, ReceiveId, Region, SendEnd, SendId, Start,
};
pub use policy::{Policy, SrcAvailAnswer};
pub use profile::{Bare, Profile};
pub use role::Role;
pub use settings::Settings;
pub use violation::Violation;
