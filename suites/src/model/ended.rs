//! How a program ended that weft had started as the target.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Signals that a program gets for a fault of its own: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE,
/// SIGSEGV and SIGSYS. Others send it the rest, or, as SIGPIPE, are no more than an error that it
/// does not handle.
const FAULTS: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];

/// The end of a program that the command `start` of the target file started. weft ends programs
/// that still run when their case is over; those are not recorded.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramEnd {
    /// The first connection of the case that it opened, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
    /// Its command line.
    pub command: String,
    /// Its exit status, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// The signal that killed it, if one did.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl ProgramEnd {
    pub(crate) fn of(connection: Option<u32>, command: String, status: ExitStatus) -> Self {
        ProgramEnd { connection, command, exit_status: status.code(), signal: status.signal() }
    }

    /// It exited with status 0.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.exit_status == Some(0)
    }

    /// A signal killed it that a program gets for a fault of its own.
    #[must_use]
    pub fn is_crash(&self) -> bool {
        self.signal.is_some_and(|signal| FAULTS.contains(&signal))
    }
}

impl fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.connection {
            Some(connection) => write!(f, "program of connection {connection} ended, ")?,
            None => f.write_str("program that did not connect ended, ")?,
        }
        // The name of a signal is the library's to know (wait(2): its number is the low octet, a
        // status the next one).
        let raw = self.signal.or(self.exit_status.map(|status| status << 8));
        write!(f, "{}", ExitStatus::from_raw(raw.unwrap_or_default()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn end(raw: i32) -> ProgramEnd {
        ProgramEnd::of(Some(2), "client -p 7174".to_owned(), ExitStatus::from_raw(raw))
    }

    #[test]
    fn status_and_signal_are_kept_apart() {
        // With the bit for a core file.
        let (exited, crashed) = (end(3 << 8), end(11 | 0x80));
        assert_eq!(exited.to_string(), "program of connection 2 ended, exit status: 3");
        assert_eq!((exited.exit_status, exited.signal), (Some(3), None));
        assert_eq!(crashed.to_string(), "program of connection 2 ended, signal: 11 (SIGSEGV)");
        assert_eq!((crashed.exit_status, crashed.signal), (None, Some(11)));
        assert!(end(0).is_success() && !exited.is_success() && !crashed.is_success());
    }

    #[test]
    fn only_a_fault_of_its_own_is_a_crash() {
        let is_crash = |signal| end(signal).is_crash();
        assert!([4, 5, 6, 7, 8, 11, 31].into_iter().all(is_crash));
        // SIGHUP, SIGINT, SIGKILL, SIGPIPE, SIGTERM.
        assert!(![1, 2, 9, 13, 15].into_iter().any(is_crash));
        assert!(!end(139 << 8).is_crash());
    }
}
