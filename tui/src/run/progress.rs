//! The state of a run, computed from its events: planned, running and finished cases.

use std::collections::HashMap;
use std::time::Duration;

use weft_suites::model::{
    CaseInfo, CaseKey, CaseResult, Counts, Event, RunInfo, RunReport, RunStatus, Step, Summary, Verdict,
};

/// One planned case.
#[derive(Debug)]
pub(crate) struct PlannedCase {
    pub(crate) key: CaseKey,
    pub(crate) state: State,
    /// The verdicts of the case in the run and in all reruns.
    pub(crate) runs: Counts,
}

/// The state of a case.
#[derive(Debug)]
pub(crate) enum State {
    Waiting,
    /// The case is running. Contains the steps so far.
    Running(Vec<Step>),
    Done(Box<CaseResult>),
}

/// The run.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) run: Option<RunInfo>,
    pub(crate) planned: Vec<PlannedCase>,
    pub(crate) counts: Counts,
    pub(crate) summary: Option<Summary>,
    /// The headline of a run that cannot reach its target.
    pub(crate) target_down: Option<String>,
    /// What the user has to do before the run continues.
    pub(crate) waits_for: Option<UserInstruction>,
    /// Whether the next run is a rerun. A rerun replaces only the results of its own cases.
    pub(crate) adds: bool,
    /// The time at which the first case of this run started, and the number of cases that already
    /// had a result at that time. In a rerun, these are the results of earlier runs.
    began: Option<(Duration, u64)>,
    cases: HashMap<String, CaseInfo>,
    places: HashMap<CaseKey, usize>,
    /// The index of the case that started last.
    pub(crate) current: Option<usize>,
}

/// What the user has to do before the run continues.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct UserInstruction {
    /// The instruction, usually with a command to run.
    pub(crate) what: String,
    /// The time at which the run stops waiting.
    pub(crate) until: Duration,
}

/// Returns the rank of a case in a finished run. A failed case has the rank 0.
fn rank(planned: &PlannedCase) -> u8 {
    match &planned.state {
        State::Done(result) if result.verdict >= Verdict::Fail => 0,
        State::Done(result) if result.verdict == Verdict::Inconclusive || result.failing().next().is_some() => 1,
        State::Done(_) | State::Waiting | State::Running(_) => 2,
    }
}

/// Returns the branches of a case, from the protocol to the complete id, and then its key.
fn paths(key: &CaseKey) -> Vec<String> {
    let ends = key.case.match_indices('/').map(|(at, _)| at).chain([key.case.len()]);
    ends.map(|end| key.case[..end].to_owned()).chain([key.to_string()]).collect()
}

impl Progress {
    /// Makes the state of a finished run.
    pub(crate) fn finished(report: RunReport) -> Self {
        let mut progress = Progress::default();
        let planned = report.results.iter().map(|result| result.key.clone()).collect();
        progress.event(Event::RunStarted { run: report.run, cases: report.cases, planned }, Duration::ZERO);
        for result in report.results {
            progress.event(Event::CaseFinished { result: Box::new(result) }, Duration::ZERO);
        }
        progress.event(Event::RunFinished { summary: report.summary }, Duration::ZERO);
        progress
    }

    /// Handles an event that arrived at the time `now`.
    pub(crate) fn event(&mut self, event: Event, now: Duration) {
        match event {
            Event::RunStarted { run, cases, planned } => {
                if !std::mem::take(&mut self.adds) {
                    *self = Progress::default();
                    self.run = Some(run);
                }
                (self.summary, self.target_down) = (None, None);
                self.cases.extend(cases.into_iter().map(|case| (case.id.clone(), case)));
                for key in planned {
                    let place = self.place(key);
                    self.planned[place].state = State::Waiting;
                }
                self.counts = counts(&self.planned);
            }
            Event::TargetWaiting { what, seconds } => {
                self.waits_for = Some(UserInstruction { what, until: now + Duration::from_secs(seconds) });
            }
            Event::TargetDown { headline } => self.target_down = Some(headline),
            Event::CaseStarted { key, .. } => {
                self.waits_for = None;
                // Measure from the first case, to exclude the time that the target needs to start.
                self.began.get_or_insert((now, self.counts.total()));
                let place = self.place(key);
                self.planned[place].state = State::Running(Vec::new());
                self.current = Some(place);
            }
            Event::CaseStep { key, step } => {
                let place = self.place(key);
                if let State::Running(steps) = &mut self.planned[place].state {
                    steps.push(step);
                }
            }
            Event::CaseFinished { result } => {
                let place = self.place(result.key.clone());
                if !matches!(self.planned[place].state, State::Done(_)) {
                    self.counts.add(result.verdict);
                }
                self.planned[place].runs.add(result.verdict);
                self.planned[place].state = State::Done(result);
            }
            Event::RunFinished { summary } => {
                self.waits_for = None;
                self.current = None;
                self.began = None;
                self.summary = Some(summary);
                self.put_failures_first();
            }
        }
    }

    /// Moves failed cases before other cases within each branch of the tree, and branches with
    /// failures before other branches. The cases of a branch stay together.
    fn put_failures_first(&mut self) {
        let mut ranks: HashMap<String, (u8, usize)> = HashMap::new();
        for (place, planned) in self.planned.iter().enumerate() {
            let rank = rank(planned);
            for path in paths(&planned.key) {
                let best = ranks.entry(path).or_insert((rank, place));
                best.0 = best.0.min(rank);
            }
        }
        let order = |planned: &PlannedCase| -> Vec<(u8, usize)> {
            paths(&planned.key).iter().filter_map(|path| ranks.get(path).copied()).collect()
        };
        self.planned.sort_by_cached_key(order);
        self.places = self.planned.iter().enumerate().map(|(place, planned)| (planned.key.clone(), place)).collect();
    }

    /// Returns the index of the case `key`. If the case was not planned, adds the case, so that its
    /// result is not lost.
    fn place(&mut self, key: CaseKey) -> usize {
        let Progress { places, planned, .. } = self;
        *places.entry(key).or_insert_with_key(|key| {
            planned.push(PlannedCase { key: key.clone(), state: State::Waiting, runs: Counts::default() });
            planned.len() - 1
        })
    }

    /// Returns the description of the case `key`.
    pub(crate) fn case(&self, key: &CaseKey) -> Option<&CaseInfo> {
        self.cases.get(&key.case)
    }

    /// Returns the time since the first case started, and the estimated remaining time. The
    /// estimate assumes that the remaining cases take as long on average as the finished cases.
    /// Returns `None` if no case has started or if the run is over.
    pub(crate) fn times(&self, now: Duration) -> Option<(Duration, Option<Duration>)> {
        let (began, before) = self.began?;
        let ran = now.saturating_sub(began);
        let done = self.counts.total().saturating_sub(before);
        let left = (self.planned.len() as u64).saturating_sub(self.counts.total());
        let each = u32::try_from(done).ok().filter(|done| *done > 0).map(|done| ran / done);
        Some((ran, each.map(|each| each.saturating_mul(u32::try_from(left).unwrap_or(u32::MAX)))))
    }

    /// Returns the status of the run.
    pub(crate) fn status(&self) -> RunStatus {
        match (&self.summary, &self.waits_for, self.current) {
            (Some(summary), ..) => summary.status,
            (None, Some(_), _) => RunStatus::WaitingForTarget,
            (None, None, Some(_)) => RunStatus::Running,
            (None, None, None) => RunStatus::Planned,
        }
    }
}

/// Counts the verdicts of the finished cases.
pub(crate) fn counts(planned: &[PlannedCase]) -> Counts {
    let mut counts = Counts::default();
    for case in planned {
        if let State::Done(result) = &case.state {
            counts.add(result.verdict);
        }
    }
    counts
}
