//! A target while a run lasts.

use super::Target;
use super::kind::{Connector, Reached};
use super::open_error::OpenError;

/// A target that can be connected to.
pub struct Live(Box<dyn Connector>);

impl Live {
    /// Starts a builtin target; resolves the address of any other. Nothing is sent to it.
    ///
    /// # Errors
    /// See [`OpenError`].
    pub async fn open(target: &Target) -> Result<Self, OpenError> {
        Ok(Live(target.reach.open(target).await?))
    }

    /// The number of cases that may run at the same time; `requested` is 0 if the user did not
    /// choose.
    pub(crate) fn jobs(&self, requested: usize) -> usize {
        self.0.jobs(requested)
    }

    /// A new link for one case, to the service of `target`; its clock starts now.
    ///
    /// # Errors
    /// The builtin target has no RNIC; no port is free.
    pub(crate) fn link(&self, target: &Target) -> Result<Reached, OpenError> {
        self.0.link(target)
    }
}
