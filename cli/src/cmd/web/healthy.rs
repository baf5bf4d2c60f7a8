//! `weft web --healthy`: checks whether a dashboard answers, for a container's health check. The
//! container image therefore needs no HTTP client, such as curl.

use std::io::{Read, Write};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr, TcpStream};
use std::process::ExitCode;
use std::time::Duration;

use crate::exit::{note, print_line};

/// The longest wait for an answer.
const TIMEOUT: Duration = Duration::from_secs(5);

/// Queries the dashboard that listens on `listen`. Returns exit code 0 if the dashboard is healthy,
/// otherwise 3.
pub(super) fn run(listen: SocketAddr) -> ExitCode {
    // The address 0.0.0.0 or :: means all addresses, which include loopback.
    let address = match listen.ip() {
        IpAddr::V4(ip) if ip.is_unspecified() => SocketAddr::new(Ipv4Addr::LOCALHOST.into(), listen.port()),
        IpAddr::V6(ip) if ip.is_unspecified() => SocketAddr::new(Ipv6Addr::LOCALHOST.into(), listen.port()),
        _ => listen,
    };
    match status_line(address) {
        Ok(line) if line.split(' ').nth(1) == Some("200") => {
            print_line!("{address} is healthy");
            ExitCode::SUCCESS
        }
        Ok(line) => {
            note(&format!("{address} is not healthy: its answer is {line:?}"));
            ExitCode::from(3)
        }
        Err(error) => {
            note(&format!("{address} does not answer: {error}"));
            ExitCode::from(3)
        }
    }
}

/// Sends `GET /healthz`, and returns the first line of the answer.
fn status_line(address: SocketAddr) -> std::io::Result<String> {
    let mut stream = TcpStream::connect_timeout(&address, TIMEOUT)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    stream.set_write_timeout(Some(TIMEOUT))?;
    write!(stream, "GET /healthz HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\n\r\n")?;
    let mut answer = Vec::new();
    stream.take(4096).read_to_end(&mut answer)?;
    Ok(String::from_utf8_lossy(&answer).lines().next().unwrap_or_default().to_owned())
}
