//! A TCP under weft's control, on an Ethernet interface. It has an IP address of its own, which no
//! host uses. So the TCP of the operating system neither receives nor answers its segments.
//!
//! The package smoltcp has the state machine of TCP, ARP and Neighbor Discovery. The parts of this
//! folder are, from the interface to the tester:
//!
//! - `ethernet`: what this folder needs of an Ethernet interface. Another crate implements it;
//! - `frame`, `segment`: find the TCP segment in a frame, and build frames with other segments;
//! - `flow`, `shaper`: change the frames that TCP sends. The tester can choose its first sequence
//!   number. While the tester withholds bytes, it also chooses the segments that have these bytes;
//! - `device`: the interface with its shaper, as smoltcp uses it;
//! - `address`, `engine`, `stack`: the TCP with its connections, and the task that polls it;
//! - `tester`, `link`: one connection, and the link to a target.
//!
//! Limits:
//!
//! - The tester connects. It does not listen, and it sends no UDP.
//! - TCP has no congestion control and no timestamps. The target's window is the only limit.
//! - The TCP checksums of received segments are not checked, because the operating system may pass
//!   segments whose checksum the hardware has checked or would still fill in.
//! - A frame that the interface cannot send counts as lost. TCP then sends the segment again.
//! - Two processes must not use the same address at the same time. Each would reset the connections
//!   of the other.

mod address;
mod device;
mod engine;
mod ethernet;
mod flow;
mod frame;
mod link;
mod segment;
mod shaper;
mod stack;
mod tester;
#[cfg(test)]
mod testing;

pub use address::{WireAddress, WireAddressError};
pub use ethernet::EthernetInterface;
pub use link::WireLink;
pub use stack::{WeakWireStack, WireStack};
pub(super) use tester::WireTester;
