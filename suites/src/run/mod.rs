//! The engine: plans a run, runs and judges its cases, stores evidence and results, and sends
//! events.
//!
//! A run writes below its folder ([`crate::folder`]): `results.sqlite`, `run.json`, and
//! `cases/<case>/<parameters>/`. [`crate::report::write_all`] writes the reports, from the value
//! that a run returns.

mod applicable;
mod basics;
mod begin;
mod boundary;
mod case;
mod context;
mod control;
mod death;
pub(crate) mod error;
mod excuse;
mod judge;
mod plan;
mod reach;
mod recorder;
mod runner;
mod seed;
mod standstill;

use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::atomic::AtomicBool;
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use tokio::sync::watch;
use tokio::task::{JoinError, JoinHandle, JoinSet};
use tokio::time::MissedTickBehavior;

pub use applicable::Forecast;
pub(crate) use case::DEAD_AFTER;
pub use error::RunError;
pub(crate) use plan::is_section_of;
pub use plan::{Filter, Plan};
pub(crate) use runner::CaseRunner;
pub use runner::random_seed;
pub use seed::DEFAULT_SEED;
use standstill::Standstill;

use crate::baseline::{self, Comparison};
use crate::evidence;
use crate::folder::FolderLock;
use crate::model::{Capability, CaseResult, Event, EventSink, RunReport, RunStatus, Summary, TargetInfo, Tier};
use crate::script::Suites;
use crate::store::{self, Store};
use crate::targets::{OpenError, OpenTarget, Target, device_facts, device_of, differences, down, unresolved};
use reach::Reachability;
use recorder::{Recorder, RetryPolicy, RunClock};

/// Interval of the signs of life that a run writes into the store.
const HEARTBEAT: Duration = Duration::from_secs(5);

/// Maximum number of cases whose evidence is being written to the disk. A case is recorded only
/// after its evidence is on the disk, which takes milliseconds. Meanwhile the next cases run, and
/// the file system writes the evidence of several cases at once.
const MAX_UNSYNCED: usize = 16;

/// What to run.
#[derive(Debug, Clone)]
pub struct RunOptions {
    /// The target.
    pub target: Target,
    /// All suites.
    pub suites: Suites,
    /// Selects cases of the suites.
    pub filter: Filter,
    /// The run's folder. It is created if it is missing. The files of the previous run move to
    /// `earlier/<run id>` in this folder ([`crate::folder`]).
    pub out: PathBuf,
    /// Seed of all random values. `None` selects [`DEFAULT_SEED`].
    pub seed: Option<u64>,
    /// Becomes `true` when the run shall stop. Finished cases are kept.
    pub cancel: Option<watch::Receiver<bool>>,
}

/// How a run is executed. By default, the number of parallel cases suits the target, and the store
/// is in the run's folder.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Schedule {
    /// Number of cases that run at a time against a builtin target. Against another target, one
    /// case runs at a time. 0 selects a number that suits the target.
    pub jobs: usize,
    /// URL of the results store, instead of the file in the run's folder.
    pub store: Option<String>,
    /// Resumes the newest unfinished run of this target in the store, with its plan, its seed and
    /// its results. The filter and the seed in the options are then ignored.
    pub resume: bool,
    /// How long the run waits for a store that cannot be written. Then the run continues without
    /// the store. The default is one minute.
    pub store_retry_time: Option<Duration>,
}

/// Runs the selected cases and sends their events to `sink`. If no case is selected, the report is
/// empty, and its exit code is 2. If the target is down, the report has a headline.
///
/// # Errors
/// The tester cannot work, for example because the folder or the store cannot be opened. No events
/// follow an error.
pub async fn run(options: RunOptions, sink: Arc<dyn EventSink>) -> Result<RunReport, RunError> {
    run_with(options, Schedule::default(), sink).await
}

/// Like [`run`](fn@run), with a schedule.
///
/// # Errors
/// The errors of [`run`](fn@run). Resuming also fails if there is no run to resume, if that run had
/// other suites or another target, or if the address of the target cannot be resolved.
pub async fn run_with(
    options: RunOptions,
    schedule: Schedule,
    sink: Arc<dyn EventSink>,
) -> Result<RunReport, RunError> {
    let began = Instant::now();
    let RunOptions { mut target, suites, filter, out, seed, mut cancel } = options;
    // The plan of a resumed run may have cases of any tier.
    let tier = if schedule.resume { Tier::Full } else { filter.tier };
    target.options.use_limits_of(tier);
    let folder_lock = FolderLock::acquire(&out)?;
    let wire = target.options.capture.as_deref().map(evidence::Wire::open).transpose()?;
    let (live, no_address) = open(&target, schedule.resume).await?;
    let store = match &schedule.store {
        Some(url) => Store::connect(url).await?,
        None => Store::open(&out.join(store::FILE_NAME)).await?,
    };
    let mut retry_policy = RetryPolicy::new(schedule.store_retry_time, cancel.clone());
    let device = if no_address.is_none() { device_of(&live, &target).await? } else { None };
    let facts = device.as_deref().map(device_facts).unwrap_or_default();
    let target_info = TargetInfo { device: facts, ..target.info() };
    let started_run = match schedule.resume {
        true => begin::resume(&store, &target_info, &suites).await?,
        false => {
            let lost_capabilities = begin::lost_capabilities(&store, &target, &mut retry_policy).await?;
            let target_info = TargetInfo { lost_capabilities, ..target_info };
            let labels = &target.options.labels;
            begin::start_new(&store, target_info, &suites, &filter, seed, labels, &mut retry_policy).await?
        }
    };
    let begin::StartedRun { run, plan, mut results, spent_us } = started_run;
    folder_lock.begin(&run)?;
    // The status is set before the first event, because a resumed run still has the status with
    // which it stopped.
    let mut retries = retry_policy.retries();
    while let Err(error) = store.set_status(&run.id, RunStatus::Running).await {
        retries.wait_after(error).await?;
    }
    let clock = RunClock::new(began, spent_us);
    let mut recorder = Recorder::new(store, run.id.clone(), retry_policy, clock);
    let (cases, planned) = (plan.cases.clone(), plan.keys.clone());
    sink.event(&Event::RunStarted { run: run.clone(), cases, planned });
    if let Some(why) = &no_address {
        sink.event(&Event::TargetDown { headline: down::headline(why) });
    }
    // A resumed run also sends events for the cases that finished before the run was stopped.
    for (index, result) in (0..).zip(&results) {
        if let Some(result) = result {
            sink.event(&Event::CaseStarted { key: result.key.clone(), index });
            sink.event(&Event::CaseFinished { result: Box::new(result.clone()) });
        }
    }
    let needs_agent = plan.cases.iter().any(|case| case.capabilities.contains(&Capability::Agent));
    let declared_otherwise = match device.filter(|_| needs_agent) {
        Some(device) => differences(target.capabilities(), &device),
        None => Vec::new(),
    };

    let jobs = live.jobs(schedule.jobs);
    let target = Arc::new(target);
    let known = suites.clone();
    let context = context::RunContext {
        run: run.clone(),
        target: target.clone(),
        live,
        wire,
        suites,
        out,
        sink: sink.clone(),
        reach: no_address.map_or_else(Reachability::default, |why| Reachability::unresolved(&why)),
        unanswered: context::UnansweredCases::default(),
        standstill: target.remote().map(|_| Standstill::watch()),
        restart_failure: OnceLock::new(),
        basics: basics::Basics::default(),
        is_silent: AtomicBool::new(false),
    };
    let context = Arc::new(context);
    let open: Vec<usize> = (0..results.len()).filter(|index| results[*index].is_none()).collect();
    let mut waiting = open.into_iter();
    let mut running: JoinSet<(usize, Result<case::FinishedCase, RunError>)> = JoinSet::new();
    let mut unsynced = VecDeque::new();
    let mut status = RunStatus::Done;
    let mut heartbeat = tokio::time::interval(HEARTBEAT);
    heartbeat.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        while running.len() < jobs && unsynced.len() < MAX_UNSYNCED && !is_cancelled(cancel.as_ref()) {
            let Some(index) = waiting.next() else { break };
            let (context, key) = (context.clone(), plan.keys[index].clone());
            sink.event(&Event::CaseStarted { key: key.clone(), index: index as u64 });
            running.spawn(async move { (index, context.run_case(&key).await) });
        }
        if running.is_empty() && unsynced.is_empty() {
            break;
        }
        tokio::select! {
            biased;
            () = cancelled(&mut cancel) => break,
            Some(joined) = running.join_next() => {
                unsynced.push_back(syncing(joined)?);
            }
            Some((index, kept)) = first(&mut unsynced) => {
                let result = kept?;
                report_finished(&mut recorder, sink.as_ref(), &result).await;
                results[index] = Some(result);
            }
            _ = heartbeat.tick() => recorder.beat().await,
        }
    }
    // A cancelled run may still have tasks. It keeps the results of the cases that have finished.
    while let Some(joined) = running.try_join_next() {
        unsynced.push_back(syncing(joined)?);
    }
    running.abort_all();
    while let Some((index, kept)) = first(&mut unsynced).await {
        let result = kept?;
        report_finished(&mut recorder, sink.as_ref(), &result).await;
        results[index] = Some(result);
    }
    if results.iter().any(Option::is_none) {
        status = RunStatus::Cancelled;
    }
    let results: Vec<CaseResult> = results.into_iter().flatten().collect();
    let boundaries = match status {
        RunStatus::Done => context.boundaries(&results, &mut cancel).await?,
        _ => Vec::new(),
    };
    context.try_lost_target_again(&mut cancel).await;
    let entries = &target.description.baseline;
    let Comparison { expected, stale, unmatched } = baseline::judge(entries, &results, status, &known);
    let planned = plan.keys.len() as u64;
    let summary = Summary::with_baseline(status, planned, &results, clock.spent_us(), expected, stale);
    let summary = Summary { unmatched, declared_otherwise, boundaries, ..summary };
    let summary = summary.with_lost_capabilities(&run.target.lost_capabilities);
    let summary = summary.with_target_down(context.reach.headline());
    let summary = match recorder.finish(planned, &summary).await {
        Some(why) => summary.not_stored(why),
        None => summary,
    };
    sink.event(&Event::RunFinished { summary: summary.clone() });
    Ok(RunReport { run, cases: plan.cases, results, summary })
}

/// Opens the target. If its address cannot be resolved, returns an [`OpenTarget`] without links,
/// and the reason. All cases of a new run are then inconclusive. A run that is resumed keeps its
/// open cases for another time, so the error ends it.
async fn open(target: &Target, is_resumed: bool) -> Result<(OpenTarget, Option<String>), OpenError> {
    match OpenTarget::open(target).await {
        Ok(live) => Ok((live, None)),
        Err(OpenError::Resolve { address, error }) if !is_resumed => {
            let why = unresolved(&address, &error);
            Ok((OpenTarget::unresolved(address), Some(why)))
        }
        Err(error) => Err(error),
    }
}

/// The task that writes the evidence of a case to the disk, with the position of the case in the
/// plan.
type SyncTask = (usize, JoinHandle<Result<CaseResult, RunError>>);

/// Starts to write the evidence of a finished case to the disk.
fn syncing(joined: Result<(usize, Result<case::FinishedCase, RunError>), JoinError>) -> Result<SyncTask, RunError> {
    let (index, finished) = returned(joined);
    let finished = finished?;
    Ok((index, tokio::task::spawn_blocking(|| finished.sync_evidence())))
}

/// Stores the result of a finished case, and then sends its event.
async fn report_finished(recorder: &mut Recorder, sink: &dyn EventSink, result: &CaseResult) {
    recorder.finish_case(result).await;
    sink.event(&Event::CaseFinished { result: Box::new(result.clone()) });
}

/// Waits until the first task in the queue is done, and returns its result.
async fn first<T>(tasks: &mut VecDeque<(usize, JoinHandle<T>)>) -> Option<(usize, T)> {
    let (index, task) = tasks.front_mut()?;
    let done = (*index, returned(task.await));
    tasks.pop_front();
    Some(done)
}

/// Returns the result of a task. A panic of the task continues in the caller.
fn returned<T>(joined: Result<T, JoinError>) -> T {
    joined.unwrap_or_else(|error| std::panic::resume_unwind(error.into_panic()))
}

fn is_cancelled(cancel: Option<&watch::Receiver<bool>>) -> bool {
    cancel.is_some_and(|cancel| *cancel.borrow())
}

/// Ends when the run is cancelled. Never ends if nothing can cancel the run.
async fn cancelled(cancel: &mut Option<watch::Receiver<bool>>) {
    if let Some(receiver) = cancel
        && receiver.wait_for(|cancelled| *cancelled).await.is_ok()
    {
        return;
    }
    std::future::pending::<()>().await;
}
