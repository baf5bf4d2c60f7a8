//! `weft extcap`: makes weft a capture interface of Wireshark.
//!
//! Wireshark runs each program in its extcap folder several times: to list the interfaces, their
//! link types and their options, to check a capture filter, and to capture. The program prints
//! *sentences*, one per line. During a capture, it writes a pcapng to a named pipe. Wireshark shows
//! everything on standard error as an error.

use std::ffi::OsString;
use std::fs::OpenOptions;
use std::io::{self, BufWriter};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

use weft_capture::{Interface, SNAP_LEN, check_filter, interfaces};
use weft_core::requirement::Severity;

use super::dissect::annotate;
use crate::exit::{BadInput, print_line, reject, unwritable};
use crate::input::{Input, LiveArguments, open_error};
use crate::one_of::one_of;

/// The start of the names of weft's interfaces in Wireshark. Names of extcap interfaces must differ
/// from the names of all other interfaces.
const PREFIX: &str = "weft-";
/// The starts of the names of libpcap's devices that are not network interfaces.
const NO_NETWORKS: [&str; 5] = ["bluetooth", "dbus-", "nflog", "nfqueue", "usbmon"];
/// The sentence about the link type. Its number is a number for private use, because the pcapng has
/// the link type of the interface.
const LINK_TYPE: &str = "dlt {number=147}{name=weft}{display=Link type of the interface}";

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Wireshark runs this command. To install it, make a link in Wireshark's personal\n\
    extcap folder, which the window \"About Wireshark\" shows under \"Folders\":\n  \
    ln -s \"$(command -v weft)\" ~/.local/lib/wireshark/extcap/weft\n\n\
    If the first option is --capture or starts with --extcap-, the word extcap is not necessary.\n\n\
    Examples:\n  \
    weft extcap --extcap-interfaces                              list the interfaces\n  \
    weft extcap --capture --extcap-interface weft-eth0 --fifo F  write a capture to the pipe F")]
pub(crate) struct Arguments {
    /// List weft's interfaces
    #[arg(long)]
    extcap_interfaces: bool,
    /// Print weft's version; Wireshark adds its own version
    #[arg(long, value_name = "VERSION", num_args = 0..=1, require_equals = true, default_missing_value = "")]
    extcap_version: Option<String>,
    /// List the link types of an interface
    #[arg(long, requires = "extcap_interface")]
    extcap_dlts: bool,
    /// List the options that Wireshark shows for an interface
    #[arg(long, requires = "extcap_interface")]
    extcap_config: bool,
    /// Use this interface, such as weft-eth0
    #[arg(long, value_name = "NAME")]
    extcap_interface: Option<String>,
    /// Set a capture filter in libpcap's language; without --capture, only check it
    #[arg(long, value_name = "FILTER")]
    extcap_capture_filter: Option<String>,
    /// Capture, and write a pcapng with weft's findings as packet comments
    #[arg(long, requires_all = ["extcap_interface", "fifo"])]
    capture: bool,
    /// Write the capture to this existing named pipe or file
    #[arg(long, value_name = "FILE")]
    fifo: Option<PathBuf>,
    /// Add the findings of this severity or above as packet comments
    #[arg(long, default_value = "warning", value_parser = one_of([
        ("error", "A violated MUST", Severity::Error),
        ("warning", "A violated SHOULD", Severity::Warning),
        ("note", "Unusual behaviour that is worth knowing", Severity::Note),
    ]))]
    level: Severity,
    /// Keep only the first BYTES bytes of each frame; 0 keeps all bytes (default)
    #[arg(long, value_name = "BYTES", value_parser = clap::value_parser!(u32).range(0..=i64::from(SNAP_LEN)))]
    snapshot_length: Option<u32>,
    /// Does nothing: Wireshark can request the values of an option again.
    #[arg(long = "extcap-reload-option", value_name = "OPTION", hide = true)]
    reload: Option<String>,
    /// Does nothing: Wireshark can run a program again after a capture.
    #[arg(long = "extcap-cleanup-postkill", hide = true)]
    cleanup: bool,
}

/// Returns the command line with the word `extcap`. Wireshark does not add this word.
pub(crate) fn with_command(mut line: Vec<OsString>) -> Vec<OsString> {
    let is_extcap = |word: &OsString| {
        let word = word.to_string_lossy();
        word == "--capture" || word.starts_with("--extcap-")
    };
    if line.get(1).is_some_and(is_extcap) {
        line.insert(1, "extcap".into());
    }
    line
}

/// Answers the request of Wireshark.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let Arguments { extcap_interface, extcap_capture_filter, .. } = arguments;
    if arguments.extcap_interfaces {
        let found = interfaces().map_err(|error| open_error(&error))?;
        print_line!("{}", version());
        sentences(&found).iter().for_each(|sentence| print_line!("{sentence}"));
    } else if let Some(name) = extcap_interface {
        let interface = interface_of(name)?;
        if arguments.extcap_dlts {
            print_line!("{LINK_TYPE}");
        } else if arguments.extcap_config {
            options().iter().for_each(|sentence| print_line!("{sentence}"));
        } else if let Some(fifo) = arguments.fifo.as_ref().filter(|_| arguments.capture) {
            capture(arguments, interface, fifo)?;
        } else if let Some(filter) = extcap_capture_filter {
            // A filter is valid if the output is empty.
            if let Err(error) = check_filter(filter) {
                print_line!("{error}");
            }
        } else if arguments.reload.is_none() && !arguments.cleanup {
            reject!("missing request for {name}: use --extcap-dlts, --extcap-config or --capture");
        }
    } else if arguments.extcap_version.is_some() {
        print_line!("{}", version());
    } else {
        reject!("Wireshark runs this command; docs/wireshark.md explains the installation");
    }
    Ok(ExitCode::SUCCESS)
}

/// The sentence with weft's version.
fn version() -> String {
    format!("extcap {{version={}}}{{display=weft}}", env!("CARGO_PKG_VERSION"))
}

/// The sentences about the interfaces on which weft can capture.
fn sentences(found: &[Interface]) -> Vec<String> {
    let is_network = |interface: &&Interface| !NO_NETWORKS.iter().any(|start| interface.name.starts_with(start));
    let sentence = |Interface { name, description, .. }: &Interface| {
        let more = description.as_ref().map_or_else(String::new, |text| format!(" ({})", value(text)));
        format!("interface {{value={PREFIX}{name}}}{{display=iWARP with findings of weft: {name}{more}}}")
    };
    found.iter().filter(|interface| interface.up).filter(is_network).map(sentence).collect()
}

/// Returns a text without the characters that end a value of a sentence.
fn value(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '{' | '}') && !c.is_control()).collect()
}

/// The sentences about the options that Wireshark shows before a capture.
fn options() -> Vec<String> {
    let mut sentences = vec![
        "arg {number=0}{call=--level}{display=Findings in packet comments}{type=selector}\
         {tooltip=Add the findings of this severity or above as packet comments}"
            .to_owned(),
    ];
    for (level, display, is_default) in [
        ("error", "Errors: violated MUSTs", false),
        ("warning", "Warnings: also violated SHOULDs", true),
        ("note", "Notes: also unusual behaviour", false),
    ] {
        sentences.push(format!("value {{arg=0}}{{value={level}}}{{display={display}}}{{default={is_default}}}"));
    }
    sentences.push(format!(
        "arg {{number=1}}{{call=--snapshot-length}}{{display=Bytes of each frame}}{{type=integer}}\
         {{range=0,{SNAP_LEN}}}{{default=0}}{{tooltip=Keep only the first bytes of each frame; 0 keeps all bytes}}"
    ));
    sentences
}

/// Returns the name of an interface in the operating system.
fn interface_of(name: &str) -> Result<&str, BadInput> {
    match name.strip_prefix(PREFIX) {
        Some(interface) if !interface.is_empty() => Ok(interface),
        _ => reject!("{name} is not an interface of weft; `weft extcap --extcap-interfaces` lists them"),
    }
}

/// Captures on `interface`, and writes the frames to `fifo`, until Wireshark ends this process or
/// closes the pipe.
fn capture(arguments: &Arguments, interface: &str, fifo: &Path) -> anyhow::Result<()> {
    // `Input::live` drops the privileges, and then the pipe can be inaccessible. So the pipe is
    // opened first. This waits for the reader.
    let out = OpenOptions::new()
        .write(true)
        .open(fifo)
        .map_err(|error| BadInput(format!("{}: {}", fifo.display(), unwritable(fifo, &error))))?;
    let live = LiveArguments::quiet(arguments.extcap_capture_filter.clone(), arguments.snapshot_length);
    let input = Input::live(&live, interface, None)?;
    let is_closed = |error: &anyhow::Error| {
        let io = error.chain().find_map(|cause| cause.downcast_ref::<io::Error>());
        io.is_some_and(|io| io.kind() == io::ErrorKind::BrokenPipe)
    };
    match annotate(input, arguments.level, BufWriter::new(out)) {
        Err(error) if !is_closed(&error) => Err(error),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use clap::Parser;

    use super::*;
    use crate::cmd::Command;

    fn interface(name: &str, description: Option<&str>, up: bool) -> Interface {
        let (name, description) = (name.to_owned(), description.map(str::to_owned));
        Interface { name, description, addresses: Vec::new(), up }
    }

    #[test]
    fn lists_network_interfaces_that_are_up() {
        let found = [
            interface("eth0", Some("first {port}"), true),
            interface("any", None, true),
            interface("eth1", None, false),
            interface("usbmon0", None, true),
        ];
        assert_eq!(
            sentences(&found),
            [
                "interface {value=weft-eth0}{display=iWARP with findings of weft: eth0 (first port)}",
                "interface {value=weft-any}{display=iWARP with findings of weft: any}",
            ]
        );
    }

    /// Wireshark calls `--capture` and the options of the sentences.
    #[test]
    fn accepts_the_command_lines_of_wireshark() {
        let capture = ["--capture", "--extcap-interface", "weft-eth0", "--fifo", "f"];
        let lines: [&[&str]; 8] = [
            &["--extcap-interfaces", "--extcap-version=4.2"],
            &["--extcap-version=4.2", "--extcap-interfaces"],
            &["--extcap-dlts", "--extcap-interface", "weft-eth0"],
            &["--extcap-config", "--extcap-interface", "weft-eth0"],
            &["--extcap-capture-filter", "tcp", "--extcap-interface", "weft-eth0"],
            &capture,
            &[&capture[..], &["--extcap-capture-filter", "tcp"]].concat(),
            &[&capture[..], &["--level", "note", "--snapshot-length", "0"]].concat(),
        ];
        for line in lines {
            let words = [&["weft"][..], line].concat().into_iter().map(OsString::from).collect();
            let parsed = crate::Arguments::try_parse_from(with_command(words));
            let command = parsed.map(|parsed| parsed.command);
            assert!(matches!(command, Ok(Command::Extcap(_))), "{line:?}");
        }
    }

    #[test]
    fn other_command_lines_do_not_change() {
        for line in [&["weft"][..], &["weft", "dissect", "--extcap-interfaces"], &["weft", "--version"]] {
            let words: Vec<OsString> = line.iter().map(OsString::from).collect();
            assert_eq!(with_command(words.clone()), words);
        }
    }

    #[test]
    fn only_interfaces_of_weft_are_used() {
        assert_eq!(interface_of("weft-eth0.1").unwrap(), "eth0.1");
        for name in ["eth0", "weft-", ""] {
            assert!(interface_of(name).is_err(), "{name}");
        }
    }

    #[test]
    fn options_have_the_values_of_the_command_line() {
        let sentences = options();
        for option in ["--level", "--snapshot-length"] {
            assert!(sentences.iter().any(|sentence| sentence.contains(&format!("{{call={option}}}"))), "{option}");
        }
        assert_eq!(sentences.iter().filter(|sentence| sentence.contains("{default=true}")).count(), 1);
        assert!(sentences.iter().all(|sentence| !sentence.contains('\n')));
    }
}
