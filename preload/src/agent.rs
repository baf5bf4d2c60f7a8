//! Requests to the agent.

use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use weft_peer::shim::{Answer, MAX_LINE_LEN, Request};

use crate::socket;

/// An agent that does not answer within this time counts as absent. The time-outs of the agent are
/// shorter.
pub(crate) const TIMEOUT: Duration = Duration::from_secs(60);
/// Like [`TIMEOUT`], but for requests that the agent answers at once.
pub(crate) const SHORT_TIMEOUT: Duration = Duration::from_secs(5);

/// A connection to the agent.
pub(crate) struct Agent(UnixStream);

impl Agent {
    /// Connects to the agent's Unix socket at `path`. Each read from the socket waits at most the
    /// time `timeout`.
    pub(crate) fn open(path: &str, timeout: Duration) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(timeout))?;
        Ok(Agent(stream))
    }

    /// Sends a request that has no answer.
    pub(crate) fn send(&mut self, request: &Request) -> io::Result<()> {
        let line = format!("{request}\n");
        let sent = socket::send(self.0.as_raw_fd(), line.as_bytes());
        if usize::try_from(sent) == Ok(line.len()) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    /// Sends a request and returns the answer.
    pub(crate) fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        self.send(request)?;
        let mut line = Vec::new();
        let mut octet = [0];
        while line.len() < MAX_LINE_LEN {
            self.0.read_exact(&mut octet)?;
            if octet == *b"\n" {
                let answer = str::from_utf8(&line).ok().and_then(|line| line.parse().ok());
                return answer.ok_or_else(|| io::ErrorKind::InvalidData.into());
            }
            line.extend(octet);
        }
        Err(io::ErrorKind::InvalidData.into())
    }
}
