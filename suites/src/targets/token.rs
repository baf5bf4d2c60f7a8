//! Decides which agent gets the token from the environment.
//!
//! A target file names the agent's address, and the file may come from somebody else. So weft sends
//! the token only to the host that `WEFT_AGENT_TOKEN_FOR` names. Without that variable, only an
//! agent on this machine gets the token.

use std::net::IpAddr;

use crate::agent::AgentTransport;

/// Environment variable: the token for an agent whose target file has no token.
const TOKEN: &str = "WEFT_AGENT_TOKEN";
/// Environment variable that names the agent that may receive [`TOKEN`]. The value is `HOST` or
/// `HOST:PORT`, in the spelling of target files.
const TOKEN_FOR: &str = "WEFT_AGENT_TOKEN_FOR";

/// The token from the environment, and the agent that it is for.
#[derive(Debug, Default)]
pub(super) struct EnvironmentToken {
    token: Option<String>,
    bound_to: Option<String>,
}

impl EnvironmentToken {
    pub(super) fn read() -> Self {
        let variable = |name| std::env::var(name).ok().filter(|value| !value.is_empty());
        EnvironmentToken { token: variable(TOKEN), bound_to: variable(TOKEN_FOR) }
    }

    /// Returns the token if it is for this agent. A command of a target file gets no token.
    ///
    /// # Errors
    /// The agent is on another host, and the token is not for that host. The text explains the
    /// remedy.
    pub(super) fn for_agent(self, transport: &AgentTransport) -> Result<Option<String>, String> {
        let (Some(token), AgentTransport::Tcp(address)) = (self.token, transport) else { return Ok(None) };
        let host = host(address);
        let is_bound = self.bound_to.as_deref().is_some_and(|bound| {
            let named = if bound.rsplit_once(':').is_some_and(|(_, port)| port.parse::<u16>().is_ok()) {
                address
            } else {
                host
            };
            named.trim_matches(['[', ']']).eq_ignore_ascii_case(bound.trim_matches(['[', ']']))
        });
        match self.bound_to {
            _ if is_bound => Ok(Some(token)),
            None if is_loopback(host) => Ok(Some(token)),
            Some(_) if is_loopback(host) => Ok(None),
            bound => {
                let whose = bound.map_or("for agents of this machine only".to_owned(), |bound| format!("for {bound}"));
                Err(format!(
                    "agent = {address:?}: weft does not send {TOKEN} there, because the token is {whose}; if the agent is yours, set {TOKEN_FOR}={host}"
                ))
            }
        }
    }
}

/// The host of `host:port`, without brackets.
fn host(address: &str) -> &str {
    address.rsplit_once(':').map_or(address, |(host, _)| host).trim_matches(['[', ']'])
}

fn is_loopback(host: &str) -> bool {
    host.eq_ignore_ascii_case("localhost") || host.parse::<IpAddr>().is_ok_and(|ip| ip.to_canonical().is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(bound_to: Option<&str>, agent: &str) -> Result<Option<String>, String> {
        let token = EnvironmentToken { token: Some("secret".into()), bound_to: bound_to.map(str::to_owned) };
        token.for_agent(&AgentTransport::Tcp(agent.to_owned()))
    }

    #[test]
    fn a_token_without_a_host_is_for_this_machine() {
        for agent in ["127.0.0.1:7471", "localhost:7471", "[::1]:7471", "127.9.9.9:1", "[::ffff:127.0.0.1]:1"] {
            assert_eq!(token(None, agent), Ok(Some("secret".into())), "{agent}");
        }
        let error = token(None, "192.0.2.17:7471").unwrap_err();
        assert!(error.contains("agents of this machine only"), "{error}");
        assert!(error.ends_with("set WEFT_AGENT_TOKEN_FOR=192.0.2.17"), "{error}");
    }

    #[test]
    fn a_bound_token_goes_to_its_host_alone() {
        for (bound_to, agent) in [
            ("192.0.2.17", "192.0.2.17:7471"),
            ("192.0.2.17:7471", "192.0.2.17:7471"),
            ("NIC-17.example", "nic-17.example:7471"),
            ("[2001:db8::1]", "[2001:db8::1]:7471"),
            ("[2001:db8::1]:7471", "[2001:db8::1]:7471"),
        ] {
            assert_eq!(token(Some(bound_to), agent), Ok(Some("secret".into())), "{bound_to} {agent}");
        }
        for (bound_to, agent) in [
            ("192.0.2.17", "192.0.2.18:7471"),
            ("192.0.2.17:7471", "192.0.2.17:7472"),
            ("nic", "nic.attacker.example:7471"),
        ] {
            let error = token(Some(bound_to), agent).unwrap_err();
            assert!(error.contains(&format!("is for {bound_to}")), "{error}");
        }
        assert_eq!(token(Some("192.0.2.17"), "127.0.0.1:7471"), Ok(None));
    }

    #[test]
    fn a_command_gets_no_token() {
        let token = EnvironmentToken { token: Some("secret".into()), bound_to: None };
        assert_eq!(token.for_agent(&AgentTransport::Command(vec!["ssh".into()])), Ok(None));
    }
}
