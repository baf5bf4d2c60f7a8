//! `weft target add`: probes a target, writes its target file, and prints what a run will test.

use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;

use weft_dissector::output::text::counted;
use weft_suites::model::Event;
use weft_suites::targets::{DiscoverError, Facts, Target, discover, new_file};
use weft_suites::{Filter, Plan};

use crate::exit::{self, BadInput, print_line, reject, write_file};
use crate::runtime;
use crate::suites::load;

/// The command line.
#[derive(clap::Args)]
pub(super) struct Arguments {
    /// Probe the target at this address: a host name or an IP address, and a TCP port
    #[arg(value_name = "HOST:PORT")]
    address: String,
    /// Use this name in reports, instead of HOST-PORT
    ///
    /// A name consists of letters, digits, '.', '_' and '-', and does not begin with '.'.
    #[arg(long, value_name = "NAME")]
    name: Option<String>,
    /// Write the target file to this path, instead of NAME.toml
    #[arg(short, long, value_name = "FILE")]
    output: Option<PathBuf>,
    /// Replace the file if it exists
    #[arg(long)]
    force: bool,
}

/// The seed of the plan from which the variants are counted. Another seed draws other variants of
/// the same cases.
const SEED: u64 = 1;

/// Runs the command.
pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let address = &arguments.address;
    let bare = format!("name = \"target\"\nkind = \"tcp\"\naddress = {address:?}\n");
    let bare = Target::from_toml("HOST:PORT", &bare).map_err(|error| BadInput(error.to_string()))?;
    let name = arguments.name.clone().unwrap_or_else(|| name_of(address));
    if !Target::is_name(&name) {
        reject!("--name {name:?}: expected letters, digits, '.', '_' and '-', and no '.' at the beginning");
    }
    let path = arguments.output.clone().unwrap_or_else(|| PathBuf::from(format!("{name}.toml")));
    if path.exists() && !arguments.force {
        reject!("{}: the file exists; to replace it, add --force", path.display());
    }
    exit::note(&format!("probing {address}, which takes at most a minute"));
    let facts = runtime::block_on(async {
        discover(&bare, Arc::new(|_: &Event| {})).await.map_err(|error| exit::unreachable(&advice(&error)))
    })?;
    let text = new_file(&name, address, &facts);
    let target = Target::from_toml(&path.display().to_string(), &text).map_err(|error| BadInput(error.to_string()))?;
    write_file(&path, text)?;
    print_facts(address, &facts);
    print_line!("wrote {}", path.display());
    print_forecast(&target)?;
    print_next(&path, &name, &facts);
    Ok(ExitCode::SUCCESS)
}

/// Returns the default name of a target: its address with `-` in place of other characters.
fn name_of(address: &str) -> String {
    let is_allowed = |c: char| c.is_ascii_alphanumeric() || matches!(c, '.' | '_');
    let words: Vec<&str> = address.split(|c: char| !is_allowed(c)).filter(|word| !word.is_empty()).collect();
    words.join("-").trim_start_matches('.').to_owned()
}

/// Returns the error with what to do about it.
fn advice(error: &DiscoverError) -> String {
    let remedy = match error {
        DiscoverError::Open(_) => "correct the name, or use an IP address",
        DiscoverError::Down(_) => "start the target or correct the address, then run the command again",
        DiscoverError::Silent(_) => {
            "check that this is the port of an RDMA program; for a target that connects to weft, and for a port \
             mapper, write the file as the page suites/suites/TARGETS.md shows"
        }
        DiscoverError::Rejects(_) => {
            "if the target needs private data, write the file as the page suites/suites/TARGETS.md shows, and set \
             private_data in [startup]"
        }
    };
    format!("{error}; {remedy}")
}

/// Prints what the probes found out, and the answers of the target.
fn print_facts(address: &str, facts: &Facts) {
    print_line!("{address}: {facts}");
    for probe in &facts.probes {
        print_line!("    {:<26} {}", probe.what, probe.text);
    }
}

/// Prints what a run of the default tier tests on the target, and what it does not test.
fn print_forecast(target: &Target) -> anyhow::Result<()> {
    let plan = Plan::of(&load(None)?, &Filter::everything(), SEED);
    let forecast = plan.forecast(target);
    let (variants, cases) = (counted(forecast.variants, "variant"), counted(forecast.cases, "case"));
    print_line!("\na run will test {variants} of {cases}, and will not test:");
    for (why, count) in &forecast.not_applicable {
        print_line!("    {:<14} {why}", counted(*count, "variant"));
    }
    if forecast.for_others > 0 {
        print_line!("    {:<14} They are for other kinds of targets.", counted(forecast.for_others, "variant"));
    }
    Ok(())
}

/// Prints what to do next.
fn print_next(path: &Path, name: &str, facts: &Facts) {
    print_line!("");
    if !facts.has_known_service() {
        print_line!("question: which program runs on the target? See `service` in {}", path.display());
    }
    print_line!("next: weft test {} --out {name} --tier smoke", path.display());
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_gives_a_name() {
        for (address, name) in [
            ("192.0.2.7:7174", "192.0.2.7-7174"),
            ("nic-17.example:7174", "nic-17.example-7174"),
            ("[2001:db8::1]:7174", "2001-db8-1-7174"),
            ("[fe80::1%eth0]:7174", "fe80-1-eth0-7174"),
        ] {
            assert_eq!(name_of(address), name);
            assert!(Target::is_name(name));
        }
    }

    #[test]
    fn each_error_has_advice() {
        let down = advice(&DiscoverError::Down("target is down: 192.0.2.7:7174 refused the connection".to_owned()));
        assert!(down.starts_with("target is down: 192.0.2.7:7174 refused the connection; start the target"), "{down}");
        let silent = advice(&DiscoverError::Silent("TCP 192.0.2.7:7174".to_owned()));
        assert!(silent.contains("answers neither") && silent.contains("TARGETS.md"), "{silent}");
    }
}
