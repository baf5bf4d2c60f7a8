//! The shim's actions in addition to the C library's call.

use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::io;

use libc::c_int;
use weft_peer::shim::{Answer, By, Failure, Names, Request, Rules, Unreachable, is_here};

use crate::agent::{Agent, PATIENCE, SHORTLY};
use crate::errno::{errno, set_errno};
use crate::rules::{Known, report, rules};
use crate::socket::{self, Room};

/// connect(2) to a service: the result if a rule matches, otherwise `None`.
pub(crate) fn connect(fd: c_int, service: SocketAddr) -> Option<c_int> {
    let rules = match rules() {
        Known::None => return None,
        Known::Rules(rules) => rules,
        Known::Bad => return socket::family(fd).map(|_| failed(libc::EPERM)),
    };
    let by = rules.connect(service)?;
    // A non-blocking program calls again to query the result. The kernel answers that.
    let family = socket::family(fd).filter(|_| socket::is_closed(fd))?;
    if let Some(failure) = why(rules, fd) {
        socket::disconnect(fd);
        return Some(failed(number(failure)));
    }
    match reach(rules, fd, family, service, by) {
        Ok(result) => Some(result),
        Err(error) => absent(rules, &format!("connecting to {service}"), &error),
    }
}

/// The result of a call after the agent answered, or the error if it could not be reached.
fn reach(rules: &Rules, fd: c_int, family: c_int, service: SocketAddr, by: By) -> io::Result<c_int> {
    let (service, no_wait) = (canonical(service), socket::is_non_blocking(fd));
    let mut agent = Agent::open(&rules.agent, if no_wait { SHORTLY } else { PATIENCE })?;
    let source = socket::local(fd).filter(|local| local.port() != 0 || !local.ip().is_unspecified()).map(canonical);
    if source.is_some() {
        // The agent connects from the same port.
        socket::share_port(fd);
    }
    let at = match agent.ask(&Request::Connect { service, by, source, no_wait })? {
        Answer::At(at) => at,
        Answer::Failed(failure, words) => {
            if source.is_some() {
                report(&format!("connecting to {service}: {words}"));
            }
            return Ok(failed(number(failure)));
        }
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let result = socket::connect(fd, at, family);
    let error = errno();
    if result != 0 && error != libc::EINPROGRESS {
        report(&format!("connecting to the agent at {at}: {}", io::Error::from_raw_os_error(error)));
        return Ok(failed(error));
    }
    // From here on, the program's address is known.
    let from = Request::From(canonical(socket::local(fd).ok_or(io::ErrorKind::NotConnected)?));
    let is_reported = if no_wait {
        // If the agent ends, the connection fails without further action.
        let _ = agent.send(&from);
        true
    } else {
        matches!(agent.ask(&from), Ok(Answer::Done))
    };
    Ok(match result {
        // The descriptor cannot be used again.
        _ if !is_reported => failed(libc::ECONNABORTED),
        0 => 0,
        _ => failed(error),
    })
}

/// Why the agent failed the connection that this descriptor began; `None` if it did not.
fn why(rules: &Rules, fd: c_int) -> Option<Failure> {
    // A socket without a name has not begun a connection.
    let local = socket::local(fd).filter(|local| local.port() != 0 && !local.ip().is_unspecified())?;
    match Agent::open(&rules.agent, SHORTLY).ok()?.ask(&Request::Why(canonical(local))) {
        Ok(Answer::Failed(failure, _)) => Some(failure),
        _ => None,
    }
}

/// Call this after getsockopt(2) of SO_ERROR returned `error`. Returns the error of a begun
/// connection if the agent has it. It preserves `errno`.
pub(crate) fn after_error(fd: c_int, error: c_int) -> Option<c_int> {
    let Known::Rules(rules) = rules() else { return None };
    if error != libc::ECONNRESET {
        return None;
    }
    let kept = errno();
    let failure = socket::family(fd).filter(|_| socket::is_closed(fd)).and_then(|_| why(rules, fd));
    set_errno(kept);
    failure.map(number)
}

fn canonical(name: SocketAddr) -> SocketAddr {
    SocketAddr::new(name.ip().to_canonical(), name.port())
}

/// Call this before listen(2). Returns the result of listen(2) if the agent must listen and cannot.
pub(crate) fn before_listen(fd: c_int) -> Option<c_int> {
    let rules = match rules() {
        Known::None => return None,
        Known::Rules(rules) => rules,
        Known::Bad => return socket::family(fd).map(|_| failed(libc::EPERM)),
    };
    socket::family(fd)?;
    let service = socket::local(fd)?;
    let sdp = rules.listen(service)?;
    let only_v6 = service.is_ipv6() && socket::is_only_v6(fd);
    let service = canonical(service);
    let request = Request::Listen { service, sdp, only_v6 };
    let answer = Agent::open(&rules.agent, PATIENCE).and_then(|mut agent| agent.ask(&request));
    match answer {
        Ok(Answer::Done) => None,
        Ok(Answer::Failed(failure, words)) => {
            report(&format!("listening on {service}: {words}"));
            Some(failed(number(failure)))
        }
        Ok(_) => absent(rules, &format!("listening on {service}"), &io::ErrorKind::InvalidData.into()),
        Err(error) => absent(rules, &format!("listening on {service}"), &error),
    }
}

/// After accept(2): if the caller requested the peer's name, stores the true one.
pub(crate) fn after_accept(accepted: c_int, room: Room) -> c_int {
    if accepted >= 0 && room.is_wanted() {
        correct(accepted, room, |names| names.peer);
    }
    accepted
}

/// After getpeername(2) and getsockname(2): stores the true name.
pub(crate) fn after_name(fd: c_int, result: c_int, room: Room, which: impl FnOnce(Names) -> SocketAddr) -> c_int {
    if result == 0 {
        correct(fd, room, which);
    }
    result
}

/// Replaces the kernel's name with the true one if the other end is the agent's and the agent knows
/// it. It preserves `errno`.
fn correct(fd: c_int, room: Room, which: impl FnOnce(Names) -> SocketAddr) {
    let Known::Rules(rules) = rules() else { return };
    let kept = errno();
    if let Some((names, family)) = names(rules, fd) {
        room.put(which(names), family);
    }
    set_errno(kept);
}

fn names(rules: &Rules, fd: c_int) -> Option<(Names, c_int)> {
    let peer = socket::peer(fd).filter(|peer| is_here(peer.ip()))?;
    let family = socket::family(fd)?;
    let local = canonical(socket::local(fd)?);
    let answer = Agent::open(&rules.agent, SHORTLY).ok()?.ask(&Request::Names { local, peer: canonical(peer) });
    let Ok(Answer::Names(names)) = answer else { return None };
    Some((names, family))
}

/// Without an agent, the rules decide the result.
fn absent(rules: &Rules, what: &str, error: &io::Error) -> Option<c_int> {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    let (result, words) = match rules.unreachable {
        Unreachable::Closed => (Some(failed(libc::ECONNREFUSED)), "refused, as the rules require"),
        Unreachable::Open => (None, "plain TCP, as the rules require"),
    };
    if !REPORTED.swap(true, Ordering::Relaxed) {
        report(&format!("{what}: no agent at {}: {error}; {words}", rules.agent));
    }
    if result.is_some() {
        set_errno(libc::ECONNREFUSED);
    }
    result
}

fn failed(number: c_int) -> c_int {
    set_errno(number);
    -1
}

fn number(failure: Failure) -> c_int {
    match failure {
        Failure::Refused => libc::ECONNREFUSED,
        Failure::TimedOut => libc::ETIMEDOUT,
        Failure::Unreachable => libc::EHOSTUNREACH,
        Failure::InUse => libc::EADDRINUSE,
        Failure::NotAvailable => libc::EADDRNOTAVAIL,
        Failure::Other => libc::ECONNABORTED,
    }
}
