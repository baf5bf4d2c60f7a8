//! The target's verbs, which an agent calls. The good exchange is a Send in each direction.

use super::{Expectation, Outcome, ServiceDriver, Stage};
use crate::model::Capability;

pub(crate) struct Agent;

impl ServiceDriver for Agent {
    fn name(&self) -> &'static str {
        "agent"
    }

    fn capability(&self) -> Option<Capability> {
        Some(Capability::Agent)
    }

    fn good_exchange_text(&self) -> &'static str {
        "a good exchange: start-up, a Send in each direction, and the completions of both"
    }

    fn opens_with_send(&self) -> bool {
        false
    }

    fn exchange<'s>(&'s self, stage: &'s mut Stage, expectation: &'s Expectation) -> Outcome<'s, u32> {
        Box::pin(async move { stage.agent().exchange(expectation).await })
    }

    fn plain_exchanges<'s>(&'s self, stage: &'s mut Stage, _: u32, expectation: &'s Expectation) -> Outcome<'s> {
        Box::pin(async move {
            let done = stage.agent().exchange(expectation).await?;
            Ok(done.map(|_| ()).map_err(|why| format!("in a plain exchange on a separate connection, {why}")))
        })
    }
}
