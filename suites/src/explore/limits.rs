//! Finds out what a target can do, so that sessions stay legal: the largest Send that its receive
//! buffers hold, the number of its receives, the order of segments that it receives, whether it
//! serves several connections at a time, and so on. No RFC requires a size or a number.

use weft_core::requirement;

use super::player::Player;
use crate::model::{Capability, CaseResult, Verdict};
use crate::run::RunError;
use crate::session::{
    AgentAction, AgentStep, DriveAction, DriveStep, FEW_PRIVATE, LONG_BURST, MAPPED, MAX_BATCH, MAX_PORTS, MAX_PRIVATE,
    MAX_SEND, MessageFields, NEIGHBOUR_WRITE, PortmapAction, PortmapStep, Profile, SdpAction, SdpStep, SessionService,
    SocketFields, Step,
};
use crate::targets::Target;

/// Sizes of the first Sends, in bytes. The echo of the last size is a quarter of what a case of the
/// full tier can receive.
const SIZES: [u32; 7] = [MAX_SEND, 16_384, 65_536, 262_144, USUAL, 1 << 22, 1 << 24];
/// Maximum number of bytes of a Send in sessions without long steps.
const USUAL: u32 = 1 << 20;
/// Maximum number of bytes of a message in the long steps of sessions with an agent. An agent can
/// register 64 MiB.
const LONG_OF_AGENT: u32 = 1 << 23;
/// Maximum number of connections of a session with an agent. An agent can have 1,024 objects.
const CONNECTIONS_OF_AGENT: u32 = 32;
/// The smallest Send in bytes, of which several do not fit into the buffers of TCP.
const FLOOD: u32 = 1 << 18;
/// A send of an SDP socket, in bytes, that does not fit into the buffers of TCP.
const HUGE: u32 = 1_300_000;
/// TCP port of the target for a suspension. The sessions use other ports.
const PORT: u16 = 19_999;
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
    let usual = Profile::of(target, service, connections);
    let mut profile = Profile { atomics, faults: true, extras: true, ports: MAX_PORTS, ..usual };
    let mut sentences = Vec::new();
    // An Initiator may refuse a Reply with long private data. The session would then have no
    // verdict.
    if !profile.is_initiator {
        profile.private += MAX_PRIVATE - FEW_PRIVATE;
    }
    if matches!(service, SessionService::Echo | SessionService::Rping) {
        // The target accepts C=0, and sends C=0 or C=1. Without this, each connection has the C of
        // the target file.
        let steps = [open_with(1, Some(false)), operation(service, 1), Step::Answers { connection: 1 }];
        profile.crc_is_optional = passed(&player.play(service, "without-crc", &steps).await?);
    }
    if service == SessionService::Echo {
        let (longest, refused) = largest_send(player, profile.max_segment).await?;
        profile.max_send = longest.min(USUAL);
        profile.longest = longest;
        sentences.extend(refused.map(|refused| match refused - longest {
            1 => format!("the target accepts Sends of at most {longest} bytes"),
            _ => format!("the target accepts a Send of {longest} bytes, and none of {refused} bytes"),
        }));
    }
    if service == SessionService::Agent {
        profile.longest = LONG_OF_AGENT;
        profile.connections = profile.connections.min(CONNECTIONS_OF_AGENT);
    }
    if service == SessionService::Echo {
        // No RFC requires that a target accepts the segments of a message if they are not in the
        // order of their offsets.
        let send = Step::Message(MessageFields { descending: true, ..MessageFields::plain(1, 30, 10) });
        let result = player.play(service, "descending-offsets", &[send]).await?;
        // If the target rejects the segments, the order is a limit of the target. If the target
        // echoes other bytes, it has a fault, and the sessions will show this fault.
        let is_misplaced = result.failing().any(|row| row == requirement!("DDP-5.2-4"));
        profile.any_order = passed(&result) || is_misplaced;
    }
    if service == SessionService::Rping && !profile.is_initiator {
        // RFC 5041 section 5.3 does not state whether other messages may come between the segments
        // of a message.
        let steps = [
            Step::Announce { connection: 1, size: 30, segment: 10, to: 0x1000, empty: false },
            Step::Respond { connection: 1, count: 1 },
            Step::Write { connection: 1, at: 0, size: 8, segment: 8, align: 0 },
            Step::Pause { ms: 200 },
            Step::Respond { connection: 1, count: 0 },
        ];
        let result = player.play(service, "write-in-response", &steps).await?;
        // If the target rejects the Write or the Response, this is a limit of the target. If the
        // target completes its Read too early, or writes other bytes, it has a fault, and the
        // sessions will show this fault.
        let wrong = [requirement!("RDMAP-5.5-21"), requirement!("DDP-5.2-4")];
        profile.interleaves = passed(&result) || result.failing().any(|row| wrong.contains(&row));
    }
    if service == SessionService::Echo && profile.max_send >= FLOOD {
        // If the target stops reading until its echoes are read, the tester cannot send all Sends.
        // No RFC forbids that.
        let flood = Step::Flood { connection: 1, count: 8, size: profile.max_send, segment: profile.max_segment };
        profile.floods = player.play(service, "flood", &[flood]).await?.verdict != Verdict::Inconclusive;
    }
    if service == SessionService::Echo {
        profile.burst = LONG_BURST;
        profile.empty_writes = true;
        let (batch, is_limit) = largest_batch(player, profile.batch).await?;
        profile.batch = batch;
        if is_limit {
            sentences.push(format!("the sessions leave at most {batch} Sends unanswered, as the target rejects more"));
        }
        let result = player.play(service, "empty-reads", &empty_reads(profile.enhanced)).await?;
        profile.empty_reads = passed(&result);
        if result.failing().any(|row| row == requirement!("RDMAP-5.2.1-18")) {
            sentences.push("the target does not answer Reads of 0 bytes".to_owned());
        }
        profile.answers_after_fin = answers_after_fin(player, target, &profile).await?;
    } else if service == SessionService::SdpEcho {
        // The same limit for an SDP socket.
        let huge = Step::Sdp(SdpStep { connection: 1, action: SdpAction::Huge { size: HUGE, count: 1 } });
        profile.floods = player.play(service, "huge-send", &[huge]).await?.verdict != Verdict::Inconclusive;
    } else if service.is_driven() {
        profile.user_ends = true;
        profile.suspends = service == SessionService::SdpDrive && suspends(player, &mut sentences).await?;
    } else if service.is_sdp() {
        // A sink or a source returns no data, so it can always receive.
        profile.floods = true;
    }
    // A source may wait until its advertised data was read.
    let is_fed = matches!(service, SessionService::SdpEcho | SessionService::SdpSink);
    // The tester accepts the new connection only on the virtual link.
    profile.resumes = is_fed && target.has_virtual_clock();
    // A port mapper must serve several clients at a time.
    if profile.connections > 1 && service != SessionService::PortMapper {
        let open = |connection| open(service, connection);
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
        if passed(&two) && profile.connections > 2 {
            let (wanted, most) = (profile.connections, most_connections(player, &profile).await?);
            profile.connections = most;
            if most < wanted {
                sentences.push(format!("the sessions have {most} connections, as the target does not serve {wanted}"));
            }
        }
    }
    // The next connection of an Initiator may belong to another program.
    if service == SessionService::Rping && profile.connections > 1 && !profile.is_initiator {
        // No RFC requires that each connection has its own Protection Domain. If the target rejects
        // this Write, the connections have different ones, and the target must reject each use of
        // the STag on another connection.
        let write = Step::Fault { connection: 2, fault: NEIGHBOUR_WRITE, at_once: false };
        let result = player.play(service, "protection-domains", &[plain_open(1), plain_open(2), write]).await?;
        profile.separate_domains = passed(&result);
        if result.failing().any(|row| row == requirement!("DDP-7.1-10")) {
            let why = "a Write to the buffer of another connection is not rejected";
            sentences.push(format!("the connections of rping may share a Protection Domain ({why})"));
        }
    }
    Ok((profile, sentences))
}

/// Opens a connection with the values of the target file.
fn plain_open(connection: u32) -> Step {
    open_with(connection, None)
}

/// Opens a connection with the values of the target file, and with this flag C.
fn open_with(connection: u32, crc: Option<bool>) -> Step {
    Step::Open { connection, crc, private: 0, markers: false, enhanced: false, rtr: None }
}

/// Returns the step that opens a connection without options.
fn open(service: SessionService, connection: u32) -> Step {
    match service.is_sdp() {
        true => Step::Sdp(SdpStep { connection, action: SdpAction::Open(SocketFields::default()) }),
        false => plain_open(connection),
    }
}

/// Returns the number of connections at a time for sessions. The target serves two connections at a
/// time. If it does not serve all connections of the profile, the result is a power of two, so that
/// only one further number is tried without success. Some steps of a session open one connection
/// more.
async fn most_connections(player: &Player, profile: &Profile) -> Result<u32, RunError> {
    let (service, wanted) = (profile.service, profile.connections);
    let serves = async |count: u32| {
        let last = count + 1;
        let opens = (1..=last).map(|connection| open(service, connection));
        let operations = [operation(service, last), Step::Answers { connection: last }, operation(service, 1)];
        let steps: Vec<Step> = opens.chain(operations).collect();
        let result = player.play(service, "many-connections", &steps).await?;
        // If the target returns other bytes, it has a fault, and the sessions will show this fault.
        let is_wrong = result.actual.as_deref().is_some_and(|actual| actual.starts_with("byte "));
        Ok::<bool, RunError>(passed(&result) || is_wrong)
    };
    if serves(wanted).await? {
        return Ok(wanted);
    }
    let mut most = 2;
    while 2 * most < wanted && serves(2 * most).await? {
        most *= 2;
    }
    Ok(most)
}

/// Returns the largest number of unanswered Sends for sessions, and whether the target rejected
/// more Sends. `least` is the number that every target is assumed to accept.
///
/// A target posts its receives again while the Sends arrive. So its ring may be shorter than the
/// largest number that it accepted by chance. Therefore the sessions use only half of this number.
async fn largest_batch(player: &Player, least: u32) -> Result<(u32, bool), RunError> {
    let mut count = least;
    while count < 2 * MAX_BATCH {
        count *= 2;
        // Short Sends arrive fastest.
        let batch = Step::Batch { connection: 1, count, size: 16 };
        let result = player.play(SessionService::Echo, "largest-batch", &[batch]).await?;
        match passed(&result) {
            true => {}
            false if is_too_many(&result) => return Ok(((count / 4).max(least), true)),
            // Any other failure is not a limit. The sessions will show this failure again.
            false => return Ok((count.min(MAX_BATCH), false)),
        }
    }
    Ok((MAX_BATCH, false))
}

/// Returns whether the target has too few receives. If it reports that, the session has the verdict
/// unimplemented. The target may also close the connection without a Terminate.
fn is_too_many(result: &CaseResult) -> bool {
    result.verdict != Verdict::Fail || result.actual.as_deref() == Some("a close")
}

/// Returns Reads of 0 bytes. Some targets reject them, for example without the enhanced set-up.
/// With other targets, a Response is right only by chance, so there are several Reads.
fn empty_reads(is_enhanced: bool) -> Vec<Step> {
    let reads = [Step::Empty { connection: 1, read: true }; 3];
    let mut steps = [&reads[..], &[Step::Close { connection: 1 }]].concat();
    if is_enhanced {
        steps.push(Step::Open { connection: 1, crc: None, private: 0, markers: false, enhanced: true, rtr: None });
        steps.extend(reads);
    }
    steps
}

/// Returns whether the service sends echoes after the tester's FIN. No RFC requires that, because
/// the user of the target may end the connection. weft's own service does it.
///
/// In the flood, the echoes exceed the buffers of TCP. So the target can send the last echoes only
/// after the FIN, although it had received all Sends before the FIN.
async fn answers_after_fin(player: &Player, target: &Target, profile: &Profile) -> Result<bool, RunError> {
    if target.remote().is_none() || !profile.floods {
        return Ok(target.remote().is_none());
    }
    let flood = Step::Flood { connection: 1, count: 8, size: profile.max_send, segment: profile.max_segment };
    let fin = Step::Finish { connection: 1, size: 0, ms: 2000 };
    Ok(passed(&player.play(SessionService::Echo, "answers-after-fin", &[flood, fin]).await?))
}

/// Returns whether the user of a driven socket can suspend connections. After a suspension, a target
/// may wait for the new connection, and serve no other connection meanwhile.
async fn suspends(player: &Player, sentences: &mut Vec<String>) -> Result<bool, RunError> {
    let suspend = Step::Drive(DriveStep { connection: 1, action: DriveAction::Suspend(PORT) });
    let steps = [suspend, operation(SessionService::SdpDrive, 1), Step::Answers { connection: 1 }];
    let result = player.play(SessionService::SdpDrive, "suspension", &steps).await?;
    // If the target sends no SuspComm, it has a fault, and the sessions will show this fault.
    let is_missing = result.failing().any(|row| row == requirement!("SDP-13.1.1-6"));
    let suspends = passed(&result) || is_missing;
    if !suspends && result.verdict != Verdict::Unimplemented {
        sentences.push(format!("the target's user suspends no connection in the sessions ({})", result.explanation));
    }
    Ok(suspends)
}

fn passed(result: &CaseResult) -> bool {
    result.verdict == Verdict::Pass
}

/// A short operation of the service.
fn operation(service: SessionService, connection: u32) -> Step {
    match service {
        SessionService::Echo => Step::message(connection, 64, 64),
        SessionService::Rping => Step::Read { connection, at: 0, size: 8, align: 0 },
        SessionService::SdpEcho | SessionService::SdpSink | SessionService::SdpSource => {
            Step::Sdp(SdpStep { connection, action: SdpAction::Send { size: 64, urgent: false } })
        }
        SessionService::SdpDrive | SessionService::SdpConnect => {
            Step::Drive(DriveStep { connection, action: DriveAction::Send { size: 64, urgent: false } })
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

/// Returns the size of the largest Send for sessions, and the size of the shortest longer Send that
/// the target refused. If the size is above [`USUAL`], a Send may take seconds, so the sizes are not
/// exact.
async fn largest_send(player: &Player, segment: u32) -> Result<(u32, Option<u32>), RunError> {
    let play_in = async |size: u32, segment: u32| {
        player.play(SessionService::Echo, "largest-send", &[Step::message(1, size, segment)]).await
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
            // The target may stop receiving, or may be too slow.
            false if size > USUAL && result.verdict != Verdict::Fail => return Ok((most, Some(size))),
            // Any other failure is not a limit. The sessions will show this failure again.
            false => return Ok((size, None)),
        }
    }
    let Some(mut refused) = refused else { return Ok((most, None)) };
    let exactness = |most: u32| if most < USUAL { 1 } else { most / 4 };
    while refused - most > exactness(most) {
        let middle = most + (refused - most) / 2;
        if passed(&play(middle).await?) { most = middle } else { refused = middle }
    }
    Ok((most, Some(refused)))
}

/// Returns whether the target refused a Send because its receive is too short: with the error "ULP
/// message too long" or "invalid MO" of DDP, or by a close alone.
fn is_too_long(result: &CaseResult) -> bool {
    result.actual.as_deref().is_some_and(|actual| ["Terminate 12 05", "Terminate 12 04", "a close"].contains(&actual))
}
