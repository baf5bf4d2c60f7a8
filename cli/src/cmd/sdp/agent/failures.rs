//! Stores why the agent reset connections of programs with non-blocking sockets. The kernel reports
//! only a reset to the program. The shim (the preload library) queries the real error here, and
//! reports this error instead of the reset.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::Mutex;
use std::time::{Duration, Instant};

use super::Refusal;
use crate::lock::locked;

/// Maximum number of stored failures.
const MAX_FAILURES: usize = 4096;
/// How long a failure is stored. The shim usually queries the failure immediately.
const TIME_TO_LIVE: Duration = Duration::from_secs(60);

/// The newest failures, each with the address of the program's socket.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<VecDeque<(SocketAddr, Instant, Refusal)>>);

impl Failures {
    /// Removes an older failure of this address, because a new connection uses the address. Also
    /// removes expired failures.
    pub(super) fn forget(&self, from: SocketAddr) {
        self.with(|failures| failures.retain(|(known, since, _)| *known != from && since.elapsed() < TIME_TO_LIVE));
    }

    pub(super) fn insert(&self, from: SocketAddr, why: Refusal) {
        self.with(|failures| {
            if failures.len() >= MAX_FAILURES {
                failures.pop_front();
            }
            failures.push_back((from, Instant::now(), why));
        });
    }

    pub(super) fn find(&self, from: SocketAddr) -> Option<Refusal> {
        self.with(|failures| {
            let newest =
                failures.iter().rev().find(|(known, since, _)| *known == from && since.elapsed() < TIME_TO_LIVE);
            newest.map(|(.., why)| why.clone())
        })
    }

    fn with<T>(&self, what: impl FnOnce(&mut VecDeque<(SocketAddr, Instant, Refusal)>) -> T) -> T {
        what(&mut locked(&self.0))
    }
}

#[cfg(test)]
mod tests {
    use weft_peer::shim::Failure;

    use super::*;

    #[test]
    fn the_newest_failures_are_kept() {
        let (failures, at) = (Failures::default(), |port| SocketAddr::from(([127, 0, 0, 1], port)));
        for port in 1..=5000 {
            failures.insert(at(port), (Failure::Refused, port.to_string()));
        }
        assert_eq!(failures.find(at(5000 - 4096)), None);
        assert_eq!(failures.find(at(5000 - 4095)).unwrap().1, "905");
        failures.insert(at(5000), (Failure::TimedOut, "again".to_owned()));
        assert_eq!(failures.find(at(5000)).unwrap(), (Failure::TimedOut, "again".to_owned()));
        failures.forget(at(5000));
        assert_eq!(failures.find(at(5000)), None);
    }
}
