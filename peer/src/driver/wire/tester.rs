//! The tester's side of a connection over the tester's own TCP.

use core::time::Duration;
use std::io;
use std::net::SocketAddr;

use smoltcp::iface::SocketHandle;
use tokio::time::{timeout, timeout_at};

use super::engine::{ConnectOptions, SendFailure};
use super::shaper::FlowKey;
use super::stack::WireStack;
use crate::driver::clock::Clock;
use crate::driver::fragments::Fragments;
use crate::driver::link_error::LinkError;
use crate::driver::received::Received;
use crate::driver::tcp_tester::NOW;
use crate::time::Instant;

/// The tester's side of a connection over the tester's own TCP. Dropping it closes the connection.
#[derive(Debug)]
pub(in crate::driver) struct WireTester {
    stack: WireStack,
    /// `None` after the tester has reset or released the connection.
    handle: Option<SocketHandle>,
    addresses: FlowKey,
    pub(in crate::driver) clock: Clock,
    send_timeout: Duration,
}

impl WireTester {
    /// Starts to connect.
    pub(super) fn connect(
        stack: &WireStack,
        target: SocketAddr,
        options: ConnectOptions,
        (clock, send_timeout): (Clock, Duration),
    ) -> io::Result<Self> {
        let (handle, addresses) = stack.act(|engine| engine.connect(target, options))?;
        Ok(WireTester { stack: stack.clone(), handle: Some(handle), addresses, clock, send_timeout })
    }

    /// Waits until the connection is established.
    pub(super) async fn established(&self) -> io::Result<()> {
        let Some(handle) = self.handle else { return Err(io::ErrorKind::NotConnected.into()) };
        self.stack.wait(|engine| engine.connected(handle)).await
    }

    /// Returns the addresses of the tester and of the target.
    pub(super) fn addresses(&self) -> FlowKey {
        self.addresses
    }

    /// Sends `octets`. Sets `sent` to the number of bytes that TCP accepted, even if the send
    /// fails.
    pub(in crate::driver) async fn send(&mut self, octets: &[u8], sent: &mut usize) -> Result<(), LinkError> {
        let handle = self.handle.ok_or(LinkError::Finished)?;
        while let Some(rest) = octets.get(*sent..).filter(|rest| !rest.is_empty()) {
            self.stack.poll();
            let written = self.stack.wait(|engine| engine.write(handle, rest));
            let written = timeout(self.send_timeout, written).await.map_err(|_| self.send_timed_out())?;
            *sent += written.map_err(|failure| while_sending("send", failure))?;
            self.stack.poll();
        }
        Ok(())
    }

    /// Sends the bytes that TCP accepts now. Returns their number.
    pub(in crate::driver) async fn send_now(&mut self, octets: &[u8]) -> Result<usize, LinkError> {
        let handle = self.handle.ok_or(LinkError::Finished)?;
        let mut sent = 0;
        while let Some(rest) = octets.get(sent..).filter(|rest| !rest.is_empty()) {
            self.stack.poll();
            let Ok(written) = timeout(NOW, self.stack.wait(|engine| engine.write(handle, rest))).await else { break };
            sent += written.map_err(|failure| while_sending("send", failure))?;
        }
        self.stack.poll();
        Ok(sent)
    }

    /// See [`TesterConnection::withhold`](crate::driver::TesterConnection::withhold).
    pub(in crate::driver) async fn withhold(&mut self, octets: &[u8]) -> Result<(), LinkError> {
        let handle = self.handle.ok_or(LinkError::Finished)?;
        self.stack.poll();
        let withheld = self.stack.wait(|engine| engine.withhold(handle, octets));
        let withheld = timeout(self.send_timeout, withheld).await.map_err(|_| self.send_timed_out())?;
        // TCP sends its segments to the flow, which keeps them back.
        self.stack.poll();
        withheld.map_err(|failure| while_sending("withhold", failure))
    }

    /// See [`TesterConnection::send_segment`](crate::driver::TesterConnection::send_segment).
    pub(in crate::driver) fn send_segment(
        &mut self,
        begin: i64,
        octets: &[u8],
        fragments: Option<Fragments>,
    ) -> Result<(), LinkError> {
        let handle = self.handle.ok_or(LinkError::Finished)?;
        let sent = self.stack.act(|engine| engine.send_segment(handle, begin, octets, fragments));
        sent.map_err(|failure| while_sending("send a segment", failure))
    }

    /// See [`TesterConnection::send_withheld`](crate::driver::TesterConnection::send_withheld).
    pub(in crate::driver) fn send_withheld(&mut self) -> Result<(), LinkError> {
        let handle = self.handle.ok_or(LinkError::Finished)?;
        let sent = self.stack.act(|engine| engine.release(handle));
        sent.map_err(|failure| while_sending("send", failure))
    }

    /// Receives at most `most` bytes.
    pub(in crate::driver) async fn receive(&mut self, deadline: Instant, most: usize) -> Result<Received, LinkError> {
        let Some(handle) = self.handle else { return Ok(Received::Reset) };
        // Frames that have arrived are processed first. Then `timeout_at` polls the read before it
        // compares the time. Therefore bytes that have arrived are returned even if the deadline
        // has passed.
        self.stack.poll();
        let received = self.stack.wait(|engine| engine.read(handle, most));
        match timeout_at(self.clock.to_tokio(deadline), received).await {
            Err(_) => Ok(Received::TimedOut),
            Ok(Ok(received)) => {
                // TCP announces the larger window.
                self.stack.poll();
                Ok(received)
            }
            Ok(Err(source)) => Err(LinkError::Io { doing: "receive", source }),
        }
    }

    /// Closes the tester's half. If a send is withheld, sends its other bytes first.
    pub(in crate::driver) fn finish(&mut self) -> Result<(), LinkError> {
        let handle = self.handle.ok_or(LinkError::Finished)?;
        self.stack.poll();
        let finished = self.stack.act(|engine| engine.finish(handle));
        finished.map_err(|failure| while_sending("close", failure))
    }

    pub(in crate::driver) fn reset(&mut self) -> Result<(), LinkError> {
        if let Some(handle) = self.handle.take() {
            self.stack.act(|engine| engine.reset(handle));
        }
        Ok(())
    }

    /// Closes the connection. TCP removes it when it is over.
    pub(in crate::driver) fn release(&mut self) {
        if let Some(handle) = self.handle.take() {
            self.stack.act(|engine| engine.abandon(handle));
        }
    }

    fn send_timed_out(&self) -> LinkError {
        LinkError::SendTimeout { after: self.send_timeout }
    }
}

impl Drop for WireTester {
    fn drop(&mut self) {
        self.release();
    }
}

fn while_sending(doing: &'static str, failure: SendFailure) -> LinkError {
    match failure {
        SendFailure::Reset => LinkError::Reset,
        SendFailure::Io(source) => LinkError::Io { doing, source },
    }
}
