//! Stores the real addresses of each connection for `getpeername`, `getsockname` and `accept`. The
//! program's own TCP connection has only loopback addresses.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Mutex;

use weft_peer::shim::Names;

use crate::lock::locked;

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
    pub(super) fn insert(&self, local: SocketAddr, peer: SocketAddr, names: Names) -> NameEntry<'_> {
        let ends = (local, peer);
        locked(&self.0).insert(ends, names);
        NameEntry { table: self, ends }
    }

    pub(super) fn find(&self, local: SocketAddr, peer: SocketAddr) -> Option<Names> {
        locked(&self.0).get(&(local, peer)).copied()
    }
}

impl Drop for NameEntry<'_> {
    fn drop(&mut self) {
        locked(&self.table.0).remove(&self.ends);
    }
}
