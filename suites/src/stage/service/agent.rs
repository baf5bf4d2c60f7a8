//! The target's verbs, which an agent calls. The good exchange is a Send in each direction.

use super::{Expectation, Outcome, ServiceDriver, ServiceFacts, Stage};
use crate::model::Capability;

pub(crate) struct Agent;

impl ServiceDriver for Agent {
    fn facts(&self) -> ServiceFacts {
        let text = "a good exchange: start-up, a Send in each direction, and the completions of both";
        ServiceFacts { opens_with_send: false, ..ServiceFacts::new("agent", Some(Capability::Agent), text) }
    }

    fn exchange<'s>(&'s self, stage: &'s mut Stage, expectation: &'s Expectation) -> Outcome<'s, u32> {
        Box::pin(async move { stage.agent().exchange(expectation).await })
    }

    fn plain_exchanges<'s>(&'s self, stage: &'s mut Stage, _: u32, expectation: &'s Expectation) -> Outcome<'s> {
        Box::pin(async move {
            let done = stage.agent().exchange(expectation).await.map(|_| ());
            done.map_err(|failure| failure.in_step("in a correct exchange on a separate connection"))
        })
    }
}
