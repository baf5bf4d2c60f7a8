//! `weft suite`: lists, shows and checks the cases of the test suites. Only `weft test` runs the
//! cases against a target.

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
    after_help = "`weft test` runs the suites against a target.\n\n\
    Examples:\n  \
    weft suite list mpa/7.1.1-key                list the cases of one script\n  \
    weft suite show mpa/7.1.1-key/wrong-octet    print one case with its requirements and script\n  \
    weft suite prove mpa/7.1.1-key               check that violations make these cases fail\n  \
    weft suite history nic.toml mpa/7.1.1-key/wrong-octet --out nic    print results of all runs"
)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Action,
}

subcommands! {
    enum Action {
        /// List cases with their requirements and the number of their variants
        List = list,
        /// Print a case, its requirements and its script
        Show = show,
        /// Check that each case fails against endpoints that violate its requirements
        ///
        /// A deviation makes weft's own endpoint violate a requirement on purpose. weft runs each
        /// case against the correct endpoint. Then weft runs the case with each deviation that
        /// violates one of the case's requirements. The output is a matrix of deviations and cases.
        Prove = prove,
        /// Print the results of a case in all stored runs against a target
        History = history,
        /// Write a file with type annotations of weft's Lua functions, for an editor
        ///
        /// Test cases are Lua scripts. The file has type annotations of the functions that a script
        /// can call. LuaLS, a language server for editors, uses this file to check scripts and to
        /// complete names.
        Annotations = annotations,
    }
}

/// Runs the subcommand.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    arguments.action.run()
}
