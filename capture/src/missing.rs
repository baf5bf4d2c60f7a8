//! Replaces the module `live` in a build without libpcap. The functions are the same, but each
//! function returns an error.

use std::convert::Infallible;
use std::io;
use std::os::fd::OwnedFd;
use std::time::Duration;

use crate::{Drops, Interface, Next, OpenError, Settings};

/// A live capture. In this build, a value of this type cannot exist.
#[derive(Debug)]
pub struct Live(Infallible);

impl Live {
    /// Always fails.
    ///
    /// # Errors
    /// Always returns [`OpenError::NotBuilt`].
    pub fn open(_: &Settings) -> Result<Self, OpenError> {
        Err(OpenError::NotBuilt)
    }

    /// Returns the link type of the frames.
    #[must_use]
    pub fn link_type(&self) -> u16 {
        match self.0 {}
    }

    /// Returns the next frame.
    pub fn next_frame(&mut self) -> Next<'_> {
        match self.0 {}
    }

    /// Waits for a frame.
    pub fn wait(interfaces: &[&Live], _: Duration) {
        if let Some(Live(never)) = interfaces.first() {
            match *never {}
        }
    }

    /// Returns a descriptor that is readable while frames wait.
    ///
    /// # Errors
    /// Never returns.
    pub fn descriptor(&self) -> io::Result<OwnedFd> {
        match self.0 {}
    }

    /// Sends a frame.
    ///
    /// # Errors
    /// Never returns.
    pub fn send(&mut self, _: &[u8]) -> Result<(), String> {
        match self.0 {}
    }

    /// Returns the numbers of received and dropped frames.
    pub fn drops(&mut self) -> Drops {
        match self.0 {}
    }
}

/// Always fails.
///
/// # Errors
/// Always returns [`OpenError::NotBuilt`].
pub fn interfaces() -> Result<Vec<Interface>, OpenError> {
    Err(OpenError::NotBuilt)
}

/// Always fails.
///
/// # Errors
/// Always returns [`OpenError::NotBuilt`].
pub fn check_filter(_: &str) -> Result<(), OpenError> {
    Err(OpenError::NotBuilt)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_what_to_install() {
        let error = Live::open(&Settings::new("lo")).unwrap_err();
        assert!(error.to_string().contains("apt-get install libpcap-dev"), "{error}");
        assert_eq!(interfaces(), Err(OpenError::NotBuilt));
        assert_eq!(check_filter("tcp"), Err(OpenError::NotBuilt));
    }
}
