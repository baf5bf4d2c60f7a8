//! The lane of a target: its current run and its queue.

use std::collections::VecDeque;
use std::path::Path;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use schemars::JsonSchema;
use serde::Serialize;
use tokio::sync::{oneshot, watch};
use weft_suites::targets::Target;

use super::play::{self, Place};
use super::{NotTaken, Wanted};

/// The maximum length of the queue.
pub(super) const MOST: usize = 8;

/// A requested run.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub(crate) struct Job {
    /// Its number among the jobs of the target since the server started.
    pub(crate) id: u64,
    /// The selected cases, as text.
    pub(crate) about: String,
    /// Id of the run, once it has started.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) run: Option<String>,
    /// A stop was requested; current cases end without a result.
    pub(crate) stops: bool,
}

/// The current and queued runs against a target.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, JsonSchema)]
pub(crate) struct LaneState {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) running: Option<Job>,
    /// The queue, in order.
    pub(crate) waiting: Vec<Job>,
    /// The error of the newest run, if it ended with one.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) trouble: Option<String>,
}

#[derive(Debug)]
pub(super) struct Lane {
    target: Target,
    place: Place,
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
    wanted: Wanted,
    begun: oneshot::Sender<String>,
}

impl Inner {
    /// Ignores poisoning: no code under this lock panics during an update.
    fn jobs(&self) -> MutexGuard<'_, Jobs> {
        self.jobs.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Lane {
    pub(super) fn new(target: Target, place: Place) -> Self {
        let inner = Inner { jobs: Mutex::default(), busy: watch::Sender::new(false) };
        Lane { target, place, inner: Arc::new(inner) }
    }

    pub(super) fn target(&self) -> &Target {
        &self.target
    }

    pub(super) fn out(&self) -> &Path {
        &self.place.out
    }

    pub(super) fn state(&self) -> LaneState {
        let jobs = self.inner.jobs();
        LaneState {
            running: jobs.running.as_ref().map(|(job, _)| job.clone()),
            waiting: jobs.waiting.iter().map(|waiting| waiting.job.clone()).collect(),
            trouble: jobs.trouble.clone(),
        }
    }

    pub(super) fn add(&self, wanted: Wanted) -> Result<(Job, oneshot::Receiver<String>), NotTaken> {
        let mut jobs = self.inner.jobs();
        if jobs.waiting.len() >= MOST {
            return Err(NotTaken::Full);
        }
        if jobs.is_closed {
            return Err(NotTaken::Over);
        }
        let job = Job { id: jobs.next, about: wanted.about.clone(), run: None, stops: false };
        jobs.next += 1;
        let (begun, begins) = oneshot::channel();
        jobs.waiting.push_back(Waiting { job: job.clone(), wanted, begun });
        // A running task takes the job from the queue.
        if !self.inner.busy.send_replace(true) {
            tokio::spawn(work(self.inner.clone(), self.target.clone(), self.place.clone()));
        }
        Ok((job, begins))
    }

    pub(super) fn stop(&self, id: u64) -> Result<(), NotTaken> {
        let mut jobs = self.inner.jobs();
        if let Some((job, stop)) = jobs.running.as_mut().filter(|(job, _)| job.id == id) {
            job.stops = true;
            stop.send_replace(true);
            return Ok(());
        }
        let before = jobs.waiting.len();
        jobs.waiting.retain(|waiting| waiting.job.id != id);
        if jobs.waiting.len() < before { Ok(()) } else { Err(NotTaken::Over) }
    }

    /// Clears the queue and stops the current run.
    pub(super) fn close(&self) {
        let mut jobs = self.inner.jobs();
        jobs.is_closed = true;
        jobs.waiting.clear();
        if let Some((job, stop)) = &mut jobs.running {
            job.stops = true;
            stop.send_replace(true);
        }
    }

    /// Waits until no job is running.
    pub(super) async fn idle(&self) {
        // The sender exists as long as `self`.
        let _ = self.inner.busy.subscribe().wait_for(|busy| !*busy).await;
    }
}

/// Runs jobs until the queue is empty.
async fn work(inner: Arc<Inner>, target: Target, place: Place) {
    loop {
        let (wanted, begun, cancel) = {
            let mut jobs = inner.jobs();
            let Some(Waiting { job, wanted, begun }) = jobs.waiting.pop_front() else {
                // Under the lock, so that the next job starts a new task.
                inner.busy.send_replace(false);
                return;
            };
            let (stop, cancel) = watch::channel(false);
            jobs.running = Some((job, stop));
            (wanted, begun, cancel)
        };
        let noted = inner.clone();
        let note = move |run: &str| {
            if let Some((job, _)) = &mut noted.jobs().running {
                job.run = Some(run.to_owned());
            }
            // The receiver may be gone.
            let _ = begun.send(run.to_owned());
        };
        let played = play::play(target.clone(), place.clone(), wanted, cancel, note).await;
        let mut jobs = inner.jobs();
        jobs.running = None;
        jobs.trouble = played.err();
        if let Some(trouble) = &jobs.trouble {
            tracing::error!("{}: {trouble}", target.name());
        }
    }
}
