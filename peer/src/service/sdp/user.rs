//! The user of an SDP socket: it posts receives, sends data, and handles received data.
//!
//! [`SdpUser::Drive`] executes the commands of docs/sdp-driver.md, in the text that it receives.

use core::ops::RangeInclusive;
use core::time::Duration;
use std::collections::VecDeque;

use weft_core::wire::sdp::Mode;

use crate::sdp::{Connection, Half, SrcAvailAnswer};
use crate::time::Instant;

/// Size in bytes of each receive of the users Echo, Sink and Source.
const RECEIVE: u64 = 4000;
/// Number of receives that the users Echo, Sink and Source keep posted.
const RECEIVES: usize = 2;
/// Size in bytes of a receive for commands. A receive of this size is too small to be advertised.
const COMMAND: u64 = 64;
/// Sizes in bytes of the sends of the user Source.
const SOURCE: [usize; 3] = [300, 3000, 2500];
/// Maximum number of bytes in one send or receive of a command.
const MAX_COMMAND_OCTETS: u64 = 1 << 20;
/// Maximum time of the command `wait`, in milliseconds.
const MAX_WAIT: u64 = 3_600_000;
/// Maximum number of received command bytes that wait to be executed.
const MAX_COMMAND_TEXT: usize = 4096;

/// The application on an SDP socket.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum SdpUser {
    /// Sends back the data that it receives. Out-Of-Band bytes are sent back as Out-Of-Band data.
    Echo,
    /// Reads all data and sends nothing.
    Sink,
    /// Sends a few thousand bytes after the connection has opened, and also reads data.
    Source,
    /// Executes commands in the text that it reads.
    Drive,
}

/// A user's request to the [`SdpConnection`](super::SdpConnection), which owns the memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum UserRequest {
    Send { octets: Vec<u8>, urgent: bool },
    Receive(u64),
}

/// A user and its state.
#[derive(Debug)]
pub(super) struct UserState {
    user: SdpUser,
    text: Vec<u8>,
    requests: VecDeque<UserRequest>,
    /// Number of receives that have not ended. The field `commanded` counts only the receives that
    /// a command posted.
    receives: usize,
    commanded: usize,
    commands: VecDeque<String>,
    /// The user executes no command before this time.
    pub(super) wait: Option<Instant>,
    /// The peer's stream has ended.
    ended: bool,
    /// The user has shut down its half-connection, because the peer's stream has ended.
    is_shut: bool,
}

impl UserState {
    pub(super) fn new(user: SdpUser) -> Self {
        UserState {
            user,
            text: Vec::new(),
            requests: VecDeque::new(),
            receives: 0,
            commanded: 0,
            commands: VecDeque::new(),
            wait: None,
            ended: false,
            is_shut: false,
        }
    }

    /// Handles the opening of the connection.
    pub(super) fn opened(&mut self) {
        if self.user == SdpUser::Source {
            self.requests.extend(SOURCE.map(|len| UserRequest::Send { octets: pattern(len), urgent: false }));
        }
        self.post();
    }

    /// Handles the end of a receive.
    pub(super) fn received(&mut self, octets: Vec<u8>, urgent: bool, more: bool) {
        self.receives = self.receives.saturating_sub(1);
        let commanded = self.commanded > 0;
        self.commanded = self.commanded.saturating_sub(1);
        match self.user {
            SdpUser::Echo if !octets.is_empty() => self.requests.push_back(UserRequest::Send { octets, urgent }),
            SdpUser::Drive if !commanded && self.text.len() < MAX_COMMAND_TEXT => self.read(&octets),
            _ => {}
        }
        self.ended |= !more;
        if more {
            self.post();
        }
    }

    fn read(&mut self, octets: &[u8]) {
        self.text.extend_from_slice(octets);
        while let Some(end) = self.text.iter().position(|octet| matches!(octet, b'\n' | b';')) {
            let line: Vec<u8> = self.text.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).trim().to_owned();
            let ends_line = self.text.is_empty();
            if !line.is_empty() {
                self.commands.push_back(line);
            }
            if ends_line {
                break;
            }
        }
    }

    /// Posts the receives that this user keeps posted.
    fn post(&mut self) {
        let idle = self.receives == 0 && self.commands.is_empty() && self.wait.is_none();
        match self.user {
            SdpUser::Drive if idle => self.request_receive(COMMAND),
            SdpUser::Drive => {}
            _ => (self.receives..RECEIVES).for_each(|_| self.request_receive(RECEIVE)),
        }
    }

    fn request_receive(&mut self, len: u64) {
        self.receives += 1;
        self.requests.push_back(UserRequest::Receive(len));
    }

    /// Returns the user's next request. Commands for the SDP state machine are executed at once.
    pub(super) fn next(&mut self, now: Instant, machine: &mut Connection) -> Option<UserRequest> {
        loop {
            if let Some(request) = self.requests.pop_front() {
                return Some(request);
            }
            if self.wait.is_some_and(|until| until > now) {
                return None;
            }
            let waited = self.wait.take().is_some();
            match self.commands.pop_front() {
                Some(command) => self.execute(now, &command, machine),
                None if waited => {}
                // All commands are executed, so all their sends precede the DisConn.
                None if self.ended && !self.is_shut => {
                    self.is_shut = true;
                    machine.shut_down();
                }
                None => return None,
            }
            if !self.ended {
                self.post();
            }
        }
    }

    /// Executes a command. Ignores a command that is unknown, has wrong arguments, or is not
    /// possible now.
    fn execute(&mut self, now: Instant, command: &str, machine: &mut Connection) {
        let words: Vec<&str> = command.split_whitespace().collect();
        // A command that cannot be executed has no effect.
        let _ = self.try_execute(now, &words, machine);
    }

    /// Executes a command. Returns `None` if its arguments are wrong.
    fn try_execute(&mut self, now: Instant, words: &[&str], machine: &mut Connection) -> Option<()> {
        match *words {
            [name @ ("send" | "urgent"), len] => {
                let octets = pattern(usize::try_from(number(len, 1..=MAX_COMMAND_OCTETS)?).ok()?);
                self.requests.push_back(UserRequest::Send { octets, urgent: name == "urgent" });
            }
            ["read", _, ..] => {
                let lens = words[1..].iter().map(|len| number(len, 1..=MAX_COMMAND_OCTETS));
                for len in lens.collect::<Option<Vec<u64>>>()? {
                    self.commanded += 1;
                    self.request_receive(len);
                }
            }
            ["mode", half, mode] => {
                let half = match half {
                    "in" => Half::In,
                    "out" => Half::Out,
                    _ => return None,
                };
                let mode = match mode {
                    "buffered" => Mode::Buffered,
                    "combined" => Mode::Combined,
                    "pipelined" => Mode::Pipelined,
                    _ => return None,
                };
                machine.set_mode(half, mode).ok()?;
            }
            ["resize", size] => machine.resize(u32::try_from(number(size, 0..=u64::from(u32::MAX))?).ok()?),
            ["suspend", port] => machine.suspend(u16::try_from(number(port, 1..=u64::from(u16::MAX))?).ok()?).ok()?,
            ["cancel-sends"] => machine.cancel_sends(),
            ["cancel-receives"] => machine.cancel_receives(),
            ["shut"] => machine.shut_down(),
            ["abort"] => machine.abort(now),
            ["answer", how] => {
                machine.policy_mut().answer = match how {
                    "read" => SrcAvailAnswer::Read,
                    "send-sm" => SrcAvailAnswer::SendSm,
                    "both" => SrcAvailAnswer::ReadThenSendSm,
                    _ => return None,
                };
            }
            ["threshold", len] => machine.policy_mut().source_threshold = number(len, 0..=u64::MAX)?,
            ["payload", len] => machine.policy_mut().src_avail_payload = size(len)?,
            ["max-read", len] => machine.policy_mut().max_read = size(len)?,
            ["hints"] => machine.policy_mut().wants_pipelined = true,
            ["follow"] => machine.policy_mut().follows_hints = true,
            ["wait", time] => self.wait = Some(now + Duration::from_millis(number(time, 0..=MAX_WAIT)?)),
            _ => return None,
        }
        Some(())
    }
}

/// Parses a decimal number in this range.
fn number(text: &str, range: RangeInclusive<u64>) -> Option<u64> {
    text.parse().ok().filter(|number| range.contains(number))
}

/// Parses a size of at least one byte.
fn size(text: &str) -> Option<u32> {
    text.parse().ok().filter(|size| *size > 0)
}

/// Returns test data in which no short sequence of bytes occurs twice.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| u8::try_from((n ^ n >> 8) & 0xff).unwrap_or(0)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_outside_their_range_are_refused() {
        assert_eq!(number("17", 1..=20), Some(17));
        for text in ["", "0", "21", "-1", "0x10", "1 2"] {
            assert_eq!(number(text, 1..=20), None, "{text}");
        }
        assert_eq!((size("0"), size("4294967295"), size("4294967296")), (None, Some(u32::MAX), None));
    }
}
