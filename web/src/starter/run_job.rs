//! Runs the cases of one job on a separate thread with a separate async runtime. Pages therefore
//! never wait for a test script.

use std::path::PathBuf;
use std::sync::{Arc, Mutex};

use tokio::sync::{oneshot, watch};
use weft_suites::model::{Event, EventSink, Fanout};
use weft_suites::script::Suites;
use weft_suites::store::{Store, StoreError};
use weft_suites::targets::Target;
use weft_suites::{Filter, RunOptions, Schedule, report};

use super::JobRequest;
use crate::live::Live;
use crate::lock::locked;
use crate::webhook::RunEnds;

/// The parts that all runs against a target share: output folder, store, suites, live events and
/// the notes of ended runs.
#[derive(Debug, Clone)]
pub(super) struct JobContext {
    pub(super) out: PathBuf,
    pub(super) store_url: String,
    pub(super) suites: Suites,
    pub(super) live: Live,
    pub(super) ends: RunEnds,
}

/// Runs the cases of a job. Calls `begun` with the id of the run when the run starts.
pub(super) async fn run_job(
    target: Target,
    context: JobContext,
    wanted: JobRequest,
    cancel: watch::Receiver<bool>,
    begun: impl FnOnce(&str) + Send + 'static,
) -> Result<(), String> {
    let JobContext { out, store_url, suites, live, ends: _ } = context;
    let begun = Mutex::new(Some(begun));
    let first = move |event: &Event| {
        if let Event::RunStarted { run, .. } = event
            && let Some(begun) = locked(&begun).take()
        {
            begun(&run.id);
        }
    };
    let work = move || {
        let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.map_err(|error| format!("cannot start a runtime: {error}"))?;
        // `live` is first. The journal then exists before a client gets the id of the run.
        let sink: Arc<dyn EventSink> = Arc::new(Fanout(vec![live.sink(), Arc::new(first)]));
        let JobRequest { filter, seed, resume, labels, about: _ } = wanted;
        let target = runtime.block_on(complete(target.with_labels(labels), &filter, resume, &store_url));
        let target = target.map_err(|error| error.to_string())?;
        let options = RunOptions { target, suites, filter, out: out.clone(), seed, cancel: Some(cancel) };
        let schedule = Schedule { store: Some(store_url), resume, ..Schedule::default() };
        let run = weft_suites::run_with(options, schedule, sink);
        let report = runtime.block_on(run).map_err(|error| error.to_string())?;
        report::write_all(&report, &out).map_err(|error| error.to_string())
    };
    let (done, end) = oneshot::channel();
    let thread = std::thread::Builder::new().name("run".to_owned()).spawn(move || {
        // The receiver can be gone if the server is stopping.
        let _ = done.send(work());
    });
    match thread {
        Ok(_) => end.await.unwrap_or_else(|_| Err("the run failed; see the log of the server".to_owned())),
        Err(error) => Err(format!("cannot start a thread: {error}")),
    }
}

/// Returns the target with its capabilities. If its file lacks them, a new run probes the target. A
/// run that resumes or repeats another run uses what the probes of that run found out.
async fn complete(target: Target, filter: &Filter, resume: bool, store_url: &str) -> Result<Target, StoreError> {
    if !target.lacks_capabilities() {
        return Ok(target);
    }
    let sink = Arc::new(|_: &Event| {});
    if !resume && filter.rerun_of().is_none() {
        return Ok(target.complete(sink).await);
    }
    let store = Store::connect(store_url).await?;
    let run = match resume {
        true => store.unfinished(target.name()).await?,
        false => filter.rerun_of().map(str::to_owned),
    };
    let record = match run {
        Some(run) => store.record(&run).await?,
        None => None,
    };
    store.close().await;
    Ok(match record {
        Some(record) => target.complete_like(&record.info.target, sink).await,
        None => target.complete(sink).await,
    })
}
