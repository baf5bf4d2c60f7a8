//! Taking connections: how many at a time, and how long a client may take to send its request.
//!
//! If there are too many, the one that has been idle longest is closed. Requests under way are fewer than connections
//! ([`REQUESTS`](crate::access::REQUESTS)), so that one is idle: clients that hold connections do not shut out others.

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

/// What a client may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at a time, and a few more until those that have been idle longest are gone.
    pub(crate) connections: usize,
    /// For the head of a request, from the connection or the request before it on.
    pub(crate) head: Duration,
    /// For the next octet of an answer to be taken.
    pub(crate) read: Duration,
    /// For what is under way when the server goes down.
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

/// Headers of a request at most.
const HEADERS: usize = 64;
/// Octets of a request's head at most.
const HEAD: usize = 32 << 10;
/// Between two tries to take a connection where there are no descriptors left.
const REST: Duration = Duration::from_millis(100);

/// Serves connections until `stopped` says so.
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
        // Until all of the answer is sent.
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
