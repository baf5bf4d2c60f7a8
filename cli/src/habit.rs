//! What people type who know tshark, and what to type here instead: a line below clap's own.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use weft_core::text::{Visible, visible};

use crate::exit::{self, USAGE, note};

/// Prints what the command line got wrong, or the help that it asks for.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    let is_help = !error.use_stderr();
    let text = error.render().to_string();
    if is_help {
        exit::note_written(error.print());
    } else if matches!(visible(&text), Cow::Borrowed(_)) {
        // Whether anybody can read it is not our concern.
        let _ = error.print();
    } else {
        // The command line may have names of files, and those characters that do something to a terminal.
        let _ = write!(Visible(io::stderr()), "{text}");
    }
    if let Some(hint) = hint(error) {
        note(&hint);
    }
    exit::with_output(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE)))
}

/// Commands that read captures, as tshark does.
const LIKE_TSHARK: [&str; 7] = ["dissect", "lint", "explain", "follow", "stats", "ladder", "tui"];

/// Is the command line one of a command that is like tshark, or of none?
fn is_like_tshark(mut arguments: impl Iterator<Item = String>) -> bool {
    arguments.find(|argument| !argument.starts_with('-')).is_none_or(|word| {
        // A word that is no command stands behind options of tshark: weft -r FILE.
        LIKE_TSHARK.contains(&&*word) || !crate::Arguments::command().get_subcommands().any(|it| it.get_name() == word)
    })
}

fn hint(error: &clap::Error) -> Option<String> {
    if !is_like_tshark(std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned())) {
        return None;
    }
    let said = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    match error.kind() {
        ErrorKind::UnknownArgument => option(said(ContextKind::InvalidArg)?).map(str::to_owned),
        // tshark takes several interfaces.
        ErrorKind::ArgumentConflict => {
            let (one, other) = (said(ContextKind::InvalidArg)?, said(ContextKind::PriorArg)?);
            (one == other && one.starts_with("--interface"))
                .then(|| "-i any captures on all interfaces of this host; -f selects of that".to_owned())
        }
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
        "-d" | "-o" => {
            "iWARP is found by what it looks like, on any port; SDP without its beginning: --decode-as PORT=sdp"
        }
        "-2" | "-R" => "there is one pass; -Y filters in it",
        "-L" | "-y" | "-I" => {
            "an interface is captured on with the link type that it has; docs/captures.md lists those that are read"
        }
        "-F" => "-w writes pcapng; for older readers: editcap -F pcap OUT OUT.pcap",
        "-N" | "-H" => "names are never resolved: addresses and ports are numbers",
        "-C" | "-X" => "there are no profiles and no plug-ins: what a command does stands on its line",
        "-Q" => "-q prints nothing but the summary; what goes wrong is on standard error",
        "-j" | "-J" => "-T json has the layers of iWARP, or with -e the fields that you name",
        "-v" => "`weft --version` tells the version; -V prints every field",
        "-t" => "times are seconds since the first frame; for others: -T fields -e frame.number -e frame.time_epoch",
        "-P" => "what -w writes to a file is not printed as well; without -w it is",
        "-O" | "-S" => "-V prints every field of every unit; `weft explain FILE FRAME` those of one frame",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hints_are_for_commands_that_read_captures() {
        let is = |line: &str| is_like_tshark(line.split(' ').map(str::to_owned));
        assert!(["dissect x -d y", "lint -z x", "-r x.pcap", "-V", "x.pcap -z y"].into_iter().all(is));
        assert!(!["test builtin -t 3", "serve -i eth0", "ping -f", "web -d x"].into_iter().any(is));
    }
}
