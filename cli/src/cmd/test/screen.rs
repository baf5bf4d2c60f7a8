//! `--tui`: runs the cases and shows the run on a screen, where the user can run cases again.
//!
//! The files of repeated cases are in a separate folder, so they do not replace the reports of the
//! run. The results of repeated cases are in the results store of the run.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use tokio::sync::{mpsc, watch};
use weft_suites::model::{CaseKey, ExitCode, RunReport, RunStatus};
use weft_suites::{Filter, RunOptions, Schedule, report, store};
use weft_tui::{LiveSink, RerunStarter, RunnerRequest};

use crate::exit::{BadInput, print_line};
use crate::results::judged;
use crate::signals;

/// The folder of repeated cases, within the folder of the run.
const FOLDER: &str = "again";

/// Runs the cases, and then the cases that the user repeats. Returns the report of the first run.
pub(super) async fn run(
    options: RunOptions,
    schedule: Schedule,
    stop: Arc<watch::Sender<bool>>,
) -> anyhow::Result<RunReport> {
    let (requests, mut wanted) = mpsc::unbounded_channel();
    let (stopper, left) = (Arc::clone(&stop), Arc::new(AtomicBool::new(false)));
    let start = Box::new(move |request| {
        if request == RunnerRequest::Stop {
            stopper.send_replace(true);
        } else {
            // Sending fails only if the receiver was dropped after an error of the run.
            let _ = requests.send(request);
        }
    });
    let (sink, source) =
        weft_tui::live(Some(RerunStarter { folder: options.out.join(FOLDER).display().to_string(), start }));
    let closer = sink.clone();
    let stopped = signals::interrupted();
    let closes = tokio::spawn(async move {
        stopped.await;
        // Closing the screen can block, because the queue of events can be full.
        let _ = tokio::task::spawn_blocking(move || closer.close()).await;
    });
    let screen = tokio::task::spawn_blocking({
        let (stop, left) = (Arc::clone(&stop), Arc::clone(&left));
        move || {
            let shown = weft_tui::run(source);
            left.store(true, SeqCst);
            stop.send_replace(true);
            shown
        }
    });
    let out = options.out.clone();
    let report = judged(options.clone(), schedule.clone(), Arc::new(sink.clone())).await?;
    report::write_all(&report, &out)?;
    let run = report.run.rerun_of.clone().unwrap_or_else(|| report.run.id.clone());
    let rerunner = CaseRerunner { options, schedule, sink, stop, left, run };
    while let Some(request) = wanted.recv().await {
        match request {
            RunnerRequest::Rerun(keys) => rerunner.run_cases(keys, false).await,
            RunnerRequest::UntilFailure(keys) => rerunner.run_cases(keys, true).await,
            RunnerRequest::Stop => {}
        }
    }
    closes.abort();
    screen.await?.map_err(|error| BadInput(error.to_string()))?;
    print_line!("report: {}", out.join("report.html").display());
    Ok(report)
}

/// Reruns the cases that the user selects on the screen.
struct CaseRerunner {
    options: RunOptions,
    schedule: Schedule,
    sink: LiveSink,
    stop: Arc<watch::Sender<bool>>,
    /// Whether the user has closed the screen.
    left: Arc<AtomicBool>,
    /// Id of the run to which the repeated cases belong.
    run: String,
}

impl CaseRerunner {
    /// Runs the cases once, or until a result is unexpected. The screen shows errors.
    async fn run_cases(&self, keys: Vec<CaseKey>, until_failure: bool) {
        self.stop.send_replace(false);
        // Closing the screen requests a stop, but the call above can overwrite this request.
        while !self.left.load(SeqCst) {
            match self.run_once(&keys).await {
                Ok(report) if until_failure && report.summary.exit_code == ExitCode::AsExpected => {
                    if report.summary.status != RunStatus::Done || *self.stop.borrow() {
                        return;
                    }
                }
                Ok(_) => return,
                Err(error) => return self.sink.report_failed_rerun(format!("{error:#}")),
            }
        }
    }

    /// Runs the cases once, and writes the reports.
    async fn run_once(&self, keys: &[CaseKey]) -> anyhow::Result<RunReport> {
        let out = self.options.out.join(FOLDER);
        let mut options = self.options.clone();
        options.filter = Filter::default().rerun(&self.run, keys.iter().cloned());
        let mut schedule = self.schedule.clone();
        schedule.resume = false;
        if schedule.store.is_none() {
            schedule.store = Some(format!("sqlite://{}", self.options.out.join(store::FILE_NAME).display()));
        }
        options.out.clone_from(&out);
        let report = judged(options, schedule, Arc::new(self.sink.clone())).await?;
        report::write_all(&report, &out)?;
        Ok(report)
    }
}
