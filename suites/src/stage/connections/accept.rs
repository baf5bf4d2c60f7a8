//! Connections that the target opens: the tester starts the target and waits for its connection.

use std::net::SocketAddr;
use std::time::Duration;

use weft_peer::Instant;
use weft_peer::driver::LinkError;

use super::Connections;
use crate::model::{Direction, Event};
use crate::stage::{Expectation, Stop};
use crate::targets::{COMMAND_SECONDS, MANUAL_SECONDS, Start};

/// While the tester waits for a connection, it checks at this interval whether the command has
/// ended.
const LOOK: Duration = Duration::from_millis(50);
/// After the command has ended, the tester waits this long for a connection. For example, ssh ends
/// before the program that it started.
const GRACE: Duration = Duration::from_secs(1);
/// Time between two messages of a countdown.
const COUNTDOWN: Duration = Duration::from_secs(10);

/// The wait for a target that was started.
pub(in crate::stage) struct TargetWait {
    /// Texts for reports. `expected` describes the action that is expected of the target. `absence`
    /// describes that this action did not happen.
    expected: &'static str,
    absence: &'static str,
    /// The instruction to the user, if the target is started manually.
    instruction: Option<String>,
    within: Duration,
    end: Instant,
    /// When the tester last checked the target.
    now: Instant,
    shown_at: Option<Instant>,
    ended_since: Option<Instant>,
}

impl Connections {
    /// Starts the target, and waits for its connection.
    pub(in crate::stage) async fn accept(&mut self) -> Result<u32, Stop> {
        self.check_limit()?;
        let Some(start) = self.start.clone() else {
            return Err(self.recorder().harness("the target is a responder, so it does not connect"));
        };
        let what = ("a TCP connection from the target", "no connection");
        let mut wait = self.start_target(&start, self.link.target(), None, what).await?;
        loop {
            let until = self.next_check(&mut wait);
            match self.link.accept(until).await {
                Ok(Some(connection)) => return Ok(self.connected(connection, Direction::Received)),
                Ok(None) => self.check_target(&mut wait)?,
                Err(error) => return Err(self.recorder().harness(&error.to_string())),
            }
        }
    }

    /// Starts the target. Reports contain `expected`, a description of the target's expected
    /// action, and `absence`, a description of the missing action.
    pub(in crate::stage) async fn start_target(
        &mut self,
        start: &Start,
        there: SocketAddr,
        mapper: Option<SocketAddr>,
        (expected, absence): (&'static str, &'static str),
    ) -> Result<TargetWait, Stop> {
        match start.start(there, mapper).await {
            Ok(running) => self.programs.add(running),
            Err(why) => {
                let actual = format!("the target's command does not start: {why}");
                return Err(self.recorder().unreached(expected, &actual));
            }
        }
        let instruction = start.manual_instruction(there, mapper);
        let seconds = if instruction.is_some() { MANUAL_SECONDS } else { COMMAND_SECONDS };
        let (within, now) = (self.target.scaled(seconds), self.link.now());
        let end = now + within;
        Ok(TargetWait { expected, absence, instruction, within, end, now, shown_at: None, ended_since: None })
    }

    /// Returns the time of the next [`check_target`](Self::check_target). Shows the instruction to
    /// the user at the first call, and then every `COUNTDOWN`.
    pub(in crate::stage) fn next_check(&mut self, wait: &mut TargetWait) -> Instant {
        let now = self.link.now();
        wait.now = now;
        let is_due = wait.shown_at.is_none_or(|shown_at| now >= shown_at + COUNTDOWN);
        if let Some(what) = wait.instruction.clone().filter(|_| is_due) {
            let seconds = wait.end.saturating_duration_since(now).as_secs_f64().round() as u64;
            self.sink.event(&Event::TargetWaiting { what, seconds });
            wait.shown_at = Some(now);
        }
        let slice = if self.link.is_virtual() { wait.within } else { LOOK };
        (now + slice).min(wait.end)
    }

    /// Ends the case if the time is over, or if the program of the target has ended.
    pub(in crate::stage) fn check_target(&mut self, wait: &mut TargetWait) -> Result<(), Stop> {
        let TargetWait { expected, absence, within, end, now, .. } = *wait;
        if self.link.now() >= end {
            let actual = format!("{absence} within {} s", within.as_secs_f64());
            return Err(self.recorder().unreached(expected, &actual));
        }
        let Some((line, status)) = self.programs.last_end() else { return Ok(()) };
        if now >= *wait.ended_since.get_or_insert(now) + GRACE {
            let actual = format!("{absence}, because {line} ended, {status}");
            return Err(self.recorder().unreached(expected, &actual));
        }
        Ok(())
    }

    /// Waits for the connection with which the target resumes a suspended connection.
    pub(in crate::stage) async fn await_reconnection(
        &mut self,
        port: u16,
        expectation: &Expectation,
    ) -> Result<u32, Stop> {
        self.check_limit()?;
        let deadline = self.link.now() + expectation.within;
        match self.link.await_reconnection(port, deadline).await {
            Ok(Some(connection)) => Ok(self.connected(connection, Direction::Received)),
            Ok(None) => {
                let expected = format!("a TCP connection to port {port}");
                let actual = format!("no connection within {} s", expectation.within.as_secs_f64());
                Err(self.recorder().overdue(expectation, &expected, &actual))
            }
            // The tester does not listen if it connects to the target over TCP.
            Err(LinkError::Responder { .. }) => {
                let expected = format!("a TCP connection to port {port}");
                Err(self.recorder().unreached(&expected, "weft accepts connections only from builtin targets"))
            }
            Err(error) => Err(self.recorder().harness(&error.to_string())),
        }
    }
}
