//! Former options of `weft test`, which are commands of `weft suite` now. The options still work in
//! this release, and help does not show them.

use std::path::PathBuf;
use std::process::ExitCode;

use weft_suites::Filter;
use weft_suites::script::Suites;

use super::Arguments;
use crate::cmd::suite;
use crate::exit;
use crate::results::make_folder;
use crate::runtime;
use crate::target::{names_target, resolve};

/// The former options.
#[derive(clap::Args)]
pub(super) struct Options {
    /// List the selected cases and exit
    #[arg(long, short, hide = true, conflicts_with_all = ["deviate", "rerun", "repeat", "until_fail", "resume", "capture"])]
    list: bool,
    /// Print a case, its requirements and its script, and exit
    #[arg(long, hide = true, value_name = "CASE", conflicts_with_all = ["list", "prove", "history"])]
    show: Option<String>,
    /// Print the results of a case in all stored runs against the target, and exit
    #[arg(long, hide = true, value_name = "CASE", conflicts_with_all = ["list", "prove", "rerun", "repeat", "until_fail", "resume"])]
    pub(super) history: Option<String>,
    /// Run the cases against the deviations that they should catch, print the matrix
    #[arg(long, hide = true, conflicts_with_all = ["deviate", "seed", "shard", "rerun", "repeat", "until_fail", "resume", "capture", "tui", "web", "list"])]
    prove: bool,
    /// Write annotations of the Lua functions for editors with LuaLS, and exit
    #[arg(long, hide = true, value_name = "FILE")]
    lua_annotations: Option<PathBuf>,
}

impl Options {
    /// Returns the used option and the command that replaces it.
    fn replaced(&self) -> Option<(&'static str, &'static str)> {
        [
            (self.list, "--list", "weft suite list [SELECT]..."),
            (self.lua_annotations.is_some(), "--lua-annotations", "weft suite annotations FILE"),
            (self.show.is_some(), "--show", "weft suite show CASE"),
            (self.prove, "--prove", "weft suite prove [SELECT]..."),
            (self.history.is_some(), "--history", "weft suite history TARGET CASE"),
        ]
        .into_iter()
        .find_map(|(is_used, option, command)| is_used.then_some((option, command)))
    }
}

/// Runs the command of a former option. Returns `None` if the command line has no such option. Also
/// returns `None` for `--history`: this command needs the target, so it runs later.
pub(super) fn run(arguments: &Arguments, suites: &Suites) -> anyhow::Result<Option<ExitCode>> {
    let options = &arguments.former;
    if let Some((option, command)) = options.replaced() {
        exit::note(&format!("`weft test {option}` is now `{command}`; the next release removes the option"));
    }
    if options.list {
        // Report an invalid target. The list itself does not depend on the target.
        if let Some(name) = arguments.target.as_deref().filter(|word| names_target(word)) {
            resolve(name, &[], false)?;
        }
        return suite::print_list(suites, &words(arguments), arguments.tier, arguments.shard).map(Some);
    }
    if let Some(file) = &options.lua_annotations {
        return suite::write_annotations(file).map(Some);
    }
    if let Some(case) = &options.show {
        return suite::print_case(suites, case).map(Some);
    }
    if options.prove {
        let filter = Filter::of(words(arguments)).tier(arguments.tier);
        make_folder(&arguments.out)?;
        return runtime::block_on(suite::judge_proofs(suites, &filter, arguments.jobs, &arguments.out)).map(Some);
    }
    Ok(None)
}

/// Returns the words that select cases. The word in the position of the target also selects cases,
/// unless it names a target.
fn words(arguments: &Arguments) -> Vec<String> {
    arguments.target.iter().filter(|word| !names_target(word)).chain(&arguments.select).cloned().collect()
}
