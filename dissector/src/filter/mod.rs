//! Display filters, in Wireshark's language and with its field names.
//!
//! ```text
//! iwarp_rdma.opcode == "Send" && iwarp_mpa.ulpdulength > 100
//! tcp.port in {4210, 5000..5010} and not iwarp_ddp.last_flag == 1
//! crc_status == bad || finding.severity >= warning
//! iwarp_mpa.privatedata contains 72:65:76 or payload matches "^GET "
//! ```
//!
//! A field that occurs several times matches if one of its values matches. `!=` and `not in`
//! require all values to match, as in tshark 4. A test of an absent field fails. Names of values
//! are accepted for numbers.
//!
//! | file | what it is |
//! | --- | --- |
//! | `lex`, `ast` | the text's structure |
//! | [`mod@known`] | what names mean |
//! | `literal` | values |
//! | `eval` | the compiled filter |
//! | `collect` | the wanted fields of a unit, a frame, a finding, as [`Values`] |
//!
//! A filter and the columns of an output share one [`Wanted`]: a unit is walked once, and only
//! wanted fields are kept. Slices of fields, arithmetic, bit masks and functions of Wireshark's
//! language are not supported.

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

pub use collect::{FrameFacts, Wanted};
pub use error::FilterError;
pub use known::{Known, known};
pub use values::{Slot, Values};

/// Longest filter that is read, in octets.
const LONGEST: usize = 64 << 10;

/// A compiled filter.
#[derive(Debug, Clone)]
pub struct Filter {
    root: eval::Node,
}

impl Filter {
    /// Parses `text` and adds the fields that it needs to `wanted`.
    ///
    /// # Errors
    /// What is wrong, and in which column.
    pub fn parse(text: &str, wanted: &mut Wanted) -> Result<Self, FilterError> {
        if text.len() > LONGEST {
            return Err(FilterError::new(text, &(0..0), format!("longer than {LONGEST} bytes")));
        }
        let expr = ast::parse(text)?;
        let root = eval::Compiler { text, wanted, regexes: 0 }.compile(&expr)?;
        Ok(Filter { root })
    }

    /// Do the collected values pass?
    #[must_use]
    pub fn matches(&self, values: &Values) -> bool {
        self.root.holds(values)
    }
}
