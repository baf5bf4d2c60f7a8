//! In the place of `live` where a build has no libpcap: the same names, none of which ever
//! captures.

use std::convert::Infallible;

use crate::{Drops, Interface, Next, OpenError, Settings};

/// An interface that is being captured on; in this build there is none.
#[derive(Debug)]
pub struct Live(Infallible);

impl Live {
    /// Refuses.
    ///
    /// # Errors
    /// [`OpenError::NotBuilt`], always.
    pub fn open(_: &Settings) -> Result<Self, OpenError> {
        Err(OpenError::NotBuilt)
    }

    /// Link type of its frames.
    #[must_use]
    pub fn link_type(&self) -> u16 {
        match self.0 {}
    }

    /// The next frame.
    pub fn next_frame(&mut self) -> Next<'_> {
        match self.0 {}
    }

    /// What was lost so far.
    pub fn drops(&mut self) -> Drops {
        match self.0 {}
    }
}

/// Refuses.
///
/// # Errors
/// [`OpenError::NotBuilt`], always.
pub fn interfaces() -> Result<Vec<Interface>, OpenError> {
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
    }
}
