//! [`Command`]: the command of a message (MS-SMB2 section 2.2.1).

use std::fmt;

/// A command. A request and its response have the same command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Command(pub u16);

impl Command {
    /// Agrees on a dialect.
    pub const NEGOTIATE: Command = Command(0);
    /// Authenticates a user.
    pub const SESSION_SETUP: Command = Command(1);
    /// Ends a session.
    pub const LOGOFF: Command = Command(2);
    /// Connects to a share.
    pub const TREE_CONNECT: Command = Command(3);
    /// Disconnects from a share.
    pub const TREE_DISCONNECT: Command = Command(4);
    /// Opens or creates a file.
    pub const CREATE: Command = Command(5);
    /// Closes a file.
    pub const CLOSE: Command = Command(6);
    /// Writes cached data of a file to its storage.
    pub const FLUSH: Command = Command(7);
    /// Reads from a file.
    pub const READ: Command = Command(8);
    /// Writes to a file.
    pub const WRITE: Command = Command(9);
    /// Locks or unlocks ranges of a file.
    pub const LOCK: Command = Command(10);
    /// Sends a control code to a file system or device.
    pub const IOCTL: Command = Command(11);
    /// Cancels a request.
    pub const CANCEL: Command = Command(12);
    /// Tests the connection.
    pub const ECHO: Command = Command(13);
    /// Lists a directory.
    pub const QUERY_DIRECTORY: Command = Command(14);
    /// Waits for changes in a directory.
    pub const CHANGE_NOTIFY: Command = Command(15);
    /// Reads attributes of a file or file system.
    pub const QUERY_INFO: Command = Command(16);
    /// Writes attributes of a file or file system.
    pub const SET_INFO: Command = Command(17);
    /// Breaks an oplock or a lease.
    pub const OPLOCK_BREAK: Command = Command(18);

    /// The name in MS-SMB2; `None` if the value has no name.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        NAMES.get(usize::from(self.0)).copied()
    }
}

/// The name, or the number if the value has no name.
impl fmt::Display for Command {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "command {:#06x}", self.0),
        }
    }
}

/// The names of the values from 0 on.
const NAMES: [&str; 19] = [
    "NEGOTIATE",
    "SESSION_SETUP",
    "LOGOFF",
    "TREE_CONNECT",
    "TREE_DISCONNECT",
    "CREATE",
    "CLOSE",
    "FLUSH",
    "READ",
    "WRITE",
    "LOCK",
    "IOCTL",
    "CANCEL",
    "ECHO",
    "QUERY_DIRECTORY",
    "CHANGE_NOTIFY",
    "QUERY_INFO",
    "SET_INFO",
    "OPLOCK_BREAK",
];

#[cfg(test)]
mod tests {
    use super::*;

    /// The values are from the table in MS-SMB2 section 2.2.1.2.
    #[test]
    fn names_match_the_constants() {
        assert_eq!(Command::CREATE.name(), Some("CREATE"));
        assert_eq!((Command(9).name(), Command(0x12).name()), (Some("WRITE"), Some("OPLOCK_BREAK")));
        assert_eq!((Command(19).name(), Command(19).to_string()), (None, "command 0x0013".to_owned()));
    }
}
