//! Compares TCP sequence numbers, which count modulo 2^32.
//!
//! Two numbers can be compared only if their distance is less than 2^31.

/// If a sequence number differs by more than this distance from the end of a closed connection, it
/// belongs to another connection with the same ports. Retransmissions have a smaller distance.
/// Segments that an endpoint sends after its FIN by mistake also have a smaller distance.
pub(crate) const FAR_AFTER_CLOSE: u32 = 1 << 20;

/// The size of the largest TCP window (RFC 7323 section 2.2). If the distance between a segment and
/// the known octets is greater, the segment belongs to another connection, or the gap is too large
/// to continue the connection.
pub(crate) const FAR: u32 = 1 << 30;

/// Returns whether two sequence numbers differ by more than `most`.
pub(crate) fn is_far(a: u32, b: u32, most: u32) -> bool {
    a.wrapping_sub(b).cast_signed().unsigned_abs() > most
}

/// Returns whether sequence number `a` is before `b`, modulo 2^32.
pub(crate) fn before(a: u32, b: u32) -> bool {
    a.wrapping_sub(b).cast_signed() < 0
}
