//! Expectations of a port mapper's client: datagrams, connections, and their absence.

use std::net::{IpAddr, SocketAddr};
use std::time::Duration;

use super::super::name;
use super::{Datagram, DatagramFields, MapperClientSide, RepetitionEnd};
use crate::stage::{Expectation, Stop};

impl MapperClientSide<'_> {
    /// Expects that the next datagram has these fields.
    pub(crate) async fn expect(
        &mut self,
        expectation: &Expectation,
        fields: &DatagramFields,
    ) -> Result<Datagram, Stop> {
        let expected = fields.message.to_string();
        let deadline = self.connections.link.now() + expectation.within;
        let datagram = loop {
            if fields.no_connection && !self.state.connections.is_empty() && self.state.datagrams.is_empty() {
                return Err(self.recorder().unmet(expectation, &expected, "it connected without a query"));
            }
            if let Some(datagram) = self.state.datagrams.pop_front() {
                if fields.past.is_none_or(|past| datagram.message_type() != Some(past)) {
                    break datagram;
                }
                continue;
            }
            if !self.receive(deadline).await? {
                return Err(self.recorder().timed_out(expectation, &expected));
            }
        };
        let is_wrong_port = fields.other_port != datagram.other_port;
        let wrong_port = || is_wrong_port.then(|| ", to the wrong port of the port mapper".to_owned());
        self.connections.judge_datagram(&datagram.octets, expectation, &expected, |raw| {
            fields.message.miss(raw, true).or_else(wrong_port)
        })?;
        Ok(datagram)
    }

    /// Counts datagrams until `most` datagrams have arrived, until the target connects, or until
    /// the next datagram does not arrive in time. The time limit for the next datagram is the
    /// longer of two times: `within`, and four times the longest gap so far. The gap counts because
    /// the target's timer may grow. Returns the count and the reason for the end.
    pub(crate) async fn count_repetitions(
        &mut self,
        within: Duration,
        most: usize,
    ) -> Result<(usize, RepetitionEnd), Stop> {
        /// The wait is at least this factor times the longest gap. If a client doubles its timer,
        /// the timer grows by this factor in two steps.
        const LONGER: u32 = 4;
        let (mut count, mut longest, mut last) = (0, Duration::ZERO, self.connections.link.now());
        loop {
            while self.state.datagrams.pop_front().is_some() {
                let now = self.connections.link.now();
                (longest, last) = (longest.max(now.saturating_duration_since(last)), now);
                count += 1;
                if count >= most {
                    return Ok((count, RepetitionEnd::Most));
                }
            }
            if !self.state.connections.is_empty() {
                return Ok((count, RepetitionEnd::Connection));
            }
            if !self.receive(last + within.max(longest * LONGER)).await? {
                return Ok((count, RepetitionEnd::Quiet));
            }
        }
    }

    /// Returns true if the next unused event is a connection, and false if it is a datagram.
    /// Returns `None` if there is no unused event. Datagrams come before connections.
    pub(crate) fn waiting_kind(&self) -> Option<bool> {
        match (self.state.datagrams.is_empty(), self.state.connections.is_empty()) {
            (false, _) => Some(false),
            (true, false) => Some(true),
            (true, true) => None,
        }
    }

    /// Expects that the connection came from this address and this port, if they are given.
    pub(crate) fn expect_source(
        &mut self,
        number: u32,
        expectation: &Expectation,
        ip: Option<IpAddr>,
        port: Option<u16>,
    ) -> Result<(), Stop> {
        let (_, target) = self.connections.get(number)?.end.addresses();
        let wanted = SocketAddr::new(ip.unwrap_or(target.ip()), port.unwrap_or(target.port()));
        let (expected, actual) = (format!("a connection from {wanted}"), format!("a connection from {target}"));
        self.recorder().check(wanted == target, expectation, &expected, &actual)
    }

    /// Expects that no datagram arrives. Connections may arrive.
    pub(crate) async fn expect_quiet(&mut self, expectation: &Expectation) -> Result<(), Stop> {
        let expected = "no datagram";
        let deadline = self.connections.link.now() + expectation.within;
        loop {
            if let Some(datagram) = self.state.datagrams.pop_front() {
                let (len, name) = (datagram.octets.len(), name(&datagram.octets));
                let sent = format!("a datagram of {len} bytes ({name})");
                return Err(self.recorder().wrong(expectation, expected, &sent));
            }
            if !self.receive(deadline).await? {
                let text = self.recorder().silence(expectation);
                self.recorder().met(expectation, expected, &text);
                return Ok(());
            }
        }
    }

    /// Expects that the next connection goes to this address. Returns the number of the connection.
    pub(crate) async fn expect_connection(
        &mut self,
        expectation: &Expectation,
        address: SocketAddr,
    ) -> Result<u32, Stop> {
        let expected = format!("a TCP connection to {address}");
        let deadline = self.connections.link.now() + expectation.within;
        while self.state.connections.is_empty() {
            if !self.receive(deadline).await? {
                return Err(self.recorder().overdue(expectation, &expected, "it does not connect"));
            }
        }
        let Some((to, number)) = self.state.connections.pop_front() else {
            return Err(self.recorder().harness("there is no connection"));
        };
        let actual = format!("it connects to {to}");
        if to != address {
            return Err(self.recorder().unmet(expectation, &expected, &actual));
        }
        self.connections.recorder_of(number).met(expectation, &expected, &actual);
        Ok(number)
    }

    /// Expects that no connection arrives. Datagrams may arrive.
    pub(crate) async fn expect_no_connection(&mut self, expectation: &Expectation) -> Result<(), Stop> {
        let deadline = self.connections.link.now() + expectation.within;
        let expected = "no connection";
        loop {
            if let Some((to, _)) = self.state.connections.pop_front() {
                return Err(self.recorder().unmet(expectation, expected, &format!("it connects to {to}")));
            }
            if !self.receive(deadline).await? {
                let text = format!("no connection within {} s", expectation.within.as_secs_f64());
                self.recorder().met(expectation, expected, &text);
                return Ok(());
            }
        }
    }
}
