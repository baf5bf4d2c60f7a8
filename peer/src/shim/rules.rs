//! The rules file. It contains the destinations and services that use SDP, and the fall-back if the
//! agent does not answer.
//!
//! ```text
//! # the agent's socket
//! agent /run/weft/sdp.sock
//! # without an agent: `closed` (connections that need SDP fail) or `open` (plain TCP)
//! unreachable closed
//! # the first matching rule applies
//! connect 192.0.2.17:22 tcp
//! connect 192.0.2.0/24:80-89 sdp 7080-7089
//! connect *:6379 sdp 192.0.2.9:7379
//! connect *:11211 both 7211
//! connect [fd00::/16]:* pm
//! connect *:5201 pm 192.0.2.1:3935 sdp-only
//! listen *:80 sdp 7080 for nginx*
//! listen 127.0.0.1:6379 sdp 192.0.2.9:7379
//! listen *:* sdp auto
//! ```

use core::net::{IpAddr, SocketAddr};
use core::ops::RangeInclusive;

use weft_core::wire::portmap::UDP_PORT;

use crate::reject::reject_if;

/// Maximum number of rules for one program.
const MAX_RULES: usize = 4096;
/// Maximum number of lines in the file.
const MAX_LINES: usize = 65_536;

/// A set of addresses and ports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pattern {
    /// A network, and the length of its prefix in bits. `None` matches all addresses of both
    /// families.
    net: Option<(IpAddr, u32)>,
    ports: RangeInclusive<u16>,
}

/// How to reach a service.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Route {
    /// By SDP at this address.
    Sdp(SocketAddr),
    /// By SDP at this address, or by plain TCP if SDP fails.
    Both(SocketAddr),
    /// By SDP at the address that a port mapper returns.
    Mapper {
        /// Address of the port mapper.
        mapper: SocketAddr,
        /// Selects the effect if the port mapper knows no SDP Address. True: the connection fails.
        /// False: the connection uses plain TCP.
        sdp_only: bool,
    },
}

/// What the shim does if the agent does not answer (the fall-back).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum Unreachable {
    /// The socket call of the program fails.
    #[default]
    Closed,
    /// The call has the same effect as without rules.
    Open,
}

/// The content of a rules file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rules {
    /// Path of the agent's Unix socket.
    pub agent: String,
    /// The fall-back if the agent does not answer.
    pub unreachable: Unreachable,
    connect: Vec<(Pattern, Connect)>,
    listen: Vec<(Pattern, SdpDestination)>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Connect {
    Sdp(SdpDestination),
    Both(SdpDestination),
    Mapper { mapper: Option<SocketAddr>, sdp_only: bool },
    Tcp,
}

/// The address on which SDP listens: a port of the service's host, or another address.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SdpDestination {
    Port(u16),
    At(SocketAddr),
    /// A port of the service's host. The number of this port is `to` plus the difference between
    /// the service's port and `from`.
    Range {
        from: u16,
        to: u16,
    },
    /// A free port that the agent picks and announces through the port mapper.
    Auto,
}

/// What is wrong with a rules file.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuleError {
    /// An invalid line.
    #[error("line {line}: {what}")]
    Line {
        /// Number of the line, from 1.
        line: usize,
        /// What is wrong with the line.
        what: &'static str,
    },
    /// The file names no agent.
    #[error("the rules file names no agent; add a line `agent PATH` with the Unix socket of `weft sdp agent`")]
    NoAgent,
}

impl Rules {
    /// Parses the text of a rules file, and keeps the rules that apply to `program`. A rule that
    /// ends in `for NAME` applies only to programs with this name. In NAME, `*` matches any
    /// characters.
    ///
    /// # Errors
    /// The first invalid line.
    pub fn parse(text: &str, program: &str) -> Result<Self, RuleError> {
        let mut agent = None;
        let mut rules =
            Rules { agent: String::new(), unreachable: Unreachable::Closed, connect: Vec::new(), listen: Vec::new() };
        for (index, line) in text.lines().enumerate() {
            let words: Vec<&str> = line.split('#').next().unwrap_or_default().split_ascii_whitespace().collect();
            let wrong = |what| RuleError::Line { line: index + 1, what };
            if index >= MAX_LINES || rules.connect.len() + rules.listen.len() >= MAX_RULES {
                return Err(wrong("the file has too many lines or rules"));
            }
            let (words, is_meant) = match words.as_slice() {
                [rule @ .., "for", name] => (rule, is_like(name, program)),
                rule => (rule, true),
            };
            match words {
                [] => {}
                ["agent", path] => agent = Some((*path).to_owned()),
                ["unreachable", "open"] => rules.unreachable = Unreachable::Open,
                ["unreachable", "closed"] => rules.unreachable = Unreachable::Closed,
                ["connect", pattern, how @ ..] => {
                    let pattern = Pattern::parse(pattern).map_err(wrong)?;
                    let how = connect(how, &pattern.ports).map_err(wrong)?;
                    if is_meant {
                        rules.connect.push((pattern, how));
                    }
                }
                ["listen", pattern, "sdp", at] => {
                    let pattern = Pattern::parse(pattern).map_err(wrong)?;
                    let at = match *at {
                        "auto" => SdpDestination::Auto,
                        at => SdpDestination::parse(at, &pattern.ports).map_err(wrong)?,
                    };
                    if is_meant {
                        rules.listen.push((pattern, at));
                    }
                }
                _ => {
                    return Err(wrong(
                        "begin a line with `agent`, `unreachable`, `connect` or `listen`, and add the arguments",
                    ));
                }
            }
        }
        rules.agent = agent.ok_or(RuleError::NoAgent)?;
        Ok(rules)
    }

    /// Returns how to reach this service. `None` means plain TCP, as without rules.
    #[must_use]
    pub fn connect(&self, service: SocketAddr) -> Option<Route> {
        let service = canonical(service);
        let (_, how) = self.connect.iter().find(|(pattern, _)| pattern.fits(service))?;
        match how {
            Connect::Tcp => None,
            Connect::Sdp(at) => Some(Route::Sdp(at.of(service))),
            Connect::Both(at) => Some(Route::Both(at.of(service))),
            Connect::Mapper { mapper, sdp_only } => {
                let mapper = mapper.unwrap_or(SocketAddr::new(service.ip(), UDP_PORT));
                Some(Route::Mapper { mapper, sdp_only: *sdp_only })
            }
        }
    }

    /// A program listens on `service`. Returns the address on which the agent also has to listen
    /// for SDP. Port 0 means a free port. `None` means that the agent does not listen.
    #[must_use]
    pub fn listen(&self, service: SocketAddr) -> Option<SocketAddr> {
        let service = canonical(service);
        let (_, at) = self.listen.iter().find(|(pattern, _)| pattern.fits(service))?;
        Some(at.of(service))
    }
}

fn canonical(address: SocketAddr) -> SocketAddr {
    SocketAddr::new(address.ip().to_canonical(), address.port())
}

/// Returns whether `name` matches `pattern`, in which `*` matches any characters.
fn is_like(pattern: &str, name: &str) -> bool {
    let Some((first, others)) = pattern.split_once('*') else { return pattern == name };
    let Some(mut rest) = name.strip_prefix(first) else { return false };
    let mut others: Vec<&str> = others.split('*').collect();
    let last = others.pop().unwrap_or_default();
    for part in others {
        let Some((_, after)) = rest.split_once(part) else { return false };
        rest = after;
    }
    rest.ends_with(last)
}

fn connect(how: &[&str], ports: &RangeInclusive<u16>) -> Result<Connect, &'static str> {
    let (words, sdp_only) = match how {
        ["pm", rest @ .., "sdp-only"] => (rest, true),
        ["pm", rest @ ..] => (rest, false),
        ["tcp"] => return Ok(Connect::Tcp),
        ["sdp", at] => return SdpDestination::parse(at, ports).map(Connect::Sdp),
        ["both", at] => return SdpDestination::parse(at, ports).map(Connect::Both),
        _ => return Err("a connect rule must end with `tcp`, `sdp WHERE`, `both WHERE` or `pm [SERVER] [sdp-only]`"),
    };
    let mapper = match words {
        [] => None,
        [one] => Some(one.parse().map_err(|_| "write the port mapper as ADDRESS:PORT")?),
        _ => return Err("write the port mapper as ADDRESS:PORT"),
    };
    Ok(Connect::Mapper { mapper, sdp_only })
}

impl SdpDestination {
    /// Parses PORT, ADDRESS:PORT, or FIRST-LAST. A range must have the same number of ports as the
    /// rule's pattern. If several services shared one SDP port, programs would reach the wrong
    /// service.
    fn parse(text: &str, ports: &RangeInclusive<u16>) -> Result<Self, &'static str> {
        let several = ports.start() != ports.end() && *ports != (0..=u16::MAX);
        let port = |text: &str| text.parse().ok().filter(|port: &u16| *port != 0);
        if let Some((first, last)) = text.split_once('-') {
            let (Some(first), Some(last)) = (port(first), port(last)) else { return Err("a port must be 1 to 65535") };
            return if last.checked_sub(first) == ports.end().checked_sub(*ports.start()) {
                Ok(SdpDestination::Range { from: *ports.start(), to: first })
            } else {
                Err("the SDP range FIRST-LAST must have the same number of ports as the pattern")
            };
        }
        reject_if(several, "several service ports cannot share one SDP port; write a range FIRST-LAST of SDP ports")?;
        reject_if(text.parse() == Ok(0u16), "0 is not a valid SDP port; write 1 to 65535")?;
        if let Some(port) = port(text) {
            return Ok(SdpDestination::Port(port));
        }
        text.parse().map(SdpDestination::At).map_err(|_| "write the SDP ports as PORT, FIRST-LAST or ADDRESS:PORT")
    }

    fn of(self, service: SocketAddr) -> SocketAddr {
        match self {
            SdpDestination::Port(port) => SocketAddr::new(service.ip(), port),
            SdpDestination::At(address) => address,
            SdpDestination::Range { from, to } => {
                // This cannot overflow: the pattern matches the service, and both ranges have the
                // same length.
                SocketAddr::new(service.ip(), to.saturating_add(service.port().saturating_sub(from)))
            }
            SdpDestination::Auto => SocketAddr::new(service.ip(), 0),
        }
    }
}

impl Pattern {
    /// Parses `ADDRESS:PORTS`. ADDRESS is `*`, an address, or a network with its prefix length.
    /// IPv6 is in brackets. PORTS is `*`, a port, or `FIRST-LAST`.
    fn parse(text: &str) -> Result<Self, &'static str> {
        let (net, ports) = text.rsplit_once(':').ok_or("write a pattern as ADDRESS:PORTS")?;
        let port = |text: &str| text.parse::<u16>().map_err(|_| "a port must be 0 to 65535");
        let ports = match ports.split_once('-') {
            None if ports == "*" => 0..=u16::MAX,
            None => port(ports)?..=port(ports)?,
            Some((first, last)) => port(first)?..=port(last)?,
        };
        reject_if(ports.is_empty(), "the last port is below the first port")?;
        if net == "*" {
            return Ok(Pattern { net: None, ports });
        }
        let bare = net.strip_prefix('[').and_then(|net| net.strip_suffix(']'));
        let (ip, prefix) =
            bare.unwrap_or(net).split_once('/').map_or((bare.unwrap_or(net), None), |(ip, prefix)| (ip, Some(prefix)));
        let ip: IpAddr = ip.parse().map_err(|_| "write an address as *, IPv4, [IPv6], IPv4/PREFIX or [IPv6/PREFIX]")?;
        reject_if(
            ip.is_ipv6() != bare.is_some(),
            "an IPv6 address needs brackets, and an IPv4 address must have none",
        )?;
        let most = if ip.is_ipv4() { 32 } else { 128 };
        let prefix = prefix.map_or(Some(most), |prefix| prefix.parse().ok().filter(|prefix| *prefix <= most));
        let prefix = prefix.ok_or("a prefix must have at most 32 bits (IPv6: 128)")?;
        Ok(Pattern { net: Some((ip, prefix)), ports })
    }

    fn fits(&self, address: SocketAddr) -> bool {
        let same = match (self.net, address.ip()) {
            (None, _) => true,
            (Some((IpAddr::V4(net), prefix)), IpAddr::V4(ip)) => {
                let differ = u32::from(net) ^ u32::from(ip);
                differ.checked_shr(32 - prefix).unwrap_or(0) == 0
            }
            (Some((IpAddr::V6(net), prefix)), IpAddr::V6(ip)) => {
                let differ = u128::from(net) ^ u128::from(ip);
                differ.checked_shr(128 - prefix).unwrap_or(0) == 0
            }
            _ => false,
        };
        same && self.ports.contains(&address.port())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    const FILE: &str = "
        agent /run/a.sock   # where it is
        connect 192.0.2.17:22 tcp
        connect 192.0.2.0/24:80-89 sdp 7080-7089
        connect *:6379 sdp [fd00::9]:7379
        connect *:11211 both 7211
        connect [fd00::/16]:* pm
        connect 10.0.0.0/8:5201 pm 192.0.2.1:4000 sdp-only
        connect 0.0.0.0/0:9 sdp 10
        listen *:80 sdp 7080
        listen 127.0.0.1:6379 sdp 192.0.2.9:7379
        listen *:81 sdp 7081 for ngin*
        listen *:81 sdp 7082 for *x*p*d
        listen *:90-99 sdp auto
    ";

    #[test]
    fn the_first_rule_that_fits_counts() {
        let rules = Rules::parse(FILE, "nginx").unwrap();
        assert_eq!((rules.agent.as_str(), rules.unreachable), ("/run/a.sock", Unreachable::Closed));
        let sdp = |text: &str| Some(Route::Sdp(at(text)));
        let pm = |mapper: &str, sdp_only| Some(Route::Mapper { mapper: at(mapper), sdp_only });
        for (service, how) in [
            ("192.0.2.17:22", None),
            ("192.0.2.17:80", sdp("192.0.2.17:7080")),
            ("[::ffff:192.0.2.17]:89", sdp("192.0.2.17:7089")),
            ("192.0.2.17:11211", Some(Route::Both(at("192.0.2.17:7211")))),
            ("192.0.2.17:90", None),
            ("192.0.3.17:80", None),
            ("1.2.3.4:6379", sdp("[fd00::9]:7379")),
            ("[fd00::5]:1", pm("[fd00::5]:3935", false)),
            ("[fd01::5]:1", None),
            ("10.200.1.1:5201", pm("192.0.2.1:4000", true)),
            ("203.0.113.1:9", sdp("203.0.113.1:10")),
            ("[::1]:9", None),
        ] {
            assert_eq!(rules.connect(at(service)), how, "{service}");
        }
        assert_eq!(rules.listen(at("0.0.0.0:80")), Some(at("0.0.0.0:7080")));
        assert_eq!(rules.listen(at("127.0.0.1:6379")), Some(at("192.0.2.9:7379")));
        assert_eq!(rules.listen(at("0.0.0.0:6379")), None);
        assert_eq!(rules.listen(at("0.0.0.0:95")), Some(at("0.0.0.0:0")), "a free port");
        let open = Rules::parse("agent a\nunreachable open", "").unwrap();
        assert_eq!(open.unreachable, Unreachable::Open);
        for (program, port) in
            [("nginx", Some(7081)), ("xinetpd", Some(7082)), ("xpd2", None), ("anginx", None), ("", None)]
        {
            let at = Rules::parse(FILE, program).unwrap().listen(at("0.0.0.0:81"));
            assert_eq!(at.map(|at| at.port()), port, "{program}");
        }
    }

    #[test]
    fn an_invalid_rule_is_reported_with_its_line() {
        assert_eq!(Rules::parse("# nothing", ""), Err(RuleError::NoAgent));
        for wrong in [
            "agent",
            "agent a b",
            "unreachable maybe",
            "connect",
            "connect *:80",
            "connect *:80 udp",
            "connect * tcp",
            "connect *:80 sdp",
            "connect *:80 sdp 0",
            "connect *:80 sdp here",
            "connect *:70000 tcp",
            "connect *:9-8 tcp",
            "connect fd00::1:80 tcp",
            "connect [1.2.3.4]:80 tcp",
            "connect 1.2.3.4/33:80 tcp",
            "connect 1.2.3/8:80 tcp",
            "connect *:80 pm here",
            "connect *:80 pm 1.2.3.4:5 only",
            "listen *:80",
            "listen *:80 tcp",
            "listen *:80 sdp",
            "listen *:80-89 sdp 7080",
            "listen *:80-89 sdp 7080-7088",
            "listen *:80-89 sdp 7089-7080",
            "listen *:80-89 sdp 0-9",
            "connect *:80-89 both 192.0.2.9:7080",
            "connect *:80 sdp auto",
            "connect *:80 sdp 7080 for",
            "connect *:80 both 7080 for a b",
        ] {
            let line = Rules::parse(&format!("agent a\n{wrong}"), "").unwrap_err();
            assert!(matches!(line, RuleError::Line { line: 2, .. }), "{wrong}");
        }
        assert!(Rules::parse(&format!("agent a\n{}", "listen *:80 sdp 81\n".repeat(4096)), "").is_ok());
        assert!(Rules::parse(&format!("agent a\n{}", "listen *:80 sdp 81\n".repeat(4097)), "").is_err());
    }
}
