//! [`Names`]: names of IP addresses, from a hosts file and from a pcapng capture.

use std::collections::BTreeMap;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use weft_core::text::visible_in_line;

/// Maximum number of names. Further names are dropped.
const MAX_NAMES: usize = 1 << 16;
/// Maximum length of a name in characters (RFC 1035 section 2.3.4). The rest is dropped.
const LONGEST: usize = 255;

/// Names of IP addresses. Clones share the names.
#[derive(Debug, Clone, Default)]
pub struct Names(Arc<Mutex<BTreeMap<IpAddr, String>>>);

impl Names {
    fn stored(&self) -> MutexGuard<'_, BTreeMap<IpAddr, String>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Stores a name. If the address already has a name, this name stays. Control characters in the
    /// name are escaped.
    pub fn add(&self, address: IpAddr, name: &str) {
        let name: String = name.chars().take(LONGEST).collect();
        let mut stored = self.stored();
        if !name.is_empty() && stored.len() < MAX_NAMES {
            stored.entry(address).or_insert_with(|| visible_in_line(&name).into_owned());
        }
    }

    /// Number of names.
    #[must_use]
    pub fn count(&self) -> usize {
        self.stored().len()
    }

    /// Stores the names of a hosts file. Each line has an address and its names. The first name
    /// counts. `#` starts a comment.
    ///
    /// # Errors
    /// A line does not start with an IP address, or has no name. The error is the number of the
    /// line.
    pub fn add_hosts(&self, text: &str) -> Result<(), usize> {
        for (line, number) in text.lines().zip(1..) {
            let mut words = line.split('#').next().unwrap_or_default().split_whitespace();
            let Some(address) = words.next() else { continue };
            // A zone (`fe80::1%lo0`) is not part of the address on the wire.
            let address = address.split('%').next().unwrap_or_default();
            match (address.parse(), words.next()) {
                (Ok(address), Some(name)) => self.add(address, name),
                _ => return Err(number),
            }
        }
        Ok(())
    }

    /// The name of the address; the address itself if it has no name.
    #[must_use]
    pub fn address(&self, address: IpAddr) -> String {
        self.stored().get(&address).cloned().unwrap_or_else(|| address.to_string())
    }

    /// The name of the address, and the port; the address and the port if the address has no name.
    #[must_use]
    pub fn endpoint(&self, end: SocketAddr) -> String {
        match self.stored().get(&end.ip()) {
            Some(name) => format!("{name}:{}", end.port()),
            None => end.to_string(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_a_hosts_file() {
        let names = Names::default();
        let text =
            "# lab\n10.0.0.1 server server.example # rack 3\n\nfe80::1%lo0 local\nfd00::1\tclient\n10.0.0.1 other\n";
        assert_eq!(names.add_hosts(text), Ok(()));
        let address = |text: &str| names.address(text.parse().unwrap());
        assert_eq!([address("10.0.0.1"), address("fd00::1"), address("10.0.0.2")], ["server", "client", "10.0.0.2"]);
        assert_eq!(names.endpoint("10.0.0.1:4420".parse().unwrap()), "server:4420");
        assert_eq!(names.endpoint("[fd00::2]:1".parse().unwrap()), "[fd00::2]:1");
        for wrong in ["10.0.0.1 a\nserver 10.0.0.1\n", "\n10.0.0.9\n"] {
            assert_eq!(names.add_hosts(wrong), Err(2), "{wrong}");
        }
    }

    #[test]
    fn names_cannot_control_the_terminal() {
        let names = Names::default();
        let address = IpAddr::from([10, 0, 0, 1]);
        names.add(address, "a\u{1b}[2J\nb");
        assert_eq!(names.address(address), "a\\x1b[2J\\x0ab");
    }
}
