//! The Lua case that plays the steps of a session.
//!
//! The case calls the functions of the Lua module `session` (`suites/library/session.lua`,
//! `sdp_session.lua` for SDP, `agent_session.lua` for an agent, and `portmap_session.lua` for a port
//! mapper).

use std::fmt::Write as _;

use weft_core::RequirementId;

use super::service::SessionService;
use super::step::Step;

/// Returns the steps as Lua statements, with the session in `s`.
pub(crate) fn lua_steps(steps: &[Step]) -> String {
    steps.iter().map(|step| format!("    {step}\n")).collect()
}

/// Returns the Lua case with these steps. `name` is the last part of its id, and `origin` describes
/// in one line where the session comes from. `observed` has the requirements that only the monitor
/// judges in the session, and whose violation fails the case.
pub(crate) fn lua(
    service: SessionService,
    name: &str,
    origin: &str,
    steps: &[Step],
    observed: &[RequirementId],
) -> String {
    let (name_of_service, topic) = (service.name(), service.topic());
    let (constructor, rows) = (service.constructor(), service.rows());
    let faults = steps.iter().filter_map(|step| match step {
        Step::Fault { fault, .. } => Some(*fault),
        _ => None,
    });
    let has_rounds = steps.iter().any(|step| matches!(step, Step::Rounds { .. }));
    // In a round, the tester is the client of rping, so the target is the Responder.
    let roles = if has_rounds { "" } else { service.roles_field() };
    let has_extensions = steps.iter().any(|step| matches!(step, Step::Agent(step) if step.is_extension()));
    let lists = [(has_rounds, "ROUNDS"), (has_extensions, "ATOMICS")];
    let more = lists.iter().filter(|(has, _)| *has).map(|(_, list)| format!(", table.unpack(session.{list})"));
    let more: String = more.collect();
    let [parameters, arguments] = service.parameters();
    let needs_v6 = steps.iter().any(|step| matches!(step, Step::Portmap(step) if step.needs_v6()));
    let v6 = if needs_v6 { ", \"port-mapper-v6\"" } else { "" };
    let observed: Vec<&str> = observed.iter().map(|id| id.as_str()).collect();
    let also: String = faults.chain(observed.iter().copied()).map(|name| format!(", \"{name}\"")).collect();
    let mut text = format!(
        "-- {origin}\n\
         case {{\n  \
         id = \"{topic}/{name}\",\n  \
         title = \"The target serves an explored session\",\n  \
         requirements = session.requirements(session.{rows}{also}{more}),\n  \
         {roles}\
         capabilities = {{ \"{name_of_service}\"{v6} }},\n  \
         tags = {{ \"explored\" }},\n\n  \
         run = function({parameters})\n    \
         local s = session.{constructor}({arguments})\n"
    );
    text.push_str(&lua_steps(steps));
    let shown: Vec<String> = observed.iter().map(|id| format!("\"{id}\"")).collect();
    let shown = if shown.is_empty() { "()".to_owned() } else { format!(" {{ {} }}", shown.join(", ")) };
    // Writing to a text cannot fail.
    let _ = writeln!(text, "    s:finish{shown}\n  end,\n}}");
    text
}

/// Returns the Lua case of a target that no longer works after a session: a good exchange fails,
/// without further steps. `name` and `origin` are those of [`lua`]. `rows` are the requirements that
/// the target then violates.
pub(crate) fn lua_damaged<'r>(
    service: SessionService,
    name: &str,
    origin: &str,
    rows: impl IntoIterator<Item = &'r RequirementId>,
) -> String {
    let (name_of_service, topic, roles) = (service.name(), service.topic(), service.roles_field());
    let rows: Vec<String> = rows.into_iter().map(|id| format!("\"{id}\"")).collect();
    let rows = rows.join(", ");
    format!(
        "-- {origin}\n\
         case {{\n  \
         id = \"{topic}/{name}\",\n  \
         title = \"The target still works after an explored session\",\n  \
         requirements = {{ {rows} }},\n  \
         {roles}\
         capabilities = {{ \"{name_of_service}\" }},\n  \
         tags = {{ \"explored\" }},\n\n  \
         run = function(t)\n    \
         t:good_exchange {{ requirement = {{ {rows} }} }}\n  \
         end,\n}}\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_case_shows_its_steps() {
        let steps = [
            Step::Open { connection: 1, crc: Some(true), private: 12, markers: true, enhanced: true, rtr: None },
            Step::Message {
                connection: 1,
                size: 70,
                segment: 16,
                solicited: true,
                every: 5,
                stall: 0,
                empty: true,
                descending: false,
            },
            Step::Segments { connection: 1, count: 2 },
            Step::Pause { ms: 50 },
            Step::Fault { connection: 1, fault: "wrong-crc" },
        ];
        insta::assert_snapshot!(lua(SessionService::Echo, "7-12", "Session 12 of seed 7.", &steps, &[]));
    }
}
