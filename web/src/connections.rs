//! Accepts connections. Limits the number of connections and the time for a request.
//!
//! If too many connections are open, the server closes the connection that has been idle longest.
//! There is always an idle connection, because the limit of requests (`REQUESTS`) is lower than the
//! limit of connections. So clients that keep connections open do not lock out other clients.

use std::net::SocketAddr;
use std::pin::pin;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::extract::Request;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::access::Peer;
use crate::open_connections::{ActiveRequest, ConnectionSlot, OpenConnections};
use crate::owning_body::OwningBody;
use crate::write_timeout::WriteTimeout;

/// Limits for clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// The maximum number of open connections. For a short time, a few more connections can be
    /// open, until the server has closed the connections that have been idle longest.
    pub(crate) connections: usize,
    /// The time within which the complete head of a request must arrive. The time starts with the
    /// connection or after the previous request.
    pub(crate) head: Duration,
    /// The time within which a client must read the next byte of a response.
    pub(crate) read: Duration,
    /// How long the server waits for open requests when it stops.
    pub(crate) end: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Limits {
            connections: 1024,
            head: Duration::from_secs(15),
            read: Duration::from_secs(30),
            end: Duration::from_secs(5),
        }
    }
}

/// The maximum number of headers in a request.
const HEADERS: usize = 64;
/// The maximum length of the head of a request in bytes.
const HEAD: usize = 32 << 10;
/// The pause after a failed accept, for example if the process has no free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);

/// Accepts and serves connections until `stopped` becomes `true`. Then closes the listener, and
/// waits for open requests at most for `limits.end`.
pub(crate) async fn accept(listener: TcpListener, router: Router, limits: Limits, mut stopped: watch::Receiver<bool>) {
    let open_connections = OpenConnections::new(limits.connections);
    let mut open = JoinSet::new();
    loop {
        let next = async {
            let (stream, from) = listener.accept().await?;
            Ok((stream, from, open_connections.admit().await))
        };
        let accepted = tokio::select! {
            accepted = next => Some(accepted),
            _ = stopped.wait_for(|stopped| *stopped) => None,
        };
        while open.try_join_next().is_some() {}
        match accepted {
            Some(Ok((stream, from, slot))) => {
                open.spawn(serve(stream, from, slot, router.clone(), limits, stopped.clone()));
            }
            Some(Err(error)) => {
                let error: std::io::Error = error;
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(ACCEPT_PAUSE).await;
            }
            None => break,
        }
    }
    drop(listener);
    let ended = async { while open.join_next().await.is_some() {} };
    if tokio::time::timeout(limits.end, ended).await.is_err() {
        open.shutdown().await;
    }
}

async fn serve(
    stream: TcpStream,
    from: SocketAddr,
    slot: ConnectionSlot,
    router: Router,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) {
    let state = Arc::clone(&slot.state);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(Peer(from.ip()));
        // The connection is busy until the complete response is sent.
        let busy = ActiveRequest::begin(&state);
        let answer = router.clone().oneshot(request);
        async move { answer.await.map(|answer| answer.map(|body| OwningBody::body(body, busy))) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head).max_headers(HEADERS).max_buf_size(HEAD);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(WriteTimeout::new(stream, limits.read)), service));
    let served = tokio::select! {
        served = connection.as_mut() => Some(served),
        () = async { stopped.wait_for(|stopped| *stopped).await.map(drop).unwrap_or_default() } => None,
        () = slot.state.close.notified() => return,
    };
    let served = match served {
        Some(served) => served,
        None => {
            connection.as_mut().graceful_shutdown();
            connection.await
        }
    };
    if let Err(error) = served {
        tracing::debug!("{from}: {error}");
    }
}
