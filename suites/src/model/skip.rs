//! Why a case does not judge a target: the sentence in its result, and what a report concludes from
//! this sentence. Stores keep only the sentence.

use super::{Capability, Role};

/// Begin of the sentence about a role.
const ROLE: &str = "The target's role is ";
/// Begin of the sentence about a target that does not speak iWARP.
const SERVICE: &str = "The target's service is ";
/// Begin of the sentence about the tester's TCP segments.
const SEGMENTS: &str = "The operating system chooses the tester's TCP segments.";
/// Begins of the sentences about a service of SDP, and about a capability of the target file.
const NO_SERVICE: &str = "The target has no service ";
const UNDECLARED: &str = "The target does not declare the capability ";
/// Sentences about a missing capability that follows from another field of the target file, each
/// with that field.
const MISSING: [(Capability, &str, &str); 4] = [
    (Capability::Agent, "The target has no agent.", "agent = \"HOST:PORT\""),
    (Capability::Echo, "No echo service runs on the target.", "service = \"echo\""),
    (Capability::Operation, "Neither echo nor rping runs on the target.", "service = \"echo\""),
    (Capability::Rping, "No rping runs on the target.", "service = \"rping\""),
];

/// Returns the sentence about a target that has another role than the case judges.
pub(crate) fn of_role(role: Role, judged: &[Role]) -> String {
    let judged: Vec<String> = judged.iter().map(ToString::to_string).collect();
    format!("{ROLE}{role}, but the case judges only targets with the role {}.", judged.join(" or "))
}

/// Returns the sentence about a target with a service that does not speak iWARP.
pub(crate) fn of_service(service: &str) -> String {
    format!("{SERVICE}{service}, but the case judges only iWARP.")
}

/// Returns the sentence about a capability that the target lacks. `advice` is the sentence about
/// what to change so that the tester chooses its TCP segments.
pub(crate) fn of_capability(missing: Capability, advice: &str) -> String {
    if let Some((_, sentence, _)) = MISSING.iter().find(|(capability, ..)| *capability == missing) {
        return (*sentence).to_owned();
    }
    match missing {
        Capability::Segments => format!("{SEGMENTS} {advice}"),
        of_sdp if of_sdp.is_of_sdp() => format!("{NO_SERVICE}{of_sdp}."),
        declared => format!("{UNDECLARED}{declared}."),
    }
}

/// What a target file needs so that a skipped case runs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Remedy {
    /// The case is about another kind of target: another role, or another protocol.
    OtherTarget,
    /// A line of the target file. The target must have this service or capability.
    Declare(String),
    /// No declaration is known. The sentence itself may have advice.
    Unknown,
}

/// Returns the remedy for a skipped case from the sentence in its result. `service` is the service
/// of the target.
pub(crate) fn remedy(sentence: &str, service: &str) -> Remedy {
    let capability = |begin: &str| {
        let name = sentence.strip_prefix(begin)?.strip_suffix('.')?;
        serde_json::from_value::<Capability>(name.into()).ok()
    };
    if sentence.starts_with(ROLE) || sentence.starts_with(SERVICE) {
        return Remedy::OtherTarget;
    }
    if let Some((.., line)) = MISSING.iter().find(|(_, known, _)| *known == sentence) {
        return Remedy::Declare((*line).to_owned());
    }
    match capability(NO_SERVICE).or_else(|| capability(UNDECLARED)) {
        Some(declared) if declared.is_declared() => Remedy::Declare(format!("capabilities = [\"{declared}\"]")),
        Some(_) if !service.starts_with("sdp") && service != "port-mapper" => Remedy::OtherTarget,
        Some(Capability::PortMapperV6) => Remedy::Declare("v6 in the table [portmap]".to_owned()),
        Some(service) => Remedy::Declare(format!("service = \"{service}\"")),
        None => Remedy::Unknown,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_sentence_leads_to_the_declaration_that_it_lacks() {
        for (capability, line) in [
            (Capability::Markers, "capabilities = [\"markers\"]"),
            (Capability::Revision2, "capabilities = [\"revision-2\"]"),
            (Capability::PmConnect, "capabilities = [\"pm-connect\"]"),
            (Capability::Agent, "agent = \"HOST:PORT\""),
            (Capability::Rping, "service = \"rping\""),
        ] {
            let sentence = of_capability(capability, "");
            assert_eq!(remedy(&sentence, "none"), Remedy::Declare(line.to_owned()), "{sentence}");
        }
        let sdp = of_capability(Capability::SdpDrive, "");
        assert_eq!(remedy(&sdp, "echo"), Remedy::OtherTarget);
        assert_eq!(remedy(&sdp, "sdp-echo"), Remedy::Declare("service = \"sdp-drive\"".to_owned()));
        let segments = of_capability(Capability::Segments, "Declare [wire] in the target file.");
        assert_eq!((remedy(&segments, "none"), segments.ends_with("target file.")), (Remedy::Unknown, true));
        for other in [of_role(Role::Initiator, &[Role::Responder]), of_service("sdp-echo")] {
            assert_eq!(remedy(&other, "sdp-echo"), Remedy::OtherTarget, "{other}");
        }
    }
}
