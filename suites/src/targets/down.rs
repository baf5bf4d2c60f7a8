//! The headline of a run whose target cannot be reached.

use std::io::ErrorKind;

use weft_peer::driver::LinkError;

/// Begin of the headline.
pub(crate) const DOWN: &str = "target is down: ";

/// Returns the headline for a target that cannot be reached because of `why`.
pub(crate) fn headline(why: &str) -> String {
    format!("{DOWN}{why}")
}

/// Returns why a connection attempt failed: the address, and what its host did.
pub(crate) fn reason(error: &LinkError) -> String {
    match error {
        LinkError::Connect { address, source } => match source.kind() {
            ErrorKind::ConnectionRefused => format!("{address} refused the connection"),
            ErrorKind::ConnectionReset => format!("{address} reset the connection"),
            ErrorKind::HostUnreachable => format!("there is no route to the host of {address}"),
            ErrorKind::NetworkUnreachable => format!("there is no route to the network of {address}"),
            ErrorKind::TimedOut => format!("{address} did not answer"),
            _ => format!("{address}: {source}"),
        },
        LinkError::ConnectTimeout { address, after } => {
            format!("{address} did not answer within {} s", after.as_secs_f32())
        }
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_headline_has_the_address_and_what_its_host_did() {
        let address = "192.0.2.7:7174".parse().unwrap();
        let failed = |kind: ErrorKind| reason(&LinkError::Connect { address, source: io::Error::from(kind) });
        assert_eq!(
            headline(&failed(ErrorKind::ConnectionRefused)),
            "target is down: 192.0.2.7:7174 refused the connection"
        );
        assert_eq!(failed(ErrorKind::HostUnreachable), "there is no route to the host of 192.0.2.7:7174");
        let late = LinkError::ConnectTimeout { address, after: Duration::from_millis(500) };
        assert_eq!(reason(&late), "192.0.2.7:7174 did not answer within 0.5 s");
    }
}
