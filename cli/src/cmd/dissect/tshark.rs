//! Options of tshark that only `weft dissect` has: -t, -N, -z, -d, -o and others.
//!
//! weft accepts an option without effect only if the option cannot change the meaning of weft's
//! output. Otherwise, weft reports an error with the remedy, or a note.

use std::path::PathBuf;

use weft_dissector::Dissector;
use weft_dissector::filter::{TimeForm, TimeFormat, WantedFields};
use weft_dissector::source::Names;

use super::style::LineStyle;
use crate::exit::{BadInput, note, reject};
use crate::input::Input;

/// The heading of these options.
const HEADING: &str = "As in tshark";

/// The protocols that weft always decodes.
const OWN_PROTOCOLS: [&str; 11] =
    ["frame", "eth", "vlan", "ip", "ipv6", "tcp", "udp", "iwarp_mpa", "iwarp_ddp_rdmap", "iwarp_sdp", "iwarp_pm"];

/// The letters of -N in tshark.
const NAME_LETTERS: &str = "dgmnNstv";

/// Preferences that weft always has. They have the value TRUE.
const FIXED_PREFERENCES: [&str; 5] = [
    "ip.defragment",
    "ipv6.defragment",
    "tcp.analyze_sequence_numbers",
    "tcp.desegment_tcp_streams",
    "tcp.reassemble_out_of_order",
];

/// Options of tshark that select protocols like `--enable-protocol`.
const ENABLING: [&str; 2] = ["enable-heuristic", "disable-heuristic"];

#[derive(Debug, clap::Args)]
pub(super) struct TsharkArguments {
    /// Print times as a, ad, adoy, d, dd, e, r (default), u, ud or udoy
    ///
    /// r is seconds since the first frame, d since the previous frame, dd since the previous
    /// printed frame (with -T), and e since 1970. u is the time of day, ud has the date, and udoy
    /// has the day of the year, all in UTC. a, ad and adoy are the same, because weft prints no
    /// local times. A number of decimals can follow, such as ud.3. Otherwise, the time has the
    /// decimals of the capture. -t has no effect on fields other than _ws.col.Time.
    #[arg(short = 't', value_name = "FORM", help_heading = HEADING)]
    time: Option<TimeFormat>,
    /// Print names instead of addresses; use -N n
    ///
    /// weft has the names of -H and the names in a pcapng capture. It sends no DNS requests. Fields
    /// such as ip.src still show addresses.
    #[arg(short = 'N', value_name = "LETTERS", value_parser = name_letters, help_heading = HEADING)]
    names: Option<String>,
    /// Read the names of addresses from this hosts file (with -N n)
    #[arg(short = 'H', value_name = "FILE", requires = "names", help_heading = HEADING)]
    hosts: Option<PathBuf>,
    /// Print a statistic after the frames, such as conv,tcp or io,stat,1; repeatable
    ///
    /// The statistics are conv,TYPE with the types tcp, udp, ip and ipv6, and io,stat,INTERVAL. A
    /// display filter can follow (conv,tcp,FILTER), and several after an INTERVAL. INTERVAL is in
    /// seconds; 0 is one interval for all frames.
    /// FUNCTION(FIELD)FILTER calculates with a field; the functions are COUNT, SUM, MIN, MAX and
    /// AVG. With -q, weft prints only the statistics. -Y does not change a statistic. An io,stat
    /// has at most 1,000,000 cells (intervals with frames, times columns).
    #[arg(short = 'z', value_name = "STATISTIC", help_heading = HEADING)]
    pub(super) statistics: Vec<String>,
    /// Ignore frames that do not pass this display filter (with -2)
    #[arg(short = 'R', long = "read-filter", value_name = "FILTER", requires = "two_passes", help_heading = HEADING)]
    pub(super) read_filter: Option<String>,
    /// Decode a port as SDP: tcp.port==PORT,sdp (same as --decode-as)
    ///
    /// weft detects MPA, DDP and RDMAP on any port.
    #[arg(short = 'd', value_name = "RULE", value_parser = decode_rule, help_heading = HEADING)]
    decode: Vec<DecodeRule>,
    /// Set a preference: tcp.relative_sequence_numbers:FALSE
    #[arg(short = 'o', value_name = "NAME:VALUE", value_parser = preference, help_heading = HEADING)]
    preferences: Vec<Preference>,
    /// Print only errors, and the statistics of -z
    #[arg(short = 'Q', help_heading = HEADING)]
    pub(super) errors_only: bool,
    /// Does nothing: weft needs no second pass.
    #[arg(short = '2', id = "two_passes", hide = true, action = clap::ArgAction::Count)]
    _two_passes: u8,
    /// Does nothing if weft does not decode the protocol.
    #[arg(long = "disable-protocol", value_name = "NAME", value_parser = disabled_protocol, hide = true)]
    _disabled: Vec<String>,
    /// Does nothing: no protocol is disabled.
    #[arg(long = "enable-protocol", aliases = ENABLING, value_name = "NAME", hide = true)]
    _enabled: Vec<String>,
    /// Does nothing: weft never repeats a key.
    #[arg(long = "no-duplicate-keys", hide = true)]
    _no_duplicate_keys: bool,
    /// Does nothing: seconds have no other form.
    #[arg(short = 'u', value_name = "s", value_parser = ["s"], hide = true)]
    _seconds: Option<String>,
    /// Does nothing: -w copies the names of a pcapng capture.
    #[arg(short = 'W', value_name = "n", value_parser = ["n"], hide = true)]
    _written_names: Option<String>,
    /// Does nothing: -w writes pcapng.
    #[arg(short = 'F', value_name = "pcapng", value_parser = written_format, hide = true)]
    _written_format: Option<String>,
    /// Does nothing: weft has its own log.
    #[arg(long = "log-level", aliases = ["log-domain", "log-domains", "temp-dir"], value_name = "VALUE", hide = true)]
    _log: Vec<String>,
}

impl TsharkArguments {
    /// Returns whether the form of times needs an output with a line for each frame.
    pub(super) fn counts_from_printed_frames(&self) -> bool {
        self.time.is_some_and(|time| time.form == TimeForm::DeltaDisplayed)
    }

    /// Returns whether -t has a value.
    pub(super) fn has_time(&self) -> bool {
        self.time.is_some()
    }

    /// Prints notes about options without effect.
    pub(super) fn note_ignored(&self) {
        let letters = self.names.as_deref().unwrap_or_default();
        let ignored: String = letters.chars().filter(|letter| *letter != 'n').collect();
        if !ignored.is_empty() {
            note(&format!("-N: weft names only addresses of IP (n); {ignored} has no effect"));
        }
        self.decode.iter().filter_map(|rule| rule.remark.as_ref()).for_each(|remark| note(remark));
    }

    /// Sets the options of fields.
    pub(super) fn apply(&self, wanted: &mut WantedFields) {
        // As in tshark, the column has the decimals of the capture even without -t.
        wanted.set_time_format(self.time.unwrap_or(TimeFormat { decimals: None, ..TimeFormat::default() }));
        if self.preferences.contains(&Preference::AbsoluteSequenceNumbers) {
            wanted.set_absolute_sequence_numbers();
        }
    }

    /// Applies -d to a dissector.
    pub(super) fn decode(&self, mut dissector: Dissector) -> Dissector {
        let ports = self.decode.iter().flat_map(|rule| rule.sdp_ports.clone());
        ports.for_each(|port| dissector.decode_as_sdp(port));
        dissector
    }

    /// The form of times and addresses in text. Reads the file of -H.
    pub(super) fn style(&self, input: &Input) -> Result<LineStyle, BadInput> {
        let (time, resolution) = (self.time.unwrap_or_default(), input.time_resolution());
        Ok(LineStyle { time, names: self.read_names(input)?, resolution })
    }

    fn read_names(&self, input: &Input) -> Result<Option<Names>, BadInput> {
        if !self.names.as_deref().is_some_and(|letters| letters.contains('n')) {
            return Ok(None);
        }
        let names = input.names();
        if let Some(path) = &self.hosts {
            let shown = path.display();
            let text = std::fs::read_to_string(path).map_err(|error| BadInput(format!("-H {shown}: {error}")))?;
            if let Err(line) = names.add_hosts(&text) {
                reject!("-H {shown}: line {line} has no IP address with a name, such as: 10.0.0.1 server");
            }
        }
        Ok(Some(names))
    }
}

/// A rule of -d.
#[derive(Debug, Clone)]
struct DecodeRule {
    /// The TCP ports to read as SDP.
    sdp_ports: Vec<u16>,
    /// Why the rule has no effect.
    remark: Option<String>,
}

/// Reads `LAYER==PORT,PROTOCOL`. As in tshark, a range is `PORT-PORT` or `PORT:COUNT`.
fn decode_rule(text: &str) -> Result<DecodeRule, String> {
    let usage = || "use tcp.port==PORT,sdp, such as tcp.port==5001,sdp".to_owned();
    let (layer, rest) = text.split_once("==").ok_or_else(usage)?;
    let (selector, protocol) = rest.split_once(',').ok_or_else(usage)?;
    let remark = match (layer, protocol) {
        ("tcp.port", "sdp" | "iwarp_sdp") => None,
        (_, mpa) if mpa.contains("mpa") || mpa.contains("iwarp") => {
            Some(format!("-d {text}: weft detects MPA, DDP and RDMAP on any port, so this option has no effect"))
        }
        (_, other) => Some(format!("-d {text}: weft does not decode {other}, so this option has no effect")),
    };
    if remark.is_some() {
        return Ok(DecodeRule { sdp_ports: Vec::new(), remark });
    }
    let sdp_ports = ports(selector).filter(|ports| !ports.is_empty()).ok_or_else(usage)?;
    Ok(DecodeRule { sdp_ports, remark })
}

/// Reads `PORT`, `PORT-PORT` or `PORT:COUNT`.
fn ports(text: &str) -> Option<Vec<u16>> {
    if let Some((first, last)) = text.split_once('-') {
        return Some((first.parse::<u16>().ok()?..=last.parse().ok()?).collect());
    }
    let (first, count) = text.split_once(':').unwrap_or((text, "1"));
    let (first, count): (u16, u16) = (first.parse().ok()?, count.parse().ok()?);
    Some((first..=first.checked_add(count.checked_sub(1)?)?).collect())
}

/// A preference of -o.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Preference {
    AbsoluteSequenceNumbers,
    /// A preference that changes nothing.
    Ignored,
}

/// Reads `NAME:VALUE`.
fn preference(text: &str) -> Result<Preference, String> {
    let (name, value) = text.split_once(':').ok_or("use NAME:VALUE, such as tcp.relative_sequence_numbers:FALSE")?;
    let value = value.trim().to_ascii_uppercase();
    match (name, value.as_str()) {
        ("tcp.relative_sequence_numbers", "FALSE") => Ok(Preference::AbsoluteSequenceNumbers),
        ("tcp.relative_sequence_numbers", "TRUE") => Ok(Preference::Ignored),
        (name, "TRUE") if FIXED_PREFERENCES.contains(&name) => Ok(Preference::Ignored),
        // No field of weft shows whether the checksum of IP or TCP is right.
        (name, "TRUE" | "FALSE") if name.ends_with(".check_checksum") => Ok(Preference::Ignored),
        _ => Err(format!("weft cannot set {name} to {value}; it has tcp.relative_sequence_numbers:FALSE")),
    }
}

/// Checks the letters of -N.
fn name_letters(text: &str) -> Result<String, String> {
    if text.contains(['N', 'g']) {
        return Err("weft sends no DNS requests and knows no locations; use -N n, and -H FILE for names".to_owned());
    }
    match text.chars().find(|letter| !NAME_LETTERS.contains(*letter)) {
        Some(letter) => Err(format!("{letter} is not a letter of -N; use -N n")),
        None => Ok(text.to_owned()),
    }
}

/// Checks the name of `--disable-protocol`.
fn disabled_protocol(name: &str) -> Result<String, String> {
    if OWN_PROTOCOLS.contains(&name) {
        return Err("weft always decodes this protocol; to omit its frames, use -Y".to_owned());
    }
    Ok(name.to_owned())
}

/// Checks the format of `-F`.
fn written_format(name: &str) -> Result<String, String> {
    if name == "pcapng" {
        return Ok(name.to_owned());
    }
    Err(format!("-w writes pcapng; to convert the file for older programs: editcap -F {name} OUT OUT.{name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decode_rules_name_ports_for_sdp() {
        for (rule, expected) in [
            ("tcp.port==5001,sdp", vec![5001]),
            ("tcp.port==5001-5003,iwarp_sdp", vec![5001, 5002, 5003]),
            ("tcp.port==5001:2,sdp", vec![5001, 5002]),
        ] {
            let rule = decode_rule(rule).unwrap();
            assert_eq!((rule.sdp_ports, rule.remark), (expected, None));
        }
        let without_effect = [("tcp.port==7174,iwarp_mpa", "on any port"), ("udp.port==53,dns", "does not decode dns")];
        for (rule, expected) in without_effect {
            let remark = decode_rule(rule).unwrap().remark.unwrap();
            assert!(remark.contains(expected), "{remark}");
        }
        for wrong in ["=1,sdp", "==1", "==x,sdp", "==65535:2,sdp", "==1:0,sdp", "==5-4,sdp"] {
            assert!(decode_rule(&format!("tcp.port{wrong}")).is_err(), "{wrong}");
        }
    }

    #[test]
    fn preferences_that_change_the_meaning_are_refused() {
        assert_eq!(preference("tcp.relative_sequence_numbers:false"), Ok(Preference::AbsoluteSequenceNumbers));
        for harmless in ["tcp.relative_sequence_numbers:TRUE", "ip.defragment:TRUE", "tcp.check_checksum:FALSE"] {
            assert_eq!(preference(harmless), Ok(Preference::Ignored), "{harmless}");
        }
        for wrong in ["ip.defragment:FALSE", "gui.column.format:x", "tcp.relative_sequence_numbers", "x:y"] {
            assert!(preference(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn names_need_no_network() {
        assert_eq!([name_letters("n"), name_letters("mnt")], [Ok("n".to_owned()), Ok("mnt".to_owned())]);
        assert!(["N", "nN", "g", "x"].into_iter().all(|letters| name_letters(letters).is_err()));
    }
}
