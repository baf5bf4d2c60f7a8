//! Frames from a network interface, as libpcap gives them.
//!
//! [`Live`] is an interface that is being captured on; [`interfaces`] lists what there is;
//! [`privilege::drop_all`] gives up what opening needed. Nothing here looks into a frame, writes a
//! file or decides when to stop.
//!
//! libpcap is the only library of the system that weft uses, and it need not be there: a build that
//! does not find it (or is made without the feature `live`) has the same functions, and they
//! report what to install.
#![forbid(unsafe_code)]
#![cfg_attr(not(test), warn(clippy::expect_used, clippy::panic))]

#[cfg(all(feature = "live", libpcap))]
mod live;
#[cfg(not(all(feature = "live", libpcap)))]
#[path = "missing.rs"]
mod live;
pub mod privilege;

pub use live::{Live, interfaces};

use std::net::IpAddr;
use std::time::Duration;

/// Octets of a frame that are kept by default: more than any frame has, as tcpdump and
/// tshark have it.
pub const SNAP_LEN: u32 = 262_144;

/// How an interface is captured on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Its name, as the operating system has it.
    pub interface: String,
    /// The frames that the kernel passes on, in the language of pcap-filter(7); `None` for all
    /// frames.
    pub filter: Option<String>,
    /// Octets kept of each frame; 1 to [`SNAP_LEN`].
    pub snap_len: u32,
    /// Frames that are for other stations too.
    pub promiscuous: bool,
    /// MiB of the kernel's buffer, 1 to 2047. Frames that find it full are dropped, and counted.
    pub buffer_mib: u32,
    /// How long the kernel may hold frames back to hand on several at once, in milliseconds;
    /// also how long [`Live::next_frame`] waits.
    pub batch: Duration,
}

impl Settings {
    /// Complete frames of everything on `interface`, in batches of a tenth of a second.
    #[must_use]
    pub fn new(interface: &str) -> Self {
        Settings {
            interface: interface.to_owned(),
            filter: None,
            snap_len: SNAP_LEN,
            promiscuous: true,
            buffer_mib: 32,
            batch: Duration::from_millis(100),
        }
    }
}

/// A frame.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Packet<'a> {
    /// When the kernel saw it: nanoseconds since 1970-01-01 UTC.
    pub time: u64,
    /// What was captured of it.
    pub octets: &'a [u8],
    /// How many octets it had on the wire; never less than `octets.len()`.
    pub wire_len: u32,
}

/// What [`Live::next_frame`] gives.
#[derive(Debug, PartialEq, Eq)]
pub enum Next<'a> {
    /// A frame.
    Packet(Packet<'a>),
    /// There is nothing right now.
    Idle,
    /// Nothing more will come; why.
    Over(String),
}

/// Counts of the frames since the capture began.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Drops {
    /// That passed the filter.
    pub received: u64,
    /// The part of them that did not fit into the kernel's buffer.
    pub kernel: u64,
    /// That the interface or its driver lost before.
    pub interface: u64,
}

/// An interface that can be named.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Interface {
    /// The name for [`Settings::interface`].
    pub name: String,
    /// A description, if the system has one.
    pub description: Option<String>,
    /// Its addresses.
    pub addresses: Vec<IpAddr>,
    /// Is it up?
    pub up: bool,
}

/// Why an interface cannot be captured on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// This weft was built without libpcap.
    #[error(
        "this weft was built without libpcap, which live capture needs: install it (Debian: apt-get install libpcap-dev) and build weft again"
    )]
    NotBuilt,
    /// The operating system refuses.
    #[error(
        "{interface}: no permission to capture: run weft with sudo, or let this program capture for everybody with: sudo setcap \
         cap_net_raw,cap_net_admin=eip {}",
        program()
    )]
    NotPermitted {
        /// The interface.
        interface: String,
    },
    /// There is no such interface.
    #[error("{interface}: there is no such interface; there are {}", .known.join(", "))]
    NoSuchInterface {
        /// The interface.
        interface: String,
        /// What there is instead.
        known: Vec<String>,
    },
    /// The filter makes no sense.
    #[error("capture filter {filter:?}: {why} (pcap-filter(7) is its language; display filters go with -Y)")]
    Filter {
        /// The filter.
        filter: String,
        /// libpcap's message.
        why: String,
    },
    /// Something else.
    #[error("{interface}: {why}")]
    Other {
        /// The interface.
        interface: String,
        /// libpcap's message.
        why: String,
    },
}

/// The path of this program, as `setcap` needs it.
fn program() -> String {
    std::env::current_exe().map_or_else(|_| "weft".to_owned(), |path| path.display().to_string())
}
