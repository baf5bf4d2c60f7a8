//! Accepts connections, and limits their number and the time for a request.
//!
//! If there are too many, the server closes the connection that has been idle longest. There is
//! always an idle one, because the limit of requests ([`REQUESTS`](crate::access::REQUESTS)) is
//! lower. So clients that keep connections open do not lock out others.

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
use crate::crowd::{Busy, Crowd, Seat};
use crate::kept::Kept;
use crate::patient::Patient;

/// Limits for clients.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Open connections. There may be a few more until the longest idle ones are closed.
    pub(crate) connections: usize,
    /// The time for the head of a request, from the connection or the previous request on.
    pub(crate) head: Duration,
    /// The time in which a client must read the next byte of an answer.
    pub(crate) read: Duration,
    /// The time for open requests when the server stops.
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
/// The pause after a failed accept, for example without free descriptors.
const REST: Duration = Duration::from_millis(100);

/// Serves connections until `stopped` is true.
pub(crate) async fn take(listener: TcpListener, router: Router, limits: Limits, mut stopped: watch::Receiver<bool>) {
    let crowd = Crowd::new(limits.connections);
    let mut open = JoinSet::new();
    loop {
        let next = async {
            let (stream, from) = listener.accept().await?;
            Ok((stream, from, crowd.join().await))
        };
        let accepted = tokio::select! {
            accepted = next => Some(accepted),
            _ = stopped.wait_for(|stopped| *stopped) => None,
        };
        while open.try_join_next().is_some() {}
        match accepted {
            Some(Ok((stream, from, seat))) => {
                open.spawn(serve(stream, from, seat, router.clone(), limits, stopped.clone()));
            }
            Some(Err(error)) => {
                let error: std::io::Error = error;
                tracing::warn!("cannot accept a connection: {error}");
                tokio::time::sleep(REST).await;
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
    seat: Seat,
    router: Router,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) {
    let state = Arc::clone(&seat.state);
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(Peer(from.ip()));
        // The connection is busy until the complete answer is sent.
        let busy = Busy::begin(&state);
        let answer = router.clone().oneshot(request);
        async move { answer.await.map(|answer| answer.map(|body| Kept::body(body, busy))) }
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head).max_headers(HEADERS).max_buf_size(HEAD);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(Patient::new(stream, limits.read)), service));
    let served = tokio::select! {
        served = connection.as_mut() => Some(served),
        () = async { stopped.wait_for(|stopped| *stopped).await.map(drop).unwrap_or_default() } => None,
        () = seat.state.leave.notified() => return,
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
