//! The agent of the target in a case: what it is asked and what it tells, in the record beside the
//! wire.
//!
//! An agent that has gone, or that refuses what it is asked, says nothing about the target: the
//! case is inconclusive then. `operate` has connections that it makes, `expect` what is expected of
//! its events.

mod expect;
mod operate;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use weft_agent::protocol::{Action, Done, Event, Failure, Object};
use weft_peer::Instant;

pub(crate) use expect::{CompletionFields, EventFields, event_name};
pub(crate) use operate::{PairOptions, parameters};

use super::{Decision, Direction, Expectation, Stage, StepKind, Stop};
use crate::agent::Agent;
use crate::model::{SourceLocation, Verdict};

/// Seconds for an answer: to find the way to a peer may take several.
const ANSWER_SECONDS: f64 = 20.0;
/// Seconds in which an agent has to be there.
const OPEN_SECONDS: f64 = 20.0;
/// Most characters of what is said in one step.
const MOST_TEXT: usize = 400;
/// Events that nobody looks at.
const MOST_EVENTS: usize = 10_000;

/// The agent, as far as a case has one.
#[derive(Default)]
pub(super) struct AgentSide {
    agent: Option<Agent>,
    domain: Option<Object>,
    /// Where it listens.
    listener: Option<SocketAddr>,
    /// What it told and nobody looked at, with its time.
    events: VecDeque<(u64, Event)>,
    /// The last work request's number.
    work: u64,
}

impl AgentSide {
    pub(super) fn new(agent: Option<Agent>) -> Self {
        AgentSide { agent, ..AgentSide::default() }
    }
}

impl Stage {
    /// Asks for something, which is done; it belongs to no stimulus.
    pub(crate) async fn agent_done(&mut self, action: Action, at: Option<&SourceLocation>) -> Result<Done, Stop> {
        match self.agent_asked(action, at).await? {
            Ok(done) => Ok(done),
            Err(failure) => Err(self.agent_gone(&format!("does not do it: {failure}"), at)),
        }
    }

    /// Asks for something that makes the target do something.
    pub(crate) async fn agent_stimulus(
        &mut self,
        action: Action,
        at: Option<&SourceLocation>,
    ) -> Result<Result<Done, Failure>, Stop> {
        self.log.stimulated();
        self.agent_asked(action, at).await
    }

    /// Asks for something, and gives what came of it.
    pub(crate) async fn agent_asked(
        &mut self,
        action: Action,
        at: Option<&SourceLocation>,
    ) -> Result<Result<Done, Failure>, Stop> {
        self.agent_open(at).await?;
        let text = serde_json::to_string(&action).unwrap_or_default();
        self.agent_step(Direction::Sent, &text);
        let within = self.target.scaled(ANSWER_SECONDS);
        let Some(agent) = &mut self.agent.agent else { return Err(self.agent_gone("is not there", at)) };
        let (told, answer) = match agent.ask(&self.link, action, within).await {
            Ok(answer) => answer,
            Err(gone) => return Err(self.agent_gone(&gone.0, at)),
        };
        let text = match &answer {
            Ok(done) => serde_json::to_string(done).unwrap_or_default(),
            Err(failure) => format!("failed: {failure}"),
        };
        self.agent_told(told, &text);
        Ok(answer)
    }

    /// The first event that `wanted` picks, of those that came or come until `deadline`; the others
    /// are kept.
    pub(crate) async fn agent_event(
        &mut self,
        deadline: Instant,
        wanted: impl Fn(&Event) -> bool,
        at: Option<&SourceLocation>,
    ) -> Result<Option<Event>, Stop> {
        loop {
            if let Some(index) = self.agent.events.iter().position(|(_, event)| wanted(event)) {
                return Ok(self.agent.events.remove(index).map(|(_, event)| event));
            }
            if !self.agent_listen(deadline, at).await? {
                return Ok(None);
            }
        }
    }

    /// Keeps an event that was looked at, for the next one who asks.
    fn agent_again(&mut self, event: Event) {
        self.agent.events.push_front((0, event));
    }

    /// Takes the next event, if one comes until `deadline`.
    async fn agent_listen(&mut self, deadline: Instant, at: Option<&SourceLocation>) -> Result<bool, Stop> {
        let Some(agent) = &mut self.agent.agent else { return Err(self.agent_gone("is not there", at)) };
        let (told, event) = match agent.next_event(&self.link, deadline).await {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(false),
            Err(gone) => return Err(self.agent_gone(&gone.0, at)),
        };
        self.heard = true;
        let text = serde_json::to_string(&event).unwrap_or_default();
        self.agent_told(told, &text);
        if self.agent.events.len() >= MOST_EVENTS {
            return Err(self.agent_gone(&format!("tells more than {MOST_EVENTS} things that nobody asked for"), at));
        }
        self.agent.events.push_back((told, event));
        Ok(true)
    }

    /// Puts what the agent has told by now into the record.
    pub(super) async fn agent_leave(&mut self) {
        let now = self.link.now();
        while self.agent.agent.is_some() && matches!(self.agent_listen(now, None).await, Ok(true)) {}
        self.agent.agent = None;
    }

    /// A number for a work request that no other has.
    pub(crate) fn agent_work(&mut self) -> u64 {
        self.agent.work += 1;
        self.agent.work
    }

    /// The Protection Domain of all that names no other.
    pub(crate) async fn agent_domain(&mut self, at: Option<&SourceLocation>) -> Result<Object, Stop> {
        if let Some(domain) = self.agent.domain {
            return Ok(domain);
        }
        let Done::Domain { domain } = self.agent_done(Action::Domain, at).await? else {
            return Err(self.agent_gone("answers something else", at));
        };
        self.agent.domain = Some(domain);
        Ok(domain)
    }

    async fn agent_open(&mut self, at: Option<&SourceLocation>) -> Result<(), Stop> {
        if self.agent.agent.is_some() {
            return Ok(());
        }
        let Some(way) = self.target.remote().and_then(|remote| remote.agent.clone()) else {
            return Err(self.harness(at, "the target has no agent: the case has to say that it needs one"));
        };
        match Agent::open(&way, self.target.scaled(OPEN_SECONDS)).await {
            Ok(agent) => {
                self.agent_step(Direction::Observed, &format!("at {} is there", way.way));
                self.agent.agent = Some(agent);
                Ok(())
            }
            Err(gone) => Err(self.agent_gone(&gone.0, at)),
        }
    }

    /// The agent failed, which is no verdict on the target.
    pub(crate) fn agent_gone(&mut self, why: &str, at: Option<&SourceLocation>) -> Stop {
        self.agent_step(Direction::Observed, why);
        self.decide(Decision {
            verdict: Verdict::Inconclusive,
            requirements: Vec::new(),
            expected: None,
            actual: None,
            explanation: format!("The agent {why}."),
            at: at.cloned(),
        })
    }

    fn agent_told(&mut self, told: u64, text: &str) {
        let text: String = text.chars().take(MOST_TEXT).collect();
        let at = Duration::from_nanos(told).as_secs_f64();
        self.agent_step(Direction::Received, &format!("{text} (at {at:.6} s of its clock)"));
    }

    fn agent_step(&mut self, direction: Direction, text: &str) {
        let text: String = text.chars().take(MOST_TEXT + 40).collect();
        self.step(0, direction, StepKind::Agent, format!("agent: {text}"), None);
    }
}
