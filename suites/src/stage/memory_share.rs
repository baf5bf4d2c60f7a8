//! Counts the memory of a script's messages.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// A number of bytes in a script's memory account. The bytes are subtracted when the value is
/// dropped.
#[derive(Debug, Default)]
pub(crate) struct MemoryShare(Option<(Arc<AtomicUsize>, usize)>);

impl MemoryShare {
    pub(crate) fn new(account: &Arc<AtomicUsize>, octets: usize) -> Self {
        account.fetch_add(octets, Ordering::Relaxed);
        MemoryShare(Some((Arc::clone(account), octets)))
    }
}

/// A copy of a message has an empty share. The bytes are counted when a script gets the copy.
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

/// All shares are equal, so a comparison of messages ignores the shares.
impl PartialEq for MemoryShare {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for MemoryShare {}
