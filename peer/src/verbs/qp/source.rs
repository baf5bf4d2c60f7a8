//! Finds the memory for a range of a message. A scatter/gather list describes the memory of the
//! message.

use core::ops::Range;

use crate::memory::{AccessError, Accessor, Memory, MemoryRange, Right};
use crate::verbs::work_request::Sge;

/// Finds the bytes `range` of the message in the elements `sges`. Checks that `right` allows
/// `accessor` to access each part of them. Passes the [`MemoryRange`] of each part to `each`.
pub(super) fn walk(
    memory: &Memory,
    accessor: Accessor,
    sges: &[Sge],
    range: Range<u32>,
    right: Right,
    mut each: impl FnMut(MemoryRange),
) -> Result<(), AccessError> {
    let (mut passed, end) = (0u64, u64::from(range.end));
    let mut from = u64::from(range.start);
    for sge in sges {
        let next = passed + u64::from(sge.length);
        if from < end && from < next {
            let (skip, until) = (from - passed, next.min(end));
            let to = sge.tagged_offset.checked_add(skip).ok_or(AccessError::Wrap)?;
            let len = usize::try_from(until - from).map_err(|_| AccessError::BaseAndBounds)?;
            each(memory.locate(accessor, sge.stag, to, len, right)?);
            from = until;
        }
        passed = next;
    }
    Ok(())
}

/// Returns one element that begins with the first of the elements `sges`, and has the length of all
/// of them. Only a deviation uses this element instead of `sges`.
pub(super) fn join(sges: &[Sge]) -> Vec<Sge> {
    let length = sges.iter().fold(0, |sum: u32, sge| sum.saturating_add(sge.length));
    sges.first().map(|first| Sge { length, ..*first }).into_iter().collect()
}
