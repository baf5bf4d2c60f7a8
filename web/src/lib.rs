//! The dashboard: runs, cases and captures in a browser.
//!
//! ```text
//! store (weft-suites) ---------------> routes -> view (templates) -> pages
//! folder of captures, evidence -> captures (weft-dissector) -> routes -> view
//! events of a run in this process -> live -> routes::events -> Server-Sent Events -> run.js
//! forms of operators -> starter -> runs against the targets on the server's command line
//! ```
//!
//! The server renders the pages. The pages work without scripts. Small ES modules add live updates
//! and keyboard shortcuts. The binary contains all assets. Out of scope: accounts, TLS, and targets
//! that are defined in a browser.
//!
//! **Safety.**
//! - Without tokens, the server listens on loopback addresses only. With tokens, a client must send
//!   a token or the cookie of a session ([`Access`]).
//! - The server checks the host name in each request. It accepts loopback names, configured names
//!   and, with tokens, any IP address. So a page of another site cannot reach the server by DNS
//!   rebinding.
//! - The server accepts POST requests of a browser only from a page of this server.
//! - The server never uses a file path from a request. The results store has the paths of
//!   evidence. A hash of the file name identifies a capture.
//! - The Content-Security-Policy of all pages forbids inline scripts, inline styles, and content
//!   from other servers.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

mod access;
mod app;
mod authorize;
mod captures;
mod clock;
mod connections;
mod error;
mod exports;
mod failure;
mod guard;
mod hex;
mod live;
mod lock;
mod open_connections;
mod owning_body;
mod retention;
mod routes;
mod schedule;
mod starter;
mod store_watch;
#[cfg(test)]
mod tests;
mod view;
mod webhook;
mod write_timeout;

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
pub use retention::Retention;
pub use schedule::RunSchedule;
pub use starter::Start;
pub use webhook::Webhook;

use access::{AccessControl, STREAMS, Slots};
use app::App;
use captures::Captures;
use clock::Clock;
use connections::Limits;
use starter::Starter;
use store_watch::StoreWatch;
use webhook::{Messages, RunEnds};

/// Options of the dashboard server.
#[derive(Debug, Clone)]
pub struct WebOptions {
    /// Address and port to listen on. Port 0 selects a free port. Without tokens, the address must
    /// be a loopback address.
    pub listen: SocketAddr,
    /// URL of the results store. [`Store::url`] makes the URL of a database file.
    pub store: String,
    /// The folder with the evidence of the runs in the store. The server creates files in this
    /// folder only for runs that the server starts.
    pub folder: PathBuf,
    /// The tokens of clients and the host names of the server.
    pub access: Access,
    /// The events of runs in this process ([`Live::sink`]). The server reads runs of other
    /// processes from the store, with a delay.
    pub live: Live,
    /// The targets and cases that operators can run. If `None`, no page can start a run.
    pub start: Option<Start>,
    /// Options for the captures to show.
    pub captures: CaptureOptions,
    /// Which runs the server keeps.
    pub retention: Retention,
    /// The runs that the server starts by itself. Their targets must be in `start`.
    pub schedule: RunSchedule,
    /// The address that gets a message when the verdict of a target changes.
    pub webhook: Option<Webhook>,
}

/// Runs the dashboard server until `shutdown` completes.
///
/// Calls `ready` with the bound address when the server accepts connections. After `shutdown`, the
/// server ends all event streams, finishes open requests within a time limit, and stops the runs
/// that it started.
///
/// # Errors
/// Returns a [`WebError`] if the server cannot start.
pub async fn serve(
    options: WebOptions,
    ready: impl FnOnce(SocketAddr),
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> Result<(), WebError> {
    let WebOptions { listen, store, folder, access, live, start, captures, retention, schedule, webhook } = options;
    if !listen.ip().is_loopback() && access.tokens.is_empty() {
        return Err(WebError::NotLoopback(listen));
    }
    let opened = Store::connect(&store).await?;
    let (stop, stopped) = watch::channel(false);
    let access = Arc::new(AccessControl::new(access)?);
    let captures = Captures::new(captures, stopped.clone());
    if let Some(Err(error)) = captures.folder.as_ref().map(captures::CaptureFolder::sweep) {
        tracing::warn!("cannot clean up the folder of captures: {error}");
    }
    let ends = RunEnds::default();
    let starter = Starter::new(start, &folder, &store, &live, &ends)?;
    if let Some(fault) = schedule.fault(&starter) {
        return Err(WebError::Schedule(fault));
    }
    starter.finish_killed(&opened).await;
    let clock = Clock::default();
    let kept = retention::keep(retention, opened.clone(), folder.clone(), clock.clone(), stopped.clone());
    let scheduled = schedule.clone().keep(starter.clone(), clock.clone(), stopped.clone());
    let messages = match webhook {
        Some(webhook) => Some(Messages::new(webhook, opened.clone(), clock.clone()).await?),
        None => None,
    };
    let messages = webhook::send_messages(messages, ends, stopped.clone());
    let app = App {
        store: opened.clone(),
        watch: StoreWatch::new(Store::connect(&store).await?),
        folder,
        live,
        starter: starter.clone(),
        schedule,
        clock,
        access,
        captures,
        exports: exports::Exports::default(),
        streams: Slots::new(STREAMS),
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
    let accepted = connections::accept(listener, routes::router(app), Limits::default(), stopped);
    tokio::join!(accepted, stopping, kept, scheduled, messages);
    // Stops the runs that this server started. The results of finished cases remain.
    starter.close().await;
    opened.close().await;
    Ok(())
}
