//! The tester's own TCP on a network interface: the `[wire]` table of a target file.

use std::io;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::OwnedFd;
use std::path::Path;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use weft_capture::{Live, Next, Settings};
use weft_dissector::link_type::ETHERNET;
use weft_peer::driver::{EthernetInterface, WeakWireStack, WireAddress, WireStack};

use super::WireTable;
use super::open_error::OpenError;

/// Type of the loopback interface in `/sys/class/net/NAME/type` (ARPHRD_LOOPBACK).
const LOOPBACK_TYPE: &str = "772";
/// The MTU of an interface whose MTU cannot be read.
const DEFAULT_MTU: usize = 1500;
/// Size in MiB of the kernel's buffer for received frames.
const BUFFER_MIB: u32 = 8;

/// The tester's own TCP. It is open during a run, and all cases share it.
#[derive(Debug)]
pub(crate) struct Wire {
    interface: String,
    address: WireAddress,
    /// Two open TCPs with the same address would reset each other's connections.
    open: Mutex<WeakWireStack>,
}

impl Wire {
    /// Reads the table of a target file. The error text names the fault.
    pub(super) fn read(table: &WireTable) -> Result<Self, String> {
        if table.interface.is_empty() || table.interface.contains('/') {
            return Err(format!(
                "wire.interface = {:?}: expected the name of an Ethernet interface, for example eth1",
                table.interface
            ));
        }
        if is_loopback(&table.interface) {
            return Err(format!("wire.interface: {}", loopback(&table.interface)));
        }
        let address = WireAddress::parse(&table.address, table.gateway).map_err(|error| format!("wire: {error}"))?;
        Ok(Wire { interface: table.interface.clone(), address, open: Mutex::default() })
    }

    /// Returns the interface.
    pub(super) fn interface(&self) -> &str {
        &self.interface
    }

    /// Returns the IP address of the tester.
    pub(super) fn ip(&self) -> IpAddr {
        self.address.ip()
    }

    /// Returns the open TCP, or opens the interface.
    pub(super) fn open(&self, target: SocketAddr) -> Result<WireStack, OpenError> {
        let mut open = self.open.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(stack) = open.upgrade() {
            return Ok(stack);
        }
        let failed = OpenError::Wire;
        self.check(target).map_err(failed)?;
        let interface = Box::new(LiveInterface::open(&self.interface, self.address.ethernet()).map_err(failed)?);
        let opened = WireStack::open(interface, self.address);
        let stack = opened.map_err(|error| failed(format!("{}: {error}", self.interface)))?;
        *open = stack.downgrade();
        Ok(stack)
    }

    /// Returns the TCP if it is open.
    pub(super) fn opened(&self) -> Option<WireStack> {
        self.open.lock().unwrap_or_else(PoisonError::into_inner).upgrade()
    }

    /// Checks the addresses of the tester and of the target.
    fn check(&self, target: SocketAddr) -> Result<(), String> {
        let own = self.address.ip();
        let (target, interface) = (target.ip(), &self.interface);
        if is_loopback(interface) {
            return Err(loopback(interface));
        }
        if target == own {
            return Err(format!("{own} is the address of the target; in [wire], name an address that no host uses"));
        }
        let interfaces = weft_capture::interfaces().unwrap_or_default();
        if let Some(user) = interfaces.iter().find(|interface| interface.addresses.contains(&own)) {
            return Err(format!(
                "{own} is an address of this machine, on {}; in [wire], name an address that no host uses",
                user.name
            ));
        }
        if !self.address.reaches(target) {
            return Err(format!(
                "{target} is not in the subnet of {own}; in [wire], name an address in the subnet of the target, \
                 or a gateway"
            ));
        }
        Ok(())
    }
}

fn is_loopback(interface: &str) -> bool {
    interface == "lo" || property(interface, "type").is_some_and(|kind| kind == LOOPBACK_TYPE)
}

/// Returns why the loopback interface cannot be used.
fn loopback(interface: &str) -> String {
    format!(
        "{interface} is a loopback interface, and the kernel discards packets on it that its own TCP did not send; \
         name an Ethernet interface, for example one side of a veth pair"
    )
}

/// Returns a property of an interface that the kernel shows as a file.
fn property(interface: &str, name: &str) -> Option<String> {
    let text = std::fs::read_to_string(Path::new("/sys/class/net").join(interface).join(name)).ok()?;
    Some(text.trim().to_owned())
}

/// A network interface, through libpcap.
#[derive(Debug)]
struct LiveInterface {
    live: Live,
    mtu: usize,
}

impl LiveInterface {
    /// Opens an interface, to receive frames to the Ethernet address `own` and to all hosts.
    fn open(interface: &str, own: [u8; 6]) -> Result<Self, String> {
        let own = own.map(|octet| format!("{octet:02x}")).join(":");
        let settings = Settings {
            filter: Some(format!("ether dst {own} or ether broadcast or ether multicast")),
            buffer_mib: BUFFER_MIB,
            batch: Duration::ZERO,
            is_inbound_only: true,
            is_immediate: true,
            ..Settings::new(interface)
        };
        let live = Live::open(&settings).map_err(|error| error.to_string())?;
        if live.link_type() != ETHERNET {
            return Err(format!(
                "{interface} has frames of link type {}, but the tester's own TCP needs Ethernet frames",
                live.link_type()
            ));
        }
        let mtu = property(interface, "mtu").and_then(|mtu| mtu.parse().ok()).unwrap_or(DEFAULT_MTU);
        Ok(LiveInterface { live, mtu })
    }
}

impl EthernetInterface for LiveInterface {
    fn receive(&mut self) -> io::Result<Option<Vec<u8>>> {
        match self.live.next_frame() {
            Next::Packet(packet) => Ok(Some(packet.octets.to_vec())),
            Next::Idle => Ok(None),
            Next::Over(why) => Err(io::Error::other(why)),
        }
    }

    fn send(&mut self, frame: &[u8]) -> io::Result<()> {
        self.live.send(frame).map_err(io::Error::other)
    }

    fn mtu(&self) -> usize {
        self.mtu
    }

    fn descriptor(&self) -> io::Result<OwnedFd> {
        self.live.descriptor()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wire(interface: &str, address: &str) -> Result<Wire, String> {
        Wire::read(&WireTable { interface: interface.into(), address: address.into(), gateway: None })
    }

    #[test]
    fn names_the_fault_of_a_table() {
        for (interface, address, word) in [
            ("", "192.0.2.9/24", "wire.interface"),
            ("../eth1", "192.0.2.9/24", "wire.interface"),
            ("lo", "192.0.2.9/24", "loopback"),
            ("eth1", "192.0.2.9", "for example 192.0.2.9/24"),
            ("eth1", "192.0.2.255/24", "not the address of a host"),
        ] {
            let error = wire(interface, address).unwrap_err();
            assert!(error.contains(word), "{error}");
        }
    }

    #[test]
    fn names_an_address_that_cannot_be_used() {
        let check = |address: &str, target: &str| {
            wire("weft-none0", address).unwrap().check(target.parse().unwrap()).unwrap_err()
        };
        assert!(check("192.0.2.17/24", "192.0.2.17:7174").contains("is the address of the target"));
        assert!(check("192.0.2.9/24", "198.51.100.1:7174").contains("or a gateway"));
    }

    #[tokio::test]
    async fn names_an_interface_that_does_not_exist() {
        let error = wire("weft-none0", "192.0.2.9/24").unwrap().open("192.0.2.17:7174".parse().unwrap()).unwrap_err();
        let text = error.to_string();
        // Without the right to capture, libpcap can report this first.
        let words = ["there is no such interface", "setcap", "built without libpcap"];
        assert!(text.starts_with("cannot start the tester's own TCP: "), "{text}");
        assert!(words.iter().any(|word| text.contains(word)), "{text}");
    }
}
