//! `weft test --prove`: the kill matrix.

use std::path::Path;
use std::process::ExitCode;

use weft_suites::Filter;
use weft_suites::coverage::Proofs;
use weft_suites::model::{CaseResult, Role};
use weft_suites::prove::{Cell, prove};
use weft_suites::script::Suites;

use crate::exit::{BadInput, say, unwritable};

/// Prints the matrix; 1 when a case does not pass on the correct twin, or a deviation or a case that could be proven is not.
pub(super) async fn run(suites: &Suites, filter: &Filter, jobs: usize, out: &Path) -> anyhow::Result<ExitCode> {
    let out = out.join("prove");
    let matrix = prove(suites, filter, jobs, &out).await?;
    if matrix.cases.is_empty() {
        return Err(BadInput("no case is selected".to_owned()).into());
    }
    let proofs = out.join("proofs.csv");
    std::fs::write(&proofs, Proofs::from_iter(matrix.proven.iter().cloned()).to_csv())
        .map_err(|error| BadInput(format!("{}: {}", proofs.display(), unwritable(&proofs, &error))))?;
    for row in matrix.rows.iter().filter(|row| !row.cells.is_empty()) {
        let breaks: Vec<&str> = row.deviation.breaks.iter().map(|requirement| requirement.as_str()).collect();
        say!("{}  {}", row.deviation.name, breaks.join(" "));
        for (case, cell) in &row.cells {
            let word = match cell {
                Cell::Caught => "caught",
                Cell::OnTheWay => "also observed",
                Cell::Missed => "-",
            };
            say!("    {word:<13} {case}");
        }
    }
    let without_case: Vec<&str> = matrix.without_case().map(|row| row.deviation.name).collect();
    // Of a few cases, nearly all deviations are none of their business.
    if without_case.len() < matrix.rows.len() / 2 {
        say!("\ndeviations that no case is about:\n    {}", without_case.join("\n    "));
        say!("\ndeviations that are not judged:");
        for (deviation, why) in &matrix.beyond {
            say!("    {}: {why}", deviation.name);
        }
    }
    for (role, result) in &matrix.broken {
        let CaseResult { key, verdict, explanation, .. } = result;
        say!("\nnot passed by the correct {role}: {key}: {verdict}: {explanation}");
    }
    let uncaught: Vec<String> = matrix.uncaught().map(|row| row.deviation.name.to_owned()).collect();
    let unproven: Vec<String> = matrix.unproven().map(ToString::to_string).collect();
    for (what, names) in [("deviations not caught", &uncaught), ("cases that no deviation makes fail", &unproven)] {
        if !names.is_empty() {
            say!("\n{what}:\n    {}", names.join("\n    "));
        }
    }
    let of_role = |role| matrix.cases.iter().filter(|case| case.role == role).count();
    say!(
        "\ncases {} ({} of responders, {} of initiators), of which {} do not apply to the twin; deviations {}, of which no case is about {}; uncaught {}, unproven {}",
        matrix.cases.len(),
        of_role(Role::Responder),
        of_role(Role::Initiator),
        matrix.skipped.len(),
        matrix.rows.len(),
        without_case.len(),
        uncaught.len(),
        unproven.len()
    );
    say!("{} proofs for `weft coverage --from {}`", matrix.proven.len(), out.display());
    let whole = matrix.broken.is_empty() && uncaught.is_empty() && unproven.is_empty();
    Ok(ExitCode::from(u8::from(!whole)))
}
