//! The steps of a session with a port mapper. The steps call the functions of
//! `suites/library/portmap_session.lua`.

use std::fmt::{self, Display, Formatter};

/// Maximum number of PMReqs in one burst of an exploration. Each of them has another port.
pub(crate) const MAX_PORTS: u32 = 64;
/// Maximum number of PMReqs in one burst of a case. Most port mappers have resources for all of
/// them.
pub(super) const FEW_PORTS: u32 = 16;
/// A service that the target maps.
pub(crate) const MAPPED: &str = "mapped";

/// A step of the client with the number `connection`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PortmapStep {
    pub(crate) connection: u32,
    pub(crate) action: PortmapAction,
}

/// What a step does. `port` is a number from 1 to [`MAX_PORTS`], which selects the CpPort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PortmapAction {
    /// Opens a client that uses IPv6.
    OpenV6,
    /// Sends a PMReq for a service.
    Request { port: u32, service: &'static str },
    /// Sends `count` PMReqs at once, with the ports from 1 to `count`.
    Burst { count: u32, service: &'static str },
    /// Sends copies of the last PMReq with this port.
    Resend { port: u32, copies: u32 },
    /// Sends copies of the PMAck to the last PMReq with this port.
    Ack { port: u32, copies: u32 },
}

impl PortmapStep {
    /// Returns simpler steps, the simplest first. `smaller` returns smaller values of a number.
    pub(crate) fn simpler(self, smaller: impl Fn(u32) -> Vec<u32>) -> Vec<PortmapStep> {
        let smaller = |value: u32| smaller(value).into_iter().filter(|less| *less > 0);
        let actions: Vec<PortmapAction> = match self.action {
            PortmapAction::OpenV6 => Vec::new(),
            PortmapAction::Request { port, service } => {
                let plain = (service != MAPPED).then_some(PortmapAction::Request { port, service: MAPPED });
                let ports = smaller(port).map(|port| PortmapAction::Request { port, service });
                plain.into_iter().chain(ports).collect()
            }
            PortmapAction::Burst { count, service } => {
                let plain = (service != MAPPED).then_some(PortmapAction::Burst { count, service: MAPPED });
                let counts = smaller(count).map(|count| PortmapAction::Burst { count, service });
                plain.into_iter().chain(counts).collect()
            }
            PortmapAction::Resend { port, copies } => {
                let fewer = smaller(copies).map(|copies| PortmapAction::Resend { port, copies });
                fewer.chain(smaller(port).map(|port| PortmapAction::Resend { port, copies })).collect()
            }
            PortmapAction::Ack { port, copies } => {
                let fewer = smaller(copies).map(|copies| PortmapAction::Ack { port, copies });
                fewer.chain(smaller(port).map(|port| PortmapAction::Ack { port, copies })).collect()
            }
        };
        actions.into_iter().map(|action| PortmapStep { action, ..self }).collect()
    }

    /// Returns whether the step needs a port mapper with a service over IPv6.
    pub(crate) fn needs_v6(self) -> bool {
        self.action == PortmapAction::OpenV6
    }
}

/// A call in Lua, with the session in `s`.
impl Display for PortmapStep {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let connection = self.connection;
        match self.action {
            PortmapAction::OpenV6 => write!(f, "s:open({connection}, {{ v6 = true }})"),
            PortmapAction::Request { port, service: MAPPED } => write!(f, "s:request({connection}, {port})"),
            PortmapAction::Request { port, service } => write!(f, "s:request({connection}, {port}, \"{service}\")"),
            PortmapAction::Burst { count, service: MAPPED } => write!(f, "s:burst({connection}, {count})"),
            PortmapAction::Burst { count, service } => write!(f, "s:burst({connection}, {count}, \"{service}\")"),
            PortmapAction::Resend { port, copies } => write!(f, "s:resend({connection}, {port}, {copies})"),
            PortmapAction::Ack { port, copies } => write!(f, "s:ack({connection}, {port}, {copies})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_is_a_call() {
        let shown = |action| PortmapStep { connection: 2, action }.to_string();
        assert_eq!(shown(PortmapAction::Request { port: 3, service: MAPPED }), "s:request(2, 3)");
        assert_eq!(shown(PortmapAction::Request { port: 3, service: "made" }), "s:request(2, 3, \"made\")");
        assert_eq!(shown(PortmapAction::Burst { count: 64, service: MAPPED }), "s:burst(2, 64)");
        assert_eq!(shown(PortmapAction::OpenV6), "s:open(2, { v6 = true })");
    }
}
