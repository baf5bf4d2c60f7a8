//! A target without a known service above MPA. The good exchange is start-up alone.

use super::{AcceptedStartUp, Expectation, Outcome, ServiceDriver, Stage};
use crate::model::Capability;

pub(crate) struct NoService;

impl ServiceDriver for NoService {
    fn name(&self) -> &'static str {
        "none"
    }

    fn capability(&self) -> Option<Capability> {
        None
    }

    fn good_exchange_text(&self) -> &'static str {
        "a good exchange: start-up"
    }

    fn has_plain_exchange(&self) -> bool {
        false
    }

    fn has_fpdus(&self) -> bool {
        false
    }

    fn opens_with_send(&self) -> bool {
        false
    }

    fn serve<'s>(&'s self, _: &'s mut Stage, _: u32, _: &'s AcceptedStartUp, _: &'s Expectation) -> Outcome<'s> {
        Box::pin(std::future::ready(Ok(Ok(()))))
    }
}
