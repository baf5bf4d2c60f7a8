//! Reads the option tables of the methods of an SDP connection, and of a socket for datagrams to a
//! port mapper.

use std::time::Duration;

use mlua::{AnyUserData, Lua, Table, Value as LuaValue};
use weft_core::wire::portmap::MessageType;
use weft_core::wire::rdmap::ReadRequest;
use weft_core::wire::sdp::Mid;

use super::fields::{Fields, wrong};
use super::message;
use super::options::{CLOSE_SECONDS, Reader, pause};
use crate::sdp;
use crate::stage::Message;
use crate::stage::{Ending, Expectation, MapperFields, MessageFields, SendFields, Value, hello};
use crate::targets::SdpStart;

/// How an SDP connection is opened.
pub(super) struct SdpOpen {
    pub(super) expectation: Expectation,
    pub(super) message: Message,
    pub(super) profile: SdpStart,
}

/// Returns the messages of these names.
fn mids(what: &'static str, field: &'static str, names: &[String]) -> mlua::Result<Vec<Mid>> {
    let mid = |name: &String| {
        sdp::by_name(name).ok_or_else(|| wrong(what, field, &format!("{name:?} is not an SDP message")))
    };
    names.iter().map(mid).collect()
}

/// `past`: messages that the expectation skips.
fn past(fields: &mut Fields<'_>) -> mlua::Result<Vec<Mid>> {
    let names: Vec<String> = fields.or("past", Vec::new())?;
    mids(fields.what(), "past", &names)
}

/// The options of `s:expect`.
pub(super) struct SdpExpect {
    pub(super) expectation: Expectation,
    past: Vec<Mid>,
    updates: bool,
    /// Names of fields and their values: strings for `payload`, booleans for flags, integers for
    /// other fields.
    fields: Option<Table>,
}

impl SdpExpect {
    /// Returns the expected message, which has one of these names.
    pub(super) fn wanted(&self, lua: &Lua, names: LuaValue) -> mlua::Result<MessageFields> {
        const WHAT: &str = "sdp_expect";
        let names: Vec<String> = match names {
            LuaValue::Table(_) => mlua::FromLua::from_lua(names, lua)?,
            one => vec![mlua::FromLua::from_lua(one, lua)?],
        };
        let mids = mids(WHAT, "names", &names)?;
        let mut fields = Vec::new();
        let values = self.fields.as_ref().map(Table::pairs::<String, LuaValue>);
        for pair in values.into_iter().flatten() {
            let (name, value) = pair?;
            if name != "payload" && !mids.iter().any(|mid| sdp::has_field(*mid, &name)) {
                return Err(wrong(WHAT, "fields", &format!("the expected messages have no field {name:?}")));
            }
            let value = match value {
                LuaValue::Boolean(value) => Value::Number(value.into()),
                LuaValue::Integer(value) => Value::Number(value.cast_unsigned()),
                LuaValue::String(octets) if name == "payload" => Value::Octets(octets.as_bytes().to_vec()),
                other => {
                    let found = other.type_name();
                    return Err(wrong(WHAT, "fields", &format!("{name}: expected an integer, found {found}")));
                }
            };
            fields.push((name, value));
        }
        // A Lua table has no order. A report must be the same in each run.
        fields.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        Ok(MessageFields { mids, past: self.past.clone(), updates: self.updates, fields })
    }
}

impl Reader<'_> {
    /// `hello`: the Hello to send. `profile`: the start-up profile.
    pub(super) fn sdp(&self, fields: &mut Fields<'_>) -> mlua::Result<SdpOpen> {
        let expectation = self.answer(fields)?;
        let message = match fields.optional::<AnyUserData>("hello")? {
            Some(value) => message::from_value(LuaValue::UserData(value))?,
            None => hello(),
        };
        let profile = match fields.optional::<String>("profile")? {
            None => self.target.description.sdp.start,
            Some(name) => serde_json::from_value(name.as_str().into())
                .map_err(|_| fields.wrong("profile", &format!("{name:?} is not a profile")))?,
        };
        Ok(SdpOpen { expectation, message, profile })
    }

    /// `hello_ack`: the HelloAck to send. `hold`: seconds to wait before the HelloAck. `port`: the
    /// port to which the target connects to resume a suspended connection.
    pub(super) fn accept_sdp(
        &self,
        fields: &mut Fields<'_>,
    ) -> mlua::Result<(Expectation, Message, (Duration, Option<u16>))> {
        let expectation = self.answer(fields)?;
        let message = match fields.optional::<AnyUserData>("hello_ack")? {
            Some(value) => message::from_value(LuaValue::UserData(value))?,
            None => Message::of_mid(Mid::HELLO_ACK),
        };
        let hold = pause(fields.or("hold", 0.0)?).map_err(|why| fields.wrong("hold", &why))?;
        let port = fields.optional("port")?;
        Ok((expectation, message, (hold, port)))
    }

    /// Reads how the message is sent, and whether this step deviates from a plain (correct)
    /// exchange.
    pub(super) fn carrier(&self, fields: &mut Fields<'_>) -> mlua::Result<(SendFields, bool)> {
        let carrier = SendFields {
            solicited: fields.optional("solicited")?,
            invalidate: fields.optional("invalidate")?,
            opcode: fields.optional("opcode")?,
            msn: fields.optional("msn")?,
        };
        Ok((carrier, fields.or("deviates", false)?))
    }

    pub(super) fn sdp_expect(&self, fields: &mut Fields<'_>) -> mlua::Result<SdpExpect> {
        Ok(SdpExpect {
            expectation: self.answer(fields)?,
            past: past(fields)?,
            updates: fields.or("updates", false)?,
            fields: fields.optional("fields")?,
        })
    }

    /// `length`: number of bytes of the Writes.
    pub(super) fn expect_write(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, usize, Vec<Mid>)> {
        Ok((self.answer(fields)?, fields.or("length", 1)?, past(fields)?))
    }

    pub(super) fn sdp_read(&self, fields: &mut Fields<'_>) -> mlua::Result<ReadRequest> {
        Ok(ReadRequest {
            sink_stag: fields.or("sink_stag", 0x5151u32)?,
            sink_to: 0,
            rdmardsz: fields.or("length", 0u32)?,
            src_stag: fields.or("stag", 0u32)?,
            src_to: fields.or("va", 0i64)?.cast_unsigned(),
        })
    }

    pub(super) fn sdp_write(&self, fields: &mut Fields<'_>) -> mlua::Result<((u32, u64), Vec<u8>)> {
        let place = (fields.or("stag", 0u32)?, fields.or("va", 0i64)?.cast_unsigned());
        Ok((place, fields.octets("payload")?.unwrap_or_default()))
    }

    pub(super) fn sdp_serve(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, u64, usize)> {
        let expectation = self.answer(fields)?;
        Ok((expectation, fields.or("va", 0i64)?.cast_unsigned(), fields.or("from", 0)?))
    }

    pub(super) fn sdp_quiet(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, Vec<Mid>)> {
        Ok((self.silence(fields)?, past(fields)?))
    }

    pub(super) fn sdp_end(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, Ending)> {
        let expectation = self.expectation(fields, CLOSE_SECONDS)?;
        Ok((expectation, Ending { past: past(fields)?, graceful: fields.or("graceful", false)? }))
    }

    pub(super) fn counters(&self, fields: &mut Fields<'_>) -> mlua::Result<(Option<u16>, Option<bool>)> {
        Ok((fields.optional("bufs")?, fields.optional("updates")?))
    }

    pub(super) fn mapper(&self, fields: &mut Fields<'_>) -> mlua::Result<bool> {
        fields.or("v6", false)
    }

    /// Reads whether this step deviates from a plain exchange.
    pub(super) fn mapper_send(&self, fields: &mut Fields<'_>) -> mlua::Result<bool> {
        fields.or("deviates", false)
    }

    pub(super) fn mapper_expect(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, MapperFields)> {
        let expectation = self.answer(fields)?;
        let mut wanted = mapper_fields(fields)?;
        wanted.from_there = fields.or("from_there", false)?;
        Ok((expectation, wanted))
    }

    /// `or_deny`: whether a PMDeny may also arrive.
    pub(super) fn mapper_quiet(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, bool)> {
        Ok((self.silence(fields)?, fields.or("or_deny", false)?))
    }
}

/// Reads the name of a port mapper message's type.
pub(super) fn message_type(fields: &mut Fields<'_>, name: &'static str) -> mlua::Result<Option<MessageType>> {
    let Some(named) = fields.optional::<String>(name)? else { return Ok(None) };
    let known = message::type_named(&named);
    known.map(Some).ok_or_else(|| fields.wrong(name, "expected \"req\", \"accept\", \"ack\" or \"deny\""))
}

/// Reads the fields of an expected port mapper message.
pub(super) fn mapper_fields(fields: &mut Fields<'_>) -> mlua::Result<MapperFields> {
    Ok(MapperFields {
        message_type: message_type(fields, "type")?,
        pm_time: fields.optional("pm_time")?,
        ap_port: fields.optional("ap_port")?,
        cp_port: fields.optional("cp_port")?,
        handle: fields.optional::<i64>("handle")?.map(i64::cast_unsigned),
        from_there: false,
    })
}
