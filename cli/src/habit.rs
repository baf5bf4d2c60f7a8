//! What people type who know tshark, and what to type here instead: a line below clap's own.

use std::path::Path;
use std::process::ExitCode;

use clap::error::{ContextKind, ContextValue, ErrorKind};

use crate::exit::{USAGE, note};

/// Prints what the command line got wrong, or the help that it asks for.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    // Whether anybody can read it is not our concern.
    let _ = error.print();
    if let Some(hint) = hint(error) {
        note(&hint);
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE))
}

fn hint(error: &clap::Error) -> Option<String> {
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => option(said(ContextKind::InvalidArg)?).map(str::to_owned),
        ErrorKind::InvalidSubcommand => {
            let word = said(ContextKind::InvalidSubcommand)?;
            Path::new(word).is_file().then(|| format!("to read a capture: weft dissect {word}"))
        }
        _ => None,
    }
}

/// Options of tshark that no subcommand has.
fn option(word: &str) -> Option<&'static str> {
    Some(match word {
        "-r" => "to read a capture: weft dissect -r FILE",
        "-z" => {
            "`weft stats FILE` has each connection in numbers, `weft follow FILE` its messages, `weft ladder FILE` a picture of it"
        }
        "-i" | "-D" | "-f" | "-a" | "-b" => "`weft dissect -i IF` captures: -f, -s, -a, -b, -w as tshark has them",
        "-d" | "-o" => "iWARP is found by what it looks like, on any port: nothing has to be set",
        "-2" | "-R" => "there is one pass; -Y filters in it",
        "-t" => "times are seconds since the first frame; for others: -T fields -e frame.number -e frame.time_epoch",
        "-O" | "-S" | "-P" => "-V prints every field of every unit; `weft explain FILE FRAME` those of one frame",
        _ => return None,
    })
}
