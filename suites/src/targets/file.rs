//! Reads the TOML file that describes a target, and checks that its fields ([`TargetFile`]) are
//! consistent. An error names the fault.

use std::io::Read;
use std::path::Path;
use std::time::Duration;

use weft_core::wire::mpa::startup::{ENHANCED_LEN, NOT_NEGOTIATED};
use weft_core::wire::sdp::FieldOrder;
use weft_peer::service::RpingServer;

use super::description::SdpFacts;
use super::options::UnstatedFields;
use super::{
    Description, DriverCommand, MapperTable, PRESETS, Preset, Service, Target, TargetError, TargetFile, TargetOptions,
};
use crate::baseline::{checked, missing_fields};
use crate::correct::StartupFields;
use crate::model::{Capability, Role, label_fault};

/// Maximum size of a target file in bytes.
const MAX_FILE: u64 = 1 << 20;

impl Target {
    /// Reads a target file.
    ///
    /// # Errors
    /// The file cannot be read, or its fields are wrong. The error names the field or the line.
    pub fn from_file(path: &Path) -> Result<Self, TargetError> {
        let file = path.display().to_string();
        let text = read_text(path, MAX_FILE)?;
        let mut target = Self::from_toml(&file, &text)?;
        target.options.file = Some(file);
        Ok(target)
    }

    /// Parses the text of a target file. `file` is the file name in errors.
    ///
    /// # Errors
    /// The text is not TOML, or its fields are wrong.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, TargetError> {
        let wrong = |message: String| TargetError::Sense { file: file.to_owned(), message };
        // Report all missing fields together. Serde would report only the first missing field.
        if let Some(missing) = toml::from_str(text).ok().and_then(|table| missing_fields(&table)) {
            return Err(wrong(missing));
        }
        let mut fields: TargetFile = toml::from_str(text).map_err(|error| wrong_toml(file, text, &error))?;
        fields.baseline = checked(fields.baseline).map_err(wrong)?;
        if !Self::is_name(&fields.name) {
            let expected = "expected letters, digits, '.', '_' and '-', and no '.' at the beginning";
            return Err(wrong(format!("name = {:?}: {expected}", fields.name)));
        }
        let preset = match &fields.preset {
            Some(name) => Preset::named(name).ok_or_else(|| {
                let known: Vec<&str> = PRESETS.iter().map(|preset| preset.name).collect();
                wrong(format!("preset = {name:?}: expected one of {}", known.join(", ")))
            })?,
            None => &Preset::NONE,
        };
        let time_scale = fields.time_scale.unwrap_or(preset.time_scale);
        if !(0.1..=1000.0).contains(&time_scale) {
            return Err(wrong(format!("time_scale = {time_scale}: expected 0.1 to 1000")));
        }
        if let Some(fault) = fields.limits.fault() {
            return Err(wrong(fault));
        }
        if let Some(fault) = fields.labels.iter().find_map(|(name, value)| label_fault(name, value)) {
            return Err(wrong(format!("labels: {fault}")));
        }
        let revision = fields.startup.revision.unwrap_or(1);
        let initiates = fields.role == Role::Initiator;
        if fields.role == Role::Both {
            return Err(wrong("role = \"both\": write a file for each role".into()));
        }
        let facts = (fields.kind.kind().read)(&fields).map_err(wrong)?;
        let rping_size = fields.rping_size.unwrap_or(facts.rping_size);
        if !(64..=RpingServer::SIZE).contains(&rping_size) {
            return Err(wrong(format!("rping_size = {rping_size}: expected 64 to {}", RpingServer::SIZE)));
        }
        if let Some(other) = fields.capabilities.iter().flatten().find(|capability| !capability.is_declared()) {
            let origin = if *other == Capability::Segments { "[wire]" } else { "the service" };
            return Err(wrong(format!(
                "capabilities: {other} follows from {origin}, so remove it from the list; valid entries are asks-for-markers, atomics, crc, markers, pm-connect, revision-1 and revision-2"
            )));
        }
        let enhanced = match &fields.startup.enhanced {
            Some(table) => {
                let words = table.words().ok_or_else(|| {
                    wrong(format!("startup.enhanced: expected `ird` and `ord` of at most {NOT_NEGOTIATED}"))
                })?;
                if revision != 2 {
                    return Err(wrong("startup.enhanced needs startup.revision = 2".into()));
                }
                Some(words)
            }
            None => None,
        };
        let is_connecting = fields.service == Some(Service::SdpConnect);
        // A builtin initiator has no address to listen on. weft selects its services by case.
        let is_reachable = is_connecting && fields.listen.is_some();
        if initiates
            && !is_reachable
            && let Some(service) = fields.service.filter(|service| service.is_sdp())
        {
            return Err(wrong(format!(
                "service = \"{}\" needs role = \"responder\" and an address, because weft connects to the SDP socket. \
                 For role = \"initiator\", set service to \"echo\", \"rping\", \"port-mapper\", \"sdp-connect\" or \"none\".",
                service.as_str()
            )));
        }
        let is_driven = matches!(fields.service, None | Some(Service::SdpDrive | Service::SdpConnect));
        if let Some(commands) = &fields.sdp.commands
            && (!is_driven || !commands.contains(&DriverCommand::Send))
        {
            return Err(wrong(
                "sdp.commands: the list needs service = \"sdp-drive\" or \"sdp-connect\", and contains at least \"send\""
                    .into(),
            ));
        }
        if is_connecting && !initiates {
            return Err(wrong("service = \"sdp-connect\" needs role = \"initiator\" and `listen`, because the SDP socket connects to weft".into()));
        }
        if initiates && fields.portmap != MapperTable::default() {
            return Err(wrong("portmap: an initiator queries the tester's port mapper; remove this table".into()));
        }
        let most = preset.private_data;
        let room = usize::from(most) - if enhanced.is_some() { ENHANCED_LEN } else { 0 };
        let private_data = hexadecimal(&fields.startup.private_data)
            .filter(|data| data.len() <= room)
            .ok_or_else(|| wrong(format!("startup.private_data: expected hexadecimal for at most {room} bytes")))?;
        let request = StartupFields {
            revision,
            crc: fields.startup.crc.unwrap_or(true),
            enhanced,
            private_data,
            ..StartupFields::REQUEST
        };
        let order = if fields.sdp.mirrored { FieldOrder::Mirrored } else { FieldOrder::Figure };
        let first_mseq = fields.sdp.first_mseq.unwrap_or(1);
        if first_mseq > 1 {
            return Err(wrong(format!("sdp.first_mseq: expected 0 or 1, found {first_mseq}")));
        }
        let unstated = unstated(&fields);
        let description = Description {
            name: fields.name,
            role: fields.role,
            service: fields.service.unwrap_or(facts.service),
            capabilities: fields.capabilities.unwrap_or_else(|| preset.capabilities.to_vec()),
            request,
            rping_size,
            commands: fields.sdp.commands,
            sdp: SdpFacts { start: fields.sdp.start, order, first_mseq },
            mapper: facts.mapper,
            baseline: fields.baseline,
            identity: fields.identity,
        };
        let options = TargetOptions {
            time_scale,
            settle_time: Duration::from_millis(fields.startup.settle_ms.unwrap_or(preset.settle_ms).into()),
            capture: fields.capture,
            own_limits: fields.limits,
            unstated,
            labels: fields.labels,
            ..TargetOptions::default()
        };
        let mut target = Target { description, access: facts.access, options };
        if let Some(directions) = fields.startup.markers {
            target.use_markers(directions).map_err(|error| wrong(format!("startup.markers: {error}")))?;
        }
        let names = fields.deviations.iter().map(String::as_str);
        target.with_deviations(names).map_err(|error| wrong(format!("deviations: {error}")))
    }
}

/// Returns the fields that the file lacks and that probes can find out.
fn unstated(fields: &TargetFile) -> UnstatedFields {
    let startup = &fields.startup;
    UnstatedFields {
        capabilities: fields.capabilities.is_none() && fields.preset.is_none(),
        service: fields.service.is_none(),
        request: startup.revision.is_none() && startup.crc.is_none() && startup.enhanced.is_none(),
    }
}

/// Reads a text file of at most `max` bytes.
pub(super) fn read_text(path: &Path, max: u64) -> Result<String, TargetError> {
    let failed = |error| TargetError::Read { file: path.display().to_string(), error };
    // The length of the file is not checked first, because a device file, for example, does not
    // report its length.
    let mut octets = Vec::new();
    std::fs::File::open(path).and_then(|file| file.take(max + 1).read_to_end(&mut octets)).map_err(failed)?;
    if octets.len() as u64 > max {
        return Err(failed(std::io::Error::other(format!("expected at most {max} bytes"))));
    }
    String::from_utf8(octets).map_err(|error| failed(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))
}

/// Converts hexadecimal digits to bytes. Ignores white space between digits.
pub(super) fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let octets = digits.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(high << 4 | low).ok(),
        _ => None,
    });
    octets.collect()
}

/// Converts a TOML error. If a value may be the agent's token, the message does not repeat the
/// value.
pub(super) fn wrong_toml(file: &str, text: &str, error: &toml::de::Error) -> TargetError {
    let mut message = error.message().trim_end().to_owned();
    let mut place = String::new();
    if let Some(span) = error.span()
        && let Some(before) = text.get(..span.start)
    {
        let line = before.rsplit('\n').next().unwrap_or_default();
        place = format!("line {}, column {}: ", before.matches('\n').count() + 1, line.chars().count() + 1);
        let value = text.get(span).unwrap_or_default().trim_matches(['"', '\'']);
        if line.contains("token") && !value.is_empty() {
            message = message.replace(value, "...");
        }
    }
    TargetError::Toml { file: file.to_owned(), place, message }
}

#[cfg(test)]
mod tests {
    use super::super::Service;
    use super::*;
    use crate::model::{Capability, CaseLimits, Tier};

    const GOOD: &str = "name = \"nic\"\nkind = \"tcp\"\naddress = \"192.0.2.7:7174\"\nrole = \"responder\"\n";

    const INITIATOR: &str = "name = \"nic\"\nkind = \"tcp\"\nrole = \"initiator\"\nlisten = \"192.0.2.2:0\"\n";

    #[test]
    fn a_mistake_does_not_show_the_token() {
        for (wrong, expected) in [
            ("agent_tokn = \"a-secret-of-ours\"", "nic.toml: line 4, column 1: unknown field `agent_tokn`, expected "),
            (
                "agent_token = 4711471147114711",
                "nic.toml: line 4, column 15: invalid type: integer `...`, expected a string",
            ),
            ("agent_token = \"a-secret-of-ours", "nic.toml: line 4, column "),
            ("agent_token = \"a-secret-of-ours\" x", "nic.toml: line 4, column "),
        ] {
            let text = format!("name = \"nic\"\nkind = \"tcp\"\naddress = \"192.0.2.7:7174\"\n{wrong}\n");
            let message = Target::from_toml("nic.toml", &text).unwrap_err().to_string();
            assert!(message.starts_with(expected), "{message}");
            assert!(!message.contains("secret") && !message.contains("4711"), "{message}");
        }
    }

    #[test]
    fn an_initiator_has_an_address_and_a_command() {
        let target = Target::from_toml("t.toml", INITIATOR).unwrap();
        assert_eq!(target.info().reached_by, "it connects to TCP 192.0.2.2:0");
        let text = format!("{INITIATOR}start = [\"rping\", \"-c\", \"-a\", \"{{address}}\"]\nservice = \"rping\"\n");
        let target = Target::from_toml("t.toml", &text).unwrap();
        assert_eq!(target.info().reached_by, "it connects to TCP 192.0.2.2:0; start command: rping -c -a {address}");
    }

    #[test]
    fn the_commands_of_a_file_are_known() {
        let commands = |text: String| Target::from_toml("t.toml", &text).unwrap().commands();
        let start = commands(format!("{INITIATOR}start = [\"rping\", \"-c\"]\nagent = [\"ssh\", \"nic\"]\n"));
        assert_eq!(start, [("start", "rping -c".into()), ("agent", "ssh nic".into())]);
        assert_eq!(commands(format!("{GOOD}restart = [\"power\", \"on\"]\n")), [("restart", "power on".into())]);
        assert_eq!(commands(format!("{GOOD}agent = \"192.0.2.7:7471\"\nagent_token = \"x\"\n")), []);
    }

    #[test]
    fn names_all_missing_fields_of_a_baseline_at_once() {
        let text = format!("{GOOD}[[baseline]]\ncase = \"mpa/x/one\"\n[[baseline]]\noutcome = \"fail\"\n");
        let error = Target::from_toml("t.toml", &text).unwrap_err().to_string();
        let lacks = "entry 1 (mpa/x/one) lacks outcome, signature, reason; entry 2 lacks case, signature, reason";
        assert_eq!(error, format!("t.toml: baseline: {lacks}"));
    }

    #[test]
    fn four_lines_are_a_target() {
        let target = Target::from_toml("t.toml", GOOD).unwrap();
        assert_eq!((target.service(), target.options.settle_time), (Service::None, Duration::from_millis(20)));
        assert_eq!(target.info().reached_by, "TCP 192.0.2.7:7174");
    }

    #[test]
    fn an_interface_is_captured_on() {
        let of = |more: &str| Target::from_toml("t.toml", &format!("{GOOD}{more}")).unwrap().options.capture;
        assert_eq!((of("capture = \"eth1\"\n"), of("")), (Some("eth1".into()), None));
    }

    #[test]
    fn the_testers_own_tcp_is_described() {
        let text = format!("{GOOD}[wire]\ninterface = \"eth1\"\naddress = \"192.0.2.9/24\"\n");
        let target = Target::from_toml("t.toml", &text).unwrap();
        assert_eq!(target.info().reached_by, "TCP 192.0.2.7:7174, with the tester's own TCP at 192.0.2.9 on eth1");
        assert!(target.segments_advice().is_none() && !target.is_on_this_machine());
    }

    /// Only a target file of a responder can have the table `[wire]`.
    #[test]
    fn only_a_responder_is_advised_to_use_the_testers_own_tcp() {
        let advice = |text: &str| Target::from_toml("t.toml", text).unwrap().segments_advice().unwrap();
        assert!(advice(GOOD).contains("[wire]"));
        for text in [INITIATOR, "name = \"b\"\nkind = \"builtin-tcp\"\n"] {
            assert!(!advice(text).contains("[wire]"), "{text}");
        }
    }

    #[test]
    fn the_limits_of_a_file_replace_those_of_the_tier() {
        let of = |more: &str, tier: Tier| {
            let mut options = Target::from_toml("t.toml", &format!("{GOOD}{more}")).unwrap().options;
            options.use_limits_of(tier);
            options.limits
        };
        assert_eq!(of("", Tier::Full), Tier::Full.limits());
        let table = "[limits]\nsteps = 1000\nsent_mib = 2\nevidence_mib = 3\nseconds = 60\n";
        let usual = Tier::Full.limits();
        let limits = CaseLimits { steps: 1000, sent: 2 << 20, traffic: 3 << 20, seconds: Some(60), ..usual };
        assert_eq!(of(table, Tier::Full), limits);
    }

    #[test]
    fn startup_settings_reach_the_request() {
        let text = format!("{GOOD}[startup]\nrevision = 2\ncrc = false\nprivate_data = \"00 01 00 01\"\n");
        let request = Target::from_toml("t.toml", &text).unwrap().description.request;
        assert_eq!((request.revision, request.crc, request.private_data), (2, false, vec![0, 1, 0, 1]));
    }

    #[test]
    fn a_preset_gives_defaults_that_the_file_overrides() {
        let of = |more: &str| Target::from_toml("t.toml", &format!("{GOOD}{more}")).unwrap();
        let siw = of("preset = \"siw\"\n");
        assert_eq!(
            (siw.options.settle_time, siw.capabilities().contains(&Capability::Revision2)),
            (Duration::from_millis(200), true)
        );
        let other = of("preset = \"siw\"\ncapabilities = []\ntime_scale = 2.5\n[startup]\nsettle_ms = 1\n");
        assert_eq!(
            (other.options.settle_time, other.capabilities().len(), other.options.time_scale),
            (Duration::from_millis(1), 0, 2.5)
        );
        assert_eq!(of("").capabilities(), []);
    }

    #[test]
    fn an_enhanced_request_asks_for_what_the_table_offers() {
        let text = format!("{GOOD}[startup]\nrevision = 2\nenhanced = {{ ord = 4, rtr = [\"write\", \"read\"] }}\n");
        let words = Target::from_toml("t.toml", &text).unwrap().description.request.enhanced.unwrap();
        assert_eq!((words.ird, words.ord, words.peer_to_peer), (1, 4, true));
        assert_eq!((words.rtr_send, words.rtr_write, words.rtr_read), (false, true, true));
    }

    #[test]
    fn explains_why_a_file_cannot_be_read() {
        let folder = tempfile::tempdir().unwrap();
        let message = |name: &str| Target::resolve(name).unwrap_err().to_string();
        assert_eq!(
            message("bulitin"),
            "bulitin: there is no such file, and no target of that name; did you mean builtin?"
        );
        let address = message("192.0.2.7:7174");
        let (_, example) = address.split_once("nic.toml:\n\n").unwrap();
        let (example, check) = example.split_once("\n\n").unwrap();
        let target = Target::from_toml("nic.toml", example).unwrap();
        assert_eq!((target.service(), &*target.info().reached_by), (Service::Echo, "TCP 192.0.2.7:7174"));
        assert!(check.ends_with("weft target check nic.toml"), "{check}");
        assert!(
            message(&folder.path().display().to_string())
                .ends_with("is a directory; name a TOML file that describes a target")
        );
        // The file has no length and no end.
        assert!(message("/dev/zero").ends_with("expected at most 1048576 bytes"));
    }

    #[test]
    fn each_mistake_is_refused_by_name() {
        for (bad, word) in [
            (GOOD.replace("role", "rolle"), "rolle"),
            (GOOD.replace("\"tcp\"", "\"udp\""), "udp"),
            (GOOD.replace("address = \"192.0.2.7:7174\"", ""), "address"),
            (GOOD.replace("\"nic\"", "\"../nic\""), "name"),
            (GOOD.replace("\"nic\"", "\"..\""), "name = \"..\""),
            (GOOD.replace("\"nic\"", "\".\""), "name = \".\""),
            (GOOD.replace("\"nic\"", "\".nic\""), "no '.' at the beginning"),
            (GOOD.replace("192.0.2.7:7174", "192.0.2.7"), "address = \"192.0.2.7\": expected host:port"),
            (GOOD.replace("192.0.2.7:7174", "192.0.2.7:99999"), "expected host:port"),
            (GOOD.replace("192.0.2.7:7174", "192.0.2.7:0"), "expected host:port"),
            (GOOD.replace("192.0.2.7:7174", "2001:db8::1:7174"), "[2001:db8::1]:7174"),
            (GOOD.replace("192.0.2.7:7174", ""), "expected host:port"),
            (format!("{GOOD}preset = \"swi\""), "siw, cxgb4"),
            (format!("{GOOD}preset = \"siw\"\n[startup]\nprivate_data = \"{}\"", "00".repeat(257)), "256"),
            (format!("{GOOD}time_scale = 0.0"), "time_scale"),
            (format!("{GOOD}[limits]\nsteps = 99"), "limits.steps = 99: expected 100 to 1000000"),
            (format!("{GOOD}[limits]\nsent_mib = 1024"), "limits.sent_mib"),
            (format!("{GOOD}[limits]\nseconds = 0"), "limits.seconds"),
            (format!("{GOOD}[limits]\nminutes = 1"), "minutes"),
            (format!("{GOOD}deviations = [\"mpa.accepts-wrong-key\"]"), "builtin"),
            (format!("{GOOD}[startup]\nprivate_data = \"0\""), "private_data"),
            (format!("{GOOD}[startup.enhanced]\nird = 1"), "revision = 2"),
            (format!("{GOOD}[startup]\nrevision = 2\nenhanced = {{ ird = 16384 }}"), "16383"),
            (format!("{GOOD}[startup]\nrevision = 2\nenhanced = {{ rtr = [\"red\"] }}"), "red"),
            ("name = \"b\"\nkind = \"builtin\"\ndeviations = [\"mpa.none\"]".into(), "mpa.none"),
            (format!("{GOOD}restart = [\"\"]"), "restart"),
            ("name = \"b\"\nkind = \"builtin\"\nrestart = [\"true\"]".into(), "restart"),
            (format!("{GOOD}crashed = [\"\"]"), "crashed"),
            ("name = \"b\"\nkind = \"builtin\"\nlisten = \"192.0.2.2:0\"".into(), "listen"),
            (GOOD.replace("responder", "both"), "each role"),
            (GOOD.replace("responder", "initiator"), "needs listen = \"IP:port\", the address of this machine"),
            (GOOD.replace("responder", "initiator"), "; remove `address`"),
            (format!("{GOOD}listen = \"192.0.2.2:0\""), "; remove `listen`"),
            (INITIATOR.replace("listen = \"192.0.2.2:0\"\n", ""), "needs listen"),
            (INITIATOR.replace("192.0.2.2:0", "nic:0"), "address of this machine"),
            (format!("{INITIATOR}start = [\"\"]"), "start"),
            (format!("{INITIATOR}[portmap]\nservice = \"192.0.2.2:1\""), "portmap"),
            (format!("{INITIATOR}service = \"port-mapper\"").replace("192.0.2.2:0", "0.0.0.0:0"), "listen"),
            (format!("{GOOD}capabilities = [\"crc\", \"echo\"]"), "echo follows from the service"),
            (format!("{GOOD}capabilities = [\"segments\"]"), "segments follows from [wire]"),
            (format!("{GOOD}start = [\"rping\"]"), "start"),
            (format!("{GOOD}capture = \"\""), "capture"),
            (format!("{GOOD}[labels]\n\"my lab\" = \"3\""), "labels: \"my lab\": expected a name"),
            (format!("{GOOD}[labels]\nlab = \"\""), "labels: lab: expected a value"),
            ("name = \"b\"\nkind = \"builtin\"\ncapture = \"lo\"".into(), "capture"),
            (format!("{GOOD}[wire]\ninterface = \"eth1\""), "address"),
            (format!("{GOOD}[wire]\ninterface = \"lo\"\naddress = \"192.0.2.9/24\""), "loopback"),
            (format!("{GOOD}[wire]\ninterface = \"eth1\"\naddress = \"192.0.2.9\""), "192.0.2.9/24"),
            (
                format!("{GOOD}[wire]\ninterface = \"eth1\"\naddress = \"192.0.2.9/24\"\ngateway = \"192.0.3.1\""),
                "not in the subnet",
            ),
            (format!("{INITIATOR}[wire]\ninterface = \"eth1\"\naddress = \"192.0.2.9/24\""), "only connects"),
            (
                "name = \"b\"\nkind = \"builtin\"\n[wire]\ninterface = \"eth1\"\naddress = \"192.0.2.9/24\"".into(),
                "wire",
            ),
            (format!("{GOOD}service = \"sdp-connect\""), "needs role = \"initiator\""),
            (format!("{GOOD}[sdp]\ncommands = [\"juggle\"]"), "juggle"),
            (format!("{GOOD}service = \"sdp-drive\"\n[sdp]\ncommands = [\"wait\"]"), "at least \"send\""),
            (format!("{GOOD}service = \"sdp-echo\"\n[sdp]\ncommands = [\"send\"]"), "\"sdp-drive\" or"),
            (format!("{INITIATOR}service = \"sdp-echo\""), "needs role = \"responder\""),
            (
                "name = \"b\"\nkind = \"builtin\"\nrole = \"initiator\"\nservice = \"sdp-connect\"".into(),
                "weft connects to the SDP socket",
            ),
            (format!("{INITIATOR}start = [\"rping\", \"{{adress}}\"]"), "{adress} is not a placeholder"),
        ] {
            let error = Target::from_toml("t.toml", &bad).unwrap_err().to_string();
            assert!(error.starts_with("t.toml: ") && error.contains(word), "{error}");
        }
        let error = Target::from_toml("t.toml", &GOOD.replace("role", "rolle")).unwrap_err().to_string();
        assert!(error.contains("line 4"), "{error}");
    }
}
