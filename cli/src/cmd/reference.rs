//! `weft reference`: writes Markdown pages of all requirements, cases, deviations and commands.
//!
//! `docs/build` adds these pages to the user's guide. The guide therefore always matches the
//! binary. The other pages of the guide are in `docs`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Write as _};
use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::CommandFactory;
use weft_core::coverage::CoverageKind;
use weft_core::requirement::{self, Catalogue, Class, Observe};
use weft_core::{Requirement, RequirementId};
use weft_peer::hostile;
use weft_suites::coverage::Proofs;
use weft_suites::model::CaseInfo;
use weft_suites::script::Suites;

use crate::exit::{BadInput, print_line, unwritable};

/// The command line.
#[derive(clap::Args)]
#[command(after_help = "Examples:\n  \
    weft reference pages     write the pages to the folder pages, and a list to pages/SUMMARY.md\n  \
    make guide               build the user's guide as HTML, with these pages")]
pub(crate) struct Arguments {
    /// Write the pages to this folder; weft creates it if necessary
    #[arg(value_name = "DIR")]
    folder: PathBuf,
}

/// Writes the pages.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let folder = &arguments.folder;
    let refused = |error: io::Error| BadInput(format!("{} {}", folder.display(), unwritable(folder, &error)));
    fs::create_dir_all(folder).map_err(refused)?;
    let suites = Suites::embedded().map_err(|error| BadInput(error.to_string()))?;
    let judged = Proofs::built_in().map_err(|error| BadInput(error.to_string()))?.ids(CoverageKind::Rule);
    let about = About::new(&suites, judged);

    let mut pages = Vec::new();
    for catalogue in catalogues() {
        pages.push((
            format!("Requirements: {catalogue}"),
            format!("requirements-{catalogue}.md"),
            about.catalogue(catalogue)?,
        ));
    }
    for protocol in suites.cases().map(protocol_of).collect::<BTreeSet<_>>() {
        pages.push((format!("Cases: {protocol}"), format!("cases-{protocol}.md"), cases(&suites, protocol)?));
    }
    pages.push(("Deviations".to_owned(), "deviations.md".to_owned(), deviations()?));
    pages.push(("Commands".to_owned(), "commands.md".to_owned(), commands()?));

    let mut summary = String::new();
    for (title, file, text) in &pages {
        fs::write(folder.join(file), text).map_err(refused)?;
        writeln!(summary, "- [{title}]({file})")?;
    }
    fs::write(folder.join("SUMMARY.md"), summary).map_err(refused)?;
    print_line!("{} pages and SUMMARY.md written to {}", pages.len(), folder.display());
    Ok(ExitCode::SUCCESS)
}

/// Returns the catalogues in their order. A catalogue has the requirements of one specification.
fn catalogues() -> Vec<Catalogue> {
    let mut all: Vec<Catalogue> = requirement::all().map(|(_, row)| row.catalogue).collect();
    all.dedup();
    all
}

/// Returns the protocol of a case: `mpa` for `mpa/7.1.1-key/wrong-octet`.
fn protocol_of(case: &CaseInfo) -> &str {
    case.id.split('/').next().unwrap_or_default()
}

/// The rules, cases and deviations of each requirement.
struct About<'a> {
    /// The requirements whose violations a lint rule reports, according to a proof.
    judged: BTreeSet<RequirementId>,
    cases: BTreeMap<RequirementId, Vec<&'a CaseInfo>>,
    deviations: BTreeMap<RequirementId, Vec<&'static str>>,
}

impl<'a> About<'a> {
    fn new(suites: &'a Suites, judged: BTreeSet<RequirementId>) -> Self {
        let mut about = About { judged, cases: BTreeMap::new(), deviations: BTreeMap::new() };
        for case in suites.cases() {
            for id in &case.requirements {
                about.cases.entry(*id).or_default().push(case);
            }
        }
        for deviation in hostile::all() {
            for id in deviation.breaks {
                about.deviations.entry(*id).or_default().push(deviation.name);
            }
        }
        about
    }

    /// Makes the page of a catalogue: its requirements in order, with a heading for each section.
    fn catalogue(&self, catalogue: Catalogue) -> Result<String, fmt::Error> {
        let mut page = format!("# Requirements: {catalogue}\n\n{}.\n", catalogue.specification());
        page += "Each requirement is one normative statement in one sentence. `weft dissect` and `weft lint` \
                 report violations in captures. `weft test` runs the cases. `weft test builtin --deviate NAME` \
                 runs the cases against an endpoint that violates a requirement on purpose (a deviation).\n";
        let mut section = "";
        for (id, row) in requirement::all().filter(|(_, row)| row.catalogue == catalogue) {
            if section != row.section {
                section = row.section;
                write!(page, "\n## {}\n", row.citation())?;
            }
            self.row(&mut page, id, row)?;
        }
        Ok(page)
    }

    /// Writes the entry of a requirement.
    fn row(&self, page: &mut String, id: RequirementId, row: &Requirement) -> fmt::Result {
        write!(
            page,
            "\n<a id=\"{id}\"></a>\n**{id}** {} ({}): {}\n",
            row.level,
            escaped(row.role),
            escaped(row.summary)
        )?;
        if let Some(sentence) = row.sentence {
            write!(page, "\n> {}\n\n", escaped(sentence))?;
        }
        let mut lines = vec![format!("check: {}", escaped(row.check))];
        if self.judged.contains(&id) {
            lines.push("`weft lint` and `weft dissect` report violations".to_owned());
        }
        if let Some(cases) = self.cases.get(&id) {
            let links: Vec<String> =
                cases.iter().map(|case| format!("[{}](cases-{}.md#{})", case.id, protocol_of(case), case.id)).collect();
            lines.push(format!("cases: {}", links.join(", ")));
        }
        if let Some(names) = self.deviations.get(&id) {
            let links: Vec<String> = names.iter().map(|name| format!("[{name}](deviations.md#{name})")).collect();
            lines.push(format!("deviations: {}", links.join(", ")));
        }
        let nowhere = match row.observe {
            Observe::Local => Some("only visible inside an implementation"),
            Observe::Doc => Some("a matter of documentation"),
            _ => None,
        };
        let class = row.classified.filter(|classified| classified.class != Class::Judgeable);
        if let Some(reason) = class.map(|classified| classified.reason).or(nowhere) {
            lines.push(format!("not judged: {}", escaped(reason)));
        }
        lines.iter().try_for_each(|line| writeln!(page, "- {line}"))
    }
}

/// Makes the page of a protocol's cases, with a heading for each script.
fn cases(suites: &Suites, protocol: &str) -> Result<String, fmt::Error> {
    let mut page = format!("# Cases: {protocol}\n\n`weft suite show CASE` prints a case with its script.\n");
    let mut script = "";
    for case in suites.cases().filter(|case| protocol_of(case) == protocol) {
        if script != case.source.file {
            script = &case.source.file;
            write!(page, "\n## {script}\n")?;
        }
        write!(page, "\n<a id=\"{0}\"></a>\n**{0}**: {1}\n", case.id, escaped(&case.title))?;
        let requirements: Vec<String> = case
            .requirements
            .iter()
            .map(|id| format!("[{id}](requirements-{}.md#{id}) {}", id.row().catalogue, id.row().level))
            .collect();
        writeln!(page, "- judges {}", requirements.join(", "))?;
        let roles: Vec<String> = case.roles.iter().map(ToString::to_string).collect();
        writeln!(page, "- roles: {}", roles.join(", "))?;
        let needs: Vec<String> = case.capabilities.iter().map(ToString::to_string).collect();
        if !needs.is_empty() {
            writeln!(page, "- needs: {}", needs.join(", "))?;
        }
        for (name, values) in &case.parameters {
            let values: Vec<String> = values.iter().map(|value| escaped(&value.to_string())).collect();
            writeln!(page, "- {}: {}", escaped(name), values.join(", "))?;
        }
    }
    Ok(page)
}

/// Makes the page of the deviations.
fn deviations() -> Result<String, fmt::Error> {
    let mut page = "# Deviations\n\nWith `--deviate NAME`, weft's own endpoint violates the requirements in the \
                    second column on purpose.\n\n"
        .to_owned();
    page += "| name | violates | what it does |\n| --- | --- | --- |\n";
    for deviation in hostile::all() {
        let breaks: Vec<String> =
            deviation.breaks.iter().map(|id| format!("[{id}](requirements-{}.md#{id})", id.row().catalogue)).collect();
        let description = escaped(deviation.description);
        writeln!(page, "| <a id=\"{0}\"></a>`{0}` | {1} | {description} |", deviation.name, breaks.join(" "))?;
    }
    Ok(page)
}

/// Makes the page of the commands: the output of `--help` for each command and subcommand.
fn commands() -> Result<String, fmt::Error> {
    let mut page = "# Commands\n\nThe output of `weft COMMAND --help` for each command.\n".to_owned();
    let mut weft = crate::Arguments::command();
    weft.build();
    help(&mut page, &mut weft)?;
    Ok(page)
}

/// Writes the help of a command, and of its subcommands.
fn help(page: &mut String, command: &mut clap::Command) -> fmt::Result {
    let name = command.get_display_name().unwrap_or_else(|| command.get_name()).replace('-', " ");
    write!(page, "\n## {name}\n\n```text\n{}\n```\n", command.render_long_help().to_string().trim_end())?;
    let below = command.get_subcommands_mut().filter(|below| below.get_name() != "help" && !below.is_hide_set());
    below.into_iter().try_for_each(|below| help(page, below))
}

/// Escapes text of a catalogue for Markdown and HTML.
fn escaped(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        if matches!(c, '\\' | '<' | '>' | '*' | '_' | '|' | '[' | ']' | '`' | '&' | '~' | '#' | '$') {
            out.push('\\');
        }
        out.push(c);
    }
    out
}
