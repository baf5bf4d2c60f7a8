//! Display filters, in Wireshark's language and with its field names.
//!
//! ```text
//! iwarp_rdma.opcode == "Send" && iwarp_mpa.ulpdulength > 100
//! tcp.port in {4210, 5000..5010} and not iwarp_ddp.last_flag == 1
//! crc_status == bad || finding.severity >= warning
//! iwarp_mpa.privatedata contains 72:65:76 or payload matches "^GET "
//! ```
//!
//! A field can occur several times, with different values. As in tshark 4, the tests `===`, `!=`
//! and `not in` pass only if they are true for all of these values. All other tests pass if they
//! are true for at least one of these values. A test of an absent field fails. A filter can contain
//! the name of a value instead of its number.
//!
//! | file | purpose |
//! | --- | --- |
//! | `lex`, `ast` | parse the text |
//! | [`mod@known`] | defines the fields |
//! | `literal` | reads values in the text |
//! | `eval` | compiles and evaluates the filter |
//! | `collect` | collects the requested fields of a unit, frame or finding as [`Values`] |
//!
//! A filter and the columns of an output share one [`WantedFields`]. Therefore
//! [`grammar`](crate::grammar) reads a unit only once, and only requested fields are stored.
//! Wireshark's language also has slices of fields, arithmetic, bit masks and functions; weft does
//! not support these.

mod ast;
mod collect;
mod error;
mod eval;
pub mod known;
mod lex;
mod literal;
#[cfg(test)]
mod tests;
pub(crate) mod values;

pub use collect::{FrameFacts, WantedFields};
pub use error::FilterError;
pub use known::{KnownField, known};
pub use values::{Slot, Values};

/// Maximum length of a filter in octets.
const LONGEST: usize = 64 << 10;

/// A compiled filter.
#[derive(Debug, Clone)]
pub struct Filter {
    root: eval::Node,
}

impl Filter {
    /// Parses `text`, and adds the fields of the filter to `wanted`.
    ///
    /// # Errors
    /// The filter is invalid. The error has a description and a column.
    pub fn parse(text: &str, wanted: &mut WantedFields) -> Result<Self, FilterError> {
        if text.len() > LONGEST {
            return Err(FilterError::new(text, &(0..0), format!("the filter is longer than {LONGEST} bytes")));
        }
        let expr = ast::parse(text)?;
        let root = eval::Compiler { text, wanted, regexes: 0 }.compile(&expr)?;
        Ok(Filter { root })
    }

    /// Returns whether the collected values pass the filter.
    #[must_use]
    pub fn matches(&self, values: &Values) -> bool {
        self.root.holds(values)
    }
}
