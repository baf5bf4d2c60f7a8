//! The host of a target: the syntax of its address, and whether the host answers. A host that
//! refuses a connection has answered.

use std::io::ErrorKind;
use std::net::SocketAddr;
use std::time::Duration;

use weft_peer::driver::{Link, LinkError, TcpLink};

/// A port that hardly any host listens on (tcpmux).
const CLOSED_PORT: u16 = 1;

/// Returns whether the host of `address` answers over the TCP of the operating system. Each of the
/// two attempts takes at most the time `within`.
pub(crate) async fn answers(address: SocketAddr, within: Duration) -> bool {
    answers_over(Link::Tcp(TcpLink::new(address)).with_connect_timeout(within), address).await
}

/// Returns whether the host of `address` answers over `link`, on which the tester connects. The
/// connect time-out of the link limits each of the two attempts. The port of `address` is tried
/// last, because a connection that closes at once may disturb the program that listens there.
pub(crate) async fn answers_over(mut link: Link, address: SocketAddr) -> bool {
    for port in [CLOSED_PORT, address.port()] {
        match link.connect_to(SocketAddr::new(address.ip(), port), None).await {
            Ok(_) => return true,
            Err(LinkError::Connect { source, .. }) if is_an_answer(source.kind()) => return true,
            Err(_) => {}
        }
    }
    false
}

/// Returns whether the host itself caused the error with a reset. Other errors come from a router
/// or from this machine.
fn is_an_answer(error: ErrorKind) -> bool {
    matches!(error, ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset)
}

/// Returns whether the text has the form `host:port`. A run checks later whether the host exists.
pub(crate) fn is_host_and_port(address: &str) -> bool {
    let Some((host, port)) = address.rsplit_once(':') else { return false };
    let literal = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let is_host = match literal {
        Some(literal) => literal.split('%').next().is_some_and(|ip| ip.parse::<std::net::Ipv6Addr>().is_ok()),
        None => !host.is_empty() && !host.contains(|c: char| c.is_whitespace() || matches!(c, ':' | '/' | '[' | ']')),
    };
    is_host && port.parse::<u16>().is_ok_and(|port| port != 0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn a_host_that_refuses_answers() {
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let minute = Duration::from_secs(60);
        assert!(answers(address, minute).await);
        drop(listener);
        assert!(answers(address, minute).await);
        // No host has a multicast address for TCP, and the kernel sends no TCP segment to such an
        // address.
        assert!(!answers("224.0.0.1:7174".parse().unwrap(), minute).await);
    }
}
