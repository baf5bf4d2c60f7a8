//! Makes Lua tables of notifications. A notification is a completion or an event that the target's
//! user gets.

use mlua::{Lua, Table};
use weft_agent::protocol::Event;

use super::lua_fields::LuaFields;

/// Fields of the result of `expect_completion`.
pub(super) const COMPLETION_FIELDS: LuaFields = LuaFields(
    "connection: integer, work: integer, status: string, operation: string, octets: integer, invalidated: integer?, \
    immediate: integer?, found: integer?",
);
/// Fields of the table from [`event_table`].
pub(super) const EVENT_FIELDS: LuaFields =
    LuaFields("event: string, private_data: string?, ird: integer?, ord: integer?, status: integer?, kind: string?");

pub(super) fn event_table(lua: &Lua, event: &Event) -> mlua::Result<Table> {
    let table = lua.create_table()?;
    table.set("event", crate::stage::event_name(event))?;
    match event {
        Event::Established { private_data, ird, ord, .. } => {
            table.set("private_data", lua.create_string(&private_data.0)?)?;
            table.set("ird", *ird)?;
            table.set("ord", *ord)?;
        }
        Event::Rejected { private_data, status, .. } => {
            table.set("private_data", lua.create_string(&private_data.0)?)?;
            table.set("status", *status)?;
        }
        Event::Failed { kind, status, .. } => {
            table.set("kind", kind.as_str())?;
            table.set("status", *status)?;
        }
        Event::Asynchronous { kind, .. } => table.set("kind", kind.as_str())?,
        Event::Completion(_) | Event::Disconnected { .. } | Event::Request { .. } => {}
    }
    Ok(table)
}
