//! The tables that the methods of a connection take: what each expectation can be told.

use std::time::Duration;

use mlua::{FromLua, Lua, LuaString, Table, Value};
use weft_core::RequirementId;

use super::fields::Fields;
use super::location::here;
use super::message;
use crate::stage::{Before, Close, Deviation, Expectation, FpduFields, HeaderFields, ReplyFields, TerminateFields};
use crate::targets::Target;

/// Seconds that a target has for a Reply, or for an FPDU.
pub(super) const REPLY_SECONDS: f64 = 5.0;
/// Seconds that a target has for closing: longer than the start-up timers of 5 and 10 s that are in
/// use.
pub(super) const CLOSE_SECONDS: f64 = 15.0;
/// Seconds for which silence is listened to.
pub(super) const SILENCE_SECONDS: f64 = 2.0;
/// Most pieces of one message.
const MAX_PIECES: usize = 4096;
/// Longest pause, in seconds.
const MAX_PAUSE: f64 = 3600.0;

/// One requirement id, or a list of them; lists may stand in it, too, as scripts name what belongs
/// together.
pub(super) struct Ids(pub(super) Vec<String>);

impl FromLua for Ids {
    fn from_lua(value: Value, lua: &Lua) -> mlua::Result<Self> {
        match value {
            Value::Table(list) => {
                let mut ids = Vec::new();
                for entry in list.sequence_values::<Value>() {
                    match entry? {
                        Value::Table(inner) => ids.extend(Vec::<String>::from_lua(Value::Table(inner), lua)?),
                        one => ids.push(String::from_lua(one, lua)?),
                    }
                }
                Ok(Ids(ids))
            }
            one => String::from_lua(one, lua).map(|id| Ids(vec![id])),
        }
    }
}

/// `true` for a step with FPDUs, or the legal frame that the control sends instead of a start-up
/// frame.
pub(super) struct Deviates(Option<Deviation>);

impl FromLua for Deviates {
    fn from_lua(value: Value, _: &Lua) -> mlua::Result<Self> {
        match value {
            Value::Boolean(is_marked) => Ok(Deviates(is_marked.then_some(Deviation::Fpdus))),
            legal => message::from_value(legal).map(|legal| Deviates(Some(Deviation::Startup(legal)))),
        }
    }
}

/// What the tables are read for.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) lua: &'a Lua,
    pub(super) target: &'a Target,
    /// Those that the case declares: an expectation can name no other.
    pub(super) requirements: &'a [RequirementId],
}

impl Reader<'_> {
    pub(super) fn ids(&self, fields: &mut Fields<'_>, name: &'static str) -> mlua::Result<Vec<RequirementId>> {
        let names = fields.optional(name)?;
        self.known(fields, name, names)
    }

    /// Requirements in a field that was called `old` in earlier versions.
    fn renamed_ids(
        &self,
        fields: &mut Fields<'_>,
        name: &'static str,
        old: &'static str,
    ) -> mlua::Result<Vec<RequirementId>> {
        let names = fields.renamed(name, old)?;
        self.known(fields, name, names)
    }

    /// The requirements of these names, which the case must list.
    fn known(&self, fields: &Fields<'_>, name: &'static str, names: Option<Ids>) -> mlua::Result<Vec<RequirementId>> {
        let Some(Ids(names)) = names else { return Ok(Vec::new()) };
        let mut ids = Vec::new();
        for id in &names {
            let known = id.parse().map_err(|error| fields.wrong(name, &format!("{error}")))?;
            if !self.requirements.contains(&known) {
                let why = format!("the case does not list {known} among its requirements");
                return Err(fields.wrong(name, &why));
            }
            ids.push(known);
        }
        Ok(ids)
    }

    /// What every expectation has.
    pub(super) fn expectation(&self, fields: &mut Fields<'_>, seconds: f64) -> mlua::Result<Expectation> {
        let requirements = self.ids(fields, "requirement")?;
        let shows = self.ids(fields, "shows")?;
        let overdue_fails = fields.or("overdue_fails", false)?;
        let within = self.within(fields, seconds)?;
        Ok(Expectation { requirements, shows, overdue_fails, within, at: here(self.lua) })
    }

    fn within(&self, fields: &mut Fields<'_>, seconds: f64) -> mlua::Result<Duration> {
        let seconds = fields.or("within", seconds)?;
        let within =
            Duration::try_from_secs_f64(seconds).map_err(|error| fields.wrong("within", &error.to_string()))?;
        Ok(self.target.scaled(within.as_secs_f64()))
    }

    pub(super) fn good_exchange(&self, table: Option<Table>) -> mlua::Result<Vec<RequirementId>> {
        let mut fields = Fields::new(self.lua, "good_exchange", table);
        let shows = self.ids(&mut fields, "shows")?;
        fields.done()?;
        Ok(shows)
    }

    pub(super) fn expect_close(&self, table: Option<Table>) -> mlua::Result<(Expectation, Before, Close)> {
        let mut fields = Fields::new(self.lua, "expect_close", table);
        let expectation = self.expectation(&mut fields, CLOSE_SECONDS)?;
        let before = Before { reject: fields.or("or_reject", false)?, terminate: fields.or("after_terminate", false)? };
        let close = if fields.or("graceful", false)? { Close::Graceful } else { Close::Any };
        fields.done()?;
        Ok((expectation, before, close))
    }

    /// `error`: one, or a list, of `"12 01"`: layer and type, then the code, in hexadecimal.
    pub(super) fn expect_terminate(&self, table: Option<Table>) -> mlua::Result<(Expectation, TerminateFields)> {
        let mut fields = Fields::new(self.lua, "expect_terminate", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let mut wanted = TerminateFields {
            errors: Vec::new(),
            code: self.ids(&mut fields, "code")?,
            told: self.renamed_ids(&mut fields, "terminate", "told")?,
        };
        for error in fields.optional::<Ids>("error")?.map(|Ids(errors)| errors).unwrap_or_default() {
            let octets = error.split_once(' ').and_then(|(control, code)| {
                Some([u8::from_str_radix(control, 16).ok()?, u8::from_str_radix(code, 16).ok()?])
            });
            let why = || fields.wrong("error", &format!("{error:?}: expected two octets in hexadecimal, as \"12 01\""));
            wanted.errors.push(octets.ok_or_else(why)?);
        }
        fields.done()?;
        Ok((expectation, wanted))
    }

    pub(super) fn expect_silence(&self, table: Option<Table>) -> mlua::Result<(Expectation, bool)> {
        let mut fields = Fields::new(self.lua, "expect_silence", table);
        let expectation = self.expectation(&mut fields, SILENCE_SECONDS)?;
        let open = fields.or("open", false)?;
        fields.done()?;
        Ok((expectation, open))
    }

    /// What is waited for without a judgement: for how long.
    pub(super) fn waiting(&self, table: Option<Table>) -> mlua::Result<Expectation> {
        let mut fields = Fields::new(self.lua, "waiting", table);
        let within = self.within(&mut fields, REPLY_SECONDS)?;
        fields.done()?;
        Ok(Expectation::preparation(within, here(self.lua).as_ref()))
    }

    pub(super) fn expect_reply(&self, table: Option<Table>) -> mlua::Result<(Expectation, ReplyFields)> {
        self.frame("expect_reply", table)
    }

    pub(super) fn expect_request(&self, table: Option<Table>) -> mlua::Result<(Expectation, ReplyFields)> {
        self.frame("expect_request", table)
    }

    fn frame(&self, what: &'static str, table: Option<Table>) -> mlua::Result<(Expectation, ReplyFields)> {
        let mut fields = Fields::new(self.lua, what, table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let wanted = ReplyFields {
            reject: fields.optional("reject")?,
            revision: fields.optional("revision")?,
            crc: fields.optional("crc")?,
            markers: fields.optional("markers")?,
            enhanced: fields.optional("enhanced")?,
        };
        fields.done()?;
        Ok((expectation, wanted))
    }

    pub(super) fn expect_fpdu(&self, table: Option<Table>) -> mlua::Result<(Expectation, FpduFields)> {
        let mut fields = Fields::new(self.lua, "expect_fpdu", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let wanted = FpduFields {
            opcode: fields.optional("opcode")?,
            payload: fields.octets("payload")?,
            header: HeaderFields {
                last: fields.optional("last")?,
                stag: fields.optional("stag")?,
                tagged_offset: fields.optional::<i64>("tagged_offset")?.map(i64::cast_unsigned),
                qn: fields.optional("qn")?,
                msn: fields.optional("msn")?,
                mo: fields.optional("mo")?,
            },
            crc: fields.or("crc", false)?,
        };
        fields.done()?;
        Ok((expectation, wanted))
    }

    pub(super) fn expect_octets(&self, table: Option<Table>) -> mlua::Result<(Expectation, Vec<u8>, bool)> {
        let mut fields = Fields::new(self.lua, "expect_octets", table);
        let expectation = self.expectation(&mut fields, REPLY_SECONDS)?;
        let begins = fields.required::<LuaString>("begins")?.as_bytes().to_vec();
        let keep = fields.or("keep", false)?;
        fields.done()?;
        Ok((expectation, begins, keep))
    }

    pub(super) fn check(&self, table: Option<Table>) -> mlua::Result<(Expectation, String, String)> {
        let mut fields = Fields::new(self.lua, "check", table);
        let expectation = self.expectation(&mut fields, 0.0)?;
        let (expected, actual) = (fields.required("expected")?, fields.required("actual")?);
        fields.done()?;
        Ok((expectation, expected, actual))
    }

    /// Where a message of `len` octets is cut, the pause between the pieces, and how the step
    /// deviates from a plain exchange.
    pub(super) fn send(
        &self,
        table: Option<Table>,
        len: usize,
    ) -> mlua::Result<(Vec<usize>, Duration, Option<Deviation>)> {
        let mut fields = Fields::new(self.lua, "send", table);
        let mut cuts = fields.or::<Vec<usize>>("cuts", Vec::new())?;
        if let Some(every) = fields.optional::<usize>("every")? {
            if every == 0 {
                return Err(fields.wrong("every", "expected at least 1 octet"));
            }
            cuts.extend((1..).map(|piece| piece * every).take_while(|cut| *cut < len));
        }
        let pause = pause(fields.or("pause", 0.0)?).map_err(|why| fields.wrong("pause", &why))?;
        let Deviates(deviates) = fields.or("deviates", Deviates(None))?;
        cuts.sort_unstable();
        cuts.dedup();
        if cuts.iter().any(|cut| *cut == 0 || *cut >= len) || cuts.len() >= MAX_PIECES {
            let why = format!("expected at most {MAX_PIECES} pieces, cut behind 1 to {} octets", len.saturating_sub(1));
            return Err(fields.wrong("cuts", &why));
        }
        fields.done()?;
        Ok((cuts, pause, deviates))
    }
}

/// A pause of so many seconds.
pub(super) fn pause(seconds: f64) -> Result<Duration, String> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(pause) if seconds <= MAX_PAUSE => Ok(pause),
        _ => Err(format!("expected 0 to {MAX_PAUSE} seconds")),
    }
}
