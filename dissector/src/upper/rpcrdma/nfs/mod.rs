//! The arguments and results of NFS: version 3 (RFC 1813), version 4 (RFC 7530, 8881, 7862, 8276),
//! and the callbacks of version 4.
//!
//! Tables describe the layout of each operation. Bulk data that a chunk carries is not in the RPC
//! message (RFC 8267): the decoder then expects only the length of the data.

mod callback;
mod common;
mod decoder;
pub mod operation;
mod status;
#[cfg(test)]
mod tests;
mod unions;
mod v3;
mod v4;

use super::program::Program;
use super::xdr::{Stop, Xdr};
use decoder::Decoder;
pub(super) use decoder::Reduction;
pub use operation::{Body, Operation, Parameter, ParameterKind, ParameterValue};
pub use status::status_name;

/// Whether weft decodes the arguments and results of a procedure.
pub(super) fn is_known(program: Program, version: u32, procedure: u32) -> bool {
    match (program, version) {
        (Program::Nfs, 3) => v3::layout(procedure).is_some(),
        (Program::NfsAcl, 3) => v3::acl_layout(procedure).is_some(),
        (Program::Nfs, 4) | (Program::NfsCallback, _) => procedure == 1,
        _ => false,
    }
}

/// Decodes the arguments of a call. The result has the decoded part, also if an error follows it.
pub(super) fn arguments(
    (program, version, procedure): (Program, u32, u32),
    xdr: Xdr<'_>,
    reduction: Reduction<'_>,
) -> (Body, Option<Stop>) {
    let mut decoder = Decoder::new(xdr, reduction);
    let stop = match (program, version) {
        (Program::Nfs, 3) => decoder.call(v3::layout(procedure)),
        (Program::NfsAcl, 3) => decoder.call(v3::acl_layout(procedure)),
        (Program::Nfs, 4) => decoder.compound_call(v4::layout, false),
        _ => decoder.compound_call(callback::layout, true),
    };
    decoder.finish(stop)
}

/// Decodes the results of a call. See [`arguments`].
pub(super) fn results(
    (program, version, procedure): (Program, u32, u32),
    xdr: Xdr<'_>,
    reduction: Reduction<'_>,
) -> (Body, Option<Stop>) {
    let mut decoder = Decoder::new(xdr, reduction);
    let stop = match (program, version) {
        (Program::Nfs, 3) => decoder.reply(v3::layout(procedure)),
        (Program::NfsAcl, 3) => decoder.reply(v3::acl_layout(procedure)),
        (Program::Nfs, 4) => decoder.compound_reply(v4::layout),
        _ => decoder.compound_reply(callback::layout),
    };
    decoder.finish(stop)
}

/// The name of an operation: a procedure of NFS version 3, or an operation of a COMPOUND or
/// `CB_COMPOUND`.
#[must_use]
pub fn operation_name(program: Program, version: u32, opcode: u32) -> Option<&'static str> {
    match (program, version) {
        (Program::Nfs, 4) => v4::layout(opcode).map(|layout| layout.name),
        (Program::NfsCallback, _) => callback::layout(opcode).map(|layout| layout.name),
        _ => program.procedure_name(version, opcode),
    }
}
