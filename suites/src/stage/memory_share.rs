//! The part that a message has in the memory of its script.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A part of an account. It ends when the value is dropped.
#[derive(Debug, Default)]
pub(crate) struct MemoryShare(Option<(Arc<AtomicUsize>, usize)>);

impl MemoryShare {
    pub(crate) fn new(account: &Arc<AtomicUsize>, octets: usize) -> Self {
        account.fetch_add(octets, Ordering::Relaxed);
        MemoryShare(Some((Arc::clone(account), octets)))
    }
}

/// A copy is not counted until a script gets it.
impl Clone for MemoryShare {
    fn clone(&self) -> Self {
        MemoryShare::default()
    }
}

impl Drop for MemoryShare {
    fn drop(&mut self) {
        if let Some((account, octets)) = &self.0 {
            account.fetch_sub(*octets, Ordering::Relaxed);
        }
    }
}

/// The account is not a part of the message.
impl PartialEq for MemoryShare {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for MemoryShare {}
