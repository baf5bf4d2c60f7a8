//! The source of a run: the events of a live run, or the report of a finished run.

use std::path::{Path, PathBuf};
use std::sync::mpsc::{Receiver, SyncSender, TrySendError, sync_channel};

use weft_suites::model::{Event, EventSink, RunReport};

use super::rerun::RerunStarter;
use crate::error::Error;

/// The maximum number of events that wait for the screen.
const QUEUE: usize = 1024;
/// The name of the report in the folder of a run.
const REPORT: &str = "report.json";

/// A run to show.
pub enum RunSource {
    /// A run of this process, from [`live`].
    Live(Live),
    /// The folder of a finished run, or its `report.json`.
    Stored(PathBuf),
    /// The report of a finished run.
    Finished(Box<RunReport>),
}

/// The parts of a live run that the screen needs: the receiver of the events, and the function that
/// starts reruns.
pub struct Live {
    pub(super) events: Receiver<RunMessage>,
    pub(super) starter: Option<RerunStarter>,
}

/// A message for the screen.
pub(super) enum RunMessage {
    Event(Box<Event>),
    /// A rerun failed. Contains the reason.
    RerunFailed(String),
    /// The screen has to close, because the process ends.
    Close,
}

/// The sending end of the queue of events. Pass this value to the run as its [`EventSink`].
///
/// If the queue is full, steps ([`Event::CaseStep`]) are dropped. The screen still shows these
/// steps later, because the result of a case contains all of its steps. All other events wait until
/// the screen takes events from the queue, which happens many times per second. If the screen is
/// closed, all events are discarded.
#[derive(Clone)]
pub struct LiveSink {
    events: SyncSender<RunMessage>,
}

/// Makes a sink for a run, and the source for the screen of the run. With a starter, the screen can
/// rerun cases. Reruns use the same sink.
#[must_use]
pub fn live(starter: Option<RerunStarter>) -> (LiveSink, RunSource) {
    let (sender, events) = sync_channel(QUEUE);
    (LiveSink { events: sender }, RunSource::Live(Live { events, starter }))
}

impl LiveSink {
    /// Reports why a rerun failed.
    pub fn report_failed_rerun(&self, what: String) {
        // An error means that the screen is closed.
        drop(self.events.send(RunMessage::RerunFailed(what)));
    }

    /// Closes the screen, as if the user had closed it.
    pub fn close(&self) {
        drop(self.events.send(RunMessage::Close));
    }
}

impl EventSink for LiveSink {
    fn event(&self, event: &Event) {
        match self.events.try_send(RunMessage::Event(Box::new(event.clone()))) {
            Ok(()) | Err(TrySendError::Disconnected(_)) => {}
            Err(TrySendError::Full(RunMessage::Event(event))) if matches!(*event, Event::CaseStep { .. }) => {}
            // An error means that the screen is closed.
            Err(TrySendError::Full(event)) => drop(self.events.send(event)),
        }
    }
}

/// Reads the report of the run in `path`.
pub(super) fn read(path: &Path) -> Result<RunReport, Error> {
    let file = if path.is_dir() { path.join(REPORT) } else { path.to_owned() };
    let failed = |what: String| Error::Run { path: file.clone(), what };
    let text = std::fs::read_to_string(&file).map_err(|error| match error.kind() {
        std::io::ErrorKind::NotFound => failed("not found; the folder of a finished run has this file".to_owned()),
        _ => failed(error.to_string()),
    })?;
    serde_json::from_str(&text).map_err(|error| failed(format!("not a report of a run: {error}")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::tests::events;

    #[test]
    fn a_full_queue_drops_only_steps() {
        let (sink, source) = live(None);
        let RunSource::Live(live) = source else { panic!("live gives a live source") };
        let all = events();
        let step = all.iter().find(|event| matches!(event, Event::CaseStep { .. })).unwrap();
        let result = all.iter().find(|event| matches!(event, Event::CaseFinished { .. })).unwrap();
        for _ in 0..QUEUE + 10 {
            sink.event(step);
        }
        let sender = std::thread::spawn({
            let (sink, result) = (sink.clone(), result.clone());
            move || sink.event(&result)
        });
        let got: Vec<RunMessage> = live.events.iter().take(QUEUE + 1).collect();
        sender.join().unwrap();
        assert!(matches!(got.last(), Some(RunMessage::Event(event)) if **event == *result));
        assert!(live.events.try_recv().is_err());
    }

    #[test]
    fn a_closed_screen_does_not_stop_the_run() {
        let (sink, source) = live(None);
        drop(source);
        for event in events() {
            sink.event(&event);
        }
    }

    #[test]
    fn names_a_missing_report() {
        let error = read(Path::new(env!("CARGO_MANIFEST_DIR"))).unwrap_err().to_string();
        assert!(error.contains("report.json: not found"), "{error}");
        let error = read(&Path::new(env!("CARGO_MANIFEST_DIR")).join("Cargo.toml")).unwrap_err().to_string();
        assert!(error.contains("not a report of a run"), "{error}");
    }
}
