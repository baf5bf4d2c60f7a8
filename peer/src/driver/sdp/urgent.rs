//! Urgent octets (MSG_OOB) of a TCP connection that is relayed, which keeps them in the stream
//! (SO_OOBINLINE).
//!
//! The kernel ends a read before an urgent byte: a read either returns only bytes before one, or
//! begins with one. The reader must know which before it reads. An urgent byte that arrives between
//! the check and the read would pass as an ordinary one. TCP has one mark: an urgent byte that a
//! newer one overtakes becomes an ordinary byte.

use std::io::{self, ErrorKind, Read};
use std::mem::MaybeUninit;

use socket2::SockRef;
use tokio::io::Interest;
use tokio::net::TcpStream;

/// Reads octets up to the next urgent one, or that one alone; returns which. 0 octets: the end of
/// the stream.
pub(super) async fn read(tcp: &TcpStream, buffer: &mut [u8]) -> io::Result<(usize, bool)> {
    if first(tcp).await? == 0 {
        return Ok((0, false));
    }
    let urgent = at_mark(tcp)?;
    let buffer = if urgent { buffer.get_mut(..1).unwrap_or_default() } else { buffer };
    let read = (&*SockRef::from(tcp)).read(buffer)?;
    Ok((read, urgent))
}

/// Sends one octet as urgent.
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

/// Waits for the next octet, which stays; 0 at the end of the stream.
async fn first(tcp: &TcpStream) -> io::Result<usize> {
    let peek = || SockRef::from(tcp).peek(&mut [MaybeUninit::uninit()]);
    // An urgent octet that arrived by itself before urgent octets stayed in the stream made nothing
    // readable.
    let mut there = peek();
    while matches!(&there, Err(error) if error.kind() == ErrorKind::WouldBlock) {
        tcp.readable().await?;
        there = tcp.try_io(Interest::READABLE, peek);
    }
    there
}

/// Is the next octet, which is there, urgent? This is SIOCATMARK by calls that need no unsafe code:
/// out of line, the number of octets that can be read (SIOCINQ) is the number of those in front of
/// the mark.
fn at_mark(tcp: &TcpStream) -> io::Result<bool> {
    let socket = SockRef::from(tcp);
    socket.set_out_of_band_inline(false)?;
    let before = rustix::io::ioctl_fionread(tcp);
    socket.set_out_of_band_inline(true)?;
    Ok(before? == 0)
}
