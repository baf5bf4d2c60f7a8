//! Infers a Mealy machine from sequences of inputs (words) and their outputs: the algorithm L# of
//! Vaandrager, Garhewal, Rot and Wissmann (2022). No I/O: the caller plays the words that
//! [`Learner::next`] requests.
//!
//! All observed words are in a tree. Two nodes of the tree are *apart* if a word has different
//! outputs after them, so they belong to different states. The *basis* is a set of nodes that are
//! apart from each other: the known states. The *frontier* is the set of the other nodes to which an
//! input leads from the basis. The machine is complete if each frontier node is apart from all
//! states except one. If a frontier node is apart from all states, it is a new state.
//!
//! A frontier node may belong to a new state although no observed word shows it. So some inputs are
//! played after each frontier node: the probes, and inputs that the target answers in the state of
//! the node. Finally random words are played.
//!
//! If the target has closed the connection, all later outputs are [`ENDED`], and such words are not
//! played.

use std::collections::BTreeMap;

use fastrand::Rng;

/// The output of an input after the end of the connection.
pub(super) const ENDED: &str = "ended";
/// The output of an input that makes the target die.
pub(super) const DIES: &str = "dies";
/// The output of an input after which the target is silent.
pub(super) const SILENT: &str = "-";
/// Number of inputs that must have the same output after a frontier node as in its state.
const TELLING: usize = 3;
/// Maximum number of inputs of a random word after the access word of a state.
const MAX_RANDOM: usize = 6;

/// What the caller must do next.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Step {
    /// Play this word, and report its outputs with [`Learner::learn`].
    Play(Vec<usize>),
    /// Stop: the target has more states than the maximum.
    TooManyStates,
    /// The machine is complete.
    Done(Vec<LearnedState>),
}

/// A state of the inferred machine. State 0 is the first state.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct LearnedState {
    /// The inputs that lead to this state.
    pub(super) access: Vec<usize>,
    /// For each input, the output and the number of the next state.
    pub(super) transitions: Vec<(String, usize)>,
}

/// A node of the tree: the target after a word.
#[derive(Debug, Default)]
struct Node {
    /// The word that leads here from the root.
    access: Vec<usize>,
    /// The output of the last input.
    output: String,
    /// The connection has ended.
    is_end: bool,
    /// Number of the next node for each input that was played.
    children: BTreeMap<usize, usize>,
}

/// The state of the algorithm.
#[derive(Debug)]
pub(super) struct Learner {
    symbols: usize,
    /// Inputs that are played after each input in each state, before random words are played.
    probes: Vec<usize>,
    /// The tree. The root is node 0.
    nodes: Vec<Node>,
    /// Nodes that are apart from each other. The first is the root.
    basis: Vec<usize>,
    rng: Rng,
    /// Number of random words that must agree with the machine.
    tests: u32,
    tested: u32,
    /// Words that are played before the machine is complete.
    demanded: Vec<Vec<usize>>,
    max_states: usize,
}

impl Learner {
    pub(super) fn new(symbols: usize, probes: Vec<usize>, tests: u32, max_states: usize, seed: u64) -> Self {
        Learner {
            symbols,
            probes,
            nodes: vec![Node::default()],
            basis: vec![0],
            rng: Rng::with_seed(seed),
            tests,
            tested: 0,
            demanded: Vec::new(),
            max_states,
        }
    }

    /// Demands that these words are played, although the machine is complete without them.
    pub(super) fn demand(&mut self, words: impl IntoIterator<Item = Vec<usize>>) {
        self.demanded.extend(words);
    }

    /// Number of states that are known.
    pub(super) fn states(&self) -> usize {
        self.basis.len()
    }

    /// Number of random words since the last change of the machine.
    pub(super) fn tested(&self) -> u32 {
        self.tested
    }

    /// Stores the outputs of a word.
    pub(super) fn learn(&mut self, word: &[usize], outputs: &[String]) {
        let mut at = 0;
        for (index, (symbol, output)) in word.iter().zip(outputs).enumerate() {
            if self.nodes[at].is_end {
                return;
            }
            at = match self.nodes[at].children.get(symbol) {
                Some(child) => *child,
                None => {
                    let number = self.nodes.len();
                    self.nodes[at].children.insert(*symbol, number);
                    let access = word[..=index].to_vec();
                    self.nodes.push(Node { access, output: output.clone(), is_end: is_end(output), ..Node::default() });
                    number
                }
            };
        }
    }

    /// Returns the first place where these outputs differ from earlier outputs of the same inputs.
    pub(super) fn contradicts(&self, word: &[usize], outputs: &[String]) -> Option<usize> {
        let mut at = 0;
        for (index, (symbol, output)) in word.iter().zip(outputs).enumerate() {
            at = *self.nodes[at].children.get(symbol)?;
            if self.nodes[at].output != *output {
                return Some(index);
            }
        }
        None
    }

    /// Returns the known output of the last input of a word.
    pub(super) fn known(&self, word: &[usize]) -> String {
        self.node(0, word).map(|node| self.nodes[node].output.clone()).unwrap_or_default()
    }

    /// Returns the number of inputs of a word whose outputs are known.
    pub(super) fn known_len(&self, word: &[usize]) -> usize {
        (0..word.len()).take_while(|at| self.node(0, &word[..=*at]).is_some()).count()
    }

    /// Returns the node after `word` from the node `from`, if the word was played there.
    fn node(&self, from: usize, word: &[usize]) -> Option<usize> {
        word.iter().try_fold(from, |at, symbol| match self.nodes[at].is_end {
            true => Some(at),
            false => self.nodes[at].children.get(symbol).copied(),
        })
    }

    /// Returns a word that has different outputs after two nodes, if one was observed.
    fn witness(&self, one: usize, other: usize) -> Option<Vec<usize>> {
        let (a, b) = (&self.nodes[one], &self.nodes[other]);
        if a.is_end || b.is_end {
            // No output before the end is `ENDED`, so each observed input distinguishes the two.
            let open = if a.is_end { b } else { a };
            return open.children.keys().next().map(|symbol| vec![*symbol]).filter(|_| a.is_end != b.is_end);
        }
        for (symbol, child) in &a.children {
            let Some(other_child) = b.children.get(symbol) else { continue };
            let rest = match self.nodes[*child].output == self.nodes[*other_child].output {
                true => self.witness(*child, *other_child),
                false => Some(Vec::new()),
            };
            if let Some(rest) = rest {
                return Some([&[*symbol], rest.as_slice()].concat());
            }
        }
        None
    }

    /// Returns what to do next.
    pub(super) fn next(&mut self) -> Step {
        loop {
            let states = match self.machine() {
                Ok(states) => states,
                Err(Missing::Word(word)) => return Step::Play(word),
                Err(Missing::State(_)) if self.basis.len() >= self.max_states => return Step::TooManyStates,
                Err(Missing::State(node)) => {
                    self.basis.push(node);
                    self.tested = 0;
                    continue;
                }
            };
            if let Some(word) = self.shorter_contradiction(&states) {
                self.tested = 0;
                return Step::Play(word);
            }
            if let Some(word) = self.demanded.pop() {
                return Step::Play(word);
            }
            if self.tested >= self.tests {
                return Step::Done(states);
            }
            self.tested += 1;
            // Known words are played again, because a target may answer differently the next time.
            return Step::Play(self.random_word(&states));
        }
    }

    /// Returns the machine, or what is missing.
    fn machine(&self) -> Result<Vec<LearnedState>, Missing> {
        let mut states = Vec::with_capacity(self.basis.len());
        for state in &self.basis {
            let mut transitions = Vec::with_capacity(self.symbols);
            for symbol in 0..self.symbols {
                transitions.push(self.transition(*state, symbol)?);
            }
            states.push(LearnedState { access: self.nodes[*state].access.clone(), transitions });
        }
        Ok(states)
    }

    /// Returns the output of an input in a state, and the number of the next state.
    fn transition(&self, state: usize, symbol: usize) -> Result<(String, usize), Missing> {
        let known = |node: usize| self.basis.iter().position(|state| *state == node);
        if self.nodes[state].is_end {
            return Ok((ENDED.to_owned(), known(state).unwrap_or_default()));
        }
        let after = |node: usize, word: &[usize]| [self.nodes[node].access.as_slice(), word].concat();
        let Some(child) = self.node(state, &[symbol]) else { return Err(Missing::Word(after(state, &[symbol]))) };
        let output = self.nodes[child].output.clone();
        if let Some(number) = known(child) {
            return Ok((output, number));
        }
        let mut alike = (0..self.basis.len()).filter(|number| self.witness(child, self.basis[*number]).is_none());
        match (alike.next(), alike.next()) {
            (None, _) => Err(Missing::State(child)),
            (Some(number), None) => {
                let is_open = |probe: &usize| self.node(child, &[*probe]).is_none();
                let telling = self.telling(self.basis[number]);
                let open = self.probes.iter().copied().chain(telling).find(is_open);
                open.map_or(Ok((output, number)), |probe| Err(Missing::Word(after(child, &[probe]))))
            }
            (Some(one), Some(other)) => match self.witness(self.basis[one], self.basis[other]) {
                // This word has different outputs in the two states, so it excludes one of them.
                Some(word) => Err(Missing::Word(after(child, &word))),
                // The states of the basis are apart from each other.
                None => Ok((output, one)),
            },
        }
    }

    /// Returns some inputs that the target answers in this state, other than by closing the
    /// connection. Their outputs show that the target is in this state.
    fn telling(&self, state: usize) -> impl Iterator<Item = usize> {
        let is_telling = |(_, child): &(&usize, &usize)| {
            let output = self.nodes[**child].output.as_str();
            output != SILENT && !is_end(output)
        };
        self.nodes[state].children.iter().filter(is_telling).map(|(symbol, _)| *symbol).take(TELLING)
    }

    /// Searches the tree for a node that is apart from the state of the machine after the same
    /// word. Returns a word that moves the contradiction closer to the frontier.
    fn shorter_contradiction(&self, states: &[LearnedState]) -> Option<Vec<usize>> {
        // Nodes of the tree that are still to be visited. Each node has the state of the machine
        // after the same word, and the number of inputs since the last state of the basis.
        let mut waiting: Vec<(usize, usize, usize)> = vec![(0, 0, 0)];
        let mut found: Option<(usize, usize, usize, Vec<usize>)> = None;
        while let Some((node, state, beyond)) = waiting.pop() {
            if beyond > 1
                && found.as_ref().is_none_or(|(.., least, _)| beyond < *least)
                && let Some(witness) = self.witness(node, self.basis[state])
            {
                found = Some((node, state, beyond, witness));
            }
            for (symbol, child) in &self.nodes[node].children {
                let beyond = if self.basis.contains(child) { 0 } else { beyond + 1 };
                waiting.push((*child, states[state].transitions[*symbol].1, beyond));
            }
        }
        let (node, _, beyond, witness) = found?;
        let word = &self.nodes[node].access;
        // The first `kept` inputs end between the frontier and the contradiction. After these
        // inputs, the machine is in a state. The remaining inputs are played after the access word
        // of this state.
        let kept = word.len() - beyond / 2;
        let middle = word[..kept].iter().fold(0, |state, symbol| states[state].transitions[*symbol].1);
        Some([states[middle].access.as_slice(), &word[kept..], &witness].concat())
    }

    /// Draws a word: the access word of a state and some more inputs. Only the last input may end the
    /// connection, because all later inputs show nothing.
    fn random_word(&mut self, states: &[LearnedState]) -> Vec<usize> {
        let ends = |state: usize| self.nodes[self.basis[state]].is_end;
        let open: Vec<usize> = (0..states.len()).filter(|state| !ends(*state)).collect();
        let mut state = open[self.rng.usize(..open.len())];
        let mut word = states[state].access.clone();
        for _ in 1..self.rng.usize(1..=MAX_RANDOM) {
            let stays = |symbol: &usize| !ends(states[state].transitions[*symbol].1);
            let choices: Vec<usize> = (0..self.symbols).filter(stays).collect();
            if choices.is_empty() {
                break;
            }
            let symbol = choices[self.rng.usize(..choices.len())];
            word.push(symbol);
            state = states[state].transitions[symbol].1;
        }
        word.push(self.rng.usize(..self.symbols));
        word
    }
}

/// What the machine lacks.
enum Missing {
    /// The outputs of this word.
    Word(Vec<usize>),
    /// A state for this node.
    State(usize),
}

/// Returns whether the connection has ended with this output.
fn is_end(output: &str) -> bool {
    output == ENDED
        || output == DIES
        || output.ends_with("close")
        || output.ends_with("other bytes")
        || output.ends_with("without end")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn predicted<'a>(states: &'a [LearnedState], word: &[usize]) -> Vec<&'a str> {
        let mut state = 0;
        let mut next = |symbol: &usize| {
            let (output, next) = &states[state].transitions[*symbol];
            state = *next;
            output.as_str()
        };
        word.iter().map(&mut next).collect()
    }

    /// Plays a word with a machine that is a table: for each state, the output and the next state of
    /// each input.
    fn outputs(table: &[&[(&str, usize)]], word: &[usize]) -> Vec<String> {
        let mut state = 0;
        let mut next = |symbol: &usize| {
            let (output, next) = table[state][*symbol];
            state = next;
            output.to_owned()
        };
        word.iter().map(&mut next).collect()
    }

    /// Learns a machine. Returns the learned states, and the number of different words that were
    /// played.
    fn learned(table: &[&[(&str, usize)]], tests: u32) -> (Vec<LearnedState>, usize) {
        let mut learner = Learner::new(table[0].len(), Vec::new(), tests, 100, 7);
        let mut played = std::collections::BTreeSet::new();
        loop {
            match learner.next() {
                Step::Done(states) => return (states, played.len()),
                Step::TooManyStates => panic!("too many states"),
                Step::Play(word) => {
                    played.insert(word.clone());
                    learner.learn(&word, &outputs(table, &word));
                }
            }
        }
    }

    fn agrees(states: &[LearnedState], table: &[&[(&str, usize)]]) {
        let mut rng = Rng::with_seed(1);
        for _ in 0..2000 {
            let word: Vec<usize> = (0..12).map(|_| rng.usize(..table[0].len())).collect();
            assert_eq!(predicted(states, &word), outputs(table, &word), "{word:?}");
        }
    }

    #[test]
    fn learns_a_machine_with_the_least_states() {
        // States 1 and 2 differ only after two more inputs.
        let table: &[&[(&str, usize)]] = &[
            &[("-", 1), ("-", 2)],
            &[("-", 3), ("a", 1)],
            &[("-", 4), ("a", 2)],
            &[("x", 0), ("-", 3)],
            &[("y", 0), ("-", 4)],
        ];
        let (states, _) = learned(table, 300);
        assert_eq!(states.len(), 5);
        agrees(&states, table);
    }

    #[test]
    fn a_counter_needs_a_counterexample() {
        // Only the fifth input of kind 0 has another output.
        let table: &[&[(&str, usize)]] = &[
            &[("-", 1), ("-", 0)],
            &[("-", 2), ("-", 0)],
            &[("-", 3), ("-", 0)],
            &[("-", 4), ("-", 0)],
            &[("!", 0), ("-", 0)],
        ];
        let (states, _) = learned(table, 500);
        assert_eq!(states.len(), 5);
        agrees(&states, table);
    }

    #[test]
    fn probes_find_states_without_random_words() {
        // After input 0, only input 2 shows that the first state is left.
        let table: &[&[(&str, usize)]] = &[&[("-", 1), ("-", 0), ("-", 0)], &[("-", 1), ("-", 1), ("x", 1)]];
        let of = |probes: Vec<usize>| {
            let mut learner = Learner::new(3, probes, 0, 9, 1);
            loop {
                match learner.next() {
                    Step::Play(word) => learner.learn(&word, &outputs(table, &word)),
                    Step::Done(states) => return states.len(),
                    Step::TooManyStates => panic!("too many states"),
                }
            }
        };
        assert_eq!((of(Vec::new()), of(vec![2])), (1, 2));
    }

    #[test]
    fn words_after_the_end_are_not_played() {
        let table: &[&[(&str, usize)]] = &[&[("close", 1), ("-", 0)], &[(ENDED, 1), (ENDED, 1)]];
        let (states, played) = learned(table, 50);
        assert_eq!(states.len(), 2);
        assert!(played < 60, "{played}");
        agrees(&states, table);
    }

    #[test]
    fn different_outputs_of_the_same_word_are_found() {
        let mut learner = Learner::new(2, Vec::new(), 1, 9, 1);
        let outputs = |all: &[&str]| all.iter().map(|output| (*output).to_owned()).collect::<Vec<_>>();
        learner.learn(&[0, 1], &outputs(&["a", "b"]));
        assert_eq!(learner.contradicts(&[0, 1, 1], &outputs(&["a", "b", "c"])), None);
        assert_eq!(learner.contradicts(&[0, 1], &outputs(&["a", "c"])), Some(1));
        assert_eq!(learner.known(&[0, 1]), "b");
    }

    #[test]
    fn too_many_states_end_the_learning() {
        let mut learner = Learner::new(1, Vec::new(), 5, 3, 1);
        let step = loop {
            match learner.next() {
                Step::Play(word) => {
                    let outputs: Vec<String> = (0..word.len()).map(|at| at.to_string()).collect();
                    learner.learn(&word, &outputs);
                }
                other => break other,
            }
        };
        assert_eq!(step, Step::TooManyStates);
    }
}
