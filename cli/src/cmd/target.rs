//! `weft target`: writes the target file of a test target, checks a target before a run, and lists
//! the presets of target files.

mod add;

use std::io::{self, Write as _};
use std::process::ExitCode;
use std::sync::Arc;

use weft_suites::model::Event;
use weft_suites::targets::{PRESETS, Target, check};

use crate::exit::{self, print_line};
use crate::runtime;
use crate::target::resolve;

/// The command line.
#[derive(clap::Args)]
#[command(
    after_help = "A target file is a TOML file with the address and the properties of an implementation under test.\n\n\
    A target file can contain commands, which weft runs on this machine with your rights. So treat\n\
    the file like a shell script. The fields start, restart, crashed and agent can contain commands.\n\
    `check` runs the commands in start and agent. With --no-commands, weft rejects a file with\n\
    commands.\n\n\
    weft sends the token in WEFT_AGENT_TOKEN only to agents on this machine, or to the host that\n\
    WEFT_AGENT_TOKEN_FOR names.\n\n\
    Examples:\n  \
    weft target add 192.0.2.17:7174 --name nic    probe the target and write nic.toml\n  \
    weft target check nic.toml                    connect to the target and report what works\n  \
    weft target presets                           list the presets"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// Probe a target that accepts connections, and write a target file for it
    ///
    /// weft finds out the protocol, the MPA revisions, CRCs, markers, and the program on the target
    /// if weft knows it. The file has a comment for each fact. Then weft prints what a run will
    /// test. weft exits with 3 if the target is down or does not answer. For a target that connects
    /// to weft, and for a port mapper, write the file yourself.
    Add(add::Arguments),
    /// Connect to a target, send it valid messages, and report how it answers
    ///
    /// weft exchanges the messages of the service that the target file names, such as an echo. weft
    /// exits with 3 if the target is unreachable, or if its answers do not match the target file.
    Check {
        /// Check this target: the name of a builtin target, or a TOML file
        ///
        /// The builtin targets are those of `weft test`, such as builtin or builtin-tcp.
        #[arg(value_name = "TARGET")]
        target: String,
        /// Reject a target file that runs commands on this machine
        #[arg(long)]
        no_commands: bool,
    },
    /// Print the presets of target files, each with the fields that it sets
    Presets,
}

/// Runs the subcommand and prints its results.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        Action::Add(arguments) => add::run(arguments),
        Action::Check { target, no_commands } => look(&resolve(target, &[], *no_commands)?),
        Action::Presets => {
            let mut out = io::stdout().lock();
            for preset in &PRESETS {
                let capabilities: Vec<String> = preset.capabilities.iter().map(ToString::to_string).collect();
                writeln!(out, "{}: {}", preset.name, preset.about)?;
                writeln!(out, "  capabilities {}", capabilities.join(", "))?;
                writeln!(out, "  settle_ms {}, time_scale {}", preset.settle_ms, preset.time_scale)?;
                writeln!(out, "  private data of at most {} bytes", preset.private_data)?;
                for remark in preset.remarks {
                    writeln!(out, "  - {remark}")?;
                }
            }
            Ok(ExitCode::SUCCESS)
        }
    }
}

/// Prints that weft waits for the user to start the target.
fn waiting(event: &Event) {
    if let Event::TargetWaiting { what, seconds } = event {
        exit::note(&format!("waiting at most {seconds} s for the target: {what}"));
    }
}

/// Checks the target and prints one line per result.
fn look(target: &Target) -> anyhow::Result<ExitCode> {
    let info = target.info();
    print_line!("{}: {}, {}, service {}", info.name, info.reached_by, info.role, info.service);
    runtime::block_on(async {
        let probes = check(target, Arc::new(waiting)).await.map_err(|error| exit::unreachable(&error))?;
        for probe in &probes {
            let mark = match probe.works {
                Some(true) => "ok ",
                Some(false) => "NOT",
                None => "   ",
            };
            print_line!("{mark} {:<26} {}", probe.what, probe.text);
        }
        let works = probes.iter().all(|probe| probe.works != Some(false));
        Ok(if works { ExitCode::SUCCESS } else { ExitCode::from(3) })
    })
}
