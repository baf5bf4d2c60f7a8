//! The result of one variant of a case.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use weft_core::RequirementId;

use super::{CaseKey, ProgramEnd, Seen, SourceLocation, Step, Verdict, stable};

/// The finished case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct CaseResult {
    /// Which case with which parameters.
    pub key: CaseKey,
    /// Version of the case.
    pub version: u32,
    /// One line for people, without the parameters.
    pub title: String,
    /// The verdict of the complete case.
    pub verdict: Verdict,
    /// One verdict for each requirement that the case judges, then those that the monitor also
    /// observed.
    pub requirements: Vec<RequirementVerdict>,
    /// The demand of the deciding requirement; also for a pass.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub expected: Option<String>,
    /// The observation instead, or (for a pass) the observation that shows that the requirement is
    /// met.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub actual: Option<String>,
    /// The reason for the verdict, one sentence.
    pub explanation: String,
    /// The line of the script that decided, if there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub decided_at: Option<SourceLocation>,
    /// The transcript.
    pub steps: Vec<Step>,
    /// The monitor's findings.
    pub seen: Vec<Seen>,
    /// The ends of the programs that `start` of the target file started, if they ended before the
    /// case did.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub program_ends: Vec<ProgramEnd>,
    /// Where the files are.
    pub evidence: Evidence,
    /// Seed of everything random in this case.
    pub seed: u64,
    /// Wall time that the case took, in microseconds.
    pub duration_us: u64,
}

impl CaseResult {
    /// The violated requirements: those of the case, and those that the monitor also observed.
    pub fn failing(&self) -> impl Iterator<Item = RequirementId> {
        self.requirements.iter().filter(|judged| judged.verdict == Verdict::Fail).map(|judged| judged.requirement)
    }

    /// Identifies a failure of the case, for baselines and comparisons: the violated requirements,
    /// and what was observed instead. It is the same in each run: `…` replaces values of this run
    /// (an STag, a time, a port).
    #[must_use]
    pub fn signature(&self) -> String {
        self.signature_of(self.failing())
    }

    /// Like [`signature`](Self::signature), without the monitor's findings.
    pub(crate) fn own_signature(&self) -> String {
        let own = self.requirements.iter().filter(|judged| judged.verdict == Verdict::Fail && !judged.seen_on_the_way);
        self.signature_of(own.map(|judged| judged.requirement))
    }

    fn signature_of(&self, failing: impl Iterator<Item = RequirementId>) -> String {
        let failing: Vec<&str> = failing.map(weft_core::RequirementId::as_str).collect();
        let what = if failing.is_empty() { self.verdict.to_string() } else { failing.join(" ") };
        // Passed and skipped results contain times, and need no more text.
        match (self.verdict > Verdict::Pass).then(|| self.actual.as_ref().unwrap_or(&self.explanation)) {
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
    /// Its verdict.
    pub verdict: Verdict,
    /// `true`: the monitor also observed it; `false`: the case is about it.
    pub seen_on_the_way: bool,
}

/// The files of a case.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize, JsonSchema)]
pub struct Evidence {
    /// Folder of the case, relative to the run's folder, with `/` between its parts.
    pub folder: String,
    /// The files in it.
    pub files: Vec<EvidenceFile>,
    /// Where its packets come from.
    #[serde(default, skip_serializing_if = "EvidenceSource::is_endpoint")]
    pub source: EvidenceSource,
    /// Why they do not come from the wire, although the run captures there.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub without_wire: Option<String>,
}

/// Where the packets of a case come from.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Default, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceSource {
    /// Made from the bytes of the tester's own end: TCP headers and segment boundaries are
    /// synthetic.
    #[default]
    Endpoint,
    /// Captured on an interface.
    Wire,
}

impl EvidenceSource {
    fn is_endpoint(&self) -> bool {
        *self == EvidenceSource::Endpoint
    }

    /// A phrase for reports.
    #[must_use]
    pub fn description(self) -> &'static str {
        match self {
            EvidenceSource::Endpoint => "recorded by weft itself, with synthetic TCP headers",
            EvidenceSource::Wire => "captured on the wire",
        }
    }
}

impl Evidence {
    /// Path of the file of one kind, relative to the run's folder.
    #[must_use]
    pub fn path(&self, kind: EvidenceKind) -> Option<&str> {
        self.files.iter().find(|file| file.kind == kind).map(|file| file.path.as_str())
    }
}

/// One file of a case.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct EvidenceFile {
    /// Its kind.
    pub kind: EvidenceKind,
    /// Path relative to the run's folder, with `/` between its parts.
    pub path: String,
}

/// The kind of a file of evidence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
pub enum EvidenceKind {
    /// Packets with comments.
    Pcapng,
    /// The result as JSON, transcript included.
    Transcript,
}
