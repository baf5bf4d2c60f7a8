//! Shortens addresses, so that the addresses of a connection fit into a narrow panel.

/// The maximum length of an IPv4 address with its port, in characters. Addresses of this length are
/// never shortened.
pub(crate) const IPV4_LEN: usize = 21;

/// Returns `address` (`host:port`) in at most `max` characters. The middle of a long host is left
/// out, and the port is kept.
pub(crate) fn short(address: &str, max: usize) -> String {
    if address.chars().count() <= max {
        return address.to_owned();
    }
    let port = address.rfind(':').map_or("", |at| &address[at..]);
    let host: Vec<char> = address[..address.len() - port.len()].chars().collect();
    let room = max.saturating_sub(port.chars().count() + 1).min(host.len());
    let (head, tail) = (&host[..room / 2], &host[host.len() - (room - room / 2)..]);
    format!("{}…{}{port}", head.iter().collect::<String>(), tail.iter().collect::<String>())
}

/// Returns a pair of addresses (`from → to`) in at most `max` characters. Returns another text
/// unchanged.
pub(crate) fn short_pair(text: &str, max: usize) -> String {
    const ARROW: &str = " → ";
    match text.split_once(ARROW) {
        Some((from, to)) if text.chars().count() > max => {
            let room = max.saturating_sub(ARROW.chars().count()) / 2;
            format!("{}{ARROW}{}", short(from, room), short(to, room))
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LONG: &str = "[2001:db8:85a3:8d3:1319:8a2e:370:7348]:38499";

    #[test]
    fn only_long_addresses_are_shortened() {
        for address in ["255.255.255.255:65535", "[2001:db8::1]:38499"] {
            assert_eq!(short(address, IPV4_LEN), address);
        }
        assert_eq!(short(LONG, IPV4_LEN), "[2001:d…0:7348]:38499");
    }

    #[test]
    fn no_width_is_exceeded() {
        let pair = format!("{LONG} → {LONG}");
        for max in 30..100 {
            assert!(short_pair(&pair, max).chars().count() <= max, "{max}: {}", short_pair(&pair, max));
        }
        assert_eq!(short_pair("RFC 5044 section 7.1.1", 5), "RFC 5044 section 7.1.1");
        // A width that is too small for the port leaves only the port.
        assert_eq!(short(LONG, 0), "…:38499");
    }
}
