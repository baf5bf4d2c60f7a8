//! The log: lines on standard error about what a command cannot put into its own output, such as a failed store or an
//! operator's action. Output and findings never go through it.

use std::io::{self, IsTerminal};

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::time::SystemTime;

use crate::cmd::Command;

/// What is logged, in the language of `tracing_subscriber::EnvFilter`: `error`, `info`, `weft_web=debug`.
pub(crate) const VARIABLE: &str = "WEFT_LOG";

/// Installs the log. A server logs every operator action, any other command only what goes wrong. The terminal screens
/// log nothing unless the user asks, because lines of the log would land between them.
pub(crate) fn install(command: &Command) {
    let default = match command {
        Command::Web(_) => "info",
        Command::Tui(_) => "off",
        _ => "warn",
    };
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let filter = if wanted.is_empty() { Ok(EnvFilter::new(default)) } else { EnvFilter::try_new(&wanted) };
    let (filter, wrong) = match filter {
        Ok(filter) => (filter, None),
        Err(error) => (EnvFilter::new(default), Some(error)),
    };
    let colour = io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none();
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(io::stderr).with_ansi(colour);
    // Without a subscriber of another's, this cannot fail; a test that calls it twice keeps the first.
    let _ = log.with_target(false).with_timer(SystemTime).try_init();
    if let Some(error) = wrong {
        tracing::warn!("{VARIABLE} is not understood and not used: {error}");
    }
}
