//! The end of a program that weft had started as the target.

use std::fmt;
use std::os::unix::process::ExitStatusExt;
use std::process::ExitStatus;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Signals that a program gets because of its own fault: SIGILL, SIGTRAP, SIGABRT, SIGBUS, SIGFPE,
/// SIGSEGV and SIGSYS. Other signals come from other processes or, like SIGPIPE, report an error
/// that the program does not handle.
const FAULTS: [i32; 7] = [4, 5, 6, 7, 8, 11, 31];

/// The end of a program that the command `start` of the target file started. When a case ends, weft
/// kills the programs that still run, and does not record their ends.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct ProgramEnd {
    /// The first connection that the program opened: its number in the case, from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection: Option<u32>,
    /// Command line of the program.
    pub command: String,
    /// Exit status of the program, if it exited.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_status: Option<i32>,
    /// Number of the signal that killed the program, if a signal killed it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub signal: Option<i32>,
}

impl ProgramEnd {
    pub(crate) fn of(connection: Option<u32>, command: String, status: ExitStatus) -> Self {
        ProgramEnd { connection, command, exit_status: status.code(), signal: status.signal() }
    }

    /// Returns whether the program exited with status 0.
    #[must_use]
    pub fn is_success(&self) -> bool {
        self.exit_status == Some(0)
    }

    /// Returns whether the program crashed: its own fault caused the signal that killed it.
    #[must_use]
    pub fn is_crash(&self) -> bool {
        self.signal.is_some_and(|signal| FAULTS.contains(&signal))
    }
}

impl fmt::Display for ProgramEnd {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.connection {
            Some(connection) => write!(f, "program of connection {connection} ended, ")?,
            None => f.write_str("program without a connection ended, ")?,
        }
        // The standard library prints the name of a signal, but only for a status of wait(2). In
        // this status, the signal is the low byte, and the exit status is the next byte.
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
        // The bit 0x80 reports a core file.
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
        // These signals are SIGHUP, SIGINT, SIGKILL, SIGPIPE and SIGTERM.
        assert!(![1, 2, 9, 13, 15].into_iter().any(is_crash));
        assert!(!end(139 << 8).is_crash());
    }
}
