//! Protocol units with the state of their connection, as a [`Sink`](crate::Sink) receives them.
//!
//! [`crate::grammar`] splits units into fields, and [`crate::rules`] checks units.

use std::ops::Deref;

use crate::context::Context;
use crate::parse;
pub use crate::parse::{
    Carrier, CrcStatus, Endpoints, Fpdu, Kind, Location, MarkerStatus, Origin, STREAMING_HEAD, SenderError,
    StreamOrigin,
};

/// A protocol unit with the state that the dissector knows of its connection.
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    /// The unit without the state. This type dereferences to `parsed`.
    pub parsed: &'a parse::Unit<'a>,
    /// The state that the dissector knows of the connection; `None` if this state does not concern
    /// the unit.
    pub context: Option<&'a Context>,
}

impl<'a> Deref for Unit<'a> {
    type Target = parse::Unit<'a>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        self.parsed
    }
}
