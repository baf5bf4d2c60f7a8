//! Draws the operations of the service echo.

use fastrand::Rng;

use super::fault_draw::fault;
use super::profile::{MAX_SEND, Profile};
use super::shared_draw::{pick, segment, size};
use super::step::{MessageFields, Step};

/// Maximum number of Sends in a burst of a session of the suites.
pub(super) const SHORT_BURST: u32 = 320;
/// Maximum number of Sends in a burst of an explored session. The ring of a queue can have 4,096
/// entries.
pub(crate) const LONG_BURST: u32 = 4100;
/// Number of unanswered Sends for which every echo service is assumed to have receives.
pub(super) const SHORT_BATCH: u32 = 8;
/// Maximum number of Sends in one TCP write.
pub(crate) const MAX_BATCH: u32 = 512;
/// Maximum number of bytes in one TCP write. With more bytes, target and tester could wait forever,
/// each until the other side reads.
const MAX_WRITE: u32 = 65_536;
/// Difference in bytes between the shortest and the longest Send of a burst.
const SPREAD: u32 = 60;
/// Maximum number of floods of a session. With more floods, the echoes could exceed the number of
/// bytes that a case can receive.
const MAX_FLOODS: usize = 4;

/// Draws an operation of the service echo.
pub(super) fn operation(rng: &mut Rng, profile: &Profile, connection: u32, left: &mut u32, steps: &mut Vec<Step>) {
    if rng.u32(..20) == 0 {
        return steps.push(burst(rng, profile, connection));
    }
    let floods = steps.iter().filter(|step| matches!(step, Step::Flood { .. })).count();
    if profile.floods && floods < MAX_FLOODS && rng.u32(..40) == 0 {
        return flood(rng, profile, connection, steps);
    }
    match rng.u32(..40) {
        0 => return steps.push(batch(rng, profile, connection)),
        1 => return steps.push(Step::Half { connection, size: rng.u32(..=1000) }),
        2 => {
            let (count, more) = (pick(rng, &[1, 2, 3, 4, 8, 16, 32]), rng.i32(-1..=1));
            return steps.push(Step::Fill { connection, count, more, most: profile.max_send });
        }
        3 | 4 if profile.empty_writes => return steps.push(empty(rng, profile, connection)),
        5 if profile.faults => {
            let size = size(rng, MAX_SEND.min(profile.max_segment));
            let value = pick(rng, &[0x01, 0x80, 0xff]);
            return steps.push(Step::Pad { connection, size, value });
        }
        _ => {}
    }
    let (size, segment) = segmented(rng, profile, profile.max_send.min(*left));
    *left -= size;
    let every = if size < 3000 && rng.u32(..6) == 0 { rng.u32(1..=40) } else { 0 };
    let stall = if every == 0 && rng.u32(..20) == 0 { pick(rng, &[1, 2, 20, 22, 60]) } else { 0 };
    let (solicited, empty_last) = (rng.u32(..5) == 0, rng.u32(..12) == 0);
    let descending = profile.any_order && !empty_last && every == 0 && stall == 0 && rng.u32(..8) == 0;
    let fields = MessageFields { connection, size, segment, solicited, every, stall, empty: empty_last, descending };
    steps.push(Step::Message(fields));
    // The segments that are not sent here follow with a later step on this connection.
    let count = size.div_ceil(segment).max(1);
    let now = if rng.bool() { count } else { rng.u32(0..=count) };
    if now > 0 {
        steps.push(Step::Segments { connection, count: now });
    }
    if now < count && profile.empty_writes && rng.u32(..6) == 0 {
        steps.push(empty(rng, profile, connection));
    }
}

/// Draws many Sends, one after the other. The number of Sends in a long burst is slightly greater
/// than a power of two.
fn burst(rng: &mut Rng, profile: &Profile, connection: u32) -> Step {
    let size = rng.u32(4..=64);
    if profile.burst > SHORT_BURST && rng.u32(..8) == 0 {
        let count = (1 << rng.u32(9..=12)) + rng.u32(1..=4);
        return Step::Burst { connection, count: count.min(profile.burst), size, spread: SPREAD };
    }
    let (count, spread) = (rng.u32(2..=SHORT_BURST), if rng.bool() { SPREAD } else { 0 });
    Step::Burst { connection, count, size, spread }
}

/// Draws large Sends whose echoes are not read at first. Sometimes a fault follows while the target
/// still sends the echoes.
fn flood(rng: &mut Rng, profile: &Profile, connection: u32, steps: &mut Vec<Step>) {
    let is_faulty = profile.faults && rng.u32(..3) == 0;
    // The echoes before a fault must be more than the buffers of TCP hold.
    let size = if is_faulty || rng.bool() { profile.max_send } else { size(rng, profile.max_send) };
    let segment = segment(rng, profile, size);
    let count = rng.u32(if is_faulty { 4..=8 } else { 2..=8 });
    steps.push(Step::Flood { connection, count, size, segment });
    if is_faulty {
        let fault = fault(rng, profile, steps, connection);
        steps.push(Step::Fault { connection, fault, at_once: true });
    }
}

/// Draws Sends in one TCP write. Half of the numbers are near a power of two.
fn batch(rng: &mut Rng, profile: &Profile, connection: u32) -> Step {
    let count = match profile.batch > SHORT_BATCH && rng.bool() {
        true => ((1 << rng.u32(4..=9)) + rng.u32(..3) - 1).min(profile.batch),
        false => rng.u32(2..=SHORT_BATCH),
    };
    let most = MAX_SEND.min(profile.max_segment).min(MAX_WRITE / count);
    Step::Batch { connection, count, size: size(rng, most) }
}

/// Draws a Read or a Write of 0 bytes.
fn empty(rng: &mut Rng, profile: &Profile, connection: u32) -> Step {
    Step::Empty { connection, read: profile.empty_reads && rng.bool() }
}

/// Draws the size in bytes of a message, of at most `most`, and the payload of its segments.
fn segmented(rng: &mut Rng, profile: &Profile, most: u32) -> (u32, u32) {
    match rng.u32(..16) {
        // A number of segments near a power of two.
        0 => {
            let count = (1 << rng.u32(1..=8)) + rng.u32(..3) - 1;
            let payload = rng.u32(1..=64).min(profile.max_segment);
            ((count * payload).min(most), payload)
        }
        // A single FPDU whose length is near a multiple of 4096. Of its bytes, 24 are headers and
        // CRC.
        1 => {
            let size = (4096 * rng.u32(1..=15) - 24 - rng.u32(..5)).min(most).min(profile.max_segment);
            (size, profile.max_segment)
        }
        _ => {
            let size = size(rng, most);
            (size, segment(rng, profile, size))
        }
    }
}
