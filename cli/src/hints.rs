//! Hints for users of tshark and h2spec (a test tool for HTTP/2). weft prints them after clap's own
//! error.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use weft_core::text::{Visible, visible};

use crate::exit::{self, USAGE, note};

/// Prints clap's error, or the requested help.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    let is_help = !error.use_stderr();
    let text = error.render().to_string();
    if is_help {
        exit::note_written(error.print());
    } else if matches!(visible(&text), Cow::Borrowed(_)) {
        // Ignore an error, because standard error can be closed.
        let _ = error.print();
    } else {
        // File names on the command line can have control characters.
        let _ = write!(Visible(io::stderr()), "{text}");
    }
    if let Some(hint) = hint(error) {
        note(&hint);
    }
    exit::with_output(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE)))
}

/// The commands that read captures, as tshark does. A user of these commands sometimes types
/// options of tshark.
const LIKE_TSHARK: [&str; 7] = ["dissect", "lint", "explain", "follow", "stats", "ladder", "tui"];

/// Returns whether the command line has one of the [`LIKE_TSHARK`] commands, or no command.
fn is_like_tshark(mut arguments: impl Iterator<Item = String>) -> bool {
    arguments.find(|argument| !argument.starts_with('-')).is_none_or(|word| {
        // In `weft -r FILE`, `FILE` is the value of an option of tshark, not a command.
        LIKE_TSHARK.contains(&&*word) || !crate::Arguments::command().get_subcommands().any(|it| it.get_name() == word)
    })
}

fn hint(error: &clap::Error) -> Option<String> {
    let context = |kind| match error.get(kind) {
        Some(ContextValue::String(word)) => Some(word.as_str()),
        _ => None,
    };
    let arguments = || std::env::args_os().skip(1).map(|word| word.to_string_lossy().into_owned());
    if error.kind() == ErrorKind::UnknownArgument && arguments().next().is_some_and(|word| word == "test") {
        return option_of_h2spec(context(ContextKind::InvalidArg)?).map(str::to_owned);
    }
    if !is_like_tshark(arguments()) {
        return None;
    }
    match error.kind() {
        ErrorKind::UnknownArgument => option(context(ContextKind::InvalidArg)?).map(str::to_owned),
        // tshark accepts `-i` several times. weft accepts it once.
        ErrorKind::ArgumentConflict => {
            let (one, other) = (context(ContextKind::InvalidArg)?, context(ContextKind::PriorArg)?);
            (one == other && one.starts_with("--interface"))
                .then(|| "`-i any` captures on all interfaces of this host; -f selects frames".to_owned())
        }
        ErrorKind::InvalidSubcommand => {
            let word = context(ContextKind::InvalidSubcommand)?;
            Path::new(word).is_file().then(|| format!("to read a capture: weft dissect {word}"))
        }
        _ => None,
    }
}

/// Returns a hint for an option of tshark that this command line does not accept.
fn option(word: &str) -> Option<&'static str> {
    Some(match word {
        "-r" => "to read a capture: weft dissect -r FILE",
        "-z" => {
            "use `weft stats FILE` for statistics, `weft follow FILE` for messages, `weft ladder FILE` for a diagram"
        }
        "-i" | "-D" | "-f" | "-a" | "-b" => "to capture: weft dissect -i IF; -f, -s, -a, -b and -w are as in tshark",
        "-d" | "-o" => {
            "weft detects iWARP on any port; for SDP that began before the capture, use --decode-as PORT=sdp"
        }
        "-2" | "-R" => "weft has no second pass over a capture; filter with -Y",
        "-L" | "-y" | "-I" => "weft uses the interface's link type; docs/captures.md lists the supported link types",
        "-F" => "-w writes pcapng; to convert the file for older programs: editcap -F pcap OUT OUT.pcap",
        "-N" | "-H" => "weft never resolves names; it prints addresses and ports as numbers",
        "-C" | "-X" => "weft has no profiles and no plug-ins",
        "-Q" => "-q prints only the summary; errors are on standard error",
        "-j" | "-J" => "-T json prints the layers of iWARP, or the fields that -e names",
        "-v" => "`weft --version` prints the version; -V prints all fields",
        "-t" => {
            "times are seconds since the first frame; for absolute times: -T fields -e frame.number -e frame.time_epoch"
        }
        "-P" => "with -w, weft prints nothing; to print, omit -w",
        "-O" | "-S" => "-V prints all fields of each unit; `weft explain FILE FRAME` prints the fields of one frame",
        _ => return None,
    })
}

/// Returns a hint for an option of h2spec that `weft test` does not have.
fn option_of_h2spec(word: &str) -> Option<&'static str> {
    Some(match word {
        "--dryrun" | "--dry-run" => "`weft suite list` prints the cases without running them",
        "--junit-report" | "--junit" | "--sarif" | "--html" | "--json" | "--report" => {
            "each run writes report.html, junit.xml, report.sarif, report.json and summary.md to --out DIR"
        }
        "--timeout" => "to extend all time limits, set `time_scale` in the target file",
        "--host" | "--port" | "-p" => {
            "put the address into a target file and run weft test TARGET.toml; docs/conformance.md has an example"
        }
        "--strict" => "`--tier full` runs all variants of all cases",
        "--tls" | "--insecure" | "-k" => "iWARP has no TLS",
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn h2specs_options_lead_somewhere() {
        for word in ["--dryrun", "--junit-report", "--timeout", "--port", "--strict", "--tls"] {
            assert!(option_of_h2spec(word).is_some(), "{word}");
        }
        assert_eq!(option_of_h2spec("--no-such"), None);
    }

    #[test]
    fn hints_are_for_commands_that_read_captures() {
        let is = |line: &str| is_like_tshark(line.split(' ').map(str::to_owned));
        assert!(["dissect x -d y", "lint -z x", "-r x.pcap", "-V", "x.pcap -z y"].into_iter().all(is));
        assert!(!["test builtin -t 3", "serve -i eth0", "ping -f", "web -d x"].into_iter().any(is));
    }
}
