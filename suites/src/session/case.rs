//! The Lua case that plays the steps of a session.
//!
//! The case calls the functions of the Lua module `session` (`suites/library/session.lua`,
//! `sdp_session.lua` for SDP, `sdp_drive_session.lua` for a driven SDP socket, `agent_session.lua`
//! for an agent, and `portmap_session.lua` for a port mapper).

use std::fmt::Write as _;

use weft_core::{RequirementId, requirement};

use super::agent_step::{AgentAction, AgentStep};
use super::drive_step::{DriveAction, DriveStep};
use super::fault::RESPONSE_FAULTS;
use super::sdp_step::{SdpAction, SdpStep};
use super::service::SessionService;
use super::step::Step;

/// Maximum number of bytes in the messages of a session that each tier can play. With more bytes,
/// the script may need more memory than the other tiers allow.
const USUAL_OCTETS: u64 = 4 << 20;

/// Returns the steps as Lua statements, with the session in `s`. A repetition is a loop.
pub(crate) fn lua_steps(steps: &[Step]) -> String {
    // The number of steps that follow in the open loop.
    let (mut text, mut left) = (String::new(), 0);
    for step in steps {
        let indent = if left > 0 { "      " } else { "    " };
        // Writing to a text cannot fail.
        let _ = writeln!(text, "{indent}{step}");
        if let Step::Repeat { steps, .. } = *step {
            left = steps.saturating_add(1);
        }
        if left == 1 {
            text.push_str("    end\n");
        }
        left = left.saturating_sub(1);
    }
    if left > 0 {
        text.push_str("    end\n");
    }
    text
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
    let is_announced = steps.iter().any(|step| matches!(step, Step::Announce { .. }));
    let has_rounds = is_announced || steps.iter().any(|step| matches!(step, Step::Rounds { .. }));
    let has_response_faults = faults.clone().any(|fault| RESPONSE_FAULTS.contains(&fault));
    // In a round, the tester is the client of rping, so the target is the Responder. Only then, the
    // target has a Read.
    let roles = if has_rounds || has_response_faults { "" } else { service.roles_field() };
    let has_empty_reads = steps.iter().any(|step| matches!(step, Step::Empty { read: true, .. }));
    let has_pad = steps.iter().any(|step| matches!(step, Step::Pad { .. }));
    // The Lua module judges the answers to these Requests only if the case lists these
    // requirements.
    let has_private =
        steps.iter().any(|step| matches!(step, Step::Open { private: 1.., .. } | Step::Request { private: 1.., .. }));
    let has_depths = steps.iter().any(|step| matches!(step, Step::Request { depths: Some(_), .. }));
    let of_requests = [(has_private, requirement!("MPA-7.1.2-25")), (has_depths, requirement!("P2P-10-2"))];
    let of_requests: Vec<&str> =
        of_requests.iter().filter(|(is_tested, _)| *is_tested).map(|(_, id)| id.as_str()).collect();
    let has_extensions = steps.iter().any(|step| matches!(step, Step::Agent(step) if step.is_extension()));
    let has_command =
        |action: DriveAction| steps.iter().any(|step| matches!(step, Step::Drive(drive) if drive.action == action));
    let is_suspension = |step: &Step| matches!(step, Step::Drive(DriveStep { action: DriveAction::Suspend(_), .. }));
    let suspends = steps.iter().any(is_suspension);
    let is_resumed = |step: &Step| matches!(step, Step::Sdp(SdpStep { action: SdpAction::Resume, .. }));
    let resumes = steps.iter().any(is_resumed);
    // Lua uses only the first requirement of a list that is not the last list. The first five lists
    // have one requirement. A session with one of the other lists has no further list.
    let lists = [
        (has_empty_reads, "EMPTY"),
        (has_pad, "PADDED"),
        (has_command(DriveAction::Shut), "SHUT"),
        (has_command(DriveAction::Abort), "ABORTED"),
        (suspends, "SUSPENDED"),
        (has_rounds && !is_announced, "ROUNDS"),
        (is_announced, "ANNOUNCED"),
        (has_extensions, "ATOMICS"),
        (resumes, "RESUMED"),
    ];
    let more = lists.iter().filter(|(has, _)| *has).map(|(_, list)| format!(", table.unpack(session.{list})"));
    let more: String = more.collect();
    let [parameters, arguments] = service.parameters();
    let needs_v6 = steps.iter().any(|step| matches!(step, Step::Portmap(step) if step.needs_v6()));
    let v6 = if needs_v6 { ", \"port-mapper-v6\"" } else { "" };
    let is_long = all_octets(steps) > USUAL_OCTETS;
    let tier = if is_long { "tier = \"full\",\n  " } else { "" };
    let observed: Vec<&str> = observed.iter().map(|id| id.as_str()).collect();
    let also = faults.chain(of_requests.iter().copied()).chain(observed.iter().copied());
    let also: String = also.map(|name| format!(", \"{name}\"")).collect();
    let of_requests: Vec<String> = of_requests.iter().map(|id| format!("\"{id}\"")).collect();
    let of_requests =
        if of_requests.is_empty() { String::new() } else { format!(", {{ {} }}", of_requests.join(", ")) };
    let mut text = format!(
        "-- {origin}\n\
         case {{\n  \
         id = \"{topic}/{name}\",\n  \
         title = \"The target serves an explored session\",\n  \
         requirements = session.requirements(session.{rows}{also}{more}),\n  \
         {roles}\
         capabilities = {{ \"{name_of_service}\"{v6} }},\n  \
         {tier}\
         tags = {{ \"explored\" }},\n\n  \
         run = function({parameters})\n    \
         local s = session.{constructor}({arguments}{of_requests})\n"
    );
    text.push_str(&lua_steps(steps));
    let shown: Vec<String> = observed.iter().map(|id| format!("\"{id}\"")).collect();
    let shown = if shown.is_empty() { "()".to_owned() } else { format!(" {{ {} }}", shown.join(", ")) };
    // Writing to a text cannot fail.
    let _ = writeln!(text, "    s:finish{shown}\n  end,\n}}");
    text
}

/// Returns the number of bytes in the messages of all steps. A repetition counts each time.
fn all_octets(steps: &[Step]) -> u64 {
    let (mut total, mut times, mut left) = (0_u64, 1, 0);
    for step in steps {
        if let Step::Repeat { count, steps } = *step {
            (times, left) = (u64::from(count), steps);
        } else {
            let factor = if left > 0 { times } else { 1 };
            total = total.saturating_add(octets(step).saturating_mul(factor));
            left = left.saturating_sub(1);
        }
    }
    total
}

/// Returns the number of bytes in the messages of a step, if the step sends large messages. (The
/// tester keeps the bytes of a flood only until their echo arrives.)
fn octets(step: &Step) -> u64 {
    let [count, size] = match *step {
        Step::Message(fields) => [1, fields.size],
        Step::Agent(AgentStep { action, .. }) => match action {
            AgentAction::Post(fields) => [fields.count, fields.size],
            AgentAction::Message(fields) => [1, fields.size],
            AgentAction::Write { size, .. } => [1, size],
            AgentAction::Read { size, count, .. } => [count, size],
            _ => [0, 0],
        },
        _ => [0, 0],
    };
    u64::from(count) * u64::from(size)
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
    use super::super::step::MessageFields;
    use super::*;
    use crate::script::Suites;

    #[test]
    fn a_case_shows_its_steps() {
        let steps = [
            Step::Open { connection: 1, crc: Some(true), private: 12, markers: true, enhanced: true, rtr: None },
            Step::Message(MessageFields { solicited: true, every: 5, empty: true, ..MessageFields::plain(1, 70, 16) }),
            Step::Segments { connection: 1, count: 2 },
            Step::Pause { ms: 50 },
            Step::Fault { connection: 1, fault: "wrong-crc", at_once: false },
        ];
        insta::assert_snapshot!(lua(SessionService::Echo, "7-12", "Session 12 of seed 7.", &steps, &[]));
    }

    #[test]
    fn a_repetition_is_a_loop() {
        let repeat = Step::Repeat { count: 20, steps: 2 };
        let steps = [repeat, Step::message(1, 5, 5), Step::Reset { connection: 1 }, Step::Pause { ms: 1 }];
        let body = "      s:message(1, { size = 5 })\n      s:reset(1)\n";
        assert_eq!(lua_steps(&steps), format!("    for _ = 1, 20 do\n{body}    end\n    s:pause(0.001)\n"));
        Suites::generated("rdmap/explored/one.lua", lua(SessionService::Echo, "one", "One.", &steps, &[])).unwrap();
        // The loop ends with the session.
        assert_eq!(lua_steps(&[repeat, steps[2]]), "    for _ = 1, 20 do\n      s:reset(1)\n    end\n");
    }

    #[test]
    fn a_repetition_counts_the_bytes_of_each_round() {
        let long = Step::message(1, 1 << 20, 1432);
        assert_eq!(all_octets(&[long, Step::Repeat { count: 5, steps: 1 }, long, long]), 7 << 20);
    }

    /// If the case did not list the requirements of a step, the step could not check them.
    #[test]
    fn a_case_lists_the_requirements_that_only_some_steps_test() {
        let steps = [Step::Empty { connection: 1, read: true }, Step::Pad { connection: 1, size: 5, value: 0xff }];
        let text = lua(SessionService::Echo, "one", "One session.", &steps, &[]);
        let case = Suites::generated("rdmap/explored/one.lua", text).unwrap();
        let listed = &case.info.requirements;
        assert!(listed.contains(&requirement!("RDMAP-5.2.1-18")) && listed.contains(&requirement!("MPA-4.1-4")));
        let write = [Step::Empty { connection: 1, read: false }];
        assert!(!lua(SessionService::Echo, "one", "One session.", &write, &[]).contains("EMPTY"));
    }

    /// A run of the default tier cannot play a session with a long message.
    #[test]
    fn only_the_full_tier_has_sessions_with_long_messages() {
        for (size, has_tier) in [(1 << 20, false), (1 << 24, true)] {
            let text = lua(SessionService::Echo, "one", "One session.", &[Step::message(1, size, 1432)], &[]);
            assert_eq!(text.contains("\n  tier = \"full\",\n"), has_tier, "{text}");
            Suites::generated("rdmap/explored/one.lua", text).unwrap();
        }
    }

    /// The case loads, so it lists only known requirements.
    #[test]
    fn a_case_lists_the_requirements_of_its_steps() {
        let announce = Step::Announce { connection: 1, size: 30, segment: 10, to: 0x1000, empty: false };
        let request = |private, depths| Step::Request { crc: None, private, markers: false, depths, rtr: [false; 3] };
        let rounds =
            Step::Rounds { connection: 1, count: 1, size: 9, segment: 9, to: 0, between: false, empty: false, busy: 0 };
        for (steps, list, arguments) in [
            (vec![rounds], "(session.RPING, table.unpack(session.ROUNDS))", "t"),
            (vec![rounds, announce], "(session.RPING, table.unpack(session.ANNOUNCED))", "t"),
            (vec![request(0, None)], "(session.RPING)", "t"),
            (vec![request(4, None)], "(session.RPING, \"MPA-7.1.2-25\")", "t, { \"MPA-7.1.2-25\" }"),
            (vec![request(0, Some([0, 16]))], "(session.RPING, \"P2P-10-2\")", "t, { \"P2P-10-2\" }"),
        ] {
            let text = lua(SessionService::Rping, "one", "One session.", &steps, &[]);
            assert!(text.contains(&format!("session.requirements{list},")), "{text}");
            assert!(text.contains(&format!("session.rping({arguments})\n")), "{text}");
            Suites::generated("rdmap/explored/one.lua", text).unwrap();
        }
    }
}
