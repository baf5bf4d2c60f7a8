//! The fields of Lua tables that methods return.

/// The fields of a table that a method returns, with their types for editors: `name: type, ...`.
pub(crate) struct LuaFields(pub(crate) &'static str);

impl LuaFields {
    /// Returns the name and the type of each field.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        self.0.split(", ").filter_map(|field| field.split_once(": "))
    }
}
