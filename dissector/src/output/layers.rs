//! Converts a unit to layers of fields for `-T json` and `-T pdml`. Values have the format of
//! tshark. Each field also has its octets and its position in the frame.

use std::ops::Range;

use crate::filter::known;
use crate::filter::values::write_number;
use crate::format::{hex_octets, text};
use crate::grammar::rdmap::TerminateNames;
use crate::grammar::{self, Field, Group, Value, Visitor};
use crate::tree::shown;
use crate::unit::Unit;

/// A header or a message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layer {
    /// Name in display filters.
    pub name: &'static str,
    /// Label for display.
    pub label: &'static str,
    /// Offset of the layer in the frame that completed the unit, in octets; `None` if the layer
    /// starts in another frame.
    pub position: Option<u32>,
    /// Length in octets.
    pub size: u64,
    /// The fields of the layer.
    pub fields: Vec<LayerField>,
}

/// A field and its values. A field of markers can have several values, and so can a field of texts
/// from a peer. All other fields have at most one value.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LayerField {
    /// Name in display filters.
    pub name: &'static str,
    /// Label and value for display.
    pub line: String,
    /// Values in tshark's format.
    pub values: Vec<String>,
    /// The octets of the field in hexadecimal; empty if the field does not consist of complete
    /// octets.
    pub octets: String,
    /// Offset of the field in the frame that completed the unit, in octets; `None` if the field is
    /// in another frame.
    pub position: Option<u32>,
    /// Length in octets.
    pub size: u64,
}

/// The layers of `unit`. Positions are offsets in the frame that completed the unit. Fields in
/// other frames have no position.
#[must_use]
pub fn layers(unit: &Unit<'_>) -> Vec<Layer> {
    let mut builder = Builder { unit, layers: Vec::new(), names: TerminateNames::default() };
    let payload = grammar::walk(unit, &mut builder);
    let mut layers = builder.layers;
    if let Some(payload) = payload.filter(|payload| !payload.is_empty()) {
        let octets = payload.raw().0;
        let end = unit.octets_len();
        let (position, size) = position_and_size(unit, &(end.saturating_sub(octets.len())..end));
        let value = text(|out| hex_octets(octets, out));
        let label = grammar::payload_label(unit);
        let (name, line) = ("payload", format!("{label}: {} bytes", octets.len()));
        let field = LayerField { name, line, values: vec![value.clone()], octets: value, position, size };
        layers.push(Layer { name, label, position, size, fields: vec![field] });
    }
    layers
}

struct Builder<'u, 'a> {
    unit: &'u Unit<'a>,
    layers: Vec<Layer>,
    names: TerminateNames,
}

/// Returns the location of the octets `at` of the unit: the offset of these octets in the frame
/// that completed the unit, and their number.
fn position_and_size(unit: &Unit<'_>, at: &Range<usize>) -> (Option<u32>, u64) {
    if at.is_empty() {
        return (None, 0);
    }
    let located = unit.locate(at.clone());
    let first = located.iter().find(|l| l.frame == unit.frame && l.offset.is_some());
    (first.and_then(|l| l.offset), (at.end - at.start) as u64)
}

impl Visitor for Builder<'_, '_> {
    fn enter(&mut self, group: &'static Group, at: Range<usize>) {
        let (position, size) = position_and_size(self.unit, &at);
        self.layers.push(Layer { name: group.name, label: group.label, position, size, fields: Vec::new() });
    }

    fn field(&mut self, field: &'static Field, value: Value<'_>, at: Range<usize>) {
        let mut line = format!("{}: {}", field.label, shown(field, value));
        if let Some(name) = self.names.name(field, value) {
            line.push_str(" (");
            line.push_str(name);
            line.push(')');
        }
        let mut octets = String::new();
        let values = match value {
            Value::Uint(value) => {
                if field.mask == 0 && (1..=8).contains(&at.len()) {
                    let (little, big) = (value.to_le_bytes(), value.to_be_bytes());
                    let sent = if field.little_endian { &little[..at.len()] } else { &big[8 - at.len()..] };
                    octets = text(|out| hex_octets(sent, out));
                }
                vec![
                    known(field.name)
                        .map_or_else(|| value.to_string(), |known| text(|out| write_number(value, known, out))),
                ]
            }
            // In tshark, a field without octets has no value.
            Value::Octets([]) => Vec::new(),
            Value::Octets(value) => {
                octets = text(|out| hex_octets(value, out));
                vec![octets.clone()]
            }
            Value::Text(word) => vec![word.to_owned()],
            Value::PeerText(value) => {
                octets = text(|out| hex_octets(value.as_bytes(), out));
                vec![value.to_owned()]
            }
            Value::PeerTexts(texts) => texts.to_vec(),
            Value::Address(address) => vec![address.to_string()],
            Value::Pointers(markers) => markers
                .iter()
                .flatten()
                .map(|[_, _, high, low]| u16::from_be_bytes([*high, *low]).to_string())
                .collect(),
        };
        let (position, size) = position_and_size(self.unit, &at);
        if let Some(layer) = self.layers.last_mut() {
            layer.fields.push(LayerField { name: field.name, line, values, octets, position, size });
        }
    }
}
