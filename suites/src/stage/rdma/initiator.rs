//! Start-up of a connection on which the tester is the Initiator.

use std::time::Duration;

use weft_core::wire::mpa::{Startup, StartupKind};

use super::{RdmaSide, StartUpResult};
use crate::correct::{self, StartupFields};
use crate::stage::{Arrival, Attempt, Expectation, Message, Stop};

impl RdmaSide<'_> {
    /// Sends a Request, waits for the Reply, and then resets the connection. Returns the Reply, or
    /// what arrived instead.
    pub(in crate::stage) async fn probe(&mut self, request: &StartupFields, within: Duration) -> Attempt<Vec<u8>> {
        let expectation = Expectation::preparation(within);
        self.connections.put(self.number, &Message::new("MPA Request", correct::startup(request))).await?;
        let reply = self.connections.startup_frame(self.number, &expectation, StartupKind::Reply).await?;
        self.connections.abort(self.number).await?;
        reply.map_err(|none| none.to_string().into())
    }

    /// Does start-up: Request, Reply and, in the peer-to-peer model, the ready-to-receive message.
    pub(in crate::stage) async fn start_up(
        &mut self,
        request: &Message,
        expectation: &Expectation,
    ) -> Attempt<StartUpResult> {
        self.connections.put(self.number, request).await?;
        self.finish_start_up(request, expectation).await
    }

    /// Like [`start_up`](Self::start_up), after the Request was sent.
    pub(in crate::stage) async fn finish_start_up(
        &mut self,
        request: &Message,
        expectation: &Expectation,
    ) -> Attempt<StartUpResult> {
        let reply = self.connections.startup_frame(self.number, expectation, StartupKind::Reply).await?;
        let reply = reply.map_err(|none| format!("it {none} when its Reply was expected"))?;
        let frame = Startup::parse(&reply).map_err(|error| format!("its Reply is wrong: {error}"))?;
        if frame.reject {
            return Err("it rejected the connection".into());
        }
        let requested = Startup::parse(&request.octets).ok();
        if requested.is_some_and(|requested| requested.enhanced.is_some()) && frame.enhanced.is_none() {
            return Err("its Reply to an enhanced Request is not enhanced".into());
        }
        let crc = frame.crc || requested.is_some_and(|requested| requested.crc);
        let ird = frame.enhanced.map(|words| words.ird);
        let mut started = StartUpResult { crc, rtr: None, ird };
        if let Some(agreed) = frame.enhanced.filter(|agreed| agreed.peer_to_peer) {
            let (kind, ulpdu) =
                correct::ready_to_receive(&agreed).ok_or("its Reply selects no ready-to-receive message")?;
            self.wait_until_settled().await?;
            let mut exchange = self.connections.exchange(self.number, started, expectation);
            exchange.send(&format!("ready to receive ({kind:?})"), &ulpdu).await?;
            started.rtr = Some(kind);
        }
        Ok(started)
    }

    /// Waits until something arrives after the tester's Request. If nothing arrives in time, the
    /// target violates the requirements of the expectation. A close decides nothing, because a
    /// service may limit its connections.
    pub(crate) async fn await_answer(&mut self, expectation: &Expectation) -> Result<(), Stop> {
        const EXPECTED: &str = "an answer to the Request";
        let deadline = self.connections.link.now() + expectation.within;
        let closed = match self.connections.receive(self.number, deadline).await? {
            Arrival::Octets => return Ok(()),
            Arrival::Fin => "it closed the connection when its Reply was expected",
            Arrival::Reset => "it reset the connection when its Reply was expected",
            Arrival::TimedOut => {
                let text = self.recorder().silence(expectation);
                self.recorder().note_missing_answer(true);
                return Err(self.recorder().unmet(expectation, EXPECTED, &text));
            }
        };
        Err(self.recorder().undecided(expectation, EXPECTED, closed))
    }

    /// Waits `settle_ms`. Some implementations do not process bytes that arrive immediately after
    /// their Reply. They process these bytes only when more bytes arrive. Returns false if
    /// something arrived during the wait.
    pub(in crate::stage) async fn wait_until_settled(&mut self) -> Result<bool, Stop> {
        let settled = self.connections.link.now() + self.connections.target.options.settle_time;
        Ok(self.connections.receive(self.number, settled).await? == Arrival::TimedOut)
    }
}
