//! Rules that all carriers share, whatever their device: limits of a control connection, sizes that
//! follow from a request, and texts of refusals.

use crate::protocol::{Failure, MOST_OCTETS, Object, Octets};

/// Limits of one control connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum total size of all regions, in bytes.
    pub memory: u64,
    /// Maximum number of objects.
    pub objects: usize,
}

impl Limits {
    /// No limits, for callers in this process.
    pub const NONE: Limits = Limits { memory: u64::MAX, objects: usize::MAX };

    /// Fails if a control connection with this number of `objects` cannot have one more.
    pub(crate) fn room(&self, objects: usize) -> Result<(), Failure> {
        if objects < self.objects {
            return Ok(());
        }
        Err(Failure::of(format!("{} objects are the most of a control connection", self.objects)))
    }

    /// Fails if a region of `octets` bytes does not fit, given that other regions use `used` bytes.
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

/// Returns private data and its length, in the form that librdmacm takes. librdmacm stores the
/// length in one byte, so 255 bytes are the maximum. (MPA would allow 512.)
pub(crate) fn private_data(data: &Octets) -> Result<(&[u8], u8), Failure> {
    let octets = data.0.as_slice();
    let length = u8::try_from(octets.len());
    let length = length.map_err(|_| Failure::of(format!("{} bytes of private data: at most 255", octets.len())))?;
    Ok((octets, length))
}

/// Returns the number of entries of the completion queue for a Queue Pair whose queues hold `depth`
/// requests each. A shared receive queue adds `depth` entries.
pub(crate) fn entries(depth: u32, shared: bool) -> u32 {
    depth.saturating_mul(if shared { 3 } else { 2 }).max(16)
}

/// Fails if `length` exceeds [`MOST_OCTETS`], the limit for reading a region at once.
pub(crate) fn at_once(length: u64) -> Result<(), Failure> {
    if length <= MOST_OCTETS as u64 {
        return Ok(());
    }
    Err(Failure::of(format!("{length} bytes at once: at most {MOST_OCTETS}")))
}

/// Returns the failure of a request whose `object` does not exist, or is not a `kind`.
pub(crate) fn none(object: Object, kind: &str) -> Failure {
    Failure::of(format!("{object} is no {kind} of this control connection"))
}

/// Returns the failure of a request for bytes outside a region of `has` bytes.
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

/// Returns the failure of a `hello` that is not the first request.
pub(crate) fn hello_again() -> Failure {
    Failure::of("hello is the first request, and comes once")
}

/// Value of `kind` in [`Event::Failed`](crate::protocol::Event::Failed) when a connection request
/// exceeds the limit of objects.
pub(crate) const NO_ROOM: &str = "connect_request";
/// Value of `status` in the same event: ENOMEM.
pub(crate) const NO_ROOM_STATUS: i32 = 12;
