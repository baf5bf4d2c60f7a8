//! The tables that the methods of an SDP connection and of a port mapper's socket take.

use std::time::Duration;

use mlua::{AnyUserData, LuaString, Table, Value as LuaValue};
use weft_core::wire::portmap::MessageType;
use weft_core::wire::rdmap::ReadRequest;
use weft_core::wire::sdp::Mid;

use super::fields::Fields;
use super::message;
use super::options::{CLOSE_SECONDS, REPLY_SECONDS, Reader, SILENCE_SECONDS};
use crate::script::message::Message;
use crate::sdp::{self, Draft};
use crate::stage::{Carrier, Ending, Expectation, MapperFields, SdpStart, Value, Wanted, hello};

/// How a connection is opened.
pub(super) struct SdpOpen {
    pub(super) expectation: Expectation,
    pub(super) message: Message,
    pub(super) profile: SdpStart,
}

/// Messages by their names.
fn mids(fields: &Fields<'_>, name: &'static str, names: &[String]) -> mlua::Result<Vec<Mid>> {
    let mid = |word: &String| {
        sdp::by_name(word).ok_or_else(|| fields.wrong(name, &format!("{word:?} is no message of SDP's")))
    };
    names.iter().map(mid).collect()
}

impl Reader<'_> {
    /// `hello`, `profile`.
    pub(super) fn sdp(&self, table: Option<Table>) -> mlua::Result<SdpOpen> {
        let mut fields = Fields::new(self.lua, "sdp", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let message = match fields.optional::<AnyUserData>("hello")? {
            Some(value) => message::from_value(LuaValue::UserData(value))?,
            None => hello(),
        };
        let profile = match fields.optional::<String>("profile")?.as_deref() {
            None => self.target.sdp_start,
            Some("swapped") => SdpStart::Swapped,
            Some("bare") => SdpStart::Bare,
            Some("natural") => SdpStart::Natural,
            Some("enhanced") => SdpStart::Enhanced,
            Some("private-data") => SdpStart::PrivateData,
            Some(other) => return Err(fields.wrong("profile", &format!("{other:?} is none"))),
        };
        fields.done()?;
        Ok(SdpOpen { expectation, message, profile })
    }

    /// `hello_ack`; `hold`, seconds; `port`, where the target goes on with a connection that was
    /// suspended.
    pub(super) fn accept_sdp(
        &self,
        table: Option<Table>,
    ) -> mlua::Result<(Expectation, Message, (Duration, Option<u16>))> {
        let mut fields = Fields::new(self.lua, "accept_sdp", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let message = match fields.optional::<AnyUserData>("hello_ack")? {
            Some(value) => message::from_value(LuaValue::UserData(value))?,
            None => {
                let draft = Draft::new(Mid::HELLO_ACK);
                Message::of_draft("HelloAck", draft)
            }
        };
        let hold = super::options::pause(fields.or("hold", 0.0)?).map_err(|why| fields.wrong("hold", &why))?;
        let port = fields.optional("port")?;
        fields.done()?;
        Ok((expectation, message, (hold, port)))
    }

    /// How the message is sent, and whether that is the step that deviates.
    pub(super) fn carrier(&self, table: Option<Table>) -> mlua::Result<(Carrier, bool)> {
        let mut fields = Fields::new(self.lua, "carrier", table);
        let carrier = Carrier {
            solicited: fields.optional("solicited")?,
            invalidate: fields.optional("invalidate")?,
            opcode: fields.optional("opcode")?,
            msn: fields.optional("msn")?,
        };
        let deviates = fields.or("deviates", false)?;
        fields.done()?;
        Ok((carrier, deviates))
    }

    /// `fields`: names of fields and their values; `payload` by its octets, flags as booleans.
    pub(super) fn sdp_expect(&self, names: LuaValue, table: Option<Table>) -> mlua::Result<(Expectation, Wanted)> {
        let mut fields = Fields::new(self.lua, "sdp_expect", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let names: Vec<String> = match names {
            LuaValue::Table(_) => mlua::FromLua::from_lua(names, self.lua)?,
            one => vec![mlua::FromLua::from_lua(one, self.lua)?],
        };
        let past: Vec<String> = fields.or("past", Vec::new())?;
        let mut wanted = Wanted {
            mids: mids(&fields, "names", &names)?,
            past: mids(&fields, "past", &past)?,
            updates: fields.or("updates", false)?,
            fields: Vec::new(),
        };
        if let Some(values) = fields.optional::<Table>("fields")? {
            for pair in values.pairs::<String, LuaValue>() {
                let (name, value) = pair?;
                let of_a_message =
                    name == "payload" || wanted.mids.iter().any(|mid| crate::sdp::has_field(*mid, &name));
                if !of_a_message {
                    return Err(fields.wrong("fields", &format!("none of these messages has {name:?}")));
                }
                let value = match value {
                    LuaValue::Boolean(value) => Value::Number(value.into()),
                    LuaValue::Integer(value) => Value::Number(value.cast_unsigned()),
                    LuaValue::String(octets) if name == "payload" => Value::Octets(octets.as_bytes().to_vec()),
                    other => {
                        let found = other.type_name();
                        return Err(fields.wrong("fields", &format!("{name}: expected a whole number, found {found}")));
                    }
                };
                wanted.fields.push((name, value));
            }
            // Lua has no order of its own; what a report says is the same in each run.
            wanted.fields.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        }
        fields.done()?;
        Ok((expectation, wanted))
    }

    /// `length`: octets, for Writes.
    pub(super) fn sdp_rdma(&self, table: Option<Table>, what: &'static str) -> mlua::Result<(Expectation, usize)> {
        let mut fields = Fields::new(self.lua, what, table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let length = if what == "expect_write" { fields.or("length", 1)? } else { 0 };
        fields.done()?;
        Ok((expectation, length))
    }

    pub(super) fn sdp_read(&self, table: Option<Table>) -> mlua::Result<ReadRequest> {
        let mut fields = Fields::new(self.lua, "read", table);
        let read = ReadRequest {
            sink_stag: fields.or("sink_stag", 0x5151u32)?,
            sink_to: 0,
            rdmardsz: fields.or("length", 0u32)?,
            src_stag: fields.or("stag", 0u32)?,
            src_to: fields.or("va", 0i64)?.cast_unsigned(),
        };
        fields.done()?;
        Ok(read)
    }

    pub(super) fn sdp_write(&self, table: Option<Table>) -> mlua::Result<((u32, u64), Vec<u8>)> {
        let mut fields = Fields::new(self.lua, "write", table);
        let place = (fields.or("stag", 0u32)?, fields.or("va", 0i64)?.cast_unsigned());
        let payload = fields.optional::<LuaString>("payload")?.map(|octets| octets.as_bytes().to_vec());
        fields.done()?;
        Ok((place, payload.unwrap_or_default()))
    }

    pub(super) fn sdp_serve(&self, table: Option<Table>) -> mlua::Result<(Expectation, u64, usize)> {
        let mut fields = Fields::new(self.lua, "serve", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let (va, from) = (fields.or("va", 0i64)?.cast_unsigned(), fields.or("from", 0usize)?);
        fields.done()?;
        Ok((expectation, va, from))
    }

    pub(super) fn sdp_quiet(&self, table: Option<Table>) -> mlua::Result<(Expectation, Vec<Mid>)> {
        let mut fields = Fields::new(self.lua, "sdp_quiet", table);
        let expectation = self.expectation(&mut fields, SILENCE_SECONDS)?;
        let past: Vec<String> = fields.or("past", Vec::new())?;
        let past = mids(&fields, "past", &past)?;
        fields.done()?;
        Ok((expectation, past))
    }

    pub(super) fn sdp_end(&self, table: Option<Table>) -> mlua::Result<(Expectation, Ending)> {
        let mut fields = Fields::new(self.lua, "sdp_end", table);
        let expectation = self.expectation(&mut fields, CLOSE_SECONDS)?;
        let past: Vec<String> = fields.or("past", Vec::new())?;
        let ending = Ending { past: mids(&fields, "past", &past)?, graceful: fields.or("graceful", false)? };
        fields.done()?;
        Ok((expectation, ending))
    }

    pub(super) fn counters(&self, table: Option<Table>) -> mlua::Result<(Option<u16>, Option<bool>)> {
        let mut fields = Fields::new(self.lua, "counters", table);
        let counters = (fields.optional("bufs")?, fields.optional("updates")?);
        fields.done()?;
        Ok(counters)
    }

    pub(super) fn mapper(&self, table: Option<Table>) -> mlua::Result<bool> {
        let mut fields = Fields::new(self.lua, "mapper", table);
        let v6 = fields.or("v6", false)?;
        fields.done()?;
        Ok(v6)
    }

    /// Is it the step that deviates?
    pub(super) fn mapper_send(&self, table: Option<Table>) -> mlua::Result<bool> {
        let mut fields = Fields::new(self.lua, "mapper_send", table);
        let deviates = fields.or("deviates", false)?;
        fields.done()?;
        Ok(deviates)
    }

    pub(super) fn mapper_expect(&self, table: Option<Table>) -> mlua::Result<(Expectation, MapperFields)> {
        let mut fields = Fields::new(self.lua, "mapper_expect", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let mut wanted = mapper_fields(&mut fields)?;
        wanted.from_there = fields.or("from_there", false)?;
        fields.done()?;
        Ok((expectation, wanted))
    }

    /// `or_deny`: a PMDeny may come.
    pub(super) fn mapper_quiet(&self, table: Option<Table>) -> mlua::Result<(Expectation, bool)> {
        let mut fields = Fields::new(self.lua, "mapper_quiet", table);
        let expectation = self.expectation(&mut fields, SILENCE_SECONDS)?;
        let or_deny = fields.or("or_deny", false)?;
        fields.done()?;
        Ok((expectation, or_deny))
    }
}

/// A type of port mapper messages, by its word.
pub(super) fn message_type(fields: &mut Fields<'_>, name: &'static str) -> mlua::Result<Option<MessageType>> {
    Ok(match fields.optional::<String>(name)?.as_deref() {
        None => None,
        Some("req") => Some(MessageType::PM_REQ),
        Some("accept") => Some(MessageType::PM_ACCEPT),
        Some("ack") => Some(MessageType::PM_ACK),
        Some("deny") => Some(MessageType::PM_DENY),
        Some(_) => return Err(fields.wrong(name, "expected req, accept, ack or deny")),
    })
}

/// The fields of a port mapper message that is waited for.
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
