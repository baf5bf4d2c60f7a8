//! A table in Lua, without the fields that have their default.

use std::fmt::{self, Display, Formatter};

/// A table in Lua. Its fields have the order in which they were added.
#[derive(Debug, Default)]
pub(super) struct LuaTable(Vec<String>);

impl LuaTable {
    pub(super) fn of_size(size: u32) -> Self {
        LuaTable::default().field("size", size)
    }

    /// Adds a field that has no default.
    pub(super) fn field(mut self, name: &str, value: impl Display) -> Self {
        self.0.push(format!("{name} = {value}"));
        self
    }

    /// Adds a field that may have no value.
    pub(super) fn option(self, name: &str, value: Option<impl Display>) -> Self {
        match value {
            Some(value) => self.field(name, value),
            None => self,
        }
    }

    pub(super) fn number(self, name: &str, value: u32, default: u32) -> Self {
        self.option(name, (value != default).then_some(value))
    }

    /// Adds a hexadecimal number whose default is 0.
    pub(super) fn hex(self, name: &str, value: u64) -> Self {
        self.option(name, (value != 0).then(|| format!("{value:#x}")))
    }

    pub(super) fn boolean(self, name: &str, value: bool, default: bool) -> Self {
        self.option(name, (value != default).then_some(value))
    }

    /// Adds a boolean whose default is `false`.
    pub(super) fn flag(self, name: &str, is_set: bool) -> Self {
        self.boolean(name, is_set, false)
    }

    pub(super) fn string(self, name: &str, value: &str, default: &str) -> Self {
        self.option(name, (value != default).then(|| format!("\"{value}\"")))
    }

    /// Adds the maximum payload in bytes of a segment, unless one segment holds all `size` bytes of
    /// the message.
    pub(super) fn segment(self, segment: u32, size: u32) -> Self {
        self.option("segment", (segment < size).then_some(segment))
    }

    /// Returns the table as the last argument of a call that has other arguments. Without fields,
    /// the call does not have this argument.
    pub(super) fn last_argument(&self) -> String {
        if self.0.is_empty() { String::new() } else { format!(", {self}") }
    }
}

impl Display for LuaTable {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self.0.is_empty() {
            true => f.write_str("{}"),
            false => write!(f, "{{ {} }}", self.0.join(", ")),
        }
    }
}
