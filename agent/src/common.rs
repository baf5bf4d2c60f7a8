//! Code that the backends of all devices share: the limits of a control connection, sizes that
//! depend on a request, and the texts of failures.

use crate::protocol::{Failure, MAX_TRANSFER_OCTETS, Object, Octets};

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

    /// Fails if a control connection with this number of `objects` cannot have one more object.
    pub(crate) fn check_objects(&self, objects: usize) -> Result<(), Failure> {
        require(objects < self.objects, || {
            Failure::of(format!("a control connection can have at most {} objects; destroy one first", self.objects))
        })
    }

    /// Fails if a new region of `octets` bytes would exceed the limit. The existing regions use
    /// `used` bytes.
    pub(crate) fn check_memory(&self, used: u64, octets: u64) -> Result<(), Failure> {
        let left = self.memory.saturating_sub(used);
        require(octets <= left, || {
            Failure::of(format!(
                "cannot create a region of {octets} bytes: this control connection can use only {left} more bytes"
            ))
        })
    }
}

impl Default for Limits {
    fn default() -> Self {
        Limits { memory: 64 << 20, objects: 1024 }
    }
}

/// Fails with `failure` unless `condition` is true.
pub(crate) fn require(condition: bool, failure: impl FnOnce() -> Failure) -> Result<(), Failure> {
    if condition { Ok(()) } else { Err(failure()) }
}

/// Returns private data and its length, in the form that librdmacm requires. librdmacm stores the
/// length in one byte, so 255 bytes are the maximum. (MPA would allow 512.)
pub(crate) fn private_data(data: &Octets) -> Result<(&[u8], u8), Failure> {
    let octets = data.0.as_slice();
    let length = u8::try_from(octets.len());
    let length =
        length.map_err(|_| Failure::of(format!("the private data has {} bytes; the limit is 255", octets.len())))?;
    Ok((octets, length))
}

/// Returns the number of entries of the completion queue for a Queue Pair. Each queue of the Queue
/// Pair holds `depth` requests. A shared receive queue adds `depth` entries.
pub(crate) fn cq_entries(depth: u32, shared: bool) -> u32 {
    depth.saturating_mul(if shared { 3 } else { 2 }).max(16)
}

/// Fails if `length` exceeds [`MAX_TRANSFER_OCTETS`], the maximum number of bytes that one request
/// can read from a region.
pub(crate) fn check_transfer_size(length: u64) -> Result<(), Failure> {
    require(length <= MAX_TRANSFER_OCTETS as u64, || {
        Failure::of(format!("one request can read at most {MAX_TRANSFER_OCTETS} bytes, not {length}"))
    })
}

/// Returns the failure for a request with an `object` that does not exist, or that is not a `kind`.
pub(crate) fn not_found(object: Object, kind: &str) -> Failure {
    Failure::of(format!("this control connection has no {kind} with the number {object}"))
}

/// Returns the failure of a request for bytes that are outside the region. The region has `has`
/// bytes.
pub(crate) fn out_of_bounds(offset: u64, length: u64, has: u64) -> Failure {
    Failure::of(format!(
        "the range of {length} bytes from offset {offset} is not inside the region, which has {has} bytes"
    ))
}

pub(crate) fn no_pair(connection: Object) -> Failure {
    Failure::of(format!("connection {connection} has no Queue Pair yet; send the request `pair` first"))
}

pub(crate) fn pair_exists(connection: Object) -> Failure {
    Failure::of(format!("connection {connection} already has a Queue Pair"))
}

pub(crate) fn requests_nothing(connection: Object) -> Failure {
    Failure::of(format!("connection {connection} has no connection request that waits for `accept` or `reject`"))
}

/// Returns the failure for a `hello` that is not the first request.
pub(crate) fn repeated_hello() -> Failure {
    Failure::of("`hello` must be the first request, and cannot be repeated")
}

/// Returns name and release of this host's kernel, for example `Linux 6.12.9`.
pub(crate) fn kernel() -> Option<String> {
    let read = |name: &str| std::fs::read_to_string(format!("/proc/sys/kernel/{name}")).ok();
    let (name, release) = (read("ostype")?, read("osrelease")?);
    Some(format!("{} {}", name.trim(), release.trim()))
}

/// Value of `kind` in [`Event::Failed`](crate::protocol::Event::Failed) when a connection request
/// exceeds the limit of objects.
pub(crate) const NO_ROOM: &str = "connect_request";
/// Value of `status` in the same [`Event::Failed`](crate::protocol::Event::Failed): ENOMEM.
pub(crate) const NO_ROOM_STATUS: i32 = 12;
