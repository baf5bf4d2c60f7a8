//! The builtin initiator over real TCP: one Send there, one back; or one that opens and echoes.

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

/// Why no exchange took place. The [`Outcome`] has the responder's actions on a connection.
#[derive(Debug, thiserror::Error)]
pub enum InitiateError {
    /// No TCP connection came about.
    #[error("cannot connect to {address}: {source}")]
    Connect {
        /// The responder.
        address: SocketAddr,
        /// Why.
        source: io::Error,
    },
    /// The settings ask for an enhanced Request with more private data than it can carry.
    #[error(transparent)]
    PrivateData(PrivateDataTooLong),
    /// The exchange took longer than it may.
    #[error("{address} did not finish the exchange within {} s", .after.as_secs_f32())]
    TimedOut {
        /// The responder.
        address: SocketAddr,
        /// How long it had.
        after: Duration,
    },
}

/// Connects to `address`, sends `message` when MPA start-up is done, waits for a message of at most
/// its length, and closes. The EMSS in `settings` is replaced by TCP's. It all has to be done
/// within `limit`. A responder that closes on an enhanced Request is tried once more without it
/// (P2P-10-5).
///
/// # Errors
/// TCP did not connect, the limit was reached, or the private data is too long.
pub async fn initiate(
    address: SocketAddr,
    settings: Settings,
    message: impl Into<Bytes>,
    limit: Duration,
) -> Result<Outcome, InitiateError> {
    let message = message.into();
    let exchange = to_its_end(address, settings, || Exchange::new(message.clone()));
    match timeout(limit, exchange).await {
        Ok(done) => done.map(Exchange::into_outcome),
        Err(_) => Err(InitiateError::TimedOut { address, after: limit }),
    }
}

/// Connects to `address`, opens with one Send, and sends back each Send that comes, until the
/// responder closes. Else as [`initiate`].
///
/// # Errors
/// TCP did not connect, or the private data is too long.
pub async fn echo_client(address: SocketAddr, settings: Settings) -> Result<(), InitiateError> {
    to_its_end(address, settings, EchoClient::default).await.map(|_| ())
}

/// A connection and its service until it is over, and the one to which it falls back, if it does.
/// Gives the service of the last.
async fn to_its_end<S: Service>(
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
        // Nobody stops it but the caller, who need not wait.
        let (_sender, stop) = watch::channel(false);
        drive(stream, &mut connection, &mut service, clock, stop, None, None).await;
        if !connection.may_fall_back() {
            return Ok(service);
        }
        settings = settings.unenhanced();
    }
}
