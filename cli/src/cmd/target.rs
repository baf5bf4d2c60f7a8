//! `weft target`: checks a target before a run.

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
    after_help = "A target file can run commands on this machine with your rights: start, restart, crashed, and\n\
    agent as a list.\n\
    `check` runs start and agent. Treat a target file like a shell script. --no-commands refuses a\n\
    file with any of them.\n\n\
    weft sends WEFT_AGENT_TOKEN only to agents on this machine, or to the host in\n\
    WEFT_AGENT_TOKEN_FOR."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    what: What,
}

#[derive(clap::Subcommand)]
enum What {
    /// Connect to a target, try a good exchange, and report how it answers
    ///
    /// The requests are those of the target's service. The exit code is 3 if the target is not as
    /// its file describes it.
    Check {
        /// Check this target: builtin, builtin-tcp, builtin-initiator, or a TOML file
        ///
        /// builtin-initiator-tcp is possible, too.
        #[arg(value_name = "TARGET")]
        target: String,
        /// Refuse a target file that runs commands on this machine
        #[arg(long)]
        no_commands: bool,
    },
    /// Print the fields that each preset of target files sets
    Presets,
}

/// Runs the subcommand and prints its results.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.what {
        What::Check { target, no_commands } => look(&resolve(target, &[], *no_commands)?),
        What::Presets => {
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

/// The user has to start the target.
fn waiting(event: &Event) {
    if let Event::TargetWaiting { what, seconds } = event {
        exit::note(&format!("waiting at most {seconds} s: {what}"));
    }
}

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
