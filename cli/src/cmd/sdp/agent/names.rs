//! The real addresses of both ends, for `getpeername`, `getsockname` and `accept`.

use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::{Mutex, MutexGuard, PoisonError};

use weft_peer::shim::Names;

/// A connection on the loopback interface: the program's end and the agent's end.
type Ends = (SocketAddr, SocketAddr);

/// All connections.
#[derive(Debug, Default)]
pub(super) struct NameTable(Mutex<HashMap<Ends, Names>>);

/// A row, which is removed when this value is dropped.
#[derive(Debug)]
pub(super) struct Row<'a> {
    table: &'a NameTable,
    ends: Ends,
}

impl NameTable {
    fn lock(&self) -> MutexGuard<'_, HashMap<Ends, Names>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn insert(&self, local: SocketAddr, peer: SocketAddr, names: Names) -> Row<'_> {
        let ends = (local, peer);
        self.lock().insert(ends, names);
        Row { table: self, ends }
    }

    pub(super) fn find(&self, local: SocketAddr, peer: SocketAddr) -> Option<Names> {
        self.lock().get(&(local, peer)).copied()
    }
}

impl Drop for Row<'_> {
    fn drop(&mut self) {
        self.table.lock().remove(&self.ends);
    }
}
