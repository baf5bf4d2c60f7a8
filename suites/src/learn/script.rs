//! The Lua cases of sequences of inputs.

use std::time::Duration;

use super::{Difference, Machine};

/// The file of the case that plays a sequence, for messages.
pub(super) const FILE: &str = "learn/sequence.lua";

/// Returns the case that plays these inputs and ends with their outputs.
pub(super) fn observing_case(inputs: &[&str], silence: Duration, is_enhanced: bool) -> String {
    let (names, within) = (list(inputs), silence.as_secs_f64());
    let head = head("sequence/last-output", "Inputs and outputs", is_enhanced);
    format!("{head}  run = function(t)\n    learn.observe(t, {names}, {within:?})\n  end,\n}}\n")
}

/// Returns two cases that show a difference between two machines. Each case sends the inputs to a
/// target. The case `like-a` passes if the target's last output is that of `a`, and the case
/// `like-b` passes if it is that of `b`. Otherwise the case is inconclusive, because a difference
/// does not show which of the two outputs is correct.
#[must_use]
pub fn difference_cases(a: &Machine, b: &Machine, difference: &Difference, silence: Duration) -> String {
    let inputs: Vec<&str> = difference.inputs.iter().map(String::as_str).collect();
    let of = |machine: &Machine, output: &str| format!("{{ name = {:?}, output = {output:?} }}", machine.target);
    let [of_a, of_b] = [of(a, &difference.outputs[0]), of(b, &difference.outputs[1])];
    let case = |name: &str, machine: &Machine, wanted: &str, other: &str| {
        let title = format!("The target behaves like {} after these inputs", machine.target);
        format!(
            "\n{}  run = function(t)\n    learn.compare(t, {}, {:?},\n      {wanted},\n      {other})\n  end,\n}}\n",
            head(&format!("difference/{name}"), &title, a.is_enhanced && b.is_enhanced),
            list(&inputs),
            silence.as_secs_f64(),
        )
    };
    format!(
        "-- The shortest sequence of inputs whose outputs differ between {} and {}.\n{}{}",
        a.target,
        b.target,
        case("like-a", a, &of_a, &of_b),
        case("like-b", b, &of_b, &of_a),
    )
}

fn head(name: &str, title: &str, is_enhanced: bool) -> String {
    let capabilities = if is_enhanced { "  capabilities = { \"revision-2\" },\n" } else { "" };
    format!(
        "case {{\n  id = \"learn/{name}\",\n  title = {title:?},\n  \
         requirements = {{ \"MPA-7.1-3\" }},\n  roles = {{ \"responder\", \"initiator\" }},\n{capabilities}\n"
    )
}

fn list(inputs: &[&str]) -> String {
    let names: Vec<String> = inputs.iter().map(|name| format!("{name:?}")).collect();
    format!("{{ {} }}", names.join(", "))
}
