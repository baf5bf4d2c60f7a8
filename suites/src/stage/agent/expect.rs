//! Expectations of the agent's events: completions, and events of connections.

use weft_agent::protocol::{Completion, Event, Object};

use super::{AgentSide, Expectation, Stop};

/// The expected fields of a completion.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct CompletionFields {
    /// Number of the work request. `None` means the next work request that completes.
    pub(crate) work: Option<u64>,
    /// The allowed statuses. `error` means any status except success.
    pub(crate) status: Vec<String>,
    pub(crate) operation: Option<String>,
    pub(crate) octets: Option<u32>,
    pub(crate) invalidated: Option<u32>,
}

/// The expected event of a connection.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct EventFields {
    /// The allowed events: `established`, `rejected`, `failed`, `disconnected`, `asynchronous`.
    pub(crate) events: Vec<String>,
    pub(crate) private_data: Option<Vec<u8>>,
}

impl CompletionFields {
    fn miss(&self, it: &Completion) -> bool {
        let is = |status: &String| match status.as_str() {
            "error" => it.status != "success",
            status => it.status == status,
        };
        // If a work request failed, its operation and its number of bytes are not defined.
        let succeeded = it.status == "success";
        let operation = !succeeded || self.operation.as_ref().is_none_or(|wanted| *wanted == it.operation);
        let octets = !succeeded || self.octets.is_none_or(|wanted| wanted == it.octets);
        let invalidated = self.invalidated.is_none_or(|wanted| it.invalidated == Some(wanted));
        !(self.status.iter().any(is) && operation && octets && invalidated)
    }

    fn describe(&self) -> String {
        let mut text = match self.work {
            Some(work) => format!("work request {work} completes"),
            None => "a work request completes".to_owned(),
        };
        text.push_str(&format!(" with {}", self.status.join(" or ")));
        if let Some(operation) = &self.operation {
            text.push_str(&format!(", {operation}"));
        }
        if let Some(octets) = self.octets {
            text.push_str(&format!(", {octets} bytes"));
        }
        if let Some(stag) = self.invalidated {
            text.push_str(&format!(", STag {stag:#010x} invalidated"));
        }
        text
    }
}

fn notified(event: &Event) -> String {
    format!("the target's user is notified of the event {}", serde_json::to_string(event).unwrap_or_default())
}

fn describe(it: &Completion) -> String {
    let invalidated = it.invalidated.map_or(String::new(), |stag| format!(", STag {stag:#010x} invalidated"));
    format!(
        "the target's user is notified that work request {} completes with {}, {}, {} bytes{invalidated}",
        it.work, it.status, it.operation, it.octets
    )
}

impl AgentSide<'_> {
    /// Expects that the target's user is notified of this completion.
    pub(crate) async fn expect_completion(
        &mut self,
        pair: Object,
        expectation: &Expectation,
        wanted: &CompletionFields,
    ) -> Result<Completion, Stop> {
        let expected = wanted.describe();
        let deadline = self.connections.link.now() + expectation.within;
        let is_it = |event: &Event| match event {
            Event::Completion(it) => it.connection == pair && wanted.work.is_none_or(|work| work == it.work),
            _ => false,
        };
        match self.event(deadline, is_it).await? {
            Some(Event::Completion(it)) if wanted.miss(&it) => {
                Err(self.recorder().unmet(expectation, &expected, &describe(&it)))
            }
            Some(Event::Completion(it)) => {
                self.recorder().met(expectation, &expected, &describe(&it));
                Ok(it)
            }
            _ => {
                let actual = format!(
                    "the target's user is not notified of a completion within {} s",
                    expectation.within.as_secs_f64()
                );
                Err(self.recorder().overdue(expectation, &expected, &actual))
            }
        }
    }

    /// Returns the next completion on a connection, and judges nothing. Returns `None` if the
    /// target's user is not notified in time.
    pub(crate) async fn next_completion(
        &mut self,
        pair: Object,
        expectation: &Expectation,
    ) -> Result<Option<Completion>, Stop> {
        let deadline = self.connections.link.now() + expectation.within;
        let is_it = |event: &Event| matches!(event, Event::Completion(it) if it.connection == pair);
        match self.event(deadline, is_it).await? {
            Some(Event::Completion(completion)) => Ok(Some(completion)),
            _ => Ok(None),
        }
    }

    /// Expects that the target's user is notified of one of these events of a connection. Events of
    /// other connections, and completions, remain for later expectations.
    pub(crate) async fn expect_event(
        &mut self,
        pair: Object,
        expectation: &Expectation,
        wanted: &EventFields,
    ) -> Result<Event, Stop> {
        let expected = format!("the target's user is notified of the event {}", wanted.events.join(" or "));
        let deadline = self.connections.link.now() + expectation.within;
        // The connection's next event decides whether the expectation is met. For example, if the
        // expected event is `rejected` and the event `established` arrives, the expectation is not
        // met. Completions do not count. Asynchronous events and disconnections count only if they
        // are expected.
        let is_wanted = |name: &str| wanted.events.iter().any(|event| event == name);
        let is_it = |event: &Event| match event {
            Event::Asynchronous { connection, .. } => *connection == Some(pair) && is_wanted("asynchronous"),
            Event::Disconnected { connection } => *connection == pair && is_wanted("disconnected"),
            Event::Established { connection, .. }
            | Event::Rejected { connection, .. }
            | Event::Failed { connection, .. } => *connection == pair,
            Event::Request { .. } | Event::Completion(_) => false,
        };
        let Some(event) = self.event(deadline, is_it).await? else {
            let actual = format!("the target's user is not notified within {} s", expectation.within.as_secs_f64());
            return Err(self.recorder().overdue(expectation, &expected, &actual));
        };
        let actual = notified(&event);
        let data = match &event {
            Event::Established { private_data, .. } | Event::Rejected { private_data, .. } => Some(&private_data.0),
            _ => None,
        };
        let is_data = wanted.private_data.as_ref().is_none_or(|wanted| data == Some(wanted));
        if !is_wanted(event_name(&event)) || !is_data {
            return Err(self.recorder().unmet(expectation, &expected, &actual));
        }
        self.recorder().met(expectation, &expected, &actual);
        Ok(event)
    }

    /// Expects that the target's user is notified of an error of a connection. The notification is
    /// an event of the connection's Queue Pair, or a completion with an error other than a flush.
    /// (A work request is flushed if the connection ends before the work request is done.) With
    /// `or_end`, an event about the end of the connection is sufficient, and so is a flushed work
    /// request. The notification remains for later expectations.
    pub(crate) async fn expect_error(
        &mut self,
        pair: Object,
        expectation: &Expectation,
        or_end: bool,
    ) -> Result<(), Stop> {
        const FLUSHED: &str = "wr_flush_err";
        let expected = match or_end {
            true => "the target's user gets a completion with an error, or an event that reports the failure",
            false => {
                "the target's user gets an event of the Queue Pair, or a completion with an error other than a flush"
            }
        };
        let deadline = self.connections.link.now() + expectation.within;
        let is_it = |event: &Event| match event {
            Event::Asynchronous { connection, .. } => *connection == Some(pair),
            Event::Completion(it) => {
                it.connection == pair && it.status != "success" && (or_end || it.status != FLUSHED)
            }
            Event::Disconnected { connection } | Event::Failed { connection, .. } => or_end && *connection == pair,
            Event::Established { .. } | Event::Rejected { .. } | Event::Request { .. } => false,
        };
        match self.event(deadline, is_it).await? {
            Some(event) => {
                self.recorder().met(expectation, expected, &notified(&event));
                self.put_back(event);
                Ok(())
            }
            None => {
                let more =
                    if or_end { "" } else { " (flushed work requests and the end of the connection do not count)" };
                let actual =
                    format!("the target's user is not notified within {} s{more}", expectation.within.as_secs_f64());
                Err(self.recorder().overdue(expectation, expected, &actual))
            }
        }
    }

    /// Expects that the target's user is notified that a shared receive queue has fewer receives
    /// than its limit.
    pub(crate) async fn expect_limit(&mut self, expectation: &Expectation) -> Result<(), Stop> {
        const KIND: &str = "srq_limit_reached";
        let expected = "the target's user is notified that the shared receive queue has fewer receives than its limit";
        let deadline = self.connections.link.now() + expectation.within;
        let is_it = |event: &Event| matches!(event, Event::Asynchronous { kind, .. } if kind == KIND);
        match self.event(deadline, is_it).await? {
            Some(_) => {
                self.recorder().met(expectation, expected, "the target's user is notified");
                Ok(())
            }
            None => {
                let actual = format!("the target's user is not notified within {} s", expectation.within.as_secs_f64());
                Err(self.recorder().overdue(expectation, expected, &actual))
            }
        }
    }

    /// Expects that the target's user is not notified of any completion on a connection.
    pub(crate) async fn expect_no_completion(&mut self, pair: Object, expectation: &Expectation) -> Result<(), Stop> {
        let expected = "the target's user is not notified of a completion";
        let deadline = self.connections.link.now() + expectation.within;
        let is_it = |event: &Event| matches!(event, Event::Completion(it) if it.connection == pair);
        match self.event(deadline, is_it).await? {
            Some(Event::Completion(it)) => Err(self.recorder().unmet(expectation, expected, &describe(&it))),
            _ => {
                let actual = format!(
                    "the target's user is not notified of a completion within {} s",
                    expectation.within.as_secs_f64()
                );
                self.recorder().met(expectation, expected, &actual);
                Ok(())
            }
        }
    }
}

/// Returns the name of an event in scripts.
pub(crate) fn event_name(event: &Event) -> &'static str {
    match event {
        Event::Asynchronous { .. } => "asynchronous",
        Event::Completion(_) => "completion",
        Event::Disconnected { .. } => "disconnected",
        Event::Established { .. } => "established",
        Event::Failed { .. } => "failed",
        Event::Rejected { .. } => "rejected",
        Event::Request { .. } => "request",
    }
}
