//! `weft pm serve`: runs a port mapper. This side is the PM Server of the SDP draft
//! (draft-pinkerton-iwarp-sdp-01).

use std::collections::HashSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::process::ExitCode;
use std::time::Duration;

use serde_json::json;
use weft_core::wire::portmap::{PmTime, UDP_PORT};
use weft_peer::driver::portmap::PmServer;
use weft_peer::portmap::{Mapping, ServerEvent, ServerSettings, Table, Target};

use crate::exit::{BadInput, note, print_json, print_line, reject};
use crate::rnic::deviations;
use crate::runtime;
use crate::signals;
use crate::watch::WatchArguments;

/// The command line.
#[derive(clap::Args)]
#[command(
    disable_version_flag = true,
    after_help = "A mapping is SERVICE=TARGET. SERVICE is the ADDRESS:PORT of a service for plain TCP. The addresses\n\
    0.0.0.0 and [::] match all addresses. TARGET is one of these:\n  \
    7080                               this port of the requested address\n  \
    192.0.2.18:7080,192.0.2.19:7080    these addresses in turn, one for each query\n  \
    192.0.2.18:9000-9099               a separate port for each connection; a closed connection frees its port\n\n\
    weft only answers queries. Start the SDP service separately. weft prints events to standard\n\
    output. Ctrl-C stops weft. If a host has several addresses, use --listen for each of them, so\n\
    that an answer has the queried address as its source.\n\n\
    Examples:\n  \
    weft pm serve --map 0.0.0.0:80=7080 --map '[::]:80=7080'   map port 80 to SDP port 7080\n  \
    weft pm serve --listen 127.0.0.1:3935 --map 127.0.0.1:80=127.0.0.1:9000-9099   map to a range"
)]
pub(crate) struct Arguments {
    /// Map a service to its SDP Address (see below); repeatable
    #[arg(long, value_name = "SERVICE=TARGET", required = true)]
    map: Vec<String>,
    /// Listen on this address (default: all addresses, port 3935); repeatable
    ///
    /// For port 0, weft uses a free port and prints it.
    #[arg(long, value_name = "ADDRESS:PORT")]
    listen: Vec<SocketAddr>,
    /// Set how long an answer is valid: the PmTime that weft sends in answers
    ///
    /// 0 means one connection. 1 to 127 are quarters of a second. 128 to 254 are seconds. 255 means
    /// forever.
    #[arg(long, value_name = "TIME", default_value_t = 0)]
    pm_time: u8,
    /// Wait this many milliseconds for the acknowledgement of an answer
    #[arg(long, value_name = "MS", default_value_t = 10_000, value_parser = clap::value_parser!(u64).range(1..=3_600_000))]
    hold: u64,
    /// Store at most this many requests at a time, and deny further requests
    #[arg(long, value_name = "COUNT", default_value_t = 4096)]
    most: usize,
    /// Store at most this many requests of one connecting address
    #[arg(long, value_name = "COUNT", default_value_t = 256)]
    most_of_one: usize,
    /// Send the requested port instead of port 0 in a PMDeny
    ///
    /// The SDP draft has both variants: the requested port in section 7.4, and 0 in section
    /// 7.3.1.6.
    #[arg(long)]
    deny_with_port: bool,
    /// Violate a rule on purpose; repeatable
    ///
    /// `weft deviations pm.` lists the names.
    #[arg(long, value_name = "NAME")]
    deviate: Vec<String>,
    /// Print only the listening address
    #[arg(long, short)]
    quiet: bool,
    /// Print one JSON object per event
    #[arg(long, conflicts_with = "quiet")]
    json: bool,
    #[command(flatten)]
    watch: WatchArguments,
}

/// Answers queries until a signal stops the command.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let deviations = deviations(&arguments.deviate)?;
    let (mut table, mut services) = (Table::default(), HashSet::new());
    for text in &arguments.map {
        let mapping = mapping(text, PmTime(arguments.pm_time)).map_err(BadInput)?;
        if !services.insert(mapping.service) {
            reject!("{text}: {} is already mapped; for several targets, use SERVICE=A,B", mapping.service);
        }
        table.insert(mapping).map_err(|error| BadInput(format!("{text}: {error}")))?;
    }
    let settings = ServerSettings {
        hold: Duration::from_millis(arguments.hold),
        max_requests: arguments.most,
        max_per_host: arguments.most_of_one,
        denies_with_port: arguments.deny_with_port,
        deviations,
        ..ServerSettings::default()
    };
    runtime::on_one_thread(arguments.watch.around(async |traffic| {
        let mut server = if arguments.listen.is_empty() {
            let any = |ip| SocketAddr::new(ip, UDP_PORT);
            let both = [any(IpAddr::V4(Ipv4Addr::UNSPECIFIED)), any(IpAddr::V6(Ipv6Addr::UNSPECIFIED))];
            bind(&both, settings, table, traffic.as_ref())?
        } else {
            bind(&arguments.listen, settings, table, traffic.as_ref())?
        };
        let mut interrupted = signals::interrupted();
        for address in server.local_addrs() {
            print_line!("listening on {address}");
        }
        loop {
            tokio::select! {
                event = server.next_event() => match event {
                    Some(event) if arguments.json => print_json(&object(&event)),
                    Some(event) if !arguments.quiet => print_line!("{}", line(&event)),
                    Some(_) => {}
                    None => break,
                },
                _ = &mut interrupted => break,
            }
        }
        Ok(ExitCode::SUCCESS)
    }))
}

fn bind(
    addresses: &[SocketAddr],
    settings: ServerSettings,
    table: Table,
    traffic: Option<&weft_peer::driver::TrafficLog>,
) -> anyhow::Result<PmServer> {
    PmServer::bind(addresses, settings, table, traffic).map_err(|error| {
        let all: Vec<String> = addresses.iter().map(ToString::to_string).collect();
        note("another port mapper may be running, for example iwpmd, the port mapper of Linux");
        BadInput(format!("cannot listen on {}: {error}", all.join(" and "))).into()
    })
}

/// Parses `SERVICE=TARGET`.
fn mapping(text: &str, pm_time: PmTime) -> Result<Mapping, String> {
    let wrong = |what: &str| format!("{text:?}: {what}; a mapping is SERVICE=TARGET, such as 192.0.2.17:80=7080");
    let (service, target) = text.split_once('=').ok_or_else(|| wrong("the mapping has no ="))?;
    let service: SocketAddr = service.parse().map_err(|_| wrong("the service is not ADDRESS:PORT"))?;
    let any = match service.ip() {
        IpAddr::V4(_) => IpAddr::V4(Ipv4Addr::UNSPECIFIED),
        IpAddr::V6(_) => IpAddr::V6(Ipv6Addr::UNSPECIFIED),
    };
    if let Some((first, last)) = target.rsplit_once('-') {
        let (ip, first) = match first.rsplit_once(':') {
            Some((_, port)) => {
                let at: SocketAddr = first.parse().map_err(|_| wrong("the target is not ADDRESS:PORT-PORT"))?;
                (at.ip(), port)
            }
            None => (any, first),
        };
        let port = |text: &str| text.parse::<u16>().map_err(|_| wrong("a port must be 1 to 65535"));
        let ports = port(first)?..=port(last)?;
        if ports.is_empty() {
            return Err(wrong("the first port is above the last port"));
        }
        return Ok(Mapping { service, target: Target::PortRange { at: SocketAddr::new(ip, 0), ports }, pm_time });
    }
    let address = |text: &str| match text.parse::<u16>() {
        Ok(port) => Ok(SocketAddr::new(any, port)),
        Err(_) => text.parse().map_err(|_| wrong("the target is neither a port nor ADDRESS:PORT")),
    };
    let addresses = target.split(',').map(address).collect::<Result<Vec<_>, _>>()?;
    Ok(Mapping { service, target: Target::Fixed(addresses), pm_time })
}

/// Formats an event as text.
fn line(event: &ServerEvent) -> String {
    match event {
        ServerEvent::Accepted { connecting, service, address, again } => {
            let again = if *again { " (a repeated request)" } else { "" };
            format!("{connecting} requests {service}{again}; the answer is the SDP Address {address}")
        }
        ServerEvent::Denied { connecting, service, why } => {
            format!("{connecting} requests {service}; denied, because {why}")
        }
        ServerEvent::Acknowledged { connecting, address } => format!("{connecting} acknowledges {address}"),
        ServerEvent::Expired { connecting, address } => {
            format!("{connecting} has neither acknowledged nor used {address}")
        }
        ServerEvent::Released { address } => format!("{address} can be used again"),
        ServerEvent::Alarm => "alarm: too many requests per second".to_owned(),
        ServerEvent::Discarded { from, why } => format!("discarded a datagram from {from}: {why}"),
    }
}

/// Formats an event as JSON.
fn object(event: &ServerEvent) -> serde_json::Value {
    match event {
        ServerEvent::Accepted { connecting, service, address, again } => json!({
            "kind": "pm_accepted", "connecting": connecting, "service": service, "address": address, "again": again,
        }),
        ServerEvent::Denied { connecting, service, why } => json!({
            "kind": "pm_denied", "connecting": connecting, "service": service, "why": why.to_string(),
        }),
        ServerEvent::Acknowledged { connecting, address } => {
            json!({"kind": "pm_acknowledged", "connecting": connecting, "address": address})
        }
        ServerEvent::Expired { connecting, address } => {
            json!({"kind": "pm_expired", "connecting": connecting, "address": address})
        }
        ServerEvent::Released { address } => json!({"kind": "pm_released", "address": address}),
        ServerEvent::Alarm => json!({"kind": "pm_alarm"}),
        ServerEvent::Discarded { from, why } => {
            json!({"kind": "pm_discarded", "from": from, "why": why.to_string()})
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parses_mappings() {
        let target = |text: &str| mapping(text, PmTime(0)).unwrap().target;
        let fixed = |addresses: &[&str]| Target::Fixed(addresses.iter().map(|it| it.parse().unwrap()).collect());
        let made = |at: &str, ports| Target::PortRange { at: at.parse().unwrap(), ports };
        assert_eq!(target("10.0.0.1:80=7080"), fixed(&["0.0.0.0:7080"]));
        assert_eq!(target("[::]:80=7080"), fixed(&["[::]:7080"]));
        assert_eq!(target("10.0.0.1:80=10.0.0.2:1,10.0.0.3:2"), fixed(&["10.0.0.2:1", "10.0.0.3:2"]));
        assert_eq!(target("10.0.0.1:80=9000-9009"), made("0.0.0.0:0", 9000..=9009));
        assert_eq!(target("[fd00::1]:80=[fd00::2]:9000-9009"), made("[fd00::2]:0", 9000..=9009));
        for wrong in [
            "",
            "10.0.0.1:80",
            "80=80",
            "10.0.0.1:80=",
            "10.0.0.1:80=x",
            "10.0.0.1:80=1-x",
            "10.0.0.1:80=9-5",
            "10.0.0.1:80=70000",
        ] {
            assert!(mapping(wrong, PmTime(0)).is_err(), "{wrong}");
        }
    }
}
