//! Generates `weft.lua`, annotations (`---@meta`) that describe the surface to an editor with the
//! Lua language server (LuaLS). The surface is the set of objects and functions that scripts use.
//!
//! For each table, the annotations list the fields that its reader reads ([`RecordedFields`]). The
//! methods and their descriptions come from the entries that bind them ([`super::bind`]).

use std::fmt::Write as _;

use mlua::{Lua, Table};

use super::agent::{self, AGENT, REGION, SHARED};
use super::agent_pair::PAIR;
use super::bind::Method;
use super::drawn_session::TESTER_DRAWN_SESSION;
use super::fields::{RecordedField, RecordedFields};
use super::mapper::{MAPPER, TESTER_MAPPER};
use super::message::{self, MESSAGE};
use super::options::{Declared, Reader};
use super::port_mapper::{self, PORT_MAPPER, TESTER_PORT_MAPPER};
use super::sdp::{self, SDP, TESTER_SDP};
use super::sdp_socket::{SDP_SOCKET, TESTER_SDP_SOCKET};
use super::surface::{CONNECTION, TESTER};
use super::{agent_events, declare};
use crate::targets::Target;

/// The objects of the surface, each with the lists of its methods.
const CLASSES: [(&str, &[&[Method]]); 11] = [
    ("weft.Message", &[MESSAGE]),
    ("weft.Connection", &[CONNECTION]),
    ("weft.Sdp", &[SDP]),
    ("weft.SdpSocket", &[SDP_SOCKET]),
    ("weft.Mapper", &[MAPPER]),
    ("weft.PortMapper", &[PORT_MAPPER]),
    ("weft.Agent", &[AGENT]),
    ("weft.Pair", &[PAIR]),
    ("weft.Region", &[REGION]),
    ("weft.Shared", &[SHARED]),
    ("weft.Tester", &[TESTER, TESTER_SDP, TESTER_SDP_SOCKET, TESTER_DRAWN_SESSION, TESTER_MAPPER, TESTER_PORT_MAPPER]),
];

/// Sample tables for the readers that reject an empty table.
const SAMPLES: [(&str, &str); 6] = [
    ("check", "{ expected = '', actual = '' }"),
    ("expect_octets", "{ begins = '' }"),
    ("port_mapper_connection", "{ at = { ip = '192.0.2.2', port = 1 } }"),
    ("post_atomic", "{ add = 1 }"),
    ("post_invalidate", "{ stag = 1 }"),
    ("expect_event", "{ event = 'established' }"),
];

/// Returns the annotations.
///
/// # Errors
/// A part of the surface is wrong. A test ensures that this does not happen.
pub fn annotations() -> Result<String, String> {
    generate().map_err(|error| error.to_string())
}

fn generate() -> mlua::Result<String> {
    let recorded = recorded_fields()?;
    let mut text = String::from(
        "---@meta\n-- The objects and functions of weft's suites, for editors with the Lua language server (LuaLS).\n\
         -- `weft suite annotations` has written this file.\n",
    );
    let mut tables: Vec<&str> = Vec::new();
    for field in &recorded {
        if !tables.contains(&field.what) {
            tables.push(field.what);
        }
    }
    for table in tables {
        let _ = writeln!(text, "\n---@class {}", class(table));
        for field in recorded.iter().filter(|field| field.what == table) {
            let optional = if field.required { "" } else { "?" };
            let is = match recorded.iter().any(|other| other.what == field.name) {
                true => class(field.name),
                false => lua_type(field.is).to_owned(),
            };
            let _ = writeln!(text, "---@field {}{optional} {is}", field.name);
        }
    }
    for (class, fields) in [
        ("weft.Reply", message::REPLY_FIELDS),
        ("weft.Fpdu", message::FPDU_FIELDS),
        ("weft.Terminate: weft.Fpdu", message::TERMINATE_FIELDS),
        ("weft.Operation", message::OPERATION_FIELDS),
        ("weft.SdpMessage", sdp::MESSAGE_FIELDS),
        ("weft.ReadRequest", sdp::READ_FIELDS),
        ("weft.Write", sdp::WRITE_FIELDS),
        ("weft.PortMapperMessage", message::PORTMAP_FIELDS),
        ("weft.Place", port_mapper::PLACE_FIELDS),
        ("weft.Operated", agent::OPERATED_FIELDS),
        ("weft.Completion", agent_events::COMPLETION_FIELDS),
        ("weft.Event", agent_events::EVENT_FIELDS),
        ("weft.Window", agent::WINDOW_FIELDS),
        ("weft.Region", agent::REGION_FIELDS),
    ] {
        let _ = writeln!(text, "\n---@class {class}");
        for (name, is) in fields.iter() {
            let _ = writeln!(text, "---@field {name} {is}");
        }
    }
    for (class, methods) in CLASSES {
        let local = class.trim_start_matches("weft.");
        let _ = writeln!(text, "\n---@class {class}");
        if class == "weft.Message" {
            text.push_str("---@operator concat(weft.Message|string): weft.Message\n---@operator len: integer\n");
        }
        let _ = writeln!(text, "local {local} = {{}}");
        for method in methods.iter().copied().flatten() {
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
    text.push_str("\n---Returns the requirements that the monitor judges in the messages of the target, by subject");
    text.push_str(" (`sdp.shown { \"hello_ack\", \"data\" }`).\n");
    text.push_str("---@param about string[]\n---@return string[]\nfunction sdp.shown(about) end\n");
    let _ = write!(text, "\n---Declares a case.\n---@param fields {}\nfunction case(fields) end\n", class("case"));
    text.push_str(
        "\n---Returns the integers from `first` to `last`.\n---@param first integer\n---@param last integer\n",
    );
    text.push_str("---@return integer[]\nfunction range(first, last) end\n");
    text.push_str(
        "\noctets = {}\n\n---Returns `length` bytes in lines of 64 bytes. Each line has a different number.\n",
    );
    text.push_str("---@param length integer\n---@return string\nfunction octets.counted(length) end\n");
    text.push_str("\n---Describes the difference between the received and the expected bytes, for `actual`.\n");
    text.push_str(
        "---@param got string\n---@param want string\n---@return string\nfunction octets.difference(got, want) end\n",
    );
    Ok(text)
}

fn write_method(text: &mut String, class_name: &str, method: &Method) {
    let _ = writeln!(text, "\n---{}", method.about.trim_start());
    let mut names: Vec<&str> = Vec::new();
    for (name, is) in method.parameters {
        let (optional, is) = is.strip_suffix('?').map_or(("", *is), |is| ("?", is));
        let _ = writeln!(text, "---@param {name}{optional} {is}");
        names.push(name);
    }
    if let Some(options) = &method.options {
        let _ = writeln!(text, "---@param options? {}", class(options.name));
        names.push("options");
    }
    if let Some(returns) = method.returns {
        let _ = writeln!(text, "---@return {returns}");
    }
    let _ = writeln!(text, "function {class_name}:{}({}) end", method.name, names.join(", "));
}

/// Reads a table of each kind, and records its fields.
fn recorded_fields() -> mlua::Result<Vec<RecordedField>> {
    let lua = Lua::new();
    let _declarations = declare::install(&lua, "mpa/x.lua")?;
    message::install(&lua)?;
    lua.set_app_data(RecordedFields::default());
    let table = |source: &str| lua.load(format!("return {source}")).eval::<Table>();
    lua.load(
        "case { id = 'mpa/x/one', version = 1, title = 'x', requirements = { 'MPA-7.1.1-2' }, roles = { 'responder' },
            run = function() end }",
    )
    .exec()?;
    for made in &message::CONSTRUCTORS {
        (made.make)(&lua, Some(table("{ ulpdu = '' }")?).filter(|_| made.name == "fpdu"))?;
    }
    let target = Target::builtin();
    let reader = Reader { lua: &lua, target: &target, declared: Declared(&[]) };
    let mut read = Vec::new();
    for options in CLASSES.iter().flat_map(|(_, lists)| *lists).copied().flatten().filter_map(|m| m.options.as_ref()) {
        let Some(read_fields) = options.read.filter(|_| !read.contains(&options.name)) else { continue };
        read.push(options.name);
        let sample = SAMPLES.iter().find(|(name, _)| *name == options.name);
        let sample = sample.map(|(_, sample)| table(sample)).transpose()?;
        let result = reader.read(options.name, sample, |reader, fields| read_fields(reader, fields));
        // Reading a Bind fails, because it needs objects of a target. But all fields of the Bind
        // are recorded before the failure.
        result.or_else(|error| if options.name == "post_bind" { Ok(()) } else { Err(error) })?;
    }
    // Reading a part (a range of a region) fails, because it needs a region. But the fields of the
    // part are recorded before the failure.
    let _ = reader.read("agent_part", None, Reader::agent_part);
    Ok(lua.remove_app_data::<RecordedFields>().map(|recorded| recorded.0).unwrap_or_default())
}

fn class(table: &str) -> String {
    format!("weft.fields.{}", table.replace('.', "_"))
}

/// Returns the LuaLS type of the values from which a Rust type is read.
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

/// Returns the body of a case that reads each method by its name.
#[cfg(test)]
fn probe() -> String {
    let names = |class: &str| {
        let lists = CLASSES.iter().find(|(name, _)| *name == class).unwrap().1;
        lists.iter().copied().flatten().map(|m| format!("'{}'", m.name)).collect::<Vec<_>>().join(", ")
    };
    format!(
        "local function has(object, names) for _, name in ipairs(names) do\n\
         if not object[name] then error('no ' .. name) end end end\n\
         has(t, {{ {} }}) has(t:connect(), {{ {} }}) has(t:request(), {{ {} }}) has(t:mapper(), {{ {} }}) has(t:port_mapper(), {{ {} }}) has(t:sdp(), {{ {} }})",
        names("weft.Tester"),
        names("weft.Connection"),
        names("weft.Message"),
        names("weft.Mapper"),
        names("weft.PortMapper"),
        names("weft.Sdp")
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::sync::Arc;

    /// `WEFT_BLESS=1 cargo test -p weft-suites annotations` rewrites the file.
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
    fn annotations_have_every_constructor_and_its_fields() {
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
        // The case has no expectation. This is its only fault.
        assert!(report.results[0].explanation.contains("without an expectation"), "{}", report.results[0].explanation);
    }
}
