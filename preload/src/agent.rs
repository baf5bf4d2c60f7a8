//! Questions to the agent.

use std::io::{self, Read};
use std::os::fd::AsRawFd;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use weft_peer::shim::{Answer, LONGEST, Request};

use crate::socket;

/// An agent that says nothing for so long is not there. It has its own, shorter, limits for what it waits for.
pub(crate) const PATIENCE: Duration = Duration::from_secs(60);
/// The same for what it knows, or does not.
pub(crate) const SHORTLY: Duration = Duration::from_secs(5);

/// A conversation.
pub(crate) struct Agent(UnixStream);

impl Agent {
    /// Finds the agent.
    pub(crate) fn open(path: &str, patience: Duration) -> io::Result<Self> {
        let stream = UnixStream::connect(path)?;
        stream.set_read_timeout(Some(patience))?;
        Ok(Agent(stream))
    }

    /// Sends a request that has no answer.
    pub(crate) fn say(&mut self, request: &Request) -> io::Result<()> {
        let line = format!("{request}\n");
        let sent = socket::send(self.0.as_raw_fd(), line.as_bytes());
        if usize::try_from(sent) == Ok(line.len()) { Ok(()) } else { Err(io::ErrorKind::BrokenPipe.into()) }
    }

    /// Asks.
    pub(crate) fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        self.say(request)?;
        let mut line = Vec::new();
        let mut octet = [0];
        while line.len() < LONGEST {
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
