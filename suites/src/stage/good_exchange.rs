//! The good exchange, which shows that the target is alive and its service works.
//!
//! With the echo service: Request, Reply with R=0, a Send, the same octets back in a Send, an
//! orderly close. With rping, its ritual in place of the Send. Where nothing is known above MPA:
//! Request, Reply with R=0, an orderly close.

use weft_core::RequirementId;

use super::{Expectation, Operation, Stage, Stop};
use crate::correct;
use crate::model::SourceLocation;
use crate::stage::Message;

/// Seconds that the target has for its Reply, and again for its echo.
const ANSWER_SECONDS: f64 = 5.0;

impl Stage {
    /// The good exchange of a target that connects: start-up, and one exchange of its service.
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

    /// A good exchange on a connection of its own; without one the case is inconclusive. It is
    /// evidence for `shows`.
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

    /// Ends the connection of a good exchange that worked, and decides the case if it did not.
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

    /// Start-up in either role, and the work of the target's service.
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

    /// Request and Reply, and then what brings the target's service into Full Operation: it has
    /// sent FPDUs, and so may send more.
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
            // siw also loses what arrives immediately after its first echo: about one time in twenty.
            let settled = self.connections.link.now() + self.connections.target.options.settle;
            self.connections.link.pause(settled).await;
        }
        begun.map_err(|why| self.recorder().undecided(expectation, "Full Operation", &why))
    }
}
