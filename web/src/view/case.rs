//! The page of one case of a run: requirements, expected and actual behaviour, ladder diagram,
//! bytes, evidence.

use askama::Template;
use weft_core::Requirement;
use weft_suites::clock;
use weft_suites::model::{CaseInfo, CaseResult, EvidenceKind, MarkKind, RunInfo, Step, Verdict};
use weft_suites::report;
use weft_suites::report::hex::{self, HexRow};
use weft_suites::store::{PastResult, RunDetail};

use super::operator::OperatorForms;
use super::{time, url};

/// The maximum number of bytes of a step on the page.
const SHOWN: usize = 1024;

#[derive(Template)]
#[template(path = "case.html")]
struct Page<'a> {
    info: &'a RunInfo,
    run_href: String,
    key: String,
    case: Option<&'a CaseInfo>,
    result: Option<&'a CaseResult>,
    took: String,
    requirements: Vec<Judged>,
    ladder: String,
    steps: Vec<StepView<'a>>,
    /// The files of evidence: name and address.
    files: Vec<(&'static str, String)>,
    /// The address of the page with the packets of the pcapng file.
    packets: Option<String>,
    /// Whether the files of evidence exist.
    is_kept: bool,
    /// Results of the case on this target, in this run and in other runs.
    past: Vec<Past>,
    previous: Option<String>,
    next: Option<String>,
    /// The key of an operator's forms, if the server can start runs against the target.
    form_key: Option<&'a str>,
    path: String,
}

struct Past {
    href: String,
    started: String,
    verdict: Verdict,
    took: String,
    is_this: bool,
}

struct Judged {
    row: &'static Requirement,
    verdict: Option<Verdict>,
    also_observed: bool,
}

struct StepView<'a> {
    step: &'a Step,
    at: String,
    len: u64,
    rows: Vec<HexRow>,
    more: u64,
    marks: Vec<MarkView<'a>>,
}

struct MarkView<'a> {
    class: &'static str,
    octets: String,
    label: &'a str,
    why: &'static str,
}

/// Renders the page of the case at index `place` in the plan of the run. `is_kept` is `true` if the
/// files of evidence exist.
pub(crate) fn case(
    run: &RunDetail,
    place: usize,
    result: Option<&CaseResult>,
    is_kept: bool,
    past: &[PastResult],
    forms: Option<OperatorForms<'_>>,
) -> Result<String, askama::Error> {
    let id = &run.record.info.id;
    let Some(planned) = run.planned.get(place) else { return Err(askama::Error::custom("the plan has no such case")) };
    let key = &planned.key;
    let case = run.cases.iter().find(|case| case.id == key.case);
    let neighbour = |place: Option<usize>| Some(url::case(id, &run.planned.get(place?)?.key));
    let page = Page {
        info: &run.record.info,
        run_href: url::run(id),
        key: key.to_string(),
        case,
        result,
        took: result.map(|result| clock::duration(result.duration_us)).unwrap_or_default(),
        requirements: judged(case, result),
        ladder: result.map(|result| report::ladder(&result.steps).svg()).unwrap_or_default(),
        steps: result.map(|result| result.steps.iter().filter_map(step).collect()).unwrap_or_default(),
        files: result.map(|result| files(id, result)).unwrap_or_default(),
        packets: result
            .filter(|result| result.evidence.path(EvidenceKind::Pcapng).is_some())
            .map(|_| url::capture(&url::evidence_capture(id, place))),
        is_kept,
        past: past.iter().map(|one| past_line(id, one)).collect(),
        previous: neighbour(place.checked_sub(1)),
        next: neighbour(place.checked_add(1)),
        form_key: forms.map(|forms| forms.key),
        path: key.path(),
    };
    page.render()
}

fn past_line(this: &str, past: &PastResult) -> Past {
    Past {
        href: url::case(&past.run, &past.key),
        started: time::utc(past.started_unix_ms),
        verdict: past.verdict,
        took: clock::duration(past.duration_us),
        is_this: past.run == this,
    }
}

fn judged(case: Option<&CaseInfo>, result: Option<&CaseResult>) -> Vec<Judged> {
    match (result, case) {
        (Some(result), _) => {
            let judged = result.requirements.iter().map(|judged| Judged {
                row: judged.requirement.row(),
                verdict: Some(judged.verdict),
                also_observed: judged.also_observed,
            });
            judged.collect()
        }
        (None, Some(case)) => {
            let planned =
                case.requirements.iter().map(|id| Judged { row: id.row(), verdict: None, also_observed: false });
            planned.collect()
        }
        (None, None) => Vec::new(),
    }
}

/// Returns the view of a step. Returns `None` if the step has no bytes. Only the ladder diagram
/// shows such steps.
fn step(step: &Step) -> Option<StepView<'_>> {
    let octets = step.octets.as_ref()?;
    let marks = octets.marks.iter().filter_map(|mark| {
        let (class, why) = match mark.kind {
            MarkKind::Field => return None,
            MarkKind::Stimulus => ("stimulus", "changed on purpose"),
            MarkKind::Wrong => ("wrong", "wrong"),
        };
        Some(MarkView { class, octets: mark.range_text(), label: &mark.label, why })
    });
    Some(StepView {
        step,
        at: format!("{}.{:03}", step.at_ns / 1_000_000, step.at_ns / 1000 % 1000),
        len: octets.len,
        rows: hex::rows(octets, SHOWN),
        more: octets.len.saturating_sub(SHOWN as u64),
        marks: marks.collect(),
    })
}

fn files(run: &str, result: &CaseResult) -> Vec<(&'static str, String)> {
    let kinds = [(EvidenceKind::Pcapng, "pcapng"), (EvidenceKind::Transcript, "transcript")];
    let present = kinds.into_iter().filter(|(kind, _)| result.evidence.path(*kind).is_some());
    present.map(|(_, name)| (name, url::evidence(run, name, &result.key))).collect()
}
