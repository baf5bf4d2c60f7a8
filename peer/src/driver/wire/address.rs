//! The addresses of the tester's own TCP.

use std::net::{IpAddr, Ipv6Addr};

use smoltcp::wire::{IpCidr, Ipv4Cidr};

/// The IP address of the tester's own TCP, with its subnet and its gateway.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WireAddress {
    ip: IpAddr,
    prefix: u8,
    gateway: Option<IpAddr>,
}

/// Why an address cannot be the address of the tester's own TCP.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum WireAddressError {
    /// The text is not an address with a prefix length.
    #[error("{0:?}: expected an IP address and the prefix length of its subnet, for example 192.0.2.9/24")]
    Syntax(String),
    /// The address is not an address of one host.
    #[error("{0} is not the address of a host")]
    NotAHost(IpAddr),
    /// The gateway is not in the subnet.
    #[error("the gateway {gateway} is not in the subnet of {ip}/{prefix}")]
    Gateway {
        /// The gateway.
        gateway: IpAddr,
        /// The address of the tester.
        ip: IpAddr,
        /// The prefix length of the subnet.
        prefix: u8,
    },
}

impl WireAddress {
    /// Parses `text`, an IP address and the prefix length of its subnet. Packets to other subnets
    /// go to the gateway.
    ///
    /// # Errors
    /// The text has another form, the address is not the address of a host, or the gateway is not
    /// in the subnet.
    pub fn parse(text: &str, gateway: Option<IpAddr>) -> Result<Self, WireAddressError> {
        let parts = text.split_once('/').and_then(|(ip, prefix)| Some((ip.parse().ok()?, prefix.parse().ok()?)));
        let (ip, prefix): (IpAddr, u8) = parts.ok_or_else(|| WireAddressError::Syntax(text.to_owned()))?;
        let longest = if ip.is_ipv4() { 32 } else { 128 };
        if prefix == 0 || prefix > longest {
            return Err(WireAddressError::Syntax(text.to_owned()));
        }
        let is_reserved = match ip {
            IpAddr::V4(ip) => {
                let subnet = Ipv4Cidr::new(ip, prefix);
                let is_first_or_last = subnet.network().address() == ip || subnet.broadcast() == Some(ip);
                ip.is_broadcast() || (prefix < 31 && is_first_or_last)
            }
            IpAddr::V6(_) => false,
        };
        if is_reserved || ip.is_unspecified() || ip.is_multicast() || ip.is_loopback() {
            return Err(WireAddressError::NotAHost(ip));
        }
        let address = WireAddress { ip, prefix, gateway };
        match gateway {
            Some(gateway) if gateway == ip || !address.cidr().contains_addr(&gateway.into()) => {
                Err(WireAddressError::Gateway { gateway, ip, prefix })
            }
            _ => Ok(address),
        }
    }

    /// Returns the IP address.
    #[must_use]
    pub fn ip(&self) -> IpAddr {
        self.ip
    }

    /// Returns the gateway.
    #[must_use]
    pub fn gateway(&self) -> Option<IpAddr> {
        self.gateway
    }

    /// Returns whether TCP can send packets to `target`: it is in the subnet, or there is a gateway.
    #[must_use]
    pub fn reaches(&self, target: IpAddr) -> bool {
        let is_same_family = target.is_ipv4() == self.ip.is_ipv4();
        is_same_family && (self.gateway.is_some() || self.cidr().contains_addr(&target.into()))
    }

    /// Returns the Ethernet address. It is not the address of the interface. So the operating system
    /// ignores frames to it, and does not forward their packets. It is the same in each run, because
    /// a target remembers the Ethernet address of an IP address.
    #[must_use]
    pub fn ethernet(&self) -> [u8; 6] {
        let [a, b, c, d] = match self.ip {
            IpAddr::V4(ip) => ip.octets(),
            IpAddr::V6(ip) => {
                let [.., a, b, c, d] = ip.octets();
                [a, b, c, d]
            }
        };
        // The bit 0x02 marks an address that no manufacturer has assigned.
        [0x02, 0x57, a, b, c, d]
    }

    pub(super) fn cidr(&self) -> IpCidr {
        IpCidr::new(self.ip.into(), self.prefix)
    }

    /// Returns the link-local address of an IPv6 host. A target may use its own link-local address
    /// to find the Ethernet address of the tester, and the answer must go to that address.
    pub(super) fn link_local(&self) -> Option<IpCidr> {
        let IpAddr::V6(ip) = self.ip else { return None };
        let [a, b, c, d, e, f] = self.ethernet();
        // RFC 4291, appendix A: the interface identifier of an Ethernet address.
        let own = Ipv6Addr::from([0xfe, 0x80, 0, 0, 0, 0, 0, 0, a ^ 0x02, b, c, 0xff, 0xfe, d, e, f]);
        (ip.segments()[0] & 0xffc0 != 0xfe80).then(|| IpCidr::new(own.into(), 64))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(text: &str, gateway: &str) -> Result<WireAddress, WireAddressError> {
        WireAddress::parse(text, (!gateway.is_empty()).then(|| gateway.parse().unwrap()))
    }

    #[test]
    fn reaches_its_subnet_and_all_hosts_with_a_gateway() {
        let near = parse("192.0.2.9/24", "").unwrap();
        let reached = |address: &WireAddress, target: &str| address.reaches(target.parse().unwrap());
        assert!(reached(&near, "192.0.2.17"));
        assert!(!reached(&near, "198.51.100.1") && !reached(&near, "2001:db8::1"));
        assert!(reached(&parse("192.0.2.9/24", "192.0.2.1").unwrap(), "198.51.100.1"));
    }

    #[test]
    fn the_ethernet_address_is_locally_administered() {
        assert_eq!(parse("192.0.2.9/24", "").unwrap().ethernet(), [0x02, 0x57, 192, 0, 2, 9]);
        let v6 = parse("2001:db8::9/64", "").unwrap();
        assert_eq!(v6.ethernet(), [0x02, 0x57, 0, 0, 0, 9]);
        assert_eq!(v6.link_local().unwrap().to_string(), "fe80::57:ff:fe00:9/64");
        assert_eq!(parse("fe80::9/64", "").unwrap().link_local(), None);
    }

    #[test]
    fn rejects_what_is_not_the_address_of_a_host() {
        for text in ["192.0.2.9", "192.0.2.9/33", "192.0.2.9/0", "nic/24", ""] {
            assert_eq!(parse(text, ""), Err(WireAddressError::Syntax(text.into())));
        }
        for text in ["192.0.2.0/24", "192.0.2.255/24", "127.0.0.1/8", "224.0.0.1/24", "0.0.0.0/8", "::1/128"] {
            assert!(matches!(parse(text, ""), Err(WireAddressError::NotAHost(_))), "{text}");
        }
        for gateway in ["198.51.100.1", "2001:db8::1", "192.0.2.9"] {
            assert!(matches!(parse("192.0.2.9/24", gateway), Err(WireAddressError::Gateway { .. })), "{gateway}");
        }
    }
}
