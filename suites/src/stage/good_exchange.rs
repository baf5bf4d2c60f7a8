//! The good exchange, which shows that the target is alive and its service works.
//!
//! With the echo service, the good exchange consists of a Request, a Reply with R=0, a Send, a Send
//! that returns the same bytes, and an orderly close. With rping, one round of rping replaces the
//! Sends. If the service above MPA is unknown, there are no Sends.

use weft_core::RequirementId;

use super::{Attempt, Expectation, Operation, Stage, StepFailure, Stop};
use crate::correct;
use crate::stage::Message;

/// Seconds to wait for the target's Reply, and again for its echo.
const ANSWER_SECONDS: f64 = 5.0;

impl Stage {
    /// Does a good exchange on a new connection. If it works, it is evidence for `shows`. If it
    /// fails, the case is inconclusive.
    pub(crate) async fn good_exchange(&mut self, shows: Vec<RequirementId>) -> Result<(), Stop> {
        self.judged_good_exchange(Vec::new(), shows).await
    }

    /// Does a good exchange like [`good_exchange`](Self::good_exchange). If it fails, the target
    /// violates `requirements`.
    pub(crate) async fn judged_good_exchange(
        &mut self,
        requirements: Vec<RequirementId>,
        shows: Vec<RequirementId>,
    ) -> Result<(), Stop> {
        let done = self.exchange(requirements, shows).await;
        if done.is_err() {
            self.connections.log.dead();
        }
        done
    }

    pub(in crate::stage) async fn exchange(
        &mut self,
        requirements: Vec<RequirementId>,
        shows: Vec<RequirementId>,
    ) -> Result<(), Stop> {
        let within = self.connections.target.scaled(ANSWER_SECONDS);
        let expectation = Expectation { requirements, shows, ..Expectation::preparation(within) };
        self.connections.target.service().driver().good_exchange(self, &expectation).await
    }

    /// If the good exchange worked, closes its connection. If the exchange failed, decides the
    /// case.
    pub(in crate::stage) async fn conclude(
        &mut self,
        done: Attempt<u32>,
        expected: &str,
        expectation: &Expectation,
    ) -> Result<(), Stop> {
        match done {
            Ok(number) => {
                self.connections.close(number).await?;
                self.connections.log.alive();
                self.connections.recorder_of(number).met(expectation, expected, "a good exchange");
                Ok(())
            }
            Err(failure) => Err(match failure.in_step("in the good exchange") {
                StepFailure::Reason(why) if !expectation.requirements.is_empty() => {
                    self.recorder().unmet(expectation, expected, &why)
                }
                failure => self.recorder().failed(failure, expectation, expected),
            }),
        }
    }

    /// Does start-up in either role, and the exchange of the target's service.
    pub(in crate::stage) async fn iwarp_exchange(&mut self, number: u32, expectation: &Expectation) -> Attempt {
        let frame = match self.connections.start.is_some() {
            true => {
                self.rdma(number).await_request().await?;
                Message::new("MPA Reply", correct::startup(&self.rdma(number).correct_reply()?))
            }
            false => Message::new("MPA Request", correct::startup(&self.connections.target.description.request)),
        };
        self.exchange_after(number, &frame, expectation).await
    }

    /// Does start-up with this frame of the tester, then one exchange of the target's service.
    pub(in crate::stage) async fn exchange_after(
        &mut self,
        number: u32,
        frame: &Message,
        expectation: &Expectation,
    ) -> Attempt {
        let service = self.connections.target.service().driver();
        if self.connections.start.is_some() {
            let opened = self.rdma(number).accept(frame, expectation).await?;
            return service.serve(self.connections.exchange(number, opened.started, expectation), opened.buffer).await;
        }
        let started = self.rdma(number).start_up(frame, expectation).await?;
        service.work(self.connections.exchange(number, started, expectation)).await
    }

    /// Does start-up, and brings the target's service into Full Operation. The target has then sent
    /// FPDUs, and may send more at any time.
    ///
    /// The target violates the requirements of the expectation if it does not answer the Request in
    /// time, or if it accepts the connection and the exchange of its service fails. If the target
    /// refuses the connection, the case is inconclusive.
    pub(crate) async fn operate(
        &mut self,
        number: u32,
        request: &Message,
        expectation: &Expectation,
    ) -> Result<Operation, Stop> {
        const EXPECTED: &str = "Full Operation";
        let service = self.connections.target.service().driver();
        self.connections.put(number, request).await?;
        if !expectation.requirements.is_empty() {
            self.rdma(number).await_answer(expectation).await?;
        }
        let started = self.rdma(number).finish_start_up(request, expectation).await;
        let is_accepted = started.is_ok();
        let begun = match started {
            Ok(started) => service.operate(self.connections.exchange(number, started, expectation)).await,
            Err(failure) => Err(failure),
        };
        let operation = begun.map_err(|failure| match failure {
            StepFailure::Reason(why) if is_accepted => {
                self.connections.recorder_of(number).unmet(expectation, EXPECTED, &why)
            }
            failure => self.recorder().failed(failure, expectation, EXPECTED),
        })?;
        self.connections.get(number)?.progress.buffer = operation.buffer;
        self.connections.log.operates();
        // This pause is for Linux's soft-iWARP driver (siw). About one time in twenty, siw loses
        // bytes that arrive immediately after its first echo.
        let settled = self.connections.link.now() + self.connections.target.options.settle_time;
        self.connections.link.pause(settled).await;
        Ok(operation)
    }
}
