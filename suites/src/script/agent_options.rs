//! The tables that the methods of an agent and of its ends of connections take.

use mlua::{FromLua, Lua, LuaString, Table, Value};
use weft_agent::protocol::{Access, MOST_OCTETS, Object, Operation, Part};

use super::agent::{Region, Shared, Window};
use super::fields::Fields;
use super::options::{Ids, REPLY_SECONDS, Reader, SILENCE_SECONDS};
use crate::stage::{CompletionFields, EventFields, Expectation, PairOptions};

/// What a script says of a region that it wants.
pub(super) struct RegionFields {
    pub(super) octets: u64,
    pub(super) access: Vec<Access>,
    pub(super) domain: Option<Object>,
    pub(super) fill: Option<u64>,
    pub(super) put: Option<Vec<u8>>,
}

/// What every work request has.
pub(super) struct WorkFields {
    pub(super) work: Option<u64>,
    pub(super) parts: Vec<Part>,
    pub(super) signaled: bool,
    pub(super) fence: bool,
    pub(super) inline: bool,
    /// A refusal is given back, and ends nothing.
    pub(super) may_refuse: bool,
}

impl Reader<'_> {
    /// `octets`: how many (default 4096). `access`: names (default `local_write`, `remote_write`,
    /// `remote_read`). `fill`: the seed of a pattern; `put`: octets that it begins with.
    pub(super) fn agent_region(&self, table: Option<Table>) -> mlua::Result<RegionFields> {
        let mut fields = Fields::new(self.lua, "agent_region", table);
        let default = || ["local_write", "remote_write", "remote_read"].map(str::to_owned).to_vec();
        let names = fields.optional::<Vec<String>>("access")?.unwrap_or_else(default);
        let read = RegionFields {
            octets: fields.or("octets", 4096)?,
            access: access(&fields, &names)?,
            domain: fields.optional("domain")?,
            fill: fields.optional::<i64>("fill")?.map(i64::cast_unsigned),
            put: fields.octets("put")?,
        };
        fields.done()?;
        Ok(read)
    }

    /// `posted`: of type 2, bound by a posted work request (default true).
    pub(super) fn agent_window(&self, table: Option<Table>) -> mlua::Result<(bool, Option<Object>)> {
        let mut fields = Fields::new(self.lua, "agent_window", table);
        let read = (fields.or("posted", true)?, fields.optional("domain")?);
        fields.done()?;
        Ok(read)
    }

    pub(super) fn agent_shared(&self, table: Option<Table>) -> mlua::Result<(u32, u32, Option<Object>)> {
        let mut fields = Fields::new(self.lua, "agent_shared", table);
        let read = (fields.or("depth", 16)?, fields.or("parts", 1)?, fields.optional("domain")?);
        fields.done()?;
        Ok(read)
    }

    /// How the agent's end of a connection is made, and how long the tester waits.
    pub(super) fn agent_pair(
        &self,
        table: Option<Table>,
        what: &'static str,
    ) -> mlua::Result<(Expectation, PairOptions)> {
        let mut fields = Fields::new(self.lua, what, table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let default = PairOptions::default();
        let options = PairOptions {
            private_data: fields.octets("private_data")?.unwrap_or_default(),
            ird: fields.or("ird", default.ird)?,
            ord: fields.or("ord", default.ord)?,
            domain: fields.optional("domain")?,
            shared: fields.optional::<Shared>("shared")?.map(|shared| shared.object),
            depth: fields.or("depth", default.depth)?,
            parts: fields.or("parts", default.parts)?,
            inline: fields.or("inline", default.inline)?,
            solicited: fields.or("solicited", default.solicited)?,
        };
        fields.done()?;
        Ok((expectation, options))
    }

    pub(super) fn agent_request(&self, table: Option<Table>) -> mlua::Result<(Expectation, Option<Vec<u8>>)> {
        let mut fields = Fields::new(self.lua, "agent_request", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let private_data = fields.octets("private_data")?;
        fields.done()?;
        Ok((expectation, private_data))
    }

    /// The fields of a work request, those of `more` among them, which reads what is the
    /// operation's own.
    pub(super) fn agent_work<T>(
        &self,
        table: Option<Table>,
        what: &'static str,
        more: impl FnOnce(&mut Fields<'_>) -> mlua::Result<T>,
    ) -> mlua::Result<(WorkFields, T)> {
        let mut fields = Fields::new(self.lua, what, table);
        let mut parts = Vec::new();
        for part in fields.optional::<Vec<Table>>("parts")?.unwrap_or_default() {
            parts.push(self.agent_part(Some(part))?);
        }
        let (region, offset) = (fields.optional::<Region>("region")?, fields.or("offset", 0)?);
        let (length, key) = (fields.optional("length")?, fields.optional("key")?);
        parts.extend(region.map(|region| part_of(&region, offset, length, key)));
        let read = WorkFields {
            work: fields.optional("work")?,
            parts,
            signaled: fields.or("signaled", true)?,
            fence: fields.or("fence", false)?,
            inline: fields.or("inline", false)?,
            may_refuse: fields.or("may_refuse", false)?,
        };
        let more = more(&mut fields)?;
        fields.done()?;
        Ok((read, more))
    }

    /// Octets of a region: all from `offset` on, where no `length` is said; `key`: another than the
    /// region's own.
    pub(super) fn agent_part(&self, table: Option<Table>) -> mlua::Result<Part> {
        let mut fields = Fields::new(self.lua, "agent_part", table);
        let (offset, length, key) = (fields.or("offset", 0)?, fields.optional("length")?, fields.optional("key")?);
        let region: Region = fields.required("region")?;
        fields.done()?;
        Ok(part_of(&region, offset, length, key))
    }

    /// `stag` and `to`: whom it is about, of the peer. Where no octets go, neither counts.
    pub(super) fn agent_remote(fields: &mut Fields<'_>) -> mlua::Result<(u32, u64)> {
        Ok((fields.or("stag", 0)?, fields.or::<i64>("to", 0)?.cast_unsigned()))
    }

    /// The eight octets of the peer at `stag` and `to`: `add`, or `compare` and `swap`, in numbers
    /// that may be negative.
    pub(super) fn agent_atomic(fields: &mut Fields<'_>) -> mlua::Result<Operation> {
        let (key, address) = Self::agent_remote(fields)?;
        let mut number = |name| fields.optional::<i64>(name).map(|number| number.map(i64::cast_unsigned));
        match (number("add")?, number("compare")?, number("swap")?) {
            (Some(add), None, None) => Ok(Operation::FetchAdd { address, key, add }),
            (None, Some(compare), Some(swap)) => Ok(Operation::CompareSwap { address, key, compare, swap }),
            _ => Err(fields.wrong("add, compare, swap", "add, or compare and swap, is needed")),
        }
    }

    /// How long the tester waits for what is told of a shared receive queue.
    pub(super) fn expect_limit(&self, table: Option<Table>) -> mlua::Result<Expectation> {
        let mut fields = Fields::new(self.lua, "expect_limit", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        fields.done()?;
        Ok(expectation)
    }

    pub(super) fn agent_bind(fields: &mut Fields<'_>) -> mlua::Result<(Window, Region, u64, u64, Vec<Access>)> {
        let offset = fields.or("at", 0)?;
        let octets: Option<u64> = fields.optional("octets")?;
        let names = fields.or("access", ["remote_write", "remote_read"].map(str::to_owned).to_vec())?;
        let (window, region) = (fields.optional::<Window>("window")?, fields.optional::<Region>("to_region")?);
        let (window, region) =
            window.zip(region).ok_or_else(|| fields.wrong("window, to_region", "both are needed"))?;
        let octets = octets.unwrap_or(region.octets.saturating_sub(offset));
        Ok((window, region, offset, octets, access(fields, &names)?))
    }

    /// `solicited`, and `invalidate`: an STag of the peer.
    pub(super) fn agent_send(fields: &mut Fields<'_>) -> mlua::Result<(bool, Option<u32>)> {
        Ok((fields.or("solicited", false)?, fields.optional("invalidate")?))
    }

    /// `status`: `"success"` (default), `"error"` for any other, one of `enum ibv_wc_status` in
    /// lower case, or a list of them.
    pub(super) fn expect_completion(&self, table: Option<Table>) -> mlua::Result<(Expectation, CompletionFields)> {
        let mut fields = Fields::new(self.lua, "expect_completion", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let Ids(status) = fields.optional("status")?.unwrap_or_else(|| Ids(vec!["success".to_owned()]));
        let wanted = CompletionFields {
            work: fields.optional("work")?,
            status,
            operation: fields.optional("operation")?,
            octets: fields.optional("octets")?,
            invalidated: fields.optional("invalidated")?,
        };
        fields.done()?;
        Ok((expectation, wanted))
    }

    /// `event`: one of `established`, `rejected`, `failed`, `disconnected`, `asynchronous`, or a
    /// list of them.
    pub(super) fn expect_event(&self, table: Option<Table>) -> mlua::Result<(Expectation, EventFields)> {
        const EVENTS: [&str; 5] = ["established", "rejected", "failed", "disconnected", "asynchronous"];
        let mut fields = Fields::new(self.lua, "expect_event", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let Ids(events) = fields.required("event")?;
        if let Some(other) = events.iter().find(|event| !EVENTS.contains(&event.as_str())) {
            return Err(fields.wrong("event", &format!("{other:?}: expected {}", EVENTS.join(", "))));
        }
        let wanted = EventFields { events, private_data: fields.octets("private_data")? };
        fields.done()?;
        Ok((expectation, wanted))
    }

    /// `or_end`: the mere end of the connection, or work that is flushed, will do.
    pub(super) fn expect_error(&self, table: Option<Table>) -> mlua::Result<(Expectation, bool)> {
        let mut fields = Fields::new(self.lua, "expect_error", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let or_end = fields.or("or_end", false)?;
        fields.done()?;
        Ok((expectation, or_end))
    }

    pub(super) fn expect_no_completion(&self, table: Option<Table>) -> mlua::Result<Expectation> {
        let mut fields = Fields::new(self.lua, "expect_no_completion", table);
        let expectation = self.expectation(&mut fields, SILENCE_SECONDS)?;
        fields.done()?;
        Ok(expectation)
    }

    /// Which octets of a region: `offset` (0), `length` (the rest); and for who writes `octets` or
    /// `seed`.
    pub(super) fn agent_octets(&self, table: Option<Table>, whole: u64) -> mlua::Result<OctetsFields> {
        let mut fields = Fields::new(self.lua, "agent_octets", table);
        let offset: u64 = fields.or("offset", 0)?;
        let rest = whole.saturating_sub(offset).min(MOST_OCTETS as u64);
        let read = OctetsFields {
            offset,
            length: fields.or("length", rest)?,
            octets: fields
                .optional::<LuaString>("octets")?
                .map(|octets| octets.as_bytes().to_vec())
                .unwrap_or_default(),
            seed: fields.or::<i64>("seed", 1)?.cast_unsigned(),
        };
        fields.done()?;
        Ok(read)
    }
}

/// Octets of a region.
pub(super) struct OctetsFields {
    pub(super) offset: u64,
    pub(super) length: u64,
    pub(super) octets: Vec<u8>,
    pub(super) seed: u64,
}

fn part_of(region: &Region, offset: u64, length: Option<u32>, key: Option<u32>) -> Part {
    let rest = u32::try_from(region.octets.saturating_sub(offset)).unwrap_or(u32::MAX);
    Part { region: region.object, offset, length: length.unwrap_or(rest), key }
}

fn access(fields: &Fields<'_>, names: &[String]) -> mlua::Result<Vec<Access>> {
    let known = |name: &String| {
        let value = serde_json::Value::String(name.clone());
        serde_json::from_value(value).map_err(|error| fields.wrong("access", &error.to_string()))
    };
    names.iter().map(known).collect()
}

macro_rules! taken {
    ($($name:ident: $what:literal),+) => {$(
        impl FromLua for $name {
            fn from_lua(value: Value, _: &Lua) -> mlua::Result<Self> {
                match &value {
                    Value::UserData(data) => Ok(data.borrow::<Self>()?.clone()),
                    other => Err(mlua::Error::FromLuaConversionError {
                        from: other.type_name(),
                        to: $what.to_owned(),
                        message: None,
                    }),
                }
            }
        }
    )+};
}

taken!(Region: "a region", Window: "a window", Shared: "a shared receive queue");
