//! The current run and the waiting runs against one target.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{oneshot, watch};
use weft_suites::targets::Target;

use super::run_job::{self, JobContext};
use super::{JobError, JobRequest};
use crate::lock::locked;

/// The maximum number of waiting runs.
pub(super) const MAX_WAITING: usize = 8;

/// A requested run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Job {
    /// Number of the job. The server counts the jobs of each target, from 0.
    pub(crate) id: u64,
    /// The selected cases, as text.
    pub(crate) about: String,
    /// Id of the run. Omitted until the run has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    /// Whether a stop was requested. Cases in progress then end without a result.
    pub(crate) stops: bool,
}

/// The current and queued runs against a target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
// Clients that are generated from the OpenAPI document use this name.
#[schemars(rename = "LaneState")]
pub(crate) struct QueueState {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) running: Option<Job>,
    /// The waiting runs, in the order in which they start.
    pub(crate) waiting: Vec<Job>,
    /// The error of the run that ended last, if that run ended with an error.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
}

#[derive(Debug)]
pub(super) struct TargetQueue {
    target: Target,
    context: JobContext,
    inner: Arc<Inner>,
}

#[derive(Debug)]
struct Inner {
    jobs: Mutex<Jobs>,
    /// `true` while a task runs jobs.
    busy: watch::Sender<bool>,
}

#[derive(Debug, Default)]
struct Jobs {
    next: u64,
    running: Option<(Job, watch::Sender<bool>)>,
    waiting: VecDeque<Waiting>,
    trouble: Option<String>,
    is_closed: bool,
}

#[derive(Debug)]
struct Waiting {
    job: Job,
    wanted: JobRequest,
    begun: oneshot::Sender<String>,
}

impl TargetQueue {
    pub(super) fn new(target: Target, context: JobContext) -> Self {
        let inner = Inner { jobs: Mutex::default(), busy: watch::Sender::new(false) };
        TargetQueue { target, context, inner: Arc::new(inner) }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    pub(super) fn context(&self) -> &JobContext {
        &self.context
    }

    pub(super) fn state(&self) -> QueueState {
        let jobs = locked(&self.inner.jobs);
        QueueState {
            running: jobs.running.as_ref().map(|(job, _)| job.clone()),
            waiting: jobs.waiting.iter().map(|waiting| waiting.job.clone()).collect(),
            trouble: jobs.trouble.clone(),
        }
    }

    pub(super) fn add(&self, wanted: JobRequest) -> Result<(Job, oneshot::Receiver<String>), JobError> {
        let mut jobs = locked(&self.inner.jobs);
        if jobs.waiting.len() >= MAX_WAITING {
            return Err(JobError::QueueFull);
        }
        if jobs.is_closed {
            return Err(JobError::AlreadyOver);
        }
        let job = Job { id: jobs.next, about: wanted.about.clone(), run: None, stops: false };
        jobs.next += 1;
        let (begun, begins) = oneshot::channel();
        jobs.waiting.push_back(Waiting { job: job.clone(), wanted, begun });
        // If a task already runs jobs, that task takes the job from the queue.
        if !self.inner.busy.send_replace(true) {
            tokio::spawn(work(self.inner.clone(), self.target.clone(), self.context.clone()));
        }
        Ok((job, begins))
    }

    pub(super) fn stop(&self, id: u64) -> Result<(), JobError> {
        let mut jobs = locked(&self.inner.jobs);
        if let Some((job, stop)) = jobs.running.as_mut().filter(|(job, _)| job.id == id) {
            job.stops = true;
            stop.send_replace(true);
            return Ok(());
        }
        let before = jobs.waiting.len();
        jobs.waiting.retain(|waiting| waiting.job.id != id);
        if jobs.waiting.len() < before { Ok(()) } else { Err(JobError::AlreadyOver) }
    }

    /// Clears the queue and stops the current run.
    pub(super) fn close(&self) {
        let mut jobs = locked(&self.inner.jobs);
        jobs.is_closed = true;
        jobs.waiting.clear();
        if let Some((job, stop)) = &mut jobs.running {
            job.stops = true;
            stop.send_replace(true);
        }
    }

    /// Waits until no job is running.
    pub(super) async fn idle(&self) {
        // Waiting cannot fail, because the sender exists as long as `self`.
        let _ = self.inner.busy.subscribe().wait_for(|busy| !*busy).await;
    }
}

/// Runs jobs until the queue is empty.
async fn work(inner: Arc<Inner>, target: Target, context: JobContext) {
    loop {
        let (wanted, begun, cancel) = {
            let mut jobs = locked(&inner.jobs);
            let Some(Waiting { job, wanted, begun }) = jobs.waiting.pop_front() else {
                // The lock is still held, so a job that is added later starts a new task.
                inner.busy.send_replace(false);
                return;
            };
            let (stop, cancel) = watch::channel(false);
            jobs.running = Some((job, stop));
            (wanted, begun, cancel)
        };
        let noted = inner.clone();
        let note = move |run: &str| {
            if let Some((job, _)) = &mut locked(&noted.jobs).running {
                job.run = Some(run.to_owned());
            }
            // The receiver can be gone.
            let _ = begun.send(run.to_owned());
        };
        let result = run_job::run_job(target.clone(), context.clone(), wanted, cancel, note).await;
        let mut jobs = locked(&inner.jobs);
        jobs.running = None;
        jobs.trouble = result.err();
        if let Some(trouble) = &jobs.trouble {
            tracing::error!("{}: {trouble}", target.name());
        }
        context.ends.note();
    }
}
