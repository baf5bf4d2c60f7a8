//! The Lua cases of sequences of inputs.

use std::time::Duration;

use super::{Difference, Machine};

/// The file of the case that plays a sequence, for messages.
pub(super) const FILE: &str = "learn/sequence.lua";

/// Returns the case that plays these inputs and ends with their outputs.
pub(super) fn observing_case(inputs: &[&str], silence: Duration, is_enhanced: bool) -> String {
    let (names, within) = (list(inputs), silence.as_secs_f64());
    format!(
        "{}  run = function(t)\n    learn.observe(t, {names}, {within:?})\n  end,\n}}\n",
        head("sequence", "Inputs and outputs", is_enhanced)
    )
}

/// Returns the case that shows a difference between two machines. The case sends the inputs to a
/// target, and reports which of the two machines has the target's last output. The case judges
/// nothing, because a difference does not show which of the two outputs is correct.
#[must_use]
pub fn difference_case(a: &Machine, b: &Machine, difference: &Difference, silence: Duration) -> String {
    let inputs: Vec<&str> = difference.inputs.iter().map(String::as_str).collect();
    let of = |machine: &Machine, output: &str| format!("{{ name = {:?}, output = {output:?} }}", machine.target);
    format!(
        "-- The shortest sequence of inputs whose outputs differ between {} and {}.\n\
         {}  run = function(t)\n    \
         learn.compare(t, {}, {:?},\n      {},\n      {})\n  end,\n}}\n",
        a.target,
        b.target,
        head("difference", "The outputs of two targets differ after these inputs", a.is_enhanced && b.is_enhanced),
        list(&inputs),
        silence.as_secs_f64(),
        of(a, &difference.outputs[0]),
        of(b, &difference.outputs[1]),
    )
}

fn head(name: &str, title: &str, is_enhanced: bool) -> String {
    let capabilities = if is_enhanced { "  capabilities = { \"revision-2\" },\n" } else { "" };
    format!(
        "case {{\n  id = \"learn/{name}/last-output\",\n  title = \"{title}\",\n  \
         requirements = {{ \"MPA-7.1-3\" }},\n  roles = {{ \"responder\", \"initiator\" }},\n{capabilities}\n"
    )
}

fn list(inputs: &[&str]) -> String {
    let names: Vec<String> = inputs.iter().map(|name| format!("{name:?}")).collect();
    format!("{{ {} }}", names.join(", "))
}
