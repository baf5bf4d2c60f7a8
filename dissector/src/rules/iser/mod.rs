//! Rules of RFC 7145 (iSER), and of the part of RFC 7143 (iSCSI) that shows on an iSER connection.
//!
//! The rules run only after the messages of the connection proved iSER. They check a message when
//! its last segment arrives. They judge one message at a time. Only the rules in [`response`] also
//! use the request that the message answers.
//!
//! | file | subject |
//! | --- | --- |
//! | [`header`] | the iSER header, Hello and HelloReply |
//! | [`command`] | SCSI Commands, and PDUs that iSER does not allow |
//! | [`response`] | SCSI Responses, and the STags that they invalidate |
//! | [`other`] | all other PDUs |

mod command;
mod header;
mod other;
mod response;
mod sent;
#[cfg(test)]
mod testing;

use super::rule::Rule;

/// All rules of RFC 7145 and RFC 7143.
pub(super) static RULES: &[&Rule] = &[
    &header::CONTROL,
    &header::HELLO,
    &command::FORBIDDEN,
    &command::FLAGS,
    &command::BUFFERS,
    &response::FLAGS,
    &response::INVALIDATED,
    &other::EMPTY,
    &other::TASKS,
    &other::LOGIN,
    &other::PING,
];
