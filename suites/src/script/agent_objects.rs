//! Objects of the target that an agent made for a script.

use weft_agent::protocol::Object;

use super::objects::Context;

/// `region`.
#[derive(Clone)]
pub(super) struct Region {
    pub(super) context: Context,
    pub(super) object: Object,
    pub(super) address: u64,
    pub(super) local_key: u32,
    pub(super) stag: u32,
    pub(super) octets: u64,
}

/// `window`.
#[derive(Clone)]
pub(super) struct Window {
    pub(super) object: Object,
    pub(super) stag: u32,
}

/// `shared`.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) context: Context,
    pub(super) object: Object,
}
