//! [`IoEvent`]: the begin or the end of a command, in terms that all storage protocols share.

use super::command::DataFlow;

/// What a message means.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum IoEvent {
    /// The message begins a command.
    Begin(Begin),
    /// The message, or an RDMA operation that completes it, shows what the command is.
    Describe(Describe),
    /// The message has data of a command in flight. The sender of the command sent it.
    Data(Data),
    /// The message has the status of a command.
    End(End),
    /// The receiver of the command gave it a second number, and will send the status later.
    Interim {
        /// As in [`Begin::id`].
        id: u64,
        /// The second number.
        async_id: u64,
    },
    /// The sender of a command requests that its peer ends the command early.
    Cancel(CancelledCommand),
    /// A part of the message could not be read. It can have begins and ends of commands.
    Unread,
}

/// The begin of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Begin {
    /// The number by which the response names the command. It is unique among the outstanding
    /// commands of one sender on one connection.
    pub(super) id: u64,
    /// Number of the queue or of the session; `None` if it is not known.
    pub(super) queue: Option<u64>,
    /// The name of the command in the specification of the protocol.
    pub(super) kind: &'static str,
    /// The parameters as text, for example `nsid 1 lba 0 blocks 8`. The text can be empty.
    pub(super) parameters: String,
    /// The direction of the data.
    pub(super) flow: DataFlow,
    /// Length in bytes of the data that the command describes; 0 if it describes no data.
    pub(super) expected_bytes: u64,
    /// Length in bytes of the data in the message itself.
    pub(super) inline_bytes: u64,
    /// The buffers that the command advertises to its peer.
    pub(super) buffers: Vec<Buffer>,
    /// Whether the command advertises further buffers, which are not known.
    pub(super) has_unknown_buffers: bool,
}

/// The name and the parameters of a command that were not known when it began.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Describe {
    /// As in [`Begin::id`].
    pub(super) id: u64,
    /// As in [`Begin::kind`].
    pub(super) kind: &'static str,
    /// As in [`Begin::parameters`].
    pub(super) parameters: String,
}

/// Data of a command in a message after the begin of the command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Data {
    /// As in [`Begin::id`].
    pub(super) id: u64,
    /// Length of the data in bytes.
    pub(super) bytes: u64,
}

/// The end of a command.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct End {
    /// As in [`Begin::id`].
    pub(super) id: u64,
    /// As in [`Begin::queue`].
    pub(super) queue: Option<u64>,
    /// The status as text.
    pub(super) status: String,
    /// Whether the command failed.
    pub(super) is_error: bool,
    /// Length in bytes of the data in the message itself.
    pub(super) inline_bytes: u64,
}

/// The command that a CANCEL names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum CancelledCommand {
    /// By its [`Begin::id`].
    Id(u64),
    /// By the number of its interim response.
    Async(u64),
}

/// A buffer that a command advertises.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Buffer {
    pub(super) stag: u32,
    /// Tagged Offset of the first byte.
    pub(super) offset: u64,
    /// Length in bytes.
    pub(super) len: u64,
}
