//! Draws the fields of an SDP socket of a session, the size of a send, and faults.
//!
//! `sdp_step` has the fields and their defaults. `sdp_draw` and `drive_draw` draw the steps of the
//! session.

use fastrand::Rng;

use super::fault::Fault;
use super::sdp_step::{SdpAction, SdpStep, SocketFields};
use super::service::SessionService;
use super::shared_draw::pick;
use super::step::Step;

/// The Modes of a half-connection.
pub(super) const MODES: [&str; 3] = ["combined", "pipelined", "buffered"];
/// How the tester answers a SrcAvail.
pub(super) const ANSWERS: [&str; 3] = ["read", "send-sm", "both"];
/// Maximum number of bytes in most sends of a session with small buffers.
pub(super) const SHORT: u32 = 4000;
/// If the sessions may have faults, one of this number of sessions has faults. A target that
/// continues after a fault violates only a recommendation, and ends the session early.
pub(super) const FAULTY: u32 = 3;
/// Virtual addresses of the tester's buffers. In most buffers, bit 31 or bit 32 of the address
/// changes between the first and the last byte.
const ADDRESSES: &[u64] = &[0xffff_f001, 0xffff_0003, 0x7fff_f007, 0x7fff_fff7_ffff_fc01, 0x1234_5678_ffff_fe05];

/// Draws the fields of a socket. Each field has its default in most sockets.
pub(super) fn fields(rng: &mut Rng, service: SessionService) -> SocketFields {
    let mut fields = SocketFields::default();
    let mut rarely = |fields: &mut SocketFields, change: &dyn Fn(&mut Rng, &mut SocketFields)| {
        if rng.u32(..3) == 0 {
            change(rng, fields);
        }
    };
    rarely(&mut fields, &|rng, fields| fields.crc = rng.bool());
    rarely(&mut fields, &|rng, fields| fields.mode = pick(rng, &MODES));
    rarely(&mut fields, &|rng, fields| fields.bufs = pick(rng, &[3, 4, 5, 8, 64]));
    rarely(&mut fields, &|rng, fields| fields.recv_size = pick(rng, &[37, 100, 1000, 3000, 20_000]));
    rarely(&mut fields, &|rng, fields| fields.source_threshold = pick(rng, &[0, 64, 500, 3000, 1 << 30]));
    rarely(&mut fields, &|rng, fields| fields.sink_threshold = pick(rng, &[0, 500, 5000, 1 << 30]));
    rarely(&mut fields, &|rng, fields| fields.max_src_avail = pick(rng, &[1000, 5000, 20_000, 70_000]));
    rarely(&mut fields, &|rng, fields| fields.src_avail_payload = pick(rng, &[1, 40, 1000]));
    rarely(&mut fields, &|rng, fields| fields.answer = pick(rng, &ANSWERS));
    rarely(&mut fields, &|rng, fields| fields.max_read = pick(rng, &[500, 3000, 20_000]));
    rarely(&mut fields, &|rng, fields| fields.read_batch = pick(rng, &[1, 2000, 10_000]));
    rarely(&mut fields, &|rng, fields| fields.receive = pick(rng, &[50, 1000, 4000, 40_000, 200_000]));
    rarely(&mut fields, &|rng, fields| fields.receives = pick(rng, &[1, 4, 16]));
    // The smallest value is 4. With fewer advertisements, the SinkAvails of a target may use up the
    // advertisements that its SrcAvails need.
    rarely(&mut fields, &|rng, fields| fields.max_adverts = pick(rng, &[4, 8, 32]));
    rarely(&mut fields, &|rng, fields| fields.src_avails = pick(rng, &[1, 2, 20, 32]));
    rarely(&mut fields, &|rng, fields| fields.sink_avails = pick(rng, &[0, 1, 8]));
    rarely(&mut fields, &|rng, fields| fields.ird = pick(rng, &[1, 2, 4]));
    rarely(&mut fields, &|rng, fields| fields.wants_pipelined = rng.bool());
    rarely(&mut fields, &|rng, fields| fields.follows_hints = rng.bool());
    rarely(&mut fields, &|rng, fields| fields.data_first = rng.bool());
    rarely(&mut fields, &|rng, fields| fields.buffers_at = pick(rng, ADDRESSES));
    rarely(&mut fields, &|rng, fields| match rng.u32(..3) {
        0 => fields.cut_fpdus = true,
        1 => fields.cut = pick(rng, &[100, 1440, 1448, 2000, 3000]),
        _ => {}
    });
    // Independent draws of these fields rarely have the combination that the target can write to.
    if rng.u32(..4) == 0 {
        fields = both_pipelined(rng, fields);
    }
    // While the tester takes no more data of a source, the source's data keeps Private Buffers. If
    // the tester has only three, the source then has few credits for its updates.
    if service == SessionService::SdpSource && rng.u32(..3) == 0 {
        fields.max_received = pick(rng, &[0, 300, 30_000]);
        if rng.bool() {
            fields.bufs = 3;
        }
    }
    fields
}

/// Returns `fields` with changes that let both half-connections use Pipelined Mode. The target can
/// then write into the receives of the tester.
pub(super) fn both_pipelined(rng: &mut Rng, fields: SocketFields) -> SocketFields {
    let usual = SocketFields::default();
    SocketFields {
        mode: if rng.bool() { "pipelined" } else { fields.mode },
        wants_pipelined: true,
        sink_threshold: pick(rng, &[0, 500]),
        receive: pick(rng, &[9000, 20_000, 40_000]),
        receives: pick(rng, &[1, 2, 4]),
        sink_avails: pick(rng, &[1, 4, 8]),
        bufs: usual.bufs,
        recv_size: usual.recv_size,
        ..fields
    }
}

/// Returns whether a socket has small buffers or few buffers. With them, the same number of bytes
/// needs more messages.
pub(super) fn is_small(fields: &SocketFields) -> bool {
    fields.recv_size < 1000 || fields.bufs < 5
}

/// Draws the size of a send in bytes, at least 1.
pub(super) fn size(rng: &mut Rng) -> u32 {
    match rng.u32(..10) {
        0 => rng.u32(1..=3),
        1..4 => rng.u32(1..=600),
        4..6 => pick(rng, &[1000, 1460, 4096, 8176, 8192, 16_384]) * rng.u32(1..=2) + rng.u32(..5) - 2,
        6..8 => (1 << rng.u32(9..18)) + rng.u32(..5) - 2,
        _ => rng.u32(1..=150_000),
    }
}

/// Inserts one or two of `faults` at random places after the first steps, which open the
/// connections. `opened` has the fields of each connection. After each fault, a step opens the
/// connection again with these fields.
pub(super) fn add_faults(rng: &mut Rng, faults: &[Fault], opened: &[SocketFields], steps: &mut Vec<Step>) {
    let mut places: Vec<usize> = (0..rng.usize(1..=2)).map(|_| rng.usize(opened.len()..=steps.len())).collect();
    places.sort_unstable();
    // A step that is inserted at a later place does not change the earlier places.
    for place in places.into_iter().rev() {
        let connection = rng.usize(..opened.len());
        let action = SdpAction::Open(opened[connection]);
        let connection = u32::try_from(connection + 1).unwrap_or(1);
        let fault = Step::Fault { connection, fault: pick(rng, faults), at_once: false };
        steps.splice(place..place, [fault, Step::Sdp(SdpStep { connection, action })]);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_a_source_has_a_limit_for_its_data() {
        for (service, is_limited) in [(SessionService::SdpEcho, false), (SessionService::SdpSource, true)] {
            let usual = SocketFields::default().max_received;
            let mut limits = (0..300).map(|seed| fields(&mut Rng::with_seed(seed), service).max_received);
            assert_eq!(limits.any(|limit| limit != usual), is_limited);
        }
    }
}
