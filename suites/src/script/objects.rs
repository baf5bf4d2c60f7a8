//! The objects that a script receives first: the tester and its connections.

use std::sync::Arc;

use tokio::sync::Mutex;
use weft_core::RequirementId;

use crate::stage::Stage;
use crate::targets::Target;

/// The case that a script's object belongs to.
#[derive(Clone)]
pub(super) struct Context {
    pub(super) stage: Arc<Mutex<Stage>>,
    pub(super) target: Arc<Target>,
    pub(super) requirements: Arc<Vec<RequirementId>>,
}

impl Context {
    /// Returns a connection of the case, for the script.
    pub(super) fn connection(&self, number: u32) -> Connection {
        Connection { context: self.clone(), number }
    }
}

/// The Lua object `t`.
#[derive(Clone)]
pub(super) struct Tester {
    pub(super) context: Context,
}

/// The Lua object `conn`.
#[derive(Clone)]
pub(super) struct Connection {
    pub(super) context: Context,
    pub(super) number: u32,
}
