//! `weft learn`: infers the state machine of a target's start-up and teardown, and compares two
//! targets.

use std::io::{IsTerminal, Write as _};
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::time::{Duration, Instant};

use tokio::sync::watch;
use weft_dissector::output::text::counted;
use weft_suites::learn::{
    Difference, Input, LearnError, LearnOptions, LearnProgress, Learned, Learning, Machine, difference_cases, inputs,
};
use weft_suites::model::Role;
use weft_suites::targets::Target;

use crate::exit::{BadInput, CommandFailure, UNEXPECTED, UNREACHABLE, note, print_line, reject, write_file};
use crate::results::make_folder;
use crate::runtime;
use crate::signals;
use crate::target::resolve;

/// The command line.
#[derive(clap::Args)]
#[command(
    after_help = "weft opens one connection after another. On each connection, it sends a sequence of inputs, such as\n\
    an MPA Request, an FPDU with a wrong CRC, or a FIN, and observes the outputs of the target. From\n\
    these outputs, weft infers a state machine, and tests it with random sequences. A state that none\n\
    of the sequences reaches remains unknown. `weft learn` judges nothing: the state machine only\n\
    describes the target. To judge the target, use `weft test`.\n\n\
    Inputs that change nothing and cause no output are not printed. Without --diff, weft writes\n\
    NAME.machine.json and NAME.dot to the folder. NAME is the name of the target.\n\
    Graphviz draws the second file: dot -Tsvg NAME.dot > NAME.svg\n\n\
    With --diff, A and B are targets or files NAME.machine.json. weft prints sequences of inputs on\n\
    which their outputs differ, the shortest first, and writes the first sequence as two Lua cases:\n\
    weft test TARGET --suites DIR learn/difference/like-a passes if the target behaves like A, and\n\
    learn/difference/like-b passes if it behaves like B. Otherwise the case is inconclusive.\n\n\
    Exit codes:\n  \
    0  the target was learned; with --diff: A and B do not differ\n  \
    1  with --diff: A and B differ\n  \
    2  wrong command line or target file\n  \
    3  the target was not learned: it does not always answer in the same way, it answers too slowly,\n     \
    it has too many states, or you interrupted weft\n\n\
    Examples:\n  \
    weft learn builtin                                learn weft's own responder\n  \
    weft learn nic.toml --out before                  learn a NIC before an update of its firmware\n  \
    weft learn --diff before/nic.machine.json nic.toml   learn it again, and compare\n  \
    weft learn --list                                 list the inputs"
)]
pub(crate) struct Arguments {
    /// Learn this target: a TOML file, builtin, or builtin-initiator
    #[arg(value_name = "TARGET", required_unless_present_any = ["diff", "list"])]
    target: Option<String>,
    /// Compare two targets, or two learned state machines
    #[arg(long, num_args = 2, value_names = ["A", "B"], conflicts_with = "target")]
    diff: Option<Vec<String>>,
    /// List the inputs, with the targets that can get them
    #[arg(long, conflicts_with_all = ["target", "diff"])]
    list: bool,
    /// Write the results to this folder
    #[arg(long, short, value_name = "DIR", default_value = "weft-learn")]
    out: PathBuf,
    /// Violate a rule on purpose (builtin targets only); repeatable
    ///
    /// `weft deviations` lists the names. With --diff, weft learns the builtin target B with the
    /// deviations, and the builtin target A without them.
    #[arg(long, value_name = "NAME")]
    deviate: Vec<String>,
    /// Use only these inputs; separate their names with commas
    #[arg(long, value_name = "INPUTS", value_delimiter = ',')]
    inputs: Vec<String>,
    /// Do not use these inputs; separate their names with commas
    #[arg(long, value_name = "INPUTS", value_delimiter = ',')]
    without: Vec<String>,
    /// Send the next input when the target has been silent for this number of milliseconds
    ///
    /// If the target answers later, weft counts the answer as the output of the next input. Then
    /// the target seems to answer in different ways, and cannot be learned.
    #[arg(long, value_name = "MS", default_value_t = 100, value_parser = clap::value_parser!(u64).range(1..=60_000))]
    silence: u64,
    /// Test the state machine with this number of random sequences
    ///
    /// The default is 200, or 1000 for a builtin target with a virtual clock.
    #[arg(long, value_name = "COUNT")]
    tests: Option<u32>,
    /// Stop if the target has more states than this
    #[arg(long, value_name = "COUNT", default_value_t = 60, value_parser = clap::value_parser!(u32).range(1..=1000))]
    states: u32,
    /// Draw the random sequences from this seed
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Print one JSON document: the state machine, or the list of differences
    #[arg(long)]
    json: bool,
}

/// Default number of random sequences.
const TESTS: u32 = 200;
/// Default number of random sequences for a target with a virtual clock.
const VIRTUAL_TESTS: u32 = 1000;
/// Maximum number of times that the differences are confirmed.
const CONFIRMATIONS: usize = 10;

/// Learns the target, or compares two targets.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if arguments.list {
        list();
        return Ok(ExitCode::SUCCESS);
    }
    make_folder(&arguments.out)?;
    runtime::block_on(async {
        let (stop, cancel) = watch::channel(false);
        let stopped = signals::interrupted();
        tokio::spawn(async move {
            stopped.await;
            // The receiver is gone only if learning has ended.
            let _ = stop.send(true);
        });
        match (&arguments.diff, &arguments.target) {
            (Some(names), _) => compare(arguments, names, cancel).await,
            (None, Some(name)) => learn_one(arguments, name, cancel).await,
            (None, None) => reject!("missing target"),
        }
    })
}

fn list() {
    let responder: Vec<&Input> = inputs(Role::Responder).collect();
    let initiator: Vec<&Input> = inputs(Role::Initiator).collect();
    for input in &responder {
        let both = if initiator.contains(input) { "any" } else { "responder" };
        print_line!("{:<28}{both:<11}{}", input.name, input.help);
    }
    for input in initiator.iter().filter(|input| !responder.contains(input)) {
        print_line!("{:<28}{:<11}{}", input.name, "initiator", input.help);
    }
}

/// Opens a target for learning.
async fn open(
    arguments: &Arguments,
    name: &str,
    deviations: &[String],
    cancel: watch::Receiver<bool>,
) -> anyhow::Result<Learning> {
    if is_machine(name) {
        reject!("{name} is a state machine, not a target; to compare state machines, use --diff");
    }
    let target = resolve(name, deviations, false)?;
    // A folder whose name begins with a dot is not read as suites.
    let scratch = arguments.out.join(".weft-sequence");
    make_folder(&scratch)?;
    let tests = arguments.tests.unwrap_or(if target.has_virtual_clock() { VIRTUAL_TESTS } else { TESTS });
    let options = LearnOptions {
        inputs: selected(arguments, &target)?,
        silence: Duration::from_millis(arguments.silence),
        tests,
        max_states: arguments.states as usize,
        seed: arguments.seed,
        scratch,
        cancel: Some(cancel),
        target,
    };
    Learning::open(options).await.map_err(failure)
}

/// Returns whether an argument names a file with a state machine.
fn is_machine(name: &str) -> bool {
    Path::new(name).extension().is_some_and(|extension| extension == "json")
}

/// Writes the state machine and its drawing. Returns the paths.
fn write(arguments: &Arguments, machine: &Machine) -> anyhow::Result<[PathBuf; 2]> {
    let of = |end: &str| arguments.out.join(format!("{}.{end}", machine.target));
    let files = [of("machine.json"), of("dot")];
    write_file(&files[0], machine.to_json())?;
    write_file(&files[1], machine.to_dot())?;
    Ok(files)
}

/// Learns a target, and writes and prints its state machine.
async fn learn_one(arguments: &Arguments, name: &str, cancel: watch::Receiver<bool>) -> anyhow::Result<ExitCode> {
    let mut learning = open(arguments, name, &arguments.deviate, cancel).await?;
    let mut line = ProgressLine::new();
    let learned = learning.learn(&mut |progress| line.show(progress)).await;
    line.clear();
    learning.close();
    let Learned { machine, seed, progress } = learned.map_err(failure)?;
    let [file, drawing] = write(arguments, &machine)?;
    if arguments.json {
        print_line!("{}", machine.to_json().trim_end());
        return Ok(ExitCode::SUCCESS);
    }
    print(&machine);
    print_line!("learned {} with seed {seed}: {}", machine.target, counts(&progress));
    print_line!("state machine: {}, {}", file.display(), drawing.display());
    Ok(ExitCode::SUCCESS)
}

/// Shows the counts: in place on a terminal, else as a line from time to time.
struct ProgressLine {
    is_terminal: bool,
    shown: Instant,
}

impl ProgressLine {
    /// Interval between two lines if standard error is no terminal.
    const INTERVAL: Duration = Duration::from_secs(30);

    fn new() -> Self {
        ProgressLine { is_terminal: std::io::stderr().is_terminal(), shown: Instant::now() }
    }

    fn show(&mut self, progress: &LearnProgress) {
        if self.is_terminal {
            // Ignore an error: if the terminal is closed, nobody can read the progress.
            let _ = write!(std::io::stderr(), "\r\x1b[K{}", counts(progress));
        } else if self.shown.elapsed() >= Self::INTERVAL {
            self.shown = Instant::now();
            note(&counts(progress));
        }
    }

    fn clear(&self) {
        if self.is_terminal {
            let _ = write!(std::io::stderr(), "\r\x1b[K");
        }
    }
}

/// Makes the error of a target that was not learned.
fn failure(error: LearnError) -> anyhow::Error {
    match error {
        LearnError::Run(error) => error.into(),
        LearnError::Service(..) => BadInput(error.to_string()).into(),
        why => CommandFailure { code: UNREACHABLE, text: why.to_string() }.into(),
    }
}

/// Returns the inputs that the options select for a target. An input that exists only for the other
/// role is left out without an error, because with --diff the other target can have that role.
fn selected(arguments: &Arguments, target: &Target) -> anyhow::Result<Vec<&'static Input>> {
    let all: Vec<&'static Input> = inputs(target.info().role).collect();
    let exists = |name: &String| {
        let mut known = inputs(Role::Responder).chain(inputs(Role::Initiator));
        known.any(|input| input.name == name.as_str())
    };
    if let Some(name) = arguments.inputs.iter().chain(&arguments.without).find(|name| !exists(name)) {
        reject!("{name} is not an input; `weft learn --list` lists the inputs");
    }
    // An input that takes minutes is used only with a virtual clock, or if it is named.
    let is_named = |input: &Input| arguments.inputs.iter().any(|name| name == input.name);
    let is_used = |input: &&'static Input| {
        let is_default = arguments.inputs.is_empty() && (!input.slow || target.has_virtual_clock());
        (is_default || is_named(input)) && !arguments.without.iter().any(|name| name == input.name)
    };
    let used: Vec<&'static Input> = all.iter().copied().filter(|input| is_used(input)).collect();
    if used.is_empty() {
        reject!("the options select no input for this target; `weft learn --list` lists the inputs");
    }
    Ok(used)
}

/// Learns or reads both machines, and prints the differences.
async fn compare(arguments: &Arguments, names: &[String], cancel: watch::Receiver<bool>) -> anyhow::Result<ExitCode> {
    let mut sides = Vec::new();
    for (index, name) in names.iter().enumerate() {
        if is_machine(name) {
            let machine = Machine::from_file(Path::new(name)).map_err(|error| BadInput(error.to_string()))?;
            sides.push((machine, None));
            continue;
        }
        let deviations = if index == 1 { arguments.deviate.as_slice() } else { &[] };
        let mut learning = open(arguments, name, deviations, cancel.clone()).await?;
        let mut line = ProgressLine::new();
        let learned = learning.learn(&mut |progress| line.show(progress)).await;
        line.clear();
        sides.push((learned.map_err(failure)?.machine, Some(learning)));
    }
    let [(a, of_a), (b, of_b)] = &mut sides[..] else { reject!("--diff needs two targets") };
    confirm(a, of_a.as_mut(), b, of_b.as_mut()).await?;
    for (_, learning) in &mut sides {
        // The machines are not written, because one of them may be the file that was compared.
        if let Some(learning) = learning.take() {
            learning.close();
        }
    }
    let mut machines: Vec<Machine> = sides.into_iter().map(|(machine, _)| machine).collect();
    let is_file = names.iter().any(|name| is_machine(name));
    let [a, b] = &mut machines[..] else { reject!("--diff needs two targets") };
    // Two versions of a target have the same name.
    if a.target == b.target {
        a.target.push_str(" (A)");
        b.target.push_str(" (B)");
    }
    let differences = a.differences(b).map_err(|error| BadInput(error.to_string()))?;
    if arguments.json {
        print_line!("{}", serde_json::to_string_pretty(&differences)?);
    }
    let folder = arguments.out.join("learn");
    let file = folder.join("difference.lua");
    let Some(shortest) = differences.first() else {
        // Remove the case of an earlier comparison, because it would be misleading. Ignore an
        // error, because there may be no such case.
        let _ = std::fs::remove_file(&file);
        if !arguments.json {
            print_line!(
                "{} and {} do not differ in any sequence that was played: {}",
                a.target,
                b.target,
                agreement(a, b)
            );
        }
        return Ok(ExitCode::SUCCESS);
    };
    make_folder(&folder)?;
    write_file(&file, difference_cases(a, b, shortest, Duration::from_millis(arguments.silence)))?;
    if !arguments.json {
        print_differences([a, b], &differences);
        if is_file {
            print_line!("\nFor a state machine from a file, weft shows the file's outputs and plays no sequences.");
        }
        let (file, out) = (file.display(), arguments.out.display());
        print_line!("\nthe cases of the first sequence are in {file}; weft test TARGET --suites {out} runs them");
    }
    Ok(ExitCode::from(UNEXPECTED))
}

/// Plays the sequences of all differences again with those sides that are targets and not files. If
/// an output contradicts a machine, continues to learn this machine. Repeats this until the targets
/// really differ in all of these sequences.
async fn confirm(
    a: &mut Machine,
    mut of_a: Option<&mut Learning>,
    b: &mut Machine,
    mut of_b: Option<&mut Learning>,
) -> anyhow::Result<()> {
    let mut line = ProgressLine::new();
    for _ in 0..CONFIRMATIONS {
        let differences = a.differences(b).map_err(|error| BadInput(error.to_string()))?;
        let before = (a.clone(), b.clone());
        for (machine, learning) in [(&mut *a, of_a.as_deref_mut()), (&mut *b, of_b.as_deref_mut())] {
            if let Some(learning) = learning {
                let sequences = differences.iter().map(|difference| difference.inputs.as_slice());
                let learned = learning.verify(sequences, &mut |progress| line.show(progress)).await;
                *machine = learned.map_err(failure)?.machine;
            }
        }
        if before == (a.clone(), b.clone()) {
            break;
        }
    }
    line.clear();
    Ok(())
}

/// Maximum number of differences that are printed. --json prints all.
const MAX_PRINTED: usize = 10;

fn print_differences(machines: [&Machine; 2], differences: &[Difference]) {
    let [a, b] = machines;
    let width = a.target.len().max(b.target.len());
    print_line!("{} and {} differ", a.target, b.target);
    for difference in differences.iter().take(MAX_PRINTED) {
        match difference.inputs.is_empty() {
            true => print_line!("\nbefore the first input"),
            false => print_line!("\nafter {}", difference.inputs.join(", ")),
        }
        for (machine, output) in machines.iter().zip(&difference.outputs) {
            print_line!("  {:<width$}  {output}", machine.target);
        }
    }
    if let Some(more @ 1..) = differences.len().checked_sub(MAX_PRINTED) {
        print_line!("\n{} not shown; --json prints all", counted(more as u64, "more difference"));
    }
}

/// Returns a text about what two equal machines have in common: the number of states, the common
/// inputs, and the inputs that only one of them has.
fn agreement(a: &Machine, b: &Machine) -> String {
    let common = a.inputs.iter().filter(|input| b.inputs.contains(input)).count();
    let only: Vec<&String> = a
        .inputs
        .iter()
        .filter(|it| !b.inputs.contains(it))
        .chain(b.inputs.iter().filter(|it| !a.inputs.contains(it)))
        .collect();
    let mut text =
        format!("{} with {} in common", counted(a.states.len() as u64, "state"), counted(common as u64, "input"));
    if !only.is_empty() {
        let names: Vec<String> = only.iter().map(|name| (*name).clone()).collect();
        text.push_str(&format!("; inputs of only one target: {}", names.join(", ")));
    }
    text
}

/// Prints the transitions of each state. Inputs without effect are left out.
fn print(machine: &Machine) {
    print_line!(
        "{}: {} for {}",
        machine.target,
        counted(machine.states.len() as u64, "state"),
        counted(machine.inputs.len() as u64, "input")
    );
    if machine.greeting != "-" {
        print_line!("  when the connection opens, the target sends: {}", machine.greeting);
    }
    let transitions = machine.transitions();
    for (number, state) in machine.states.iter().enumerate() {
        let access = if state.access.is_empty() {
            "at the beginning".to_owned()
        } else {
            format!("after {}", state.access.join(", "))
        };
        let end = if machine.is_end(number) { ": the connection has ended" } else { "" };
        print_line!("\nstate {number}, {access}{end}");
        for (_, to, output, inputs) in transitions.iter().filter(|(from, ..)| *from == number) {
            print_line!("  {output}, then state {to}");
            print_line!("      {}", inputs.join(", "));
        }
    }
    print_line!("");
}

fn counts(progress: &LearnProgress) -> String {
    let repeated = match progress.repeated {
        0 => String::new(),
        repeated => format!(" (including {}, because outputs contradicted earlier ones)", counted(repeated, "repeat")),
    };
    format!(
        "{}, {} played{repeated}, {} in agreement",
        counted(progress.states as u64, "state"),
        counted(progress.played, "sequence"),
        counted(u64::from(progress.tested), "random sequence")
    )
}
