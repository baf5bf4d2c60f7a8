//! The port mapper message (section 7.3 of the SDP draft, Figure 17). The port mapper daemon of
//! Linux appends an extension to its Requests. This module also describes the extension.
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---+---+-------+---------------+-------------------------------+
//! |Ver| MT|  IPV  |     PmTime    |            Reserved           |
//! +---+---+-------+---------------+-------------------------------+
//! |             ApPort            |             CpPort            |
//! +-------------------------------+-------------------------------+
//! |                     AssocHandle (64 bits)                     |
//! +---------------------------------------------------------------+
//! |         CpIPAddr (128 bits; IPv4: the first 32 count)         |
//! +---------------------------------------------------------------+
//! |         ApIPAddr (128 bits; IPv4: the first 32 count)         |
//! +---------------------------------------------------------------+
//! |    mapped address of the connecting side (128 bits)           |  Requests of the Linux daemon only
//! +---------------------------------------------------------------+
//! ```
//!
//! The Linux daemon also replaces (maps) the address and port of the connecting side. Its Requests
//! have 64 octets, with the mapped port in Reserved. [`Message::parse`] reads both lengths.
//! [`Message::emit`] writes 64 octets if [`Message::mapped`] is set in a Request.

use core::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use zerocopy::network_endian::{U16, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::PmTime;
use crate::RequirementId;
use crate::error::{Found, Layer, WireError};
use crate::requirement;
use crate::wire::open_enum::open_enum;

open_enum! {
    /// MT, two bits.
    MessageType(u8), debug "{:#x} ({})", otherwise "reserved" {
        /// The client requests an SDP Address (IP address and TCP port).
        PM_REQ = 0 => "PMReq",
        /// The server returns the SDP Address.
        PM_ACCEPT = 1 => "PMAccept",
        /// The client acknowledges the PMAccept.
        PM_ACK = 2 => "PMAck",
        /// The server rejects the request.
        PM_DENY = 3 => "PMDeny",
    }
}

/// Raw view of the message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawMessage {
    /// Octet 0: Ver in the two highest bits, MT in the next two, IPV in the low nibble.
    pub ver_mt_ipv: u8,
    /// Octet 1.
    pub pm_time: u8,
    /// Octets 2 and 3: zero when sent, not checked when received.
    pub reserved: U16,
    /// Octets 4 and 5.
    pub ap_port: U16,
    /// Octets 6 and 7.
    pub cp_port: U16,
    /// Octets 8 to 15.
    pub assoc_handle: U64,
    /// Octets 16 to 31.
    pub cp_ip_addr: [u8; 16],
    /// Octets 32 to 47.
    pub ap_ip_addr: [u8; 16],
}

impl RawMessage {
    /// Length of the message in octets, without the extension of the Linux daemon.
    pub const LEN: usize = 48;

    /// Combines three fields into octet 0. Each field is cut to its width.
    #[must_use]
    pub const fn first_octet(ver: u8, mt: MessageType, ipv: u8) -> u8 {
        ver << 6 | (mt.0 & 3) << 4 | ipv & 0xf
    }

    /// Ver, 0 to 3.
    #[must_use]
    pub const fn ver(&self) -> u8 {
        self.ver_mt_ipv >> 6
    }

    /// MT.
    #[must_use]
    pub const fn mt(&self) -> MessageType {
        MessageType(self.ver_mt_ipv >> 4 & 3)
    }

    /// IPV, 0 to 15.
    #[must_use]
    pub const fn ipv(&self) -> u8 {
        self.ver_mt_ipv & 0xf
    }
}

/// Raw view of the octets that the Linux daemon appends to a Request.
#[derive(Debug, Clone, Copy, PartialEq, Eq, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
pub struct RawMapped {
    /// Octets 48 to 63: mapped address of the connecting side.
    pub ip_addr: [u8; 16],
}

impl RawMapped {
    /// Length of the extension in octets.
    pub const LEN: usize = 16;
}

/// CpIPAddr and ApIPAddr, both of the address family that IPV names.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Addresses {
    /// IPV 4.
    V4 {
        /// CpIPAddr.
        connecting: Ipv4Addr,
        /// ApIPAddr.
        accepting: Ipv4Addr,
    },
    /// IPV 6.
    V6 {
        /// CpIPAddr.
        connecting: Ipv6Addr,
        /// ApIPAddr.
        accepting: Ipv6Addr,
    },
}

impl Addresses {
    /// IPV.
    #[must_use]
    pub const fn ipv(&self) -> u8 {
        match self {
            Addresses::V4 { .. } => 4,
            Addresses::V6 { .. } => 6,
        }
    }

    /// CpIPAddr.
    #[must_use]
    pub const fn connecting(&self) -> IpAddr {
        match *self {
            Addresses::V4 { connecting, .. } => IpAddr::V4(connecting),
            Addresses::V6 { connecting, .. } => IpAddr::V6(connecting),
        }
    }

    /// ApIPAddr.
    #[must_use]
    pub const fn accepting(&self) -> IpAddr {
        match *self {
            Addresses::V4 { accepting, .. } => IpAddr::V4(accepting),
            Addresses::V6 { accepting, .. } => IpAddr::V6(accepting),
        }
    }

    /// Returns `self` with ApIPAddr replaced by `address`. If the address families differ, returns
    /// `self` unchanged.
    #[must_use]
    pub const fn with_accepting(self, address: IpAddr) -> Self {
        match (self, address) {
            (Addresses::V4 { connecting, .. }, IpAddr::V4(accepting)) => Addresses::V4 { connecting, accepting },
            (Addresses::V6 { connecting, .. }, IpAddr::V6(accepting)) => Addresses::V6 { connecting, accepting },
            _ => self,
        }
    }
}

/// The address and port from which the connecting side will connect. The Linux daemon of that side
/// has chosen them as a replacement for the address and port of the application.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mapped {
    /// Mapped TCP port, sent in Reserved.
    pub port: u16,
    /// Mapped address, octets 48 to 63. For IPv4 only the first four octets count.
    pub ip_addr: [u8; 16],
}

/// A valid message.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Message {
    /// MT.
    pub message_type: MessageType,
    /// PmTime. The draft allows a value other than 0 only in PMAccept, but the Linux daemon copies
    /// the value of the request into every answer.
    pub pm_time: PmTime,
    /// ApPort: the requested port (PMReq), or the SDP listen port (PMAccept, PMAck). In PMDeny the
    /// field has no meaning.
    pub ap_port: u16,
    /// CpPort: the connecting side's TCP port.
    pub cp_port: u16,
    /// AssocHandle: chosen by the client. The server copies this handle into its answers.
    pub assoc_handle: u64,
    /// CpIPAddr, ApIPAddr and IPV.
    pub addresses: Addresses,
    /// Mapped address and port of the connecting side; only in a PMReq of the Linux daemon.
    pub mapped: Option<Mapped>,
}

impl Message {
    /// Reads one datagram. Does not check Reserved, or the octets after an IPv4 address.
    ///
    /// # Errors
    /// The length is not 48 octets (a PMReq can also have 64 octets), Ver is not 0, or IPV is
    /// neither 4 nor 6.
    pub fn parse(octets: &[u8]) -> Result<Self, WireError> {
        let wrong = |field, expected, found, requirement: RequirementId| WireError {
            layer: Layer::SdpPm,
            field,
            offset: 0,
            expected,
            found,
            requirement: Some(requirement),
        };
        let length = || wrong("message", "48 octets", Found::Octets(octets.len()), requirement!("PM-7.3-1"));
        let (raw, rest) = RawMessage::ref_from_prefix(octets).map_err(|_| length())?;
        let mapped = match rest {
            [] => None,
            _ if raw.mt() == MessageType::PM_REQ => {
                let tail = RawMapped::ref_from_bytes(rest).map_err(|_| length())?;
                Some(Mapped { port: raw.reserved.get(), ip_addr: tail.ip_addr })
            }
            _ => return Err(length()),
        };
        if raw.ver() != 0 {
            return Err(wrong("Ver", "0", Found::Value(u64::from(raw.ver())), requirement!("PM-7.3.1.1-1")));
        }
        let addresses = match raw.ipv() {
            4 => Addresses::V4 { connecting: first_four(&raw.cp_ip_addr), accepting: first_four(&raw.ap_ip_addr) },
            6 => Addresses::V6 { connecting: raw.cp_ip_addr.into(), accepting: raw.ap_ip_addr.into() },
            other => {
                return Err(wrong("IPV", "4 or 6", Found::Value(u64::from(other)), requirement!("PM-7.3.1.3-5")));
            }
        };
        Ok(Message {
            message_type: raw.mt(),
            pm_time: PmTime(raw.pm_time),
            ap_port: raw.ap_port.get(),
            cp_port: raw.cp_port.get(),
            assoc_handle: raw.assoc_handle.get(),
            addresses,
            mapped,
        })
    }

    /// The raw message of 48 octets. Reserved is the mapped port in a PMReq with `mapped`,
    /// otherwise zero.
    #[must_use]
    pub fn to_raw(&self) -> RawMessage {
        let (cp_ip_addr, ap_ip_addr) = match self.addresses {
            Addresses::V4 { connecting, accepting } => (padded(connecting), padded(accepting)),
            Addresses::V6 { connecting, accepting } => (connecting.octets(), accepting.octets()),
        };
        RawMessage {
            ver_mt_ipv: RawMessage::first_octet(0, self.message_type, self.addresses.ipv()),
            pm_time: self.pm_time.0,
            reserved: U16::new(self.mapped_of_request().map_or(0, |mapped| mapped.port)),
            ap_port: U16::new(self.ap_port),
            cp_port: U16::new(self.cp_port),
            assoc_handle: U64::new(self.assoc_handle),
            cp_ip_addr,
            ap_ip_addr,
        }
    }

    /// Appends the datagram to `out`: 64 octets for a PMReq with `mapped`, otherwise 48 octets.
    pub fn emit(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.to_raw().as_bytes());
        if let Some(mapped) = self.mapped_of_request() {
            out.extend_from_slice(&mapped.ip_addr);
        }
    }

    fn mapped_of_request(&self) -> Option<Mapped> {
        self.mapped.filter(|_| self.message_type == MessageType::PM_REQ)
    }
}

/// The IPv4 address in the first four octets of an address field.
fn first_four(field: &[u8; 16]) -> Ipv4Addr {
    let [a, b, c, d, ..] = *field;
    Ipv4Addr::new(a, b, c, d)
}

/// An address field that contains an IPv4 address and then 96 zero bits (PM-7.3.1.3-2).
fn padded(address: Ipv4Addr) -> [u8; 16] {
    let mut field = [0; 16];
    field[..4].copy_from_slice(&address.octets());
    field
}

#[cfg(test)]
mod tests;
