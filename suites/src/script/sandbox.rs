//! The Lua state of a script: the functions that it may use, and its limits.
//!
//! A script has no files, no network, no processes, no clock and no random source of its own. The
//! only clock is that of the tester's link (`t:clock`). A script cannot catch the end of its case.
//! Memory, instructions and wall time are limited. The limits do not interrupt a library function.
//! So functions that could run for long are missing (patterns, `table.move`, finalizers) or bounded
//! (`string.rep`).

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use mlua::{HookTriggers, Lua, LuaOptions, StdLib, Table, Value, VmState};

use super::location::ScriptName;
use super::message;

/// The limits of a script.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Limits {
    /// Maximum memory of the Lua state in bytes.
    pub memory: usize,
    /// Maximum number of Lua instructions for loading a script or running a case.
    pub instructions: u64,
    /// Maximum wall time for loading a script or running a case, including the waits for the
    /// target.
    pub time: Duration,
}

impl Limits {
    /// Usual time limit of a case in seconds, in the smoke tier and the default tier.
    pub(crate) const SECONDS: u32 = 300;
}

impl Default for Limits {
    fn default() -> Self {
        Limits { memory: 64 << 20, instructions: 50_000_000, time: Duration::from_secs(Self::SECONDS.into()) }
    }
}

/// Number of Lua instructions between two checks of the limits.
const STRIDE: u32 = 1000;
/// Maximum length in bytes of a string from `string.rep`.
const MAX_REP: usize = 1 << 20;

/// The files of the Lua modules `session`, which plays the sessions of `weft test --explore`,
/// `sdp_case`, which declares cases for a driven SDP socket, `sdp_flow`, which counts the bytes and
/// the advertisements of an SDP connection, `segment_case`, which has a step of cases about TCP
/// segments, and `learn`, which plays the inputs of `weft learn`. Each file gets the same table as
/// argument.
const LIBRARY: [(&str, &str); 15] = [
    ("session", include_str!("../../library/session.lua")),
    ("session_faults", include_str!("../../library/session_faults.lua")),
    ("echo_session", include_str!("../../library/echo_session.lua")),
    ("rping_session", include_str!("../../library/rping_session.lua")),
    ("sdp_faults", include_str!("../../library/sdp_faults.lua")),
    ("sdp_socket", include_str!("../../library/sdp_socket.lua")),
    ("sdp_session", include_str!("../../library/sdp_session.lua")),
    ("sdp_drive_session", include_str!("../../library/sdp_drive_session.lua")),
    ("sdp_case", include_str!("../../library/sdp_case.lua")),
    ("sdp_flow", include_str!("../../library/sdp_flow.lua")),
    ("segment_case", include_str!("../../library/segment_case.lua")),
    ("agent_traffic", include_str!("../../library/agent_traffic.lua")),
    ("agent_session", include_str!("../../library/agent_session.lua")),
    ("portmap_session", include_str!("../../library/portmap_session.lua")),
    ("learn", include_str!("../../library/learn.lua")),
];

/// Names that are removed from the standard library, with their table ("" for globals).
const REMOVED: [(&str, &[&str]); 4] = [
    // These functions load code, catch errors, change metatables (the limits do not stop a
    // finalizer), print, or control the garbage collector.
    (
        "",
        &[
            "collectgarbage",
            "dofile",
            "getmetatable",
            "load",
            "loadfile",
            "pcall",
            "print",
            "rawequal",
            "rawget",
            "rawlen",
            "rawset",
            "require",
            "setmetatable",
            "warn",
            "xpcall",
        ],
    ),
    // Patterns may need exponential time inside one call.
    ("string", &["dump", "find", "gmatch", "gsub", "match"]),
    ("table", &["move"]),
    ("math", &["randomseed"]),
];

/// Creates a new Lua state for the script `file`. Its `math.random` depends on `seed`.
pub(crate) fn new(file: &str, limits: Limits, seed: u64) -> mlua::Result<Lua> {
    let libraries = StdLib::STRING | StdLib::TABLE | StdLib::MATH | StdLib::UTF8;
    let lua = Lua::new_with(libraries, LuaOptions::new().catch_rust_panics(true))?;
    lua.set_memory_limit(limits.memory)?;
    let globals = lua.globals();
    globals.get::<Table>("math")?.get::<mlua::Function>("randomseed")?.call::<()>(seed.cast_signed())?;
    for (table, names) in REMOVED {
        let table = if table.is_empty() { globals.clone() } else { globals.get::<Table>(table)? };
        for name in names {
            table.raw_set(*name, Value::Nil)?;
        }
    }
    globals.get::<Table>("string")?.set("rep", lua.create_function(rep)?)?;
    globals.set("range", lua.create_function(range)?)?;
    message::install(&lua)?;
    super::sdp::install(&lua)?;
    super::octets::install(&lua)?;
    let shared = lua.create_table()?;
    for (name, text) in LIBRARY {
        lua.load(text).set_name(format!("={name}")).call::<()>(&shared)?;
    }
    lua.set_app_data(ScriptName(file.to_owned()));

    let used = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let name = file.to_owned();
    lua.set_global_hook(HookTriggers::new().every_nth_instruction(STRIDE), move |_, debug| {
        let used = used.fetch_add(u64::from(STRIDE), Ordering::Relaxed) + u64::from(STRIDE);
        let excess = if used > limits.instructions {
            format!("the script used more than {} instructions", limits.instructions)
        } else if began.elapsed() > limits.time {
            format!("the script took more than {:?}", limits.time)
        } else {
            return Ok(VmState::Continue);
        };
        let place = debug.current_line().map_or_else(String::new, |line| format!("{name}:{line}: "));
        Err(mlua::Error::runtime(place + &excess))
    })?;
    Ok(lua)
}

/// Returns the current globals for a script. When the first function that waits is added, mlua also
/// adds `coroutine`, because such functions need it. A script must not get `coroutine`. With
/// `coroutine`, a script could catch errors, or yield until its time is over.
pub(crate) fn environment(lua: &Lua) -> mlua::Result<Table> {
    let visible = lua.create_table()?;
    for pair in lua.globals().pairs::<Value, Value>() {
        let (name, value) = pair?;
        visible.raw_set(name, value)?;
    }
    visible.raw_set("coroutine", Value::Nil)?;
    visible.raw_set("_G", &visible)?;
    Ok(visible)
}

/// `string.rep` with a limit. The original loops `times` times, even for an empty string.
fn rep(
    lua: &Lua,
    (text, times, separator): (mlua::LuaString, i64, Option<mlua::LuaString>),
) -> mlua::Result<mlua::LuaString> {
    let separator = separator.map_or_else(Vec::new, |s| s.as_bytes().to_vec());
    let times = usize::try_from(times).unwrap_or(0);
    let unit = text.as_bytes().len() + separator.len();
    if unit.saturating_mul(times) > MAX_REP {
        return Err(mlua::Error::runtime(format!("string.rep makes at most {MAX_REP} bytes")));
    }
    let times = if unit == 0 { 0 } else { times };
    let pieces = vec![text.as_bytes().to_vec(); times];
    lua.create_string(pieces.join(&separator[..]))
}

/// `range(first, last)`: the integers from `first` to `last` as a list.
fn range(_: &Lua, (first, last): (i64, i64)) -> mlua::Result<Vec<i64>> {
    const MAX_NUMBERS: i64 = 65536;
    if last < first || last.saturating_sub(first) >= MAX_NUMBERS {
        return Err(mlua::Error::runtime(format!(
            "range({first}, {last}): expected 1 to {MAX_NUMBERS} numbers in rising order"
        )));
    }
    Ok((first..=last).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn eval(source: &str) -> Result<Value, String> {
        let limits = Limits { memory: 4 << 20, instructions: 1_000_000, time: Duration::from_secs(20) };
        let lua = new("x.lua", limits, 7).unwrap();
        lua.load(source).set_name("@x.lua").eval().map_err(|error| error.to_string())
    }

    #[test]
    fn nothing_reaches_outside() {
        for name in ["io", "os", "package", "require", "debug", "load", "loadfile", "dofile", "pcall", "coroutine"] {
            assert!(eval(&format!("return {name}")).unwrap().is_nil(), "{name}");
        }
        // Through the metatable of strings, a script reaches only the reduced library.
        assert!(eval("return ('x').find").unwrap().is_nil());
        assert!(eval("return ('x').dump").unwrap().is_nil());
    }

    #[test]
    fn an_endless_loop_ends() {
        let error = eval("while true do end").unwrap_err();
        assert!(error.contains("more than 1000000 instructions") && error.contains("x.lua:1"), "{error}");
        assert!(eval("('x'):rep(1 << 62)").is_err());
        assert_eq!(eval("return #(''):rep(1 << 62, '')").unwrap(), Value::Integer(0));
    }

    #[test]
    fn memory_is_bounded() {
        let error = eval("local t = {} for i = 1, 1 << 40 do t[i] = ('x'):rep(1000) .. i end").unwrap_err();
        assert!(error.contains("memory"), "{error}");
    }

    #[test]
    fn rep_is_that_of_lua_within_its_bound() {
        let text = |source: &str| {
            let lua = new("x.lua", Limits::default(), 7).unwrap();
            lua.load(source).eval::<String>().unwrap()
        };
        assert_eq!(text("return ('ab'):rep(3)"), "ababab");
        assert_eq!(text("return ('ab'):rep(3, ',')"), "ab,ab,ab");
        assert_eq!(text("return ('ab'):rep(0) .. ('ab'):rep(-1) .. ('ab'):rep(1, ',')"), "ab");
    }

    #[test]
    fn random_follows_from_the_seed() {
        let draw = || eval("return math.random(1, 1 << 40)").unwrap().as_i64();
        assert_eq!(draw(), draw());
        assert!(eval("return math.randomseed").unwrap().is_nil());
    }

    #[test]
    fn a_range_is_a_list() {
        assert_eq!(eval("local r = range(3, 5) return #r * 100 + r[1] * 10 + r[3]").unwrap(), Value::Integer(335));
        assert!(eval("range(5, 3)").is_err() && eval("range(0, math.maxinteger)").is_err());
    }
}
