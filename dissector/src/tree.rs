//! Converts a unit to a tree of fields for display. Each field has the range of its octets. A user
//! interface can use the range to highlight these octets.

use std::fmt::Write as _;
use std::ops::Range;

use crate::grammar::rdmap::TerminateNames;
use crate::grammar::{self, Base, Field, Group, Value, Visitor, mpa};
use crate::unit::{MarkerStatus, Unit};

/// A header or a field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Node {
    /// Name in JSON and in display filters.
    pub name: &'static str,
    /// Name in the specification.
    pub label: &'static str,
    /// Value for display; empty for headers.
    pub value: String,
    /// Section of the specification.
    pub section: &'static str,
    /// Range of the octets within the unit (see [`crate::grammar`]).
    pub range: Range<usize>,
    /// The fields of a header.
    pub children: Vec<Node>,
}

/// The headers and fields of `unit`, in the order of its octets.
#[must_use]
pub fn tree(unit: &Unit<'_>) -> Vec<Node> {
    let mut builder = Builder { open: Vec::new(), done: Vec::new(), names: TerminateNames::default() };
    if let Some(payload) = grammar::walk(unit, &mut builder)
        && !payload.is_empty()
    {
        let (octets, _) = payload.raw();
        let end = unit.octets_len();
        builder.done.push(Node {
            name: "payload",
            label: grammar::payload_label(unit),
            value: format!("{} bytes", octets.len()),
            section: "",
            range: end.saturating_sub(octets.len())..end,
            children: Vec::new(),
        });
    }
    builder.done
}

struct Builder {
    open: Vec<Node>,
    done: Vec<Node>,
    names: TerminateNames,
}

impl Builder {
    fn add(&mut self, node: Node) {
        match self.open.last_mut() {
            Some(parent) => parent.children.push(node),
            None => self.done.push(node),
        }
    }
}

impl Visitor for Builder {
    fn enter(&mut self, group: &'static Group, at: Range<usize>) {
        let Group { name, label, section } = *group;
        self.open.push(Node { name, label, value: String::new(), section, range: at, children: Vec::new() });
    }

    fn leave(&mut self) {
        if let Some(node) = self.open.pop() {
            self.add(node);
        }
    }

    fn field(&mut self, field: &'static Field, value: Value<'_>, at: Range<usize>) {
        // A direction without markers shows no marker fields.
        let no_markers = match value {
            Value::Pointers([]) => true,
            Value::Text(word) => std::ptr::eq(field, &mpa::MARKER_STATUS) && word == MarkerStatus::None.name(),
            _ => false,
        };
        if no_markers {
            return;
        }
        if std::ptr::eq(field, &mpa::S_FLAG)
            && let Some(res) = self.open.last_mut().and_then(|group| group.children.last_mut())
        {
            res.label = "Res (S included)";
        }
        let value = match self.names.name(field, value) {
            Some(name) => format!("{} ({name})", shown(field, value)),
            None => shown(field, value),
        };
        let Field { name, label, section, .. } = *field;
        self.add(Node { name, label, value, section, range: at, children: Vec::new() });
    }
}

/// Formats a field value for display.
#[must_use]
pub fn shown(field: &Field, value: Value<'_>) -> String {
    match value {
        Value::Uint(value) => {
            let number = match field.base {
                Base::Hex(digits) => format!("{value:#0width$x}", width = usize::from(digits) + 2),
                Base::Flag => if value != 0 { "yes" } else { "no" }.to_owned(),
                Base::Dec | Base::Octets | Base::Text => value.to_string(),
            };
            match field.names.and_then(|names| names(value)) {
                Some(name) => format!("{number} ({name})"),
                None => number,
            }
        }
        Value::Octets([]) => "none".to_owned(),
        Value::Octets(octets) => {
            if octets.iter().all(|o| (0x20..0x7f).contains(o)) {
                return format!("{} {:?}", hex(octets), String::from_utf8_lossy(octets));
            }
            hex(octets)
        }
        Value::Text(text) | Value::PeerText(text) => text.to_owned(),
        Value::PeerTexts(texts) => texts.join(", "),
        Value::Address(address) => address.to_string(),
        Value::Pointers(markers) => {
            let shown: Vec<String> = markers
                .iter()
                .map(|marker| match marker {
                    Some([_, _, high, low]) => u16::from_be_bytes([*high, *low]).to_string(),
                    None => "not captured".to_owned(),
                })
                .collect();
            if shown.is_empty() { "none".to_owned() } else { shown.join(", ") }
        }
    }
}

/// Maximum number of octets of a value that are shown.
const MAX_SHOWN_OCTETS: usize = 64;

fn hex(octets: &[u8]) -> String {
    let mut out = String::with_capacity(2 * octets.len().min(MAX_SHOWN_OCTETS) + 4);
    for octet in octets.iter().take(MAX_SHOWN_OCTETS) {
        let _ = write!(out, "{octet:02x}");
    }
    if octets.len() > MAX_SHOWN_OCTETS {
        let _ = write!(out, "... ({} bytes)", octets.len());
    }
    out
}
