//! Writes frames as a JSON array with the structure of tshark's `-T json`: each frame has
//! `_source.layers`, and values are strings.
//!
//! If a frame has several layers or values with the same name, tshark repeats the key. In this
//! case, weft writes an array of layers, or an array of strings. A finding is a layer with the name
//! `finding`.

use std::io::{self, Write};

use serde_json::{Map, Value, json};

use crate::filter::{KnownField, Slot};
use crate::packet::TransportKind;

use super::layers::Layer;
use super::record::Record;

/// Writes the array, one element for each frame.
pub struct PacketsWriter {
    /// The fields to write. Each field is an array of its values, as in tshark with `-e`. If this
    /// list is empty, all layers are written.
    fields: Vec<(Slot, &'static KnownField)>,
    any: bool,
}

impl PacketsWriter {
    /// A writer of `fields`, or of all layers if `fields` is empty.
    #[must_use]
    pub fn new(fields: Vec<(Slot, &'static KnownField)>) -> Self {
        PacketsWriter { fields, any: false }
    }

    /// Writes a frame.
    ///
    /// # Errors
    /// `out` reports an error.
    pub fn record(&mut self, record: &Record, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(if self.any { b",\n" } else { b"[\n" })?;
        self.any = true;
        let layers = if self.fields.is_empty() { all_layers(record) } else { chosen(&self.fields, record) };
        let object = json!({"_index": "packets", "_score": null, "_source": {"layers": layers}});
        serde_json::to_writer_pretty(out, &object).map_err(io::Error::from)
    }

    /// Ends the array.
    ///
    /// # Errors
    /// `out` reports an error.
    pub fn finish(&self, out: &mut dyn Write) -> io::Result<()> {
        out.write_all(if self.any { b"\n]\n" } else { b"[]\n" })
    }
}

/// The values of `fields`. A field without a value is omitted.
pub(super) fn chosen(fields: &[(Slot, &'static KnownField)], record: &Record) -> Map<String, Value> {
    let mut chosen = Map::new();
    for (slot, known) in fields {
        let (mut texts, mut text) = (Vec::new(), Vec::new());
        let count = record.values.write(*slot, known, &mut text, |text| texts.push(std::mem::take(text)));
        if count > 0 {
            texts.push(text);
            let texts: Vec<_> = texts.iter().map(|text| String::from_utf8_lossy(text)).collect();
            chosen.insert(known.name.to_owned(), texts.into());
        }
    }
    chosen
}

/// Adds a value for a key. If the key already has a value, the key gets an array of all its values.
fn add(object: &mut Map<String, Value>, key: &str, value: Value) {
    match object.get_mut(key) {
        None => {
            object.insert(key.to_owned(), value);
        }
        Some(Value::Array(list)) => list.push(value),
        Some(one) => *one = Value::Array(vec![one.take(), value]),
    }
}

fn seconds(time: u64) -> String {
    format!("{}.{:09}", time / 1_000_000_000, time % 1_000_000_000)
}

/// All layers of the frame. The key is the name of the layer.
pub(super) fn all_layers(record: &Record) -> Map<String, Value> {
    let mut layers = Map::new();
    let facts = &record.facts;
    let mut frame = Map::new();
    frame.insert("frame.time_epoch".into(), seconds(facts.time).into());
    frame.insert("frame.time_relative".into(), seconds(facts.time.saturating_sub(facts.origin)).into());
    frame.insert("frame.number".into(), facts.number.to_string().into());
    if let Some((wire, captured)) = facts.len {
        frame.insert("frame.len".into(), wire.to_string().into());
        frame.insert("frame.cap_len".into(), captured.to_string().into());
    }
    layers.insert("frame".into(), frame.into());
    if let Some(packet) = &facts.packet {
        let ip = if packet.src.is_ipv4() { "ip" } else { "ipv6" };
        let ends = [(format!("{ip}.src"), packet.src), (format!("{ip}.dst"), packet.dst)];
        let addresses: Map<_, _> = ends.into_iter().map(|(key, end)| (key, end.ip().to_string().into())).collect();
        layers.insert(ip.into(), addresses.into());
        let (name, mut transport) = match packet.transport {
            TransportKind::Tcp { stream, seq, .. } => (
                "tcp",
                Map::from_iter([
                    ("tcp.stream".to_owned(), stream.to_string().into()),
                    ("tcp.seq_raw".to_owned(), seq.to_string().into()),
                    ("tcp.len".to_owned(), packet.payload_len.to_string().into()),
                ]),
            ),
            TransportKind::Udp => {
                let length = u64::from(packet.payload_len) + 8;
                ("udp", Map::from_iter([("udp.length".to_owned(), length.to_string().into())]))
            }
        };
        transport.insert(format!("{name}.srcport"), packet.src.port().to_string().into());
        transport.insert(format!("{name}.dstport"), packet.dst.port().to_string().into());
        layers.insert(name.into(), transport.into());
    }
    for layer in record.units.iter().flat_map(|unit| &unit.layers) {
        add(&mut layers, layer.name, of_layer(layer));
    }
    for finding in &record.findings {
        let object = json!({
            "finding.requirement": finding.requirement.as_str(), "finding.severity": finding.severity.to_string(),
            "finding.summary": finding.requirement.row().summary, "finding.expected": finding.expected,
            "finding.found": finding.found,
        });
        add(&mut layers, "finding", object);
    }
    layers
}

fn of_layer(layer: &Layer) -> Value {
    let mut object = Map::new();
    for field in &layer.fields {
        let value = match field.values.as_slice() {
            [] => continue,
            [one] => one.clone().into(),
            several => several.to_vec().into(),
        };
        object.insert(field.name.to_owned(), value);
    }
    object.into()
}
