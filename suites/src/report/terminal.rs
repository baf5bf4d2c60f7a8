//! The run in a terminal: one line per finished case, then the failures, then the totals.
//!
//! If several variants of a case fail in the same way, the failure is printed once. If the monitor
//! observed a violation in many cases about other requirements, the violation is printed once, too
//! (`also observed`). Cases that did not run are only counted, by reason. With `--verbose`, each of
//! these cases has a line.
//!
//! If the target is down, the headline of the run is the first line. So the line about the run
//! waits until the first case has a connection.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::Path;
use std::sync::{Mutex, PoisonError};

use weft_core::text::Visible;
use weft_dissector::output::text::counted;

use super::causes::failures;
use super::command::command;
use super::known::expected_text;
use super::{cases, evidence};
use crate::clock;
use crate::model::{
    CaseResult, Event, EventSink, RequirementVerdict, RunInfo, Summary, Verdict, also_observed, labels_text, lost_text,
};
use crate::stage::DIED;

/// Maximum number of cases that are named in a group.
const MAX_NAMED: usize = 3;

/// Minimum number of failures for which the probable causes are listed.
const MIN_SUMMARISED: usize = 4;
/// Maximum number of probable causes that are listed.
const MAX_CAUSES: usize = 8;

/// Writes events as text.
pub struct Terminal<W> {
    state: Mutex<State<W>>,
}

struct State<W> {
    writer: Visible<W>,
    colour: bool,
    verbose: bool,
    quiet: bool,
    /// Begin of the paths of the evidence: the folder of the run, and `/`. Empty if it is unknown.
    folder: String,
    /// The run, after it has started.
    run: Option<RunInfo>,
    /// The lines about the run, until they are printed.
    opening: String,
    /// Whether the headline of a target that is down is printed.
    has_headline: bool,
    /// Results that are worse than a pass or have a violation, in the order of events.
    wrong: Vec<CaseResult>,
    /// Number of cases that decided nothing about the target, by verdict and reason.
    not_run: BTreeMap<(Verdict, String), u64>,
    /// Sources of the evidence.
    evidence: evidence::Sources,
}

impl<W: Write + Send> Terminal<W> {
    /// Creates a sink that writes to `writer`. `colour` adds ANSI colours, for terminals only.
    pub fn new(writer: W, colour: bool) -> Self {
        Terminal {
            state: Mutex::new(State {
                writer: Visible(writer),
                colour,
                verbose: false,
                quiet: false,
                folder: String::new(),
                run: None,
                opening: String::new(),
                has_headline: false,
                wrong: Vec::new(),
                not_run: BTreeMap::new(),
                evidence: evidence::Sources::default(),
            }),
        }
    }

    /// Also prints a line for each case that did not run.
    #[must_use]
    pub fn verbose(self, verbose: bool) -> Self {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).verbose = verbose;
        self
    }
}

impl<W: Write + Send> Terminal<W> {
    /// Prints no line for a case that passes.
    #[must_use]
    pub fn quiet(self, quiet: bool) -> Self {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).quiet = quiet;
        self
    }

    /// Prints the paths of the evidence with the folder of the run.
    #[must_use]
    pub fn folder(self, out: &Path) -> Self {
        self.state.lock().unwrap_or_else(PoisonError::into_inner).folder = out.join("").display().to_string();
        self
    }
}

impl<W: Write + Send> EventSink for Terminal<W> {
    fn event(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A closed terminal does not stop a run, because the reports have all events.
        if let Err(error) = state.write(event) {
            tracing::debug!(%error, "terminal");
        }
    }
}

impl<W: Write> State<W> {
    fn write(&mut self, event: &Event) -> std::io::Result<()> {
        let is_quiet = match event {
            Event::RunStarted { .. } | Event::CaseStarted { .. } | Event::TargetDown { .. } => true,
            Event::CaseStep { step, .. } => step.connection == 0,
            Event::TargetWaiting { .. } | Event::CaseFinished { .. } | Event::RunFinished { .. } => false,
        };
        if !is_quiet {
            self.open()?;
        }
        match event {
            Event::RunStarted { run, planned, .. } => {
                self.opening = opening(run, planned.len());
                self.run = Some(run.clone());
                Ok(())
            }
            Event::TargetDown { headline } => self.headline(headline),
            Event::TargetWaiting { what, seconds } => writeln!(self.writer, "waiting at most {seconds} s: {what}"),
            Event::CaseStarted { .. } | Event::CaseStep { .. } => Ok(()),
            Event::CaseFinished { result } => self.finished(result),
            Event::RunFinished { summary } => {
                if let Some(headline) = &summary.target_down {
                    self.headline(headline)?;
                }
                let wrong = std::mem::take(&mut self.wrong);
                let expected =
                    expected_text(summary, wrong.iter()).map_or_else(String::new, |text| format!("; {text}"));
                self.explain(summary, &wrong)?;
                let counts = Verdict::ALL.into_iter().rev().filter(|verdict| summary.counts.of(*verdict) > 0);
                let counts: Vec<String> =
                    counts.map(|verdict| format!("{} {verdict}", summary.counts.of(verdict))).collect();
                let sum = if counts.is_empty() { "nothing was run".to_owned() } else { counts.join(", ") };
                let time = clock::duration(summary.duration_us);
                writeln!(self.writer, "\n{}: {sum}{expected}; {}, {time}", cases(summary.planned), summary.status)?;
                if let Some(score) = summary.score.map(|score| score.to_string()).filter(|score| !score.is_empty()) {
                    writeln!(self.writer, "requirements met: {score}")?;
                }
                for line in std::mem::take(&mut self.evidence).lines() {
                    writeln!(self.writer, "evidence {line}")?;
                }
                match summary.reasons.join("; ") {
                    reasons if reasons.is_empty() => Ok(()),
                    reasons => writeln!(self.writer, "exit code {}: {reasons}", summary.exit_code.code()),
                }
            }
        }?;
        self.writer.flush()
    }

    /// Prints the lines about the run, once.
    fn open(&mut self) -> std::io::Result<()> {
        let opening = std::mem::take(&mut self.opening);
        self.writer.write_all(opening.as_bytes())
    }

    /// Prints that the target is down, once, before the line about the run.
    fn headline(&mut self, headline: &str) -> std::io::Result<()> {
        if !std::mem::replace(&mut self.has_headline, true) {
            // An empty line separates the headline from the cases before it.
            let is_first = !self.opening.is_empty();
            writeln!(self.writer, "{}{headline}", if is_first { "" } else { "\n" })?;
        }
        self.open()
    }

    fn finished(&mut self, result: &CaseResult) -> std::io::Result<()> {
        let tried = !result.steps.is_empty();
        let is_hidden = self.quiet && result.verdict == Verdict::Pass;
        if !is_hidden && (tried || self.verbose || result.verdict == Verdict::Error) {
            write!(self.writer, "  ")?;
            self.coloured(result.verdict, &format!("{:<14}", result.verdict))?;
            writeln!(self.writer, " {}  {}", result.key, clock::duration(result.duration_us))?;
        }
        self.evidence.add(&result.evidence);
        let skipped = matches!(result.verdict, Verdict::NotApplicable | Verdict::Unimplemented);
        if skipped || !tried && result.verdict == Verdict::Inconclusive {
            *self.not_run.entry((result.verdict, result.explanation.clone())).or_default() += 1;
        }
        if result.verdict > Verdict::Pass || result.failing().next().is_some() {
            self.wrong.push(result.clone());
        }
        Ok(())
    }

    /// Prints failures, then errors, then inconclusive cases, then violations that were also
    /// observed.
    fn explain(&mut self, summary: &Summary, wrong: &[CaseResult]) -> std::io::Result<()> {
        for expected in &summary.expected {
            let link = expected.link.as_ref().map_or_else(String::new, |link| format!(" ({link})"));
            writeln!(self.writer, "\nexpected {}: {}{link}", expected.key, expected.reason)?;
        }
        let wrong: Vec<&CaseResult> = wrong.iter().filter(|result| summary.expects(result).is_none()).collect();
        if summary.target_down.is_some() {
            // The headline is enough, so cases that did not reach the target are only counted.
            for result in wrong.iter().filter(|result| result.is_unreached() && !result.steps.is_empty()) {
                *self.not_run.entry((result.verdict, result.explanation.clone())).or_default() += 1;
            }
        }
        for verdict in [Verdict::Fail, Verdict::Error, Verdict::Inconclusive] {
            let tried = |result: &&CaseResult| result.verdict == verdict && !self.is_counted(result);
            let mut left: Vec<&CaseResult> = wrong.iter().copied().filter(tried).collect();
            while let Some(first) = left.first().copied() {
                let (same, others) = left.into_iter().partition::<Vec<_>, _>(|result| went_the_same_way(first, result));
                left = others;
                self.explain_group(&same)?;
            }
        }
        self.also_observed(summary, &wrong)?;
        self.probable_causes(summary, &wrong)?;
        let not_run = std::mem::take(&mut self.not_run);
        if !not_run.is_empty() {
            writeln!(self.writer)?;
        }
        for ((verdict, why), count) in not_run {
            self.coloured(verdict, verdict.as_str())?;
            writeln!(self.writer, ", {}: {why}", cases(count))?;
        }
        for boundary in &summary.boundaries {
            writeln!(self.writer, "\nboundary of {boundary}")?;
        }
        for line in &summary.declared_otherwise {
            writeln!(self.writer, "\ntarget file differs from the device: {line}")?;
        }
        for entry in &summary.stale {
            writeln!(self.writer, "\nstale entry of the baseline: {entry}")?;
        }
        for entry in &summary.unmatched {
            writeln!(self.writer, "\nnot expected by the baseline: {entry}")?;
        }
        Ok(())
    }

    /// Returns whether the output only counts this result, under its verdict and reason.
    fn is_counted(&self, result: &CaseResult) -> bool {
        self.not_run.contains_key(&(result.verdict, result.explanation.clone()))
    }

    /// Prints, once for each requirement, that the target also violated the requirement in cases
    /// about other requirements.
    fn also_observed(&mut self, summary: &Summary, wrong: &[&CaseResult]) -> std::io::Result<()> {
        for (id, results) in also_observed(summary, wrong.iter().copied()) {
            let row = id.row();
            writeln!(self.writer)?;
            self.coloured(Verdict::Fail, "also observed")?;
            writeln!(self.writer, ": {} {} ({}): {}", row.id, row.level, row.role, row.summary)?;
            let mut named: Vec<String> = results.iter().take(MAX_NAMED).map(|result| result.key.to_string()).collect();
            if results.len() > MAX_NAMED {
                named.push(format!("{} more", results.len() - MAX_NAMED));
            }
            writeln!(self.writer, "  in        {}", named.join(", "))?;
            let Some(first) = results.first() else { continue };
            if let Some(finding) = first.findings.iter().find(|finding| finding.by_target && finding.requirement == id)
            {
                writeln!(self.writer, "  finding   {}", finding.text)?;
            }
            if !first.evidence.folder.is_empty() {
                writeln!(self.writer, "  evidence  {}{}", self.folder, first.evidence.folder)?;
            }
        }
        Ok(())
    }

    /// Prints the probable causes, each with one case to begin with. Few failures need no summary.
    fn probable_causes(&mut self, summary: &Summary, wrong: &[&CaseResult]) -> std::io::Result<()> {
        if wrong.iter().filter(|result| result.verdict == Verdict::Fail).count() < MIN_SUMMARISED {
            return Ok(());
        }
        let causes = failures(summary, wrong.iter().copied());
        writeln!(self.writer, "\nprobable causes (an estimate from what the failures have in common):")?;
        for cause in causes.iter().take(MAX_CAUSES) {
            let rule = cause.requirements.first().map_or_else(String::new, |id| {
                let row = id.row();
                format!("{} {}: {}", row.id, row.level, row.summary)
            });
            writeln!(self.writer, "  {:<9} {rule}", cases(cause.results as u64))?;
            writeln!(self.writer, "            actual    {}", cause.text)?;
            if let (Some(run), Some(key)) = (&self.run, cause.named.first()) {
                writeln!(self.writer, "            again     {}", command(run, key))?;
            }
        }
        match causes.len().saturating_sub(MAX_CAUSES) {
            0 => Ok(()),
            more => writeln!(self.writer, "  and {}, see report.html", counted(more as u64, "more cause")),
        }
    }

    fn explain_group(&mut self, same: &[&CaseResult]) -> std::io::Result<()> {
        let Some(first) = same.first() else { return Ok(()) };
        writeln!(self.writer)?;
        self.coloured(first.verdict, first.verdict.as_str())?;
        writeln!(self.writer, " {}: {}", first.key, first.title)?;
        // An error is a fault of the tester, and no verdict on requirements.
        let about = |judged: &&RequirementVerdict| {
            judged.verdict == first.verdict && judged.verdict != Verdict::Error && !judged.also_observed
        };
        for judged in first.requirements.iter().filter(about) {
            let row = judged.requirement.row();
            writeln!(self.writer, "  {} {} ({}): {}", row.id, row.level, row.role, row.summary)?;
        }
        match (&first.expected, &first.actual) {
            (Some(expected), Some(actual)) => {
                // What the target did does not show that it died.
                if first.explanation.starts_with(DIED) {
                    writeln!(self.writer, "  {}", first.explanation)?;
                }
                writeln!(self.writer, "  expected  {expected}")?;
                writeln!(self.writer, "  actual    {actual}")?;
            }
            _ => writeln!(self.writer, "  {}", first.explanation)?,
        }
        if let Some(at) = &first.decided_at {
            writeln!(self.writer, "  decided   {at}")?;
        }
        if !first.evidence.folder.is_empty() {
            writeln!(self.writer, "  evidence  {}{}", self.folder, first.evidence.folder)?;
        }
        for dropped in &first.evidence.dropped {
            writeln!(self.writer, "  evidence  {}", dropped.sentence())?;
        }
        // The other reports show this for each failure.
        if !first.evidence.dropped.is_empty()
            && let Some(decision) = first.decision()
        {
            writeln!(self.writer, "  evidence  decided at {decision}")?;
        }
        if same.len() > 1 {
            let others: Vec<String> = same[1..].iter().map(|result| parameters(result)).collect();
            writeln!(self.writer, "  same for  {}", others.join(" "))?;
        }
        match &self.run {
            Some(run) if first.verdict == Verdict::Fail => {
                writeln!(self.writer, "  again     {}", command(run, &first.key))
            }
            _ => Ok(()),
        }
    }

    /// Writes text in the colour of a verdict. The text must be weft's own, because control
    /// characters in it stay active.
    fn coloured(&mut self, verdict: Verdict, text: &str) -> std::io::Result<()> {
        if !self.colour {
            return self.writer.write_all(text.as_bytes());
        }
        let colour = match verdict {
            Verdict::Pass => "32",
            Verdict::Fail => "1;31",
            Verdict::Error => "1;35",
            Verdict::Inconclusive => "33",
            Verdict::NotApplicable | Verdict::Unimplemented => "2",
        };
        // This bypasses the writer that makes control characters visible.
        write!(self.writer.0, "\x1b[{colour}m{text}\x1b[0m")
    }
}

/// Returns the lines about a run.
fn opening(run: &RunInfo, planned: usize) -> String {
    let target = &run.target;
    let (count, version) = (cases(planned as u64), &run.weft_version);
    let mut text = format!("weft {version}: {count} against {} ({})", target.name, target.reached_by);
    if !target.deviations.is_empty() {
        text.push_str(&format!(", deviating: {}", target.deviations.join(", ")));
    }
    text.push_str(&format!(", seed {}\n", run.seed));
    if let Some(probed) = &target.probed {
        text.push_str(&format!("probed, because the target file has no `capabilities`: {probed}\n"));
    }
    if let Some(lost) = lost_text(&target.lost_capabilities) {
        text.push_str(&format!(
            "warning: the target {lost} since an earlier run, so the run fails; to accept this, add `capabilities` to \
             the target file\n"
        ));
    }
    match labels_text(&run.labels) {
        labels if labels.is_empty() => {}
        labels => text.push_str(&format!("labels: {labels}\n")),
    }
    text
}

fn went_the_same_way(a: &CaseResult, b: &CaseResult) -> bool {
    let of = |result: &CaseResult| (result.expected.clone(), result.actual.clone(), result.decided_at.clone());
    a.key.case == b.key.case && a.explanation == b.explanation && of(a) == of(b)
}

/// Returns the parameters of a result (`octet=3`), or the key of a case without parameters.
fn parameters(result: &CaseResult) -> String {
    let key = result.key.to_string();
    key.split_once('[').map_or(key.clone(), |(_, parameters)| parameters.trim_end_matches(']').to_owned())
}
