//! Reads the option tables of the methods of `target`, `region`, `shared` and `pair`.

use mlua::{FromLua, Lua, Table, Value};
use weft_agent::protocol::{Access, MAX_TRANSFER_OCTETS, Object, Operation, Part};

use super::agent_objects::{Region, Shared, Window};
use super::fields::Fields;
use super::options::{Ids, Reader};
use crate::stage::{CompletionFields, EventFields, Expectation, PairOptions};

/// The region that a script requests.
pub(super) struct RegionFields {
    pub(super) octets: u64,
    pub(super) access: Vec<Access>,
    pub(super) domain: Option<Object>,
    pub(super) fill: Option<u64>,
    pub(super) put: Option<Vec<u8>>,
    /// Whether the script gets a refusal as a value. Otherwise a refusal ends the case.
    pub(super) may_refuse: bool,
}

/// The fields of every work request.
pub(super) struct WorkFields {
    pub(super) work: Option<u64>,
    pub(super) parts: Vec<Part>,
    pub(super) signaled: bool,
    pub(super) fence: bool,
    pub(super) inline: bool,
    /// Whether the script gets a refusal as a value. Otherwise a refusal ends the case.
    pub(super) may_refuse: bool,
}

impl Reader<'_> {
    /// `octets`: the length in bytes (default 4096). `access`: names (default `local_write`,
    /// `remote_write`, `remote_read`). `fill`: the seed of a pattern. `put`: bytes at the beginning
    /// of the region. `may_refuse`: whether a refusal is a result.
    pub(super) fn agent_region(&self, fields: &mut Fields<'_>) -> mlua::Result<RegionFields> {
        let default = || ["local_write", "remote_write", "remote_read"].map(str::to_owned).to_vec();
        let names = fields.optional::<Vec<String>>("access")?.unwrap_or_else(default);
        Ok(RegionFields {
            octets: fields.or("octets", 4096)?,
            access: access(fields, &names)?,
            domain: fields.optional("domain")?,
            fill: fields.optional::<i64>("fill")?.map(i64::cast_unsigned),
            put: fields.octets("put")?,
            may_refuse: fields.or("may_refuse", false)?,
        })
    }

    /// `posted` (default true): whether a posted work request binds the window. Such a window is of
    /// type 2.
    pub(super) fn agent_window(&self, fields: &mut Fields<'_>) -> mlua::Result<(bool, Option<Object>)> {
        Ok((fields.or("posted", true)?, fields.optional("domain")?))
    }

    pub(super) fn agent_shared(&self, fields: &mut Fields<'_>) -> mlua::Result<(u32, u32, Option<Object>)> {
        Ok((fields.or("depth", 16)?, fields.or("parts", 1)?, fields.optional("domain")?))
    }

    /// Reads the settings of the agent's end of a connection, and how long the tester waits.
    pub(super) fn agent_pair(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, PairOptions)> {
        let expectation = self.answer(fields)?;
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
        Ok((expectation, options))
    }

    pub(super) fn agent_request(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, Option<Vec<u8>>)> {
        let expectation = self.answer(fields)?;
        Ok((expectation, fields.octets("private_data")?))
    }

    /// The fields of every work request.
    pub(super) fn agent_work(&self, fields: &mut Fields<'_>) -> mlua::Result<WorkFields> {
        let mut parts = Vec::new();
        for part in fields.optional::<Vec<Table>>("parts")?.unwrap_or_default() {
            parts.push(self.read("agent_part", Some(part), Self::agent_part)?);
        }
        let (region, offset) = (fields.optional::<Region>("region")?, fields.or("offset", 0)?);
        let (length, key) = (fields.optional("length")?, fields.optional("key")?);
        parts.extend(region.map(|region| part_of(&region, offset, length, key)));
        Ok(WorkFields {
            work: fields.optional("work")?,
            parts,
            signaled: fields.or("signaled", true)?,
            fence: fields.or("fence", false)?,
            inline: fields.or("inline", false)?,
            may_refuse: fields.or("may_refuse", false)?,
        })
    }

    /// `solicited`: whether the Send has a Solicited Event. `invalidate`: an STag of the peer.
    pub(super) fn post_send(&self, fields: &mut Fields<'_>) -> mlua::Result<(WorkFields, Operation)> {
        let work = self.agent_work(fields)?;
        let (solicited, invalidate) = (fields.or("solicited", false)?, fields.optional("invalidate")?);
        Ok((work, Operation::Send { solicited, invalidate }))
    }

    pub(super) fn post_write(&self, fields: &mut Fields<'_>) -> mlua::Result<(WorkFields, Operation)> {
        let work = self.agent_work(fields)?;
        let (key, address) = remote(fields)?;
        Ok((work, Operation::Write { address, key }))
    }

    pub(super) fn post_read(&self, fields: &mut Fields<'_>) -> mlua::Result<(WorkFields, Operation)> {
        let work = self.agent_work(fields)?;
        let (key, address) = remote(fields)?;
        Ok((work, Operation::Read { address, key }))
    }

    /// Reads the options of an Atomic Operation on the peer's eight bytes at `stag` and `to`. The
    /// operation is `add` alone, or `compare` together with `swap`. The numbers may be negative.
    pub(super) fn post_atomic(&self, fields: &mut Fields<'_>) -> mlua::Result<(WorkFields, Operation)> {
        let work = self.agent_work(fields)?;
        let (key, address) = remote(fields)?;
        let mut number = |name| fields.optional::<i64>(name).map(|number| number.map(i64::cast_unsigned));
        match (number("add")?, number("compare")?, number("swap")?) {
            (Some(add), None, None) => Ok((work, Operation::FetchAdd { address, key, add })),
            (None, Some(compare), Some(swap)) => Ok((work, Operation::CompareSwap { address, key, compare, swap })),
            _ => Err(fields.wrong("add, compare, swap", "expected `add` alone, or `compare` together with `swap`")),
        }
    }

    pub(super) fn post_invalidate(&self, fields: &mut Fields<'_>) -> mlua::Result<(WorkFields, Operation)> {
        let work = self.agent_work(fields)?;
        Ok((work, Operation::Invalidate { key: fields.required("stag")? }))
    }

    pub(super) fn post_bind(&self, fields: &mut Fields<'_>) -> mlua::Result<(WorkFields, Operation)> {
        let work = self.agent_work(fields)?;
        let offset = fields.or("at", 0)?;
        let octets: Option<u64> = fields.optional("octets")?;
        let names = fields.or("access", ["remote_write", "remote_read"].map(str::to_owned).to_vec())?;
        let (window, region) = (fields.optional::<Window>("window")?, fields.optional::<Region>("to_region")?);
        let (window, region) =
            window.zip(region).ok_or_else(|| fields.wrong("window, to_region", "both are needed"))?;
        let (window, length) = (window.object, octets.unwrap_or(region.octets.saturating_sub(offset)));
        let access = access(fields, &names)?;
        Ok((work, Operation::Bind { window, region: region.object, offset, length, access }))
    }

    /// Reads a range of a region. The range begins at `offset` and has `length` bytes. Without
    /// `length`, the range ends with the region. `key` replaces the region's own key.
    pub(super) fn agent_part(&self, fields: &mut Fields<'_>) -> mlua::Result<Part> {
        let (offset, length, key) = (fields.or("offset", 0)?, fields.optional("length")?, fields.optional("key")?);
        let region: Region = fields.required("region")?;
        Ok(part_of(&region, offset, length, key))
    }

    /// `status`: `"success"` (default), `"error"` for any other status, a status of `enum
    /// ibv_wc_status` in lower case, or a list of statuses.
    pub(super) fn expect_completion(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, CompletionFields)> {
        let expectation = self.answer(fields)?;
        let Ids(status) = fields.optional("status")?.unwrap_or_else(|| Ids(vec!["success".to_owned()]));
        let wanted = CompletionFields {
            work: fields.optional("work")?,
            status,
            operation: fields.optional("operation")?,
            octets: fields.optional("octets")?,
            invalidated: fields.optional("invalidated")?,
        };
        Ok((expectation, wanted))
    }

    /// `event`: one of `established`, `rejected`, `failed`, `disconnected`, `asynchronous`, or a
    /// list of them.
    pub(super) fn expect_event(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, EventFields)> {
        const EVENTS: [&str; 5] = ["established", "rejected", "failed", "disconnected", "asynchronous"];
        let expectation = self.answer(fields)?;
        let Ids(events) = fields.required("event")?;
        if let Some(other) = events.iter().find(|event| !EVENTS.contains(&event.as_str())) {
            return Err(fields.wrong("event", &format!("{other:?}: expected {}", EVENTS.join(", "))));
        }
        Ok((expectation, EventFields { events, private_data: fields.octets("private_data")? }))
    }

    /// `or_end`: also accepts the end of the connection, and work requests that fail only because
    /// the connection has ended (flushed work requests).
    pub(super) fn expect_error(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, bool)> {
        Ok((self.answer(fields)?, fields.or("or_end", false)?))
    }

    /// A range of a region: `offset` (default 0), `length` (default the rest), and `octets` or
    /// `seed` to write.
    pub(super) fn agent_octets(&self, fields: &mut Fields<'_>) -> mlua::Result<OctetsFields> {
        Ok(OctetsFields {
            offset: fields.or("offset", 0)?,
            length: fields.optional("length")?,
            octets: fields.octets("octets")?.unwrap_or_default(),
            seed: fields.or::<i64>("seed", 1)?.cast_unsigned(),
        })
    }
}

/// A range of a region.
pub(super) struct OctetsFields {
    pub(super) offset: u64,
    length: Option<u64>,
    pub(super) octets: Vec<u8>,
    pub(super) seed: u64,
}

impl OctetsFields {
    /// Returns the number of bytes of the range in a region of `len` bytes.
    pub(super) fn length(&self, len: u64) -> u64 {
        self.length.unwrap_or_else(|| len.saturating_sub(self.offset).min(MAX_TRANSFER_OCTETS as u64))
    }
}

/// `stag` and `to`: memory of the peer. If the operation transfers no bytes, these values do not
/// matter.
fn remote(fields: &mut Fields<'_>) -> mlua::Result<(u32, u64)> {
    Ok((fields.or("stag", 0)?, fields.or::<i64>("to", 0)?.cast_unsigned()))
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

macro_rules! from_user_data {
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

from_user_data!(Region: "a region", Window: "a window", Shared: "a shared receive queue");
