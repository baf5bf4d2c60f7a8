//! Reads a Lua table with known fields: each field by name and type. If the table has an unknown
//! field, this is an error.

use mlua::{FromLua, Lua, LuaString, Table, Value};

use super::old_names;

/// A record of fields that were read. If a Lua state has such a record as application data,
/// [`Fields`] adds every field that it reads. The annotations for editors are made from the record.
#[derive(Debug, Default)]
pub(crate) struct RecordedFields(pub(crate) Vec<RecordedField>);

/// One field that was read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct RecordedField {
    /// The name of the table.
    pub(crate) what: &'static str,
    pub(crate) name: &'static str,
    /// The Rust type of the field.
    pub(crate) is: &'static str,
    pub(crate) required: bool,
}

/// A table that is being read. [`Fields::done`] rejects fields of the table that nothing has read.
pub(crate) struct Fields<'a> {
    lua: &'a Lua,
    /// The name of the table, for messages: `mpa.request`.
    what: &'static str,
    table: Option<Table>,
    known: Vec<&'static str>,
    /// Earlier names of fields.
    old: Vec<&'static str>,
}

impl<'a> Fields<'a> {
    /// Reads `table`. A missing table has no fields.
    pub(crate) fn new(lua: &'a Lua, what: &'static str, table: Option<Table>) -> Self {
        Fields { lua, what, table, known: Vec::new(), old: Vec::new() }
    }

    /// Returns the name of the table.
    pub(crate) fn what(&self) -> &'static str {
        self.what
    }

    /// Reads an optional field.
    pub(crate) fn optional<T: FromLua>(&mut self, name: &'static str) -> mlua::Result<Option<T>> {
        self.record::<T>(name, false);
        self.read(name)
    }

    fn record<T>(&mut self, name: &'static str, required: bool) {
        self.known.push(name);
        if let Some(mut recorded) = self.lua.app_data_mut::<RecordedFields>() {
            let (what, is) = (self.what, std::any::type_name::<T>());
            recorded.0.push(RecordedField { what, name, is, required });
        }
    }

    fn read<T: FromLua>(&self, name: &'static str) -> mlua::Result<Option<T>> {
        let value: Value = match &self.table {
            Some(table) => table.raw_get(name)?,
            None => return Ok(None),
        };
        if value.is_nil() {
            return Ok(None);
        }
        let found = value.type_name();
        T::from_lua(value, self.lua).map(Some).map_err(|error| {
            let why = match error {
                mlua::Error::FromLuaConversionError { to, message, .. } => {
                    message.unwrap_or_else(|| format!("expected {to}, found {found}"))
                }
                other => other.to_string(),
            };
            self.wrong(name, &why)
        })
    }

    /// Reads an optional field that was called `old` in earlier versions. The old name still works,
    /// with a warning.
    pub(crate) fn renamed<T: FromLua>(&mut self, name: &'static str, old: &'static str) -> mlua::Result<Option<T>> {
        let value = self.optional(name)?;
        self.old.push(old);
        let Some(former) = self.read(old)? else { return Ok(value) };
        if value.is_some() {
            let why = format!("this is the old name of {name}, and the table has both names; remove the old name");
            return Err(self.wrong(old, &why));
        }
        old_names::warn(self.lua, old, name);
        Ok(Some(former))
    }

    /// Reads the bytes of an optional field, which is a Lua string.
    pub(crate) fn octets(&mut self, name: &'static str) -> mlua::Result<Option<Vec<u8>>> {
        Ok(self.optional::<LuaString>(name)?.map(|octets| octets.as_bytes().to_vec()))
    }

    /// Reads a field that may be missing.
    pub(crate) fn or<T: FromLua>(&mut self, name: &'static str, default: T) -> mlua::Result<T> {
        Ok(self.optional(name)?.unwrap_or(default))
    }

    /// Reads a field that must be present.
    pub(crate) fn required<T: FromLua>(&mut self, name: &'static str) -> mlua::Result<T> {
        self.record::<T>(name, true);
        self.read(name)?.ok_or_else(|| mlua::Error::runtime(format!("{} needs the field {name:?}", self.what)))
    }

    /// Returns the error for a wrong field.
    pub(crate) fn wrong(&self, name: &str, why: &str) -> mlua::Error {
        wrong(self.what, name, why)
    }

    /// Rejects every field of the table that nothing has read. Without this check, a misspelled
    /// field would be ignored, and the default would be used.
    pub(crate) fn done(self) -> mlua::Result<()> {
        let Some(table) = self.table else { return Ok(()) };
        for pair in table.pairs::<Value, Value>() {
            let (name, _) = pair?;
            let name = name.to_string()?;
            if !self.known.contains(&name.as_str()) && !self.old.contains(&name.as_str()) {
                let known = self.known.join(", ");
                return Err(mlua::Error::runtime(format!("{} has no field {name:?}; it has {known}", self.what)));
            }
        }
        Ok(())
    }
}

/// Returns the error for a wrong field of the table `what`.
pub(crate) fn wrong(what: &str, name: &str, why: &str) -> mlua::Error {
    mlua::Error::runtime(format!("{what}: {name}: {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn error_of(table: &str) -> String {
        let lua = Lua::new();
        let table: Table = lua.load(table).eval().unwrap();
        let mut fields = Fields::new(&lua, "thing", Some(table));
        let mut read = || -> mlua::Result<()> {
            let _: u8 = fields.or("revision", 1)?;
            let _: String = fields.required("name")?;
            Ok(())
        };
        read().and_then(|()| fields.done()).map_or_else(|error| error.to_string(), |()| String::new())
    }

    #[test]
    fn each_mistake_is_named() {
        assert_eq!(error_of("return { name = 'x' }"), "");
        assert!(error_of("return {}").contains("thing needs the field \"name\""));
        assert!(error_of("return { name = 'x', revison = 2 }").contains("no field \"revison\"; it has revision, name"));
        assert!(error_of("return { name = 'x', revision = {} }").contains("revision: "));
        assert!(error_of("return { name = 'x', revision = 300 }").contains("revision: "));
        assert!(error_of("return { name = 'x', 5 }").contains("no field \"1\""));
    }

    #[test]
    fn an_old_name_has_the_same_value() {
        let read = |table: &str| {
            let lua = Lua::new();
            let table: Table = lua.load(table).eval().unwrap();
            let mut fields = Fields::new(&lua, "thing", Some(table));
            let value = fields.renamed::<u8>("fresh", "stale").map_err(|error| error.to_string())?;
            fields.done().map(|()| value).map_err(|error| error.to_string())
        };
        assert_eq!((read("return { stale = 1 }"), read("return { fresh = 1 }")), (Ok(Some(1)), Ok(Some(1))));
        assert!(read("return { stale = 1, fresh = 1 }").unwrap_err().contains("stale: this is the old name of fresh"));
        assert!(read("return { other = 1 }").unwrap_err().ends_with("it has fresh"));
    }
}
