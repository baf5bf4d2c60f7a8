//! A run as its events tell it: what is planned, running, done.

use std::collections::HashMap;

use weft_suites::model::{CaseInfo, CaseKey, CaseResult, Counts, Event, RunInfo, RunReport, RunStatus, Step, Summary};

/// One planned case.
#[derive(Debug)]
pub(crate) struct Planned {
    pub(crate) key: CaseKey,
    pub(crate) state: State,
}

/// How far it is.
#[derive(Debug)]
pub(crate) enum State {
    Waiting,
    /// What happened so far.
    Running(Vec<Step>),
    Done(Box<CaseResult>),
}

/// The run.
#[derive(Debug, Default)]
pub(crate) struct Progress {
    pub(crate) run: Option<RunInfo>,
    pub(crate) planned: Vec<Planned>,
    pub(crate) counts: Counts,
    pub(crate) summary: Option<Summary>,
    /// What somebody has to do before it goes on.
    pub(crate) waits_for: Option<String>,
    cases: HashMap<String, CaseInfo>,
    places: HashMap<CaseKey, usize>,
    /// Place of the case that started last.
    pub(crate) current: Option<usize>,
}

impl Progress {
    /// A finished run.
    pub(crate) fn finished(report: RunReport) -> Self {
        let mut progress = Progress::default();
        let planned = report.results.iter().map(|result| result.key.clone()).collect();
        progress.event(Event::RunStarted { run: report.run, cases: report.cases, planned });
        for result in report.results {
            progress.event(Event::CaseFinished { result: Box::new(result) });
        }
        progress.event(Event::RunFinished { summary: report.summary });
        progress
    }

    /// Takes note of one event.
    pub(crate) fn event(&mut self, event: Event) {
        match event {
            Event::RunStarted { run, cases, planned } => {
                *self = Progress::default();
                self.run = Some(run);
                self.cases = cases.into_iter().map(|case| (case.id.clone(), case)).collect();
                for key in planned {
                    self.place(key);
                }
            }
            Event::TargetWaiting { what, seconds } => {
                self.waits_for = Some(format!("waiting for the target, at most {seconds} s: {what}"));
            }
            Event::CaseStarted { key, .. } => {
                self.waits_for = None;
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
                self.planned[place].state = State::Done(result);
            }
            Event::RunFinished { summary } => {
                self.waits_for = None;
                self.current = None;
                self.summary = Some(summary);
            }
        }
    }

    /// The place of `key`; one that was not planned is added, so that no result is lost.
    fn place(&mut self, key: CaseKey) -> usize {
        let Progress { places, planned, .. } = self;
        *places.entry(key).or_insert_with_key(|key| {
            planned.push(Planned { key: key.clone(), state: State::Waiting });
            planned.len() - 1
        })
    }

    /// What the script says about the case of `key`.
    pub(crate) fn case(&self, key: &CaseKey) -> Option<&CaseInfo> {
        self.cases.get(&key.case)
    }

    /// How far the run is.
    pub(crate) fn status(&self) -> RunStatus {
        match (&self.summary, &self.waits_for, self.current) {
            (Some(summary), ..) => summary.status,
            (None, Some(_), _) => RunStatus::WaitingForTarget,
            (None, None, Some(_)) => RunStatus::Running,
            (None, None, None) => RunStatus::Planned,
        }
    }
}
