//! The builtin initiator over real TCP. It exchanges one Send in each direction, or echoes what it
//! receives.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;

use bytes::Bytes;
use tokio::net::TcpStream;
use tokio::sync::watch;
use tokio::time::timeout;

use super::clock::Clock;
use super::run::{drive, prepare};
use crate::connection::{Connection, Settings};
use crate::mpa::PrivateDataTooLong;
use crate::service::{EchoClient, Exchange, Outcome, Service};

/// Why the exchange could not take place. If the responder rejects or ends a connection, this is
/// not an error: the [`Outcome`] shows what the responder did.
#[derive(Debug, thiserror::Error)]
pub enum InitiateError {
    /// The TCP connection could not be opened.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// Address of the responder.
        address: SocketAddr,
        /// The cause.
        source: io::Error,
    },
    /// The settings require an enhanced Request, and the private data is too long for an enhanced
    /// Request.
    #[error(transparent)]
    PrivateData(PrivateDataTooLong),
    /// The exchange exceeded its time limit.
    #[error("{address} did not finish the exchange within {} s", .after.as_secs_f32())]
    TimedOut {
        /// Address of the responder.
        address: SocketAddr,
        /// The time limit.
        after: Duration,
    },
}

/// Connects to `address`, sends `message` after MPA start-up, waits for a message of at most the
/// same length, and closes. All of this has to finish within `limit`. The EMSS in `settings` is
/// replaced by TCP's value. If a responder closes after an enhanced Request, the initiator connects
/// once more with a Request of revision 1 (P2P-10-5).
///
/// # Errors
/// TCP did not connect, the time limit passed, or the private data is too long.
pub async fn initiate(
    address: SocketAddr,
    settings: Settings,
    message: impl Into<Bytes>,
    limit: Duration,
) -> Result<Outcome, InitiateError> {
    let message = message.into();
    let exchange = run_to_completion(address, settings, || Exchange::new(message.clone()));
    match timeout(limit, exchange).await {
        Ok(done) => done.map(Exchange::into_outcome),
        Err(_) => Err(InitiateError::TimedOut { address, after: limit }),
    }
}

/// Connects to `address`, sends one message, and then sends back each Send that it receives, until
/// the responder closes. There is no time limit. In all other respects this function acts like
/// [`initiate`].
///
/// # Errors
/// TCP did not connect, or the private data is too long.
pub async fn echo_client(address: SocketAddr, settings: Settings) -> Result<(), InitiateError> {
    run_to_completion(address, settings, EchoClient::default).await.map(|_| ())
}

/// Runs a connection and its service until the connection is over. If [`Connection::may_fall_back`]
/// then returns true, runs a second connection with an unenhanced Request. Returns the service of
/// the last connection.
async fn run_to_completion<S: Service>(
    address: SocketAddr,
    mut settings: Settings,
    serve: impl Fn() -> S,
) -> Result<S, InitiateError> {
    let failed = |source| InitiateError::Connect { address, source };
    loop {
        let mut service = serve();
        let stream = TcpStream::connect(address).await.map_err(failed)?;
        prepare(&stream, &mut settings).map_err(failed)?;
        let clock = Clock::start();
        let mut connection = Connection::initiate(clock.now(), settings.clone()).map_err(InitiateError::PrivateData)?;
        // Only the caller can stop the connection, by dropping this future.
        let (_sender, stop) = watch::channel(false);
        drive(stream, &mut connection, &mut service, clock, stop, None, None).await;
        if !connection.may_fall_back() {
            return Ok(service);
        }
        settings = settings.unenhanced();
    }
}
