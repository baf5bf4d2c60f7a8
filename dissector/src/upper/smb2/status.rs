//! [`Status`]: an NTSTATUS value (MS-ERREF section 2.3).

use std::fmt;

/// The result of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Status(pub u32);

impl Status {
    /// The command succeeded.
    pub const SUCCESS: Status = Status(0);
    /// The server continues the command, and sends its result later.
    pub const PENDING: Status = Status(0x0000_0103);
    /// A QUERY_DIRECTORY found no further file.
    pub const NO_MORE_FILES: Status = Status(0x8000_0006);
    /// The path contains a symbolic link.
    pub const STOPPED_ON_SYMLINK: Status = Status(0x8000_002d);
    /// The authentication needs a further SESSION_SETUP.
    pub const MORE_PROCESSING_REQUIRED: Status = Status(0xc000_0016);

    /// The name in MS-ERREF; `None` if weft does not know the value.
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        let at = NAMES.binary_search_by_key(&self.0, |(value, _)| *value).ok()?;
        NAMES.get(at).map(|(_, name)| *name)
    }

    /// Returns whether the severity of the value is "error". Warnings and information are not
    /// errors.
    #[must_use]
    pub fn is_error(self) -> bool {
        self.0 >> 30 == 3
    }
}

/// The name, or the number if weft does not know the value.
impl fmt::Display for Status {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.pad(name),
            None => write!(f, "{:#010x}", self.0),
        }
    }
}

/// The names of common values, in the order of the values.
static NAMES: &[(u32, &str)] = &[
    (0x0000_0000, "STATUS_SUCCESS"),
    (0x0000_0103, "STATUS_PENDING"),
    (0x0000_010b, "STATUS_NOTIFY_CLEANUP"),
    (0x0000_010c, "STATUS_NOTIFY_ENUM_DIR"),
    (0x8000_0005, "STATUS_BUFFER_OVERFLOW"),
    (0x8000_0006, "STATUS_NO_MORE_FILES"),
    (0x8000_000b, "STATUS_INVALID_EA_NAME"),
    (0x8000_001a, "STATUS_NO_MORE_ENTRIES"),
    (0x8000_002d, "STATUS_STOPPED_ON_SYMLINK"),
    (0xc000_0001, "STATUS_UNSUCCESSFUL"),
    (0xc000_0002, "STATUS_NOT_IMPLEMENTED"),
    (0xc000_0003, "STATUS_INVALID_INFO_CLASS"),
    (0xc000_0004, "STATUS_INFO_LENGTH_MISMATCH"),
    (0xc000_0005, "STATUS_ACCESS_VIOLATION"),
    (0xc000_0008, "STATUS_INVALID_HANDLE"),
    (0xc000_000d, "STATUS_INVALID_PARAMETER"),
    (0xc000_000e, "STATUS_NO_SUCH_DEVICE"),
    (0xc000_000f, "STATUS_NO_SUCH_FILE"),
    (0xc000_0010, "STATUS_INVALID_DEVICE_REQUEST"),
    (0xc000_0011, "STATUS_END_OF_FILE"),
    (0xc000_0016, "STATUS_MORE_PROCESSING_REQUIRED"),
    (0xc000_0017, "STATUS_NO_MEMORY"),
    (0xc000_001e, "STATUS_INVALID_LOCK_SEQUENCE"),
    (0xc000_0022, "STATUS_ACCESS_DENIED"),
    (0xc000_0023, "STATUS_BUFFER_TOO_SMALL"),
    (0xc000_0033, "STATUS_OBJECT_NAME_INVALID"),
    (0xc000_0034, "STATUS_OBJECT_NAME_NOT_FOUND"),
    (0xc000_0035, "STATUS_OBJECT_NAME_COLLISION"),
    (0xc000_0039, "STATUS_OBJECT_PATH_INVALID"),
    (0xc000_003a, "STATUS_OBJECT_PATH_NOT_FOUND"),
    (0xc000_003b, "STATUS_OBJECT_PATH_SYNTAX_BAD"),
    (0xc000_0043, "STATUS_SHARING_VIOLATION"),
    (0xc000_004f, "STATUS_EAS_NOT_SUPPORTED"),
    (0xc000_0051, "STATUS_NONEXISTENT_EA_ENTRY"),
    (0xc000_0054, "STATUS_FILE_LOCK_CONFLICT"),
    (0xc000_0055, "STATUS_LOCK_NOT_GRANTED"),
    (0xc000_0056, "STATUS_DELETE_PENDING"),
    (0xc000_0061, "STATUS_PRIVILEGE_NOT_HELD"),
    (0xc000_006a, "STATUS_WRONG_PASSWORD"),
    (0xc000_006d, "STATUS_LOGON_FAILURE"),
    (0xc000_006e, "STATUS_ACCOUNT_RESTRICTION"),
    (0xc000_0071, "STATUS_PASSWORD_EXPIRED"),
    (0xc000_0072, "STATUS_ACCOUNT_DISABLED"),
    (0xc000_007e, "STATUS_RANGE_NOT_LOCKED"),
    (0xc000_007f, "STATUS_DISK_FULL"),
    (0xc000_0098, "STATUS_FILE_INVALID"),
    (0xc000_009a, "STATUS_INSUFFICIENT_RESOURCES"),
    (0xc000_00a2, "STATUS_MEDIA_WRITE_PROTECTED"),
    (0xc000_00ac, "STATUS_PIPE_NOT_AVAILABLE"),
    (0xc000_00b0, "STATUS_PIPE_DISCONNECTED"),
    (0xc000_00b5, "STATUS_IO_TIMEOUT"),
    (0xc000_00ba, "STATUS_FILE_IS_A_DIRECTORY"),
    (0xc000_00bb, "STATUS_NOT_SUPPORTED"),
    (0xc000_00c9, "STATUS_NETWORK_NAME_DELETED"),
    (0xc000_00cc, "STATUS_BAD_NETWORK_NAME"),
    (0xc000_00d0, "STATUS_REQUEST_NOT_ACCEPTED"),
    (0xc000_00d4, "STATUS_NOT_SAME_DEVICE"),
    (0xc000_00e3, "STATUS_INVALID_OPLOCK_PROTOCOL"),
    (0xc000_0101, "STATUS_DIRECTORY_NOT_EMPTY"),
    (0xc000_0103, "STATUS_NOT_A_DIRECTORY"),
    (0xc000_011f, "STATUS_TOO_MANY_OPENED_FILES"),
    (0xc000_0120, "STATUS_CANCELLED"),
    (0xc000_0121, "STATUS_CANNOT_DELETE"),
    (0xc000_0123, "STATUS_FILE_DELETED"),
    (0xc000_0128, "STATUS_FILE_CLOSED"),
    (0xc000_014b, "STATUS_PIPE_BROKEN"),
    (0xc000_019c, "STATUS_FS_DRIVER_REQUIRED"),
    (0xc000_0203, "STATUS_USER_SESSION_DELETED"),
    (0xc000_0205, "STATUS_INSUFF_SERVER_RESOURCES"),
    (0xc000_020c, "STATUS_CONNECTION_DISCONNECTED"),
    (0xc000_020d, "STATUS_CONNECTION_RESET"),
    (0xc000_0225, "STATUS_NOT_FOUND"),
    (0xc000_0257, "STATUS_PATH_NOT_COVERED"),
    (0xc000_0275, "STATUS_NOT_A_REPARSE_POINT"),
    (0xc000_035c, "STATUS_NETWORK_SESSION_EXPIRED"),
    (0xc000_0464, "STATUS_DEVICE_FEATURE_NOT_SUPPORTED"),
    (0xc000_0480, "STATUS_FILE_NOT_AVAILABLE"),
    (0xc000_a000, "STATUS_INVALID_SIGNATURE"),
    (0xc05d_0000, "STATUS_SMB_NO_PREAUTH_INTEGRITY_HASH_OVERLAP"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_in_the_order_of_their_values() {
        assert!(NAMES.is_sorted_by(|(low, _), (high, _)| low < high));
        for (value, name) in NAMES {
            assert_eq!(Status(*value).name(), Some(*name));
        }
        assert_eq!(Status(0xc000_019c).to_string(), "STATUS_FS_DRIVER_REQUIRED");
        assert_eq!((Status(0xdead_beef).name(), Status(0xdead_beef).to_string()), (None, "0xdeadbeef".to_owned()));
    }

    #[test]
    fn severity_is_in_the_highest_bits() {
        let is_error = [Status::SUCCESS, Status::PENDING, Status::NO_MORE_FILES].map(Status::is_error);
        assert_eq!(is_error, [false; 3]);
        assert!(Status::MORE_PROCESSING_REQUIRED.is_error());
    }
}
