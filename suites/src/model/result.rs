//! The result of one variant of a case.

use std::time::Duration;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_core::RequirementId;
use weft_dissector::output::text::counted;

use super::{CaseKey, Direction, MonitorFinding, ProgramEnd, SourceLocation, Step, StepKind, Verdict, stable};

/// The result of one variant of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// The variant of the case.
    pub key: CaseKey,
    /// Version of the case.
    pub version: u32,
    /// Title of the case, one line, without the parameters.
    pub title: String,
    /// Overall verdict of the variant.
    pub verdict: Verdict,
    /// The verdicts of the requirements that the case judges, then of other requirements whose
    /// violation the monitor observed.
    pub requirements: Vec<RequirementVerdict>,
    /// What the deciding requirement demands. A pass has this text, too.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// What was observed. For a pass, this observation shows that the requirement is met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    /// The reason for the verdict, as one or more sentences.
    pub explanation: String,
    /// The line of the script that decided the verdict, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<SourceLocation>,
    /// Number of the packet in the case's pcapng at which a failure was decided, from 1. The packet
    /// has what the target sent last before the decision. If an answer is missing, the packet has
    /// what the tester sent last. If a finding of the monitor decided, this is the packet of the
    /// finding. If several packets share these bytes, this is the last of them. Absent if no packet
    /// has these bytes.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_packet: Option<u64>,
    /// Relative TCP sequence numbers, as Wireshark shows them, of the first and the last payload
    /// byte in the packet `decided_packet`. Absent if this packet has no TCP payload.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_sequence: Option<[u64; 2]>,
    /// The transcript of the case. In reports and in the results store, a note replaces the middle
    /// of a long transcript. The evidence file `transcript.json` has all steps, up to the limit of
    /// the run. Above this limit, a note replaces the middle in this file, too.
    pub steps: Vec<Step>,
    /// The monitor's findings.
    #[serde(rename = "seen")]
    pub findings: Vec<MonitorFinding>,
    /// Programs that the command `start` of the target file started, and that ended before the case
    /// ended.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program_ends: Vec<ProgramEnd>,
    /// The files with the evidence.
    pub evidence: Evidence,
    /// Seed of all random values in this case.
    pub seed: u64,
    /// Duration of the case in microseconds of wall time.
    pub duration_us: u64,
}

/// Begin of the sentence of an explanation about what the evidence lacks. The counts in this
/// sentence can differ in each run, so a signature does not have the sentence.
pub(crate) const EVIDENCE_LACKS: &str = " The evidence lacks ";

/// Begin of the explanation of a case that did not run, because the target only accepts
/// connections. The target is then not down.
pub(crate) const SENDS_NOTHING: &str = "The target accepts connections and sends nothing";

/// Number of steps that a report keeps from the beginning of a long transcript.
const FIRST_STEPS: usize = 50;
/// Number of steps that a report keeps from the end of a long transcript. Most failures are there.
const LAST_STEPS: usize = 100;
/// Number of steps that a report keeps from the beginning, and from the end, of a long transcript
/// without a violation.
const PASSED_STEPS: usize = 25;

impl CaseResult {
    /// Replaces the middle of a long transcript by a note, so that reports stay short. Steps that show
    /// a violation or the stimulus remain.
    pub(crate) fn shorten_steps(&mut self) {
        let has_passed = self.verdict == Verdict::Pass && self.failing().next().is_none();
        let (first, last) = if has_passed { (PASSED_STEPS, PASSED_STEPS) } else { (FIRST_STEPS, LAST_STEPS) };
        let Some(end) = self.steps.len().checked_sub(last).filter(|end| *end > first + 1) else { return };
        let at_ns = self.steps[first].at_ns;
        let mut middle: Vec<Step> = self.steps.drain(first..end).collect();
        let all = middle.len();
        middle.retain(|step| step.is_decisive() || step.is_gap());
        let note = Step {
            at_ns,
            connection: 0,
            direction: Direction::Observed,
            kind: StepKind::Note,
            text: format!("{} steps are left out here; transcript.json has them", all - middle.len()),
            octets: None,
        };
        self.steps.splice(first..first, std::iter::once(note).chain(middle));
    }

    /// Returns whether the case is inconclusive because it had no connection to the target. A case
    /// that did not run because the target sends nothing does not count.
    #[must_use]
    pub fn is_unreached(&self) -> bool {
        self.verdict == Verdict::Inconclusive
            && self.steps.iter().all(|step| step.connection == 0)
            && !self.explanation.starts_with(SENDS_NOTHING)
    }

    /// Returns the violated requirements: requirements of the case, and other requirements whose
    /// violation the monitor observed.
    pub fn failing(&self) -> impl Iterator<Item = RequirementId> {
        self.requirements.iter().filter(|judged| judged.verdict == Verdict::Fail).map(|judged| judged.requirement)
    }

    /// Returns where a failure was decided, as a phrase for reports that follows "decided at".
    /// Returns `None` if no failure was decided, or if no packet has the deciding bytes although the
    /// packets are complete.
    #[must_use]
    pub fn decision(&self) -> Option<String> {
        match (self.decided_packet, self.decided_sequence) {
            (Some(packet), Some([first, last])) => {
                Some(format!("packet {packet}, relative TCP sequence numbers {first} to {last}"))
            }
            (Some(packet), None) => Some(format!("packet {packet}")),
            (None, _) if self.verdict == Verdict::Fail && !self.evidence.dropped.is_empty() => {
                Some("no packet of the capture".to_owned())
            }
            (None, _) => None,
        }
    }

    /// Returns a text that identifies a failure of the case, for baselines and comparisons: the
    /// violated requirements, and what was observed. The text is the same in each run, because
    /// `…` replaces values that change (an STag, a time, a port).
    #[must_use]
    pub fn signature(&self) -> String {
        self.signature_of(self.failing())
    }

    /// Like [`signature`](Self::signature), but only with the requirements that the case is about.
    pub(crate) fn own_signature(&self) -> String {
        let own = self.requirements.iter().filter(|judged| judged.verdict == Verdict::Fail && !judged.also_observed);
        self.signature_of(own.map(|judged| judged.requirement))
    }

    fn signature_of(&self, failing: impl Iterator<Item = RequirementId>) -> String {
        let failing: Vec<&str> = failing.map(weft_core::RequirementId::as_str).collect();
        let what = if failing.is_empty() { self.verdict.to_string() } else { failing.join(" ") };
        // The text of a passed or skipped result is left out, because it may contain times.
        let explained = || self.explanation.split(EVIDENCE_LACKS).next().unwrap_or_default();
        match (self.verdict > Verdict::Pass).then(|| self.actual.as_deref().unwrap_or_else(explained)) {
            Some(actual) => format!("{what}: {}", stable(actual)),
            None => what,
        }
    }
}

/// The verdict of one requirement.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RequirementVerdict {
    /// The requirement.
    #[schemars(with = "String")]
    pub requirement: RequirementId,
    /// Verdict of the requirement.
    pub verdict: Verdict,
    /// `false` if the case is about the requirement. `true` if the case is not about the
    /// requirement, but the monitor observed a violation of it.
    #[serde(rename = "seen_on_the_way")]
    pub also_observed: bool,
}

/// The evidence files of a case.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Folder of the case, relative to the run's folder, with `/` between its parts.
    pub folder: String,
    /// The files in the folder.
    pub files: Vec<EvidenceFile>,
    /// Source of the packets.
    #[serde(default, skip_serializing_if = "EvidenceSource::is_endpoint")]
    pub source: EvidenceSource,
    /// Reason why the packets were not captured on the wire, although the run captures on an
    /// interface.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_wire: Option<String>,
    /// The traffic that the packets lack, because the size of the evidence is limited.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub dropped: Vec<DroppedTraffic>,
}

/// Contiguous traffic of one direction that the packets of a case lack. The monitor has judged this
/// traffic.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct DroppedTraffic {
    /// Number of the connection in the case, from 1. 0 for datagrams.
    pub connection: u32,
    /// Direction of the traffic, `sent` or `received`.
    pub direction: Direction,
    /// Number of writes or reads of the tester.
    pub events: u64,
    /// Number of payload bytes.
    pub octets: u64,
    /// CRC32c of these bytes, in their order, as eight hexadecimal digits.
    pub crc32c: String,
    /// Time of the first event, in nanoseconds since the case began.
    pub first_ns: u64,
    /// Time of the last event, in nanoseconds since the case began.
    pub last_ns: u64,
}

impl DroppedTraffic {
    /// Returns how much traffic is missing, and whose traffic it is, as a phrase for reports.
    pub(crate) fn amount(&self) -> String {
        let sender = if self.direction == Direction::Sent { "the tester" } else { "the target" };
        let (octets, events) = (counted(self.octets, "byte"), counted(self.events, "event"));
        format!("{octets} that {sender} sent ({events}, CRC32c {})", self.crc32c)
    }

    /// Returns a sentence for reports, without a period: how much traffic the capture lacks, and
    /// where.
    #[must_use]
    pub fn sentence(&self) -> String {
        let place = match self.connection {
            0 => "in datagrams".to_owned(),
            number => format!("on connection {number}"),
        };
        let [first, last] = [self.first_ns, self.last_ns].map(|ns| Duration::from_nanos(ns).as_secs_f64());
        format!("the capture lacks {} {place}, from {first:.6} s to {last:.6} s of the case", self.amount())
    }
}

/// Source of the packets of a case.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceSource {
    /// Made from the bytes that the tester sent and received. TCP headers and segment boundaries
    /// are synthetic.
    #[default]
    Endpoint,
    /// Captured on an interface.
    Wire,
}

impl EvidenceSource {
    fn is_endpoint(&self) -> bool {
        *self == EvidenceSource::Endpoint
    }

    /// Returns a phrase for reports.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            EvidenceSource::Endpoint => "recorded by weft itself, with synthetic TCP headers",
            EvidenceSource::Wire => "captured on the wire",
        }
    }
}

impl Evidence {
    /// Returns the path of the file of one kind, relative to the run's folder.
    #[must_use]
    pub fn path(&self, kind: EvidenceKind) -> Option<&str> {
        self.files.iter().find(|file| file.kind == kind).map(|file| file.path.as_str())
    }
}

/// One file of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceFile {
    /// Kind of the file.
    pub kind: EvidenceKind,
    /// Path relative to the run's folder, with `/` between its parts.
    pub path: String,
}

/// The kind of an evidence file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// Packets with comments.
    Pcapng,
    /// The result as JSON, transcript included.
    Transcript,
}
