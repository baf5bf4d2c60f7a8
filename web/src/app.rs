//! What every route can use.

use std::path::PathBuf;
use std::sync::Arc;

use tokio::sync::{Semaphore, watch};
use weft_suites::store::Store;

use crate::access::{Gate, Places};
use crate::captures::Captures;
use crate::exports::Exports;
use crate::live::Live;
use crate::starter::Starter;
use crate::store_watch::StoreWatch;

/// Shared by all requests. Cheap to clone.
#[derive(Debug, Clone)]
pub(crate) struct App {
    pub(crate) store: Store,
    /// The same store on separate connections: a probe does not wait for pages.
    pub(crate) watch: StoreWatch,
    /// Evidence paths are relative to it.
    pub(crate) folder: PathBuf,
    pub(crate) live: Live,
    /// The runs that this server starts.
    pub(crate) starter: Starter,
    pub(crate) gate: Arc<Gate>,
    pub(crate) captures: Captures,
    pub(crate) exports: Exports,
    /// Event streams of runs.
    pub(crate) streams: Places,
    /// Event streams that read from the store; [`READERS`](crate::routes::READERS).
    pub(crate) readers: Arc<Semaphore>,
    /// Becomes `true` when the server stops.
    pub(crate) stopped: watch::Receiver<bool>,
}
