//! Sends a message with one HTTP request.
//!
//! This is not a general HTTP client: it has no TLS, follows no redirects, and reads only the
//! status of the answer.

use std::io;
use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

use super::Webhook;

/// Maximum time of one attempt, from the connection to the status of the answer.
const TIMEOUT: Duration = Duration::from_secs(10);
/// The time before each further attempt. Tests do not wait.
const WAITS: [Duration; 2] =
    if cfg!(test) { [Duration::ZERO; 2] } else { [Duration::from_secs(2), Duration::from_secs(20)] };
/// Length of the beginning of an answer that has the status: `HTTP/1.1 200`.
const STATUS: usize = 12;

impl Webhook {
    /// Posts a JSON document. If an attempt fails, tries again a few times, and then logs the
    /// error.
    pub(super) async fn post(&self, document: &str) {
        let mut waits = WAITS.into_iter();
        loop {
            let attempt = timeout(TIMEOUT, self.attempt(document)).await;
            let Err(error) = attempt.map_err(io::Error::from).flatten() else { return };
            let Some(wait) = waits.next() else {
                tracing::error!("webhook {}: {error}", self.authority);
                return;
            };
            tracing::warn!("webhook {}: {error}; trying again", self.authority);
            tokio::time::sleep(wait).await;
        }
    }

    /// Sends the document once. Returns an error unless the answer has a status from 200 to 299.
    async fn attempt(&self, document: &str) -> io::Result<()> {
        let mut stream = TcpStream::connect((self.host.as_str(), self.port)).await?;
        let request = format!(
            "POST {} HTTP/1.1\r\nHost: {}\r\nUser-Agent: weft/{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n{document}",
            self.path,
            self.authority,
            env!("CARGO_PKG_VERSION"),
            document.len()
        );
        stream.write_all(request.as_bytes()).await?;
        let mut status = [0; STATUS];
        stream.read_exact(&mut status).await?;
        match status {
            [b'H', b'T', b'T', b'P', b'/', b'1', b'.', b'0' | b'1', b' ', b'2', _, _] => Ok(()),
            other => Err(io::Error::other(format!("the answer is {:?}", String::from_utf8_lossy(&other)))),
        }
    }
}
