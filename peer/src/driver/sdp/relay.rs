//! Relays data between two streams: data that arrives on one side is sent on the other side. Each
//! side is TCP or SDP.
//!
//! Each direction ends separately: if one side's stream ends, the relay shuts down the sending half
//! of the other side. If one side is reset, the relay resets the other side too, even if the other
//! side accepts no data. The relay still forwards data that has arrived from the reset side, if the
//! other side accepts this data at once. An urgent byte (MSG_OOB) is sent as urgent on the other
//! side, at the same position of the stream. The module `urgent` handles TCP's urgent bytes.

use core::future::Future;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;

use super::{SdpStream, urgent};

/// Initial and maximum size in bytes of a direction's buffer. The size doubles whenever a read
/// fills the buffer.
const INITIAL_BUFFER_LEN: usize = 4 << 10;
const MAX_BUFFER_LEN: usize = 256 << 10;

/// One of the two streams.
#[derive(Debug)]
pub enum Side {
    /// Plain TCP.
    Tcp(TcpStream),
    /// SDP. If the stream was created with [`oob_inline`](super::SdpSettings::oob_inline), an
    /// urgent byte that arrives before the relay starts is not lost.
    Sdp(SdpStream),
}

/// How a relay ended.
#[derive(Debug)]
pub enum RelayEnd {
    /// The streams of both directions ended.
    Graceful,
    /// The first side failed, and the second side was reset.
    First(io::Error),
    /// The second side failed, and the first side was reset.
    Second(io::Error),
    /// The caller stopped the relay, and both sides were reset.
    Stopped,
}

/// The result of a relay.
#[derive(Debug)]
pub struct RelayResult {
    /// Number of bytes from the first side that the second side accepted.
    pub forth: u64,
    /// Number of bytes from the second side that the first side accepted.
    pub back: u64,
    /// How the relay ended.
    pub end: RelayEnd,
}

/// Which side of one direction failed.
enum RelayFailure {
    From(io::Error),
    To(io::Error),
}

/// Relays data in both directions until both streams end, a side fails, or `stop` completes. Both
/// connections are over when this function returns.
pub async fn relay(first: Side, second: Side, stop: impl Future<Output = ()>) -> RelayResult {
    // If the relay or the process ends before both streams have ended, both sides have to be reset.
    // Without a reset, a TCP peer would treat a FIN as the normal end of the stream.
    for side in [&first, &second] {
        side.set_reset_on_drop(true);
        side.keep_urgent_inline();
    }
    let (forth, back) = (AtomicU64::new(0), AtomicU64::new(0));
    let both = async {
        tokio::try_join!(async { carry(&first, &second, &forth).await.map_err(|broke| (true, broke)) }, async {
            carry(&second, &first, &back).await.map_err(|broke| (false, broke))
        },)
    };
    let end = tokio::select! {
        done = both => match done {
            Ok(_) => RelayEnd::Graceful,
            Err((true, RelayFailure::From(error)) | (false, RelayFailure::To(error))) => RelayEnd::First(error),
            Err((true, RelayFailure::To(error)) | (false, RelayFailure::From(error))) => RelayEnd::Second(error),
        },
        () = stop => RelayEnd::Stopped,
    };
    if matches!(end, RelayEnd::Graceful) {
        first.set_reset_on_drop(false);
        second.set_reset_on_drop(false);
    } else {
        first.reset();
        second.reset();
    }
    first.over().await;
    second.over().await;
    RelayResult { forth: forth.into_inner(), back: back.into_inner(), end }
}

/// Relays one direction. Adds the number of relayed bytes to `count`.
async fn carry(from: &Side, to: &Side, count: &AtomicU64) -> Result<(), RelayFailure> {
    let mut buffer = vec![0; INITIAL_BUFFER_LEN];
    loop {
        let (read, urgent) = tokio::select! {
            biased;
            read = from.read(&mut buffer) => read.map_err(RelayFailure::From)?,
            error = to.broken() => return Err(RelayFailure::To(error)),
        };
        let taken = async {
            match buffer.get(..read) {
                Some([octet]) if urgent => to.write_urgent(*octet).await,
                Some(octets) if read > 0 => to.write_all(octets).await,
                _ => to.finish().await,
            }
        };
        tokio::select! {
            biased;
            taken = taken => taken.map_err(RelayFailure::To)?,
            error = from.broken() => return Err(RelayFailure::From(error)),
        }
        if read == 0 {
            return Ok(());
        }
        count.fetch_add(read as u64, Ordering::Relaxed);
        if read == buffer.len() && read < MAX_BUFFER_LEN {
            buffer.resize(read * 2, 0);
        }
    }
}

impl Side {
    /// This side's address.
    ///
    /// # Errors
    /// The error of TCP.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Side::Tcp(tcp) => tcp.local_addr(),
            Side::Sdp(sdp) => Ok(sdp.local_addr()),
        }
    }

    /// Returns the peer's address.
    ///
    /// # Errors
    /// The error of TCP.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Side::Tcp(tcp) => tcp.peer_addr(),
            Side::Sdp(sdp) => Ok(sdp.peer_addr()),
        }
    }

    /// Reads bytes that have arrived, or one urgent byte. The second value is true for an urgent
    /// byte.
    async fn read(&self, buffer: &mut [u8]) -> io::Result<(usize, bool)> {
        match self {
            Side::Sdp(sdp) => sdp.read_marked(buffer).await,
            Side::Tcp(tcp) => urgent::read(tcp, buffer).await,
        }
    }

    async fn write_urgent(&self, octet: u8) -> io::Result<()> {
        match self {
            Side::Sdp(sdp) => sdp.send_urgent(&[octet]).await,
            Side::Tcp(tcp) => urgent::send(tcp, octet).await,
        }
    }

    /// Sets the option that urgent bytes stay in the stream.
    fn keep_urgent_inline(&self) {
        match self {
            Side::Sdp(sdp) => sdp.set_oob_inline(true),
            // Setting the option fails only if the connection is already closed.
            Side::Tcp(tcp) => _ = SockRef::from(tcp).set_out_of_band_inline(true),
        }
    }

    async fn write_all(&self, mut octets: &[u8]) -> io::Result<()> {
        let tcp = match self {
            Side::Sdp(sdp) => return (&mut &*sdp).write_all(octets).await,
            Side::Tcp(tcp) => tcp,
        };
        while !octets.is_empty() {
            tcp.writable().await?;
            match tcp.try_write(octets) {
                Ok(written) => octets = octets.get(written..).unwrap_or_default(),
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => return Err(error),
            }
        }
        Ok(())
    }

    /// Shuts down the sending half.
    async fn finish(&self) -> io::Result<()> {
        match self {
            Side::Sdp(sdp) => (&mut &*sdp).shutdown().await,
            Side::Tcp(tcp) => match SockRef::from(tcp).shutdown(std::net::Shutdown::Write) {
                // The connection was reset in the meantime. The next read returns the error.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
                done => done,
            },
        }
    }

    /// Waits until the connection fails. Never returns if it does not fail.
    async fn broken(&self) -> io::Error {
        match self {
            Side::Sdp(sdp) => sdp.broken().await,
            Side::Tcp(tcp) => {
                if tcp.ready(Interest::ERROR).await.is_ok()
                    && let Ok(Some(error)) = tcp.take_error()
                {
                    return error;
                }
                core::future::pending().await
            }
        }
    }

    /// Resets the connection, and waits until it is over.
    pub async fn abort(self) {
        self.reset();
        self.over().await;
    }

    /// Resets the connection.
    fn reset(&self) {
        match self {
            Side::Sdp(sdp) => sdp.abort(),
            Side::Tcp(_) => self.set_reset_on_drop(true),
        }
    }

    /// Sets whether dropping a TCP side sends RST or FIN. SDP needs no setting: if the process ends
    /// without a DisConn, the peer treats the end of TCP as a failure.
    fn set_reset_on_drop(&self, reset: bool) {
        if let Side::Tcp(tcp) = self {
            // With a linger time of zero, closing the socket sends RST. Setting the time fails only
            // if the connection is already closed.
            let _ = SockRef::from(tcp).set_linger(reset.then_some(Duration::ZERO));
        }
    }

    /// Waits until the connection is over and its resources are free.
    async fn over(&self) {
        if let Side::Sdp(sdp) = self {
            sdp.closed().await;
        }
    }
}
