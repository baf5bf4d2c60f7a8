//! The layouts of the operations of NFS version 4: versions 4.0 (RFC 7530), 4.1 (RFC 8881) and 4.2
//! (RFC 7862), and extended attributes (RFC 8276).

use super::common;
use super::decoder::Item::{
    Attributes, Custom, Data, DataText, Fixed, Skip, SkipBitmap, SkipOpaque, StateId, Text, U32, U64, Unknown,
};
use super::decoder::{Item, Layout, find};
use super::operation::ParameterKind as P;
use super::unions;

const HANDLE: Item = Custom(common::file_handle);
const NAME: Item = Text(P::Name);
const OWNER: Item = Custom(unions::owner);
const ATTRIBUTES: Item = Custom(unions::attributes);
const SESSION: Item = Fixed(P::Session, 16);
/// `change_info4`.
const CHANGE: Item = Skip(20);
const VERIFIER: Item = Skip(8);
/// The type of a layout or device.
const TYPE: Item = U32(P::LayoutType);
const IO_MODE: Item = U32(P::IoMode);
const OFFSET: Item = U64(P::Offset);
const LENGTH: Item = U64(P::Length);

/// The layout of an operation.
pub(super) fn layout(code: u32) -> Option<&'static Layout> {
    find(OPERATIONS, code)
}

const fn row(code: u32, name: &'static str, call: &'static [Item], success: &'static [Item]) -> Layout {
    Layout { code, name, call, success, failure: &[] }
}

const fn failing(
    code: u32,
    name: &'static str,
    call: &'static [Item],
    success: &'static [Item],
    failure: &'static [Item],
) -> Layout {
    Layout { code, name, call, success, failure }
}

static OPERATIONS: &[Layout] = &[
    row(3, "ACCESS", &[U32(P::AccessCheck)], &[U32(P::AccessSupported), U32(P::AccessRights)]),
    row(4, "CLOSE", &[U32(P::Sequence), StateId], &[StateId]),
    row(5, "COMMIT", &[OFFSET, U32(P::Count)], &[VERIFIER]),
    row(6, "CREATE", &[Custom(unions::create_type), NAME, ATTRIBUTES], &[CHANGE, SkipBitmap]),
    row(7, "DELEGPURGE", &[U64(P::Client)], &[]),
    row(8, "DELEGRETURN", &[StateId], &[]),
    row(9, "GETATTR", &[Attributes], &[ATTRIBUTES]),
    row(10, "GETFH", &[], &[HANDLE]),
    row(11, "LINK", &[NAME], &[CHANGE]),
    failing(
        12,
        "LOCK",
        &[U32(P::LockType), Skip(4), OFFSET, LENGTH, Custom(unions::locker)],
        &[StateId],
        &[Custom(unions::denied)],
    ),
    failing(13, "LOCKT", &[U32(P::LockType), OFFSET, LENGTH, OWNER], &[], &[Custom(unions::denied)]),
    row(14, "LOCKU", &[U32(P::LockType), U32(P::Sequence), StateId, OFFSET, LENGTH], &[StateId]),
    row(15, "LOOKUP", &[NAME], &[]),
    row(16, "LOOKUPP", &[], &[]),
    row(17, "NVERIFY", &[ATTRIBUTES], &[]),
    row(
        18,
        "OPEN",
        &[
            U32(P::Sequence),
            U32(P::ShareAccess),
            U32(P::ShareDeny),
            OWNER,
            Custom(unions::open_flag),
            Custom(unions::open_claim),
        ],
        &[StateId, CHANGE, Skip(4), SkipBitmap, Custom(unions::delegation)],
    ),
    row(19, "OPENATTR", &[Skip(4)], &[]),
    row(20, "OPEN_CONFIRM", &[StateId, U32(P::Sequence)], &[StateId]),
    row(21, "OPEN_DOWNGRADE", &[StateId, U32(P::Sequence), U32(P::ShareAccess), U32(P::ShareDeny)], &[StateId]),
    row(22, "PUTFH", &[HANDLE], &[]),
    row(23, "PUTPUBFH", &[], &[]),
    row(24, "PUTROOTFH", &[], &[]),
    row(25, "READ", &[StateId, OFFSET, U32(P::Count)], &[U32(P::Eof), Data(P::ReadDataLength)]),
    row(
        26,
        "READDIR",
        &[U64(P::Cookie), VERIFIER, U32(P::DirCount), U32(P::MaxCount), Attributes],
        &[VERIFIER, Custom(unions::entries)],
    ),
    row(27, "READLINK", &[], &[DataText(P::LinkTarget)]),
    row(28, "REMOVE", &[NAME], &[CHANGE]),
    row(29, "RENAME", &[NAME, NAME], &[CHANGE, CHANGE]),
    row(30, "RENEW", &[U64(P::Client)], &[]),
    row(31, "RESTOREFH", &[], &[]),
    row(32, "SAVEFH", &[], &[]),
    row(33, "SECINFO", &[NAME], &[Custom(unions::security_mechanisms)]),
    // SETATTR has a bit map of the changed attributes, also after a failure.
    failing(34, "SETATTR", &[StateId, ATTRIBUTES], &[SkipBitmap], &[SkipBitmap]),
    failing(
        35,
        "SETCLIENTID",
        &[VERIFIER, SkipOpaque, U32(P::CallbackProgram), SkipOpaque, SkipOpaque, Skip(4)],
        &[U64(P::Client), VERIFIER],
        &[Custom(unions::client_in_use)],
    ),
    row(36, "SETCLIENTID_CONFIRM", &[U64(P::Client), VERIFIER], &[]),
    row(37, "VERIFY", &[ATTRIBUTES], &[]),
    row(
        38,
        "WRITE",
        &[StateId, OFFSET, U32(P::Stable), Data(P::WriteDataLength)],
        &[U32(P::Count), U32(P::Committed), VERIFIER],
    ),
    row(39, "RELEASE_LOCKOWNER", &[OWNER], &[]),
    row(40, "BACKCHANNEL_CTL", &[U32(P::CallbackProgram), Custom(unions::callback_security)], &[]),
    row(41, "BIND_CONN_TO_SESSION", &[SESSION, Skip(8)], &[SESSION, Skip(8)]),
    row(
        42,
        "EXCHANGE_ID",
        &[VERIFIER, SkipOpaque, Skip(4), Custom(unions::protection_arguments), Custom(unions::implementation)],
        &[
            U64(P::Client),
            U32(P::Sequence),
            Skip(4),
            Custom(unions::protection_results),
            Skip(8),
            SkipOpaque,
            SkipOpaque,
            Custom(unions::implementation),
        ],
    ),
    row(
        43,
        "CREATE_SESSION",
        &[
            U64(P::Client),
            U32(P::Sequence),
            Skip(4),
            Custom(unions::channel),
            Custom(unions::channel),
            U32(P::CallbackProgram),
            Custom(unions::callback_security),
        ],
        &[SESSION, U32(P::Sequence), Skip(4), Custom(unions::channel), Custom(unions::channel)],
    ),
    row(44, "DESTROY_SESSION", &[SESSION], &[]),
    row(45, "FREE_STATEID", &[StateId], &[]),
    row(46, "GET_DIR_DELEGATION", &[Skip(4), SkipBitmap, Skip(24), SkipBitmap, SkipBitmap], &[Unknown]),
    failing(
        47,
        "GETDEVICEINFO",
        &[Skip(16), TYPE, U32(P::MaxCount), SkipBitmap],
        &[Custom(unions::typed_opaque), SkipBitmap],
        &[Custom(unions::too_small)],
    ),
    row(48, "GETDEVICELIST", &[TYPE, Skip(4), Skip(8), VERIFIER], &[Skip(16), Custom(unions::devices), U32(P::Eof)]),
    row(
        49,
        "LAYOUTCOMMIT",
        &[
            OFFSET,
            LENGTH,
            Skip(4),
            StateId,
            Custom(unions::new_number),
            Custom(unions::new_time),
            Custom(unions::typed_opaque),
        ],
        &[Custom(unions::new_number)],
    ),
    failing(
        50,
        "LAYOUTGET",
        &[Skip(4), TYPE, IO_MODE, OFFSET, LENGTH, Skip(8), StateId, U32(P::MaxCount)],
        &[Skip(4), StateId, Custom(unions::layouts)],
        &[Custom(unions::layout_try_later)],
    ),
    row(
        51,
        "LAYOUTRETURN",
        &[Skip(4), TYPE, IO_MODE, Custom(unions::layout_return)],
        &[Custom(unions::optional_state_id)],
    ),
    row(52, "SECINFO_NO_NAME", &[Skip(4)], &[Custom(unions::security_mechanisms)]),
    row(
        53,
        "SEQUENCE",
        &[SESSION, U32(P::Sequence), U32(P::Slot), U32(P::HighestSlot), U32(P::CacheThis)],
        &[SESSION, U32(P::Sequence), U32(P::Slot), U32(P::HighestSlot), U32(P::TargetHighestSlot), Skip(4)],
    ),
    row(54, "SET_SSV", &[SkipOpaque, SkipOpaque], &[SkipOpaque]),
    row(55, "TEST_STATEID", &[Custom(unions::state_ids)], &[Custom(unions::words)]),
    row(56, "WANT_DELEGATION", &[Unknown], &[Unknown]),
    row(57, "DESTROY_CLIENTID", &[U64(P::Client)], &[]),
    row(58, "RECLAIM_COMPLETE", &[Skip(4)], &[]),
    row(59, "ALLOCATE", &[StateId, OFFSET, LENGTH], &[]),
    failing(
        60,
        "COPY",
        &[StateId, StateId, OFFSET, OFFSET, U64(P::Count), Skip(8), Custom(unions::locations)],
        &[Custom(unions::write_response), Skip(8)],
        &[Custom(unions::copy_requirements)],
    ),
    row(61, "COPY_NOTIFY", &[StateId, Custom(unions::location)], &[Skip(12), StateId, Custom(unions::locations)]),
    row(62, "DEALLOCATE", &[StateId, OFFSET, LENGTH], &[]),
    row(63, "IO_ADVISE", &[StateId, OFFSET, LENGTH, SkipBitmap], &[SkipBitmap]),
    row(64, "LAYOUTERROR", &[OFFSET, LENGTH, StateId, Custom(unions::device_errors)], &[]),
    row(65, "LAYOUTSTATS", &[OFFSET, LENGTH, StateId, Skip(32), Skip(16), Custom(unions::typed_opaque)], &[]),
    row(66, "OFFLOAD_CANCEL", &[StateId], &[]),
    row(67, "OFFLOAD_STATUS", &[StateId], &[U64(P::Count), Custom(unions::words)]),
    row(68, "READ_PLUS", &[StateId, OFFSET, U32(P::Count)], &[U32(P::Eof), Custom(unions::contents)]),
    row(69, "SEEK", &[StateId, OFFSET, Skip(4)], &[U32(P::Eof), OFFSET]),
    row(70, "WRITE_SAME", &[StateId, U32(P::Stable), Unknown], &[Custom(unions::write_response)]),
    row(71, "CLONE", &[StateId, StateId, OFFSET, OFFSET, U64(P::Count)], &[]),
    row(72, "GETXATTR", &[NAME], &[SkipOpaque]),
    row(73, "SETXATTR", &[Skip(4), NAME, SkipOpaque], &[CHANGE]),
    row(74, "LISTXATTRS", &[U64(P::Cookie), U32(P::MaxCount)], &[U64(P::Cookie), Custom(unions::names), U32(P::Eof)]),
    row(75, "REMOVEXATTR", &[NAME], &[CHANGE]),
    row(10044, "ILLEGAL", &[Unknown], &[]),
];
