//! A learned machine: its states and transitions, its forms (JSON, and DOT for Graphviz), and its
//! difference from another machine.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};

use super::Input;
use super::learner::{ENDED, LearnedState, SILENT};
use crate::targets::Target;

/// The value of [`Machine::format`].
const FORMAT: &str = "weft state machine 1";

/// Maximum size of a file with a machine, in bytes.
const MAX_FILE: u64 = 16 << 20;
/// Maximum number of states of a machine in a file.
const MAX_STATES: usize = 1000;
/// Maximum number of inputs of a machine in a file. The inputs of two machines are compared in
/// pairs.
const MAX_INPUTS: usize = 1000;
/// Maximum number of differences.
const MAX_DIFFERENCES: usize = 1000;
/// Maximum number of inputs of a difference.
const MAX_LENGTH: usize = 200;

/// The state machine of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Machine {
    /// The format of the file.
    format: String,
    /// Name of the target.
    pub target: String,
    /// The sequences needed the capability `revision-2`: a builtin initiator then sends an enhanced
    /// Request.
    pub(super) is_enhanced: bool,
    /// What the target sends when the connection opens, before any input.
    pub greeting: String,
    /// The inputs, by name.
    pub inputs: Vec<String>,
    /// The states. The connection begins in the first state.
    pub states: Vec<State>,
}

/// A state of a target.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct State {
    /// Inputs that lead to the state from the beginning of a connection.
    pub access: Vec<String>,
    /// A transition for each input, in the order of [`Machine::inputs`].
    pub transitions: Vec<Transition>,
}

/// What an input causes in a state.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Transition {
    /// What the target sends, until it is silent.
    pub output: String,
    /// Number of the next state, from 0.
    pub to: usize,
}

/// A sequence of inputs on which two machines differ.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub struct Difference {
    /// The inputs. If it is empty, the machines differ before the first input.
    pub inputs: Vec<String>,
    /// The last output of the first machine, and of the second machine.
    pub outputs: [String; 2],
}

/// Why a machine cannot be read or compared.
#[derive(Debug, thiserror::Error)]
pub enum MachineError {
    /// The file cannot be read.
    #[error("cannot read {}: {error}", file.display())]
    Read {
        /// The file.
        file: PathBuf,
        /// The reason.
        error: std::io::Error,
    },
    /// The file has no machine.
    #[error("{} is not a state machine that `weft learn` wrote: {why}", file.display())]
    Format {
        /// The file.
        file: PathBuf,
        /// The reason.
        why: String,
    },
    /// The machines have no inputs in common.
    #[error(
        "the machines of {0} and {1} have no inputs in common, so they cannot be compared; learn both with the same inputs"
    )]
    NoInputs(String, String),
}

impl Machine {
    pub(super) fn new(
        target: &Target,
        inputs: &[&'static Input],
        greeting: String,
        is_enhanced: bool,
        states: Vec<LearnedState>,
    ) -> Self {
        let names: Vec<String> = inputs.iter().map(|input| input.name.to_owned()).collect();
        let of = |state: LearnedState| State {
            access: state.access.iter().map(|symbol| names[*symbol].clone()).collect(),
            transitions: state.transitions.into_iter().map(|(output, to)| Transition { output, to }).collect(),
        };
        Machine {
            format: FORMAT.to_owned(),
            target: target.name().to_owned(),
            is_enhanced,
            greeting,
            states: states.into_iter().map(of).collect(),
            inputs: names,
        }
    }

    /// Reads a machine from a JSON file.
    ///
    /// # Errors
    /// The file cannot be read, or has no machine.
    pub fn from_file(file: &Path) -> Result<Self, MachineError> {
        let failed = |error| MachineError::Read { file: file.to_owned(), error };
        let wrong = |why: &str| MachineError::Format { file: file.to_owned(), why: why.to_owned() };
        let facts = fs::metadata(file).map_err(failed)?;
        if !facts.is_file() || facts.len() > MAX_FILE {
            return Err(wrong("it is not a regular file, or it is too large"));
        }
        let text = fs::read_to_string(file).map_err(failed)?;
        let machine: Machine = serde_json::from_str(&text).map_err(|error| wrong(&error.to_string()))?;
        if machine.format != FORMAT {
            return Err(wrong(&format!("its format is {:?}, not {FORMAT:?}", machine.format)));
        }
        // The name and the outputs become parts of a Lua case and of lines on the terminal.
        let outputs = machine.states.iter().flat_map(|state| &state.transitions).map(|transition| &transition.output);
        let is_plain = |text: &String| text.chars().all(|c| c.is_ascii_graphic() || c == ' ');
        if !Target::is_name(&machine.target) || !outputs.chain([&machine.greeting]).all(is_plain) {
            return Err(wrong("the name of the target or an output has characters that weft does not write"));
        }
        let is_input = |name: &String| {
            !name.is_empty() && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-')
        };
        let distinct: BTreeSet<&String> = machine.inputs.iter().collect();
        if distinct.len() != machine.inputs.len() || !machine.inputs.iter().all(is_input) {
            return Err(wrong("an input has a wrong name, or two inputs have the same name"));
        }
        if machine.states.len() > MAX_STATES || machine.inputs.len() > MAX_INPUTS {
            return Err(wrong("it has too many states or inputs"));
        }
        let is_good = |state: &State| {
            state.transitions.len() == machine.inputs.len()
                && state.transitions.iter().all(|transition| transition.to < machine.states.len())
        };
        if machine.states.is_empty() || !machine.states.iter().all(is_good) {
            return Err(wrong("in each state, each input needs a transition to an existing state"));
        }
        Ok(machine)
    }

    /// Returns the machine as JSON.
    #[must_use]
    pub fn to_json(&self) -> String {
        // A machine has only texts and numbers, so this cannot fail.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Returns the sequences of inputs whose last outputs differ, the shortest first. It lists each
    /// difference only once: for the shortest sequence that leads to the same two states. Inputs
    /// that only one of the machines has are left out.
    ///
    /// # Errors
    /// The machines have no inputs in common.
    pub fn differences(&self, other: &Machine) -> Result<Vec<Difference>, MachineError> {
        let mut found = Vec::new();
        if self.greeting != other.greeting {
            let outputs = [self.greeting.clone(), other.greeting.clone()];
            found.push(Difference { inputs: Vec::new(), outputs });
        }
        let mut common: Vec<(usize, &String, usize)> = Vec::new();
        for (index, name) in self.inputs.iter().enumerate() {
            if let Some(there) = other.inputs.iter().position(|it| it == name) {
                common.push((index, name, there));
            }
        }
        if common.is_empty() {
            return Err(MachineError::NoInputs(self.target.clone(), other.target.clone()));
        }
        // For each pair of states, the pair and the input from which it was reached first.
        let mut reached: Reached<'_> = BTreeMap::from([((0, 0), None)]);
        let mut waiting: VecDeque<(Pair, usize)> = VecDeque::from([((0, 0), 0)]);
        while let Some((pair, length)) = waiting.pop_front() {
            let (here, there) = pair;
            // If one connection has ended, all further outputs differ.
            if length == MAX_LENGTH || self.is_end(here) || other.is_end(there) {
                continue;
            }
            for (index, name, other_index) in &common {
                let (a, b) = (&self.states[here].transitions[*index], &other.states[there].transitions[*other_index]);
                if let Entry::Vacant(vacant) = reached.entry((a.to, b.to)) {
                    vacant.insert(Some((pair, name)));
                    waiting.push_back(((a.to, b.to), length + 1));
                }
                if a.output != b.output && found.len() < MAX_DIFFERENCES {
                    let inputs = [path(&reached, pair), vec![(*name).clone()]].concat();
                    found.push(Difference { inputs, outputs: [a.output.clone(), b.output.clone()] });
                }
            }
        }
        Ok(found)
    }

    /// Returns for each pair of states the transitions between them: each output with its inputs.
    /// Inputs that change nothing and cause no output are left out.
    #[must_use]
    pub fn transitions(&self) -> Vec<(usize, usize, String, Vec<&str>)> {
        let mut groups: BTreeMap<(usize, usize, &str), Vec<&str>> = BTreeMap::new();
        for (from, state) in self.states.iter().enumerate() {
            for (input, transition) in self.inputs.iter().zip(&state.transitions) {
                let has_effect = transition.to != from || !matches!(transition.output.as_str(), SILENT | ENDED);
                if has_effect {
                    groups.entry((from, transition.to, &transition.output)).or_default().push(input);
                }
            }
        }
        groups.into_iter().map(|((from, to, output), inputs)| (from, to, output.to_owned(), inputs)).collect()
    }

    /// Returns whether the connection has ended in this state.
    #[must_use]
    pub fn is_end(&self, state: usize) -> bool {
        self.states[state].transitions.iter().all(|transition| transition.output == ENDED)
    }

    /// Returns the machine in the language of Graphviz.
    #[must_use]
    pub fn to_dot(&self) -> String {
        let mut text = format!("digraph {} {{\n  rankdir=LR;\n  node [shape=circle];\n", quoted(&self.target));
        text.push_str("  begin [shape=point];\n");
        // Writing to a text cannot fail.
        let _ = writeln!(text, "  begin -> 0 [label={}];", quoted(&self.greeting));
        for number in (0..self.states.len()).filter(|number| self.is_end(*number)) {
            let _ = writeln!(text, "  {number} [shape=doublecircle];");
        }
        for (from, to, output, inputs) in self.transitions() {
            let label = quoted(&format!("{} / {output}", inputs.join(", ")));
            let _ = writeln!(text, "  {from} -> {to} [label={label}];");
        }
        text.push_str("}\n");
        text
    }
}

/// A state of each of two machines.
type Pair = (usize, usize);
/// For each reached pair, the pair before and the input between the two. `None` for the first pair.
type Reached<'m> = BTreeMap<Pair, Option<(Pair, &'m String)>>;

/// Returns the inputs that lead to a pair of states.
fn path(reached: &Reached<'_>, to: Pair) -> Vec<String> {
    let mut inputs = Vec::new();
    let mut at = to;
    while let Some(Some((before, input))) = reached.get(&at) {
        inputs.push((*input).clone());
        at = *before;
    }
    inputs.reverse();
    inputs
}

/// Returns a text as a string of Graphviz.
fn quoted(text: &str) -> String {
    format!("\"{}\"", text.replace('\\', "\\\\").replace('"', "\\\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A machine with the inputs `a` and `b`. For each state, the outputs and the next states.
    fn machine(target: &str, states: &[[(&str, usize); 2]]) -> Machine {
        let of = |state: &[(&str, usize); 2]| State {
            access: Vec::new(),
            transitions: state
                .iter()
                .map(|(output, to)| Transition { output: (*output).to_owned(), to: *to })
                .collect(),
        };
        Machine {
            format: FORMAT.to_owned(),
            target: target.to_owned(),
            is_enhanced: false,
            greeting: SILENT.to_owned(),
            inputs: vec!["a".to_owned(), "b".to_owned()],
            states: states.iter().map(of).collect(),
        }
    }

    #[test]
    fn the_differences_are_found_in_the_order_of_their_lengths() {
        let one = machine("one", &[[("-", 1), ("x", 0)], [("-", 0), ("y", 1)]]);
        let two = machine("two", &[[("-", 1), ("x", 0)], [("-", 0), ("z", 1)]]);
        let found = |a: &Machine, b: &Machine| -> Vec<(String, String, String)> {
            let text = |Difference { inputs, outputs: [a, b] }| (inputs.join(" "), a, b);
            a.differences(b).unwrap().into_iter().map(text).collect()
        };
        assert_eq!(found(&one, &two), [("a b".into(), "y".into(), "z".into())]);
        assert_eq!(found(&one, &one), []);
        // Another number of states, and the same behaviour.
        let three = machine("three", &[[("-", 1), ("x", 2)], [("-", 2), ("y", 1)], [("-", 1), ("x", 0)]]);
        assert_eq!(found(&one, &three), []);
        // After a difference, the comparison goes on. After an end, it does not.
        let four = machine("four", &[[("w", 1), ("close", 2)], [("-", 0), ("z", 1)], [(ENDED, 2), (ENDED, 2)]]);
        let inputs: Vec<String> = found(&one, &four).into_iter().map(|(inputs, ..)| inputs).collect();
        assert_eq!(inputs, ["a", "b", "a b"]);
        let unlike = Machine { inputs: vec!["c".into(), "d".into()], ..two.clone() };
        assert!(one.differences(&unlike).unwrap_err().to_string().contains("one and two"));
        let greets = Machine { greeting: "Request".into(), ..one.clone() };
        assert_eq!(found(&one, &greets), [(String::new(), "-".into(), "Request".into())]);
    }

    #[test]
    fn a_file_with_a_machine_is_read_again() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("machine.json");
        let one = machine("one", &[[("-", 0), ("x", 0)]]);
        fs::write(&file, one.to_json()).unwrap();
        assert_eq!(Machine::from_file(&file).unwrap(), one);
        for (wrong, why) in [
            ("{}", "missing field"),
            (r#"{"format":"x","target":"t","is_enhanced":false,"greeting":"-","inputs":[],"states":[]}"#, "format"),
            (
                r#"{"format":"weft state machine 1","target":"t","is_enhanced":false,"greeting":"-","inputs":["a"],"states":[{"access":[],"transitions":[{"output":"-","to":7}]}]}"#,
                "existing state",
            ),
            (
                r#"{"format":"weft state machine 1","target":"t","is_enhanced":false,"greeting":"-","inputs":["a"],"states":[]}"#,
                "existing state",
            ),
        ] {
            fs::write(&file, wrong).unwrap();
            let error = Machine::from_file(&file).unwrap_err().to_string();
            assert!(error.contains(why) && error.contains("weft learn"), "{error}");
        }
        let state = State { access: Vec::new(), transitions: vec![one.states[0].transitions[0].clone(); 1001] };
        let inputs = (0..1001).map(|number| format!("i{number}")).collect();
        let wide = Machine { inputs, states: vec![state], ..one };
        fs::write(&file, wide.to_json()).unwrap();
        let error = Machine::from_file(&file).unwrap_err().to_string();
        assert!(error.contains("too many states or inputs"), "{error}");
    }

    #[test]
    fn the_drawing_groups_inputs_and_marks_the_end() {
        let one = machine("o\"ne", &[[("close", 1), ("close", 1)], [(ENDED, 1), (ENDED, 1)]]);
        let dot = one.to_dot();
        assert!(dot.contains("0 -> 1 [label=\"a, b / close\"]") && dot.contains("1 [shape=doublecircle]"), "{dot}");
        assert!(dot.starts_with("digraph \"o\\\"ne\"") && !dot.contains("1 -> 1"), "{dot}");
    }
}
