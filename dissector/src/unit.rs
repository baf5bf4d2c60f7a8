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

/// A protocol unit with the monitor's state of its connection.
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    /// The unit. This type dereferences to it.
    pub parsed: &'a parse::Unit<'a>,
    /// The monitor's state of the connection, if the state concerns the unit.
    pub context: Option<&'a Context>,
}

impl<'a> Deref for Unit<'a> {
    type Target = parse::Unit<'a>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        self.parsed
    }
}
