//! `weft suite show`: prints a case, its requirements, and its script.

use std::io::Write as _;
use std::path::PathBuf;
use std::process::ExitCode;

use weft_core::text::Visible;
use weft_suites::script::Suites;

use crate::exit::reject;
use crate::suites::load;

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Example:
  \
    weft suite show mpa/7.1.1-key/wrong-octet    print a case and its script")]
pub(crate) struct Arguments {
    /// Print the case with this id
    #[arg(value_name = "CASE")]
    case: String,
    /// Use the suites of this folder instead of the built-in ones
    #[arg(long, value_name = "DIR")]
    suites: Option<PathBuf>,
}

/// Runs the subcommand.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    print(&load(arguments.suites.as_deref())?, &arguments.case)
}

/// Prints the case with its requirements, parameters and source.
pub(crate) fn print(suites: &Suites, id: &str) -> anyhow::Result<ExitCode> {
    let Some(case) = suites.cases().find(|case| case.id == id) else {
        let near: Vec<&str> =
            suites.cases().map(|case| case.id.as_str()).filter(|other| other.contains(id)).take(8).collect();
        let hint = match near.as_slice() {
            [] => "`weft suite list` lists all".to_owned(),
            near => format!("did you mean {}?", near.join(" or ")),
        };
        reject!("there is no case {id}; {hint}");
    };
    let mut out = Visible(std::io::stdout().lock());
    let joined = |words: Vec<String>| if words.is_empty() { "none".to_owned() } else { words.join(", ") };
    writeln!(out, "{} (version {})\n  {}\n", case.id, case.version, case.title)?;
    for requirement in &case.requirements {
        let row = requirement.row();
        writeln!(out, "{} {} ({}, section {})\n  {}", row.id, row.level, row.role, row.section, row.summary)?;
        writeln!(out, "  check: {}\n", row.check)?;
    }
    writeln!(out, "roles         {}", joined(case.roles.iter().map(ToString::to_string).collect()))?;
    writeln!(out, "capabilities  {}", joined(case.capabilities.iter().map(ToString::to_string).collect()))?;
    writeln!(out, "tags          {}", joined(case.tags.clone()))?;
    for (name, values) in &case.parameters {
        writeln!(out, "parameter     {name} = {}", joined(values.iter().map(ToString::to_string).collect()))?;
    }
    if let Some(combination) = suites.combination_of(id) {
        writeln!(out, "variants      {combination}")?;
    }
    writeln!(out, "source        {}\n", case.source)?;
    let first = usize::try_from(case.source.line.saturating_sub(1)).unwrap_or(0);
    for line in suites.source_of(id).unwrap_or_default().lines().skip(first) {
        writeln!(out, "  {line}")?;
        // A brace or `end` at the start of a line closes the case. After `},`, the arguments of the
        // case continue.
        if line.starts_with("end") || line.starts_with('}') && !line.starts_with("},") {
            break;
        }
    }
    Ok(ExitCode::SUCCESS)
}
