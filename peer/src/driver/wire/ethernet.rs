//! The Ethernet interface that the tester's own TCP uses.

use std::fmt;
use std::io;
use std::os::fd::OwnedFd;

/// An Ethernet interface. A frame begins with its Ethernet header, and has no frame check sequence.
pub trait EthernetInterface: fmt::Debug + Send {
    /// Returns the next frame that the interface has received, or `None` if no frame waits. Does
    /// not wait, and does not return frames that this machine sent.
    ///
    /// # Errors
    /// The interface has ended. No frame follows.
    fn receive(&mut self) -> io::Result<Option<Vec<u8>>>;

    /// Sends a frame.
    ///
    /// # Errors
    /// The frame was not sent, for example because it is longer than the interface allows.
    fn send(&mut self, frame: &[u8]) -> io::Result<()>;

    /// Returns the maximum length of an IP packet in bytes.
    fn mtu(&self) -> usize;

    /// Returns a descriptor that becomes readable when a frame arrives.
    ///
    /// # Errors
    /// The operating system has no more descriptors.
    fn descriptor(&self) -> io::Result<OwnedFd>;
}
