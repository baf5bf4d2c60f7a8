//! What carriers do alike, whatever device they have: limits of a control connection, numbers that
//! follow from requests, and the sentences in which they refuse.

use crate::protocol::{Failure, MOST_OCTETS, Object, Octets};

/// How much one control connection may take.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Octets of all regions together.
    pub memory: u64,
    /// Objects.
    pub objects: usize,
}

impl Limits {
    /// For callers in this process.
    pub const NONE: Limits = Limits { memory: u64::MAX, objects: usize::MAX };

    /// Whether there may be one object more than there are.
    pub(crate) fn room(&self, objects: usize) -> Result<(), Failure> {
        if objects < self.objects {
            return Ok(());
        }
        Err(Failure::of(format!("{} objects are the most of a control connection", self.objects)))
    }

    /// Whether a region of `octets` may be there beside those that take `used`.
    pub(crate) fn memory(&self, used: u64, octets: u64) -> Result<(), Failure> {
        let left = self.memory.saturating_sub(used);
        if octets <= left {
            return Ok(());
        }
        Err(Failure::of(format!("{octets} octets: {left} are left to this control connection")))
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { memory: 64 << 20, objects: 1024 }
    }
}

/// Private data as a connection manager takes it: librdmacm counts its octets in one (MPA would
/// take 512).
pub(crate) fn private_data(data: &Octets) -> Result<(&[u8], u8), Failure> {
    let octets = data.0.as_slice();
    let length = u8::try_from(octets.len());
    let length = length.map_err(|_| Failure::of(format!("{} bytes of private data: at most 255", octets.len())))?;
    Ok((octets, length))
}

/// Entries of a completion queue: all that both queues of a Queue Pair hold, and a shared one's.
pub(crate) fn entries(depth: u32, shared: bool) -> u32 {
    depth.saturating_mul(if shared { 3 } else { 2 }).max(16)
}

/// `get` and what goes inline.
pub(crate) fn at_once(length: u64) -> Result<(), Failure> {
    if length <= MOST_OCTETS as u64 {
        return Ok(());
    }
    Err(Failure::of(format!("{length} bytes at once: at most {MOST_OCTETS}")))
}

/// There is no such object.
pub(crate) fn none(object: Object, kind: &str) -> Failure {
    Failure::of(format!("{object} is no {kind} of this control connection"))
}

/// Octets that a region does not have.
pub(crate) fn beside(offset: u64, length: u64, has: u64) -> Failure {
    Failure::of(format!("{length} bytes from {offset}: the region has {has}"))
}

pub(crate) fn no_pair(connection: Object) -> Failure {
    Failure::of(format!("connection {connection} has no Queue Pair yet: pair"))
}

pub(crate) fn has_pair(connection: Object) -> Failure {
    Failure::of(format!("connection {connection} has a Queue Pair"))
}

pub(crate) fn asks_nothing(connection: Object) -> Failure {
    Failure::of(format!("connection {connection} asks for nothing"))
}

/// `hello` after the first line.
pub(crate) fn hello_again() -> Failure {
    Failure::of("hello is the first request, and comes once")
}

/// The event that reports a request for which there is no room (`failed`).
pub(crate) const NO_ROOM: &str = "connect_request";
/// Its status: ENOMEM.
pub(crate) const NO_ROOM_STATUS: i32 = 12;
