//! Reads the option tables of the methods of a connection.

use std::time::Duration;

use mlua::{FromLua, Lua, LuaString, Table, Value};
use weft_core::RequirementId;
use weft_peer::driver::Fragments;

use super::fields::{Fields, wrong};
use super::{message, old_names};
use crate::stage::{
    AllowedBeforeClose, Close, Deviation, Expectation, ExpectedOctets, FpduFields, HeaderFields, ReplyFields,
    TerminateFields,
};
use crate::targets::Target;

/// Default time limit in seconds for a Reply or an FPDU of the target.
pub(super) const REPLY_SECONDS: f64 = 5.0;
/// Default time limit in seconds for a close of the target. This is longer than the usual start-up
/// timers of 5 and 10 s.
pub(super) const CLOSE_SECONDS: f64 = 15.0;
/// Default number of seconds for which an expectation of silence waits.
pub(super) const SILENCE_SECONDS: f64 = 2.0;
/// Maximum number of pieces of one message.
const MAX_PIECES: usize = 4096;
/// Longest pause, in seconds.
const MAX_PAUSE: f64 = 3600.0;

/// One requirement id, or a list of ids. The list may contain lists of ids that belong together.
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

/// How a step deviates from a plain exchange, which is a correct exchange of the target's service.
/// In a script, the value is `true` for a step with FPDUs. For a start-up frame, the value is a
/// legal frame. If the case fails, a control (a second run) sends the legal frame instead.
pub(super) struct Deviates(Option<Deviation>);

impl FromLua for Deviates {
    fn from_lua(value: Value, _: &Lua) -> mlua::Result<Self> {
        match value {
            Value::Boolean(is_marked) => Ok(Deviates(is_marked.then_some(Deviation::Fpdus))),
            legal => message::from_value(legal).map(|legal| Deviates(Some(Deviation::Startup(legal)))),
        }
    }
}

/// Reads option tables for one case.
#[derive(Clone, Copy)]
pub(super) struct Reader<'a> {
    pub(super) lua: &'a Lua,
    pub(super) target: &'a Target,
    pub(super) declared: Declared<'a>,
}

/// The requirements that the case declares. An expectation can name only these requirements.
#[derive(Clone, Copy)]
pub(super) struct Declared<'a>(pub(super) &'a [RequirementId]);

impl Declared<'_> {
    /// Reads requirements from a field.
    fn ids(&self, fields: &mut Fields<'_>, name: &'static str) -> mlua::Result<Vec<RequirementId>> {
        let names = fields.optional(name)?;
        self.known(fields, name, names)
    }

    /// Reads requirements from a field that was called `old` in earlier versions.
    fn renamed_ids(
        &self,
        fields: &mut Fields<'_>,
        name: &'static str,
        old: &'static str,
    ) -> mlua::Result<Vec<RequirementId>> {
        let names = fields.renamed(name, old)?;
        self.known(fields, name, names)
    }

    /// Parses the names of requirements. The case must list each of them.
    fn known(&self, fields: &Fields<'_>, name: &'static str, names: Option<Ids>) -> mlua::Result<Vec<RequirementId>> {
        let Some(Ids(names)) = names else { return Ok(Vec::new()) };
        let mut ids = Vec::new();
        for id in &names {
            let known = id.parse().map_err(|error| fields.wrong(name, &format!("{error}")))?;
            if !self.0.contains(&known) {
                let why = format!("the case does not list {known} among its requirements");
                return Err(fields.wrong(name, &why));
            }
            ids.push(known);
        }
        Ok(ids)
    }
}

impl Reader<'_> {
    /// Reads the fields of a table with `read`, and rejects fields that `read` does not know.
    /// `what` is the name of the table in messages and annotations.
    pub(super) fn read<T>(
        &self,
        what: &'static str,
        table: Option<Table>,
        read: impl FnOnce(&Self, &mut Fields<'_>) -> mlua::Result<T>,
    ) -> mlua::Result<T> {
        let mut fields = Fields::new(self.lua, what, table);
        let value = read(self, &mut fields)?;
        fields.done()?;
        Ok(value)
    }

    /// Reads an expectation of an answer, without further fields.
    pub(super) fn answer(&self, fields: &mut Fields<'_>) -> mlua::Result<Expectation> {
        self.expectation(fields, REPLY_SECONDS)
    }

    /// Reads an expectation of silence, without further fields.
    pub(super) fn silence(&self, fields: &mut Fields<'_>) -> mlua::Result<Expectation> {
        self.expectation(fields, SILENCE_SECONDS)
    }

    /// Reads the fields that every expectation has.
    pub(super) fn expectation(&self, fields: &mut Fields<'_>, seconds: f64) -> mlua::Result<Expectation> {
        let requirements = self.declared.ids(fields, "requirement")?;
        let shows = self.declared.ids(fields, "shows")?;
        let overdue_fails = fields.or("overdue_fails", false)?;
        let within = self.within(fields, seconds)?;
        Ok(Expectation { requirements, shows, overdue_fails, within })
    }

    pub(super) fn within(&self, fields: &mut Fields<'_>, seconds: f64) -> mlua::Result<Duration> {
        let seconds = fields.or("within", seconds)?;
        let within =
            Duration::try_from_secs_f64(seconds).map_err(|error| fields.wrong("within", &error.to_string()))?;
        Ok(self.target.scaled(within.as_secs_f64()))
    }

    /// The requirements that are violated if the exchange fails, and those that it shows if it works.
    pub(super) fn good_exchange(&self, fields: &mut Fields<'_>) -> mlua::Result<[Vec<RequirementId>; 2]> {
        Ok([self.declared.ids(fields, "requirement")?, self.declared.ids(fields, "shows")?])
    }

    /// The requirements that the target violates if it does not serve a connection.
    pub(super) fn opening(&self, fields: &mut Fields<'_>) -> mlua::Result<Vec<RequirementId>> {
        self.declared.ids(fields, "requirement")
    }

    pub(super) fn expect_close(
        &self,
        fields: &mut Fields<'_>,
    ) -> mlua::Result<(Expectation, AllowedBeforeClose, Close)> {
        let expectation = self.expectation(fields, CLOSE_SECONDS)?;
        let before = AllowedBeforeClose {
            reject: fields.or("or_reject", false)?,
            terminate: fields.or("after_terminate", false)?,
        };
        let close = if fields.or("graceful", false)? { Close::Graceful } else { Close::Any };
        Ok((expectation, before, close))
    }

    /// `error`: an error such as `"12 01"`, or a list of errors. The first byte has the layer and
    /// the type, the second byte has the code. Both are hexadecimal.
    pub(super) fn expect_terminate(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, TerminateFields)> {
        let expectation = self.answer(fields)?;
        let mut wanted = TerminateFields {
            errors: Vec::new(),
            code: self.declared.ids(fields, "code")?,
            terminate: self.declared.renamed_ids(fields, "terminate", old_names::TERMINATE)?,
        };
        for error in fields.optional::<Ids>("error")?.map(|Ids(errors)| errors).unwrap_or_default() {
            let octets = error.split_once(' ').and_then(|(control, code)| {
                Some([u8::from_str_radix(control, 16).ok()?, u8::from_str_radix(code, 16).ok()?])
            });
            let why = || {
                fields.wrong("error", &format!("{error:?}: expected two bytes in hexadecimal, for example \"12 01\""))
            };
            wanted.errors.push(octets.ok_or_else(why)?);
        }
        Ok((expectation, wanted))
    }

    pub(super) fn expect_silence(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, bool)> {
        let expectation = self.silence(fields)?;
        Ok((expectation, fields.or("open", false)?))
    }

    /// Reads how long the tester waits for the next event. The tester does not judge this event.
    pub(super) fn waiting(&self, fields: &mut Fields<'_>) -> mlua::Result<Expectation> {
        let within = self.within(fields, REPLY_SECONDS)?;
        Ok(Expectation::preparation(within))
    }

    /// The fields of a start-up frame.
    pub(super) fn frame(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, ReplyFields)> {
        let expectation = self.answer(fields)?;
        let wanted = ReplyFields {
            reject: fields.optional("reject")?,
            revision: fields.optional("revision")?,
            crc: fields.optional("crc")?,
            markers: fields.optional("markers")?,
            enhanced: fields.optional("enhanced")?,
        };
        Ok((expectation, wanted))
    }

    pub(super) fn expect_fpdu(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, FpduFields)> {
        let expectation = self.answer(fields)?;
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
        Ok((expectation, wanted))
    }

    pub(super) fn expect_octets(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, ExpectedOctets)> {
        let expectation = self.answer(fields)?;
        let begins = fields.required::<LuaString>("begins")?.as_bytes().to_vec();
        let (keep, has_markers) = (fields.or("keep", false)?, fields.or("markers", false)?);
        Ok((expectation, ExpectedOctets { begins, keep, has_markers }))
    }

    /// Reads the texts for a condition of a script. If `missing` is set, a violation means that an
    /// answer is missing. After a failed basic case, such a violation shows nothing about the
    /// requirement.
    pub(super) fn check(&self, fields: &mut Fields<'_>) -> mlua::Result<(Expectation, String, String, bool)> {
        let expectation = self.expectation(fields, 0.0)?;
        let (expected, actual) = (fields.required("expected")?, fields.required("actual")?);
        Ok((expectation, expected, actual, fields.or("missing", false)?))
    }

    pub(super) fn send(&self, fields: &mut Fields<'_>) -> mlua::Result<SendSettings> {
        let cuts = fields.or::<Vec<usize>>("cuts", Vec::new())?;
        let every = fields.optional("every")?;
        if every == Some(0) {
            return Err(fields.wrong("every", "expected at least 1 byte"));
        }
        let pause = pause(fields.or("pause", 0.0)?).map_err(|why| fields.wrong("pause", &why))?;
        let Deviates(deviation) = fields.or("deviates", Deviates(None))?;
        let queued = fields.or("queued", false)?;
        if queued && (every.is_some() || !cuts.is_empty()) {
            return Err(fields.wrong("queued", "expected no cuts"));
        }
        Ok(SendSettings { cuts, every, pause, queued, deviation })
    }

    pub(super) fn send_segments(&self, fields: &mut Fields<'_>) -> mlua::Result<SegmentSettings> {
        let (cuts, deviation) = self.withhold(fields)?;
        let order = fields.or::<Vec<usize>>("order", Vec::new())?;
        let count = cuts.len() + 1;
        if order.len() > MAX_PIECES || order.iter().any(|segment| !(1..=count).contains(segment)) {
            let why = format!("expected at most {MAX_PIECES} numbers from 1 to {count}");
            return Err(fields.wrong("order", &why));
        }
        let pause = pause(fields.or("pause", 0.0)?).map_err(|why| fields.wrong("pause", &why))?;
        let fragments = self.send_segment(fields)?;
        Ok(SegmentSettings { cuts, order, pause, fragments, deviation })
    }

    /// Reads the offsets at which TCP segments begin, and how the step deviates.
    pub(super) fn withhold(&self, fields: &mut Fields<'_>) -> mlua::Result<(Vec<usize>, Option<Deviation>)> {
        let mut cuts = fields.or::<Vec<usize>>("cuts", Vec::new())?;
        cuts.sort_unstable();
        cuts.dedup();
        if cuts.first() == Some(&0) || cuts.len() >= MAX_PIECES {
            let why = format!("expected at most {MAX_PIECES} segments, and each cut at an offset of 1 or more");
            return Err(fields.wrong("cuts", &why));
        }
        let Deviates(deviation) = fields.or("deviates", Deviates(None))?;
        Ok((cuts, deviation))
    }

    /// Reads the maximum number of bytes in an IP fragment, and the order of the fragments. All
    /// fragments of a datagram except the last have a multiple of eight bytes.
    pub(super) fn send_segment(&self, fields: &mut Fields<'_>) -> mlua::Result<Option<Fragments>> {
        let most: Option<u16> = fields.optional("fragment")?;
        let last_first = fields.or("last_first", false)?;
        if most.is_some_and(|most| most < 8) {
            return Err(fields.wrong("fragment", "expected at least 8 bytes"));
        }
        Ok(most.map(|most| Fragments { most, last_first }))
    }

    pub(super) fn retransmit(&self, fields: &mut Fields<'_>) -> mlua::Result<(usize, Option<Deviation>)> {
        let back = fields.or("back", 0)?;
        let Deviates(deviation) = fields.or("deviates", Deviates(None))?;
        Ok((back, deviation))
    }
}

/// The TCP segments in which a message is sent.
pub(super) struct SegmentSettings {
    /// The offsets at which a segment begins.
    pub(super) cuts: Vec<usize>,
    /// The numbers of the segments, from 1, in the order in which they leave.
    pub(super) order: Vec<usize>,
    /// Pause between two segments.
    pub(super) pause: Duration,
    /// The IP fragments that carry each segment. `None`: no fragments.
    pub(super) fragments: Option<Fragments>,
    /// How the step deviates from a plain exchange, if it does.
    pub(super) deviation: Option<Deviation>,
}

/// How a message is sent.
pub(super) struct SendSettings {
    cuts: Vec<usize>,
    every: Option<usize>,
    /// Pause between two pieces.
    pub(super) pause: Duration,
    /// Whether the script continues before TCP has accepted all bytes. The next functions that
    /// receive send the rest.
    pub(super) queued: bool,
    /// How the step deviates from a plain exchange, if it does.
    pub(super) deviation: Option<Deviation>,
}

impl SendSettings {
    /// Returns the byte offsets at which a message of `len` bytes is cut.
    pub(super) fn cuts(&self, len: usize) -> mlua::Result<Vec<usize>> {
        let mut cuts = self.cuts.clone();
        if let Some(every) = self.every {
            cuts.extend((1..).map(|piece| piece * every).take_while(|cut| *cut < len));
        }
        cuts.sort_unstable();
        cuts.dedup();
        if cuts.iter().any(|cut| *cut == 0 || *cut >= len) || cuts.len() >= MAX_PIECES {
            let most = len.saturating_sub(1);
            let why = format!("expected at most {MAX_PIECES} pieces, and each cut at an offset from 1 to {most}");
            return Err(wrong("send", "cuts", &why));
        }
        Ok(cuts)
    }
}

/// Returns a pause of this number of seconds.
pub(super) fn pause(seconds: f64) -> Result<Duration, String> {
    match Duration::try_from_secs_f64(seconds) {
        Ok(pause) if seconds <= MAX_PAUSE => Ok(pause),
        _ => Err(format!("expected 0 to {MAX_PAUSE} seconds")),
    }
}
