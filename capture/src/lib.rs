//! Captures frames from a network interface with libpcap, and sends frames.
//!
//! [`Live`] captures frames on an interface, and can also send frames on this interface.
//! [`interfaces`] lists the interfaces of this machine, and [`check_filter`] checks a capture
//! filter. [`privilege::drop_all`] drops the privileges that opening an interface needs. This crate
//! does not parse frames, does not write files, and does not decide when to stop.
//!
//! libpcap is the only system library that weft uses, and it is optional. If a build does not find
//! libpcap, or if the feature `live` is disabled, the crate has the same functions. In this case,
//! each function returns an error with the name of the package to install.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

#[cfg(all(feature = "live", libpcap))]
mod live;
#[cfg(not(all(feature = "live", libpcap)))]
#[path = "missing.rs"]
mod live;
pub mod privilege;

pub use live::{Live, check_filter, interfaces};

use std::net::IpAddr;
use std::time::Duration;

/// The default maximum number of bytes to capture of each frame. This is the default of tcpdump and
/// tshark, and longer than any frame.
pub const SNAP_LEN: u32 = 262_144;

/// Settings of a live capture.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Name of the interface in the operating system, for example `eth0`.
    pub interface: String,
    /// Capture filter in the language of pcap-filter(7). The kernel passes only frames that match
    /// the filter. `None` passes all frames.
    pub filter: Option<String>,
    /// The maximum number of bytes to capture of each frame, from 1 to [`SNAP_LEN`].
    pub snap_len: u32,
    /// Whether to also capture frames for other stations (promiscuous mode).
    pub promiscuous: bool,
    /// Size of the kernel's buffer in MiB, from 1 to 2047. If the buffer is full, the kernel drops
    /// frames and counts them.
    pub buffer_mib: u32,
    /// Maximum delay of a frame. The kernel can delay frames, to pass several frames at once. This
    /// value is also the maximum time for which [`Live::next_frame`] waits for a frame. The
    /// resolution is 1 ms.
    pub batch: Duration,
    /// Whether to capture only frames that the interface received, and no frames that it sent.
    pub is_inbound_only: bool,
    /// Whether the kernel passes each frame at once, instead of several frames together. This needs
    /// more processor time per frame.
    pub is_immediate: bool,
}

impl Settings {
    /// Makes settings that capture all complete frames on `interface`, in promiscuous mode and with
    /// a delay of at most 100 ms.
    #[must_use]
    pub fn new(interface: &str) -> Self {
        Settings {
            interface: interface.to_owned(),
            filter: None,
            snap_len: SNAP_LEN,
            promiscuous: true,
            buffer_mib: 32,
            batch: Duration::from_millis(100),
            is_inbound_only: false,
            is_immediate: false,
        }
    }
}

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// Time stamp of the kernel, in nanoseconds since 1970-01-01 UTC.
    pub time: u64,
    /// The captured bytes of the frame.
    pub octets: &'a [u8],
    /// Length of the frame on the wire in bytes, at least `octets.len()`.
    pub wire_len: u32,
}

/// The result of [`Live::next_frame`].
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A frame.
    Packet(Packet<'a>),
    /// There is no frame now, but more frames can follow.
    Idle,
    /// The capture has ended and no frame follows. Contains the reason.
    Over(String),
}

/// Counts of received and dropped frames since the capture began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// Number of frames that passed the filter.
    pub received: u64,
    /// Number of frames that passed the filter, but were dropped because the kernel's buffer was
    /// full.
    pub kernel: u64,
    /// Number of frames that the interface or its driver dropped before the filter.
    pub interface: u64,
}

/// An interface of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The name for [`Settings::interface`].
    pub name: String,
    /// A description, if the system has one.
    pub description: Option<String>,
    /// IP addresses of the interface.
    pub addresses: Vec<IpAddr>,
    /// Whether the interface is up.
    pub up: bool,
}

/// Why weft cannot capture on an interface.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// This weft was built without libpcap.
    #[error(
        "this weft was built without libpcap, which live capture needs; install libpcap (Debian: apt-get install libpcap-dev) and build weft again"
    )]
    NotBuilt,
    /// The process has no permission to capture.
    #[error(
        "{interface}: no permission to capture; run weft with sudo, or allow every user to capture with this program: \
         sudo setcap cap_net_raw,cap_net_admin=eip {}",
        program()
    )]
    NotPermitted {
        /// The interface.
        interface: String,
    },
    /// There is no such interface.
    #[error("{interface}: there is no such interface; this host has {}", .known.join(", "))]
    NoSuchInterface {
        /// The interface.
        interface: String,
        /// Names of the existing interfaces.
        known: Vec<String>,
    },
    /// The capture filter is not valid.
    #[error("the capture filter {filter:?} is not valid: {why} (see pcap-filter(7); for a display filter, use -Y)")]
    Filter {
        /// The filter.
        filter: String,
        /// libpcap's message.
        why: String,
    },
    /// Any other error of libpcap.
    #[error("{interface}: {why}")]
    Other {
        /// The interface.
        interface: String,
        /// libpcap's message.
        why: String,
    },
}

/// Returns the path of this program, for the `setcap` command in the error message.
fn program() -> String {
    std::env::current_exe().map_or_else(|_| "weft".to_owned(), |path| path.display().to_string())
}
