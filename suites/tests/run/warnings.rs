//! Has the functions with which a test waits for a warning in weft's log.

use std::fmt::Write as _;
use std::sync::{Mutex, Once};

use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use tracing::field::{Field, Visit};
use tracing::span::{Attributes, Id, Record};
use tracing::{Event, Level, Metadata, Subscriber};

static WAITING: Mutex<Vec<(&str, UnboundedSender<String>)>> = Mutex::new(Vec::new());
static INSTALLED: Once = Once::new();

/// Returns a receiver of future warnings that contain `text`. It also gets the warnings of other
/// runs in this process.
pub fn with(text: &'static str) -> UnboundedReceiver<String> {
    INSTALLED.call_once(|| tracing::subscriber::set_global_default(Warnings).unwrap());
    let (sender, receiver) = unbounded_channel();
    WAITING.lock().unwrap().push((text, sender));
    receiver
}

struct Warnings;

impl Subscriber for Warnings {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() <= Level::WARN && metadata.target().starts_with("weft")
    }

    fn event(&self, event: &Event<'_>) {
        let mut text = Text(String::new());
        event.record(&mut text);
        let mut waiting = WAITING.lock().unwrap();
        // If a test no longer has its receiver, remove its entry.
        waiting.retain(|(wanted, sender)| !text.0.contains(wanted) || sender.send(text.0.clone()).is_ok());
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}
    fn record_follows_from(&self, _: &Id, _: &Id) {}
    fn enter(&self, _: &Id) {}
    fn exit(&self, _: &Id) {}
}

struct Text(String);

impl Visit for Text {
    fn record_debug(&mut self, _: &Field, value: &dyn std::fmt::Debug) {
        let _ = write!(self.0, "{value:?} ");
    }
}
