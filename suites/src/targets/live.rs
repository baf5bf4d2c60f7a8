//! A target that is open during a run.

use super::Target;
use super::kind::{CaseLink, Connector};
use super::open_error::OpenError;

/// An open target, for which a run creates links.
pub struct OpenTarget(Box<dyn Connector>);

impl OpenTarget {
    /// Starts a builtin target, or resolves the address of another target. Sends nothing to the
    /// target.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(target: &Target) -> Result<Self, OpenError> {
        Ok(OpenTarget(target.access.open(target).await?))
    }

    /// Returns a target whose address cannot be resolved. It has no links.
    pub(crate) fn unresolved(address: String) -> Self {
        OpenTarget(Box::new(Unresolved(address)))
    }

    /// Returns the number of cases that may run at the same time. `requested` is 0 if the user did
    /// not choose a number.
    pub(crate) fn jobs(&self, requested: usize) -> usize {
        self.0.jobs(requested)
    }

    /// Creates a link for one case to the service of `target`. The link's clock starts now.
    ///
    /// # Errors
    /// The RNIC of the builtin target cannot be opened, or no port is free.
    pub(crate) fn link(&self, target: &Target) -> Result<CaseLink, OpenError> {
        self.0.link(target)
    }
}

/// A target whose address cannot be resolved.
struct Unresolved(String);

impl Connector for Unresolved {
    fn link(&self, _: &Target) -> Result<CaseLink, OpenError> {
        let error = std::io::Error::other("the name has no address");
        Err(OpenError::Resolve { address: self.0.clone(), error })
    }
}
