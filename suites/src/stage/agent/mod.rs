//! The agent of the target in a case. The log of the case has the requests to the agent, its
//! answers and its events, in addition to the traffic on the wire.
//!
//! If the agent fails or rejects a request, the case is inconclusive, because this failure is no
//! evidence about the target. `operate` opens connections with the agent. `expect` has the
//! expectations of the agent's events.

mod expect;
mod operate;

use std::collections::VecDeque;
use std::net::SocketAddr;
use std::time::Duration;

use weft_agent::protocol::{Action, Event, Failure, Object, Success};
use weft_peer::Instant;

pub(crate) use expect::{CompletionFields, EventFields, event_name};
pub(crate) use operate::{PairOptions, parameters};

use super::{Attempt, Connections, Expectation, Recorder, Stop};
use crate::agent::Agent;
use crate::model::{Direction, StepKind, Verdict};

/// Seconds to wait for an answer. It may take several seconds to find the route to a peer.
const ANSWER_SECONDS: f64 = 20.0;
/// Time limit in seconds for a connection to an agent.
const OPEN_SECONDS: f64 = 20.0;
/// Maximum length of the text of one step, in characters.
const MAX_TEXT_CHARS: usize = 400;
/// Maximum length of a reason of the agent, in characters. A line of an agent can be much longer.
const MAX_REASON_CHARS: usize = 1000;
/// Maximum number of events that no expectation has used.
const MAX_UNUSED_EVENTS: usize = 10_000;

/// The state of the agent in a case.
#[derive(Default)]
pub(in crate::stage) struct State {
    agent: Option<Agent>,
    domain: Option<Object>,
    /// The address that the agent listens on.
    listener: Option<SocketAddr>,
    /// Events that no expectation has used. Each has its time in nanoseconds of the agent's clock.
    events: VecDeque<(u64, Event)>,
    /// Number of the last work request.
    work: u64,
}

impl State {
    pub(super) fn new(agent: Option<Agent>) -> Self {
        State { agent, ..State::default() }
    }
}

/// The operations that a case performs through the target's agent.
pub(crate) struct AgentSide<'a> {
    pub(in crate::stage) connections: &'a mut Connections,
    pub(in crate::stage) state: &'a mut State,
}

impl AgentSide<'_> {
    pub(in crate::stage) fn recorder(&mut self) -> Recorder<'_> {
        self.connections.recorder()
    }

    /// Lets the agent perform an action that is not a stimulus. If the action fails, the case is
    /// inconclusive.
    pub(crate) async fn perform(&mut self, action: Action) -> Result<Success, Stop> {
        let result = self.request(action).await?;
        self.succeeded(result)
    }

    /// Returns the result of an action. If the agent rejected the action, the case is inconclusive.
    pub(crate) fn succeeded(&mut self, result: Result<Success, Failure>) -> Result<Success, Stop> {
        result.map_err(|failure| self.fail(&format!("rejects the requested action: {failure}")))
    }

    /// Ends the case, because the agent's answer does not fit the request.
    pub(crate) fn wrong_answer(&mut self) -> Stop {
        self.fail("sends an answer that does not fit the request")
    }

    /// Lets the agent perform an action that is a stimulus for the target.
    pub(crate) async fn stimulate(&mut self, action: Action) -> Result<Result<Success, Failure>, Stop> {
        self.connections.log.stimulated();
        self.request(action).await
    }

    /// Sends a request to the agent, and returns its result.
    pub(crate) async fn request(&mut self, action: Action) -> Result<Result<Success, Failure>, Stop> {
        self.open().await?;
        let text = serde_json::to_string(&action).unwrap_or_default();
        self.step(Direction::Sent, &text);
        let within = self.connections.target.scaled(ANSWER_SECONDS);
        let Some(agent) = &mut self.state.agent else { return Err(self.fail("has no control connection")) };
        let (agent_ns, answer) = match agent.ask(&self.connections.link, action, within).await {
            Ok(answer) => answer,
            Err(gone) => return Err(self.fail(&gone.0)),
        };
        let answer = answer.map_err(|failure| Failure { what: shortened(&failure.what), ..failure });
        let text = match &answer {
            Ok(done) => serde_json::to_string(done).unwrap_or_default(),
            Err(failure) => format!("failed: {failure}"),
        };
        self.record(agent_ns, &text);
        Ok(answer)
    }

    /// Returns the first event that `wanted` accepts. Waits for it until `deadline`. The other
    /// events remain for later expectations.
    pub(crate) async fn event(
        &mut self,
        deadline: Instant,
        wanted: impl Fn(&Event) -> bool,
    ) -> Result<Option<Event>, Stop> {
        loop {
            if let Some(index) = self.state.events.iter().position(|(_, event)| wanted(event)) {
                return Ok(self.state.events.remove(index).map(|(_, event)| event));
            }
            if !self.receive(deadline).await? {
                return Ok(None);
            }
        }
    }

    /// Puts an event back, for the next expectation.
    fn put_back(&mut self, event: Event) {
        self.state.events.push_front((0, event));
    }

    /// Receives the next event. Returns false if no event arrives until `deadline`.
    async fn receive(&mut self, deadline: Instant) -> Result<bool, Stop> {
        let Some(agent) = &mut self.state.agent else { return Err(self.fail("has no control connection")) };
        let (agent_ns, event) = match agent.next_event(&self.connections.link, deadline).await {
            Ok(Some(event)) => event,
            Ok(None) => return Ok(false),
            Err(gone) => return Err(self.fail(&gone.0)),
        };
        self.connections.has_responded = true;
        let text = serde_json::to_string(&event).unwrap_or_default();
        self.record(agent_ns, &text);
        if self.state.events.len() >= MAX_UNUSED_EVENTS {
            return Err(self.fail(&format!("sends more than {MAX_UNUSED_EVENTS} events that no expectation uses")));
        }
        self.state.events.push_back((agent_ns, event));
        Ok(true)
    }

    /// Records the events that the agent has sent until now, and closes the control connection.
    pub(in crate::stage) async fn leave(&mut self) {
        let now = self.connections.link.now();
        while self.state.agent.is_some() && matches!(self.receive(now).await, Ok(true)) {}
        self.state.agent = None;
    }

    /// Returns a new number for a work request.
    pub(crate) fn next_work(&mut self) -> u64 {
        self.state.work += 1;
        self.state.work
    }

    /// Returns the default Protection Domain. It is the domain of each object for which the script
    /// names no domain.
    pub(crate) async fn domain(&mut self) -> Result<Object, Stop> {
        if let Some(domain) = self.state.domain {
            return Ok(domain);
        }
        let Success::Domain { domain } = self.perform(Action::Domain).await? else {
            return Err(self.wrong_answer());
        };
        self.state.domain = Some(domain);
        Ok(domain)
    }

    /// Returns the given domain, or the default domain.
    pub(crate) async fn domain_or(&mut self, given: Option<Object>) -> Result<Object, Stop> {
        match given {
            Some(domain) => Ok(domain),
            None => self.domain().await,
        }
    }

    async fn open(&mut self) -> Result<(), Stop> {
        if self.state.agent.is_some() {
            return Ok(());
        }
        let Some(address) = self.connections.target.remote().and_then(|remote| remote.agent.clone()) else {
            let why = "the target has no agent; a case that uses the agent has to declare the capability `agent`";
            return Err(self.recorder().harness(why));
        };
        match Agent::open(&address, self.connections.target.scaled(OPEN_SECONDS)).await {
            Ok(agent) => {
                self.step(Direction::Observed, &format!("at {} is connected", address.transport));
                self.state.agent = Some(agent);
                Ok(())
            }
            Err(gone) => Err(self.fail(&gone.0)),
        }
    }

    /// Records that the agent failed. This is no evidence about the target, so the case is
    /// inconclusive.
    pub(crate) fn fail(&mut self, why: &str) -> Stop {
        self.step(Direction::Observed, why);
        self.recorder().decide(Verdict::Inconclusive, format!("The agent {}.", shortened(why)))
    }

    fn record(&mut self, agent_ns: u64, text: &str) {
        let text: String = text.chars().take(MAX_TEXT_CHARS).collect();
        let at = Duration::from_nanos(agent_ns).as_secs_f64();
        self.step(Direction::Received, &format!("{text} (agent's clock: {at:.6} s)"));
    }

    fn step(&mut self, direction: Direction, text: &str) {
        let text: String = text.chars().take(MAX_TEXT_CHARS + 40).collect();
        self.recorder().step(0, direction, StepKind::Agent, format!("agent: {text}"), None);
    }
}

/// Returns the first characters of a reason.
fn shortened(reason: &str) -> String {
    reason.chars().take(MAX_REASON_CHARS).collect()
}
