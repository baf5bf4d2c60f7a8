//! The agent of a target. The agent calls the verbs of the target's NIC for a case. It runs in this
//! process or on the NIC's host.
//!
//! [`weft_agent::protocol`] defines the requests and the events. One [`Agent`] is one control
//! connection. When this connection closes, the agent destroys the objects that were created
//! through it. `remote` connects to an agent that it reaches over TCP or through a command, or that
//! runs in a thread of this process.
//!
//! [`crate::stage`] decides what a case requests, and judges the answers.

mod remote;

use std::net::SocketAddr;

use weft_agent::protocol::{Action, Event, Failure, Success};
use weft_agent::soft::SoftDevice;
use weft_peer::driver::Link;
use weft_peer::{Instant, Settings};

use remote::Remote;

/// How weft reaches the agent of a target.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentAddress {
    pub(crate) transport: AgentTransport,
    /// The address that the agent listens on or connects to for the connections of a case. It is
    /// set only if it differs from the address that the tester uses, for example because of address
    /// translation.
    pub(crate) translated_address: Option<SocketAddr>,
    /// Token that the agent was started with.
    pub(crate) token: Option<String>,
    /// Whether the token is from the target file. Otherwise it is from the environment.
    pub(crate) token_in_file: bool,
}

/// The way to reach an agent.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum AgentTransport {
    /// TCP to this `host:port`.
    Tcp(String),
    /// A command that speaks the protocol on its standard input and output, for example `ssh
    /// nic-host weft agent --stdio`.
    Command(Vec<String>),
}

impl std::fmt::Display for AgentTransport {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            AgentTransport::Tcp(address) => f.write_str(address),
            AgentTransport::Command(words) => f.write_str(&words.join(" ")),
        }
    }
}

/// The agent is unreachable, or its connection has ended. This error is no evidence about the
/// target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the agent {0}")]
pub(crate) struct AgentError(pub(crate) String);

/// A control connection.
pub(crate) enum Agent {
    /// The software RNIC of a virtual link.
    Soft(SoftDevice),
    /// A software RNIC that uses this host's TCP. Its thread in this process starts with the first
    /// request.
    Here(Box<Settings>),
    /// An agent in another thread, in another process or on another host.
    Remote(Remote),
}

impl Agent {
    /// Connects to an agent, and sends Hello.
    pub(crate) async fn open(at: &AgentAddress, within: std::time::Duration) -> Result<Self, AgentError> {
        Remote::open(at, within).await.map(Agent::Remote)
    }

    /// Sends a request, and returns the answer with its time in nanoseconds of the agent's clock.
    pub(crate) async fn ask(
        &mut self,
        link: &Link,
        action: Action,
        within: std::time::Duration,
    ) -> Result<(u64, Result<Success, Failure>), AgentError> {
        if let Agent::Here(settings) = self {
            *self = Remote::here(Settings::clone(settings), within).await.map(Agent::Remote)?;
        }
        match self {
            Agent::Soft(soft) => {
                let now = link.now();
                let answer = soft.perform(now, action);
                // During the pause, the link sends the output of the agent's streams.
                link.pause(now).await;
                Ok((now.as_nanos(), answer))
            }
            // `Remote` has replaced `Here` above.
            Agent::Here(_) => Err(AgentError("has not started".to_owned())),
            Agent::Remote(remote) => remote.ask(action, within).await,
        }
    }

    /// Returns the next event with its time in nanoseconds. Waits until `deadline` at most.
    pub(crate) async fn next_event(
        &mut self,
        link: &Link,
        deadline: Instant,
    ) -> Result<Option<(u64, Event)>, AgentError> {
        match (self, link) {
            (Agent::Soft(soft), Link::Virtual(link)) => {
                link.until(deadline, || soft.has_event()).await;
                Ok(soft.next_event().map(|(at, event)| (at.as_nanos(), event)))
            }
            // `Soft` always has a virtual link, so it never reaches this line. `Here` has no event
            // before its first request.
            (Agent::Soft(_) | Agent::Here(_), _) => Ok(None),
            (Agent::Remote(remote), link) => remote.next_event(deadline.saturating_duration_since(link.now())).await,
        }
    }
}
