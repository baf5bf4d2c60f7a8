//! SDP connections of a case: start-up in the target's profile, and messages over FPDUs. The tester
//! keeps the counters of the messages.
//!
//! | file | content |
//! | --- | --- |
//! | `begin` | the first bytes of a connection: with SDP or without |
//! | `connection` | the counters of one connection, and received messages |
//! | `expect` | the expectations of a connection |
//! | `correct_exchange` | the good exchange with an SDP service |
//! | `plain` | the plain exchange of a control |
//! | `probe` | the behaviour of an unknown socket |
//! | `socket` | SDP sockets of the tester, on weft's own SDP |
//! | `cut` | how such a socket divides its bytes into TCP segments |
//! | `start` | Hello and HelloAck, with the start-up frames of MPA |
//! | `transfer` | transfers that need several messages |

mod begin;
mod connection;
mod correct_exchange;
mod cut;
mod expect;
mod plain;
mod probe;
mod socket;
mod start;
mod transfer;

use std::collections::BTreeMap;

pub(in crate::stage) use connection::SEGMENT;
pub(crate) use connection::{Item, SdpConnection, SendFields};
pub(crate) use cut::Cut;
pub(crate) use expect::{Ending, MessageFields, Value};
pub(crate) use probe::Behaviour;
pub(crate) use socket::{SdpSocket, SocketSettings, SocketWait};
pub(crate) use start::{HelloAck, hello};

use super::{Connections, Recorder};

/// Length of a Hello in bytes.
pub(in crate::stage) const HELLO_LEN: usize = 32;

/// The operations of the tester with SDP on one connection.
pub(crate) struct SdpSide<'a> {
    pub(in crate::stage) connections: &'a mut Connections,
    /// The connections that speak SDP, by number.
    pub(in crate::stage) list: &'a mut BTreeMap<u32, SdpConnection>,
    pub(in crate::stage) number: u32,
}

impl SdpSide<'_> {
    pub(in crate::stage) fn recorder(&mut self) -> Recorder<'_> {
        self.connections.recorder_of(self.number)
    }
}
