//! `--at`: actions between the writes of a connection. Section numbers are those of
//! draft-pinkerton-iwarp-sdp-01. An action sends an urgent byte, changes the size of the Private
//! Buffers, or moves the connection to another listener.

use std::fmt;
use std::net::SocketAddr;
use std::str::FromStr;

use tokio::io::AsyncWriteExt;
use weft_peer::driver::Device;
use weft_peer::driver::sdp::{SdpListener, SdpSettings, SdpStream};

use crate::exit::BadInput;

/// The byte that is sent as Out-Of-Band data. It does not count as a written byte.
const URGENT: u8 = b'!';

/// An action, and the number of written bytes after which it runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Action {
    /// Number of written bytes.
    at: u64,
    kind: ActionKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum ActionKind {
    /// Move the connection to a new listener on a free port (socket duplication, section 13).
    Move,
    /// Request that the peer change its Private Buffers to this size in bytes (ChRcvBuf, section
    /// 10.4).
    Resize(u32),
    /// Send a byte of Out-Of-Band data (section 9.5.3).
    Urgent,
}

impl FromStr for Action {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || "expected BYTES:urgent, BYTES:resize=SIZE or BYTES:move".to_owned();
        let (at, what) = text.split_once(':').ok_or_else(wrong)?;
        let kind = match what.split_once('=') {
            None if what == "move" => ActionKind::Move,
            None if what == "urgent" => ActionKind::Urgent,
            Some(("resize", size)) => ActionKind::Resize(size.parse().map_err(|_| wrong())?),
            _ => return Err(wrong()),
        };
        Ok(Action { at: at.parse().map_err(|_| wrong())?, kind })
    }
}

impl fmt::Display for Action {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            ActionKind::Move => write!(f, "{}:move", self.at),
            ActionKind::Resize(size) => write!(f, "{}:resize={size}", self.at),
            ActionKind::Urgent => write!(f, "{}:urgent", self.at),
        }
    }
}

/// Rejects an action whose position is after the last byte that the connection writes.
pub(super) fn check_positions(actions: &[Action], octets: u64) -> Result<(), BadInput> {
    match actions.iter().find(|action| action.at > octets) {
        Some(late) => Err(BadInput(format!("--at {late} never runs: the connection writes only {octets} bytes"))),
        None => Ok(()),
    }
}

/// The remaining actions of one connection, and the number of bytes written so far.
pub(super) struct Actions<'a> {
    device: &'a Device,
    settings: SdpSettings,
    /// The remaining actions in reverse order: the next action to run is the last element.
    left: Vec<Action>,
    written: u64,
}

impl<'a> Actions<'a> {
    pub(super) fn new(device: &'a Device, settings: SdpSettings, actions: &[Action]) -> Self {
        let mut left = actions.to_vec();
        // Actions at the same position run in the given order.
        left.reverse();
        left.sort_by_key(|action| std::cmp::Reverse(action.at));
        Actions { device, settings, left, written: 0 }
    }

    /// Runs the actions that are due after the bytes written so far.
    pub(super) async fn run_due(&mut self, stream: &SdpStream) -> std::io::Result<()> {
        while let Some(action) = self.left.pop_if(|action| action.at <= self.written) {
            self.run(action.kind, stream).await?;
        }
        Ok(())
    }

    /// Writes all bytes, and runs the actions that are due between these bytes.
    pub(super) async fn write_all(&mut self, mut stream: &SdpStream, mut octets: &[u8]) -> std::io::Result<()> {
        loop {
            self.run_due(stream).await?;
            let before = self.left.last().map_or(u64::MAX, |action| action.at - self.written);
            let len = usize::try_from(before).unwrap_or(usize::MAX).min(octets.len());
            if len == 0 {
                return Ok(());
            }
            let (piece, rest) = octets.split_at(len);
            stream.write_all(piece).await?;
            self.written += len as u64;
            octets = rest;
        }
    }

    /// Returns a message about the actions that did not run, because the connection wrote too few
    /// bytes. Returns `None` if all actions ran.
    pub(super) fn unreached(&self) -> Option<String> {
        let left: Vec<String> = self.left.iter().rev().map(ToString::to_string).collect();
        (!left.is_empty()).then(|| {
            let (left, written) = (left.join(", "), self.written);
            format!("these --at actions did not run: {left}; the connection wrote only {written} bytes")
        })
    }

    async fn run(&self, kind: ActionKind, stream: &SdpStream) -> std::io::Result<()> {
        match kind {
            ActionKind::Move => {
                let address = SocketAddr::new(stream.local_addr().ip(), 0);
                let listener = SdpListener::bind(self.device, address, self.settings)?;
                stream.fail_over(&listener).await?;
            }
            ActionKind::Resize(octets) => stream.resize(octets),
            ActionKind::Urgent => stream.send_urgent(&[URGENT]).await?,
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_and_prints_actions() {
        let read = |text: &str| text.parse::<Action>();
        assert_eq!(read("5:move"), Ok(Action { at: 5, kind: ActionKind::Move }));
        assert_eq!(read("0:urgent"), Ok(Action { at: 0, kind: ActionKind::Urgent }));
        assert_eq!(read("70000:resize=512"), Ok(Action { at: 70_000, kind: ActionKind::Resize(512) }));
        for text in ["5:move", "0:urgent", "70000:resize=512"] {
            assert_eq!(read(text).unwrap().to_string(), text);
        }
        let wrong = [
            "",
            "move",
            "x:move",
            "5:resize",
            "5:resize=x",
            "5:resize=-1",
            "5:move=1",
            "5:urgent=",
            "5:abort",
            "-1:move",
        ];
        for wrong in wrong {
            assert_eq!(read(wrong).unwrap_err(), "expected BYTES:urgent, BYTES:resize=SIZE or BYTES:move", "{wrong}");
        }
    }

    #[test]
    fn rejects_an_action_after_the_last_byte() {
        let actions: Vec<Action> = ["5:urgent", "0:move"].map(|text| text.parse().unwrap()).into();
        assert!(check_positions(&actions, 5).is_ok() && check_positions(&[], 0).is_ok());
        assert_eq!(
            check_positions(&actions, 4).unwrap_err().to_string(),
            "--at 5:urgent never runs: the connection writes only 4 bytes"
        );
    }
}
