//! The layouts of NFS version 3 (RFC 1813 section 3), and of version 3 of the ACL program.

use super::common;
use super::decoder::Item::{Custom, Data, DataText, Skip, Text, U32, U64, Unknown};
use super::decoder::{Item, Layout, find};
use super::operation::ParameterKind as P;

const HANDLE: Item = Custom(common::file_handle);
const ATTRIBUTES: Item = Custom(common::attributes);
const POST_ATTRIBUTES: Item = Custom(common::post_attributes);
const POST_HANDLE: Item = Custom(common::post_file_handle);
const WCC: Item = Custom(common::weak_cache_consistency);
const SETTABLE: Item = Custom(common::settable_attributes);
const NAME: Item = Text(P::Name);
/// The results of an operation that creates a file.
const CREATED: &[Item] = &[POST_HANDLE, POST_ATTRIBUTES, WCC];

/// The layout of a procedure of NFS.
pub(super) fn layout(procedure: u32) -> Option<&'static Layout> {
    find(PROCEDURES, procedure)
}

/// The layout of a procedure of the ACL program.
pub(super) fn acl_layout(procedure: u32) -> Option<&'static Layout> {
    find(ACL_PROCEDURES, procedure)
}

const fn row(
    code: u32,
    name: &'static str,
    call: &'static [Item],
    success: &'static [Item],
    failure: &'static [Item],
) -> Layout {
    Layout { code, name, call, success, failure }
}

static PROCEDURES: &[Layout] = &[
    row(0, "NULL", &[], &[], &[]),
    row(1, "GETATTR", &[HANDLE], &[ATTRIBUTES], &[]),
    row(2, "SETATTR", &[HANDLE, SETTABLE, Custom(common::guard)], &[WCC], &[WCC]),
    row(3, "LOOKUP", &[HANDLE, NAME], &[HANDLE, POST_ATTRIBUTES, POST_ATTRIBUTES], &[POST_ATTRIBUTES]),
    row(4, "ACCESS", &[HANDLE, U32(P::AccessCheck)], &[POST_ATTRIBUTES, U32(P::AccessRights)], &[POST_ATTRIBUTES]),
    row(5, "READLINK", &[HANDLE], &[POST_ATTRIBUTES, DataText(P::LinkTarget)], &[POST_ATTRIBUTES]),
    row(
        6,
        "READ",
        &[HANDLE, U64(P::Offset), U32(P::Count)],
        &[POST_ATTRIBUTES, U32(P::Count), U32(P::Eof), Data(P::ReadDataLength)],
        &[POST_ATTRIBUTES],
    ),
    row(
        7,
        "WRITE",
        &[HANDLE, U64(P::Offset), U32(P::Count), U32(P::Stable), Data(P::WriteDataLength)],
        &[WCC, U32(P::Count), U32(P::Committed), Skip(8)],
        &[WCC],
    ),
    row(8, "CREATE", &[HANDLE, NAME, Custom(common::create_how)], CREATED, &[WCC]),
    row(9, "MKDIR", &[HANDLE, NAME, SETTABLE], CREATED, &[WCC]),
    row(10, "SYMLINK", &[HANDLE, NAME, SETTABLE, DataText(P::LinkTarget)], CREATED, &[WCC]),
    row(11, "MKNOD", &[HANDLE, NAME, Custom(common::node)], CREATED, &[WCC]),
    row(12, "REMOVE", &[HANDLE, NAME], &[WCC], &[WCC]),
    row(13, "RMDIR", &[HANDLE, NAME], &[WCC], &[WCC]),
    row(14, "RENAME", &[HANDLE, NAME, HANDLE, NAME], &[WCC, WCC], &[WCC, WCC]),
    row(15, "LINK", &[HANDLE, HANDLE, NAME], &[POST_ATTRIBUTES, WCC], &[POST_ATTRIBUTES, WCC]),
    row(
        16,
        "READDIR",
        &[HANDLE, U64(P::Cookie), Skip(8), U32(P::Count)],
        &[POST_ATTRIBUTES, Skip(8), Custom(common::entries)],
        &[POST_ATTRIBUTES],
    ),
    row(
        17,
        "READDIRPLUS",
        &[HANDLE, U64(P::Cookie), Skip(8), U32(P::DirCount), U32(P::MaxCount)],
        &[POST_ATTRIBUTES, Skip(8), Custom(common::entries_plus)],
        &[POST_ATTRIBUTES],
    ),
    row(18, "FSSTAT", &[HANDLE], &[POST_ATTRIBUTES, Skip(52)], &[POST_ATTRIBUTES]),
    row(19, "FSINFO", &[HANDLE], &[POST_ATTRIBUTES, Skip(48)], &[POST_ATTRIBUTES]),
    row(20, "PATHCONF", &[HANDLE], &[POST_ATTRIBUTES, Skip(24)], &[POST_ATTRIBUTES]),
    row(21, "COMMIT", &[HANDLE, U64(P::Offset), U32(P::Count)], &[WCC, Skip(8)], &[WCC]),
];

static ACL_PROCEDURES: &[Layout] = &[
    row(0, "NULL", &[], &[], &[]),
    row(1, "GETACL", &[HANDLE, Skip(4)], &[POST_ATTRIBUTES, Unknown], &[POST_ATTRIBUTES]),
    row(2, "SETACL", &[HANDLE, Unknown], &[POST_ATTRIBUTES], &[POST_ATTRIBUTES]),
];
