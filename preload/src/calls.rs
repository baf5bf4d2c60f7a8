//! The actions of the shim (this preload library) before or after a call of the C library.
//!
//! A *name* is the address and port of a socket. For a connection through the agent, the *real
//! names* are the names of the SDP connection, not the names of the loopback connection.

use core::net::SocketAddr;
use core::sync::atomic::{AtomicBool, Ordering};
use std::io;

use libc::c_int;
use weft_peer::shim::{Answer, Failure, Names, Request, Route, Rules, Unreachable, is_agent_address};

use crate::agent::{Agent, SHORT_TIMEOUT, TIMEOUT};
use crate::errno::{errno, set_errno};
use crate::rules::{RulesState, report, rules};
use crate::socket::{self, Room};

/// Handles connect(2) to the address `service`. If the shim handles the call, returns the result of
/// the call. Otherwise returns `None`, and the caller calls the C library.
pub(crate) fn connect(fd: c_int, service: SocketAddr) -> Option<c_int> {
    let rules = match rules() {
        RulesState::None => return None,
        RulesState::Rules(rules) => rules,
        RulesState::Bad => return socket::family(fd).map(|_| failed(libc::EPERM)),
    };
    let by = rules.connect(service)?;
    // A non-blocking program calls connect(2) a second time to query the result. The kernel handles
    // the second call.
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

/// Connects by way of the agent. Returns the result of connect(2), or an error if the agent cannot
/// be reached.
fn reach(rules: &Rules, fd: c_int, family: c_int, service: SocketAddr, by: Route) -> io::Result<c_int> {
    let (service, no_wait) = (canonical(service), socket::is_non_blocking(fd));
    let mut agent = Agent::open(&rules.agent, if no_wait { SHORT_TIMEOUT } else { TIMEOUT })?;
    let source = socket::local(fd).filter(|local| local.port() != 0 || !local.ip().is_unspecified()).map(canonical);
    if source.is_some() {
        // Allow the agent to connect from the same address and port.
        socket::share_port(fd);
    }
    let at = match agent.ask(&Request::Connect { service, by, source, no_wait })? {
        Answer::At(at) => at,
        Answer::Failed(failure, words) => {
            if source.is_some() {
                report(&format!("cannot connect to {service}: {words}"));
            }
            return Ok(failed(number(failure)));
        }
        _ => return Err(io::ErrorKind::InvalidData.into()),
    };
    let result = socket::connect(fd, at, family);
    let error = errno();
    if result != 0 && error != libc::EINPROGRESS {
        report(&format!("cannot connect to the agent at {at}: {}", io::Error::from_raw_os_error(error)));
        return Ok(failed(error));
    }
    // The kernel has chosen the local address, so it can now be sent to the agent.
    let from = Request::From(canonical(socket::local(fd).ok_or(io::ErrorKind::NotConnected)?));
    let is_reported = if no_wait {
        // If the agent is gone, the connection fails anyway.
        let _ = agent.send(&from);
        true
    } else {
        matches!(agent.ask(&from), Ok(Answer::Done))
    };
    Ok(match result {
        // The program's socket is connected to the agent, so it cannot be used for another attempt.
        _ if !is_reported => failed(libc::ECONNABORTED),
        0 => 0,
        _ => failed(error),
    })
}

/// Returns why the agent could not connect for this descriptor. Returns `None` if the agent reports
/// no failure.
fn why(rules: &Rules, fd: c_int) -> Option<Failure> {
    // A socket without a local name has not begun a connection.
    let local = socket::local(fd).filter(|local| local.port() != 0 && !local.ip().is_unspecified())?;
    match Agent::open(&rules.agent, SHORT_TIMEOUT).ok()?.ask(&Request::Why(canonical(local))) {
        Ok(Answer::Failed(failure, _)) => Some(failure),
        _ => None,
    }
}

/// Handles the result `error` of getsockopt(2) with SO_ERROR. If the agent has failed to connect
/// for this descriptor, returns the error number of that failure. Preserves `errno`.
pub(crate) fn after_error(fd: c_int, error: c_int) -> Option<c_int> {
    let RulesState::Rules(rules) = rules() else { return None };
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

/// Handles listen(2) before the call of the C library. If a rule requires that the agent listens,
/// but the agent cannot listen, listen(2) fails, and this function returns the result of listen(2).
/// Otherwise returns `None`, and the caller calls the C library. If there is no agent, the rules
/// can allow plain TCP. In this case also returns `None`.
pub(crate) fn before_listen(fd: c_int) -> Option<c_int> {
    let rules = match rules() {
        RulesState::None => return None,
        RulesState::Rules(rules) => rules,
        RulesState::Bad => return socket::family(fd).map(|_| failed(libc::EPERM)),
    };
    socket::family(fd)?;
    let service = socket::local(fd)?;
    let sdp = rules.listen(service)?;
    let only_v6 = service.is_ipv6() && socket::is_only_v6(fd);
    let service = canonical(service);
    let request = Request::Listen { service, sdp, only_v6 };
    let answer = Agent::open(&rules.agent, TIMEOUT).and_then(|mut agent| agent.ask(&request));
    match answer {
        Ok(Answer::Done) => None,
        Ok(Answer::Failed(failure, words)) => {
            report(&format!("cannot listen on {service}: {words}"));
            Some(failed(number(failure)))
        }
        Ok(_) => absent(rules, &format!("listening on {service}"), &io::ErrorKind::InvalidData.into()),
        Err(error) => absent(rules, &format!("listening on {service}"), &error),
    }
}

/// Handles accept(2) after the call of the C library: if the caller requested the peer's name,
/// stores the real name.
pub(crate) fn after_accept(accepted: c_int, room: Room) -> c_int {
    if accepted >= 0 && room.is_wanted() {
        correct(accepted, room, |names| names.peer);
    }
    accepted
}

/// Handles getpeername(2) and getsockname(2) after the call of the C library: stores the real name.
/// `which` selects the name of the peer, or the local name.
pub(crate) fn after_name(fd: c_int, result: c_int, room: Room, which: impl FnOnce(Names) -> SocketAddr) -> c_int {
    if result == 0 {
        correct(fd, room, which);
    }
    result
}

/// Replaces the kernel's name with the real name, if the peer is the agent and the agent has the
/// names of this connection. Preserves `errno`.
fn correct(fd: c_int, room: Room, which: impl FnOnce(Names) -> SocketAddr) {
    let RulesState::Rules(rules) = rules() else { return };
    let kept = errno();
    if let Some((names, family)) = names(rules, fd) {
        room.put(which(names), family);
    }
    set_errno(kept);
}

fn names(rules: &Rules, fd: c_int) -> Option<(Names, c_int)> {
    let peer = socket::peer(fd).filter(|peer| is_agent_address(peer.ip()))?;
    let family = socket::family(fd)?;
    let local = canonical(socket::local(fd)?);
    let answer = Agent::open(&rules.agent, SHORT_TIMEOUT).ok()?.ask(&Request::Names { local, peer: canonical(peer) });
    let Ok(Answer::Names(names)) = answer else { return None };
    Some((names, family))
}

/// Returns the result that a call has when there is no agent. The rules decide whether the call
/// fails or uses plain TCP. For plain TCP, the result is `None`. Only the first call prints a
/// message about the missing agent.
fn absent(rules: &Rules, what: &str, error: &io::Error) -> Option<c_int> {
    static REPORTED: AtomicBool = AtomicBool::new(false);
    let (result, words) = match rules.unreachable {
        Unreachable::Closed => (Some(failed(libc::ECONNREFUSED)), "the call is refused, as the rules require"),
        Unreachable::Open => (None, "the call uses plain TCP, as the rules require"),
    };
    if !REPORTED.swap(true, Ordering::Relaxed) {
        report(&format!("{what}: there is no agent at {} ({error}); {words}", rules.agent));
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
