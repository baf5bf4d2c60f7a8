//! The annotations that make an editor with LuaLS know the surface: `weft.lua`, as `---@meta`.
//!
//! The fields of each table are those that the code asks for when it reads one, noted while it
//! reads ([`Asked`]). Names of methods and what they are for stand in [`super::methods`]; a test
//! calls each of them.

use std::fmt::Write as _;

use mlua::{Lua, Table};

use super::fields::{Asked, AskedField};
use super::methods::{
    AGENT, CONNECTION, MAPPER, MESSAGE, Method, PAIR, PORT_MAPPER, READ_FIELDS, REGION, SDP, SHARED, TESTER,
    WRITE_FIELDS,
};
use super::options::Reader;
use super::{agent, agent_told, declare, message};
use crate::targets::Target;

/// The annotations.
///
/// # Errors
/// None that this surface is known to have.
pub fn annotations() -> Result<String, String> {
    generate().map_err(|error| error.to_string())
}

fn generate() -> mlua::Result<String> {
    let asked = asked()?;
    let mut text = String::from(
        "---@meta\n-- The surface of weft's suites, for editors with LuaLS. Written by `weft suite annotations`.\n",
    );
    let mut tables: Vec<&str> = Vec::new();
    for field in &asked {
        if !tables.contains(&field.what) {
            tables.push(field.what);
        }
    }
    for table in tables {
        let _ = writeln!(text, "\n---@class {}", class(table));
        for field in asked.iter().filter(|field| field.what == table) {
            let optional = if field.required { "" } else { "?" };
            let is = match asked.iter().any(|other| other.what == field.name) {
                true => class(field.name),
                false => lua_type(field.is).to_owned(),
            };
            let _ = writeln!(text, "---@field {}{optional} {is}", field.name);
        }
    }
    for (class, fields) in [
        ("weft.Reply", &message::REPLY_FIELDS[..]),
        ("weft.Fpdu", &message::FPDU_FIELDS[..]),
        ("weft.Terminate: weft.Fpdu", &message::TERMINATE_FIELDS[..]),
        ("weft.Operation", &message::OPERATION_FIELDS[..]),
        ("weft.SdpMessage", &super::sdp::HEARD_FIELDS[..]),
        ("weft.ReadRequest", &READ_FIELDS[..]),
        ("weft.Write", &WRITE_FIELDS[..]),
        ("weft.PortMapperMessage", &message::PORTMAP_FIELDS[..]),
        ("weft.Place", &super::asked::PLACE_FIELDS[..]),
        ("weft.Operated", &agent::OPERATED_FIELDS[..]),
        ("weft.Completion", &agent_told::COMPLETION_FIELDS[..]),
        ("weft.Event", &agent_told::EVENT_FIELDS[..]),
        ("weft.Window", &agent::WINDOW_FIELDS[..]),
        ("weft.Region", &agent::REGION_FIELDS[..]),
    ] {
        let _ = writeln!(text, "\n---@class {class}");
        for (name, is) in fields {
            let _ = writeln!(text, "---@field {name} {is}");
        }
    }
    for (class, methods) in [
        ("weft.Message", MESSAGE),
        ("weft.Connection", CONNECTION),
        ("weft.Sdp", SDP),
        ("weft.Mapper", MAPPER),
        ("weft.PortMapper", PORT_MAPPER),
        ("weft.Agent", AGENT),
        ("weft.Pair", PAIR),
        ("weft.Region", REGION),
        ("weft.Shared", SHARED),
        ("weft.Tester", TESTER),
    ] {
        let local = class.trim_start_matches("weft.");
        let _ = writeln!(text, "\n---@class {class}");
        if class == "weft.Message" {
            text.push_str("---@operator concat(weft.Message|string): weft.Message\n---@operator len: integer\n");
        }
        let _ = writeln!(text, "local {local} = {{}}");
        for method in methods {
            write_method(&mut text, local, method);
        }
    }
    for module in ["mpa", "rdmap", "sdp", "portmap"] {
        let _ = writeln!(text, "\n{module} = {{}}");
        for made in message::CONSTRUCTORS.iter().filter(|made| made.module == module) {
            let name = format!("{module}.{}", made.name);
            let _ = write!(text, "\n---{}.\n---@param fields? {}\n", made.about, class(&name));
            let _ = writeln!(text, "---@return weft.Message\nfunction {name}(fields) end");
        }
    }
    text.push_str("\n---The rows that the monitor judges in what the target sends, by what they are about");
    text.push_str(" (`sdp.shown { \"hello_ack\", \"data\" }`).\n");
    text.push_str("---@param about string[]\n---@return string[]\nfunction sdp.shown(about) end\n");
    let _ = write!(text, "\n---Declares a case.\n---@param fields {}\nfunction case(fields) end\n", class("case"));
    text.push_str("\n---The whole numbers from `first` to `last`.\n---@param first integer\n---@param last integer\n");
    text.push_str("---@return integer[]\nfunction range(first, last) end\n");
    text.push_str("\noctets = {}\n\n---Numbered lines of 64 octets, no two alike: `length` octets of them.\n");
    text.push_str("---@param length integer\n---@return string\nfunction octets.counted(length) end\n");
    text.push_str("\n---What is wrong with octets that were to be `want`, for `actual`.\n");
    text.push_str(
        "---@param got string\n---@param want string\n---@return string\nfunction octets.difference(got, want) end\n",
    );
    Ok(text)
}

fn write_method(text: &mut String, class_name: &str, method: &Method) {
    let _ = write!(text, "\n---{}.\n", method.about);
    let mut names: Vec<&str> = Vec::new();
    for (name, is) in method.parameters {
        let (optional, is) = is.strip_suffix('?').map_or(("", *is), |is| ("?", is));
        let _ = writeln!(text, "---@param {name}{optional} {is}");
        names.push(name);
    }
    if let Some(table) = method.table {
        let _ = writeln!(text, "---@param options? {}", class(table));
        names.push("options");
    }
    if let Some(gives) = method.gives {
        let _ = writeln!(text, "---@return {gives}");
    }
    let _ = writeln!(text, "function {class_name}:{}({}) end", method.name, names.join(", "));
}

/// Reads a table of each kind and notes what was asked for.
fn asked() -> mlua::Result<Vec<AskedField>> {
    let lua = Lua::new();
    let _declarations = declare::install(&lua, "mpa/x.lua")?;
    message::install(&lua)?;
    lua.set_app_data(Asked::default());
    let table = |source: &str| lua.load(source).eval::<Table>();
    lua.load(
        "case { id = 'mpa/x/one', version = 1, title = 'x', requirements = { 'MPA-7.1.1-2' }, roles = { 'responder' },
            run = function() end }",
    )
    .exec()?;
    for made in &message::CONSTRUCTORS {
        (made.make)(&lua, Some(table("return { ulpdu = '' }")?).filter(|_| made.name == "fpdu"))?;
    }
    let target = Target::builtin();
    let reader = Reader { lua: &lua, target: &target, requirements: &[] };
    reader.good_exchange(None)?;
    reader.check(Some(table("return { expected = '', actual = '' }")?))?;
    reader.send(None, 1)?;
    reader.expect_request(None)?;
    reader.expect_reply(None)?;
    reader.expect_fpdu(None)?;
    reader.expect_octets(Some(table("return { begins = '' }")?))?;
    reader.expect_terminate(None)?;
    reader.expect_silence(None)?;
    reader.waiting(None)?;
    reader.expect_close(None)?;
    reader.sdp(None)?;
    reader.accept_sdp(None)?;
    reader.carrier(None)?;
    reader.mapper_send(None)?;
    reader.sdp_expect(mlua::Value::Table(table("return { 'data' }")?), None)?;
    reader.sdp_rdma(None, "expect_read")?;
    reader.sdp_rdma(None, "expect_write")?;
    for what in ["expect_response", "fetch", "next", "expect_open"] {
        reader.sdp_rdma(None, what)?;
    }
    reader.sdp_read(None)?;
    reader.sdp_write(None)?;
    reader.sdp_serve(None)?;
    reader.sdp_quiet(None)?;
    reader.sdp_end(None)?;
    reader.books(None)?;
    reader.mapper(None)?;
    reader.mapper_expect(None)?;
    reader.mapper_quiet(None)?;
    reader.asked_service(None)?;
    reader.asked_place(None)?;
    reader.asked_send(None)?;
    reader.asked_expect(None)?;
    reader.asked_repeats(None)?;
    reader.asked_from(None)?;
    for what in ["asked_quiet", "expect_sdp", "expect_plain"] {
        reader.asked_quiet(None, what)?;
    }
    reader.asked_connection(Some(table("return { at = { ip = '192.0.2.2', port = 1 } }")?))?;
    reader.agent_region(None)?;
    reader.agent_window(None)?;
    reader.agent_shared(None)?;
    reader.agent_pair(None, "agent_operate")?;
    reader.agent_pair(None, "agent_pair")?;
    reader.agent_request(None)?;
    reader.agent_octets(None, 0)?;
    reader.agent_work(None, "post_receive", |_| Ok(()))?;
    reader.agent_work(None, "post_send", Reader::agent_send)?;
    reader.agent_work(None, "post_write", Reader::agent_remote)?;
    reader.agent_work(None, "post_read", Reader::agent_remote)?;
    reader.agent_work(Some(table("return { add = 1 }")?), "post_atomic", Reader::agent_atomic)?;
    reader.expect_limit(None)?;
    reader
        .agent_work(Some(table("return { stag = 1 }")?), "post_invalidate", |fields| fields.required::<u32>("stag"))?;
    noted(reader.agent_work(None, "post_bind", Reader::agent_bind));
    noted(reader.agent_part(None));
    reader.expect_completion(None)?;
    reader.expect_event(Some(table("return { event = 'established' }")?))?;
    reader.expect_error(None)?;
    reader.expect_no_completion(None)?;
    Ok(lua.remove_app_data::<Asked>().map(|asked| asked.0).unwrap_or_default())
}

/// What needs an object of the target cannot be read without one; what it asked for until then is
/// noted.
fn noted<T>(_: mlua::Result<T>) {}

fn class(table: &str) -> String {
    format!("weft.fields.{}", table.replace('.', "_"))
}

/// A type of Rust as LuaLS calls what is taken for it.
fn lua_type(rust: &str) -> &'static str {
    match rust.rsplit("::").next().unwrap_or(rust) {
        "bool" => "boolean",
        "Deviates" => "boolean|weft.Message",
        "f64" => "number",
        "i64" | "u8" | "u16" | "u32" | "u64" | "usize" => "integer",
        "Vec<usize>" => "integer[]",
        "String" | "LuaString" => "string",
        "String>" => "string[]",
        "Ids" => "string|(string|string[])[]",
        "Function" => "fun(t: weft.Tester, p: table<string, boolean|integer|string>, target: weft.Agent)",
        "Region" => "weft.Region",
        "Shared" => "weft.Shared",
        "Window" => "weft.Window",
        "Table>" => "weft.fields.agent_part[]",
        "Table" => "table",
        "AnyUserData" => "weft.Message",
        _ if rust.contains("BTreeMap") => "table<string, (boolean|integer|string)[]>",
        _ => "any",
    }
}

/// The body of a case that asks for each method by its name.
#[cfg(test)]
fn probe() -> String {
    let names = |methods: &[Method]| methods.iter().map(|m| format!("'{}'", m.name)).collect::<Vec<_>>().join(", ");
    format!(
        "local function has(object, names) for _, name in ipairs(names) do\n\
         if not object[name] then error('no ' .. name) end end end\n\
         has(t, {{ {} }}) has(t:connect(), {{ {} }}) has(t:request(), {{ {} }}) has(t:mapper(), {{ {} }}) has(t:port_mapper(), {{ {} }}) has(t:sdp(), {{ {} }})",
        names(TESTER),
        names(CONNECTION),
        names(MESSAGE),
        names(MAPPER),
        names(PORT_MAPPER),
        names(SDP)
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;

    /// `WEFT_BLESS=1 cargo test -p weft-suites annotations` writes the file anew.
    #[test]
    fn the_committed_annotations_are_current() {
        let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("annotations/weft.lua");
        let now = annotations().unwrap();
        if std::env::var_os("WEFT_BLESS").is_some() {
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, &now).unwrap();
        }
        assert!(std::fs::read_to_string(&path).unwrap() == now, "annotations/weft.lua is not current");
    }

    #[test]
    fn every_constructor_and_its_fields_are_told() {
        let text = annotations().unwrap();
        for line in [
            "---@class weft.fields.mpa_request",
            "---@field private_data? string",
            "---@field requirement? string|(string|string[])[]",
            "function Connection:send(message, options) end",
            "---@field begins string",
            "---@field run fun(t: weft.Tester, p: table<string, boolean|integer|string>, target: weft.Agent)",
            "function rdmap.read_request(fields) end",
        ] {
            assert!(text.lines().any(|other| other == line), "{line}\n{text}");
        }
        let untyped = text.lines().filter(|line| line.ends_with(" any")).collect::<Vec<_>>();
        assert!(untyped.len() <= 5, "{untyped:?}");
    }

    #[tokio::test]
    async fn every_method_is_there() {
        let body = probe();
        let script = format!(
            "case {{ id = 'mpa/x/one', version = 1, title = 'x', requirements = {{ 'MPA-7.1.1-2' }}, roles = {{ 'responder' }},\n\
             capabilities = {{ 'sdp' }}, run = function(t) {body} end }}"
        );
        let out = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(out.path().join("suites/mpa")).unwrap();
        std::fs::write(out.path().join("suites/mpa/x.lua"), script).unwrap();
        let options = crate::RunOptions {
            target: Target::builtin(),
            suites: crate::script::Suites::from_folder(&out.path().join("suites")).unwrap(),
            filter: crate::Filter::everything(),
            out: out.path().to_owned(),
            seed: Some(1),
            cancel: None,
        };
        let report = crate::run(options, Arc::new(|_: &crate::model::Event| {})).await.unwrap();
        // The case has nothing else to say, and that is the only thing that is wrong with it.
        assert!(report.results[0].explanation.contains("without an expectation"), "{}", report.results[0].explanation);
    }
}
