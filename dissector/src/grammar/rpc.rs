//! Defines the fields of RPC messages that RPC-over-RDMA carries (RFC 5531 section 9).

use super::field::{Base, Field, Group, Value, Visitor, fields, nth_name};
use super::rpcordma::{Fields, Locator};
use crate::upper::rpcrdma::auth::{Auth, flavor_name};
use crate::upper::rpcrdma::message::{Call, Reply, ReplyStatus, RpcMessage, Target};
use crate::upper::rpcrdma::program::{Program, accept_status_name, auth_status_name};
use crate::upper::rpcrdma::{Decoded, Stop};

/// An RPC message.
pub static MESSAGE: Group = Group { name: "rpc", label: "Remote Procedure Call", section: "RFC 5531 9" };
/// A credential.
pub static CREDENTIAL: Group = Group { name: "rpc.credential", label: "Credential", section: "RFC 5531 8.2" };
/// A verifier.
pub static VERIFIER: Group = Group { name: "rpc.verifier", label: "Verifier", section: "RFC 5531 8.2" };

fields! { 17:
    XID: "rpc.xid", "XID", Base::Hex(8), "RFC 5531 9";
    MSGTYP: "rpc.msgtyp", "Message type", Base::Dec, "RFC 5531 9", names message_type_name;
    VERSION: "rpc.version", "RPC version", Base::Dec, "RFC 5531 9";
    PROGRAM: "rpc.program", "Program", Base::Dec, "RFC 5531 9", names program_name;
    PROGRAMVERSION: "rpc.programversion", "Program version", Base::Dec, "RFC 5531 9";
    PROCEDURE: "rpc.procedure", "Procedure", Base::Dec, "RFC 5531 9";
    PROCEDURE_NAME: "rpc.procedure_name", "Procedure name", Base::Text, "RFC 5531 9";
    AUTH_FLAVOR: "rpc.auth.flavor", "Flavor", Base::Dec, "RFC 5531 8.2", names auth_name;
    AUTH_LENGTH: "rpc.auth.length", "Length", Base::Dec, "RFC 5531 8.2";
    AUTH_STAMP: "rpc.auth.stamp", "Stamp", Base::Hex(8), "RFC 5531 A";
    AUTH_MACHINENAME: "rpc.auth.machinename", "Machine name", Base::Text, "RFC 5531 A";
    AUTH_UID: "rpc.auth.uid", "UID", Base::Dec, "RFC 5531 A";
    AUTH_GID: "rpc.auth.gid", "GID", Base::Dec, "RFC 5531 A";
    REPLYSTAT: "rpc.replystat", "Reply state", Base::Dec, "RFC 5531 9", names reply_state_name;
    STATE_ACCEPT: "rpc.state_accept", "Accept state", Base::Dec, "RFC 5531 9", names accept_name;
    STATE_REJECT: "rpc.state_reject", "Reject state", Base::Dec, "RFC 5531 9", names reject_name;
    STATE_AUTH: "rpc.state_auth", "Authentication state", Base::Dec, "RFC 5531 9", names auth_state_name;
    VERSION_MIN: "rpc.version.min", "Lowest RPC version", Base::Dec, "RFC 5531 9";
    VERSION_MAX: "rpc.version.max", "Highest RPC version", Base::Dec, "RFC 5531 9";
    PROGRAMVERSION_MIN: "rpc.programversion.min", "Lowest program version", Base::Dec, "RFC 5531 9";
    PROGRAMVERSION_MAX: "rpc.programversion.max", "Highest program version", Base::Dec, "RFC 5531 9";
    REQFRAME: "rpc.reqframe", "Frame of the call", Base::Dec, "";
    CARRIER: "rpc.carrier", "Carrier of the message", Base::Text, "RFC 8166 3.4";
    READ_BYTES: "rpc.read_bytes", "Bytes from Read chunks", Base::Dec, "RFC 8166 3.4.5";
    WRITTEN_BYTES: "rpc.written_bytes", "Bytes to Write and Reply chunks", Base::Dec, "RFC 8166 3.4.6";
    DECODED: "rpc.decoded", "Decoded", Base::Text, "";
}

/// Whether a message can have the field several times.
pub(super) fn is_list(field: &Field) -> bool {
    let repeated: [&Field; 3] = [&AUTH_FLAVOR, &AUTH_LENGTH, &AUTH_GID];
    field.bit.0 == XID.bit.0 && repeated.iter().any(|repeated| std::ptr::eq(*repeated, field))
}

fn message_type_name(kind: u64) -> Option<&'static str> {
    nth_name(&["Call", "Reply"], kind)
}

fn program_name(program: u64) -> Option<&'static str> {
    Program::new(u32::try_from(program).ok()?, false).name()
}

fn auth_name(flavor: u64) -> Option<&'static str> {
    flavor_name(u32::try_from(flavor).ok()?)
}

fn reply_state_name(state: u64) -> Option<&'static str> {
    nth_name(&["accepted", "denied"], state)
}

fn accept_name(state: u64) -> Option<&'static str> {
    accept_status_name(u32::try_from(state).ok()?)
}

fn reject_name(state: u64) -> Option<&'static str> {
    nth_name(&["RPC_MISMATCH", "AUTH_ERROR"], state)
}

fn auth_state_name(state: u64) -> Option<&'static str> {
    auth_status_name(u32::try_from(state).ok()?)
}

/// Visits the RPC message of a message. `end` is the offset of the end of the FPDU.
pub(super) fn visit<V: Visitor>(decoded: &Decoded, end: usize, visitor: &mut V) {
    let Some(message) = &decoded.message else { return };
    let mut fields = Fields { locator: Locator::of_rpc(decoded, end), visitor };
    fields.enter(&MESSAGE, 0, 0);
    match message {
        RpcMessage::Call(call) => fields.call(call),
        RpcMessage::Reply(reply) => fields.reply(reply),
    }
    fields.facts(decoded);
    match message {
        RpcMessage::Call(call) => {
            fields.auth(&CREDENTIAL, call.credential.as_ref());
            fields.auth(&VERIFIER, call.verifier.as_ref());
        }
        RpcMessage::Reply(reply) => fields.auth(&VERIFIER, reply.verifier.as_ref()),
    }
    fields.leave();
}

impl<V: Visitor> Fields<'_, V> {
    fn call(&mut self, call: &Call) {
        self.uint(&XID, call.xid, 0, 4);
        self.uint(&MSGTYP, 0_u32, 4, 4);
        self.uint(&VERSION, call.rpc_version, 8, 4);
        let Target { program_number, version, procedure, .. } = call.target;
        self.uint(&PROGRAM, program_number, 12, 4);
        self.uint(&PROGRAMVERSION, version, 16, 4);
        self.uint(&PROCEDURE, procedure, 20, 4);
        self.procedure_name(&call.target);
    }

    fn procedure_name(&mut self, target: &Target) {
        if let Some(name) = target.procedure_name() {
            self.derived(&PROCEDURE_NAME, Value::Text(name));
        }
    }

    fn reply(&mut self, reply: &Reply) {
        self.uint(&XID, reply.xid, 0, 4);
        self.uint(&MSGTYP, 1_u32, 4, 4);
        // The verifier precedes the status of an accepted call.
        let state = reply.verifier.as_ref().map_or(12, Auth::end);
        let after = |offset: u32| state.saturating_add(offset);
        self.uint(&REPLYSTAT, u32::from(reply.verifier.is_none()), 8, 4);
        match reply.status {
            ReplyStatus::Accepted(status) => self.uint(&STATE_ACCEPT, status, state, 4),
            ReplyStatus::ProgramMismatch { low, high } => {
                self.uint(&STATE_ACCEPT, 2_u32, state, 4);
                self.uint(&PROGRAMVERSION_MIN, low, after(4), 4);
                self.uint(&PROGRAMVERSION_MAX, high, after(8), 4);
            }
            ReplyStatus::RpcMismatch { low, high } => {
                self.uint(&STATE_REJECT, 0_u32, state, 4);
                self.uint(&VERSION_MIN, low, after(4), 4);
                self.uint(&VERSION_MAX, high, after(8), 4);
            }
            ReplyStatus::AuthenticationError(status) => {
                self.uint(&STATE_REJECT, 1_u32, state, 4);
                self.uint(&STATE_AUTH, status, after(4), 4);
            }
        }
        if let Some(target) = &reply.target {
            self.derived(&PROGRAM, Value::Uint(target.program_number.into()));
            self.derived(&PROGRAMVERSION, Value::Uint(target.version.into()));
            self.derived(&PROCEDURE, Value::Uint(target.procedure.into()));
            self.procedure_name(target);
        }
    }

    /// Visits the facts that the message itself does not show.
    fn facts(&mut self, decoded: &Decoded) {
        self.derived(&CARRIER, Value::Text(decoded.carrier.name()));
        if let Some(call) = &decoded.call {
            self.derived(&REQFRAME, Value::Uint(call.frame.into()));
            self.derived(&READ_BYTES, Value::Uint(call.read_bytes));
            self.derived(&WRITTEN_BYTES, Value::Uint(call.written_bytes));
        }
        let decoded = decoded.stop.map_or("complete", Stop::name);
        self.derived(&DECODED, Value::Text(decoded));
    }

    fn auth(&mut self, group: &'static Group, auth: Option<&Auth>) {
        let Some(auth) = auth else { return };
        let at = auth.at;
        self.enter(group, at, auth.end().saturating_sub(at));
        self.uint(&AUTH_FLAVOR, auth.flavor, at, 4);
        self.uint(&AUTH_LENGTH, auth.length, at + 4, 4);
        if let Some(unix) = &auth.unix {
            self.uint(&AUTH_STAMP, unix.stamp, at + 8, 4);
            let range = self.locator.locate(at + 16, unix.machine_name_len);
            self.visitor.field(&AUTH_MACHINENAME, Value::PeerText(unix.machine_name.as_str()), range);
            let uid_at = at + 16 + unix.machine_name_len.next_multiple_of(4);
            self.uint(&AUTH_UID, unix.uid, uid_at, 4);
            self.uint(&AUTH_GID, unix.gid, uid_at + 4, 4);
            for (gid, at) in unix.gids.iter().zip((uid_at + 12..).step_by(4)) {
                self.uint(&AUTH_GID, *gid, at, 4);
            }
        }
        self.leave();
    }
}
