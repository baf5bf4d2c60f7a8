//! The layouts of the callbacks of NFS version 4 (RFC 8881 section 20, RFC 7862 section 16).

use super::common;
use super::decoder::Item::{Attributes, Custom, Fixed, Skip, SkipBitmap, StateId, U32, Unknown};
use super::decoder::{Item, Layout, find};
use super::operation::ParameterKind as P;
use super::unions;

const HANDLE: Item = Custom(common::file_handle);
const SESSION: Item = Fixed(P::Session, 16);

/// The layout of a callback.
pub(super) fn layout(code: u32) -> Option<&'static Layout> {
    find(OPERATIONS, code)
}

const fn row(code: u32, name: &'static str, call: &'static [Item], success: &'static [Item]) -> Layout {
    Layout { code, name, call, success, failure: &[] }
}

static OPERATIONS: &[Layout] = &[
    row(3, "CB_GETATTR", &[HANDLE, Attributes], &[Custom(unions::attributes)]),
    row(4, "CB_RECALL", &[StateId, Skip(4), HANDLE], &[]),
    row(5, "CB_LAYOUTRECALL", &[U32(P::LayoutType), U32(P::IoMode), Skip(4), Custom(unions::layout_recall)], &[]),
    row(6, "CB_NOTIFY", &[StateId, HANDLE, Unknown], &[]),
    row(7, "CB_PUSH_DELEG", &[HANDLE, Unknown], &[]),
    row(8, "CB_RECALL_ANY", &[Skip(4), SkipBitmap], &[]),
    row(9, "CB_RECALLABLE_OBJ_AVAIL", &[Skip(4), SkipBitmap], &[]),
    row(10, "CB_RECALL_SLOT", &[U32(P::TargetHighestSlot)], &[]),
    row(
        11,
        "CB_SEQUENCE",
        &[
            SESSION,
            U32(P::Sequence),
            U32(P::Slot),
            U32(P::HighestSlot),
            U32(P::CacheThis),
            Custom(unions::referring_calls),
        ],
        &[SESSION, U32(P::Sequence), U32(P::Slot), U32(P::HighestSlot), U32(P::TargetHighestSlot)],
    ),
    row(12, "CB_WANTS_CANCELLED", &[Skip(8)], &[]),
    row(13, "CB_NOTIFY_LOCK", &[HANDLE, Custom(unions::owner)], &[]),
    row(14, "CB_NOTIFY_DEVICEID", &[Unknown], &[]),
    row(15, "CB_OFFLOAD", &[HANDLE, StateId, Unknown], &[]),
    row(10044, "CB_ILLEGAL", &[Unknown], &[]),
];
