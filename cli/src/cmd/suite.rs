//! `weft suite`: the cases of the suites, without a run that judges a target.

mod annotations;
mod history;
mod list;
mod prove;
mod show;

use std::process::ExitCode;

pub(super) use annotations::write as write_annotations;
pub(super) use history::print as print_history;
pub(super) use list::print as print_list;
pub(super) use prove::judge as judge_proofs;
pub(super) use show::print as print_case;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "Examples:\n  \
    weft suite list mpa/7.1.1-key                    the cases of one file\n  \
    weft suite show mpa/7.1.1-key/wrong-octet        one case with its requirements and its script\n  \
    weft suite prove mpa/7.1.1-key                   whether deviations make these cases fail\n  \
    weft suite history nic.toml mpa/7.1.1-key/wrong-octet --out nic    its results in all runs\n\n\
    `weft test` runs the suites against a target."
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

#[derive(clap::Subcommand)]
enum Action {
    /// List cases with their requirements and the number of their variants
    List(list::Arguments),
    /// Print a case, its requirements and its script
    Show(show::Arguments),
    /// Run cases against the deviations that they should catch, and print the matrix
    Prove(prove::Arguments),
    /// Print the results of a case on a target in all stored runs
    History(history::Arguments),
    /// Write annotations of the Lua functions for editors with LuaLS
    Annotations(annotations::Arguments),
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.action {
        Action::List(arguments) => list::run(arguments),
        Action::Show(arguments) => show::run(arguments),
        Action::Prove(arguments) => prove::run(arguments),
        Action::History(arguments) => history::run(arguments),
        Action::Annotations(arguments) => annotations::run(arguments),
    }
}
