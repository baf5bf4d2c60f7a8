//! Access rights of regions and windows, and their valid combinations (draft-hilland-rddp-verbs
//! Figures 18 and 20).

/// The rights of a Memory Region.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct Access {
    /// This RNIC's Sends and Writes may read payload from the region.
    pub local_read: bool,
    /// This RNIC's receives may write payload to the region.
    pub local_write: bool,
    /// Peers may read the region.
    pub remote_read: bool,
    /// Peers may write to the region. The responses to this RNIC's own Reads also require this
    /// right.
    pub remote_write: bool,
    /// Windows may be bound to the region.
    pub bind: bool,
}

impl Access {
    /// Local read and local write.
    pub const LOCAL: Access =
        Access { local_read: true, local_write: true, remote_read: false, remote_write: false, bind: false };
    /// All rights.
    pub const ALL: Access =
        Access { local_read: true, local_write: true, remote_read: true, remote_write: true, bind: true };

    /// Returns whether at least one right is remote.
    #[must_use]
    pub const fn is_remote(self) -> bool {
        self.remote_read || self.remote_write
    }

    /// Returns whether Figure 18 calls the combination valid. A valid combination has at least one
    /// local right. For each remote right, it also has the local right of the same kind.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        let backed = (self.local_read || !self.remote_read, self.local_write || !self.remote_write);
        (self.local_read || self.local_write) && backed.0 && backed.1
    }

    /// Returns whether the region grants `right`.
    #[must_use]
    pub const fn allows(self, right: Right) -> bool {
        match right {
            Right::LocalRead => self.local_read,
            Right::LocalWrite => self.local_write,
            Right::RemoteRead => self.remote_read,
            Right::RemoteWrite => self.remote_write,
        }
    }
}

/// The rights of a Memory Window.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct RemoteAccess {
    /// Peers may read the window.
    pub read: bool,
    /// Peers may write to the window.
    pub write: bool,
}

impl RemoteAccess {
    /// Returns whether a window with these rights may be bound to a region with the rights
    /// `region`. The window needs at least one right. For each right, the region needs the *local*
    /// right of the same kind (Figure 20). The region's remote rights do not matter.
    #[must_use]
    pub const fn may_be_bound_to(self, region: Access) -> bool {
        (self.read || self.write) && (region.local_read || !self.read) && (region.local_write || !self.write)
    }

    /// Returns whether the window grants `right`. A window never grants local rights.
    #[must_use]
    pub const fn allows(self, right: Right) -> bool {
        match right {
            Right::LocalRead | Right::LocalWrite => false,
            Right::RemoteRead => self.read,
            Right::RemoteWrite => self.write,
        }
    }
}

/// The right that an access needs (the rows of draft Figure 21).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Right {
    /// The right to read the payload of a Send or Write.
    LocalRead,
    /// The right to write the payload of a receive.
    LocalWrite,
    /// The right to read the data for a peer's Read Request.
    RemoteRead,
    /// The right to write the payload of a peer's Write, or of the response to a Read of this RNIC.
    RemoteWrite,
}

impl Right {
    /// Returns whether inbound tagged segments or Read Requests need this right.
    #[must_use]
    pub const fn is_remote(self) -> bool {
        matches!(self, Right::RemoteRead | Right::RemoteWrite)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use weft_core::coverage::{Coverage, CoverageKind};
    use weft_core::requirement;

    fn access(local: &str, remote: &str) -> Access {
        Access {
            local_read: local.contains('R'),
            local_write: local.contains('W'),
            remote_read: remote.contains('R'),
            remote_write: remote.contains('W'),
            bind: false,
        }
    }

    #[test]
    fn figure_18_without_or_with_local_read() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut cell = |id, local, remote, valid: bool| {
            proof.verify(id, || assert_eq!(access(local, remote).is_valid(), valid, "{local}/{remote}"));
        };
        cell(requirement!("VERBS-7.4.2-10"), "", "", false);
        cell(requirement!("VERBS-7.4.2-11"), "", "R", false);
        cell(requirement!("VERBS-7.4.2-12"), "", "W", false);
        cell(requirement!("VERBS-7.4.2-13"), "", "RW", false);
        cell(requirement!("VERBS-7.4.2-14"), "R", "", true);
        cell(requirement!("VERBS-7.4.2-15"), "R", "R", true);
        cell(requirement!("VERBS-7.4.2-16"), "R", "W", false);
        cell(requirement!("VERBS-7.4.2-17"), "R", "RW", false);
    }

    #[test]
    fn figure_18_with_local_write() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut cell = |id, local, remote, valid: bool| {
            proof.verify(id, || assert_eq!(access(local, remote).is_valid(), valid, "{local}/{remote}"));
        };
        cell(requirement!("VERBS-7.4.2-18"), "W", "", true);
        cell(requirement!("VERBS-7.4.2-19"), "W", "R", false);
        cell(requirement!("VERBS-7.4.2-20"), "W", "W", true);
        cell(requirement!("VERBS-7.4.2-21"), "W", "RW", false);
        cell(requirement!("VERBS-7.4.2-22"), "RW", "", true);
        cell(requirement!("VERBS-7.4.2-23"), "RW", "R", true);
        cell(requirement!("VERBS-7.4.2-24"), "RW", "W", true);
        cell(requirement!("VERBS-7.4.2-25"), "RW", "RW", true);
    }

    #[test]
    fn figure_20_by_one_local_right() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let mut cell = |id, local, remote: &str, granted: bool| {
            let window = RemoteAccess { read: remote.contains('R'), write: remote.contains('W') };
            proof.verify(id, || assert_eq!(window.may_be_bound_to(access(local, "")), granted, "{local}/{remote}"));
        };
        cell(requirement!("VERBS-7.10.2-43"), "R", "W", false);
        cell(requirement!("VERBS-7.10.2-44"), "R", "R", true);
        cell(requirement!("VERBS-7.10.2-45"), "R", "RW", false);
        cell(requirement!("VERBS-7.10.2-46"), "W", "W", true);
        cell(requirement!("VERBS-7.10.2-47"), "W", "R", false);
        cell(requirement!("VERBS-7.10.2-48"), "W", "RW", false);
    }

    #[test]
    fn figure_20_by_both_or_no_local_rights() {
        let mut proof = Coverage::new(CoverageKind::Test);
        let window = |remote: &str| RemoteAccess { read: remote.contains('R'), write: remote.contains('W') };
        let all = ["", "R", "W", "RW"];
        proof.verify(requirement!("VERBS-7.10.2-49"), || assert!(window("W").may_be_bound_to(access("RW", ""))));
        proof.verify(requirement!("VERBS-7.10.2-50"), || assert!(window("R").may_be_bound_to(access("RW", ""))));
        proof.verify(requirement!("VERBS-7.10.2-51"), || assert!(window("RW").may_be_bound_to(access("RW", ""))));
        proof.verify(requirement!("VERBS-7.10.2-52"), || {
            assert!(all.iter().all(|remote| !window(remote).may_be_bound_to(access("", "RW"))));
        });
        proof.verify(requirement!("VERBS-7.10.2-53"), || {
            assert!(all.iter().all(|local| !window("").may_be_bound_to(access(local, "RW"))));
        });
    }
}
