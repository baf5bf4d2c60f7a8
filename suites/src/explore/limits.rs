//! Finds out what a target can do, so that sessions stay legal: the largest Send that its receive
//! buffers hold, and whether it serves several connections at a time. No RFC requires a size or a
//! number.

use weft_core::requirement;

use super::player::Player;
use crate::model::{Capability, CaseResult, Verdict};
use crate::run::RunError;
use crate::session::{
    AgentAction, AgentStep, MAPPED, MAX_PORTS, MAX_SEND, PortmapAction, PortmapStep, Profile, SdpAction, SdpStep,
    SessionService, SocketFields, Step,
};
use crate::targets::Target;

/// Sizes of the first Sends, in bytes. The last size is the longest payload that `octets.counted`
/// can make.
const SIZES: [u32; 5] = [MAX_SEND, 16_384, 65_536, 262_144, 1 << 20];
/// The smallest Send in bytes, of which several do not fit into the buffers of TCP.
const FLOOD: u32 = 1 << 18;
/// Maximum payload in bytes of a segment on Ethernet.
const ETHERNET: u32 = 1432;

/// Returns the limits for sessions, and a sentence for each limit that the target has.
pub(super) async fn find(
    player: &Player,
    target: &Target,
    service: SessionService,
    connections: u32,
) -> Result<(Profile, Vec<String>), RunError> {
    let atomics = target.capabilities().contains(&Capability::Atomics);
    let mut profile = Profile { atomics, faults: true, ports: MAX_PORTS, ..Profile::of(target, service, connections) };
    let mut sentences = Vec::new();
    if service == SessionService::Echo {
        let (max_send, is_limit) = largest_send(player, profile.max_segment).await?;
        profile.max_send = max_send;
        if is_limit {
            sentences.push(format!("the target accepts Sends of at most {max_send} bytes"));
        }
    }
    if service == SessionService::Echo {
        // No RFC requires that a target accepts the segments of a message if they are not in the
        // order of their offsets.
        let send = Step::Message {
            connection: 1,
            size: 30,
            segment: 10,
            solicited: false,
            every: 0,
            stall: 0,
            empty: false,
            descending: true,
        };
        let result = player.play(service, "descending-offsets", &[send]).await?;
        // If the target rejects the segments, the order is a limit of the target. If the target
        // echoes other bytes, it has a fault, and the sessions will show this fault.
        let is_misplaced = result.failing().any(|row| row == requirement!("DDP-5.2-4"));
        profile.any_order = passed(&result) || is_misplaced;
    }
    if service == SessionService::Echo && profile.max_send >= FLOOD {
        // If the target stops reading until its echoes are read, the tester cannot send all Sends.
        // No RFC forbids that.
        let flood = Step::Flood { connection: 1, count: 8, size: profile.max_send, segment: profile.max_segment };
        profile.floods = player.play(service, "flood", &[flood]).await?.verdict != Verdict::Inconclusive;
    }
    // A port mapper must serve several clients at a time.
    if profile.connections > 1 && service != SessionService::PortMapper {
        let open = |connection| match service.is_sdp() {
            true => Step::Sdp(SdpStep { connection, action: SdpAction::Open(SocketFields::default()) }),
            false => Step::Open { connection, crc: None, private: 0, markers: false, enhanced: false, rtr: None },
        };
        let one = player.play(service, "one-connection", &[open(1)]).await?;
        let two = [open(1), open(2), operation(service, 2), Step::Answers { connection: 2 }, operation(service, 1)];
        let two = player.play(service, "two-connections", &two).await?;
        // If the target does not serve the second connection, this is a limit of the target. If it
        // returns other bytes, it has a fault, and the sessions will show this fault.
        let is_wrong = two.actual.as_deref().is_some_and(|actual| actual.starts_with("byte "));
        if passed(&one) && !passed(&two) && !is_wrong {
            profile.connections = 1;
            sentences.push(format!("the target serves one connection at a time ({})", two.explanation));
        }
    }
    Ok((profile, sentences))
}

fn passed(result: &CaseResult) -> bool {
    result.verdict == Verdict::Pass
}

/// A short operation of the service.
fn operation(service: SessionService, connection: u32) -> Step {
    match service {
        SessionService::Echo => Step::Message {
            connection,
            size: 64,
            segment: 64,
            solicited: false,
            every: 0,
            stall: 0,
            empty: false,
            descending: false,
        },
        SessionService::Rping => Step::Read { connection, at: 0, size: 8, align: 0 },
        SessionService::SdpEcho | SessionService::SdpSink | SessionService::SdpSource => {
            Step::Sdp(SdpStep { connection, action: SdpAction::Send { size: 64, urgent: false } })
        }
        SessionService::Agent => {
            let action = AgentAction::Write { region: 1, at: 0, size: 8, segment: 8 };
            Step::Agent(AgentStep { connection, action })
        }
        SessionService::PortMapper => {
            Step::Portmap(PortmapStep { connection, action: PortmapAction::Request { port: 1, service: MAPPED } })
        }
    }
}

/// Returns the size of the largest Send for sessions, and whether the target refused a longer Send.
async fn largest_send(player: &Player, segment: u32) -> Result<(u32, bool), RunError> {
    let play_in = async |size: u32, segment: u32| {
        let send = Step::Message {
            connection: 1,
            size,
            segment,
            solicited: false,
            every: 0,
            stall: 0,
            empty: false,
            descending: false,
        };
        player.play(SessionService::Echo, "largest-send", &[send]).await
    };
    let play = async |size: u32| play_in(size, segment).await;
    let (mut most, mut refused) = (SIZES[0], None);
    for size in SIZES {
        let result = play(size).await?;
        match passed(&result) {
            true => most = size,
            // If the same Send in shorter segments passes, the target refuses the FPDU, not the
            // Send.
            false if is_too_long(&result) && (segment <= ETHERNET || !passed(&play_in(size, ETHERNET).await?)) => {
                refused = Some(size);
                break;
            }
            // Any other failure is not a limit. The sessions will show this failure again.
            false => return Ok((size, false)),
        }
    }
    let Some(mut refused) = refused else { return Ok((most, false)) };
    while refused - most > 1 {
        let middle = most + (refused - most) / 2;
        if passed(&play(middle).await?) { most = middle } else { refused = middle }
    }
    Ok((most, true))
}

/// Returns whether the target refused a Send because its receive is too short: with the error "ULP
/// message too long" or "invalid MO" of DDP, or by a close alone.
fn is_too_long(result: &CaseResult) -> bool {
    result.actual.as_deref().is_some_and(|actual| ["Terminate 12 05", "Terminate 12 04", "a close"].contains(&actual))
}
