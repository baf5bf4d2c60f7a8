//! The IP addresses in requests. An address belongs to the agent's host, or to a peer to which the
//! agent connects. A link-local address needs a network interface of the agent's host, so it also
//! contains the name or number of this interface.

use std::fmt;
use std::net::{IpAddr, SocketAddr, SocketAddrV6, ToSocketAddrs};
use std::str::FromStr;

use serde::{Deserialize, Serialize};

use super::Failure;

/// Maximum length of an interface's name in bytes (`IFNAMSIZ` without the final zero).
const LONGEST_ZONE: usize = 15;

/// An IP address. After an IPv6 address, the name or number of an interface of the agent's host can
/// follow: `fe80::1%eth0`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Address {
    ip: IpAddr,
    zone: Option<String>,
}

/// The text is not a valid [`Address`].
#[derive(Debug, thiserror::Error)]
#[error("{0:?} is not a valid IP address")]
pub struct InvalidAddress(String);

impl Address {
    /// Returns the socket address with this port. Only the agent calls this function, because the
    /// interface belongs to the agent's host.
    ///
    /// # Errors
    /// Fails if the host has no interface with this name.
    pub fn at(&self, port: u16) -> Result<SocketAddr, Failure> {
        let (IpAddr::V6(ip), Some(zone)) = (self.ip, &self.zone) else { return Ok(SocketAddr::new(self.ip, port)) };
        if let Ok(number) = zone.parse() {
            return Ok(SocketAddrV6::new(ip, port, 0, number).into());
        }
        // The resolver knows the names of interfaces. For a numeric address, the resolver sends no
        // query.
        let found = (self.to_string(), port).to_socket_addrs().ok().and_then(|mut found| found.next());
        found.ok_or_else(|| Failure::of(format!("{self}: this host has no interface {zone}")))
    }
}

impl From<IpAddr> for Address {
    fn from(ip: IpAddr) -> Self {
        Address { ip, zone: None }
    }
}

/// Keeps the number of the interface. This number must belong to an interface of the agent's host.
impl From<SocketAddr> for Address {
    fn from(socket: SocketAddr) -> Self {
        let zone = match socket {
            SocketAddr::V6(socket) if socket.scope_id() != 0 => Some(socket.scope_id().to_string()),
            _ => None,
        };
        Address { ip: socket.ip(), zone }
    }
}

impl FromStr for Address {
    type Err = InvalidAddress;

    fn from_str(text: &str) -> Result<Self, InvalidAddress> {
        let wrong = || InvalidAddress(text.to_owned());
        let (ip, zone) = text.split_once('%').map_or((text, None), |(ip, zone)| (ip, Some(zone)));
        let ip: IpAddr = ip.parse().map_err(|_| wrong())?;
        let is_name =
            |zone: &str| (1..=LONGEST_ZONE).contains(&zone.len()) && zone.bytes().all(|octet| octet.is_ascii_graphic());
        if zone.is_some_and(|zone| ip.is_ipv4() || !is_name(zone)) {
            return Err(wrong());
        }
        Ok(Address { ip, zone: zone.map(str::to_owned) })
    }
}

impl TryFrom<String> for Address {
    type Error = InvalidAddress;

    fn try_from(text: String) -> Result<Self, InvalidAddress> {
        text.parse()
    }
}

impl From<Address> for String {
    fn from(address: Address) -> Self {
        address.to_string()
    }
}

impl fmt::Display for Address {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.zone {
            None => self.ip.fmt(f),
            Some(zone) => write!(f, "{}%{zone}", self.ip),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(text: &str) -> Address {
        text.parse().unwrap()
    }

    #[test]
    fn a_link_local_address_names_its_interface_by_name_or_number() {
        for text in ["192.0.2.17", "::1", "fe80::1%eth0", "fe80::1%7"] {
            assert_eq!(address(text).to_string(), text);
        }
        let scope = |text| match address(text).at(7174).unwrap() {
            SocketAddr::V6(socket) => socket.scope_id(),
            SocketAddr::V4(_) => panic!("{text}"),
        };
        // The loopback interface has number 1 in each network namespace.
        assert_eq!([scope("fe80::1%7"), scope("fe80::1%lo"), scope("fe80::1")], [7, 1, 0]);
        let failure = address("fe80::1%none0").at(1).unwrap_err();
        assert_eq!(failure.what, "fe80::1%none0: this host has no interface none0");
        assert_eq!(Address::from(SocketAddr::V6(SocketAddrV6::new(1.into(), 9, 0, 3))).to_string(), "::1%3");
    }

    #[test]
    fn what_is_none_is_refused() {
        for text in ["", "x", "%eth0", "fe80::1%", "192.0.2.17%eth0", "fe80::1%a b", "fe80::1%abcdefghijklmnop"] {
            assert!(text.parse::<Address>().is_err(), "{text}");
        }
    }
}
