//! Joins a stream with another one: data that arrives on one side is sent on the other. Each side
//! is TCP or SDP.
//!
//! If one side's stream ends, the other is shut down, separately for each direction. If one side is
//! reset, the other is reset too, even while it accepts no data; earlier data is forwarded as far
//! as it is accepted at once. An urgent byte (MSG_OOB) is sent as urgent on the other side, at the
//! same position of the stream (`urgent` reads and sends those of TCP).

use core::future::Future;
use core::sync::atomic::{AtomicU64, Ordering};
use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use socket2::SockRef;
use tokio::io::{AsyncWriteExt, Interest};
use tokio::net::TcpStream;

use super::{SdpStream, urgent};

/// Bytes that a direction carries at a time: at first, and at most. The size grows while reads fill
/// it.
const FIRST: usize = 4 << 10;
const MOST: usize = 256 << 10;

/// One of the two streams.
#[derive(Debug)]
pub enum Side {
    /// Plain TCP.
    Tcp(TcpStream),
    /// SDP. A stream that was made with [`oob_inline`](super::SdpSettings::oob_inline) loses no
    /// urgent octet that arrives before the relay.
    Sdp(SdpStream),
}

/// How it ended.
#[derive(Debug)]
pub enum End {
    /// Both directions came to their end.
    Graceful,
    /// The first side broke, and the second one was reset.
    First(io::Error),
    /// The second side broke, and the first one was reset.
    Second(io::Error),
    /// It was stopped, and both sides were reset.
    Stopped,
}

/// What came of it.
#[derive(Debug)]
pub struct Relayed {
    /// Octets from the first side that the second one took.
    pub forth: u64,
    /// Octets from the second side that the first one took.
    pub back: u64,
    /// How it ended.
    pub end: End,
}

/// Which side failed.
enum Broke {
    From(io::Error),
    To(io::Error),
}

/// Carries octets both ways until both ways are at their end, a side breaks, or `stop` comes. Both
/// streams are over when it returns.
pub async fn relay(first: Side, second: Side, stop: impl Future<Output = ()>) -> Relayed {
    // Until both ways are at their end whatever ends this is a reset: also the death of the
    // process, which would look like the end of the stream to who is joined by TCP.
    for side in [&first, &second] {
        side.be_reset_when_dropped(true);
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
            Ok(_) => End::Graceful,
            Err((true, Broke::From(error)) | (false, Broke::To(error))) => End::First(error),
            Err((true, Broke::To(error)) | (false, Broke::From(error))) => End::Second(error),
        },
        () = stop => End::Stopped,
    };
    if matches!(end, End::Graceful) {
        first.be_reset_when_dropped(false);
        second.be_reset_when_dropped(false);
    } else {
        first.reset();
        second.reset();
    }
    first.over().await;
    second.over().await;
    Relayed { forth: forth.into_inner(), back: back.into_inner(), end }
}

/// One direction.
async fn carry(from: &Side, to: &Side, count: &AtomicU64) -> Result<(), Broke> {
    let mut buffer = vec![0; FIRST];
    loop {
        let (read, urgent) = tokio::select! {
            biased;
            read = from.read(&mut buffer) => read.map_err(Broke::From)?,
            error = to.broken() => return Err(Broke::To(error)),
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
            taken = taken => taken.map_err(Broke::To)?,
            error = from.broken() => return Err(Broke::From(error)),
        }
        if read == 0 {
            return Ok(());
        }
        count.fetch_add(read as u64, Ordering::Relaxed);
        if read == buffer.len() && read < MOST {
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

    /// The peer's address.
    ///
    /// # Errors
    /// The error of TCP.
    pub fn peer_addr(&self) -> io::Result<SocketAddr> {
        match self {
            Side::Tcp(tcp) => tcp.peer_addr(),
            Side::Sdp(sdp) => Ok(sdp.peer_addr()),
        }
    }

    /// Octets that arrived, or one octet that is urgent, and which of the two it is.
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

    /// Urgent octets stay in the stream.
    fn keep_urgent_inline(&self) {
        match self {
            Side::Sdp(sdp) => sdp.set_oob_inline(true),
            // A socket on which that cannot be set is gone already.
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

    /// No more octets go out.
    async fn finish(&self) -> io::Result<()> {
        match self {
            Side::Sdp(sdp) => (&mut &*sdp).shutdown().await,
            Side::Tcp(tcp) => match SockRef::from(tcp).shutdown(std::net::Shutdown::Write) {
                // It was reset meanwhile; a read from it fails.
                Err(error) if error.kind() == io::ErrorKind::NotConnected => Ok(()),
                done => done,
            },
        }
    }

    /// Waits until it is broken; for ever, where it never is.
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

    /// Resets it, and waits until nothing of it is left.
    pub async fn abort(self) {
        self.reset();
        self.over().await;
    }

    /// The abort is reported to the peer.
    fn reset(&self) {
        match self {
            Side::Sdp(sdp) => sdp.abort(),
            Side::Tcp(_) => self.be_reset_when_dropped(true),
        }
    }

    /// For TCP; SDP does this until both sides have sent their end.
    fn be_reset_when_dropped(&self, reset: bool) {
        if let Side::Tcp(tcp) = self {
            // With a lingering time of zero, closing the socket sends RST. It is gone already where
            // that cannot be set.
            let _ = SockRef::from(tcp).set_linger(reset.then_some(Duration::ZERO));
        }
    }

    /// Waits until nothing of it is left.
    async fn over(&self) {
        if let Side::Sdp(sdp) = self {
            sdp.closed().await;
        }
    }
}
