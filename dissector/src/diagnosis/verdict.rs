//! [`Verdict`]: the cause of a connection's end, the endpoint at fault, and the chain of events.

use serde::Serialize;
use weft_core::RequirementId;
use weft_core::requirement::Catalogue;

use crate::direction::Direction;
use crate::frame_number::FrameNumber;

use super::problem_kind::ProblemKind;
use super::problems::Problem;
use super::track::Track;

/// The cause of a connection's end, or the most important fact about a connection that ended
/// normally.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Cause {
    /// There is nothing to report.
    None,
    /// The connection ended normally, but an endpoint violated requirements.
    Violations,
    /// TCP repaired the loss of segments.
    Loss,
    /// An access before the start or after the end of an advertised buffer.
    BeyondBuffer,
    /// An access with a wrong or invalidated STag.
    InvalidStag,
    /// An access that the advertisement of the buffer does not allow.
    AccessRights,
    /// An endpoint rejects an access inside the buffer that it advertised.
    OwnBuffer,
    /// An endpoint rejects the Read Response to its own Read Request.
    OwnReadRequest,
    /// More outstanding Read Requests than the IRD allows.
    ReadDepth,
    /// A Send for which the receiver has no buffer.
    NoReceiveBuffer,
    /// A Send that is longer than the receiver's buffer.
    TooLong,
    /// A wrong CRC of the sender.
    BadCrc,
    /// The network damaged a segment.
    Damaged,
    /// FPDUs with wrong lengths or layout.
    Framing,
    /// Wrong markers.
    Markers,
    /// A wrong key of a start-up frame.
    WrongKey,
    /// Another failure of the start-up.
    Startup,
    /// An endpoint starts MPA although the port mapper denied SDP for the address.
    PortDenied,
    /// The MPA Reply rejects the connection.
    Rejected,
    /// A message with a wrong header or number.
    Message,
    /// An endpoint reports an error of its own.
    LocalError,
    /// A Terminate for another reason.
    Terminate,
    /// An SDP endpoint aborts the connection.
    Aborted,
    /// A violation of SDP.
    Sdp,
    /// A RST without a visible reason.
    Reset,
    /// A RST that does not come from the endpoint whose address it has.
    ForeignReset,
    /// An endpoint does not know the connection any more.
    LostState,
    /// An endpoint closes its receive window and does not open it again.
    ClosedWindow,
    /// An endpoint does not answer a Read Request or an MPA Request, although its TCP answers.
    NoResponse,
    /// The segments of an endpoint no longer reach its peer.
    PathLoss,
    /// Only the long segments of an endpoint no longer reach its peer.
    MtuBlackHole,
    /// An endpoint no longer answers.
    Silence,
    /// Nothing answers the SYN.
    NoAnswer,
    /// A RST answers the SYN.
    Refused,
    /// The capture has only one direction.
    OneDirection,
}

/// The party at fault.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Culprit {
    /// The endpoint that sent the first frame: the first of [`Diagnosis::ends`](super::Diagnosis).
    First,
    /// The other endpoint.
    Second,
    /// Both endpoints violated requirements.
    Both,
    /// The network between the endpoints.
    Network,
    /// There is no fault.
    Nobody,
    /// The capture does not show the party.
    NotInCapture,
}

impl From<Direction> for Culprit {
    fn from(direction: Direction) -> Self {
        match direction {
            Direction::Forward => Culprit::First,
            Direction::Reverse => Culprit::Second,
        }
    }
}

/// One event of the chain that led to the end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Link {
    /// Number of the direction in which the acting endpoint sends: 0 or 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub direction: Option<u8>,
    /// The frame of the event.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub frame: Option<FrameNumber>,
    /// The event as a clause with the address of the endpoint, without a period.
    pub text: String,
    /// The violated requirements.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub requirements: Vec<RequirementId>,
    /// Whether the event is a consequence of the earlier events. Otherwise it only follows them.
    pub is_consequence: bool,
}

impl Link {
    /// An event of the endpoint that sends in `direction`.
    pub(super) fn new(direction: Direction, frame: Option<FrameNumber>, text: String) -> Self {
        Link { direction: Some(u8::from(direction)), frame, text, requirements: Vec::new(), is_consequence: false }
    }

    /// Marks the event as a consequence of the earlier events.
    pub(super) fn therefore(self) -> Self {
        Link { is_consequence: true, ..self }
    }

    /// Returns whether the event is the message that first had the problem. An event that ends the
    /// connection is a consequence, and not the cause.
    pub(super) fn shows(&self, problem: &Problem) -> bool {
        let is_sender = self.direction.is_none_or(|direction| direction == problem.direction);
        let is_same = is_sender && self.frame == Some(problem.first());
        is_same && !self.is_consequence
    }

    /// The event of a problem. If `is_brief` is set, the text lacks the expected and the observed
    /// behaviour.
    fn of(problem: &Problem, track: &Track, is_brief: bool) -> Self {
        let direction = Direction::from(problem.direction);
        let Problem { requirement, expected, found, .. } = problem;
        let more = match problem.requirements.len() {
            0 | 1 => String::new(),
            2 => " and 1 other rule".to_owned(),
            count => format!(" and {} other rules", count - 1),
        };
        let end = track.end(direction);
        let what = if is_brief { String::new() } else { format!(": expected {expected}, found {found}") };
        let text = format!("{end} violates {requirement}{more}{what}");
        Link { requirements: problem.requirements.clone(), ..Link::new(direction, Some(problem.first()), text) }
    }
}

/// The result of the search for a cause.
#[derive(Debug, Clone)]
pub(super) struct Verdict {
    pub(super) cause: Cause,
    pub(super) culprit: Culprit,
    /// The answer in one clause, without a period.
    pub(super) headline: String,
    pub(super) chain: Vec<Link>,
    /// What the capture does not show, as a clause that completes "Not in this capture:".
    pub(super) unknown: Option<String>,
    /// A sentence for the vendor of the endpoint at fault, without a period.
    pub(super) advice: Option<String>,
    /// The index of the problem at the root.
    pub(super) root: Option<usize>,
}

impl Verdict {
    /// A verdict without a chain.
    pub(super) fn new(cause: Cause, culprit: Culprit, headline: String) -> Self {
        Verdict { cause, culprit, headline, chain: Vec::new(), unknown: None, advice: None, root: None }
    }

    /// Adds an event at the end of the chain.
    pub(super) fn then(mut self, link: Link) -> Self {
        self.chain.push(link);
        self
    }

    /// Adds what the capture does not show.
    pub(super) fn unknown(mut self, what: impl Into<String>) -> Self {
        self.unknown = Some(what.into());
        self
    }

    /// Adds a sentence for the vendor of `end`.
    pub(super) fn advice(mut self, end: &str, what: &str) -> Self {
        self.advice = Some(format!("To the vendor of {end}: {what}"));
        self
    }

    /// The verdict that the problem with this index is the cause.
    pub(super) fn of(index: usize, problem: &Problem, track: &Track) -> Self {
        let end = track.end(Direction::from(problem.direction));
        let Problem { requirement, expected, found, .. } = problem;
        let is_detailed = match problem.kind {
            ProblemKind::Startup | ProblemKind::Mpa | ProblemKind::Message | ProblemKind::Sdp | ProblemKind::Upper => {
                true
            }
            // A start-up frame or a Hello can violate a limit, too.
            ProblemKind::ReadDepth => !expected.contains("Read Request"),
            _ => false,
        };
        if !is_detailed {
            let verdict = Verdict::with_headline(index, problem, track, violation(problem, end));
            // A known mistake of senders explains other values. The path can cause any value.
            return match problem.kind == ProblemKind::Crc && is_plain_value(found) {
                true => verdict.unknown(format!("whether the path changed the FPDU after {end} had sent it")),
                false => verdict,
            };
        }
        let protocol = protocol(*requirement);
        let headline = format!("{end} violated {protocol}: expected {expected}, found {found}");
        let mut verdict = Verdict::with_headline(index, problem, track, headline);
        verdict.chain = vec![Link::of(problem, track, true)];
        verdict
    }

    /// The verdict that the problem with this index is the cause, with another headline.
    pub(super) fn with_headline(index: usize, problem: &Problem, track: &Track, headline: String) -> Self {
        let direction = Direction::from(problem.direction);
        let row = problem.requirement.row();
        let (specification, section) = (row.catalogue.specification(), row.section);
        let what = format!("see {} ({specification} section {section}): {}", row.id, row.summary);
        let verdict = Verdict::new(Cause::from(problem.kind), direction.into(), headline);
        let verdict = verdict.then(Link::of(problem, track, false)).advice(track.end(direction), &what);
        Verdict { root: Some(index), ..verdict }
    }
}

/// The name of the protocol to which a requirement belongs.
fn protocol(requirement: RequirementId) -> &'static str {
    match requirement.row().catalogue {
        Catalogue::Mpa | Catalogue::MpaP2p => "MPA",
        Catalogue::Ddp => "DDP",
        Catalogue::Rdmap | Catalogue::Verbs => "RDMAP",
        Catalogue::Sdp => "SDP",
        Catalogue::SdpPm => "the port mapper protocol",
        Catalogue::Iser => "iSER",
        Catalogue::RpcRdma => "RPC-over-RDMA",
    }
}

impl From<ProblemKind> for Cause {
    fn from(kind: ProblemKind) -> Self {
        match kind {
            ProblemKind::Crc => Cause::BadCrc,
            ProblemKind::Framing => Cause::Framing,
            ProblemKind::Markers => Cause::Markers,
            ProblemKind::Key => Cause::WrongKey,
            ProblemKind::Startup => Cause::Startup,
            ProblemKind::ReadDepth => Cause::ReadDepth,
            ProblemKind::Message => Cause::Message,
            ProblemKind::Sdp => Cause::Sdp,
            ProblemKind::Mpa | ProblemKind::Size | ProblemKind::PortMapper | ProblemKind::Upper => Cause::Violations,
        }
    }
}

/// Returns whether the text is only the value of a CRC field, other than zero.
fn is_plain_value(found: &str) -> bool {
    found != "00 00 00 00" && found.split(' ').all(|octet| u8::from_str_radix(octet, 16).is_ok())
}

/// Describes a violation by the endpoint `end` in one clause.
fn violation(problem: &Problem, end: &str) -> String {
    let Problem { found, expected, .. } = problem;
    match problem.kind {
        ProblemKind::Crc if found == "00 00 00 00" => {
            format!("{end} sent an FPDU with a CRC field of zero, although CRC is in use")
        }
        ProblemKind::Crc => format!("{end} sent an FPDU with a wrong CRC"),
        ProblemKind::Framing => format!("{end} sent FPDUs with a wrong length or layout"),
        ProblemKind::Markers if found.starts_with("no marker") => {
            format!("{end} sent an FPDU without markers, which its peer requires")
        }
        ProblemKind::Markers => format!("{end} sent a wrong marker"),
        ProblemKind::Size => format!("{end} sent FPDUs of a wrong size"),
        ProblemKind::Key => format!("{end} sent a start-up frame with a wrong key"),
        ProblemKind::ReadDepth => {
            format!("{end} sent more Read Requests than its peer allows: {found} instead of {expected}")
        }
        ProblemKind::Startup
        | ProblemKind::Mpa
        | ProblemKind::Message
        | ProblemKind::Sdp
        | ProblemKind::PortMapper
        | ProblemKind::Upper => {
            format!("{end} violated {}", protocol(problem.requirement))
        }
    }
}
