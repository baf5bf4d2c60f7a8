//! Connections that the target opens: the tester starts the target and waits for its connection.

use std::time::Duration;

use super::Connections;
use crate::model::{Direction, Event, SourceLocation};
use crate::stage::{Expectation, Stop};
use crate::targets::{COMMAND_SECONDS, MANUAL_SECONDS};

/// How often the tester checks whether the command has ended while it waits for a connection.
pub(in crate::stage) const LOOK: Duration = Duration::from_millis(50);
/// How long a connection may still arrive after the command has ended. For example, ssh ends before
/// the program that it started.
pub(in crate::stage) const GRACE: Duration = Duration::from_secs(1);
/// Time between two messages of a countdown.
pub(in crate::stage) const COUNTDOWN: Duration = Duration::from_secs(10);
impl Connections {
    /// Starts the target, and waits for its connection.
    pub(in crate::stage) async fn accept(&mut self, at: Option<&SourceLocation>) -> Result<u32, Stop> {
        self.check_limit(at)?;
        let Some(start) = self.start.clone() else {
            return Err(self.recorder().harness(at, "the target is a responder, and does not connect"));
        };
        let there = self.link.target();
        match start.start(there, None).await {
            Ok(running) => self.programs.add(running),
            Err(why) => {
                let actual = format!("its command does not start: {why}");
                return Err(self.recorder().unreached("a TCP connection from the target", actual, at));
            }
        }
        let instruction = start.manual_instruction(there, None);
        let seconds = if instruction.is_some() { MANUAL_SECONDS } else { COMMAND_SECONDS };
        self.await_target(self.target.scaled(seconds), instruction.as_deref(), at).await
    }

    pub(in crate::stage) async fn await_target(
        &mut self,
        within: Duration,
        instruction: Option<&str>,
        at: Option<&SourceLocation>,
    ) -> Result<u32, Stop> {
        const EXPECTED: &str = "a TCP connection from the target";
        let end = self.link.now() + within;
        let mut ended_since = None;
        let mut shown_at = None;
        loop {
            let now = self.link.now();
            if let Some(what) = instruction.filter(|_| shown_at.is_none_or(|shown_at| now >= shown_at + COUNTDOWN)) {
                let seconds = end.saturating_duration_since(now).as_secs_f64().round() as u64;
                self.sink.event(&Event::TargetWaiting { what: what.to_owned(), seconds });
                shown_at = Some(now);
            }
            let slice = if self.link.is_virtual() { within } else { LOOK };
            match self.link.accept((now + slice).min(end)).await {
                Ok(Some(connection)) => return Ok(self.connected(connection, Direction::Received)),
                Ok(None) if self.link.now() >= end => {
                    let actual = format!("no connection within {} s", within.as_secs_f64());
                    return Err(self.recorder().unreached(EXPECTED, actual, at));
                }
                Ok(None) => {}
                Err(error) => return Err(self.recorder().harness(at, &error.to_string())),
            }
            let Some((line, status)) = self.programs.last_end() else { continue };
            let since = *ended_since.get_or_insert(now);
            if now >= since + GRACE {
                return Err(self.recorder().unreached(
                    EXPECTED,
                    format!("no connection, because {line} ended, {status}"),
                    at,
                ));
            }
        }
    }

    /// Waits for the connection with which the target resumes a suspended connection.
    pub(in crate::stage) async fn await_reconnection(
        &mut self,
        port: u16,
        expectation: &Expectation,
    ) -> Result<u32, Stop> {
        let at = expectation.at.as_ref();
        self.check_limit(at)?;
        let deadline = self.link.now() + expectation.within;
        match self.link.await_reconnection(port, deadline).await {
            Ok(Some(connection)) => Ok(self.connected(connection, Direction::Received)),
            Ok(None) => {
                let expected = format!("a TCP connection to port {port}");
                let actual = format!("no connection within {} s", expectation.within.as_secs_f64());
                Err(self.recorder().overdue(expectation, &expected, &actual))
            }
            Err(error) => Err(self.recorder().harness(at, &error.to_string())),
        }
    }
}
