//! Writes frames as lines of JSON for the bulk interface of Elasticsearch, with the structure of
//! tshark's `-T ek`: a line with the index, and a line with the frame.
//!
//! A name such as `ip.src` becomes `ip_src`. Without `-e`, the name of the layer precedes it:
//! `ip_ip_src`.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use super::packets::{all_layers, chosen};
use super::record::Record;
use crate::calendar::CalendarTime;
use crate::filter::{KnownField, Slot};

/// Writes two lines for each frame.
pub struct EkWriter {
    /// The fields to write. If this list is empty, all layers are written.
    fields: Vec<(Slot, &'static KnownField)>,
}

impl EkWriter {
    /// A writer of `fields`, or of all layers if `fields` is empty.
    #[must_use]
    pub fn new(fields: Vec<(Slot, &'static KnownField)>) -> Self {
        EkWriter { fields }
    }

    /// Writes a frame. The name of the index has the date of the frame in UTC. The time stamp is in
    /// milliseconds since 1970.
    ///
    /// # Errors
    /// `out` reports an error.
    pub fn record(&self, record: &Record, out: &mut dyn Write) -> io::Result<()> {
        let time = record.facts.time;
        let layers = if self.fields.is_empty() { prefixed(record) } else { renamed(chosen(&self.fields, record), "") };
        let index = json!({"index": {"_index": format!("packets-{}", CalendarTime::of(time).date())}});
        writeln!(out, "{index}")?;
        writeln!(out, "{}", json!({"timestamp": (time / 1_000_000).to_string(), "layers": layers}))
    }
}

/// All layers, with the name of the layer before the name of each field.
fn prefixed(record: &Record) -> Map<String, Value> {
    let layers = all_layers(record).into_iter();
    layers
        .map(|(name, layer)| {
            let name = name.replace('.', "_");
            let prefix = format!("{name}_");
            let renamed_layer = |layer: Value| match layer {
                Value::Object(fields) => Value::Object(renamed(fields, &prefix)),
                other => other,
            };
            let layer: Value = match layer {
                Value::Array(several) => several.into_iter().map(renamed_layer).collect(),
                one => renamed_layer(one),
            };
            (name, layer)
        })
        .collect()
}

/// The fields with underscores in place of dots, and with `prefix` before each name.
fn renamed(fields: Map<String, Value>, prefix: &str) -> Map<String, Value> {
    fields.into_iter().map(|(name, value)| (format!("{prefix}{}", name.replace('.', "_")), value)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::filter::values::FieldValue;
    use crate::filter::{FrameFacts, WantedFields, known};

    fn lines(writer: &EkWriter, record: &Record) -> Vec<Value> {
        let mut out = Vec::new();
        writer.record(record, &mut out).unwrap();
        let text = String::from_utf8(out).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    #[test]
    fn writes_an_index_and_a_frame() {
        let mut wanted = WantedFields::default();
        let fields: Vec<_> =
            ["frame.number", "ip.src"].map(|name| known(name).unwrap()).map(|known| (wanted.add(known), known)).into();
        let time = 1_709_210_096_123_456_789;
        let facts = FrameFacts { number: 7.into(), time, origin: time, ..FrameFacts::default() };
        let mut record = Record { facts, ..Record::default() };
        record.values.add(fields[0].0, FieldValue::Number(7));
        let index = json!({"index": {"_index": "packets-2024-02-29"}});
        let frame = json!({"timestamp": "1709210096123", "layers": {"frame_number": ["7"]}});
        assert_eq!(lines(&EkWriter::new(fields), &record), [index.clone(), frame]);
        let all = lines(&EkWriter::new(Vec::new()), &record);
        assert_eq!((&all[0], &all[1]["layers"]["frame"]["frame_frame_number"]), (&index, &json!("7")));
    }
}
