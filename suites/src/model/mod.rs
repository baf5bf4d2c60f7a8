//! The data types of a run: cases, keys, verdicts, transcripts, results, events.
//!
//! All types here are serialised. The event stream, the JSON report, the transcripts and the
//! results store consist of them, and `schema/*.json` describes them. Other modules have the code:
//! `crate::run` runs and judges cases, and [`crate::report`] formats the results.
//!
//! A run sends [`Event::RunStarted`] first, and possibly [`Event::TargetWaiting`]. If it cannot
//! reach the target, it sends [`Event::TargetDown`] once. For each planned case it sends
//! [`Event::CaseStarted`], the case's [`Event::CaseStep`]s, and [`Event::CaseFinished`]. The last
//! event is [`Event::RunFinished`].

mod capability;
mod case;
mod event;
mod key;
mod label;
mod monitor_finding;
mod octets;
mod old_ids;
mod old_phrases;
mod probed;
mod program_end;
mod reasons;
mod report;
mod result;
mod role;
mod run;
mod score;
mod signature;
pub(crate) mod skip;
mod status;
mod step;
mod summary;
mod tier;
mod verdict;
mod words;

pub use capability::Capability;
pub use case::{CaseInfo, SourceLocation};
pub use event::{Event, EventSink, Fanout};
pub use key::{CaseKey, InvalidKey, ParameterValue, Parameters};
pub use label::{Labels, parse_label};
pub(crate) use label::{label_fault, labels_text};
pub use monitor_finding::MonitorFinding;
pub use octets::{Mark, MarkKind, Octets};
pub(crate) use old_ids::current_word;
pub use probed::{ProbedFacts, ProbedSdp};
pub use program_end::ProgramEnd;
pub(crate) use reasons::{also_observed, lost_text};
pub use report::RunReport;
pub use result::{
    CaseResult, DroppedTraffic, Evidence, EvidenceFile, EvidenceKind, EvidenceSource, RequirementVerdict,
};
pub(crate) use result::{EVIDENCE_LACKS, SENDS_NOTHING};
pub use role::Role;
pub use run::{RunInfo, TargetInfo};
pub(crate) use score::worst;
pub use score::{Score, Strength, Tally, is_proposal};
pub(crate) use signature::stable;
pub use status::RunStatus;
pub use step::{Direction, Step, StepKind};
pub use summary::{Boundary, Counts, ExitCode, ExpectedResult, Summary};
pub(crate) use tier::CaseLimits;
pub use tier::Tier;
pub use verdict::Verdict;
