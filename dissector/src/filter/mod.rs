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
//! | [`mod@known`], `field_type` | define the fields, and the types of their values |
//! | `header_field`, `column`, `send_field` | define further fields of Wireshark |
//! | `literal` | reads values in the text |
//! | `eval` | compiles and evaluates the filter |
//! | `collect` | collects the requested fields of a unit, frame or finding as [`Values`] |
//! | `frame_facts`, `unit_facts` | have and collect the facts about frames and units |
//! | `field_reader`, `tcp_fields` | collect the fields of headers, and the analysis of TCP |
//! | `recently_used` | keeps the state of a limited number of connections |
//! | `sends` | puts Sends of several segments together |
//! | `time_format` | formats times as tshark's option `-t` |
//!
//! A filter and the columns of an output share one [`WantedFields`]. Therefore
//! [`grammar`](crate::grammar) reads a unit only once, and only requested fields are stored.
//! Wireshark's language also has slices of fields, arithmetic, bit masks and functions; weft does
//! not support these.

mod ast;
mod collect;
mod column;
mod error;
mod eval;
mod field_reader;
mod field_type;
mod frame_facts;
mod header_field;
pub mod known;
mod lex;
mod literal;
mod recently_used;
mod send_field;
mod sends;
mod tcp_fields;
#[cfg(test)]
mod tests;
mod time_format;
mod unit_facts;
pub(crate) mod values;

pub use collect::WantedFields;
pub(crate) use column::protocol_of;
pub use column::{DEFAULT_COLUMNS, OtherFrame};
pub use error::FilterError;
pub use field_reader::FieldReader;
pub use frame_facts::FrameFacts;
pub use known::{KnownField, known};
pub use time_format::{InvalidTimeFormat, TimeForm, TimeFormat};
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
