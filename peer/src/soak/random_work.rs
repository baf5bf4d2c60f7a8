//! The random actions of a Queue Pair's user. An action can be any Work Request that the verbs can
//! express. Most of the Work Requests are valid.

use fastrand::Rng;
use weft_core::wire::rdmap::{AtomicOperation, Immediate};

use super::{GuardedMemory, Remote};
use crate::verbs::{Fence, Operation, Payload, ReceiveWr, SendWr};

/// Size in bytes of each receive.
const RECEIVE: u32 = 6000;
/// Lengths of messages in bytes. They are zero, a few bytes, about one segment, and several
/// segments.
const LENGTHS: [u32; 12] = [0, 1, 3, 8, 100, 1000, 1436, 1440, 1441, 2900, 5999, 8000];

/// Draws the next action of a Queue Pair's user.
#[derive(Debug)]
pub struct RandomWork;

impl RandomWork {
    /// Draws 1 to 16 receives.
    pub fn receives(rng: &mut Rng, guarded: &GuardedMemory) -> Vec<ReceiveWr> {
        let count = rng.u64(1..=16);
        (0..count).map(|wr_id| ReceiveWr { wr_id, scatter: vec![guarded.sink(rng, RECEIVE)] }).collect()
    }

    /// Draws 1 to 8 operations.
    pub fn operations(rng: &mut Rng, guarded: &GuardedMemory, peer: &Remote) -> Vec<SendWr> {
        let count = rng.u64(1..=8);
        (0..count)
            .map(|wr_id| {
                let operation = RandomWork::operation(rng, guarded, peer);
                let fence = match operation {
                    Operation::Send { .. } | Operation::Write { .. } if rng.u32(0..8) == 0 => Fence::Read,
                    _ => Fence::None,
                };
                SendWr { wr_id, signaled: rng.bool(), fence, operation }
            })
            .collect()
    }

    fn operation(rng: &mut Rng, guarded: &GuardedMemory, peer: &Remote) -> Operation {
        let length = *rng.choice(&LENGTHS).unwrap_or(&0);
        match rng.u32(0..10) {
            0..=2 => {
                let invalidate = if rng.u32(0..6) == 0 { peer.spare_stag(rng) } else { None };
                let payload = RandomWork::payload(rng, guarded, length);
                Operation::Send { payload, solicited: rng.bool(), invalidate }
            }
            3..=5 => {
                let remote = peer.write_address(rng, length);
                Operation::Write { payload: RandomWork::payload(rng, guarded, length), remote }
            }
            6 | 7 => {
                let length = length.min(2999);
                let remote = peer.read_address(rng, length);
                Operation::Read { local: guarded.read_sink(rng, length), remote, invalidate_local: false }
            }
            8 => Operation::Immediate { data: Immediate { data: [rng.u8(..); 8] }, solicited: rng.bool() },
            _ => {
                let (a, b, c, d) = (rng.u64(..), rng.u64(..), rng.u64(..), rng.u64(..));
                let operation = if rng.bool() {
                    AtomicOperation::FetchAdd { add_data: a, add_mask: b }
                } else {
                    AtomicOperation::CmpSwap { swap_data: a, swap_mask: b, compare_data: c, compare_mask: d }
                };
                Operation::Atomic { remote: peer.atomic_address(rng), operation }
            }
        }
    }

    fn payload(rng: &mut Rng, guarded: &GuardedMemory, length: u32) -> Payload {
        match rng.u32(0..3) {
            0 => Payload::Inline(vec![0x42; length as usize].into()),
            1 => Payload::Gather(vec![guarded.source(rng, length)]),
            _ => {
                let first = rng.u32(0..=length);
                Payload::Gather(vec![guarded.source(rng, first), guarded.source(rng, length - first)])
            }
        }
    }
}
