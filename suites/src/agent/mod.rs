//! The agent of a target: what drives the NIC's own verbs for a case, in process or on the NIC's
//! host.
//!
//! [`weft_agent::protocol`] has the requests and the events. One [`Agent`] is one control
//! connection; its objects are destroyed with it. `remote` speaks to one over TCP, through a
//! command, or in a thread of this process.
//!
//! What is left out: what a case wants of it, and what comes of that ([`crate::stage`]).

mod remote;

use std::net::SocketAddr;

use weft_agent::protocol::{Action, Done, Event, Failure};
use weft_agent::soft::Soft;
use weft_peer::driver::Link;
use weft_peer::{Instant, Settings};

use remote::Remote;

/// How the agent of a target is reached.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AgentAt {
    pub(crate) way: Way,
    /// Where it listens, or connects to, as its host knows it, with address translation.
    pub(crate) place: Option<SocketAddr>,
    /// What the agent was started with.
    pub(crate) token: Option<String>,
    /// The token is in the target's file, not in the environment.
    pub(crate) token_in_file: bool,
}

/// The way there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Way {
    /// `host:port`.
    Tcp(String),
    /// A command that speaks the protocol on its standard input and output: `ssh nic-host weft
    /// agent --stdio`.
    Command(Vec<String>),
}

impl std::fmt::Display for Way {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Way::Tcp(address) => f.write_str(address),
            Way::Command(words) => f.write_str(&words.join(" ")),
        }
    }
}

/// The agent is not there, or not any more. This is no evidence about the target.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("the agent {0}")]
pub(crate) struct Gone(pub(crate) String);

/// A control connection.
pub(crate) enum Agent {
    /// The software RNIC of a virtual link.
    Soft(Soft),
    /// The software RNIC on this host's TCP, in a thread of this process that begins with the first
    /// question.
    Here(Box<Settings>),
    /// On the NIC's host.
    Remote(Remote),
}

impl Agent {
    /// Reaches it, and sends Hello.
    pub(crate) async fn open(at: &AgentAt, within: std::time::Duration) -> Result<Self, Gone> {
        Remote::open(at, within).await.map(Agent::Remote)
    }

    /// Asks, and gives the answer with its time in nanoseconds of the agent's clock.
    pub(crate) async fn ask(
        &mut self,
        link: &Link,
        action: Action,
        within: std::time::Duration,
    ) -> Result<(u64, Result<Done, Failure>), Gone> {
        if let Agent::Here(settings) = self {
            *self = Remote::here(Settings::clone(settings), within).await.map(Agent::Remote)?;
        }
        match self {
            Agent::Soft(soft) => {
                let now = link.now();
                let answer = soft.perform(now, action);
                // The output of its streams is sent at once.
                link.pause(now).await;
                Ok((now.as_nanos(), answer))
            }
            // It has begun.
            Agent::Here(_) => Err(Gone("is not there".to_owned())),
            Agent::Remote(remote) => remote.ask(action, within).await,
        }
    }

    /// The next event with its time, until `deadline` at most.
    pub(crate) async fn next_event(&mut self, link: &Link, deadline: Instant) -> Result<Option<(u64, Event)>, Gone> {
        match (self, link) {
            (Agent::Soft(soft), Link::Virtual(link)) => {
                link.until(deadline, || soft.has_event()).await;
                Ok(soft.next_event().map(|(at, event)| (at.as_nanos(), event)))
            }
            // There is no such pair, and no request means no event.
            (Agent::Soft(_) | Agent::Here(_), _) => Ok(None),
            (Agent::Remote(remote), link) => remote.next_event(deadline.saturating_duration_since(link.now())).await,
        }
    }
}
