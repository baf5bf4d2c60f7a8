//! Reads the TOML file that describes a target: its fields ([`TargetFile`]) make sense together, or
//! the error says what does not.

use std::io::Read;
use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use weft_core::wire::mpa::startup::{ENHANCED_LEN, NOT_NEGOTIATED};
use weft_core::wire::sdp::FieldOrder;
use weft_peer::service::RpingServer;

use super::token::EnvironmentToken;
use super::{
    AgentField, LocalCommand, MapperTable, PRESETS, Preset, Service, Target, TargetError, TargetFile, TargetKind, start,
};
use crate::agent::{AgentAt, Way};
use crate::baseline::missing_fields;
use crate::correct::StartupFields;
use crate::model::{Role, Verdict};

/// Greatest target file that is read, in octets.
const MAX_FILE: u64 = 1 << 20;

impl Target {
    /// Reads a target file.
    ///
    /// # Errors
    /// It cannot be read, or its fields are wrong; the error says where.
    pub fn from_file(path: &Path) -> Result<Self, TargetError> {
        let file = path.display().to_string();
        let failed = |error| TargetError::Read { file: file.clone(), error };
        // What is no plain file, a device say, does not tell its length beforehand.
        let mut octets = Vec::new();
        std::fs::File::open(path).and_then(|file| file.take(MAX_FILE + 1).read_to_end(&mut octets)).map_err(failed)?;
        if octets.len() as u64 > MAX_FILE {
            return Err(failed(std::io::Error::other(format!("expected at most {MAX_FILE} octets"))));
        }
        let text = String::from_utf8(octets)
            .map_err(|error| failed(std::io::Error::new(std::io::ErrorKind::InvalidData, error)))?;
        Self::from_toml(&file, &text)
    }

    /// Reads the text of a target file; `file` names it in errors.
    ///
    /// # Errors
    /// Its fields are wrong.
    pub fn from_toml(file: &str, text: &str) -> Result<Self, TargetError> {
        let wrong = |message: String| TargetError::Sense { file: file.to_owned(), message };
        // Serde would name one missing field at a time.
        if let Some(missing) = toml::from_str(text).ok().and_then(|table| missing_fields(&table)) {
            return Err(wrong(missing));
        }
        let fields: TargetFile = toml::from_str(text).map_err(|error| wrong_toml(file, text, &error))?;
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
        let rping_size =
            fields.rping_size.unwrap_or(if fields.kind == TargetKind::Tcp { 64 } else { RpingServer::SIZE });
        if !(64..=RpingServer::SIZE).contains(&rping_size) {
            return Err(wrong(format!("rping_size = {rping_size}: expected 64 to {}", RpingServer::SIZE)));
        }
        let revision = fields.startup.revision.unwrap_or(1);
        let is_tcp = fields.kind == TargetKind::Tcp;
        let initiates = fields.role == Role::Initiator;
        if fields.role == Role::Both {
            return Err(wrong("role = \"both\": write a file for each role".into()));
        }
        if (is_tcp && !initiates) != fields.address.is_some() {
            return Err(wrong(
                "a responder of kind = \"tcp\" needs address = \"host:port\", and no other target has one".into(),
            ));
        }
        if (is_tcp && initiates) != fields.listen.is_some() {
            return Err(wrong(
                "an initiator of kind = \"tcp\" needs listen = \"address:port\", and no other target has one".into(),
            ));
        }
        if !fields.start.is_empty() && (fields.listen.is_none() || fields.start[0].is_empty()) {
            return Err(wrong("start: expected a command, and an initiator of kind = \"tcp\"".into()));
        }
        if let Some(slip) = start::wrong_placeholder(&fields.start, fields.service == Some(Service::PortMapper)) {
            return Err(wrong(slip));
        }
        let listen = match fields.listen.as_deref().map(str::parse) {
            Some(Err(_)) => {
                return Err(wrong(
                    "listen: expected an address of this machine and a port, as 192.0.2.2:7174 or [2001:db8::2]:0"
                        .into(),
                ));
            }
            Some(Ok(listen)) => Some(listen),
            None => None,
        };
        if let Some(address) = fields.address.as_deref().filter(|address| !is_host_and_port(address)) {
            return Err(wrong(format!(
                "address = {address:?}: expected host:port, as 192.0.2.17:7174, nic-17.example:7174 or [2001:db8::1]:7174"
            )));
        }
        if let Some(other) = fields.capabilities.iter().flatten().find(|capability| !capability.is_declared()) {
            return Err(wrong(format!(
                "capabilities: {other} follows from the service; declared are asks-for-markers, atomics, crc, markers, pm-connect, revision-1 and revision-2"
            )));
        }
        if let Some(entry) = fields.baseline.iter().find(|entry| entry.reason.trim().is_empty()) {
            return Err(wrong(format!("baseline: {}: expected a reason", entry.case)));
        }
        // With a signature it is a pass on whose way a requirement was broken.
        let alone =
            |entry: &&crate::baseline::BaselineEntry| entry.outcome == Verdict::Pass && entry.signature.is_empty();
        if let Some(entry) = fields.baseline.iter().find(alone) {
            return Err(wrong(format!("baseline: {}: a pass is as expected without an entry", entry.case)));
        }
        let command = |field: &str, words: &[String]| match words.split_first() {
            Some((program, _)) if program.is_empty() || !is_tcp => {
                Err(wrong(format!("{field}: expected a command, and kind = \"tcp\"")))
            }
            Some((program, arguments)) => {
                Ok(Some(LocalCommand { program: program.clone(), arguments: arguments.to_vec() }))
            }
            None => Ok(None),
        };
        let restart = command("restart", &fields.restart)?;
        let crashed = command("crashed", &fields.crashed)?;
        if fields.capture.as_ref().is_some_and(|interface| !is_tcp || interface.is_empty()) {
            return Err(wrong(
                "capture: expected an interface, and kind = \"tcp\": builtin targets have no wire".into(),
            ));
        }
        let agent = match fields.agent {
            None => None,
            Some(_) if !is_tcp => {
                return Err(wrong("agent: builtin targets have their own; kind = \"tcp\" takes one".into()));
            }
            Some(AgentField::Address(address)) if is_host_and_port(&address) => Some(Way::Tcp(address)),
            Some(AgentField::Command(words)) if words.first().is_some_and(|word| !word.is_empty()) => {
                Some(Way::Command(words))
            }
            Some(_) => return Err(wrong("agent: expected host:port, or a command as a list of words".into())),
        };
        let place = fields.agent_at;
        let agent = match (agent, fields.agent_token) {
            (None, _) => None,
            (Some(way), Some(token)) => {
                let token = Some(token).filter(|token| !token.is_empty());
                Some(AgentAt { way, place, token_in_file: token.is_some(), token })
            }
            (Some(way), None) => {
                let token = EnvironmentToken::read().for_agent(&way).map_err(wrong)?;
                Some(AgentAt { way, place, token, token_in_file: false })
            }
        };
        let enhanced = match &fields.startup.enhanced {
            Some(table) => {
                let words = table.words().ok_or_else(|| {
                    wrong(format!("startup.enhanced: expected ird and ord of at most {NOT_NEGOTIATED}"))
                })?;
                if revision != 2 {
                    return Err(wrong("startup.enhanced needs startup.revision = 2".into()));
                }
                Some(words)
            }
            None => None,
        };
        let own = Self::builtin();
        let (mapped, unmapped, mapper_v6) = match (fields.kind, fields.portmap.service) {
            (TargetKind::Tcp, Some(service)) => {
                let unmapped = fields.portmap.unmapped.unwrap_or(SocketAddr::new(service.ip(), 9));
                (service, unmapped, fields.portmap.v6.map(|[mapper, service]| (mapper, service)))
            }
            (TargetKind::Tcp, None) if fields.service == Some(Service::PortMapper) && !initiates => {
                return Err(wrong("portmap.service: expected address and port of a service that it maps".into()));
            }
            _ => (own.mapped, own.unmapped, own.mapper_v6.filter(|_| !is_tcp)),
        };
        if initiates && let Some(service) = fields.service.filter(|service| service.is_sdp()) {
            return Err(wrong(format!(
                "service = \"{}\" with role = \"initiator\": SDP is judged of a socket that accepts, with role = \"responder\" and its address; an \
                 initiator has \"echo\", \"rping\", \"port-mapper\" or \"none\"",
                service.as_str()
            )));
        }
        if initiates && fields.portmap != MapperTable::default() {
            return Err(wrong("portmap: an initiator asks for services of the tester's".into()));
        }
        let asks = initiates && fields.service == Some(Service::PortMapper);
        if asks && listen.is_some_and(|listen: SocketAddr| listen.ip().is_unspecified()) {
            return Err(wrong("listen: expected the address that port mapper and services have for the target".into()));
        }
        if is_tcp && matches!(fields.service, Some(Service::SdpConnect | Service::SdpDrive)) {
            return Err(wrong("service: sdp-connect and sdp-drive are the builtin targets' alone".into()));
        }
        let most = preset.private_data;
        let room = usize::from(most) - if enhanced.is_some() { ENHANCED_LEN } else { 0 };
        let private_data = hexadecimal(&fields.startup.private_data)
            .filter(|data| data.len() <= room)
            .ok_or_else(|| wrong(format!("startup.private_data: expected hexadecimal for at most {room} octets")))?;
        let target = Target {
            name: fields.name,
            kind: fields.kind,
            address: fields.address,
            role: fields.role,
            service: fields.service.unwrap_or(if is_tcp { Service::None } else { Service::Echo }),
            capabilities: fields.capabilities.unwrap_or_else(|| preset.capabilities.to_vec()),
            time_scale,
            request: StartupFields {
                revision,
                crc: fields.startup.crc.unwrap_or(true),
                enhanced,
                private_data,
                ..StartupFields::REQUEST
            },
            settle: Duration::from_millis(fields.startup.settle_ms.unwrap_or(preset.settle_ms).into()),
            rping_size,
            baseline: fields.baseline,
            restart,
            crashed,
            sdp_start: fields.sdp.start,
            sdp_order: if fields.sdp.mirrored { FieldOrder::Mirrored } else { FieldOrder::Figure },
            mapped,
            unmapped,
            mapper_v6,
            listen,
            start: fields.start,
            agent,
            capture: fields.capture,
            ..Self::builtin()
        };
        let names = fields.deviations.iter().map(String::as_str);
        target.with_deviations(names).map_err(|error| wrong(format!("deviations: {error}")))
    }
}

/// Whether there is such a host is found out when a run begins.
fn is_host_and_port(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match literal {
        Some(literal) => literal.split('%').next().is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok()),
        None => !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || matches!(c, ':' | '/' | '[' | ']')),
    };
    is_host && port.parse::<u16>().is_ok_and(|port| port != 0)
}

fn hexadecimal(text: &str) -> Option<Vec<u8>> {
    let digits: Vec<u32> =
        text.chars().filter(|c| !c.is_whitespace()).map(|c| c.to_digit(16)).collect::<Option<_>>()?;
    let octets = digits.chunks(2).map(|pair| match pair {
        [high, low] => u8::try_from(high << 4 | low).ok(),
        _ => None,
    });
    octets.collect()
}

/// What is wrong with the TOML of a file. Its values are not repeated where they may be a token.
fn wrong_toml(file: &str, text: &str, error: &toml::de::Error) -> TargetError {
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
    use super::*;
    use crate::model::Capability;

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
    fn an_initiator_says_where_it_comes_to_and_how() {
        let target = Target::from_toml("t.toml", INITIATOR).unwrap();
        assert_eq!(target.info().reached_by, "it connects to TCP 192.0.2.2:0");
        let text = format!("{INITIATOR}start = [\"rping\", \"-c\", \"-a\", \"{{address}}\"]\nservice = \"rping\"\n");
        let target = Target::from_toml("t.toml", &text).unwrap();
        assert_eq!(target.info().reached_by, "it connects to TCP 192.0.2.2:0, started by: rping -c -a {address}");
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
        assert_eq!((target.service, target.settle), (Service::None, Duration::from_millis(20)));
        assert_eq!(target.info().reached_by, "TCP 192.0.2.7:7174");
    }

    #[test]
    fn an_interface_is_captured_on() {
        let of = |more: &str| Target::from_toml("t.toml", &format!("{GOOD}{more}")).unwrap().capture;
        assert_eq!((of("capture = \"eth1\"\n"), of("")), (Some("eth1".into()), None));
    }

    #[test]
    fn startup_settings_reach_the_request() {
        let text = format!("{GOOD}[startup]\nrevision = 2\ncrc = false\nprivate_data = \"00 01 00 01\"\n");
        let request = Target::from_toml("t.toml", &text).unwrap().request;
        assert_eq!((request.revision, request.crc, request.private_data), (2, false, vec![0, 1, 0, 1]));
    }

    #[test]
    fn a_preset_gives_defaults_that_the_file_overrides() {
        let of = |more: &str| Target::from_toml("t.toml", &format!("{GOOD}{more}")).unwrap();
        let siw = of("preset = \"siw\"\n");
        assert_eq!((siw.settle, siw.capabilities.contains(&Capability::Revision2)), (Duration::from_millis(200), true));
        let other = of("preset = \"siw\"\ncapabilities = []\ntime_scale = 2.5\n[startup]\nsettle_ms = 1\n");
        assert_eq!((other.settle, other.capabilities.len(), other.time_scale), (Duration::from_millis(1), 0, 2.5));
        assert_eq!(of("").capabilities, []);
    }

    #[test]
    fn an_enhanced_request_asks_for_what_the_table_offers() {
        let text = format!("{GOOD}[startup]\nrevision = 2\nenhanced = {{ ord = 4, rtr = [\"write\", \"read\"] }}\n");
        let words = Target::from_toml("t.toml", &text).unwrap().request.enhanced.unwrap();
        assert_eq!((words.ird, words.ord, words.peer_to_peer), (1, 4, true));
        assert_eq!((words.rtr_send, words.rtr_write, words.rtr_read), (false, true, true));
    }

    #[test]
    fn names_and_literals_are_addresses() {
        for address in ["nic-17.example:1", "[2001:db8::1]:65535", "[fe80::1%eth0]:7174", "127.0.0.1:7174"] {
            assert!(is_host_and_port(address), "{address}");
        }
    }

    #[test]
    fn a_file_that_cannot_be_read_is_told_in_words() {
        let folder = tempfile::tempdir().unwrap();
        let told = |name: &str| Target::resolve(name).unwrap_err().to_string();
        assert_eq!(
            told("bulitin"),
            "bulitin: there is no such file, and no target of that name; did you mean builtin?"
        );
        assert!(
            told(&folder.path().display().to_string())
                .ends_with("is a directory; name a TOML file that describes a target")
        );
        // It has no length and no end.
        assert!(told("/dev/zero").ends_with("expected at most 1048576 octets"));
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
            (GOOD.replace("responder", "initiator"), "address"),
            (INITIATOR.replace("192.0.2.2:0", "nic:0"), "address of this machine"),
            (format!("{INITIATOR}start = [\"\"]"), "start"),
            (format!("{INITIATOR}[portmap]\nservice = \"192.0.2.2:1\""), "portmap"),
            (format!("{INITIATOR}service = \"port-mapper\"").replace("192.0.2.2:0", "0.0.0.0:0"), "listen"),
            (format!("{GOOD}capabilities = [\"crc\", \"echo\"]"), "echo follows from the service"),
            (format!("{GOOD}start = [\"rping\"]"), "start"),
            (format!("{GOOD}capture = \"\""), "capture"),
            ("name = \"b\"\nkind = \"builtin\"\ncapture = \"lo\"".into(), "capture"),
            (format!("{INITIATOR}service = \"sdp-echo\""), "\"echo\", \"rping\", \"port-mapper\" or \"none\""),
            ("name = \"b\"\nkind = \"builtin\"\nrole = \"initiator\"\nservice = \"sdp-connect\"".into(), "accepts"),
            (format!("{INITIATOR}start = [\"rping\", \"{{adress}}\"]"), "{adress} is no placeholder"),
        ] {
            let error = Target::from_toml("t.toml", &bad).unwrap_err().to_string();
            assert!(error.starts_with("t.toml: ") && error.contains(word), "{error}");
        }
        let error = Target::from_toml("t.toml", &GOOD.replace("role", "rolle")).unwrap_err().to_string();
        assert!(error.contains("line 4"), "{error}");
    }
}
