//! The TCP stream for comparison: blocking sockets, with a thread for the peer.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Size of the read buffer in bytes.
const BUFFER: usize = 1 << 20;
/// Maximum size in bytes of a part that the peer sends back. In round trips, a message is one part,
/// so this is also the maximum size of a message.
pub(in crate::cmd) const LONGEST_PART: u32 = 1 << 26;

/// A connection to a peer in another thread. The peer executes commands.
///
/// A command has 16 bytes: the number of data bytes that follow (8 bytes, big-endian), and a part
/// size (8 bytes, big-endian). The peer receives the data in parts of this size, and sends back
/// each part. If the part size is 0, the peer sends one byte after all data.
pub(in crate::cmd) struct Tcp<S = TcpStream>(S);

impl Tcp {
    pub(in crate::cmd) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            if let Ok((stream, _)) = listener.accept() {
                // Ignore errors, because the thread ends with the connection.
                let _ = serve(stream);
            }
        });
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Tcp(stream))
    }
}

impl<S: Read + Write> Tcp<S> {
    /// Writes `count` messages of `size` bytes. Returns the time until the peer has received all of
    /// them.
    pub(in crate::cmd) fn stream(&mut self, count: u64, size: u32) -> io::Result<Duration> {
        let message = vec![0; size as usize];
        let begin = Instant::now();
        self.command(count * u64::from(size), 0)?;
        write(&mut self.0, count, &message)?;
        self.0.read_exact(&mut [0])?;
        Ok(begin.elapsed())
    }

    /// Returns the time of `count` round trips of `size` bytes.
    pub(in crate::cmd) fn round_trips(&mut self, count: u64, size: u32) -> io::Result<Duration> {
        let mut message = vec![0; size as usize];
        self.command(count * u64::from(size), size.into())?;
        let begin = Instant::now();
        for _ in 0..count {
            self.0.write_all(&message)?;
            self.0.read_exact(&mut message)?;
        }
        Ok(begin.elapsed())
    }

    fn command(&mut self, octets: u64, part: u64) -> io::Result<()> {
        let mut command = [0; 16];
        command[..8].copy_from_slice(&octets.to_be_bytes());
        command[8..].copy_from_slice(&part.to_be_bytes());
        self.0.write_all(&command)
    }
}

/// Writes a message `count` times, in separate calls. The RDMA benchmark also has one call for each
/// message.
fn write(stream: &mut impl Write, count: u64, message: &[u8]) -> io::Result<()> {
    (0..count).try_for_each(|_| stream.write_all(message))
}

/// Executes commands until the connection ends.
fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let (mut octets, mut part) = ([0; 8], [0; 8]);
        stream.read_exact(&mut octets)?;
        stream.read_exact(&mut part)?;
        let mut left = u64::from_be_bytes(octets);
        let part = u64::from_be_bytes(part).min(LONGEST_PART.into()) as usize;
        // Receive a complete part before sending it back. The measuring side writes the complete
        // part before it reads. If both sides wrote at the same time, full buffers could block
        // both.
        buffer.resize(part.max(BUFFER), 0);
        while left > 0 {
            let most = usize::try_from(left).unwrap_or(BUFFER).min(BUFFER);
            if part == 0 {
                match stream.read(&mut buffer[..most])? {
                    0 => return Ok(()),
                    read => left -= read as u64,
                }
            } else {
                stream.read_exact(&mut buffer[..part])?;
                stream.write_all(&buffer[..part])?;
                left = left.saturating_sub(part as u64);
            }
        }
        if part == 0 {
            stream.write_all(&[1])?;
        }
    }
}

/// Replaces the connection in tests. Records the size of each write, and answers each read at once.
#[cfg(test)]
#[derive(Debug, Default)]
pub(in crate::cmd) struct WriteSizes(pub(in crate::cmd) Vec<usize>);

#[cfg(test)]
impl Read for WriteSizes {
    fn read(&mut self, octets: &mut [u8]) -> io::Result<usize> {
        Ok(octets.len())
    }
}

#[cfg(test)]
impl Write for WriteSizes {
    fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
        self.0.push(octets.len());
        Ok(octets.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
impl<S> Tcp<S> {
    pub(in crate::cmd) fn over(stream: S) -> Self {
        Tcp(stream)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Calls `sends`, and returns the first command that the peer receives: the number of bytes,
    /// and the part size.
    fn command(sends: impl FnOnce(&mut Tcp) -> io::Result<Duration> + Send + 'static) -> [u64; 2] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let mut tcp = Tcp(TcpStream::connect(listener.local_addr().unwrap()).unwrap());
        let sending = thread::spawn(move || sends(&mut tcp));
        let (mut stream, _) = listener.accept().unwrap();
        let mut octets = [[0; 8]; 2];
        stream.read_exact(octets.as_flattened_mut()).unwrap();
        drop(stream);
        assert!(sending.join().unwrap().is_err(), "the other end is gone");
        octets.map(u64::from_be_bytes)
    }

    /// The peer waits for the bytes of all messages, also if the messages are large.
    #[test]
    fn the_command_has_the_bytes_of_all_messages() {
        for size in [1, 5000, 3 << 20] {
            let octets = 2 * u64::from(size);
            assert_eq!(command(move |tcp| tcp.stream(2, size)), [octets, 0]);
            assert_eq!(command(move |tcp| tcp.round_trips(2, size)), [octets, size.into()]);
        }
    }

    #[test]
    fn writes_each_message_separately() {
        for size in [1, 64, 2 << 20] {
            let mut sizes = WriteSizes::default();
            Tcp::over(&mut sizes).stream(3, size).unwrap();
            // The first write is the command.
            let size = size as usize;
            assert_eq!(sizes.0, [16, size, size, size]);
        }
    }
}
