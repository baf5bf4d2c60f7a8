//! Writes the text of a target file from the facts that probes found out. Comments give the origin
//! of each fact, and name the fields that a probe cannot fill in.

use weft_core::wire::mpa::startup::Enhanced;
use weft_core::wire::sdp::FieldOrder;

use super::{Facts, SdpStart, Service};
use crate::correct::StartupFields;
use crate::model::Capability;

/// The optional fields that a probe cannot fill in. The target file has them as comments.
const OTHER_FIELDS: &str = "\
# Other fields. To use a field, remove its \"# \".
# restart = [\"./power-cycle\"]      # a command that restarts a dead target
# capture = \"eth1\"                 # record the packets on this interface as evidence
# time_scale = 2.0                 # a factor for all time limits, for a slow target
";

/// Facts for reports. A table must follow all other fields.
const IDENTITY: &str = "
# Facts for reports. To use them, remove each \"# \".
# [identity]
# firmware = \"\"
# driver = \"\"
";

/// Returns the text of a target file for a responder at `address` (`host:port`). `name` is the
/// target's name in reports.
#[must_use]
pub fn new_file(name: &str, address: &str, facts: &Facts) -> String {
    let mut text = format!(
        "# Written by `weft target add {address}`, from the answers of the target.\n\
         # The page suites/suites/TARGETS.md of weft describes all fields.\n\n\
         name = {name:?}\n\
         kind = \"tcp\"\n\
         address = {address:?}\n\
         role = \"responder\"               # weft connects to the target\n\n"
    );
    text.push_str(&service(facts));
    text.push_str(&capabilities(facts));
    text.push_str(OTHER_FIELDS);
    text.push_str(&startup(facts));
    text.push_str(&sdp(facts));
    text.push_str(IDENTITY);
    text
}

fn service(facts: &Facts) -> String {
    let (comment, service) = match facts.service {
        Some(Service::Echo) => ("# The program on the target. It returned the bytes of a Send.\n", Service::Echo),
        Some(Service::Rping) => ("# The program on the target. It did a round of rping.\n", Service::Rping),
        Some(service) if facts.has_known_service() => {
            ("# The program on the target, as it answered to SDP messages.\n", service)
        }
        _ if facts.speaks_sdp => (
            "# QUESTION: which program runs on the target? weft does not know it.\n\
             #   \"sdp-drive\"   executes commands (docs/sdp-driver.md of weft)\n\
             #   \"sdp-echo\"    returns the bytes that it receives\n\
             #   \"sdp-sink\"    reads, and closes when weft closes\n\
             #   \"sdp-source\"  sends a few thousand bytes when it is connected\n",
            Service::SdpDrive,
        ),
        _ => (
            "# QUESTION: which program runs on the target? weft does not know it.\n\
             #   \"echo\"   returns each Send\n\
             #   \"rping\"  is `rping -s -P`\n\
             #   \"none\"   is any other program: most cases about FPDUs then do not apply\n\
             # To test more, start an echo service or `rping -s -P` on the target, and change this line.\n",
            Service::None,
        ),
    };
    let size = facts.rping_size.map(|size| {
        format!(
            "rping_size = {size}                 # the server accepts Writes up to this many bytes (its option -S)\n"
        )
    });
    format!("{comment}service = \"{}\"\n{}\n", service.as_str(), size.unwrap_or_default())
}

/// Returns what an answer of the target shows about a capability.
fn origin(capability: Capability, facts: &Facts) -> String {
    let reply = |what: &str| match facts.answer(what) {
        Some(answer) => format!("the target answers a Request of {what}: {answer}"),
        None => "the target answered".to_owned(),
    };
    match capability {
        Capability::Crc if facts.shown.contains(&Capability::Crc) => "the target uses CRCs".to_owned(),
        Capability::Crc => "not observed, but every MPA implementation must support CRCs".to_owned(),
        Capability::Markers => "the target sends markers if weft requests them".to_owned(),
        Capability::AsksForMarkers => "the target requests markers (M=1)".to_owned(),
        Capability::Revision1 => reply("revision 1, C=1"),
        Capability::Revision2 => reply("revision 2, enhanced"),
        other => other.to_string(),
    }
}

fn capabilities(facts: &Facts) -> String {
    if facts.speaks_sdp {
        return "# Cases for SDP need no capabilities.\ncapabilities = []\n\n".to_owned();
    }
    let listed = facts.capabilities();
    let mut text = "# What the target supports. Cases that need another capability do not apply.\n".to_owned();
    text.push_str("capabilities = [\n");
    for capability in &listed {
        let entry = format!("\"{capability}\",");
        text.push_str(&format!("    {entry:<20} # {}\n", origin(*capability, facts)));
    }
    text.push_str("]\n");
    let probed = [Capability::Markers, Capability::Revision1, Capability::Revision2];
    let missing: Vec<String> =
        probed.iter().filter(|capability| !listed.contains(capability)).map(ToString::to_string).collect();
    if !missing.is_empty() {
        text.push_str(&format!("# Not observed: {}.\n", missing.join(", ")));
    }
    if !facts.has_known_service() && !listed.contains(&Capability::Markers) {
        text.push_str("# Without a service that weft knows, weft cannot find out whether the target sends markers.\n");
    }
    text + "# No probe shows \"atomics\". Add it if the target has Atomic Operations and Immediate Data (RFC 7306).\n\n"
}

/// Returns the start-up that the target needs, or a comment about the enhanced start-up.
fn startup(facts: &Facts) -> String {
    if facts.speaks_sdp {
        return String::new();
    }
    let mut text = String::new();
    let answers = [
        ("an enhanced Request", facts.answer("revision 2, enhanced")),
        ("a peer-to-peer Request", facts.answer("revision 2, peer to peer")),
    ];
    let answers = answers.into_iter().filter_map(|(what, answer)| Some((what, answer?)));
    let lines: String = answers.map(|(what, answer)| format!("#   {what}: {answer}\n")).collect();
    if !lines.is_empty() {
        text.push_str(&format!("\n# Enhanced start-up (RFC 6581). The target's answers:\n{lines}"));
    }
    match &facts.request {
        Some(request) => {
            text.push_str("\n# The target rejects a usual Request (revision 1, C=1), but accepts this one.\n");
            text.push_str(&request_table(request, ""));
        }
        None if facts.shown.contains(&Capability::Revision2) => {
            text.push_str("# To begin all connections with it, remove each \"# \".\n");
            let enhanced = Enhanced { ird: 1, ord: 1, ..Enhanced::default() };
            let request = StartupFields { revision: 2, enhanced: Some(enhanced), ..StartupFields::REQUEST };
            text.push_str(&request_table(&request, "# "));
        }
        None => {}
    }
    text
}

/// Returns the table `[startup]` for a Request. Each line begins with `prefix`.
fn request_table(request: &StartupFields, prefix: &str) -> String {
    let mut lines = vec!["[startup]".to_owned()];
    if request.revision != StartupFields::REQUEST.revision {
        lines.push(format!("revision = {}", request.revision));
    }
    if !request.crc {
        lines.push("crc = false".to_owned());
    }
    if let Some(words) = request.enhanced {
        let kinds = [("send", words.rtr_send), ("write", words.rtr_write), ("read", words.rtr_read)];
        let kinds: Vec<String> =
            kinds.iter().filter(|(_, is_offered)| *is_offered).map(|(kind, _)| format!("{kind:?}")).collect();
        lines.push(format!("enhanced = {{ ird = {}, ord = {}, rtr = [{}] }}", words.ird, words.ord, kinds.join(", ")));
    }
    lines.iter().map(|line| format!("{prefix}{line}\n")).collect()
}

fn sdp(facts: &Facts) -> String {
    if !facts.speaks_sdp {
        return String::new();
    }
    let start = match facts.sdp.start {
        SdpStart::Swapped => "swapped",
        SdpStart::Bare => "bare",
        SdpStart::Natural => "natural",
        SdpStart::Enhanced => "enhanced",
        SdpStart::PrivateData => "private-data",
    };
    let mirrored = facts.sdp.order == FieldOrder::Mirrored;
    format!(
        "\n[sdp]\n\
         start = \"{start}\"               # the start-up profile that a HelloAck answered\n\
         mirrored = {mirrored}                # whether the fields have the order of InfiniBand's SDP\n\
         first_mseq = {}                  # MSeq of the first message after Hello and HelloAck\n",
        facts.sdp.first_mseq
    )
}

#[cfg(test)]
mod tests {
    use super::super::{Probe, Target};
    use super::*;
    use crate::targets::description::SdpFacts;

    fn parsed(facts: &Facts) -> (Target, String) {
        let text = new_file("nic", "192.0.2.7:7174", facts);
        (Target::from_toml("nic.toml", &text).unwrap_or_else(|error| panic!("{error}\n{text}")), text)
    }

    fn iwarp(service: Option<Service>) -> Facts {
        let shown = [Capability::Crc, Capability::Revision1, Capability::Revision2].into();
        let answer = Probe { what: "revision 2, enhanced", works: None, text: "Reply, revision 2".to_owned() };
        Facts { service, shown, probes: vec![answer], ..Facts::default() }
    }

    #[test]
    fn a_file_has_all_that_was_found_out() {
        let (target, text) = parsed(&Facts { rping_size: Some(1000), ..iwarp(Some(Service::Rping)) });
        assert_eq!((target.service(), target.rping_size()), (Service::Rping, 1000));
        assert_eq!(target.capabilities(), [Capability::Crc, Capability::Revision1, Capability::Revision2]);
        assert_eq!(target.info().reached_by, "TCP 192.0.2.7:7174");
        for line in ["# Not observed: markers.\n", "#   an enhanced Request: Reply, revision 2\n", "# revision = 2\n"] {
            assert!(text.contains(line), "{line}: {text}");
        }
        assert!(!text.contains("QUESTION"), "{text}");
    }

    #[test]
    fn an_unknown_program_is_a_question() {
        for service in [None, Some(Service::None)] {
            let (target, text) = parsed(&iwarp(service));
            assert_eq!(target.service(), Service::None);
            assert!(text.contains("# QUESTION: which program runs on the target?"), "{text}");
        }
        let (target, text) = parsed(&Facts { speaks_sdp: true, ..Facts::default() });
        assert_eq!(target.service(), Service::SdpDrive);
        assert!(text.contains("# QUESTION: which program runs on the target?"), "{text}");
    }

    #[test]
    fn a_target_that_rejects_the_usual_request_gets_another() {
        let enhanced = Enhanced { peer_to_peer: true, ird: 1, ord: 1, rtr_write: true, ..Enhanced::default() };
        let request = StartupFields { revision: 2, crc: false, enhanced: Some(enhanced), ..StartupFields::REQUEST };
        let (target, _) = parsed(&Facts { request: Some(request.clone()), ..iwarp(Some(Service::Echo)) });
        assert_eq!(target.description.request, request);
    }

    #[test]
    fn an_sdp_socket_has_its_start_up_profile() {
        let sdp = SdpFacts { start: SdpStart::PrivateData, order: FieldOrder::Mirrored, first_mseq: 0 };
        let facts = Facts { service: Some(Service::SdpSink), speaks_sdp: true, sdp, ..Facts::default() };
        let (target, _) = parsed(&facts);
        let found = target.description.sdp;
        assert_eq!((target.service(), found.start), (Service::SdpSink, SdpStart::PrivateData));
        assert_eq!((found.order, found.first_mseq), (FieldOrder::Mirrored, 0));
    }

    /// A commented line becomes a valid field if its comment sign is removed.
    #[test]
    fn the_comments_are_valid_fields() {
        let text = new_file("nic", "192.0.2.7:7174", &iwarp(Some(Service::Echo)));
        let is_field = |line: &str| line.contains(" = ") || line.starts_with('[');
        let active: Vec<&str> =
            text.lines().map(|line| line.strip_prefix("# ").filter(|field| is_field(field)).unwrap_or(line)).collect();
        let target = Target::from_toml("nic.toml", &active.join("\n")).unwrap();
        assert_eq!(target.description.request.revision, 2);
        assert_eq!(target.info().identity.len(), 2);
    }
}
