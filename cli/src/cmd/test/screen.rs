//! `--tui`: a run with a screen that shows it, and the cases that the user runs again from there.
//!
//! Repeated cases go into their own folder, so that the reports of the run remain, and into the
//! same results store.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering::SeqCst};

use tokio::sync::{mpsc, watch};
use weft_suites::model::{CaseKey, ExitCode, RunReport, RunStatus};
use weft_suites::{Filter, RunOptions, Schedule, report, store};
use weft_tui::{LiveSink, Starter, Wish};

use crate::exit::{BadInput, print_line};
use crate::results::judged;
use crate::signals;

/// The folder of repeated cases, below the folder of the run.
const FOLDER: &str = "again";

/// Runs; returns the report of the run itself.
pub(super) async fn run(
    options: RunOptions,
    schedule: Schedule,
    stop: Arc<watch::Sender<bool>>,
) -> anyhow::Result<RunReport> {
    let (wishes, mut wanted) = mpsc::unbounded_channel();
    let (stopper, left) = (Arc::clone(&stop), Arc::new(AtomicBool::new(false)));
    let start = Box::new(move |wish| {
        if wish == Wish::Stop {
            stopper.send_replace(true);
        } else {
            // An error means that the run has ended.
            let _ = wishes.send(wish);
        }
    });
    let (sink, source) =
        weft_tui::live(Some(Starter { folder: options.out.join(FOLDER).display().to_string(), start }));
    let closer = sink.clone();
    let stopped = signals::interrupted();
    let closes = tokio::spawn(async move {
        stopped.await;
        // The queue may be full.
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
    let again = Again { options, schedule, sink, stop, left, run };
    while let Some(wish) = wanted.recv().await {
        match wish {
            Wish::Again(keys) => again.play(keys, false).await,
            Wish::UntilFailure(keys) => again.play(keys, true).await,
            Wish::Stop => {}
        }
    }
    closes.abort();
    screen.await?.map_err(|error| BadInput(error.to_string()))?;
    print_line!("report: {}", out.join("report.html").display());
    Ok(report)
}

/// Runs cases again.
struct Again {
    options: RunOptions,
    schedule: Schedule,
    sink: LiveSink,
    stop: Arc<watch::Sender<bool>>,
    /// Has the user closed the screen?
    left: Arc<AtomicBool>,
    /// The id of the run that has these cases.
    run: String,
}

impl Again {
    /// Runs the cases once, or until a result is unexpected. The screen shows errors.
    async fn play(&self, keys: Vec<CaseKey>, until_failure: bool) {
        self.stop.send_replace(false);
        // Closing the screen requests a stop, which this call may have overwritten.
        while !self.left.load(SeqCst) {
            match self.once(&keys).await {
                Ok(report) if until_failure && report.summary.exit_code == ExitCode::AsExpected => {
                    if report.summary.status != RunStatus::Done || *self.stop.borrow() {
                        return;
                    }
                }
                Ok(_) => return,
                Err(error) => return self.sink.trouble(format!("{error:#}")),
            }
        }
    }

    async fn once(&self, keys: &[CaseKey]) -> anyhow::Result<RunReport> {
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
