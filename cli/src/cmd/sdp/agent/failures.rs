//! Errors of connections of programs that do not block. The kernel reports a reset to such a
//! program; the shim gets the error to report instead from here.

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

use super::Refusal;

/// The maximum number of failures, and how long they are kept. A program queries at once.
const MOST: usize = 4096;
const KEPT: Duration = Duration::from_secs(60);

/// The newest failures, by the program's end of the connection.
#[derive(Debug, Default)]
pub(super) struct Failures(Mutex<VecDeque<(SocketAddr, Instant, Refusal)>>);

impl Failures {
    /// A new connection starts at this end: an older failure does not belong to it.
    pub(super) fn forget(&self, from: SocketAddr) {
        self.with(|failures| failures.retain(|(known, since, _)| *known != from && since.elapsed() < KEPT));
    }

    pub(super) fn insert(&self, from: SocketAddr, why: Refusal) {
        self.with(|failures| {
            if failures.len() >= MOST {
                failures.pop_front();
            }
            failures.push_back((from, Instant::now(), why));
        });
    }

    pub(super) fn find(&self, from: SocketAddr) -> Option<Refusal> {
        self.with(|failures| {
            let newest = failures.iter().rev().find(|(known, since, _)| *known == from && since.elapsed() < KEPT);
            newest.map(|(.., why)| why.clone())
        })
    }

    fn with<T>(&self, what: impl FnOnce(&mut VecDeque<(SocketAddr, Instant, Refusal)>) -> T) -> T {
        what(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
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
