//! RPC messages (RFC 5531 section 9): [`Call`] and [`Reply`].

use super::auth::Auth;
use super::header::{Chunk, ReadSegment};
use super::nfs::{self, Body, Reduction};
use super::program::Program;
use super::xdr::{Stop, Xdr};

/// The type of a message: CALL or REPLY.
const CALL: u32 = 0;
const REPLY: u32 = 1;
/// The only version of RPC.
const RPC_VERSION: u32 = 2;

/// The procedure that a call executes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Target {
    /// Program number.
    pub program_number: u32,
    /// The program.
    pub program: Program,
    /// Version of the program.
    pub version: u32,
    /// Number of the procedure.
    pub procedure: u32,
}

impl Target {
    /// The name of the procedure; `None` if it is not known.
    #[must_use]
    pub fn procedure_name(&self) -> Option<&'static str> {
        self.program.procedure_name(self.version, self.procedure)
    }

    /// The name of a status; `None` if it is not known.
    #[must_use]
    pub fn status_name(&self, status: u32) -> Option<&'static str> {
        nfs::status_name(self.program, self.version, status)
    }

    /// The name of an operation; `None` if it is not known.
    #[must_use]
    pub fn operation_name(&self, opcode: u32) -> Option<&'static str> {
        nfs::operation_name(self.program, self.version, opcode)
    }
}

/// A call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// XID.
    pub xid: u32,
    /// Version of RPC.
    pub rpc_version: u32,
    /// The procedure.
    pub target: Target,
    /// The credential; `None` if it could not be read.
    pub credential: Option<Auth>,
    /// The verifier; `None` if it could not be read.
    pub verifier: Option<Auth>,
    /// The arguments, if weft knows their layout.
    pub body: Option<Body>,
}

/// The status of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplyStatus {
    /// The server accepted the call. The value is `accept_stat`: 0 if the procedure was executed.
    Accepted(u32),
    /// The server accepted the call, but does not support the version of the program.
    ProgramMismatch {
        /// Lowest supported version.
        low: u32,
        /// Highest supported version.
        high: u32,
    },
    /// The server does not support the version of RPC.
    RpcMismatch {
        /// Lowest supported version.
        low: u32,
        /// Highest supported version.
        high: u32,
    },
    /// The server rejected the credential or the verifier. The value is `auth_stat`.
    AuthenticationError(u32),
}

/// A reply.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reply {
    /// XID.
    pub xid: u32,
    /// The status of the RPC layer.
    pub status: ReplyStatus,
    /// The verifier of an accepted call.
    pub verifier: Option<Auth>,
    /// The procedure of the call, if the call was captured.
    pub target: Option<Target>,
    /// The results, if weft knows their layout.
    pub body: Option<Body>,
}

/// An RPC message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RpcMessage {
    /// A call.
    Call(Call),
    /// A reply.
    Reply(Reply),
}

impl RpcMessage {
    /// The procedure; `None` in a reply whose call was not captured.
    #[must_use]
    pub fn target(&self) -> Option<&Target> {
        match self {
            RpcMessage::Call(call) => Some(&call.target),
            RpcMessage::Reply(reply) => reply.target.as_ref(),
        }
    }

    /// The arguments or results.
    #[must_use]
    pub fn body(&self) -> Option<&Body> {
        match self {
            RpcMessage::Call(call) => call.body.as_ref(),
            RpcMessage::Reply(reply) => reply.body.as_ref(),
        }
    }
}

/// Whether an RPC message is a call; `None` if the bytes are too short or have another value.
pub(super) fn is_call(bytes: &[u8]) -> Option<bool> {
    let kind: &[u8; 4] = bytes.get(4..)?.first_chunk()?;
    match u32::from_be_bytes(*kind) {
        CALL => Some(true),
        REPLY => Some(false),
        _ => None,
    }
}

impl Call {
    /// Reads a call. `reads` is the read list of the header. Returns the call, and the reason why
    /// the rest of the call was not read.
    ///
    /// # Errors
    /// The procedure of the call cannot be read.
    pub(super) fn read(
        mut xdr: Xdr<'_>,
        reads: &[ReadSegment],
        is_reverse: bool,
    ) -> Result<(Self, Option<Stop>), Stop> {
        let (xid, kind, rpc_version) = (xdr.u32()?, xdr.u32()?, xdr.u32()?);
        if kind != CALL || rpc_version != RPC_VERSION {
            return Err(Stop::Malformed);
        }
        let (program_number, version, procedure) = (xdr.u32()?, xdr.u32()?, xdr.u32()?);
        let program = Program::new(program_number, is_reverse);
        let target = Target { program_number, program, version, procedure };
        let mut call = Call { xid, rpc_version, target, credential: None, verifier: None, body: None };
        let stop = call.read_rest(xdr, reads).err();
        Ok((call, stop))
    }

    fn read_rest(&mut self, mut xdr: Xdr<'_>, reads: &[ReadSegment]) -> Result<(), Stop> {
        self.credential = Some(Auth::credential(&mut xdr)?);
        self.verifier = Some(Auth::verifier(&mut xdr)?);
        let Target { program, version, procedure, .. } = self.target;
        if self.is_protected() || !nfs::is_known(program, version, procedure) {
            return if xdr.is_complete() && xdr.rest().is_empty() { Ok(()) } else { Err(Stop::Unknown) };
        }
        let (body, stop) = nfs::arguments((program, version, procedure), xdr, Reduction::Call(reads));
        self.body = Some(body);
        stop.map_or(Ok(()), Err)
    }

    /// Whether the arguments and results are encrypted or have a checksum.
    #[must_use]
    pub fn is_protected(&self) -> bool {
        self.credential.as_ref().is_some_and(|credential| credential.is_protected)
    }
}

impl Reply {
    /// Reads a reply. `writes` is the write list of the header. `target` is the procedure of the
    /// call, if it is known and its results are not protected. Returns the reply, and the reason
    /// why the rest of the reply was not read.
    ///
    /// # Errors
    /// The status of the RPC layer cannot be read.
    pub(super) fn read(
        mut xdr: Xdr<'_>,
        writes: &[Chunk],
        target: Option<Target>,
        is_protected: bool,
    ) -> Result<(Self, Option<Stop>), Stop> {
        let (xid, kind) = (xdr.u32()?, xdr.u32()?);
        if kind != REPLY {
            return Err(Stop::Malformed);
        }
        let (verifier, status) = match xdr.u32()? {
            0 => {
                let verifier = Auth::verifier(&mut xdr)?;
                let status = match xdr.u32()? {
                    2 => ReplyStatus::ProgramMismatch { low: xdr.u32()?, high: xdr.u32()? },
                    status => ReplyStatus::Accepted(status),
                };
                (Some(verifier), status)
            }
            1 => match xdr.u32()? {
                0 => (None, ReplyStatus::RpcMismatch { low: xdr.u32()?, high: xdr.u32()? }),
                1 => (None, ReplyStatus::AuthenticationError(xdr.u32()?)),
                _ => return Err(Stop::Malformed),
            },
            _ => return Err(Stop::Malformed),
        };
        let mut reply = Reply { xid, status, verifier, target, body: None };
        let stop =
            if status == ReplyStatus::Accepted(0) { reply.read_results(xdr, writes, is_protected) } else { None };
        Ok((reply, stop))
    }

    fn read_results(&mut self, xdr: Xdr<'_>, writes: &[Chunk], is_protected: bool) -> Option<Stop> {
        let known = self
            .target
            .filter(|target| !is_protected && nfs::is_known(target.program, target.version, target.procedure));
        let Some(Target { program, version, procedure, .. }) = known else {
            let is_empty = xdr.is_complete() && xdr.rest().is_empty();
            return (!is_empty).then_some(Stop::Unknown);
        };
        let lengths = writes.iter().map(Chunk::length).collect();
        let (body, stop) = nfs::results((program, version, procedure), xdr, Reduction::Reply(lengths));
        self.body = Some(body);
        stop
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::hex;

    fn reply(bytes: &str) -> Result<(Reply, Option<Stop>), Stop> {
        Reply::read(Xdr::new(&hex(bytes), true), &[], None, false)
    }

    /// The NULL call and its reply of the Linux client and server.
    #[test]
    fn reads_a_null_call_and_its_reply() {
        let bytes = hex("6ba394ae 00000000 00000002 000186a3 00000003 00000000 00000000 00000000 00000000 00000000");
        let (call, stop) = Call::read(Xdr::new(&bytes, true), &[], false).unwrap();
        assert_eq!((call.xid, call.target.program.name(), call.target.version), (0x6ba3_94ae, Some("NFS"), 3));
        assert_eq!((call.target.procedure_name(), call.credential.unwrap().flavor, stop), (Some("NULL"), 0, None));
        let (found, stop) = reply("6ba394ae 00000001 00000000 00000000 00000000 00000000").unwrap();
        assert_eq!((found.xid, found.status, stop), (0x6ba3_94ae, ReplyStatus::Accepted(0), None));
    }

    /// The values are in RFC 5531 section 9.
    #[test]
    fn reads_every_status_of_a_reply() {
        let status = |rest: &str| reply(&format!("00000001 00000001 {rest}")).map(|(reply, _)| reply.status);
        let accepted = "00000000 00000000 00000000";
        assert_eq!(status(&format!("{accepted} 00000004")), Ok(ReplyStatus::Accepted(4)));
        let mismatch = ReplyStatus::ProgramMismatch { low: 3, high: 4 };
        assert_eq!(status(&format!("{accepted} 00000002 00000003 00000004")), Ok(mismatch));
        assert_eq!(status("00000001 00000000 00000002 00000002"), Ok(ReplyStatus::RpcMismatch { low: 2, high: 2 }));
        assert_eq!(status("00000001 00000001 00000005"), Ok(ReplyStatus::AuthenticationError(5)));
        for wrong in ["00000002", "00000001 00000002", "00000000 00000000 00000191", "00000001 00000000 00000002"] {
            assert_eq!(status(wrong), Err(Stop::Malformed), "{wrong}");
        }
    }

    #[test]
    fn results_of_an_unknown_call_are_not_decoded() {
        let (reply, stop) = reply("00000001 00000001 00000000 00000000 00000000 00000000 00000000").unwrap();
        assert_eq!((reply.body, stop), (None, Some(Stop::Unknown)));
    }

    #[test]
    fn a_call_that_ends_early_keeps_what_was_read() {
        let bytes = hex("00000001 00000000 00000002 000186a3 00000003 00000006 00000001 0000001c 00000000");
        let (call, stop) = Call::read(Xdr::new(&bytes, false), &[], false).unwrap();
        assert_eq!((call.target.procedure_name(), call.credential, stop), (Some("READ"), None, Some(Stop::Missing)));
        assert_eq!(Call::read(Xdr::new(&bytes[..20], true), &[], false), Err(Stop::Malformed));
    }
}
