//! The log: lines on standard error about events that are not part of a command's output, such as a
//! failed store or an operator's action. Output and findings never use the log.

use std::io;

use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::time::SystemTime;
use weft_core::text::Visible;

use crate::cmd::Command;
use crate::exit::{BadInput, reject};

/// The variable that selects the logged events, in the language of `tracing_subscriber::EnvFilter`.
/// Examples are `error`, `info` and `weft_web=debug`.
pub(crate) const VARIABLE: &str = "WEFT_LOG";

/// Installs the log. `weft web` also logs every operator action. Other commands log only warnings
/// and errors. The terminal screens log nothing by default, because log lines would damage the
/// screen.
pub(crate) fn install(command: &Command) -> Result<(), BadInput> {
    let default = match command {
        Command::Web(_) => "info",
        Command::Tui(_) => "off",
        _ => "warn",
    };
    let wanted = std::env::var(VARIABLE).unwrap_or_default();
    let filter = if wanted.is_empty() { EnvFilter::new(default) } else { parse(&wanted)? };
    // File names can have characters that control a terminal, so `Visible` escapes such characters.
    // `Visible` would also escape the sequences for colours, so the log has no colours.
    let log = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| Visible(io::stderr())).with_ansi(false);
    // This fails only if a subscriber is installed already, as in tests that call `install` twice.
    let _ = log.with_target(false).with_timer(SystemTime).try_init();
    Ok(())
}

/// Parses the filter. A word without `=` must be a level. `EnvFilter` alone would take a misspelt
/// level as the name of a module, and disable the log of all other modules.
fn parse(wanted: &str) -> Result<EnvFilter, BadInput> {
    for directive in wanted.split(',').map(str::trim).filter(|directive| !directive.is_empty()) {
        let (module, level) =
            directive.rsplit_once('=').map_or((None, directive), |(module, level)| (Some(module), level));
        if module.is_some_and(str::is_empty) || !LEVELS.iter().any(|known| known.eq_ignore_ascii_case(level)) {
            let levels = LEVELS.join(", ");
            reject!("{VARIABLE}: {directive:?} is not a level; use one of {levels}, or MODULE=LEVEL");
        }
    }
    EnvFilter::try_new(wanted).map_err(|error| BadInput(format!("{VARIABLE}: {error}")))
}

/// The levels of `tracing`.
const LEVELS: [&str; 6] = ["off", "error", "warn", "info", "debug", "trace"];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn levels_alone_and_of_modules() {
        for wanted in ["warn", "WARN", "off", "info,weft_web=debug", "weft_web=debug, error,"] {
            assert!(parse(wanted).is_ok(), "{wanted}");
        }
        for (wanted, wrong) in [
            ("warning", "warning"),
            ("info,weft_web", "weft_web"),
            ("weft_web=loud", "weft_web=loud"),
            ("=info", "=info"),
        ] {
            let message = parse(wanted).unwrap_err().to_string();
            let expected = format!(
                "WEFT_LOG: {wrong:?} is not a level; use one of off, error, warn, info, debug, trace, or MODULE=LEVEL"
            );
            assert_eq!(message, expected);
        }
    }
}
