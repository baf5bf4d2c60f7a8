//! The one stream of events of a run, and who listens to it.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use super::{CaseInfo, CaseKey, CaseResult, RunInfo, Step, Summary};

/// Something that happened in a run. Terminal, web page, TUI, reports and store are readers of
/// these and of nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The first event. The plan is final from here on.
    RunStarted {
        /// The run.
        run: RunInfo,
        /// The cases that were selected, by id.
        cases: Vec<CaseInfo>,
        /// What will be run, in this order.
        planned: Vec<CaseKey>,
    },
    /// The run goes on when somebody has done something, for example started the target.
    TargetWaiting {
        /// What to do, with address and port.
        what: String,
        /// Seconds until the run gives up.
        seconds: u64,
    },
    /// A case begins.
    CaseStarted {
        /// The case.
        key: CaseKey,
        /// Its place in the plan, from 0.
        index: u64,
    },
    /// Something happened between tester and target. Readers that only want results may ignore it:
    /// [`CaseResult::steps`] holds all steps again.
    CaseStep {
        /// In which case.
        key: CaseKey,
        /// The step.
        step: Step,
    },
    /// A case has its verdict, and its evidence is written.
    CaseFinished {
        /// The result.
        result: Box<CaseResult>,
    },
    /// The last event.
    RunFinished {
        /// The sum.
        summary: Summary,
    },
}

/// A listener. Called from several tasks at once where cases run beside each other: the events of a
/// case come in their order, those of different cases are mixed. Be quick, never block for long.
pub trait EventSink: Send + Sync {
    /// Takes note of one event.
    fn event(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> EventSink for F {
    fn event(&self, event: &Event) {
        self(event);
    }
}

/// Live readers may join a broadcast at any time; that nobody listens is fine.
impl EventSink for broadcast::Sender<Arc<Event>> {
    fn event(&self, event: &Event) {
        // `send` fails only when there is no receiver.
        let _ = self.send(Arc::new(event.clone()));
    }
}

/// Several listeners as one, called in their order.
#[derive(Clone, Default)]
pub struct Fanout(pub Vec<Arc<dyn EventSink>>);

impl EventSink for Fanout {
    fn event(&self, event: &Event) {
        for sink in &self.0 {
            sink.event(event);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_tag_is_a_readable_word() {
        let event = Event::TargetWaiting { what: "start rping".into(), seconds: 30 };
        let json = serde_json::to_string(&event).unwrap();
        assert_eq!(json, r#"{"event":"target-waiting","what":"start rping","seconds":30}"#);
        assert_eq!(serde_json::from_str::<Event>(&json).unwrap(), event);
    }

    #[test]
    fn a_fanout_reaches_closures_and_broadcasts() {
        let (sender, mut receiver) = broadcast::channel(4);
        let (closure_sender, closure_receiver) = std::sync::mpsc::channel();
        let closure = move |event: &Event| closure_sender.send(event.clone()).unwrap();
        let event = Event::TargetWaiting { what: String::new(), seconds: 0 };
        Fanout(vec![Arc::new(sender), Arc::new(closure)]).event(&event);
        assert_eq!(*receiver.try_recv().unwrap(), event);
        assert_eq!(closure_receiver.try_recv().unwrap(), event);
    }
}
