//! Taking connections: how many at a time, and how long a client may take to say what it wants.

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
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tokio::task::JoinSet;
use tower::ServiceExt;

use crate::access::Peer;
use crate::patient::Patient;

/// What a client may take.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Limits {
    /// Connections at a time; more wait until one ends.
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
    let room = Arc::new(Semaphore::new(limits.connections));
    let mut open = JoinSet::new();
    loop {
        let next = async {
            // Never closed.
            let permit = room.clone().acquire_owned().await.ok()?;
            Some((permit, listener.accept().await))
        };
        let accepted = tokio::select! {
            accepted = next => accepted,
            _ = stopped.wait_for(|stopped| *stopped) => None,
        };
        while open.try_join_next().is_some() {}
        match accepted {
            Some((permit, Ok((stream, from)))) => {
                open.spawn(serve(stream, from, permit, router.clone(), limits, stopped.clone()));
            }
            Some((_, Err(error))) => {
                tracing::warn!("no connection: {error}");
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
    _permit: OwnedSemaphorePermit,
    router: Router,
    limits: Limits,
    mut stopped: watch::Receiver<bool>,
) {
    let service = service_fn(move |request: hyper::Request<hyper::body::Incoming>| {
        let mut request: Request = request.map(axum::body::Body::new);
        request.extensions_mut().insert(Peer(from.ip()));
        router.clone().oneshot(request)
    });
    let mut builder = http1::Builder::new();
    builder.timer(TokioTimer::new()).header_read_timeout(limits.head).max_headers(HEADERS).max_buf_size(HEAD);
    let mut connection = pin!(builder.serve_connection(TokioIo::new(Patient::new(stream, limits.read)), service));
    let served = tokio::select! {
        served = connection.as_mut() => Some(served),
        () = async { stopped.wait_for(|stopped| *stopped).await.map(drop).unwrap_or_default() } => None,
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
