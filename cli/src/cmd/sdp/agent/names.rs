//! Stores the real addresses of each connection for `getpeername`, `getsockname` and `accept`. The
//! program's own TCP connection has only loopback addresses.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_peer::shim::Names;

/// A connection on the loopback interface: the addresses of the program's socket and of the agent's
/// socket.
type LoopbackPair = (SocketAddr, SocketAddr);

/// The real addresses of all connections.
#[derive(Debug, Default)]
pub(super) struct NameTable(Mutex<HashMap<LoopbackPair, Names>>);

/// An entry of the table. Dropping this value removes the entry.
#[derive(Debug)]
pub(super) struct NameEntry<'a> {
    table: &'a NameTable,
    ends: LoopbackPair,
}

impl NameTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<LoopbackPair, Names>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, local: SocketAddr, peer: SocketAddr, names: Names) -> NameEntry<'_> {
        let ends = (local, peer);
        self.lock().insert(ends, names);
        NameEntry { table: self, ends }
    }

    pub(super) fn find(&self, local: SocketAddr, peer: SocketAddr) -> Option<Names> {
        self.lock().get(&(local, peer)).copied()
    }
}

impl Drop for NameEntry<'_> {
    fn drop(&mut self) {
        self.table.lock().remove(&self.ends);
    }
}
