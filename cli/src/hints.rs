//! Hints for users of tshark and h2spec (a test tool for HTTP/2), for an address as HOST:PORT, and for
//! options that exclude each other. weft prints a hint in place of clap's tip and usage, after the first sentence of clap's
//! error.

use std::borrow::Cow;
use std::io::{self, Write};
use std::path::Path;
use std::process::ExitCode;

use clap::CommandFactory;
use clap::error::{ContextKind, ContextValue, ErrorKind};
use weft_core::text::{Visible, visible};
use weft_suites::targets::example_file;

use crate::exit::{self, USAGE, note};

/// Prints clap's error, or the requested help.
pub(crate) fn report(error: &clap::Error) -> ExitCode {
    let is_help = !error.use_stderr();
    let text = error.render().to_string();
    let hint = hint(error);
    if is_help {
        exit::note_written(error.print());
    } else if hint.is_some() {
        let _ = writeln!(Visible(io::stderr()), "{}", first_paragraph(&text));
    } else if matches!(visible(&text), Cow::Borrowed(_)) {
        // Ignore an error, because standard error can be closed.
        let _ = error.print();
    } else {
        // File names on the command line can have control characters.
        let _ = write!(Visible(io::stderr()), "{text}");
    }
    if let Some(hint) = hint {
        note(&hint);
    }
    exit::with_output(ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(USAGE)))
}

/// Returns clap's error without its tips and without the usage.
fn first_paragraph(text: &str) -> &str {
    text.split("\n\n").next().unwrap_or(text).trim_end()
}

/// The commands that read captures, as tshark does. A user of these commands sometimes types
/// options of tshark.
const LIKE_TSHARK: [&str; 10] =
    ["dissect", "lint", "why", "explain", "export", "follow", "stats", "io", "ladder", "tui"];

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
    if arguments().next().is_some_and(|word| word == "test") {
        return match error.kind() {
            ErrorKind::UnknownArgument => option_of_other_tests(context(ContextKind::InvalidArg)?),
            ErrorKind::ArgumentConflict => fixed_by_resume(first_paragraph(&error.render().to_string())),
            _ => None,
        };
    }
    let first = arguments().next().unwrap_or_default();
    if let "ping" | "cat" | "bench" | "probe" = &*first {
        let word = context(ContextKind::InvalidArg).or_else(|| context(ContextKind::InvalidValue));
        return word.and_then(|word| address(&first, word));
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

/// Returns a hint if `word` is HOST:PORT. As rping, these commands have an option for each part.
fn address(command: &str, word: &str) -> Option<String> {
    let (host, port) = word.rsplit_once(':')?;
    port.parse::<u16>().ok().filter(|_| !host.is_empty())?;
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let client = if matches!(command, "ping" | "probe") { " -c" } else { "" };
    Some(format!("to connect to {word}: weft {command}{client} -a {host} -p {port}"))
}

/// Returns a hint for an option of tshark that this command line does not accept.
fn option(word: &str) -> Option<&'static str> {
    Some(match word {
        "-r" => "to read a capture: weft dissect -r FILE",
        "-z" => {
            "use `weft stats FILE` for statistics, `weft follow FILE` for messages, `weft ladder FILE` for a diagram; \
             `weft dissect -q -z conv,tcp FILE` is as in tshark"
        }
        "-i" | "-D" | "-f" | "-a" | "-b" => "to capture: weft dissect -i IF; -f, -s, -a, -b and -w are as in tshark",
        "-d" | "-o" => {
            "weft detects iWARP on any port; for SDP that began before the capture, use --decode-as PORT=sdp"
        }
        "-2" | "-R" => "only `weft dissect` has -2 and -R; filter with -Y",
        "-L" | "-y" | "-I" => "weft uses the interface's link type; docs/captures.md lists the supported link types",
        "-F" => "-w writes pcapng; to convert the file for older programs: editcap -F pcap OUT OUT.pcap",
        "-N" | "-H" => "only `weft dissect` prints names: weft dissect -N n -H HOSTS FILE",
        "-C" | "-X" => "weft has no profiles and no plug-ins",
        "-Q" => "-q prints only the summary; errors are on standard error",
        "-j" | "-J" => "-T json prints the layers of iWARP, or the fields that -e names",
        "-v" => "`weft --version` prints the version; -V prints all fields",
        "-t" => "times are seconds since the first frame; `weft dissect -t ud FILE` prints dates",
        "-P" => "with -w, weft prints nothing; to print, omit -w",
        "-O" | "-S" => "-V prints all fields of each unit; `weft explain FILE FRAME` prints the fields of one frame",
        _ => return None,
    })
}

/// Returns a hint for an option of h2spec or of another test tool, that `weft test` does not have.
fn option_of_other_tests(word: &str) -> Option<String> {
    let hint = match word {
        "--dryrun" | "--dry-run" => "`weft suite list` prints the cases without running them",
        "--junit-report" | "--junit" | "--sarif" | "--html" | "--json" | "--report" | "--format" => {
            "each run writes report.html, junit.xml, report.sarif, report.json, report.tap and summary.md to --out DIR"
        }
        "--timeout" => "to extend all time limits, set `time_scale` in the target file",
        "--host" | "--port" | "-p" | "--target" | "--address" => {
            return Some(format!("a target file has the address of the target. {}", example_file("HOST:PORT")));
        }
        "-j" => "`--jobs N` runs N cases at a time, against builtin targets only",
        "--strict" => "`--tier full` runs all variants of all cases",
        "--tls" | "--insecure" | "-k" => "iWARP has no TLS",
        _ => return None,
    };
    Some(hint.to_owned())
}

/// Returns a hint for options that `--resume` excludes. `error` is the first paragraph of clap's
/// error.
fn fixed_by_resume(error: &str) -> Option<String> {
    let is_fixed =
        ["[SELECT]", "--seed", "--tier", "--rerun", "--shard", "--label"].into_iter().any(|name| error.contains(name));
    (is_fixed && error.contains("--resume")).then(|| {
        "a resumed run keeps its tier, seed, labels and selection of cases; use only: weft test TARGET --out DIR --resume"
            .to_owned()
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_of_other_test_tools_lead_somewhere() {
        for word in ["--dryrun", "--junit-report", "--timeout", "--port", "--target", "--format", "-j", "--tls"] {
            assert!(option_of_other_tests(word).is_some(), "{word}");
        }
        assert_eq!(option_of_other_tests("--no-such"), None);
    }

    #[test]
    fn an_address_becomes_options() {
        let hint = |command: &str, word: &str| address(command, word).unwrap_or_default();
        assert!(hint("ping", "10.0.0.1:7174").ends_with(": weft ping -c -a 10.0.0.1 -p 7174"));
        assert!(hint("bench", "[::1]:7174").ends_with(": weft bench -a ::1 -p 7174"));
        assert_eq!((address("ping", "--foo"), address("ping", "x:y"), address("ping", ":1")), (None, None, None));
    }

    #[test]
    fn a_resumed_run_keeps_its_selection() {
        let hint = |one: &str, other: &str| {
            fixed_by_resume(&format!("error: the argument '{one}' cannot be used with '{other}'"))
        };
        assert!(hint("[SELECT]...", "--resume").is_some() && hint("--resume", "--tier <TIER>").is_some());
        assert_eq!(hint("--resume", "--repeat <N>"), None);
        assert_eq!(hint("--seed <NUMBER>", "--shard <I/N>"), None);
    }

    #[test]
    fn hints_are_for_commands_that_read_captures() {
        let is = |line: &str| is_like_tshark(line.split(' ').map(str::to_owned));
        assert!(["dissect x -d y", "lint -z x", "-r x.pcap", "-V", "x.pcap -z y"].into_iter().all(is));
        assert!(!["test builtin -t 3", "serve -i eth0", "ping -f", "web -d x"].into_iter().any(is));
    }
}
