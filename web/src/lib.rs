//! The dashboard: runs, cases and captures in a browser.
//!
//! ```text
//! store (weft-suites) ---------------> routes -> view (templates) -> pages
//! folder of captures, evidence -> captures (weft-dissector) -> routes -> view
//! events of a run in this process -> live -> routes::events -> Server-Sent Events -> run.js
//! forms of operators -> starter -> runs against the targets that the server was started with
//! ```
//!
//! The server renders the pages, and they work without scripts; small ES modules add live updates
//! and keys. The binary contains all assets. Out of scope: accounts, TLS, and targets that a
//! browser describes.
//!
//! **Safety.** Without tokens, the server listens on loopback only; with tokens, it requires one
//! ([`Access`]). It answers only to loopback names and configured names, so a page of another site
//! cannot reach it under the name of that site. A POST request has to come from one of its own
//! pages. The path of a file never comes from a request: the results store has the paths of
//! evidence, and an id that is made from the file name identifies a capture. Pages forbid inline
//! scripts and styles, and all content from other servers.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

mod access;
mod app;
mod captures;
mod connections;
mod crowd;
mod door;
mod error;
mod exports;
mod failure;
mod guard;
mod kept;
mod live;
mod patient;
mod routes;
mod starter;
mod store_watch;
#[cfg(test)]
mod tests;
mod view;

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use weft_suites::store::Store;

pub use access::{Access, Role, Tokens, TokensError};
pub use captures::CaptureOptions;
pub use error::WebError;
pub use live::Live;
pub use starter::Start;

use access::{Gate, Places, STREAMS};
use app::App;
use captures::Captures;
use connections::Limits;
use starter::Starter;
use store_watch::StoreWatch;

/// What to serve, and where.
#[derive(Debug, Clone)]
pub struct WebOptions {
    /// Address and port; port 0 takes a free one. Without tokens, loopback only.
    pub listen: SocketAddr,
    /// The URL of the results store ([`Store::url`] makes that of a file).
    pub store: String,
    /// The folder of the files of its runs. The server creates files in it only for runs that it
    /// starts.
    pub folder: PathBuf,
    /// The tokens and names.
    pub access: Access,
    /// The events of runs of this process ([`Live::sink`]). Runs of other processes are read from
    /// the store, with a delay.
    pub live: Live,
    /// The targets and cases that a page can start; `None`: no page can start a run.
    pub start: Option<Start>,
    /// The captures to show.
    pub captures: CaptureOptions,
}

/// Serves until `shutdown` is ready. Then it ends event streams and finishes open requests.
///
/// Calls `ready` with the bound address once it accepts connections.
///
/// # Errors
/// What [`WebError`] lists.
pub async fn serve(
    options: WebOptions,
    ready: impl FnOnce(SocketAddr),
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), WebError> {
    let WebOptions { listen, store, folder, access, live, start, captures } = options;
    if !listen.ip().is_loopback() && access.tokens.is_empty() {
        return Err(WebError::NotLoopback(listen));
    }
    let opened = Store::connect(&store).await?;
    let (stop, stopped) = watch::channel(false);
    let gate = Arc::new(Gate::new(access)?);
    let captures = Captures::new(captures, stopped.clone());
    if let Some(Err(error)) = captures.shelf.as_ref().map(captures::Shelf::sweep) {
        tracing::warn!("cannot clean up the folder of captures: {error}");
    }
    let starter = Starter::new(start, &folder, &store, &live)?;
    starter.settle(&opened).await;
    let app = App {
        store: opened.clone(),
        watch: StoreWatch::new(Store::connect(&store).await?),
        folder,
        live,
        starter: starter.clone(),
        gate,
        captures,
        exports: exports::Exports::default(),
        streams: Places::new(STREAMS),
        readers: Arc::new(Semaphore::new(routes::READERS)),
        stopped: stopped.clone(),
    };
    let failed = |error| WebError::Listen { address: listen, error };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    ready(listener.local_addr().map_err(failed)?);
    let stopping = async move {
        shutdown.await;
        stop.send_replace(true);
    };
    tokio::join!(connections::take(listener, routes::router(app), Limits::default(), stopped), stopping);
    // Stops the runs that this server started; the results of finished cases remain.
    starter.close().await;
    opened.close().await;
    Ok(())
}
