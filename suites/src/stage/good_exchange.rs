//! The good exchange, which shows that the target is alive and its service works.
//!
//! With the echo service, the good exchange consists of a Request, a Reply with R=0, a Send, a Send
//! that returns the same bytes, and an orderly close. With rping, one round of rping replaces the
//! Sends. If the service above MPA is unknown, there are no Sends.

use weft_core::RequirementId;

use super::{Expectation, Operation, Stage, Stop};
use crate::correct;
use crate::model::SourceLocation;
use crate::stage::Message;

/// Seconds to wait for the target's Reply, and again for its echo.
const ANSWER_SECONDS: f64 = 5.0;

impl Stage {
    /// Does the good exchange with a target that connects: start-up, and one exchange of its
    /// service.
    pub(in crate::stage) async fn exchange_as_responder(
        &mut self,
        number: u32,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        let at = expectation.at.as_ref();
        self.rdma().await_request(number, at).await?;
        let reply = Message::new("MPA Reply", correct::startup(&self.rdma().correct_reply(number, at)?));
        let opened = match self.rdma().accept(number, &reply, expectation).await? {
            Ok(opened) => opened,
            Err(why) => return Ok(Err(why)),
        };
        self.connections.target.service().driver().serve(self, number, &opened, expectation).await
    }

    /// Does a good exchange on a new connection. If it works, it is evidence for `shows`. If it
    /// fails, the case is inconclusive.
    pub(crate) async fn good_exchange(
        &mut self,
        shows: Vec<RequirementId>,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        let done = self.exchange(shows, at).await;
        if done.is_err() {
            self.connections.log.dead();
        }
        done
    }

    pub(in crate::stage) async fn exchange(
        &mut self,
        shows: Vec<RequirementId>,
        at: Option<&SourceLocation>,
    ) -> Result<(), Stop> {
        let within = self.connections.target.scaled(ANSWER_SECONDS);
        let expectation = Expectation { shows, ..Expectation::preparation(within, at) };
        self.connections.target.service().driver().good_exchange(self, &expectation).await
    }

    /// Closes the connection of a good exchange that worked. If the exchange failed, decides the
    /// case.
    pub(in crate::stage) async fn conclude(
        &mut self,
        done: Result<u32, String>,
        expected: &str,
        expectation: &Expectation,
    ) -> Result<(), Stop> {
        match done {
            Ok(number) => {
                self.connections.close(number, expectation.at.as_ref()).await?;
                self.connections.log.alive();
                self.recorder().met(number, expectation, expected, "a good exchange");
                Ok(())
            }
            Err(why) => Err(self.recorder().undecided(expectation, expected, &format!("in the good exchange, {why}"))),
        }
    }

    /// Does start-up in either role, and the exchange of the target's service.
    pub(in crate::stage) async fn iwarp_exchange(
        &mut self,
        number: u32,
        expectation: &Expectation,
    ) -> Result<Result<(), String>, Stop> {
        if self.connections.start.is_some() {
            return self.exchange_as_responder(number, expectation).await;
        }
        let request = Message::new("MPA Request", correct::startup(&self.connections.target.description.request));
        match self.rdma().start_up(number, &request, expectation).await? {
            Ok(started) => self.connections.target.service().driver().work(self, number, &started, expectation).await,
            Err(why) => Ok(Err(why)),
        }
    }

    /// Does start-up, and brings the target's service into Full Operation. The target has then sent
    /// FPDUs, and may send more at any time.
    pub(crate) async fn operate(
        &mut self,
        number: u32,
        request: &Message,
        expectation: &Expectation,
    ) -> Result<Operation, Stop> {
        let begun = match self.rdma().start_up(number, request, expectation).await? {
            Ok(started) => {
                self.connections.target.service().driver().operate(self, number, &started, expectation).await?
            }
            Err(why) => Err(why),
        };
        if let Ok(operation) = &begun {
            self.connections.get(number, expectation.at.as_ref())?.progress.buffer = operation.buffer;
            self.connections.log.operates();
            // Linux's soft-iWARP driver (siw) also loses bytes that arrive immediately after its
            // first echo, about one time in twenty.
            let settled = self.connections.link.now() + self.connections.target.options.settle_time;
            self.connections.link.pause(settled).await;
        }
        begun.map_err(|why| self.recorder().undecided(expectation, "Full Operation", &why))
    }
}
