//! The dashboard: runs, cases and captures in a browser.
//!
//! ```text
//! store (weft-suites) ---------------> routes -> view (templates) -> pages
//! folder of captures, evidence -> captures (weft-dissector) -> routes -> view
//! events of a run in this process -> live -> routes::events -> Server-Sent Events -> run.js
//! forms of operators -> starter -> runs against the targets that the server was started with
//! ```
//!
//! Pages are rendered here and work without scripts; small ES modules add live updates and keys. Everything a page needs is
//! in the binary. What stays out: accounts, TLS, targets that a browser describes.
//!
//! **Safety.** The server listens on loopback unless it has tokens, and then asks for one ([`Access`]). It answers to names of
//! loopback and to those it was given, so that no page of another site can reach it under a name of its own; a post has to come
//! from one of its own pages. No file is opened under a path that a request holds: evidence is found through the
//! results store, captures of the folder by ids that are made of their names. Pages forbid inline scripts and styles, and everything from elsewhere.
#![forbid(unsafe_code)]

mod access;
mod app;
mod captures;
mod connections;
mod crowd;
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

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::sync::{Semaphore, watch};
use weft_suites::store::{Store, StoreError};

pub use access::{Access, Role, Tokens, TokensError};
pub use captures::CaptureOptions;
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
    /// Address and port; port 0 takes a free one. Without tokens on loopback only.
    pub listen: SocketAddr,
    /// The results store, by its URL ([`Store::url`] has that of a file).
    pub store: String,
    /// Where the files of its runs are; those of runs that are started here go below it. Nothing is made there unless a run begins.
    pub folder: PathBuf,
    /// Who may reach it.
    pub access: Access,
    /// What runs of this process tell, each by a sink of its own ([`Live::sink`]). Runs of other processes are shown from the store, with a
    /// delay.
    pub live: Live,
    /// What may be started from a page; nothing, where there is none.
    pub start: Option<Start>,
    /// Captures to look into.
    pub captures: CaptureOptions,
}

/// Why the dashboard does not come up, or went down.
#[derive(Debug, thiserror::Error)]
pub enum WebError {
    /// Somebody else could reach it.
    #[error("cannot listen on {0}: it is not a loopback address, and there are no tokens; add --token-file FILE")]
    NotLoopback(SocketAddr),
    /// The address cannot be had.
    #[error("cannot listen on {address}: {error}")]
    Listen {
        /// Which.
        address: SocketAddr,
        /// Why.
        error: io::Error,
    },
    /// The results store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The name of a target cannot be that of a folder for its runs.
    #[error("invalid target name {0:?}: expected letters, digits, '.', '_' and '-', and no '.' at the beginning")]
    TargetName(String),
    /// The machine gives no random octets, on which sessions rest.
    #[error("the system has no random bytes: {0}")]
    Random(#[from] getrandom::Error),
}

/// Serves until `shutdown` is ready; then open event streams end and requests under way are finished.
///
/// `ready` is told the address that was bound, once connections are taken.
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
        exports: routes::Exports::default(),
        streams: Places::new(STREAMS),
        readers: Arc::new(Semaphore::new(routes::READERS)),
        stopped: stopped.clone(),
    };
    let failed = |error| WebError::Listen { address: listen, error };
    let listener = TcpListener::bind(listen).await.map_err(failed)?;
    ready(listener.local_addr().map_err(failed)?);
    // Event streams end by it too.
    let stopping = async move {
        shutdown.await;
        stop.send_replace(true);
    };
    tokio::join!(connections::take(listener, routes::router(app), Limits::default(), stopped), stopping);
    // What was started here is stopped; finished cases are kept.
    starter.close().await;
    opened.close().await;
    Ok(())
}
