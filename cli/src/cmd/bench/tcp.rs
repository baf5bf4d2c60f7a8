//! The TCP stream to compare with: blocking sockets, and a thread for the other end.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Bytes of a write, and of the read buffer.
const BUFFER: usize = 1 << 20;

/// A connection to a thread that follows commands: the first eight bytes are the number of bytes
/// that follow. The next eight are the size of the parts that it sends back; 0 means one byte at
/// the end.
pub(in crate::cmd) struct Tcp {
    stream: TcpStream,
    buffer: Vec<u8>,
}

impl Tcp {
    pub(in crate::cmd) fn start() -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        thread::spawn(move || {
            if let Ok((stream, _)) = listener.accept() {
                // The thread ends with the connection.
                let _ = serve(stream);
            }
        });
        let stream = TcpStream::connect(address)?;
        stream.set_nodelay(true)?;
        Ok(Tcp { stream, buffer: vec![0; BUFFER] })
    }

    /// The time until the other end has all of `count` writes of `size` bytes.
    pub(in crate::cmd) fn stream(&mut self, count: u64, size: u32) -> io::Result<Duration> {
        let message = vec![0; size as usize];
        let begin = Instant::now();
        self.command(count * u64::from(size), 0)?;
        write(&mut self.stream, count, &message)?;
        self.stream.read_exact(&mut self.buffer[..1])?;
        Ok(begin.elapsed())
    }

    /// The time of `count` round trips of `size` bytes.
    pub(in crate::cmd) fn round_trips(&mut self, count: u64, size: u32) -> io::Result<Duration> {
        let part = usize::try_from(size).unwrap_or(BUFFER).min(BUFFER);
        self.command(count * part as u64, part as u64)?;
        let begin = Instant::now();
        for _ in 0..count {
            self.stream.write_all(&self.buffer[..part])?;
            self.stream.read_exact(&mut self.buffer[..part])?;
        }
        Ok(begin.elapsed())
    }

    fn command(&mut self, octets: u64, part: u64) -> io::Result<()> {
        let mut command = [0; 16];
        command[..8].copy_from_slice(&octets.to_be_bytes());
        command[8..].copy_from_slice(&part.to_be_bytes());
        self.stream.write_all(&command)
    }
}

/// Writes a message `count` times, one call each, as the RDMA side does.
fn write(stream: &mut impl Write, count: u64, message: &[u8]) -> io::Result<()> {
    (0..count).try_for_each(|_| stream.write_all(message))
}

fn serve(mut stream: TcpStream) -> io::Result<()> {
    stream.set_nodelay(true)?;
    let mut buffer = vec![0; BUFFER];
    loop {
        let (mut octets, mut part) = ([0; 8], [0; 8]);
        stream.read_exact(&mut octets)?;
        stream.read_exact(&mut part)?;
        let mut left = u64::from_be_bytes(octets);
        let part = usize::try_from(u64::from_be_bytes(part)).unwrap_or(BUFFER).min(BUFFER);
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Records how much each call wrote.
    struct Calls(Vec<usize>);

    impl Write for Calls {
        fn write(&mut self, octets: &[u8]) -> io::Result<usize> {
            self.0.push(octets.len());
            Ok(octets.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn writes_each_message_separately() {
        for size in [1, 64, 2 << 20] {
            let mut calls = Calls(Vec::new());
            write(&mut calls, 3, &vec![0; size]).unwrap();
            assert_eq!(calls.0, [size; 3]);
        }
    }
}
