//! The protocol units as a [`Sink`](crate::Sink) receives them: with the state of their connection.
//!
//! [`crate::grammar`] splits them into fields, [`crate::rules`] checks them.

use std::ops::Deref;

use crate::context::Context;
use crate::parse;
pub use crate::parse::{
    Carrier, CrcStatus, Ends, Fpdu, Kind, Located, MarkerStatus, Misread, Origin, STREAMING_HEAD, StreamOrigin,
};

/// A unit, and beside it what the monitor knows about its connection.
#[derive(Debug, Clone, Copy)]
pub struct Unit<'a> {
    /// The unit; its fields and methods are also those of this type.
    pub parsed: &'a parse::Unit<'a>,
    /// The monitor's knowledge of its connection, if it concerns the unit.
    pub context: Option<&'a Context>,
}

impl<'a> Deref for Unit<'a> {
    type Target = parse::Unit<'a>;

    #[inline]
    fn deref(&self) -> &Self::Target {
        self.parsed
    }
}
