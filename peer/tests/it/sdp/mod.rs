//! Tests SDP (draft-pinkerton-iwarp-sdp-01) with a virtual clock. A test has two machines joined by
//! queues, or one machine and messages that the test builds. The tests declare the requirements
//! that they prove.
#![expect(clippy::unwrap_used, reason = "the lint exempts test functions, but not their helper functions")]

mod bcopy;
mod bench;
mod buffers;
mod closing;
mod composed;
mod ends;
mod figures;
mod formats;
mod host;
mod model;
mod modes;
mod peers;
mod random;
mod reading;
mod received;
mod resizing;
mod revoking;
mod rules;
mod setup;
mod startup;
mod suspending;
mod tables;
mod talk;
mod transitions;
mod urgent;
mod wire;
mod writing;
mod zcopy;

use weft_peer::sdp::{Policy, SrcAvailAnswer};

/// Checks each expression. If the expression is true, records in `proof` that the test has verified
/// the requirement whose ID precedes the expression.
macro_rules! shows {
    ($proof:ident: $($id:literal => $check:expr;)+) => {
        $($proof.verify(weft_core::requirement!($id), || assert!($check, "{}", $id));)+
    };
}
use shows;

/// A policy with small thresholds. A machine with this policy neither requests nor changes a Mode
/// by itself.
const POLICY: Policy = Policy {
    source_threshold: 100,
    sink_threshold: 0,
    max_src_avail: 1 << 30,
    src_avails: 4,
    sink_avails: 4,
    src_avail_payload: 10,
    answer: SrcAvailAnswer::Read,
    max_read: 1 << 30,
    read_batch: u32::MAX,
    transactions: true,
    wants_pipelined: false,
    follows_hints: false,
    data_first: false,
    deadlock_wait: core::time::Duration::from_millis(100),
};
