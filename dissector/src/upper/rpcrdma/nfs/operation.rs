//! The decoded arguments and results: [`Body`], [`Operation`] and [`Parameter`].

use super::super::auth::PeerText;

/// Maximum number of operations that are stored of one message.
pub const MAX_OPERATIONS: usize = 64;
/// Maximum number of parameters that are stored of one message.
pub const MAX_PARAMETERS: usize = 512;
/// Maximum number of bytes that are stored of one name, file handle or other parameter.
pub const MAX_PARAMETER_BYTES: usize = 256;

/// The meaning of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum ParameterKind {
    /// A file handle.
    FileHandle,
    /// Name of a file in its directory. RENAME has the old and the new name.
    Name,
    /// Target of a symbolic link.
    LinkTarget,
    /// Position in a file, in bytes.
    Offset,
    /// Number of bytes to transfer, or of transferred bytes.
    Count,
    /// Number of bytes of a range of a file.
    Length,
    /// Length of the data of a READ reply in bytes. A Write chunk can carry the data.
    ReadDataLength,
    /// Length of the data of a WRITE call in bytes. A Read chunk can carry the data.
    WriteDataLength,
    /// How a WRITE stores its data: `stable_how`.
    Stable,
    /// How the server stored the data of a WRITE.
    Committed,
    /// Whether the data reaches the end of the file or of the directory.
    Eof,
    /// Access rights to check.
    AccessCheck,
    /// Access rights that the server can check.
    AccessSupported,
    /// Granted access rights.
    AccessRights,
    /// Position in a directory.
    Cookie,
    /// Maximum number of bytes of directory information.
    DirCount,
    /// Maximum number of bytes of the results.
    MaxCount,
    /// Number of directory entries in a reply.
    Entries,
    /// Size of a file in bytes.
    FileSize,
    /// Type of a file.
    FileType,
    /// Number of an attribute in a bit map.
    Attribute,
    /// The sequence number of a state id.
    StateSequence,
    /// The other bytes of a state id.
    StateOther,
    /// Sequence number of a request in its slot, or of an owner.
    Sequence,
    /// Slot of a session.
    Slot,
    /// Highest slot in use.
    HighestSlot,
    /// Highest slot that the server wants the client to use.
    TargetHighestSlot,
    /// Session id.
    Session,
    /// Whether the server stores the reply of this request.
    CacheThis,
    /// Client id.
    Client,
    /// Access that an OPEN requests.
    ShareAccess,
    /// Access that an OPEN denies to other clients.
    ShareDeny,
    /// Whether an OPEN creates the file.
    OpenType,
    /// How a file is created.
    CreateMode,
    /// How an OPEN names the file.
    ClaimType,
    /// The delegation in the reply to an OPEN.
    DelegationType,
    /// Type of a lock.
    LockType,
    /// Layout type of pNFS.
    LayoutType,
    /// I/O mode of a layout.
    IoMode,
    /// Program number of callbacks.
    CallbackProgram,
    /// Maximum length of a request in bytes.
    MaxRequestSize,
    /// Maximum length of a response in bytes.
    MaxResponseSize,
    /// Maximum number of operations of a COMPOUND.
    MaxOperations,
    /// Maximum number of slots of a session.
    MaxRequests,
}

/// The value of a parameter.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ParameterValue {
    /// A number or flag.
    Number(u64),
    /// A name.
    Text(PeerText),
    /// Bytes, at most [`MAX_PARAMETER_BYTES`].
    Bytes(Box<[u8]>),
}

/// A parameter of an operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Parameter {
    /// The meaning.
    pub kind: ParameterKind,
    /// The value.
    pub value: ParameterValue,
    /// Offset of the value in the RPC message, in bytes. In a text, the length precedes the value.
    pub at: u32,
    /// Length of the value on the wire in bytes, without padding.
    pub len: u32,
}

/// An operation: a procedure of NFS version 3, or one operation of a COMPOUND.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Operation {
    /// Number of the operation; in version 3, number of the procedure.
    pub opcode: u32,
    /// Offset of the operation in the RPC message, in bytes. In a COMPOUND, it is the offset of
    /// `opcode`.
    pub at: u32,
    /// In a reply, the status.
    pub status: Option<u32>,
    /// The parameters in the order of their bytes. Less important parameters are omitted.
    pub parameters: Vec<Parameter>,
    /// Whether a chunk carries the bulk data of the operation.
    pub is_reduced: bool,
}

impl Operation {
    /// The first parameter of a kind, if it is a number.
    #[must_use]
    pub fn number(&self, kind: ParameterKind) -> Option<u64> {
        self.parameters.iter().find(|parameter| parameter.kind == kind).and_then(|parameter| match parameter.value {
            ParameterValue::Number(number) => Some(number),
            ParameterValue::Text(_) | ParameterValue::Bytes(_) => None,
        })
    }

    /// The texts of a kind.
    pub fn texts(&self, kind: ParameterKind) -> impl Iterator<Item = &PeerText> {
        let of_kind = self.parameters.iter().filter(move |parameter| parameter.kind == kind);
        of_kind.filter_map(|parameter| match &parameter.value {
            ParameterValue::Text(text) => Some(text),
            ParameterValue::Number(_) | ParameterValue::Bytes(_) => None,
        })
    }

    /// Position in the file in bytes, for example of a READ.
    #[must_use]
    pub fn offset(&self) -> Option<u64> {
        self.number(ParameterKind::Offset)
    }

    /// Number of bytes that a call transfers or a reply has transferred.
    #[must_use]
    pub fn count(&self) -> Option<u64> {
        let kinds = [ParameterKind::Count, ParameterKind::ReadDataLength, ParameterKind::WriteDataLength];
        kinds.into_iter().find_map(|kind| self.number(kind))
    }

    /// The first name.
    #[must_use]
    pub fn name(&self) -> Option<&PeerText> {
        self.texts(ParameterKind::Name).next()
    }
}

/// The arguments of a call, or the results in a reply.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Body {
    /// Tag of a COMPOUND.
    pub tag: Option<Parameter>,
    /// Minor version of a COMPOUND call, and its offset in the RPC message in bytes.
    pub minor_version: Option<(u32, u32)>,
    /// Status of a COMPOUND reply, and its offset in the RPC message in bytes.
    pub status: Option<(u32, u32)>,
    /// Number of operations in a COMPOUND, and its offset in the RPC message in bytes. It exceeds
    /// the number of stored operations if there are more than [`MAX_OPERATIONS`], or if the message
    /// was not decoded to its end.
    pub count: Option<(u32, u32)>,
    /// The operations. In version 3, exactly one.
    pub operations: Vec<Operation>,
}
