//! The events of a run, and the listeners that receive the events.

use std::sync::Arc;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tokio::sync::broadcast;

use super::{CaseInfo, CaseKey, CaseResult, RunInfo, Step, Summary};

/// Something that happened in a run. The terminal, the web page, the TUI, the reports and the store
/// read events and nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "event", rename_all = "kebab-case")]
pub enum Event {
    /// The first event. After it, the plan does not change.
    RunStarted {
        /// The run.
        run: RunInfo,
        /// The selected cases, in any order.
        cases: Vec<CaseInfo>,
        /// The planned variants of cases, in the order in which they run.
        planned: Vec<CaseKey>,
    },
    /// The run waits until a person has done something, for example started the target.
    TargetWaiting {
        /// What to do, with address and port.
        what: String,
        /// Seconds until the run gives up.
        seconds: u64,
    },
    /// The first case that tried could not reach the target, or the target's address cannot be
    /// resolved. The cases that follow do not try, and are inconclusive.
    TargetDown {
        /// The headline of the run, for example `target is down: 192.0.2.7:7174 refused the
        /// connection`.
        headline: String,
    },
    /// A case begins.
    CaseStarted {
        /// The case.
        key: CaseKey,
        /// Position of the case in the plan, from 0.
        index: u64,
    },
    /// Something happened between tester and target. A reader that needs only results may ignore
    /// this event, because [`CaseResult::steps`] has the steps again.
    CaseStep {
        /// The case.
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
        /// The summary.
        summary: Summary,
    },
}

/// A listener to events. If cases run in parallel, several tasks call the listener at the same
/// time. The events of one case arrive in order, but the events of different cases are mixed. A
/// listener must return quickly.
pub trait EventSink: Send + Sync {
    /// Receives one event.
    fn event(&self, event: &Event);
}

impl<F: Fn(&Event) + Send + Sync> EventSink for F {
    fn event(&self, event: &Event) {
        self(event);
    }
}

/// Live readers may subscribe at any time. A broadcast without readers is not an error.
impl EventSink for broadcast::Sender<Arc<Event>> {
    fn event(&self, event: &Event) {
        // `send` fails only when there is no receiver.
        let _ = self.send(Arc::new(event.clone()));
    }
}

/// Combines several listeners. They are called in order.
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
