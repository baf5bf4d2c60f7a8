//! The run in a terminal: a line per case as it ends, then what went wrong, then the sum.
//!
//! Cases of one script that went wrong in the same way are told once. Colours only where the writer is a terminal that
//! wants them; the text is the same without.

use std::collections::BTreeMap;
use std::io::Write;
use std::sync::{Mutex, PoisonError};

use crate::clock;
use crate::model::{CaseResult, Event, EventSink, RequirementVerdict, Summary, Verdict};

/// Writes events for people.
pub struct Terminal<W> {
    state: Mutex<State<W>>,
}

struct State<W> {
    writer: W,
    colour: bool,
    /// Everything that is neither passed nor skipped, in the order it came.
    wrong: Vec<CaseResult>,
    /// Requirements that the monitor saw broken in cases that passed.
    on_the_way: Vec<CaseResult>,
    /// Cases that tried nothing, by verdict and reason.
    untried: BTreeMap<(Verdict, String), u64>,
}

impl<W: Write + Send> Terminal<W> {
    /// Writes to `writer`; `colour`: with ANSI colours, for a terminal alone.
    pub fn new(writer: W, colour: bool) -> Self {
        Terminal {
            state: Mutex::new(State {
                writer,
                colour,
                wrong: Vec::new(),
                on_the_way: Vec::new(),
                untried: BTreeMap::new(),
            }),
        }
    }
}

impl<W: Write + Send> EventSink for Terminal<W> {
    fn event(&self, event: &Event) {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        // A closed terminal is no reason to stop a run; the reports have it all.
        if let Err(error) = state.write(event) {
            tracing::debug!(%error, "terminal");
        }
    }
}

impl<W: Write> State<W> {
    fn write(&mut self, event: &Event) -> std::io::Result<()> {
        match event {
            Event::RunStarted { run, planned, .. } => {
                let target = &run.target;
                let (count, version) = (cases(planned.len() as u64), &run.weft_version);
                write!(self.writer, "weft {version}: {count} against {} ({})", target.name, target.reached_by)?;
                if !target.deviations.is_empty() {
                    write!(self.writer, ", deviating: {}", target.deviations.join(", "))?;
                }
                writeln!(self.writer, ", seed {}", run.seed)
            }
            Event::TargetWaiting { what, seconds } => writeln!(self.writer, "waiting, for {seconds} s at most: {what}"),
            Event::CaseStarted { .. } | Event::CaseStep { .. } => Ok(()),
            Event::CaseFinished { result } => self.finished(result),
            Event::RunFinished { summary } => {
                self.explain(summary)?;
                let counts = Verdict::ALL.into_iter().rev().filter(|verdict| summary.counts.of(*verdict) > 0);
                let counts: Vec<String> =
                    counts.map(|verdict| format!("{} {verdict}", summary.counts.of(verdict))).collect();
                let sum = if counts.is_empty() { "nothing was run".to_owned() } else { counts.join(", ") };
                let time = clock::duration(summary.duration_us);
                let expected = match summary.expected.len() {
                    0 => String::new(),
                    count => format!(", {count} of them as the baseline expects"),
                };
                writeln!(self.writer, "\n{}: {sum}{expected}; {}, {time}", cases(summary.planned), summary.status)
            }
        }?;
        self.writer.flush()
    }

    fn finished(&mut self, result: &CaseResult) -> std::io::Result<()> {
        let word = self.coloured(result.verdict, &format!("{:<14}", result.verdict));
        writeln!(self.writer, "  {word} {}  {}", result.key, clock::duration(result.duration_us))?;
        if result.steps.is_empty() && matches!(result.verdict, Verdict::NotApplicable | Verdict::Inconclusive) {
            *self.untried.entry((result.verdict, result.explanation.clone())).or_default() += 1;
        } else if result.verdict > Verdict::Pass {
            self.wrong.push(result.clone());
        } else if result.requirements.iter().any(|judged| judged.verdict == Verdict::Fail) {
            self.on_the_way.push(result.clone());
        }
        Ok(())
    }

    /// Failures first, then errors, then the inconclusive; then what was seen on the way.
    fn explain(&mut self, summary: &Summary) -> std::io::Result<()> {
        let (mut wrong, mut on_the_way) = (std::mem::take(&mut self.wrong), std::mem::take(&mut self.on_the_way));
        for expected in &summary.expected {
            let link = expected.link.as_ref().map_or_else(String::new, |link| format!(" ({link})"));
            writeln!(self.writer, "\nexpected {}: {}{link}", expected.key, expected.reason)?;
        }
        wrong.retain(|result| summary.expects(result).is_none());
        on_the_way.retain(|result| summary.expects(result).is_none());
        for verdict in [Verdict::Fail, Verdict::Error, Verdict::Inconclusive] {
            let mut left: Vec<&CaseResult> = wrong.iter().filter(|result| result.verdict == verdict).collect();
            while let Some(first) = left.first().copied() {
                let (same, others) = left.into_iter().partition::<Vec<_>, _>(|result| went_the_same_way(first, result));
                left = others;
                self.explain_group(&same)?;
            }
        }
        for result in &on_the_way {
            for judged in result.requirements.iter().filter(|judged| judged.verdict == Verdict::Fail) {
                let row = judged.requirement.row();
                writeln!(self.writer, "\nseen on the way, in {}", result.key)?;
                writeln!(self.writer, "  {} {} ({}): {}", row.id, row.level, row.role, row.summary)?;
            }
        }
        for ((verdict, why), count) in std::mem::take(&mut self.untried) {
            let word = self.coloured(verdict, verdict.as_str());
            writeln!(self.writer, "\n{word}, {}: {why}", cases(count))?;
        }
        for entry in &summary.stale {
            writeln!(self.writer, "\nstale entry of the baseline: {entry}")?;
        }
        Ok(())
    }

    fn explain_group(&mut self, same: &[&CaseResult]) -> std::io::Result<()> {
        let Some(first) = same.first() else { return Ok(()) };
        let word = self.coloured(first.verdict, first.verdict.as_str());
        writeln!(self.writer, "\n{word} {}: {}", first.key, first.title)?;
        // An error is the tester's own: it says nothing about requirements.
        let about = |judged: &&RequirementVerdict| judged.verdict == first.verdict && judged.verdict != Verdict::Error;
        for judged in first.requirements.iter().filter(about) {
            let row = judged.requirement.row();
            writeln!(self.writer, "  {} {} ({}): {}", row.id, row.level, row.role, row.summary)?;
        }
        match (&first.expected, &first.actual) {
            (Some(expected), Some(actual)) => {
                writeln!(self.writer, "  expected  {expected}")?;
                writeln!(self.writer, "  actual    {actual}")?;
            }
            _ => writeln!(self.writer, "  {}", first.explanation)?,
        }
        if let Some(at) = &first.decided_at {
            writeln!(self.writer, "  decided   {at}")?;
        }
        if !first.evidence.folder.is_empty() {
            writeln!(self.writer, "  evidence  {}", first.evidence.folder)?;
        }
        if same.len() > 1 {
            let others: Vec<String> = same[1..].iter().map(|result| parameters(result)).collect();
            writeln!(self.writer, "  the same  {}", others.join(" "))?;
        }
        Ok(())
    }

    fn coloured(&self, verdict: Verdict, text: &str) -> String {
        if !self.colour {
            return text.to_owned();
        }
        let colour = match verdict {
            Verdict::Pass => "32",
            Verdict::Fail => "1;31",
            Verdict::Error => "1;35",
            Verdict::Inconclusive => "33",
            Verdict::NotApplicable | Verdict::Unimplemented => "2",
        };
        format!("\x1b[{colour}m{text}\x1b[0m")
    }
}

fn went_the_same_way(a: &CaseResult, b: &CaseResult) -> bool {
    let of = |result: &CaseResult| (result.expected.clone(), result.actual.clone(), result.decided_at.clone());
    a.key.case == b.key.case && a.explanation == b.explanation && of(a) == of(b)
}

/// `octet=3`, or the key of a case without parameters.
fn parameters(result: &CaseResult) -> String {
    let key = result.key.to_string();
    key.split_once('[').map_or(key.clone(), |(_, parameters)| parameters.trim_end_matches(']').to_owned())
}

fn cases(count: u64) -> String {
    if count == 1 { "1 case".to_owned() } else { format!("{count} cases") }
}
