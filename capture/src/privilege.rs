//! Drops the privileges that opening an interface needs. If a hostile frame then exploits a bug in
//! the program, the attacker gets no privileges.

use std::io;

/// The privileges that [`drop_all`] dropped.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// The process had no privileges to drop.
    Nothing,
    /// The process was root because of sudo. It now runs as the user who called sudo.
    Root {
        /// User number (UID) of the user who called sudo.
        user: u32,
    },
    /// The process keeps its user but has no capabilities any more.
    Capabilities,
}

/// Drops all privileges of the process.
///
/// If sudo made the process root, the process changes to the user who called sudo, with the primary
/// group of that user and no other group. Otherwise the process drops all capabilities. If the
/// process is root without sudo, it keeps user number 0. Then it can still read and write files
/// that root owns, but has no other privileges.
///
/// On Linux, users and capabilities belong to a thread, and this function changes only the calling
/// thread. So call it before the process starts a second thread. On other systems, this function
/// does nothing.
///
/// # Errors
/// Returns an error if the kernel rejects a change. In this case, the process possibly still has
/// privileges, and should exit.
pub fn drop_all() -> io::Result<Dropped> {
    let number = |name| std::env::var(name).ok()?.parse::<u32>().ok().filter(|number| *number != 0);
    drop_for(number("SUDO_UID").zip(number("SUDO_GID")))
}

#[cfg(target_os = "linux")]
fn drop_for(sudo: Option<(u32, u32)>) -> io::Result<Dropped> {
    use rustix::process::{Gid, Uid, geteuid};
    use rustix::thread::{
        CapabilitySet, CapabilitySets, capabilities, set_capabilities, set_thread_groups, set_thread_res_gid,
        set_thread_res_uid,
    };
    if let Some((user, group)) = sudo.filter(|_| geteuid().is_root()) {
        let (uid, gid) = (Uid::from_raw(user), Gid::from_raw(group));
        set_thread_groups(&[gid])?;
        set_thread_res_gid(gid, gid, gid)?;
        // When the real, effective and saved user numbers all change from 0 to other numbers, the
        // kernel clears all capabilities (see capabilities(7)).
        set_thread_res_uid(uid, uid, uid)?;
        return Ok(Dropped::Root { user });
    }
    if capabilities(None)?.permitted.is_empty() {
        return Ok(Dropped::Nothing);
    }
    let none = CapabilitySet::empty();
    set_capabilities(None, CapabilitySets { effective: none, permitted: none, inheritable: none })?;
    Ok(Dropped::Capabilities)
}

#[cfg(not(target_os = "linux"))]
fn drop_for(_: Option<(u32, u32)>) -> io::Result<Dropped> {
    Ok(Dropped::Nothing)
}

#[cfg(all(test, target_os = "linux"))]
mod tests {
    use super::*;

    /// Returns the field `field` in the status that the kernel reports for the calling thread.
    fn status(field: &str) -> String {
        let text = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    // Each test uses a new thread, because a thread cannot get dropped privileges back.

    #[test]
    fn nothing_is_left_of_capabilities() {
        std::thread::spawn(|| {
            let had = status("CapPrm:") != "0000000000000000";
            assert_eq!(drop_for(None).unwrap(), if had { Dropped::Capabilities } else { Dropped::Nothing });
            assert_eq!((status("CapPrm:"), status("CapEff:")), ("0".repeat(16), "0".repeat(16)));
            assert_eq!(drop_for(None).unwrap(), Dropped::Nothing);
        })
        .join()
        .unwrap();
    }

    #[test]
    fn who_called_sudo_is_who_it_was() {
        std::thread::spawn(|| {
            let was = status("Uid:");
            let done = drop_for(Some((65_534, 65_533)));
            if was != "0 0 0 0" {
                println!("not tested: only root can change its user");
                assert!(!matches!(done, Ok(Dropped::Root { .. })));
                assert_eq!(status("Uid:"), was);
                return;
            }
            match done {
                Ok(dropped) => assert_eq!(dropped, Dropped::Root { user: 65_534 }),
                Err(error) => {
                    // The process is root in a user namespace that has no such user.
                    println!("not tested: this user namespace has no such user: {error}");
                    return;
                }
            }
            assert_eq!(
                (status("Uid:"), status("Gid:")),
                ("65534 ".repeat(4).trim().to_owned(), "65533 ".repeat(4).trim().to_owned())
            );
            assert_eq!((status("Groups:"), status("CapPrm:")), ("65533".to_owned(), "0".repeat(16)));
        })
        .join()
        .unwrap();
    }
}
