//! The user of an SDP socket: it posts receives, sends data, and handles received data.
//!
//! [`SdpUser::Drive`] executes the commands of docs/sdp-driver.md, in the text that it receives.

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
    ShutDown,
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
    ended: bool,
}

impl UserState {
    pub(super) fn new(user: SdpUser) -> Self {
        let (requests, commands) = (VecDeque::new(), VecDeque::new());
        UserState { user, text: Vec::new(), requests, receives: 0, commanded: 0, commands, wait: None, ended: false }
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
        if !more && !self.ended {
            self.ended = true;
            // Shut down after the sends that are still pending.
            self.requests.push_back(UserRequest::ShutDown);
        }
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
                if request == UserRequest::ShutDown {
                    machine.shut_down();
                    continue;
                }
                return Some(request);
            }
            if self.wait.is_some_and(|until| until > now) {
                return None;
            }
            let waited = self.wait.take().is_some();
            match self.commands.pop_front() {
                Some(command) => self.execute(now, &command, machine),
                None if waited => {}
                None => return None,
            }
            if !self.ended {
                self.post();
            }
        }
    }

    /// Executes a command. An unknown command is ignored.
    fn execute(&mut self, now: Instant, command: &str, machine: &mut Connection) {
        let mut words = command.split_whitespace();
        let name = words.next().unwrap_or_default();
        let numbers = || command.split_whitespace().skip(1).filter_map(|word| word.parse::<u64>().ok());
        let number = numbers().next().unwrap_or(0).min(MAX_COMMAND_OCTETS);
        let size = || u32::try_from(number).unwrap_or(u32::MAX);
        match name {
            "send" | "urgent" => {
                let octets = pattern(usize::try_from(number).unwrap_or(0));
                self.requests.push_back(UserRequest::Send { octets, urgent: name == "urgent" });
            }
            "read" => {
                for len in numbers() {
                    self.commanded += 1;
                    self.request_receive(len.clamp(1, MAX_COMMAND_OCTETS));
                }
            }
            "mode" => {
                let half = if words.next() == Some("in") { Half::In } else { Half::Out };
                let mode = match words.next() {
                    Some("buffered") => Mode::Buffered,
                    Some("pipelined") => Mode::Pipelined,
                    _ => Mode::Combined,
                };
                // A Mode that cannot be requested now is ignored.
                let _ = machine.set_mode(half, mode);
            }
            "resize" => machine.resize(size()),
            "suspend" => {
                // If the connection cannot be suspended, the command is ignored.
                let _ = machine.suspend(u16::try_from(number).unwrap_or(0));
            }
            "cancel-sends" => machine.cancel_sends(),
            "cancel-receives" => machine.cancel_receives(),
            "shut" => machine.shut_down(),
            "abort" => machine.abort(now),
            "answer" => {
                machine.policy_mut().answer = match words.next() {
                    Some("send-sm") => SrcAvailAnswer::SendSm,
                    Some("both") => SrcAvailAnswer::ReadThenSendSm,
                    _ => SrcAvailAnswer::Read,
                };
            }
            "threshold" => machine.policy_mut().source_threshold = number,
            "payload" => machine.policy_mut().src_avail_payload = size(),
            "max-read" => machine.policy_mut().max_read = size().max(1),
            "hints" => machine.policy_mut().wants_pipelined = true,
            "follow" => machine.policy_mut().follows_hints = true,
            "wait" => self.wait = Some(now + Duration::from_millis(number)),
            _ => {}
        }
    }
}

/// Returns test data in which no short sequence of bytes occurs twice.
fn pattern(len: usize) -> Vec<u8> {
    (0..len).map(|n| u8::try_from((n ^ n >> 8) & 0xff).unwrap_or(0)).collect()
}
