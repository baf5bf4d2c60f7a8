//! Writes the columns of Wireshark's packet list: as lines with tabs, or as PSML (Packet Summary
//! Markup Language), Wireshark's XML of the columns.

use std::io::{self, Write};

use super::pdml::escaped;
use crate::filter::{DEFAULT_COLUMNS, KnownField, Slot, Values, WantedFields, known};

/// The format of the columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ColumnFormat {
    /// One line for each frame, with tabs between the columns.
    Tabs,
    /// PSML.
    Psml,
}

/// Writes the columns of frames.
pub struct ColumnsWriter {
    format: ColumnFormat,
    columns: Vec<(Slot, &'static KnownField)>,
}

impl ColumnsWriter {
    /// A writer of the default columns, which are added to `wanted`.
    #[must_use]
    pub fn new(format: ColumnFormat, wanted: &mut WantedFields) -> Self {
        let columns = DEFAULT_COLUMNS.iter().filter_map(|name| known(name));
        ColumnsWriter { format, columns: columns.map(|known| (wanted.add(known), known)).collect() }
    }

    /// Writes the start of the document.
    ///
    /// # Errors
    /// `out` reports an error.
    pub fn head(&self, out: &mut dyn Write) -> io::Result<()> {
        if self.format == ColumnFormat::Tabs {
            return Ok(());
        }
        writeln!(out, "<?xml version=\"1.0\" encoding=\"utf-8\"?>")?;
        writeln!(out, "<psml version=\"0\" creator=\"weft/{}\">", env!("CARGO_PKG_VERSION"))?;
        writeln!(out, "<structure>")?;
        for (_, known) in &self.columns {
            let title = known.name.strip_prefix("_ws.col.").unwrap_or(known.name);
            writeln!(out, "<section>{title}</section>")?;
        }
        writeln!(out, "</structure>\n")
    }

    /// Writes a frame.
    ///
    /// # Errors
    /// `out` reports an error.
    pub fn record(&self, values: &Values, out: &mut dyn Write) -> io::Result<()> {
        let texts = self.columns.iter().map(|(slot, known)| {
            let mut text = Vec::new();
            values.write_first_or_last(*slot, known, false, &mut text);
            String::from_utf8_lossy(&text).into_owned()
        });
        match self.format {
            ColumnFormat::Tabs => writeln!(out, "{}", texts.collect::<Vec<_>>().join("\t")),
            ColumnFormat::Psml => {
                writeln!(out, "<packet>")?;
                for text in texts {
                    writeln!(out, "<section>{}</section>", escaped(&text))?;
                }
                writeln!(out, "</packet>\n")
            }
        }
    }

    /// Writes the end of the document.
    ///
    /// # Errors
    /// `out` reports an error.
    pub fn tail(&self, out: &mut dyn Write) -> io::Result<()> {
        match self.format {
            ColumnFormat::Tabs => Ok(()),
            ColumnFormat::Psml => writeln!(out, "</psml>"),
        }
    }
}
