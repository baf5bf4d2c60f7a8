//! Writes columns of field values, in the format of tshark's `-T fields`.

use std::io::{self, Write};

use crate::filter::{KnownField, Slot, Values};

/// The values that a column shows if a field has several values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Occurrence {
    /// The first value.
    First,
    /// The last value.
    Last,
    /// All values, with [`Columns::aggregator`] between them.
    All,
}

/// The format of columns. The default is the default of tshark.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Columns {
    /// Whether the first line has the names of the fields.
    pub header: bool,
    /// Character between columns.
    pub separator: char,
    /// Character between the values of one column.
    pub aggregator: char,
    /// The values to print.
    pub occurrence: Occurrence,
    /// Character before and after each non-empty column.
    pub quote: Option<char>,
}

impl Default for Columns {
    fn default() -> Self {
        Columns { header: false, separator: '\t', aggregator: ',', occurrence: Occurrence::All, quote: None }
    }
}

impl Columns {
    /// Applies one setting in tshark's spelling: `header=y`, `separator=/s`, `occurrence=f`,
    /// `aggregator=;`, `quote=d`.
    ///
    /// # Errors
    /// The setting is unknown, or its value is invalid. The text describes the error.
    pub fn set(&mut self, setting: &str) -> Result<(), String> {
        let Some((name, value)) = setting.split_once('=') else {
            return Err(format!("{setting:?} is not a setting; write name=value, such as header=y"));
        };
        let character = || match value {
            "/t" => Ok('\t'),
            "/s" => Ok(' '),
            _ => match value.chars().collect::<Vec<_>>().as_slice() {
                [one] => Ok(*one),
                _ => Err(format!("{name} {value:?} is not one character; write /t for a tab and /s for a space")),
            },
        };
        match (name, value) {
            ("header", "y") => self.header = true,
            ("header", "n") => self.header = false,
            ("separator", _) => self.separator = character()?,
            ("aggregator", _) => self.aggregator = character()?,
            ("occurrence", "f") => self.occurrence = Occurrence::First,
            ("occurrence", "l") => self.occurrence = Occurrence::Last,
            ("occurrence", "a") => self.occurrence = Occurrence::All,
            ("quote", "d") => self.quote = Some('"'),
            ("quote", "s") => self.quote = Some('\''),
            ("quote", "n") => self.quote = None,
            ("header" | "occurrence" | "quote", _) => {
                let letters = match name {
                    "header" => "y or n",
                    "occurrence" => "f, l or a",
                    _ => "d, s or n",
                };
                return Err(format!("{name} must be {letters}, not {value:?}"));
            }
            _ => {
                return Err(format!(
                    "{name:?} is not a setting; the settings are header, separator, aggregator, occurrence, quote"
                ));
            }
        }
        Ok(())
    }
}

/// Writes one line for each frame.
pub struct FieldsWriter {
    fields: Vec<(Slot, &'static KnownField)>,
    columns: Columns,
    line: Vec<u8>,
}

impl FieldsWriter {
    /// A writer of the columns `fields`.
    #[must_use]
    pub fn new(fields: Vec<(Slot, &'static KnownField)>, columns: Columns) -> Self {
        FieldsWriter { fields, columns, line: Vec::new() }
    }

    /// Writes the header line, if [`Columns::header`] is set.
    ///
    /// # Errors
    /// `out` reports an error.
    pub fn header(&mut self, out: &mut dyn Write) -> io::Result<()> {
        if !self.columns.header {
            return Ok(());
        }
        let names: Vec<_> = self.fields.iter().map(|(_, known)| known.name).collect();
        writeln!(out, "{}", names.join(&self.columns.separator.to_string()))
    }

    /// Writes the line of a frame.
    ///
    /// # Errors
    /// `out` reports an error.
    pub fn record(&mut self, values: &Values, out: &mut dyn Write) -> io::Result<()> {
        let FieldsWriter { fields, columns, line } = self;
        line.clear();
        for (index, (slot, known)) in fields.iter().enumerate() {
            if index > 0 {
                push(columns.separator, line);
            }
            let before = line.len();
            if let Some(quote) = columns.quote {
                push(quote, line);
            }
            let any = match columns.occurrence {
                Occurrence::All => values.write(*slot, known, line, |line| push(columns.aggregator, line)) > 0,
                Occurrence::First => values.write_first_or_last(*slot, known, false, line),
                Occurrence::Last => values.write_first_or_last(*slot, known, true, line),
            };
            match columns.quote {
                Some(quote) if any => push(quote, line),
                // tshark writes empty columns without quotes.
                _ if !any => line.truncate(before),
                _ => {}
            }
        }
        line.push(b'\n');
        out.write_all(line)
    }
}

#[inline]
fn push(character: char, line: &mut Vec<u8>) {
    match u8::try_from(character) {
        Ok(octet) if character.is_ascii() => line.push(octet),
        _ => line.extend_from_slice(character.encode_utf8(&mut [0; 4]).as_bytes()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::values::FieldValue;
    use crate::filter::{WantedFields, known};

    fn line(settings: &[&str], opcodes: &[u64]) -> String {
        let mut columns = Columns::default();
        for setting in settings {
            columns.set(setting).unwrap();
        }
        let mut wanted = WantedFields::default();
        let fields: Vec<_> = ["frame.number", "iwarp_rdma.opcode", "iwarp_mpa.pad"]
            .map(|name| known(name).unwrap())
            .map(|known| (wanted.add(known), known))
            .into();
        let mut values = Values::default();
        values.add(fields[0].0, FieldValue::Number(7));
        for opcode in opcodes {
            values.add(fields[1].0, FieldValue::Number(*opcode));
        }
        let (mut writer, mut out) = (FieldsWriter::new(fields, columns), Vec::new());
        writer.header(&mut out).unwrap();
        writer.record(&values, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn columns_are_tsharks() {
        assert_eq!(line(&[], &[0, 3]), "7\t0x00,0x03\t\n");
        assert_eq!(line(&["occurrence=f"], &[0, 3]), "7\t0x00\t\n");
        assert_eq!(line(&["occurrence=l", "separator=;"], &[0, 3]), "7;0x03;\n");
        assert_eq!(line(&["quote=d", "aggregator=/s"], &[0, 3]), "\"7\"\t\"0x00 0x03\"\t\n");
        assert_eq!(line(&["header=y", "separator=/s"], &[]), "frame.number iwarp_rdma.opcode iwarp_mpa.pad\n7  \n");
    }

    #[test]
    fn settings_that_make_no_sense_are_refused() {
        for setting in ["header", "header=x", "separator=ab", "occurrence=x", "quote=x", "colour=red"] {
            assert!(Columns::default().set(setting).is_err(), "{setting}");
        }
    }
}
