//! Objects of the target that an agent made for a script.

use weft_agent::protocol::Object;

use super::objects::Context;

/// The Lua object `region`: registered memory of the target.
#[derive(Clone)]
pub(super) struct Region {
    pub(super) context: Context,
    pub(super) object: Object,
    pub(super) address: u64,
    pub(super) local_key: u32,
    pub(super) stag: u32,
    pub(super) octets: u64,
}

/// The Lua object `window`: a memory window of the target.
#[derive(Clone)]
pub(super) struct Window {
    pub(super) object: Object,
    pub(super) stag: u32,
}

/// The Lua object `shared`: a shared receive queue of the target.
#[derive(Clone)]
pub(super) struct Shared {
    pub(super) context: Context,
    pub(super) object: Object,
}
