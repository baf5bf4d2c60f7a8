//! Giving up what opening an interface needed, so that hostile octets meet a program that may do
//! little.

use std::io;

/// What [`drop_all`] did.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dropped {
    /// There was nothing to give up.
    Nothing,
    /// The process is the user's again who called sudo.
    Root {
        /// That user's number.
        user: u32,
    },
    /// The process keeps its user and has no capability any more.
    Capabilities,
}

/// Gives up root where sudo gave it (the user becomes the one who called it, with that user's first
/// group and no other), and every capability otherwise. Root without sudo stays root by number:
/// what root owns it may still read and write, and nothing more.
///
/// Linux keeps both for each thread: call it before there is a second one. Elsewhere it does
/// nothing.
///
/// # Errors
/// The kernel refuses: then something may be left, and the process should end.
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
        // Every capability goes with the last of the user's three numbers that was root's:
        // capabilities(7).
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

    /// The kernel's state of the calling thread.
    fn status(field: &str) -> String {
        let text = std::fs::read_to_string("/proc/thread-self/status").unwrap_or_default();
        let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
        line.split_whitespace().collect::<Vec<_>>().join(" ")
    }

    // Each in a thread of its own, since dropped privileges do not come back.

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
                println!("not root: sudo's numbers mean nothing");
                assert!(!matches!(done, Ok(Dropped::Root { .. })));
                assert_eq!(status("Uid:"), was);
                return;
            }
            match done {
                Ok(dropped) => assert_eq!(dropped, Dropped::Root { user: 65_534 }),
                Err(error) => {
                    // Root of a user namespace that has no such user.
                    println!("not possible here: {error}");
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
