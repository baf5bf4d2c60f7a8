//! Urgent bytes (MSG_OOB) of a TCP connection that is relayed. The connection keeps them in the
//! stream (SO_OOBINLINE).
//!
//! The kernel stops a read before an urgent byte. A read therefore returns either bytes before an
//! urgent byte, or bytes that begin with an urgent byte. The reader first waits for the next byte,
//! then checks whether this byte is urgent, and then reads. If the reader checked before the wait,
//! an urgent byte that arrives after the check would count as an ordinary byte. TCP has only one
//! urgent mark. If a newer urgent byte arrives, an older urgent byte that is still unread becomes
//! an ordinary byte.

use std::io::{self, ErrorKind, Read};
use std::mem::MaybeUninit;

use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Reads bytes up to the next urgent byte, or only an urgent byte. Returns the number of bytes, and
/// whether they are urgent. Returns 0 bytes at the end of the stream.
pub(super) async fn read(tcp: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, bool)> {
    if first(tcp).await? == 0 {
        return Ok((0, false));
    }
    let urgent = at_mark(tcp)?;
    let buffer = if urgent { buffer.get_mut(..1).unwrap_or_default() } else { buffer };
    let read = (&*SockRef::from(tcp)).read(buffer)?;
    Ok((read, urgent))
}

/// Sends one byte as urgent.
pub(super) async fn send(tcp: &TcpStream, octet: u8) -> io::Result<()> {
    loop {
        tcp.writable().await?;
        match tcp.try_io(Interest::WRITABLE, || SockRef::from(tcp).send_out_of_band(&[octet])) {
            Ok(1..) => return Ok(()),
            Ok(0) => {}
            Err(error) if error.kind() == ErrorKind::WouldBlock => {}
            Err(error) => return Err(error),
        }
    }
}

/// Waits for the next byte and leaves it in the stream. Returns 0 at the end of the stream.
async fn first(tcp: &TcpStream) -> io::Result<usize> {
    let peek = || SockRef::from(tcp).peek(&mut [MaybeUninit::uninit()]);
    // Peek before the first wait. If an urgent byte arrived alone before SO_OOBINLINE was set, the
    // byte did not make the socket readable.
    let mut there = peek();
    while matches!(&there, Err(error) if error.kind() == ErrorKind::WouldBlock) {
        tcp.readable().await?;
        there = tcp.try_io(Interest::READABLE, peek);
    }
    there
}

/// Returns whether the next byte, which has arrived, is urgent. The function replaces SIOCATMARK by
/// calls that need no unsafe code. While SO_OOBINLINE is off, SIOCINQ returns the number of bytes
/// before the mark.
fn at_mark(tcp: &TcpStream) -> io::Result<bool> {
    let socket = SockRef::from(tcp);
    socket.set_out_of_band_inline(false)?;
    let before = rustix::io::ioctl_fionread(tcp);
    socket.set_out_of_band_inline(true)?;
    Ok(before? == 0)
}
