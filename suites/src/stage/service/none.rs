//! A target without a known service above MPA. The good exchange is start-up alone.

use super::{Exchange, Outcome, ServiceDriver, ServiceFacts, TaggedBuffer};

pub(crate) struct NoService;

impl ServiceDriver for NoService {
    fn facts(&self) -> ServiceFacts {
        let startup = ServiceFacts::new("none", None, "a good exchange: start-up");
        ServiceFacts { has_plain_exchange: false, opens_with_send: false, ..startup }
    }

    fn serve<'s>(&'s self, _: Exchange<'s>, _: Option<TaggedBuffer>) -> Outcome<'s> {
        Box::pin(std::future::ready(Ok(())))
    }
}
