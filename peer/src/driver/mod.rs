//! Drivers connect the state machines to a network. Only this folder uses sockets, clocks and
//! tokio.
//!
//! - [`Link`]: the tester's access to a target. Suites use it to send raw bytes and to receive the
//!   answers. A link works over [TCP](TcpLink), over [the tester's own TCP](WireLink) or over the
//!   [virtual link](VirtualLink). It also works with a target that [connects](AcceptLink) to the
//!   tester, and with a target that first [queries](MapperLink) a port mapper;
//! - [`TrafficLog`]: the record of all traffic on a link, for the dissector and for saved evidence;
//! - [`Device`], [`cm`]: an RNIC in real time, and connections for its Queue Pairs;
//! - [`portmap`]: the SDP port mapper over UDP;
//! - [`sdp`]: SDP sockets on an RNIC in real time;
//! - [`serve`]: the builtin responder on a TCP port; [`initiate`](fn@initiate): the builtin
//!   initiator;
//! - [`soak`]: mangled connections between two RNICs, one connection after another.

mod accept;
mod accept_error;
mod call;
mod clock;
pub mod cm;
mod datagram_socket;
pub mod device;
mod fragments;
pub mod initiate;
pub mod link;
mod link_error;
mod mapper_link;
pub mod portmap;
mod received;
mod run;
pub mod sdp;
pub mod serve;
pub mod soak;
mod stream;
mod tcp;
mod tcp_tester;
mod tester;
mod traffic_log;
mod traffic_store;
mod virtual_link;
mod wire;
mod withheld_bytes;

pub use accept::{AcceptLink, LinkListener};
pub use call::Call;
pub use datagram_socket::DatagramSocket;
pub use device::Device;
pub use fragments::Fragments;
pub use initiate::initiate;
pub use link::Link;
pub use link_error::LinkError;
pub use mapper_link::{MapperLink, MapperSocket};
pub use received::Received;
pub use tcp::TcpLink;
pub use tester::TesterConnection;
pub use traffic_log::{Direction, DroppedOctets, EventContent, RecordedTraffic, TrafficEvent, TrafficLog};
pub use virtual_link::VirtualLink;
pub use wire::{EthernetInterface, WeakWireStack, WireAddress, WireAddressError, WireLink, WireStack};
