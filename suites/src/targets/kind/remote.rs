//! The host of an implementation under test: the agent that drives its verbs, and the commands that
//! restart it or report a crash.

use super::super::command::LocalCommand;
use super::super::host::is_host_and_port;
use super::super::token::EnvironmentToken;
use super::super::{AgentField, TargetFile};
use crate::agent::{AgentAddress, AgentTransport};

/// The host of an implementation under test.
#[derive(Debug, Clone, Default)]
pub(crate) struct Remote {
    /// Drives the target's verbs.
    pub(crate) agent: Option<AgentAddress>,
    /// Restarts a dead target.
    pub(crate) restart: Option<LocalCommand>,
    /// Reports whether the target has crashed.
    pub(crate) crashed: Option<LocalCommand>,
}

impl Remote {
    /// Reads the agent and the commands of a target file.
    pub(crate) fn read(file: &TargetFile) -> Result<Self, String> {
        let restart = command("restart", &file.restart)?;
        let crashed = command("crashed", &file.crashed)?;
        Ok(Remote { agent: agent(file)?, restart, crashed })
    }

    /// Returns the commands that a run executes on this machine. Each entry has the name of the
    /// field in the target file, and the command line.
    pub(crate) fn commands(&self) -> Vec<(&'static str, String)> {
        let mut commands = Vec::new();
        for (field, command) in [("restart", &self.restart), ("crashed", &self.crashed)] {
            commands.extend(command.iter().map(|command| (field, command.to_string())));
        }
        if let Some(AgentAddress { transport: transport @ AgentTransport::Command(_), .. }) = &self.agent {
            commands.push(("agent", transport.to_string()));
        }
        commands
    }
}

fn command(field: &str, argv: &[String]) -> Result<Option<LocalCommand>, String> {
    match argv.split_first() {
        Some((program, _)) if program.is_empty() => Err(wrong_command(field)),
        Some((program, arguments)) => {
            Ok(Some(LocalCommand { program: program.clone(), arguments: arguments.to_vec() }))
        }
        None => Ok(None),
    }
}

/// Returns the error text for a wrong command in a target file.
pub(super) fn wrong_command(field: &str) -> String {
    format!("{field}: expected a command; only kind = \"tcp\" has this field")
}

fn agent(file: &TargetFile) -> Result<Option<AgentAddress>, String> {
    let transport = match &file.agent {
        None => return Ok(None),
        Some(AgentField::Address(address)) if is_host_and_port(address) => AgentTransport::Tcp(address.clone()),
        Some(AgentField::Command(argv)) if argv.first().is_some_and(|program| !program.is_empty()) => {
            AgentTransport::Command(argv.clone())
        }
        Some(_) => return Err("agent: expected host:port, or a command as a list of arguments".into()),
    };
    let translated_address = file.agent_at;
    Ok(Some(match &file.agent_token {
        Some(token) => {
            let token = Some(token.clone()).filter(|token| !token.is_empty());
            AgentAddress { transport, translated_address, token_in_file: token.is_some(), token }
        }
        None => {
            let token = EnvironmentToken::read().for_agent(&transport)?;
            AgentAddress { transport, translated_address, token, token_in_file: false }
        }
    }))
}
