//! The state that all routes share.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use weft_suites::store::Store;

use crate::access::{AccessControl, Slots};
use crate::captures::Captures;
use crate::clock::Clock;
use crate::exports::Exports;
use crate::live::Live;
use crate::schedule::RunSchedule;
use crate::starter::Starter;
use crate::store_watch::StoreWatch;

/// The state that all routes share. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) store: Store,
    /// Probes the same store on separate database connections. A probe therefore does not wait for
    /// a connection that a page uses.
    pub(crate) watch: StoreWatch,
    /// The folder to which the paths of evidence are relative.
    pub(crate) folder: PathBuf,
    pub(crate) live: Live,
    /// The runs that this server starts.
    pub(crate) starter: Starter,
    /// The runs that this server starts by itself.
    pub(crate) schedule: RunSchedule,
    pub(crate) clock: Clock,
    pub(crate) access: Arc<AccessControl>,
    pub(crate) captures: Captures,
    pub(crate) exports: Exports,
    /// Slots for event streams of runs.
    pub(crate) streams: Slots,
    /// Permits for event streams that read from the store ([`READERS`](crate::routes::READERS)).
    pub(crate) readers: Arc<Semaphore>,
    /// Becomes `true` when the server begins to stop.
    pub(crate) stopped: watch::Receiver<bool>,
}
