//! [`Program`]: the RPC programs whose names weft knows, and the names of their procedures.

/// The first and the last program number of the range "transient" (RFC 5531 section 8.3). A client
/// of NFS version 4 chooses the number of its callback program in this range.
const TRANSIENT: std::ops::RangeInclusive<u32> = 0x4000_0000..=0x5fff_ffff;
/// The callback program of the Linux client.
const CALLBACK: u32 = 0x4000_0000;

/// An RPC program.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Program {
    /// Port mapper (program 100000).
    Portmap,
    /// NFS (program 100003).
    Nfs,
    /// MOUNT (program 100005).
    Mount,
    /// Network Lock Manager (program 100021).
    Nlm,
    /// Network Status Monitor (program 100024).
    Nsm,
    /// NFS ACL (program 100227).
    NfsAcl,
    /// The callback program of a client of NFS version 4.
    NfsCallback,
    /// Another program.
    Other,
}

impl Program {
    /// The program with the number `number`. `is_reverse` is set if the server of the connection
    /// calls the client: then a transient program is the callback program of NFS.
    #[must_use]
    pub fn new(number: u32, is_reverse: bool) -> Self {
        match number {
            100_000 => Program::Portmap,
            100_003 => Program::Nfs,
            100_005 => Program::Mount,
            100_021 => Program::Nlm,
            100_024 => Program::Nsm,
            100_227 => Program::NfsAcl,
            CALLBACK => Program::NfsCallback,
            other if is_reverse && TRANSIENT.contains(&other) => Program::NfsCallback,
            _ => Program::Other,
        }
    }

    /// The name of the program; `None` for [`Program::Other`].
    #[must_use]
    pub fn name(self) -> Option<&'static str> {
        match self {
            Program::Portmap => Some("Portmap"),
            Program::Nfs => Some("NFS"),
            Program::Mount => Some("MOUNT"),
            Program::Nlm => Some("NLM"),
            Program::Nsm => Some("STAT"),
            Program::NfsAcl => Some("NFSACL"),
            Program::NfsCallback => Some("NFS_CB"),
            Program::Other => None,
        }
    }

    /// The name of a procedure; `None` if the name is not known.
    #[must_use]
    pub fn procedure_name(self, version: u32, procedure: u32) -> Option<&'static str> {
        if procedure == 0 {
            return Some("NULL");
        }
        let names: &[&'static str] = match (self, version) {
            (Program::Portmap, 2) => &["NULL", "SET", "UNSET", "GETPORT", "DUMP", "CALLIT"],
            (Program::Nfs, 2) => NFS_2,
            (Program::Nfs, 3) => NFS_3,
            (Program::Nfs, 4) => &["NULL", "COMPOUND"],
            (Program::Mount, 1..=3) => &["NULL", "MNT", "DUMP", "UMNT", "UMNTALL", "EXPORT"],
            (Program::Nlm, 1..=4) => NLM,
            (Program::Nsm, 1) => &["NULL", "STAT", "MON", "UNMON", "UNMON_ALL", "SIMU_CRASH", "NOTIFY"],
            (Program::NfsAcl, 2) => &["NULL", "GETACL", "SETACL", "GETATTR", "ACCESS"],
            (Program::NfsAcl, 3) => &["NULL", "GETACL", "SETACL"],
            (Program::NfsCallback, _) => &["CB_NULL", "CB_COMPOUND"],
            _ => &[],
        };
        names.get(usize::try_from(procedure).ok()?).copied()
    }
}

/// The procedures of NFS version 2 (RFC 1094 section 2.2).
const NFS_2: &[&str] = &[
    "NULL",
    "GETATTR",
    "SETATTR",
    "ROOT",
    "LOOKUP",
    "READLINK",
    "READ",
    "WRITECACHE",
    "WRITE",
    "CREATE",
    "REMOVE",
    "RENAME",
    "LINK",
    "SYMLINK",
    "MKDIR",
    "RMDIR",
    "READDIR",
    "STATFS",
];

/// The procedures of NFS version 3 (RFC 1813 section 3).
const NFS_3: &[&str] = &[
    "NULL",
    "GETATTR",
    "SETATTR",
    "LOOKUP",
    "ACCESS",
    "READLINK",
    "READ",
    "WRITE",
    "CREATE",
    "MKDIR",
    "SYMLINK",
    "MKNOD",
    "REMOVE",
    "RMDIR",
    "RENAME",
    "LINK",
    "READDIR",
    "READDIRPLUS",
    "FSSTAT",
    "FSINFO",
    "PATHCONF",
    "COMMIT",
];

/// The procedures of the Network Lock Manager (RFC 1813 section 6.3; X/Open XNFS).
const NLM: &[&str] = &[
    "NULL",
    "TEST",
    "LOCK",
    "CANCEL",
    "UNLOCK",
    "GRANTED",
    "TEST_MSG",
    "LOCK_MSG",
    "CANCEL_MSG",
    "UNLOCK_MSG",
    "GRANTED_MSG",
    "TEST_RES",
    "LOCK_RES",
    "CANCEL_RES",
    "UNLOCK_RES",
    "GRANTED_RES",
];

/// The name of a value of `accept_stat` (RFC 5531 section 9).
#[must_use]
pub fn accept_status_name(status: u32) -> Option<&'static str> {
    const NAMES: [&str; 6] = ["SUCCESS", "PROG_UNAVAIL", "PROG_MISMATCH", "PROC_UNAVAIL", "GARBAGE_ARGS", "SYSTEM_ERR"];
    NAMES.get(usize::try_from(status).ok()?).copied()
}

/// The name of a value of `auth_stat` (RFC 5531 section 9).
#[must_use]
pub fn auth_status_name(status: u32) -> Option<&'static str> {
    const NAMES: [&str; 15] = [
        "AUTH_OK",
        "AUTH_BADCRED",
        "AUTH_REJECTEDCRED",
        "AUTH_BADVERF",
        "AUTH_REJECTEDVERF",
        "AUTH_TOOWEAK",
        "AUTH_INVALIDRESP",
        "AUTH_FAILED",
        "AUTH_KERB_GENERIC",
        "AUTH_TIMEEXPIRE",
        "AUTH_TKT_FILE",
        "AUTH_DECODE",
        "AUTH_NET_ADDR",
        "RPCSEC_GSS_CREDPROBLEM",
        "RPCSEC_GSS_CTXPROBLEM",
    ];
    NAMES.get(usize::try_from(status).ok()?).copied()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_and_procedures_have_names() {
        let name = |number, version, procedure| {
            let program = Program::new(number, false);
            (program.name(), program.procedure_name(version, procedure))
        };
        assert_eq!(name(100_003, 3, 21), (Some("NFS"), Some("COMMIT")));
        assert_eq!(name(100_003, 4, 1), (Some("NFS"), Some("COMPOUND")));
        assert_eq!(name(100_003, 3, 22), (Some("NFS"), None));
        assert_eq!(name(100_227, 3, 0), (Some("NFSACL"), Some("NULL")));
        assert_eq!(name(100_005, 3, 1), (Some("MOUNT"), Some("MNT")));
        assert_eq!(name(100_021, 4, 15), (Some("NLM"), Some("GRANTED_RES")));
        assert_eq!(name(4711, 1, u32::MAX), (None, None));
    }

    #[test]
    fn a_transient_program_is_a_callback_only_in_the_reverse_direction() {
        assert_eq!(Program::new(0x4000_0000, false), Program::NfsCallback);
        assert_eq!(Program::new(0x4000_0001, true), Program::NfsCallback);
        assert_eq!(Program::new(0x4000_0001, false), Program::Other);
        assert_eq!(Program::new(0x6000_0000, true), Program::Other);
        assert_eq!(Program::NfsCallback.procedure_name(1, 1), Some("CB_COMPOUND"));
    }
}
